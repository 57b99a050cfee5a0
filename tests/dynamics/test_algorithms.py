"""Inverse dynamics, the mass matrix and forward dynamics agree with each other."""

from __future__ import annotations

import numpy as np
import pytest

from armillary.dynamics import forward
from armillary.dynamics.options import DynamicsOptions
from masses import heavy_example, vectors, with_drives

EXAMPLES = ("irb2400", "ur10_on_rail", "ur5e_on_oval", "scara", "pan_tilt", "delta")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", EXAMPLES)
def test_forward_dynamics_inverts_inverse_dynamics(name: str) -> None:
    cell = heavy_example(name, 0)
    q, qd, qdd = vectors(cell, 1)
    torque = cell.inverse_dynamics()(q, qd, qdd)
    assert np.isfinite(torque).all()
    np.testing.assert_allclose(
        cell.forward_dynamics()(q, qd, torque), qdd, rtol=1e-8, atol=1e-9
    )
    M, bias = cell.mass_matrix()(q), cell.bias_torque()(q, qd)
    whole = np.einsum("...ij,...j->...i", M, qdd) + bias
    np.testing.assert_allclose(whole, torque, rtol=1e-11, atol=1e-10)
    np.testing.assert_allclose(M, M.swapaxes(1, 2), rtol=1e-13, atol=1e-13)
    assert (np.linalg.eigvalsh(M) > 0.0).all()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["irb2400", "ur10_on_rail", "ur5e_on_oval"])
def test_both_methods_of_forward_dynamics_agree(name: str) -> None:
    cell = with_drives(heavy_example(name, 2), 2)
    given = vectors(cell, 3)
    found = [
        DynamicsOptions(cell.workcell).kernel(
            ("forward", method), method, ("qd", "torque"), output="qdd"
        )(*given)
        for method in (forward.by_mass_matrix, forward.by_articulated_bodies)
    ]
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-9)
