"""Rules to a proximity setup, in a file beside the workcell.

Rules that are those of a setup are written one by one, with their patterns. Others
become the pairs on which they and RobWork differ: that begins with all pairs but those
that cannot move in each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import Final

from armillary.errors import ModelError
from armillary.formats.diagnostic import Report
from armillary.formats.robwork.draft import NOWHERE, Losses
from armillary.formats.robwork.frames import Frames
from armillary.formats.robwork.notes import PROXIMITY
from armillary.formats.xml import Element, tag, to_text
from armillary.model.collision_pairs import CollisionPairs
from armillary.model.link_pattern import LinkName
from armillary.model.rules import Reason, Rules
from armillary.model.workcell import Workcell

__all__ = ["says_nothing", "setup_text"]

MOST_PAIRS: Final = 100_000
FLAGS: Final = {"UseIncludeAll": "true", "UseExcludeStaticPairs": "true"}
OWN_REASONS: Final = (Reason.ROBWORK, Reason.USER)

_START: Final = Rules.robwork(has_setup=True)
_DEFAULTS: Final = (*Rules().rules, *Rules.robwork().rules)


def says_nothing(rules: Rules) -> bool:
    """Return whether rules are what holds without a word, here or in RobWork."""
    return rules in (Rules(), Rules.robwork())


def setup_text(
    cell: Workcell, frames: Frames, losses: Losses, report: Report
) -> str | None:
    """Return the file that holds the rules of a cell, None where that is too long."""
    rules = cell.rules
    try:
        elements = list(
            _rules(rules, frames) if _is_setup(rules) else _pairs(cell, frames)
        )
    except ModelError:
        losses["which pairs are tested for collision, by more rules than fit"] += 1
        return None
    if not _is_setup(rules):
        report.note(
            NOWHERE,
            "pairs-listed",
            "the rules of collisions become the pairs on which RobWork would differ",
        )
    if rules.touches:
        losses["what may touch a part that is held"] += len(rules.touches)
    own = (rule for rule in rules.rules if rule not in _DEFAULTS)
    lost = sum(rule.reason not in OWN_REASONS for rule in own)
    if lost:
        losses["the reason of a rule of collisions"] += lost
    return to_text(tag(PROXIMITY, FLAGS, *elements))


def _is_setup(rules: Rules) -> bool:
    """Return whether rules begin where a setup begins, and go on as one."""
    first = len(_START.rules)
    return (
        (rules.within, rules.between) == (_START.within, _START.between)
        and rules.rules[:first] == _START.rules
        and all(rule.where == "any" for rule in rules.rules[first:])
    )


def _rules(rules: Rules, frames: Frames) -> Iterator[Element]:
    """Yield each rule, as one element or as one for each pair that it names."""
    count = 0
    for rule in rules.rules[len(_START.rules) :]:
        sides = frames.patterns(rule.a), frames.patterns(rule.b)
        count += len(sides[0]) * len(sides[1])
        _check(count)
        for a, b in product(*sides):
            yield _element(a, b, tested=rule.tested)


def _pairs(cell: Workcell, frames: Frames) -> Iterator[Element]:
    """Yield the pairs of links with shapes on which the rules and RobWork differ."""
    jury = CollisionPairs(cell, cell.rules)
    pairs = jury.pairs(())
    tested = set(pairs)
    links: list[LinkName] = []
    groups: list[int] = []
    for name in pairs.links:
        at = cell.frame(name)
        number = jury.kinship.number(at.manipulator, at.link)
        links.append(jury.kinship.name(number))
        groups.append(int(jury.kinship.groups[number]))
    names = [frames.name(link) for link in links]
    count = 0
    for i, j in combinations(range(len(links)), 2):
        is_tested = (pairs.links[i], pairs.links[j]) in tested
        if is_tested != (groups[i] != groups[j]):
            count += 1
            _check(count)
            yield _element(names[i], names[j], tested=is_tested)


def _check(count: int) -> None:
    if count > MOST_PAIRS:
        raise ModelError(f"There are more than {MOST_PAIRS} pairs to write.")


def _element(a: str, b: str, *, tested: bool) -> Element:
    return tag("Include" if tested else "Exclude", {"PatternA": a, "PatternB": b})
