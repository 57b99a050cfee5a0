"""Limits of the speed and acceleration of a frame along paths."""

from __future__ import annotations

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError, UnknownName


@pytest.fixture(scope="module")
def cell() -> arm.Cell:
    return arm.example("ur5e_on_oval")


def test_speed_and_acceleration_of_a_frame(cell: arm.Cell):
    rng = np.random.default_rng(0)
    path = np.cumsum(rng.normal(size=(4, 7)) * 0.3, axis=0)
    free = cell.time_path(path, acceleration=8.0)
    timed = cell.time_path(
        path, acceleration=8.0, tool="tool0", tool_speed=0.5, tool_acceleration=1.5
    )
    assert timed.duration > free.duration
    motion = timed.motion()
    h = 1e-4
    t = np.linspace(h, motion.duration - h, 3000)
    p = [cell.fk("tool0")(motion.at(t + k * h).q)[:, :3, 3] for k in (-1, 0, 1)]
    speed = np.linalg.norm(p[2] - p[0], axis=1) / (2.0 * h)
    push = np.linalg.norm(p[2] - 2.0 * p[1] + p[0], axis=1) / h**2
    assert 0.49 < speed.max() < 0.505
    # between points of the grid, and where accelerations jump, a little more
    assert 1.4 < np.quantile(push, 0.995) < 1.53


def test_a_limit_of_speed_alone_makes_speed_constant(cell: arm.Cell):
    path = np.zeros((2, 7))
    path[1, 1] = 1.2
    timed = cell.time_path(path, acceleration=8.0, tool="tool0", tool_speed=0.1)
    motion = timed.motion()
    t = np.linspace(0.1 * motion.duration, 0.9 * motion.duration, 200)
    found = motion.at(t)
    J = cell.jacobian("tool0")(found.q)
    speed = np.linalg.norm(np.einsum("tij,tj->ti", J[:, :3], found.qd), axis=1)
    assert speed == pytest.approx(0.1, rel=1e-3)


def test_with_torques():
    pan_tilt = arm.example("pan_tilt")
    path = [[0.0, 0.0], [1.0, 0.4], [0.3, 0.8]]
    strong = pan_tilt.time_path(path, torque=5.0, acceleration=50.0)
    both = pan_tilt.time_path(
        path, torque=5.0, acceleration=50.0, tool="camera", tool_speed=0.01
    )
    assert both.duration > strong.duration


def test_bad_input(cell: arm.Cell):
    path = np.zeros((2, 7))
    path[1] = 0.1
    for more in ({"tool": "tool0"}, {"tool_speed": 1.0}):
        with pytest.raises(ModelError, match="Limits of a frame are given"):
            cell.time_path(path, acceleration=8.0, **more)  # type: ignore[arg-type]
    for bad in (0.0, -1.0, np.nan):
        with pytest.raises(ModelError, match="tool_speed"):
            cell.time_path(path, acceleration=8.0, tool="tool0", tool_speed=bad)
    with pytest.raises(UnknownName, match="tool9"):
        cell.time_path(path, acceleration=8.0, tool="tool9", tool_speed=1.0)
