"""The questions to a cell that are kernels, and how frames of a state move and stand.

Each function takes a cell and names; `armillary.Cell` has them as methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, StateError, printable, quote, unknown
from armillary.forks import IMPORT_LOCK
from armillary.kernel import Kernel, shared_kernel
from armillary.kinematics.bound_kernel import AnyKernel, bind
from armillary.kinematics.inputs import Inputs
from armillary.kinematics.kernels import (
    Joints,
    KernelOptions,
    frame_list,
    named_twist,
    program_kernel,
)
from armillary.kinematics.placement import placed_frame
from armillary.kinematics.poses import FORMS, pose_error_program, poses_program
from armillary.kinematics.state import State, bound_state, branch_of, link_poses
from armillary.model.cell_parameters import named_parameters
from armillary.model.frame import FrameRef
from armillary.model.mount import WORLD
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell
from armillary.spatial.twist import move_twist, turn
from armillary.spatial.vector import subtract, transpose
from armillary.trace import Program

if TYPE_CHECKING:
    from armillary.kinematics.jacobian import Twist

__all__ = [
    "Between",
    "acceleration",
    "between",
    "bias_acceleration",
    "fk",
    "jacobian",
    "parameter_jacobian",
    "pose_error",
    "twist",
    "twist_in",
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
    parameters: Sequence[str] = (),
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
        parameters: Names of numbers of the cell, such as `elbow.precursor.x`, which are
            a second input p of shape (..., k), in their order; see `cell.parameters`.
            Another p compiles nothing.

    Returns:
        A kernel (..., n) -> (..., 4, 4) for one frame, (..., k, 4, 4) for a list of
        k; (7,) or (8,) in place of (4, 4) in the other forms. q in m or rad. With
        `parameters` it takes q and p.

    Raises:
        UnknownName: A frame, joint or form does not exist.
        ModelError: A bare name is not unique, or `frames` is an empty list.
        StateError: The state is not one of this cell.
    """
    options = KernelOptions(
        cell=cell,
        joints=joints,
        state=state,
        relative_to=relative_to,
        dtype=dtype,
        parameters=parameters,
    )
    single, names = isinstance(frames, str), frame_list(frames, "fk")
    _check_form(form)

    def at(cell: Workcell = cell) -> list[FrameRef]:
        return [cell.frame(name) for name in (relative_to, *names)]

    def make(tree: Tree, selection: Inputs) -> Program:
        to, *ends = at(tree.cell)
        title = _title("fk", options, names)
        return poses_program(
            tree, ends, to, single=single, form=form, selection=selection, name=title
        )

    return options.kernel(("fk", names, single, relative_to, form), at, make)


def jacobian(  # noqa: PLR0913
    cell: Workcell,
    frames: str | Sequence[str],
    *,
    relative_to: str = WORLD,
    point: str | npt.ArrayLike | None = None,
    axes: str | None = None,
    joints: Joints = None,
    state: State | None = None,
    dtype: npt.DTypeLike = np.float64,
    parameters: Sequence[str] = (),
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
        parameters: As for `fk`; for the twist per unit of each of them see
            `parameter_jacobian`.

    Returns:
        A kernel (..., n) -> (..., 6, n), for a list of k (..., k, 6, n): linear
        [m/s], then angular [rad/s].

    Raises:
        UnknownName: A frame or joint does not exist.
        ModelError: A bare name is not unique, or `frames` is an empty list.
        StateError: The state is not one of this cell.
    """
    options = KernelOptions(
        cell=cell,
        joints=joints,
        state=state,
        relative_to=relative_to,
        dtype=dtype,
        parameters=parameters,
    )
    with IMPORT_LOCK:
        from armillary.kinematics.jacobian import jacobian_program

    return _of_twists("jacobian", jacobian_program, options, frames, point, axes)


def parameter_jacobian(  # noqa: PLR0913
    cell: Workcell,
    frames: str | Sequence[str],
    parameters: Sequence[str],
    *,
    relative_to: str = WORLD,
    point: str | npt.ArrayLike | None = None,
    axes: str | None = None,
    joints: Joints = None,
    state: State | None = None,
    dtype: npt.DTypeLike = np.float64,
) -> AnyKernel:
    """Return the kernel of how frames move with numbers of the cell.

    Args:
        cell: What has the frames.
        frames: As for `jacobian`.
        parameters: Names of the k numbers, as for `fk`.
        relative_to: As for `jacobian`.
        point: As for `jacobian`.
        axes: As for `jacobian`.
        joints: As for `fk`.
        state: As for `fk`.
        dtype: As for `fk`.

    Returns:
        A kernel (..., n), (..., k) -> (..., 6, k) of q and parameters, for a list of
        f frames (..., f, 6, k): the twist per unit of each, linear [m], then angular
        [rad].

    Raises:
        UnknownName: A frame, joint or parameter does not exist.
        ModelError: A bare name is not unique, a list is empty, or a parameter cannot be
            an input.
        StateError: The state is not one of this cell.
    """
    options = KernelOptions(
        cell=cell,
        joints=joints,
        state=state,
        relative_to=relative_to,
        dtype=dtype,
        parameters=parameters,
    )
    if not named_parameters(cell, parameters):
        raise ModelError("parameter_jacobian needs one parameter at least.")
    with IMPORT_LOCK:
        from armillary.kinematics.jacobian import parameter_jacobian_program

    question, program = "parameter_jacobian", parameter_jacobian_program
    return _of_twists(question, program, options, frames, point, axes)


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
    with IMPORT_LOCK:
        from armillary.kinematics.jacobian import velocity_program

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
    with IMPORT_LOCK:
        from armillary.kinematics.jacobian import acceleration_program

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
    with IMPORT_LOCK:
        from armillary.kinematics.jacobian import acceleration_program

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


def _of_twists(
    name: str,
    program: Callable[..., Program],
    options: KernelOptions,
    frames: str | Sequence[str],
    point: str | npt.ArrayLike | None,
    axes: str | None,
) -> AnyKernel:
    """Return the kernel of a program of the twists of frames; `name` identifies it."""
    single, names = isinstance(frames, str), frame_list(frames, name)

    def named(cell: Workcell) -> tuple[Twist, ...]:
        return tuple(options.twist(frame, point, axes, cell) for frame in names)

    twists = named(options.cell)

    def make(tree: Tree, selection: Inputs) -> Program:
        title = _title(name, options, names)
        return program(tree, named(tree.cell), selection, single=single, name=title)

    def at() -> list[FrameRef]:
        return [frame for twist in twists for frame in twist]

    return options.kernel((name, twists, single), at, make)


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


# how frames move in a state: by the rates of joints, and with bases that move


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
        with IMPORT_LOCK:
            from armillary.kinematics.jacobian import velocity

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


# one pair of frames over many states


def between(
    cell: Workcell, frame: str, state: State, *, relative_to: str = WORLD
) -> Between:
    """Return the pose of one frame in another over many states.

    Args:
        cell: What has the frames.
        frame: Whose pose.
        state: A state with the attachments of them all.
        relative_to: In which frame.

    Raises:
        UnknownName: A frame does not exist.
        StateError: The state is not one of this cell.
    """
    return Between(cell, frame, relative_to, bound_state(cell, state))


class Between:
    """The pose of one frame in another, for all states that hold things alike.

    It is made by `cell.between`, which compiles the path between the two once. Bases
    on that path may stand anywhere, and loops be closed on any branch; a state in which
    another link holds one of the bases is refused, because the path is another.

    Attributes:
        kernel: From q to the pose, (..., n) -> (..., 4, 4), with the bases where they
            are, and loops closed on the branch, of the state that it was made of.
    """

    def __init__(
        self, cell: Workcell, frame: str, relative_to: str, state: State
    ) -> None:
        """Compile the path between two frames as it is in `state`."""
        self._cell = cell
        self._ends = cell.frame(frame), cell.frame(relative_to)
        self._names = frame, relative_to
        self._path = self._path_in(state.tree)
        n = len(cell.joint_names)
        bases = tuple(m for m in self._path if m in state.tree.movable)
        passive = state.tree.passive_joints(state.tree.between(self._ends))
        self._selection = Inputs(
            tuple(range(n)),
            tuple(state.positions.tolist()),
            bases=bases,
            passive=passive,
        )
        self._program = poses_program(
            state.tree,
            [self._ends[0]],
            self._ends[1],
            single=True,
            form="matrix",
            selection=self._selection,
        )
        kernel = program_kernel(
            cell, self._selection, self._program, branch=branch_of(state)
        )
        values = self._selection.values(state.tree)
        self.kernel: AnyKernel = bind(kernel, values)

    def __repr__(self) -> str:
        frame, relative_to = map(quote, self._names)
        return f"<pose of {frame} relative to {relative_to}>"

    def __call__(self, state: State) -> Array:
        """Return the pose in a state, shape (4, 4).

        Raises:
            StateError: Another link holds what is between the frames.
        """
        return self.many([state])[0]

    def many(self, states: Iterable[State]) -> Array:
        """Return the poses in k states, shape (k, 4, 4).

        Raises:
            StateError: Another link holds what is between the frames in one of them.
        """
        rows: list[Array] = []
        bases: list[Array] = []
        passive = list(self._selection.passive)
        for number, state in enumerate(states):
            bound = state.bound(self._cell)
            tree = bound.tree
            if self._path_in(tree) != self._path:
                raise StateError(
                    f"The path from '{self._names[1]}' to '{self._names[0]}' is not "
                    f"the same in state {number}: something on it was gripped or "
                    "released. Ask the cell again with that state."
                )
            rows.append(bound.positions)
            bases += self._selection.values(tree)
        n, m = len(self._cell.joint_names), len(self._cell.passive_names)
        x = np.array(rows, dtype=np.float64).reshape(len(rows), n + m)
        given = [np.array(bases)] if bases else []
        solved = [x[:, passive]] if passive else []
        return self._of_all_joints(*given, *solved, x[:, :n])

    @cached_property
    def _of_all_joints(self) -> Kernel:
        """Return the kernel of moved bases, passive joints and q, (...) -> (4, 4)."""
        return shared_kernel(self._program)

    def _path_in(self, tree: Tree) -> dict[int, int]:
        """Return the link that carries each base on the path, in order."""
        bases = sorted(tree.bases_among(tree.between(self._ends)))
        return {m: tree.bases[m].frame.link for m in bases}
