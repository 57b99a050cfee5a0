"""The frames that can be dragged in a page, and which solver places each of them."""

from __future__ import annotations

from typing import Final

from armillary.kinematics.moving_links import moving_links
from armillary.kinematics.state import State
from armillary.model.end_effectors import frames_by_use
from armillary.model.workcell import Workcell
from armillary.view.target_solver import reaches_poses

__all__ = ["solver_names"]

MOST_SOLVERS: Final = 60
"""Most solvers of a page: each is some kilobytes of text, a closed form up to 100."""


def solver_names(cell: Workcell, state: State) -> dict[str, str]:
    """Return for each frame that joints move the frame whose solver places it.

    Frames of one link that reach whole poses share the solver of the first of them.
    They are in the order of `frames_by_use`.

    Args:
        cell: Whose frames.
        state: What is attached to what.
    """
    moving = moving_links(cell)
    found: dict[str, str] = {}
    firsts: dict[int, str] = {}
    for name in frames_by_use(cell):
        row = moving.fixed_to(state.tree, cell.frame(name).link).row
        if not row:  # the world
            continue
        if reaches_poses(cell, name):
            found[name] = firsts.setdefault(row, name)
        else:
            found[name] = name
        if len({*found.values()}) == MOST_SOLVERS:
            break
    return found
