"""Messages about links that are not tested although no rule excludes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from armillary.collision.pairs import applied_rules
from armillary.errors import quote
from armillary.model.fields import kept
from armillary.model.link_pairs import Pairs
from armillary.model.link_pattern import links_of
from armillary.model.rules import Rules
from armillary.model.shapes.mesh import MeshSource
from armillary.model.user_warning import warn_user
from armillary.model.workcell import Workcell

__all__ = [
    "home_parts",
    "home_text",
    "nothing_text",
    "untested_parts",
    "untested_text",
    "warn_of_untested",
]

MOST_NAMED: Final = 5


def untested_parts(manipulators: Sequence[str]) -> tuple[str, str]:
    """Say that manipulators are not tested against themselves, and how to decide it.

    manipulators: At least one.
    """
    first, it = manipulators[0], "it"
    text = (
        f"No pair of links of {quote(first)} is tested for collision with each other, "
        "and no rule says so."
    )
    if len(manipulators) > 1:
        named = ", ".join(map(quote, manipulators[:MOST_NAMED]))
        more = len(manipulators) - MOST_NAMED
        text = (
            "The links of each of these manipulators are not tested for collision with "
            f"each other, and no rule says so: {named}"
            + (f" and {more} more." if more > 0 else ".")
        )
        it = f"{quote(first)}, for example,"
    links = links_of(first)
    return text, (
        f"Test {it} against itself by cell.replace(rules="
        f"cell.rules.include_self({first!r})), or say that this is meant by "
        f"cell.rules.exclude({links!r}, {links!r})."
    )


def untested_text(manipulator: str) -> str:
    """Return that a manipulator is not tested against itself, and what to do."""
    return " ".join(untested_parts([manipulator]))


def nothing_text(pairs: Pairs) -> str:
    """Say that no pair is tested, and why."""
    count = len(pairs.links)
    why = "the rules leave out all pairs"
    if count < 2:  # too few for a pair
        why = f"{('no link', 'only one link')[count]} has collision shapes"
    return f"No pair of links is tested for collision: {why}."


def home_parts(
    pairs: Sequence[tuple[str, str]], *, most: int = MOST_NAMED
) -> tuple[str, str]:
    """Say which pairs are not tested because they touch at home, and the fix.

    most: How many are named.
    """
    some = ", ".join(f"{quote(a)} and {quote(b)}" for a, b in pairs[:most])
    more = f" and {len(pairs) - most} more" if len(pairs) > most else ""
    a, b = pairs[0]
    return (
        f"Links that touch at home are not tested against each other: {some}{more}.",
        f"To test such a pair, add it by cell.rules.include({a!r}, {b!r}); if none "
        "needs a test, keep that by cell.replace(rules=cell.learn_rules()).",
    )


def home_text(pairs: Iterable[tuple[str, str]]) -> str:
    """Return which pairs are not tested because they touch at home, and the fix."""
    return " ".join(home_parts(tuple(pairs)))


def warn_of_untested(
    cell: Workcell, rules: Rules | None, meshes: MeshSource | None, tested: Pairs
) -> None:
    """Warn, once for a cell, of pairs that are not tested although no rule says so."""
    decided = applied_rules(cell, rules, meshes)
    # The cell remembers what was said: a second check of it says nothing again.
    warned = kept(cell, "untested links", set[str])
    names = [
        name for name in decided.untested_manipulators(tested) if name not in warned
    ]
    if names:
        warned.update(names)
        warn_user(" ".join(untested_parts(names)))
    if decided.home_pairs:
        text = home_text(decided.home_pairs)
        if text not in warned:
            warned.add(text)
            warn_user(text)
