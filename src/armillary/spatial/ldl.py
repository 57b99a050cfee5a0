"""Symmetric positive matrices, factored once and used for several right-hand sides."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, Self

from armillary.spatial.vector import Number
from armillary.trace.functions import maximum, select, sqrt

Rows = list[list[Number]]

SINGULAR: Final = 1e-13
"""The pivot of a singular matrix, in its element of the diagonal."""


def inner(a: Sequence[Number], b: Sequence[Number]) -> Number:
    """Return sum_k a_k b_k."""
    return sum((x * y for x, y in zip(a, b, strict=True)), 0.0)


def gram(rows: Rows, factors: Sequence[Number] | None = None) -> Rows:
    """Return rows diag(factors) rows', with factors of 1 by default."""
    scaled = rows
    if factors is not None:
        scaled = [[a * f for a, f in zip(row, factors, strict=True)] for row in rows]
    G: Rows = [[0.0] * len(rows) for _ in rows]
    for i, row in enumerate(scaled):
        for k in range(i + 1):
            G[i][k] = G[k][i] = inner(row, rows[k])
    return G


def shifted(G: Rows, shift: Number) -> Rows:
    """Return G + shift 1."""
    return [
        [g + shift if i == k else g for k, g in enumerate(row)]
        for i, row in enumerate(G)
    ]


class LDLFactor:
    """The factors of a positive matrix H = L D L', for any number of H x = b."""

    def __init__(self, lower: Rows, inverse: list[Number]) -> None:
        """Keep the rows of L below the diagonal of ones, and one over each of D."""
        self._lower = lower
        self._inverse = inverse

    @classmethod
    def of(cls, H: Rows, least: Number) -> Self:
        """Return the factors of a matrix, of which the lower half is read.

        Args:
            H: Its rows.
            least: What pivots are raised to where rounding has taken them below.
        """
        return cls._factored(H, lambda pivot, _: 1.0 / maximum(pivot, least))

    @classmethod
    def of_regular(cls, H: Rows) -> Self:
        """Return the factors of a matrix, NaN where it is singular or not positive.

        H: Its rows, of which the lower half is read.
        """

        def inverse(pivot: Number, diagonal: Number) -> Number:
            return select(pivot > SINGULAR * diagonal, 1.0 / pivot, math.nan)

        return cls._factored(H, inverse)

    @classmethod
    def _factored(cls, H: Rows, invert: Callable[[Number, Number], Number]) -> Self:
        """Return the factors.

        invert: Takes a pivot and the element that it came from.
        """
        L: Rows = []
        inverse: list[Number] = []
        for i in range(len(H)):
            # Row i of L D from the rows before: (L D)_ik = H_ik - sum_j (L D)_ij L_kj;
            # dividing by the pivots gives row i of L.
            scaled: list[Number] = []  # of L D
            for k in range(i):
                scaled.append(H[i][k] - inner(scaled, L[k]))
            row = [x * y for x, y in zip(scaled, inverse, strict=True)]
            inverse.append(invert(H[i][i] - inner(scaled, row), H[i][i]))
            L.append(row)
        return cls(L, inverse)

    @property
    def root_of_determinant(self) -> Number:
        """Return sqrt(det H), from the product of the pivots."""
        return 1.0 / sqrt(math.prod(self._inverse))

    def solve(self, b: Sequence[Number]) -> list[Number]:
        """Return x with H x = b."""
        L = self._lower
        # L y = b forwards, then L' x = D^-1 y backwards.
        y: list[Number] = []
        for row, number in zip(L, b, strict=True):
            y.append(number - inner(row, y))
        x = [u * v for u, v in zip(y, self._inverse, strict=True)]
        for i in reversed(range(len(b))):
            below = [L[k][i] for k in range(i + 1, len(b))]
            x[i] = x[i] - inner(below, x[i + 1 :])
        return x


def multiply_symmetric(A: Rows, B: Rows) -> Rows:
    """Return A B for symmetric matrices that commute, so that it is symmetric too."""
    size = len(A)
    product: Rows = [[0.0] * size for _ in range(size)]
    for i in range(size):
        for k in range(i + 1):
            product[i][k] = product[k][i] = inner(A[i], B[k])
    return product


def apply_rows(A: Rows, x: Sequence[Number]) -> list[Number]:
    """Return A x."""
    return [inner(row, x) for row in A]
