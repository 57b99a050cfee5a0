"""Components that nobody knows: kept as they are, and written again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec

from armillary.errors import quote
from armillary.formats.actin.names import PREFIXES
from armillary.formats.actin.transforms import pose_element, read_child_pose
from armillary.formats.diagnostic import Place, Report
from armillary.formats.xml import Element, tag
from armillary.model.joints.opaque import OpaqueJoint
from armillary.plugins import advice
from armillary.spatial.pose import Pose

__all__ = ["is_kept", "opaque_element", "read_opaque"]

PRIMARY: Final = "primaryFrame"
FOREIGN: Final = "actin"
DEEPEST: Final = 12


def read_opaque(
    element: Element, library: str, report: Report
) -> tuple[OpaqueJoint, Pose]:
    """Return a joint that keeps all of a component but its primary frame, and that."""
    primary = read_child_pose(element, PRIMARY, report)
    needs = f", which is in the library {quote(library)}" if library else ""
    report.warning(
        element.place,
        "unknown-joint-type",
        f"no joint type is registered for {element.label}{needs}; it is kept, but "
        "cannot move, and no library is ever loaded",
        hint=advice(element.name),
    )
    record = _record(element, report, 0)
    text = msgspec.json.encode({FOREIGN: record}).decode()
    return OpaqueJoint(kind=element.name, parameters=text), primary


def _record(element: Element, report: Report, depth: int) -> list[Any]:
    """Return an element as namespace, name, attributes, text, children."""
    if depth > DEEPEST:
        message = f"{element.label} is nested more than {DEEPEST} deep"
        report.error(element.place, "too-deep", message)
        return []
    children = [
        _record(child, report, depth + 1)
        for child in element.children
        if not (depth == 0 and child.name == PRIMARY)
    ]
    attributes = {
        name: value
        for name, value in element.attributes.items()
        if not (depth == 0 and name == "library")
    }
    space, text = element.namespace, element.text
    return [space, element.name, attributes, text, children]


def opaque_element(
    joint: OpaqueJoint, primary: Pose | None, library: str, report: Report
) -> Element | None:
    """Return the component that such a joint kept, None where it is of another file.

    primary: None inside another joint, where there is no primary frame.
    """
    record = _kept(joint)
    if record is None:
        report.error(
            Place(),
            "unknown-joint-type",
            f"a joint is of type {quote(joint.kind)}, which is not known here",
            hint=advice(joint.kind),
        )
        return None
    spaces: dict[str, str] = {uri: prefix for prefix, uri in PREFIXES.items()}
    fresh = (f"x{k}" for k in itertools.count(1))
    made = _element(record, spaces, fresh)
    added = {
        f"xmlns:{prefix}": uri
        for uri, prefix in spaces.items()
        if prefix not in PREFIXES
    }
    if not joint.precursor.is_identity:
        message = f"the precursor of joint type {quote(joint.kind)} is not kept"
        report.warning(Place(), "lost-precursor", message)
    attributes = {"library": library or None, **made.attributes, **added}
    frame = () if primary is None else (pose_element(f"mn:{PRIMARY}", primary),)
    return tag(made.name, attributes, *made.children, *frame, text=made.text)


def is_kept(joint: OpaqueJoint) -> bool:
    """Return whether a joint keeps a component of such a file."""
    return _kept(joint) is not None


def _kept(joint: OpaqueJoint) -> list[Any] | None:
    record = msgspec.json.decode(joint.parameters).get(FOREIGN)
    return record if _is_record(record) else None


def _element(
    record: list[Any], spaces: dict[str, str], fresh: Iterator[str]
) -> Element:
    space, name, attributes, text, children = record
    return tag(
        _prefixed(space, name, spaces, fresh),
        {
            _prefixed(*_split(key), spaces, fresh): value
            for key, value in attributes.items()
        },
        *(_element(child, spaces, fresh) for child in children),
        text=text,
    )


def _prefixed(
    space: str, name: str, spaces: dict[str, str], fresh: Iterator[str]
) -> str:
    if not space:
        return name
    if space not in spaces:
        spaces[space] = next(fresh)
    return f"{spaces[space]}:{name}"


def _split(key: str) -> tuple[str, str]:
    """Return namespace and name of an attribute that the parser has resolved."""
    if not key.startswith("{"):
        return "", key
    space, _, name = key[1:].rpartition("}")
    return space, name


def _is_record(record: Any) -> bool:
    """Return whether a value has the form that `_record` returns."""
    if not (isinstance(record, list) and len(cast(list[Any], record)) == 5):
        return False
    space, name, attributes, text, children = cast(list[Any], record)
    return (
        all(isinstance(part, str) for part in (space, name, text))
        and isinstance(attributes, dict)
        and all(isinstance(v, str) for v in cast(dict[str, Any], attributes).values())
        and isinstance(children, list)
        and all(map(_is_record, cast(list[Any], children)))
    )
