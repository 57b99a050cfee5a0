"""Dynamics of joints: their efforts, their checks, their scale, where they may be."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError
from armillary.model.joint_dynamics import NO_DYNAMICS, JointDynamics
from armillary.trace.program import evaluate, trace

FULL = JointDynamics(
    motor_inertia=2e-4,
    gear_ratio=-100.0,
    damping=0.5,
    friction=3.0,
    stiffness=7.0,
    rest=0.25,
)
SPRING = JointDynamics(stiffness=7.0, rest=0.25)
STATES = np.random.default_rng(0).normal(size=(50, 3)).tolist()


def test_by_default_there_is_no_effort():
    assert JointDynamics() == NO_DYNAMICS == arm.Link(name="a").dynamics
    assert all(NO_DYNAMICS.effort(*state) == 0.0 for state in STATES)


def test_armature_is_the_inertia_behind_the_gear():
    assert FULL.armature == pytest.approx(2.0)
    assert JointDynamics(motor_inertia=0.3).armature == 0.3
    # The kinetic energy of the rotor is that of the armature.
    qd = 0.7
    energy = 0.5 * FULL.motor_inertia * (FULL.gear_ratio * qd) ** 2
    assert 0.5 * FULL.armature * qd**2 == pytest.approx(energy)


@pytest.mark.parametrize("state", STATES[:10])
def test_effort_is_that_of_motor_friction_and_spring(state: list[float]):
    q, qd, qdd = state
    expected = 2.0 * qdd + 0.5 * qd + math.copysign(3.0, qd) + 7.0 * (q - 0.25)
    assert FULL.effort(q, qd, qdd) == pytest.approx(expected)


def test_friction_takes_energy_and_is_zero_at_rest():
    rubbing = JointDynamics(damping=0.5, friction=3.0)
    assert rubbing.effort(1.0, 0.0, 0.0) == 0.0
    assert all(rubbing.effort(q, qd, 0.0) * qd > 0.0 for q, qd, _ in STATES)


def test_springs_return_what_they_take():
    q = np.linspace(0.25, 1.25, 10_001)
    efforts = [SPRING.effort(each, 1.0, 0.0) for each in q.tolist()]
    assert np.trapezoid(efforts, q) == pytest.approx(0.5 * 7.0)


def test_traced_efforts_are_those_of_floats():
    program = trace(FULL.effort, q=(), qd=(), qdd=())
    for state in STATES:
        (found,) = evaluate(program, state)
        assert found == pytest.approx(FULL.effort(*state))


@pytest.mark.parametrize("name", ["motor_inertia", "damping", "friction", "stiffness"])
def test_what_takes_or_stores_energy_is_not_negative(name: str):
    assert getattr(JointDynamics(**{name: 0}), name) == 0.0
    message = rf"'{name}' of a joint is -1e-09; it cannot be < 0"
    with pytest.raises(ModelError, match=message):
        JointDynamics(**{name: -1e-9})


@pytest.mark.parametrize("name", JointDynamics.__struct_fields__)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_are_finite(name: str, value: float):
    message = rf"'{name}' of a joint is {value}; it must be finite"
    with pytest.raises(ModelError, match=message):
        JointDynamics(**{name: value})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"damping": "a"}, r"'damping' of a joint is 'a'; it takes a number"),
        ({"rest": None}, r"'rest' of a joint is None; it takes a number"),
        ({"friction": 10**400}, r"'friction' of a joint is 10+; it takes a number"),
        ({"gear_ratio": 0}, r"'gear_ratio' of a joint is 0; .* 1 for a direct drive"),
        (
            {"motor_inertia": 1e200, "gear_ratio": 1e100},
            r"'motor_inertia' 1e\+200 times the square of 'gear_ratio' 1e\+100 is too",
        ),
    ],
)
def test_impossible_numbers_are_refused(fields: dict[str, Any], message: str):
    with pytest.raises(ModelError, match=message):
        JointDynamics(**fields)


def test_numbers_are_stored_as_floats():
    stored = JointDynamics(damping=np.float32(0.5), stiffness=2)
    assert [type(each) for each in msgspec.structs.astuple(stored)] == [float] * 6
    assert stored == JointDynamics(damping=0.5, stiffness=2.0)


def moving(joint: arm.Joint, dynamics: JointDynamics = FULL) -> arm.Link:
    return arm.Link(name="tip", parent="base", joint=joint, dynamics=dynamics)


def test_scaled_joints_keep_motor_and_efforts():
    turning = moving(arm.joints.Revolute())
    assert turning.scaled(2.0).dynamics == FULL
    slid = moving(arm.joints.Prismatic()).scaled(2.0).dynamics
    assert slid.armature == FULL.armature
    for q, qd, _ in STATES:
        expected = FULL.effort(q, qd, 0.0)
        assert slid.effort(2.0 * q, 2.0 * qd, 0.0) == pytest.approx(expected)


def test_dynamics_of_links_are_compared():
    link, other = moving(arm.joints.Revolute()), arm.JointDynamics(damping=0.1)
    near = msgspec.structs.replace(FULL, damping=0.5 + 1e-9)
    assert link.approx_equal(link.replace(dynamics=near), 1e-8)
    assert not link.approx_equal(link.replace(dynamics=near), 1e-10)
    assert link != link.replace(dynamics=other)
    with pytest.raises(ModelError, match=r"The dynamics of joint 'tip' are 0\.5"):
        link.replace(dynamics=0.5)


class Half(arm.Mechanism):
    """Turns half as far as another joint."""

    units = (arm.RADIAN,)

    def forward(self, q):
        return arm.Pose.rotation_z(0.5 * q)


def test_dynamics_need_a_coordinate():
    base = arm.Link(name="base")
    motor = arm.Link(name="motor", parent="base", joint=arm.joints.Revolute())
    fixed = moving(arm.joints.Fixed())
    half = moving(Half()).replace(inputs=["motor"])
    for link, why in ((fixed, "is fixed"), (half, "is a mechanism")):
        message = rf"\[dynamics-fixed\] Joint 'tip' {why}, so it has no coordinate"
        with pytest.raises(ModelError, match=message):
            arm.Manipulator(name="m", links=[base, motor, link])
        bare = link.replace(dynamics=NO_DYNAMICS)
        arm.Manipulator(name="m", links=[base, motor, bare])
    follower = moving(arm.joints.Revolute()).replace(coupling=arm.Coupling(of="motor"))
    arm.Manipulator(name="m", links=[base, motor, follower])
