"""Targets out of reach: motion ends at the nearest pose, and says why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import armillary as arm
from armillary import tasks
from arms import arm_of_axes

R = arm.RateReason
LENGTHS = 0.5, 0.4
OUT = 2.5


@pytest.fixture(scope="module")
def two_links() -> arm.Cell:
    """An arm of two links in a plane, each in the order of the axes x, y."""
    at = np.array([[0.0, 0.0, 0.0], [LENGTHS[0], 0.0, 0.0]])
    tool = arm.Pose.translation(LENGTHS[1], 0.0, 0.0)
    return arm_of_axes("RR", [(0.0, 0.0, 1.0)] * 2, at, tool=tool)


def test_motion_ends_at_the_nearest_point(two_links: arm.Cell) -> None:
    control = two_links.controller(
        tasks.Position("tool", axes="xy"), acceleration=15.0, velocity=3.0, rate=500.0
    )
    rng = np.random.default_rng(2)
    angle = rng.uniform(-np.pi, np.pi, 100)
    far = np.exp(rng.uniform(np.log(1.0), np.log(50.0), 100))[:, None]
    targets = far * np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=-1)
    start = np.stack([angle, rng.uniform(-1.5, 1.5, 100)], axis=-1)
    start[:, 0] += rng.uniform(-2.5, 2.5, 100)
    motion = control.simulate(start, targets[:, None], 2500)
    assert np.abs(motion.qd[:, -500:]).max() < 2e-3
    assert (motion.reason[:, -1] == R.SINGULAR).all()
    end = two_links.fk("tool")(motion.q[:, -1])[:, :2, 3]
    # All points within a circle are reached: the nearest one is on it.
    nearest = sum(LENGTHS) * targets[:, :2] / far
    assert end == pytest.approx(nearest, abs=1e-3)


def test_far_poses_of_an_arm_on_a_rail(rail: arm.Cell) -> None:
    rng = np.random.default_rng(3)
    home = np.array([0.5, 0.0, -1.2, 1.5, -1.0, -1.4, 0.3])
    Q = home + rng.uniform(-0.8, 0.8, (12, 7))
    fk = rail.fk("tool0")
    X = fk(Q)
    away = rng.normal(size=(12, 3)) * [0.1, 1.0, 1.0]
    X[:, :3, 3] += 3.0 * away / np.linalg.norm(away, axis=1)[:, None]
    control = rail.controller(
        [tasks.Frame("tool0"), tasks.Posture()], acceleration=15.0, rate=500.0
    )
    motion = control.simulate(Q, [X[:, None], None], 4000)
    assert np.abs(motion.qd[:, -200:]).max() < 0.02
    assert np.isin(motion.reason[:, -1], [R.SINGULAR, R.LIMITS]).all()
    lower, upper = rail.limits
    bounds = list(zip(np.maximum(lower, -9.0), np.minimum(upper, 9.0), strict=True))

    def cost(q: Any, goal: Any) -> float:
        """Return the squared error that a Frame states."""
        at = fk(np.asarray(q))
        turn = goal[:3, :3] @ at[:3, :3].T
        cosine = np.clip(0.5 * (np.trace(turn) - 1.0), -1.0, 1.0)
        return float(((goal - at)[:3, 3] ** 2).sum() + 0.1 * np.arccos(cosine) ** 2)

    for q, goal in zip(motion.q[:, -1], X, strict=True):
        here = cost(q, goal)
        better = minimize(cost, q, (goal,), "L-BFGS-B", bounds=bounds)
        assert here - better.fun < 2e-3 * here


@pytest.mark.parametrize(
    ("task", "target"),
    [
        (lambda: tasks.Function(lambda q: [q[0] + 0.0 * q[1]]), [0.3]),
        (lambda: tasks.Function(lambda q: [(q[0] * (2.0 - q[0]))]), [OUT]),
    ],
)
def test_functions_end_where_they_are_greatest(
    two_links: arm.Cell, task: Any, target: Any
) -> None:
    control = two_links.controller(task(), acceleration=15.0, velocity=3.0, rate=500.0)
    motion = control.simulate([-0.4, 0.2], target, 2000)
    assert np.abs(motion.qd[-200:]).max() < 1e-4
    # The parabola q (2 - q) is greatest at 1.
    expected = 0.3 if target[0] < 1.0 else 1.0
    assert motion.q[-1, 0] == pytest.approx(expected, abs=1e-3)


def test_targets_within_reach_are_approached_as_before(two_links: arm.Cell) -> None:
    """Rates are those of plain least squares, J^-1 v, away from singular poses."""
    rng = np.random.default_rng(4)
    q = rng.uniform([-2.0, 0.6], [2.0, 2.4], (50, 2))
    fk, jacobian = two_links.fk("tool"), two_links.jacobian("tool")
    targets = fk(q + rng.uniform(-0.2, 0.2, q.shape))[:, :3, 3]
    control = two_links.controller(
        tasks.Position("tool", axes="xy"), acceleration=1e6, velocity=1e3, damping=1e-6
    )
    wanted = 10.0 * (targets - fk(q)[:, :3, 3])[:, :2]
    found = control(q, 0.0 * q, targets).qd
    assert found == pytest.approx(
        np.linalg.solve(jacobian(q)[:, :2], wanted[..., None])[..., 0], abs=1e-5
    )


def test_equal_tasks_that_conflict_are_least_squares(two_links: arm.Cell) -> None:
    control = two_links.controller(
        [tasks.Coupling({two_links.joint_names[0]: 1.0}, weight=w) for w in (1.0, 3.0)],
        acceleration=1e6,
        velocity=1e3,
    )
    step = control([0.0, 0.0], [0.0, 0.0], [0.0, 0.4])
    assert step.qd[0] == pytest.approx(10.0 * 0.3, rel=1e-3)


def test_a_target_that_comes_back_into_reach_is_followed() -> None:
    """What joints reach beside the direction that is out of reach damps nothing.

    Links of 0.4 m carry the wrist; targets leave its circle of 0.8 m by up to 0.09 m.
    The nearest wrist positions move at up to 0.3 m/s, so that the lag is 0.03 m.
    """
    places = np.array([[0.0, 0.0, 0.0], [0.4, 0.0, 0.0], [0.8, 0.0, 0.0]])
    tool = arm.Pose.translation(0.1, 0.0, 0.0)
    cell = arm_of_axes("RRR", [(0.0, 0.0, 1.0)] * 3, places, tool=tool)
    control = cell.controller(
        tasks.Frame("tool", position="xy", rotation="z"),
        acceleration=15.0,
        velocity=3.0,
        rate=500.0,
    )
    rng = np.random.default_rng(1)
    fk, start = cell.fk("tool"), np.array([0.6, -1.2, 0.3])
    X, time = fk(start), np.arange(1500) / 500.0
    targets = np.tile(X, (24, 1500, 1, 1))
    for row in targets:
        angle = rng.uniform(-1.0, 1.0) + np.arctan2(X[1, 3], X[0, 3])
        a = np.array([np.cos(angle), np.sin(angle)])
        out, aside = rng.uniform(0.05, 0.12), rng.uniform(-0.15, 0.15)
        row[:, :2, 3] += out * np.outer(1.0 - np.cos(2.0 * time), a)
        row[:, :2, 3] += aside * np.outer(np.sin(2.0 * time), [-a[1], a[0]])
    offset = 0.1 * X[:2, 0]
    wrist = targets[:, :, :2, 3] - offset
    radius = np.linalg.norm(wrist, axis=-1, keepdims=True)
    assert (radius.max(axis=1) > 0.82).sum() >= 8
    motion = control.simulate(np.tile(start, (24, 1)), targets, 1500)
    nearest = wrist * np.minimum(1.0, 0.8 / radius) + offset
    missed = np.linalg.norm(fk(motion.q[:, 1:])[..., :2, 3] - nearest, axis=-1)
    assert missed.max() < 0.05
