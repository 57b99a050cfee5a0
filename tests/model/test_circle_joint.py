"""The circle joint of Actin's tutorial: where its own code breaks its own contract.

The tutorial states a joint's contract: velocity and acceleration of the outer frame
relative to the inner one, represented in the current (outer) frame; near equality of
all parameters; an upper bound of the distance between the frames over the range of the
joint. Then it writes a joint by hand. What it wrote is repeated here in our own words,
and held against the pose, which is the same in both, and against ours.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from armillary.errors import JointError
from armillary.spatial.pose import Pose
from armillary.testing import check_joint, random_pose
from armillary.testing.differences import first_difference, second_difference

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "circle_joint.py"
RADIUS, Q, QD, QDD = 2.0, 0.7, 1.3, 0.5


def example() -> ModuleType:
    """The example as a module: it runs, with its own check at the end."""
    spec = importlib.util.spec_from_file_location("circle_joint", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["circle_joint"] = module  # where pickle looks
    spec.loader.exec_module(module)
    return module


CircleJoint = example().CircleJoint
JOINT = CircleJoint(radius=RADIUS)


# What the tutorial computes.


def tutorial_velocity(radius: float, q: float, qd: float) -> np.ndarray:
    """The derivative of the position in the circle's plane, and the turning rate."""
    heading = np.array([-math.sin(q / radius), math.cos(q / radius), 0.0])
    return np.array([*(qd * heading), 0.0, 0.0, qd / radius])


def tutorial_acceleration(radius: float, q: float, qd: float, qdd: float) -> np.ndarray:
    """Along the circle and to its centre, in the plane of the circle."""
    c, s = math.cos(q / radius), math.sin(q / radius)
    along, outward = np.array([-s, c, 0.0]), np.array([c, s, 0.0])
    linear = qdd * along - qd**2 / radius * outward
    return np.array([*linear, 0.0, 0.0, qdd / radius])


def tutorial_nearly_equal(a: object, b: object, tolerance: float) -> bool:
    """Whether the radii are near is computed, and not returned; precursors are not."""
    _ = abs(a.radius - b.radius) < abs(tolerance)
    return True


def tutorial_bound(joint: object, lower: float, upper: float) -> float:
    """The larger of the distances at the two limits."""
    return max(math.hypot(*joint.transform(q).position) for q in (lower, upper))


# What the pose says, by differences alone.


def numeric(joint: object, q: float, qd: float, qdd: float) -> tuple:
    """Velocity and acceleration of the outer frame, in its own axes."""

    def placed(t: np.ndarray) -> np.ndarray:
        at = q + qd * t + 0.5 * qdd * t**2
        return np.array([joint.transform(float(each)).matrix() for each in at])

    now, step = np.zeros(1), np.full(1, 1e-4)
    R = placed(now)[0, :3, :3]
    found = []
    for difference in (first_difference, second_difference):
        dX = difference(placed, now, step)[0]
        turn = dX[:3, :3] @ R.T
        spin = 0.5 * np.array(
            [turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]
        )
        found.append(np.concatenate([R.T @ dX[:3, 3], R.T @ spin]))
    return tuple(found)


def test_the_poses_are_those_of_the_tutorial():
    assert JOINT.transform(0.0) == Pose.translation(2.0, 0.0, 0.0)
    angle = Q / RADIUS
    X = JOINT.transform(Q)
    assert X.position == pytest.approx(
        (RADIUS * math.cos(angle), RADIUS * math.sin(angle), 0.0)
    )
    assert X.approx_equal(
        Pose(Pose.rotation_z(angle).rotation, X.position), 1e-15
    )  # fmt: skip
    quarter = JOINT.transform(math.pi)
    assert quarter.position == pytest.approx((0.0, 2.0, 0.0), abs=1e-15)
    assert quarter.rotate((1.0, 0.0, 0.0)) == pytest.approx((0.0, 1.0, 0.0), abs=1e-15)


def test_x_points_outward_whatever_the_text_says():
    """The text says that x points to the centre; its code has it the other way."""
    X = JOINT.transform(Q)
    assert X.rotate((1.0, 0.0, 0.0)) == pytest.approx(np.array(X.position) / RADIUS)


def test_velocity():
    ours, theirs = JOINT.velocity(Q, QD), tutorial_velocity(RADIUS, Q, QD)
    assert ours == pytest.approx([0.0, 1.3, 0.0, 0.0, 0.0, 0.65], abs=1e-15)
    assert theirs == pytest.approx([-0.44577, 1.22118, 0.0, 0.0, 0.0, 0.65], abs=5e-6)
    truth, _ = numeric(JOINT, Q, QD, QDD)
    assert ours == pytest.approx(truth, abs=1e-7)
    assert np.abs(theirs - truth).max() > 0.4
    # Theirs is written in the inner frame where nothing is in front of the circle,
    R = np.array(JOINT.transform(Q).rotation)
    assert theirs[:3] == pytest.approx(R @ ours[:3])
    # and in no frame of the contract where something is.
    upright = JOINT.prepend(Pose.rotation_x(math.pi / 2))
    R = np.array(upright.transform(Q).rotation)
    truth, _ = numeric(upright, Q, QD, QDD)
    assert upright.velocity(Q, QD) == pytest.approx(truth, abs=1e-7)
    assert np.abs(theirs[:3] - truth[:3]).max() > 0.4
    assert np.abs(theirs[:3] - R @ truth[:3]).max() > 0.4


def test_acceleration():
    ours = JOINT.acceleration(Q, QD, QDD)
    theirs = tutorial_acceleration(RADIUS, Q, QD, QDD)
    pull = QD**2 / RADIUS
    assert ours == pytest.approx([-pull, QDD, 0.0, 0.0, 0.0, QDD / RADIUS], abs=1e-15)
    _, truth = numeric(JOINT, Q, QD, QDD)
    assert ours == pytest.approx(truth, abs=1e-6)
    assert np.abs(theirs - truth).max() > 0.2
    R = np.array(JOINT.transform(Q).rotation)
    assert theirs[:3] == pytest.approx(R @ ours[:3])
    # The derivative of the components in the moving frame misses that pull.
    naive = (JOINT.velocity(Q + 1e-6, QD) - JOINT.velocity(Q - 1e-6, QD)) / 2e-6 * QD
    assert naive == pytest.approx(np.zeros(6), abs=1e-9)
    assert JOINT.acceleration(Q, QD, 0.0)[0] == pytest.approx(-0.845)


def test_near_equality():
    other, moved = CircleJoint(radius=200.0), JOINT.prepend(Pose.translation(5, 0, 0))
    for far in (other, moved):
        assert tutorial_nearly_equal(JOINT, far, 1e-9)
        assert not JOINT.approx_equal(far, 1.0)
    assert JOINT.approx_equal(CircleJoint(radius=2.5), 0.5)  # <=, not <
    assert not JOINT.approx_equal(CircleJoint(radius=2.5), -1.0)  # no |tolerance|


def test_bound():
    joint = JOINT.prepend(Pose.translation(2.0, 0.0, 0.0))
    theirs, ours = tutorial_bound(joint, -2.0, 2.5), joint.origin_bound(-2.0, 2.5)
    between = math.hypot(*joint.transform(0.0).position)
    assert between == 4.0
    assert theirs < 3.6  # a bound that is exceeded
    assert ours == pytest.approx(4.0, rel=1e-9)
    assert ours >= between
    assert joint.origin_bound(-math.inf, math.inf) == pytest.approx(4.0, rel=1e-9)
    with pytest.raises(JointError, match=r"bound: .* m apart"):
        check_joint(bounded_as_in_the_tutorial(joint), lower=-2.0, upper=2.5)


def bounded_as_in_the_tutorial(joint: object) -> object:
    class Bounded(CircleJoint):
        origin_bound = tutorial_bound

    return Bounded(radius=joint.radius, precursor=joint.precursor)


def test_a_quarter_turn_about_x_makes_it_turn_about_minus_y():
    upright = JOINT.prepend(Pose.rotation_x(math.pi / 2))
    axis_in_outer = upright.velocity(Q, 1.0)[3:]
    axis = upright.transform(Q).rotate(axis_in_outer)
    assert np.array(axis) * RADIUS == pytest.approx([0.0, -1.0, 0.0], abs=1e-15)


def test_in_front_and_behind_are_two_operations():
    random = np.random.default_rng(0)
    P, X = random_pose(random), random_pose(random)
    joint = JOINT.prepend(P)
    assert joint.prepend(X).precursor == X @ P
    assert joint.offset_inboard(X).precursor == P @ X


def test_scaling_takes_the_coordinate_along():
    scaled = JOINT.prepend(Pose.translation(1.0, 0.0, 0.0)).scaled(3.0)
    assert scaled == CircleJoint(
        radius=6.0, precursor=Pose.translation(3.0, 0.0, 0.0)
    )  # fmt: skip
    assert JOINT.unit.scales_with_length


@pytest.mark.parametrize("radius", [1e-2, 2.0, 200.0])
def test_it_keeps_the_contract(radius: float):
    joint = CircleJoint(radius=radius)
    check_joint(joint)
    check_joint(joint.prepend(random_pose(np.random.default_rng(1))))
