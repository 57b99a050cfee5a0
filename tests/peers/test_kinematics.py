"""Compiled forward kinematics and Jacobians against Pinocchio."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import armillary as arm
from peer_robots import as_pinocchio, robot_file

pytestmark = pytest.mark.peers

ROBOTS = {
    "panda_description/urdf/panda.urdf": "panda_hand",
    "ur_description/urdf/ur5_robot.urdf": "tool0",
    "talos_data/robots/talos_reduced.urdf": "gripper_left_base_link",
    "allegro_hand_description/urdf/allegro_left_hand.urdf": "link_15.0_tip",
}
STATES = 20


@pytest.fixture(params=sorted(ROBOTS))
def pair(request: Any, caplog: Any) -> tuple[arm.Cell, Any, Any, str]:
    """Return a robot here and there, and the frame that is asked for."""
    pin = pytest.importorskip("pinocchio")
    caplog.set_level(logging.ERROR, logger="armillary")
    path = robot_file(request.param)
    model = pin.buildModelFromUrdf(str(path))
    return arm.load(path), pin, model, ROBOTS[request.param]


def test_all_poses_and_the_jacobian_agree(pair: Any) -> None:
    cell, pin, model, tip = pair
    data = model.createData()
    links = [f.name for f in model.frames if f.type == pin.FrameType.BODY]
    ids = [model.getFrameId(name, pin.FrameType.BODY) for name in links]
    Q = np.random.default_rng(0).uniform(-2.0, 2.0, (STATES, len(cell.joint_names)))
    poses, jacobians = cell.fk(links)(Q), cell.jacobian(tip)(Q)
    tip_id = model.getFrameId(tip)
    axes = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    for q, X, J in zip(Q, poses, jacobians, strict=True):
        q_pin, rates = as_pinocchio(cell, model, q)
        pin.framesForwardKinematics(model, data, q_pin)
        expected = np.array([data.oMf[k].homogeneous for k in ids])
        np.testing.assert_allclose(X, expected, rtol=1e-9, atol=1e-9)
        theirs = pin.computeFrameJacobian(model, data, q_pin, tip_id, axes) @ rates
        np.testing.assert_allclose(J, theirs, rtol=1e-9, atol=1e-9)


def test_accelerations_agree(pair: Any) -> None:
    cell, pin, model, tip = pair
    data = model.createData()
    random = np.random.default_rng(1)
    q, qd, qdd = random.uniform(-1.0, 1.0, (3, len(cell.joint_names)))
    q_pin, rates = as_pinocchio(cell, model, q)
    pin.forwardKinematics(model, data, q_pin, rates @ qd, rates @ qdd)
    axes = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    expected = pin.getFrameClassicalAcceleration(
        model, data, model.getFrameId(tip), axes
    )
    found = cell.acceleration(tip)(q, qd, qdd)
    np.testing.assert_allclose(found, expected.vector, rtol=1e-9, atol=1e-9)


def test_inverse_kinematics_reaches_what_pinocchio_places(caplog: Any) -> None:
    pin = pytest.importorskip("pinocchio")
    path = robot_file("ur_description/urdf/ur5_robot.urdf")
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    targets = []
    for q in np.random.default_rng(2).uniform(-3.0, 3.0, (200, model.nq)):
        pin.forwardKinematics(model, data, q)
        frame = model.getFrameId("tool0")
        targets.append(pin.updateFramePlacement(model, data, frame).homogeneous)
    caplog.set_level(logging.ERROR, logger="armillary")
    answer = arm.load(path).ik("tool0")(np.array(targets))
    assert answer.success.all()
    for q, target in zip(answer.q, targets, strict=True):
        pin.forwardKinematics(model, data, q)
        found = pin.updateFramePlacement(model, data, frame).homogeneous
        np.testing.assert_allclose(found, target, atol=5e-6)


def test_twists_and_inertia_in_a_state_agree(pair: Any) -> None:
    cell, pin, model, tip = pair
    data = model.createData()
    random = np.random.default_rng(1)
    for _ in range(3):
        q, qd = random.uniform(-2.0, 2.0, (2, len(cell.joint_names)))
        state = cell.home.replace(q=q, qd=qd)
        q_pin, rates = as_pinocchio(cell, model, q)
        pin.forwardKinematics(model, data, q_pin, rates @ qd)
        pin.updateFramePlacements(model, data)
        frame = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        V = pin.getFrameVelocity(model, data, model.getFrameId(tip), frame).vector
        np.testing.assert_allclose(cell.twist(tip, state), V, atol=1e-12)
        total = pin.Inertia.Zero()
        for place, inertia in zip(data.oMi, model.inertias, strict=True):
            total += place.act(inertia)
        carried = cell.carried("world", state)
        np.testing.assert_allclose(carried.mass, total.mass, rtol=1e-12)
        if total.mass > 0.0:
            np.testing.assert_allclose(carried.centre(), total.lever, atol=1e-12)
            about = carried.about_centre()
            np.testing.assert_allclose(about, total.inertia, atol=1e-10)


def test_a_device_has_the_columns_of_its_joints(pair: Any) -> None:
    cell, pin, model, tip = pair
    data = model.createData()
    q = np.random.default_rng(2).uniform(-2.0, 2.0, len(cell.joint_names))
    device = cell.device(ends=tip, state=cell.home.replace(q=q))
    q_pin, rates = as_pinocchio(cell, model, q)
    frame = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    tip_id = model.getFrameId(tip)
    J = pin.computeFrameJacobian(model, data, q_pin, tip_id, frame) @ rates
    J_device = device.jacobian(relative_to="world")(q[list(device.joints)])
    np.testing.assert_allclose(J_device, J[:, list(device.joints)], atol=1e-12)
    others = np.delete(J, device.joints, axis=1)
    np.testing.assert_allclose(others, 0.0, atol=1e-12)  # the tip needs no more
