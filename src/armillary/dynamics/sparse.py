"""Sparse matrices by coordinates, and what they are by independent coordinates."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

from armillary.spatial.ldl import Rows
from armillary.spatial.vector import Number

__all__ = ["Entries", "Weights", "add_to", "both_halves", "product", "total"]

Entries = dict[tuple[int, int], Number]
"""A matrix by coordinates, (row, column), without what is zero by structure."""

Weights = Mapping[int, Mapping[int, Number]]
"""For each coordinate numbers by indices of independent ones, such as its rate per unit
rate of them."""

Key = TypeVar("Key", bound=Hashable)


def add_to(sums: dict[Key, Number], key: Key, value: Number) -> None:
    """Add a number to that of a key, taken as 0 where it is missing."""
    sums[key] = sums.get(key, 0.0) + value


def both_halves(upper: Entries) -> Entries:
    """Return a symmetric matrix from its entries on and above the diagonal."""
    return upper | {(m, k): entry for (k, m), entry in upper.items()}


def product(left: Weights, entries: Entries, right: Weights, size: int) -> Rows:
    """Return left' E right, row by row, shape (size, size)."""
    rows: Rows = [[0.0] * size for _ in range(size)]
    for (k, m), entry in entries.items():
        for j, y in right.get(m, {}).items():
            moved = entry * y
            for i, x in left.get(k, {}).items():
                rows[i][j] = rows[i][j] + x * moved
    return rows


def total(first: Rows, *more: Rows) -> Rows:
    """Return the sum of matrices."""
    for other in more:
        first = [
            [x + y for x, y in zip(*rows, strict=True)]
            for rows in zip(first, other, strict=True)
        ]
    return first
