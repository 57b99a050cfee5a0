"""Dynamics beside Pinocchio, in C++ and from Python: batches, calls, compiling."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import armillary as arm
from benchmarks.costs import first_kernel
from benchmarks.kinematics import repeated
from benchmarks.measure import (
    Figure,
    absent,
    best_times,
    cheaper,
    faster,
    within,
)
from benchmarks.peer_loops import NotThere, pinocchio_loop
from benchmarks.robots import Robot, panda, talos

BATCH = 2_000
FEW = 200
QUESTIONS = ("inverse", "mass matrix", "forward")


def figures() -> Iterator[Figure]:
    """Yield the figures of dynamics."""
    yield from robot_figures("Panda", panda(), (20, 12, 20), compiled=0.6)
    yield from robot_figures("Talos", talos(), (15, 6, 14), compiled=2.0)
    yield from derivative_figures("Panda", panda())
    yield from derivative_figures("Talos", talos())
    yield from single_figures(panda())
    yield custom_joint_figure()


def robot_figures(
    name: str, robot: Robot, asked: tuple[float, ...], *, compiled: float
) -> Iterator[Figure]:
    """Yield the figures of one robot."""
    cell, n = robot.cell, len(robot.joints)
    kernels = {
        "inverse": cell.inverse_dynamics(joints=robot.joints),
        "mass matrix": cell.mass_matrix(joints=robot.joints),
        "forward": cell.forward_dynamics(joints=robot.joints),
    }
    vectors = vectors_of(robot)
    try:
        loop: Any = pinocchio_loop(robot.model)
    except NotThere as reason:
        loop = None
        yield absent(f"{name} dynamics, batch, Pinocchio in C++", str(reason))
    for question, ratio in zip(QUESTIONS, asked, strict=True):
        shape = (BATCH, n, n) if question == "mass matrix" else (BATCH, n)
        given = vectors[:1] if question == "mass matrix" else vectors
        mine, theirs = np.empty(shape), np.empty(shape)
        ours = task(kernels[question], given, mine)
        python = in_python(robot, question, vectors)
        tasks = [ours, python]
        if loop is not None:
            tasks.append(lambda q=question, t=theirs: loop(q, *vectors, out=t))
        mine_time, python_time, *native_time = best_times(*tasks)
        if native_time:
            check(question, mine, theirs)
            # A loop that a compiler here makes may be the slower one.
            yield faster(
                f"{name} {question}, batch, Pinocchio, faster of C++ and Python",
                mine_time / BATCH,
                min(native_time[0] / BATCH, python_time / FEW),
                at_least=ratio,
            )
        yield faster(
            f"{name} {question}, batch, Pinocchio from Python",
            mine_time / BATCH,
            python_time / FEW,
            at_least=25 if name == "Panda" else ratio,
        )
    made, _ = first_kernel(robot.path, all_three(robot.joints))
    yield within(f"{name}, all three, LLVM loaded, cold", made, at_most=compiled)


def derivative_figures(name: str, robot: Robot) -> Iterator[Figure]:
    """Yield the figure of the derivatives of inverse dynamics."""
    import pinocchio as pin

    what = f"{name} derivatives, batch, Pinocchio"
    kernel = robot.cell.inverse_dynamics_derivatives(joints=robot.joints)
    vectors, n = vectors_of(robot), len(robot.joints)
    mine = tuple(np.empty((BATCH, n, n)) for _ in range(3))
    theirs = np.empty((BATCH, 2, n, n))

    def ours() -> None:
        kernel(*vectors, out=mine, threads=1)

    def python() -> None:
        for q, v, a in zip(*(each[:FEW] for each in vectors), strict=True):
            pin.computeRNEADerivatives(robot.model, robot.data, q, v, a)

    try:
        loop: Any = pinocchio_loop(robot.model)
    except NotThere as reason:
        yield absent(f"{what} in C++", str(reason))
        took, other = best_times(ours, python)
        yield faster(f"{what}, Python", took / BATCH, other / FEW, at_least=10)
        return
    took, other, native = best_times(
        ours, python, lambda: loop("derivatives", *vectors, out=theirs)
    )
    check("derivatives", np.stack(mine[:2], axis=1), theirs)
    each = min(native / BATCH, other / FEW)
    title = f"{what}, faster of C++ and Python"
    yield faster(title, took / BATCH, each, at_least=10)


def vectors_of(robot: Robot) -> list[np.ndarray]:
    """Return q, qd and qdd, shape (BATCH, n) each."""
    rng = np.random.default_rng(1)
    rates = rng.uniform(-1.0, 1.0, (2, BATCH, len(robot.joints)))
    return [np.ascontiguousarray(robot.random_q(BATCH)), *rates]


def task(kernel: Any, given: list[np.ndarray], out: np.ndarray) -> Callable[[], object]:
    """Return the task of one call of a kernel, on one thread."""
    return lambda: kernel(*given, out=out, threads=1)


def in_python(
    robot: Robot, question: str, vectors: list[np.ndarray]
) -> Callable[[], None]:
    """Return the task that calls Pinocchio from Python for FEW rows."""
    import pinocchio as pin

    model, data = robot.model, robot.data
    rows = [each[:FEW] for each in vectors]

    def inverse() -> None:
        for q, v, a in zip(*rows, strict=True):
            pin.rnea(model, data, q, v, a)

    def mass_matrix() -> None:
        for q in rows[0]:
            pin.crba(model, data, q)

    def forward() -> None:
        for q, v, a in zip(*rows, strict=True):
            pin.aba(model, data, q, v, a)

    return {"inverse": inverse, "mass matrix": mass_matrix, "forward": forward}[
        question
    ]


def check(question: str, ours: np.ndarray, theirs: np.ndarray) -> None:
    """Refuse to compare times of answers that differ."""
    if question == "mass matrix":  # column-major, and the upper half alone
        upper = np.triu(theirs.swapaxes(1, 2))
        theirs = upper + np.triu(upper, 1).swapaxes(1, 2)
    error = np.abs(ours - theirs).max() / np.abs(theirs).max()
    assert error < 1e-9, (question, error)


def all_three(joints: list[str]) -> Callable[[arm.Cell], None]:
    """Return the task of making the three kernels of a cell."""

    def make(cell: arm.Cell) -> None:
        cell.inverse_dynamics(joints=joints)
        cell.mass_matrix(joints=joints)
        cell.forward_dynamics(joints=joints)

    return make


def single_figures(robot: Robot) -> Iterator[Figure]:
    """Yield the figure of one call."""
    import pinocchio as pin

    model, data = robot.model, robot.data
    kernel = robot.cell.inverse_dynamics(joints=robot.joints)
    q, v, a = (each[0].copy() for each in vectors_of(robot))
    ours, peer = best_times(
        repeated(lambda: kernel(q, v, a)),
        repeated(lambda: pin.rnea(model, data, q, v, a)),
    )
    yield cheaper(
        "Panda inverse, one call, Pinocchio from Python",
        ours / 5000,
        peer / 5000,
        at_most=0.5,
    )


def custom_joint_figure() -> Figure:
    """Return the figure of an arm on a track of the user, in place of a rail."""
    rail = arm.example("ur10_on_rail")
    inertia = arm.SpatialInertia.from_centre(50.0, (0, 0, 0.1), np.eye(3))
    track = rail.manipulators[0]
    curved = arm.joints.OvalTrack(straight=3.0, radius=1.5)

    def on(joint: Any) -> arm.Cell:
        links = [
            link if link.parent is None else link.replace(joint=joint, inertia=inertia)
            for link in track.links
        ]
        moved = track.replace(links=links)
        return rail.replace(manipulators=[moved, *rail.manipulators[1:]])

    straight = on(arm.joints.Prismatic(axis=(1, 0, 0))).inverse_dynamics()
    oval = on(curved).inverse_dynamics()
    n = len(rail.joint_names)
    given = list(np.random.default_rng(0).uniform(-1.0, 1.0, (3, BATCH, n)))
    out = np.empty((BATCH, n))
    ours, peer = best_times(task(oval, given, out), task(straight, given, out))
    return cheaper(
        "inverse, arm on an oval track, beside a rail",
        ours / BATCH,
        peer / BATCH,
        at_most=1.4,
    )
