"""Exact derivatives, forward mode: more scalars on the same tape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from armillary.trace.ops import OPS, partial_derivatives, type_real
from armillary.trace.program import reachable
from armillary.trace.scalar import Node


def tangent(
    results: Sequence[Any], seeds: Iterable[tuple[Node, Any]]
) -> list[Any]:
    """Return the derivative of each of `results` along a direction.

    With results y(x) and seeds (x_i, v_i) it is sum_i dy/dx_i v_i; with one seed
    (x, 1) it is dy/dx. The derivative at a kink is that of one side.

    Args:
        results: Scalars, or plain numbers, whose derivative is zero.
        seeds: Nodes and the rate of each; what lies below a seed is held constant.
    """
    rates: dict[int, Any] = {node.index: rate for node, rate in seeds}
    nodes = [node for node in results if isinstance(node, Node)]
    for node in reachable(nodes):
        if node.index in rates or not node.args:
            continue
        rate = _chain(node, rates)
        if rate is not None:
            rates[node.index] = rate
    return [
        rates.get(node.index, 0.0) if isinstance(node, Node) else 0.0
        for node in results
    ]


def _chain(node: Node, rates: dict[int, Any]) -> Any:
    """Return the rate of a node by the chain rule, None where it does not move."""
    op = OPS[node.name]
    if op.result != type_real or all(arg.index not in rates for arg in node.args):
        return None
    if node.name == "select":
        truth, x, y = node.args
        return op(truth, rates.get(x.index, 0.0), rates.get(y.index, 0.0))
    total: Any = None
    partials = partial_derivatives(op, node.args)
    for arg, partial in zip(node.args, partials, strict=True):
        rate = rates.get(arg.index)
        if rate is None or (isinstance(partial, float) and partial == 0.0):
            continue
        term = rate * partial
        total = term if total is None else total + term
    return total
