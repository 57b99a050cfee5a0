"""What a call costs outside of the kernel: every form of a call, beside Pinocchio's.

Each row is one call, the least of many, on one thread. What is asked for are times on
an idle core; on a shared machine compare the ratios to the peer.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.measure import Figure, best_times, within
from benchmarks.robots import Robot, panda, ur5

CALLS = 200
TURNS = 60

Row = tuple[str, Callable[[], object], float]
"""What is called, the call, and what is asked for [s]."""


def figures() -> Iterator[Figure]:
    """Yield the figures of single calls."""
    gc.disable()
    try:
        robot = panda()
        yield from beside(pinocchio_pose(robot), kernel_rows(robot))
        yield from beside(pinocchio_pose(robot), question_rows(robot))
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
    """Return the forms of a call of one kernel, and the loop of docs/real_time.md."""
    fk = robot.cell.fk(robot.tip, joints=robot.joints)
    jacobian = robot.cell.jacobian(robot.tip, joints=robot.joints)
    q = robot.random_q(1)[0]
    row, listed, single, batch = q[None], q.tolist(), q.astype("f4"), robot.random_q(16)
    X, J = np.empty((4, 4)), np.empty((6, len(q)))

    def loop() -> None:
        fk(q, out=X, threads=1)
        jacobian(q, out=J, threads=1)

    return [
        ("fk(q)", lambda: fk(q), 0.2e-6),
        ("fk(q, out=X)", lambda: fk(q, out=X), 0.35e-6),
        ("fk(q, out=X, threads=1)", lambda: fk(q, out=X, threads=1), 0.35e-6),
        ("fk(q[None])", lambda: fk(row), 0.6e-6),
        ("fk(list)", lambda: fk(listed), 0.8e-6),
        ("fk(float32)", lambda: fk(single), 0.8e-6),
        ("fk(Q) of 16 rows", lambda: fk(batch), 1e-6),
        ("fk and jacobian, out=, threads=1", loop, 1e-6),
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
        ("cell.poses(state)", lambda: cell.poses(state), 5e-6),
    ]


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


def pinocchio_derivatives(robot: Robot) -> Callable[[], object]:
    """Return Pinocchio's call for the derivatives of inverse dynamics."""
    import pinocchio as pin

    model, data, q = robot.model, robot.data, robot.random_q(1)[0]
    return lambda: pin.computeRNEADerivatives(model, data, q, q, q)
