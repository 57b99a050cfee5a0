"""How frames move in a state: by the rates of joints, and with bases that move."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, quote
from armillary.kinematics.bound_state import bound_state
from armillary.kinematics.jacobian import Twist, velocity
from armillary.kinematics.placement import placed_frame
from armillary.kinematics.state import State
from armillary.model.frame import FrameRef
from armillary.model.link_poses import LinkPoses
from armillary.model.mount import WORLD
from armillary.model.tree import Tree
from armillary.model.workcell import WORLD_LINK, Workcell
from armillary.spatial.pose import Pose
from armillary.spatial.twist import move_twist, turn
from armillary.spatial.vector import subtract, transpose

__all__ = ["chosen_axes", "frame_list", "named_twist", "twist", "twist_in"]

Array = npt.NDArray[np.float64]


def frame_list(frames: str | Sequence[str], question: str) -> tuple[str, ...]:
    """Return the names of frames that are asked about, one or a list of them.

    question: What messages call it.

    Raises:
        ModelError: The list is empty, or holds anything but texts.
    """
    if isinstance(frames, str):
        return (frames,)
    try:
        names = tuple(frames)
    except TypeError as error:
        raise ModelError(
            f"{question} takes the name of a frame or a list of names, not "
            f"{quote(frames)}."
        ) from error
    if not names:
        raise ModelError(f"{question} needs at least one frame.")
    for name in names:
        _check_name(name)
    return names


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise ModelError(f"A frame is given by its name, a text, not {quote(name)}.")


def named_twist(
    cell: Workcell,
    frame: str,
    relative_to: str,
    point: str | npt.ArrayLike | None,
    axes: str | None,
) -> Twist:
    """Return which twist is asked for by names.

    Raises:
        UnknownName: A frame does not exist.
        ModelError: A bare name is not unique, a name is not a text, or a point is not
            three finite numbers.
    """
    for name in (frame, relative_to, axes):
        if name is not None:
            _check_name(name)
    return Twist(
        frame=cell.frame(frame),
        relative_to=cell.frame(relative_to),
        point=_point_of(cell, frame, point),
        axes=cell.frame(relative_to if axes is None else axes),
    )


def _point_of(
    cell: Workcell, frame: str, point: str | npt.ArrayLike | None
) -> FrameRef:
    """Return the frame whose origin is a point: a frame's, or one within a frame."""
    if point is None or isinstance(point, str):
        return cell.frame(frame if point is None else point)
    try:
        xyz = np.asarray(point, dtype=np.float64) + 0.0
    except (TypeError, ValueError):
        xyz = np.empty(0)
    if xyz.shape != (3,) or not np.isfinite(xyz).all():
        raise ModelError(
            "point= takes the name of a frame, or three finite numbers [m] in the "
            f"frame asked about; not {quote(point)}."
        )
    at = cell.frame(frame)
    return at._replace(pose=at.pose @ Pose.translation(*xyz.tolist()))


def chosen_axes(text: str, what: str) -> tuple[bool, bool, bool]:
    """Return which of x, y and z a text such as `xy` names.

    Raises:
        ModelError: It holds other letters, or one twice.
    """
    given: Any = text
    is_text = isinstance(given, str)
    if not is_text or not set(text) <= set("xyz") or len(set(text)) < len(text):
        raise ModelError(f"{what}= takes letters of 'xyz', each once; not '{text}'.")
    return "x" in text, "y" in text, "z" in text


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
            poses = LinkPoses(state.tree, state.positions.tolist(), WORLD_LINK)
            base = placed_frame(cell, name)
            to_point = subtract(
                poses.pose(twist.point).position, poses.pose(base).position
            )
            at_point = move_twist((*V.linear, *V.angular), to_point)
            R_EW = transpose(poses.pose(twist.axes).rotation)
            return np.array(turn(R_EW, at_point), dtype=np.float64)
    return np.zeros(6)
