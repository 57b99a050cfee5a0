"""Times along paths against toppra, on the same curves and grids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from benchmarks.paths import random_paths, toppra_duration

import armillary as arm
from masses import with_inertias

pytestmark = pytest.mark.peers

pytest.importorskip("toppra", reason="toppra is not installed (the extra 'peers')")


@pytest.fixture(scope="module")
def cell() -> arm.Cell:
    return arm.example("ur5e_on_oval")


@pytest.mark.parametrize("knots", [2, 3, 6, 15])
def test_durations(cell: arm.Cell, knots: int):
    paths = random_paths(8, knots, 7)
    limits: dict[str, Any] = {
        "velocity": np.linspace(0.5, 2.0, 7),
        "acceleration": np.linspace(9.0, 3.0, 7),
    }
    timed = cell.time_path(paths, intervals=40, **limits)
    theirs = [
        toppra_duration(paths[k], timed.curve.at[k], timed.parameter[k], **limits)
        for k in range(len(paths))
    ]
    assert timed.duration == pytest.approx(theirs, rel=1e-6)


def test_durations_with_limits_of_both_directions(cell: arm.Cell):
    paths = random_paths(8, 5, 7)
    velocity = np.linspace(-1.5, -0.5, 7), np.linspace(0.5, 2.0, 7)
    acceleration = np.linspace(-2.0, -6.0, 7), np.linspace(9.0, 3.0, 7)
    timed = cell.time_path(
        paths, intervals=40, velocity=velocity, acceleration=acceleration
    )
    limits = {
        "velocity": np.stack(velocity, axis=-1),
        "acceleration": np.stack(acceleration, axis=-1),
    }
    theirs = [
        toppra_duration(paths[k], timed.curve.at[k], timed.parameter[k], **limits)
        for k in range(len(paths))
    ]
    assert timed.duration == pytest.approx(theirs, rel=1e-6)


def test_durations_within_torques():
    cell = with_inertias(arm.example("ur5e_on_oval"), 1)
    dynamics = cell.inverse_dynamics()
    paths = 0.5 * random_paths(6, 5, 7)
    still = np.zeros_like(paths)
    held = np.abs(dynamics(paths, still, still)).max(axis=(0, 1))
    limits = 3.0 * held + 5.0
    timed = cell.time_path(paths, torque=limits, acceleration=np.inf, intervals=40)
    theirs = [
        toppra_duration(
            paths[k],
            timed.curve.at[k],
            timed.parameter[k],
            velocity=cell.velocity_limits,
            torque=(dynamics, limits),
        )
        for k in range(len(paths))
    ]
    assert timed.success.all()
    assert timed.duration == pytest.approx(theirs, rel=1e-5)
