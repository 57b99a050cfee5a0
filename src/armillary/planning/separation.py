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
are halved. There is no way if boxes that are not blocked do not lead from the start to
a goal, by common faces: where two boxes have an edge alone in common, it lies in two
more, and if these are blocked links touch there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

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

AT_ONCE: Final = 512
"""So many between two looks at the clock."""

CELLS: Final = 1 << 21
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
    joints, pairs = group
    lower, spans = limits[0][joints], (limits[1] - limits[0])[joints]
    gaps = _depth_gaps(check.tables, len(check.pairs))[pairs]
    # Of each pair and joint, in the box of all positions.
    reach = rates[np.ix_(pairs, joints)] * (0.5 * spans)
    ends = (np.vstack([start, goals])[:, joints] - lower) / spans
    state = np.full((1,) * len(joints), MIXED, np.int8)
    rows = 0
    while True:
        counts = np.array(state.shape)
        at = np.clip(np.floor(ends * counts).astype(np.int64), 0, counts - 1)
        reached = _reached(state, at[0])
        is_there = reached[tuple(at[1:].T)]
        if not is_there.any():
            return True
        known = _reached(np.where(state == FREE, state, BLOCKED), at[0])
        if known[tuple(at[1:].T)].any():
            return False
        # Only what the start leads to is looked at.
        left = np.argwhere(reached & (state == MIXED))
        rows += len(left)
        if rows > ROWS:
            return False
        moves = (reach / counts).sum(axis=1)
        for first in range(0, len(left), AT_ONCE):
            if is_over(deadline):
                return False
            part = left[first : first + AT_ONCE]
            Q = np.tile(start, (len(part), 1))
            Q[:, joints] = lower + (part + 0.5) / counts * spans
            distances = check.distances_of(pairs, Q)
            far = (distances + (moves + gaps)).min(axis=1)
            near = (distances - moves).min(axis=1)
            found = np.where(near > check.margin, FREE, MIXED)
            found = np.where(far <= check.margin, BLOCKED, found)
            state[tuple(part.T)] = found
        if state.size << len(joints) > CELLS:
            return False
        # Joints that move links far are cut the finer.
        greatest = (reach / counts).max(axis=0)
        for axis in np.flatnonzero(greatest > 0.5 * greatest.max()):
            state = np.repeat(state, 2, axis=axis)


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


def _reached(state: npt.NDArray[np.int8], first: Indices) -> npt.NDArray[np.bool_]:
    """Return the boxes to which one leads by common faces, all of them not blocked."""
    shape = tuple(size + 2 for size in state.shape)
    padded = np.zeros(shape, np.bool_)
    inner = (slice(1, -1),) * state.ndim
    padded[inner] = state != BLOCKED
    is_open = padded.ravel()
    reached = np.zeros(len(is_open), np.bool_)
    strides = np.cumprod([1, *shape[:0:-1]])
    here = np.array([np.ravel_multi_index(tuple(first + 1), shape)])
    here = here[is_open[here]]
    while len(here):
        reached[here] = True
        near = np.concatenate([here + s for k in strides for s in (k, -k)])
        here = np.unique(near[is_open[near] & ~reached[near]])
    return reached.reshape(shape)[inner]
