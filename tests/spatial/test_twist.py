"""Twists and wrenches: what stays the same when frames and points change."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.linalg import expm

from armillary.errors import ShapeError
from armillary.spatial import rotation as rot
from armillary.spatial import twist
from armillary.spatial.pose import IDENTITY, Pose
from armillary.trace import evaluate, jvp, trace

near = {"rtol": 1e-13, "atol": 1e-14}
AXES = [*np.eye(3).tolist(), [0.6, 0.0, -0.8], [2 / 3, -1 / 3, 2 / 3]]


def poses(sample) -> list[Pose]:
    return [Pose(rot.exp(x[3:]), x[:3]) for x in sample(6)]


def hat(V: twist.Vector6) -> np.ndarray:
    """The 4x4 matrix of a twist, which `expm` turns into a pose."""
    matrix = np.zeros((4, 4))
    matrix[:3, :3] = np.cross(np.eye(3), V[3:])
    matrix[:3, 3] = V[:3]
    return matrix


def test_adjoints_are_the_transforms_and_follow_products(sample) -> None:
    X, Y = poses(sample)[:2]
    for V in sample(6):
        for matrix, transform in (
            (twist.adjoint, twist.transform_twist),
            (twist.coadjoint, twist.transform_wrench),
        ):
            np.testing.assert_allclose(np.dot(matrix(X), V), transform(X, V), **near)
            both = transform(X, transform(Y, V))
            np.testing.assert_allclose(transform(X @ Y, V), both, **near)
            undone = transform(X.inverse(), transform(X, V))
            np.testing.assert_allclose(undone, V, **near)
            assert transform(IDENTITY, V) == V


def test_a_twist_changes_frames_as_its_matrix_does(sample) -> None:
    for X, V in zip(poses(sample), sample(6), strict=True):
        moved = X.matrix() @ hat(V) @ X.inverse().matrix()
        np.testing.assert_allclose(hat(twist.transform_twist(X, V)), moved, **near)


def test_power_is_the_same_in_every_frame_and_at_every_point(sample) -> None:
    for X, V, F in zip(poses(sample), sample(6), sample(6)[::-1], strict=True):
        power = pytest.approx(twist.power(V, F), rel=1e-12, abs=1e-14)
        there = twist.transform_twist(X, V), twist.transform_wrench(X, F)
        assert twist.power(*there) == power
        turned = twist.turn(X.rotation, V), twist.turn(X.rotation, F)
        assert twist.power(*turned) == power


def test_moving_a_point_is_transforming_by_a_translation(sample) -> None:
    for V, o in zip(sample(6), sample(3), strict=True):
        X = Pose.translation(*o).inverse()
        moved = twist.transform_twist(X, V)
        np.testing.assert_allclose(twist.move_twist(V, o), moved, **near)


def test_a_point_away_from_the_axis_moves_across_it() -> None:
    V = (0.0, 0.0, 0.0, 0.0, 0.0, 2.0)
    assert twist.move_twist(V, (3.0, 0.0, 0.0)) == (0.0, 6.0, 0.0, 0.0, 0.0, 2.0)


def test_exp_is_the_exponential_of_the_matrix(sample) -> None:
    for V in sample(6, count=30):
        np.testing.assert_allclose(twist.exp(V).matrix(), expm(hat(V)), **near)


def test_exp_of_a_sum_along_one_twist_is_a_product(sample) -> None:
    for V in sample(6):
        half = twist.exp(tuple(0.5 * x for x in V))
        assert (half @ half).approx_equal(twist.exp(V), 1e-14)
        backward = twist.exp(tuple(-x for x in V))
        assert backward.approx_equal(twist.exp(V).inverse(), 1e-14)


def test_log_undoes_exp(sample) -> None:
    for V in sample(6, count=40):
        if np.linalg.norm(V[3:]) < math.pi:
            back = twist.log(twist.exp(V))
            np.testing.assert_allclose(back, V, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-7, 0.4999, 0.5001, math.pi - 1e-7])
def test_log_undoes_exp_at_the_singular_angles(angle: float) -> None:
    for axis in AXES:
        V = (0.3, -2.0, 1.1, *(angle * x for x in axis))
        np.testing.assert_allclose(twist.log(twist.exp(V)), V, rtol=0, atol=1e-14)


def test_at_a_half_turn_exp_undoes_log() -> None:
    for axis in AXES:
        X = Pose(rot.about_axis(tuple(axis), math.pi), (0.3, -2.0, 1.1))
        assert twist.exp(twist.log(X)).approx_equal(X, 2e-15)


@pytest.mark.parametrize("angle", [0.0, 1e-7, 0.4999, 0.5001, 2.0])
def test_the_derivative_of_log_after_exp_is_the_identity(angle: float) -> None:
    def rates(v, u):
        return jvp(twist.log(twist.exp(tuple(v))), list(zip(v, u, strict=True)))

    program = trace(rates, v=(6,), u=(6,))
    u = (0.3, -0.7, 0.2, 0.1, 0.5, -0.4)
    for axis in AXES:
        V = (0.3, -2.0, 1.1, *(angle * x for x in axis))
        np.testing.assert_allclose(evaluate(program, (*V, *u)), u, rtol=0, atol=1e-12)


def test_a_screw_of_pitch_one_rises_by_its_angle() -> None:
    X = twist.exp((0.0, 0.0, math.pi / 2, 0.0, 0.0, math.pi / 2))
    expected = Pose.translation(0.0, 0.0, math.pi / 2) @ Pose.rotation_z(math.pi / 2)
    assert X.approx_equal(expected, 1e-15)


def test_another_count_of_numbers_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"shape \(6,\), not \(3,\)"):
        twist.vector6((1, 2, 3))
