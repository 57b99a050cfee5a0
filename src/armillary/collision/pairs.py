"""The pairs of links to test in the states of a cell."""

from __future__ import annotations

from typing import Any, Final

from armillary.errors import ModelError
from armillary.kinematics.bound_state import bound_state
from armillary.kinematics.state import State
from armillary.model.collision_pairs import CollisionPairs
from armillary.model.fields import kept
from armillary.model.link_pairs import Pairs
from armillary.model.rules import Rules
from armillary.model.workcell import Workcell

__all__ = ["pairs"]

MOST_KEPT: Final = 8


def pairs(cell: Workcell, state: State, *, rules: Rules | None = None) -> Pairs:
    """Return the pairs of links that are tested for collision in a state.

    They depend on the attachments, not on where things are. `rules` replace
    those of the cell; `.why(a, b)` of the result tells the reason for one pair.

    Raises:
        StateError: The state is not one of this cell.
        UnknownName: The rules name a link that does not exist.
        ModelError: There are too many pairs, or `rules` is not a `Rules`.
    """
    bound = bound_state(cell, state)
    given: Any = rules
    if not isinstance(given, Rules | None):
        raise ModelError(f"rules= takes arm.Rules, such as cell.rules, not {given!r}.")
    applied = _applied(cell, cell.rules if rules is None else rules)
    return applied.pairs(bound.tree)


def _applied(cell: Workcell, rules: Rules) -> CollisionPairs:
    """Return rules applied to a cell, which keeps the last few."""
    known = kept(cell, "pairs of rules", dict[int, CollisionPairs])
    found = known.get(id(rules))  # keeps these rules alive, so that no others are at id
    if found is not None:
        return found
    for each in tuple(known.values()):
        if each.rules == rules:
            return each
    if rules is not cell.rules:
        cell.check_rules(rules)
    if len(known) >= MOST_KEPT:
        known.clear()
    return known.setdefault(id(rules), CollisionPairs(cell, rules))
