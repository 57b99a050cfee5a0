"""Derivatives of inverse and forward dynamics against differences and each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.dynamics import setting
from armillary.errors import ShapeError
from masses import vectors, with_inertias

Array = np.ndarray
Function = Callable[..., Any]

EXAMPLES = ("irb2400", "ur10_on_rail", "ur5e_on_oval", "scara", "pan_tilt", "five_bar")


def differences(function: Function, given: Sequence[Array], k: int) -> Array:
    """Return the derivative by argument k, by differences of order 6 of a kernel."""
    n = given[k].shape[-1]
    weights = ((45.0, 1), (-9.0, 2), (1.0, 3))
    columns = []
    for j in range(n):
        step = 2e-3 * np.eye(n)[j]

        def at(s: float, step: Array = step) -> Array:
            moved = [x + s * step if i == k else x for i, x in enumerate(given)]
            return function(*moved)

        total = sum(w * (at(s) - at(-s)) for w, s in weights)
        columns.append(total / (60.0 * 2e-3))
    return np.stack(columns, -1)


def assert_near(found: Array, expected: Array, tolerance: float = 1e-9) -> None:
    assert np.isfinite(expected).all()
    assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()


def assert_derivatives(cell: arm.Cell, given: Array, **about: Any) -> None:
    """Compare both questions with differences, and with the mass matrix."""
    inverse = cell.inverse_dynamics(**about)
    found = cell.inverse_dynamics_derivatives(**about)(*given)
    for k in range(3):
        assert_near(found[k], differences(inverse, given, k))
    M = cell.mass_matrix(**about)(given[0])
    np.testing.assert_allclose(found[2], M, rtol=1e-11, atol=1e-12)
    q, qd, qdd = given
    torque = inverse(q, qd, qdd)
    forward = cell.forward_dynamics_derivatives(**about)(q, qd, torque)
    for k, sign in enumerate((-1.0, -1.0, 1.0)):
        right = np.eye(M.shape[-1]) if k == 2 else found[k]
        assert_near(M @ forward[k], sign * right + 0.0 * M, 1e-8)


def with_dynamics(cell: arm.Cell, seed: int) -> arm.Cell:
    """Return a cell whose joints have motors, friction and springs, at random."""
    rng = np.random.default_rng(seed)
    fields = ("motor_inertia", "damping", "friction", "stiffness", "rest")
    manipulators = []
    for manipulator in cell.manipulators:
        links = []
        for link, drives in zip(manipulator.links, manipulator.drives, strict=True):
            if len(drives) == 1:
                drawn = dict(zip(fields, rng.uniform(0.1, 2.0, 5), strict=True))
                links.append(link.replace(dynamics=arm.JointDynamics(**drawn)))
            else:
                links.append(link)
        manipulators.append(manipulator.replace(links=links))
    return cell.replace(manipulators=manipulators)


@pytest.mark.parametrize("name", EXAMPLES)
def test_derivatives_are_those_of_differences(name: str) -> None:
    cell = with_inertias(arm.example(name), 0)
    assert_derivatives(cell, vectors(cell, 1, 4))


def test_loops_with_motors_friction_and_springs() -> None:
    cell = with_dynamics(with_inertias(arm.example("delta"), 0), 1)
    q, qd, qdd = vectors(cell, 2, 4)
    assert_derivatives(cell, np.array([q, qd + np.sign(qd), qdd]))


def test_motors_friction_and_springs_of_an_arm() -> None:
    cell = with_dynamics(with_inertias(arm.example("pan_tilt"), 3), 4)
    q, qd, qdd = vectors(cell, 5, 4)
    assert_derivatives(cell, np.array([q, qd + np.sign(qd), qdd]))


def test_chosen_joints_and_a_gravity_of_its_own() -> None:
    cell = with_inertias(arm.example("ur5e_on_oval"), 6)
    names = [cell.joint_names[k] for k in (4, 0, 2)]
    given = vectors(cell, 7, 4)[:, :, (4, 0, 2)]
    assert_derivatives(cell, given, joints=names, gravity=(1.0, -2.0, 3.0))


def test_long_chains_run_as_python(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = with_inertias(arm.example("irb2400"), 8)
    given = vectors(cell, 9, 3)
    compiled = cell.inverse_dynamics_derivatives()(*given)
    monkeypatch.setattr(setting, "MOST_COMPILED", 3)
    other = with_inertias(arm.example("irb2400"), 8)
    kernel = other.inverse_dynamics_derivatives()
    assert kernel.lanes == 1
    out = tuple(np.empty((3, 6, 6)) for _ in range(3))
    assert kernel(*given, out=out) is out
    for found, expected in zip(out, compiled, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    with pytest.raises(ShapeError, match=r"out= an array \(3, 6, 6\) and"):
        kernel(*given, out=out[0])
