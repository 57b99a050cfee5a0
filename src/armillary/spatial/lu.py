"""Square systems of linear equations, solved with pivoting on traced scalars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from armillary.spatial.ldl import Rows
from armillary.spatial.vector import Number
from armillary.trace import Scalar
from armillary.trace.functions import absolute, select, sign
from armillary.trace.ops import DIV


class LU:
    """The elimination of a matrix A, for any number of A x = b.

    A has as many rows as columns, or more: then b must be such that A x = b has a
    solution, which the rows that become pivots' rows decide.

    Rows are exchanged by selects, so that the largest entry of a column becomes its
    pivot (partial pivoting: Golub and Van Loan, Matrix Computations, algorithm 3.4.1).
    Entries that are a constant 0 cost nothing. A singular matrix gives solutions that
    are not finite.
    """

    def __init__(
        self,
        upper: Rows,
        inverse: list[Number],
        exchanges: list[dict[int, Number]],
        factors: list[dict[int, Number]],
    ) -> None:
        """Keep U, one over each pivot, and what is done to rows for each column.

        Args:
            upper: Rows, of which the part above the diagonal is read.
            inverse: One over each pivot.
            exchanges: For each column, rows and whether they become the pivot's row.
            factors: For each column, rows and how much of the pivot's row they lose.
        """
        self._upper = upper
        self._inverse = inverse
        self._exchanges = exchanges
        self._factors = factors

    @classmethod
    def of(cls, A: Rows) -> Self:
        """Eliminate a matrix, shape (m, n), m >= n."""
        rows = [list(row) for row in A]
        size = len(rows[0]) if rows else 0
        inverse: list[Number] = []
        exchanges: list[dict[int, Number]] = []
        factors: list[dict[int, Number]] = []
        for k in range(size):
            exchanged: dict[int, Number] = {}
            below = [i for i in range(k + 1, len(rows)) if not _is_zero(rows[i][k])]
            for i in below:
                # Row by row below: whichever has the larger entry goes up, so that the
                # largest of all ends as the pivot.
                exchanged[i] = truth = _is_larger(rows[i][k], rows[k][k])
                rows[k], rows[i] = _exchanged(truth, rows[k], rows[i])
            inverse.append(DIV(1.0, rows[k][k]))
            lost = {i: rows[i][k] * inverse[k] for i in below}
            for i, factor in lost.items():
                for c in range(k + 1, size):
                    rows[i][c] = rows[i][c] - factor * rows[k][c]
            exchanges.append(exchanged)
            factors.append(lost)
        return cls(rows, inverse, exchanges, factors)

    def solve(self, b: Sequence[Number]) -> list[Number]:
        """Return x with A x = b, shape (n,), for b of shape (m,)."""
        x = list(b)
        # What elimination did to the rows is done to b, in the same order; then U x = b
        # from the last row up.
        for k, (exchanged, lost) in enumerate(
            zip(self._exchanges, self._factors, strict=True)
        ):
            for i, truth in exchanged.items():
                (x[k],), (x[i],) = _exchanged(truth, [x[k]], [x[i]])
            for i, factor in lost.items():
                x[i] = x[i] - factor * x[k]
        size = len(self._inverse)
        for k in reversed(range(size)):
            row = self._upper[k]
            for c in range(k + 1, size):
                x[k] = x[k] - row[c] * x[c]
            x[k] = x[k] * self._inverse[k]
        return x[:size]

    @property
    def determinant(self) -> Number:
        """Return the determinant of A, 0 where it has none."""
        if len(self._upper) > len(self._inverse):
            return 0.0
        product: Number = 1.0
        for k, exchanged in enumerate(self._exchanges):
            product = product * self._upper[k][k]
            for truth in exchanged.values():
                product = select(truth, 0.0 - product, product)
        return product

    @property
    def orientation(self) -> Number:
        """Return the sign of the determinant: 1, -1, or 0."""
        return sign(self.determinant)


def _is_zero(x: Number) -> bool:
    """Tell whether a number is 0 whatever the inputs are."""
    if isinstance(x, Scalar):
        return x.name == "const" and x.value == 0.0
    return x == 0.0


def _is_larger(x: Number, pivot: Number) -> Number:
    """Return whether a number makes the better pivot; True where nothing else will."""
    return True if _is_zero(pivot) else absolute(pivot) < absolute(x)


def _exchanged(
    truth: Number, x: Sequence[Number], y: Sequence[Number]
) -> tuple[list[Number], list[Number]]:
    """Return y and x where a truth holds, else x and y."""
    if truth is True:
        return list(y), list(x)
    pairs = list(zip(x, y, strict=True))
    first = [select(truth, b, a) for a, b in pairs]
    return first, [select(truth, a, b) for a, b in pairs]
