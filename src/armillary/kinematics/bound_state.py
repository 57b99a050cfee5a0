"""States of a cell: the one that it starts in, and those that come from elsewhere."""

from __future__ import annotations

from typing import Any

from armillary.errors import StateError, quote
from armillary.kinematics.closing.branch import Branch
from armillary.kinematics.closing.branches import Branches
from armillary.kinematics.state import State
from armillary.model.fields import kept
from armillary.model.workcell import Workcell

__all__ = ["bound_state", "branch_of", "home"]


def home(cell: Workcell) -> State:
    """Return the state in which a cell starts, with joints at `home_q`."""
    return kept(cell, "home", lambda: State(q=cell.home_q).bound(cell))


def branch_of(state: State) -> Branch | None:
    """Return the branch of the loops of a state, None without loops."""
    if not state.passive.size:
        return None
    return Branches.of(state.cell).named(state.positions.tolist())[1]


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
