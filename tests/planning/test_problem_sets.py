"""Problems that are known to have ways, judged by what shares no code with checks."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from benchmarks import planning_sets
from benchmarks.collisions import cell_with, random_q
from benchmarks.planning_judges import LinkPoses, SphereJudge
from benchmarks.planning_peers import among, cage_shapes
from benchmarks.planning_sets import MAKERS, Problem, capsules, setting

import armillary as arm

SCENES = "table", "shelf", "box", "cage"
# Capsules are too thick for both cages at once: no target is known to be reached.
SETS = [(a, b) for a in MAKERS for b in SCENES if (a, b) != ("two", "cage")]
COUNT = 2
STEP = 0.01


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer ends of ways in each scene."""
    monkeypatch.setattr(planning_sets, "CANDIDATES", 30)


@cache
def problems(robot: str, scene: str) -> tuple[Problem, ...]:
    return tuple(setting(robot, scene, capsules()).problems(COUNT))


def along(way: np.ndarray) -> np.ndarray:
    """Return rows along way points, no joint moving farther than a step."""
    rows = [way[:1]]
    for a, b in pairwise(way):
        count = int(np.ceil(np.abs(b - a).max() / STEP)) + 1
        rows.append(a + np.linspace(0.0, 1.0, count)[1:, None] * (b - a))
    return np.concatenate(rows)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("robot", "scene"), SETS)
def test_every_problem_is_solved_and_nothing_touches(robot: str, scene: str):
    found = problems(robot, scene)
    assert len(found) == COUNT
    made = found[0].setting
    planner = made.cell.planner(made.check)
    for seed, problem in enumerate(found):
        # The problem is what it says: its own way is free, a straight one is not.
        assert made.check.motion(problem.way[:-1], problem.way[1:]).free.all()
        assert np.array_equal(problem.way[[0, -1]], [problem.start, problem.goal])
        assert made.check(along(np.array([problem.start, problem.goal]))).any()
        plan = planner(problem.start, problem.goal, seed=seed, timeout=None)
        assert plan.success, plan
        assert plan.proven
        assert np.array_equal(plan.q[[0, -1]], [problem.start, problem.goal])
        assert not made.check(along(plan.q)).any()


def test_the_same_seed_makes_the_same_problems():
    again = setting("ur5", "box", capsules()).problems(COUNT)
    for one, other in zip(problems("ur5", "box"), again, strict=True):
        assert np.array_equal(one.way, other.way)
    other = setting("ur5", "box", capsules()).problems(COUNT, seed=1)
    assert not np.array_equal(other[0].start, again[0].start)


def caged() -> arm.Cell:
    return among(cell_with(()), cage_shapes())


def test_ways_out_of_a_cage_of_spheres_are_free_by_numpy():
    cell = caged()
    check = cell.collision()
    planner, judge = cell.planner(check), SphereJudge(cell, check)
    Q = random_q(400, seed=5)
    Q = Q[check.clearance(Q) > 0.01][:6]
    assert len(Q) == 6
    refused = 0
    for seed, (a, b) in enumerate(pairwise(Q)):
        refused += judge.depth(np.array([a, b]), 400) > 0.0
        plan = planner(a, b, seed=seed, timeout=None)
        assert plan.proven, plan
        assert judge.depth(plan.q, 400) <= 0.0
    assert refused > 2  # straight motions touch: there was something to plan


def test_the_judge_of_spheres_sees_what_checks_see():
    cell = caged()
    check = cell.collision()
    judge = SphereJudge(cell, check)
    for q in random_q(60, seed=1):
        deep, clearance = judge.depth(np.array([q, q]), 2), check.clearance(q)
        assert (deep > 0.0) == (clearance < 0.0)
    poses = LinkPoses(cell)
    Q = random_q(20, seed=2)
    for name in ("panda/link7", "panda/left"):
        X = poses(Q)[:, poses.names.index(name)]
        assert np.abs(X - cell.fk(name)(Q)).max() < 1e-12
