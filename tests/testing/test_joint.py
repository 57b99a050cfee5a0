"""`check_joint` passes what keeps the contract, and names every law that is broken.

For each law there is a joint that breaks that law and, as far as that can be, no other.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest

from armillary.errors import JointError
from armillary.model.joint import Joint
from armillary.model.joints import JOINT_TYPES, CircleTrack, Curve, OvalTrack, Revolute
from armillary.model.unit import Unit
from armillary.spatial.pose import Pose
from armillary.testing import check_joint, random_joint, random_pose
from armillary.testing.joint import LAWS
from armillary.testing.samples import PARAMETERS

METRE = Unit.METRE
P = random_pose(np.random.default_rng(11))


class Circle(Joint):
    """A right joint, which the others spoil."""

    radius: float = 2.0
    unit = METRE

    def pose(self, q):
        turn = Pose.rotation_z(q / self.radius)
        return turn @ Pose.translation(self.radius, 0, 0)


class Sheared(Circle):
    """No rotation between 0.9 and 1.1, where the trace does not look."""

    def pose(self, q):
        X = super().pose(q)
        if 0.9 < q < 1.1:
            return ([[1.0 + q * 0.01, 0, 0], [0, 1, 0], [0, 0, 1]], X.position)
        return X


class Mirrored(Circle):
    def pose(self, q):
        if 0.9 < q < 1.1:
            return ([[1.0, 0, 0], [0, 1, 0], [0, 0, -1.0]], (q, 0.0, 0.0))
        return super().pose(q)


class Undefined(Circle):
    def pose(self, q):
        return Pose.translation(0.0, 0.0, np.sqrt(q)) @ super().pose(q)


class WithoutPrecursor(Circle):
    def transform(self, q):
        return self.motion.pose(float(q))


class Divided(Circle):
    """Python's floats and traced scalars take other ways."""

    def pose(self, q):
        X = super().pose(q)
        return X @ Pose.translation(0.1, 0, 0) if isinstance(q, float) else X


class Raising(Circle):
    def pose(self, q):
        if isinstance(q, float):
            raise RuntimeError("no floats here")
        return super().pose(q)


class Jumping(Circle):
    def pose(self, q):
        lift = 1e-6 if q > 1.0 else 0.0
        return Pose.translation(0.0, 0.0, self.radius * lift) @ super().pose(q)


class SeedVelocity(Circle):
    """Components in the axes of the precursor's frame, as in the tutorial of Actin."""

    def velocity(self, q, qd):
        angle = q / self.radius
        linear = (-qd * math.sin(angle), qd * math.cos(angle), 0.0)
        return np.array([*linear, 0.0, 0.0, qd / self.radius])


class ParentVelocity(Circle):
    def velocity(self, q, qd):
        R = np.array(self.transform(q).rotation)
        v = super().velocity(q, qd)
        return np.concatenate([R @ v[:3], R @ v[3:]])


class SlightlyFast(Circle):
    def velocity(self, q, qd):
        return super().velocity(q, qd) * (1.0 + 1e-7)


class WithoutCentripetal(Circle):
    """The derivative of the components in M: right only where nothing turns."""

    def acceleration(self, q, qd, qdd):
        return self.velocity(q, qdd)


class SeedAcceleration(Circle):
    def acceleration(self, q, qd, qdd):
        angle, pull = q / self.radius, qd**2 / self.radius
        s, c = math.sin(angle), math.cos(angle)
        linear = (-qdd * s - pull * c, qdd * c - pull * s, 0.0)
        return np.array([*linear, 0.0, 0.0, qdd / self.radius])


class WrongClosedForm(Circle):
    def subspace(self, q):
        return (0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


class WrongPeriod(Circle):
    period = property(lambda self: math.pi * self.radius)


class NoPeriod(Circle):
    period = property(lambda self: 0.0)


class WrongTorque(Circle):
    def torque_to_exert(self, q, wrench):
        return wrench[1]


class WrongInertia(Circle):
    def unit_acceleration_torque(self, q, inertia):
        return float(np.asarray(inertia)[1, 1])


class RigidInertia(Circle):
    """The whole inertia goes through, as if the joint were locked."""

    def articulated_inertia(self, q, inertia):
        return Revolute(precursor=self.transform(q)).articulated_inertia(0.0, inertia)


class BoundOfEnds(Circle):
    """The seed's bound: the larger of the distances at the limits."""

    def origin_bound(self, lower, upper):
        if math.isinf(lower) or math.isinf(upper):
            return super().origin_bound(lower, upper)
        return max(math.hypot(*self.transform(q).position) for q in (lower, upper))


class OneWayBound(Circle):
    def origin_bound(self, lower, upper):
        right = super().origin_bound(lower, upper)
        return right if lower <= upper else 2.0 * right


class NoBound(Circle):
    def origin_bound(self, lower, upper):
        return math.inf


class SlowBounds(Circle):
    def speed_bounds(self, lower, upper):
        linear, angular = super().speed_bounds(lower, upper)
        return linear, 0.999 * angular


class OneWaySpeeds(Circle):
    def speed_bounds(self, lower, upper):
        linear, angular = super().speed_bounds(lower, upper)
        return linear, angular if lower <= upper else 2.0 * angular


class FastParts(Circle):
    def speed_bounds(self, lower, upper):
        linear, angular = super().speed_bounds(lower, upper)
        return (linear if abs(upper - lower) > 6.0 else 2.0), angular


class WrongUnit(Circle):
    unit = Unit.RADIAN


class ForgottenLength(Circle):
    lengths = ()


class ScaledPrecursor(Circle):
    def scaled(self, factor):
        return msgspec.structs.replace(self, radius=self.radius * factor)


class GrowingByOne(Circle):
    def scaled(self, factor):
        return super().scaled(factor * 1.5)


class Turncoat(Circle):
    def scaled(self, factor):
        right = super().scaled(factor)
        if factor == 1.0:
            return right
        return CircleTrack(radius=right.radius, precursor=right.precursor)


class PeriodNotScaled(Circle):
    period = property(lambda self: 4.0 * math.pi)


class EqualToAll(Circle):
    def __eq__(self, other):
        return type(self) is type(other)

    def __hash__(self):
        return 0


class EqualToNone(Circle):
    def __eq__(self, other):
        return self is other

    __hash__ = object.__hash__


class SeedNearness(Circle):
    """The tutorial computes whether the radii are near, and drops it."""

    def approx_equal(self, other, tolerance):
        return type(self) is type(other)


class StrictNearness(Circle):
    def approx_equal(self, other, tolerance):
        return self == other


class WrongCopy(Circle):
    def __reduce__(self):
        return (WrongCopy, (2.0,))


class PrependBehind(Circle):
    def prepend(self, X):
        return self.offset_inboard(X)


class OffsetInFront(Circle):
    def offset_inboard(self, offset):
        return self.prepend(offset)


class LimitAtOnePoint(Circle):
    """Rise by (1 - cos q) / q, the limit returned at 0 alone."""

    def pose(self, q):
        rise = 0.0 if q == 0 else (1 - np.cos(q)) / q
        return Pose.translation(0, 0, self.radius * rise)


class HoleAtOnePoint(Circle):
    def pose(self, q):
        return Pose.translation(0, 0, self.radius * np.sin(q) / q)


BROKEN: list[tuple[type[Joint], str, str]] = [
    (Sheared, "rigid", "R R' differs from 1"),
    (Mirrored, "rigid", "reflection"),
    (Undefined, "rigid", "not defined at q = -"),
    (WithoutPrecursor, "precursor", "precursor @ pose(q)"),
    (Divided, "plain floats", "of a float"),
    (Raising, "plain floats", "RuntimeError: no floats here"),
    (Jumping, "continuous", "jumps at q = 1"),
    (SeedVelocity, "velocity", "in the axes of the precursor's frame"),
    (ParentVelocity, "velocity", "in the axes of the inner frame"),
    (SlightlyFast, "velocity", "do not fall as h^2"),
    (WithoutCentripetal, "acceleration", "differences of the pose give"),
    (SeedAcceleration, "acceleration", "in the axes of the precursor's frame"),
    (WrongClosedForm, "subspace", "the derivative of the pose"),
    (LimitAtOnePoint, "special points", "is 0 there and 1.25 beside it"),
    (HoleAtOnePoint, "special points", "not defined at q = 0, but on both sides"),
    (WrongPeriod, "period", "the pose at"),
    (NoPeriod, "period", "above 0"),
    (WrongTorque, "torque", "torque_to_exert"),
    (WrongInertia, "inertia", "unit_acceleration_torque"),
    (RigidInertia, "inertia", "articulated_inertia"),
    (BoundOfEnds, "bound", "m apart"),
    (OneWayBound, "bound", "swapped"),
    (NoBound, "bound", "is infinite"),
    (SlowBounds, "speeds", "turns by no more than 0.3996 rad"),
    (OneWaySpeeds, "speeds", "swapped"),
    (FastParts, "speeds", "that of all between"),
    (WrongUnit, "scaling", "write unit = METRE"),
    (ForgottenLength, "scaling", "scaled(2) at q"),
    (ScaledPrecursor, "scaling", "scaled(2) at q"),
    (GrowingByOne, "scaling", "scaled(1)"),
    (Turncoat, "scaling", "is a CircleTrack"),
    (PeriodNotScaled, "scaling", "the period"),
    (EqualToAll, "equality", "with another 'radius'"),
    (EqualToNone, "equality", "same parameters"),
    (SeedNearness, "nearness", "does not see that 'radius' differs"),
    (StrictNearness, "nearness", "is False, yet 'radius' differs"),
    (WrongCopy, "copies", "not equal to the joint"),
    (PrependBehind, "precursors", "prepend(X)"),
    (OffsetInFront, "precursors", "offset_inboard(X)"),
]


def broken_laws(joint: Joint, **options: Any) -> dict[str, str]:
    """What `check_joint` says, by law."""
    with pytest.raises(JointError) as error:
        check_joint(joint, **options)
    first, *lines = str(error.value).split("\n")
    assert first.startswith(f"{type(joint).__name__} breaks ")
    return dict(line.strip().split(": ", 1) for line in lines)


# What follows from what else: a joint that breaks one law often breaks another.
ALSO = {
    "Sheared": {"acceleration", "continuous", "scaling", "velocity"},
    "Mirrored": {"continuous", "scaling"},
    "Undefined": {"bound", "scaling"},
    "WithoutPrecursor": {"scaling", "precursors", "inertia"},
    "Jumping": {"scaling"},
    "SeedVelocity": {"subspace", "torque", "inertia"},
    "ParentVelocity": {"subspace", "torque", "inertia"},
    "SlightlyFast": {"subspace", "torque", "inertia"},
    "WrongClosedForm": {"velocity", "acceleration"},
    "WrongPeriod": {"bound"},
    "NoPeriod": {"bound"},
    "LimitAtOnePoint": {"bound", "scaling"},
    "HoleAtOnePoint": {"bound", "scaling"},
    "PeriodNotScaled": {"bound", "period"},
    "EqualToNone": {"copies", "saving", "scaling", "precursors"},
    "EqualToAll": {"nearness", "scaling"},
    "StrictNearness": {"equality", "scaling"},
    "SeedNearness": {"equality"},
    "OffsetInFront": {"precursors"},
    "PrependBehind": {"precursors"},
}


@pytest.mark.sampled(10)
@pytest.mark.parametrize(
    ("kind", "law", "message"), BROKEN, ids=[kind.__name__ for kind, _, _ in BROKEN]
)
def test_a_broken_law_is_named_and_no_other(kind: type[Joint], law: str, message: str):
    found = broken_laws(kind(2.5, precursor=P), lower=-3.0, upper=3.5, samples=12)
    assert message in found[law]
    assert set(found) - {law} <= ALSO.get(kind.__name__, set())


def test_every_law_is_broken_by_some_joint():
    assert {law for _, law, _ in BROKEN} | {"saving"} == set(LAWS)


def test_saving_is_what_the_caller_says():
    def forgetful(joint: Joint) -> Joint:
        return msgspec.structs.replace(joint, precursor=Pose.identity())

    joint = Circle(2.5, precursor=P)
    assert set(broken_laws(joint, round_trip=forgetful)) == {"saving"}
    seen: list[Joint] = []

    def faithful(joint: Joint) -> Joint:
        seen.append(joint)
        return joint

    check_joint(joint, round_trip=faithful)
    assert seen == [joint]


def test_what_files_cannot_hold_is_reported():
    class Impostor(Circle):
        tag = "CircleTrack"

    class Typed(Circle):
        type: str = "a"

    assert "tag of the built-in CircleTrack" in broken_laws(Impostor(2.0))["saving"]
    assert set(broken_laws(Typed(2.0))) == {"saving"}


def test_poses_and_tables_are_saved():
    class Rich(Circle):
        offset: Pose = P
        table: tuple[tuple[float, ...], ...] = ((1.0, 2.0), (3.0,))
        name: str = "a"
        factor: float | None = None

        def pose(self, q):
            return Pose(self.offset.rotation, (0.0, 0.0, 0.0)) @ super().pose(q)

    check_joint(Rich(2.0, offset=random_pose(np.random.default_rng(3))))


# What is right passes.


@pytest.mark.parametrize("kind", sorted(JOINT_TYPES))
@pytest.mark.parametrize("seed", range(2))
def test_built_in_joints_pass(kind: str, seed: int):
    random = np.random.default_rng([seed, *kind.encode()])
    check_joint(random_joint(random, kind), seed=seed)
    check_joint(random_joint(random, kind, with_precursor=False), lower=-0.4, upper=0.7)


def test_every_built_in_joint_has_samples():
    assert set(PARAMETERS) == set(JOINT_TYPES)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("radius", [1e-3, 1.0, 200.0])
def test_joints_of_any_size_pass(radius: float):
    check_joint(Circle(radius, precursor=P))
    check_joint(OvalTrack(straight=3.0 * radius, radius=radius, precursor=P))
    ring = [(radius, 0, 0), (0, radius, 0), (-radius, 0, 0), (0, -radius, 0)]
    check_joint(Curve(points=ring, closed=True))


class Stops(Joint):
    """Stand still outside of a range, with a kink at its ends."""

    length: float = 0.3
    unit = METRE

    def pose(self, q):
        return Pose.translation(np.clip(q, 0.0, self.length), 0.0, 0.0)


class Lead(Joint):
    """A spring: defined for q above 0 alone."""

    stiffness: float = 2.0
    unit = Unit.OTHER

    def pose(self, q):
        x = np.sqrt(q) * self.stiffness
        return Pose.rotation_y(np.log(q)) @ Pose.translation(x, 0.0, 0.0)


class Cam(Joint):
    """Many harmonics, and a table of parameters."""

    lift: tuple[float, ...] = (0.01, 0.002, 0.0005)
    name: str = "cam"
    period = property(lambda self: 2.0 * math.pi)

    def pose(self, q):
        z = sum(a * np.cos((k + 1) * q) for k, a in enumerate(self.lift))
        return Pose.rotation_x(0.2 * np.sin(3.0 * q)) @ Pose.translation(0.0, 0.0, z)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("joint", [Stops(), Lead(), Cam(), Circle(), Circle(-1.5)])
def test_joints_of_users_pass(joint: Joint):
    check_joint(joint)
    check_joint(joint.prepend(P), lower=0.05, upper=0.8)


# How it is called.


def test_the_numbers_of_a_failure_are_in_the_message():
    found = broken_laws(SeedVelocity(2.0), lower=0.69, upper=0.71, samples=1)
    numbers = found["velocity"]
    assert "at q = 0." in numbers
    assert "it is (-" in numbers
    assert "give (" in numbers


def test_all_broken_laws_are_reported_at_once():
    class Both(SeedVelocity):
        def approx_equal(self, other, tolerance):
            return True

    assert {"velocity", "nearness"} <= set(broken_laws(Both(2.0)))


def test_what_is_broken_is_found_for_any_seed():
    for seed in range(4):
        assert "velocity" in broken_laws(SlightlyFast(2.0), seed=seed)
        check_joint(Circle(2.0), seed=seed)


def test_ranges():
    check_joint(Circle(2.0), lower=3.0, upper=-3.0)
    check_joint(Circle(2.0), lower=1.0)
    check_joint(Circle(2.0), upper=-math.pi)
    check_joint(Circle(2.0), lower=-math.inf, upper=math.inf)
    for limit in (0.5, math.nan):
        with pytest.raises(JointError, match="cannot be checked over the range"):
            check_joint(Circle(2.0), lower=limit, upper=limit)


def test_a_motion_that_is_nowhere_defined_is_refused():
    class Nowhere(Joint):
        def pose(self, q):
            return Pose.translation(np.sqrt(-1.0 - q * q), 0.0, 0.0)

    with pytest.raises(JointError, match="not defined anywhere"):
        check_joint(Nowhere())


def test_what_cannot_be_traced_is_reported_at_once():
    class Untraceable(Joint):
        def pose(self, q):
            return Pose.translation(math.sin(q), 0.0, 0.0)

    with pytest.raises(JointError, match=r"Untraceable\.pose cannot be traced"):
        check_joint(Untraceable())


def test_local_classes_are_not_pickled_but_all_else_is_checked():
    class Local(Circle):
        pass

    check_joint(Local(2.0))
