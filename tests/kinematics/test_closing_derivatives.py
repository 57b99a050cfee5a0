"""Derivatives of kernels of closed loops, forward and reverse, of any order."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.errors import KernelError, UnknownName

FRAMES = {"five_bar": "tip", "stewart": "tool"}


@pytest.mark.parametrize("name", sorted(FRAMES))
def test_both_modes_are_the_jacobian(name: str) -> None:
    """Tangents are those of another question; cotangents their transpose."""
    cell = arm.example(name)
    fk, rng = cell.fk(FRAMES[name]), np.random.default_rng(0)
    n = len(cell.joint_names)
    q = np.array(cell.home.q) + rng.uniform(-0.05, 0.05, (3, 2, n))
    v, w = rng.normal(size=n), rng.normal(size=(4, 4))
    rates = fk.jvp()(q, v)
    J = cell.jacobian(FRAMES[name])(q)
    np.testing.assert_allclose(rates[..., :3, 3], J[..., :3, :] @ v, atol=1e-13)
    turn = rates[..., :3, :3] @ np.swapaxes(fk(q)[..., :3, :3], -1, -2)
    spin = np.stack([turn[..., 2, 1], turn[..., 0, 2], turn[..., 1, 0]], -1)
    np.testing.assert_allclose(spin, J[..., 3:, :] @ v, atol=1e-13)
    back = fk.vjp()(q, w)
    np.testing.assert_allclose(back @ v, np.sum(rates * w, (-2, -1)), atol=1e-12)
    np.testing.assert_array_equal(fk.vjp()(q[0, 0], w), back[0, 0])


def test_second_derivatives_by_numbers_of_the_cell() -> None:
    """Differences fall as the square of the step."""
    cell = arm.example("five_bar")
    names = ["five_bar/left.precursor.x", "five_bar/right.precursor.rz"]
    fk, rng = cell.fk("tip", parameters=names), np.random.default_rng(1)
    q, p = np.array(cell.home.q), np.array([0.01, -0.02])
    w, v = rng.normal(size=(4, 4)), rng.normal(size=2)
    slope = fk.vjp(["parameters"])
    found = slope.jvp(["q"])(q, p, w, v)

    def error(h: float) -> Any:
        ends = slope(q + h * v, p, w), slope(q - h * v, p, w)
        return np.abs((ends[0] - ends[1]) / (2 * h) - found).max()

    first = [fk(q, p + s * 1e-6 * v) for s in (1.0, -1.0)]
    rate = np.sum((first[0] - first[1]) * w) / 2e-6
    assert slope(q, p, w) @ v == pytest.approx(rate, abs=1e-8)
    assert error(1e-3) < 1e-4
    assert error(1e-3) / error(1e-2) == pytest.approx(0.01, rel=0.05)


def test_on_the_branch_of_a_state_with_other_joints_bound() -> None:
    cell = arm.example("five_bar")
    q, w = np.array(cell.home.q), np.random.default_rng(2).normal(size=(4, 4))
    (one, *_, other) = cell.branches(q).values()
    joints = [cell.joint_names[0]]
    for state in (one, other):
        fk = cell.fk("tip", joints=joints, state=state)
        ends = [fk(q[:1] + h) for h in (1e-6, -1e-6)]
        found = fk.vjp()(q[:1], w)
        assert found == pytest.approx(np.sum((ends[0] - ends[1]) * w) / 2e-6, abs=1e-8)


def test_rows_that_do_not_close_and_rows_near_a_singularity() -> None:
    """Where forearms come in line slopes grow; beyond, all of a row is NaN."""
    cell = arm.example("five_bar")
    fk = cell.fk("tip")
    slope, w = fk.vjp(), np.zeros((4, 4))
    w[0, 3] = 1.0
    # Forearms are in line where cranks have turned apart by about 0.93446.
    apart = np.array([0.9, 0.93, 0.934, 1.0])
    q = np.array(cell.home.q) + apart[:, None] * [1.0, -1.0]
    found = slope(q, w)
    assert np.isnan(found[3]).all()
    assert np.isnan(slope(q[3], 0.0 * w)).all()
    J = cell.jacobian("tip")(q[:3])[:, 0]
    np.testing.assert_allclose(found[:3], J, rtol=1e-12)
    assert (np.diff(np.abs(found[:3, 0])) > 0.0).all()


def test_names_and_what_a_pickle_leaves_behind() -> None:
    fk = arm.example("five_bar").fk("tip")
    with pytest.raises(UnknownName, match="Did you mean 'q'"):
        fk.vjp(["Q"])
    with pytest.raises(KernelError, match="pickle their derivatives"):
        pickle.loads(pickle.dumps(fk)).vjp()
    slope = fk.vjp()
    q, w = np.array([1.0, 2.0]), np.eye(4)
    again = pickle.loads(pickle.dumps(slope))
    np.testing.assert_array_equal(again(q, w), slope(q, w))
