"""The Cholesky factor of a packed matrix, in loops of machine code.

H = U'U is found row by row of U, each from all rows above it at once. U is kept
without its diagonal, of which the reciprocals are a row of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from armillary.kernel.builder import Operand, Value
from armillary.kernel.intrinsics.minmax import maximum
from armillary.kernel.row_code import WIDTH, RowCode, padded

__all__ = ["Factor", "packed_row"]


def packed_row(row: Value) -> Value:
    """Return where a row of a packed matrix begins: behind those above it."""
    return (row * (row + 1)) >> 1


@final
@dataclass(frozen=True, slots=True)
class Factor:
    """A factor in working memory.

    Attributes:
        rows: What computes with rows.
        most: The greatest number of rows, for which there is memory.
        start: Where U begins, in padded rows; behind it are the reciprocals.
        count: The number of rows, where that is not the greatest.
    """

    rows: RowCode
    most: int
    start: Value
    count: Value | None = None

    @staticmethod
    def numbers(size: int) -> int:
        """Return how many numbers of memory it takes."""
        return (size + 1) * padded(size)

    @property
    def size(self) -> Operand:
        """Return the number of rows, n."""
        return self.most if self.count is None else self.count

    @property
    def width(self) -> int:
        """Return the numbers of a padded row."""
        return padded(self.most)

    @property
    def inverse(self) -> Value:
        """Return where the reciprocals of the diagonal are."""
        return self.rows.at(self.start, self.most * self.width)

    def row(self, k: Value) -> Value:
        """Return where a row of U begins."""
        return self.rows.at(self.start, k * self.width)

    def make(self, packed: Value, *, least: Operand, shift: Operand = 0.0) -> None:
        """Write the code that factors H + shift.

        Args:
            packed: Where H is.
            least: What squares of the diagonal are raised to.
            shift: What is added to the diagonal of H.
        """
        rows, f, n = self.rows, self.rows.f, self.size
        with f.loop(n) as k:
            row, first = self.row(k), k & -WIDTH
            # Row k of H right of the diagonal is column k of its lower half.
            rows.clear(row, self.width)
            with f.loop(n, k) as j:
                rows.put(rows.get(packed, packed_row(j) + k), row, j)
            # Less what rows above contribute: U_kj = (H_kj - sum_p U_pk U_pj) / U_kk.
            above = rows.at(self.start, k)
            rows.take(
                row,
                self.start,
                above,
                count=k,
                size=self.width,
                step=self.width,
                end=self.width,
                start=first,
            )
            floor = (
                least if isinstance(least, Value) else f.constant(rows.scalar, least)
            )
            pivot = maximum(rows.get(row, k) + shift, floor)
            inverse = 1.0 / pivot.sqrt()
            rows.put(inverse, self.inverse, k)
            with f.loop(n, k + 1) as j:
                rows.put(rows.get(row, j) * inverse, row, j)
            # What loops over whole parts of the row left on and before the diagonal.
            with f.loop(k + 1, first) as j:
                rows.put(0.0, row, j)

    def forward(self, y: Value) -> None:
        """Write the code that divides a row by U' from the left, in place."""
        rows = self.rows
        with rows.f.loop(self.size) as k:
            number = rows.get(y, k) * rows.get(self.inverse, k)
            # Row k of U has zeros up to the diagonal.
            rows.add(y, -number, self.row(k), self.width, k & -WIDTH)
            rows.put(number, y, k)

    def backward(self, x: Value) -> None:
        """Write the code that divides a row by U from the left, in place."""
        rows = self.rows
        with rows.f.loop(self.size) as turn:
            last = turn.constant(self.most) if self.count is None else self.count
            k = last - 1 - turn
            right = rows.dot(self.row(k), x, self.width, k & -WIDTH)
            rows.put((rows.get(x, k) - right) * rows.get(self.inverse, k), x, k)
