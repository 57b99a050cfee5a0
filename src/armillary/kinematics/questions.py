"""The questions to a cell that are kernels of joint positions.

Each function takes a cell and names, and returns a kernel; `armillary.Cell` has them as
methods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.errors import printable, unknown
from armillary.kinematics.bound_kernel import AnyKernel
from armillary.kinematics.inputs import Inputs
from armillary.kinematics.jacobian import (
    Twist,
    acceleration_program,
    jacobian_program,
    velocity_program,
)
from armillary.kinematics.kernels import Joints, KernelOptions, frame_list
from armillary.kinematics.poses import FORMS, pose_error_program, poses_program
from armillary.kinematics.state import State
from armillary.model.frame import FrameRef
from armillary.model.mount import WORLD
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell
from armillary.trace import Program

__all__ = [
    "acceleration",
    "bias_acceleration",
    "fk",
    "jacobian",
    "pose_error",
    "velocity",
]

MOST_SHOWN: Final = 3
"""Frames that the name of a kernel lists."""


def fk(
    cell: Workcell,
    frames: str | Sequence[str],
    *,
    relative_to: str = WORLD,
    joints: Joints = None,
    state: State | None = None,
    form: str = "matrix",
    dtype: npt.DTypeLike = np.float64,
) -> AnyKernel:
    """Return the kernel of forward kinematics: q to the poses of frames.

    Args:
        cell: What has the frames.
        frames: A frame, `name` or `manipulator/name`, or a list of them.
        relative_to: The frame in which the poses are given.
        joints: Names of the joints that q holds, in that order; the others stay at
            home, or as in `state`. By default all, in the order of `joint_names`.
        state: Whose attachments and moved bases count; q remains an input. By
            default the cell as it was built. Another grip compiles nothing where
            the same frame holds what is between the frames.
        form: `matrix`, `quaternion` (w x y z, then the origin) or
            `dual_quaternion` (real part, then dual part, each w x y z).
        dtype: float64, or float32 for twice the rate at single precision.

    Returns:
        A kernel (..., n) -> (..., 4, 4) for one frame, (..., k, 4, 4) for a list of
        k; (7,) or (8,) in place of (4, 4) in the other forms. q in m or rad.

    Raises:
        UnknownName: A frame, joint or form does not exist.
        ModelError: A bare name is not unique, or `frames` is an empty list.
        StateError: The state is not one of this cell.
    """
    options = KernelOptions(
        cell=cell, joints=joints, state=state, relative_to=relative_to, dtype=dtype
    )
    single, names = isinstance(frames, str), frame_list(frames, "fk")
    _check_form(form)

    def at() -> list[FrameRef]:
        return [cell.frame(name) for name in (relative_to, *names)]

    def make(tree: Tree, selection: Inputs) -> Program:
        to, *ends = at()
        title = _title("fk", options, names)
        return poses_program(
            tree, ends, to, single=single, form=form, selection=selection, name=title
        )

    return options.kernel(("fk", names, single, relative_to, form), at, make)


def jacobian(
    cell: Workcell,
    frames: str | Sequence[str],
    *,
    relative_to: str = WORLD,
    point: str | npt.ArrayLike | None = None,
    axes: str | None = None,
    joints: Joints = None,
    state: State | None = None,
    dtype: npt.DTypeLike = np.float64,
) -> AnyKernel:
    """Return the kernel of a Jacobian: q to the twist per unit rate of each joint.

    Args:
        cell: What has the frames.
        frames: Whose twist: a frame, or a list of them.
        relative_to: Relative to which frame.
        point: The frame whose origin, taken as fixed to the frame asked about, gives
            the linear part; or a point in the frame asked about [m], shape (3,), for
            each of which a kernel is compiled. By default that frame's own origin.
        axes: The frame in whose axes it is written; by default `relative_to`.
        joints: As for `fk`; they give the columns.
        state: As for `fk`; the joints of what is attached count for its parent.
        dtype: As for `fk`.

    Returns:
        A kernel (..., n) -> (..., 6, n), for a list of k (..., k, 6, n): linear
        [m/s], then angular [rad/s].

    Raises:
        UnknownName: A frame or joint does not exist.
        ModelError: A bare name is not unique, or `frames` is an empty list.
        StateError: The state is not one of this cell.
    """
    options = KernelOptions(
        cell=cell, joints=joints, state=state, relative_to=relative_to, dtype=dtype
    )
    single, names = isinstance(frames, str), frame_list(frames, "jacobian")
    twists = tuple(options.twist(name, point, axes) for name in names)

    def make(tree: Tree, selection: Inputs) -> Program:
        title = _title("jacobian", options, names)
        return jacobian_program(tree, twists, selection, single=single, name=title)

    def at() -> list[FrameRef]:
        return [frame for twist in twists for frame in twist]

    return options.kernel(("jacobian", twists, single), at, make)


def velocity(
    cell: Workcell,
    frame: str,
    *,
    relative_to: str = WORLD,
    point: str | npt.ArrayLike | None = None,
    axes: str | None = None,
    joints: Joints = None,
    state: State | None = None,
) -> AnyKernel:
    """Return the kernel of a twist: (q, qd) to J qd; arguments as for `jacobian`.

    Returns:
        A kernel (..., n), (..., n) -> (..., 6): linear [m/s], angular [rad/s].
    """
    options = KernelOptions(
        cell=cell, joints=joints, state=state, relative_to=relative_to
    )
    twist = options.twist(frame, point, axes)
    return _of_twist("velocity", velocity_program, options, twist)


def acceleration(
    cell: Workcell,
    frame: str,
    *,
    relative_to: str = WORLD,
    point: str | npt.ArrayLike | None = None,
    axes: str | None = None,
    joints: Joints = None,
    state: State | None = None,
) -> AnyKernel:
    """Return the kernel of an acceleration: (q, qd, qdd) to J qdd + J' qd.

    The derivative is that seen in `relative_to`: the linear part is the second
    derivative of the point's position there. Arguments are as for `jacobian`.

    Returns:
        A kernel of three (..., n) -> (..., 6): linear [m/s^2], angular [rad/s^2].
    """
    options = KernelOptions(
        cell=cell, joints=joints, state=state, relative_to=relative_to
    )
    twist = options.twist(frame, point, axes)
    program = partial(acceleration_program, bias=False)
    return _of_twist("acceleration", program, options, twist)


def bias_acceleration(
    cell: Workcell,
    frame: str,
    *,
    relative_to: str = WORLD,
    point: str | npt.ArrayLike | None = None,
    axes: str | None = None,
    joints: Joints = None,
    state: State | None = None,
) -> AnyKernel:
    """Return the kernel of J' qd: the acceleration at steady joint rates.

    Arguments are as for `jacobian`.

    Returns:
        A kernel (..., n), (..., n) -> (..., 6): linear [m/s^2], angular [rad/s^2].
    """
    options = KernelOptions(
        cell=cell, joints=joints, state=state, relative_to=relative_to
    )
    twist = options.twist(frame, point, axes)
    program = partial(acceleration_program, bias=True)
    return _of_twist("bias_acceleration", program, options, twist)


def pose_error(
    cell: Workcell,
    frame: str,
    *,
    relative_to: str = WORLD,
    joints: Joints = None,
    state: State | None = None,
    form: str = "matrix",
) -> AnyKernel:
    """Return the kernel of a pose error: (q, target) to the twist that corrects it.

    Held for a unit of time, the twist moves the frame onto the target, along a
    screw with an angle of at most pi: X_target = X exp(V), in the axes of `frame`.

    Args:
        cell: What has the frames.
        frame: Which frame is to be at the target.
        relative_to: The frame in which the target is given.
        joints: As for `fk`.
        state: As for `fk`.
        form: Of the target: `matrix`, `quaternion` or `dual_quaternion`, these of
            any length and either sign.

    Returns:
        A kernel (..., n), (..., 4, 4) -> (..., 6): linear [m], angular [rad]; with
        (7,) or (8,) in place of (4, 4) in the other forms.

    Raises:
        UnknownName: A frame, joint or form does not exist.
        ModelError: A bare name is not unique.
    """
    _check_form(form)
    at = cell.frame(frame), cell.frame(relative_to)

    def make(tree: Tree, selection: Inputs) -> Program:
        return pose_error_program(tree, *at, selection, form=form)

    options = KernelOptions(cell=cell, joints=joints, state=state)
    return options.kernel(("pose_error", at, form), lambda: at, make)


def _of_twist(
    name: str,
    program: Callable[[Tree, Twist, Inputs], Program],
    options: KernelOptions,
    twist: Twist,
) -> AnyKernel:
    """Return the kernel of a program of a twist; `name` identifies the question."""

    def make(tree: Tree, selection: Inputs) -> Program:
        return program(tree, twist, selection)

    return options.kernel((name, twist), lambda: twist, make)


def _title(question: str, options: KernelOptions, names: Sequence[str]) -> str:
    """Return how a kernel is called, which says what it is of."""
    cell = options.cell
    shown = ", ".join(map(cell.qualified, names[:MOST_SHOWN]))
    if len(names) > MOST_SHOWN:
        shown += f" and {len(names) - MOST_SHOWN} more"
    to = cell.qualified(options.relative_to)
    to = "" if to == WORLD else f" relative to {to}"
    return printable(f"{question} of {shown}{to} in {cell.name}")


def _check_form(form: str) -> None:
    if form not in FORMS:
        raise unknown("form of a pose", form, FORMS)
