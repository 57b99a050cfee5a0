"""Cells with many parts: the same answers as with few, in the order of names."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from armillary import Cell, Link, Manipulator, Mount, Pose, State
from armillary.errors import StateError
from armillary.kinematics.placement import Placement
from armillary.model.frame import Frame
from armillary.model.tree import Tree
from armillary.testing.samples import random_pose

COUNT = 60


@pytest.fixture(scope="module")
def cell() -> Cell:
    """Return a crane and many parts, some of them standing on others."""
    top = Frame(name="top", pose=Pose.translation(0, 0, 0.1))
    parts = [
        Manipulator(name=f"p{k}", links=[Link(name="body", frames=[top])])
        for k in range(COUNT)
    ]
    crane = Manipulator(name="crane", links=[Link(name="hook")])
    mounts = [
        Mount(manipulator=f"p{k}", on=f"p{k - 1}/top", bolted=False)
        for k in range(1, 4)
    ]
    return Cell(manipulators=[crane, *parts], mounts=mounts)


def test_the_order_of_grips_does_not_matter(cell: Cell) -> None:
    random = np.random.default_rng(0)
    states: list[State] = []
    for _ in range(3):
        state = cell.home
        for k in random.permutation(COUNT):
            state = state.grip(f"p{k}", by="hook")
        states.append(state)
    assert states[0] == states[1] == states[2]
    assert len({state.to_json() for state in states}) == 1
    assert set(states[0].children("crane/hook")) == {f"p{k}" for k in range(COUNT)}
    names = [placement.manipulator for placement in states[0].placements]
    assert names == sorted(names)


def test_steps_of_a_state_give_the_tree_of_the_whole(cell: Cell) -> None:
    """What grips and releases change one by one is what a sent state says at once."""
    random = np.random.default_rng(1)
    state = cell.home
    for _ in range(200):
        part, other = (f"p{k}" for k in random.choice(COUNT, 2, replace=False))
        try:
            if part in state.attachments:
                state = state.release(part)
            elif random.random() < 0.3:
                state = state.place(part, Pose.translation(*random.normal(size=3)))
            else:
                state = state.attach(part, f"{other}/top")
        except StateError as error:
            assert "carried by the part itself" in str(error)
    again = cell.bind(State.from_json(state.to_json()))
    assert again == state
    assert again.tree.bases == state.tree.bases
    for part in (f"p{k}" for k in range(COUNT)):
        assert again.parent(part) == state.parent(part)


def test_a_tower_that_is_mounted_on_itself_is_refused(cell: Cell) -> None:
    tower = [
        Placement(manipulator=f"p{k}", on=f"p{(k + 1) % COUNT}/top")
        for k in range(COUNT)
    ]
    with pytest.raises(StateError, match="attached to itself"):
        cell.bind(State(placements=tuple(tower)))


def test_rigid_groups_follow_towers(cell: Cell) -> None:
    state = cell.home
    for k in range(1, COUNT):
        state = state.attach(f"p{k}", f"p{k - 1}/top")
    assert len(cell.rigid_with("p0/body", state)) == len(cell.frame_names)
    with pytest.raises(StateError, match="carried by the part itself"):
        state.attach("p0", f"p{COUNT - 1}/top")


def test_many_parts_are_placed_at_once(cell: Cell) -> None:
    random = np.random.default_rng(3)
    names = [f"p{k}" for k in random.permutation(range(4, COUNT))]
    poses = {name: random_pose(random) for name in names}
    one_by_one = cell.home.place("p7", random_pose(random))
    at_once = one_by_one.place_all(poses, relative_to="p7/top")
    X = Pose.from_matrix(cell.pose("p7/top", one_by_one))
    for name, pose in poses.items():
        one_by_one = one_by_one.place(name, X @ pose)
    assert at_once == one_by_one
    assert at_once.tree.bases == one_by_one.tree.bases
    matrices = [base.frame.pose.matrix() for base in at_once.tree.bases]
    np.testing.assert_array_equal(at_once.tree.base_matrices, matrices)
    assert cell.home.place_all({}) == cell.home
    with pytest.raises(StateError, match="'p9' is attached to 'crane/hook'"):
        cell.home.grip("p9", by="hook").place_all(poses)
    with pytest.raises(StateError, match="sheared"):
        cell.home.place_all(
            {"p4": Pose(((2.0, 0, 0), (0, 1, 0), (0, 0, 1)), (0, 0, 0))}
        )


@pytest.fixture(scope="module")
def boxes() -> Cell:
    """Return parts on the floor, one of which cannot be moved."""
    parts = [Manipulator(name=f"p{k}", links=[Link(name="it")]) for k in range(COUNT)]
    rock = Manipulator(name="rock", links=[Link(name="it")])
    return Cell(manipulators=[*parts, rock], mounts=[Mount(manipulator="rock")])


def test_trees_of_many_that_moved_are_those_of_one_after_the_other(boxes: Cell) -> None:
    random = np.random.default_rng(2)
    together = one_by_one = boxes.home
    for step in range(12):
        some = random.permutation(COUNT)[: (COUNT, 20, 9, 1)[step % 4]]
        poses = {f"p{k}": random_pose(random) for k in some}
        together = together.place_all(poses)
        for name, X_WB in poses.items():
            one_by_one = one_by_one.place(name, X_WB)
        if step == 5:  # others stand on what moves
            together, one_by_one = (
                state.attach("p1", "p2/it").attach("p3", "p1/it").release("p1")
                for state in (together, one_by_one)
            )
            together, one_by_one = (s.release("p3") for s in (together, one_by_one))
        a, b = together.tree, one_by_one.tree
        if step % 3 == 0:  # asked for, or left to later states
            assert a.bases == b.bases
        np.testing.assert_array_equal(a.base_matrices, b.base_matrices)
        assert [a.base(k) for k in range(COUNT)] == [b.base(k) for k in range(COUNT)]
        assert a.parents == b.parents
        assert a.movable == b.movable
        assert together == one_by_one
    fresh = boxes.bind(State.from_json(together.to_json()))
    assert fresh.tree.bases == together.tree.bases


def test_bases_of_many_that_moved_are_made_when_they_are_needed(boxes: Cell) -> None:
    random = np.random.default_rng(3)
    state, counts = boxes.home, list[int]()
    for _ in range(4):
        state = state.place_all({f"p{k}": random_pose(random) for k in range(COUNT)})
        assert "bases" not in vars(state.tree)
        gc.collect()
        counts.append(sum(isinstance(each, Tree) for each in gc.get_objects()))
    # Trees of earlier states are not kept by those that follow.
    assert counts == counts[:1] * 4
    assert state.tree.bases[0].pose == state.placements[0].pose


def test_many_among_which_one_is_fixed_or_attached_are_refused(boxes: Cell) -> None:
    poses = {f"p{k}": Pose.translation(k, 0, 0) for k in range(COUNT)}
    with pytest.raises(StateError, match="'rock'"):
        boxes.home.place_all({**poses, "rock": Pose.identity()})
    held = boxes.home.attach("p1", "p2/it")
    with pytest.raises(StateError, match="'p1' is attached"):
        held.place_all(poses)
