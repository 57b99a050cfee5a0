"""The least rates that meet rows of equations, which may depend on each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from armillary.spatial.ldl import LDLFactor, Rows, gram, inner, shifted
from armillary.spatial.vector import Number

__all__ = ["LeastMotion", "least_motion"]


class LeastMotion(NamedTuple):
    """Rates that meet equations, and what they rest on.

    Attributes:
        rates: The rates x.
        multipliers: y, with W (x - r) = C' y for the rates that are free.
        right: c - C r, what the equations ask for beyond r.
        rest: The part of it that no rates meet; then C' rest is 0.
    """

    rates: list[Number]
    multipliers: list[Number]
    right: list[Number]
    rest: list[Number]


def least_motion(
    rows: Rows,
    wanted: Sequence[Number],
    *,
    counts: Sequence[Number],
    free: Sequence[Number],
    weights: Sequence[Number],
    pull: Sequence[Number],
    small: Number,
    refinements: int,
) -> LeastMotion:
    """Return the free rates x with C x = c that make (x - r)' W (x - r) least.

    What first rates miss is added to the rates, not only to y, which has lost more
    digits (corrected seminormal equations: Bjorck, Numerical Methods for Least Squares
    Problems, 1996, section 6.6.5).

    Args:
        rows: C; zeros in rows that do not count.
        wanted: c, 0 in rows that do not count.
        counts: 1 for rows that count, else 0.
        free: 1 for rates that may move; others are 0.
        weights: The diagonal of W.
        pull: The rates r.
        small: What is added to the diagonal of C W^-1 C' to keep it positive.
        refinements: How often rates are corrected; each takes them nearer by the ratio
            of `small` and the least eigenvalue of that matrix.
    """
    columns = list(map(list, zip(*rows, strict=True)))
    shares = [f / w for f, w in zip(free, weights, strict=True)]
    G = gram(rows, shares)
    for k, count in enumerate(counts):
        G[k][k] = G[k][k] + (1.0 - count)
    factor = LDLFactor.of(shifted(G, small), small)

    def added(rates: Sequence[Number], y: Sequence[Number]) -> list[Number]:
        return [
            rate + share * inner(column, y)
            for rate, share, column in zip(rates, shares, columns, strict=True)
        ]

    def missed(rates: Sequence[Number]) -> list[Number]:
        return [c - inner(row, rates) for c, row in zip(wanted, rows, strict=True)]

    rates = [f * r for f, r in zip(free, pull, strict=True)]
    right = missed(rates)
    y = more = factor.solve(right)
    rates = added(rates, y)
    for _ in range(refinements):
        more = factor.solve(missed(rates))
        rates = added(rates, more)
        y = [a + b for a, b in zip(y, more, strict=True)]
    return LeastMotion(rates, y, right, [small * b for b in more])
