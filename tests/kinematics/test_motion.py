"""Twists in a state are the rates at which poses change, through grips and bases."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from armillary import Pose, State
from armillary.errors import StateError, UnknownName
from armillary.kinematics.placement import BaseVelocity
from armillary.spatial import rotation as rot
from armillary.testing.samples import random_pose

Array = NDArray[np.float64]
SEEDS = range(4)
STILL = np.zeros(6)


def moving(cell: Any, seed: int) -> State:
    """Return a random state: tray and part loose, every joint and the tray moving."""
    random = np.random.default_rng(seed)
    n = len(cell.joint_names)
    state = cell.home.replace(q=random.normal(size=n), qd=random.normal(size=n))
    state = state.place("part", random_pose(random)).place("tray", random_pose(random))
    return state.with_velocity(
        "tray", linear=random.normal(size=3), angular=random.normal(size=3)
    )


def later(cell: Any, state: State, h: float) -> State:
    """Return the state after a short time: joints and free bases moved on."""
    qd = state.qd if state.qd.size else np.zeros(len(state.q))
    result = state.replace(q=np.array(state.q) + h * qd)
    for V in state.base_velocities:
        k = cell.index[V.manipulator]
        X = cell.pose(f"{V.manipulator}/{cell.manipulators[k].links[0].name}", state)
        turned = np.array(rot.exp(tuple(h * w for w in V.angular))) @ X[:3, :3]
        moved = Pose.from_rotation_position(turned, X[:3, 3] + h * np.array(V.linear))
        result = result.place(V.manipulator, moved)
    return result


def slope(cell: Any, state: State, frame: str, to: str, h: float) -> Array:
    """The twist of a frame relative to another, by central differences."""
    before, now, after = (
        cell.pose(frame, later(cell, state, step), relative_to=to)
        for step in (-h, 0.0, h)
    )
    rate = (after - before) / (2.0 * h)
    spin = rate[:3, :3] @ now[:3, :3].T
    return np.array([*rate[:3, 3], spin[2, 1], spin[0, 2], spin[1, 0]])


def states(cell: Any, seed: int) -> list[State]:
    """States in which more and more hangs on something that moves."""
    state = moving(cell, seed)
    on_tool = state.grip("part", by="arm_tool4")
    on_tray = state.grip("part", by="tray_top")
    return [state, on_tool, on_tray, on_tool.grip("tray", by="part_top")]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", SEEDS)
def test_twists_are_the_slopes_of_poses(random_cell: Any, seed: int) -> None:
    cell = random_cell(seed)
    for state in states(cell, seed):
        for frame in ("arm_tool4", "part_top", "tray_top", "world"):
            for to in ("world", "tray_top", "arm2", "part_top"):
                V = cell.twist(frame, state, relative_to=to)
                errors = [
                    np.abs(slope(cell, state, frame, to, h) - V).max()
                    for h in (2e-3, 1e-3)
                ]
                scale = 1.0 + np.abs(V).max()
                assert errors[1] < 1e-4 * scale
                # Central differences: half the step, a quarter of the error.
                assert errors[1] < 0.3 * errors[0] + 1e-9 * scale


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_attached_moves_as_one_with_its_holder(
    random_cell: Any, seed: int
) -> None:
    cell = random_cell(seed)
    state = moving(cell, seed)
    np.testing.assert_array_equal(cell.twist("part_top", state), STILL)
    held = state.grip("part", by="arm_tool4").grip("tray", by="part_top")
    assert held.base_velocities == ()
    for frame in cell.rigid_with("arm_tool4", held):
        V = cell.twist(frame, held, relative_to="arm_tool4")
        np.testing.assert_allclose(V, STILL, atol=1e-12)
        np.testing.assert_allclose(
            cell.twist(frame, held, point="arm_tool4"),
            cell.twist("arm_tool4", held),
            atol=1e-12,
        )
    np.testing.assert_array_equal(
        cell.twist("part_top", held.release("tray").release("part")), STILL
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_kernels_and_states_agree(random_cell: Any, seed: int) -> None:
    cell = random_cell(seed)
    state = moving(cell, seed)
    options = {"relative_to": "arm1", "point": "arm_tool5", "axes": "track0"}
    for kinds in ({}, options):
        expected = cell.velocity("arm_tool4", **kinds)(state.q, state.qd)
        found = cell.twist("arm_tool4", state, **kinds)
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_relative_twists_add_up(random_cell: Any, seed: int) -> None:
    cell = random_cell(seed)
    state = moving(cell, seed).grip("part", by="arm_tool4")
    for a, b in (("tray_top", "part_top"), ("part_top", "arm0"), ("arm5", "tray_top")):
        common = {"point": a, "axes": "world"}
        np.testing.assert_allclose(
            cell.twist(a, state, relative_to=b, **common),
            cell.twist(a, state, **common) - cell.twist(b, state, **common),
            atol=1e-12,
        )


def test_a_base_at_rest_is_not_a_velocity(random_cell: Any) -> None:
    cell = random_cell(0)
    state = cell.home
    moved = state.with_velocity("tray", linear=(1, 0, 0))
    assert moved != state
    assert moved.with_velocity("tray") == state
    np.testing.assert_array_equal(cell.twist("tray_body", moved), [1, 0, 0, 0, 0, 0])
    assert set(moved.difference(state)) == {"velocity of tray"}
    again = cell.bind(State.from_json(moved.to_json()))
    assert again == moved
    assert moved.grip("tray", by="arm0").base_velocities == ()
    assert moved.place("tray", Pose.identity()).base_velocities == moved.base_velocities


def test_what_cannot_move_freely_is_refused(random_cell: Any) -> None:
    cell = random_cell(0)
    held = cell.home.grip("part", by="arm_tool4")
    with pytest.raises(StateError, match="carried by 'arm/arm_tool4' and moves"):
        held.with_velocity("part", linear=(1, 0, 0))
    with pytest.raises(StateError, match="fixed"):
        held.with_velocity("arm", linear=(1, 0, 0))
    with pytest.raises(UnknownName, match="Did you mean 'tray'"):
        held.with_velocity("tra", linear=(1, 0, 0))
    for bad in ((1, 2), (math.nan, 0, 0), "up", 3.0):
        with pytest.raises(StateError, match="three finite numbers"):
            held.with_velocity("tray", linear=bad)
    V = BaseVelocity(manipulator="part", linear=(1, 0, 0))
    stranger = State(q=held.q, placements=held.placements, base_velocities=(V,))
    with pytest.raises(StateError, match="moves with it"):
        cell.bind(stranger)
    with pytest.raises(UnknownName, match="no manipulator"):
        cell.bind(State(q=held.q, base_velocities=(BaseVelocity(manipulator="x"),)))
