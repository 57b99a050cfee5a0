"""Paths made even: steps of joints that targets leave free, spread over neighbours."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from armillary.ik.method import Candidates
from armillary.ik.path import Path
from armillary.ik.query import Query
from armillary.ik.solution import Solution

__all__ = ["evened"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

NARROWEST = 2  # targets to either side that a mean is taken of
ROUNDS = 8
ENOUGH = 0.98  # a round that leaves more than this part of the squares of steps ends


def evened(
    path: Path,
    query: Query,
    local: Callable[[Query], Candidates],
    judge: Callable[[Candidates], Path],
    largest_step: float,
) -> Path:
    """Return a path on which joints that targets leave free move more evenly.

    The joint positions at each target are sought near the mean of those around it,
    first of many, which spreads a sudden motion widely, then of fewer. The result has
    no higher cost than the path.

    Args:
        path: Where to begin.
        query: Its targets.
        local: Finds answers close to `near`.
        judge: Tells the jumps of answers.
        largest_step: A larger step of a joint is a jump, over which a mean may not go
            [m or rad].
    """
    best, least = path, _cost(path.answer.q, largest_step)
    for _ in range(ROUNDS):
        before = least
        width = len(path.answer.q) // 2
        while width >= NARROWEST:
            for most in (np.inf, largest_step):
                if query.is_late:
                    break
                way = _nearer_to_means(best.answer, width, most, query, local)
                if way is None:
                    continue
                cost = _cost(way.q[:, 0], largest_step)
                if cost < least:
                    best, least = judge(way), cost
            width //= 2
        if least[0] == before[0] and least[1] > ENOUGH * before[1]:
            break
    return min(best, path, key=lambda each: each.cost)


def _cost(q: Array, largest_step: float) -> tuple[int, float]:
    """Return how many steps are large, and the sum of squares of the others."""
    steps = np.abs(np.diff(q, axis=0)).max(axis=1, initial=0.0)
    small = steps[steps <= largest_step]
    return len(steps) - len(small), float(small @ small)


def _nearer_to_means(
    answer: Solution,
    width: int,
    most: float,
    query: Query,
    local: Callable[[Query], Candidates],
) -> Candidates | None:
    """Return answers nearer to the means of those around them; None if one is lost.

    Args:
        answer: The answers to the targets.
        width: How many to either side a mean is taken of.
        most: The largest step over which a mean goes [m or rad].
        query: The targets.
        local: Finds answers close to `near`.
    """
    solved = answer.success
    near = _means(answer.q, width, _segments(answer.q, solved, most))
    found = local(query._replace(near=near))
    if not (found.success[:, 0] | ~solved).all():
        return None
    return Candidates(
        q=np.where(solved[:, None], found.q[:, 0], answer.q)[:, None],
        reason=np.where(solved, found.reason[:, 0], answer.reason)[:, None],
        residual=np.where(solved[:, None], found.residual[:, 0], answer.residual)[
            :, None
        ],
        steps=answer.steps[:, None],
        starts=answer.starts[:, None],
    )


def _segments(q: Array, solved: npt.NDArray[np.bool_], most: float) -> list[slice]:
    """Return runs of solved targets without a step of a joint beyond `most`."""
    steps = np.abs(np.diff(q, axis=0)).max(axis=1, initial=0.0)
    ends = (steps > most) | ~solved[1:] | ~solved[:-1]
    edges = [0, *(np.flatnonzero(ends) + 1).tolist(), len(q)]
    return [slice(a, b) for a, b in pairwise(edges)]


def _means(q: Array, width: int, segments: list[slice]) -> Array:
    """Return the means of q over `width` rows to either side, shape (count, n).

    Beyond its ends a segment goes on point-symmetrically, so that the ends stay.
    """
    means = q.copy()
    for rows in segments:
        part = q[rows]
        w = min(width, len(part) - 1)
        if w < 1:
            continue
        before, after = (
            2.0 * part[0] - part[w:0:-1],
            2.0 * part[-1] - part[-2 : -w - 2 : -1],
        )
        sums = np.cumsum(np.concatenate([before, part, after]), axis=0)
        sums = np.concatenate([np.zeros((1, q.shape[1])), sums])
        means[rows] = (sums[2 * w + 1 :] - sums[: -2 * w - 1]) / (2 * w + 1)
    return means
