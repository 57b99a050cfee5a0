"""Times along paths beside toppra, on the same curve, grid and limits.

Within limits of jerk, which toppra has none of, beside a direct transcription
(`jerk_reference.py`), and Ruckig on straight lines.
"""

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


JERK = 60.0
MANY, WITH_JERK = 100, 64


def figures() -> Iterator[Figure]:
    """Yield the figures of times along paths."""
    yield from _spline_figures()
    yield from _jerk_figures()


def _jerk_figures() -> Iterator[Figure]:
    """Yield those within limits of jerk, of smooth paths of many waypoints."""
    cell = arm.example("ur5e_on_oval")
    coarse = random_paths(WITH_JERK, KNOTS, len(cell.joint_names))
    free = {"velocity": VELOCITY, "acceleration": ACCELERATION}
    limits: dict[str, Any] = {**free, "jerk": JERK}
    # waypoints along splines through few, as a planner or a teach pendant gives them
    splines = cell.time_path(coarse, **free).curve
    parts = np.linspace(0.0, KNOTS - 1.0, MANY)
    paths = np.stack([splines.evaluate((row,), parts)[0] for row in range(WITH_JERK)])
    timed = cell.time_path(paths, **limits)
    runs = {
        "ours": lambda: cell.time_path(paths[0], **limits),
        "batch": lambda: cell.time_path(paths, **limits),
    }
    if find_spec("toppra"):
        at, grid = timed.curve.at[0], timed.parameter[0]
        runs["toppra"] = lambda: toppra_duration(paths[0], at, grid, **free)
    times = dict(zip(runs, best_times(*runs.values(), turns=20), strict=True))
    what = f"{MANY} waypoints of 7 joints, limits of jerk"
    yield within(f"{what}: one path", times["ours"], at_most=1e-3)
    yield within(
        f"{what}: a path of {WITH_JERK}", times["batch"] / WITH_JERK, at_most=5e-5
    )
    if "toppra" in times:
        name = f"{what}: one path, beside toppra without them"
        yield cheaper(name, times["ours"], times["toppra"], at_most=0.5)
    excess = 0.0
    for row in range(WITH_JERK):
        motion = timed.motion(row)
        found = motion.sampled(count=4000)
        for part, limit in zip(found[2:], limits.values(), strict=True):
            excess = max(excess, float(np.abs(part).max()) / limit - 1.0)
    yield _share(f"{what}: greatest excess of {WITH_JERK} paths", excess, 1e-3)
    if find_spec("scipy"):
        yield _share(f"{what}: duration above the reference", _above(timed), 1e-2)


def _above(timed: Any) -> float:
    """Return by how much a duration of three exceeds the reference at most."""
    from benchmarks.jerk_reference import reference_duration

    worst = -1.0
    for row in range(3):
        at, knots = timed.curve.at[row], timed.curve.knots[row]

        def derivatives(
            s: Array, at: Array = at, knots: Array = knots, row: int = row
        ) -> tuple[Array, Array, Array]:
            knot = np.clip(np.searchsorted(at, s, side="right") - 1, 0, len(at) - 2)
            gaps = np.diff(at)
            _, slope, bend = timed.curve.evaluate(
                (row,), knot + (s - at[knot]) / gaps[knot]
            )
            third = np.diff(knots[:, 2], axis=0) / gaps[:, None]
            return slope, bend, third[knot]

        n = knots.shape[-1]
        best = reference_duration(
            derivatives,
            float(at[-1]),
            velocity=np.full(n, VELOCITY),
            acceleration=np.full(n, ACCELERATION),
            jerk=np.full(n, JERK),
            points=400,
        )
        worst = max(worst, float(timed.duration[row]) / best - 1.0)
    return worst


def _share(name: str, value: float, at_most: float) -> Figure:
    text = f"{value:.1e}"
    return Figure(name, text, "", f"<= {at_most:g}", text, value <= at_most)


def _spline_figures() -> Iterator[Figure]:
    """Yield those without limits of jerk."""
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
