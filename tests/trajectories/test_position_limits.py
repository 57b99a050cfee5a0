"""How far motions go beyond limits of positions, against dense samples."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ShapeError

UNIT = arm.Limits(lower=-1.0, upper=1.0, velocity=2.0, acceleration=5.0)


def cell_of(*limits: arm.CoupledLimit) -> arm.Cell:
    slide = arm.joints.Prismatic(axis=(1, 0, 0))
    links = [arm.Link(name="base")]
    for k in range(3):
        links.append(
            arm.Link(name=f"j{k}", parent=links[-1].name, joint=slide, limits=UNIT)
        )
    made = arm.Manipulator(name="arm", links=links, coupled_limits=limits)
    return arm.Cell(manipulators=[made])


LIMITED = cell_of(
    arm.CoupledLimit(joints={"j0": 1, "j1": 1}, upper=0.5),
    arm.CoupledLimit(joints={"j2": 2, "j1": -1}, lower=-2.0, upper=2.5),
)


def dense(cell: arm.Cell, q: np.ndarray) -> np.ndarray:
    low, high = cell.limits
    box = np.maximum(low - q, q - high).max(axis=-1)
    return np.maximum(box, cell.limit_rows.excess(q)).max(axis=-1)


@pytest.mark.parametrize("cell", [cell_of(), LIMITED])
def test_paths_are_as_far_beyond_as_dense_samples_say(cell: arm.Cell):
    points = LIMITED.samples(30 * 5, seed=1).rows(0, 150).reshape(30, 5, 3)
    path = cell.time_path(points)
    when = np.linspace(0.0, 1.0, 4001) * path.duration[:, None]
    expected = dense(cell, path.at(when).q)
    found = path.limit_excess(cell)
    assert (found >= expected - 1e-9).all()
    assert np.abs(found - expected).max() < 1e-5
    # The spline overshoots between waypoints that keep all limits.
    assert 3 < (found > 0.0).sum() < 30


def test_straight_lines_between_allowed_ends_keep_all_limits():
    ends = LIMITED.samples(40, seed=2).rows(0, 40).reshape(20, 2, 3)
    assert (LIMITED.time_path(ends).limit_excess(LIMITED) <= 0.0).all()


def test_some_joints_of_a_cell_and_others():
    points = np.array([[0.0, 0.2], [0.3, -0.6], [0.1, 0.2]])
    path = LIMITED.time_path(points, joints=["j2", "j0"])
    found = path.limit_excess(LIMITED, joints=["j2", "j0"])
    q = np.zeros((4001, 3))
    q[:, [2, 0]] = path.at(np.linspace(0.0, path.duration, 4001)).q
    assert abs(found - dense(LIMITED, q)) < 1e-5
    with pytest.raises(ShapeError, match="2 joints, and 3 are named"):
        path.limit_excess(LIMITED)


def test_paths_that_failed_have_none():
    points = np.array([[[0.0] * 3, [np.nan] * 3], [[0.0] * 3, [0.1] * 3]])
    found = LIMITED.time_path(points).limit_excess(LIMITED)
    assert np.isnan(found[0])
    assert found[1] < 0.0


@pytest.mark.skipif(
    importlib.util.find_spec("ruckig") is None, reason="ruckig is not installed"
)
def test_motions_with_limited_jerk():
    q0, q1 = np.array([0.0, -0.5, 0.3]), np.array([-0.5, 0.9, 0.3])
    motion = LIMITED.point_to_point(q0, q1, jerk=20.0, qd0=[1.5, 0.0, 0.0])
    q = motion.at(np.linspace(0.0, motion.duration, 4001)).q
    assert abs(motion.limit_excess(LIMITED) - dense(LIMITED, q)) < 1e-5
