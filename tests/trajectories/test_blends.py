"""Rounded corners: how far from the polygon, and how smooth."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError, ShapeError
from armillary.trajectories.blends import blended


@pytest.fixture(scope="module")
def cell() -> arm.Cell:
    return arm.example("ur5e_on_oval")


def polygon(seed: int, count: int = 5, joints: int = 7) -> Any:
    rng = np.random.default_rng(seed)
    return np.cumsum(rng.normal(size=(count, joints)) * 0.5, axis=0)


@pytest.mark.parametrize("deviation", [1e-3, 0.05, 10.0])
def test_no_joint_deviates_by_more(deviation: float):
    for seed in range(5):
        corners = polygon(seed)
        curve = blended(corners, deviation).curve
        parts = np.linspace(0.0, len(curve.at) - 1.0, 150)
        q, _, _ = curve.evaluate((), parts)
        share = np.linspace(0.0, 1.0, 500)[:, None]
        lines = np.concatenate([a + share * (b - a) for a, b in pairwise(corners)])
        apart = [float(np.abs(lines - point).max(axis=1).min()) for point in q]
        assert max(apart) <= deviation * (1.0 + 1e-9) + 2e-3  # 2e-3: of the samples
        assert q[0] == pytest.approx(corners[0])
        assert q[-1] == pytest.approx(corners[-1])


def test_the_middle_of_a_corner_is_at_the_stated_deviation():
    """A right angle between long lines: c - 3/16 d u + 3/16 d w in its middle."""
    corners = np.array([[0.0, 0.0], [10.0, 0.0], [10.0, 10.0]])
    curve = blended(corners, 0.3).curve
    middle, _, _ = curve.evaluate((), np.array([1.5]))
    assert middle[0] == pytest.approx([10.0 - 0.3, 0.3])


def test_curvature_is_continuous_and_slopes_are_about_1():
    curve = blended(polygon(1), 0.05).curve
    inner = np.arange(1.0, len(curve.at) - 1.0)
    for order, tolerance in ((0, 1e-6), (1, 1e-4), (2, 1e-2)):
        left, right = (curve.evaluate((), inner + e)[order] for e in (-1e-8, 1e-8))
        assert left == pytest.approx(right, abs=tolerance)
    assert np.linalg.norm(curve.knots[:, 1], axis=-1) == pytest.approx(1.0)
    assert not curve.knots[:, 2].any()


def test_a_blended_path_is_faster_than_one_that_stops(cell: arm.Cell):
    corners = polygon(2)
    lines = np.stack([corners[:-1], corners[1:]], axis=1)
    stops = cell.time_path(lines, acceleration=8.0).duration.sum()
    coarse = cell.time_path(corners, blend=0.05, acceleration=8.0)
    fine = cell.time_path(corners, blend=0.005, acceleration=8.0)
    assert coarse.duration < fine.duration < stops
    batch = cell.time_path(
        np.stack([corners, 0.5 * corners]), blend=0.05, acceleration=8.0
    )
    assert batch.duration[0] == pytest.approx(float(coarse.duration), rel=1e-9)


def test_bad_input(cell: arm.Cell):
    corners = polygon(3)
    for blend in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ModelError, match="deviation at corners"):
            cell.time_path(corners, blend=blend, acceleration=8.0)
    with pytest.raises(ShapeError, match="3 inner waypoints"):
        cell.time_path(corners, blend=[0.1, 0.1], acceleration=8.0)
    with pytest.raises(ModelError, match="leave out at="):
        cell.time_path(corners, blend=0.1, at=range(5), acceleration=8.0)
    corners[2] = corners[1]
    reason = cell.time_path(corners, blend=0.1, acceleration=8.0).reason
    assert reason.item() == 4  # REPEATED
    still = cell.time_path(corners[[0] * 5], blend=0.1, acceleration=8.0)
    assert still.duration == 0.0
    line = cell.time_path(corners[:2], blend=0.1, acceleration=8.0)
    assert line.duration == pytest.approx(
        float(cell.time_path(corners[:2], acceleration=8.0).duration), rel=1e-2
    )
