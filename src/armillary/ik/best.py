"""The best answer for a purpose: of all that are found, then along what is free."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from armillary.ik.method import Candidates
from armillary.ik.query import Query
from armillary.kernel import Kernel

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Local = Callable[[Query], Candidates]
"""Finds an answer to each target close to `near`."""

# Several answers are improved for a few rounds, then the best of them to the end.
MOST_DESCENTS, FIRST_ROUNDS, ROUNDS = 24, 8, 60
FIRST_MOVE = 0.3  # the most that a joint is drawn at first [m or rad]
GROWTH, DECAY = 1.5, 0.4
SMALLEST_MOVE = 1e-3


def least_of(
    answers: Candidates, query: Query, kernel: Kernel, local: Local
) -> tuple[Array, Truths]:
    """Return the answer of least value for each target, and which have one.

    Answers that are not complete are improved along the freedom that targets leave.

    Args:
        answers: To the targets.
        query: The targets.
        kernel: Of the purpose.
        local: Searches from given vectors.
    """
    count, width, n = answers.q.shape
    some: Truths = np.asarray(answers.success.any(axis=1))
    if not some.any():
        return np.full((count, n), np.nan), some
    values: Array = kernel(answers.q)[0]
    values = np.where(answers.success & ~np.isnan(values), values, np.inf)
    few = 1 if answers.complete else min(MOST_DESCENTS, width)
    order = np.argsort(values, axis=1, kind="stable")[:, :few]
    q = np.take_along_axis(answers.q, order[..., None], axis=1)
    values = np.take_along_axis(values, order, axis=1)
    if not answers.complete:
        at = np.nonzero(np.isfinite(values))
        q[at], values[at] = descend(
            q[at], values[at], query.at(at[0]), kernel, local, FIRST_ROUNDS
        )
    rows, k = np.arange(count, dtype=np.int64), values.argmin(axis=1)
    q, values = q[rows, k], values[rows, k]
    if not answers.complete:
        q[some], _ = descend(
            q[some], values[some], query.at(some), kernel, local, ROUNDS
        )
    return q, some


def descend(
    q: Array,
    value: Array,
    query: Query,
    kernel: Kernel,
    local: Local,
    rounds: int,
) -> tuple[Array, Array]:
    """Return answers of lower value along the freedom that the targets leave.

    Each round draws the answers down the gradient and keeps what is lower; how far it
    draws grows with success and shrinks without.

    Args:
        q: Answers, shape (count, n).
        value: Their values, shape (count,).
        query: The targets that they reach.
        kernel: Of the purpose.
        local: Searches from given vectors.
        rounds: Most of them.
    """
    q, value = q.copy(), value.copy()
    move = np.full(len(q), FIRST_MOVE)
    for _ in range(rounds):
        going = np.flatnonzero(move > SMALLEST_MOVE)
        if not going.size or query.is_late:
            break
        _, slope = kernel(q[going])
        largest = np.abs(slope).max(axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            way = np.where(largest > 0.0, slope / largest, 0.0)
        near = q[going] - move[going, None] * way
        found = local(query.at(going, near=near))
        new, _ = kernel(found.q[:, 0])
        lower = found.success[:, 0] & (new < value[going])
        q[going[lower]], value[going[lower]] = found.q[lower, 0], new[lower]
        move[going] *= np.where(lower, GROWTH, DECAY)
    return q, value
