"""Proofs that no way joins joint positions, by a few joints that decide it.

Where at most three joints move, all of them are looked at. Else a way is still
impossible where some pairs of links, whose distances depend on one to three joints
alone, keep these from their goal, whatever the others do: a hand that cannot pass its
forearm. So each such group of joints is looked at with its pairs.

The positions of these joints within limits are cut into boxes. With the distance d of a
pair of convex shapes at the middle of a box, below 0 where they overlap, and v_j how
fast their points approach each other at most for unit rates of joint j, the distance is
at most

    d + sum_j v_j h_j

in all of a box that reaches h_j to both sides: the depth of an overlap is the least
width of the difference of the shapes, and its support function falls by no more than
points move. Where that is within the margin, the box is blocked, whatever else touches.
Boxes for which d - sum_j v_j h_j of all pairs is above the margin are free. The others
are halved; of many, only those of the deepest wall between the start and the goal, as
it appears in the middles of boxes. There is no way if boxes that are not blocked do not
lead from the start to a goal, by common faces: where two boxes have an edge alone in
common, it lies in two more, and if these are blocked links touch there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.collision.check import CollisionCheck
from armillary.collision.check_tables import CheckTables
from armillary.kernel.search import is_over

__all__ = ["MOST_JOINTS", "separating_pairs"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]

MOST_JOINTS: Final = 3
"""How many joints are looked at together."""

ROWS: Final = 60_000
"""Joint positions whose distances are computed at most, for each group of joints."""

ROWS_FOR_ALL: Final = 15_000
"""After so many, only boxes of a wall are looked at."""

DEPTHS: Final = 16
"""How many depths of walls are tried on each grid."""

LESS_DEEP: Final = 0.8
"""The factor from one depth of a wall that is tried to the next."""

AT_ONCE: Final = 512
"""So many between two looks at the clock."""

CELLS: Final = 1 << 22
"""Boxes of the finest grid."""

FINER: Final = 4.0
"""How many times finer than the finest grid the boxes of a wall are cut at last."""

DEPTH_GAP: Final = 5e-4
"""By how much depths are taken to be less than they are computed, as a part of the sum
of the radii of both shapes; the search for them ends within 1e-4 of their size."""

BLOCKED, MIXED, FREE = 0, 1, 2


class _DecidingJoints(NamedTuple):
    """Joints that are looked at, and the pairs that depend on no others.

    Attributes:
        joints: Their numbers, shape (m,).
        pairs: The columns of these pairs in `CollisionCheck.distances`, shape (p,).
    """

    joints: Indices
    pairs: Indices


def separating_pairs(
    check: CollisionCheck,
    limits: tuple[Array, Array],
    is_limited: Truths,
    start: Array,
    goals: Array,
    deadline: int,
) -> Indices | None:
    """Return pairs that are proven to keep a start from all goals; None if none are.

    Args:
        check: What must not touch; without closed loops, and not by triangles.
        limits: Least and greatest joint positions [m or rad], shape (n,) each.
        is_limited: Which joints cannot reach the goal beyond these, shape (n,); others
            are not looked at.
        start: Joint positions, shape (n,).
        goals: The same, shape (k, n).
        deadline: When to stop [ns], 0 for never.

    Returns:
        Columns of `check.distances`.
    """
    rates = check.approach_rates(*limits)
    for group in _groups(rates, limits[0] < limits[1], is_limited):
        if _are_separated(check, limits, rates, group, start, goals, deadline):
            return group.pairs
    return None


def _groups(
    rates: Array, moving: Truths, is_limited: Truths
) -> Iterator[_DecidingJoints]:
    """Yield the groups of joints that are looked at, the smaller first.

    rates: How fast pairs approach each other at most, shape (k, n). Those of which that
        is not known prove nothing.
    """
    rates = np.where(moving, rates, 0.0)
    depends = rates != 0.0
    counts = depends.sum(axis=1)
    is_part = (counts > 0) & np.isfinite(rates).all(axis=1)
    if moving.sum() <= MOST_JOINTS:
        if is_part.any() and is_limited[moving].all():
            yield _DecidingJoints(np.flatnonzero(moving), np.flatnonzero(is_part))
        return
    is_part &= counts <= MOST_JOINTS
    is_part &= ~(depends & ~is_limited).any(axis=1)
    few = np.unique(depends[is_part], axis=0)
    for joints in few[np.argsort(few.sum(axis=1), kind="stable")]:
        pairs = np.flatnonzero(is_part & ~(depends & ~joints).any(axis=1))
        yield _DecidingJoints(np.flatnonzero(joints), pairs)


def _are_separated(
    check: CollisionCheck,
    limits: tuple[Array, Array],
    rates: Array,
    group: _DecidingJoints,
    start: Array,
    goals: Array,
    deadline: int,
) -> bool:
    """Return whether the pairs of a group keep a start from all goals."""
    middles = _Middles.of(check, limits, rates, group, start)
    joints, rows, deepest = group.joints, 0, np.inf
    ends = (np.vstack([start, goals])[:, joints] - middles.lower) / middles.spans
    boxes = _Boxes.of(len(joints))
    while True:
        counts = np.array(boxes.state.shape)
        at = np.clip(np.floor(ends * counts).astype(np.int64), 0, counts - 1)
        first, last = tuple(at[0]), tuple(at[1:].T)
        # Only what the start leads to is looked at.
        is_left = boxes.reached & (boxes.state == MIXED)
        is_last = is_left.size << len(joints) > CELLS
        if rows + is_left.sum() > ROWS_FOR_ALL:
            deepest, is_wall = _wall(boxes.depths, first, last, deepest, deadline)
            # The smallest boxes must be small enough to be blocked there.
            finer = FINER * (CELLS / is_left.size) ** (1.0 / len(joints))
            if deepest < middles.moves(counts).min() / finer:
                return False
            is_left &= is_wall
        elif _reached(boxes.state == FREE, first)[last].any():
            return False
        left = np.argwhere(is_left)
        if not len(left):
            return False
        if is_last and deepest < np.inf:
            return middles.are_blocked(left, counts, deadline)
        rows += len(left)
        if rows > ROWS:
            return False
        for part in _parts(left):
            if is_over(deadline):
                return False
            boxes.note(part, *middles.of_boxes(part, counts))
        boxes = boxes._replace(reached=_reached(boxes.state != BLOCKED, first))
        if not boxes.reached[last].any():
            return True
        if is_last:
            return False
        boxes = boxes.halved(middles.longest(counts))


class _Middles(NamedTuple):
    """What is known of the distances in boxes by those in their middles.

    Attributes:
        check: What must not touch.
        group: The joints that are looked at, and their pairs.
        start: Where the others are, shape (n,).
        lower: Least positions of the joints [m or rad], shape (m,).
        spans: From these to the greatest, shape (m,).
        reach: How far pairs approach each other at most from the middle of the box of
            all positions, by each joint [m], shape (p, m).
        gaps: How much less depths may be than they are computed [m], shape (p,).
    """

    check: CollisionCheck
    group: _DecidingJoints
    start: Array
    lower: Array
    spans: Array
    reach: Array
    gaps: Array

    @classmethod
    def of(
        cls,
        check: CollisionCheck,
        limits: tuple[Array, Array],
        rates: Array,
        group: _DecidingJoints,
        start: Array,
    ) -> _Middles:
        """Return what is known, by the rates of approach of all pairs and joints."""
        joints, pairs = group
        lower, spans = limits[0][joints], (limits[1] - limits[0])[joints]
        reach = rates[np.ix_(pairs, joints)] * (0.5 * spans)
        gaps = _depth_gaps(check.tables, len(check.pairs))[pairs]
        return cls(check, group, start, lower, spans, reach, gaps)

    def moves(self, counts: Indices) -> Array:
        """Return how far pairs approach each other in a box at most [m], shape (p,)."""
        return (self.reach / counts).sum(axis=1)

    def longest(self, counts: Indices) -> Indices:
        """Return the axes on which boxes are cut: joints that move links far."""
        greatest = (self.reach / counts).max(axis=0)
        return np.flatnonzero(greatest > 0.5 * greatest.max())

    def of_boxes(self, which: Indices, counts: Indices) -> tuple[Array, Array, Array]:
        """Return by how much less and more pairs are apart in boxes than the margin.

        Args:
            which: The numbers of some boxes on each axis, shape (k, m).
            counts: How many boxes there are on each axis, shape (m,).

        Returns:
            Of each box and pair: what all of the box exceeds, what nothing in it
            exceeds, and by how much they overlap in the middle at least [m], (k, p).
        """
        joints, pairs = self.group
        Q = np.tile(self.start, (len(which), 1))
        Q[:, joints] = self.lower + (which + 0.5) / counts * self.spans
        apart = self.check.distances_of(pairs, Q) - self.check.margin
        moves = self.moves(counts)
        return apart - moves, apart + (moves + self.gaps), -(apart + self.gaps)

    def are_blocked(self, left: Indices, counts: Indices, deadline: int) -> bool:
        """Return whether boxes are blocked, each cut as often as needed.

        left: Their numbers on each axis, shape (k, m).
        """
        rows = 0
        while len(left):
            rows += len(left)
            if rows > ROWS:
                return False
            is_open = np.ones(len(left), np.bool_)
            for part, found in zip(_parts(left), _parts(is_open), strict=True):
                if is_over(deadline):
                    return False
                _, most, depths = self.of_boxes(part, counts)
                if (depths.max(axis=1) <= 0.0).any():
                    return False
                found[:] = (most > 0.0).all(axis=1)
            left = left[is_open]
            for axis in self.longest(counts):
                left, counts = np.repeat(left, 2, axis=0), counts.copy()
                left[:, axis] *= 2
                left[1::2, axis] += 1
                counts[axis] *= 2
        return True


def _parts(rows: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """Return views of as many rows as are looked at between two looks at the clock."""
    return np.split(rows, range(AT_ONCE, len(rows), AT_ONCE))


class _Boxes(NamedTuple):
    """A grid of boxes of joint positions.

    Attributes:
        state: Whether they are blocked, free, or neither for all that is known.
        depths: How deep pairs overlap in their middles or, where those are of before
            they were halved, near them; minus infinity where that is not known [m].
        reached: To which the start leads by boxes that are not blocked.
    """

    state: npt.NDArray[np.int8]
    depths: Array
    reached: Truths

    @classmethod
    def of(cls, joints: int) -> _Boxes:
        """Return one box of all positions."""
        shape = (1,) * joints
        state, depths = np.full(shape, MIXED, np.int8), np.full(shape, -np.inf)
        return cls(state, depths, np.ones(shape, np.bool_))

    def note(self, which: Indices, least: Array, most: Array, depths: Array) -> None:
        """Note what the distances in the middles of some boxes tell.

        which: Their numbers on each axis, shape (k, m). For others see `of_boxes`.
        """
        is_free, is_blocked = (least > 0.0).all(axis=1), (most <= 0.0).any(axis=1)
        at = tuple(which.T)
        self.state[at] = np.where(is_blocked, BLOCKED, np.where(is_free, FREE, MIXED))
        self.depths[at] = depths.max(axis=1)

    def halved(self, axes: Indices) -> _Boxes:
        """Return them cut in two along axes."""
        parts = list[npt.NDArray[Any]](self)
        for axis in axes.tolist():
            parts = [np.repeat(each, 2, axis=axis) for each in parts]
        return _Boxes(*parts)


def _depth_gaps(tables: CheckTables, count: int) -> Array:
    """Return how much less depths may be than they are computed, of each pair, (k,).

    It grows with the sizes of shapes, so that it is right for arms of any size.
    """
    # Formulas with half spaces, whose radii are infinite, have no gap.
    radii = np.where(np.isfinite(tables.pairs.radii), tables.pairs.radii, 0.0)
    of_links = np.zeros(len(tables.first) - 1)
    owners = np.repeat(np.arange(len(of_links)), np.diff(tables.first))
    np.maximum.at(of_links, owners, radii)
    gaps = np.full(count, 2.0 * DEPTH_GAP * of_links.max(initial=0.0))
    gaps[tables.moving] = DEPTH_GAP * of_links[tables.links].sum(axis=1)
    return gaps


def _wall(
    depths: Array,
    start: tuple[int, ...],
    goals: tuple[Indices, ...],
    deepest: float,
    deadline: int,
) -> tuple[float, Truths]:
    """Return a thin wall of boxes between a start and goals, as deep as there is one.

    It is all around what the start leads to by boxes that are less deep.

    Args:
        depths: See `_Boxes`.
        start: A box.
        goals: Boxes, by the numbers of each axis.
        deepest: How deep one was by the middles of larger boxes [m]; in those of
            smaller ones it may be deeper.
        deadline: When to stop [ns], 0 for never: of fine grids each depth takes long.

    Returns:
        Its depth [m], and which boxes it is of; none where links that touch in the
        middles of boxes do not separate them, or where none is known in time.
    """
    depth = min(deepest / LESS_DEEP**3, float(depths.max()))
    for _ in range(DEPTHS):
        if is_over(deadline):
            break
        inside = _reached(depths < depth, start)
        # Where the start's box is as deep, nothing is around what it leads to.
        if not (depth > 0.0 and inside[start]):
            break
        if not inside[goals].any():
            wall = _with_neighbours(_with_neighbours(inside) & ~inside) & ~inside
            return depth, wall
        depth *= LESS_DEEP
    return 0.0, np.zeros(depths.shape, np.bool_)


def _with_neighbours(truths: Truths) -> Truths:
    """Return where one of these boxes is, or shares a face with one."""
    found = truths.copy()
    for axis in range(truths.ndim):
        grown, given = found.swapaxes(0, axis), truths.swapaxes(0, axis)
        grown[1:] |= given[:-1]
        grown[:-1] |= given[1:]
    return found


def _reached(is_open: Truths, start: tuple[int, ...]) -> Truths:
    """Return the boxes to which one leads by common faces of open ones.

    Runs of open boxes along the last axis are joined with those beside them: of those
    that touch, each takes the least number, until all that are joined have the same.
    """
    if not is_open[start]:
        return np.zeros(is_open.shape, np.bool_)
    begins = is_open.copy()
    begins[..., 1:] &= ~is_open[..., :-1]
    runs = np.cumsum(begins, dtype=np.int32).reshape(is_open.shape)
    pairs = [np.zeros((2, 0), np.int32)]
    for axis in range(is_open.ndim - 1):
        opened, numbers = is_open.swapaxes(0, axis), runs.swapaxes(0, axis)
        both = opened[1:] & opened[:-1]
        first = both.copy()
        first[..., 1:] &= ~both[..., :-1]  # two runs touch all along
        pairs.append(np.stack([numbers[1:][first], numbers[:-1][first]]))
    joined, least = np.concatenate(pairs, axis=1), np.arange(runs.flat[-1] + 1)
    while True:
        labels = least[joined]
        is_left = labels[0] != labels[1]
        if not is_left.any():
            return is_open & (least == least[runs[start]])[runs]
        joined, labels = joined[:, is_left], labels[:, is_left]
        np.minimum.at(least, labels.max(axis=0), labels.min(axis=0))
        while (least != (lower := least[least])).any():
            least = lower
