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
