"""Kernels of closed loops that share programs."""

from __future__ import annotations

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ShapeError


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
