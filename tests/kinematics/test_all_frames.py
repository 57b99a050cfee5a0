"""All frames at once: many positions, towers of parts, cells too large to compile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from armillary import Cell, Link, Manipulator, Mount, Pose, State
from armillary.errors import ShapeError
from armillary.kinematics import poses as programs_of_poses
from armillary.model.frame import Frame
from armillary.testing.samples import random_joint, random_pose

SEEDS = range(4)


@pytest.fixture(params=["compiled", "interpreted"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Have all poses compiled, or computed as for cells that are too large for that."""
    if request.param == "interpreted":
        monkeypatch.setattr(programs_of_poses, "MOST_COMPILED", 0)
    return request.param


def tower(seed: int) -> tuple[Cell, State]:
    """Return an arm, a box bolted to a pallet, and six parts that hold each other."""
    random = np.random.default_rng(seed)
    links = [Link(name="base")]
    for k in range(3):
        parent = links[-1].name
        links.append(Link(name=f"l{k}", parent=parent, joint=random_joint(random)))
    robot = Manipulator(name="robot", links=links)
    parts = [
        Manipulator(
            name=f"p{k}",
            links=[
                Link(name="body", frames=[Frame(name="top", pose=random_pose(random))]),
                Link(name="knob", parent="body", joint=random_joint(random)),
            ],
        )
        for k in random.permutation(6)
    ]
    box = Manipulator(name="box", links=[Link(name="box")])
    cell = Cell(
        manipulators=[*parts[:3], robot, box, *parts[3:]],
        mounts=[
            Mount(manipulator="robot", pose=random_pose(random)),
            Mount(manipulator="box", on="p1/knob", pose=random_pose(random)),
            Mount(manipulator="p5", on="box", pose=random_pose(random), bolted=False),
        ],
    )
    state = cell.home
    for k in range(6):
        state = state.place(f"p{k}", random_pose(random)) if k != 5 else state
    state = state.grip("p0", by="robot/l2").grip("p1", by="p0/top")
    state = state.grip("p2", by="box").attach("p3", "p2/knob")
    return cell, state.replace(q=random.normal(size=len(state.q)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", SEEDS)
def test_towers_of_parts_stand_where_single_poses_say(seed: int, way: str) -> None:
    cell, state = tower(seed)
    poses = cell.poses(state)
    for name in cell.frame_names:
        np.testing.assert_allclose(poses[name], cell.pose(name, state), atol=1e-11)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("batch", [(), (1,), (3, 1, 2), (0,)])
def test_many_positions_are_as_many_states(
    seed: int, batch: tuple[int, ...], way: str
) -> None:
    cell, state = tower(seed)
    Q = np.random.default_rng(seed).normal(size=(*batch, len(state.q)))
    many = cell.poses(state, q=Q)
    assert many["world"].shape == (*batch, 4, 4)
    for row in np.ndindex(*batch):
        single = cell.poses(state.replace(q=Q[row]))
        for name, X in many.items():
            np.testing.assert_allclose(X[row], single[name], atol=1e-11)
    relative = many.relative("p3/knob", "p1/body")
    assert relative.shape == (*batch, 4, 4)
    with pytest.raises(ValueError, match="read-only"):
        many["p3/knob"][...] = 0.0


def test_a_wrong_number_of_joints_is_refused(way: str) -> None:
    cell, state = tower(0)
    for wrong in (np.zeros((5, 2)), 1.0, "up", [[1.0], [1.0, 2.0]], [1j] * 9):
        with pytest.raises(ShapeError, match="'fk' needs q"):
            cell.poses(state, q=wrong)


def test_states_that_differ_in_joints_share_their_layout() -> None:
    _, state = tower(0)
    moved: Any = state.replace(q=np.zeros(len(state.q)))
    assert moved.tree is state.tree
    assert moved.release("p3").tree is not state.tree


def test_cells_without_joints_or_frames(way: str) -> None:
    assert dict(Cell().poses(Cell().home)) == {}
    plate = Manipulator(name="plate", links=[Link(name="plate")])
    X = Pose.translation(1, 2, 3)
    for bolted in (True, False):
        mount = Mount(manipulator="plate", pose=X, bolted=bolted)
        cell = Cell(manipulators=[plate], mounts=[mount])
        assert np.array_equal(cell.poses(cell.home)["plate"], X.matrix())
        many = cell.poses(cell.home, q=np.zeros((5, 0)))["plate"]
        assert np.array_equal(many, np.broadcast_to(X.matrix(), (5, 4, 4)))
