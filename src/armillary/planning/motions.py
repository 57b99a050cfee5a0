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

Owners = npt.NDArray[np.int64] | None

Way = Array | None
"""Way points of a free motion, shape (k, n), with both ends; None if there is none."""

MOST_HALVINGS: Final = 12
"""How often motions along constraints are halved."""

ASTRAY_PART: Final = 0.8
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

    Several problems may share it. Rows are of the problems that `of` numbers; answers
    do not depend on which other rows are asked for at once.

    Attributes:
        check: What must not touch.
        manifold: The constraints.
        step: Distance of samples where nothing is proven, in weighted lengths.
        proves: Whether motions that are free are proven to be.
        is_proven: Whether all were of which that is so, for each problem.
        edges: Motions that were tested, for each problem.
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
        problems: int = 1,
    ) -> None:
        """Note what is tested.

        Args:
            check: What must not touch.
            manifold: The constraints.
            step: Distance of samples where nothing is proven, in weighted lengths.
            loops: Whether motions of closed loops are to be proven, which takes some
                milliseconds for each. What is neither proven nor touches is free then,
                and `is_proven` tells that.
            problems: How many problems share it.
        """
        self.check, self.manifold, self.step = check, manifold, step
        is_known = speeds_are_known(straight_links(check.cell), check.state)
        is_known = is_known and not check.is_exact
        self._proves_loops = loops and loops_are_proven(check)
        self._moves_are_known = is_known or self._proves_loops
        holds = not manifold.parts or manifold.speeds is not None
        self.proves = self._moves_are_known and holds
        self.is_proven = np.full(problems, self.proves)
        self.edges, self.checks, self.proofs = np.zeros((3, problems), np.int64)

    def are_free(self, Q: Array, of: Owners = None) -> Truths:
        """Return which joint positions touch nothing, shape (k,).

        They keep limits that couple joints, too; straight motions between two that do
        keep them everywhere.

        Args:
            Q: Joint positions [m or rad], shape (k, n).
            of: Of which problems they are, shape (k,); None for the first one.
        """
        _count(self.checks, of, len(Q))
        if not len(Q):
            return np.zeros(0, np.bool_)
        return ~self.check(Q) & self.check.cell.limit_rows.holds(Q)

    def lengths(self, A: Array, B: Array) -> Array:
        """Return weighted lengths of straight motions, shape (k,)."""
        way = (B - A) * self.manifold.weights
        return np.sqrt(np.einsum("ki,ki->k", way, way))

    def length_of(self, way: Array) -> float:
        """Return the weighted length of a way."""
        return float(self.lengths(way[:-1], way[1:]).sum())

    def between(self, A: Array, B: Array, of: Owners = None) -> list[Way]:
        """Return the ways from some positions to others, along constraints.

        Args:
            A: Where they begin [m or rad], shape (k, n).
            B: Where they end, shape (k, n).
            of: Of which problems they are, shape (k,); None for the first one.
        """
        _count(self.edges, of, len(A))
        if not len(A):
            return []
        ways = self._along(A, B)
        rows = [k for k, way in enumerate(ways) if way is not None]
        # Way points first: they cost a hundredth of a proof.
        inner = [way[1:-1] for way in ways if way is not None]
        counts = [len(each) for each in inner]
        if sum(counts):
            owners = None if of is None else np.repeat(of[rows], counts)
            is_free = self.are_free(np.concatenate(inner), owners)
            starts = np.cumsum([0, *counts[:-1]])
            for row, start, count in zip(rows, starts, counts, strict=True):
                if not is_free[start : start + count].all():
                    ways[row] = None
        return self.proven(ways, of)

    def proven(self, ways: list[Way], of: Owners = None) -> list[Way]:
        """Return the ways, None for those that are not proven to be free.

        of: Of which problems they are, shape (k,); None for the first one.
        """
        rows = [k for k, way in enumerate(ways) if way is not None]
        whole = [way for way in ways if way is not None]
        if not whole:
            return list(ways)
        starts = np.concatenate([way[:-1] for way in whole])
        ends = np.concatenate([way[1:] for way in whole])
        row = np.repeat(rows, [len(way) - 1 for way in whole])
        owners = None if of is None else of[row]
        good = self.manifold.holds(starts, ends, self.step)
        # One piece that fails is enough, so the others are not tested.
        bad = np.zeros(len(ways), np.bool_)
        bad[row[~good]] = True
        left = np.flatnonzero(~bad[row])
        if len(left):
            owners = None if owners is None else owners[left]
            is_free = self._free(starts[left], ends[left], owners)
            bad[row[left[~is_free]]] = True
        return [None if bad[k] else way for k, way in enumerate(ways)]

    def _free(self, A: Array, B: Array, of: Owners) -> Truths:
        """Return which straight motions touch nothing."""
        # Samples first: a proof takes longest of motions that touch.
        lengths = self.lengths(A, B)
        counts = np.maximum(1, np.ceil(lengths / self.step)).astype(np.int64)
        rows = np.repeat(np.arange(len(A)), counts)
        t = (np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]) / counts[rows]
        owners = None if of is None else of[rows]
        touch = ~self.are_free(A[rows] + t[:, None] * (B - A)[rows], owners)
        good = np.ones(len(A), np.bool_)
        good[rows[touch]] = False
        if self._moves_are_known:
            left = np.flatnonzero(good)
            owners = None if of is None else of[left]
            _count(self.proofs, owners, len(left))
            found = self.check.motion(A[left], B[left])
            good[left] = found.free
            if self._proves_loops:
                # A proof ends where a loop does not close, which the check knows.
                is_open = np.flatnonzero(found.reason == MotionReason.NOT_PROVEN)
                some = None if owners is None else owners[is_open]
                is_free = self.are_free(found.q[is_open], some)
                is_open = is_open[is_free]
                if len(is_open):
                    self.is_proven[0 if owners is None else owners[is_open]] = False
                good[left[is_open]] = True
            return good
        return good & self.are_free(B, of)

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
        for _ in range(MOST_HALVINGS):
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
            lost[row[~is_done | (half > ASTRAY_PART * whole)]] = True
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


def _count(counts: npt.NDArray[np.int64], of: Owners, rows: int) -> None:
    """Count rows of problems; all are of the first one where there is no `of`."""
    if of is None:
        counts[0] += rows
    else:
        counts += np.bincount(of, minlength=len(counts))
