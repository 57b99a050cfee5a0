"""The Coriolis matrix: its forces, Christoffel's symbols, and the rate of M."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

import armillary as arm
from armillary.spatial import rotation
from masses import HEAVY, heavy_cell, rates_by_q, vectors, with_links


def without_friction(cell: arm.Cell) -> arm.Cell:
    """Return a cell whose joints keep their motors and springs."""

    def change(link: arm.Link) -> arm.Link:
        kept = msgspec.structs.replace(link.dynamics, damping=0.0, friction=0.0)
        return link.replace(dynamics=kept)

    return with_links(cell, change)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", HEAVY)
def test_it_holds_the_symbols_of_christoffel(kind: str) -> None:
    cell = without_friction(heavy_cell(kind))
    q, qd, _ = vectors(cell, 1)
    C = cell.coriolis_matrix()(q, qd)
    bias, gravity = cell.bias_torque()(q, qd), cell.gravity_torque()(q)
    forces = np.einsum("kij,kj->ki", C, qd)
    np.testing.assert_allclose(forces + gravity, bias, rtol=1e-9, atol=1e-10)
    slopes = rates_by_q(cell.mass_matrix(), q)
    expected = 0.5 * (
        np.einsum("aijk,ak->aij", slopes, qd)
        + np.einsum("aikj,ak->aij", slopes, qd)
        - np.einsum("ajki,ak->aij", slopes, qd)
    )
    size = np.abs(expected).max()
    np.testing.assert_allclose(C, expected, rtol=1e-6, atol=1e-6 * size)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["irb2400", "random", "five_bar"])
def test_with_a_free_base_it_is_half_the_rate_of_masses(kind: str) -> None:
    cell = without_friction(heavy_cell(kind))
    base = cell.manipulators[0].name
    cell = cell.mount(base, bolted=False)
    free = {"free_bases": [base]}
    rng = np.random.default_rng(2)
    q, qd, _ = vectors(cell, 3, 1)[:, 0]
    X = arm.Pose.from_rpy(*rng.uniform(-2, 2, 3), rng.uniform(-1, 1, 3))
    whole = np.r_[rng.uniform(-1, 1, 6), qd]
    step = 1e-5

    def at(t: float) -> np.ndarray:
        """The masses when the base has moved with its velocity for a time."""
        moved = np.array(X.matrix())
        moved[:3, :3] = np.array(rotation.exp(t * whole[3:6])) @ moved[:3, :3]
        moved[:3, 3] += t * whole[:3]
        return cell.mass_matrix(**free)(moved[None], q + t * qd)

    rate = (at(step) - at(-step)) / (2.0 * step)
    here = np.array(X.matrix())[None]
    C = cell.coriolis_matrix(**free)(here, q, whole)
    np.testing.assert_allclose(C + C.T, rate, rtol=1e-6, atol=1e-7)
    bias = cell.bias_torque(**free)(here, q, whole)
    gravity = cell.gravity_torque(**free)(here, q)
    np.testing.assert_allclose(C @ whole + gravity, bias, rtol=1e-10, atol=1e-10)


def test_locked_joints_leave_a_part_of_the_matrix() -> None:
    cell = heavy_cell("irb2400")
    q, qd, _ = vectors(cell, 4)
    names = [cell.joint_names[4], cell.joint_names[1]]
    state = cell.home.replace(q=q[0])
    some = cell.coriolis_matrix(joints=names, state=state)(q[0, [4, 1]], qd[0, [4, 1]])
    rates = np.zeros_like(qd[0])
    rates[[4, 1]] = qd[0, [4, 1]]
    whole = cell.coriolis_matrix()(q[0], rates)
    np.testing.assert_allclose(some, whole[np.ix_([4, 1], [4, 1])], atol=1e-12)
