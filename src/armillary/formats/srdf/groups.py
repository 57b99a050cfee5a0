"""Group elements, and what keeps them from holding each other."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

import msgspec

from armillary.errors import quote
from armillary.formats.diagnostic import Place, Report, Severity
from armillary.formats.srdf.names import Names
from armillary.formats.xml import Element, report_unused
from armillary.model.group import Group

__all__ = ["read_groups"]


def read_groups(
    robot: Element, names: Names, in_groups: dict[str, list[str]]
) -> list[Group]:
    """Return the groups, without what they name in vain.

    in_groups: Receives the groups that each virtual joint is in.
    """
    report = names.report
    groups: dict[str, Group] = {}
    places: dict[str, Place] = {}
    for element in robot.children_named("group"):
        group = _read_group(element, names, in_groups)
        report_unused(element, report)
        if group is None:
            continue
        if group.name in groups:
            report.error(
                element.place,
                "repeated-name",
                f"a group is called {quote(group.name)} already, at line "
                f"{places[group.name].line}",
                hint="Rename one.",
            )
        groups.setdefault(group.name, group)
        places.setdefault(group.name, element.place)
    found = [
        _without_unknown(group, groups, places, names) for group in groups.values()
    ]
    _tell_circles(found, places, report)
    return found


def _read_group(
    element: Element, names: Names, in_groups: dict[str, list[str]]
) -> Group | None:
    name = names.of(element, "name")
    joints: list[str] = []
    for child in element.children_named("joint"):
        given = names.of(child, "name")
        if given is not None and given in names.virtual:
            in_groups.setdefault(given, []).append(name or "")
        elif given is not None:
            joints.extend(names.joints(child, given))
        report_unused(child, names.report)
    links: list[str] = []
    for child in element.children_named("link"):
        link = names.link(child, "name")
        links.extend([] if link is None else [link])
        report_unused(child, names.report)
    chains: list[tuple[str, str]] = []
    for child in element.children_named("chain"):
        ends = names.link(child, "base_link"), names.link(child, "tip_link")
        if ends[0] is not None and ends[1] is not None:
            chains.append((ends[0], ends[1]))
        report_unused(child, names.report)
    groups: list[str] = []
    for child in element.children_named("group"):
        group = names.of(child, "name")
        groups.extend([] if group is None else [group])
        report_unused(child, names.report)
    if name is None:
        return None
    return Group(
        name=name,
        joints=tuple(dict.fromkeys(joints)),
        links=tuple(dict.fromkeys(links)),
        chains=tuple(dict.fromkeys(chains)),
        groups=tuple(dict.fromkeys(groups)),
    )


def _without_unknown(
    group: Group, groups: dict[str, Group], places: dict[str, Place], names: Names
) -> Group:
    known = tuple(name for name in group.groups if name in groups)
    for name in group.groups:
        if name not in groups:
            names.report.warning(
                places[group.name],
                "unknown-group",
                f"group {quote(group.name)} holds the group {quote(name)}, which does "
                "not exist; that is left out",
                hint=names.hint(name, list(groups)),
            )
    return msgspec.structs.replace(group, groups=known)


def _tell_circles(
    groups: Sequence[Group], places: dict[str, Place], report: Report
) -> None:
    if report.count(Severity.ERROR):
        return
    try:
        TopologicalSorter({group.name: group.groups for group in groups}).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        report.error(
            places[circle[0]],
            "cycle",
            f"groups hold each other in a circle: {' in '.join(map(quote, circle))}",
        )
