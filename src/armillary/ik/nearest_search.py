"""The nearest of several answers that searches find from `near`, around it, anywhere.

The first start is `near`, with a step that is pulled to it. What ends farther than
CLOSE is compared with what is found from starts around the vector and anywhere; for
redundant arms the best is then drawn to the vector, by searches from half of the way.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from armillary.ik.problem import IKProblem
from armillary.ik.whole_turns import nearest_turns
from armillary.kernel.search import SearchOptions, SearchResult
from armillary.kernel.search_layout import CLOSE, INVALID, SOLVED, STOPPED

__all__ = ["LOCAL", "nearest_found", "recounted", "solved", "turn_near"]

Array = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]

# From `near` itself: late given up, for nothing else is as near.
LOCAL = SearchOptions(steps=60, stale_from=24, stale_factor=0.9, starts=1)
# From elsewhere: one of many.
ELSEWHERE = SearchOptions(steps=30, stale_from=8, starts=1)
NEAR_AT_ONCE = 256  # targets: not many more are begun after a deadline
SPREADS = (0.2, 0.5, 1.0, 1.5)  # how far starts are from `near` [m or rad]
EACH = 3  # starts of each spread
RANDOM = 8  # starts anywhere
HALVINGS = 3


def nearest_found(
    search: Callable[[Array, SearchOptions, Array], SearchResult],
    rows: Array,
    near: Array,
    problem: IKProblem,
    random_seed: int,
    distance: float,
) -> SearchResult:
    """Return for each target what a search from `near` finds, or nearer answers.

    Where that ends farther than CLOSE, or fails, further starts are tried, whole turns
    are added, and the answer with the least sum of squares of steps is taken.

    Args:
        search: Takes targets, a search_options and starts.
        rows: Targets, shape (count, m).
        near: Joint positions within limits, shape (count, n).
        problem: What they are for.
        random_seed: Another number gives other further starts.
        distance: As far from a target counts as reached [m].
    """
    found = search(rows, LOCAL, near)
    steps = np.abs(found.unknowns - near)
    if not found.failures and steps.max(initial=0.0) <= CLOSE:
        return found  # the case of servo loops
    if _stopped(found):
        return found
    is_solved = solved(found)
    # what is farther than CLOSE, or NaN, is looked at again
    close = (steps <= CLOSE).all(axis=1)
    left = np.flatnonzero(~(is_solved & close) & (found.endings[:, 0] != INVALID))
    left = left[is_solved[left] | ~problem.out_of_reach(rows[left], distance)]
    if not left.size:
        return found
    starts = _starts(problem, random_seed)
    for k in range(0, left.size, NEAR_AT_ONCE):
        part = left[k : k + NEAR_AT_ONCE]
        if _improve(search, rows[part], near[part], problem, starts, found, part):
            break
    return recounted(found)


def _starts(problem: IKProblem, random_seed: int) -> tuple[Array, Array]:
    """Return starts as steps from `near` and as vectors, each of shape (k, n)."""
    low, high = problem.start_range
    around, anywhere = _draws(len(low), random_seed)
    scale = np.minimum(1.0, (high - low) / np.pi)
    return around * scale, low + anywhere * (high - low)


@lru_cache(maxsize=64)
def _draws(n: int, random_seed: int) -> tuple[Array, Array]:
    """Return random steps, of each of SPREADS, and vectors between 0 and 1."""
    rng = np.random.default_rng([random_seed, n])
    spread = np.repeat(SPREADS, EACH)[:, np.newaxis]
    around = spread * rng.uniform(-1.0, 1.0, (len(spread), n))
    return around, rng.uniform(0.0, 1.0, (RANDOM, n))


def _improve(
    search: Callable[[Array, SearchOptions, Array], SearchResult],
    rows: Array,
    near: Array,
    problem: IKProblem,
    starts: tuple[Array, Array],
    found: SearchResult,
    at: Places,
) -> bool:
    """Write over some of what was found the nearest answer that more starts find.

    Returns whether the deadline ended that.
    """
    # All starts of a target in a row: some around `near`, then some anywhere.
    count, n = near.shape
    offsets, vectors = starts
    seeds = np.concatenate(
        [
            near[:, np.newaxis] + offsets,
            np.broadcast_to(vectors, (count, *vectors.shape)),
        ],
        axis=1,
    )
    width = seeds.shape[1]
    seeds = np.clip(seeds.reshape(-1, n), *problem.limits)
    others = search(np.repeat(rows, width, axis=0), ELSEWHERE, seeds)
    best = found.at(at)
    turn_near(best, near, problem)
    distance = _distance(best, near)
    repeated = np.repeat(near, width, axis=0)
    turn_near(others, repeated, problem)
    distances = _distance(others, repeated).reshape(count, width)
    k = distances.argmin(axis=1)
    better = np.flatnonzero(distances[np.arange(count), k] < distance)
    best.take(better, others.at(better * width + k[better]))
    # On the manifold of answers of a redundant arm, half of the way to `near` leads
    # off it by the square of the way only: a search from there ends nearer.
    for _ in range(HALVINGS if problem.is_redundant and not _stopped(others) else 0):
        distance = _distance(best, near)
        seeds = 0.5 * (best.unknowns + near)
        closer = search(rows, ELSEWHERE, seeds)
        better = _distance(closer, near) < distance
        best.take(np.flatnonzero(better), closer.at(better))
    found.take(at, best)
    return _stopped(others)


def _stopped(found: SearchResult) -> bool:
    """Return whether a search was stopped by its deadline."""
    return bool((found.endings[:, 0] == STOPPED).any())


def turn_near(found: SearchResult, near: Array, problem: IKProblem) -> SearchResult:
    """Add whole turns to what was found, and return it."""
    found.unknowns[:] = nearest_turns(
        found.unknowns, near, problem.limits, problem.turning
    ).clip(*problem.limits)
    return found


def _distance(found: SearchResult, near: Array) -> Array:
    """Return the sums of squares of steps, infinite where there is no answer."""
    squares = ((found.unknowns - near) ** 2).sum(axis=1)
    return np.where(solved(found), squares, np.inf)


def solved(found: SearchResult) -> Truths:
    """Return which targets have an answer, shape (count,)."""
    return np.asarray(found.endings[:, 0] == SOLVED)


def recounted(found: SearchResult) -> SearchResult:
    """Return a result that was written over, its failures counted again."""
    return found._replace(failures=int((~solved(found)).sum()))
