"""Numbers of a cell as inputs, and calibration, beside constants and differences.

The first peer of a calibration does what its users write with SciPy: residuals of the
same measurements, by NumPy over all rows at once, and derivatives by finite
differences. The other, pybotics, asks its model for one position after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from importlib import import_module
from time import process_time
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares
from scipy.stats import chi2, norm

import armillary as arm
from armillary import Cell
from armillary.calibration.measurements import Positions
from benchmarks.closed import one_thread
from benchmarks.measure import Figure, beside, best_times, cheaper, faster, within

Array = npt.NDArray[np.float64]

JOINTS = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")
ROWS, MEASURED, NOISE = 20_000, 60, 1e-4
TRIALS = 100


def figures() -> Iterator[Figure]:
    """Yield the figures of parameters and of calibration."""
    with one_thread():
        cell = arm.example("ur5e_on_oval")
        yield from of_kernels(cell)
        yield from of_calibration(cell)
        yield of_intervals(cell)


def dh_names(cell: Cell) -> list[str]:
    """Return the names of the 24 Denavit-Hartenberg numbers of the arm."""
    listed = cell.parameters([f"ur5e/{joint}" for joint in JOINTS])
    return [name for name in listed if "precursor" not in name]


def of_kernels(cell: Cell) -> Iterator[Figure]:
    """Yield the figures of a batch: 24 numbers as inputs, beside them as constants."""
    rng = np.random.default_rng(0)
    names = dh_names(cell)
    p = np.array(list(cell.parameters(names).values())) + rng.uniform(-0.01, 0.01, 24)
    other = cell.with_parameters(dict(zip(names, p.tolist(), strict=True)))
    q = rng.uniform(-1.0, 1.0, (ROWS, len(cell.joint_names)))
    X, J = np.empty((ROWS, 4, 4)), np.empty((ROWS, 6, 24))
    inputs, constants = cell.fk("tool0", parameters=names), other.fk("tool0")
    nominal, slopes = cell.fk("tool0"), cell.parameter_jacobian("tool0", names)
    assert np.abs(inputs(q, p) - constants(q)).max() < 1e-12
    ours, with_zeros, without = best_times(
        lambda: inputs(q, p, out=X),
        lambda: nominal(q, out=X),
        lambda: constants(q, out=X),
        clock=process_time,
    )
    # By itself: its results push the others out of the caches.
    (rates,) = best_times(lambda: slopes(q, p, out=J), clock=process_time)
    what = "poses of 24 numbers as inputs, out="
    yield cheaper(f"{what}, these as constants", ours, without, at_most=1.3)
    yield cheaper(f"{what}, nominal constants, many 0", ours, with_zeros, at_most=1.3)
    yield from of_corrections(cell, q, X)
    yield within("how a frame moves with 24 numbers, a row", rates / ROWS, at_most=1e-6)


def of_corrections(cell: Cell, q: Array, X: Array) -> Iterator[Figure]:
    """Yield the figure of six numbers for each of seven poses, beside constants."""
    corrected = [f"ur5e/{joint}.precursor" for joint in JOINTS]
    names = list(cell.parameters([*corrected, "tool0"]))
    p = np.random.default_rng(2).uniform(-0.01, 0.01, len(names))
    inputs = cell.fk("tool0", parameters=names)
    constants = cell.with_parameters(dict(zip(names, p, strict=True))).fk("tool0")
    assert np.abs(inputs(q, p) - constants(q)).max() < 1e-12
    ours, without = best_times(
        lambda: inputs(q, p, out=X), lambda: constants(q, out=X), clock=process_time
    )
    what = "poses of 42 corrections as inputs, these as constants"
    yield cheaper(what, ours, without, at_most=1.3)


def of_calibration(cell: Cell) -> Iterator[Figure]:
    """Yield the figures of finding what is decided of 24 numbers from 60 positions."""
    rng = np.random.default_rng(1)
    names = dh_names(cell)
    start = np.array(list(cell.parameters(names).values()))
    q = rng.uniform(-2.0, 2.0, (MEASURED, 7))
    q[:, 0] = 0.0
    truth = start + rng.normal(0.0, 1e-3, len(names))
    x = cell.fk("tool0", parameters=names)(q, truth)[:, :3, 3]
    x = x + rng.normal(0.0, NOISE, x.shape)
    measured = Positions("tool0", q, x, sigma=NOISE)
    found = arm.calibrate(cell, measured, names)
    free = ~found.identified.is_fixed
    X_WB = np.array(cell.pose("ur5e/base", cell.home))
    X_6T = np.linalg.inv(cell.pose("ur5e/wrist_3", cell.home)) @ cell.pose(
        "tool0", cell.home
    )

    def residuals(values: Array) -> Array:
        p = start.copy()
        p[free] = values
        X = np.broadcast_to(X_WB, (MEASURED, 4, 4))
        for k, (theta, d, a, alpha) in enumerate(p.reshape(6, 4)):
            X = X @ paul(theta + q[:, k + 1], d, a, alpha)
        return (((X @ X_6T)[:, :3, 3] - x) / NOISE).ravel()

    def by_differences() -> Array:
        return least_squares(residuals, start[free], x_scale="jac").x

    theirs = by_differences()
    apart = np.abs(found.values[free] - theirs) / found.std[free]
    assert apart.max() < 0.1, apart.max()
    ours, peer = best_times(
        lambda: arm.calibrate(cell, measured, names),
        by_differences,
        turns=6,
        clock=process_time,
    )
    yield within("calibration, 24 numbers, 60 positions", ours, at_most=0.05)
    what = "calibration, SciPy with differences of NumPy"
    yield faster(what, ours, peer, at_least=50.0)
    what = "calibration, 24 numbers of a UR10 from 60 positions, pybotics"
    yield from beside("pybotics", what, partial(_of_pybotics, what, ours))


def _of_pybotics(what: str, ours: float) -> Iterator[Figure]:
    """Yield the figure of its own example: all numbers of a UR10, lengths in mm."""
    models, robots, optimization = (
        cast("Any", import_module(f"pybotics.{name}"))
        for name in ("predefined_models", "robot", "optimization")
    )
    rng = np.random.default_rng(1)
    nominal: Array = models.ur10()
    q = rng.uniform(-2.0, 2.0, (MEASURED, 6))
    truth = robots.Robot.from_parameters(nominal + rng.normal(0.0, 1e-3, nominal.shape))
    x = np.array([truth.fk(row)[:3, 3] for row in q])
    x += rng.normal(0.0, 1e3 * NOISE, x.shape)
    every = np.ones(nominal.size, bool)

    def calibrated() -> Array:
        robot = robots.Robot.from_parameters(nominal.copy())
        asked = optimization.OptimizationHandler(robot, kinematic_chain_mask=every)
        start: Array = asked.generate_optimization_vector()
        distances = optimization.optimize_accuracy
        return least_squares(distances, start, args=(asked, q, x)).fun

    distances = calibrated()
    assert np.sqrt((distances**2).mean()) < 3e3 * NOISE  # of three coordinates
    (peer,) = best_times(calibrated, turns=3, clock=process_time)
    yield faster(what, ours, peer, at_least=50.0)


def of_intervals(cell: Cell) -> Figure:
    """Return in how many of 100 calibrations what is decided lies where it is said to.

    That is the region of 95 % of all numbers that are decided by themselves, by their
    covariance; it may miss the truth in 5 of 100, and does in at most 10 by chance.
    """
    rng = np.random.default_rng(3)
    names = dh_names(cell)
    start = np.array(list(cell.parameters(names).values()))
    fk = cell.fk("tool0", parameters=names)
    joint = single = numbers = 0
    for _ in range(TRIALS):
        q = rng.uniform(-2.0, 2.0, (MEASURED, 7))
        q[:, 0] = 0.0
        truth = start + rng.normal(0.0, 1e-3, len(names))
        x = fk(q, truth)[:, :3, 3] + rng.normal(0.0, NOISE, (MEASURED, 3))
        found = arm.calibrate(cell, Positions("tool0", q, x, sigma=NOISE), names)
        decided = found.identifiable
        off = (found.values - truth)[decided]
        covariance = found.covariance[np.ix_(decided, decided)]
        distance = float(off @ np.linalg.solve(covariance, off))
        joint += distance < float(chi2.ppf(0.95, len(off)))
        single += int(np.sum(np.abs(off) < norm.ppf(0.975) * found.std[decided]))
        numbers += len(off)
    return Figure(
        f"calibrations of {TRIALS} whose region of 95 % holds all decided numbers",
        str(joint),
        "",
        ">= 90",
        f"{joint}; intervals of single numbers: {single / numbers:.1%}",
        joint >= 90,
    )


def paul(theta: Array, d: float, a: float, alpha: float) -> Array:
    """Return Tz(d) Rz(theta) Tx(a) Rx(alpha) for each theta, shape (n, 4, 4)."""
    c, s, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
    one, nil = np.ones_like(c), np.zeros_like(c)
    rows: Sequence[Sequence[Array]] = (
        (c, -s * ca, s * sa, a * c),
        (s, c * ca, -c * sa, a * s),
        (nil, sa * one, ca * one, d * one),
        (nil, nil, nil, one),
    )
    return np.moveaxis(np.array(rows), 2, 0)
