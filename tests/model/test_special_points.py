"""Points at which a branch is taken on equality, and what joints say of them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import armillary as arm
from armillary.model.special_points import equality_points, rates_beside
from armillary.trace import trace


class Versine(arm.Joint):
    unit = arm.OTHER

    def pose(self, q):
        return arm.Pose.translation(np.where(q == 0, 0.0, (1 - np.cos(q)) / q), 0, 0)


class Sinc(arm.Joint):
    radius: float
    unit = arm.OTHER

    def pose(self, q):
        angle = q / self.radius - 1.0
        if not angle:
            return arm.Pose.translation(1.0, 0, 0)
        return arm.Pose.translation(np.sin(angle) / angle, 0, 0)


class Difference(arm.Mechanism):
    units = (arm.OTHER, arm.OTHER)

    def forward(self, q):
        gap = q[0] - q[1]
        if gap == 0:
            return arm.Pose.translation(1.0, 0, 0)
        return arm.Pose.translation(np.sinh(gap) / gap + 0 * q[0], 0, 0)


def test_a_rate_of_the_constant_is_warned_of_with_its_line():
    line = r"test_special_points\.py:19: Versine.*q = 0"
    with pytest.warns(UserWarning, match=line) as found:
        assert Versine().velocity(0.0, 1.0)[0] == 0.0
    assert len(found) == 1
    assert "velocity per unit rate is 0 there and 0.5 beside it" in str(
        found[0].message
    )
    assert "numpy.sinc" in str(found[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Versine().velocity(0.1, 1.0)  # once


def test_an_acceleration_of_the_constant_is_warned_of():
    joint = Sinc(radius=2.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert joint.velocity(2.5, 1.0)[0] == 0.0
    with pytest.warns(UserWarning, match=r"q = 2\.5 .* acceleration .*0 there"):
        joint.acceleration(2.5, 1.0, 0.0)


def test_a_cell_warns_of_accelerations_as_its_joints_do():
    turn = arm.Link(name="turn", parent="base", joint=arm.joints.Revolute())
    links = [arm.Link(name="base"), turn]
    links.append(arm.Link(name="tip", parent="turn", joint=Sinc(radius=3.5)))
    cell = arm.Cell(manipulators=[arm.Manipulator(name="m", links=links)])
    cell.velocity("tip")
    cell.acceleration("turn")  # warnings are errors
    with pytest.warns(UserWarning, match=r"q = 3\.5 .* acceleration .*0 there"):
        cell.acceleration("tip")


def test_mechanisms_are_warned_of():
    motion = Difference().motion
    motion.columns(0.3, 0.1)
    with pytest.warns(UserWarning, match=r"Difference compares with == here"):
        motion.column_rates([0.3, 0.1], [1.0, 0.0])


class Right(arm.Joint):
    """Compares with ==, and is right beside."""

    unit = arm.OTHER

    def pose(self, q):
        x = 0.0 if q == 0 else q**3
        y = np.where(q == 1, 0.0, np.maximum(q - 1, 0))
        z = 3.0 if q != 0.5 else 3.0 + 0.0 * q
        return arm.Pose.translation(x, y, z)


def test_what_is_right_beside_is_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Right().acceleration(0.0, 1.0, 0.0)


def test_points_of_equality_are_found():
    def formula(q):
        a = np.where(3 * q - 1.5 == 0, 1.0, q)
        b = np.where(np.equal(np.exp(q), 1.0), 1.0, q)
        return a + b + np.where(q**2 != 4, 1.0, q) + np.interp(q, [0, 9], [0, 1])

    points = {round(q, 12) for (q,), _ in equality_points(trace(formula, q=()))}
    assert {0.5, 0.0, 2.0, -2.0} == points


def test_rates_of_a_side_and_rates_of_no_side():
    def kink(q):
        return [abs(q[0]) ** 1.5, np.sign(q[0]) + (q[0] == 0)]

    def gap(q):
        return [np.cos(q[0]) if q[0] else 0.9]

    assert rates_beside(kink, [0.0]) is None
    assert rates_beside(gap, [0.0]) == pytest.approx(1.0, abs=1e-5)
    assert rates_beside(lambda q: [np.cos(q[0])], [0.0]) is None
    assert rates_beside(lambda q: [np.nan], [0.0]) is None


class Square(arm.Joint):
    """Moves by a square, to either side."""

    rate: float = 1.0
    unit = arm.OTHER

    def pose(self, q):
        return arm.Pose.translation(np.sign(q) * q * q * self.rate, 0, 0)


class SmoothSign(Square):
    """Takes a sign whose jump is where its factor and two derivatives are zero."""

    def pose(self, q):
        return arm.Pose.translation(np.sign(q) * q**4 * self.rate, 0, 0)


def test_an_acceleration_that_jumps_where_a_sign_does_is_warned_of():
    joint = Square()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        joint.velocity(0.0, 1.0)
        SmoothSign().acceleration(0.0, 1.0, 0.0)
    message = r"takes the sign .* acceleration per unit rate is 0 there and 2 beside"
    with pytest.warns(UserWarning, match=message):
        joint.acceleration(0.0, 1.0, 0.0)
