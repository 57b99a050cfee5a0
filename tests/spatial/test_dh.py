"""Denavit-Hartenberg poses: orders, how they are related, published arms."""

from __future__ import annotations

import itertools
import math

import numpy as np

from armillary.spatial import dh
from armillary.spatial.pose import IDENTITY, Pose
from armillary.trace import trace

Rx, Ry, Rz = Pose.rotation_x, Pose.rotation_y, Pose.rotation_z
right = math.pi / 2


def along(axis: int, distance: float) -> Pose:
    return Pose.translation(*(distance * (axis == k) for k in range(3)))


def test_each_order_is_the_product_that_names_it(sample) -> None:
    for theta, d, a, alpha in sample(4):
        paul = dh.paul(theta=theta, d=d, a=a, alpha=alpha)
        craig = dh.craig(alpha=alpha, a=a, theta=theta, d=d)
        actin = along(2, d) @ Rz(theta) @ along(0, a) @ Rx(alpha)
        robwork = Rz(theta) @ along(2, d) @ along(0, a) @ Rx(alpha)
        assert paul.approx_equal(actin, 1e-15)
        assert paul.approx_equal(robwork, 1e-15)
        actin = along(0, a) @ Rx(alpha) @ along(2, d) @ Rz(theta)
        robwork = Rx(alpha) @ along(0, a) @ Rz(theta) @ along(2, d)
        assert craig.approx_equal(actin, 1e-15)
        assert craig.approx_equal(robwork, 1e-15)


def test_one_order_backwards_is_the_other(sample) -> None:
    for theta, d, a, alpha in sample(4):
        backwards = dh.craig(alpha=-alpha, a=-a, theta=-theta, d=-d)
        assert (
            dh.paul(theta=theta, d=d, a=a, alpha=alpha)
            .inverse()
            .approx_equal(backwards, 1e-15)
        )


def test_robworks_parallel_form_has_its_origin_and_rotation(sample) -> None:
    for alpha, a, beta, b in sample(4):
        X = dh.parallel(alpha=alpha, a=a, beta=beta, b=b)
        origin = (a * math.cos(beta), b, -a * math.sin(beta))
        expected = Pose((Ry(beta) @ Rx(alpha)).rotation, origin)
        assert X.approx_equal(expected, 1e-15)
        flat = dh.parallel(alpha=alpha, a=a, beta=0.0, b=0.0)
        assert flat == dh.paul(theta=0.0, d=0.0, a=a, alpha=alpha)


def test_a_chain_in_pauls_order_is_one_in_craigs_shifted_by_half_a_row(sample) -> None:
    """Paul's rows (theta, d | a, alpha) read with the bar one place earlier."""
    rows = sample(4)
    paul, craig, before = IDENTITY, IDENTITY, (0.0, 0.0)
    for theta, d, a, alpha in rows:
        paul = paul @ dh.paul(theta=theta, d=d, a=a, alpha=alpha)
        craig = craig @ dh.craig(a=before[0], alpha=before[1], theta=theta, d=d)
        before = (a, alpha)
    last = dh.paul(theta=0.0, d=0.0, a=before[0], alpha=before[1])
    assert (craig @ last).approx_equal(paul, 1e-12)


def test_right_angles_are_exact() -> None:
    for i, j in itertools.product(range(4), repeat=2):
        X = dh.paul(theta=i * right, d=0.0, a=0.0, alpha=j * right)
        assert set(X.entries) <= {0.0, 1.0, -1.0}


def test_a_revolute_row_traces_to_a_sine_and_a_cosine() -> None:
    def row(q):
        return dh.craig(alpha=-right, a=0.3, theta=q, d=0.0).matrix()

    assert trace(row, q=()).operation_count <= 4  # sin, cos, two signs


def test_the_published_pose_of_a_puma_560() -> None:
    """Gold: RobWork's own test, rows (alpha, a, d), every joint at pi / 8."""
    rows = [
        (0, 0, 0),
        (-right, 0, 0),
        (0, 0.4318, -1.15005),
        (-right, 0.0203, -0.4318),
        (right, 0, 0),
        (-right, 0, 0),
    ]
    X = IDENTITY
    for alpha, a, d in rows:
        X = X @ dh.craig(alpha=alpha, a=a, theta=math.pi / 8, d=d)
    np.testing.assert_allclose(X.position, (1.104018, -0.787506, 0.125732), atol=1e-6)
    expected = [
        [0.448823, -0.073823, -0.890566],
        [-0.550328, -0.808012, -0.210372],
        [-0.704057, 0.584523, -0.403281],
    ]
    np.testing.assert_allclose(X.rotation, expected, atol=1e-6)


def test_the_published_pose_of_a_kr_16() -> None:
    """Gold: RobWork's own test, q = (0, -60, 15, 0, 0, 0) degrees."""
    rows = [
        (0, 0, 0),
        (right, 0.26, 0),
        (0, 0.68, 0),
        (right, -0.035, -0.67),
        (-right, 0, 0),
        (right, 0, 0),
    ]
    s = math.sqrt(0.5)
    tool = Pose(((0.0, -s, -s), (-1.0, 0.0, 0.0), (0.0, s, -s)), (-0.141, 0.0, -0.299))
    X = IDENTITY
    for (alpha, a, d), q in zip(rows, (0, -60, 15, 0, 0, 0), strict=True):
        X = X @ dh.craig(alpha=alpha, a=a, theta=math.radians(q), d=d)
    expected = Pose.rotation_z(right)
    X = X @ tool
    np.testing.assert_allclose(X.position, (1.16074, 0.0, 0.22074), atol=5e-6)
    np.testing.assert_allclose(X.rotation, expected.rotation, atol=1e-15)
