"""Solutions of many targets, one behind the other, and which of them are copies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.ik.closed_forms.general_6r.first_search import KEY, REGULAR, STATE
from armillary.ik.closed_forms.general_6r.nearby import FOUND
from armillary.ik.closed_forms.general_6r.roots import ROOTS
from armillary.ik.closed_forms.general_6r.stages import KEYS, apart_kernel
from armillary.kernel import Kernel

__all__ = ["APART", "FoundSolutions", "apart_of", "distinct"]

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Whole = npt.NDArray[np.int64]

APART = 5e-6
"""Keys of different solutions differ by more."""

SLOTS = ROOTS * FOUND, 3 * ROOTS * FOUND


class FoundSolutions(NamedTuple):
    """Solutions: the target, angles, keys of each, and whether it is regular."""

    rows: Whole
    angles: Array
    keys: Array
    regular: Array
    targets: int

    @classmethod
    def of_slots(cls, slots: Array) -> FoundSolutions:
        """Return what a first search has found, by targets, in order.

        slots: Its `solutions`, shape (count, SLOTS, NUMBERS) of `first_search.py`.
        """
        flat = slots.reshape(-1, slots.shape[-1])
        filled = np.flatnonzero(flat[:, STATE] > 0.0)
        of = flat.take(filled, axis=0)
        rows = filled // slots.shape[1]
        return cls(rows, of[:, :STATE], of[:, KEY:], of[:, REGULAR], len(slots))

    @property
    def parts(self) -> tuple[Whole, Array, Array, Array]:
        """Return the arrays that have an entry for each solution."""
        return self[:4]

    def picked(self, which: Whole) -> FoundSolutions:
        """Return some of it, by positions."""
        return FoundSolutions._make(
            (*(part[which] for part in self.parts), self.targets)
        )

    def ordered(self) -> FoundSolutions:
        """Return the same by targets, in order."""
        order = np.argsort(self.rows, kind="stable")
        return self.picked(order)

    def thinned(self) -> FoundSolutions:
        """Return the same by targets, in order, without most of the copies."""
        keys = np.rint(self.keys / APART).T
        order = np.lexsort((*keys[::-1], self.rows))  # `np.unique` of rows is slow
        same = np.diff(self.rows[order]) == 0
        for key in keys:
            same &= np.diff(key[order]) == 0.0
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = ~same
        return self.picked(order[is_first])

    def of(self, some: Whole) -> FoundSolutions:
        """Return what is found of some targets, as the targets of their own."""
        place = np.full(self.targets, -1)
        place[some] = np.arange(len(some))
        rows = place[self.rows]
        kept = rows >= 0
        parts = rows, *self.parts[1:]
        return FoundSolutions._make((*(part[kept] for part in parts), len(some)))

    def with_others(self, some: Whole, others: FoundSolutions) -> FoundSolutions:
        """Return what is found, of some targets others instead, by targets."""
        is_kept = np.ones(self.targets, np.bool_)
        is_kept[some] = False
        rest = self.picked(np.flatnonzero(is_kept[self.rows]))
        return FoundSolutions.joined(
            [rest, others._replace(rows=some[others.rows])]
        ).ordered()

    @staticmethod
    def joined(parts: list[FoundSolutions]) -> FoundSolutions:
        """Return what several found of the same targets, one behind the other."""
        columns = zip(*(each.parts for each in parts), strict=True)
        return FoundSolutions._make((*map(np.concatenate, columns), parts[0].targets))

    @property
    def counts(self) -> Whole:
        """Return how many solutions each target has, copies included."""
        return np.bincount(self.rows, minlength=self.targets)


def distinct(parts: list[FoundSolutions]) -> FoundSolutions:
    """Return what is found without copies, by targets."""
    all_found = parts[0]
    if len(parts) > 1:
        all_found = FoundSolutions.joined(parts).ordered()
    rows, keys = all_found.rows, all_found.keys
    count = parts[0].targets
    counts = np.bincount(rows, minlength=count)
    slots = SLOTS[0] if counts.max(initial=0) <= SLOTS[0] else SLOTS[1]
    slot = np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]
    # more than all slots are copies, nearly all of them
    if counts.max(initial=0) > slots:
        fits = np.flatnonzero(slot < slots)
        all_found, slot = all_found.picked(fits), slot[fits]
        rows, keys = all_found.rows, all_found.keys
        counts = np.minimum(counts, slots)
    table = np.zeros((count, slots, KEYS))
    table[rows, slot] = keys
    new = apart_of(slots)(table, counts.astype(np.float64), APART)
    return all_found.picked(np.flatnonzero(new[rows, slot] > 0.0))


def apart_of(slots: int) -> Kernel:
    """Return the kernel that finds copies among so many solutions."""
    if slots not in _APART:
        _APART[slots] = apart_kernel(slots)
    return _APART[slots]


_APART: dict[int, Kernel] = {}
