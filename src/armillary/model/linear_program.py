"""Small linear programs: the middle of a polytope, and how far it reaches.

They are solved by the simplex method on a dense tableau, by the rule of Bland (Math. of
Operations Research 2, 1977), which keeps it from going round in circles. All of them
begin at a point that meets every row, so there is no first phase.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Middle", "greatest", "middle_of"]

Array = npt.NDArray[np.float64]

ZERO: Final = 1e-11
"""What of a tableau counts as 0; rows are brought to unit length."""

LARGEST: Final = 1.0
"""Radius above which a ball is large enough."""


class Middle(NamedTuple):
    """The largest ball in a polytope.

    Attributes:
        centre: Its centre, shape (n,).
        radius: Its radius, at most `LARGEST`; below 0 where there is none: then rows
            are missed at the centre by that, in parts of their lengths.
    """

    centre: Array
    radius: float


def greatest(c: Array, A: Array, h: Array) -> tuple[float, Array]:
    """Return the greatest c y with A y <= h, and that y; infinite without a bound.

    Args:
        c: Shape (n,).
        A: Shape (m, n).
        h: Shape (m,), 0 or more: y = 0 meets all rows.
    """
    m, n = int(A.shape[0]), int(A.shape[1])
    # y = y' - y'' with both parts 0 or more, then a slack for each row.
    table: Array = np.zeros((m + 1, 2 * n + m + 1))
    table[:m, :n], table[:m, n : 2 * n] = A, -A
    table[:m, 2 * n : -1] = np.eye(m)
    table[:m, -1] = np.maximum(h, 0.0)
    table[m, :n], table[m, n : 2 * n] = -c, c
    basis = list(range(2 * n, 2 * n + m))
    while True:
        rising = np.flatnonzero(table[m, :-1] < -ZERO)
        if not rising.size:
            break
        column = int(rising[0])
        entries = table[:m, column]
        rows = np.flatnonzero(entries > ZERO)
        if not rows.size:
            return math.inf, np.full(n, np.nan)
        ratios = table[rows, -1] / entries[rows]
        ties = rows[ratios <= ratios.min() + ZERO]
        row = min(ties.tolist(), key=basis.__getitem__)
        table[row] /= table[row, column]
        factors = table[:, column].copy()
        factors[row] = 0.0
        table -= factors[:, None] * table[row]
        basis[row] = column
    values: Array = np.zeros(2 * n + m)
    values[basis] = table[:m, -1]
    y = values[:n] - values[n : 2 * n]
    return float(c @ y), y


def middle_of(A: Array, b: Array) -> Middle:
    """Return the largest ball in which A x <= b holds, about its Chebyshev centre.

    It is found by the program of x and r with A x + |A| r <= b and the greatest r
    (Boyd and Vandenberghe, Convex Optimization, 2004, section 8.5.1).

    Args:
        A: Shape (m, n); no row is 0.
        b: Shape (m,), finite.
    """
    # Squares of numbers such as 1e200 are too large, those of 1e-200 are zero.
    largest = np.abs(A).max(axis=1)
    with np.errstate(over="ignore"):  # infinitely far: b is there, too
        scaled, far = A / largest[:, None], b / largest
    lengths = np.linalg.norm(scaled, axis=1)
    unit, ends = scaled / lengths[:, None], far / lengths
    # From x = 0 and the r, maybe below 0, with which 0 meets all rows.
    least = min(float(ends.min(initial=LARGEST)), LARGEST)
    rows = np.column_stack([unit, np.ones(len(unit))])
    rows = np.vstack([rows, np.eye(A.shape[1] + 1)[-1:]])
    room = np.append(ends, LARGEST) - least
    _, y = greatest(rows[-1], rows, room)
    return Middle(y[:-1], float(y[-1] + least))
