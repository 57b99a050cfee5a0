"""Operational inertia, null spaces and torques of wrenches, against their laws."""

from __future__ import annotations

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError, UnknownName
from masses import HEAVY, heavy_cell, vectors

TIPS = {"irb2400": "tool0", "ur5e_on_oval": "tool0", "ur10_on_rail": "tool0"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", TIPS)
def test_the_inertia_is_what_accelerations_of_the_frame_take(kind: str) -> None:
    """A wrench on the frame at rest accelerates it by the inverse of the inertia."""
    cell, tip = heavy_cell(kind), TIPS[kind]
    q, _, _ = vectors(cell, 1)
    F = np.random.default_rng(2).normal(size=(len(q), 6))
    inertia = cell.operational_inertia(tip)(q)
    torque = cell.torque_of_wrench(tip)(q, F) + cell.gravity_torque()(q)
    qdd = cell.forward_dynamics()(q, 0.0 * q, torque)
    A = np.einsum("kij,kj->ki", cell.jacobian(tip)(q), qdd)
    found = np.einsum("kij,kj->ki", inertia, A)
    np.testing.assert_allclose(found, F, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(inertia, inertia.swapaxes(1, 2), rtol=1e-6, atol=1e-7)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("kind", "tip", "position", "rotation"),
    [
        ("irb2400", "tool0", "xyz", ""),
        ("irb2400", "tool0", "z", "xy"),
        ("ur5e_on_oval", "tool0", "xyz", "xyz"),
        ("delta", "flange", "xy", ""),
        ("five_bar", "a0", "xy", ""),
        ("pan_tilt", "tool0", "", "z"),
    ],
)
def test_torques_of_the_null_space_leave_the_frame(
    kind: str, tip: str, position: str, rotation: str
) -> None:
    cell = heavy_cell(kind)
    kept = [*(a in position for a in "xyz"), *(a in rotation for a in "xyz")]
    rows = {"position": position, "rotation": rotation, "axes": tip}
    q, _, _ = vectors(cell, 3)
    J = cell.jacobian(tip, axes=tip)(q)[:, kept]
    N, M = cell.null_space_projector(tip, **rows)(q), cell.mass_matrix()(q)
    inertia = cell.operational_inertia(tip, **rows)(q)
    inverse = J @ np.linalg.solve(M, J.swapaxes(1, 2))
    np.testing.assert_allclose(inertia @ inverse - np.eye(sum(kept)), 0.0, atol=1e-8)
    np.testing.assert_allclose(N @ N, N, atol=1e-8)
    np.testing.assert_allclose(J @ np.linalg.solve(M, N), 0.0, atol=1e-8)
    free = len(cell.joint_names) - sum(kept)
    np.testing.assert_allclose(np.trace(N, axis1=1, axis2=2), free, atol=1e-8)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", HEAVY)
def test_wrenches_are_worth_the_power_that_they_give(kind: str) -> None:
    cell = heavy_cell(kind)
    q, qd, _ = vectors(cell, 4)
    names = list(cell.frame_names[-3:])
    F = np.random.default_rng(5).normal(size=(len(q), 3, 6))
    torque = cell.torque_of_wrench(names)(q, F)
    given = sum(
        (cell.velocity(name)(q, qd) * F[:, k]).sum(axis=1)
        for k, name in enumerate(names)
    )
    np.testing.assert_allclose((torque * qd).sum(axis=1), given, atol=1e-11)
    own = cell.torque_of_wrench(names[0], axes=names[0])(q, F[:, 0])
    J = cell.jacobian(names[0], axes=names[0])(q)
    np.testing.assert_allclose(own, np.einsum("kij,ki->kj", J, F[:, 0]), atol=1e-11)


def test_a_wrench_on_a_free_base_is_worth_itself() -> None:
    cell = heavy_cell("irb2400")
    q = vectors(cell, 6, 1)[0, 0]
    X = np.array(arm.Pose.from_rpy(0.3, -1.0, 2.0, (0.1, 0.2, 0.3)).matrix())
    F = np.random.default_rng(7).normal(size=6)
    base = cell.manipulators[0].links[0].name
    found = cell.torque_of_wrench(base, free_bases=["irb2400"])(X[None], q, F)
    np.testing.assert_allclose(found, [*F, *np.zeros(6)], atol=1e-14)
    whole = cell.operational_inertia(base, free_bases=["irb2400"])(X[None], q)
    M = cell.mass_matrix(free_bases=["irb2400"])(X[None], q)
    expected = np.linalg.inv(np.linalg.inv(M)[:6, :6])
    np.testing.assert_allclose(whole, expected, rtol=1e-9, atol=1e-9)


def test_wrenches_need_no_masses() -> None:
    cell = arm.example("ur5e_on_oval")
    F = np.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.0])
    torque = cell.torque_of_wrench("tool0")(cell.home.q, F)
    J = cell.jacobian("tool0")(cell.home.q)
    np.testing.assert_allclose(torque, J.T @ F, atol=1e-14)


def test_a_singular_frame_is_nan_in_its_row_only() -> None:
    cell = heavy_cell("irb2400")
    q = np.array([[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0.1, 0.2, 0.3, 0.4, 0.0, 0.6]])
    inertia = cell.operational_inertia("tool0")(q)
    assert np.isfinite(inertia[0]).all()
    assert np.isnan(inertia[1]).all()
    assert np.isnan(cell.null_space_projector("tool0")(q)[1]).all()
    linear = cell.operational_inertia("tool0", rotation="")(q)
    assert np.isfinite(linear).all()


def test_what_cannot_be_asked_is_refused() -> None:
    cell = heavy_cell("scara")
    with pytest.raises(ModelError, match=r"4 of the joints move the frame.* 6 indep"):
        cell.operational_inertia("tcp")
    with pytest.raises(ModelError, match="must ask for a direction or a rotation"):
        cell.null_space_projector("tcp", position="", rotation="")
    with pytest.raises(ModelError, match="letters of 'xyz', each once; not 'xx'"):
        cell.operational_inertia("tcp", position="xx")
    with pytest.raises(UnknownName, match="tcpp"):
        cell.operational_inertia("tcpp")
    with pytest.raises(ModelError, match="needs at least one frame"):
        cell.torque_of_wrench([])
    massless = arm.example("ur5e_on_oval")
    with pytest.raises(ModelError, match="has an inertia here"):
        massless.operational_inertia("tool0")
