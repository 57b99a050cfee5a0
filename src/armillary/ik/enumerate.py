"""All answers that a search finds: many starts for each target, the like merged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from armillary.errors import ShapeError
from armillary.ik.method import Candidates
from armillary.ik.query import Query
from armillary.ik.reason import Reason
from armillary.kinematics.joint_vector import distinct

Array = npt.NDArray[np.float64]

APART = 1e-3  # answers of which no joint differs by more are the same [m or rad]
AT_ONCE = 65536
START_SEED = 314159


def search_all(
    search: Callable[[Query], Candidates], query: Query, span: tuple[Array, Array]
) -> Candidates:
    """Return the distinct answers to targets, as many as there are at most.

    Args:
        search: Finds a candidate for each target from the start in `seed`.
        query: The targets; `starts` starts are tried for each, the same ones.
        span: Between which vectors starts lie.

    Raises:
        ShapeError: There is no start.
    """
    n, starts = len(span[0]), query.starts
    if starts < 1:
        raise ShapeError(f"all needs at least 1 start, not {starts}.")
    seeds = np.random.default_rng(START_SEED).uniform(*span, (starts, n))
    found: list[tuple[Array, Array]] = []
    piece = max(1, AT_ONCE // starts)
    for k in range(0, len(query.targets), piece):
        count = len(query.targets[k : k + piece])
        rows = np.repeat(np.arange(k, k + count), starts)
        part = search(query.at(rows, seed=np.tile(seeds, (count, 1))))
        shape = count, starts
        for q, residual, success in zip(
            part.q.reshape(*shape, n),
            part.residual.reshape(*shape, 2),
            part.success.reshape(shape),
            strict=True,
        ):
            solved = np.flatnonzero(success)
            kept = solved[distinct(q[solved], APART)]
            found.append((q[kept], residual[kept]))
    return _padded(found, n)


def _padded(found: list[tuple[Array, Array]], n: int) -> Candidates:
    """Return as many candidates for each target as any has, NaN where there are not."""
    shape = len(found), max((len(q) for q, _ in found), default=0)
    q, residual = np.full((*shape, n), np.nan), np.full((*shape, 2), np.nan)
    reason = np.full(shape, Reason.NOT_FOUND, np.int8)
    for k, (vectors, remains) in enumerate(found):
        q[k, : len(vectors)] = vectors
        residual[k, : len(vectors)] = remains
        reason[k, : len(vectors)] = Reason.SOLVED
    return Candidates(q=q, reason=reason, residual=residual)
