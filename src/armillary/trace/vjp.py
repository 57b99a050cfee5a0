"""Exact derivatives, reverse mode: the transpose of `jvp`, on the same tape."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from armillary.trace.jvp import SINGULAR, Rate, both, either, may_choose_nan, motion
from armillary.trace.ops import ABS, ADD, EQ, LT, MUL, NOT, OPS, OR, SELECT, Op
from armillary.trace.scalar import Node, reachable
from armillary.trace.source_location import fault

Rates = dict[int, Rate]


def vjp(
    results: Sequence[Any], cotangents: Sequence[Any], inputs: Sequence[Node]
) -> list[Any]:
    """Return the derivative of a weighted sum of `results` by each of `inputs`.

    With results y(x) and cotangents w it is sum_i w_i dy_i/dx_j for each j, all of
    them for a few times the operations of y. At kinks, steps, and where a choice picks
    what does not move, it is what `jvp` gives of all inputs together.

    Args:
        results: Scalars, or plain numbers, which do not depend on anything.
        cotangents: The weight of each result.
        inputs: Nodes; what lies below one of them stays constant.

    Raises:
        TraceError: Results and inputs are not of one trace.
    """
    pairs = [
        (node, weight)
        for node, weight in zip(results, cotangents, strict=True)
        if isinstance(node, Node)
    ]
    if len({id(node.tape) for node in (*inputs, *(node for node, _ in pairs))}) > 1:
        raise fault("results and inputs of a derivative are of different traces.")
    order = reachable(node for node, _ in pairs)
    rates = _motions(order, inputs)
    sums = _Sums(rates)
    for node, weight in pairs:
        sums.add(node, weight, True)
    ends = {node.index for node in inputs}
    # Results first: a cotangent is complete when all that uses the node is behind.
    for node in reversed(order):
        if node.index in sums.cotangents and node.index not in ends:
            counts = sums.counts[node.index]
            terms = _terms(node, sums.cotangents[node.index], counts, rates)
            for arg, term, where in terms:
                sums.add(arg, term, where)
    return [sums.cotangents.get(node.index, 0.0) for node in inputs]


def _motions(order: Sequence[Node], inputs: Sequence[Node]) -> Rates:
    """Return where each node moves that depends on an input; rates are not known."""
    rates = {node.index: Rate(0.0) for node in inputs}
    for node in order:
        is_open = node.index not in rates and any(
            arg.index in rates for arg in node.args
        )
        if is_open and OPS[node.name].partials:
            rates[node.index] = Rate(0.0, *motion(node, rates))
    return rates


class _Sums:
    """The cotangents of nodes, as far as they are known.

    Attributes:
        cotangents: By the node's place, the sum of the terms of what uses it.
        counts: By the same, where it counts for a result, a truth. Elsewhere it is 0,
            or NaN where the result is; partial derivatives there may be infinite.
    """

    def __init__(self, rates: Rates) -> None:
        self.rates = rates
        self.cotangents: dict[int, Any] = {}
        self.counts: dict[int, Any] = {}

    def add(self, node: Node, term: Any, counts: Any) -> None:
        """Add a term to a node's cotangent, if the node depends on an input."""
        k = node.index
        if k not in self.rates or _is_zero(term):
            return
        known = self.cotangents.get(k)
        self.cotangents[k] = term if known is None else ADD(known, term)
        self.counts[k] = either(self.counts.get(k, False), counts)


def _is_zero(term: Any) -> bool:
    if isinstance(term, Node):
        return term.name == "const" and term.value == 0.0
    return term == 0.0


def _terms(
    node: Node, cotangent: Any, counts: Any, rates: Rates
) -> Iterator[tuple[Node, Any, Any]]:
    """Yield what a node adds to the cotangent of each argument, and where it counts."""
    op, args = OPS[node.name], node.args
    if op.choice is not None:
        yield from _terms_of_choice(node, op, cotangent, counts)
        return
    for arg, partial_of in zip(args, op.partials, strict=True):
        rate = rates.get(arg.index)
        if rate is None:
            continue
        partial = partial_of(*args)
        term, where = MUL(cotangent, partial), counts
        # 0 times infinity is 0 where nobody counts the result, or nothing moves.
        if counts is not True and not _is_constant(partial):
            term = SELECT(counts, term, cotangent)
        if rate.moves is not True and op.name in SINGULAR:
            term = SELECT(rate.moves, term, 0.0)
        if rate.is_steep and op.name == "div" and arg is not args[0]:
            # A divisor that has overflowed: the rate of it is infinite.
            is_finite = LT(ABS(arg), math.inf)
            term, where = SELECT(is_finite, term, partial), both(counts, is_finite)
        yield arg, term, where


def _is_constant(partial: Any) -> bool:
    return not isinstance(partial, Node) or partial.name == "const"


def _terms_of_choice(
    node: Node, op: Op, cotangent: Any, counts: Any
) -> Iterator[tuple[Node, Any, Any]]:
    assert op.choice is not None
    truth, x, y = op.choice(*node.args)
    terms = SELECT(truth, cotangent, 0.0), SELECT(truth, 0.0, cotangent)
    if may_choose_nan(node):
        is_number: Any = EQ(node, node)
        if counts is not True:
            is_number = OR(is_number, NOT(counts))
        terms = tuple(SELECT(is_number, term, math.nan) for term in terms)
    yield x, terms[0], both(counts, truth)
    yield y, terms[1], both(counts, NOT(truth))
