"""Inverse dynamics, mass matrices and forward dynamics against Pinocchio."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.spatial.pose import Pose
from masses import accelerations_by_steps
from peer_robots import (
    as_pinocchio,
    robot_file,
    robot_pair,
    symmetric,
    without_joint_dynamics,
)

# One draw for all tests: those of a robot share kernels.
pytestmark = [pytest.mark.peers, pytest.mark.sampled(2)]

ROBOTS = (
    "panda_description/urdf/panda.urdf",
    "ur_description/urdf/ur5_robot.urdf",
    "talos_data/robots/talos_reduced.urdf",
    "tiago_description/robots/tiago_no_hand.urdf",
    "allegro_hand_description/urdf/allegro_left_hand.urdf",
    "laikago_description/urdf/laikago.urdf",
)
STATES = 20


@pytest.fixture(params=ROBOTS)
def pair(request: Any, caplog: Any) -> tuple[arm.Cell, Any, Any]:
    """Return a robot here and there."""
    return robot_pair(request.param, caplog)


def relative(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return the largest difference by the largest entry."""
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def test_torques_and_masses_are_those_of_pinocchio(
    pair: tuple[arm.Cell, Any, Any],
) -> None:
    cell, pin, model = pair
    data = model.createData()
    n = len(cell.joint_names)
    Q, V, A = np.random.default_rng(0).uniform(-2.0, 2.0, (3, STATES, n))
    torques = cell.inverse_dynamics()(Q, V, A)
    masses = cell.mass_matrix()(Q)
    found = cell.forward_dynamics()(Q, V, torques)
    np.testing.assert_allclose(found, A, rtol=1e-8, atol=1e-9)
    gravity, bias = cell.gravity_torque()(Q), cell.bias_torque()(Q, V)
    for k, (q, v, a) in enumerate(zip(Q, V, A, strict=True)):
        at, rates = as_pinocchio(cell, model, q)
        torque = rates.T @ pin.rnea(model, data, at, rates @ v, rates @ a)
        assert relative(torques[k], torque) < 1e-12
        mass = rates.T @ symmetric(pin.crba(model, data, at)) @ rates
        assert relative(masses[k], mass) < 1e-12
        still = rates.T @ pin.computeGeneralizedGravity(model, data, at)
        np.testing.assert_allclose(gravity[k], still, atol=1e-11)
        steady = rates.T @ pin.nonLinearEffects(model, data, at, rates @ v)
        assert relative(bias[k], steady) < 1e-12


def test_steps_of_joints_are_pinocchios_aba(caplog: Any) -> None:
    cell, pin, model = robot_pair(ROBOTS[1], caplog)
    data = model.createData()
    n = len(cell.joint_names)
    for q, v, torques in np.random.default_rng(1).uniform(-2.0, 2.0, (5, 3, n)):
        at, rates = as_pinocchio(cell, model, q)
        wanted = pin.aba(model, data, at, rates @ v, rates @ torques)
        found = accelerations_by_steps(cell, q, v, torques)
        assert relative(rates @ found, wanted) < 1e-10


@pytest.mark.parametrize("robot", ["talos_reduced.urdf", "solo12.urdf"])
def test_free_bases_are_those_of_pinocchio(robot: str, caplog: Any) -> None:
    """Pinocchio has twists in the base's axes, its acceleration is that of a screw."""
    pin = pytest.importorskip("pinocchio")
    caplog.set_level(logging.ERROR, logger="armillary")
    path = robot_file(robot)
    cell = without_joint_dynamics(arm.load(path))
    base = cell.manipulators[0].name
    cell = cell.mount(base, bolted=False)
    n = len(cell.joint_names)
    model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    standing = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    inverse = cell.inverse_dynamics(free_bases=[base])
    forward = cell.forward_dynamics(free_bases=[base])
    mass_matrix = cell.mass_matrix(free_bases=[base])
    rng = np.random.default_rng(0)
    for _ in range(STATES):
        q, v, a = rng.uniform(-1, 1, n), *rng.uniform(-1, 1, (2, n + 6))
        X = Pose.from_rpy(*rng.uniform(-2, 2, 3), rng.uniform(-1, 1, 3)).matrix()
        R = X[:3, :3]
        joints, rates = as_pinocchio(cell, standing, q)
        at = np.r_[X[:3, 3], pin.Quaternion(R).coeffs(), joints]
        linear, angular = R.T @ v[:3], R.T @ v[3:6]
        screw = R.T @ a[:3] - np.cross(angular, linear)
        theirs = pin.rnea(
            model,
            data,
            at,
            np.r_[linear, angular, rates @ v[6:]],
            np.r_[screw, R.T @ a[3:6], rates @ a[6:]],
        )
        expected = np.r_[R @ theirs[:3], R @ theirs[3:6], rates.T @ theirs[6:]]
        ours = inverse(X[None], q, v, a)
        assert relative(ours, expected) < 1e-12
        np.testing.assert_allclose(forward(X[None], q, v, ours), a, atol=1e-9)
        bias = inverse(X[None], q, v, np.zeros(n + 6))
        np.testing.assert_allclose(
            mass_matrix(X[None], q) @ a + bias, ours, rtol=1e-11, atol=1e-10
        )


def test_motions_are_those_of_pinocchio_by_the_same_method(
    pair: tuple[arm.Cell, Any, Any],
) -> None:
    cell, pin, model = pair
    data, n = model.createData(), len(cell.joint_names)
    q0, v0, torque = np.random.default_rng(4).uniform(-0.5, 0.5, (3, n))
    dt, steps = 1e-3, 20
    path = cell.simulate(cell.home, q=q0, qd=v0, torque=torque, dt=dt, steps=steps)

    def rates(x: np.ndarray) -> np.ndarray:
        q, W = as_pinocchio(cell, model, x[:n])
        M = W.T @ symmetric(pin.crba(model, data, q)) @ W
        bias = W.T @ pin.nonLinearEffects(model, data, q, W @ x[n:])
        return np.concatenate([x[n:], np.linalg.solve(M, torque - bias)])

    x = np.concatenate([q0, v0])
    for _ in range(steps):
        k1 = rates(x)
        k2 = rates(x + dt / 2.0 * k1)
        k3 = rates(x + dt / 2.0 * k2)
        k4 = rates(x + dt * k3)
        x = x + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    assert relative(path.q[-1], x[:n]) < 1e-9
    assert relative(path.qd[-1], x[n:]) < 1e-9


def test_derivatives_are_those_of_pinocchio(pair: tuple[arm.Cell, Any, Any]) -> None:
    cell, pin, model = pair
    data = model.createData()
    n = len(cell.joint_names)
    Q, V, A = np.random.default_rng(1).uniform(-2.0, 2.0, (3, STATES, n))
    torques = cell.inverse_dynamics()(Q, V, A)
    inverse = cell.inverse_dynamics_derivatives()(Q, V, A)
    forward = cell.forward_dynamics_derivatives()(Q, V, torques)
    is_open = all(link.coupling is None for link in cell.manipulators[0].links)
    for k, (q, v, a) in enumerate(zip(Q, V, A, strict=True)):
        at, rates = as_pinocchio(cell, model, q)
        v_pin, a_pin = rates @ v, rates @ a
        theirs = pin.computeRNEADerivatives(model, data, at, v_pin, a_pin)
        mass = symmetric(theirs[2])
        for ours, expected in zip(inverse, (*theirs[:2], mass), strict=True):
            assert relative(ours[k], rates.T @ expected @ rates) < 1e-12
        if not is_open:
            continue
        torque = pin.rnea(model, data, at, v_pin, a_pin)
        theirs = pin.computeABADerivatives(model, data, at, v_pin, torque)
        inverse_mass = symmetric(theirs[2])
        for ours, expected in zip(forward, (*theirs[:2], inverse_mass), strict=True):
            assert relative(ours[k], rates.T @ expected @ rates) < 1e-7


def test_regressors_are_those_of_pinocchio(pair: tuple[arm.Cell, Any, Any]) -> None:
    """Pinocchio merges links that are fixed to each other, so torques are compared."""
    cell, pin, model = pair
    data = model.createData()
    n = len(cell.joint_names)
    Q, V, A = np.random.default_rng(2).uniform(-2.0, 2.0, (3, STATES, n))
    phi = cell.inertial_parameters()
    found = cell.inertial_regressor()(Q, V, A) @ phi
    parameters = np.concatenate(
        [each.toDynamicParameters() for each in list(model.inertias)[1:]]
    )
    for k, (q, v, a) in enumerate(zip(Q, V, A, strict=True)):
        at, rates = as_pinocchio(cell, model, q)
        Y = pin.computeJointTorqueRegressor(model, data, at, rates @ v, rates @ a)
        assert relative(found[k], rates.T @ (Y @ parameters)) < 1e-11


@pytest.mark.parametrize("robot", ROBOTS[:2])
def test_parameters_are_those_of_a_rebuilt_model(robot: str, caplog: Any) -> None:
    """Masses and motors of Pinocchio's model are changed, ours are inputs."""
    cell, pin, model = robot_pair(robot, caplog)
    (manipulator,) = cell.manipulators
    moved = [each for each in manipulator.links if each.has_coordinate]
    names = [f"{each.name}.inertia" for each in moved]
    names += [f"{each.coordinate}.dynamics.motor_inertia" for each in moved]
    start = np.array(list(cell.parameters(names).values()))
    rng = np.random.default_rng(4)
    p = start + rng.uniform(-0.02, 0.1, len(start))
    p[10 * len(moved) :] = rng.uniform(0.1, 1.0, len(moved))
    rows, motors = np.split(p, [10 * len(moved)])
    changes = rows - start[: len(rows)]
    ids = [model.getJointId(link.coordinate) for link in moved]
    for k, change, motor in zip(ids, changes.reshape(-1, 10), motors, strict=True):
        whole = model.inertias[k].toDynamicParameters() + change
        model.inertias[k] = pin.Inertia.FromDynamicParameters(whole)
        model.armature[model.joints[k].idx_v] = motor
    n = len(cell.joint_names)
    inverse = cell.inverse_dynamics(parameters=names)
    forward = cell.forward_dynamics(parameters=names)
    slopes = cell.inverse_dynamics_derivatives(parameters=names)
    data = model.createData()
    for q, v, a in rng.uniform(-2.0, 2.0, (5, 3, n)):
        at, rates = as_pinocchio(cell, model, q)
        mass = rates.T @ symmetric(pin.crba(model, data, at)) @ rates
        steady = rates.T @ pin.nonLinearEffects(model, data, at, rates @ v)
        torque = mass @ a + steady
        assert relative(inverse(q, p, v, a), torque) < 1e-12
        assert relative(cell.mass_matrix(parameters=names)(q, p), mass) < 1e-12
        assert relative(forward(q, p, v, torque), a) < 1e-9
        Y = pin.computeJointTorqueRegressor(model, data, at, rates @ v, rates @ a)
        *_, by_p = slopes(q, p, v, a)
        columns = [10 * (k - 1) + c for k in ids for c in range(10)]
        assert relative(by_p[:, : len(rows)], rates.T @ Y[:, columns]) < 1e-12


def test_combinations_of_inertias_are_those_of_pinocchios_regressor(
    caplog: Any,
) -> None:
    """Of a Panda 43, as Gaz et al. count, IEEE RA-L 4 (2019)."""
    pytest.importorskip("scipy")
    cell, pin, model = robot_pair(ROBOTS[0], caplog)
    data, n = model.createData(), len(cell.joint_names)
    Q, V, A = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 60, n))
    names = [f"panda_link{k}.inertia" for k in range(1, 8)]
    torques = cell.inverse_dynamics()(Q, V, A)
    found = arm.calibrate(cell, arm.measurements.Torques(Q, V, A, torques), names)
    rows = []
    for q, v, a in zip(Q, V, A, strict=True):
        at, rates = as_pinocchio(cell, model, q)
        Y = pin.computeJointTorqueRegressor(model, data, at, rates @ v, rates @ a)
        rows.append(rates.T @ Y[:, :70])
    assert np.linalg.matrix_rank(np.concatenate(rows), tol=1e-8) == 43
    assert found.identified.rank == len(found.combinations) == 43
    np.testing.assert_allclose(found.values, found.start, atol=2e-3)
