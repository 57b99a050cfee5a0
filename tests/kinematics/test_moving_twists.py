"""Twists of links that joints move, compared with `Cell.jacobian`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import compile_pipeline
from armillary.kinematics import moving_twists
from armillary.kinematics.moving_links import POSES, MovingLinks
from armillary.kinematics.moving_twists import TWISTS, MovingTwists
from armillary.kinematics.state import bound_state
from armillary.trace import Port


@pytest.mark.parametrize("is_looped", [False, True])
@pytest.mark.parametrize("joints", [(0, 1, 2, 3), (1, 3)])
def test_twists_are_columns_of_jacobians(
    joints: tuple[int, ...], is_looped: bool, monkeypatch: pytest.MonkeyPatch
):
    """Also of links that another one carries; rates of other joints are summed."""
    if is_looped:
        monkeypatch.setattr(moving_twists, "MOST_STRAIGHT_TWISTS", 0)

    def two_links(name: str) -> arm.Manipulator:
        hinge = arm.joints.Revolute(
            axis=(0, 0.6, 0.8), precursor=arm.Pose.translation(0.3, 0.1, 0.2)
        )
        upper = arm.Link(name="upper", parent="base", joint=hinge)
        fore = arm.Link(name="fore", parent="upper", joint=hinge)
        return arm.Manipulator(name=name, links=[arm.Link(name="base"), upper, fore])

    cell = arm.Cell(manipulators=[two_links("a"), two_links("b")])
    state = cell.home.attach("b", "a/fore", pose=arm.Pose.translation(0.0, 0.4, 0.1))
    rng = np.random.default_rng(0)
    Q, rates = rng.uniform(-2, 2, (2, 3, 4))
    twists = MovingTwists(MovingLinks(cell.workcell), joints)
    inputs = Port("q", (4,)), Port("qd", (4,))
    assert twists.is_straight == (not is_looped)
    stages = twists.tables, twists.stages, (POSES, TWISTS), twists.scratch
    pipeline = Pipeline("twists", inputs, *stages)
    bound = bound_state(cell.workcell, state)
    X, V = compile_pipeline(pipeline)(twists.records(bound))(Q, rates)
    names = ["a/upper", "a/fore", "b/upper", "b/fore"]
    fk, jacobian = cell.fk(names, state=state), cell.jacobian(names, state=state)
    np.testing.assert_allclose(X[:, 1:], fk(Q)[..., :3, :], atol=1e-12)
    J, count = jacobian(Q), len(joints)
    np.testing.assert_allclose(V[:, 1:, :, :count], J[..., joints], atol=1e-12)
    if twists.others:
        rest = np.einsum("nlij,nj->nli", J[..., twists.others], rates[:, twists.others])
        np.testing.assert_allclose(V[:, 1:, :, count], rest, atol=1e-12)
    assert not V[:, 0].any()


class Gear(arm.Mechanism, frozen=True):
    """Tilt about y by one joint, and roll about z by two."""

    units = (arm.RADIAN, arm.RADIAN)

    def forward(self, q: Any) -> arm.Pose:
        """Return the pose at two coordinates [rad]."""
        return arm.Pose.rotation_y(q[0]) @ arm.Pose.rotation_z(q[0] - 2.0 * q[1])


@pytest.mark.parametrize("has_others", [False, True])
def test_loops_over_twists_follow_trees_couplings_and_several_coordinates(
    has_others: bool, monkeypatch: pytest.MonkeyPatch
):
    """One joint turns two links, another has two coordinates; links branch."""
    monkeypatch.setattr(moving_twists, "MOST_STRAIGHT_TWISTS", 0)
    rng = np.random.default_rng(1)

    def pose() -> arm.Pose:
        return arm.Pose.translation(*rng.uniform(-0.3, 0.3, 3))

    def hinge() -> arm.Joint:
        axis = rng.normal(size=3)
        unit = tuple((axis / np.linalg.norm(axis)).tolist())
        return arm.joints.Revolute(axis=unit, precursor=pose())

    follows = arm.Coupling(of="one", multiplier=-0.5, offset=0.2)
    links = [
        arm.Link(name="base"),
        arm.Link(name="one", parent="base", joint=hinge()),
        arm.Link(name="branch", parent="one", joint=hinge()),
        arm.Link(
            name="both",
            parent="one",
            joint=Gear(precursor=pose()),
            inputs=("one", "branch"),
        ),
        arm.Link(name="tip", parent="both", joint=hinge(), coupling=follows),
    ]
    cell = arm.Cell(manipulators=[arm.Manipulator(name="a", links=links)])
    n = len(cell.joint_names)
    joints = tuple(range(1, n)) if has_others else tuple(range(n))
    twists = MovingTwists(MovingLinks(cell.workcell), joints)
    inputs = Port("q", (n,)), Port("qd", (n,))
    stages = twists.tables, twists.stages, (TWISTS,), twists.scratch
    kernel = compile_pipeline(Pipeline("twists", inputs, *stages))
    Q, rates = rng.uniform(-1, 1, (2, 5, n))
    V = kernel(twists.records(bound_state(cell.workcell, cell.home)))(Q, rates)
    J = cell.jacobian(["one", "branch", "both", "tip"])(Q)
    np.testing.assert_allclose(V[:, 1:, :, : len(joints)], J[..., joints], atol=1e-12)
    if has_others:
        rest = J[..., 0] * rates[:, None, None, 0]
        np.testing.assert_allclose(V[:, 1:, :, -1], rest, atol=1e-12)
    assert np.abs(J[:, 3, :, 0]).max() > 0.1
