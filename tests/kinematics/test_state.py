"""States: values, attachments, and the laws that gripping obeys."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import msgspec
import numpy as np
import pytest

import armillary as arm
from armillary import Cell, Frame, Link, Manipulator, Mount, Pose, State, joints
from armillary.errors import FormatError, StateError, UnknownName
from armillary.kinematics.placement import Placement
from armillary.testing.samples import random_pose

SEEDS = range(5)


def moved(cell: Any, seed: int) -> State:
    """Return a random state of a cell with nothing held."""
    random = np.random.default_rng(seed)
    state = cell.home.replace(q=random.normal(size=len(cell.joint_names)))
    return state.place("part", random_pose(random)).place("tray", random_pose(random))


@pytest.mark.parametrize("seed", SEEDS)
def test_grip_keeps_the_pose_in_the_world_and_then_follows(
    random_cell: Any, seed: int
) -> None:
    cell = random_cell(seed)
    state = moved(cell, seed)
    held = state.grip("part", by="arm_tool4")
    before = cell.pose("part_top", state)
    np.testing.assert_allclose(cell.pose("part_top", held), before, atol=1e-12)
    offset = cell.pose("part_top", held, relative_to="arm_tool4")
    random = np.random.default_rng(seed + 1)
    later = held.replace(q=random.normal(size=len(held.q)))
    after = cell.pose("part_top", later, relative_to="arm_tool4")
    np.testing.assert_allclose(after, offset, atol=1e-12)
    assert np.abs(cell.pose("part_top", later) - before).max() > 1e-3


@pytest.mark.parametrize("seed", SEEDS)
def test_release_leaves_the_part_where_it_is(random_cell: Any, seed: int) -> None:
    cell = random_cell(seed)
    held = moved(cell, seed).grip("part", by="arm_tool4")
    random = np.random.default_rng(seed + 1)
    later = held.replace(q=random.normal(size=len(held.q)))
    free = later.release("part")
    expected = cell.pose("part_top", later)
    np.testing.assert_allclose(cell.pose("part_top", free), expected, atol=1e-12)
    assert free.attachments == {}
    gone = free.replace(q=np.zeros(len(free.q)))
    np.testing.assert_allclose(cell.pose("part_top", gone), expected, atol=1e-12)


def test_release_lets_go_what_stands_unbolted_on_another():
    top = Frame(name="top", pose=Pose.translation(0.0, 0.0, 1.0))
    table = Manipulator(name="table", links=[Link(name="slab", frames=[top])])
    tray = Manipulator(name="tray", links=[Link(name="tray")])
    cell = Cell(
        manipulators=[table, tray],
        mounts=[Mount(manipulator="tray", on="top", bolted=False)],
    )
    free = cell.home.release("tray").place("table", Pose.translation(5.0, 0.0, 0.0))
    assert free.parent("tray") == "world"
    assert cell.pose("tray", free)[2, 3] == 1.0
    assert cell.pose("tray", free)[0, 3] == 0.0
    with pytest.raises(StateError, match="'tray' is not attached"):
        free.release("tray")


@pytest.mark.parametrize("seed", SEEDS)
def test_attach_keeps_the_pose_in_the_parent(random_cell: Any, seed: int) -> None:
    cell = random_cell(seed)
    state = moved(cell, seed)
    before = cell.pose("part_body", state)  # relative to the world, its parent
    held = state.attach("part", "arm_tool4")
    after = cell.pose("part_body", held, relative_to="arm_tool4")
    np.testing.assert_allclose(after, before, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_all_poses_at_once_are_the_single_poses(random_cell: Any, seed: int) -> None:
    cell = random_cell(seed)
    state = moved(cell, seed).grip("part", by="arm_tool4").grip("tray", by="part_top")
    random = np.random.default_rng(seed + 2)
    for current in (state, state.replace(q=random.normal(size=len(state.q)))):
        poses = cell.poses(current)
        assert list(poses) == list(cell.frame_names[1:])
        for name, X in poses.items():
            np.testing.assert_allclose(X, cell.pose(name, current), atol=1e-11)
        assert np.array_equal(poses["part_top"], poses["part/part_top"])
        with pytest.raises(ValueError, match="read-only"):
            poses["part_top"][0, 0] = 2.0


def test_fk_and_the_state_agree(random_cell: Any) -> None:
    cell = random_cell(0)
    q = np.random.default_rng(0).normal(size=len(cell.joint_names))
    state = cell.home.replace(q=q)
    np.testing.assert_allclose(
        cell.pose("arm_tool4", state), cell.fk("arm_tool4")(q), atol=1e-12
    )


def test_refusals_say_why_and_change_nothing(random_cell: Any) -> None:
    cell = random_cell(0)
    state = cell.home.grip("part", by="arm_tool4").grip("tray", by="part_top")
    copy = pickle.loads(pickle.dumps(state))
    refusals = [
        (
            lambda: state.grip("part", by="arm0"),
            StateError,
            "attached to 'arm/arm_tool4'",
        ),
        (
            lambda: state.grip("part", by="tray_top", replace=True),
            StateError,
            "carried by the part itself",
        ),
        (lambda: state.grip("tray", by="tray_top", replace=True), StateError, "itself"),
        (lambda: state.grip("arm", by="part_top"), StateError, "fixed"),
        (lambda: state.place("part", Pose.identity()), StateError, "release it"),
        (lambda: state.release("arm"), StateError, "'arm' is fixed"),
        (lambda: state.grip("prt", by="arm0"), UnknownName, "Did you mean 'part'"),
        (lambda: state.grip("part", by="arm99"), UnknownName, "no frame named"),
        (lambda: state.replace(q=[1.0]), StateError, "1 numbers"),
        (lambda: state.replace(q=[np.nan] * len(state.q)), StateError, "not finite"),
        (lambda: state.replace(q=np.zeros((2, 3))), StateError, "one vector"),
        (lambda: state.replace(q="up"), StateError, "vector of numbers"),
    ]
    for attempt, kind, text in refusals:
        with pytest.raises(kind, match=text):
            attempt()
    assert state == copy


def test_states_are_values(random_cell: Any) -> None:
    cell = random_cell(2)
    a = moved(cell, 3).grip("part", by="arm_tool4")
    b = moved(cell, 3).grip("part", by="arm/arm_tool4")
    assert a == b
    assert hash(a) == hash(b)
    sent = pickle.loads(pickle.dumps(a))
    assert sent == a
    assert len(pickle.dumps(a)) < 4000
    with pytest.raises(StateError, match=r"cell\.bind"):
        sent.grip("tray", by="arm0")
    assert cell.bind(sent).release("part") == a.release("part")


def test_json_round_trip_is_equal_and_byte_stable(random_cell: Any) -> None:
    state = moved(random_cell(2), 3).grip("part", by="arm_tool4")
    text = state.to_json()
    assert State.from_json(text) == state
    assert State.from_json(text).to_json() == text
    with pytest.raises(FormatError, match="not a state"):
        State.from_json("{")


def test_joint_vectors_are_arrays_that_nobody_can_change(random_cell: Any) -> None:
    cell = random_cell(1)
    n = len(cell.joint_names)
    state = cell.home.replace(q=np.arange(n), qd=np.ones(n))
    assert (state.q + 0.5).tolist() == [0.5 + k for k in range(n)]
    assert (state.q * 2).tolist() == [2.0 * k for k in range(n)]
    assert (state.positions - state.q).tolist() == [0.0] * n
    for vector in (state.q, state.qd, state.positions):
        assert vector.dtype == np.float64
        with pytest.raises(ValueError, match="read-only"):
            vector[0] = 1.0
        with pytest.raises(ValueError, match="WRITEABLE"):
            vector.flags.writeable = True
    assert state.passive.shape == cell.home.qd.shape == (0,)
    given = np.arange(float(n))
    kept = cell.home.replace(q=given)
    given[0] = 7.0
    assert kept.q[0] == 0.0


def test_minus_zero_is_zero_to_states(random_cell: Any) -> None:
    cell = random_cell(1)
    zero = cell.home.replace(q=np.zeros(len(cell.home.q)))
    minus = zero.replace(q=-zero.q, qd=-zero.q, time=-0.0)
    assert minus.replace(qd=()) == zero
    assert hash(minus.replace(qd=())) == hash(zero)
    assert minus.to_json() == zero.replace(qd=zero.q).to_json()


def test_a_state_has_a_time(random_cell: Any) -> None:
    cell = random_cell(2)
    start = moved(cell, 3)
    assert start.time == 0.0
    later = start.replace(time=2.5)
    assert later != start
    assert later.difference(start) == {"time": (2.5, 0.0)}
    assert later.grip("part", by="arm_tool4").release("part").time == 2.5
    assert later.replace(q=start.q).joints({cell.joint_names[0]: 0.1}).time == 2.5
    assert State.from_json(later.to_json()) == later
    assert "time" not in start.to_json()
    assert pickle.loads(pickle.dumps(later)) == later
    assert ", at 2.5 s" in repr(later)
    for bad in (math.nan, math.inf, "now", None, [1.0], 10**400):
        with pytest.raises(StateError, match="time must be a finite number"):
            State(time=bad)


def test_json_that_says_something_twice_is_refused() -> None:
    with pytest.raises(FormatError, match="has 'q' twice"):
        State.from_json('{"q": [1.0], "q": [2.0]}')


def test_json_that_says_more_than_a_state_is_refused() -> None:
    rotated = '"rotation": [[1,0,0],[0,1,0],[0,0,1]]'
    pose = '{"position": [0,0,0], ' + rotated + ', "rpy": [0,0,1]}'
    for text in (
        '{"Q": [0]}',
        '{"q": [0], "placements": [{"manipulator": "a", "parent": "b"}]}',
        '{"placements": [{"manipulator": "a", "pose": ' + pose + "}]}",
        '{"base_velocities": [{"manipulator": "a", "angle": [0,0,1]}]}',
    ):
        with pytest.raises(FormatError, match="unknown field"):
            State.from_json(text)


def test_what_is_not_a_pose_is_not_placed(random_cell: Any) -> None:
    state = random_cell(0).home
    nowhere = Pose.translation(0.0, 0.0, math.nan)
    with pytest.raises(StateError, match="The pose of 'part' has an entry that is not"):
        state.place("part", nowhere)
    with pytest.raises(StateError, match="The pose of 'part' has an entry that is not"):
        state.attach("part", to="arm_tool4", pose=nowhere)


def test_difference_names_what_differs(random_cell: Any) -> None:
    cell = random_cell(1)
    a = cell.home
    b = a.joints({cell.joint_names[2]: 0.25}).grip("part", by="arm_tool4")
    difference = a.difference(b)
    assert set(difference) == {cell.joint_names[2], "base of part"}
    assert difference[cell.joint_names[2]] == (a.q[2], 0.25)
    assert a.difference(a) == {}


def test_parents_and_children_follow_the_state(random_cell: Any) -> None:
    cell = random_cell(1)
    state = cell.home.grip("part", by="arm_tool4")
    assert state.parent("part") == "arm/arm_tool4"
    assert state.parent("arm") == "track/track1"
    assert state.children("arm_tool4") == ("part",)
    assert "part" in cell.home.children("world")


def test_history_is_kept_states(random_cell: Any) -> None:
    cell = random_cell(1)
    history = [cell.home]
    for k in range(5):
        history.append(history[-1].joints({cell.joint_names[0]: 0.1 * k}))
    assert [state.q[0] for state in history[1:]] == [0.1 * k for k in range(5)]


SHEARED = '{"rotation": [[2,0,0],[0,1,0],[0,0,1]], "position": [0,0,0]}'
MIRROR = '{"rotation": [[1,0,0],[0,1,0],[0,0,-1]], "position": [0,0,0]}'
TEXTUAL = '{"rotation": [["a",0,0],[0,1,0],[0,0,1]], "position": [0,0,0]}'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"q": [1], "x": 2}', "unknown field `x`"),
        ('{"placements": [{"manipulator": "p", "of": 1}]}', "unknown field `of`"),
        (f'{{"placements": [{{"manipulator": "p", "pose": {SHEARED}}}]}}', "sheared"),
        (f'{{"placements": [{{"manipulator": "p", "pose": {MIRROR}}}]}}', "reflection"),
        (f'{{"placements": [{{"manipulator": "p", "pose": {TEXTUAL}}}]}}', "number"),
        ('{"placements": [{"manipulator": "p"}, {"manipulator": "p"}]}', "twice"),
        ('{"q": ' + "[" * 100_000, "got `array`"),
        ('{"q": [1e999]}', "out of range"),
    ],
)
def test_texts_that_are_not_state_are_refused_in_words(text: str, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        State.from_json(text)


def test_what_a_cell_does_not_allow_is_refused_when_bound(random_cell: Any) -> None:
    cell = random_cell(0)
    q = cell.home.q
    bolted = State(q=q, placements=(Placement(manipulator="arm"),))
    with pytest.raises(StateError, match="'arm' is fixed"):
        cell.bind(bolted)
    unknown = State(q=q, placements=(Placement(manipulator="prt"),))
    with pytest.raises(UnknownName, match="'part'"):
        cell.bind(unknown)


def test_numbers_that_are_not_real_are_refused(random_cell: Any) -> None:
    state = random_cell(0).home
    for bad in (1j, 10**400, "a", None):
        with pytest.raises(StateError, match=r"vector of numbers|not finite"):
            state.replace(q=[bad] * len(state.q))
    nan = Pose(((float("nan"), 0, 0), (0, 1, 0), (0, 0, 1)), (0, 0, 0))
    with pytest.raises(StateError, match="not finite"):
        state.place("part", nan)


def test_names_without_bytes_are_reported(random_cell: Any) -> None:
    state = State(placements=(Placement(manipulator="\ud800"),))
    with pytest.raises(StateError, match="half a character"):
        state.to_json()


def test_copies_know_their_cell(random_cell: Any) -> None:
    state = random_cell(0).home.grip("part", by="arm0")
    for same in (copy.copy(state), copy.deepcopy({"s": state})["s"]):
        assert same.release("part") == state.release("part")


def test_what_is_not_a_state_is_reported(random_cell: Any) -> None:
    cell = random_cell(0)
    for asked in (
        lambda: cell.violations([0.0] * 7),
        lambda: cell.pose("part_top", np.zeros(7)),
        lambda: cell.rigid_with("part_top", [0.0]),
        lambda: cell.fk("part_top", state=[0.0] * 7),
        lambda: cell.ik("arm_tool4", state=[0.0] * 7),
        lambda: cell.device("arm").with_q([0.0] * 7, [0.0]),
    ):
        with pytest.raises(StateError, match=r"a State is needed.*cell\.home"):
            asked()


def test_a_state_is_not_an_array_of_q(random_cell: Any) -> None:
    cell = random_cell(0)
    with pytest.raises(StateError, match=r"state\.q"):
        cell.fk("part_top")(cell.home)


@pytest.mark.thorough
def test_poses_stay_orthonormal_over_ten_thousand_grips() -> None:
    links = [Link(name="base")]
    for k in range(3):
        joint = joints.Revolute(axis=(k, 1, 2), precursor=Pose.translation(0, 0.1, 0.4))
        links.append(Link(name=f"link{k}", parent=links[-1].name, joint=joint))
    part = Manipulator(name="part", links=[Link(name="block")])
    cell = Cell(manipulators=[Manipulator(name="arm", links=links), part])
    random, state = np.random.default_rng(1), cell.home
    for k, q in enumerate(random.normal(size=(10_000, 3))):
        state = state.replace(q=q).grip("part", by=f"link{k % 3}", replace=True)
        if k % 7 == 0:
            state = state.release("part")
    R = np.array(state.placements[0].pose.rotation)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=2e-15)
    assert np.linalg.det(R) > 0


def test_which_bases_may_be_moved_can_be_asked(random_cell: Any) -> None:
    cell = random_cell(0)
    assert cell.movable_bases == ("part", "tray")
    for manipulator in cell.manipulators:
        name = manipulator.name
        movable = name in cell.movable_bases
        for frame in manipulator.frame_refs:
            assert cell.is_movable(f"{name}/{frame}") == movable
        if movable:
            cell.home.place(name, Pose.translation(1, 0, 0))
        else:
            with pytest.raises(StateError, match="fixed"):
                cell.home.place(name, Pose.translation(1, 0, 0))
    on_tray = cell.mount("track", on="tray_top")
    assert on_tray.movable_bases == ("part", "tray")
    assert on_tray.is_movable("arm_tool4")  # the tray carries it
    assert not cell.is_movable("world")
    with pytest.raises(UnknownName):
        cell.is_movable("nothing")


def test_a_state_of_another_cell_is_refused():
    one, two = (
        Manipulator(
            name=name,
            links=(
                Link(name="base"),
                Link(name="tip", parent="base", joint=joints.Revolute(axis=(0, 0, 1))),
            ),
        )
        for name in ("A", "B")
    )
    ab, ba = Cell(manipulators=(one, two)), Cell(manipulators=(two, one))
    state = ab.home.replace(q=[0.3, 0.4])
    with pytest.raises(
        StateError, match=r"q\[0\] is joint 'A/.*' there and 'B/.*' here"
    ):
        ba.pose("A/tip", state)
    part = Manipulator(name="part", links=(Link(name="body"),))
    more = ab.add(part)
    assert np.array_equal(more.pose("A/tip", state), ab.pose("A/tip", state))


def test_trees_can_be_copied_and_sent() -> None:
    """Fields are not all that they have: bases are written or noted beside."""
    cell = arm.example("ur10_on_rail")
    part = Manipulator(name="part", links=[Link(name="body")])
    others = [part.replace(name=f"part{k}") for k in range(12)]
    cell = Cell(
        manipulators=[*cell.manipulators, *others],
        mounts=[
            *cell.mounts,
            *(Mount(manipulator=each.name, bolted=False) for each in others),
        ],
    )
    home = cell.home
    for state in (
        home,
        home.place("part0", Pose.translation(1.0, 2.0, 3.0)),
        home.attach("part1", to="tool0"),
    ):
        tree = state.tree
        for same in (
            pickle.loads(pickle.dumps(tree)),
            copy.copy(tree),
            copy.deepcopy(tree),
            msgspec.structs.replace(tree, drives=tree.drives),
        ):
            assert same.bases == tree.bases
            np.testing.assert_array_equal(same.base_matrices, tree.base_matrices)
