"""Why loops are closed or are not."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.kinematics.closing.solver import solved_near
from armillary.kinematics.ending import Ending
from armillary.model.workcell import Workcell

__all__ = ["LoopReason", "loop_reasons"]

Array = npt.NDArray[np.float64]

TRIES: Final = 16
"""Places from which other assemblies are looked for, where a branch has none."""
TIGHT: Final = 1e-3
"""How far from closed loops are at least that are not said to be singular."""


class LoopReason(Ending):
    """How the loops of a row were closed, or why they were not."""

    CLOSED = 0, "closed"
    CANNOT_CLOSE = 1, "cannot close: no assembly was found at these positions"
    OTHER_BRANCH = 2, "closed on another branch only: a singularity is between"
    SINGULAR = 3, "singular: at the edge of where loops close"
    INVALID = 4, "a position is not a finite number"


def loop_reasons(cell: Workcell, q: Array, residual: Array) -> npt.NDArray[np.int8]:
    """Return why loops are not closed at rows of q, shape (rows,)."""
    rng = np.random.default_rng(0)
    home_passive = np.array(cell.home_passive)
    reach = np.pi * np.array(cell.loop_system.units[cell.loop_system.count :])
    other = np.zeros(len(q), np.bool_)
    for _ in range(TRIES):
        left = np.flatnonzero(~other)
        noise = rng.uniform(-1.0, 1.0, (len(left), len(home_passive)))
        found, _ = solved_near(cell, q[left], home_passive + reach * noise)
        other[left] = np.isfinite(found).all(axis=-1)
    size = max(cell.loop_system.sizes)
    reason = np.full(len(q), LoopReason.CANNOT_CLOSE, np.int8)
    reason[residual < TIGHT * size] = LoopReason.SINGULAR
    reason[other] = LoopReason.OTHER_BRANCH
    reason[~np.isfinite(q).all(axis=-1)] = LoopReason.INVALID
    return reason
