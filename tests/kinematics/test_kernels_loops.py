"""Kernels of closed loops that share programs."""

from __future__ import annotations

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ShapeError
from four_bar import four_bar


def test_other_joints_stay_at_home() -> None:
    cell = arm.example("delta")
    whole = cell.fk("flange")
    for k, name in enumerate(cell.joint_names):
        q = np.array(cell.home.q)
        q[k] += 0.2
        alone = cell.fk("flange", joints=[name])
        np.testing.assert_allclose(alone(q[k : k + 1]), whole(q), atol=1e-12)


def test_equal_mechanisms_in_a_cell_have_their_own_joints() -> None:
    one = arm.example("delta")
    (delta,) = one.manipulators
    pair = [delta.replace(name=name) for name in ("left", "right")]
    cell = arm.Cell(manipulators=pair)
    q = np.concatenate([one.home.q] * 2) + 0.05 * np.arange(6)
    for name, own in (("left", q[:3]), ("right", q[3:])):
        base = f"{name}/{delta.links[0].name}"
        fk = cell.fk(f"{name}/flange", relative_to=base)
        expected = one.fk("flange", relative_to=delta.links[0].name)(own)
        np.testing.assert_allclose(fk(q), expected, atol=1e-12)


def test_passive_joints_of_another_number_are_refused() -> None:
    cell = arm.example("delta")
    with pytest.raises(ShapeError, match=r"near of shape \(..., 3\)"):
        cell.close_loops(cell.home.q, near=[1.0])


def test_loops_that_no_input_moves_stay_as_in_the_state() -> None:
    arms = [four_bar(name="left"), four_bar(name="right")]
    cell = arm.Cell(manipulators=arms)
    joints = ["left/crank"]
    at_home = cell.fk("right/rocker", relative_to="left/crank", joints=joints)
    assert "passive" not in {port.name for port in at_home.program.inputs}
    q = np.array([0.3, cell.home.q[1]])
    whole = cell.fk("right/rocker", relative_to="left/crank")
    np.testing.assert_allclose(at_home(q[:1]), whole(q), atol=1e-12)
    for state in cell.branches([0.3, 0.7]).values():
        fk = cell.fk(
            "right/rocker", relative_to="left/crank", joints=joints, state=state
        )
        expected = cell.pose("right/rocker", state, relative_to="left/crank")
        np.testing.assert_allclose(fk([0.3]), expected, atol=1e-15)
        J = cell.jacobian("right/rocker", joints=joints, state=state)([0.3])
        assert not J.any()
