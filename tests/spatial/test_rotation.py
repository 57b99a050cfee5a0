"""Rotations: exponential and logarithm, with their singular spots at 0 and pi."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from armillary.errors import ModelError
from armillary.spatial import rotation as rot
from armillary.spatial.vector import EYE, multiply, rows, transpose
from armillary.trace import evaluate, jvp, trace

near = {"rtol": 0, "atol": 4e-15}
ANGLES = [0.0, 1e-300, 1e-12, 1e-7, 1e-3, 0.06, 1.0, 2.0, 3.0]
ANGLES += [math.pi - angle for angle in ANGLES[:5]]
AXES = [(1, 0, 0), (0, -1, 0), (0, 0, 1), (1, 1, 0), (3, 0, -4), (-1, 2, 2), (7, 1, -3)]


def directions() -> list[np.ndarray]:
    return [np.divide(axis, np.linalg.norm(axis)) for axis in AXES]


def vectors() -> list[tuple[float, ...]]:
    pairs = itertools.product(directions(), ANGLES)
    return [tuple(map(float, angle * axis)) for axis, angle in pairs]


def test_exp_is_that_of_scipy_and_a_rotation(sample) -> None:
    for v in sample(3, count=40):
        m = rot.exp(v)
        np.testing.assert_allclose(m, Rotation.from_rotvec(v).as_matrix(), **near)
        assert rot.orthonormality_error(m) < 3e-15
        assert rot.is_proper(m)
        np.testing.assert_allclose(multiply(m, transpose(m)), EYE, **near)


def test_log_undoes_exp(sample) -> None:
    for v in sample(3, count=40):
        if np.linalg.norm(v) < math.pi:
            np.testing.assert_allclose(rot.log(rot.exp(v)), v, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("v", vectors())
def test_log_undoes_exp_at_the_singular_angles(v: tuple[float, float, float]) -> None:
    back = np.array(rot.log(rot.exp(v)))
    if np.linalg.norm(v) > math.pi - 1e-13 and np.dot(back, v) < 0:
        back = -back  # at a half turn both are right
    np.testing.assert_allclose(back, v, rtol=0, atol=5e-15)
    matrix = Rotation.from_rotvec(v).as_matrix()
    scipys = np.array(rot.log(rows(matrix)))
    same = min(np.max(np.abs(scipys - v)), np.max(np.abs(scipys + v)))
    assert same < 5e-15


def test_log_is_as_exact_where_its_series_ends_as_elsewhere() -> None:
    mpmath.mp.dps = 40
    for angle in [*np.geomspace(1e-9, 3.0, 60), *np.linspace(0.06, 0.07, 40)]:
        half = mpmath.mpf(float(angle)) / 2
        q = (float(mpmath.cos(half)), float(mpmath.sin(half)), 0.0, 0.0)
        exact = 2 * mpmath.atan2(mpmath.mpf(q[1]), mpmath.mpf(q[0]))
        (found, _, _) = rot.quaternion_log(q)
        assert abs((mpmath.mpf(found) - exact) / exact) < 6e-16


def test_log_never_exceeds_a_half_turn(sample) -> None:
    for v in sample(3, count=40):
        for factor in (1.0, 3.0, 10.0):
            m = rot.exp(tuple(factor * x for x in v))
            assert np.linalg.norm(rot.log(m)) <= math.pi + 1e-15
            np.testing.assert_allclose(rot.exp(rot.log(m)), m, rtol=0, atol=2e-14)


def test_about_an_axis_is_exp_whatever_the_axis_length() -> None:
    for v, angle in itertools.product(directions(), ANGLES):
        expected = rot.exp(tuple(angle * v))
        for length in (1.0, 0.02, 500.0):
            m = rot.about_axis(tuple(map(float, length * v)), angle)
            np.testing.assert_allclose(m, expected, **near)


@pytest.mark.parametrize("quarters", range(-5, 6))
def test_right_angles_are_exact(quarters: int) -> None:
    angle = quarters * math.pi / 2
    about = {(1, 0, 0): rot.about_x, (0, 1, 0): rot.about_y, (0, 0, 1): rot.about_z}
    for axis, function in about.items():
        expected = np.rint(Rotation.from_rotvec(angle * np.array(axis)).as_matrix())
        assert np.array_equal(function(angle), expected)
        for length in (1.0, -1.0, 0.3):
            signed = tuple(length * x for x in axis)
            m = rot.about_axis(signed, math.copysign(angle, length * angle))
            assert np.array_equal(m, expected)


def test_a_third_of_a_turn_about_the_diagonal_permutes_the_axes_exactly() -> None:
    m = rot.about_axis((1.0, 1.0, 1.0), 2.0 * math.pi / 3.0)
    assert m == ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0))


@pytest.mark.parametrize("axis", [(1.0, 0, 0), (0, 1.0, 0), (0, 0, -2.0)])
def test_about_a_coordinate_axis_the_trace_is_a_sine_and_a_cosine(axis) -> None:
    program = trace(lambda q: rot.about_axis(axis, q), q=())
    assert program.operation_count == 3  # sin, cos, neg


def test_exp_has_its_exact_derivative_at_zero() -> None:
    def rates(v, u):
        flat = [x for row in rot.exp(tuple(v)) for x in row]
        return jvp(flat, list(zip(v, u, strict=True)))

    program = trace(rates, v=(3,), u=(3,))
    u = (0.3, -0.7, 0.2)
    expected = np.cross(np.eye(3), u)  # the rows of [u]
    at_zero = np.reshape(evaluate(program, (0.0, 0.0, 0.0, *u)), (3, 3))
    np.testing.assert_allclose(at_zero, expected, **near)


@pytest.mark.parametrize("angle", [0.0, 1e-7, 0.0316, 0.0317, 1.0, math.pi - 1e-7])
def test_the_derivative_of_log_after_exp_is_the_identity(angle: float) -> None:
    def rates(v, u):
        return jvp(rot.log(rot.exp(tuple(v))), list(zip(v, u, strict=True)))

    program = trace(rates, v=(3,), u=(3,))
    u = (0.3, -0.7, 0.2)
    for axis in directions():
        found = evaluate(program, (*(angle * axis), *u))
        np.testing.assert_allclose(found, u, rtol=0, atol=1e-8 if angle > 3 else 1e-13)


@pytest.mark.parametrize("angle", [0.0, 1e-7, 0.0316, 0.0317, 1.0])
def test_the_second_derivative_of_log_after_exp_is_zero(angle: float) -> None:
    def rates(v, u):
        seeds = list(zip(v, u, strict=True))
        return jvp(jvp(rot.log(rot.exp(tuple(v))), seeds), seeds)

    program = trace(rates, v=(3,), u=(3,))
    for axis in directions():
        found = evaluate(program, (*(angle * axis), 0.3, -0.7, 0.2))
        np.testing.assert_allclose(found, (0.0, 0.0, 0.0), rtol=0, atol=1e-12)


def test_nearest_rotation_is_one_and_leaves_rotations_alone(sample) -> None:
    rng = np.random.default_rng(3)
    for v in sample(3):
        m = rot.exp(v)
        sheared = rows(m + rng.uniform(-1e-3, 1e-3, (3, 3)))
        nearest = rot.nearest_rotation(sheared)
        assert rot.orthonormality_error(nearest) < 3e-15
        assert np.max(np.abs(np.subtract(nearest, m))) < 2e-3
        # Of all rotations near it none is nearer.
        distance = np.linalg.norm(np.subtract(nearest, sheared))
        for u in (1e-4 * np.eye(3)).tolist():
            other = multiply(nearest, rot.exp(tuple(u)))
            assert np.linalg.norm(np.subtract(other, sheared)) > distance
    assert rot.nearest_rotation(EYE) is EYE


@pytest.mark.parametrize("axis", [(0.0, 0.0, 0.0), (math.nan, 0.0, 1.0)])
def test_an_axis_without_direction_is_refused(axis) -> None:
    with pytest.raises(ModelError, match=r"direction .* is zero or not finite"):
        rot.about_axis(axis, 1.0)


def test_nan_stays_nan() -> None:
    m = rot.exp((math.nan, 0.0, 0.0))
    assert all(math.isnan(x) for row in m for x in row)
    assert all(map(math.isnan, rot.log(((math.nan,) * 3,) * 3)))


def test_robworks_example_of_a_half_turn() -> None:
    """Gold: EAA and quaternion (w first here) of RobWork's own test."""
    m = rows([[-1, 0, 0], [0, 0, 1], [0, 1, 0]])
    np.testing.assert_allclose(rot.log(m), (0.0, 2.22144, 2.22144), atol=5e-6)
    q = rot.quaternion_from_rows(m)
    np.testing.assert_allclose(q, (0.0, 0.0, 0.707107, 0.707107), atol=5e-7)


def test_isaacs_example_axis_of_four_digits_gives_an_exact_rotation() -> None:
    m = rot.about_axis((0.7071, 0.7071, 0.0), math.pi)
    assert m == ((0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, -1.0))
