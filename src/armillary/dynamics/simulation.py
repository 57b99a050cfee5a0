"""Simulation: how a cell moves under torques, by integration with a fixed step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from typing import Any, Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from armillary.dynamics.forward import forward_dynamics
from armillary.dynamics.options import DynamicsOptions
from armillary.dynamics.trajectory import Trajectory
from armillary.errors import ModelError, ShapeError, StateError, quote, unknown
from armillary.kernel.arguments import as_inputs, broadcast, whole_number
from armillary.kinematics.closing.kernel import Repeated, Repetition
from armillary.kinematics.inputs import FREE_BASES
from armillary.kinematics.kernels import Joints, selection_of
from armillary.kinematics.state import State, bound_state, rates_of
from armillary.model.workcell import Workcell
from armillary.spatial import rotation as rot
from armillary.spatial.pose import TOLERANCE, Pose, pose_of_entries
from armillary.spatial.vector import (
    EYE,
    Number,
    Rows,
    Vector3,
    add,
    cross,
    multiply,
    scale,
    subtract,
    three,
    transpose,
)
from armillary.trace import Port, Program, trace
from armillary.trace.functions import select

__all__ = [
    "METHODS",
    "IntegrationMethod",
    "simulate",
]

Array = npt.NDArray[Any]

# Integrators of fixed step, as programs around those of forward dynamics.
#
# An iteration evaluates the accelerations, then a program of this module goes on;
# several iterations make a step. Positions of joints are numbers that are added to. The
# pose of a free base is integrated on its group: its origin moves by a vector, its
# rotation by
#
#     R <- exp(t) R
#
# with a rotation vector t in world axes, whose rate at the angular velocity w is
#
#     t' = dexp_t^-1 w = w - t x w / 2 + t x (t x w) / 12 + O(|t|^4)
#
# (Munthe-Kaas, High order Runge-Kutta methods on manifolds, 1999). So poses remain
# poses, and the order is that of the method.

Numbers = Sequence[Number]


class IntegrationMethod(NamedTuple):
    """A method of integration.

    Attributes:
        evaluations: Of the accelerations in a step: iterations of the kernel's loop.
        order: By which power of the step its error falls.
        repeated: How the program of forward dynamics runs.
    """

    evaluations: int
    order: int
    repeated: Repeated


class Positions(NamedTuple):
    """Where everything is: joint positions, and poses of free bases."""

    q: list[Number]
    bases: list[Pose]

    @classmethod
    def read(cls, program: Program, arrays: Sequence[Any]) -> Self:
        """Return the positions in what is given for the inputs of `shapes`."""
        given = dict(zip(shapes(program), arrays, strict=True))
        bases = [Pose.from_matrix(X) for X in given.get(FREE_BASES, ())]
        return cls(list(given.get("q", ())), bases)

    def written(self) -> list[Any]:
        """Return an array for each input of `shapes`."""
        bases = [[X.matrix() for X in self.bases]] if self.bases else []
        return [*bases, *([self.q] if self.q else [])]

    def moved(self, by: Numbers) -> Positions:
        """Return the positions after six numbers for each base, then those of q."""
        first = 6 * len(self.bases)
        q = [x + step for x, step in zip(self.q, by[first:], strict=True)]
        bases: list[Pose] = []
        for k, X in enumerate(self.bases):
            linear, angular = _halves(by, k)
            rotation = multiply(rot.exp(angular), X.rotation)
            bases.append(Pose(rotation, add(X.position, linear)))
        return Positions(q, bases)

    def rates(self, moved: Numbers, qd: Numbers) -> list[Number]:
        """Return the rates of those numbers, where positions have `moved` by them."""
        rates = list(qd)
        for k in range(len(self.bases)):
            # t' = w - t x w / 2 + t x (t x w) / 12, the series of dexp^-1 at the head
            # of this part, whose next term is of order 4 in |t|.
            (_, t), (_, w) = _halves(moved, k), _halves(qd, k)
            once = cross(t, w)
            twice = scale(1.0 / 12.0, cross(t, once))
            rates[6 * k + 3 : 6 * k + 6] = add(subtract(w, scale(0.5, once)), twice)
        return rates

    def where(self, truth: Any, other: Positions) -> Positions:
        """Return these positions where it is true, elsewhere the others."""
        bases = [
            pose_of_entries(_selected(truth, X.entries, Y.entries))
            for X, Y in zip(self.bases, other.bases, strict=True)
        ]
        return Positions(_selected(truth, self.q, other.q), bases)

    def orthonormal(self) -> Positions:
        """Return the same with rotations freed from rounding errors."""
        bases = [Pose(_orthonormal(X.rotation), X.position) for X in self.bases]
        return Positions(self.q, bases)


def shapes(program: Program, prefix: str = "") -> dict[str, tuple[int, ...]]:
    """Return the inputs of a program that hold positions, if they have numbers."""
    names = FREE_BASES, "q"
    return {
        prefix + port.name: port.shape
        for port in program.inputs
        if port.name in names and port.size
    }


TIME: Final[tuple[Port, ...]] = (Port("dt", ()), Port("left", ()))
"""The length of a step [s], and how many iterations are left."""


def semi_implicit_euler(program: Program) -> Repetition:
    """Return a step of order 1: qd' = qd + dt qdd, q' = q + dt qd'."""
    where, size = shapes(program), _rate_size(program)
    count = len(where)

    def step(*given: Any) -> Any:
        qd, qdd, dt, left = given[count:]
        faster = [v + dt * a for v, a in zip(qd, qdd, strict=True)]
        at = Positions.read(program, given[:count]).moved([dt * v for v in faster])
        return *at.orthonormal().written(), faster, left - 1.0

    results = (*where, "qd")
    inputs = where | _rates(size)
    after = trace(step, name="step", outputs=(*results, "left"), **inputs)
    return Repetition(TIME, (), after, "left", results)


def runge_kutta(program: Program) -> Repetition:
    """Return a step of the classical method of order 4, one stage an iteration.

    With k_i = f(x + c_i dt k_(i-1)) and c = 0, 1/2, 1/2, 1 it is
    x' = x + dt (k_1 + 2 k_2 + 2 k_3 + k_4) / 6, where x are positions and rates.
    """
    where, size = shapes(program), _rate_size(program)
    start = shapes(program, "start_")
    count = len(where)
    sums = dict.fromkeys(("start_qd", "moved", "sum_q", "sum_qd"), (size,))
    written = (*start, *sums, "stage")

    def begin(*given: Any) -> Any:
        zeros = [0.0] * size
        return *given[:count], given[count], zeros, zeros, zeros, 0.0

    def iteration(*given: Any) -> Any:
        begun = Positions.read(program, given[:count])
        start_qd, moved, sum_q, sum_qd, stage, qd, qdd, dt, left = given[count:]
        # Stages 0 and 3 have the weight 1/6, stages 1 and 2 the weight 1/3.
        is_outer = select(stage > 0.5, stage, 3.0) > 2.5  # 0 or 3
        is_last = stage > 2.5
        weight = select(is_outer, 1.0 / 6.0, 1.0 / 3.0) * dt
        # Stages 0 and 1 lead to the middle of the step, stage 2 to its end.
        part = select(stage > 1.5, 1.0, 0.5) * dt
        rates = begun.rates(moved, qd)
        sum_q = [x + weight * rate for x, rate in zip(sum_q, rates, strict=True)]
        sum_qd = [x + weight * a for x, a in zip(sum_qd, qdd, strict=True)]
        # The last stage ends the step at the sum of all; the others go on to the next
        # point at which accelerations are evaluated, from the same start.
        by = _selected(is_last, sum_q, [part * rate for rate in rates])
        rising = _selected(is_last, sum_qd, [part * a for a in qdd])
        at = begun.moved(by).orthonormal()
        faster = [v + more for v, more in zip(start_qd, rising, strict=True)]

        def anew(numbers: Numbers) -> list[Number]:
            return [select(is_last, 0.0, x) for x in numbers]

        return (
            *at.written(),
            faster,
            *at.where(is_last, begun).written(),
            _selected(is_last, faster, start_qd),
            anew(by),
            anew(sum_q),
            anew(sum_qd),
            select(is_last, 0.0, stage + 1.0),
            left - 1.0,
        )

    first = where | {"qd": (size,)}
    before = trace(begin, name="begin", outputs=written, **first)
    inputs = start | sums | {"stage": ()} | _rates(size)
    outputs = (*where, "qd", *written, "left")
    after = trace(iteration, name="iteration", outputs=outputs, **inputs)
    return Repetition(TIME, (before,), after, "left", (*where, "qd"))


METHODS: Final = {
    "rk4": IntegrationMethod(4, 4, runge_kutta),
    "semi-implicit euler": IntegrationMethod(1, 1, semi_implicit_euler),
}
"""The methods of integration by name."""


def _rate_size(program: Program) -> int:
    (size,) = (port.size for port in program.inputs if port.name == "qd")
    return size


def _rates(size: int) -> dict[str, tuple[int, ...]]:
    """Return the last inputs of each iteration."""
    return {"qd": (size,), "qdd": (size,), "dt": (), "left": ()}


def _halves(vector: Numbers, base: int) -> tuple[Vector3, Vector3]:
    """Return the linear and the angular three numbers of a free base."""
    k = 6 * base
    return three(vector[k : k + 3]), three(vector[k + 3 : k + 6])


def _selected(truth: Any, then: Numbers, otherwise: Numbers) -> list[Number]:
    pairs = zip(then, otherwise, strict=True)
    return [select(truth, x, y) for x, y in pairs]


def _orthonormal(R: Rows) -> Rows:
    """Return R (3 - R' R) / 2, which is next to the nearest rotation if R nearly is."""
    square = multiply(transpose(R), R)
    x, y, z = (
        subtract(scale(1.5, e), scale(0.5, row))
        for e, row in zip(EYE, square, strict=True)
    )
    return multiply(R, (x, y, z))


# simulation: how a cell moves under torques, by integration with a fixed step


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
    options = DynamicsOptions(cell, joints, state, gravity, free_bases)
    options.check_regular()
    moving = selection_of(cell, joints).inputs
    _check_locked(state, moving)
    if not moving and not free_bases:
        raise ModelError(
            "Nothing moves here: joints= names no joint, or the cell has none, and "
            "free_bases= no base."
        )
    given = {"base_poses": base_poses, "q": q, "qd": qd}
    start = _started(state, moving, free_bases, given, torque, clock)
    if joints is None and _is_built(state, free_bases):
        options = replace(options, state=None)  # then all numbers are constants
    chosen = METHODS[method]
    kernel = options.kernel(
        ("simulation", method),
        forward_dynamics,
        ("qd", "torque"),
        output="qdd",
        repeated=chosen.repeated,
    )
    paths, applied = _integrated(kernel, start, clock, chosen.evaluations)
    time = np.arange(len(paths[0])) * np.float64(clock.every * clock.dt)
    bases, positions, rates = (np.moveaxis(path, 0, len(start.batch)) for path in paths)
    applied = np.moveaxis(applied, 0, -2)
    for array in (time, positions, rates, applied, bases):
        array.flags.writeable = False
    return Trajectory(
        time, positions, rates, applied, bases, state, moving, tuple(free_bases)
    )


class _Start(NamedTuple):
    """Where a simulation starts, and what drives it.

    Attributes:
        arrays: Base poses, q and qd at the start, each of the shape of the batch and
            its own.
        batch: The shape of the batch.
        ports: The inputs of the kernel for these arrays.
        torque_at: Returns the torque of a step, from its number and where everything is
            then.
        stride: For how many steps a torque is constant.
    """

    arrays: list[Array]
    batch: tuple[int, ...]
    ports: list[Port]
    torque_at: Callable[[int, Sequence[Array]], Array]
    stride: int


def _started(
    state: State,
    moving: Sequence[int],
    free_bases: Sequence[str],
    given: Mapping[str, Any],
    torque: Any,
    clock: Clock,
) -> _Start:
    """Return where a simulation starts, as arrays that fit each other.

    Args:
        state: Where everything is that is not given.
        moving: The joints that move, as indices into q.
        free_bases: Names of the free bases.
        given: Base poses, q and qd to start from instead; None for those of the state.
        torque: What was asked for.
        clock: The steps.

    Raises:
        ShapeError: Arrays do not fit.
        ModelError: A base has a pose that is not rigid.
    """
    size = 6 * len(free_bases) + len(moving)
    shapes = {"base_poses": (len(free_bases), 4, 4), "q": (len(moving),), "qd": (size,)}
    ports = [Port(name, shape) for name, shape in shapes.items()]
    values = [
        known if given[port.name] is None else given[port.name]
        for port, known in zip(ports, _begin(state, moving, free_bases), strict=True)
    ]
    torques: list[Port] = []
    if not callable(torque):
        values.append(np.zeros(size) if torque is None else torque)
        shape = _torque_shape(values[-1], clock.steps, size)
        torques = [Port("torque", shape)]
    arrays, batch = broadcast(_named([*ports, *torques]), values)
    _check_rotations(arrays[0])
    source = _torque_source(torque, arrays[3:], clock, ports[2], batch)
    return _Start(list(arrays[:3]), batch, ports, *source)


def _integrated(
    kernel: Callable[..., Any], start: _Start, clock: Clock, evaluations: int
) -> tuple[list[Array], Array]:
    """Return base poses, q and qd at the instants that are kept, and the torques.

    Args:
        kernel: Takes so many steps as its last inputs say.
        start: Where it starts.
        clock: The steps.
        evaluations: Of the kernel's program in a step.

    Returns:
        Arrays of shape (instants, *batch, ...) for each of the three, the start being
        the first instant; and torques, shape (instants - 1, *batch, n).
    """
    # The instants come first here, so that those of all rows lie together.
    count = clock.steps // clock.every
    paths = [
        np.empty((count + 1, *start.batch, *port.shape), np.float64)
        for port in start.ports
    ]
    for path, array in zip(paths, start.arrays, strict=True):
        path[0] = array
    has_numbers = [port.size > 0 for port in start.ports]
    applied = np.empty((count, *start.batch, *start.ports[2].shape))
    now = [path[0] for path in paths]
    timing = np.array(clock.dt), np.array(float(start.stride * evaluations))
    for step in range(0, clock.steps, start.stride):
        at, since = divmod(step, clock.every)
        forces = start.torque_at(step, now)
        if not since:
            applied[at] = forces
        # Steps between two kept instants write over each other in the later one.
        following = [path[at + 1] for path in paths]
        kernel(
            *compress(now, has_numbers),
            forces,
            *timing,
            out=tuple(compress(following, has_numbers)),
        )
        now = following
    return paths, applied


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
        (torques,) = as_inputs(wanted, [torque(step * clock.dt, *bases, q, qd)])
        try:
            return np.broadcast_to(torques, (*batch, *port.shape))
        except ValueError:
            raise ShapeError(
                f"The torques of a function have shape {torques.shape}; here they are "
                f"{(*batch, *port.shape)}, a row for each of the batch."
            ) from None

    return asked, 1
