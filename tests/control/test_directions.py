"""Tasks of directions far from their targets: angles fade, and nothing is singular."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary import tasks

R = arm.RateReason
START = np.array([0.1, 0.2, -1.2, 1.5, -1.0, -1.4, 0.3])


@pytest.fixture(scope="module")
def cell() -> arm.Cell:
    return arm.example("ur10_on_rail")


def turned(X: np.ndarray, angle: float) -> np.ndarray:
    """Return the z axis of a pose, turned about its x axis."""
    return np.cos(angle) * X[:3, 2] - np.sin(angle) * X[:3, 1]


def controller(cell: arm.Cell, task: Any, conflict: str) -> Any:
    return cell.controller(
        task,
        acceleration=1e6,
        velocity=1e3,
        limits=False,
        rate=1000.0,
        conflict=conflict,
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("conflict", ["bend", "slow"])
@pytest.mark.parametrize("degrees", [10.0, 90.0, 150.0, 179.99, 180.0])
@pytest.mark.parametrize("task", [tasks.AlignAxis("tool0"), tasks.LookAt("tool0")])
def test_angles_fade_at_the_gain_from_everywhere(
    cell: arm.Cell, task: Any, degrees: float, conflict: str
) -> None:
    fk = cell.fk("tool0")
    X, angle = fk(START), np.radians(degrees)
    is_view = isinstance(task, tasks.LookAt)
    goal = turned(X, angle) + (X[:3, 3] if is_view else 0.0)
    motion = controller(cell, task, conflict).simulate(START, goal, 300)
    assert (motion.reason == R.MET).all()
    Y = fk(motion.q)
    rays = goal - Y[:, :3, 3] if is_view else np.broadcast_to(goal, (301, 3))
    cosines = (Y[:, :3, 2] * rays).sum(axis=-1) / np.linalg.norm(rays, axis=-1)
    expected = angle * np.exp(-task.gain * motion.time)
    found = np.arccos(np.clip(cosines, -1.0, 1.0))
    assert np.abs(found - expected).max() < 0.02 * angle


@pytest.mark.parametrize("conflict", ["bend", "slow"])
def test_points_in_the_frame_that_looks_at_them_ask_for_no_turn(
    cell: arm.Cell, conflict: str
) -> None:
    control = controller(cell, tasks.LookAt("tool0"), conflict)
    at = cell.fk("tool0")(START)[:3, 3]
    step = control(START, np.zeros(7), at)
    assert step.reason == R.MET
    assert np.abs(step.qd).max() < 1e-6
    near = control(START, np.zeros(7), at + np.array([1e-9, -2e-9, 1e-12]))
    assert np.isfinite(near.qd).all()


def test_zero_directions_are_invalid(cell: arm.Cell) -> None:
    control = controller(cell, tasks.AlignAxis("tool0"), "bend")
    good = turned(cell.fk("tool0")(START), 1.0)
    step = control(START, np.zeros(7), [good, 0.0 * good, 1e-200 * good, 1e200 * good])
    assert step.reason.tolist() == [R.MET, R.INVALID, R.MET, R.MET]
    assert np.allclose(step.qd[2:], step.qd[0], rtol=1e-9)
