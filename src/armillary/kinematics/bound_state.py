"""States of a cell: that at home, those of users, and what follows from a state."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.errors import StateError, quote
from armillary.kinematics.closing.branch import Branch
from armillary.kinematics.closing.branches import Branches
from armillary.kinematics.state import State
from armillary.model.fields import kept
from armillary.model.workcell import Workcell

__all__ = ["bound_state", "branch_of", "home", "rates_of"]


def home(cell: Workcell) -> State:
    """Return the state in which a cell starts, with joints at `home_q`."""
    return kept(cell, "home", lambda: State(q=cell.home_q).bound(cell))


def branch_of(state: State) -> Branch | None:
    """Return the branch of the loops of a state, None without loops."""
    if not state.passive.size:
        return None
    return Branches.of(state.cell).named(state.positions.tolist())[1]


def rates_of(state: State) -> npt.NDArray[np.float64]:
    """Return the rates of all joints, shape (n,) [m/s or rad/s]; 0 where none are.

    It is read-only where the state has rates.
    """
    return state.qd if state.qd.size else np.zeros(len(state.q))


def bound_state(cell: Workcell, state: Any) -> State:
    """Return a state that came from elsewhere as one of a cell.

    Raises:
        StateError: It is not a `State`, or has other joints.
        UnknownName: It names a manipulator or frame that is not in the cell.
    """
    if not isinstance(state, State):
        raise StateError(
            f"Here a State is needed, not {quote(state)}; cell.home is one, and "
            "cell.home.replace(q=q) one with joints at q."
        )
    return state.bound(cell)
