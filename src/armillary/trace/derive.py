"""Exact derivatives, forward mode: more scalars on the same tape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from armillary.trace.ops import ADD, MUL, OPS, SELECT, Op
from armillary.trace.place import fault
from armillary.trace.program import reachable
from armillary.trace.scalar import Node


def tangent(results: Sequence[Any], seeds: Iterable[tuple[Node, Any]]) -> list[Any]:
    """Return the derivative of each of `results` along a direction.

    With results y(x) and seeds (x_i, v_i) it is sum_i dy/dx_i v_i; with one seed
    (x, 1) it is dy/dx. At a kink it is the derivative of one side; that of |x| at 0 is
    0. Steps, of `sign`, `floor` and remainders, count for nothing.

    Args:
        results: Scalars, or plain numbers, whose derivative is zero.
        seeds: Nodes and the rate of each; what lies below a seed is held constant.

    Raises:
        TraceError: Results and seeds are not of one trace.
    """
    rates: dict[int, Any] = {}
    tapes: set[int] = set()
    for node, rate in seeds:
        rates[node.index] = rate
        tapes.add(id(node.tape))
    nodes = [node for node in results if isinstance(node, Node)]
    tapes.update(id(node.tape) for node in nodes)
    if len(tapes) > 1:
        raise fault("results and seeds of a derivative are of different traces.")
    for node in reachable(nodes):
        if node.args and node.index not in rates:
            rate = _rate(OPS[node.name], node.args, rates)
            if rate is not None:
                rates[node.index] = rate
    return [
        rates.get(node.index, 0.0) if isinstance(node, Node) else 0.0
        for node in results
    ]


def _rate(op: Op, args: tuple[Node, ...], rates: dict[int, Any]) -> Any:
    """Return the rate of a result by the chain rule, None where it does not move."""
    if not op.partials or all(arg.index not in rates for arg in args):
        return None
    if op.choice is not None:
        truth, x, y = op.choice(*args)
        return SELECT(truth, rates.get(x.index, 0.0), rates.get(y.index, 0.0))
    total: Any = None
    for arg, partial in zip(args, op.partials, strict=True):
        rate = rates.get(arg.index)
        if rate is not None:
            term = MUL(rate, partial(*args))
            total = term if total is None else ADD(total, term)
    return total
