"""Paths: no jump where none is needed, the fewest where some are, each of them told."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ShapeError
from armillary.solve.ik.answers import Answers
from armillary.solve.ik.path import through_branches
from armillary.solve.ik.reason import Reason
from armillary.solve.ik.solution import Solution

LARGEST = 0.5


@pytest.fixture(scope="module")
def cell() -> arm.Cell:
    return arm.example("ur5e_on_oval")


@pytest.fixture(scope="module")
def ik(cell: arm.Cell):
    return cell.ik("tool0", joints=list(cell.joint_names[1:]))


def _way(cell: arm.Cell, a: list[float], b: list[float], count: int) -> np.ndarray:
    u = np.linspace(0.0, 1.0, count)[:, None]
    q = np.array(a) * (1.0 - u) + np.array(b) * u
    return cell.fk("tool0", joints=list(cell.joint_names[1:]))(q)


def test_a_motion_of_joints_is_followed_from_anywhere(cell: arm.Cell, ik):
    rng = np.random.default_rng(0)
    for _ in range(5):
        a = rng.uniform(-1.5, 1.5, 6)
        targets = _way(cell, a.tolist(), (a + rng.uniform(-0.6, 0.6, 6)).tolist(), 200)
        path = ik.path(targets)
        assert path.answer.success.all()
        assert path.jumps.size == 0
        assert path.largest_step < 0.2


def test_a_straight_wrist_on_the_way_is_passed(cell: arm.Cell, ik):
    """There the closed form has no single answer; the way goes on all the same."""
    a = [0.3, -1.2, 1.4, -1.0, -0.4, 0.2]
    b = [0.3, -1.2, 1.4, -1.0, 0.4, 0.2]
    targets = _way(cell, a, b, 201)
    path = ik.path(targets, start=a)
    assert path.answer.success.all()
    assert path.jumps.size == 0


def test_a_start_far_from_the_first_pose_counts_as_a_jump(cell: arm.Cell, ik):
    a = [0.3, -1.2, 1.4, -1.0, 0.9, 0.2]
    targets = _way(cell, a, a, 3)
    assert list(ik.path(targets, start=a).jumps) == []
    far = [a[0] + 2.0, *a[1:]]
    assert list(ik.path(targets, start=far).jumps) == [0]


def test_rows_that_fail_are_told_and_the_way_goes_on(cell: arm.Cell, ik):
    a = [0.3, -1.2, 1.4, -1.0, 0.9, 0.2]
    targets = _way(cell, a, [0.5, -1.0, 1.2, -0.8, 1.1, 0.4], 40)
    targets[7, 0, 0] = math.nan
    targets[20, :3, 3] = 50.0
    path = ik.path(targets, start=a)
    assert path.answer.reason[7] == Reason.INVALID_TARGET
    assert path.answer.reason[20] == Reason.OUT_OF_REACH
    assert np.delete(path.answer.success, [7, 20]).all()
    good = np.delete(path.answer.q, [7, 20], axis=0)
    assert np.abs(np.diff(good, axis=0)).max() < 0.1


def test_an_empty_path_is_empty(ik):
    path = ik.path(np.zeros((0, 4, 4)))
    assert path.answer.q.shape == (0, 6)
    assert path.jumps.size == 0


def test_a_path_is_one_sequence(ik):
    with pytest.raises(ShapeError, match="one sequence"):
        ik.path(np.tile(np.eye(4), (2, 3, 1, 1)))


@pytest.mark.parametrize("seed", range(6))
def test_no_way_through_the_branches_is_better(seed: int):
    """All ways of a short path are compared."""
    rng = np.random.default_rng(seed)
    count, branches = 6, 3
    q = rng.uniform(-1.0, 1.0, (count, branches, 2)) * 0.6
    success = rng.uniform(size=(count, branches)) < 0.7
    success[rng.integers(count)] = True
    squares = np.zeros((count, branches, 2))
    reason = np.where(success, 0, 1).astype(np.int8)
    answers = Answers(q, success, squares, reason, (), complete=True)
    none = np.zeros(count, np.int64)
    other = Solution(
        q=np.full((count, 2), 9.0),
        reason=np.ones(count, np.int8),
        residual=np.ones((count, 2)),
        steps=none,
        starts=none,
    )
    start = q[0, 0]
    found = through_branches(answers, other, LARGEST, start)
    some = [k for k in range(count) if success[k].any()]
    assert (found.q[[k for k in range(count) if k not in some]] == 9.0).all()

    def cost(way: np.ndarray) -> tuple[int, float]:
        steps = np.abs(np.diff(way, axis=0, prepend=start[None])).max(axis=1)
        jumps = steps > LARGEST
        return int(jumps.sum()), float((steps[~jumps] ** 2).sum())

    ways = itertools.product(*(np.flatnonzero(success[k]) for k in some))
    least = min(cost(q[some, list(way)]) for way in ways)
    got = cost(found.q[some])
    assert got[0] == least[0]
    if least[0] == 0:
        assert got[1] == pytest.approx(least[1])
