"""Components of unknown types: kept as they are, and written again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct

from armillary.errors import quote
from armillary.formats.actin.names import PREFIXES, PRIMARY, actin_tag
from armillary.formats.actin.values import pose_elements
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.formats.xml import Element, tag
from armillary.limits import ACTIN_DEPTH
from armillary.model.joints.opaque import OpaqueJoint
from armillary.plugins import advice
from armillary.spatial.pose import Pose

LIBRARY: Final = "library"


class _Kept(Struct, array_like=True, forbid_unknown_fields=True):
    """An element in the parameters of an opaque joint."""

    namespace: str
    name: str
    attributes: dict[str, str]
    text: str
    children: list[_Kept]


class _Parameters(Struct):
    """The parameters of an opaque joint from such a file."""

    actin: _Kept | None = None


def read_opaque(element: Element, library: str, report: Report) -> OpaqueJoint:
    """Return a joint that keeps all of a component but its primary frame."""
    needs = f", which is in the library {quote(library)}" if library else ""
    report.warning(
        element.place,
        "unknown-joint-type",
        f"no joint type is registered for {element.label}{needs}; it is kept, but "
        "cannot move, and no library is ever loaded",
        hint=advice(element.name),
    )
    copy = _kept(element, report, 0)
    copy.attributes.pop(LIBRARY, None)
    copy.children = [child for child in copy.children if child.name != PRIMARY]
    parameters = msgspec.json.encode(_Parameters(copy)).decode()
    return OpaqueJoint(kind=element.name, parameters=parameters)


def _kept(element: Element, report: Report, depth: int) -> _Kept:
    children = element.children
    if depth > report.budget.most(ACTIN_DEPTH):
        report.add(report.budget.excess(ACTIN_DEPTH, element.place).diagnostics[0])
        children = ()
    return _Kept(
        element.namespace,
        element.name,
        dict(element.attributes),
        element.text,
        [_kept(child, report, depth + 1) for child in children],
    )


def opaque_element(
    joint: OpaqueJoint, primary: Pose | None, library: str, report: Report
) -> Element | None:
    """Return the component that such a joint kept, None where it is of another file.

    primary: None inside another joint, where there is no primary frame.
    """
    component = _found(joint)
    if component is None:
        message = f"a joint is of type {quote(joint.kind)}, which is not known here"
        hint = advice(joint.kind)
        report.error(NOWHERE, "unknown-joint-type", message, hint=hint)
        return None
    if not joint.precursor.is_identity:
        message = f"the precursor of joint type {quote(joint.kind)} is not kept"
        report.warning(NOWHERE, "lost-precursor", message)
    prefixes = {uri: prefix for prefix, uri in PREFIXES.items()}
    made = _element(component, prefixes, (f"x{k}" for k in itertools.count(1)))
    added = {f"xmlns:{p}": uri for uri, p in prefixes.items() if p not in PREFIXES}
    attributes = {LIBRARY: library or None, **made.attributes, **added}
    frame: list[Element] = []
    if primary is not None:
        frame.append(actin_tag(PRIMARY, {}, *pose_elements(primary)))
    return tag(made.name, attributes, *made.children, *frame, text=made.text)


def is_kept(joint: OpaqueJoint) -> bool:
    """Return whether a joint keeps a component of such a file."""
    return _found(joint) is not None


def _found(joint: OpaqueJoint) -> _Kept | None:
    try:
        return msgspec.json.decode(joint.parameters, type=_Parameters).actin
    except msgspec.ValidationError:
        return None


def _element(kept: _Kept, prefixes: dict[str, str], fresh: Iterator[str]) -> Element:
    """Return an element to be written; unknown namespaces get fresh prefixes."""

    def prefixed(space: str, name: str) -> str:
        if not space:
            return name
        if space not in prefixes:
            prefixes[space] = next(fresh)
        return f"{prefixes[space]}:{name}"

    name = prefixed(kept.namespace, kept.name)
    attributes: dict[str, str] = {}
    for key, value in kept.attributes.items():
        space, _, bare = key.removeprefix("{").rpartition("}")
        attributes[prefixed(space, bare)] = value
    children = [_element(child, prefixes, fresh) for child in kept.children]
    return tag(name, attributes, *children, text=kept.text)
