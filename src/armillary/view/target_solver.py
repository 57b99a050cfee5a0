"""The inverse kinematics that places a frame where people drag it."""

from __future__ import annotations

from typing import Final

from armillary.ik.factory import solver_of
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.kinematics.state import State
from armillary.model.closed_form import ClosedForm
from armillary.model.mount import WORLD
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell

__all__ = ["reaches_poses", "target_solver"]

FULL: Final = 6
"""The coordinates of a pose."""


def reaches_poses(cell: Workcell, frame: str) -> bool:
    """Return whether so many joints move a frame that it can reach whole poses.

    Fewer reach positions only, as a rule.
    """
    tree = Tree.of(cell)
    ends = [cell.frame(WORLD), cell.frame(frame)]
    return len(tree.moving_joints(tree.between(ends))) >= FULL


def target_solver(
    cell: Workcell,
    frame: str,
    state: State,
    *,
    rotation: str,
    closed: ClosedForm | None = None,
) -> InverseKinematics:
    """Return the solver of a frame in the world.

    Args:
        cell: What has the frame.
        frame: The frame.
        state: Where bases are, what is attached, and which branch loops are on.
        rotation: The axes of the target about which rotations count, such as `xyz`.
        closed: A closed form of the user for this frame.

    Raises:
        ModelError: No joint moves the frame.
    """
    return solver_of(cell, frame, state=state, rotation=rotation, closed=closed)
