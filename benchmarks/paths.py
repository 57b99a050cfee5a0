"""Times along paths beside toppra, on the same curve, grid and limits."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

import armillary as arm
from benchmarks.measure import Figure, best_times, cheaper, within

Array = npt.NDArray[np.float64]

VELOCITY, ACCELERATION = 2.0, 8.0
KNOTS, PER_KNOT, BATCH, COMPARED = 6, 20, 512, 40


def figures() -> Iterator[Figure]:
    """Yield the figures of times along paths."""
    cell = arm.example("ur5e_on_oval")
    paths = random_paths(BATCH, KNOTS, len(cell.joint_names))
    limits: dict[str, Any] = {
        "velocity": VELOCITY,
        "acceleration": ACCELERATION,
        "intervals": PER_KNOT,
    }
    points = (KNOTS - 1) * PER_KNOT + 1
    runs = {
        "ours": lambda: cell.time_path(paths[0], **limits),
        "batch": lambda: cell.time_path(paths, **limits),
    }
    timed = cell.time_path(paths, **limits)
    at = timed.curve.at
    if find_spec("toppra"):
        grid = timed.parameter[0]
        runs["toppra"] = lambda: toppra_duration(
            paths[0], at[0], grid, velocity=VELOCITY, acceleration=ACCELERATION
        )
    times = dict(zip(runs, best_times(*runs.values(), turns=30), strict=True))
    what = f"{KNOTS} waypoints of 7 joints, {points} points"
    yield within(f"{what}: one path", times["ours"], at_most=200e-6)
    yield within(f"{what}: a path of {BATCH}", times["batch"] / BATCH, at_most=20e-6)
    if "toppra" not in times:
        return
    ours, peer = times["ours"], times["toppra"]
    yield cheaper(f"{what}: one path, beside toppra", ours, peer, at_most=0.05)
    theirs = [
        toppra_duration(
            paths[k],
            at[k],
            timed.parameter[k],
            velocity=VELOCITY,
            acceleration=ACCELERATION,
        )
        for k in range(COMPARED)
    ]
    worst = float(np.abs(timed.duration[:COMPARED] / theirs - 1.0).max())
    yield Figure(
        f"{what}: durations of {COMPARED} paths, the greatest difference from toppra's",
        f"{worst:.1e}",
        "",
        "<= 1e-3",
        f"{worst:.1e}",
        worst <= 1e-3,
    )


def random_paths(batch: int, knots: int, joints: int) -> Array:
    """Return waypoints of random walks, shape (batch, knots, joints)."""
    rng = np.random.default_rng(3)
    return np.cumsum(0.4 * rng.normal(size=(batch, knots, joints)), axis=1)


def toppra_duration(
    path: Array,
    at: Array,
    grid: Array,
    *,
    velocity: Any = None,
    acceleration: Any = None,
    torque: Any = None,
) -> float:
    """Return how long toppra takes along the same natural spline [s].

    Args:
        path: Waypoints, shape (k, n).
        at: Their parameters, shape (k,).
        grid: Parameters of the points of the grid.
        velocity: Greatest rates, a number or shape (n,), or shape (n, 2).
        acceleration: The same of accelerations.
        torque: The function of inverse dynamics, and limits as above.
    """
    toppra: Any = import_module("toppra")
    toppra.setup_logging("ERROR")
    constraint, algorithm = toppra.constraint, toppra.algorithm
    n = path.shape[-1]
    rows: list[Any] = []
    if velocity is not None:
        rows.append(constraint.JointVelocityConstraint(_both(velocity, n)))
    # Limits hold at both ends of intervals, as here.
    both = constraint.DiscretizationType.Interpolation
    if acceleration is not None:
        limits = _both(acceleration, n)
        rows.append(constraint.JointAccelerationConstraint(limits, both))
    if torque is not None:
        dynamics, limits = torque
        rows.append(
            constraint.JointTorqueConstraint(
                dynamics, _both(limits, n), np.zeros(n), discretization_scheme=both
            )
        )
    found = algorithm.TOPPRA(
        rows,
        toppra.SplineInterpolator(at, path, bc_type="natural"),
        gridpoints=grid,
        solver_wrapper="seidel",
        parametrizer="ParametrizeConstAccel",
    ).compute_trajectory(0.0, 0.0)
    return float("nan") if found is None else float(found.duration)


def _both(limit: Any, joints: int) -> Array:
    """Return limits as toppra takes them, shape (n, 2)."""
    given = np.asarray(limit, dtype=np.float64)
    if given.ndim == 2:
        return given
    return np.broadcast_to(given, joints)[:, None] * [-1.0, 1.0]
