"""The rules of a cell to SRDF: each pair of links that is not tested, and why."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Final

from armillary.formats.diagnostic import Place, Report
from armillary.formats.srdf.collisions import REASONS
from armillary.formats.xml import Element, tag
from armillary.model.collision_pairs import CollisionPairs
from armillary.model.link_pairs import PairDecision
from armillary.model.link_pattern import is_exact
from armillary.model.link_tree import Carried
from armillary.model.rules import Reason
from armillary.model.workcell import Workcell

__all__ = ["untested_pairs"]

MOST_PAIRS: Final = 100_000
NOWHERE: Final = Place()
WORDS: Final = {reason: word for word, reason in REASONS.items()}


def untested_pairs(cell: Workcell, report: Report) -> Iterator[Element]:
    """Yield each pair of links with shapes that is not tested."""
    jury = CollisionPairs(cell, cell.rules)
    pairs = jury.pairs(_standing(cell, jury))
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
    _tell_rules(cell, report)
    is_single = len(cell.manipulators) == 1
    prefix = f"{cell.manipulators[0].name}/" if is_single else ""
    tested = set(pairs)
    for a, b in combinations(links, 2):
        if (a, b) not in tested:
            yield tag(
                "disable_collisions",
                {
                    "link1": a.removeprefix(prefix),
                    "link2": b.removeprefix(prefix),
                    "reason": _reason(pairs.why(a, b)),
                },
            )


def _standing(cell: Workcell, jury: CollisionPairs) -> tuple[Carried, ...]:
    """Return what stands on a link without being bolted, which URDF fixes there."""
    bolted = {each.manipulator for each in jury.kinship.bolted}
    return tuple(
        Carried(k, jury.kinship.number(at.manipulator, at.link), "standing on")
        for k, at in enumerate(cell.supports)
        if at.manipulator >= 0 and k not in bolted
    )


def _reason(verdict: PairDecision) -> str:
    if verdict.rule is not None:
        return WORDS.get(verdict.reason, verdict.reason)
    return WORDS[Reason.ADJACENT if verdict.is_carried else Reason.USER]


def _tell_rules(cell: Workcell, report: Report) -> None:
    """Report what of the rules is lost, or told in another way."""
    if cell.rules.touches:
        report.warning(
            NOWHERE, "not-kept", "what may touch a part that is held is not kept"
        )
    if not all(is_exact(side) for side in cell.rules.sides):
        report.note(
            NOWHERE,
            "pairs-listed",
            "the patterns of the rules become the pairs that are not tested",
        )
