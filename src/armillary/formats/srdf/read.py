"""SRDF onto a cell."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Final, TypeVar

import msgspec

from armillary.errors import quote
from armillary.formats.diagnostic import Place, Report, Severity
from armillary.formats.names import check_unique
from armillary.formats.srdf.collisions import read_rules
from armillary.formats.srdf.elements import ELEMENTS
from armillary.formats.srdf.extensions import (
    PREFIX,
    read_end_effectors,
    read_joint_properties,
    read_spheres,
    read_virtual_joints,
    virtual_properties,
)
from armillary.formats.srdf.names import Names, VirtualJoint
from armillary.formats.srdf.states import read_states
from armillary.formats.xml import Element, parse, report_unused
from armillary.limits import SRDF_ELEMENTS
from armillary.model.group import Group
from armillary.model.mount import WORLD, Mount
from armillary.model.posture import Posture
from armillary.model.workcell import Workcell

__all__ = ["read_onto"]

Named = TypeVar("Named", Group, Posture)

# Of other programs, in SRDFs that people have.
FOREIGN: Final = {"robot": ("gripper", "rotor_params", "specificities")}


def read_onto(cell: Workcell, data: bytes, path: str, report: Report) -> Workcell:
    """Return a cell with what an SRDF says of one of its manipulators.

    data: Of the file.
    path: What to call it in messages.

    Raises FormatError with all diagnostics, if the file is faulty.
    """
    robot = parse(data, path, elements=SRDF_ELEMENTS, report=report)
    number = _find(robot, cell, report)
    report.raise_if_errors()
    assert number is not None, "an unknown robot is an error"
    manipulator = cell.manipulators[number]
    names = Names(manipulator, report)
    read_virtual_joints(robot, names)
    groups = _read_groups(robot, names)
    postures, bases = read_states(robot, names)
    properties = [
        *read_end_effectors(robot, names),
        *virtual_properties(names),
        *read_joint_properties(robot, names),
        *read_spheres(robot, names),
        *bases,
    ]
    passive = _read_passive(robot, names)
    rules = read_rules(robot, names)
    report_unused(robot, report, foreign=FOREIGN)
    if names.missed and not names.found:
        report.error(
            robot.place,
            "wrong-robot",
            f"none of the {names.missed} links and joints that this file names exists "
            f"in {quote(manipulator.name)}",
            hint="It belongs to another robot.",
        )
    report.raise_if_errors()
    changed = msgspec.structs.replace(
        manipulator,
        links=tuple(
            msgspec.structs.replace(link, passive=True)
            if link.coordinate in passive
            else link
            for link in manipulator.links
        ),
        groups=_replaced("group", manipulator.groups, groups, robot, report),
        postures=_replaced("posture", manipulator.postures, postures, robot, report),
        properties=(
            *(p for p in manipulator.properties if not p.name.startswith(PREFIX)),
            *properties,
        ),
    )
    manipulators = list(cell.manipulators)
    manipulators[number] = changed
    return msgspec.structs.replace(
        cell,
        manipulators=tuple(manipulators),
        mounts=_mounts(cell, names),
        rules=cell.rules.extended(rules) if rules else cell.rules,
    )


def _find(robot: Element, cell: Workcell, report: Report) -> int | None:
    """Return the index of the manipulator that an SRDF is about."""
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
        hint=report.hint(name, cell.index),
    )
    return None


def _read_groups(robot: Element, names: Names) -> list[Group]:
    """Return the groups, without links, joints and groups that do not exist."""
    declared = [
        (group, element)
        for element in robot.children_named("group")
        if (group := _read_group(element, names)) is not None
    ]
    check_unique(
        "group", ((group.name, element) for group, element in declared), names.report
    )
    places = {group.name: each.place for group, each in reversed(declared)}
    groups = {group.name: group for group, _ in reversed(declared)}
    known = [
        _without_unknown(groups[name], places, names)
        for name in dict.fromkeys(group.name for group, _ in declared)
    ]
    _report_cycle(known, places, names.report)
    names.groups = tuple(places)
    return known


def _read_group(element: Element, names: Names) -> Group | None:
    name = ELEMENTS.read(element, names)["name"]
    joints: list[str] = []
    for child in element.children_named("joint"):
        joint = ELEMENTS.read(child, names)["name"]
        if joint in names.virtual:
            names.virtual[joint].groups.append(name or "")
        elif joint is not None:
            joints.extend(names.joints(child, joint))
    links, groups = (
        [ELEMENTS.read(child, names)["name"] for child in element.children_named(kind)]
        for kind in ("link", "group")
    )
    chains = [
        tuple(ends.values())
        for child in element.children_named("chain")
        if (ends := ELEMENTS.read_whole(child, names)) is not None
    ]
    if name is None:
        return None
    return Group(
        name=name,
        joints=tuple(dict.fromkeys(joints)),
        links=tuple(dict.fromkeys(filter(None, links))),
        chains=tuple(dict.fromkeys(chains)),
        groups=tuple(dict.fromkeys(filter(None, groups))),
    )


def _without_unknown(group: Group, places: dict[str, Place], names: Names) -> Group:
    for name in group.groups:
        if name not in places:
            names.report.warning(
                places[group.name],
                "unknown-group",
                f"group {quote(group.name)} contains the group {quote(name)}, which "
                "does not exist; that is left out",
                hint=names.report.hint(name, list(places)),
            )
    known = tuple(name for name in group.groups if name in places)
    return msgspec.structs.replace(group, groups=known)


def _report_cycle(
    groups: Sequence[Group], places: dict[str, Place], report: Report
) -> None:
    if report.count(Severity.ERROR):
        return
    try:
        TopologicalSorter({group.name: group.groups for group in groups}).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        report.error(
            places[cycle[0]],
            "cycle",
            f"groups contain each other: {' in '.join(map(quote, cycle))}",
        )


def _read_passive(robot: Element, names: Names) -> set[str]:
    """Return the joints without a motor."""
    passive: set[str] = set()
    for element in robot.children_named("passive_joint"):
        name = ELEMENTS.read(element, names)["name"]
        if name is not None and name not in names.virtual:
            for joint in names.joints(element, name):
                if joint in names.moving:
                    passive.add(joint)
                    continue
                names.report.warning(
                    element.place,
                    "not-kept",
                    f"joint {quote(joint)} is fixed; it cannot be passive",
                )
    return passive


def _replaced(
    kind: str,
    old: Sequence[Named],
    new: Sequence[Named],
    robot: Element,
    report: Report,
) -> tuple[Named, ...]:
    """Return old and new values; an old one is replaced by a new one of its name."""
    names = {each.name for each in new}
    for each in old:
        if each.name in names:
            message = f"the {kind} {quote(each.name)} of the robot is replaced"
            report.warning(robot.place, "replaced", message)
    return (*(each for each in old if each.name not in names), *new)


def _mounts(cell: Workcell, names: Names) -> tuple[Mount, ...]:
    """Return the mounts, with the base fixed or free as its virtual joint says."""
    robot, base = names.manipulator.name, names.base
    warning = names.report.warning
    mounts = {mount.manipulator: mount for mount in cell.mounts}
    first: VirtualJoint | None = None
    for joint in names.virtual.values():
        if joint.child_link != base:
            warning(
                joint.place,
                "not-kept",
                f"virtual joint {quote(joint.name)} carries {quote(joint.child_link)}, "
                f"which is not the base {quote(base)}; it has no effect",
            )
            continue
        if first is not None:
            warning(
                joint.place,
                "repeated-base",
                f"virtual joint {quote(first.name)} carries the base {quote(base)} "
                f"already, which counts; {quote(joint.name)} has no effect",
            )
            continue
        first = joint
        if joint.type == "planar":
            message = f"that base {quote(base)} stays in a plane is not kept"
            warning(joint.place, "not-kept", message)
        is_bolted = joint.type == "fixed"
        mount = mounts.get(robot)
        if mount is None and is_bolted:
            mounts[robot] = Mount(manipulator=robot, on=WORLD)
        elif mount is not None and mount.bolted != is_bolted and mount.on == WORLD:
            mounts[robot] = msgspec.structs.replace(mount, bolted=is_bolted)
    return tuple(mounts.values())
