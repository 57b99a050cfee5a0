"""Wrenches that frames pass on, by the motion of what they carry."""

from __future__ import annotations

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError, UnknownName
from armillary.model.tree import Tree
from masses import heavy_cell, vectors

GRAVITY = np.array([0.0, 0.0, -9.81])


def held_wrench(
    cell: arm.Cell, frame: str, held: arm.SpatialInertia, *motion: np.ndarray
) -> np.ndarray:
    """Return the wrench on a body fixed to a frame, by kinematics of the frame.

    held: Its inertia about the frame's origin, in the frame's axes.
    """
    R = cell.fk(frame)(motion[0])[:3, :3]
    velocity = cell.velocity(frame)(*motion[:2])
    acceleration = cell.acceleration(frame)(*motion)
    w, wd = R.T @ velocity[3:], R.T @ acceleration[3:]
    c = np.array(held.centre())
    a = R.T @ (acceleration[:3] - GRAVITY)
    force = held.mass * (a + np.cross(wd, c) + np.cross(w, np.cross(w, c)))
    inertia = np.array(held.about_centre())
    spin = inertia @ wd + np.cross(w, inertia @ w)
    return np.r_[force, spin + np.cross(c, force)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["irb2400", "random", "ur5e_on_oval"])
def test_a_named_frame_holds_what_is_mounted_on_it(kind: str) -> None:
    cell = heavy_cell(kind)
    q, qd, qdd = vectors(cell, 1, 1)[:, 0]
    tip = {"random": "arm_tool4"}.get(kind, "tool0")
    held = arm.SpatialInertia.from_centre(
        1.7, (0.1, -0.2, 0.3), np.diag([0.02, 0.03, 0.025])
    )
    tool = arm.Manipulator(name="tool", links=[arm.Link(name="grip", inertia=held)])
    X = arm.Pose.from_rpy(0.4, 0.2, -1.0, (0.05, 0.1, 0.2))
    cell = cell.add(tool, on=tip, pose=X)
    about = held.transformed(X)
    found = cell.reaction(tip)(q, qd, qdd)
    expected = held_wrench(cell, tip, about, q, qd, qdd)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    R = cell.fk(tip)(q)[:3, :3]
    in_world = cell.reaction(tip, axes="world")(q, qd, qdd)
    turned = np.r_[R @ found[:3], R @ found[3:]]
    np.testing.assert_allclose(in_world, turned, rtol=1e-9, atol=1e-9)


def test_a_grip_is_weighed_and_compiles_nothing() -> None:
    cell = heavy_cell("random")
    q, qd, qdd = vectors(cell, 2, 1)[:, 0]
    tip = "arm/arm_tool5"
    part = next(m for m in cell.manipulators if m.name == "part").links[0]
    kernels = []
    for pose in (np.eye(4), arm.Pose.from_rpy(1, 2, 3, (0.3, 0.1, 0.2)).matrix()):
        state = cell.home.attach("part", to=tip, pose=np.array(pose))
        kernel = cell.reaction(tip, state=state)
        X = arm.Pose.from_matrix(np.array(pose))
        own = part.inertia.transformed(X @ cell.workcell.frame("part_body").pose)
        expected = held_wrench(cell, tip, own, q, qd, qdd)
        np.testing.assert_allclose(kernel(q, qd, qdd), expected, rtol=1e-9, atol=1e-9)
        kernels.append(kernel.kernel)
    assert kernels[0] is kernels[1]
    bare = cell.reaction(tip)(q, qd, qdd)
    np.testing.assert_array_equal(bare, np.zeros(6))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["irb2400", "ur5e_on_oval"])
def test_of_a_link_it_is_what_its_joint_transmits(kind: str) -> None:
    """Along the joint's twist it is the torque less the motor, friction and spring."""
    cell = heavy_cell(kind)
    q, qd, qdd = vectors(cell, 3)
    torque = cell.inverse_dynamics()(q, qd, qdd)
    tree = Tree.of(cell.workcell)
    for i, link in enumerate(tree.joint_links):
        name, dynamics = tree.name(link), tree.links[link].dynamics
        F = cell.reaction(name)(q, qd, qdd)
        J = cell.jacobian(name, axes=name)(q)[:, :, i]
        motion = np.stack([q[:, i], qd[:, i], qdd[:, i]], axis=1).tolist()
        own = [dynamics.effort(*row) for row in motion]
        found = (J * F).sum(axis=1) + own
        np.testing.assert_allclose(found, torque[:, i], atol=1e-9)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["irb2400", "random", "delta", "five_bar"])
def test_the_world_changes_the_momentum_of_everything(kind: str) -> None:
    """Its reaction is the rate of momentum, and the weight of all, also of the base."""
    cell = heavy_cell(kind)
    q, qd, qdd = vectors(cell, 4, 1)[:, 0]
    step = 1e-5

    def momentum(t: float) -> np.ndarray:
        return cell.momentum()(q + t * qd + 0.5 * t * t * qdd, qd + t * qdd)

    rate = (momentum(step) - momentum(-step)) / (2.0 * step)
    all_of_it = cell.carried("world", cell.home.replace(q=q))
    weight = all_of_it.mass * GRAVITY
    moment = np.cross(np.array(all_of_it.first_moment), GRAVITY)
    expected = rate - np.r_[weight, moment]
    found = cell.reaction("world")(q, qd, qdd)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_loops_around_a_frame_are_refused() -> None:
    cell = heavy_cell("delta")
    with pytest.raises(ModelError, match=r"wrench at 'delta/arm1' is unknown.*elbow1"):
        cell.reaction("arm1")
    base = cell.reaction("base")(cell.home.q, [0.0] * 3, [0.0] * 3)
    mass = sum(link.inertia.mass for link in cell.manipulators[0].links)
    np.testing.assert_allclose(base[:3], [0.0, 0.0, 9.81 * mass], atol=1e-9)
    at_flange = cell.reaction("flange")(cell.home.q, [0.0] * 3, [0.0] * 3)
    np.testing.assert_array_equal(at_flange, np.zeros(6))


def test_unknown_names_are_refused() -> None:
    cell = heavy_cell("scara")
    with pytest.raises(UnknownName, match="tcpp"):
        cell.reaction("tcpp")
    with pytest.raises(UnknownName, match="manipulator"):
        cell.reaction("tcp", free_bases=["sclara"])
