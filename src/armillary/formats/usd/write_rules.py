"""Which pairs of links a stage has to filter."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from armillary.collision.pairs import pairs
from armillary.formats.diagnostic import Report
from armillary.kinematics.state import home
from armillary.model.rules import Rules
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import DEFAULT_RULES, Workcell

__all__ = ["StageRules", "stage_rules"]


class StageRules(NamedTuple):
    """What a stage has to say of pairs of links, which have their full names.

    Attributes:
        filtered: For links the others with which they are not tested.
        alone: The manipulators that are not tested against themselves at all.
        joined: Pairs that are tested although they are next to each other.
    """

    filtered: dict[str, list[str]]
    alone: list[str]
    joined: list[tuple[str, str]]


def stage_rules(
    cell: Workcell, meshes: MeshSource | None, report: Report
) -> StageRules:
    """Return where a cell differs from what is tested unless a stage says otherwise."""
    several = [
        each.name
        for each in cell.manipulators
        if sum(bool(link.collision_shapes) for link in each.links) > 1
    ]
    if cell.rules == DEFAULT_RULES.include_self(*several):
        return StageRules({}, [], [])
    if not several and cell.rules == DEFAULT_RULES:
        return StageRules({}, [], [])
    state = home(cell)
    wanted = set(pairs(cell, state, rules=cell.rules, meshes=meshes))
    # What touches at home is left out by readers, if it is not by these rules.
    usual = _without_home(DEFAULT_RULES.include_self(*several))
    tested = set(pairs(cell, state, rules=usual, meshes=meshes))
    alone = [
        name
        for name in several
        if not any(_is_within(name, pair) for pair in wanted)
        and any(_is_within(name, pair) for pair in tested)
    ]
    left: dict[str, list[str]] = {}
    needs_home = _without_home(cell.rules) != cell.rules
    kept = wanted
    if needs_home:
        plain = _without_home(cell.rules)
        kept = set(pairs(cell, state, rules=plain, meshes=meshes))
    for pair in sorted(tested - kept):
        if not any(_is_within(name, pair) for name in alone):
            left.setdefault(pair[0], []).append(pair[1])
    if cell.rules.touches:
        report.unsupported.add("what may touch an attached part")
    return StageRules(left, alone, sorted(wanted - tested))


def _without_home(rules: Rules) -> Rules:
    """Return rules without those on what touches at home."""
    others = tuple(rule for rule in rules.rules if rule.where != "home")
    return msgspec.structs.replace(rules, rules=others)


def _is_within(manipulator: str, pair: tuple[str, str]) -> bool:
    return all(name.partition("/")[0] == manipulator for name in pair)
