"""Motions: traced once, evaluated one by one and many at a time."""

from __future__ import annotations

import numpy as np
import pytest

from armillary.errors import JointError
from armillary.model.joint import Joint
from armillary.model.joints import (
    CircleTrack,
    CraigRevolute,
    OvalTrack,
    PaulRevolute,
    Prismatic,
    Revolute,
    Screw,
)
from armillary.model.unit import Unit
from armillary.spatial.pose import Pose
from armillary.trace import Program, trace
from programs import verify

# How much machine code a joint's pose costs: a joint that grows must be looked at.
OPERATIONS = {
    "revolute about z": (Revolute(), 3),
    "revolute about any axis": (Revolute(axis=(1.0, 2.0, 3.0)), 21),
    "prismatic along z": (Prismatic(), 0),
    "prismatic along any axis": (Prismatic(axis=(1.0, 2.0, 3.0)), 3),
    "screw": (Screw(pitch=0.1), 4),
    "Paul": (PaulRevolute(theta=0.1, d=0.2, a=0.3, alpha=0.4), 9),
    "Craig": (CraigRevolute(theta=0.1, d=0.2, a=0.3, alpha=0.4), 8),
    "Craig, right angle": (CraigRevolute(a=0.3, alpha=np.pi / 2), 3),
    "circle": (CircleTrack(radius=2.0), 6),
    "oval": (OvalTrack(straight=2.0, radius=0.5), 24),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_poses_cost_few_operations(name: str):
    joint, count = OPERATIONS[name]
    assert joint.motion.program.operation_count <= count


def test_the_oval_takes_one_sine_and_one_cosine():
    program = OvalTrack(straight=2.0, radius=0.5).motion.program
    names = [step.name for step in program.instructions]
    assert (names.count("sin"), names.count("cos")) == (1, 1)


@pytest.mark.parametrize("name", OPERATIONS)
def test_programs_are_legal(name: str):
    motion = OPERATIONS[name][0].motion
    subspace = trace(motion.subspace, q=())
    programs: list[Program] = [motion.program, subspace]
    for program in programs:
        verify(program)
        assert [port.name for port in program.inputs] == ["q"]


@pytest.mark.parametrize("name", OPERATIONS)
def test_many_poses_are_those_of_each(name: str):
    motion = OPERATIONS[name][0].motion
    q = np.random.default_rng(0).uniform(-20.0, 20.0, 50)
    poses = motion.poses(q)
    assert poses.shape == (50, 3, 4)
    for k, each in enumerate(q):
        expected = motion.pose(float(each)).matrix()[:3]
        assert poses[k] == pytest.approx(expected, abs=1e-14)


def test_a_closed_form_is_asked_on_traced_scalars_alone():
    class Inverse(Joint):
        unit = Unit.METRE

        def pose(self, q):
            return Pose.translation(1.0 / q, 0.0, 0.0)

        def subspace(self, q):
            return (-1.0 / q**2, 0.0, 0.0, 0.0, 0.0, 0.0)

    assert Inverse().motion.subspace(2.0)[0] == -0.25
    assert Inverse().motion.subspace_rate(2.0)[0] == 0.25


@pytest.mark.parametrize("form", [list, tuple, np.array, lambda v: np.array(v, object)])
def test_closed_forms_may_be_any_six_numbers(form):
    class Slide(Joint):
        def pose(self, q):
            return Pose.translation(q, 0.0, 0.0)

        def subspace(self, q):
            return form([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])

    assert Slide().motion.subspace(0.0) == (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("given", [(1.0, 2.0), 3.0, "abcdef", [[1.0] * 6]])
def test_closed_forms_of_another_shape_are_refused(given: object):
    class Slide(Joint):
        def pose(self, q):
            return Pose.translation(q, 0.0, 0.0)

        def subspace(self, q):
            return given

    with pytest.raises(JointError, match=r"Slide\.subspace cannot be traced"):
        Slide().velocity(0.0, 1.0)


def test_a_closed_form_may_be_missing_for_some_parameters():
    class Slide(Joint):
        fast: bool = False

        def pose(self, q):
            return Pose.translation(2.0 * q, 0.0, 0.0)

        def subspace(self, q):
            return (2.0, 0.0, 0.0, 0.0, 0.0, 0.0) if self.fast else None

    assert Slide(fast=True).motion.subspace(0.3) == Slide().motion.subspace(0.3)
