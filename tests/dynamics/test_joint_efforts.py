"""Motors, friction and springs of joints, followers among them."""

from __future__ import annotations

import numpy as np
import pytest

from armillary.model.tree import Tree
from masses import heavy_example, vectors, with_drives, with_inertias
from random_cells import CellMaker


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(6))
def test_joints_need_what_their_motors_and_springs_take(
    random_cell: CellMaker, seed: int
) -> None:
    bare = with_inertias(random_cell(seed), seed)
    cell = with_drives(bare, seed)
    q, qd, qdd = vectors(cell, seed)
    expected = bare.inverse_dynamics()(q, qd, qdd)
    mass = bare.mass_matrix()(q)
    tree = Tree.of(cell.workcell)
    for link, drives in zip(tree.links, tree.drives, strict=True):
        if not link.has_coordinate:
            continue
        ((k, by, offset),) = drives
        d = link.dynamics
        rate = by * qd[:, k]
        effort = (
            d.motor_inertia * d.gear_ratio**2 * by * qdd[:, k]
            + d.damping * rate
            + d.friction * np.sign(rate)
            + d.stiffness * (by * q[:, k] + offset - d.rest)
        )
        expected[:, k] += by * effort
        mass[:, k, k] += by * by * d.motor_inertia * d.gear_ratio**2
    torque = cell.inverse_dynamics()(q, qd, qdd)
    np.testing.assert_allclose(torque, expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(cell.mass_matrix()(q), mass, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(
        cell.forward_dynamics()(q, qd, torque), qdd, rtol=1e-8, atol=1e-8
    )


def test_passive_joints_of_loops_have_friction_too() -> None:
    """Power is conserved: what friction takes is what independent joints put in."""
    bare = heavy_example("five_bar", 0)
    cell = with_drives(bare, 0)
    q, qd, _ = vectors(cell, 1)
    q = cell.home.q + 0.2 * (q - cell.home.q)
    more = cell.bias_torque()(q, qd) - bare.bias_torque()(q, qd)
    closed = cell.close_loops(q)
    step = 1e-4
    ahead, behind = (cell.close_loops(q + s * step * qd).passive for s in (1, -1))
    middle = closed.passive
    everything = np.concatenate([q, middle], axis=1)
    rates = np.concatenate([qd, (ahead - behind) / (2 * step)], axis=1)
    curving = (ahead - 2.0 * middle + behind) / step**2
    accelerations = np.concatenate([np.zeros_like(qd), curving], axis=1)
    tree = Tree.of(cell.workcell)
    power = np.zeros(len(q))
    for link, drives in zip(tree.links, tree.drives, strict=True):
        for k, by, offset in drives:
            z, rate = by * everything[:, k] + offset, by * rates[:, k]
            d = link.dynamics
            effort = d.damping * rate + d.friction * np.sign(rate)
            effort += d.armature * by * accelerations[:, k]
            power += rate * (effort + d.stiffness * (z - d.rest))
    ours = np.einsum("ij,ij->i", more, qd)
    np.testing.assert_allclose(ours, power, rtol=1e-6, atol=1e-7)
