"""Rates of targets: tasks follow what moves without lag."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import armillary as arm
from armillary import tasks
from armillary.errors import ShapeError

Array = npt.NDArray[np.float64]
HOME = np.array([0.1, 0.2, -1.2, 1.5, -1.0, -1.4, 0.3])
RATE = 500.0


def turned(X: Array, twist: Array, time: float) -> Array:
    """Return a pose after a time: moved along its base's axes, and turned in them."""
    v, w = twist[:3], twist[3:]
    angle = np.linalg.norm(w) * time
    k = w / np.linalg.norm(w)
    K = np.array([[0, -k[2], k[1]], [k[2], 0, -k[0]], [-k[1], k[0], 0]])
    R = np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K
    found = X.copy()
    found[:3, :3] = R @ X[:3, :3]
    found[:3, 3] += v * time
    return found


def constant(value: Any) -> Callable[[float], Any]:
    return lambda _: value


def ends(cell: arm.Cell, task: Any, target: Any, rate: Any) -> list[Array]:
    """Return where the cell is after 1 s, without and with the rate of the target."""
    control = cell.controller(
        [task, tasks.Posture()], acceleration=1e6, limits=False, rate=RATE
    )
    return [
        control.simulate(HOME, [target, None], 500, target_rates=given).q[-1]
        for given in (None, [rate, None])
    ]


def lag(
    cell: arm.Cell, task: Any, of_q: Any, target: Any, rate: Any
) -> tuple[float, float]:
    """Return the errors after 1 s, without and with the rate of the target."""
    found = ends(cell, task, target, rate)
    late, exact = (
        float(np.abs(np.asarray(of_q(q)) - target(1.0)).max()) for q in found
    )
    return late, exact


def test_every_task_follows_what_moves(rail: arm.Cell) -> None:
    fk = rail.fk("tool0")
    X = fk(HOME)
    twist = np.array([0.05, -0.04, 0.03, 0.1, 0.2, -0.1])
    slow = 0.06 * np.ones(3)
    centre = rail.centre_of_mass()

    def total(q: Any) -> list[Any]:
        return [q[1] * q[2], q[3] - q[4]]

    value = np.array(total(HOME))
    cases: list[Any] = [
        (tasks.Frame("tool0"), fk, lambda t: turned(X, twist, t), constant(twist)),
        (
            tasks.Position("tool0"),
            lambda q: fk(q)[:3, 3],
            lambda t: X[:3, 3] + slow * t,
            constant(slow),
        ),
        (
            tasks.CentreOfMass(),
            centre,
            lambda t: centre(HOME) + 0.5 * slow * t,
            constant(0.5 * slow),
        ),
        (
            tasks.Coupling({rail.joint_names[1]: 1.0, rail.joint_names[2]: 2.0}),
            lambda q: q[1] + 2.0 * q[2],
            lambda t: HOME[1] + 2.0 * HOME[2] + 0.3 * t,
            constant(0.3),
        ),
        (
            tasks.Function(total),
            lambda q: np.array(total(q)),
            lambda t: value + t * np.array([0.1, -0.2]),
            constant(np.array([0.1, -0.2])),
        ),
    ]
    for task, of_q, target, rate in cases:
        late, exact = lag(rail, task, of_q, target, rate)
        assert late > 2e-3, task
        assert exact < 0.1 * late, task


def test_directions_follow_what_moves(rail: arm.Cell) -> None:
    fk = rail.fk("tool0")
    X = fk(HOME)

    def direction(time: float) -> Array:
        return X[:3, 2] + time * np.array([0.3, -0.2, 0.1])

    def point(time: float) -> Array:
        return X[:3, 3] + [0.3, 0.5, 0.8] + time * np.array([0.1, 0.3, -0.2])

    cases: list[Any] = [
        (tasks.AlignAxis("tool0"), direction, [0.3, -0.2, 0.1], lambda q: direction(1)),
        (
            tasks.LookAt("tool0"),
            point,
            [0.1, 0.3, -0.2],
            lambda q: point(1) - fk(q)[:3, 3],
        ),
    ]
    for task, target, rate, wanted in cases:
        late, exact = (
            float(np.abs(np.cross(fk(q)[:3, 2], wanted(q))).max())
            for q in ends(rail, task, target, np.array(rate))
        )
        assert late > 5e-3, task
        assert exact < 0.1 * late, task


def test_targets_in_a_frame_that_moves(rail: arm.Cell) -> None:
    base = "track/carriage"
    fk = rail.fk("tool0", relative_to=base)
    X = fk(HOME)
    twist = np.array([0.02, -0.03, 0.02, 0.1, 0.05, -0.1])
    task = tasks.Frame("tool0", relative_to=base)
    late, exact = lag(rail, task, fk, lambda t: turned(X, twist, t), constant(twist))
    assert late > 2e-3
    assert exact < 0.06 * late


def test_rates_may_be_listed_by_step_and_differ_by_row(rail: arm.Cell) -> None:
    fk = rail.fk("tool0")
    control = rail.controller(tasks.Position("tool0"), acceleration=10.0)
    at = fk(HOME)[:3, 3]
    rates = np.zeros((2, 40, 3))
    rates[1, :, 0] = 0.1
    motion = control.simulate(HOME, at, 40, target_rates=rates)
    alone = control.simulate(HOME, at, 40, target_rates=constant(rates[1, 0]))
    rest = control.simulate(HOME, at, 40)
    assert motion.q[1] == pytest.approx(alone.q, abs=1e-12)
    assert motion.q[0] == pytest.approx(rest.q, abs=1e-12)
    assert np.abs(motion.q[1, -1] - motion.q[0, -1]).max() > 1e-4


def test_rates_of_wrong_shapes_are_refused(rail: arm.Cell) -> None:
    control = rail.controller([tasks.Frame("tool0"), tasks.Posture()])
    q, qd, X = HOME, np.zeros(7), rail.fk("tool0")(HOME)
    with pytest.raises(ShapeError, match="one for each task"):
        control(q, qd, [X, None], target_rates=[None])
    with pytest.raises(ShapeError, match=r"target_rates\[0\] of shape"):
        control(q, qd, [X, None], target_rates=[np.eye(4), None])
    bad = control(q, qd, [X, None], target_rates=[np.full(6, np.nan), None])
    assert bad.reason == arm.RateReason.INVALID
