"""Which paths no number takes: `q < 0` and `q >= 0` are both false for NaN alone."""

from __future__ import annotations

import math
from collections.abc import Iterable

from armillary.trace.scalar import Node

# What two numbers can be to each other, the first below, beside or above the second.
RELATIONS = {"lt": {-1}, "le": {-1, 0}, "eq": {0}}


def is_contradiction(decisions: Iterable[tuple[Node, bool]]) -> bool:
    """Tell whether no numbers give these answers to comparisons.

    Args:
        decisions: Truth values and the answer to each.
    """
    possible: dict[tuple[int, int], set[int]] = {}
    bounds: dict[int, _Bounds] = {}
    for truth, answer in decisions:
        if truth.name not in RELATIONS:
            continue
        x, y = truth.args
        allowed = (
            RELATIONS[truth.name] if answer else {-1, 0, 1} - RELATIONS[truth.name]
        )
        if x.index > y.index:
            x, y, allowed = y, x, {-relation for relation in allowed}
        at_first = {0} if x is y else {-1, 0, 1}
        pair = possible.setdefault((x.index, y.index), at_first)
        pair &= allowed
        if x.name == "const":
            x, y, allowed = y, x, {-relation for relation in allowed}
        if y.name == "const":
            bounds.setdefault(x.index, _Bounds()).narrow(allowed, y.value)
    return not all(possible.values()) or any(b.is_empty for b in bounds.values())


class _Bounds:
    """The numbers that a scalar can be, by its comparisons with constants."""

    def __init__(self) -> None:
        self.low, self.has_low = -math.inf, True
        self.high, self.has_high = math.inf, True

    def narrow(self, allowed: set[int], number: float) -> None:
        """Keep what is in one of the relations `allowed` to a number."""
        if 1 not in allowed and number <= self.high:
            self.has_high = 0 in allowed and (self.has_high or number < self.high)
            self.high = number
        if -1 not in allowed and number >= self.low:
            self.has_low = 0 in allowed and (self.has_low or number > self.low)
            self.low = number

    @property
    def is_empty(self) -> bool:
        """Whether no number is left."""
        ends = self.has_low and self.has_high
        return self.low > self.high or (self.low == self.high and not ends)
