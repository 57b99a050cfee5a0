"""What is carried: mass that no grip changes, and inertia against sums over points."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from armillary import Cell, State
from armillary.errors import ModelError, UnknownName
from armillary.spatial.inertia import SpatialInertia
from armillary.testing.samples import random_pose

Array = NDArray[np.float64]
SEEDS = range(4)


def weighed(cell: Cell, seed: int) -> tuple[Cell, dict[str, tuple[Array, Array]]]:
    """Return the cell with every link made of a few points: masses, positions.

    The positions are in the links' outer frames.
    """
    random = np.random.default_rng(seed)
    points: dict[str, tuple[Array, Array]] = {}
    for manipulator in cell.manipulators:
        links = []
        for link in manipulator.links:
            masses, at = random.uniform(0.1, 2.0, 5), random.normal(size=(5, 3))
            inertia = SpatialInertia.zero()
            for m, p in zip(masses, at, strict=True):
                inertia += SpatialInertia.from_centre(m, p, np.zeros((3, 3)))
            links.append(msgspec.structs.replace(link, inertia=inertia))
            outer = np.array([link.primary @ p for p in at], dtype=np.float64)
            points[f"{manipulator.name}/{link.name}"] = masses, outer
        cell = cell.exchange(msgspec.structs.replace(manipulator, links=tuple(links)))
    return cell, points


def summed(
    cell: Cell, state: State, points: dict[str, tuple[Array, Array]], to: str
) -> tuple[float, Array, Array]:
    """Mass, first moment and inertia of points about the origin of a frame."""
    mass, first, second = 0.0, np.zeros(3), np.zeros((3, 3))
    for name, (masses, at) in points.items():
        X = cell.pose(name, state, relative_to=to)
        for m, p in zip(masses, at @ X[:3, :3].T + X[:3, 3], strict=True):
            mass += m
            first += m * p
            second += m * (p @ p * np.eye(3) - np.outer(p, p))
    return mass, first, second


def subtree(cell: Cell, state: State, frame: str) -> set[str]:
    """All frames that stand on a frame."""
    children = set(cell.children(frame, state))
    return children.union(*(subtree(cell, state, child) for child in children))


def loaded(cell: Cell, seed: int) -> State:
    random = np.random.default_rng(seed)
    state = cell.home.replace(q=random.normal(size=len(cell.joint_names)))
    state = state.place("part", random_pose(random)).place("tray", random_pose(random))
    return state.grip("part", by="arm_tool4").grip("tray", by="part_top")


def assert_same(found: SpatialInertia, expected: tuple[float, Array, Array]) -> None:
    mass, first, second = expected
    assert found.mass == pytest.approx(mass, abs=1e-12)
    np.testing.assert_allclose(found.first_moment, first, atol=1e-10)
    np.testing.assert_allclose(found.rotational, second, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_it_is_the_sum_over_all_points_that_a_frame_carries(
    random_cell: Any, seed: int
) -> None:
    cell, points = weighed(random_cell(seed), seed)
    state = loaded(cell, seed)
    for frame in (
        "world",
        "arm/arm_base",
        "arm/arm2",
        "arm/arm_tool4",
        "tray/tray_top",
    ):
        above = subtree(cell, state, frame)
        some = {name: each for name, each in points.items() if name in above}
        for to in (frame, "world", "track0"):
            found = cell.carried(frame, state, relative_to=to)
            assert_same(found, summed(cell, state, some, to))
        default = cell.carried(frame, state)
        assert default == cell.carried(frame, state, relative_to=frame)
    assert cell.carried("tray_top", state) == SpatialInertia.zero()


@pytest.mark.parametrize("seed", SEEDS)
def test_no_grip_changes_the_whole(random_cell: Any, seed: int) -> None:
    cell, points = weighed(random_cell(seed), seed)
    held = loaded(cell, seed)
    free = held.release("tray").release("part")
    whole = summed(cell, held, points, "world")
    for state in (held, free, held.grip("part", by="arm0", replace=True)):
        assert_same(cell.carried("world", state), whole)
    random = np.random.default_rng(seed)
    moved = held.replace(q=random.normal(size=len(held.q)))
    assert cell.carried("world", moved).mass == pytest.approx(whole[0])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_payload_changes_by_what_is_gripped(random_cell: Any, seed: int) -> None:
    cell, points = weighed(random_cell(seed), seed)
    held = loaded(cell, seed)
    empty = held.release("part")
    assert cell.carried("arm_tool4", empty) == SpatialInertia.zero()
    both = {name: points[name] for name in ("part/part_body", "tray/tray_body")}
    assert_same(cell.carried("arm_tool4", held), summed(cell, held, both, "arm_tool4"))
    # Rigidly held: the same in the tool's axes, wherever the arm goes.
    moved = held.replace(q=np.zeros(len(held.q)))
    expected = np.array(cell.carried("arm_tool4", held).matrix())
    found = np.array(cell.carried("arm_tool4", moved).matrix())
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_several_frames_count_what_they_share_once(random_cell: Any) -> None:
    cell, points = weighed(random_cell(1), 1)
    state = loaded(cell, 1)
    whole = cell.carried("world", state)
    twice = cell.carried(["world", "arm_base"], state)
    assert twice.mass == pytest.approx(whole.mass)
    some = cell.carried(["part_top", "arm_tool4"], state, relative_to="world")
    both = {name: points[name] for name in ("part/part_body", "tray/tray_body")}
    assert_same(some, summed(cell, state, both, "world"))


def test_bad_questions(random_cell: Any) -> None:
    cell = random_cell(0)
    assert cell.carried("world", cell.home) == SpatialInertia.zero()
    with pytest.raises(ModelError, match="at least one frame"):
        cell.carried([], cell.home)
    with pytest.raises(UnknownName, match="Did you mean 'arm_tool4'"):
        cell.carried("arm_tol4", cell.home)
    with pytest.raises(UnknownName, match="no frame"):
        cell.carried("arm4", cell.home, relative_to="floor")
