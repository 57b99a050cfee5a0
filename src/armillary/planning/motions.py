"""Motions between many joint positions, tested in batches, along constraints too."""

from __future__ import annotations

from typing import Final, final

import numpy as np
import numpy.typing as npt

from armillary.collision.check import CollisionCheck
from armillary.collision.motion import MotionReason
from armillary.kinematics.moving_links import straight_links
from armillary.kinematics.speed_bounds import speeds_are_known
from armillary.planning.constraint import Manifold

__all__ = ["MotionTests", "Way", "loops_are_proven"]

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

Way = Array | None
"""Way points of a free motion, shape (k, n), with both ends; None if there is none."""

LEVELS: Final = 12
"""How often motions along constraints are halved."""

ASTRAY: Final = 0.8
"""Halves that are longer than this part of the whole lead elsewhere."""

QUARTERS: Final = np.array([0.25, 0.5, 0.75])


def loops_are_proven(check: CollisionCheck) -> bool:
    """Return whether a check proves motions that move closed loops.

    One in which nothing moves against anything does not ask whether loops close.
    """
    has_loops = bool(check.state.passive.size) and len(check.tables.links) > 0
    return has_loops and straight_links(check.cell).is_compiled and not check.is_exact


@final
class MotionTests:
    """What tests motions of a check within constraints; it counts its work.

    Attributes:
        check: What must not touch.
        manifold: The constraints.
        step: Distance of samples where nothing is proven, in weighted lengths.
        is_proven: Whether motions that are free are proven to be.
        edges: Motions that were tested.
        checks: Joint positions that were.
        proofs: Straight motions that were to be proven.
    """

    def __init__(
        self,
        check: CollisionCheck,
        manifold: Manifold,
        step: float,
        *,
        loops: bool = False,
    ) -> None:
        """Note what is tested.

        Args:
            check: What must not touch.
            manifold: The constraints.
            step: Distance of samples where nothing is proven, in weighted lengths.
            loops: Whether motions of closed loops are to be proven, which takes some
                milliseconds for each. What is neither proven nor touches is free then,
                and `is_proven` tells that.
        """
        self.check, self.manifold, self.step = check, manifold, step
        is_known = speeds_are_known(straight_links(check.cell), check.state)
        is_known = is_known and not check.is_exact
        self._proves_loops = loops and loops_are_proven(check)
        self._moves_are_known = is_known or self._proves_loops
        holds = not manifold.parts or manifold.speeds is not None
        self.is_proven = self._moves_are_known and holds
        self.edges = self.checks = self.proofs = 0

    def are_free(self, Q: Array) -> Truths:
        """Return which joint positions touch nothing, shape (k,).

        They keep limits that couple joints, too; straight motions between two that do
        keep them everywhere.
        """
        self.checks += len(Q)
        if not len(Q):
            return np.zeros(0, np.bool_)
        return ~self.check(Q) & self.check.cell.limit_rows.holds(Q)

    def lengths(self, A: Array, B: Array) -> Array:
        """Return weighted lengths of straight motions, shape (k,)."""
        return np.sqrt((B - A) ** 2.0 @ self.manifold.weights**2.0)

    def between(self, A: Array, B: Array) -> list[Way]:
        """Return the ways from some positions to others, along constraints.

        Args:
            A: Where they begin [m or rad], shape (k, n).
            B: Where they end, shape (k, n).
        """
        self.edges += len(A)
        if not len(A):
            return []
        ways = self._along(A, B)
        rows = [k for k, way in enumerate(ways) if way is not None]
        # Way points first: they cost a hundredth of a proof.
        inner = [way[1:-1] for way in ways if way is not None]
        counts = [len(each) for each in inner]
        if sum(counts):
            is_free = self.are_free(np.concatenate(inner))
            starts = np.cumsum([0, *counts[:-1]])
            for row, start, count in zip(rows, starts, counts, strict=True):
                if not is_free[start : start + count].all():
                    ways[row] = None
        return self.proven(ways)

    def proven(self, ways: list[Way]) -> list[Way]:
        """Return the ways, None for those that are not proven to be free."""
        rows = [k for k, way in enumerate(ways) if way is not None]
        whole = [way for way in ways if way is not None]
        if not whole:
            return list(ways)
        starts = np.concatenate([way[:-1] for way in whole])
        ends = np.concatenate([way[1:] for way in whole])
        of = np.repeat(rows, [len(way) - 1 for way in whole])
        good = self.manifold.holds(starts, ends, self.step)
        # One piece that fails is enough, so the others are not tested.
        bad = np.zeros(len(ways), np.bool_)
        bad[of[~good]] = True
        left = np.flatnonzero(~bad[of])
        if len(left):
            bad[of[left[~self._free(starts[left], ends[left])]]] = True
        return [None if bad[k] else way for k, way in enumerate(ways)]

    def _free(self, A: Array, B: Array) -> Truths:
        """Return which straight motions touch nothing."""
        # Samples first: a proof takes longest of motions that touch.
        lengths = self.lengths(A, B)
        counts = np.maximum(1, np.ceil(lengths / self.step)).astype(np.int64)
        rows = np.repeat(np.arange(len(A)), counts)
        t = (np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]) / counts[rows]
        touch = ~self.are_free(A[rows] + t[:, None] * (B - A)[rows])
        good = np.ones(len(A), np.bool_)
        good[rows[touch]] = False
        if self._moves_are_known:
            left = np.flatnonzero(good)
            self.proofs += len(left)
            found = self.check.motion(A[left], B[left])
            good[left] = found.free
            if self._proves_loops:
                # A proof ends where a loop does not close, which the check knows.
                is_open = np.flatnonzero(found.reason == MotionReason.NOT_PROVEN)
                is_open = is_open[self.are_free(found.q[is_open])]
                self.is_proven &= not len(is_open)
                good[left[is_open]] = True
            return good
        return good & self.are_free(B)

    def _along(self, A: Array, B: Array) -> list[Way]:
        """Return ways along the constraints, which may touch something."""
        manifold = self.manifold
        if not manifold.parts:
            return [np.stack(both) for both in zip(A, B, strict=True)]
        # Pieces of all motions are halved at once. Points of the straight motion are
        # projected, as the native loop does, so that both find the same way.
        lost = np.zeros(len(A), np.bool_)
        row, at, size = np.arange(len(A)), np.zeros(len(A)), 1.0
        a, b = A, B
        rows, times, points = [row, row], [at, at + 1.0], [A, B]
        for _ in range(LEVELS):
            inner = a + QUARTERS[:, None, None] * (b - a)
            is_near = manifold.is_near(inner.reshape(-1, a.shape[1]))
            is_open = ~is_near.reshape(len(QUARTERS), -1).all(axis=0) & ~lost[row]
            row, at, a, b = row[is_open], at[is_open], a[is_open], b[is_open]
            if not len(row):
                break
            middles = (at + 0.5 * size)[:, None]
            middle, is_done = manifold.project(A[row] + middles * (B - A)[row])
            whole = self.lengths(a, b)
            half = np.maximum(self.lengths(a, middle), self.lengths(middle, b))
            lost[row[~is_done | (half > ASTRAY * whole)]] = True
            size *= 0.5
            rows.append(row)
            times.append(at + size)
            points.append(middle)
            row = np.concatenate([row, row])
            at = np.concatenate([at, at + size])
            a, b = np.concatenate([a, middle]), np.concatenate([middle, b])
        else:
            lost[row] = True
        number, every = np.concatenate(rows), np.concatenate(points)
        order = np.lexsort((np.concatenate(times), number))
        ends = np.searchsorted(number[order], np.arange(len(A) + 1))
        return [
            None if lost[k] else every[order[ends[k] : ends[k + 1]]]
            for k in range(len(A))
        ]
