"""Energies, momenta, Coriolis matrices and reactions against Pinocchio."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armillary as arm
from peer_robots import (
    as_pinocchio,
    robot_pair,
    symmetric,
)

# One draw for all tests: those of a robot share kernels.
pytestmark = [pytest.mark.peers, pytest.mark.sampled(2)]

ROBOTS = (
    "panda_description/urdf/panda.urdf",
    "ur_description/urdf/ur5_robot.urdf",
    "talos_data/robots/talos_reduced.urdf",
    "tiago_description/robots/tiago_no_hand.urdf",
    "laikago_description/urdf/laikago.urdf",
)
STATES = 10


@pytest.fixture(params=ROBOTS)
def pair(request: Any, caplog: Any) -> tuple[arm.Cell, Any, Any]:
    """Return a robot here and there."""
    return robot_pair(request.param, caplog)


def test_energies_and_momenta_agree(pair: tuple[arm.Cell, Any, Any]) -> None:
    cell, pin, model = pair
    data = model.createData()
    Q, V = np.random.default_rng(0).uniform(-2, 2, (2, STATES, len(cell.joint_names)))
    kinetic, potential = cell.kinetic_energy()(Q, V), cell.potential_energy()(Q)
    centres, jacobians = cell.centre_of_mass()(Q), cell.centre_of_mass_jacobian()(Q)
    momenta = cell.momentum(about="centre of mass")(Q, V)
    for k, (q, v) in enumerate(zip(Q, V, strict=True)):
        at, rates = as_pinocchio(cell, model, q)
        theirs = pin.computeKineticEnergy(model, data, at, rates @ v)
        np.testing.assert_allclose(kinetic[k], theirs, rtol=1e-12)
        theirs = pin.computePotentialEnergy(model, data, at)
        np.testing.assert_allclose(potential[k], theirs, rtol=1e-10, atol=1e-10)
        theirs = pin.centerOfMass(model, data, at)
        np.testing.assert_allclose(centres[k], theirs, atol=1e-12)
        theirs = pin.jacobianCenterOfMass(model, data, at) @ rates
        np.testing.assert_allclose(jacobians[k], theirs, atol=1e-12)
        pin.computeCentroidalMomentum(model, data, at, rates @ v)
        np.testing.assert_allclose(momenta[k, :3], data.hg.linear, atol=1e-10)
        np.testing.assert_allclose(momenta[k, 3:], data.hg.angular, atol=1e-10)


def test_coriolis_matrices_agree(pair: tuple[arm.Cell, Any, Any]) -> None:
    """Couplings p = W q are constant: W' C W."""
    cell, pin, model = pair
    data = model.createData()
    Q, V = np.random.default_rng(1).uniform(-2, 2, (2, STATES, len(cell.joint_names)))
    found = cell.coriolis_matrix()(Q, V)
    for C, q, v in zip(found, Q, V, strict=True):
        at, rates = as_pinocchio(cell, model, q)
        theirs = pin.computeCoriolisMatrix(model, data, at, rates @ v)
        expected = rates.T @ theirs @ rates
        np.testing.assert_allclose(C, expected, atol=1e-12 * np.abs(expected).max())


def test_reactions_agree(pair: tuple[arm.Cell, Any, Any]) -> None:
    cell, pin, model = pair
    data = model.createData()
    n = len(cell.joint_names)
    q, v, a = np.random.default_rng(2).uniform(-2, 2, (3, n))
    at, rates = as_pinocchio(cell, model, q)
    pin.rnea(model, data, at, rates @ v, rates @ a)
    manipulator = cell.manipulators[0]
    moved = [
        link
        for link, drives in zip(manipulator.links, manipulator.drives, strict=True)
        if drives
    ]
    for link in moved[:: max(1, len(moved) // 8)]:
        theirs = data.f[model.getJointId(link.coordinate)].vector
        found = cell.reaction(link.name)(q, v, a)
        np.testing.assert_allclose(found, theirs, atol=1e-11 * np.abs(theirs).max())


def test_operational_inertias_agree(pair: tuple[arm.Cell, Any, Any]) -> None:
    cell, pin, model = pair
    data = model.createData()
    tips = [f.name for f in model.frames if f.type == pin.FrameType.BODY]
    count = {
        tip: int(np.abs(cell.jacobian(tip)(cell.home.q)).any(axis=0).sum())
        for tip in tips
    }
    tip = max(reversed(tips), key=count.__getitem__)  # the last such link: a foot
    rotation = "xyz" if count[tip] >= 6 else ""
    rows = 3 + len(rotation)
    tip_id = model.getFrameId(tip, pin.FrameType.BODY)
    axes = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    Q = np.random.default_rng(3).uniform(-2.0, 2.0, (STATES, len(cell.joint_names)))
    found = cell.operational_inertia(tip, rotation=rotation)(Q)
    for q, inertia in zip(Q, found, strict=True):
        at, rates = as_pinocchio(cell, model, q)
        J = (pin.computeFrameJacobian(model, data, at, tip_id, axes) @ rates)[:rows]
        M = rates.T @ symmetric(pin.crba(model, data, at)) @ rates
        inverse = J @ np.linalg.solve(M, J.T)
        np.testing.assert_allclose(inertia @ inverse, np.eye(rows), atol=1e-7)
