"""The delta robot and the palletiser of the examples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import armillary as arm
from published_scripts import EXAMPLES, component


def example(name: str) -> arm.Cell:
    robot = arm.scripted(EXAMPLES / f"{name}.py", component=component(name))
    assert robot.link("flange").joint.diagnostics == ()
    return arm.Cell(manipulators=[robot])


@pytest.fixture(name="delta", scope="module")
def delta_fixture() -> arm.Cell:
    return example("delta")


def test_a_delta_at_a_known_height(delta):
    X = arm.Pose.translation(0, 0, -0.918758037527338).matrix()
    found = delta.ik("flange")(X)
    assert_allclose(np.degrees(found.q[:3]), 10.00006103515628, atol=1e-9)
    assert_allclose(delta.fk("flange")(found.q), X, atol=1e-12)
    (top,) = delta.fk("flange")(np.zeros((1, 4)))[:, 2, 3]
    assert top == pytest.approx(-math.sqrt(0.975**2 - 0.68**2) - 0.14)


def test_a_delta_round_trips(delta):
    angles = np.radians(np.random.default_rng(0).uniform(-20, 60, (2000, 4)))
    X = delta.fk("flange")(angles)
    found = delta.ik("flange")(X)
    assert found.success.all()
    assert_allclose(found.q, angles, atol=1e-9)
    assert_allclose(delta.fk("flange")(found.q), X, atol=1e-9)


def test_a_delta_out_of_reach(delta):
    found = delta.ik("flange").all(arm.Pose.translation(0, 0, -3).matrix())
    assert (found.reason == arm.Reason.OUT_OF_REACH).all()
    folded = np.radians([[88, 88, -39, 0], [10, 10, 10, 0]])
    assert np.isfinite(delta.fk("flange")(folded)[1]).all()


def test_a_delta_has_an_exact_jacobian(delta):
    q, step = np.radians([10, 20, 30, 40]), 1e-6
    J = delta.jacobian("flange")(q)
    for k in range(4):
        ends = [delta.fk("flange")(q + s * step * np.eye(4)[k]) for s in (1, -1)]
        assert_allclose(J[:3, k], (ends[0] - ends[1])[:3, 3] / (2 * step), atol=1e-8)


def test_a_palletiser_keeps_its_flange_level():
    cell = example("palletiser")
    fk, ik = cell.fk("flange"), cell.ik("flange")
    assert_allclose(fk(np.zeros(4))[:3, 3], [1.940, 0, 1.8245], atol=1e-12)
    X = fk(np.radians([30, 20, 40, 50]))
    assert_allclose(X[:3, 3], [1.7856974, 1.0309729, 0.8795433], atol=1e-7)
    level = arm.Pose.rotation_z(math.radians(-20)) @ arm.Pose.rotation_y(math.pi)
    assert_allclose(X[:3, :3], level.matrix()[:3, :3], atol=1e-12)
    assert ik.closed.branches == (("UP",), ("DOWN",))
    low, high = np.radians([[-170, -30, 0, -170], [170, 60, 90, 170]])
    Q = np.random.default_rng(0).uniform(low, high, (2000, 4))
    poses = fk(Q)
    found = ik.all(poses)
    assert (found.success[:, 0] | (found.reason[:, 0] == arm.Reason.LIMITS)).all()
    near = ik(poses, near=Q)
    assert near.success.mean() > 0.99
    assert_allclose(fk(near.q[near.success]), poses[near.success], atol=1e-9)
