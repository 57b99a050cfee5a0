"""All distinct answers to targets, as many as a search finds from many starts.

They are made sharp, with multiples of 2 pi taken out, and merged.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from armillary.errors import ShapeError
from armillary.ik.avoidance import found_from
from armillary.ik.method import Candidates
from armillary.ik.problem import IKProblem
from armillary.ik.query import IKQuery
from armillary.ik.reason import IN_COLLISION, NOT_FOUND, SOLVED
from armillary.ik.whole_turns import nearest_turns

__all__ = ["search_all"]

Array = npt.NDArray[np.float64]

# Answers of which no joint differs by more are the same: angles [rad], or lengths as a
# part of the arm's.
APART = 1e-3
SHARP = 1e-6  # error of answers that are compared, in the same units
STARTS_AT_ONCE = 65536
START_SEED = 314159


def search_all(
    asked: Candidates,
    search: Callable[[IKQuery], Candidates],
    query: IKQuery,
    problem: IKProblem,
) -> Candidates:
    """Return the distinct answers to targets, as many as there are at most.

    Answers that differ by whole turns of joints are one: that nearest to `near`, else
    to zero.

    Args:
        asked: The answers to a call; they come first.
        search: Finds a candidate for each target from the start in `seed`.
        query: The targets; `starts` starts are tried for each, the same ones.
        problem: What they are for.

    Raises:
        ShapeError: There is no start.
    """
    n, starts = len(problem.joints), query.starts
    if starts < 1:
        raise ShapeError(f"all needs at least 1 start, not {starts}.")
    rng = np.random.default_rng(START_SEED)
    seeds = rng.uniform(*_start_range(problem), (starts, n))
    found: list[tuple[Array, Array]] = []
    piece = max(1, STARTS_AT_ONCE // starts)
    while len(found) < len(query.targets):
        k = len(found)
        count = len(query.targets[k : k + piece])
        if query.is_late:
            count, starts = len(query.targets) - k, 0
        rows = slice(k, k + count)
        tried = found_from(
            np.tile(seeds[:starts], (count, 1, 1)), search, query.at(rows)
        )
        both = asked.at(rows).joined(tried)
        success = both.success | (both.reason == IN_COLLISION)
        q, residual = both.q, both.residual
        # Of equal answers the first is kept; whole turns are taken out before that.
        at = np.nonzero(success)
        q[at], residual[at] = _sharpened(
            q[at], residual[at], search, query.at(k + at[0], near=None), problem
        )
        near = np.zeros(n) if query.near is None else query.near
        near = np.clip(near, *problem.finite_limits)
        near = near[k : k + count, np.newaxis] if near.ndim > 1 else near
        q = problem.within(nearest_turns(q, near, problem.limits, problem.turning))
        for vectors, remains, solved in zip(q, residual, success, strict=True):
            some = np.flatnonzero(solved)
            distinct = some[problem.distinct(vectors[some], APART)]
            found.append((vectors[distinct], remains[distinct]))
    return _padded(found, n)


def _start_range(problem: IKProblem) -> tuple[Array, Array]:
    """Return the least and greatest starts, (n,) each: of turning joints one turn."""
    lower, upper = problem.start_range
    least = np.clip(-math.pi, lower, np.maximum(lower, upper - math.tau))
    least = np.where(problem.turning, least, lower)
    most = np.where(problem.turning, np.minimum(upper, least + math.tau), upper)
    return least, most


def _sharpened(
    q: Array,
    residual: Array,
    search: Callable[[IKQuery], Candidates],
    query: IKQuery,
    problem: IKProblem,
) -> tuple[Array, Array]:
    """Return answers so exact that equal and different ones can be distinguished.

    With a tolerance that is wide for the size of an arm, copies of an answer differ.

    Args:
        q: Answers, shape (count, n).
        residual: What remains there, shape (count, 2).
        search: As for `search_all`.
        query: The targets of these answers.
        problem: What they are for.
    """
    distance, angle = query.tolerance
    # Answers within the tolerance are apart by about as much, in parts of the arm.
    if max(distance / problem.size, angle) <= 10.0 * SHARP or not len(q):
        return q, residual
    tolerance = min(distance, SHARP * problem.size), min(angle, SHARP)
    sharp = search(query._replace(seed=q, tolerance=tolerance))
    # Targets out of reach, which the tolerance admits, are met as well as they can be.
    remains = sharp.residual[:, 0]
    good = np.asarray((remains <= query.tolerance).all(axis=1))[:, np.newaxis]
    return (
        np.where(good, sharp.q[:, 0], q),
        np.where(good, remains, residual),
    )


def _padded(found: list[tuple[Array, Array]], n: int) -> Candidates:
    """Return as many candidates for each target as any has, NaN where there are not."""
    shape = len(found), max((len(q) for q, _ in found), default=0)
    q, residual = np.full((*shape, n), np.nan), np.full((*shape, 2), np.nan)
    reason = np.full(shape, NOT_FOUND, np.int8)
    for k, (vectors, remains) in enumerate(found):
        q[k, : len(vectors)] = vectors
        residual[k, : len(vectors)] = remains
        reason[k, : len(vectors)] = SOLVED
    return Candidates(q=q, reason=reason, residual=residual)
