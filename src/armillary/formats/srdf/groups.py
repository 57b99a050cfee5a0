"""`<group>`: the links, joints, chains and other groups in it."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

import msgspec

from armillary.errors import quote
from armillary.formats.diagnostic import Place, Report, Severity
from armillary.formats.names import check_unique
from armillary.formats.srdf.names import Names
from armillary.formats.xml import Element
from armillary.model.group import Group

__all__ = ["read_groups"]


def read_groups(robot: Element, names: Names) -> list[Group]:
    """Return the groups, without links, joints and groups that do not exist."""
    given = [
        (group, element.place)
        for element in robot.children_named("group")
        if (group := _read_group(element, names)) is not None
    ]
    check_unique("group", ((group.name, at) for group, at in given), names.report)
    places = {group.name: place for group, place in reversed(given)}
    groups = {group.name: group for group, _ in reversed(given)}
    found = [
        _without_unknown(groups[name], places, names)
        for name in dict.fromkeys(group.name for group, _ in given)
    ]
    _report_cycle(found, places, names.report)
    names.groups = tuple(places)
    return found


def _read_group(element: Element, names: Names) -> Group | None:
    name = names.required(element, "name")
    joints: list[str] = []
    for child in element.children_named("joint"):
        given = names.required(child, "name")
        if given is not None and given in names.virtual:
            names.virtual[given].groups.append(name or "")
        elif given is not None:
            joints.extend(names.joints(child, given))
    links = [names.link(child, "name") for child in element.children_named("link")]
    chains = [
        names.read(child, links=("base_link", "tip_link"))
        for child in element.children_named("chain")
    ]
    groups = [
        names.required(child, "name") for child in element.children_named("group")
    ]
    if name is None:
        return None
    return Group(
        name=name,
        joints=tuple(dict.fromkeys(joints)),
        links=tuple(dict.fromkeys(filter(None, links))),
        chains=tuple(dict.fromkeys((ends[0], ends[1]) for ends in chains if ends)),
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
