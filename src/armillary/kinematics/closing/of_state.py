"""The passive joints of states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.errors import StateError, quote
from armillary.kinematics.closing.branches import Branches
from armillary.kinematics.closing.reasons import LoopReason, loop_reasons
from armillary.kinematics.closing.solver import solved_near, solved_on, walked
from armillary.kinematics.joint_vector import numbers_of
from armillary.model.workcell import Workcell

__all__ = ["bound_passive", "replaced_passive"]

Array = npt.NDArray[np.float64]

CLOSE: Final = 1e-6
"""How far given passive joints may be from closed loops [rad, or of their size]."""
EXACT: Final = 1e-12
"""How near they are kept as they are, in the same units: states come back equal."""


def bound_passive(
    cell: Workcell, q: Sequence[float], passive: Sequence[float]
) -> tuple[float, ...]:
    """Return given passive joints, or without any those on the branch of home.

    Raises:
        StateError: Loops are not closed there, or cannot be.
    """
    if len(passive):
        return checked_passive(cell, q, passive)
    return moved_passive(cell, q, cell.joints.home)


def replaced_passive(
    cell: Workcell, q: Sequence[float], before: Sequence[float], given: Any
) -> tuple[float, ...]:
    """Return the passive joints of a state whose joints are moved.

    Args:
        cell: Whose loops.
        q: Positions of the independent joints, shape (n,).
        before: Positions of all joints before that, shape (n + m,).
        given: Those of passive joints, shape (m,); None to follow from before.

    Raises:
        StateError: Loops are not closed there, or cannot be.
    """
    if given is not None:
        return checked_passive(cell, q, numbers_of(given, "passive").tolist())
    return moved_passive(cell, q, before)


def moved_passive(
    cell: Workcell, q: Sequence[float], start: Sequence[float]
) -> tuple[float, ...]:
    """Return passive joints where a way from closed positions leads.

    It is the straight one, or where that is blocked, another one on the same branch.

    Args:
        cell: Whose loops.
        q: Positions of the independent joints, shape (n,).
        start: Positions of all joints, loops closed, shape (n + m,).

    Raises:
        StateError: There is no way, or loops cannot be closed at q.
    """
    system = cell.loop_system
    if not system.blocks or tuple(q) == tuple(start[: system.count]):
        return tuple(start[system.count :])
    found = walked(cell, np.array(q), np.array(start))
    if not np.isfinite(found).all():  # around what blocks the straight way
        _, branch = Branches.of(cell).named(start)
        found, _ = solved_on(cell, branch, np.array(q))
    if not np.isfinite(found).all():
        names = ", ".join(map(quote, cell.joint_names[:8]))
        (number,) = loop_reasons(cell, np.array([q]), np.array(start))
        raise StateError(
            f"The loops cannot be closed on the way to q = {tuple(q)} ({names}). At q "
            f"the answer is: {LoopReason(int(number)).sentence}."
        )
    return tuple(found.tolist())


def checked_passive(
    cell: Workcell, q: Sequence[float], passive: Sequence[float]
) -> tuple[float, ...]:
    """Return given passive joints with loops closed exactly.

    Raises:
        StateError: There are too many or too few, or loops are not closed.
    """
    names = cell.passive_names
    if len(passive) != len(names):
        raise StateError(
            f"passive has {len(passive)} numbers; the loops of cell {quote(cell.name)} "
            f"determine {len(names)} joints: {', '.join(map(quote, names[:8]))}."
        )
    if not names:
        return ()
    found, _ = solved_near(cell, q, passive)
    units = np.array(cell.loop_system.units[cell.loop_system.count :])
    apart = np.abs(found - np.array(passive)) / units
    if not (apart < CLOSE).all():
        raise StateError(
            "The loops are not closed at these passive joints: passive = "
            f"{tuple(passive)}. Leave passive= out to have them follow q, or begin at "
            "one of cell.branches(state)."
        )
    if (apart < EXACT).all():
        return tuple(passive)
    return tuple(found.tolist())
