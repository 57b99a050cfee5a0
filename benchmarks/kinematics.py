"""Forward kinematics and Jacobians, batch and single, beside Pinocchio and JAX."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import armillary as arm
from benchmarks.measure import Figure, beside, best_times, cheaper, faster
from benchmarks.robots import Robot, panda, talos, ur5

BATCH = 100_000
LOOP = 2_000
CACHED = 10_000


def figures() -> Iterator[Figure]:
    """Yield the figures of kinematics."""
    for name, make in (("Panda", panda), ("UR5", ur5)):
        yield from arm_figures(name, make())
    yield from talos_figures(talos())


def arm_figures(name: str, robot: Robot) -> Iterator[Figure]:
    """Yield the figures of one arm."""
    import pinocchio as pin

    model, data = robot.model, robot.data
    tip = model.getFrameId(robot.tip)
    Q = robot.random_q(BATCH)
    fk = robot.cell.fk(robot.tip, joints=robot.joints)
    X = np.empty((BATCH, 4, 4))

    def pin_pose(q: np.ndarray) -> np.ndarray:
        pin.forwardKinematics(model, data, q)
        return pin.updateFramePlacement(model, data, tip).homogeneous

    def pin_loop() -> None:
        for q in Q[:LOOP]:
            pin_pose(q)

    assert np.abs(fk(Q[0]) - pin_pose(Q[0])).max() < 1e-9
    ours, peer = best_times(lambda: fk(Q, out=X, threads=1), pin_loop)
    yield faster(f"{name} FK, batch", ours / BATCH, peer / LOOP, at_least=70)

    what = f"{name} FK, JAX float32"
    yield from beside("jax", what, lambda: jax_figures(what, robot, Q))

    jacobian = robot.cell.jacobian(robot.tip, joints=robot.joints)
    J = np.empty((BATCH, 6, len(robot.joints)))
    frame = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED

    def pin_jacobians() -> None:
        for q in Q[:LOOP]:
            pin.computeFrameJacobian(model, data, q, tip, frame)

    expected = pin.computeFrameJacobian(model, data, Q[0], tip, frame)
    assert np.abs(jacobian(Q[0]) - expected).max() < 1e-9
    ours, peer = best_times(lambda: jacobian(Q, out=J, threads=1), pin_jacobians)
    yield faster(f"{name} Jacobian, batch", ours / BATCH, peer / LOOP, at_least=40)
    few = slice(0, CACHED)  # results that stay in the processor's cache
    ours, peer = best_times(
        lambda: jacobian(Q[few], out=J[few], threads=1), pin_jacobians
    )
    what = f"{name} Jacobian, batch of {CACHED}"
    yield faster(what, ours / CACHED, peer / LOOP, at_least=40)

    q = Q[0].copy()
    ours, peer = best_times(repeated(lambda: fk(q)), repeated(lambda: pin_pose(q)))
    yield cheaper(f"{name} FK, one call", ours / 5000, peer / 5000, at_most=0.35)


def jax_figures(what: str, robot: Robot, Q: np.ndarray) -> Iterator[Figure]:
    """Yield the figure of poses beside JAX."""
    fk, jax_fk = (
        robot.cell.fk(robot.tip, joints=robot.joints),
        jax_poses(robot.manipulator, robot.tip),
    )
    X, Q32 = np.empty((BATCH, 4, 4)), Q.astype(np.float32)
    error = np.abs(np.asarray(jax_fk(Q32[:100])) - fk(Q[:100])).max()
    assert error < 1e-4, error
    ours, peer = best_times(
        lambda: fk(Q, out=X, threads=1), lambda: jax_fk(Q32).block_until_ready()
    )
    yield faster(what, ours / BATCH, peer / BATCH, at_least=20)


def repeated(call: Callable[[], object]) -> Callable[[], None]:
    """Return a task of 5000 calls."""

    def task() -> None:
        for _ in range(5000):
            call()

    return task


def talos_figures(robot: Robot) -> Iterator[Figure]:
    """Yield the figure of all link poses of a humanoid."""
    import pinocchio as pin

    model, data = robot.model, robot.data
    links = [f.name for f in model.frames if f.type == pin.FrameType.BODY]
    places = [model.getFrameId(name, pin.FrameType.BODY) for name in links]
    fk = robot.cell.fk(links, joints=robot.joints)
    count = 5_000
    Q = robot.random_q(count)
    X = np.empty((count, len(links), 4, 4))

    def pin_poses(q: np.ndarray) -> list[np.ndarray]:
        pin.framesForwardKinematics(model, data, q)
        return [data.oMf[place].homogeneous for place in places]

    def pin_loop() -> None:
        for q in Q[:300]:
            pin_poses(q)

    assert np.abs(fk(Q[0]) - np.array(pin_poses(Q[0]))).max() < 1e-9
    ours, peer = best_times(lambda: fk(Q, out=X, threads=1), pin_loop)
    what = f"Talos, all {len(links)} link poses"
    yield faster(what, ours / count, peer / 300, at_least=20)


def jax_poses(
    manipulator: arm.Manipulator, tip: str, dtype: str = "float32"
) -> Callable[[np.ndarray], Any]:
    """Return a jitted, vmapped FK of a link, unrolled into scalars by hand.

    It takes the positions of the joints that turn between the base and the link.
    """
    import jax
    import jax.numpy as jnp

    steps: list[tuple[np.ndarray, np.ndarray]] = []
    name: str | None = tip
    while name is not None:
        link = manipulator.link(name)
        if link.joint is not None:
            turns = isinstance(link.joint, arm.joints.Revolute)
            axis = np.asarray(link.joint.axis) if turns else np.zeros(3)
            steps.insert(0, (link.joint.precursor.matrix(), axis))
        name = link.parent

    def product(A: list, B: list) -> list:
        def entry(i: int, j: int) -> object:
            total = A[i][3] if j == 3 else 0.0
            for k in range(3):
                if not (isinstance(B[k][j], float) and B[k][j] == 0.0):
                    total = total + A[i][k] * B[k][j]
            return total

        return [[entry(i, j) for j in range(4)] for i in range(3)]

    def rows(matrix: np.ndarray) -> list:
        nothing = 1e-8 if dtype == "float32" else 1e-15
        clean = np.where(np.abs(matrix) < nothing, 0.0, matrix)
        return [[float(x) for x in row] for row in clean[:3]]

    def forward(q: jax.Array) -> jax.Array:
        X = rows(np.eye(4))
        k = 0
        for placement, axis in steps:
            X = product(X, rows(placement))
            turn = axis @ np.ones(3)
            if not turn:
                continue
            c, s = jnp.cos(q[k]), jnp.sin(q[k]) * turn
            if abs(axis[2]) > 0.5:
                R = [[c, -s, 0.0, 0.0], [s, c, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]
            elif abs(axis[1]) > 0.5:
                R = [[c, 0.0, s, 0.0], [0.0, 1.0, 0.0, 0.0], [-s, 0.0, c, 0.0]]
            else:
                R = [[1.0, 0.0, 0.0, 0.0], [0.0, c, -s, 0.0], [0.0, s, c, 0.0]]
            X = product(X, R)
            k += 1
        flat = [jnp.asarray(x, dtype) for row in X for x in row]
        last = [jnp.asarray(float(x), dtype) for x in (0, 0, 0, 1)]
        return jnp.stack([*flat, *last]).reshape(4, 4)

    return jax.jit(jax.vmap(forward))
