"""The curve joint: unit speed, exact derivatives, straight beyond its ends."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from armillary.errors import JointError
from armillary.model.joints import CircleTrack, Curve
from armillary.spatial.pose import Pose
from armillary.testing import check_joint

RING = [
    (math.cos(a), math.sin(a), 0.2 * math.sin(2 * a))
    for a in np.arange(8) * math.pi / 4
]
HILL = [(0.0, 0.0, 0.0), (1.0, 0.2, 0.5), (2.0, -0.1, 0.6), (3.0, 0.0, 0.0)]
CURVES = {
    "ring": Curve(points=RING, closed=True),
    "rolling ring": Curve(points=RING, closed=True, up=None),
    "hill": Curve(points=HILL),
    "rolling hill": Curve(points=HILL, up=None),
    "leaning": Curve(points=HILL, up=(0.0, 1.0, 1.0)),
    "straight": Curve(points=[(0.0, 0.0, 0.0), (1.0, 2.0, 2.0)]),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CURVES)
def test_every_law_holds(name: str):
    check_joint(CURVES[name])


@pytest.mark.parametrize("name", CURVES)
def test_it_goes_at_unit_speed_and_looks_ahead(name: str):
    joint = CURVES[name]
    q = np.linspace(-1.0, joint.length + 1.0, 400)
    X = joint.motion.poses(q)
    for k in range(0, 400, 7):
        v = joint.velocity(float(q[k]), 1.0)[:3]
        assert v == pytest.approx([1.0, 0.0, 0.0], abs=1e-6)
    steps = np.diff(X[:, :, 3], axis=0)
    assert (np.einsum("ni,ni->n", steps, X[:-1, :, 0]) > 0.0).all()


@pytest.mark.parametrize("name", CURVES)
def test_it_passes_its_points(name: str):
    joint = CURVES[name]
    assert joint.transform(0.0).position == pytest.approx(joint.points[0], abs=1e-12)
    q = np.linspace(0.0, joint.length, 4001)
    p = joint.motion.poses(q)[:, :, 3]
    for point in joint.points:
        nearest = np.linalg.norm(p - np.array(point), axis=1).min()
        assert nearest < 0.51 * joint.length / 4000


def test_z_is_as_near_to_up_as_it_can_be():
    joint = CURVES["leaning"]
    for q in np.linspace(-1.0, joint.length + 1.0, 30).tolist():
        R = np.array(joint.transform(q).rotation)
        up = np.array(joint.up)
        assert abs(R[:, 1] @ up) < 1e-15
        assert R[:, 2] @ up > 0.0


def test_an_open_curve_goes_straight_on():
    joint = CURVES["hill"]
    end = joint.transform(joint.length)
    beyond = joint.transform(joint.length + 2.0)
    assert beyond.approx_equal(end @ Pose.translation(2.0, 0.0, 0.0), 1e-12)
    before = joint.transform(-3.0)
    start = joint.transform(0.0)
    assert before.approx_equal(start @ Pose.translation(-3.0, 0.0, 0.0), 1e-12)
    assert joint.period is None
    assert joint.origin_bound(0.0, math.inf) == math.inf
    # Slope and bend go on too: a straight begins where the bend is zero.
    for q in (0.0, joint.length):
        assert np.abs(joint.velocity(q, 1.0)[3:]).max() < 1e-12
        assert np.abs(joint.acceleration(q, 1.0, 0.0)[:3]).max() < 1e-6


def test_a_closed_curve_goes_round():
    for name in ("ring", "rolling ring"):
        joint = CURVES[name]
        assert joint.period == joint.length
        X, Y = joint.transform(-1e-7), joint.transform(joint.length - 1e-7)
        assert X.approx_equal(Y, 1e-9)
        assert joint.transform(0.0).approx_equal(joint.transform(-1e-9), 1e-8)


def test_many_points_on_a_circle_make_a_circle():
    angles = np.arange(32) * math.pi / 16
    points = np.stack([2 * np.cos(angles), 2 * np.sin(angles), 0 * angles], axis=1)
    curve = Curve(points=points, closed=True)
    circle = CircleTrack(radius=2.0)
    scale = circle.period / curve.period
    for q in np.linspace(0.0, circle.period, 50).tolist():
        expected = circle.transform(q) @ Pose.rotation_z(math.pi / 2)
        assert curve.transform(q / scale).approx_equal(expected, 1e-4)
    assert scale == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("name", ["ring", "hill"])
@pytest.mark.parametrize("shift", [(0.0, 0.0, 0.0), (0.5, -1.0, 2.0)])
def test_bounds_hold_and_are_tight(name: str, shift: tuple[float, float, float]):
    joint = CURVES[name].prepend(
        Pose.translation(*shift) @ Pose.rotation_about((1.0, 2.0, 3.0), 0.7)
    )
    random = np.random.default_rng(0)
    for low, high in np.sort(random.uniform(-9.0, 9.0, (20, 2)), axis=1).tolist():
        q = np.linspace(low, high, 2001)
        p = joint.motion.poses(q)[:, :, 3] @ np.array(joint.precursor.rotation).T
        found = np.linalg.norm(p + joint.precursor.position, axis=1).max()
        assert found <= joint.origin_bound(low, high) <= found * 1.00001


def test_rolling_frames_need_no_direction_up():
    """A loop-the-loop, which runs along every direction of its plane."""
    angle = np.linspace(0.0, 2.0 * math.pi, 17)
    loop = np.stack([np.sin(angle), 0.01 * angle, 1.0 - np.cos(angle)], axis=1)
    with pytest.raises(JointError, match=r"Curve\.up is \(1.0, 0.0, 0.0\)"):
        Curve(points=loop, up=(1.0, 0.0, 0.0))
    joint = Curve(points=loop, up=None)
    # At the top of the loop the frame is upside down.
    assert joint.transform(0.5 * joint.length).rotation[2][2] < -0.9


def test_a_curve_that_begins_upward_has_z_near_x():
    joint = Curve(points=[(0.0, 0.0, 0.0), (0.0, 0.0, 1.0)], up=None)
    assert joint.transform(0.0).rotate((0.0, 0.0, 1.0)) == pytest.approx((1, 0, 0))


def test_points_may_be_an_array_and_are_kept_as_numbers():
    joint = Curve(points=np.array(RING), closed=True)
    assert joint == CURVES["ring"]
    assert hash(joint) == hash(CURVES["ring"])
    assert joint.up == (0.0, 0.0, 1.0)
    assert Curve(points=HILL, up=(0, 0, 5)) == CURVES["hill"]


LINE = [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (2.0, 0.0, 0.0)]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"points": []}, "2 to 256 points, not 0"),
        ({"points": LINE[:1]}, "2 to 256 points, not 1"),
        ({"points": LINE[:2], "closed": True}, "3 to 256 points, not 2"),
        ({"points": [(k, 0, 0) for k in range(257)]}, "not 257"),
        ({"points": [(0.0, 0.0), (1.0, 0.0)]}, r"points\[0\] must be 3 values"),
        (
            {"points": [*HILL[:2], HILL[1], *HILL[2:]]},
            "Points 1 and 2 .* are 0 m apart",
        ),
        ({"points": [*RING, RING[0]], "closed": True}, "leave out the last point"),
        ({"points": [(0.0, 0.0, math.nan), *LINE]}, "finite"),
        ({"points": [(0.0, 0.0, 0.0)] * 3}, "different points"),
        ({"points": LINE, "up": (0.0, 0.0, 0.0)}, "no direction"),
        ({"points": LINE, "up": (1.0, 0.0, 0.0)}, "after point 0 .* runs along it"),
        ({"points": [*LINE, LINE[0]]}, "turns back on itself"),
        ({"points": LINE, "up": "z"}, r"Curve\.up must be 3 values"),
        ({"points": LINE, "closed": 1}, "True or False"),
    ],
)
def test_what_makes_no_curve_is_refused(parameters: dict[str, Any], message: str):
    with pytest.raises(JointError, match=message):
        Curve(**parameters)
