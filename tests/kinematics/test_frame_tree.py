"""The tree of frames in a state: parents, children, ancestors, and how it prints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from armillary import Cell, Link, Manipulator, Mount, State
from armillary.errors import ModelError, StateError, UnknownName
from armillary.model.joints.opaque import OpaqueJoint
from armillary.testing.samples import random_pose

SEEDS = range(4)


def loaded(cell: Any, seed: int) -> State:
    """Return a random state: the part held by a tool, the tray by the part."""
    random = np.random.default_rng(seed)
    state = cell.home.replace(q=random.normal(size=len(cell.joint_names)))
    state = state.place("part", random_pose(random))
    return state.grip("part", by="arm_tool4").grip("tray", by="part_top")


@pytest.mark.parametrize("seed", SEEDS)
def test_parents_and_children_are_each_others_inverse(
    random_cell: Any, seed: int
) -> None:
    cell = random_cell(seed)
    for state in (cell.home, loaded(cell, seed)):
        for name in cell.frame_names:
            parent = cell.parent(name, state)
            assert (parent is None) == (name == "world")
            if parent is not None:
                assert cell.children(parent, state).count(name) == 1
            for child in cell.children(name, state):
                assert cell.parent(child, state) == name


def test_parents_follow_attachments(random_cell: Any) -> None:
    cell = random_cell(1)
    state = loaded(cell, 1)
    assert cell.parent("part_body", cell.home) == "world"
    assert cell.parent("part_body", state) == "arm/arm_tool4"
    assert cell.parent("arm_tool4", state) == "arm/arm4"
    assert cell.parent("arm_base", state) == "track/track1"
    assert cell.children("arm_tool4", state) == ("part/part_body",)
    assert cell.children("part_top", state) == ("tray/tray_body",)
    assert "tray/tray_body" in cell.children("world", cell.home)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_common_ancestor_is_the_nearest_that_carries_all(
    random_cell: Any, seed: int
) -> None:
    cell = random_cell(seed)
    random = np.random.default_rng(seed)
    for state in (cell.home, loaded(cell, seed)):

        def line(name: str, state: State = state) -> list[str]:
            above = cell.parent(name, state)
            return [name] if above is None else [name, *line(above)]

        for _ in range(20):
            names = random.choice(cell.frame_names, size=random.integers(1, 4)).tolist()
            found = cell.common_ancestor(names, state)
            shared = set.intersection(*(set(line(name)) for name in names))
            assert found in shared
            assert max(shared, key=lambda name: len(line(name))) == found


def test_an_ancestor_of_itself(random_cell: Any) -> None:
    cell = random_cell(0)
    assert cell.common_ancestor(["arm_tool4"], cell.home) == "arm/arm_tool4"
    assert cell.common_ancestor(["arm4", "arm_tool4"], cell.home) == "arm/arm4"
    assert cell.common_ancestor(["part_top", "arm4"], cell.home) == "world"
    held = cell.home.grip("part", by="arm_tool4")
    assert cell.common_ancestor(["part_top", "arm4"], held) == "arm/arm4"
    for names in ([], "arm4"):
        with pytest.raises(ModelError, match="list of frames"):
            cell.common_ancestor(names, held)
    with pytest.raises(UnknownName, match="Did you mean 'arm_tool4'"):
        cell.common_ancestor(["arm_tol4"], held)
    with pytest.raises(StateError, match="0 joint positions"):
        cell.common_ancestor(["arm4"], State())


@pytest.mark.parametrize("seed", SEEDS)
def test_the_tree_prints_where_every_frame_is(random_cell: Any, seed: int) -> None:
    cell = random_cell(seed)
    state = loaded(cell, seed)
    header, *lines = cell.tree(state).splitlines()
    assert " ".join(header.split()) == "frame joint type joint q x [m] y [m] z [m]"
    assert len({len(line) for line in (header, *lines)}) == 1
    seen: list[str] = []
    for line in lines:
        name = line.split("─ ")[-1].split()[0]
        name = name if name == "world" else cell.qualified(name)
        seen.append(name)
        numbers = [float(text) for text in line.split()[-3:]]
        expected = cell.pose(name, state)[:3, 3]
        np.testing.assert_allclose(numbers, expected, atol=0.5001e-4)
    assert sorted(seen) == sorted(cell.frame_names)


def test_the_tree_tells_coordinates_and_who_is_attached(random_cell: Any) -> None:
    cell = random_cell(3)
    state = loaded(cell, 3)
    text = cell.tree(state)
    assert text.count("attached") == 2
    assert cell.tree() == cell.tree(cell.home)
    assert "attached" not in cell.tree()
    row = next(line for line in text.splitlines() if "arm_joint5 = -0.7" in line)
    follower = -0.7 * state.q[cell.joint("arm_joint0")] + 0.2
    assert float(row.split()[-4]) == pytest.approx(follower, abs=0.5001e-4)


def test_names_with_slashes_and_escapes() -> None:
    table = Manipulator(
        name="table", links=[Link(name="a/b"), Link(name="c\x1b[2J", parent="a/b")]
    )
    left = Manipulator(name="left", links=[Link(name="base")])
    cell = Cell(
        manipulators=[table, left], mounts=[Mount(manipulator="left", on="a/b")]
    )
    assert cell.parent("left/base", cell.home) == "table/a/b"
    assert set(cell.children("a/b", cell.home)) == {"table/c\x1b[2J", "left/base"}
    assert "\x1b" not in cell.tree()


def test_the_tree_of_nothing_and_of_a_long_chain() -> None:
    assert len(Cell().tree().splitlines()) == 2
    links = [Link(name="0")]
    links += [Link(name=str(k), parent=str(k - 1)) for k in range(1, 3000)]
    cell = Cell(manipulators=[Manipulator(name="chain", links=links)])
    lines = cell.tree().splitlines()
    assert len(lines) == 3002
    assert max(map(len, lines)) < 140
    assert cell.common_ancestor(["0", "2999"], cell.home) == "chain/0"


def test_positions_behind_a_joint_of_an_unknown_type_are_left_open() -> None:
    links = [
        Link(name="base"),
        Link(name="a", parent="base", joint=OpaqueJoint(kind="Zap")),
        Link(name="b", parent="a"),
        Link(name="c", parent="base"),
    ]
    cell = Cell(manipulators=[Manipulator(name="arm", links=links)])
    lines = cell.tree().splitlines()
    assert [line.split()[-3:] for line in lines[1:]] == [
        ["0.0000", "0.0000", "0.0000"],
        ["0.0000", "0.0000", "0.0000"],
        ["?", "?", "?"],
        ["?", "?", "?"],
        ["0.0000", "0.0000", "0.0000"],
    ]
