"""SRDF onto a cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from armillary.errors import quote
from armillary.formats.diagnostic import Place, Report
from armillary.formats.names import Guesses
from armillary.formats.srdf.collisions import read_rules
from armillary.formats.srdf.groups import read_groups
from armillary.formats.srdf.names import Names, VirtualJoint
from armillary.formats.srdf.remarks import (
    BASE_POSE,
    PREFIX,
    VIRTUAL_JOINT,
    KeptVirtualJoint,
    kept,
    read_end_effectors,
    read_joint_properties,
    read_spheres,
    read_virtual_joints,
)
from armillary.formats.srdf.states import BasePose, read_states
from armillary.formats.unsupported import Unsupported
from armillary.formats.xml import Element, Limits, parse, report_unused
from armillary.model.group import Group
from armillary.model.manipulator import Manipulator
from armillary.model.posture import Posture
from armillary.model.property import Property
from armillary.model.workcell import WORLD, Mount, Workcell

__all__ = ["read_onto"]

# Reading takes longer than parsing; 400 links have at most 80 000 pairs.
LIMITS: Final = Limits(elements=200_000)
# Of other programs, in SRDFs that people have.
FOREIGN: Final = ("gripper", "rotor_params", "specificities")


def read_onto(cell: Workcell, data: bytes, path: str, report: Report) -> Workcell:
    """Return a cell with what an SRDF says of one of its manipulators.

    data: Of the file.
    path: What to call it in messages.

    Raises FormatError with all that was found, if the file is faulty.
    """
    robot = parse(data, path, LIMITS, report=report)
    number = _find(robot, cell, report)
    report.raise_if_errors()
    assert number is not None, "an unknown robot is an error"
    manipulator = cell.manipulators[number]
    names = Names(manipulator, report)
    read_virtual_joints(robot, names)
    in_groups: dict[str, list[str]] = {}
    groups = read_groups(robot, names, in_groups)
    postures, bases = read_states(robot, names, groups)
    properties = [
        *read_end_effectors(robot, names, groups),
        *_virtual_properties(names, in_groups),
        *read_joint_properties(robot, names),
        *read_spheres(robot, names),
        *_base_properties(bases, manipulator),
    ]
    passive = _read_passive(robot, names)
    rules = read_rules(robot, names)
    unsupported = Unsupported(report)
    unsupported.add_children(robot, FOREIGN)
    report_unused(robot, report)
    unsupported.report_all()
    if names.missed and not names.found:
        report.error(
            robot.place,
            "wrong-robot",
            f"none of the {names.missed} links and joints that this file names exists "
            f"in {quote(manipulator.name)}",
            hint="It belongs to another robot.",
        )
    report.raise_if_errors()
    changed = _changed(
        manipulator, groups, postures, properties, passive, report, robot.place
    )
    manipulators = list(cell.manipulators)
    manipulators[number] = changed
    return msgspec.structs.replace(
        cell,
        manipulators=tuple(manipulators),
        mounts=_mounts(cell, manipulator, names.virtual.values(), report),
        rules=cell.rules.extended(rules) if rules else cell.rules,
    )


def _find(robot: Element, cell: Workcell, report: Report) -> int | None:
    """Return the place of the manipulator that an SRDF is about."""
    if robot.name != "robot":
        report.error(
            robot.place, "not-srdf", f"the root element is {robot.label}, not <robot>"
        )
        return None
    name = (robot.attribute("name") or "").strip()
    robot.attribute("version")
    for child in robot.children:
        if child.name == "link":
            report.error(
                child.place,
                "not-srdf",
                "this is a URDF: it describes links",
                hint="Give the SRDF that belongs to it.",
            )
            return None
    if name in cell.index:
        return cell.index[name]
    if len(cell.manipulators) == 1:
        report.warning(
            robot.place,
            "other-name",
            f"this is for a robot called {quote(name)}, not "
            f"{quote(cell.manipulators[0].name)}",
        )
        return 0
    report.error(
        robot.place,
        "unknown-robot",
        f"no manipulator of the cell is called {quote(name)}",
        hint=Guesses().hint(name, cell.index),
    )
    return None


def _virtual_properties(
    names: Names, in_groups: dict[str, list[str]]
) -> Iterable[Property]:
    for joint in names.virtual.values():
        value = KeptVirtualJoint(
            name=joint.name,
            type=joint.type,
            parent_frame=joint.parent_frame,
            groups=tuple(in_groups.get(joint.name, ())),
        )
        yield kept(VIRTUAL_JOINT, joint.child_link, value)


def _base_properties(
    bases: Sequence[BasePose], manipulator: Manipulator
) -> Iterable[Property]:
    base = manipulator.links[manipulator.base].name
    for each in bases:
        yield Property(name=BASE_POSE, of=base, text=each.posture, numbers=each.numbers)


def _read_passive(robot: Element, names: Names) -> set[str]:
    """Return the joints that no motor drives."""
    found: set[str] = set()
    for element in robot.children_named("passive_joint"):
        name = names.of(element, "name")
        if name is not None and name not in names.virtual:
            for joint in names.joints(element, name):
                if names.moves(joint):
                    found.add(joint)
                    continue
                names.report.warning(
                    element.place,
                    "not-kept",
                    f"joint {quote(joint)} is fixed; it cannot be passive",
                )
        report_unused(element, names.report)
    return found


def _changed(
    manipulator: Manipulator,
    groups: list[Group],
    postures: list[Posture],
    properties: list[Property],
    passive: set[str],
    report: Report,
    place: Place,
) -> Manipulator:
    """Return a manipulator with more to it; what has the name of what is there wins."""
    for kind, old, new in (
        ("group", manipulator.groups, groups),
        ("posture", manipulator.postures, postures),
    ):
        for name in {each.name for each in old} & {each.name for each in new}:
            report.warning(
                place,
                "replaced",
                f"the {kind} {quote(name)} that was there is replaced",
            )
    new_groups = {each.name for each in groups}
    new_postures = {each.name for each in postures}
    links = tuple(
        msgspec.structs.replace(link, passive=True)
        if link.coordinate in passive
        else link
        for link in manipulator.links
    )
    return msgspec.structs.replace(
        manipulator,
        links=links,
        groups=(
            *(each for each in manipulator.groups if each.name not in new_groups),
            *groups,
        ),
        postures=(
            *(each for each in manipulator.postures if each.name not in new_postures),
            *postures,
        ),
        properties=(
            *(p for p in manipulator.properties if not p.name.startswith(PREFIX)),
            *properties,
        ),
    )


def _mounts(
    cell: Workcell,
    manipulator: Manipulator,
    virtual: Iterable[VirtualJoint],
    report: Report,
) -> tuple[Mount, ...]:
    """Return the mounts, with the base bolted down or set free."""
    base = manipulator.links[manipulator.base].name
    mounts = {mount.manipulator: mount for mount in cell.mounts}
    first: VirtualJoint | None = None
    for joint in virtual:
        if joint.child_link != base:
            report.warning(
                joint.place,
                "not-kept",
                f"virtual joint {quote(joint.name)} carries {quote(joint.child_link)}, "
                f"which is not the base {quote(base)}; it has no effect",
            )
            continue
        if first is not None:
            report.warning(
                joint.place,
                "repeated-base",
                f"virtual joint {quote(first.name)} carries the base {quote(base)} "
                f"already, which counts; {quote(joint.name)} has no effect",
            )
            continue
        first = joint
        if joint.type == "planar":
            report.warning(
                joint.place,
                "not-kept",
                f"that base {quote(base)} stays in a plane is not kept",
            )
        is_bolted = joint.type == "fixed"
        mount = mounts.get(manipulator.name)
        if mount is None and is_bolted:
            mounts[manipulator.name] = Mount(manipulator=manipulator.name, on=WORLD)
        elif mount is not None and mount.bolted != is_bolted and mount.on == WORLD:
            mounts[manipulator.name] = msgspec.structs.replace(mount, bolted=is_bolted)
    return tuple(mounts.values())
