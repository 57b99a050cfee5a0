"""Answers no joint of which is farther from `near` than a largest step.

The nearest answer has the least sum of squares, and of a redundant arm another may have
a smaller largest step. That is sought by projections in turns (von Neumann 1950): q is
cut to the box of allowed steps, a local search leads from there back to the target, and
so on. The box is a part of the allowed one, so that few turns end within that, and
every other search begins beyond what was cut off. What is not found is a jump.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError
from armillary.ik.method import Candidates
from armillary.ik.numeric import NumericSearch
from armillary.ik.query import IKQuery
from armillary.ik.reason import JUMP
from armillary.ik.targets import as_reals

__all__ = ["allowed_steps", "is_within", "within_steps"]

Array = npt.NDArray[np.float64]

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

ALONE: Final = 2
"""Turns where nothing is free: answers stand alone, and others lead to the same."""


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
    if numeric is not None and numeric.problem.can_search and query.can_search:
        _search(found, numeric, query, near, steps, rows)


def _search(
    found: Candidates,
    numeric: NumericSearch,
    query: IKQuery,
    near: Array,
    most: Array,
    rows: npt.NDArray[np.int64],
) -> None:
    """Write over jumps to some targets answers within the steps, as far as found."""
    apart = ((found.q[rows, 0] - near[rows]) ** 2).sum(axis=1)
    rows = rows[apart <= FARTHEST**2 * (most[rows] ** 2).sum(axis=1)]
    q = found.q[rows, 0].copy()
    for part, beyond in TURNS if numeric.problem.is_redundant else TURNS[:ALONE]:
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
