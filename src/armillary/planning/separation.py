"""Proofs that no way joins joint positions, for two or three joints that move.

The joint positions within limits are cut into boxes. With the distance d of a pair of
convex shapes at the middle of a box, below 0 where they overlap, and v_j how fast their
points approach each other at most for unit rates of joint j, the distance is at most

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

from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.collision.check import CollisionCheck
from armillary.collision.check_tables import CheckTables
from armillary.kernel.search import is_over

__all__ = ["FEWEST_JOINTS", "MOST_JOINTS", "are_separated"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

FEWEST_JOINTS, MOST_JOINTS = 2, 3
"""How many joints may move."""

ROWS: Final = 60_000
"""Joint positions whose distances are computed at most."""

AT_ONCE: Final = 4096
"""So many between two looks at the clock."""

CELLS: Final = 1 << 21
"""Boxes of the finest grid."""

DEPTH_GAP: Final = 5e-4
"""By how much depths are taken to be less than they are computed, as a part of the sum
of the radii of both shapes; the search for them ends within 1e-4 of their size."""

BLOCKED, MIXED, FREE = 0, 1, 2


def are_separated(
    check: CollisionCheck,
    limits: tuple[Array, Array],
    start: Array,
    goals: Array,
    deadline: int,
) -> bool:
    """Return whether it is proven that no way leads from a start to any goal.

    Args:
        check: What must not touch; without closed loops, and not by triangles.
        limits: Least and greatest joint positions [m or rad], shape (n,) each, finite
            for two or three joints, and equal for all others.
        start: Joint positions, shape (n,).
        goals: The same, shape (k, n).
        deadline: When to stop [ns], 0 for never.
    """
    lower, upper = limits
    moving = np.flatnonzero(lower < upper)
    rates = check.approach_rates(lower, upper)[:, moving]
    if not (FEWEST_JOINTS <= len(moving) <= MOST_JOINTS and rates.size):
        return False
    gaps = _depth_gaps(check.tables, len(check.pairs))
    spans = (upper - lower)[moving]
    reach = rates @ (0.5 * spans)  # of each pair, in the box of all positions
    ends = (np.vstack([start, goals])[:, moving] - lower[moving]) / spans
    state = np.full((1,) * len(moving), MIXED, np.int8)
    rows = 0
    while True:
        count = state.shape[0]
        at = np.clip(np.floor(ends * count).astype(np.int64), 0, count - 1)
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
        for first in range(0, len(left), AT_ONCE):
            if is_over(deadline):
                return False
            part = left[first : first + AT_ONCE]
            Q = np.tile(start, (len(part), 1))
            Q[:, moving] = lower[moving] + (part + 0.5) / count * spans
            distances = check.distances(Q)
            moves = reach / count
            far = (distances + (moves + gaps)).min(axis=1)
            near = (distances - moves).min(axis=1)
            found = np.where(near > check.margin, FREE, MIXED)
            found = np.where(far <= check.margin, BLOCKED, found)
            state[tuple(part.T)] = found
        if state.size << len(moving) > CELLS:
            return False
        for axis in range(len(moving)):
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
