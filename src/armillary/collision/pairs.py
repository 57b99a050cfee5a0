"""Rules applied to the states of a cell, each set of rules once."""

from __future__ import annotations

from typing import Final

from armillary.kinematics.state import State
from armillary.model.collision_pairs import CollisionPairs
from armillary.model.link_pairs import Pairs
from armillary.model.link_tree import carried
from armillary.model.rules import Rules
from armillary.model.workcell import Workcell

__all__ = ["PairsOfStates"]

MOST_KEPT: Final = 8


class PairsOfStates:
    """The juries of a cell, each by the identity of its rules, which it keeps alive."""

    def __init__(self, cell: Workcell) -> None:
        """Start without any."""
        self._cell = cell
        self._known: dict[int, CollisionPairs] = {}

    def __len__(self) -> int:
        return len(self._known)

    def pairs(self, state: State, rules: Rules) -> Pairs:
        """Return the pairs that rules have tested in a state of the cell."""
        jury = self._jury(rules)
        return jury.pairs(carried(state.tree))

    def _jury(self, rules: Rules) -> CollisionPairs:
        known = self._known.get(id(rules))
        if known is not None:
            return known
        for jury in tuple(self._known.values()):
            if jury.rules == rules:
                return jury
        if rules is not self._cell.rules:
            self._cell.check_rules(rules)
        if len(self._known) >= MOST_KEPT:
            self._known.clear()
        return self._known.setdefault(id(rules), CollisionPairs(self._cell, rules))
