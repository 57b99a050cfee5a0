"""Answers with another base in each row, each against the state that has it there."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError, ShapeError, StateError, UnknownName
from armillary.ik.reason import Reason

ROWS = 40


def box(*size: float) -> list[Any]:
    return [arm.shapes.Box(size=size)]


@cache
def scene() -> tuple[arm.Cell, arm.State, Any]:
    """An arm that is moved, a shelf and a wall around it, a part in its flange."""
    shelf = arm.Manipulator(
        name="shelf", links=[arm.Link(name="board", collisions=box(0.6, 2.0, 0.05))]
    )
    wall = arm.Manipulator(
        name="wall", links=[arm.Link(name="body", collisions=box(0.2, 4.0, 0.8))]
    )
    part = arm.Manipulator(
        name="part", links=[arm.Link(name="body", collisions=box(0.1, 0.1, 0.4))]
    )
    cell = (
        arm.Cell()
        .add(arm.example("irb2400").manipulators[0], bolted=False)
        .add(shelf, pose=arm.Pose.translation(1.4, 0, 1.1))
        .add(wall, pose=arm.Pose.translation(-0.8, 0, 0.4))
        .add(part, bolted=False)
    )
    state = cell.home.attach("part", "tool0", pose=arm.Pose.translation(0, 0, 0.2))
    with np.testing.suppress_warnings():
        check = cell.collision(state, margin=0.01)
    return cell, state, check


@cache
def rows() -> tuple[Any, Any, Any]:
    """Joint positions, bases that are turned and tilted, and poses of the tool."""
    cell, _, _ = scene()
    rng = np.random.default_rng(0)
    q = rng.uniform(*cell.limits, (ROWS, 6))
    bases = np.array(
        [
            (
                arm.Pose.translation(*rng.uniform(-0.5, 0.5, 2), rng.uniform(-0.1, 0.3))
                @ arm.Pose.rotation_z(rng.uniform(-3, 3))
                @ arm.Pose.rotation_x(rng.uniform(-0.5, 0.5))
            ).matrix()
            for _ in range(ROWS)
        ],
        np.float64,
    )
    return q, bases, bases @ cell.fk("tool0")(q)


def each(k: int) -> tuple[arm.State, Any]:
    """The state of one row, and its check."""
    cell, state, _ = scene()
    there = state.place("irb2400", rows()[1][k])
    return there, cell.collision(there, margin=0.01)


@pytest.mark.filterwarnings("ignore")
def test_checks_with_bases_are_those_of_states():
    _, _, check = scene()
    q, bases, _ = rows()
    found = check.at_bases(q, {"irb2400": bases})
    assert 5 < found.sum() < ROWS - 5
    assert np.array_equal(found, [each(k)[1](q[k]) for k in range(ROWS)])
    assert check.at_bases(q[0], {"irb2400": bases[0]}) == found[0]
    assert np.array_equal(check.at_bases(q, {}), check(q))
    pair = check.at_bases(q[:3, None], {"irb2400": bases[:5]})
    assert np.array_equal(np.diagonal(pair), found[:3])


@pytest.mark.filterwarnings("ignore")
def test_a_base_upright_on_its_nose_is_exact():
    # Where two of the three angles of a base turn about one axis.
    cell, state, check = scene()
    q = rows()[0][:8]
    for tilt in (np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-9):
        X = arm.Pose.rotation_z(0.7) @ arm.Pose.rotation_y(tilt)
        X = X @ arm.Pose.rotation_x(0.4)
        there = cell.collision(state.place("irb2400", X), margin=0.01)
        assert np.array_equal(check.at_bases(q, {"irb2400": X.matrix()}), there(q))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["closed", "numeric"])
def test_answers_are_those_of_states_row_by_row(method: str):
    cell, state, check = scene()
    _, bases, X = rows()
    ik = cell.ik("tool0", state=state, avoid=check)
    found = ik(X, bases={"irb2400": bases}, method=method)
    count = ROWS if method == "closed" else 8
    for k in range(count):
        there, own = each(k)
        one = cell.ik("tool0", state=there, avoid=own)(X[k], method=method)
        assert one.reason == found.reason[k]
        if found.success[k]:
            assert not own(found.q[k])
            apart = cell.fk("tool0", state=there)(found.q[k]) - X[k]
            assert np.abs(apart).max() < 3e-6
        if method == "closed" and one.success:
            assert np.allclose(one.q, found.q[k], atol=1e-7)
    assert {Reason.SOLVED, Reason.IN_COLLISION} <= set(found.reason)


@pytest.mark.filterwarnings("ignore")
def test_all_and_best_take_bases_too():
    cell, state, check = scene()
    _, bases, X = rows()
    ik = cell.ik("tool0", state=state, avoid=check)
    every = ik.all(X[:6], bases={"irb2400": bases[:6]})
    best = ik.best(X[:6], "limits", bases={"irb2400": bases[:6]})
    for k in range(6):
        there, own = each(k)
        one = cell.ik("tool0", state=there, avoid=own).all(X[k])
        assert np.array_equal(one.reason, every.reason[k])
        assert np.allclose(one.q, every.q[k], atol=1e-7, equal_nan=True)
        assert best.success[k] == every.success[k].any()


@pytest.mark.filterwarnings("ignore")
def test_a_path_is_followed_while_the_base_moves():
    cell, state, _ = scene()
    arm_alone = cell.ik("tool0", state=state)
    start = np.array([0.3, 0.2, 0.1, 0.4, 0.6, 0.2])
    # The base drives by while the tool stays where it is.
    X = cell.fk("tool0")(start)
    ways = np.linspace(0.0, 0.3, 31)
    bases = np.array([arm.Pose.translation(0.0, y, 0.0).matrix() for y in ways])
    still = np.broadcast_to(X, bases.shape)
    path = arm_alone.path(still, start=start, bases={"irb2400": bases})
    assert path.answer.success.all()
    assert not path.jumps.size
    np.testing.assert_allclose(
        bases @ cell.fk("tool0")(path.answer.q), still, atol=1e-5
    )
    assert np.ptp(path.answer.q[:, 0]) > 0.1
    # A base that stands elsewhere is that of a state.
    placed = cell.ik("tool0", state=state.place("irb2400", bases[-1]))
    targets = np.stack([arm.Pose.translation(0.0, 0.0, z).matrix() @ X for z in ways])
    there = {"irb2400": bases[-1]}
    ours = arm_alone.path(targets, start=start, bases=there)
    theirs = placed.path(targets, start=start)
    np.testing.assert_allclose(ours.answer.q, theirs.answer.q, atol=1e-6)
    assert ours.jumps.tolist() == theirs.jumps.tolist()
    with pytest.raises(ShapeError, match="does not fit targets of batch"):
        arm_alone.path(targets[:5], start=start, bases={"irb2400": bases})


def test_one_target_at_many_bases_is_a_reach_map():
    cell, state, check = scene()
    _, bases, X = rows()
    ik = cell.ik("tool0", state=state, avoid=check)
    many = ik(np.broadcast_to(X[0], (ROWS, 4, 4)), bases={"irb2400": bases})
    one = ik(X[0], bases={"irb2400": bases[0]})
    assert one.reason == many.reason[0]
    assert np.allclose(one.q, many.q[0])
    without = cell.ik("tool0", state=state)
    free = without(np.broadcast_to(X[0], (ROWS, 4, 4)), bases={"irb2400": bases})
    assert (free.success | ~many.success).all()


def test_a_base_may_carry_the_frame_of_targets():
    # The table moves, and the arm stays: targets are given in the table.
    table = arm.Manipulator(name="table", links=[arm.Link(name="top")])
    cell = (
        arm.Cell()
        .add(arm.example("irb2400").manipulators[0])
        .add(table, pose=arm.Pose.translation(1.0, 0.2, 0.3), bolted=False)
    )
    q, bases, _ = rows()
    tables = arm.Pose.translation(1.0, 0, 0).matrix() @ bases
    targets = np.linalg.inv(tables) @ cell.fk("tool0")(q)
    ik = cell.ik("tool0", relative_to="table/top")
    found = ik(targets, bases={"table": tables})
    assert found.success.all()
    reached = np.linalg.inv(tables) @ cell.fk("tool0")(found.q)
    assert np.abs(reached - targets).max() < 1e-9
    # What one base carries with its target does not depend on where it is.
    own = cell.ik("tool0", relative_to="table/top", position="xy", axes="relative_to")
    with pytest.raises(ModelError, match="turn against the base"):
        own(targets, bases={"table": tables})


BAD: list[tuple[Any, type[Exception], str]] = [
    ({"nobody": np.eye(4)}, UnknownName, "no manipulator named 'nobody'"),
    ({"shelf": np.eye(4)}, StateError, "fixed to 'world'"),
    ({"irb2400": np.ones((4, 4))}, ModelError, "not rigid"),
    ({"irb2400": np.eye(3)}, ShapeError, "shape"),
    ({"irb2400": np.tile(np.eye(4), (7, 1, 1))}, ShapeError, "does not fit"),
    ({"irb2400": np.full((4, 4), np.nan)}, ModelError, "not rigid"),
    ({"part": np.eye(4)}, ModelError, "attached to 'irb2400/tool0'"),
    (5, ModelError, "bases= takes poses by the names"),
    ({1: np.eye(4)}, ModelError, "bases= takes poses by the names"),
    ({}, ModelError, "names no manipulator"),
    ({"irb2400": "here"}, ShapeError, "needs real numbers"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("bases", "kind", "message"), BAD)
def test_bases_that_cannot_be_are_refused(
    bases: Any, kind: type[Exception], message: str
):
    cell, state, check = scene()
    ik = cell.ik("tool0", state=state, avoid=check)
    with pytest.raises(kind, match=message):
        ik(rows()[2], bases=bases)


@pytest.mark.filterwarnings("ignore")
def test_checks_at_bases_name_what_is_wrong_with_their_input():
    _, _, check = scene()
    X = {"irb2400": np.eye(4)}
    with pytest.raises(ShapeError, match=r"q of shape \(\.\.\., 6\)"):
        check.at_bases(np.zeros(2), X)
    for bases in (None, [], {1: np.eye(4), **X}):
        with pytest.raises(ModelError, match="by the names of manipulators"):
            check.at_bases(np.zeros(6), bases)


@pytest.mark.filterwarnings("ignore")
def test_checks_of_the_user_are_asked_with_bases_or_refused():
    cell, state, check = scene()

    class Plain:
        """A check that takes joint positions alone."""

        cell = check.cell
        state = check.state

        def __call__(self, q: Any) -> Any:
            return check(q)

    ik = cell.ik("tool0", state=state, avoid=Plain())  # pyright: ignore
    with pytest.raises(ModelError, match="needs a method at_bases"):
        ik(rows()[2], bases={"irb2400": rows()[1]})


def test_a_base_with_an_offset_of_its_own():
    # The base link's joint has a precursor, behind the pose that states place.
    links = list(arm.example("irb2400").manipulators[0].links)
    offset = arm.Pose.translation(0.1, 0.2, 0.3) @ arm.Pose.rotation_z(0.4)
    links[0] = links[0].replace(joint=arm.joints.Fixed(precursor=offset))
    made = arm.Manipulator(name="arm", links=links)
    cell = arm.Cell().add(made, bolted=False, pose=arm.Pose.translation(0.5, 0, 0))
    q, bases, _ = rows()
    X = np.array(
        [
            cell.fk("tool0", state=cell.home.place("arm", base))(one)
            for base, one in zip(bases[:6], q[:6], strict=True)
        ]
    )
    found = cell.ik("tool0")(X, bases={"arm": bases[:6]}, near=q[:6])
    assert found.success.all()
    assert np.abs(found.q - q[:6]).max() < 1e-9


@pytest.mark.parametrize("at", [(0.0, 0.0, 0.0), (3.0, 0.0, 0.0)])
@pytest.mark.filterwarnings("ignore")
def test_rules_of_home_and_obstacles_mean_what_they_mean_in_states(at: Any):
    # Where the base is at home decides, not where its carrier is at zero; and a base
    # that stands on an obstacle is not tested against it.
    table = arm.Manipulator(
        name="table", links=[arm.Link(name="top", collisions=box(1.0, 1.0, 0.1))]
    )
    post = arm.shapes.Box(size=(0.1, 0.1, 1.0), pose=arm.Pose.translation(0.4, 0, 0.5))
    turn = arm.joints.Revolute(axis=(0, 0, 1))
    mast = arm.Manipulator(
        name="mast",
        links=[
            arm.Link(name="foot", collisions=box(0.3, 0.3, 0.2)),
            arm.Link(name="head", parent="foot", joint=turn, collisions=[post]),
        ],
    )
    cell = arm.Cell().add(table).add(mast, pose=arm.Pose.translation(*at), bolted=False)
    cell = cell.replace(rules=cell.rules.exclude("*", "*", where="home"))
    beam = arm.shapes.Box(size=(0.1, 0.1, 0.1), pose=arm.Pose.translation(3.4, 0, 0.8))
    scene = {"floor": arm.shapes.Box(size=(9.0, 9.0, 0.05)), "beam": beam}
    allowed = [("floor", "mast/head")]
    for given in ({}, scene):
        pairs = allowed if given else []
        check = cell.collision().with_obstacles(given, allowed=pairs)
        bases = np.tile(np.eye(4), (4, 1, 1))
        bases[:, 0, 3] = [0.0, 0.5, 3.0, 7.0]
        expected = [
            cell.collision(cell.home.place("mast", X)).with_obstacles(
                given, allowed=pairs
            )([0.0])
            for X in bases
        ]
        assert check.at_bases([0.0], {"mast": bases}).tolist() == expected
        assert any(expected) == (bool(given) or at != (0.0, 0.0, 0.0))
