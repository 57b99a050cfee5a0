"""All answers that a search finds: many starts for each target, the like merged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from armillary.ik.answers import Answers
from armillary.ik.reason import Reason
from armillary.ik.solution import Solution

Array = npt.NDArray[np.float64]
Searcher = Callable[[Array, Array], Solution]

APART = 1e-3  # answers of which no joint differs by more are the same [m or rad]
AT_ONCE = 65536
START_SEED = 314159


def search_all(
    search: Searcher,
    targets: Array,
    batch: tuple[int, ...],
    span: tuple[Array, Array],
    starts: int,
) -> Answers:
    """Return the distinct answers to targets, as many as there are at most.

    Args:
        search: Takes targets (k, ...) and a start for each (k, n); tries it alone.
        targets: Poses, shape (count, ...).
        batch: The shape of the batch that they are.
        span: Between which vectors starts lie.
        starts: How many; they are the same for each target.
    """
    n = len(span[0])
    seeds = np.random.default_rng(START_SEED).uniform(*span, (starts, n))
    found: list[Array] = []
    residuals: list[Array] = []
    piece = max(1, AT_ONCE // starts)
    for k in range(0, len(targets), piece):
        part = targets[k : k + piece]
        many = np.repeat(part, starts, axis=0)
        answer = search(many, np.tile(seeds, (len(part), 1)))
        shape = (len(part), starts)
        rows = zip(
            answer.q.reshape(*shape, n),
            answer.residual.reshape(*shape, 2),
            answer.success.reshape(shape),
            strict=True,
        )
        for q, residual, success in rows:
            kept = _distinct(q, success)
            found.append(q[kept])
            residuals.append(residual[kept])
    return _padded(found, residuals, batch, n)


def _distinct(q: Array, success: npt.NDArray[np.bool_]) -> list[int]:
    """Return the first of each kind of successful answers."""
    kept: list[int] = []
    for k in np.flatnonzero(success):
        if not kept or np.abs(q[kept] - q[k]).max(axis=1).min() > APART:
            kept.append(int(k))
    return kept


def _padded(
    found: list[Array], residuals: list[Array], batch: tuple[int, ...], n: int
) -> Answers:
    width = max((len(q) for q in found), default=0)
    count = len(found)
    q = np.full((count, width, n), np.nan)
    squares = np.full((count, width, 2), np.nan)
    reason = np.full((count, width), Reason.NOT_FOUND, np.int8)
    for k, (vectors, errors) in enumerate(zip(found, residuals, strict=True)):
        q[k, : len(vectors)] = vectors
        squares[k, : len(vectors), 0] = errors[:, 0] ** 2
        squares[k, : len(vectors), 1] = 4.0 * np.sin(0.5 * errors[:, 1]) ** 2
        reason[k, : len(vectors)] = Reason.SOLVED
    return Answers.of(batch, q, squares, reason)
