"""Three angles: orders, ranges, and the spots where two axes fall together."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from armillary.spatial import euler
from armillary.spatial import rotation as rot
from armillary.spatial.vector import EYE, multiply, rows, snap_rows
from armillary.trace import evaluate, jvp, trace

near = {"rtol": 0, "atol": 4e-15}
right = math.pi / 2
# To rows, from rows, SciPy's name of the order (capitals move), position of the angle
# that locks, where it locks, and position of the angle that is 0 then.
ORDERS = {
    "moving_zyx": (
        euler.rows_from_moving_zyx, euler.moving_zyx, "ZYX", 1, (right, -right), 0
    ),
    "fixed_xyz": (
        euler.rows_from_fixed_xyz, euler.fixed_xyz, "xyz", 1, (right, -right), 2
    ),
    "moving_xyz": (
        euler.rows_from_moving_xyz, euler.moving_xyz, "XYZ", 1, (right, -right), 2
    ),
}  # fmt: skip
order = pytest.mark.parametrize("name", ORDERS)


@order
def test_rows_are_those_of_scipy(name: str, sample) -> None:
    to_rows, _, letters, *_ = ORDERS[name]
    for angles in sample(3):
        expected = Rotation.from_euler(letters, angles).as_matrix()
        np.testing.assert_allclose(to_rows(*angles), expected, **near)


def test_rows_are_the_product_of_three_turns_to_the_last_bit(sample) -> None:
    quarters = itertools.product([k * right for k in range(-4, 5)] + [-0.0], repeat=3)
    for angles in (*sample(3), *quarters):
        z, y, x = map(float, angles)
        turns = rot.about_z(z), rot.about_y(y), rot.about_x(x)
        product = snap_rows(multiply(multiply(turns[0], turns[1]), turns[2]))
        assert repr(euler.rows_from_moving_zyx(z, y, x)) == repr(product)


@order
def test_the_rotation_comes_back_from_anywhere(name: str, sample) -> None:
    to_rows, from_rows, *_ = ORDERS[name]
    for angles in sample(3, count=40):
        for factor in (1.0, 4.0):
            m = to_rows(*(factor * angle for angle in angles))
            np.testing.assert_allclose(to_rows(*from_rows(m)), m, **near)


@order
def test_the_angles_come_back_within_their_range(name: str, sample) -> None:
    to_rows, from_rows, *_ = ORDERS[name]
    for a, b, c in sample(3, count=40):
        angles = (0.9 * a, 0.9 * b, 1.5 * c)
        if max(map(abs, angles)) < right:
            np.testing.assert_allclose(
                from_rows(to_rows(*angles)), angles, rtol=0, atol=1e-12
            )


@order
@pytest.mark.parametrize("offset", [0.0, 1e-16, 1e-12, 1e-9, 1e-7, 1e-4])
def test_near_and_at_the_lock_the_rotation_comes_back(name: str, offset: float) -> None:
    to_rows, from_rows, _, place, locks, _ = ORDERS[name]
    for lock, sign in itertools.product(locks, (1.0, -1.0)):
        angles = [0.4, 0.4, -1.1]
        angles[place] = lock + sign * offset
        m = to_rows(*angles)
        np.testing.assert_allclose(to_rows(*from_rows(m)), m, rtol=0, atol=2e-14)


@order
def test_at_the_lock_one_angle_is_zero(name: str) -> None:
    to_rows, from_rows, _, place, locks, zero = ORDERS[name]
    for lock in locks:
        angles = [0.4, 0.4, -1.1]
        angles[place] = lock
        found = from_rows(to_rows(*angles))
        assert found[zero] == 0.0
        assert found[place] == pytest.approx(lock, abs=1e-15)


@order
def test_at_the_lock_traced_values_and_derivatives_stay_finite(name: str) -> None:
    to_rows, from_rows, _, place, locks, _ = ORDERS[name]

    def rates(m):
        angles = from_rows(rows(m))
        return [*angles, *jvp(angles, [(x, 1.0) for x in m.flat])]

    program = trace(rates, m=(3, 3))
    for lock in locks:
        angles = [0.4, 0.4, -1.1]
        angles[place] = lock
        m = to_rows(*angles)
        found = evaluate(program, [x for row in m for x in row])
        assert np.all(np.isfinite(found))
        np.testing.assert_allclose(found[:3], from_rows(m), **near)


@pytest.mark.parametrize("quarters", list(itertools.product(range(4), repeat=3)))
def test_right_angles_are_exact(quarters: tuple[int, int, int]) -> None:
    angles = [k * right for k in quarters]
    for to_rows, _, letters, *_ in ORDERS.values():
        exact = np.rint(Rotation.from_euler(letters, angles).as_matrix())
        assert np.array_equal(to_rows(*angles), exact)


def test_a_traced_angle_between_right_angles_keeps_its_zeros() -> None:
    program = trace(lambda q: euler.rows_from_fixed_xyz(right, 0.0, q), q=())
    assert program.operation_count == 3  # sin, cos, neg


def test_robworks_example_of_its_rpy() -> None:
    """Gold: RPY(Rotation3D(-1,0,0, 0,0,1, 0,1,0)) = (pi, -0, pi/2)."""
    m = rows([[-1, 0, 0], [0, 0, 1], [0, 1, 0]])
    assert euler.moving_zyx(m) == pytest.approx((math.pi, 0.0, right), abs=1e-15)


def test_visual_components_examples_of_its_wpr() -> None:
    """Gold: WPR of IRB 760, and of Zu 3 at the lock, in degrees."""
    m = multiply(rot.about_z(math.radians(-20)), rot.about_y(math.pi))
    wpr = np.degrees(euler.fixed_xyz(m))
    np.testing.assert_allclose(wpr, (180.0, 0.0, 160.0), atol=1e-12)
    locked = euler.rows_from_fixed_xyz(right, right, 0.0)
    np.testing.assert_allclose(np.degrees(euler.fixed_xyz(locked)), (90.0, 90.0, 0.0))


def test_robworks_ball_joint_is_a_chain_of_revolute_ones() -> None:
    """Gold: Rx(a) Ry(b) Rz(c) with RPY of z, y, x between rotations about z."""
    a, b, c = 0.3, -1.2, 2.0
    m = EYE
    fixed = ((0.0, right, 0.0), (0.0, 0.0, -right), (-right, 0.0, right))
    for rpy, q in zip(fixed, (a, b, c), strict=True):
        m = multiply(m, euler.rows_from_moving_zyx(*rpy))
        m = multiply(m, rot.about_z(q))
    np.testing.assert_allclose(m, euler.rows_from_moving_xyz(a, b, c), **near)
