"""Where time is lost outside of kernels: each form of a call, first times, changes.

First come single calls, each the least of many, on one thread. Then the questions that
a user waits for: first tries, whole processes, cells that changed, ten times the size.
They are taken from the groups that measure them. What is asked for are times on an idle
core; on a shared machine compare the ratios to the peer.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import armillary as arm
from benchmarks import (
    cells,
    closed,
    collisions,
    control,
    costs,
    distances,
    dynamics,
    inverse,
    measure,
    sizes,
)
from benchmarks.control_scenes import PANDA
from benchmarks.measure import Figure, best_times, within
from benchmarks.robots import Robot, panda, talos, ur5

CALLS = 200
TURNS = 60

Row = tuple[str, Callable[[], object], float]
"""What is called, the call, and what is asked for [s]."""


def figures() -> Iterator[Figure]:
    """Yield the figures of all seams."""
    yield from single_calls()
    yield from solvers()
    yield from collisions.batch_figures()
    yield from collisions.call_figures()
    yield from collisions.distance_figures()
    yield from collisions.hull_figures()
    yield from collisions.kinds_of_motions()
    yield from collisions.large_figures()
    yield from hard_shapes()
    yield from changes()
    yield from costs.processes()
    yield from cells.many_frames_figures()
    yield from sizes.figures()
    for name, robot in {"Panda": panda(), "Talos": talos()}.items():
        yield from dynamics.derivative_figures(name, robot)
    yield from dynamics.robot_figures("Talos", talos(), (15, 6, 14), compiled=2.0)


def single_calls() -> Iterator[Figure]:
    """Yield the figures of every form of a call."""
    gc.disable()
    try:
        robot = panda()
        yield from beside(pinocchio_pose(robot), kernel_rows(robot))
        yield from beside(pinocchio_both(robot), loop_rows(robot))
        yield from beside(pinocchio_pose(robot), question_rows(robot))
        yield from beside(pinocchio_all(robot), all_frames_rows(robot))
        yield from beside(None, answer_rows("UR5", ur5(), 2e-6))
        yield from beside(None, answer_rows("Panda", robot, 5e-6))
        yield from beside(None, closed_rows(ur5()))
        yield from beside(pinocchio_derivatives(robot), dynamics_rows(robot))
    finally:
        gc.enable()


def beside(peer: Callable[[], object] | None, rows: list[Row]) -> Iterator[Figure]:
    """Yield a figure for each row, all having taken turns with the peer."""
    tasks = [call for _, call, _ in rows] + ([peer] if peer else [])
    times = best_times(*map(repeated, tasks), turns=TURNS)
    other = times[-1] / CALLS if peer else None
    for (what, _, asked), took in zip(rows, times, strict=False):
        yield within(what, took / CALLS, at_most=asked, peer=other)


def repeated(call: Callable[[], object]) -> Callable[[], None]:
    """Return a task of CALLS calls."""

    def task() -> None:
        for _ in range(CALLS):
            call()

    return task


def kernel_rows(robot: Robot) -> list[Row]:
    """Return the forms of a call of one kernel."""
    fk = robot.cell.fk(robot.tip, joints=robot.joints)
    q = robot.random_q(1)[0]
    row, listed, single, batch = q[None], q.tolist(), q.astype("f4"), robot.random_q(16)
    X, Y = np.empty((4, 4)), np.empty((16, 4, 4))

    return [
        ("fk(q)", lambda: fk(q), 0.2e-6),
        ("fk(q, out=X)", lambda: fk(q, out=X), 0.35e-6),
        ("fk(q, out=X, threads=1)", lambda: fk(q, out=X, threads=1), 0.35e-6),
        ("fk(q[None])", lambda: fk(row), 0.6e-6),
        ("fk(list)", lambda: fk(listed), 0.8e-6),
        ("fk(float32)", lambda: fk(single), 0.8e-6),
        ("fk(Q) of 16 rows", lambda: fk(batch), 1e-6),
        ("fk(Q, out=Y) of 16 rows", lambda: fk(batch, out=Y), 1e-6),
    ]


def loop_rows(robot: Robot) -> list[Row]:
    """Return the loop of docs/real_time.md, with its keywords and without."""
    fk = robot.cell.fk(robot.tip, joints=robot.joints)
    jacobian = robot.cell.jacobian(robot.tip, joints=robot.joints)
    q = robot.random_q(1)[0]
    X, J = np.empty((4, 4)), np.empty((6, len(q)))

    def loop() -> None:
        fk(q, out=X, threads=1)
        jacobian(q, out=J, threads=1)

    def plain() -> None:
        fk(q)
        jacobian(q)

    return [
        ("fk and jacobian, out=, threads=1", loop, 1e-6),
        ("fk and jacobian, plain calls", plain, 1e-6),
    ]


def question_rows(robot: Robot) -> list[Row]:
    """Return questions that are asked again, and poses of states."""
    cell, tip, joints = robot.cell, robot.tip, robot.joints
    state = cell.home
    q = state.q.copy()
    for _ in range(1000):  # until a kernel answers
        cell.pose(tip, state)
    return [
        ("cell.fk(frame) again", lambda: cell.fk(tip), 1e-6),
        ("cell.fk(frame, joints=) again", lambda: cell.fk(tip, joints=joints), 3e-6),
        ("cell.mass_matrix() again", lambda: cell.mass_matrix(), 1e-6),  # noqa: PLW0108
        ("cell.pose(frame, state)", lambda: cell.pose(tip, state), 3e-6),
        ("the same, new state", lambda: cell.pose(tip, state.replace(q=q)), 3e-6),
    ]


def all_frames_rows(robot: Robot) -> list[Row]:
    """Return the poses of all frames."""
    cell, state = robot.cell, robot.cell.home
    return [("cell.poses(state)", lambda: cell.poses(state), 5e-6)]


def answer_rows(name: str, robot: Robot, asked: float) -> list[Row]:
    """Return inverse kinematics of single targets, where `asked` is for an answer."""
    ik = robot.cell.ik(robot.tip, joints=robot.joints)
    q = robot.random_q(1)[0]
    target = robot.cell.fk(robot.tip, joints=robot.joints)(q)
    near, far = q + 0.02, target.copy()
    far[0, 3] += 5.0
    differential = robot.cell.differential_ik(robot.tip, joints=robot.joints)
    twist = np.array([0.01, 0.0, 0.02, 0.0, 0.1, 0.0])
    return [
        (f"{name} ik(X)", lambda: ik(target), asked),
        (f"{name} ik(X, near=q)", lambda: ik(target, near=near), asked),
        (f"{name} ik(X).success", lambda: ik(target).success, asked),
        (f"{name} ik(X), out of reach", lambda: ik(far), 20e-6),
        (f"{name} differential_ik", lambda: differential(q, twist), 5e-6),
    ]


def closed_rows(robot: Robot) -> list[Row]:
    """Return all answers of a closed form."""
    ik = robot.cell.ik(robot.tip, joints=robot.joints)
    q = robot.random_q(1)[0]
    target = robot.cell.fk(robot.tip, joints=robot.joints)(q)
    return [("UR5 ik.all(X)", lambda: ik.all(target), 3e-6)]


def solvers() -> Iterator[Figure]:
    """Yield the first tries of solvers, and controllers beside their peers."""
    robot = panda()
    yield from measure.beside(
        "eaik",
        "UR5 ik(X) and ik.all(X), EAIK",
        lambda: closed.arm_figures("UR5", ur5().cell, "tool0"),
    )
    cell = closed.iiwa()
    seven = Robot(robot.path, cell, list(cell.joint_names), "tool", robot.model, None)
    for name, each in {"Panda": robot, "iiwa": seven}.items():
        yield from inverse.single_figures(name, each)
        yield from inverse.seeded_figures(name, each)
    yield from inverse.failing_figures("Panda", robot)
    yield path_figure(robot)
    with tempfile.TemporaryDirectory() as folder:
        path = PANDA.write(Path(folder))
        yield from control.plain(PANDA, path)
        yield from control.avoiding(PANDA, path)


def path_figure(robot: Robot) -> Figure:
    """Return the figure of a path whose start is not given."""
    start, end = robot.random_q(2, seed=5) * 0.5
    q = np.linspace(start, end, 300)
    targets = robot.cell.fk(robot.tip, joints=robot.joints)(q)
    ik = robot.cell.ik(robot.tip, joints=robot.joints)
    (took,) = best_times(lambda: ik.path(targets), turns=3, clock=time.process_time)
    return within("Panda ik.path without start, 300 poses", took, at_most=50e-3)


def hard_shapes() -> Iterator[Figure]:
    """Yield the pairs of shapes that take longest, with depth, beside coal."""
    tube, box = arm.shapes.Cylinder(radius=0.1, length=0.4), arm.shapes.Box
    other = arm.shapes.Cylinder(radius=0.2, length=0.6)
    yield from distances.pair_figures(tube, box(size=(0.4, 0.3, 0.6)), 2.0, 2.0)
    yield from distances.pair_figures(tube, other, 2.0, 2.0)
    around = arm.shapes.ConvexPolyhedron.around
    a, b = (around(distances.hull(100 + k, 100)) for k in range(2))
    yield from distances.pair_figures(a, b, 2.0, 2.0)
    yield from distances.pair_figures(a, b, 1.0, 1.0, depth=False)


def changes() -> Iterator[Figure]:
    """Yield the first answer of each function after a part was gripped elsewhere."""
    cell = arm.example("oval_track_cell")
    q, zero = cell.home.q, np.zeros(len(cell.joint_names))
    target = cell.fk("tcp")(q)
    random = np.random.default_rng(0)
    asked: dict[str, tuple[Callable[[arm.State], object], float]] = {
        "fk": (lambda state: cell.fk("grasp", state=state)(q), 0.1e-3),
        "collision": (lambda state: cell.collision(state)(q), 1e-3),
        "inverse_dynamics": (
            lambda state: cell.inverse_dynamics(state=state)(q, zero, zero),
            0.5e-3,
        ),
        "ik": (lambda state: cell.ik("tcp", state=state)(target, near=q), 1e-3),
    }
    grips = [
        cell.home.attach(
            "part",
            "tcp",
            pose=arm.Pose.translation(*random.uniform(-0.02, 0.02, 3)),
            replace=True,
        )
        for _ in range(101)
    ]
    for what, (ask, most) in asked.items():
        ask(grips[0])  # compiles
        middle, late = np.percentile(
            inverse.first_tries(ask, grips[1:]), [50, 99]
        ).tolist()
        title = f"a new grip, {what} and its first answer"
        yield within(f"{title}, median", middle, at_most=most)
        yield within(f"{title}, 99 of 100", late, at_most=10 * most)


def dynamics_rows(robot: Robot) -> list[Row]:
    """Return questions of dynamics with several results."""
    derivatives = robot.cell.inverse_dynamics_derivatives(joints=robot.joints)
    q = robot.random_q(1)[0]
    return [("inverse dynamics' derivatives", lambda: derivatives(q, q, q), 4.5e-6)]


def pinocchio_pose(robot: Robot) -> Callable[[], object]:
    """Return Pinocchio's call for the pose of the tip."""
    import pinocchio as pin

    model, data, q = robot.model, robot.data, robot.random_q(1)[0]
    tip = model.getFrameId(robot.tip)

    def call() -> object:
        pin.forwardKinematics(model, data, q)
        return pin.updateFramePlacement(model, data, tip).homogeneous

    return call


def pinocchio_both(robot: Robot) -> Callable[[], object]:
    """Return Pinocchio's calls for the pose of the tip and its Jacobian."""
    import pinocchio as pin

    model, data, q = robot.model, robot.data, robot.random_q(1)[0]
    tip = model.getFrameId(robot.tip)
    axes = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED

    def call() -> object:
        J = pin.computeFrameJacobian(model, data, q, tip, axes)
        return pin.updateFramePlacement(model, data, tip).homogeneous, J

    return call


def pinocchio_all(robot: Robot) -> Callable[[], object]:
    """Return Pinocchio's call for all frames, with the poses of links copied."""
    import pinocchio as pin

    model, data, q = robot.model, robot.data, robot.random_q(1)[0]
    links = [k for k, f in enumerate(model.frames) if f.type == pin.FrameType.BODY]

    def call() -> object:
        pin.framesForwardKinematics(model, data, q)
        return [data.oMf[k].homogeneous for k in links]

    return call


def pinocchio_derivatives(robot: Robot) -> Callable[[], object]:
    """Return Pinocchio's call for the derivatives of inverse dynamics."""
    import pinocchio as pin

    model, data, q = robot.model, robot.data, robot.random_q(1)[0]
    return lambda: pin.computeRNEADerivatives(model, data, q, q, q)
