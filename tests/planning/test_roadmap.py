"""Roadmaps: shared by questions, and repaired when what must not touch changes."""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError, UnknownName
from armillary.planning.roadmap import MOST_DOUBLINGS
from armillary.shapes import Sphere
from ball_arm import (
    BALL,
    BALLS,
    among_balls,
    at,
    cell_of,
    centres,
    dense,
    free_positions,
)

MOVED = (0.3, -0.2, 0.1)

END_AT = 1.0
END = tuple(centres(np.array([[END_AT, 0.0, 0.0, 0.0]]))[0, -1].tolist())
"""Where the last ball of the arm is with its first joint there."""


@functools.cache
def roadmap(lazy: bool = True) -> arm.Roadmap:
    cell = among_balls()
    return cell.roadmap(cell.collision(), nodes=300, lazy=lazy)


@functools.cache
def moved_check():
    cell = among_balls()
    state = cell.home.place("thing0", arm.Pose.translation(*MOVED))
    return cell.collision(state)


def gap(q, first=(0.0, 0.0, 0.0)) -> float:
    """Return the least distance of a way from the balls, the first of which moved."""
    balls = np.array(BALLS)
    balls[0] += first
    between = centres(dense(q, 400))[:, :, None] - balls
    return float(np.linalg.norm(between, axis=-1).min()) - 0.15 - BALL


def problems(check, count: int):
    return list(pairwise(free_positions(check, count + 1)))


def test_ways_along_a_roadmap_touch_nothing():
    found = cornered = 0
    for start, goal in problems(roadmap().check, 14):
        plan = roadmap()(start, goal)
        if plan:
            found += 1
            cornered += len(plan.q) > 2
            assert plan.proven and gap(plan.q) > 0.0
            assert (plan.q[0] == start).all() and (plan.q[-1] == goal).all()
            ways = np.linalg.norm(np.diff(plan.q, axis=0), axis=1)
            assert plan.length == pytest.approx(ways.sum())
    assert found >= 13 and cornered > 3


def test_answers_do_not_depend_on_what_was_asked_before():
    pairs = problems(roadmap().check, 8)
    cell = among_balls()
    fresh = cell.roadmap(cell.collision(), nodes=300, lazy=True)
    ways = [fresh(*pair).q for pair in reversed(pairs)][::-1]
    for pair, way in zip(pairs, ways, strict=True):
        assert (roadmap(lazy=False)(*pair).q == way).all()


def test_what_is_lazy_tests_only_what_it_needs():
    assert roadmap(lazy=False).tested > 1000
    cell = among_balls()
    fresh = cell.roadmap(cell.collision(), nodes=300, lazy=True)
    assert fresh.tested == 0 and fresh.nodes == 300 and fresh.edges > 1000
    for pair in problems(fresh.check, 8):
        fresh(*pair)
    assert 0 < fresh.tested < fresh.edges / 4
    assert "300 nodes" in repr(fresh)


def test_a_roadmap_is_repaired_for_another_scene():
    check = moved_check()
    repaired, whole = (roadmap().with_check(check, lazy=lazy) for lazy in (True, False))
    assert repaired.tested == 0 and whole.tested > 1000
    old = roadmap()
    refuted = 0
    for start, goal in problems(check, 14):
        plan = repaired(start, goal)
        again = whole(start, goal)
        assert plan.reason is again.reason and np.array_equal(plan.q, again.q)
        if plan:
            assert plan.proven and gap(plan.q, MOVED) > 0.0
        before = old(start, goal)
        if before:  # the old one still answers of the old scene
            assert gap(before.q) > 0.0
            refuted += gap(before.q, MOVED) <= 0.0
    assert refuted  # so the two scenes differ


def test_threads_ask_old_and_new_scenes_while_they_change():
    current = [roadmap()]
    pairs = problems(roadmap().check, 6)

    def ask(k: int):
        asked = current[0]
        return asked, asked(*pairs[k % len(pairs)], timeout=None)

    with ThreadPoolExecutor(4) as pool:
        answers = []
        for k in range(24):
            answers.append(pool.submit(ask, k))
            check = moved_check() if k % 2 == 0 else roadmap().check
            current[0] = current[0].with_check(check)
        both = [each.result() for each in answers]
    scenes = set()
    for asked, plan in both:
        is_moved = asked.check is moved_check()
        scenes.add(is_moved)
        if plan:
            assert gap(plan.q, MOVED if is_moved else (0.0, 0.0, 0.0)) > 0.0
    assert len(scenes) == 2


def test_a_roadmap_within_constraints():
    cell = among_balls()
    level = arm.FrameConstraint(
        "robot/link3",
        target=arm.Pose.translation(0.0, 0.0, 0.12),
        position="z",
        rotation="",
    )
    road = cell.roadmap(cell.collision(), nodes=300, lazy=True, constraints=[level])
    Q = road.graph.Q[road.graph.is_free]
    found = 0
    for start, goal in pairwise(Q[:7]):
        plan = road(start, goal)
        if plan:
            found += 1
            X = centres(dense(plan.q, 400))
            height = 2.0 * X[:, 6, 2] - X[:, 7, 2]
            assert np.abs(height - 0.12).max() < 1e-3 and plan.proven
    assert found > 2


def test_bounds_hold_for_all_questions():
    cell = among_balls()
    road = cell.roadmap(cell.collision(), nodes=100, bounds={"robot/link0": (0.0, 1.0)})
    Q = free_positions(road.check, 40)
    inside = Q[(Q[:, 0] >= 0.0) & (Q[:, 0] <= 1.0)]
    outside = Q[(Q[:, 0] < 0.0)]
    plan = road(inside[0], inside[1])
    assert not plan or (plan.q[:, 0].min() >= 0.0 and plan.q[:, 0].max() <= 1.0)
    plan = road(inside[0], outside[0])
    assert plan.reason is arm.PlanReason.LIMITS and plan.joints == ("robot/link0",)


def test_ends_that_touch_are_named():
    check = roadmap().check
    Q = np.random.default_rng(0).uniform(-2.5, 2.5, (200, 4))
    bad, good = Q[check(Q)][0], Q[~check(Q)][0]
    plan = roadmap()(bad, good)
    assert plan.reason is arm.PlanReason.START_TOUCHES and plan.pairs
    plan = roadmap()(good, bad)
    assert plan.reason is arm.PlanReason.GOAL_TOUCHES and plan.pairs


def test_what_does_not_fit_is_refused():
    cell, check = among_balls(), roadmap().check
    other = arm.example("irb2400")
    track = arm.example("ur5e_on_oval")
    keep = arm.FrameConstraint("robot/link3", position="z", rotation="")
    for make, error, message in (
        (lambda: cell.roadmap(check, nodes=0), ModelError, "nodes"),
        (lambda: other.roadmap(check), ModelError, "another cell"),
        (lambda: roadmap().with_check(other.collision()), ModelError, "another cell"),
        (lambda: track.roadmap(track.collision()), ModelError, "have no limits"),
        (lambda: cell.roadmap(check, constraints=[keep]), ModelError, "has no target"),
        (lambda: cell.roadmap(check, bounds={"x": (0, 1)}), UnknownName, "x"),
    ):
        with pytest.raises(error, match=message):
            make()


@pytest.mark.parametrize("seed", [-1, 1.5, "a"])
def test_a_seed_is_a_whole_number(seed):
    cell, start = among_balls(), np.zeros(4)
    with pytest.raises(ModelError, match="seed"):
        cell.roadmap(roadmap().check, nodes=1, seed=seed)
    with pytest.raises(ModelError, match="seed"):
        roadmap()(start, start, seed=seed)


def test_a_roadmap_grows_where_it_has_no_way():
    cell = among_balls()
    pairs = problems(roadmap().check, 14)
    small = cell.roadmap(cell.collision(), nodes=2)
    plans = [small(*pair, timeout=None) for pair in pairs]
    assert min(plan.nodes for plan in plans) == 2
    assert max(plan.nodes for plan in plans) > 4
    assert all(plan.proven and gap(plan.q) > 0.0 for plan in plans if plan)
    assert sum(plan.success for plan in plans) >= 13
    # It stays what it was for questions that need no more, in any order.
    other = cell.roadmap(cell.collision(), nodes=2, lazy=True)
    for pair, plan in zip(reversed(pairs), reversed(plans), strict=True):
        again = other(*pair, timeout=None)
        assert np.array_equal(again.q, plan.q) and again.nodes == plan.nodes
    assert small.nodes == other.nodes == 2


def test_a_roadmap_ends_where_there_is_no_way():
    # A ball fills the way of the only joint, so that its ends are separated.
    cell = cell_of([at(Sphere, *END, radius=0.05)], limit=2.6)
    lone = {f"robot/link{k}": (0.0, 0.0) for k in (1, 2, 3)}
    made = cell.roadmap(cell.collision(), nodes=3, bounds=lone)
    first = [END_AT - 0.5, 0.0, 0.0, 0.0]
    last = [END_AT + 0.5, 0.0, 0.0, 0.0]
    plan = made(first, last, timeout=None)
    assert plan.reason is arm.PlanReason.NOT_FOUND
    assert plan.nodes == 3 * 2**MOST_DOUBLINGS and made.nodes == 3
    assert made(first, first, timeout=None).success
