"""Poses: a group that acts on points; values; what is no pose is refused."""

from __future__ import annotations

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from armillary.errors import ModelError, ShapeError
from armillary.spatial import rotation as rot
from armillary.spatial.pose import IDENTITY, Pose
from armillary.trace import evaluate, trace

near = {"rtol": 0, "atol": 1e-14}
right = math.pi / 2


def poses(sample) -> list[Pose]:
    return [Pose(rot.exp(x[3:]), x[:3]) for x in sample(6)]


def test_poses_are_a_group(sample) -> None:
    for X, Y, Z in zip(*[iter(poses(sample))] * 3, strict=True):
        assert ((X @ Y) @ Z).approx_equal(X @ (Y @ Z), 1e-14)
        assert X @ IDENTITY == X == IDENTITY @ X
        assert (X @ X.inverse()).approx_equal(IDENTITY, 1e-14)
        assert (X.inverse() @ X).approx_equal(IDENTITY, 1e-14)
        assert (X @ Y).inverse().approx_equal(Y.inverse() @ X.inverse(), 1e-14)


def test_poses_act_on_points_and_directions(sample) -> None:
    for X, Y in zip(*[iter(poses(sample))] * 2, strict=True):
        for p in sample(3, count=3):
            np.testing.assert_allclose((X @ Y) @ p, X @ (Y @ p), **near)
            np.testing.assert_allclose(X @ list(p), X @ np.array(p), **near)
            moved = np.subtract(X @ p, X.position)
            np.testing.assert_allclose(X.rotate(p), moved, **near)
            np.testing.assert_allclose(X.matrix() @ [*p, 1.0], [*(X @ p), 1.0], **near)


def test_products_and_inverses_are_those_of_matrices(sample) -> None:
    for X, Y in zip(*[iter(poses(sample))] * 2, strict=True):
        product = X.matrix() @ Y.matrix()
        np.testing.assert_allclose((X @ Y).matrix(), product, **near)
        inverse = np.linalg.inv(X.matrix())
        np.testing.assert_allclose(X.inverse().matrix(), inverse, **near)


def test_angles_of_a_rotation_come_back(sample) -> None:
    for roll, pitch, yaw in sample(3):
        X = Pose.from_rpy(roll, pitch, yaw, (1.0, 2.0, 3.0))
        found = X.rpy()
        assert Pose.from_rpy(*found, X.position).approx_equal(X, 4e-15)
        wanted = Rotation.from_matrix(X.matrix()[:3, :3]).as_euler("xyz")
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


def test_angles_at_a_gimbal_lock_give_the_rotation() -> None:
    """Roll and yaw turn about one axis there: yaw is 0, roll what is left."""
    for sign, roll, yaw in itertools.product((1, -1), (0.0, 0.7, 3.0), (0.0, -1.1)):
        for off in (0.0, 1e-15, 1e-9, 1e-6):
            X = Pose.from_rpy(roll, sign * (right - off), yaw)
            found = X.rpy()
            assert Pose.from_rpy(*found).approx_equal(X, 4e-15)
            if off < 1e-14:
                left = math.remainder(roll - sign * yaw, math.tau)
                assert found == pytest.approx((left, sign * right, 0.0), abs=1e-14)


def test_angles_are_traced() -> None:
    program = trace(lambda q: Pose.from_rpy(q[0], q[1], q[2]).rpy(), q=(3,))
    np.testing.assert_allclose(evaluate(program, [0.3, -0.4, 2.0]), [0.3, -0.4, 2.0])


def test_every_form_comes_back(sample) -> None:
    for X in poses(sample):
        assert Pose.from_matrix(X.matrix()) == X
        assert Pose.from_matrix(X.matrix()[:3].tolist()) == X
        assert Pose.from_rotation_position(X.rotation, np.array(X.position)) == X
        again = Pose.from_quaternion(X.quaternion(), X.position)
        assert again.approx_equal(X, 4e-15)


def test_quaternion_and_rpy_are_those_of_scipy(sample) -> None:
    for X, angles in zip(poses(sample), sample(3), strict=True):
        x, y, z, w = Rotation.from_matrix(np.array(X.rotation)).as_quat(canonical=True)
        np.testing.assert_allclose(X.quaternion(), (w, x, y, z), **near)
        expected = Rotation.from_euler("xyz", angles).as_matrix()
        found = Pose.from_rpy(*angles, position=X.position)
        np.testing.assert_allclose(found.rotation, expected, **near)
        assert found.position == X.position


@pytest.mark.parametrize("quarters", list(itertools.product(range(4), repeat=3)))
def test_right_angles_are_exact_from_every_form(quarters) -> None:
    X = Pose.from_rpy(*(k * right for k in quarters))
    assert set(X.entries) <= {0.0, 1.0, -1.0}
    turns = (Pose.rotation_z, Pose.rotation_y, Pose.rotation_x)
    Z, Y, W = (turn(k * right) for turn, k in zip(turns, quarters[::-1], strict=True))
    assert X == Z @ Y @ W
    assert Pose.from_quaternion(X.quaternion()) == X
    assert (X.inverse() @ X).is_identity


def test_quaternions_of_eight_digits_give_exact_right_angles() -> None:
    """Gold: the precursor of Actin's circle joint turns its axis z to -y."""
    X = Pose.from_quaternion((0.70710678, 0.70710678, -0.0, 0.0))
    assert Pose.rotation_x(right) == X
    assert X.rotate((0.0, 0.0, 1.0)) == (0.0, -1.0, 0.0)


def test_equal_poses_are_one_value(sample) -> None:
    for X in (*poses(sample), IDENTITY):
        for same in (
            pickle.loads(pickle.dumps(X)),
            copy.deepcopy(X),
            Pose.from_matrix(np.array(X.matrix())),
        ):
            assert same == X
            assert hash(same) == hash(X)
        assert Pose(X.rotation, (*X.position[:2], X.position[2] + 1e-3)) != X
    with pytest.raises(AttributeError, match="immutable"):
        IDENTITY.position = (1.0, 0.0, 0.0)


def test_entries_are_plain_floats_whatever_they_came_from() -> None:
    X = Pose.from_matrix(np.eye(4, dtype=np.float32))
    Y = Pose.rotation_about(np.array([0, 0, 1]), np.float64(1)) @ X
    for pose in (X, Y, Pose.translation(1, 2, np.int64(3)), Pose.rotation_x(1)):
        assert {type(x) for x in pose.entries} == {float}


def test_approximate_equality_is_inclusive_and_sees_every_entry() -> None:
    entries = np.array(IDENTITY.matrix())
    for i, j in itertools.product(range(3), range(4)):
        changed = entries.copy()
        changed[i, j] += 0.125
        other = Pose.from_matrix(changed, tolerance=1.0)
        assert IDENTITY.approx_equal(other, 0.125)
        assert not IDENTITY.approx_equal(other, 0.1249)
    assert not IDENTITY.approx_equal(Pose.translation(math.nan, 0, 0), 1.0)


def test_only_the_identity_is_the_identity() -> None:
    assert Pose.identity() is IDENTITY
    assert IDENTITY.is_identity
    assert Pose.from_rpy(0, 0, -0.0, (0, -0.0, 0)).is_identity
    assert not Pose.translation(0, 0, 1e-300).is_identity
    assert not Pose.rotation_z(1e-9).is_identity


def test_scaling_moves_the_origin_only() -> None:
    X = Pose.from_rpy(0.1, 0.2, 0.3, (1, -2, 3))
    assert X.scaled(2.0) == Pose(X.rotation, (2.0, -4.0, 6.0))


def test_normalising_fixes_the_rounding_of_files(sample) -> None:
    for X in poses(sample):
        rounded = np.round(X.matrix(), 4)
        with_fix = Pose.from_matrix(rounded, tolerance=1e-3).normalised()
        assert rot.orthonormality_error(with_fix.rotation) < 3e-15
        assert with_fix.position == tuple(rounded[:3, 3])
        assert with_fix.approx_equal(X, 2e-4)
        assert with_fix.normalised().approx_equal(with_fix, 4e-15)


def test_a_traced_pose_is_an_array_of_objects_and_stays_itself() -> None:
    seen = []

    def function(q):
        X = Pose.rotation_z(q) @ Pose.translation(1.0, 0.0, 0.0)
        seen.append((X.matrix().dtype, X.is_float, X.is_identity, X.normalised() is X))
        return X.matrix()

    program = trace(function, q=())
    assert seen == [(object, False, False, True)]
    assert program.outputs[0].shape == (4, 4)
    assert program.operation_count == 3  # sin, cos, neg


def test_a_chain_about_right_angles_traces_to_what_a_person_would_write() -> None:
    def planar(a, b):
        first = Pose.rotation_z(a) @ Pose.translation(2.0, 0.0, 0.0)
        tilted = Pose.from_rpy(right, 0.0, 0.0) @ Pose.rotation_about((0, -1, 0), b)
        return (first @ tilted).position

    program = trace(planar, a=(), b=())
    assert program.operation_count == 4  # sin, cos, and each times two


SHEARED = [[1, 0.01, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]


@pytest.mark.parametrize(
    ("matrix", "error", "message"),
    [
        (np.eye(3), ShapeError, r"\(4, 4\) or \(3, 4\), not \(3, 3\)"),
        (np.zeros((2, 4, 4)), ShapeError, r"not \(2, 4, 4\)"),
        (1.0, ShapeError, r"not \(\)"),
        ([[1], [1, 2]], ShapeError, r"not \(2,\)"),
        (np.full((4, 4), "a"), ShapeError, "number was expected, not 'a'"),
        (np.full((4, 4), 1j), ShapeError, "number was expected"),
        (SHEARED, ModelError, "sheared or scaled: .* differs from 1 by 0.01"),
        (2.0 * np.eye(4)[:3], ModelError, "sheared or scaled"),
        (np.zeros((3, 4)), ModelError, "sheared or scaled"),
        (np.diag([1.0, 1.0, -1.0, 1.0]), ModelError, "reflection"),
        (np.diag([1.0, 1.0, 1.0, 2.0]), ModelError, "row 0 0 0 1"),
        (np.eye(4) + np.eye(4, k=-3), ModelError, "row 0 0 0 1"),
        (np.diag([math.nan, 1.0, 1.0, 1.0]), ModelError, "entry nan"),
        ([*np.eye(4)[:2], [0, 0, 1, math.inf]], ModelError, "entry inf"),
        (np.diag([1.0, 1.0, 1.0, math.nan]), ModelError, "entry nan"),
    ],
)
def test_what_is_not_a_pose_is_refused(matrix, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        Pose.from_matrix(matrix)


def test_the_tolerance_of_a_matrix_is_the_callers() -> None:
    assert Pose.from_matrix(SHEARED, tolerance=0.02).rotation[0][1] == 0.01
    with pytest.raises(ModelError, match=r"more than 0\.005"):
        Pose.from_matrix(SHEARED, tolerance=0.005)


def test_what_is_known_of_a_traced_matrix_is_checked_too() -> None:
    def function(q):
        return Pose.from_matrix([[1, 0, 0, math.nan], [0, q, 0, 0], [0, 0, 1, 0]])

    with pytest.raises(ModelError, match="entry nan"):
        trace(function, q=())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: IDENTITY @ (1, 2), r"shape \(3,\), not \(2,\)"),
        (lambda: Pose.from_quaternion((1, 0, 0)), r"quaternion has shape \(4,\)"),
        (lambda: Pose.from_rpy(0, 0, 0, (1, 2)), r"shape \(3,\)"),
        (lambda: Pose.rotation_about((0, 1), 1.0), r"shape \(3,\)"),
        (lambda: Pose.rotation_x("a"), "number was expected"),
        (lambda: Pose.from_rotation_position(np.eye(4)), r"shape \(3, 3\)"),
    ],
)
def test_other_shapes_are_refused(call, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        call()


def test_a_pose_stands_where_an_array_is_taken(sample) -> None:
    X, Y = poses(sample)[:2]
    np.testing.assert_array_equal(np.asarray(X), X.matrix())
    np.testing.assert_array_equal(np.asarray([X, Y])[1], Y.matrix())
    assert np.asarray(X, dtype=np.float32).dtype == np.float32
    batch = np.stack([Y.matrix(), np.eye(4)])
    np.testing.assert_allclose(X @ batch, X.matrix() @ batch, atol=1e-15)
    np.testing.assert_allclose(batch @ X, batch @ X.matrix(), atol=1e-15)
    with pytest.raises(ShapeError, match=r"not \(3, 3\)"):
        X @ np.eye(3)
