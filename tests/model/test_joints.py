"""The built-in joints: known places, published arms, and what they refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest

from armillary.errors import JointError
from armillary.model.joint import Joint
from armillary.model.joints import (
    JOINT_TYPES,
    CircleTrack,
    CraigPrismatic,
    CraigRevolute,
    Fixed,
    FourBarSlider,
    OvalTrack,
    PaulPrismatic,
    PaulRevolute,
    Prismatic,
    Revolute,
    Screw,
)
from armillary.model.unit import Unit
from armillary.spatial import dh
from armillary.spatial.pose import Pose

PI = math.pi


def chain(joints: list[Joint], q: list[float]) -> Pose:
    """The pose of the last joint's outer frame in the first one's inner frame."""
    X = Pose.identity()
    for joint, each in zip(joints, q, strict=True):
        X = X @ joint.transform(each)
    return X


def path_length(joint: Joint, low: float, high: float) -> float:
    """The length of the path of the origin, by a fine polygon."""
    p = joint.motion.poses(np.linspace(low, high, 20001))[:, :, 3]
    return float(np.linalg.norm(np.diff(p, axis=0), axis=1).sum())


def test_the_table_holds_every_joint_by_its_tag():
    assert {kind.__name__ for kind in JOINT_TYPES.values()} == set(JOINT_TYPES)
    for tag, kind in JOINT_TYPES.items():
        assert kind.tag == tag
        assert kind.__doc__
        assert kind.lengths is not None
        assert isinstance(kind.unit, Unit)


def test_joints_at_zero():
    for joint in (Fixed(), Revolute(), Prismatic(), Screw(pitch=0.1)):
        assert joint.transform(0.0) == Pose.identity()


def test_revolute_and_prismatic():
    axis = (1.0, 2.0, 2.0)
    turned = Revolute(axis=axis).transform(0.7)
    assert turned.approx_equal(Pose.rotation_about(axis, 0.7), 1e-15)
    assert Prismatic(axis=axis).transform(3.0).position == pytest.approx((1, 2, 2))
    assert Revolute(axis=axis).velocity(0.3, 3.0) == pytest.approx([0, 0, 0, 1, 2, 2])
    assert Prismatic(axis=axis).velocity(0.3, 3.0) == pytest.approx([1, 2, 2, 0, 0, 0])


def test_a_screw_advances_by_its_lead():
    screw = Screw(pitch=0.005 / (2.0 * PI))
    assert screw.transform(2.0 * PI).position == pytest.approx((0.0, 0.0, 0.005))
    assert Screw(pitch=0.0).transform(0.7) == Revolute().transform(0.7)
    # Actin: q a length, pitch the rotation per length.
    rotation_per_length, length = 40.0, 0.03
    ours = Screw(pitch=1.0 / rotation_per_length).transform(
        rotation_per_length * length
    )
    expected = Pose.translation(0, 0, length) @ Pose.rotation_z(0.03 * 40.0)
    assert ours.approx_equal(expected, 1e-15)


PARAMETERS = {"theta": 0.3, "d": 0.4, "a": 0.5, "alpha": 0.6}


@pytest.mark.parametrize(
    ("turning", "sliding", "order"),
    [
        (PaulRevolute, PaulPrismatic, dh.paul),
        (CraigRevolute, CraigPrismatic, dh.craig),
    ],
)
def test_denavit_hartenberg(turning: type[Joint], sliding: type[Joint], order):
    turned = order(**{**PARAMETERS, "theta": 0.3 + 0.7})
    assert turning(**PARAMETERS).transform(0.7).approx_equal(turned, 1e-15)
    slid = order(**{**PARAMETERS, "d": 0.4 + 0.7})
    assert sliding(**PARAMETERS).transform(0.7).approx_equal(slid, 1e-15)
    assert (turning.unit, sliding.unit) == (Unit.RADIAN, Unit.METRE)


def craig(alpha: float, a: float, d: float) -> Joint:
    return CraigRevolute(alpha=alpha, a=a, d=d)


PUMA560 = [
    craig(0.0, 0.0, 0.0),
    craig(-PI / 2, 0.0, 0.0),
    craig(0.0, 0.4318, -1.15005),
    craig(-PI / 2, 0.0203, -0.4318),
    craig(PI / 2, 0.0, 0.0),
    craig(-PI / 2, 0.0, 0.0),
]


def test_puma560_by_craig():
    """The pose that RobWork's own test publishes for all joints at pi / 8."""
    X = chain(PUMA560, [PI / 8] * 6)
    assert X.position == pytest.approx((1.104018, -0.787506, 0.125732), abs=1e-6)
    expected = [
        [0.448823, -0.073823, -0.890566],
        [-0.550328, -0.808012, -0.210372],
        [-0.704057, 0.584523, -0.403281],
    ]
    assert np.array(X.rotation) == pytest.approx(np.array(expected), abs=1e-6)


KR16 = [
    craig(0.0, 0.0, 0.0),
    craig(PI / 2, 0.26, 0.0),
    craig(0.0, 0.68, 0.0),
    craig(PI / 2, -0.035, -0.67),
    craig(-PI / 2, 0.0, 0.0),
    craig(PI / 2, 0.0, 0.0),
]


def test_kr16_by_craig():
    """The pose of the tool in the base that RobWork's own test publishes."""
    s = math.sqrt(0.5)
    tool = Pose(((0.0, -s, -s), (-1.0, 0.0, 0.0), (0.0, s, -s)), (-0.141, 0.0, -0.299))
    q = [0.0, math.radians(-60.0), math.radians(15.0), 0.0, 0.0, 0.0]
    expected = Pose.translation(1.16074, 0.0, 0.22074) @ Pose.rotation_z(PI / 2)
    assert (chain(KR16, q) @ tool).approx_equal(expected, 1e-5)


def test_paul_is_craig_shifted_by_one():
    """Paul's chain is Craig's with every a and alpha moved to the joint before."""
    random = np.random.default_rng(1)
    a, alpha, d, theta, q = random.uniform(-1.0, 1.0, (5, 4)).tolist()
    paul = [
        PaulRevolute(theta=theta[k], d=d[k], a=a[k], alpha=alpha[k]) for k in range(4)
    ]
    first = CraigRevolute(theta=theta[0], d=d[0])
    rest = [
        CraigRevolute(theta=theta[k], d=d[k], a=a[k - 1], alpha=alpha[k - 1])
        for k in range(1, 4)
    ]
    last = dh.craig(alpha=alpha[3], a=a[3], theta=0.0, d=0.0)
    both = chain([first, *rest], q) @ last
    assert chain(paul, q).approx_equal(both, 1e-14)


def test_the_circle():
    joint = CircleTrack(radius=2.0)
    assert joint.transform(0.0) == Pose.translation(2.0, 0.0, 0.0)
    quarter = joint.transform(PI)
    assert quarter.approx_equal(
        Pose.translation(0.0, 2.0, 0.0) @ Pose.rotation_z(PI / 2), 1e-15
    )
    assert joint.period == pytest.approx(path_length(joint, 0.0, joint.period), 1e-7)
    inward = CircleTrack(radius=2.0, inward=True)
    for q in (0.0, 1.3, -20.0):
        X = inward.transform(q)
        assert X.position == pytest.approx(joint.transform(q).position, abs=1e-15)
        to_centre = -np.array(X.position) / 2.0
        assert X.rotate((1.0, 0.0, 0.0)) == pytest.approx(to_centre, abs=1e-15)


@pytest.mark.parametrize("radius", [0.0, -1.0])
def test_a_circle_needs_a_radius(radius: float):
    with pytest.raises(JointError, match=r"radius > 0.*other way round"):
        CircleTrack(radius=radius)


STRAIGHT, RADIUS = 2.0, 0.5
BEND = PI * RADIUS
PLACES = [
    (0.0, 0.0, -RADIUS, 0.0),
    (0.5, 0.5, -RADIUS, 0.0),
    (1.0, 1.0, -RADIUS, 0.0),
    (1.0 + 0.5 * BEND, 1.0 + RADIUS, 0.0, PI / 2),
    (1.0 + BEND, 1.0, RADIUS, PI),
    (2.0 + BEND, 0.0, RADIUS, PI),
    (3.0 + BEND, -1.0, RADIUS, PI),
    (3.0 + 1.5 * BEND, -1.0 - RADIUS, 0.0, 3 * PI / 2),
    (3.0 + 2.0 * BEND, -1.0, -RADIUS, 2 * PI),
    (-0.5 * BEND - 1.0, -1.0 - RADIUS, 0.0, -PI / 2),
]


@pytest.mark.parametrize(("q", "x", "y", "heading"), PLACES)
@pytest.mark.parametrize("laps", [0, 1, -1, 1000])
def test_places_on_the_oval(q: float, x: float, y: float, heading: float, laps: int):
    joint = OvalTrack(straight=STRAIGHT, radius=RADIUS)
    X = joint.transform(q + laps * joint.period)
    expected = Pose.translation(x, y, 0.0) @ Pose.rotation_z(heading)
    assert X.approx_equal(expected, 1e-14 + abs(laps) * 1e-14)


def test_the_oval_is_as_long_as_it_says():
    joint = OvalTrack(straight=STRAIGHT, radius=RADIUS)
    assert joint.period == pytest.approx(4.0 + PI)
    assert path_length(joint, 0.0, joint.period) == pytest.approx(joint.period, 1e-7)


def test_an_oval_without_straights_is_a_circle():
    oval, circle = OvalTrack(straight=0.0, radius=2.0), CircleTrack(radius=2.0)
    start = Pose.rotation_z(-PI / 2)
    ahead = Pose.rotation_z(PI / 2)
    for q in np.linspace(-15.0, 15.0, 31).tolist():
        expected = start @ circle.transform(q) @ ahead
        assert oval.transform(q).approx_equal(expected, 1e-14)


def test_nan_on_the_oval_is_nan():
    X = OvalTrack(straight=STRAIGHT, radius=RADIUS).transform(math.nan)
    assert math.isnan(X.position[0])
    assert math.isnan(X.position[1])
    assert math.isnan(X.rotation[0][0])


@pytest.mark.parametrize(("straight", "radius"), [(-1.0, 1.0), (1.0, 0.0), (1.0, -2.0)])
def test_what_makes_no_oval_is_refused(straight: float, radius: float):
    with pytest.raises(JointError, match="straight >= 0 and radius > 0"):
        OvalTrack(straight=straight, radius=radius)


def test_a_fixed_joint_holds():
    X = Pose.translation(1.0, 2.0, 3.0)
    joint = Fixed(precursor=X)
    assert joint.transform(5.0) == X
    assert (joint.velocity(1.0, 1.0) == 0.0).all()
    assert joint.origin_bound(-math.inf, math.inf) == pytest.approx(math.sqrt(14.0))


RANGES = {  # of q, by the triangle inequality of nominal=0.4, lever=0.3, opposite=0.35
    (True, 0.0): (0.05 - 0.4, 0.65 - 0.4),
    (True, 0.12): (0.37 - 0.3 - 0.4, 0.37 + 0.3 - 0.4),
    (False, 0.0): (0.05 - 0.4, 0.65 - 0.4),
    (False, 0.12): (
        (0.65**2 - 0.12**2) ** 0.5 * -1 - 0.4,
        (0.65**2 - 0.12**2) ** 0.5 - 0.4,
    ),
}


@pytest.mark.parametrize(("pivoted", "offset"), RANGES)
def test_a_slider_turns_the_lever_of_a_four_bar(pivoted: bool, offset: float):
    """The tip is as far from the other end of the slider, or of the rod, as they are
    long, on the left; and outside of the range there is no pose."""
    joint = FourBarSlider(
        nominal=0.4, lever=0.3, opposite=0.35, offset=offset, pivoted=pivoted
    )
    low, high = RANGES[pivoted, offset]
    for q in np.linspace(low + 1e-9, high - 1e-9, 101).tolist():
        x, y, _ = joint.transform(q).rotate((0.3, 0.0, 0.0))
        foot, side = (0.35, 0.4 + q) if pivoted else (0.4 + q, 0.35)
        assert math.hypot(x - foot, y - offset) == pytest.approx(side, abs=1e-12)
        assert foot * y - offset * x >= -1e-12
    for q in (low - 1e-6, high + 1e-6):
        assert math.isnan(joint.transform(q).rotation[0][0])


def test_a_slider_moves_a_lever_by_the_principle_of_virtual_work():
    """Speed of the slider is the lever's rate times its distance from the pivot."""
    joint = FourBarSlider(nominal=0.4, lever=0.3, opposite=0.35, offset=0.12)
    x, y, _ = joint.transform(0.05).rotate((0.3, 0.0, 0.0))
    arm_of_force = (x * 0.12 - y * 0.35) / 0.45  # foot x tip, over the slider's length
    assert joint.velocity(0.05, 1.0)[5] == pytest.approx(-1.0 / arm_of_force, rel=1e-12)


@pytest.mark.parametrize("nominal", [0.04, 0.66, 2.0])
def test_a_linkage_that_does_not_close_is_refused(nominal: float):
    with pytest.raises(
        JointError, match=r"must close at q = 0: its foot is 0\.35 m from"
    ):
        FourBarSlider(nominal=nominal, lever=0.3, opposite=0.35)


@pytest.mark.parametrize("name", ["nominal", "lever", "opposite"])
def test_sides_are_longer_than_zero(name: str):
    lengths = {"nominal": 0.4, "lever": 0.3, "opposite": 0.35, name: 0.0}
    with pytest.raises(JointError, match="needs nominal, lever and opposite > 0"):
        FourBarSlider(**lengths)
