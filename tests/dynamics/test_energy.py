"""Energies, whose derivatives are the forces that inverse dynamics has."""

from __future__ import annotations

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError, UnknownName
from masses import HEAVY, heavy_cell, rates_by_q, vectors


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", HEAVY)
def test_the_kinetic_energy_is_that_of_the_mass_matrix(kind: str) -> None:
    cell = heavy_cell(kind)
    q, qd, _ = vectors(cell, 1)
    M = cell.mass_matrix()(q)
    expected = 0.5 * np.einsum("ki,kij,kj->k", qd, M, qd)
    found = cell.kinetic_energy()(q, qd)
    assert found.shape == (len(q),)
    np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", HEAVY)
def test_gravity_torques_are_the_slope_of_the_potential_energy(kind: str) -> None:
    cell = heavy_cell(kind)
    q, _, _ = vectors(cell, 2)
    gravity = (1.0, -2.0, -5.0)
    slope = rates_by_q(cell.potential_energy(gravity=gravity), q)
    expected = cell.gravity_torque(gravity=gravity)(q)
    np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", HEAVY)
def test_torques_less_friction_are_what_changes_the_energy(kind: str) -> None:
    """The power of the motors is the rate of both energies and what friction takes."""
    cell = heavy_cell(kind)
    q, qd, qdd = vectors(cell, 3)
    step = 1e-5

    def energy(t: float) -> np.ndarray:
        at, rates = q + t * qd + 0.5 * t * t * qdd, qd + t * qdd
        return cell.kinetic_energy()(at, rates) + cell.potential_energy()(at)

    rate = (energy(step) - energy(-step)) / (2.0 * step)
    still = cell.bias_torque()(q, 0.0 * qd)
    drag = 0.5 * (cell.bias_torque()(q, qd) - cell.bias_torque()(q, -qd))
    torque = cell.inverse_dynamics()(q, qd, qdd) - drag
    np.testing.assert_allclose(still, cell.gravity_torque()(q), atol=1e-12)
    power = (torque * qd).sum(axis=-1)
    np.testing.assert_allclose(rate, power, rtol=1e-6, atol=1e-6)


def test_heights_are_counted_from_the_origin_of_the_world() -> None:
    body = arm.Link(
        name="body",
        parent="rail",
        joint=arm.joints.Prismatic(axis=(0.0, 0.0, 1.0)),
        inertia=arm.SpatialInertia.from_centre(2.0, (0.0, 0.0, 0.5), 0.1 * np.eye(3)),
    )
    lift = arm.Manipulator(name="lift", links=[arm.Link(name="rail"), body])
    cell = arm.Cell(manipulators=[lift])
    np.testing.assert_allclose(cell.potential_energy()([1.0]), 2.0 * 9.81 * 1.5)
    np.testing.assert_allclose(cell.kinetic_energy()([1.0], [3.0]), 9.0)
    assert cell.potential_energy(gravity=(0.0, 0.0, 0.0))([1.0]) == 0.0


def test_what_cannot_be_asked_is_refused() -> None:
    massless = arm.Cell(
        manipulators=[
            arm.Manipulator(
                name="a",
                links=[
                    arm.Link(name="b"),
                    arm.Link(name="c", parent="b", joint=arm.joints.Revolute()),
                ],
            )
        ]
    )
    for question in (massless.kinetic_energy, massless.potential_energy):
        with pytest.raises(ModelError, match="has an inertia here"):
            question()
    with pytest.raises(UnknownName, match="option of dynamics named 'gravitation'"):
        heavy_cell("scara").kinetic_energy(gravitation=(0, 0, -1))
