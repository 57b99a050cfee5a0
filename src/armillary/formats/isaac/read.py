"""Isaac's kinematic trees in."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from armillary.errors import ArmillaryError, nearest, quote
from armillary.formats.diagnostic import Report
from armillary.formats.format import ReadOptions
from armillary.formats.isaac.poses import numbers_of, pose_of, warn_of_unknown
from armillary.formats.json import Document, Record, Steps
from armillary.formats.names import FreeNames, broken_rules
from armillary.formats.records import TYPE, joint_of
from armillary.model.joint import Joint
from armillary.model.joints import Fixed, Prismatic, Revolute
from armillary.model.limits import INFINITE, UNLIMITED, Limits
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.mount import WORLD
from armillary.model.workcell import Workcell

__all__ = ["read"]

ENDING: Final = ".kinematic.json"
MOTORS: Final = ("constant", "revolute", "prismatic")
UNIT_TOLERANCE: Final = 1e-3

Motors = Mapping[str, type[Joint]]


def read(data: bytes, path: str, options: ReadOptions, report: Report) -> Workcell:
    """Return the tree in a file as a cell of one manipulator, named after the file.

    Raises:
        FormatError: The file is faulty.
    """
    document = Document(data, path, report)
    tree = document.decode(object)
    document.check_keys()
    own_motors = {kind.motor: kind for kind in options.joints.values() if kind.motor}
    links = _links(document, tree, own_motors)
    document.report_all()
    _check_order(document, links, is_strict=options.strict_order)
    links = _with_fixed_base(document, links)
    for problem, k in broken_rules(links):
        steps = ("links",) if k is None else ("links", k)
        document.error(steps, problem.rule, problem.message.removesuffix("."))
    document.report_all()
    name = _name(path)
    manipulator = Manipulator(name=name, links=tuple(links))
    _note_joint_order(document, links, manipulator)
    document.report_all()
    return Workcell(name=name, manipulators=(manipulator,))


def _links(document: Document, tree: Record, own_motors: Motors) -> list[Link]:
    """Return the links of a file that could be read.

    own_motors: The caller's joint classes by the types of their motors.
    """
    if not isinstance(tree, dict):
        document.error((), "wrong-type", "a kinematic tree is an object with links")
        return []
    top = cast(dict[str, Any], tree)
    warn_of_unknown(document, top, ("links",), ())
    link_records = top.get("links")
    if not isinstance(link_records, list) or not link_records:
        at = ("links",) if "links" in top else ()
        document.error(at, "no-links", "a kinematic tree needs an array of links")
        return []
    items = enumerate(cast(list[Any], link_records))
    links = [_link(document, item, ("links", k), own_motors) for k, item in items]
    return [link for link in links if link is not None]


def _link(
    document: Document, record: Record, steps: Steps, own_motors: Motors
) -> Link | None:
    """Return a link, None after an error."""
    if not isinstance(record, dict):
        document.error(steps, "wrong-type", "a link is an object")
        return None
    members = cast(dict[str, Any], record)
    warn_of_unknown(document, members, ("name", "parent", "motor"), steps)
    name, parent = members.get("name"), members.get("parent")
    if not isinstance(name, str) or not name:
        document.error(steps, "no-name", "a link needs a name, which is a string")
        return None
    if "parent" in members and not isinstance(parent, str):
        document.error((*steps, "parent"), "wrong-type", "a parent is a string")
        return None
    if "motor" not in members:
        return Link(name=name, parent=parent)
    motor = _motor(document, members["motor"], (*steps, "motor"), own_motors)
    if motor is None:
        return None
    return Link(name=name, parent=parent, joint=motor[0], limits=motor[1])


def _motor(
    document: Document, record: Record, steps: Steps, own_motors: Motors
) -> tuple[Joint, Limits] | None:
    """Return the joint of a motor and its limits."""
    members = cast(dict[str, Any], record) if isinstance(record, dict) else {}
    kind = members.get("type")
    if not isinstance(kind, str) or kind not in (*MOTORS, *own_motors):
        likely = nearest(kind, (*MOTORS, *own_motors))
        document.error(
            (*steps, "type") if "type" in members else steps,
            "unknown-motor",
            "a motor needs a type" if kind is None else f"no motor type {quote(kind)}",
            hint=f"Did you mean {quote(likely)}?"
            if likely
            else f"Known types: {', '.join((*MOTORS, *own_motors))}.",
        )
        return None
    warn_of_unknown(document, members, ("type", "properties"), steps)
    properties = members.get("properties")
    if not isinstance(properties, dict):
        document.error(steps, "no-properties", f"a {kind} motor needs properties")
        return None
    at = (*steps, "properties")
    known = cast(dict[str, Any], properties)
    if kind == "constant":
        return _constant(document, known, at)
    if kind in own_motors:
        return _own(document, own_motors[kind], known, at)
    return _moving(document, kind, known, at)


def _constant(
    document: Document, members: dict[str, Any], steps: Steps
) -> tuple[Joint, Limits] | None:
    warn_of_unknown(document, members, ("pose",), steps)
    if "pose" not in members:
        document.error(steps, "no-pose", "a constant motor needs a pose")
        return None
    pose = pose_of(document, members["pose"], (*steps, "pose"))
    return None if pose is None else (Fixed(precursor=pose), UNLIMITED)


def _moving(
    document: Document, kind: str, members: dict[str, Any], steps: Steps
) -> tuple[Joint, Limits] | None:
    """Return a motor about or along an axis."""
    warn_of_unknown(document, members, ("axis", "limits"), steps)
    axis = numbers_of(members.get("axis"), 3)
    at = (*steps, "axis") if "axis" in members else steps
    if axis is None:
        document.error(at, "bad-axis", f"a {kind} motor needs an axis of three numbers")
        return None
    try:
        x, y, z = axis
        joint = (Revolute if kind == "revolute" else Prismatic)(axis=(x, y, z))
        limits = _limits(document, members, (*steps, "limits"))
    except ArmillaryError as error:
        document.error(at, "bad-motor", str(error).removesuffix("."))
        return None
    if isinstance(joint, Prismatic):
        _warn_of_prismatic(document, axis, steps)
    return joint, limits


def _own(
    document: Document, kind: type[Joint], members: dict[str, Any], steps: Steps
) -> tuple[Joint, Limits] | None:
    """Return a motor of one of the caller's classes."""
    record = {key: value for key, value in members.items() if key != "limits"}
    try:
        joint = joint_of({**record, TYPE: kind.tag}, {kind.tag: kind})
        return joint, _limits(document, members, (*steps, "limits"))
    except (ArmillaryError, msgspec.ValidationError, ArithmeticError) as error:
        document.error(steps, "bad-motor", str(error).removesuffix("."))
        return None


def _warn_of_prismatic(
    document: Document, axis: tuple[float, ...], steps: Steps
) -> None:
    document.warning(
        steps[:-1],
        "not-of-isaac",
        "a prismatic motor is an extension: Isaac's own reader refuses it",
    )
    if abs(math.hypot(*axis) - 1.0) > UNIT_TOLERANCE:
        document.warning(
            (*steps, "axis"),
            "axis-length",
            f"the axis has length {math.hypot(*axis):g}; normalised, so that q is in "
            "metres",
        )


def _limits(document: Document, members: dict[str, Any], steps: Steps) -> Limits:
    """Return inclusive limits [rad or m]; Isaac's largest numbers mean unlimited.

    Raises:
        ModelError: They are swapped.
    """
    if "limits" not in members:
        return UNLIMITED
    limits = numbers_of(members["limits"], 2)
    if limits is None:
        document.warning(
            steps,
            "ignored-limits",
            "these limits are not an array of two numbers; the joint has none, as in "
            "Isaac",
        )
        return UNLIMITED
    lower, upper = limits
    return Limits(
        lower=-INFINITE if lower <= -sys.float_info.max else lower,
        upper=INFINITE if upper >= sys.float_info.max else upper,
    )


def _check_order(document: Document, links: list[Link], *, is_strict: bool) -> None:
    """Report links that come before their parents, which Isaac refuses."""
    names = {link.name for link in links}
    seen: set[str] = set()
    early: list[int] = []
    for k, link in enumerate(links):
        if link.parent in names and link.parent not in seen:
            early.append(k)
        seen.add(link.name)
    for k in early if is_strict else early[:1]:
        link = links[k]
        message = (
            f"link {quote(link.name)} comes before its parent {quote(link.parent)}"
        )
        if is_strict:
            document.error(("links", k), "order", message)
            continue
        others = f", and {len(early) - 1} more do" if len(early) > 1 else ""
        hint = "Isaac's own reader refuses this file."
        document.note(("links", k), "order", message + others, hint=hint)


def _with_fixed_base(document: Document, links: list[Link]) -> list[Link]:
    """Return the links with a base before a root that moves, as bases are fixed."""
    roots = [k for k, link in enumerate(links) if link.parent is None]
    if len(roots) != 1 or not links[roots[0]].moves:
        return links
    base = FreeNames({link.name for link in links}).derive("base")
    root = msgspec.structs.replace(links[roots[0]], parent=base)
    document.note(
        ("links", roots[0]),
        "added-base",
        f"the root {quote(root.name)} moves; a base {quote(base)} is added before it",
    )
    changed = list(links)
    changed[roots[0]] = root
    return [*changed, Link(name=base)]


def _note_joint_order(
    document: Document, links: list[Link], manipulator: Manipulator
) -> None:
    in_file = tuple(link.name for link in links if link.moves)
    if in_file != manipulator.joint_names:
        document.note(
            ("links",),
            "joint-order",
            "Isaac's state holds the joints in the order of the file; here they are "
            "ordered depth first, so use their names",
        )


def _name(path: str) -> str:
    """Return the name of a file without its ending."""
    name = os.path.basename(path)
    stem = name[: -len(ENDING)] if name.lower().endswith(ENDING) else None
    stem = os.path.splitext(name)[0] if stem is None else stem
    return "robot" if stem in {"", WORLD} else stem
