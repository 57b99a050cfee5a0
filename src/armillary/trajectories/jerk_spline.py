"""The quadratic spline x(s) of `jerk_stages.py`, and jerks at ends at rest.

Its classes group the columns of `jerk_columns.py` that formulas read together.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from armillary.spatial.vector import Matrix, Number, Vector
from armillary.trace.functions import select

__all__ = [
    "FAST",
    "PLACE",
    "SIMPSON",
    "TINY",
    "GridEnds",
    "GridInterval",
    "bound_rows",
    "greater",
    "spline_at",
    "spline_start",
]

FAST: Final = 1e24

TINY: Final = 1e-200

SIMPSON: Final = (1.0 / 6.0, 4.0 / 6.0, 1.0 / 6.0)

PLACE: Final = (0.0, 0.5, 1.0)


def greater(a: Number, b: Number) -> Number:
    """Return the greater of two numbers; b where one is NaN: one instruction."""
    return select(a > b, a, b)


def spline_start(
    h_before: Number, h_here: Number, h_after: Number, b: Vector
) -> tuple[Number, Number, Number]:
    """Return x and y at the start of an interval, and c in it."""
    before, after = 1.0 / (h_before + h_here), 1.0 / (h_here + h_after)
    x = (h_here * b[0] + h_before * b[1]) * before
    y0, y1 = 2.0 * (b[1] - b[0]) * before, 2.0 * (b[2] - b[1]) * after
    return x, y0, (y1 - y0) / h_here


def spline_at(start: Vector, h: Number, tau: float) -> tuple[Number, Number, Number]:
    """Return x, y and c at a place of an interval."""
    x, y, c = start
    if tau == 0.0:
        return x, y, c
    way = tau * h
    return x + way * (y + 0.5 * way * c), y + way * c, c


def bound_rows(bound: Matrix, place: int) -> Matrix:
    """Return a, b and m of further limits at a place; the last place has no rows."""
    count = len(bound) // (len(PLACE) - 1)
    return bound[place * count : (place + 1) * count]


class GridInterval(NamedTuple):
    """An interval of the grid: lengths, control points of x, and what limits are of."""

    h_before: Number
    h_here: Number
    h_after: Number
    b0: Number
    b1: Number
    b2: Number
    deriv: Matrix
    cap: Vector
    scales: Matrix

    def start(self) -> tuple[Number, Number, Number]:
        """Return x and y at its start, and c in it."""
        points = self.b0, self.b1, self.b2
        return spline_start(self.h_before, self.h_here, self.h_after, points)


class GridEnds(NamedTuple):
    """How the path begins and ends: at rest, or in motion."""

    special: Vector
    moving: Vector
    end_rows: Matrix
