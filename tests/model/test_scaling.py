"""Which parameters are lengths is found from the law of scaling."""

from __future__ import annotations

import numpy as np
import pytest

from armillary.errors import JointError
from armillary.model import scaling
from armillary.model.joint import Joint
from armillary.model.joints import JOINT_TYPES, OvalTrack
from armillary.model.unit import Unit
from armillary.spatial.pose import Pose
from armillary.testing import check_joint, random_joint

METRE = Unit.METRE


class Oval(Joint):
    """An oval as a user writes it."""

    straight: float
    radius: float
    unit = METRE

    def pose(self, q):
        half, bend = 0.5 * self.straight, np.pi * self.radius
        s = (q + half) % (2.0 * self.straight + 2.0 * bend)
        if s < self.straight:
            return Pose.translation(s - half, -self.radius, 0.0)
        s = s - self.straight
        if s < bend:
            return self.turned(half, s / self.radius)
        s = s - bend
        if s < self.straight:
            upper = Pose.translation(half - s, self.radius, 0.0)
            return upper @ Pose.rotation_z(np.pi)
        return self.turned(-half, (s - self.straight) / self.radius + np.pi)

    def turned(self, x, angle):
        hanging = Pose.rotation_z(angle) @ Pose.translation(0.0, -self.radius, 0.0)
        return Pose.translation(x, 0.0, 0.0) @ hanging


def test_a_users_oval_is_the_built_in_one():
    mine, ours = Oval(2.0, 0.5), OvalTrack(straight=2.0, radius=0.5)
    q = np.linspace(-9.0, 9.0, 1001)
    assert mine.motion.poses(q) == pytest.approx(ours.motion.poses(q), abs=1e-13)


@pytest.mark.parametrize("straight", [0.01, 2.0, 100.0, 1e4])
@pytest.mark.parametrize("radius", [0.01, 0.5, 200.0])
def test_lengths_are_found_however_long(straight: float, radius: float):
    scaled = Oval(straight, radius).scaled(3.0)
    assert scaled == Oval(3.0 * straight, 3.0 * radius)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", sorted(JOINT_TYPES))
def test_what_built_in_joints_declare_is_what_is_found(kind: str):
    random = np.random.default_rng(7)
    for _ in range(2):
        joint = random_joint(random, kind, with_precursor=False)
        assert set(scaling._lengths(joint)) == set(joint.lengths)


class Mixed(Joint):
    angle: float = 0.3
    arm: float = 2.0
    teeth: int = 12
    shift: Pose = Pose.translation(0.0, 0.0, 1.0)
    name: str = "a"
    steps: tuple[float, ...] = (0.1, 0.2)

    def pose(self, q):
        turned = Pose.rotation_z(q * self.teeth + self.angle)
        lifted = Pose.translation(self.arm, self.steps[0], self.steps[1])
        return turned @ lifted @ self.shift


def test_angles_and_counts_are_left_alone():
    expected = Mixed(arm=4.0, shift=Pose.translation(0.0, 0.0, 2.0), steps=(0.2, 0.4))
    assert Mixed().scaled(2.0) == expected
    assert Mixed().scaled(2.0).scaled(0.5) == Mixed()


def test_small_lengths_count():
    class Tiny(Joint):
        radius: float

        def pose(self, q):
            return Pose.rotation_z(q) @ Pose.translation(self.radius, 0.0, 0.0)

    assert Tiny(1e-12).scaled(2.0) == Tiny(2e-12)
    assert Tiny(0.0).scaled(2.0) == Tiny(0.0)


def test_a_length_that_is_not_a_parameter_cannot_be_scaled():
    class Frozen(Joint):
        angle: float = 0.0

        def pose(self, q):
            return Pose.rotation_z(q + self.angle) @ Pose.translation(0.4, 0.0, 0.0)

    with pytest.raises(JointError) as error:
        Frozen(0.5).scaled(2.0)
    assert "Frozen cannot be scaled by 2" in str(error.value)
    assert "(angle)" in str(error.value)
    assert "Override" not in str(error.value).split(". ")[0]


def test_a_wrong_unit_shows():
    class Circle(Joint):
        radius: float

        def pose(self, q):
            turn = Pose.rotation_z(q / self.radius)
            return turn @ Pose.translation(self.radius, 0, 0)

    with pytest.raises(JointError, match="If q is a length, write unit = METRE"):
        Circle(2.0).scaled(2.0)


def test_declared_lengths_are_taken_at_their_word():
    class Declared(Mixed):
        lengths = ("arm",)

    assert Declared().scaled(2.0) == Declared(arm=4.0)


def test_too_many_parameters_need_a_word():
    fields = {f"p{k}": 1.0 for k in range(11)}
    body = {
        **fields,
        "__annotations__": dict.fromkeys(fields, float),
        "pose": lambda self, q: Pose.translation(q * self.p0, self.p1, 0.0),
        "unit": Unit.OTHER,
    }
    with pytest.raises(JointError, match="11 numeric parameters"):
        type("Many", (Joint,), body)().scaled(2.0)
    named = type("Named", (Joint,), {**body, "lengths": ("p0", "p1")})
    assert named().scaled(2.0) == named(p0=2.0, p1=2.0)


class Short(Joint):
    """A joint with a greatest length."""

    length: float = 1.0
    unit = METRE

    def check(self):
        if self.length > 1.5:
            raise JointError("the length must not exceed 1.5 m")

    def pose(self, q):
        return Pose.translation(q, self.length, 0.0)


class Gear(Joint):
    """A joint with a whole number."""

    teeth: int
    radius: float = 1.0

    def pose(self, q):
        return Pose.rotation_z(q / self.teeth) @ Pose.translation(self.radius, 0, 0)


class Ladder(Joint):
    """A joint whose only length is a whole number."""

    height: int
    unit = METRE

    def pose(self, q):
        return Pose.translation(q, 0.0, self.height)


def test_the_rules_of_a_joint_are_not_want_of_lengths():
    assert Short().scaled(1.2) == Short(length=1.2)
    assert Short(length=1.5).scaled(0.5) == Short(length=0.75)
    with pytest.raises(
        JointError, match=r"Short refuses to be scaled by 2\. the length"
    ):
        Short().scaled(2.0)
    check_joint(Short())


def test_whole_numbers_are_not_lengths():
    assert Gear(teeth=3).scaled(0.5) == Gear(teeth=3, radius=0.5)
    check_joint(Gear(teeth=3))
    with pytest.raises(JointError, match="must be parameters, and not whole numbers"):
        Ladder(height=3).scaled(2.0)
