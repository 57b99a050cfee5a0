"""The centre of mass and the momentum, by sums over links and by differences."""

from __future__ import annotations

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError, UnknownName
from masses import HEAVY, heavy_cell, rates_by_q, vectors


def sums(cell: arm.Cell, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return centre of mass, linear and angular momentum, by kinematics of links."""
    mass, moment = 0.0, np.zeros(3)
    p, L = np.zeros(3), np.zeros(3)
    for manipulator in cell.manipulators:
        for link in manipulator.links:
            name = f"{manipulator.name}/{link.name}"
            if not cell.jacobian(name)(cell.home.q).any():
                continue
            X = cell.fk(name)(q) @ np.array(link.primary.matrix())
            V = cell.velocity(name)(q, qd)
            c = X[:3, 3] + X[:3, :3] @ np.array(link.inertia.centre())
            v = V[:3] + np.cross(V[3:], c - cell.fk(name)(q)[:3, 3])
            inertia = X[:3, :3] @ np.array(link.inertia.about_centre()) @ X[:3, :3].T
            mass, moment = mass + link.inertia.mass, moment + link.inertia.mass * c
            p = p + link.inertia.mass * v
            L = L + np.cross(c, link.inertia.mass * v) + inertia @ V[3:]
    return moment / mass, p, L, mass


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", HEAVY)
def test_they_are_sums_over_links(kind: str) -> None:
    cell = heavy_cell(kind)
    for q, qd in vectors(cell, 1, 3)[:2].swapaxes(0, 1):
        centre, p, L, mass = sums(cell, q, qd)
        np.testing.assert_allclose(cell.centre_of_mass()(q), centre, atol=1e-12)
        found = cell.momentum()(q, qd)
        np.testing.assert_allclose(found, [*p, *L], rtol=1e-9, atol=1e-12)
        about = cell.momentum(about="centre of mass")(q, qd)
        expected = [*p, *(L - np.cross(centre, p))]
        np.testing.assert_allclose(about, expected, rtol=1e-9, atol=1e-12)
        J = cell.centre_of_mass_jacobian()(q)
        np.testing.assert_allclose(mass * J @ qd, p, rtol=1e-9, atol=1e-12)
        tip = cell.frame_names[-1]
        shifted = L - np.cross(cell.fk(tip)(q)[:3, 3], p)
        at_tip = cell.momentum(about=tip)(q, qd)
        np.testing.assert_allclose(at_tip[3:], shifted, rtol=1e-9, atol=1e-11)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", HEAVY)
def test_the_jacobian_is_the_slope_of_the_centre(kind: str) -> None:
    cell = heavy_cell(kind)
    q, _, _ = vectors(cell, 2)
    slope = rates_by_q(cell.centre_of_mass(), q)
    found = cell.centre_of_mass_jacobian()(q)
    np.testing.assert_allclose(found, slope, rtol=1e-6, atol=1e-8)


def test_a_free_base_counts_and_falls_with_its_momentum() -> None:
    cell = heavy_cell("irb2400")
    base = "irb2400"
    q, qd, _ = vectors(cell, 3, 1)[:, 0]
    rng = np.random.default_rng(4)
    X = np.array(arm.Pose.from_rpy(*rng.uniform(-2, 2, 3), (0.3, 0.1, -0.2)).matrix())
    whole = np.r_[rng.normal(size=6), qd]
    J = cell.centre_of_mass_jacobian(free_bases=[base])(X[None], q)
    P = cell.momentum(free_bases=[base], about="centre of mass")(X[None], q, whole)
    M = cell.mass_matrix(free_bases=[base])(X[None], q)
    mass = sum(link.inertia.mass for link in cell.manipulators[0].links)
    np.testing.assert_allclose(mass * J @ whole, P[:3], rtol=1e-10)
    # The rows of the base are the momentum about its origin.
    centre = cell.centre_of_mass(free_bases=[base])(X[None], q)
    shifted = P[3:] + np.cross(centre - X[:3, 3], P[:3])
    np.testing.assert_allclose(M[:6] @ whole, [*P[:3], *shifted], rtol=1e-10)
    inverse = cell.inverse_dynamics(free_bases=[base])
    force = inverse(X[None], q, 0.0 * whole, 0.0 * whole)[:3]
    np.testing.assert_allclose(force, [0.0, 0.0, 9.81 * mass], atol=1e-9)


def test_a_grip_moves_the_centre_of_mass() -> None:
    cell = heavy_cell("random")
    state = cell.home.grip("part", by="arm_tool5")
    before = cell.centre_of_mass()(cell.home.q)
    own = next(m for m in cell.manipulators if m.name == "part").links[0]
    placed = cell.pose("part/part_body", cell.home) @ np.array(own.primary.matrix())
    at = (placed @ [*own.inertia.centre(), 1.0])[:3]
    moving = [
        link.inertia.mass
        for manipulator, link in (
            (m, link) for m in cell.manipulators[:2] for link in m.links
        )
        if cell.jacobian(f"{manipulator.name}/{link.name}")(cell.home.q).any()
    ]
    total = sum(moving)
    expected = (total * before + own.inertia.mass * at) / (total + own.inertia.mass)
    found = cell.centre_of_mass(state=state)(cell.home.q)
    np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_what_cannot_be_asked_is_refused() -> None:
    cell = heavy_cell("scara")
    with pytest.raises(UnknownName, match="'center of mass'"):
        cell.momentum(about="center of mass")
    body = arm.SpatialInertia.from_centre(0.0, (0.0, 0.0, 0.0), np.eye(3))
    links = [link.replace(inertia=body) for link in cell.manipulators[0].links]
    empty = cell.replace(manipulators=[cell.manipulators[0].replace(links=links)])
    with pytest.raises(ModelError, match="without mass has no centre"):
        empty.centre_of_mass()
