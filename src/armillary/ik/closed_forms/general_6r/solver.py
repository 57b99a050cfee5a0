"""All answers of an arm of six revolute joints, in stages that run where needed.

Every target is solved in the better order of the arm, with one look at each root. Where
roots crowd, where something near a solution did not become one, or where the number of
solutions is odd, both orders are tried, and angles corrected first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.ik.closed_forms.family import require
from armillary.ik.closed_forms.general_6r.geometry import SixAxes, turned
from armillary.ik.closed_forms.general_6r.nearby import FOUND
from armillary.ik.closed_forms.general_6r.roots import ROOTS
from armillary.ik.closed_forms.general_6r.stages import (
    KEYS,
    apart_kernel,
    near_kernel,
    polish_kernel,
    roots_kernel,
)
from armillary.kernel import Kernel

__all__ = ["SixAxesSolver", "Solutions"]

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Whole = npt.NDArray[np.int64]

MOST = 16
"""Solutions of a generic target, at most (Lee and Liang 1988)."""

MISSED = 0.09
"""Square of what may miss before Newton's method: nothing worse has led anywhere."""

CLOSE = 1e-4
"""Square of what misses so little that a solution must be near."""

ERROR = 1e-9
"""Largest error of a solution, of the pose in units of the arm."""

APART = 1.5e-4
"""Keys of different solutions differ by more."""

SAMPLES = 64
FLAT = 1e-9
"""Part of the usual det M below which a target has solutions everywhere, or nowhere."""

FEW, MANY = ROOTS * FOUND, 3 * ROOTS * FOUND


class Solutions(NamedTuple):
    """The solutions of targets, one behind the other.

    Attributes:
        rows: The target of each, in order, shape (m,).
        angles: Of the axes [rad], shape (m, 6).
        unsure: Which targets may have others, shape (count,).
    """

    rows: Whole
    angles: Array
    unsure: Truths


class _Order(NamedTuple):
    """The kernels of one order of an arm."""

    roots: Kernel
    once: Kernel
    twice: Kernel


class _Found(NamedTuple):
    """What is found of targets, copies among it; `again` are those to look at again."""

    rows: Whole
    angles: Array
    keys: Array
    again: Truths
    flat: Truths


class SixAxesSolver:
    """The kernels of an arm, and in which order it is cut."""

    def __init__(self, arm: SixAxes) -> None:
        """Choose the order of an arm by what is found at some of its poses.

        Raises:
            NotApplicable: Known joint angles are not found at their own poses.
        """
        self._arm = arm
        links = arm.scaled
        self._polish = polish_kernel(links[:, :3])
        orders: list[_Order] = []
        for hides_five in (True, False):
            order = arm.order(hides_five=hides_five)
            orders.append(
                _Order(
                    roots_kernel(order), near_kernel(order, 1), near_kernel(order, 2)
                )
            )
        angles = np.random.default_rng(99).uniform(-np.pi, np.pi, (SAMPLES, 6))
        X = np.broadcast_to(np.eye(4), (SAMPLES, 4, 4))
        for k in range(6):
            X = X @ turned(angles[:, k])
            X = X @ links[k] if k < len(links) else X
        poses = np.ascontiguousarray(X)
        usual = [float(np.median(order.roots(poses)[2])) for order in orders]
        self._orders = list(zip(orders, usual, strict=True))
        counts: list[int] = []
        for each in self._orders:
            found = self._distinct(self._found(poses, each, passes=1), SAMPLES, FEW)
            counts.append(len(found[0]))
        if counts[1] > counts[0]:
            self._orders.reverse()
        found = self.solve(poses)
        gap = np.abs(_wrapped(found.angles - angles[found.rows])).max(axis=1)
        own = np.full(SAMPLES, np.inf)
        np.minimum.at(own, found.rows, gap)
        lost = int((own > SAME).sum())
        require(lost <= MOST_LOST, "its axes leave infinitely many answers to a pose")

    def solve(self, inner: Array, *, threads: int | None = None) -> Solutions:
        """Return all solutions of targets.

        Args:
            inner: The last axis's frame in that of the first, lengths in units of the
                arm's `scale`, shape (count, 4, 4); NaN has none.
            threads: As for kernels.
        """
        count = len(inner)
        found = self._found(inner, self._orders[0], passes=1, threads=threads)
        rows, angles, keys = self._distinct(found, count, FEW)
        odd = np.bincount(rows, minlength=count) % 2 == 1
        again = np.flatnonzero(found.again | odd)
        unsure = np.zeros(count, np.bool_)
        if not again.size:
            return Solutions(rows, angles, unsure)
        part = np.ascontiguousarray(inner[again])
        more = [
            self._found(part, each, passes=2, threads=threads) for each in self._orders
        ]
        place = np.full(count, -1)
        place[again] = np.arange(len(again))
        is_again = place[rows] >= 0
        parts = [(place[rows[is_again]], angles[is_again], keys[is_again])]
        parts += [each[:3] for each in more]
        joined = [np.concatenate(x) for x in zip(*parts, strict=True)]
        order = np.argsort(joined[0], kind="stable")
        flat = np.logical_and.reduce([each.flat for each in more])
        doubt = np.logical_and.reduce([each.again for each in more])
        everything = _Found(*(x[order] for x in joined), doubt, flat)
        new_rows, new_angles, new_keys = self._distinct(everything, len(again), MANY)
        odd = np.bincount(new_rows, minlength=len(again)) % 2 == 1
        unsure[again] = flat | odd
        rows = np.concatenate([rows[~is_again], again[new_rows]])
        angles = np.concatenate([angles[~is_again], new_angles])
        order = np.argsort(rows, kind="stable")
        return Solutions(rows[order], angles[order], unsure)

    def _found(
        self,
        inner: Array,
        order: tuple[_Order, float],
        *,
        passes: int,
        threads: int | None = None,
    ) -> _Found:
        """Return what one order finds of targets."""
        kernels, usual = order
        near = kernels.once if passes == 1 else kernels.twice
        angles, crowded, largest = kernels.roots(inner, threads=threads)
        rows, which = np.nonzero(np.isfinite(angles))
        at, missed = near(inner[rows], angles[rows, which], threads=threads)
        missed = missed.ravel()
        kept = np.flatnonzero(missed < MISSED)
        rows = rows[kept // FOUND]
        missed = missed[kept]
        q, error, keys = self._polish(
            inner[rows], at.reshape(-1, 6)[kept], threads=threads
        )
        good = error < ERROR
        flat = ~(largest > FLAT * usual)
        again = (crowded > 0.0) | flat
        again[rows[~good & (missed < CLOSE)]] = True
        return _Found(rows[good], q[good], keys[good], again, flat)

    def _distinct(
        self, found: _Found, count: int, slots: int
    ) -> tuple[Whole, Array, Array]:
        """Return what is found without copies: targets, angles, keys."""
        rows = found.rows
        counts = np.bincount(rows, minlength=count)
        first = np.cumsum(counts) - counts
        slot = np.arange(len(rows)) - first[rows]
        keys = np.zeros((count, slots, KEYS))
        keys[rows, slot] = found.keys
        new = apart_of(slots)(keys, counts.astype(np.float64), APART)
        kept = new[rows, slot] > 0.0
        return rows[kept], found.angles[kept], found.keys[kept]


SAME = 1e-3
MOST_LOST = 3


def apart_of(slots: int) -> Kernel:
    """Return the kernel that finds copies among so many solutions."""
    if slots not in _APART:
        _APART[slots] = apart_kernel(slots)
    return _APART[slots]


_APART: dict[int, Kernel] = {}


def _wrapped(angles: Array) -> Array:
    return (angles + np.pi) % (2.0 * np.pi) - np.pi
