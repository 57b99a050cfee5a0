"""How far cubics go from a point."""

from __future__ import annotations

import numpy as np
import pytest

from armillary.model.spline import control_points, largest_distance

RANDOM = np.random.default_rng(0)
CUBICS = RANDOM.normal(size=(12, 4, 3))


def points_on(coefficients: np.ndarray, low: float, high: float) -> np.ndarray:
    w = np.linspace(low, high, 4001)
    return np.vander(w, 4, increasing=True) @ coefficients


@pytest.mark.sampled(4)
@pytest.mark.parametrize("cubic", CUBICS)
def test_control_points_are_those_of_the_same_curve(cubic: np.ndarray):
    low, high = np.sort(RANDOM.uniform(-1.0, 2.0, 2))
    b = control_points(cubic, low, high)
    x = np.linspace(0.0, 1.0, 4001)[:, np.newaxis]
    y = 1.0 - x
    curve = y**3 * b[0] + 3 * x * y**2 * b[1] + 3 * x**2 * y * b[2] + x**3 * b[3]
    assert curve == pytest.approx(points_on(cubic, low, high), abs=1e-13)


@pytest.mark.parametrize("cubic", CUBICS)
def test_the_largest_distance_is_found_from_above(cubic: np.ndarray):
    centre = RANDOM.normal(size=3)
    found = np.linalg.norm(points_on(cubic, 0.0, 1.0) - centre, axis=1).max()
    bound = largest_distance(control_points(cubic, 0.0, 1.0)[np.newaxis], centre)
    assert found <= bound <= found * (1.0 + 1e-7)


def test_of_many_the_farthest_counts():
    curves = np.array([control_points(cubic, 0.0, 1.0) for cubic in CUBICS])
    each = [largest_distance(curve[np.newaxis], np.zeros(3)) for curve in curves]
    assert largest_distance(curves, np.zeros(3)) == pytest.approx(max(each), rel=1e-9)


def test_of_no_curves_the_distance_is_zero():
    assert largest_distance(np.zeros((0, 4, 3)), np.ones(3)) == 0.0


def test_an_almost_round_curve_ends():
    """A cubic quarter circle stays between 1 and 1.0003 from the centre."""
    k = 4.0 / 3.0 * (np.sqrt(2.0) - 1.0)
    quarter = np.array([[1, 0, 0], [1, k, 0], [k, 1, 0], [0, 1, 0]], dtype=float)
    assert 1.0 <= largest_distance(quarter[np.newaxis], np.zeros(3)) <= 1.0003
    point = np.tile([3.0, 4.0, 0.0], (2, 4, 1))
    assert largest_distance(point, np.zeros(3)) == pytest.approx(5.0, rel=1e-12)
