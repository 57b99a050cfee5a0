"""Answers no joint of which is farther from `near` than a largest step.

The nearest answer has the least sum of squares, and of a redundant arm another may have
a smaller largest step. What is found nowhere is a jump.

If one joint may be given so that the others have a formula (`free_joint.py`), the
answers within the box of allowed steps are curves along that joint. All branches at
VALUES of it, then finer ones around those that are least beyond the box, find what
there is.

Else it is sought by projections in turns (von Neumann 1950): q is cut to the box, a
local search leads from there back to the target, and so on. The box is a part of the
allowed one, so that few turns end within that, and every other search begins beyond
what was cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError
from armillary.forks import IMPORT_LOCK
from armillary.ik.method import Candidates
from armillary.ik.numeric import NumericSearch
from armillary.ik.query import IKQuery
from armillary.ik.reason import JUMP, LIMITS
from armillary.ik.targets import as_reals

if TYPE_CHECKING:  # imported where it is asked for
    from armillary.ik.free_joint import FreeJoint

__all__ = ["allowed_steps", "is_within", "within_steps"]

Array = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

VALUES: Final = np.linspace(0.0, 1.0, 64)
"""Values of a given joint that are tried first, as parts of its allowed steps."""

MINIMA: Final = 4  # about how many of them finer values are tried
AROUND: Final = np.linspace(-1.0, 1.0, 9)
"""These, as parts of the distance between two before."""

ROUNDS: Final = 12
FINER: Final = 4.0  # each round is as many times as fine as the one before
UNJUDGED: Final = 4  # rounds after which what cannot come within the box is given up
MOST_FALL: Final = 3.0  # see `_least_possible`
AT_ONCE: Final = 256  # targets

TURNS: Final = (
    *[(0.7, 2.0), (0.7, 0.0)] * 4,
    *[(0.9, 2.0), (0.9, 0.0)] * 6,
    *[(0.97, 2.0), (0.97, 0.0)] * 8,
)
"""The part of the allowed steps that q is cut to in each turn, and by how much of the
way there the search begins beyond that.
"""

FARTHEST: Final = 2.0
"""Nothing is searched where the nearest answer is as many times as far as the corners
of the allowed steps. Of an answer that is surely the nearest, 1 would be enough.
"""

FEW: Final = 2
"""Turns where nothing is free, as answers stand alone, or all branches follow."""


def allowed_steps(largest_step: Any, near: Any, n: int) -> Array:
    """Return the largest step of joints, shape () or (..., n) [m or rad].

    Raises:
        ModelError: There is no `near` to step from.
        ShapeError: The shape does not fit, or a number is not above 0.
    """
    if near is None:
        raise ModelError(
            "largest_step= limits steps from near=, which is not given; write "
            "ik(targets, near=q, largest_step=0.1)."
        )
    steps = as_reals(largest_step, "largest_step")
    if steps.ndim and steps.shape[-1] not in {1, n}:
        raise ShapeError(
            f"largest_step has shape {steps.shape}; it is a number, or one for each of "
            f"{n} joints, shape ({n},) or (..., {n}), or for each target, (..., 1)."
        )
    if not (steps > 0.0).all():
        raise ShapeError("largest_step must be above 0, for each joint.")
    return steps


def is_within(q: Array, near: Any, most: Array) -> bool:
    """Return whether an answer to one target is within the allowed steps.

    Args:
        q: The answer, shape (n,).
        near: What it is to be near.
        most: As `allowed_steps` returns; of a batch it is never.
    """
    return bool(most.ndim <= 1 and (np.abs(q - near) <= most).all())


def within_steps(
    found: Candidates, numeric: NumericSearch | None, query: IKQuery, most: Array
) -> None:
    """Write over answers beyond largest steps others within them, or mark jumps.

    Args:
        found: The nearest answers, one for each target.
        numeric: The search, None where none is to be asked.
        query: Targets and `near`.
        most: As `allowed_steps` returns them.

    Raises:
        ShapeError: The steps do not fit the batch.
    """
    q = found.q[:, 0]
    try:
        steps = np.broadcast_to(most, (*query.batch, q.shape[1])).reshape(q.shape)
    except ValueError as error:
        raise ShapeError(
            f"largest_step of shape {most.shape} does not fit targets of batch "
            f"{query.batch}."
        ) from error
    assert query.near is not None
    near = np.broadcast_to(query.near, q.shape)
    is_far = (np.abs(q - near) > steps).any(axis=1)
    rows = np.flatnonzero(is_far & found.success[:, 0])
    if not rows.size:
        return
    found.reason[rows] = JUMP
    if numeric is None or not (numeric.problem.can_search and query.can_search):
        return
    with IMPORT_LOCK:
        from armillary.ik.free_joint import free_joint

    free = free_joint(numeric.problem) if numeric.problem.is_redundant else None
    is_quick = free is not None and free.is_quick
    few = is_quick or not numeric.problem.is_redundant
    _search(found, numeric, query, near, steps, rows, TURNS[:FEW] if few else TURNS)
    if free is None or not is_quick:
        return
    rows = rows[found.reason[rows, 0] == JUMP]
    for k in range(0, rows.size, AT_ONCE):
        _scan(found, free, query, near, steps, rows[k : k + AT_ONCE])


def _scan(
    found: Candidates,
    free: FreeJoint,
    query: IKQuery,
    near: Array,
    most: Array,
    rows: Whole,
) -> None:
    """Write over jumps to some targets answers within the steps, if there are any.

    Each branch is a curve q(v) along the value v of the given joint, and an answer is
    within the steps where its `_excess` is at most 0. That is sampled at VALUES; then
    finer values around its MINIMA least local minima are tried, ROUNDS times.
    """
    low, high = free.problem.limits
    low, high = np.maximum(near - most, low), np.minimum(near + most, high)
    rows = rows[(low[rows] <= high[rows]).all(axis=1)]
    first, last = (x[rows, free.place].reshape(-1, 1, 1) for x in (low, high))
    values = first + (last - first) * VALUES  # (count, 1, V), then (count, MINIMA, V)
    for turn in range(ROUNDS):
        every = free.every_at(query.at(rows), values.reshape(len(rows), -1))
        steps = most[rows, np.newaxis]
        apart = np.abs(every.q - near[rows, np.newaxis])
        inside = every.success & (apart <= steps).all(axis=2)
        good = inside.any(axis=1)
        if good.any():
            squares = np.where(inside, (apart * apart).sum(axis=2), np.inf)
            found.take(rows[good], every.chosen(squares.argmin(axis=1)), good)

        # Go on where nothing is found, from values beside which something may be.
        box = low[rows, np.newaxis], high[rows, np.newaxis]
        excess = _excess(every, *box, steps).reshape(*values.shape, -1).min(axis=-1)
        if turn == 0:
            best = _local_minima(excess).argpartition(MINIMA, axis=-1)[..., :MINIMA]
        else:
            best = excess.argmin(axis=-1)[..., np.newaxis]
        hopeful = np.isfinite(np.take_along_axis(excess, best, axis=-1))
        if turn >= UNJUDGED:
            hopeful &= _least_possible(excess, best) <= 0.0
        left = ~good & hopeful.any(axis=(1, 2))
        if not left.any() or query.is_late:
            break

        # Finer values reach to those on both sides of the best one: these are apart as
        # VALUES are at first, in each round by 1 / FINER of the round before.
        centre = np.take_along_axis(values, best, axis=-1)[left].reshape(-1, MINIMA, 1)
        rows, first, last = rows[left], first[left], last[left]
        spacing = (last - first) / (len(VALUES) - 1) * FINER**-turn
        values = np.clip(centre + spacing * AROUND, first, last)


def _excess(every: Candidates, low: Array, high: Array, steps: Array) -> Array:
    """Return how far answers are beyond a box, in parts of the allowed steps.

    max_j max(low_j - q_j, q_j - high_j) / steps_j, at most 0 inside. It is continuous
    along a branch, also where that leaves the limits of joints; without an answer it
    is infinite.

    Args:
        every: Candidates, q of shape (count, b, n).
        low: Least of each joint [m or rad], shape (count, 1, n).
        high: Greatest.
        steps: Allowed steps.

    Returns:
        Numbers of shape (count, b).
    """
    beyond = np.maximum(low - every.q, every.q - high)
    exists = every.success | (every.reason == LIMITS)
    return np.where(exists, (beyond / steps).max(axis=2), np.inf)


def _local_minima(excess: Array) -> Array:
    """Return numbers along the last axis, infinite where one beside is less."""
    least = excess.copy()
    least[..., 1:][excess[..., :-1] < excess[..., 1:]] = np.inf
    least[..., :-1][excess[..., 1:] < excess[..., :-1]] = np.inf
    return least


def _least_possible(excess: Array, at: Whole) -> Array:
    """Return how small a function may be beside some of its values.

    f_k - MOST_FALL * max |f_i+1 - f_i| over the two values on each side of k. Where it
    is convex it falls by no more than it changes between those; where a branch ends, as
    a square root does, by no more than 1 / (sqrt(2) - 1) = 2.4 times that.

    Args:
        excess: Values in order, infinite where there are none, shape (..., V).
        at: Places of those, shape (..., k).
    """
    known = np.isfinite(excess)
    both = known[..., 1:] & known[..., :-1]
    finite = np.where(known, excess, 0.0)
    change = np.where(both, np.abs(np.diff(finite, axis=-1)), -1.0)
    # Between values k and k + 1 is change k; of one alone nothing is known.
    sides = np.clip(at[..., None] + np.arange(-2, 2), 0, change.shape[-1] - 1)
    rise = np.take_along_axis(change[..., None, :], sides, axis=-1).max(axis=-1)
    there = np.take_along_axis(excess, at, axis=-1)
    return np.where(rise < 0.0, 0.0, there - MOST_FALL * np.maximum(rise, 0.0))


def _search(
    found: Candidates,
    numeric: NumericSearch,
    query: IKQuery,
    near: Array,
    most: Array,
    rows: Whole,
    turns: Sequence[tuple[float, float]],
) -> None:
    """Write over jumps to some targets answers within the steps, as far as found."""
    apart = ((found.q[rows, 0] - near[rows]) ** 2).sum(axis=1)
    rows = rows[apart <= FARTHEST**2 * (most[rows] ** 2).sum(axis=1)]
    q = found.q[rows, 0].copy()
    for part, beyond in turns:
        if not rows.size or query.is_late:
            break
        there, steps = near[rows], most[rows]
        inside = np.clip(q, there - part * steps, there + part * steps)
        local = numeric.local(query.at(rows, near=inside + beyond * (inside - q)))
        solved = local.success
        q = np.where(solved, local.q[:, 0], inside)
        good = solved[:, 0] & (np.abs(q - there) <= steps).all(axis=1)
        if good.any():
            found.take(rows[good], local, good)
            rows, q = rows[~good], q[~good]
