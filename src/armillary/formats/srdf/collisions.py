"""The pairs of links that an SRDF disables and enables: read as rules, and written."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import NOWHERE, Place, Report
from armillary.formats.srdf.elements import ELEMENTS
from armillary.formats.srdf.names import Names
from armillary.formats.xml import Element
from armillary.model.collision_pairs import CollisionPairs
from armillary.model.link_pairs import PairDecision
from armillary.model.link_pattern import is_exact, link_of, links_of
from armillary.model.rules import Rule, RuleReason
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell

__all__ = ["read_rules", "untested_pairs"]

MOST_PAIRS: Final = 100_000
REASONS: Final = {
    "Adjacent": RuleReason.ADJACENT,
    "Never": RuleReason.NEVER,
    "Always": RuleReason.ALWAYS,
    "Default": RuleReason.DEFAULT,
    "User": RuleReason.USER,
    "Rigid": RuleReason.RIGID,
}
"""Reasons as MoveIt's assistant writes them; others are kept as they are."""

PAIRS: Final = ("enable_collisions", "disable_collisions")
WORDS: Final = {reason: word for word, reason in REASONS.items()}


def read_rules(robot: Element, names: Names) -> list[Rule]:
    """Return the rules in the order in which MoveIt applies them, none without any.

    All pairs of the robot's links are tested, except those of links that are disabled
    as a whole, except those that are enabled, except those that are disabled.
    """
    name = names.manipulator.name
    defaults = robot.children_named("disable_default_collisions")
    pairs = {kind: robot.children_named(kind) for kind in PAIRS}
    if not defaults and not any(pairs.values()):
        return []
    links = links_of(name)
    rules = [
        Rule(a=links, b=links, tested=True, reason=RuleReason.SRDF),
        Rule(a=links, b=links, where="rigid", reason=RuleReason.RIGID),
    ]
    for element in defaults:
        link = ELEMENTS.read(element, names)["link"]
        if link is not None:
            side = link_of(f"{name}/{link}")
            rules.append(Rule(a=side, b="*", reason=RuleReason.DEFAULT))
    for kind, elements in pairs.items():
        rules += _read_pairs(elements, names, tested=kind == "enable_collisions")
    return rules


def _read_pairs(
    elements: tuple[Element, ...], names: Names, *, tested: bool
) -> list[Rule]:
    name, warning = names.manipulator.name, names.report.warning
    # A pair counts once, whichever of its links comes first.
    rules: dict[frozenset[str], tuple[Rule, Place]] = {}
    for element in elements:
        fields = ELEMENTS.read_whole(element, names)
        if fields is None:
            continue
        a, b, word = fields.values()
        if a == b:
            message = f"<{element.name}> names {quote(a)} twice; it has no effect"
            warning(element.place, "one-link", message)
            continue
        reason = REASONS.get(word, word) or RuleReason.SRDF
        sides = [link_of(f"{name}/{link}") for link in (a, b)]
        rule = Rule(a=sides[0], b=sides[1], tested=tested, reason=reason)
        first, place = rules.setdefault(frozenset((a, b)), (rule, element.place))
        if first.reason != rule.reason:
            warning(
                element.place,
                "repeated-pair",
                f"<{element.name}> names {quote(a)} and {quote(b)} again, for another "
                f"reason than at line {place.line}, which counts",
            )
    return [rule for rule, _ in rules.values()]


def untested_pairs(cell: Workcell, report: Report) -> Iterator[Element]:
    """Yield each pair of links with shapes that is not tested."""
    pairs = CollisionPairs(cell, cell.rules).pairs(Tree.of(cell))
    links = pairs.links
    untested = len(links) * (len(links) - 1) // 2 - len(pairs)
    if untested > MOST_PAIRS:
        report.error(
            NOWHERE,
            "too-many-pairs",
            f"{untested} pairs of links are not tested, more than {MOST_PAIRS}; an "
            "SRDF lists each",
        )
        return
    _report_rules(cell, report)
    is_single = len(cell.manipulators) == 1
    prefix = f"{cell.manipulators[0].name}/" if is_single else ""
    tested = set(pairs)
    for a, b in combinations(links, 2):
        if (a, b) not in tested:
            yield ELEMENTS.write(
                "disable_collisions",
                link1=a.removeprefix(prefix),
                link2=b.removeprefix(prefix),
                reason=_reason(pairs.why(a, b)),
            )


def _reason(decision: PairDecision) -> str:
    if decision.rule is not None:
        return WORDS.get(decision.reason, decision.reason)
    return WORDS[RuleReason.ADJACENT if decision.is_carried else RuleReason.USER]


def _report_rules(cell: Workcell, report: Report) -> None:
    """Report which rules are lost, and which are written as pairs."""
    if cell.rules.touches:
        report.warning(
            NOWHERE, "not-kept", "what may touch an attached part is not kept"
        )
    if not all(is_exact(side) for side in cell.rules.sides):
        report.note(
            NOWHERE,
            "pairs-listed",
            "the patterns of the rules become the pairs that are not tested",
        )
