"""What stands in for a gripped frame: it is where that frame is, for all joints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.ik.stand_in import stand_in
from armillary.kinematics.kernels import selection_of
from armillary.model.link_poses import poses_of
from armillary.testing.samples import random_pose

PARTS = ("cart", "part", "other")


@pytest.fixture(scope="module")
def cell() -> arm.Cell:
    """Return an arm on a cart, and parts, all of which states may move."""
    random = np.random.default_rng(0)
    links = [arm.Link(name="base")]
    for k in range(3):
        joint = arm.joints.Revolute(precursor=random_pose(random))
        links.append(arm.Link(name=f"link{k}", parent=links[-1].name, joint=joint))
    tool = arm.joints.Fixed(precursor=random_pose(random))
    links.append(arm.Link(name="tool", parent="link2", joint=tool))
    parts = [
        arm.Manipulator(
            name=name,
            links=[
                arm.Link(
                    name=f"{name}_body",
                    frames=[arm.Frame(name=f"{name}_mark", pose=random_pose(random))],
                )
            ],
        )
        for name in PARTS
    ]
    robot = arm.Manipulator(name="robot", links=links)
    mount = arm.Mount(
        manipulator="robot", on="cart_mark", pose=random_pose(random), bolted=False
    )
    return arm.Cell(name="shop", manipulators=[*parts, robot], mounts=[mount])


def found(cell: arm.Cell, state: arm.State, frame: str, to: str) -> Any:
    ends = [cell.frame(to), cell.frame(frame)]
    selection = selection_of(cell, None, state, ends)
    return stand_in(state.tree, ends[1], ends[0], selection), selection


@pytest.mark.parametrize("to", ["world", "cart_mark", "base", "link0", "other_mark"])
@pytest.mark.parametrize("stacked", [False, True])
def test_it_is_where_the_frame_is(cell: arm.Cell, to: str, stacked: bool) -> None:
    random = np.random.default_rng(1)
    state = cell.home.place("cart", random_pose(random))
    state = state.attach("part", "tool", pose=random_pose(random))
    frame = "part_mark"
    if stacked and to != "other_mark":
        state = state.attach("other", "part_mark", pose=random_pose(random))
        frame = "other_mark"
    other, selection = found(cell, state, frame, to)
    for q in random.uniform(-3.0, 3.0, (3, 3)).tolist():
        whole, X_to = selection.vector(q), cell.frame(to)
        (X,) = poses_of(state.tree, whole, [cell.frame(frame)], X_to)
        (Y,) = poses_of(other.tree, whole, [other.frame], X_to)
        np.testing.assert_allclose(Y.matrix(), X.matrix(), atol=1e-14)


def test_all_parts_have_the_same(cell: arm.Cell) -> None:
    one, _ = found(cell, cell.home.attach("part", "tool"), "part_mark", "base")
    two, _ = found(cell, cell.home.attach("other", "link2"), "other_body", "base")
    assert one.frame == two.frame
    assert one.selection == two.selection


def test_what_no_state_moves_has_none(cell: arm.Cell) -> None:
    state = cell.home.attach("part", "tool")
    assert found(cell, state, "tool", "base")[0] is None
    still = cell.home.attach("part", "cart_mark")
    assert found(cell, still, "part_mark", "world")[0] is None
