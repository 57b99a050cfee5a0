"""Why loops are closed or are not."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.kernel.references import vectorize
from armillary.kinematics.closing.solver import last_on_way, solved_near
from armillary.kinematics.closing.stages import block_programs
from armillary.kinematics.ending import Ending
from armillary.model.workcell import Workcell

__all__ = ["LoopReason", "loop_reasons"]

Array = npt.NDArray[np.float64]

TRIES: Final = 16
"""Places from which other assemblies are looked for, where a branch has none."""
TIGHT: Final = 1e-9
"""How far loops stay open at the edge by rounding alone, in parts of their size."""
FLAT: Final = 3e-3
"""Greatest determinant at the edge of a branch, in parts of that at its seed."""
STEEP: Final = 1e3
"""Least rate there, in parts of the fastest at the seed, if there is no determinant."""


class LoopReason(Ending):
    """How the loops of a row were closed, or why they were not."""

    CLOSED = 0, "closed"
    CANNOT_CLOSE = 1, "cannot close: no assembly was found at these positions"
    OTHER_BRANCH = 2, "closed on another branch only: a singularity is between"
    SINGULAR = 3, "singular: at the edge of where loops close"
    INVALID = 4, "a position is not a finite number"


def loop_reasons(cell: Workcell, q: Array, seed: Array) -> npt.NDArray[np.int8]:
    """Return why loops are not closed on a branch at rows of q, shape (rows,).

    Args:
        cell: Whose loops.
        q: Positions of the independent joints, shape (rows, n) [m or rad].
        seed: Positions of all joints where the branch begins, shape (n + m,).
    """
    reason = np.full(len(q), LoopReason.CANNOT_CLOSE, np.int8)
    reason[_at_edge(cell, q, seed)] = LoopReason.SINGULAR
    rng = np.random.default_rng(0)
    units = np.array(cell.loop_system.units[cell.loop_system.count :])
    passive = seed[cell.loop_system.count :]
    for _ in range(TRIES):
        left = np.flatnonzero(reason == LoopReason.CANNOT_CLOSE)
        noise = rng.uniform(-1.0, 1.0, (len(left), len(passive)))
        found, _ = solved_near(cell, q[left], passive + np.pi * units * noise)
        is_closed = np.isfinite(found).all(axis=-1)
        reason[left[is_closed]] = LoopReason.OTHER_BRANCH
    reason[~np.isfinite(q).all(axis=-1)] = LoopReason.INVALID
    return reason


def _at_edge(cell: Workcell, q: Array, seed: Array) -> npt.NDArray[np.bool_]:
    """Return where q is at the edge of what straight ways reach, shape (rows,).

    There two assemblies meet in one that is singular, whose rates are not finite. From
    the last assembly on the way, Newton's method finds one at q that is singular or
    nearly so; or it does not converge, but leaves loops open by rounding alone.
    """
    system = cell.loop_system
    found, residual = solved_near(cell, q, last_on_way(cell, q, seed))
    is_closed = np.isfinite(found).all(axis=-1)
    is_edge = ~is_closed & (residual < TIGHT * max(system.sizes))
    rows = np.hstack([q, found])[is_closed]
    is_flat = np.zeros(len(rows), np.bool_)
    for number, block in enumerate(system.blocks):
        implicit = block_programs(cell, number).implicit
        joints = list(block.inputs), list(block.unknowns)
        with np.errstate(all="ignore"):
            rates, reciprocal = vectorize(implicit, *(rows[:, k] for k in joints))
            rates_0, reciprocal_0 = vectorize(implicit, *(seed[k] for k in joints))
        # Reciprocals of determinants are 0 where rows are more than unknowns, so that
        # rates decide there. What is NaN counts as flat.
        is_flat |= ~(np.abs(reciprocal_0) >= FLAT * np.abs(reciprocal))
        fastest = np.abs(rates).max(axis=(1, 2))
        is_flat |= ~(fastest <= STEEP * np.abs(rates_0).max())
    is_edge[is_closed] = is_flat
    return is_edge
