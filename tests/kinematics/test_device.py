"""Devices: views with their own q, in any state; laws first, then how to choose one."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import numpy as np
import pytest

from armillary import (
    Cell,
    Coupling,
    Frame,
    Limits,
    Link,
    Manipulator,
    Mount,
    Pose,
    State,
    joints,
)
from armillary.errors import ModelError, StateError, UnknownName
from armillary.kernel import Kernel
from armillary.model.group import Group
from armillary.model.posture import Posture
from armillary.spatial.inertia import SpatialInertia
from armillary.testing.samples import random_pose

SEEDS = range(3)


def loaded(cell: Any, seed: int) -> State:
    """Return a random state: the part held by the arm, the tray by the part."""
    random = np.random.default_rng(seed)
    state = cell.home.replace(q=random.normal(size=len(cell.joint_names)))
    state = state.place("part", random_pose(random)).place("tray", random_pose(random))
    return state.grip("part", by="arm_tool4").grip("tray", by="part_top")


def some_device(cell: Any, seed: int) -> Any:
    """Return a device of some joints in some order, in a random state."""
    random = np.random.default_rng(seed)
    names = random.permutation(cell.joint_names)[: int(random.integers(1, 6))]
    return cell.device(joints=names.tolist(), state=loaded(cell, seed))


@pytest.mark.parametrize("seed", SEEDS)
def test_only_its_own_joints_change(random_cell: Any, seed: int) -> None:
    cell = random_cell(seed)
    device = some_device(cell, seed)
    state = loaded(cell, seed + 10)
    q = np.random.default_rng(seed).normal(size=len(device.joints))
    moved = device.with_q(state, q)
    np.testing.assert_array_equal(device.q(moved), q)
    assert set(moved.difference(state)) == set(device.joint_names)
    assert device.with_q(moved, device.q(state)) == state
    running = device.with_qd(state, q)
    np.testing.assert_array_equal(device.qd(running), q)
    np.testing.assert_array_equal(device.qd(state), 0 * q)
    assert np.array_equal(running.q, state.q)
    assert np.count_nonzero(running.qd) == len(q)
    np.testing.assert_array_equal(device.at(state).whole(q), moved.q)
    rows = device.at(state).whole(np.stack([q, device.q(state)]))
    np.testing.assert_array_equal(rows, [moved.q, state.q])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", SEEDS)
def test_its_poses_are_those_of_the_state(random_cell: Any, seed: int) -> None:
    cell = random_cell(seed)
    names = ["arm_tool4", "part_top", "tray_body", "track1"]
    for state in (cell.home, loaded(cell, seed)):
        device = some_device(cell, seed).at(state)
        q = np.random.default_rng(seed).normal(size=len(device.joints))
        moved = device.with_q(state, q)
        for to in ("world", "part_top"):
            poses = device.fk(names, relative_to=to)(q)
            for name, X in zip(names, poses, strict=True):
                expected = cell.pose(name, moved, relative_to=to)
                np.testing.assert_allclose(X, expected, atol=1e-11)
            single = device.fk(names[1], relative_to=to)(q)
            np.testing.assert_allclose(single, poses[1], atol=1e-12)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", SEEDS)
def test_columns_are_the_twists_of_single_joints(random_cell: Any, seed: int) -> None:
    cell = random_cell(seed)
    state = loaded(cell, seed)
    device = some_device(cell, seed)
    n = len(device.joints)
    for options in (
        {"relative_to": "world"},
        {"relative_to": "part_top"},
        {"relative_to": "arm1", "point": "tray_top", "axes": "track1"},
    ):
        J = device.jacobian("part_top", **options)(device.q(state))
        assert J.shape == (6, n)
        for column, rates in zip(J.T, np.eye(n), strict=True):
            one = device.with_qd(state, rates)
            expected = cell.twist("part_top", one, **options)
            np.testing.assert_allclose(column, expected, atol=1e-11)
        pair = device.jacobian(["part_top", "arm4"], **options)(device.q(state))
        assert pair.shape == (2, 6, n)
        np.testing.assert_allclose(pair[0], J, atol=1e-12)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", SEEDS)
def test_other_positions_compile_nothing(random_cell: Any, seed: int) -> None:
    cell = random_cell(seed)
    device = cell.device("track", state=loaded(cell, seed))
    again = device.at(loaded(cell, seed + 1))
    for kind in ("fk", "jacobian"):
        first = getattr(device, kind)("part_top", relative_to="world")
        second = getattr(again, kind)("part_top", relative_to="world")
        assert first is not second
        assert first.kernel is second.kernel
        apart = getattr(again.at(cell.home), kind)("part_top", relative_to="arm_base")
        assert apart is not second


def test_where_nothing_else_decides_it_is_the_kernel_of_the_cell(
    random_cell: Any,
) -> None:
    cell = random_cell(0)
    device = cell.device("track", state=loaded(cell, 0))
    found = device.fk("track1", relative_to="world")
    assert isinstance(found, Kernel)
    assert found is cell.fk("track1", joints=device.joint_names)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", SEEDS)
def test_ik_answers_for_the_state(random_cell: Any, seed: int) -> None:
    cell = random_cell(seed)
    state = loaded(cell, seed)
    device = cell.device("arm", state=state)
    fk = device.fk("part_top", relative_to="world")
    q = device.q(state)
    solver = device.ik("part_top", relative_to="world")
    assert solver.joints == device.joint_names
    answer = solver(fk(q), seed=q + 0.01)
    assert answer.success
    reached = device.with_q(state, answer.q)
    np.testing.assert_allclose(
        cell.pose("part_top", reached), cell.pose("part_top", state), atol=1e-5
    )
    # Relative to what it stands on, the other joints do not matter: one solver.
    here = device.ik("arm4", relative_to="arm_base")
    assert here is cell.ik(
        "arm4", relative_to="arm_base", joints=list(device.joint_names)
    )


def test_threads_with_their_own_states_get_the_single_thread_numbers(
    random_cell: Any,
) -> None:
    cell = random_cell(1)
    device = cell.device("arm")
    states = [loaded(cell, k) for k in range(32)]

    def answers(state: State) -> list[Any]:
        view, q = device.at(state), device.q(state)
        return [
            view.fk("tray_top", relative_to="world")(q),
            view.jacobian("tray_top", relative_to="world")(q),
            cell.pose("tray_top", state),
            cell.poses(state)["tray_top"],
        ]

    found: list[Any] = [None] * len(states)

    def work(k: int) -> None:
        for _ in range(3):
            found[k] = answers(states[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(states))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, state in zip(found, states, strict=True):
        for X, Y in zip(one, answers(state), strict=True):
            assert np.array_equal(X, Y)


# which device


def turning(name: str, parent: str, **more: Any) -> Link:
    at = Pose.translation(0.1, 0.02, 0.3)
    joint = joints.Revolute(axis=(0, 1, 0), precursor=at)
    return Link(name=name, parent=parent, joint=joint, **more)


@pytest.fixture(scope="module")
def robot() -> Cell:
    """A torso that turns, two arms on it, one with a hand of two fingers."""
    torso = Manipulator(
        name="torso",
        links=[
            Link(name="floor"),
            turning("waist", "floor", limits=Limits(lower=-1, upper=2)),
        ],
    )
    arms = [
        Manipulator(
            name=name,
            links=[
                Link(name="root"),
                turning("upper", "root"),
                turning("lower", "upper", frames=(Frame(name="flange"),)),
            ],
            postures=[Posture(name="rest", joints=("upper", "lower"), q=(0.3, -0.4))],
        )
        for name in ("left", "right")
    ]
    hand = Manipulator(
        name="hand",
        links=[
            Link(name="palm"),
            turning("thumb", "palm", passive=True),
            turning(
                "tip",
                "thumb",
                frames=(Frame(name="thumb_tip", end_effector=True),),
            ),
            turning(
                "finger",
                "palm",
                coupling=Coupling(of="tip", multiplier=-2.0, offset=0.1),
                frames=(Frame(name="finger_tip", end_effector=True),),
            ),
        ],
        groups=[
            Group(name="fingers", links=("thumb", "tip", "finger")),
            Group(name="thumb_chain", chains=(("palm", "tip"),)),
        ],
        postures=[Posture(name="rest", joints=("tip",), q=(0.7,))],
    )
    mounts = [
        Mount(manipulator="left", on="waist", pose=Pose.from_rpy(1.0, 0.2, 0.3)),
        Mount(manipulator="right", on="waist", pose=Pose.translation(0, -0.3, 0)),
        Mount(manipulator="hand", on="left/flange"),
    ]
    return Cell(name="robot", manipulators=[hand, torso, *arms], mounts=mounts)


def test_a_manipulator(robot: Cell) -> None:
    arm = robot.device("left")
    assert arm.joint_names == ("left/upper", "left/lower")
    assert (arm.base, arm.ends, arm.end) == ("left/root", ("left/lower",), "left/lower")
    assert repr(arm) == "<device of 2 joints, 'left/root' to 'left/lower'>"
    hand = robot.device("hand")  # what is passive or follows has no place in its q
    assert hand.joint_names == ("hand/tip",)
    assert hand.ends == ("hand/thumb_tip", "hand/finger_tip")
    assert hand.fk()([0.2]).shape == (2, 4, 4)
    assert hand.jacobian()([0.2]).shape == (2, 6, 1)


def test_a_passive_joint_moves_the_poses_all_the_same(robot: Cell) -> None:
    hand = robot.device("hand")
    bent = robot.home.joints({"thumb": 0.5})
    q = hand.q(bent)
    X = hand.at(bent).fk("thumb_tip")(q)
    np.testing.assert_allclose(
        X, robot.pose("thumb_tip", bent, relative_to="palm"), atol=1e-14
    )
    assert np.abs(X - hand.fk("thumb_tip")(q)).max() > 0.01
    assert robot.device(joints=["thumb", "tip"]).joint_names == (
        "hand/thumb",
        "hand/tip",
    )


def test_a_joint_that_follows_counts_in_the_column_it_follows(robot: Cell) -> None:
    J = robot.device("hand").jacobian("finger_tip")([0.2])
    np.testing.assert_allclose(J[3:, 0], [0, -2.0, 0], atol=1e-14)


def test_a_serial_device_has_the_joints_between_its_frames_in_their_order(
    robot: Cell,
) -> None:
    chain = robot.device(base="floor", ends="thumb_tip")
    assert chain.joint_names == ("torso/waist", "left/upper", "left/lower", "hand/tip")
    assert (chain.base, chain.ends) == ("torso/floor", ("hand/thumb_tip",))
    assert robot.device("left", base="floor", ends="thumb_tip").joint_names == (
        "left/upper",
        "left/lower",
    )
    across = robot.device(base="right/flange", ends="left/flange")
    assert across.joint_names == (
        "right/lower",
        "right/upper",
        "left/upper",
        "left/lower",
    )
    assert robot.device(ends="left/upper").joint_names == ("left/upper",)


def test_joints_by_name_stay_as_given_whatever_the_ends(robot: Cell) -> None:
    pair = robot.device(joints=["left/lower", "waist"], ends="right/flange")
    assert pair.joint_names == ("left/lower", "torso/waist")
    assert pair.ends == ("right/flange",)


def test_what_follows_a_joint_counts_as_that_joint_between_frames(robot: Cell) -> None:
    finger = robot.device(base="palm", ends="finger_tip")
    assert finger.joint_names == ("hand/tip",)
    both = robot.device(base="finger_tip", ends="thumb_tip")
    assert both.joint_names == ("hand/tip",)  # once; the thumb is passive


def test_a_tree_has_the_joints_of_all_its_ends_once(robot: Cell) -> None:
    tree = robot.device(base="floor", ends=["right/flange", "left/flange"])
    assert tree.joint_names == (
        "torso/waist",
        "right/upper",
        "right/lower",
        "left/upper",
        "left/lower",
    )
    assert tree.fk()(np.zeros(5)).shape == (2, 4, 4)


def test_a_composite_of_manipulators(robot: Cell) -> None:
    both = robot.device(["right", "left"])
    assert both.joint_names == (
        "right/upper",
        "right/lower",
        "left/upper",
        "left/lower",
    )
    assert both.ends == ("right/lower", "left/lower")
    assert both.base == "torso/waist"  # the nearest that carries both
    assert robot.device(["right", "left"], base="floor").base == "torso/floor"
    q = np.array([0.1, 0.2, 0.3, 0.4])
    right, left = robot.device("right"), robot.device("left")
    J = both.jacobian(["right/flange", "left/flange"], relative_to="waist")(q)
    np.testing.assert_allclose(
        J[0, :, :2],
        right.jacobian("right/flange", relative_to="waist")(q[:2]),
        atol=1e-14,
    )
    np.testing.assert_allclose(
        J[1, :, 2:],
        left.jacobian("left/flange", relative_to="waist")(q[2:]),
        atol=1e-14,
    )
    assert not J[0, :, 2:].any()
    assert not J[1, :, :2].any()


def test_joints_by_name(robot: Cell) -> None:
    pair = robot.device(joints=["left/lower", "waist"])
    assert pair.joint_names == ("left/lower", "torso/waist")
    assert pair.base == "torso/floor"
    assert pair.ends == ("left/lower",)
    lower, upper = pair.limits
    np.testing.assert_array_equal(lower, [-np.inf, -1])
    np.testing.assert_array_equal(upper, [np.inf, 2])


def test_a_group(robot: Cell) -> None:
    fingers = robot.device("fingers")
    assert fingers.joint_names == ("hand/tip",)
    assert robot.device("hand/fingers") == fingers
    chain = robot.device("thumb_chain")
    assert (chain.base, chain.ends) == ("hand/palm", ("hand/tip",))


def test_postures(robot: Cell) -> None:
    both = robot.device(["left", "hand"])
    np.testing.assert_array_equal(both.posture("rest"), [0.3, -0.4, 0.7])
    part = robot.device(joints=["waist", "left/lower"], state=robot.home)
    np.testing.assert_array_equal(part.posture("rest"), [0.0, -0.4])
    with pytest.raises(UnknownName, match="Did you mean 'rest'"):
        both.posture("res")


def test_the_payload_is_what_the_ends_carry(robot: Cell) -> None:
    ball = SpatialInertia.from_centre(2.0, (0, 0, 0), 0.01 * np.eye(3))
    part = Manipulator(name="part", links=[Link(name="ball", inertia=ball)])
    cell = robot.add(part, pose=Pose.translation(1, 0, 0), bolted=False)
    arm = cell.device("right")
    held = cell.home.grip("part", by="right/flange")
    assert arm.payload(cell.home) == SpatialInertia.zero()
    payload = arm.payload(held)
    assert payload.mass == 2.0
    p = cell.pose("ball", held, relative_to="right/lower")[:3, 3]
    np.testing.assert_allclose(payload.centre(), p, atol=1e-15)
    moment = 0.01 * np.eye(3) + 2.0 * (p @ p * np.eye(3) - np.outer(p, p))
    np.testing.assert_allclose(payload.rotational, moment, atol=1e-14)
    about = arm.payload(held, relative_to="ball")
    np.testing.assert_allclose(about.rotational, 0.01 * np.eye(3), atol=1e-14)


def test_devices_are_values(robot: Cell) -> None:
    arm = robot.device("left", state=robot.home.joints({"waist": 0.3}))
    same = pickle.loads(pickle.dumps(arm))
    assert same == arm
    assert hash(same) == hash(arm)
    assert same != robot.device("left")
    assert arm.at(robot.home) == robot.device("left")
    np.testing.assert_array_equal(
        same.fk(relative_to="world")([0.1, 0.2]),
        arm.fk(relative_to="world")([0.1, 0.2]),
    )


def test_bad_questions_are_answered_with_what_exists(robot: Cell) -> None:
    arm = robot.device("left")
    asked = [
        (robot.device, ModelError, "needs the name of a manipulator"),
        (lambda: robot.device(joints=[]), ModelError, "needs the name"),
        (lambda: robot.device("lft"), UnknownName, "Did you mean 'left'"),
        (lambda: robot.device("hand/finger"), UnknownName, "'hand/fingers'"),
        (lambda: robot.device(joints="waist"), ModelError, "list of names"),
        (lambda: robot.device(joints=["waist"] * 2), ModelError, "twice"),
        (lambda: robot.device(joints=["finger"]), UnknownName, "no joint named"),
        (lambda: robot.device("left", joints=["waist"]), ModelError, "not both"),
        (lambda: robot.device(ends="flange"), ModelError, "not unique"),
        (lambda: robot.device("left", ends="right/flange"), ModelError, "No joint of"),
        (lambda: robot.device("left", state=State()), StateError, "0 joint positions"),
        (lambda: arm.with_q(robot.home, [1.0]), StateError, "2 numbers"),
        (lambda: arm.with_q(robot.home, [1.0, np.nan]), StateError, "not finite"),
        (lambda: arm.with_q(robot.home, np.zeros((3, 2))), StateError, "one vector"),
        (lambda: arm.with_q(robot.home, "up"), StateError, "vectors of numbers"),
        (lambda: arm.whole([1.0, 2.0, 3.0]), StateError, "2 numbers"),
        (lambda: arm.at(State()), StateError, "0 joint positions"),
        (lambda: arm.fk([]), ModelError, "at least one frame"),
        (lambda: arm.fk("tol"), UnknownName, "no frame named"),
        (lambda: arm.fk(form="matrx"), UnknownName, "Did you mean 'matrix'"),
        (lambda: arm.ik("waist"), ModelError, "None of these joints moves"),
    ]
    for attempt, kind, text in asked:
        with pytest.raises(kind, match=text):
            attempt()
