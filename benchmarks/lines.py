"""Tools on lines: poses, joints and a proven deviation, beside loops of peers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

import armillary as arm
from benchmarks.measure import Figure, best_times, medians, within
from benchmarks.robots import SHARE, Robot, panda, ur5

Array = npt.NDArray[np.float64]

POSES = 1000
WITHIN = 1e-5  # [m]
ERRORS = 1e-6  # of inverse kinematics of the peers
CASES = {
    "UR5": (ur5, [0.6, -1.2, 1.8, -0.6, 1.5, 0.3], [0.0, -1.0, 0.0]),
    "Panda": (panda, [0.9, 0.5, 0.2, -1.9, -0.1, 2.3, 0.5], [0.0, -1.0, 0.0]),
}


def figures() -> Iterator[Figure]:
    """Yield the figures of lines of 1 m."""
    for name, (made, start, way) in CASES.items():
        robot = made()
        yield from _of_robot(name, robot, np.array(start), np.array(way))
    cell = arm.example("ur5e_on_oval")
    start = np.array([0.0, 0.0, -1.2, 1.8, -0.6, 1.5, 0.1])
    target = cell.fk("tool0")(start)
    target[:3, 3] += [0.3, 0.9, 0.0]
    yield from _own(
        "arm on an oval track",
        lambda step=None: cell.line("tool0", [target], start=start, step=step),
    )


def _of_robot(name: str, robot: Robot, start: Array, way: Array) -> Iterator[Figure]:
    cell, tip, joints = robot.cell, robot.tip, robot.joints
    target = cell.fk(tip, joints=joints)(start)
    target[:3, 3] += way

    def line(step: float | None = None) -> arm.CartesianPath:
        return cell.line(tip, [target], start=start, joints=joints, step=step)

    yield from _own(name, line)
    length = float(np.linalg.norm(way))
    peers: dict[str, Callable[[], object]] = {
        "pinocchio": lambda: pinocchio_line(robot, start, way)
    }
    if find_spec("roboticstoolbox"):
        peers["roboticstoolbox"] = toolbox_line(robot, start, way)
    own = partial(line, length / (POSES - 1))
    for peer, turns in zip(peers, medians(own, *peers.values(), turns=9), strict=True):
        yield turns.at_most(
            f"{name}, a line of {length:g} m, {POSES} poses: proven, beside a loop of "
            f"inverse kinematics of {peer}, not proven",
            0.1,
        )


def _own(name: str, line: Callable[..., arm.CartesianPath]) -> Iterator[Figure]:
    """Yield what our own line takes, and what is proven of it."""
    fine = line(1e-3)
    coarse = line()
    assert fine.success
    assert coarse.success
    for path, what in ((fine, "1 mm apart"), (coarse, "as far apart as that allows")):
        proven = path.deviation[0]
        yield Figure(
            f"{name}, {len(path.q)} samples {what}: proven to be within",
            f"{1e6 * proven:.1f} um",
            "",
            f"<= {1e6 * WITHIN:.0f} um",
            f"{1e6 * proven:.1f} um",
            path.proven and proven <= WITHIN,
        )
    times = best_times(lambda: line(1e-3), line, turns=30)
    yield within(f"{name}, {len(fine.q)} samples", times[0], at_most=5e-3)
    yield within(f"{name}, {len(coarse.q)} samples", times[1], at_most=5e-3)


def pinocchio_line(robot: Robot, start: Array, way: Array) -> Array:
    """Return joint positions along a line, one pose after another, shape (k, n).

    A loop of damped least squares, each pose from the one before, in Python.
    """
    pin: Any = import_module("pinocchio")
    model, data = robot.model, robot.data
    tip = model.getFrameId(robot.tip)
    pin.framesForwardKinematics(model, data, start)
    first = data.oMf[tip].copy()
    path, q = np.empty((POSES, model.nq)), start.copy()
    for k, t in enumerate(np.linspace(0.0, 1.0, POSES)):
        target = pin.SE3(first.rotation, first.translation + t * way)
        for _ in range(20):
            pin.computeJointJacobians(model, data, q)
            pin.updateFramePlacement(model, data, tip)
            error = pin.log6(data.oMf[tip].actInv(target)).vector
            if np.abs(error).max() < ERRORS:
                break
            J = pin.getFrameJacobian(model, data, tip, pin.LOCAL)
            q = q + J.T @ np.linalg.solve(J @ J.T + 1e-10 * np.eye(6), error)
        else:
            raise AssertionError("the peer misses a pose")
        path[k] = q
    return path


def toolbox_line(robot: Robot, start: Array, way: Array) -> Callable[[], Array]:
    """Return the same by `ctraj` and `ik_LM` of the Robotics Toolbox for Python."""
    toolbox: Any = import_module("roboticstoolbox")
    if find_spec("xacrodoc"):  # by which it finds packages since 1.5
        packages: Any = import_module("xacrodoc.packages")
        packages.update_package_cache({"example-robot-data": str(SHARE)})
    se3: Any = import_module("spatialmath").SE3
    model = toolbox.Robot.URDF(str(robot.path))
    end = next(link for link in model.links if link.name == robot.tip)
    q0 = np.asarray(start)
    first = model.fkine(q0, end=end)
    last = se3.Trans(*way) * first

    def line() -> Array:
        path, q = np.empty((POSES, len(q0))), q0
        for k, target in enumerate(toolbox.ctraj(first, last, POSES)):
            q, found, *_ = model.ik_LM(target, end=end, q0=q, tol=ERRORS**2)
            assert found, "the peer misses a pose"
            path[k] = q
        return path

    return line
