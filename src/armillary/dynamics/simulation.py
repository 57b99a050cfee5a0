"""Simulation: how a cell moves under torques, by integration with a fixed step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.dynamics.forward import forward_dynamics
from armillary.dynamics.integrators import METHODS
from armillary.dynamics.setting import Setting
from armillary.dynamics.trajectory import Trajectory
from armillary.errors import ModelError, ShapeError, StateError, quote, unknown
from armillary.kernel.arguments import as_inputs, broadcast, whole_number
from armillary.kinematics.bound_state import bound_state, rates_of
from armillary.kinematics.kernels import Joints, selection_of
from armillary.kinematics.state import State
from armillary.model.workcell import Workcell
from armillary.spatial.pose import TOLERANCE
from armillary.trace import Port, Program

__all__ = ["simulate"]

Array = npt.NDArray[Any]


class Clock(NamedTuple):
    """Steps of a length [s], and after how many of them an instant is kept."""

    dt: float
    steps: int
    every: int


def simulate(  # noqa: PLR0913
    cell: Workcell,
    state: State,
    *,
    dt: float,
    steps: int,
    torque: Any = None,
    every: int = 1,
    method: str = "rk4",
    q: Any = None,
    qd: Any = None,
    base_poses: Any = None,
    joints: Joints = None,
    gravity: Sequence[float] | None = None,
    free_bases: Sequence[str] = (),
) -> Trajectory:
    """Return how the cell moves from a state on, under torques of its joints.

    The step is fixed. Torques are constant over each step, as those of a digital
    controller. There is no contact, and limits of joints and efforts are not enforced.
    Rows of a batch are independent of each other: one whose torque is NaN, or whose
    loops cannot be closed, is NaN from there on.

    Args:
        cell: What moves.
        state: Where it starts: positions, rates, moved bases and attachments.
        dt: The length of a step [s].
        steps: How many steps.
        torque: The torques or forces of joints [N m or N], none by default: constant,
            shape (n,); for each step, shape (..., steps, n), where a 1 in place of
            `steps` stands for all; or a function, called once at the start of each step
            with the time [s], q (..., n) and qd (..., n), that returns shape (..., n).
        every: Only each so manieth instant is kept, and the first; it divides `steps`.
        method: `rk4`, the classical Runge-Kutta method of order 4, or `semi-implicit
            euler`, of order 1, four times as fast.
        q: Positions to start from instead [m or rad], shape (..., n).
        qd: Rates to start from instead [m/s or rad/s], shape (..., n).
        base_poses: Poses of free bases to start from instead, shape (..., k, 4, 4).
        joints: Names of the joints that move, in that order; the others are locked. By
            default all.
        gravity: The acceleration of falling bodies [m/s^2], by default (0, 0, -9.81).
        free_bases: Names of k manipulators whose bases nothing holds. Rates and torques
            then begin with six numbers for each, as for `inverse_dynamics`, and a
            function takes the time, their poses (..., k, 4, 4), q and qd.

    Returns:
        The positions, rates and torques at each instant; batches of what is given
        broadcast.

    Raises:
        UnknownName: A joint, a manipulator or the method does not exist.
        ModelError: As for `forward_dynamics`; nothing moves; `dt` is not above 0,
            `steps` below 0, or `every` does not divide it.
        ShapeError: An array does not fit, also one that the function returns.
        StateError: The state is not one of this cell, or what is locked moves in it.
    """
    if method not in METHODS:
        raise unknown("method of integration", method, METHODS)
    clock = _clock(dt, steps, every)
    state = bound_state(cell, state)
    setting = Setting(cell, joints, state, gravity, free_bases)
    setting.check_regular()
    moving = selection_of(cell, joints).inputs
    _check_locked(state, moving)
    size = 6 * len(free_bases) + len(moving)
    if not size:
        raise ModelError(
            "Nothing moves here: joints= names no joint, or the cell has none, and "
            "free_bases= no base."
        )
    ports = [
        Port("base_poses", (len(free_bases), 4, 4)),
        Port("q", (len(moving),)),
        Port("qd", (size,)),
    ]
    known = _begin(state, moving, free_bases)
    given = (base_poses, q, qd)
    values = [a if b is None else b for a, b in zip(known, given, strict=True)]
    if not callable(torque):
        values.append(np.zeros(size) if torque is None else torque)
        ports.append(Port("torque", _torque_shape(values[-1], clock.steps, size)))
    arrays, batch = broadcast(_named(ports), values)
    _check_rotations(arrays[0])
    if joints is None and _is_built(state, free_bases):
        setting = replace(setting, state=None)  # then all numbers are constants
    chosen = METHODS[method]
    kernel = setting.kernel(
        ("simulation", method),
        forward_dynamics,
        ("qd", "torque"),
        output="qdd",
        repeated=chosen.repeated,
    )

    # The instants come first here, so that those of all rows lie together.
    count = clock.steps // clock.every
    paths = [
        np.empty((count + 1, *batch, *port.shape), np.float64) for port in ports[:3]
    ]
    for path, array in zip(paths, arrays, strict=False):
        path[0] = array
    has_numbers = [port.size > 0 for port in ports[:3]]
    applied = np.empty((count, *batch, size))
    torque_at, stride = _torque_source(torque, arrays[3:], clock, ports[2], batch)
    now = [path[0] for path in paths]
    timing = np.array(clock.dt), np.array(float(stride * chosen.turns))
    for step in range(0, clock.steps, stride):
        at, since = divmod(step, clock.every)
        forces = torque_at(step, now)
        if not since:
            applied[at] = forces
        following = [path[at + 1] for path in paths]
        kernel(
            *compress(now, has_numbers),
            forces,
            *timing,
            out=tuple(compress(following, has_numbers)),
        )
        now = following
    time = np.arange(count + 1) * np.float64(clock.every * clock.dt)
    bases, positions, rates = (np.moveaxis(path, 0, len(batch)) for path in paths)
    applied = np.moveaxis(applied, 0, -2)
    for array in (time, positions, rates, applied, bases):
        array.flags.writeable = False
    return Trajectory(
        time, positions, rates, applied, bases, state, moving, tuple(free_bases)
    )


def _named(ports: Sequence[Port]) -> Program:
    """Return a program of these inputs, for messages."""
    return Program("simulate", tuple(ports), (), (), ())


def _clock(dt: Any, steps: Any, every: Any) -> Clock:
    """Return the steps.

    Raises:
        ModelError: The length of a step is not above 0, or a count is not a number of
            steps.
    """
    try:
        length = float(dt)
    except (TypeError, ValueError):
        length = math.nan
    if not 0.0 < length < math.inf:
        raise ModelError(
            f"dt is {quote(dt)}; the length of a step must be a number above 0 [s]."
        )
    counts = [
        whole_number("steps", steps, least=0),
        whole_number("every", every, least=1),
    ]
    if counts[0] % counts[1]:
        raise ModelError(
            f"every={every} does not divide steps={steps}, so the last instant would "
            f"not be kept. Take steps={counts[0] - counts[0] % counts[1]}."
        )
    return Clock(length, counts[0], counts[1])


def _check_locked(state: State, moving: Sequence[int]) -> None:
    """Refuse rates of joints that are locked.

    Raises:
        StateError: One is not 0 in the state.
    """
    names = [
        quote(name)
        for k, (name, rate) in enumerate(
            zip(state.cell.joint_names, state.qd, strict=False)
        )
        if rate and k not in moving
    ]
    if names:
        raise StateError(
            f"These joints move in the state, and are locked: {', '.join(names)}. Name "
            "them in joints=, or give them no rate."
        )


def _begin(
    state: State, moving: Sequence[int], free_bases: Sequence[str]
) -> list[Array]:
    """Return the base poses, positions and rates of a state."""
    bases = [state.tree.bases[state.cell.number(name)] for name in free_bases]
    poses = np.array([base.frame.pose.matrix() for base in bases])
    twists = {V.manipulator: [*V.linear, *V.angular] for V in state.base_velocities}
    rates = [x for name in free_bases for x in twists.get(name, [0.0] * 6)]
    qd = rates_of(state)
    return [
        poses.reshape(-1, 4, 4),
        np.array([state.q[k] for k in moving], dtype=np.float64),
        np.array([*rates, *(qd[k] for k in moving)]),
    ]


def _check_rotations(poses: Array) -> None:
    """Refuse poses of bases whose rotations are not rotations.

    Raises:
        ModelError: A rotation is sheared, scaled or a reflection.
    """
    R = poses[..., :3, :3]
    error = np.abs(R @ R.swapaxes(-1, -2) - np.eye(3)).max(initial=0.0)
    if error > TOLERANCE or (np.linalg.det(R) < 0.0).any():
        raise ModelError(
            "base_poses= holds a rotation that is sheared, scaled or a reflection: "
            f"R R' differs from 1 by {error:.3g}."
        )


def _is_built(state: State, free_bases: Sequence[str]) -> bool:
    """Return whether all but joints and free bases is as the cell was built."""
    moved = {placement.manipulator for placement in state.placements}
    on_branch = not state.passive.size or state.branch == "home"
    return moved <= set(free_bases) and on_branch


def _torque_shape(torque: Any, steps: int, size: int) -> tuple[int, ...]:
    """Return the shape of torques, without that of a batch."""
    try:
        shape = np.shape(torque)
    except ValueError:  # rows of unequal length
        shape = ()
    if len(shape) < 2:
        return (size,)
    return (1 if shape[-2] == 1 else steps), size


def _torque_source(
    torque: Any,
    table: Sequence[Array],
    clock: Clock,
    port: Port,
    batch: tuple[int, ...],
) -> tuple[Callable[[int, Sequence[Array]], Array], int]:
    """Return what gives the torque of a step, and how many steps it is constant.

    Args:
        torque: What was asked for.
        table: It as an array, if it is one.
        clock: The steps.
        port: The shape of a torque.
        batch: The shape of the batch.
    """
    if table:
        (values,) = table
        if values.shape == (*batch, *port.shape):
            values = values[..., None, :]
        is_constant = values.shape[-2] == 1

        def listed(step: int, now: Sequence[Array]) -> Array:
            return values[..., 0 if is_constant else step, :]

        return listed, clock.every if is_constant else 1
    wanted = _named([Port("torque", port.shape)])

    def asked(step: int, now: Sequence[Array]) -> Array:
        given = [array.view() for array in now if array.shape != (*batch, 0, 4, 4)]
        *bases, q, qd = given
        for array in given:
            array.flags.writeable = False
        (found,) = as_inputs(wanted, [torque(step * clock.dt, *bases, q, qd)])
        try:
            return np.broadcast_to(found, (*batch, *port.shape))
        except ValueError:
            raise ShapeError(
                f"The torques of a function have shape {found.shape}; here they are "
                f"{(*batch, *port.shape)}, a row for each of the batch."
            ) from None

    return asked, 1
