"""Which paths no number takes: `q < 0` and `q >= 0` are both false for NaN alone."""

from __future__ import annotations

import math
from collections.abc import Iterable

from armillary.trace import interval as on
from armillary.trace.interval import Interval
from armillary.trace.ops import OPS
from armillary.trace.scalar import Node, reachable

Decision = tuple[Node, bool]

# What two numbers can be to each other, the first below, beside or above the second.
RELATIONS = {"lt": {-1}, "le": {-1, 0}, "eq": {0}}
EVERY = {-1, 0, 1}
NARROWINGS = 4  # of narrowing: a bound goes from one comparison to the next in each


def is_contradiction(decisions: Iterable[Decision]) -> bool:
    """Tell whether no numbers give these answers to comparisons.

    Args:
        decisions: Truth values and the answer to each.
    """
    single = _without_logic(decisions)
    return _has_no_order(single) or _Ranges(single).is_empty()


def _without_logic(decisions: Iterable[Decision]) -> list[Decision]:
    """Return the answers with those to `not`, `a and b`, `a or b` taken apart."""
    single: list[Decision] = []
    waiting = list(decisions)
    while waiting:
        truth, answer = waiting.pop()
        if truth.name == "not":
            waiting.append((truth.args[0], not answer))
        # Both parts of an `and` hold, both of an `or` do not; the other two answers
        # leave the parts open.
        elif truth.name == ("and" if answer else "or"):
            waiting += [(arg, answer) for arg in truth.args]
        else:
            single.append((truth, answer))
    return single


def _allowed(truth: Node, answer: bool) -> set[int]:
    """Return what the arguments of a comparison can be to each other."""
    relations = RELATIONS[truth.name]
    return relations if answer else EVERY - relations


def _has_no_order(decisions: Iterable[Decision]) -> bool:
    """Tell whether two scalars can be neither less, equal nor greater."""
    possible: dict[tuple[int, int], set[int]] = {}
    for truth, answer in decisions:
        if truth.name in RELATIONS:
            x, y = truth.args
            allowed = _allowed(truth, answer)
            # One entry for each pair: the relation of y to x is that of x to y,
            # reversed.
            if x.index > y.index:
                x, y, allowed = y, x, {-relation for relation in allowed}
            # A number is equal to itself.
            at_first = {0} if x is y else EVERY
            key = (x.index, y.index)
            possible[key] = possible.get(key, at_first) & allowed
    return not all(possible.values())


class _Ranges:
    """The numbers that scalars can be, by the answers to comparisons of them."""

    def __init__(self, decisions: list[Decision]) -> None:
        self._decisions = decisions
        self._nodes = reachable([truth for truth, _ in decisions])
        self._answers = {truth.index: answer for truth, answer in decisions}
        self._known: dict[int, Interval] = {}

    def is_empty(self) -> bool:
        """Tell whether a scalar can be no number."""
        for _ in range(NARROWINGS):
            # Up and down the formula until nothing changes: bounds of arguments give
            # bounds of results, answers give bounds of what is compared, and those go
            # back through changes of sign.
            before = dict(self._known)
            if not (self._computed() and self._compared() and self._inverted()):
                return True
            if self._known == before:
                return False
        return False

    def _narrow(self, node: Node, low: float, high: float) -> bool:
        """Keep the numbers within bounds, and tell whether there are any."""
        old = self._known.get(node.index)
        if old is None:  # a new object for each scalar, see interval.mul
            old = self._known[node.index] = Interval(-math.inf, math.inf)
        if low > old.low or high < old.high:
            old = Interval(max(low, old.low), min(high, old.high))
            self._known[node.index] = old
        return old.low <= old.high

    def _computed(self) -> bool:
        """Narrow every scalar to what its operation gives."""
        for node in self._nodes:
            if node.name == "const":
                enclosure = on.exactly(node.value)
            elif node.name == "input":
                enclosure = on.EVERYTHING
            else:
                args = (self._known[arg.index] for arg in node.args)
                enclosure = OPS[node.name].on_intervals(*args)
            answer = self._answers.get(node.index)
            if not self._narrow(node, enclosure.low, enclosure.high):
                return False
            if answer is not None and not self._narrow(node, answer, answer):
                return False
        return True

    def _compared(self) -> bool:
        """Narrow what is compared to what the answers leave."""
        for truth, answer in self._decisions:
            if truth.name in RELATIONS:
                x, y = truth.args
                allowed = _allowed(truth, answer)
                if not self._bounded(x, y, allowed):
                    return False
        return True

    def _bounded(self, x: Node, y: Node, allowed: set[int]) -> bool:
        """Narrow two scalars by each other."""
        if 1 not in allowed and not self._below(x, y, is_strict=0 not in allowed):
            return False
        return -1 in allowed or self._below(y, x, is_strict=0 not in allowed)

    def _below(self, x: Node, y: Node, *, is_strict: bool) -> bool:
        high, low = self._known[y.index].high, self._known[x.index].low
        # x < y between floats: x is at most the float before y.
        if is_strict:
            if high == -math.inf or low == math.inf:
                return False
            high, low = math.nextafter(high, -math.inf), math.nextafter(low, math.inf)
        return self._narrow(x, -math.inf, high) and self._narrow(y, low, math.inf)

    def _inverted(self) -> bool:
        """Narrow the argument of a sign change or an absolute value by its result."""
        for node in reversed(self._nodes):
            if node.name in {"neg", "abs"} and node.index in self._known:
                result = self._known[node.index]
                low = -result.high
                high = -result.low if node.name == "neg" else result.high
                if not self._narrow(node.args[0], low, high):
                    return False
        return True
