"""Which columns of a matrix depend on which: elimination in a given order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Eliminated", "eliminated"]

Array = npt.NDArray[np.float64]

SMALLEST: Final = 1e-5
"""Pivots below it, of the largest entry, count as zero: files round directions."""


class Eliminated(NamedTuple):
    """A basis of the columns of a matrix.

    Attributes:
        columns: Those with a pivot.
        rows: The row of each pivot: independent, as many as columns.
    """

    columns: tuple[int, ...]
    rows: tuple[int, ...]


def eliminated(A: Array, order: Sequence[int]) -> Eliminated:
    """Return the columns, taken in `order`, that earlier ones do not make up.

    Gaussian elimination by columns, the largest entry of each being its pivot.

    Args:
        A: The matrix, shape (m, n).
        order: Of columns; others are left out.
    """
    left = A.copy()
    smallest = SMALLEST * float(np.abs(A).max(initial=0.0))
    free = np.ones(len(A), np.bool_)
    columns: list[int] = []
    rows: list[int] = []
    for column in order:
        entries = np.where(free, np.abs(left[:, column]), 0.0)
        row = int(entries.argmax()) if len(entries) else 0
        if not free.any() or not entries[row] > smallest:
            continue
        free[row] = False
        columns.append(column)
        rows.append(row)
        factors = np.where(free, left[:, column] / left[row, column], 0.0)
        left[factors != 0.0] -= np.outer(factors[factors != 0.0], left[row])
    return Eliminated(tuple(columns), tuple(rows))
