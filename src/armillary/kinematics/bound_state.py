"""States that come from elsewhere, checked against a cell."""

from __future__ import annotations

from typing import Any

from armillary.errors import StateError, quote
from armillary.kinematics.state import State
from armillary.model.workcell import Workcell

__all__ = ["bound_state"]


def bound_state(cell: Workcell, state: Any) -> State:
    """Return a state that came from elsewhere as one of a cell.

    Raises:
        StateError: It is not a `State`, or has another number of joints.
        UnknownName: It names a manipulator or frame that is not in the cell.
    """
    if not isinstance(state, State):
        raise StateError(
            f"Here a State is needed, not {quote(state)}; cell.home is one, and "
            "cell.home.replace(q=q) one with joints at q."
        )
    return state.bound(cell)
