"""Dynamics of any joint against Lagrange's equations, from poses and slopes alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import armillary as arm
from masses import heavy_example, with_inertias
from random_cells import CellMaker

GRAVITY = np.array([0.7, -0.3, -9.81])
STENCIL = {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
STEPS = 1e-3, 2e-4  # where a curve has a kink within one, the other counts

Array = np.ndarray


class Lagrangian:
    """The energies of a cell from the poses of its links and their Jacobians."""

    def __init__(self, cell: arm.Cell) -> None:
        frames = [
            f"{m.name}/{link.name}" for m in cell.manipulators for link in m.links
        ]
        links = [link for m in cell.manipulators for link in m.links]
        self._inertias = [
            link.inertia.transformed(link.primary)
            for link in links
            if link.inertia is not None
        ]
        self._poses, self._jacobian = cell.fk(frames), cell.jacobian(frames)

    def mass_matrix(self, q: Array) -> Array:
        """Return the sum of J' I J over links, I the inertia turned to the world."""
        total = np.zeros((len(q), len(q)))
        poses, jacobians = self._poses(q), self._jacobian(q)
        for X, J, inertia in zip(poses, jacobians, self._inertias, strict=True):
            turn = np.kron(np.eye(2), X[:3, :3])
            total += J.T @ turn @ inertia.matrix() @ turn.T @ J
        return total

    def potential(self, q: Array) -> float:
        """Return minus the sum of m g . c."""
        centres = (
            inertia.mass * X[:3, 3] + X[:3, :3] @ np.array(inertia.first_moment)
            for X, inertia in zip(self._poses(q), self._inertias, strict=True)
        )
        return -float(sum(GRAVITY @ centre for centre in centres))

    def torque(self, q: Array, qd: Array, qdd: Array, step: float) -> Array:
        """Return d/dt dL/dqd - dL/dq, slopes being taken over a step."""
        numbers = range(len(q))
        slopes = np.array([slope(self.mass_matrix, q, k, step) for k in numbers])
        rate = np.tensordot(qd, slopes, axes=1)
        kinetic = 0.5 * np.einsum("kij,i,j->k", slopes, qd, qd)
        potential = [float(slope(self.potential, q, k, step)) for k in numbers]
        return self.mass_matrix(q) @ qdd + rate @ qd - kinetic + potential


def slope(
    function: Callable[[Array], Array | float], q: Array, k: int, h: float
) -> Array:
    """Return the derivative by one coordinate, central differences of order 6."""
    step = np.zeros(len(q))
    step[k] = h
    parts = [
        c * (np.asarray(function(q + i * step)) - function(q - i * step)) / h
        for i, c in STENCIL.items()
    ]
    return np.sum(parts, axis=0)


def check(cell: arm.Cell, seed: int, spread: float = 0.3) -> None:
    lagrangian = Lagrangian(cell)
    inverse = cell.inverse_dynamics(gravity=GRAVITY)
    mass_matrix = cell.mass_matrix()
    rng = np.random.default_rng(seed)
    n = len(cell.joint_names)
    for _ in range(2):
        q = cell.home.q + rng.uniform(-spread, spread, n)
        qd, qdd = rng.uniform(-1.0, 1.0, (2, n))
        torque = inverse(q, qd, qdd)
        expected = [lagrangian.torque(q, qd, qdd, step) for step in STEPS]
        errors = [np.abs(torque - x).max() / np.abs(x).max() for x in expected]
        assert min(errors) < 1e-9
        mass = lagrangian.mass_matrix(q)
        np.testing.assert_allclose(
            mass_matrix(q), mass, atol=1e-12 * np.abs(mass).max()
        )


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "name",
    ["ur5e_on_oval", "two_arms_positioner", "palletiser"],
)
def test_example_cells(name: str) -> None:
    check(heavy_example(name, 1), 2)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["delta", "five_bar", "stewart"])
def test_closed_loops(name: str) -> None:
    check(heavy_example(name, 1), 3, spread=0.05)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(6))
def test_random_cells(random_cell: CellMaker, seed: int) -> None:
    check(with_inertias(random_cell(seed), seed), seed)


class Helix(arm.Joint):
    """A spiral that rises and winds tighter: its twist depends on q."""

    pitch: float

    def pose(self, q: float) -> arm.Pose:
        """Return the pose at the distance `q`."""
        radius = 1.0 / (1.0 + 0.2 * q)
        turned = arm.Pose.rotation_z(q) @ arm.Pose.rotation_x(0.3 * q * q)
        x, y = radius * np.cos(q), radius * np.sin(q)
        return arm.Pose.from_rotation_position(turned.rotation, (x, y, self.pitch * q))


def test_a_joint_of_the_user() -> None:
    links = [
        arm.Link(name="base"),
        arm.Link(name="cart", parent="base", joint=Helix(pitch=0.2)),
        arm.Link(name="arm", parent="cart", joint=arm.joints.Revolute(axis=(0, 1, 0))),
        arm.Link(name="tool", parent="arm", joint=Helix(pitch=-0.1)),
    ]
    cell = arm.Cell(manipulators=[arm.Manipulator(name="m", links=links)])
    check(with_inertias(cell, 5), 6)
