"""A joint's step of the articulated body algorithm, against whole cells."""

from __future__ import annotations

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ShapeError
from armillary.testing import random_joint
from masses import accelerations_by_steps, with_inertias

PARENTS = ("base", "a", "b", "b", "d")
NAMES = ("a", "b", "c", "d", "e")


@pytest.fixture(scope="module")
def cell() -> arm.Cell:
    """A tree of curved joints with motors."""
    rng = np.random.default_rng(3)
    kinds = ("Screw", "CircleTrack", "PaulRevolute", "OvalTrack", "Revolute")
    links = [arm.Link(name="base")]
    for name, parent, kind in zip(NAMES, PARENTS, kinds, strict=True):
        motor = arm.JointDynamics(motor_inertia=rng.uniform(0.01, 0.1), gear_ratio=3.0)
        joint = random_joint(rng, kind)
        links.append(arm.Link(name=name, parent=parent, joint=joint, dynamics=motor))
    return with_inertias(
        arm.Cell(manipulators=[arm.Manipulator(name="m", links=links)]), 4
    )


def test_steps_of_joints_are_forward_dynamics(cell: arm.Cell):
    """Bias forces, torques, velocities and motors included."""
    rows = np.random.default_rng(5).uniform(-1.5, 1.5, (6, 3, len(NAMES)))
    wanted = cell.forward_dynamics()(*rows.transpose(1, 0, 2))
    for (q, qd, torques), accelerations in zip(rows, wanted, strict=True):
        found = accelerations_by_steps(cell, q, qd, torques)
        np.testing.assert_allclose(found, accelerations, rtol=1e-9, atol=1e-9)


def test_a_slider_passes_its_torque_and_a_fixed_joint_all():
    inertia = np.diag([4.0, 4.0, 4.0, 1.0, 2.0, 3.0])
    slider = arm.joints.Prismatic(axis=(1.0, 0.0, 0.0))
    step = slider.articulated_step(0.0, inertia, torque=6.0, armature=2.0)
    # The motor holds 2 of the 6 kg that accelerate along x.
    assert step.inertia[0, 0] == pytest.approx(4.0 - 16.0 / 6.0)
    assert step.bias == pytest.approx([4.0, 0, 0, 0, 0, 0])
    qdd, outer = step.acceleration([0.5, 0, 9.81, 0, 0, 0])
    assert qdd == pytest.approx((6.0 - 4.0 * 0.5) / 6.0)
    assert outer == pytest.approx([0.5 + qdd, 0, 9.81, 0, 0, 0])
    pushed = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    fixed = arm.joints.Fixed().articulated_step(0.0, inertia, bias=pushed)
    assert fixed.bias == pytest.approx(pushed)
    assert fixed.inertia == pytest.approx(inertia)
    assert fixed.acceleration(np.ones(6))[0] == 0.0


def test_the_bias_of_a_body_that_turns_alone():
    """A mass at a radius pulls outwards on the axis; by default it turns alone."""
    joint = arm.joints.Revolute(axis=(0.0, 0.0, 1.0))
    inertia = arm.SpatialInertia.from_centre(2.0, (0.5, 0.0, 0.0), np.eye(3))
    step = joint.articulated_step(0.0, inertia, qd=3.0)
    assert step.bias == pytest.approx([-2.0 * 0.5 * 9.0, 0, 0, 0, 0, 0])


def test_other_shapes_are_refused():
    joint = arm.joints.Revolute(axis=(0.0, 0.0, 1.0))
    for options in ({"bias": [1.0]}, {"twist": [1.0, 2.0]}):
        with pytest.raises(ShapeError):
            joint.articulated_step(0.0, np.eye(6), **options)
    with pytest.raises(ShapeError, match="acceleration"):
        joint.articulated_step(0.0, np.eye(6)).acceleration([1.0, 2.0])
