"""Bounds of the distance between the origins hold, and are tight."""

from __future__ import annotations

import math

import numpy as np
import pytest

from armillary.errors import JointError
from armillary.model.joint import Joint
from armillary.model.joints import CircleTrack, OvalTrack, Prismatic, Revolute, Screw
from armillary.model.unit import Unit
from armillary.spatial.pose import Pose
from armillary.testing import random_joint

INF = math.inf


def joint_of(x, **namespace) -> Joint:
    """A joint whose origin moves along x as a function of q."""
    body = {"pose": lambda self, q: Pose.translation(x(q), 0.0, 0.0), **namespace}
    return type("Made", (Joint,), body)()


def farthest(joint: Joint, low: float, high: float) -> float:
    """The largest distance found on a dense grid."""
    q = np.linspace(low, high, 20001)
    p = joint.motion.poses(q)[:, :, 3] @ np.array(joint.precursor.rotation).T
    return float(np.linalg.norm(p + joint.precursor.position, axis=1).max())


@pytest.mark.parametrize("seed", range(20))
def test_bounds_hold_and_are_tight(seed: int):
    random = np.random.default_rng(seed)
    joint = random_joint(random)
    low, high = np.sort(random.uniform(-4.0, 4.0, 2))
    bound, found = joint.origin_bound(low, high), farthest(joint, low, high)
    assert found * (1.0 - 1e-12) <= bound <= found * (1.0 + 1e-4)
    assert joint.origin_bound(high, low) == bound


def test_a_bound_is_not_only_that_of_the_ends():
    joint = CircleTrack(radius=1.0, precursor=Pose.translation(1.0, 0.0, 0.0))
    ends = [math.hypot(*joint.transform(q).position) for q in (-2.0, 2.0)]
    assert max(ends) < 1.2
    assert joint.origin_bound(-2.0, 2.0) == pytest.approx(2.0, rel=1e-8)


TRACK = OvalTrack(straight=2.0, radius=0.5)
MOVED = TRACK.prepend(Pose.translation(0.0, 0.0, 2.0))


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("joint", "low", "high", "expected"),
    [
        (TRACK, -INF, INF, 1.5),
        (TRACK, 0.0, INF, 1.5),
        (TRACK, -INF, 0.0, 1.5),
        (TRACK, INF, -INF, 1.5),
        (TRACK, 1e6, 2e6, 1.5),
        (TRACK, 0.0, 0.0, 0.5),
        (TRACK, 0.0, 0.5, math.hypot(0.5, 0.5)),
        (MOVED, -INF, INF, 2.5),
        (CircleTrack(radius=2.0), -INF, INF, 2.0),
        (Revolute(), -INF, INF, 0.0),
        (Revolute(precursor=Pose.translation(3.0, 4.0, 0.0)), -1.0, INF, 5.0),
        (Prismatic(), -1.0, 3.0, 3.0),
        (Prismatic(), -INF, 3.0, INF),
        (Prismatic(precursor=Pose.translation(0.0, 4.0, 0.0)), -1.0, 3.0, 5.0),
        (Screw(pitch=0.5), 0.0, 4.0, 2.0),
        (Screw(pitch=0.5), 0.0, INF, INF),
    ],
)
def test_known_bounds(joint: Joint, low: float, high: float, expected: float):
    assert joint.origin_bound(low, high) == pytest.approx(expected, rel=1e-8, abs=1e-12)
    assert joint.origin_bound(low, high) >= expected * (1.0 - 1e-15)


def test_a_bound_sees_both_sides_of_a_jump():
    """At the jump of q % 1 the mean value theorem does not hold."""
    joint = joint_of(lambda q: q % 1.0)
    for low, high in ((0.9, 1.1), (0.5, 1.01), (-0.3, 2.7)):
        assert joint.origin_bound(low, high) == pytest.approx(1.0, rel=1e-8)
    assert joint.origin_bound(1.0, 1.25) == pytest.approx(0.25, rel=1e-8)


@pytest.mark.parametrize(
    ("x", "low", "high", "expected"),
    [
        (np.floor, 0.5, 2.5, 2.0),
        (lambda q: np.sign(q) + q, -1.0, 0.5, 2.0),
        (lambda q: 3.0 if q > 1.0 else q, 0.0, 1.0 + 1e-9, 3.0),
        (lambda q: np.fmod(q, 2.0), -3.0, 1.0, 2.0),
        (lambda q: np.arctan2(np.sin(q), np.cos(q)), 0.0, 4.0, math.pi),
        (np.abs, -2.0, 1.0, 2.0),
        (lambda q: np.minimum(q, 1.0), 0.0, 5.0, 1.0),
        (lambda q: np.exp(-q * q), -INF, INF, 1.0),
        (np.sqrt, -1.0, 4.0, 2.0),
    ],
)
def test_awkward_functions(x, low: float, high: float, expected: float):
    bound = joint_of(x).origin_bound(low, high)
    assert expected * (1.0 - 1e-12) <= bound <= expected * 1.0001


@pytest.mark.parametrize("x", [lambda q: 1.0 / q, np.tan, np.log])
def test_poles_have_no_bound(x):
    assert joint_of(x).origin_bound(-2.0, 2.0) == INF


def test_a_circle_is_one_however_it_lies():
    """Also where its distance from F cannot be seen to be constant term by term."""
    turned = Pose.rotation_about((1.0, 2.0, 3.0), 0.7)

    class Leaning(Joint):
        def pose(self, q):
            return turned @ Pose.rotation_z(q) @ Pose.translation(0.3, 0.4, 0.0)

    X = Pose.from_rpy(0.1, 0.2, 0.3)
    bound = Leaning(precursor=X).origin_bound(-30.0, 70.0)
    assert bound == pytest.approx(0.5, rel=1e-12)
    assert bound >= 0.5


def test_an_infinite_range_may_have_no_bound_that_could_be_proved():
    joint = joint_of(lambda q: q / np.sqrt(1.0 + q * q))
    assert joint.origin_bound(-INF, INF) >= 1.0
    assert joint.origin_bound(-1e3, 1e3) == pytest.approx(1.0, rel=1e-3)


def test_a_period_tightens_an_infinite_range():
    def wave(q):
        return q % 3.0

    assert joint_of(wave).origin_bound(-INF, INF) >= 3.0 * (1.0 - 1e-12)
    periodic = joint_of(wave, period=property(lambda self: 3.0))
    assert periodic.origin_bound(-INF, INF) == pytest.approx(3.0, rel=1e-8)
    assert periodic.origin_bound(7.0, INF) == pytest.approx(3.0, rel=1e-8)


def test_limits_that_are_nan_are_refused():
    with pytest.raises(JointError, match="NaN"):
        TRACK.origin_bound(math.nan, 1.0)
    with pytest.raises(JointError, match="NaN"):
        Revolute().origin_bound(0.0, math.nan)


def test_a_plateau_ends():
    """Everywhere equally far from F, though the formula does not show it."""

    class Plateau(Joint):
        unit = Unit.OTHER

        def pose(self, q):
            x = 1.0 + np.cos(q)
            return Pose.translation(x - 1.0, np.sin(q) * 1.0, 0.0)

    assert Plateau().origin_bound(0.0, 6.0) == pytest.approx(1.0, rel=1e-5)
