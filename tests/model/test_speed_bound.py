"""Bounds of speeds hold over every range, and are tight where they can be."""

from __future__ import annotations

import math

import numpy as np
import pytest

from armillary.errors import JointError, ShapeError
from armillary.model.joint import Joint
from armillary.model.joints import (
    JOINT_TYPES,
    CircleTrack,
    Curve,
    Fixed,
    FourBarSlider,
    OvalTrack,
    PaulPrismatic,
    PaulRevolute,
    Prismatic,
    Revolute,
    Screw,
)
from armillary.model.mechanism import Mechanism
from armillary.model.speed_bound import largest_accelerations
from armillary.model.unit import Unit
from armillary.spatial.pose import Pose
from armillary.testing import random_joint, random_pose
from armillary.testing.joint import LAWS
from armillary.testing.subject import subject_of
from arms import ScaraForward

INF = math.inf


def joint_of(x, **namespace) -> Joint:
    """A joint whose origin moves along x as a function of q."""
    body = {"pose": lambda self, q: Pose.translation(x(q), 0.0, 0.0), **namespace}
    return type("Made", (Joint,), body)()


def fastest(joint: Joint, low: float, high: float, count: int = 801) -> np.ndarray:
    """The largest speeds found on a grid, linear and angular."""
    q = np.linspace(low, high, count).tolist()
    twists = np.array([joint.velocity(x, 1.0) for x in q])
    speeds = np.linalg.norm(twists.reshape(-1, 2, 3), axis=2)
    return np.nanmax(speeds, axis=0)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("kind", sorted(set(JOINT_TYPES) - {"Curve"}))
@pytest.mark.parametrize("seed", range(3))
def test_bounds_hold_and_are_tight(kind: str, seed: int):
    random = np.random.default_rng([seed, *kind.encode()])
    joint = random_joint(random, kind)
    limit = 1.0 if kind == "FourBarSlider" else 4.0
    for low, high in np.sort(random.uniform(-limit, limit, (3, 2)), axis=1).tolist():
        found = fastest(joint, low, high)
        bounds = np.array(joint.speed_bounds(low, high))
        assert (bounds >= found * (1.0 - 1e-12)).all()
        assert (bounds <= found * 1.003 + 1e-12).all()
        assert joint.speed_bounds(high, low) == tuple(bounds)


@pytest.mark.parametrize(
    ("joint", "expected"),
    [
        (Fixed(), (0.0, 0.0)),
        (Revolute(), (0.0, 1.0)),
        (Prismatic(), (1.0, 0.0)),
        (Screw(pitch=0.5), (0.5, 1.0)),
        (PaulRevolute(theta=0.1, d=0.2, a=0.0, alpha=0.0), (0.0, 1.0)),
        (PaulPrismatic(theta=0.1, d=0.2, a=0.0, alpha=0.0), (1.0, 0.0)),
        (CircleTrack(radius=2.0), (1.0, 0.5)),
    ],
)
def test_constant_speeds_are_exact_over_any_range(joint: Joint, expected):
    for moved in (joint, joint.prepend(random_pose(np.random.default_rng(0)))):
        for limits in ((-INF, INF), (0.0, 0.0), (1.0, -3.0), (-INF, 2.0)):
            assert moved.speed_bounds(*limits) == expected


def test_a_track_turns_on_its_bends_alone():
    track = OvalTrack(straight=2.0, radius=0.5)
    assert track.speed_bounds(-0.9, 0.9) == (1.0, 0.0)
    for limits in ((-INF, INF), (1e6, 2e6), (0.0, 1.1), (-1.1, 0.0)):
        assert track.speed_bounds(*limits) == pytest.approx((1.0, 2.0), rel=1e-9)


def test_a_lever_has_no_bound_at_its_dead_point():
    lever = FourBarSlider(nominal=1.0, lever=1.0, opposite=1.0)
    assert lever.speed_bounds(0.0, 1.0) == (0.0, INF)
    assert lever.speed_bounds(0.0, 0.9)[1] == pytest.approx(
        1.0 / math.sqrt(1.0 - 0.95**2), rel=1e-3
    )


class Crossed(Joint):
    """Three turns, which a formula of the speed does not disentangle."""

    def pose(self, q):
        elbow = Pose.rotation_z(q) @ Pose.translation(1.0, 0.0, 0.0)
        wrist = Pose.rotation_y(2.0 * q) @ Pose.translation(0.0, 0.0, 0.5)
        return elbow @ wrist @ Pose.rotation_x(np.sin(3.0 * q))


class Crank(Joint):
    crank: float = 0.1
    rod: float = 0.3

    def pose(self, q):
        across = self.crank * np.sin(q)
        along = np.sqrt(self.rod**2 - across**2)
        return Pose.translation(self.crank * np.cos(q) + along, 0.0, 0.0)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("joint", [Crossed(), Crank()])
def test_joints_of_users_are_bounded_within_per_cents(joint: Joint):
    random = np.random.default_rng(4)
    for low, high in np.sort(random.uniform(-4.0, 4.0, (4, 2)), axis=1).tolist():
        found, bounds = fastest(joint, low, high), joint.speed_bounds(low, high)
        assert (np.array(bounds) >= found * (1.0 - 1e-12)).all()
        assert (np.array(bounds) <= found * 1.03 + 1e-12).all()


@pytest.mark.parametrize(
    ("x", "low", "high", "expected"),
    [
        (np.abs, -2.0, 1.0, 1.0),
        (lambda q: np.minimum(q, 1.0), 0.0, 5.0, 1.0),
        (lambda q: np.minimum(q, 1.0), 2.0, 5.0, 0.0),
        (lambda q: 3.0 * q if q > 1.0 else q + 2.0, 0.0, 4.0, 3.0),
        (lambda q: 3.0 * q if q > 1.0 else q + 2.0, -INF, INF, 3.0),
        (lambda q: np.sin(2.0 * np.pi * (q % 1.0)), -3.0, 2.2, 2.0 * math.pi),
        (lambda q: (q % 1.0) * (1.0 - q % 1.0), -3.0, 2.2, 1.0),
        (lambda q: np.cos(np.pi * np.round(q)) * np.cos(np.pi * q), 0.1, 0.9, math.pi),
        (lambda q: np.interp(q, [0.0, 0.5, 0.6], [0.0, 1.0, 0.5]), -1.0, 1.0, 5.0),
        (lambda q: np.interp(q, [0.0, 0.5, 0.6], [0.0, 1.0, 0.5]), 0.1, 0.4, 2.0),
        (np.sqrt, 0.25, 4.0, 1.0),
        (lambda q: 1.0 / q, 0.5, 4.0, 4.0),
        (lambda q: np.arctan2(np.sin(q), np.cos(q)), -3.0, 3.0, 1.0),
        (lambda q: np.tanh((q - 0.3) * 1e12), -1.0, 1.0, 1e12),
    ],
)
def test_awkward_functions(x, low: float, high: float, expected: float):
    linear, angular = joint_of(x).speed_bounds(low, high)
    assert expected * (1.0 - 1e-12) <= linear <= expected * 1.03
    assert angular == 0.0


@pytest.mark.parametrize(
    ("x", "low", "high"),
    [
        (np.sqrt, 0.0, 4.0),
        (np.sqrt, -1.0, 4.0),
        (np.cbrt, -1.0, 4.0),
        (np.arcsin, -1.0, 0.0),
        (lambda q: 1.0 / q, -1.0, 2.0),
        (np.log, 0.0, 1.0),
        (np.tan, 0.0, 4.0),
        (lambda q: q * q, 0.0, INF),
    ],
)
def test_what_is_infinitely_fast_has_no_bound(x, low: float, high: float):
    assert joint_of(x).speed_bounds(low, high) == (INF, 0.0)


@pytest.mark.parametrize(
    ("x", "low", "high"),
    [
        (lambda q: q % 1.0, 0.9, 1.1),
        (lambda q: q % 1.0, -INF, INF),
        (np.floor, 0.5, 1.5),
        (np.round, 0.3, 0.6),
        (np.sign, -1.0, 0.1),
        (lambda q: q + 1e-5 if q > 0.3 else q, -1.0, 1.0),
        (lambda q: np.fmod(q, 2.0), 1.0, 2.5),
        (lambda q: np.arctan2(np.sin(q), np.cos(q)), 3.0, 4.0),
    ],
)
def test_a_jump_has_no_bound(x, low: float, high: float):
    """The speed on both sides says nothing of the way that is jumped over."""
    assert joint_of(x).speed_bounds(low, high) == (INF, 0.0)


def test_bounds_hold_beside_a_jump():
    assert joint_of(lambda q: q % 1.0).speed_bounds(0.1, 0.9) == (1.0, 0.0)


def test_a_period_makes_infinite_ranges_finite():
    def wave(q):
        return np.sin(q % math.tau)

    assert joint_of(wave).speed_bounds(-INF, INF)[0] == INF
    periodic = joint_of(wave, period=property(lambda self: math.tau))
    assert periodic.speed_bounds(-INF, INF)[0] == pytest.approx(1.0, rel=1e-3)
    assert periodic.speed_bounds(7.0, INF)[0] == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize(
    "joint",
    [Crossed(), Crank(), joint_of(np.abs), joint_of(np.floor), joint_of(np.sqrt)],
)
def test_users_joints_keep_the_law(joint: Joint):
    random = np.random.default_rng(0)
    for low, high in ((-2.0, 2.5), (0.4, 0.6)):
        LAWS["speeds"](subject_of(joint, low, high, 4, random, lambda joint: joint))


def test_a_table_of_many_knots_is_bounded():
    knots = np.linspace(-2.0, 2.0, 41)
    table = joint_of(lambda q: np.interp(q, knots, np.sin(knots)))
    steepest = np.diff(np.sin(knots)).max() / 0.1
    assert table.speed_bounds(-3.0, 3.0)[0] == pytest.approx(steepest, rel=1e-9)


# Curves.

RING = [
    (math.cos(a), math.sin(a), 0.2 * math.sin(2 * a))
    for a in np.arange(8) * math.pi / 4
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(8))
def test_curves_have_unit_speed_and_bounded_turns(seed: int):
    random = np.random.default_rng(seed)
    joint = random_joint(random, "Curve")
    low, high = np.sort(random.uniform(-1.0, joint.length + 1.0, 2)).tolist()
    found, bounds = fastest(joint, low, high, 100), joint.speed_bounds(low, high)
    assert (np.array(bounds) >= found * (1.0 - 1e-12)).all()
    assert bounds[0] <= 1.0 + 2e-6
    whole = joint.speed_bounds(-INF, INF)
    assert (np.array(bounds) <= whole).all()
    assert whole[1] <= fastest(joint, 0.0, joint.length, 200)[1] * 1.05


@pytest.mark.parametrize("up", [(0.0, 0.0, 1.0), (0.0, 1.0, 3.0), None])
def test_bounds_of_a_curve_are_those_of_its_parts(up):
    joint = Curve(points=RING, closed=True, up=up)
    random = np.random.default_rng(0)
    for low, width in random.uniform(0.0, 1.0, (6, 2)).tolist():
        found = fastest(joint, 9.0 * low, 9.0 * low + width, 100)
        bounds = np.array(joint.speed_bounds(9.0 * low, 9.0 * low + width))
        assert (bounds >= found * (1.0 - 1e-12)).all()
        assert bounds[1] <= found[1] * 1.1


def test_a_curve_goes_straight_on_beyond_its_ends():
    joint = Curve(points=[(0.0, 0.0, 0.0), (1.0, 0.2, 0.5), (2.0, -0.1, 0.6)])
    for low, high in ((-3.0, -1.0), (joint.length + 0.1, INF), (-INF, -1e-3)):
        assert joint.speed_bounds(low, high) == (1.0, 0.0)
    straight = Curve(points=[(0.0, 0.0, 0.0), (1.0, 2.0, 2.0)])
    assert straight.speed_bounds(-INF, INF) == pytest.approx((1.0, 0.0), abs=1e-9)


# Mechanisms.


class Wrist(Mechanism):
    """A coupled wrist: the second turn carries the first along."""

    units = (Unit.RADIAN, Unit.RADIAN)

    def forward(self, q):
        return Pose.rotation_z(q[0]) @ Pose.rotation_y(q[1] - 0.5 * q[0])


def columns(mechanism: Mechanism, q) -> np.ndarray:
    """The speeds by each coordinate, shape (n, 2)."""
    twists = np.array(mechanism.motion.columns(*q), dtype=np.float64)
    return np.linalg.norm(twists.reshape(-1, 2, 3), axis=2)


@pytest.mark.parametrize(
    "mechanism",
    [ScaraForward(upper=0.325, fore=0.275), Wrist()],
    ids=["scara", "wrist"],
)
def test_mechanisms_are_bounded_by_coordinate(mechanism: Mechanism):
    random = np.random.default_rng(0)
    count = len(mechanism.units)
    for _ in range(3):
        ends = random.uniform(-2.0, 2.0, count) + np.array([[0.0], [0.05]])
        bounds = np.stack(mechanism.speed_bounds(*ends), axis=1)
        assert bounds.shape == (count, 2)
        Q = random.uniform(ends.min(axis=0), ends.max(axis=0), (500, count))
        found = np.max([columns(mechanism, q) for q in Q.tolist()], axis=0)
        assert (bounds >= found * (1.0 - 1e-12)).all()
        assert (bounds <= found * 1.3 + 1e-9).all()


def test_a_mechanism_over_infinite_ranges_is_bounded_as_far_as_can_be_proved():
    limits = np.full(2, INF)
    linear, angular = Wrist().speed_bounds(-limits, limits)
    assert (linear == 0.0).all()
    assert (angular >= (math.sqrt(1.25), 1.0)).all()
    assert np.isfinite(angular).all()
    swapped = Wrist().speed_bounds(limits, -limits)
    assert (swapped[1] == angular).all()


def test_limits_must_be_numbers_one_for_each_coordinate():
    for joint in (Revolute(), OvalTrack(straight=1.0, radius=1.0)):
        with pytest.raises(JointError, match="NaN"):
            joint.speed_bounds(math.nan, 1.0)
    with pytest.raises(JointError, match="NaN"):
        Wrist().speed_bounds([0.0, math.nan], [1.0, 1.0])
    with pytest.raises(ShapeError, match=r"Wrist has 2 coordinates.*\(3,\)"):
        Wrist().speed_bounds([0.0] * 3, [1.0] * 3)


@pytest.mark.parametrize("kind", sorted(set(JOINT_TYPES) - {"Curve"}))
def test_bounds_of_accelerations_hold(kind: str):
    random = np.random.default_rng(kind.encode()[0])
    motion = random_joint(random, kind).motion
    low, high = 0.2, 0.9
    linear, angular = largest_accelerations(motion, low, high)
    h = 1e-3
    q = np.linspace(low + h, high - h, 60)
    # |x(q + h) - 2 x(q) + x(q - h)| <= h^2 max |x''|, of the origin and of any point.
    X = [motion.poses(q + step) for step in (-h, 0.0, h)]
    change = (X[0] - 2.0 * X[1] + X[2]) / h**2
    assert np.linalg.norm(change[:, :, 3], axis=1).max() <= linear + 1e-6
    turned = np.linalg.norm(change[:, :, :3], ord=2, axis=(1, 2))
    assert turned.max() <= angular + 1e-6


def test_velocities_that_jump_have_no_bound_of_accelerations():
    corner = joint_of(abs).motion
    assert largest_accelerations(corner, -1.0, 1.0) == (INF, 0.0)
    assert largest_accelerations(corner, 0.5, 1.0) == (0.0, 0.0)
    table = joint_of(lambda q: np.interp(q, [0.0, 1.0, 2.0], [0.0, 1.0, 1.5])).motion
    assert largest_accelerations(table, 0.2, 1.5)[0] == INF
    assert largest_accelerations(joint_of(lambda q: q * abs(q)).motion, -1.0, 1.0)[
        0
    ] == pytest.approx(2.0)


def test_distances_within_other_ranges_are_traced_once(monkeypatch):
    joint = Revolute(precursor=Pose.translation(0.3, 0.1, 0.0))
    joint.origin_bound(-1.0, 1.0)

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("traced anew")

    monkeypatch.setattr("armillary.model.upper_bound.trace", refused)
    assert joint.origin_bound(-0.5, 0.25) <= joint.origin_bound(-1.0, 1.0)
