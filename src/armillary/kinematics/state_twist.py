"""How frames move in a state: by the rates of joints, and with bases that move."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armillary.kinematics.bound_state import bound_state
from armillary.kinematics.jacobian import Twist, velocity
from armillary.kinematics.kernels import named_twist
from armillary.kinematics.placement import placed_frame
from armillary.kinematics.state import State, link_poses
from armillary.model.frame import FrameRef
from armillary.model.mount import WORLD
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell
from armillary.spatial.twist import move_twist, turn
from armillary.spatial.vector import subtract, transpose

__all__ = ["twist", "twist_in"]

Array = npt.NDArray[np.float64]


def twist(
    cell: Workcell,
    frame: str,
    state: State,
    *,
    relative_to: str = WORLD,
    point: str | npt.ArrayLike | None = None,
    axes: str | None = None,
) -> Array:
    """Return the twist of a frame in a state: linear [m/s], then angular [rad/s].

    It follows from the rates of joints, the velocities of bases, and the
    attachments: what is attached moves with its holder. No kernel is compiled.

    Args:
        cell: What has the frames.
        frame: Whose twist.
        state: Where everything is, and how it moves.
        relative_to: Relative to which frame.
        point: The frame whose origin, taken as fixed to `frame`, gives the linear
            part; by default the origin of `frame`.
        axes: The frame in whose axes it is written; by default `relative_to`.

    Returns:
        Shape (6,).

    Raises:
        UnknownName: A frame does not exist.
        StateError: The state is not one of this cell.
    """
    named = named_twist(cell, frame, relative_to, point, axes)
    return twist_in(bound_state(cell, state), named)


def twist_in(state: State, twist: Twist) -> Array:
    """Return the twist of a frame in a state, shape (6,).

    J qd, and what the free bases add that carry the frame and `relative_to`.
    """
    total = np.zeros(6)
    if state.qd.any():
        rates = enumerate(state.qd.tolist())
        total += velocity(state.tree, state.positions.tolist(), twist, rates)
    bases = [_root(state.tree, at) for at in (twist.frame, twist.relative_to)]
    if state.base_velocities and bases[0] != bases[1]:
        total += _of_base(state, bases[0], twist) - _of_base(state, bases[1], twist)
    return total


def _root(tree: Tree, at: FrameRef) -> int:
    """Return the manipulator that carries a frame and is on the world itself."""
    return next(reversed(tree.bases_among(tree.ancestors(at.link))), -1)


def _of_base(state: State, k: int, twist: Twist) -> Array:
    """Return the twist of the point as if fixed to base k: (v + w x (p - p_k), w)."""
    cell = state.cell
    name = cell.manipulators[k].name if k >= 0 else ""
    for V in state.base_velocities:
        if V.manipulator == name:
            poses = link_poses(state)
            base = placed_frame(cell, name)
            to_point = subtract(
                poses.pose(twist.point).position, poses.pose(base).position
            )
            at_point = move_twist((*V.linear, *V.angular), to_point)
            R_EW = transpose(poses.pose(twist.axes).rotation)
            return np.array(turn(R_EW, at_point), dtype=np.float64)
    return np.zeros(6)
