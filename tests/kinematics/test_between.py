"""A pair of frames over many states, and frames that belong together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.errors import StateError
from armillary.testing.samples import random_pose
from four_bar import four_bar


def test_many_states_are_the_single_poses(random_cell: Any) -> None:
    cell = random_cell(0)
    random = np.random.default_rng(0)
    held = cell.home.grip("part", by="arm_tool4")
    states = [held.replace(q=random.normal(size=len(held.q))) for _ in range(9)]
    pair = cell.between("part_top", held, relative_to="track0")
    expected = [cell.pose("part_top", s, relative_to="track0") for s in states]
    np.testing.assert_allclose(pair.many(states), expected, atol=1e-11)
    np.testing.assert_allclose(pair(states[3]), expected[3], atol=1e-11)


def test_a_stale_path_is_refused(random_cell: Any) -> None:
    cell = random_cell(1)
    held = cell.home.grip("part", by="arm_tool4")
    pair = cell.between("part_top", held)
    with pytest.raises(StateError, match="gripped or released"):
        pair(held.release("part"))
    with pytest.raises(StateError, match="state 1"):
        pair.many([held, cell.home])


def test_bases_on_the_path_may_stand_anywhere(random_cell: Any) -> None:
    cell = random_cell(1)
    random = np.random.default_rng(1)
    held = cell.home.grip("part", by="arm_tool4")
    pair = cell.between("part_top", held)
    X = random_pose(random)
    moved = held.replace(q=random.normal(size=len(held.q)))
    states = [
        held,
        moved,
        moved.release("part").grip("part", by="arm_tool4"),  # with rounding
        moved.attach("part", "arm_tool4", pose=X, replace=True),
    ]
    expected = [cell.pose("part_top", state) for state in states]
    np.testing.assert_allclose(pair.many(states), expected, atol=1e-11)
    q = np.array(moved.q)
    np.testing.assert_allclose(pair.kernel(q), expected[1], atol=1e-11)
    loose = cell.between("tray_top", cell.home, relative_to="arm_tool4")
    placed = cell.home.place("tray", random_pose(random))
    np.testing.assert_allclose(
        loose(placed),
        cell.pose("tray_top", placed, relative_to="arm_tool4"),
        atol=1e-11,
    )


def test_what_is_not_on_the_path_may_change(random_cell: Any) -> None:
    cell = random_cell(1)
    pair = cell.between("arm_tool4", cell.home)
    other = cell.home.grip("part", by="arm_tool4")
    np.testing.assert_allclose(pair(other), cell.pose("arm_tool4", other), atol=1e-11)


def test_rigid_groups_follow_attachments(random_cell: Any) -> None:
    cell = random_cell(2)
    group = cell.rigid_with("arm5")
    assert group[0] == "arm/arm5"
    assert "arm/arm_tool5" in group
    assert "part/part_top" not in group
    held = cell.home.grip("part", by="arm_tool5")
    assert "part/part_top" in cell.rigid_with("arm5", held)
    state = held.replace(q=np.random.default_rng(0).normal(size=len(held.q)))
    for name in cell.rigid_with("arm5", held):
        np.testing.assert_allclose(
            cell.pose(name, state, relative_to="arm5"),
            cell.pose(name, held, relative_to="arm5"),
            atol=1e-11,
        )


def test_states_of_all_branches_are_taken() -> None:
    cell = arm.Cell(manipulators=[four_bar()])
    rng = np.random.default_rng(2)
    states = [
        state
        for q in rng.uniform(-1.0, 1.0, (5, 1))
        for state in cell.branches(q).values()
    ]
    pair = cell.between("rocker", states[0])
    expected = [cell.pose("rocker", state) for state in states]
    np.testing.assert_allclose(pair.many(states), expected, atol=1e-9)
