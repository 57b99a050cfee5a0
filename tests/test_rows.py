"""A row of a batch equals the call with that row alone, to the last bit: all questions.

`TABLE` has the questions that take many rows, by the names of the methods that are
asked. A method that is neither there nor among `WITHOUT_ROWS` fails a test: so no new
question is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

import armillary as arm
from armillary import Cell, Pose, tasks
from armillary.cell.device import Device
from armillary.collision.check import CollisionCheck
from armillary.control.controller import Controller
from armillary.ik.differential import DifferentialSolver
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.kernel import kernel as kernel_module
from armillary.kernel import search as search_module
from armillary.kinematics.questions import Between
from armillary.shapes import Capsule
from arms import arm_of_axes
from four_bar import four_bar
from masses import with_drives, with_inertias

Array = npt.NDArray[Any]
Ask = Callable[..., Any]

ROWS = 33
BATCHES = (2, 7, 8, 9, ROWS)
BAD = 4  # the row that is replaced by VALUES
VALUES = (np.nan, 2.0)  # the latter is outside the domain of a joint, and no pose
FAR = 11  # a target that nothing reaches
WIDTH = 64  # to which answers are padded: how many there are differs by batch

MAKERS: Mapping[str, type] = {
    "": Cell,
    "ik.": InverseKinematics,
    "differential_ik.": DifferentialSolver,
    "collision.": CollisionCheck,
    "controller.": Controller,
    "between.": Between,
    "device.": Device,
}
"""What each question is a method of, by what its name begins with."""

WITHOUT_ROWS: Mapping[str, str] = {
    "": """
        acceleration_limits add approx_equal bind branches carried children
        common_ancestor compile_to coupled_limits differential_drive effort_limits
        exchange export frame frame_names hand_over home index inertial_parameters
        is_movable joint
        joint_names learn_rules limit_rows limits line loops manipulators meshes
        mobility mount mounts movable_bases name of own_points pairs parameters parent
        passive_names plan_view point_to_point pose properties qualified remove replace
        rigid_with roadmap rules run runs samples scaled shot tree twist velocity_limits
        view with_collisions with_parameters
    """,
    "ik.": "avoiding cell closed closed_given jax kernel path torch why_not_closed",
    "differential_ik.": "for_purpose gain limited of_one_twist purpose state then",
    "collision.": """
        jax kernel torch
        approach_rates contacts edge_columns edge_proof_columns is_exact
        margin may_be_free meshes motion_columns nearness obstacles pairs placed rules
        with_obstacles
    """,
    "controller.": "kernel kernel_with",
    "between.": "",
    "device.": """
        at base cell end ends joint_names joints limits payload posture q qd state whole
        with_q with_qd
    """,
}
"""Methods that take one state, one path, or no joint positions at all."""


class Arch(arm.Joint):
    """Slide along x over an arch of a circle: there is nothing beyond its radius."""

    radius: float
    unit = arm.METRE

    def pose(self, q):
        height = 0.2 * np.sqrt(self.radius**2 - q * q)
        return arm.Pose.translation(q, 0.0, height) @ arm.Pose.rotation_y(0.2 * q)


def hinge(axis: str, *at: float) -> arm.Joint:
    vector = tuple(float(axis == letter) for letter in "xyz")
    return arm.joints.Revolute(axis=vector, precursor=Pose.translation(*at))


def within(most: float) -> arm.Limits:
    return arm.Limits(
        lower=-most, upper=most, velocity=1.5, acceleration=4.0, effort=300.0
    )


@cache
def track() -> Cell:
    """Three joints on a user's joint on a track, and a post: redundant for points."""
    links = [arm.Link(name="base")]
    for name, joint, most, reach in (
        ("rail", arm.joints.Prismatic(axis=(0, 1, 0)), 1.0, 0.0),
        ("arch", Arch(radius=1.2), 0.8, 0.0),
        ("shoulder", hinge("z", 0.0, 0.0, 0.3), 2.5, 0.0),
        ("upper", hinge("y", 0.1, 0.0, 0.1), 2.5, 0.4),
        ("lower", hinge("y", 0.4, 0.0, 0.0), 2.5, 0.3),
    ):
        shapes = [Capsule.between((0.05, 0, 0), (reach, 0, 0), radius=0.03)]
        links.append(
            arm.Link(
                name=name,
                parent=links[-1].name,
                joint=joint,
                limits=within(most),
                collisions=shapes if reach else [],
            )
        )
    tip = arm.joints.Fixed(precursor=Pose.translation(0.3, 0.0, 0.0))
    links.append(arm.Link(name="tip", parent="lower", joint=tip))
    pole = Capsule.between((0.7, 0.2, 0), (0.7, 0.2, 1), radius=0.1)
    post = arm.Manipulator(
        name="post", links=[arm.Link(name="post", collisions=[pole])]
    )
    cell = Cell(manipulators=[arm.Manipulator(name="robot", links=links), post])
    return with_drives(with_inertias(cell, 1), 2)


@cache
def loop() -> Cell:
    """A four-bar: one joint, and two passive ones."""
    return with_inertias(Cell(manipulators=[four_bar()]), 3)


@cache
def planar() -> Cell:
    """Three parallel axes: a closed form."""
    return arm_of_axes(
        "RRR", np.eye(3)[[2, 2, 2]], [(0, 0, 0), (0.5, 0, 0), (0.8, 0, 0)]
    )


@cache
def seven() -> Cell:
    """A spherical shoulder and wrist: a closed form by arm angle."""
    _, y, z = np.eye(3)
    heights = [0.36, 0.36, 0.36, 0.78, 1.18, 1.18, 1.18]
    points = [(0.0, 0.0, height) for height in heights]
    tool = Pose.translation(0.0, 0.0, 0.126)
    limits = np.radians([170, 120, 170, 120, 170, 120, 175])
    axes = [z, y, z, -y, z, y, z]
    return arm_of_axes("R" * 7, axes, points, tool=tool, limit=limits)


class Rows(NamedTuple):
    """What is asked of a cell, a row for each of ROWS times.

    Attributes:
        cell: The cell.
        frame: Whose pose is asked for.
        q: Joint positions, shape (ROWS, n); the others likewise.
    """

    cell: Cell
    frame: str
    q: Array
    qd: Array
    qdd: Array
    torque: Array

    @property
    def targets(self) -> Array:
        """Poses, most of them reached; that of FAR is out of reach."""
        X = self.cell.fk(self.frame)(self.q).copy()
        X[FAR, :3, 3] += 0.9
        return X

    @property
    def twists(self) -> Array:
        return np.random.default_rng(7).uniform(-0.4, 0.4, (ROWS, 6))

    @property
    def near(self) -> Array:
        return self.q + 0.5 * self.qd

    @property
    def paths(self) -> Array:
        """Three waypoints each."""
        return np.stack([self.q, self.q + 0.3 * self.qd, self.q - self.qdd], axis=1)


@cache
def rows_of(make: Callable[[], Cell]) -> Rows:
    cell = make()
    n = len(cell.joint_names)
    lower, upper = np.clip(cell.limits, -1.6, 1.6)
    rng = np.random.default_rng(5)
    q = rng.uniform(lower, upper, (ROWS, n))
    if cell.passive_names:
        q = cell.home.q + rng.uniform(-0.4, 0.4, (ROWS, n))
    frame = {track: "tip", loop: "tip", planar: "tool", seven: "tool"}[make]
    return Rows(cell, frame, q, *rng.uniform(-0.9, 0.9, (3, ROWS, n)))


class Case(NamedTuple):
    """A question as it is asked.

    Attributes:
        ask: Takes rows, options, and gives an array or several, a row for each.
        rows: What is given, each of shape (ROWS, ...).
        options: The options that it has, of `out` and `threads`.
    """

    ask: Ask
    rows: tuple[Array, ...]
    options: tuple[str, ...] = ()


def kernel(ask: Any, *rows: Array) -> Case:
    return Case(ask, rows, ("out", "threads"))


def parts(result: Any, *names: str) -> tuple[Array, ...]:
    return tuple(np.asarray(getattr(result, name)) for name in names)


def solution(solver: Ask, *rows: Array, **options: Any) -> tuple[Array, ...]:
    result = solver(*rows, **options)
    names = "q", "success", "reason", "residual", "steps", "starts"
    return parts(result, *names)


def of_solver(solver: Ask, *rows: Array, given: str = "") -> Case:
    """A solver that takes targets and, by name, one more value for each."""

    def ask(targets: Array, *more: Array, **options: Any) -> tuple[Array, ...]:
        named = dict(zip(given.split(), more, strict=True))
        return solution(solver, targets, **named, **options)

    return Case(ask, rows, ("threads",))


def of_all(solver: InverseKinematics, *rows: Array, given: str = "") -> Case:
    def ask(targets: Array, *more: Array) -> tuple[Array, ...]:
        named = dict(zip(given.split(), more, strict=True))
        found = solver.all(targets, **named)
        batch, n = found.q.shape[:-2], found.q.shape[-1]
        q = np.full((*batch, WIDTH, n), np.nan)
        q[..., : found.q.shape[-2], :] = found.q
        return q, found.count

    return Case(ask, rows)


def without_threads(case: Case) -> Case:
    return case._replace(options=())


def dynamic(name: str, *given: str, **more: Any) -> Callable[[Rows], Case]:
    def make(a: Rows) -> Case:
        question = getattr(a.cell, name)
        frame = (a.frame,) if name in FRAMED else ()
        return kernel(question(*frame, **more), *(getattr(a, each) for each in given))

    return make


FRAMED = "operational_inertia", "null_space_projector", "reaction", "torque_of_wrench"
POINT = {"position": "xz", "rotation": ""}
SPIN = {"position": "x", "rotation": ""}


def check(a: Rows) -> CollisionCheck:
    return a.cell.collision(margin=0.01)


def motions(a: Rows, **options: Any) -> Case:
    def ask(q0: Array, q1: Array) -> tuple[Array, ...]:
        return parts(check(a).motion(q0, q1, **options), "fraction", "q", "reason")

    return Case(ask, (a.q, a.near))


def poses(a: Rows) -> Case:
    def ask(q: Array) -> Array:
        found = a.cell.poses(a.cell.home, q=q)
        return np.stack([found[name] for name in found], axis=-3)

    return Case(ask, (a.q,))


def one_by_one(a: Rows, ask: Callable[[arm.State], Any]) -> Case:
    """A question that takes one state: it remembers none of those before."""

    def each(q: Array) -> Array:
        asked = [ask(a.cell.home.replace(q=row)) for row in np.atleast_2d(q)]
        return np.array(asked if q.ndim > 1 else asked[0])

    return Case(each, (a.q,))


def states(a: Rows) -> Case:
    between = a.cell.between(a.frame, a.cell.home)

    def ask(q: Array) -> Array:
        many = between.many([a.cell.home.replace(q=row) for row in np.atleast_2d(q)])
        return many if q.ndim > 1 else many[0]

    return Case(ask, (a.q,))


def violated(a: Rows) -> Case:
    def ask(state: arm.State) -> list[float]:
        found = [each.value for each in a.cell.violations(state, margin=0.05)]
        return (found + [0.0] * 9)[:9]

    return one_by_one(a, ask)


def rates(a: Rows, position: str, rotation: str, **options: Any) -> Case:
    solver = a.cell.differential_ik(a.frame, position=position, rotation=rotation)
    solver = solver.for_purpose("limits") if options.pop("purpose", False) else solver

    def ask(q: Array, twists: Array) -> tuple[Array, ...]:
        found = solver(q, twists, step=0.1, **options)
        return parts(found, "qd", "twist", "residual", "scale", "reason")

    return Case(ask, (a.q, 9.0 * a.twists))


def step(a: Rows, **options: Any) -> Case:
    controller = a.cell.controller(tasks.Position(a.frame), **options)

    def ask(q: Array, qd: Array, point: Array) -> Array:
        return controller(q, qd, point).numbers

    return Case(ask, (a.q, 0.3 * a.qd, a.targets[:, :3, 3]))


def planned(a: Rows) -> Case:
    planner = a.cell.planner(a.cell.collision(), nodes=100)

    def ask(start: Array, goal: Array, threads: int = 1) -> tuple[Array, ...]:
        if start.ndim == 1:
            plans = [planner(start, goal, timeout=None)]
            found = np.array([[p.length, p.reason, p.checks] for p in plans])[0]
        else:
            plans = planner.batch(start, goal, timeout=None, threads=threads)
            found = np.array([[p.length, p.reason, p.checks] for p in plans])
        return (found,)

    return Case(ask, (a.q, a.q[::-1].copy()), ("threads",))


def controlled(a: Rows) -> Case:
    controller = a.cell.controller(tasks.Position(a.frame))

    def ask(q: Array, point: Array) -> tuple[Array, ...]:
        return parts(
            controller.simulate(q, point[..., None, :], 20), "q", "qd", "reason"
        )

    return Case(ask, (a.q, a.targets[:, :3, 3]))


def simulated(a: Rows) -> Case:
    def ask(q: Array, qd: Array) -> tuple[Array, ...]:
        found = a.cell.simulate(a.cell.home, dt=1e-3, steps=10, q=q, qd=qd)
        return parts(found, "q", "qd")

    return Case(ask, (a.q, a.qd))


def timed(a: Rows, **options: Any) -> Case:
    def ask(paths: Array) -> tuple[Array, ...]:
        found = a.cell.time_path(paths, **options)
        return parts(found, "duration", "time", "speed", "reason")

    return Case(ask, (a.paths,))


def closing(a: Rows) -> Case:
    def ask(q: Array) -> tuple[Array, ...]:
        return parts(a.cell.close_loops(q), "passive", "residual", "reason")

    return Case(ask, (a.q,))


def closing_near(a: Rows) -> Case:
    passive = a.cell.close_loops(a.q).passive + 0.1

    def ask(q: Array, near: Array) -> tuple[Array, ...]:
        found = a.cell.close_loops(q, near=near)
        return parts(found, "passive", "residual", "reason")

    return Case(ask, (a.q, passive))


def to_point(a: Rows, **options: Any) -> InverseKinematics:
    """The solver of the track's tip, which two joints more than needed move."""
    return a.cell.ik(a.frame, rotation="", **options)


def whole(a: Rows) -> InverseKinematics:
    return a.cell.ik(a.frame)


def numeric(solver: InverseKinematics) -> Ask:
    return lambda *rows, **options: solver(*rows, method="numeric", **options)


def height(q: Any) -> Any:
    return (q[0] - 0.2) ** 2


PARAMETERS = ["arch.radius", "upper.precursor.x", "lower.precursor.rz"]


def of_some_pairs(a: Rows) -> Case:
    made = check(a)
    pairs = np.arange(0, len(made.pairs), 2)

    def distances(q: Array) -> Array:
        found = made.distances_of(pairs, q.reshape(-1, q.shape[-1]))
        return found.reshape(*q.shape[:-1], len(pairs))

    return Case(distances, (a.q,))


TABLE: Mapping[str, tuple[Callable[[], Cell], Callable[[Rows], Case]]] = {
    "fk": (track, lambda a: kernel(a.cell.fk(a.frame), a.q)),
    "fk, of a loop": (loop, lambda a: kernel(a.cell.fk("rocker"), a.q)),
    "fk, of parameters": (
        track,
        lambda a: kernel(a.cell.fk(a.frame, parameters=PARAMETERS), a.q, a.q[:, :3]),
    ),
    "fk, of a loop and parameters": (
        loop,
        lambda a: kernel(
            a.cell.fk("rocker", parameters=["rocker.precursor.x"]),
            a.q,
            1e-3 * a.q[:, :1],
        ),
    ),
    "parameter_jacobian": (
        track,
        lambda a: kernel(
            a.cell.parameter_jacobian(a.frame, PARAMETERS), a.q, a.q[:, :3]
        ),
    ),
    "fk, dual quaternion": (
        track,
        lambda a: kernel(a.cell.fk(a.frame, form="dual_quaternion"), a.q),
    ),
    "jacobian": (track, lambda a: kernel(a.cell.jacobian(a.frame), a.q)),
    "jacobian, of a loop": (loop, lambda a: kernel(a.cell.jacobian("rocker"), a.q)),
    "velocity": (track, lambda a: kernel(a.cell.velocity(a.frame), a.q, a.qd)),
    "acceleration": (
        track,
        lambda a: kernel(a.cell.acceleration(a.frame), a.q, a.qd, a.qdd),
    ),
    "bias_acceleration": (
        track,
        lambda a: kernel(a.cell.bias_acceleration(a.frame), a.q, a.qd),
    ),
    "pose_error": (
        track,
        lambda a: kernel(a.cell.pose_error(a.frame), a.q, a.targets),
    ),
    "within_limits": (track, lambda a: Case(a.cell.within_limits, (1.5 * a.q,))),
    "poses": (track, poses),
    "poses, of a loop": (loop, poses),
    "between.many": (track, states),
    "device.fk": (track, lambda a: kernel(a.cell.device("robot").fk(), a.q)),
    "device.jacobian": (
        track,
        lambda a: kernel(a.cell.device("robot").jacobian(), a.q),
    ),
    "device.ik": (
        track,
        lambda a: of_solver(a.cell.device("robot").ik(rotation=""), a.targets),
    ),
    "ik": (track, lambda a: of_solver(to_point(a), a.targets)),
    "ik, seed": (
        track,
        lambda a: of_solver(to_point(a), a.targets, a.near, given="seed"),
    ),
    "ik, near": (
        track,
        lambda a: of_solver(to_point(a), a.targets, a.near, given="near"),
    ),
    "ik, avoid": (track, lambda a: of_solver(to_point(a, avoid=check(a)), a.targets)),
    "ik, avoid near": (
        track,
        lambda a: of_solver(
            to_point(a, avoid=check(a)), a.targets, a.near, given="near"
        ),
    ),
    "ik.all": (track, lambda a: of_all(to_point(a), a.targets)),
    "ik.best": (
        track,
        lambda a: without_threads(
            of_solver(lambda X: to_point(a).best(X, height), a.targets)
        ),
    ),
    "ik, of a loop": (loop, lambda a: of_solver(to_point(a), a.targets)),
    "ik, closed": (planar, lambda a: of_solver(whole(a), a.targets)),
    "ik, closed near": (
        planar,
        lambda a: of_solver(whole(a), a.targets, a.near, given="near"),
    ),
    "ik, searched": (planar, lambda a: of_solver(numeric(whole(a)), a.targets)),
    "ik.all, closed": (planar, lambda a: of_all(whole(a), a.targets)),
    "ik.branch": (planar, lambda a: Case(whole(a).branch, (a.q,))),
    "ik.best, closed": (
        planar,
        lambda a: without_threads(
            of_solver(lambda X: whole(a).best(X, "limits"), a.targets)
        ),
    ),
    "ik, arm angle": (
        seven,
        lambda a: of_solver(whole(a), a.targets, a.q[:, 0], given="arm_angle"),
    ),
    "ik, free elbow": (seven, lambda a: of_solver(whole(a), a.targets)),
    "ik, free elbow near": (
        seven,
        lambda a: of_solver(whole(a), a.targets, a.near, given="near"),
    ),
    "ik.all, arm angle": (
        seven,
        lambda a: of_all(whole(a), a.targets, a.q[:, 0], given="arm_angle"),
    ),
    "differential_ik": (track, lambda a: rates(a, "xyz", "")),
    "differential_ik, purpose": (track, lambda a: rates(a, "xy", "", purpose=True)),
    "differential_ik, of a loop": (loop, lambda a: rates(a, "x", "")),
    "controller": (track, step),
    "controller, avoid": (track, lambda a: step(a, avoid=check(a))),
    "controller, slow": (track, lambda a: step(a, conflict="slow")),
    "controller.simulate": (track, controlled),
    "collision": (track, lambda a: Case(check(a), (a.q,))),
    "collision, of a loop": (loop, lambda a: Case(check(a), (a.q,))),
    "collision.clearance": (track, lambda a: Case(check(a).clearance, (a.q,))),
    "collision.distances": (track, lambda a: Case(check(a).distances, (a.q,))),
    "collision.distances_of": (track, of_some_pairs),
    "collision.gradients": (track, lambda a: Case(check(a).gradients, (a.q,))),
    "collision.at_bases": (
        track,
        lambda a: Case(lambda q: check(a).at_bases(q, {"robot": a.targets[0]}), (a.q,)),
    ),
    "collision.motion": (track, motions),
    "collision.motion, sampled": (track, lambda a: motions(a, step=0.05)),
    "violations": (track, violated),
    "close_loops": (loop, closing),
    "close_loops, near": (loop, closing_near),
    "time_path": (track, timed),
    "time_path, torques": (track, lambda a: timed(a, torque=True)),
    "simulate": (track, simulated),
    "simulate, of a loop": (loop, simulated),
    "inverse_dynamics": (track, dynamic("inverse_dynamics", "q", "qd", "qdd")),
    "inverse_dynamics, of a loop": (
        loop,
        dynamic("inverse_dynamics", "q", "qd", "qdd"),
    ),
    "inverse_dynamics, of parameters": (
        track,
        lambda a: kernel(
            a.cell.inverse_dynamics(parameters=PARAMETERS),
            *(a.q, a.q[:, :3], a.qd, a.qdd),
        ),
    ),
    "forward_dynamics": (track, dynamic("forward_dynamics", "q", "qd", "torque")),
    "inverse_dynamics_derivatives": (
        track,
        dynamic("inverse_dynamics_derivatives", "q", "qd", "qdd"),
    ),
    "forward_dynamics_derivatives": (
        track,
        dynamic("forward_dynamics_derivatives", "q", "qd", "torque"),
    ),
    "inertial_regressor": (track, dynamic("inertial_regressor", "q", "qd", "qdd")),
    "mass_matrix": (track, dynamic("mass_matrix", "q")),
    "gravity_torque": (track, dynamic("gravity_torque", "q")),
    "bias_torque": (track, dynamic("bias_torque", "q", "qd")),
    "coriolis_matrix": (track, dynamic("coriolis_matrix", "q", "qd")),
    "kinetic_energy": (track, dynamic("kinetic_energy", "q", "qd")),
    "potential_energy": (track, dynamic("potential_energy", "q")),
    "centre_of_mass": (track, dynamic("centre_of_mass", "q")),
    "centre_of_mass_jacobian": (track, dynamic("centre_of_mass_jacobian", "q")),
    "momentum": (track, dynamic("momentum", "q", "qd")),
    "operational_inertia": (track, dynamic("operational_inertia", "q", **POINT)),
    "null_space_projector": (track, dynamic("null_space_projector", "q", **SPIN)),
    "reaction": (track, dynamic("reaction", "q", "qd", "qdd")),
    "torque_of_wrench": (track, dynamic("torque_of_wrench", "q", "twists")),
    "planner": (track, planned),
}


@pytest.mark.parametrize("prefix", MAKERS)
def test_no_question_is_forgotten(prefix: str) -> None:
    """A method belongs into `TABLE` if it takes many rows, else into `WITHOUT_ROWS`."""
    asked = {name.split(",")[0] for name in TABLE}
    known = {name.removeprefix(prefix) for name in asked if name.startswith(prefix)}
    without = set(WITHOUT_ROWS[prefix].split())
    methods = {name for name in dir(MAKERS[prefix]) if not name.startswith("_")}
    if not prefix:  # those of what a question gives count with their own prefix
        known = {name.split(".")[0] for name in known}
    assert methods - known - without == set()
    assert (known | without) - methods == set()
    assert not known & without


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", TABLE)
def test_rows_are_answered_as_if_alone(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # several threads share even these few rows
    monkeypatch.setattr(kernel_module, "OPERATIONS_PER_THREAD", 1)
    monkeypatch.setattr(search_module, "PROBLEMS_PER_THREAD", 4)
    monkeypatch.setenv("ARMILLARY_THREADS", "1")
    make, question = TABLE[name]
    case = question(rows_of(make))
    alone = [_asked(case, [part[k] for part in case.rows]) for k in range(ROWS)]
    expected = [np.stack(each) for each in zip(*alone, strict=True)]
    moved = np.unique(expected[0].reshape(ROWS, -1), axis=0)
    assert len(moved) > 1 or expected[0].dtype == np.bool_, "all rows are the same"
    order = np.arange(ROWS)
    for count in BATCHES:
        _compare(case, order[:count], expected)
    _compare(case, order[::-1], expected)
    if "threads" in case.options:
        _compare(case, order, expected, threads=2)
    if "out" in case.options:
        _compare(case, order, expected, out=True)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("value", VALUES)
def test_a_bad_row_changes_no_other(name: str, value: float) -> None:
    make, question = TABLE[name]
    case = question(rows_of(make))
    clean, rest = _asked(case, list(case.rows)), np.arange(ROWS) != BAD
    for which in range(len(case.rows)):
        if np.isnan(value) and (name in STATES or (name, which) in STARTS):
            continue
        given = [np.array(part) for part in case.rows]
        given[which][BAD] = value
        for mine, other in zip(_asked(case, given), clean, strict=True):
            assert np.array_equal(mine[rest], other[rest], equal_nan=_real(mine))


STATES = "violations", "between.many"
STARTS = {(name, 1) for name in TABLE if name.startswith(("ik", "device.ik"))}
"""Where NaN is refused: in states, start vectors and arm angles."""


def _asked(case: Case, rows: list[Array], **options: Any) -> tuple[Array, ...]:
    found = case.ask(*rows, **options)
    return found if isinstance(found, tuple) else (np.asarray(found),)


def _compare(
    case: Case,
    order: Array,
    expected: list[Array],
    *,
    out: bool = False,
    **options: Any,
) -> None:
    rows = [part[order] for part in case.rows]
    if out:
        blank = tuple(np.full_like(part[order], 7.0) for part in expected)
        options["out"] = blank if len(blank) > 1 else blank[0]
    for mine, all_of_them in zip(_asked(case, rows, **options), expected, strict=True):
        assert np.array_equal(mine, all_of_them[order], equal_nan=_real(mine))


def _real(array: Array) -> bool:
    return array.dtype.kind == "f"
