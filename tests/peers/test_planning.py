"""Planned motions of arms in hulls, judged by coal at small steps."""

from __future__ import annotations

import os

import numpy as np
import pytest
from benchmarks import planning_sets
from benchmarks.planning_judges import CoalJudge, SphereJudge, samples
from benchmarks.planning_peers import (
    CAGE_GOAL,
    CAGE_START,
    Vamp,
    among,
    cage_shapes,
    panda_of_vamp,
    vamp_source,
)
from benchmarks.planning_sets import hulls, setting

pytestmark = pytest.mark.peers

COUNT = 3


@pytest.mark.filterwarnings("ignore:Collision shapes of")
@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("robot", "scene"),
    # Each robot and each scene once; all twelve sets are in benchmarks/planning.py.
    [("ur5", "shelf"), ("oval", "box"), ("two", "cage"), ("ur5", "table")],
)
def test_coal_finds_no_way_touching(
    robot: str, scene: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(planning_sets, "CANDIDATES", 30)
    made = setting(robot, scene, hulls())
    judge = CoalJudge(made.cell, made.check)
    lower, upper = made.cell.limits
    Q = np.random.default_rng(0).uniform(0.5 * lower, 0.5 * upper, (100, len(lower)))
    assert judge.touching(Q).tolist() == made.check(Q).tolist()
    planner = made.cell.planner(made.check)
    found = made.problems(COUNT)
    assert len(found) == COUNT
    for seed, problem in enumerate(found):
        plan = planner(problem.start, problem.goal, seed=seed, timeout=None)
        assert plan.proven, plan
        assert not judge.touching(samples(plan.q)).any()


@pytest.mark.skipif(vamp_source() is None, reason="VAMP_SOURCE names no VAMP")
def test_ways_in_the_cage_of_vamp_are_free_and_as_short():
    assert os.environ["VAMP_SOURCE"]
    cell = among(panda_of_vamp(), cage_shapes())
    planner, judge = cell.planner(check := cell.collision()), None
    judge = SphereJudge(cell, check)
    vamp = Vamp()
    environment = vamp.cage()
    ours, theirs = [], []
    for seed in range(10):
        plan = planner(CAGE_START, CAGE_GOAL, seed=seed, timeout=None)
        assert plan.proven
        ours.append(plan.length)
        theirs.append(vamp(CAGE_START, CAGE_GOAL, environment, seed=seed).length)
        if seed < 2:
            assert judge.depth(plan.q, 1000) <= 0.0
    assert np.median(ours) < 1.15 * np.median(theirs)
