"""The matrix M of the eliminant, M v = 0, factored on traced numbers.

M = [E 0; 0 E], of two copies of six equations in nine monomials that overlap in six
columns. Reflections of Householder take its parts, of six rows each, to a triangle:

    E -> [R1 A B; 0 C D],    [C; R1] -> [R2; 0],    6 x 6 that remains -> R3

Nothing is exchanged: reflections need no pivots.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from armillary.trace.functions import absolute, maximum, select, sqrt

__all__ = [
    "Factored",
    "back_substituted",
    "determinant",
    "factored",
    "inverse_pivots",
    "product",
    "reflect",
    "solve",
]

Rows = list[list[Any]]

TINY = 1e-300
ROUNDING = 4e-16
"""Part of the largest pivot by which rounding changes any of them."""
PIVOT = 1e-16
"""Part of the largest pivot that others are raised to: a singular M is the goal."""


class _Reflection(msgspec.Struct, frozen=True):
    """x -> x - v (v x) b, of rows from the first one on."""

    first: int
    v: list[Any]
    b: Any

    def apply(self, rows: Sequence[list[Any]], columns: Sequence[int]) -> None:
        """Write the reflection of columns over them."""
        k = self.first
        for c in columns:
            s = sum((x * rows[k + i][c] for i, x in enumerate(self.v)), 0.0)
            s = s * self.b
            for i, x in enumerate(self.v):
                rows[k + i][c] = rows[k + i][c] - x * s

    def of(self, y: list[Any]) -> None:
        """Write the reflection of a vector over it."""
        k = self.first
        s = sum((x * y[k + i] for i, x in enumerate(self.v)), 0.0) * self.b
        for i, x in enumerate(self.v):
            y[k + i] = y[k + i] - x * s


def reflect(rows: Rows, count: int) -> list[_Reflection]:
    """Take the first columns of rows to a triangle, in place."""
    done: list[_Reflection] = []
    m, width = len(rows), len(rows[0])
    for k in range(min(count, m - 1)):
        column = [rows[i][k] for i in range(k, m)]
        below = sum((x * x for x in column[1:]), 0.0)
        length = sqrt(column[0] * column[0] + below)
        pivot = select(column[0] > 0.0, -1.0 * length, length)
        v0 = column[0] - pivot
        # |v|^2 = 2 l (l + |x|), v v / 2 = -pivot v0
        b = 1.0 / maximum(length * absolute(v0), TINY)
        one = _Reflection(k, [v0, *column[1:]], b)
        rows[k][k] = pivot
        for i in range(k + 1, m):
            rows[i][k] = 0.0
        one.apply(rows, range(k + 1, width))
        done.append(one)
    return done


class Factored(msgspec.Struct, frozen=True):
    """The factors of M, as above.

    Attributes:
        first: Rows of [R1 A B; 0 C D].
        second: Rows of [R2 F G; 0 H K] of the columns from the fourth on.
        third: Rows of R3.
        reflections: Of the three steps.
    """

    first: Rows
    second: Rows
    third: Rows
    reflections: tuple[list[_Reflection], list[_Reflection], list[_Reflection]]

    @property
    def pivots(self) -> list[Any]:
        """Return the diagonal of the triangle of M."""
        return [
            *(self.first[k][k] for k in range(3)),
            *(self.second[k][k] for k in range(3)),
            *(self.third[k][k] for k in range(6)),
        ]


def factored(E: Sequence[Sequence[Any]]) -> Factored:
    """Return the factors of M, of equations (6, 9)."""
    first = [list(row) for row in E]
    one = reflect(first, 3)
    # Columns 3 to 11 of the rows below R1 in the upper copy, then of the lower copy.
    second = [
        *([*first[k][3:9], 0.0, 0.0, 0.0] for k in range(3, 6)),
        *([*first[k][0:9]] for k in range(3)),
    ]
    two = reflect(second, 3)
    third = [
        *([*second[k][3:9]] for k in range(3, 6)),
        *([*first[k][3:9]] for k in range(3, 6)),
    ]
    three = reflect(third, 6)
    return Factored(first, second, third, (one, two, three))


def determinant(E: Sequence[Sequence[Any]], gain: Any) -> tuple[Any, Any]:
    """Return det M, and what it may be without rounding.

    gain: How many times as large as their own rounding the errors of equations are.
    """
    pivots = factored(E).pivots
    most: Any = TINY
    for pivot in pivots:
        most = maximum(most, absolute(pivot))
    change = ROUNDING * gain * most
    signed: Any = 1.0
    largest: Any = 1.0
    for pivot in pivots:
        signed = signed * pivot
        largest = largest * (absolute(pivot) + change)
    return signed, largest - absolute(signed)


def product(E: Sequence[Sequence[Any]], x: Sequence[Any]) -> list[Any]:
    """Return [E 0; 0 E] x, of x (12,)."""
    return [
        sum((a * b for a, b in zip(row, part, strict=True)), 0.0)
        for part in (x[:9], x[3:])
        for row in E
    ]


def inverse_pivots(M: Factored) -> list[Any]:
    """Return 1 / pivot of the triangle of M, of small pivots raised."""
    pivots = M.pivots
    most: Any = 0.0
    for pivot in pivots:
        most = maximum(most, absolute(pivot))
    least = maximum(PIVOT * most, TINY)
    return [1.0 / select(absolute(pivot) < least, least, pivot) for pivot in pivots]


def solve(M: Factored, inverses: Sequence[Any], y: Sequence[Any]) -> list[Any]:
    """Return M^-1 y, small pivots raised.

    inverses: Those of the pivots: divisions would be one behind the other.
    """
    upper, lower = list(y[:6]), list(y[6:])
    one, two, three = M.reflections
    for each in one:
        each.of(upper)
        each.of(lower)
    middle = [*upper[3:], *lower[:3]]
    for each in two:
        each.of(middle)
    last = [*middle[3:], *lower[3:]]
    for each in three:
        each.of(last)
    right = [*upper[:3], *middle[:3], *last]
    return back_substituted(M, inverses, right)


def back_substituted(
    M: Factored,
    inverses: Sequence[Any],
    right: Sequence[Any],
    ends: Sequence[float] = (),
) -> list[Any]:
    """Return x of the triangle R of M, R x = right.

    Args:
        M: The factors.
        inverses: Those of the pivots, small ones raised.
        right: Numbers of the rows, shape (12,).
        ends: The last numbers of x, in place of what the last rows say.
    """
    rows = [
        *([*M.first[k][:9], 0.0, 0.0, 0.0] for k in range(3)),
        *([0.0] * 3 + M.second[k] for k in range(3)),
        *([0.0] * 6 + M.third[k] for k in range(6)),
    ]
    x: list[Any] = [0.0] * 12
    known = 12 - len(ends)
    x[known:] = ends
    for k in reversed(range(known)):
        total = right[k]
        for j in range(11, k, -1):
            total = total - rows[k][j] * x[j]
        x[k] = total * inverses[k]
    return x
