"""Dual quaternions: the same group as poses, twice over."""

from __future__ import annotations

import numpy as np
import pytest

from armillary.errors import ModelError, ShapeError
from armillary.spatial import dual_quaternion as dual
from armillary.spatial import rotation as rot
from armillary.spatial import twist
from armillary.spatial.pose import IDENTITY, Pose

near = {"rtol": 0, "atol": 1e-14}


def poses(sample) -> list[Pose]:
    return [Pose(rot.exp(x[3:]), x[:3]) for x in sample(6)]


def minus(a: dual.DualQuaternion) -> dual.DualQuaternion:
    return tuple(-x for x in a)


def test_the_pose_comes_back_from_either_sign(sample) -> None:
    for X in poses(sample):
        a = dual.from_pose(X)
        assert a[0] >= 0.0
        assert dual.to_pose(a).approx_equal(X, 1e-14)
        assert dual.to_pose(minus(a)).approx_equal(X, 1e-14)


def test_products_and_conjugates_are_those_of_poses(sample) -> None:
    for X, Y in zip(*[iter(poses(sample))] * 2, strict=True):
        a, b = dual.from_pose(X), dual.from_pose(Y)
        assert dual.to_pose(dual.product(a, b)).approx_equal(X @ Y, 1e-14)
        assert dual.to_pose(dual.conjugate(a)).approx_equal(X.inverse(), 1e-14)
        one = dual.product(a, dual.conjugate(a))
        np.testing.assert_allclose(one, dual.from_pose(IDENTITY), **near)


def test_those_of_poses_have_unit_length(sample) -> None:
    for X in poses(sample):
        a = dual.from_pose(X)
        assert np.dot(a[:4], a[:4]) == pytest.approx(1.0, abs=1e-15)
        assert np.dot(a[:4], a[4:]) == pytest.approx(0.0, abs=1e-15)
        np.testing.assert_allclose(dual.normalised(a), a, **near)


def test_normalising_fixes_length_and_slant_and_keeps_the_pose(sample) -> None:
    for numbers in sample(8):
        a = (numbers[0] + 3.0, *numbers[1:])
        unit = dual.normalised(a)
        assert np.dot(unit[:4], unit[:4]) == pytest.approx(1.0, abs=1e-15)
        assert np.dot(unit[:4], unit[4:]) == pytest.approx(0.0, abs=1e-15)
        assert dual.to_pose(unit).approx_equal(dual.to_pose(a), 1e-14)


def test_the_difference_does_not_see_the_sign(sample) -> None:
    for X, Y in zip(*[iter(poses(sample))] * 2, strict=True):
        a, b = dual.from_pose(X), dual.from_pose(Y)
        for same in (a, minus(a)):
            assert not np.any(dual.difference(a, same))
            length = np.linalg.norm(dual.difference(same, b)[:4])
            both = [np.linalg.norm(np.subtract(a, s)[:4]) for s in (b, minus(b))]
            assert length == pytest.approx(min(both), rel=1e-12, abs=1e-16)


def test_the_logarithm_is_that_of_the_pose_whatever_the_sign(sample) -> None:
    for X in poses(sample):
        a = dual.from_pose(X)
        for same in (a, minus(a)):
            np.testing.assert_allclose(dual.log(same), twist.log(X), atol=1e-12)
        back = dual.to_pose(dual.exp(dual.log(a)))
        assert back.approx_equal(X, 1e-13)


def test_the_screw_between_two_leads_from_one_to_the_other(sample) -> None:
    for X, Y in zip(*[iter(poses(sample))] * 2, strict=True):
        a, b = dual.from_pose(X), dual.from_pose(Y)
        V = dual.screw_between(a, b)
        assert (X @ twist.exp(V)).approx_equal(Y, 1e-13)
        assert np.linalg.norm(V[3:]) <= np.pi + 1e-12
        for one, other in ((a, minus(b)), (minus(a), b), (minus(a), minus(b))):
            np.testing.assert_allclose(dual.screw_between(one, other), V, atol=1e-15)
        np.testing.assert_allclose(V, twist.log(X.inverse() @ Y), atol=1e-12)


def test_the_screw_of_small_differences_is_exact() -> None:
    a = dual.from_pose(Pose.from_rpy(0.3, -1.0, 2.0, (1.0, 2.0, 3.0)))
    for size in (0.0, 1e-15, 1e-9, 1e-4):
        V = (size, -2 * size, 0.5 * size, 3 * size, size, -size)
        b = dual.product(a, dual.exp(V))
        np.testing.assert_allclose(dual.screw_between(a, b), V, atol=2e-15)


def test_a_pure_translation_has_half_of_it_in_the_dual_part() -> None:
    a = dual.from_pose(Pose.translation(2.0, -4.0, 6.0))
    assert a == (1.0, 0.0, 0.0, 0.0, 0.0, 1.0, -2.0, 3.0)


def test_what_is_not_a_dual_quaternion_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"shape \(8,\), not \(7,\)"):
        dual.dual_quaternion([1.0] * 7)
    for function in (dual.to_pose, dual.normalised):
        with pytest.raises(ModelError, match="stands for no rotation"):
            function((0.0,) * 8)
