"""Inverse kinematics in a state: of gripped parts, and on bases that were moved."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import armillary
import armillary as arm
from armillary import Cell, Pose, State
from armillary.errors import ModelError, StateError
from armillary.ik import numeric
from armillary.kernel import compiler
from armillary.kernel.seed_table import make_seed_table
from armillary.testing.samples import random_pose
from armillary.trace import program


@pytest.fixture(scope="module")
def cell() -> Cell:
    return armillary.example("oval_track_cell")


def gripped(cell: Cell, seed: int) -> State:
    """Return a state in which the gripper holds the part somewhere at random."""
    random = np.random.default_rng(seed)
    q = random.uniform(-1, 1, len(cell.joint_names))
    return cell.home.replace(q=q).attach("part", "tcp", pose=random_pose(random))


def arm_of(cell: Cell) -> list[str]:
    return [name for name in cell.joint_names if name.startswith("ur5e/")]


def reached(cell: Cell, state: State, solver: Any, q: Any) -> State:
    return state.joints(dict(zip(solver.joints, q.tolist(), strict=True)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", ["closed", "numeric"])
def test_a_gripped_part_is_placed(cell: Cell, seed: int, method: str) -> None:
    state = gripped(cell, seed)
    solver = cell.ik("grasp", joints=arm_of(cell), state=state)
    assert solver.closed is not None
    q = np.random.default_rng(seed).uniform(-2, 2, (20, 6))
    targets = cell.fk("grasp", joints=arm_of(cell), state=state)(q)
    answer = solver(targets, method=method)
    assert answer.success.all()
    for row, target in zip(answer.q, targets, strict=True):
        there = reached(cell, state, solver, row)
        np.testing.assert_allclose(cell.pose("grasp", there), target, atol=5e-6)
    single = solver(targets[0], method=method)
    np.testing.assert_allclose(single.residual, 0, atol=1e-6)


@pytest.mark.parametrize(
    "goal",
    [
        {},
        {"rotation": ""},
        {"rotation": "xy"},
        {"position": "z", "rotation": "", "axes": "relative_to"},
        {"relative_to": "place"},
    ],
)
def test_every_goal_counts_the_grip(cell: Cell, goal: dict[str, str]) -> None:
    state = gripped(cell, 5)
    solver = cell.ik("grasp", state=state, **goal)
    to = goal.get("relative_to", "world")
    fk = cell.fk("grasp", relative_to=to, state=state)
    q = np.random.default_rng(5).uniform(-1, 1, (10, len(state.q)))
    q[:, -1] = 0.02
    targets = fk(q)
    answer = solver(targets, near=q + 0.05)
    assert answer.success.all()
    apart = fk(answer.q)[:, :3, 3] - targets[:, :3, 3]
    rows = [("x", "y", "z").index(axis) for axis in goal.get("position", "xyz")]
    np.testing.assert_allclose(apart[:, rows], 0, atol=1e-5)


def test_two_parts_at_once_and_paths_and_bests(cell: Cell) -> None:
    state = gripped(cell, 6)
    q = np.linspace(np.zeros(8), np.full(8, 0.4), 20)
    q[:, -1] = 0.02
    both = cell.fk(["grasp", "block"], state=state)(q)
    answer = cell.ik(["grasp", "block"], state=state)(both[3], near=q[3])
    assert answer.success
    solver = cell.ik("grasp", state=state)
    path = solver.path(both[:, 0], start=q[0])
    assert path.answer.success.all()
    reach = cell.fk("grasp", state=state)(path.answer.q)
    np.testing.assert_allclose(reach, both[:, 0], atol=1e-5)
    assert solver.best(both[5, 0], "limits", starts=4).success
    assert solver.all(both[5, 0], starts=4).success.any()


def test_another_grip_compiles_nothing(
    cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(seed: int, **options: Any) -> Any:
        state = gripped(cell, seed)
        q = np.full(len(state.q), 0.02)
        X = cell.fk("grasp", state=state)(q)
        found = cell.ik("grasp", state=state)(X, **options)
        assert found.success
        there = cell.pose("grasp", state.replace(q=found.q))
        np.testing.assert_allclose(there, X, atol=5e-6)
        arm = cell.ik("grasp", joints=arm_of(cell), state=state)
        X = cell.fk("grasp", joints=arm_of(cell), state=state)(q[:6])
        assert arm.closed is not None
        assert arm(X).success
        assert arm.all(X).success.any()

    answer(0)
    answer(0, near=np.zeros(8))

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("something was compiled")

    monkeypatch.setattr(compiler, "loaded", never)
    for seed in range(1, 5):
        answer(seed)
    answer(3, near=np.zeros(8))


def test_another_part_on_the_same_link_traces_nothing(
    cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    corner = arm.Frame(name="corner", pose=Pose.translation(0.1, 0.0, 0.2))
    box = arm.Manipulator(name="other", links=[arm.Link(name="box", frames=[corner])])
    two = arm.Cell(
        name="two", manipulators=[*cell.manipulators, box], mounts=cell.mounts
    )
    near = np.full(8, 0.02)
    tables: list[int] = []

    def counted(*args: Any) -> Any:
        tables.append(1)
        return make_seed_table(*args)

    def answer(part: str, frame: str, seed: int) -> None:
        held = gripped(two, seed) if part == "part" else two.home
        if part == "other":
            pose = random_pose(np.random.default_rng(seed))
            held = held.attach("other", "tcp", pose=pose)
        there = held.replace(q=near)
        X = two.pose(frame, there)
        for joints in (None, arm_of(two)):
            solver = two.ik(frame, joints=joints, state=there)
            assert (solver.closed is None) == (joints is None)
            found = solver(X, near=near[: len(solver.joints)])
            assert found.success
            there = reached(two, there, solver, found.q)
            np.testing.assert_allclose(two.pose(frame, there), X, atol=5e-6)

    monkeypatch.setattr(numeric, "make_seed_table", counted)
    answer("part", "grasp", 0)

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("something was traced")

    monkeypatch.setattr(program, "explore", never)
    answer("other", "corner", 1)
    answer("part", "grasp", 2)
    assert not tables  # searches from `near` alone read none
    solver = two.ik("corner", state=two.home.attach("other", "tcp"))
    assert solver.goals[0].frame == two.frame("corner")


def test_lines_of_another_grip_make_no_table(
    cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables: list[int] = []

    def counted(*args: Any) -> Any:
        tables.append(1)
        return make_seed_table(*args)

    monkeypatch.setattr(numeric, "make_seed_table", counted)
    held = gripped(cell, 3)
    held = held.replace(q=np.linspace(0.3, 0.9, len(held.q)))
    X = cell.pose("grasp", held)
    path = cell.line("grasp", [X[:3, 3] + [0, 0, 0.05]], start=held, state=held)
    assert path.success
    assert not tables
    assert np.allclose(cell.fk("grasp", state=held)(path.q), path.poses(path.s))
    solver = cell.ik("grasp", state=held)
    way = np.array([X, Pose.translation(0.0, 0.0, 0.02).matrix() @ X])
    ways = [solver.path(way, start=held.q).answer.q]  # these two need no table
    assert not tables
    assert solver.numeric._table is not None  # with one, answers are the same
    ways.append(solver.path(way, start=held.q).answer.q)
    assert np.array_equal(*ways)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("frame", "to"),
    [("grasp", "world"), ("grasp", "place"), ("world", "grasp"), ("plate", "block")],
)
def test_closed_forms_between_any_frames_of_a_state(
    cell: Cell, frame: str, to: str
) -> None:
    state = gripped(cell, 7)
    joints = arm_of(cell)
    solver = cell.ik(frame, relative_to=to, joints=joints, state=state)
    q = np.random.default_rng(7).uniform(-2, 2, (30, 6))
    fk = cell.fk(frame, relative_to=to, joints=joints, state=state)
    every = solver.all(fk(q), near=q)
    assert every.complete.all()
    near = np.abs(every.q - q[:, None]).max(axis=2)
    np.testing.assert_allclose(np.nanmin(near, axis=1), 0, atol=1e-6)
    found = every.q[every.success]
    which = np.nonzero(every.success)[0]
    np.testing.assert_allclose(fk(found), fk(q)[which], atol=1e-6)
    far = fk(q[0])
    far[:3, 3] += 10.0
    answer = solver(far)
    assert not answer.success
    missed = np.linalg.norm(fk(answer.q)[:3, 3] - far[:3, 3])
    np.testing.assert_allclose(answer.residual[0], missed, rtol=1e-6)


def test_other_joints_are_those_of_the_state(random_cell: Any) -> None:
    cell = random_cell(2)
    random = np.random.default_rng(2)
    q = random.normal(size=len(cell.joint_names))
    state = cell.home.replace(q=q)
    names = [name for name in cell.joint_names if name.startswith("arm/")]
    solver = cell.ik("arm_tool4", joints=names, state=state)
    answer = solver(cell.pose("arm_tool4", state), seed=q[2:] + 0.01)
    assert answer.success
    np.testing.assert_allclose(
        cell.pose("arm_tool4", reached(cell, state, solver, answer.q)),
        cell.pose("arm_tool4", state),
        atol=1e-5,
    )


def test_a_moved_base_counts() -> None:
    robot = armillary.example("irb2400")
    state = robot.home.place(robot.manipulators[0].name, Pose.translation(0, 5, 1))
    q = np.array([0.1, 0.2, 0.1, 0.3, 0.4, 0.5])
    X = robot.pose("tool0", state.replace(q=q))
    found = robot.ik("tool0", state=state)(X, near=q)
    np.testing.assert_allclose(found.q, q, atol=1e-6)
    assert not robot.ik("tool0")(X).success


def test_without_the_state_the_error_names_it(cell: Cell) -> None:
    with pytest.raises(ModelError, match=r"link 'part/block'.*state=state"):
        cell.ik("grasp")


def test_where_nothing_is_moved_it_is_the_solver_of_the_cell(cell: Cell) -> None:
    state = gripped(cell, 1)
    assert cell.ik("tcp", state=state) is cell.ik("tcp")


def test_solvers_can_be_copied_and_sent(cell: Cell) -> None:
    for solver in (cell.ik("tcp"), cell.ik("grasp", state=gripped(cell, 0))):
        assert copy.deepcopy(solver) is solver
        frame = "tcp" if solver is cell.ik("tcp") else "grasp"
        X = cell.fk(frame, state=gripped(cell, 0))(np.full(8, 0.02))
        again = pickle.loads(pickle.dumps(solver))
        np.testing.assert_array_equal(again(X).q, solver(X).q)


def test_answers_can_be_copied_and_sent(cell: Cell) -> None:
    Q = np.random.default_rng(0).uniform(-1, 1, (4, 8))
    X = cell.fk("tcp")(Q)
    arm = cell.ik("tcp", joints=arm_of(cell))
    ik = cell.ik("tcp")
    for answer in (ik(X), ik(X[0]), arm(X), arm(X[0]), ik.path(X, start=Q[0]).answer):
        for same in (pickle.loads(pickle.dumps(answer)), copy.deepcopy(answer)):
            for name in ("q", "reason", "residual", "steps", "starts", "success"):
                found = getattr(same, name)
                np.testing.assert_array_equal(found, getattr(answer, name))
                assert not found.flags.writeable
    path = ik.path(X, start=Q[0])
    again = pickle.loads(pickle.dumps(path))
    np.testing.assert_array_equal(again.jumps, path.jumps)


def test_near_is_a_state_of_this_cell():
    cell = arm.example("irb2400")
    ik, target = cell.ik("tool0"), cell.fk("tool0")([0.1, 0.2, 0.1, 0.3, 0.4, 0.5])
    for other in ("two_arms_positioner", "pan_tilt"):
        with pytest.raises(StateError, match="joint positions"):
            ik(target, near=arm.example(other).home)
