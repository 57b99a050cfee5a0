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
    joints = group.joints
    lower, spans = limits[0][joints], (limits[1] - limits[0])[joints]
    gaps = _depth_gaps(check.tables, len(check.pairs))[group.pairs]
    # Of each pair and joint, in the box of all positions.
    reach = rates[np.ix_(group.pairs, joints)] * (0.5 * spans)
    ends = (np.vstack([start, goals])[:, joints] - lower) / spans
    boxes = _Boxes.of(len(joints))
    rows, deepest = 0, np.inf
    while True:
        counts = np.array(boxes.state.shape)
        at = np.clip(np.floor(ends * counts).astype(np.int64), 0, counts - 1)
        first, last = tuple(at[0]), tuple(at[1:].T)
        moves = (reach / counts).sum(axis=1)
        # Only what the start leads to is looked at.
        is_left = boxes.reached & (boxes.state == MIXED)
        if rows + is_left.sum() > ROWS_FOR_ALL:
            deepest, is_wall = _wall(boxes.depths, first, last, deepest)
            # Boxes of the finest grid must be small enough to be blocked there.
            finer = (CELLS / is_left.size) ** (1.0 / len(joints))
            if deepest < moves.min() / finer:
                return False
            is_left &= is_wall
        elif _reached(boxes.state == FREE, first)[last].any():
            return False
        left = np.argwhere(is_left)
        rows += len(left)
        if not len(left) or rows > ROWS:
            return False
        for part in np.split(left, range(AT_ONCE, len(left), AT_ONCE)):
            if is_over(deadline):
                return False
            Q = np.tile(start, (len(part), 1))
            Q[:, joints] = lower + (part + 0.5) / counts * spans
            apart = check.distances_of(group.pairs, Q) - check.margin
            boxes.note(part, apart, moves, gaps)
        boxes = boxes._replace(reached=_reached(boxes.state != BLOCKED, first))
        if not boxes.reached[last].any():
            return True
        if is_left.size << len(joints) > CELLS:
            return False
        # Joints that move links far are cut the finer.
        greatest = (reach / counts).max(axis=0)
        boxes = boxes.halved(np.flatnonzero(greatest > 0.5 * greatest.max()))


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

    def note(self, which: Indices, apart: Array, moves: Array, gaps: Array) -> None:
        """Note what the distances in the middles of some boxes tell.

        Args:
            which: Their numbers on each axis, shape (k, m).
            apart: By how much distances of pairs exceed the margin [m], shape (k, p).
            moves: How far pairs approach each other in a box at most [m], shape (p,).
            gaps: How much less depths may be than they are computed [m], shape (p,).
        """
        is_free = (apart - moves > 0.0).all(axis=1)
        is_blocked = (apart + (moves + gaps) <= 0.0).any(axis=1)
        found = np.where(is_free, FREE, MIXED)
        at = tuple(which.T)
        self.state[at] = np.where(is_blocked, BLOCKED, found)
        self.depths[at] = -(apart + gaps).min(axis=1)

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
    depths: Array, start: tuple[int, ...], goals: tuple[Indices, ...], deepest: float
) -> tuple[float, Truths]:
    """Return a thin wall of boxes between a start and goals, as deep as there is one.

    It is all around what the start leads to by boxes that are less deep.

    Args:
        depths: See `_Boxes`.
        start: A box.
        goals: Boxes, by the numbers of each axis.
        deepest: No wall is deeper than this, by the middles of larger boxes [m].

    Returns:
        Its depth [m], and which boxes it is of; none where links that touch in the
        middles of boxes do not separate them.
    """
    depth = min(deepest, float(depths.max()))
    for _ in range(DEPTHS):
        inside = _reached(depths < depth, start)
        if depth > 0.0 and not inside[goals].any():
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
    """Return the boxes to which one leads by common faces of open ones."""
    reached = np.zeros(is_open.shape, np.bool_)
    reached[start] = is_open[start]
    # All of a line of open boxes is reached with one of them.
    lines = [_lines(is_open, axis) for axis in range(is_open.ndim)]
    count = -1
    while count < (count := int(reached.sum())):
        for numbers in lines:
            is_hit = np.zeros(int(numbers.max(initial=0)) + 1, np.bool_)
            is_hit[numbers[reached]] = True
            reached = is_hit[numbers] & is_open
    return reached


def _lines(is_open: Truths, axis: int) -> npt.NDArray[np.int32]:
    """Return of which line of open boxes along an axis each box is, by numbers."""
    along = is_open.swapaxes(axis, -1)
    ends = ~along
    ends[..., 0] = True
    numbers = np.cumsum(ends.ravel(), dtype=np.int32).reshape(along.shape)
    return numbers.swapaxes(axis, -1)
