"""Planned ways, judged by formulas of their own: dense samples in plain NumPy."""

from __future__ import annotations

import dataclasses
import functools
import logging
import pickle
import signal
from itertools import pairwise

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError, ShapeError, StateError, UnknownName
from armillary.planning.edges import EdgeTests, check_in_python
from armillary.planning.loop import (
    LoopGround,
    LoopOptions,
    NativeLoop,
    Space,
)
from armillary.planning.loop_memory import (
    LoopKind,
    LoopMemory,
    Problem,
)
from armillary.planning.planner import STEP
from armillary.shapes import Box, Capsule, ConvexPolyhedron, Cylinder, HalfSpace, Sphere
from ball_arm import (
    BALL,
    BALLS,
    Wave,
    among_balls,
    at,
    cell_of,
    centres,
    dense,
    free_positions,
)

Array = np.ndarray


@functools.cache
def planner_of_balls() -> arm.Planner:
    cell = among_balls()
    return cell.planner(cell.collision())


def problems(check, count: int, seed: int = 0):
    Q = free_positions(check, count + 1, seed)
    return list(pairwise(Q))


def test_ways_touch_nothing_between_their_points():
    planner = planner_of_balls()
    cornered = 0
    for start, goal in problems(planner.check, 8):
        plan = planner(start, goal, seed=1, timeout=None)
        assert plan.reason is arm.PlanReason.FOUND and plan.success and plan
        assert plan.proven and plan.goal == 0
        assert (plan.q[0] == start).all() and (plan.q[-1] == goal).all()
        cornered += len(plan.q) > 2
        X = centres(dense(plan.q))
        gaps = np.linalg.norm(X[:, :, None] - np.array(BALLS), axis=-1) - 0.15 - BALL
        assert gaps.min() > 0.0
        assert planner.check.motion(plan.q[:-1], plan.q[1:]).free.all()
        ways = np.linalg.norm(np.diff(plan.q, axis=0), axis=1)
        assert plan.length == pytest.approx(ways.sum())
    assert cornered > 2  # some problems need a search


def test_the_margin_of_the_check_is_kept():
    cell = among_balls()
    check = cell.collision(margin=0.03)
    planner = cell.planner(check)
    for start, goal in problems(check, 3):
        plan = planner(start, goal)
        assert plan.success
        X = centres(dense(plan.q))
        gaps = np.linalg.norm(X[:, :, None] - np.array(BALLS), axis=-1) - 0.15 - BALL
        assert gaps.min() > 0.03


def test_a_seed_gives_one_way_whatever_else_is_planned():
    planner = planner_of_balls()
    pairs = problems(planner.check, 24)
    alone = [planner(a, b, seed=7, timeout=None) for a, b in pairs]
    again = among_balls().planner(among_balls().collision())
    for (a, b), plan in list(zip(pairs, alone, strict=True))[::-1]:
        assert np.array_equal(again(a, b, seed=7, timeout=None).q, plan.q)
    starts, goals = np.array([a for a, _ in pairs]), [b for _, b in pairs]
    for threads in (1, 3):
        batch = planner.batch(starts, goals, seed=7, threads=threads, timeout=None)
        for one, plan in zip(batch, alone, strict=True):
            assert np.array_equal(one.q, plan.q)
            assert one.checks == plan.checks and one.length == plan.length
    others = [planner(a, b, seed=8, timeout=None) for a, b in pairs]
    assert any(not np.array_equal(x.q, y.q) for x, y in zip(alone, others, strict=True))


def test_any_of_several_goals_is_reached_and_said_which():
    planner = planner_of_balls()
    start, *goals = free_positions(planner.check, 6)
    touching = centre_of_ball(planner)
    plan = planner(start, [touching, *goals])
    assert plan.success and plan.goal >= 1
    assert (plan.q[-1] == goals[plan.goal - 1]).all()
    assert planner(start, np.array(goals)).success
    state = among_balls().home.replace(q=goals[0])
    assert (planner(start, state).q[-1] == goals[0]).all()


def centre_of_ball(planner) -> Array:
    """Return joint positions at which links touch."""
    Q = np.random.default_rng(3).uniform(-2.0, 2.0, (2000, 4))
    return Q[planner.check(Q)][0]


def test_more_time_gives_shorter_ways_that_are_proven():
    planner = planner_of_balls()
    start, goal = cornered_problem(planner)
    first = planner(start, goal, timeout=None)
    shorter = planner(start, goal, timeout=None, improve=0.1)
    assert shorter.proven and shorter.length <= first.length
    assert shorter.edges > 10 * first.edges  # it has searched on
    assert (shorter.q[0] == start).all() and (shorter.q[-1] == goal).all()
    assert shorter.length >= np.linalg.norm(goal - start)
    assert planner.check.motion(shorter.q[:-1], shorter.q[1:]).free.all()
    assert not planner.check(dense(shorter.q)).any()
    several = planner(start, [goal, goal + 0.01], timeout=None, improve=0.02)
    assert several.success and several.goal in {0, 1}
    with pytest.raises(ModelError, match="time to improve must be"):
        planner(start, goal, improve=-1.0)


# Reasons


def test_what_touches_at_the_start_or_goal_is_named():
    planner = planner_of_balls()
    free, touching = free_positions(planner.check, 1)[0], centre_of_ball(planner)
    plan = planner(touching, free)
    assert plan.reason is arm.PlanReason.START_TOUCHES and not plan
    assert plan.pairs and plan.q.shape == (0, 4) and plan.goal == -1
    assert any(name.startswith("thing") for one in plan.pairs for name in one.links)
    assert plan.pairs[0].links[0] in repr(plan)
    plan = planner(free, [touching, touching])
    assert plan.reason is arm.PlanReason.GOAL_TOUCHES and plan.pairs


def test_times_of_plans_are_in_seconds_from_one_on():
    planner = planner_of_balls()
    start = free_positions(planner.check, 1)[0]
    plan = planner(start, start)
    for seconds, text in ((9.6, ", 9.6 s>"), (0.0123, ", 12.3 ms>")):
        assert repr(dataclasses.replace(plan, seconds=seconds)).endswith(text)


def test_positions_beyond_limits_name_their_joints():
    planner = planner_of_balls()
    free = free_positions(planner.check, 1)[0]
    beyond = free.copy()
    beyond[2] = 3.0
    for plan in (planner(beyond, free), planner(free, beyond)):
        assert plan.reason is arm.PlanReason.LIMITS
        assert plan.joints == ("robot/link2",) or "link2" in plan.joints[0]
        assert "link2" in repr(plan)
    assert planner(free, [beyond, free]).success  # another goal is within


@pytest.mark.parametrize("room", [0.8, 1e-6])
def test_limits_that_couple_joints_are_kept(room: float):
    sums = {"robot/link0": 1.0, "robot/link3": -2.0}
    limit = arm.CoupledLimit(joints=sums, lower=-room, upper=room, name="cable")
    cell = among_balls().replace(coupled_limits=[limit])
    check = cell.collision()
    planner = cell.planner(check)
    Q = cell.limit_rows.nearest(free_positions(check, 300), *cell.limits)
    Q = Q[~check(Q) & cell.within_limits(Q)]
    searched = 0
    for start, goal in pairwise(Q[:14]):
        plan = planner(start, goal, timeout=None, improve=0.001)
        assert plan.success and plan.proven and cell.within_limits(plan.q).all()
        value = dense(plan.q, 200) @ [1.0, 0.0, 0.0, -2.0]
        assert abs(value).max() <= room + 1e-15
        motion = plan.timed(acceleration=5.0)
        value = motion.sampled(count=500).q @ [1.0, 0.0, 0.0, -2.0]
        assert abs(value).max() <= room + 1e-14
        searched += len(plan.q) > 2
    assert searched > 2
    beyond = np.array([1.0, 0.0, 0.0, -1.0])
    for ends in ((beyond, Q[0]), (Q[0], beyond), (Q[0], [beyond, beyond])):
        plan = planner(*ends)
        assert plan.reason is arm.PlanReason.LIMITS and plan.joints == ("cable",)
    assert planner(Q[0], [beyond, Q[0]]).goal == 1
    assert planner.batch(Q[:2], [beyond, Q[1]])[0].joints == ("cable",)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_invalid(number: float):
    planner = planner_of_balls()
    free = free_positions(planner.check, 1)[0]
    bad = free.copy()
    bad[1] = number
    assert planner(bad, free).reason is arm.PlanReason.INVALID
    assert planner(free, bad).reason is arm.PlanReason.INVALID


def test_no_time_and_no_room_end_a_search():
    planner = planner_of_balls()
    start, goal = cornered_problem(planner)
    assert planner(start, goal, timeout=0.0).reason is arm.PlanReason.TIMED_OUT
    few = among_balls().planner(planner.check, nodes=2)
    assert few(start, goal, timeout=None).reason is arm.PlanReason.NOT_FOUND
    for timeout in (-1.0, np.nan):
        with pytest.raises(ModelError, match="timeout must be a number from 0 up"):
            planner(start, goal, timeout=timeout)


def cornered_problem(planner) -> tuple[Array, Array]:
    """Return a problem that a straight motion does not solve."""
    for start, goal in problems(planner.check, 20):
        if not planner.check.motion(start, goal).free:
            return start, goal
    raise AssertionError("all straight motions are free")


def ball_on_a_circle(limit: float) -> arm.Cell:
    """Return a ball that rides a circle of 1 m, with another ball at 0.3 rad."""
    ball = at(Sphere, 1.0, 0.0, 0.0, radius=0.1)
    links = [
        arm.Link(name="base"),
        arm.Link(
            name="ball",
            parent="base",
            joint=arm.joints.Revolute(axis=(0, 0, 1)),
            limits=arm.Limits(lower=-limit, upper=limit),
            collisions=[ball],
        ),
    ]
    other = at(Sphere, np.cos(0.3), np.sin(0.3), 0.0, radius=0.1)
    still = arm.Link(name="other", collisions=[other])
    return arm.Cell(
        manipulators=[
            arm.Manipulator(name="robot", links=links),
            arm.Manipulator(name="thing", links=[still]),
        ]
    )


def test_where_one_joint_moves_it_is_said_that_there_is_no_way():
    cell = ball_on_a_circle(3.0)
    planner = cell.planner(cell.collision())
    # Balls touch where 2 sin(angle / 2) is below both radii.
    near = 2.0 * np.arcsin(0.1)
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(20):
        start, *goals = rng.uniform(-3.0, 3.0, 1 + rng.integers(1, 3)).tolist()
        if abs(start - 0.3) < near or all(abs(x - 0.3) < near for x in goals):
            continue
        sides = [abs(x - 0.3) > near and (x > 0.3) == (start > 0.3) for x in goals]
        plan = planner([start], np.array(goals)[:, None], timeout=None)
        seen.add(plan.reason)
        assert plan.success == any(sides)
        if not plan:
            assert plan.reason is arm.PlanReason.SEPARATED
            assert [each.links for each in plan.pairs] == [
                ("robot/ball", "thing/other")
            ]
    assert seen == {arm.PlanReason.FOUND, arm.PlanReason.SEPARATED}
    one, other = planner.batch([[-1.0], [-1.0]], [[1.0], [-2.0]])
    assert one.reason is arm.PlanReason.SEPARATED and other.success
    # It may come from the other side.
    free = ball_on_a_circle(np.inf)
    plan = free.planner(free.collision())([-1.0], [1.0], timeout=0.05)
    assert plan.reason is not arm.PlanReason.SEPARATED


def test_a_shut_room_is_not_left():
    shut = [at(Box, 0.7, y, 0.0, size=(1.6, 0.05, 0.6)) for y in (0.25, -0.25)]
    shut += [at(Box, 0.7, 0.0, z, size=(1.6, 0.4, 0.05)) for z in (0.25, -0.25)]
    shut += [at(Box, x, 0.0, 0.0, size=(0.05, 0.4, 0.4)) for x in (1.3,)]
    cell = cell_of(shut)
    check = cell.collision()
    planner = cell.planner(check, nodes=100)
    inside = np.zeros(4)
    assert planner(inside, np.array([0.05, 0.0, 0.0, 0.0])).success
    outside = np.array([2.5, 0.0, 0.0, 0.0])
    assert not check(outside)
    # The first link alone cannot turn so far: its outer ball would be in a wall.
    x, y, _ = centres(np.array([[1.0, 0.0, 0.0, 0.0]]))[0, 1]
    assert 0.0 < x < 1.5 and abs(y - 0.25) < 0.025 + BALL
    plan = planner(inside, outside, timeout=None)
    assert plan.reason is arm.PlanReason.SEPARATED
    assert any("robot/link0" in pair.links for pair in plan.pairs)


class Stopped(Exception):
    """What a signal raises."""


def test_a_search_without_an_end_can_be_interrupted():
    """Without that it would fill its trees first, and return."""
    walls = [at(Box, 2.1, y, 0.0, size=(4.0, 0.05, 6.0)) for y in (0.25, -0.25)]
    cell = cell_of(walls)
    planner = cell.planner(cell.collision(), nodes=1_000_000)
    start, goal = np.zeros(4), np.array([2.5, 0.0, 0.0, 0.0])
    near = np.array([0.05, 0.2, -0.3, 0.1])
    usual = planner(start, near)  # which compiles
    assert usual.success

    def stop(*_):
        raise Stopped

    before = signal.signal(signal.SIGALRM, stop)
    try:
        for _ in range(8):
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(Stopped):
                planner(start, goal, timeout=None)
            # What was interrupted does not work on in the memory of the next one.
            assert (planner(start, near).q == usual.q).all()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def test_ways_are_the_same_in_another_thread(monkeypatch: pytest.MonkeyPatch):
    planner = planner_of_balls()
    usual = [planner(*ends, timeout=60.0) for ends in problems(planner.check, 6)]
    monkeypatch.setattr("armillary.planning.loop_memory.UNINTERRUPTED", 0)
    again = [planner(*ends, timeout=60.0) for ends in problems(planner.check, 6)]
    for one, other in zip(usual, again, strict=True):
        assert (one.q == other.q).all()
        assert (one.edges, one.checks) == (other.edges, other.checks)


def test_a_motion_of_no_length_is_a_way():
    planner = planner_of_balls()
    free = free_positions(planner.check, 1)[0]
    plan = planner(free, free)
    assert plan.success and plan.length == 0.0 and (plan.q == free).all()


def test_a_margin_that_never_holds_is_said_at_the_start():
    cell = among_balls()
    # The second and the first ball of one link stay as near as they are.
    rules = cell.rules.include("robot/link0", "robot/link1")
    check = cell.collision(rules=rules, margin=0.5)
    plan = cell.planner(check)(np.zeros(4), np.ones(4))
    assert plan.reason is arm.PlanReason.START_TOUCHES and plan.pairs


def test_a_check_without_pairs_is_said_aloud(caplog: pytest.LogCaptureFixture):
    cell = cell_of([])
    cell = cell.replace(rules=cell.rules.exclude("robot/*", "robot/*", reason="none"))
    with caplog.at_level(logging.WARNING, "armillary.planning"):
        planner = cell.planner(cell.collision())
        assert "no pairs" in caplog.text
        caplog.clear()
        cell.roadmap(cell.collision(), nodes=1)
    assert "no pairs" in caplog.text
    plan = planner(np.zeros(4), np.ones(4))
    assert plan.success and len(plan.q) == 2


def test_what_does_not_fit_is_refused():
    planner, cell = planner_of_balls(), among_balls()
    free = free_positions(planner.check, 1)[0]
    with pytest.raises(ShapeError, match=r"shape \(4,\)"):
        planner(free[:3], free)
    with pytest.raises(ShapeError, match="A goal is joint positions"):
        planner(free, free[:3])
    with pytest.raises(ShapeError, match="A goal is joint positions"):
        planner(free, "home")
    with pytest.raises(ShapeError, match="A goal is joint positions"):
        planner(free, [])
    with pytest.raises(ModelError, match="say of which frame"):
        planner(free, arm.Pose.translation(0.5, 0.0, 0.0))
    with pytest.raises(UnknownName):
        planner(free, np.eye(4), frame="tool7")
    with pytest.raises(ShapeError, match="2 starts and 3 goals"):
        planner.batch([free, free], [free, free, free])
    with pytest.raises(ShapeError, match="starts are of shape"):
        planner.batch(free[:3], [free])
    other = cell_of([at(Sphere, 1.0, 0.0, 0.0, radius=0.1)])
    with pytest.raises(ModelError, match="needs a collision check"):
        other.planner(free)
    with pytest.raises(ModelError, match="another cell"):
        other.planner(planner.check)
    with pytest.raises(ShapeError, match="weights are of shape"):
        cell.planner(planner.check, weights=[1.0, 2.0])
    with pytest.raises(ModelError, match="weights of joints"):
        cell.planner(planner.check, weights=[1.0, 2.0, 0.0, 1.0])
    with pytest.raises(ModelError, match="resolution is a finite number"):
        cell.planner(planner.check, resolution=0.0)
    for options in ({"resolution": 1e-300}, {"weights": [1e12] * 4}, {"nodes": 2**70}):
        with pytest.raises(ModelError, match=r"resolution|weights|nodes"):
            cell.planner(planner.check, **options)
    with pytest.raises(ModelError, match="needs a collision check"):
        cell.planner(None)
    with pytest.raises(ShapeError, match="one for each start"):
        planner.batch([free], 5)
    for time in (float("nan"), -1.0, "1", [1.0]):
        with pytest.raises(ModelError, match="number from 0 up"):
            planner(free, free, timeout=time)
    for time in (1e10, 1e300, float("inf")):  # longer than a clock of nanoseconds
        assert planner(free, free, timeout=time, improve=0.0).success
    ball = Sphere(radius=0.1)
    still = arm.Manipulator(name="s", links=[arm.Link(name="b", collisions=[ball])])
    rigid = arm.Cell(manipulators=[still, still.replace(name="t")])
    with pytest.raises(ModelError, match="nothing to plan"):
        rigid.planner(rigid.collision())
    with pytest.raises(ModelError, match="nodes"):
        cell.planner(planner.check, nodes=1)


def test_the_clock_ends_the_samples_of_one_motion():
    planner = planner_of_balls()
    start, _ = cornered_problem(planner)
    fine = among_balls().planner(
        planner.check, weights=[1e6, 1e6, 1.0, 1.0], resolution=1e-6
    )
    # A motion of 1e12 samples.
    lone = fine(start, start + np.array([0.0, 1e-3, 0.0, 0.0]), timeout=0.05)
    assert lone.reason is arm.PlanReason.TIMED_OUT


# Poses


def test_a_pose_is_reached_by_any_branch():
    cell = arm.example("irb2400")
    check = cell.collision()
    planner = cell.planner(check)
    frame = "tool0"
    fk = cell.fk(frame)
    start, *Q = free_positions(check, 6)
    for q in Q:
        plan = planner(start, fk(q), frame=frame)
        assert plan.success
        assert np.abs(fk(plan.q[-1]) - fk(q)).max() < 1e-5
    plans = planner.batch(start, [fk(q) for q in Q], frame=frame)
    assert all(plan.success for plan in plans)
    # With free axes there are more goals.
    plan = planner(start, fk(Q[0]), frame=frame, rotation="")
    assert np.abs(fk(plan.q[-1])[:3, 3] - fk(Q[0])[:3, 3]).max() < 1e-5
    # Positions and poses may be mixed.
    plan = planner(start, [fk(Q[0]), Q[1]], frame=frame)
    assert plan.goal in {0, 1}


def test_a_pose_beyond_reach_is_out_of_reach():
    cell = arm.example("irb2400")
    planner = cell.planner(cell.collision())
    far = arm.Pose.translation(9.0, 0.0, 0.0)
    plan = planner(cell.home, far, frame="tool0")
    assert plan.reason is arm.PlanReason.OUT_OF_REACH
    bad = np.eye(4)
    bad[0, 3] = np.nan
    assert planner(cell.home, bad, frame="tool0").reason is arm.PlanReason.INVALID


# Other cells

SHAPES = {
    "boxes": [at(Box, *p, size=(0.25, 0.2, 0.3)) for p in BALLS],
    "capsules": [at(Capsule, *p, radius=0.08, length=0.3) for p in BALLS],
    "cylinders": [at(Cylinder, *p, radius=0.1, length=0.3) for p in BALLS],
    "hulls": [
        at(
            ConvexPolyhedron,
            *p,
            vertices=((0, 0, 0), (0.3, 0, 0), (0, 0.3, 0), (0, 0, 0.3)),
        )
        for p in BALLS
    ],
    "floor": [HalfSpace(pose=arm.Pose.translation(0.0, 0.0, -0.35))],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("own", [None, Capsule(radius=0.05, length=0.2)])
def test_ways_among_shapes_of_all_kinds(kind: str, own):
    cell = cell_of(SHAPES[kind], shape=own)
    check = cell.collision()
    planner = cell.planner(check)
    for start, goal in problems(check, 4):
        plan = planner(start, goal, timeout=None)
        assert plan.success and plan.proven
        assert not check(dense(plan.q, 400)).any()
        assert check.motion(plan.q[:-1], plan.q[1:]).free.all()


def test_users_joints_and_joints_without_limits():
    things = [at(Sphere, *p, radius=0.15) for p in BALLS]
    for options in ({"joint": Wave}, {"limit": np.inf}):
        cell = cell_of(things, **options)
        check = cell.collision()
        planner = cell.planner(check)
        for start, goal in problems(check, 4):
            plan = planner(start + 0.0, goal, timeout=None)
            assert plan.success and plan.proven
            assert not check(dense(plan.q, 400)).any()
    # Two turns of the first joint, over the one thing beside it.
    cell = cell_of([at(Sphere, 0.8, 0.0, 0.0, radius=0.05)], limit=np.inf)
    start = np.array([0.5, 0.0, 0.0, 0.0])
    far = start + np.array([4.0 * np.pi, 0.0, 0.0, 0.0])
    planner = cell.planner(cell.collision())
    plan = planner(start, far)
    assert plan.success and plan.proven and (plan.q[-1] == far).all()
    assert not planner.check(dense(plan.q)).any()


def test_problems_of_joints_without_limits_share_a_loop(monkeypatch):
    cell = cell_of([at(Sphere, *p, radius=0.15) for p in BALLS], limit=np.inf)
    planner, turn = cell.planner(cell.collision()), 2.0 * np.pi
    ends = problems(planner.check, 12)
    assert len({tuple(np.sign(np.r_[start, goal])) for start, goal in ends}) > 4
    made = []
    monkeypatch.setattr(
        NativeLoop, "of", lambda *given, of=NativeLoop.of: made.append(0) or of(*given)
    )
    for start, goal in ends:
        assert planner(start, goal, timeout=None).success
    assert len(made) == 1
    # Ten turns away, too: there is room for a turn to both sides.
    for start, goal in ends:
        plan = planner(start + 10.0 * turn, goal + 10.0 * turn, timeout=None)
        assert plan.success and plan.proven
    assert len(made) < 5
    for first, last in [(0.0, 0.0), (-1.0, 6.2), (-20.0, 40.0), (63.0, 63.1)]:
        lower, upper = planner._ways.planned.box(
            np.full(4, first), np.full((1, 4), last)
        )
        assert (lower <= first - turn).all() and (upper >= last + turn).all()
        assert (upper - lower <= (last - first) + 5.0 * turn).all()


@pytest.mark.parametrize(
    ("starts", "goals", "message"),
    [
        ("home", [np.zeros(4)], "starts needs real numbers"),
        ([[0.0, 0.0], [0.0]], [np.zeros(4)], "rows of unequal length"),
        (np.zeros(4), None, "one for each start"),
    ],
    ids=["text", "ragged", "no goals"],
)
def test_starts_and_goals_that_are_not_numbers_are_refused(starts, goals, message: str):
    with pytest.raises(ShapeError, match=message):
        planner_of_balls().batch(starts, goals)


def test_one_pose_is_the_goal_of_all_starts():
    cell = arm.example("irb2400")
    planner = cell.planner(cell.collision())
    goal = np.array([0.3, 0.2, -0.1, 0.4, 0.6, 1.0])
    X = cell.fk("tool0")(goal)
    plans = planner.batch(np.stack([goal, 0.9 * goal]), X, frame="tool0")
    assert len(plans) == 2 and all(plans)
    assert len(planner.batch(goal, X, frame="tool0")) == 1


@pytest.mark.thorough
def test_two_arms_and_a_track():
    for name in ("two_arms_positioner", "oval_track_cell"):
        cell = arm.example(name)
        check = cell.collision()
        planner = cell.planner(check)
        found = [planner(a, b, seed=1, timeout=0.3) for a, b in problems(check, 4)]
        assert any(found)
        for plan in found:
            if plan.success:
                assert plan.proven and not check(dense(plan.q, 200)).any()


def test_weights_count_in_lengths():
    cell = among_balls()
    planner = cell.planner(planner_of_balls().check, weights=[2.0, 1.0, 1.0, 0.5])
    for start, goal in problems(planner.check, 5):
        plan = planner(start, goal)
        ways = np.diff(plan.q, axis=0) * [2.0, 1.0, 1.0, 0.5]
        assert plan.length == pytest.approx(np.linalg.norm(ways, axis=1).sum())
        assert planner.check.motion(plan.q[:-1], plan.q[1:]).free.all()


def test_a_new_scene_compiles_nothing(monkeypatch: pytest.MonkeyPatch):
    from armillary.kernel import jit

    planner_of_balls()(np.zeros(4), np.zeros(4))
    made: list[object] = []
    real = jit.to_object
    monkeypatch.setattr(
        jit, "to_object", lambda *a, **k: made.append(a) or real(*a, **k)
    )
    cell = cell_of([at(Sphere, 0.4, 0.4, 0.3, radius=0.1)])
    assert cell.planner(cell.collision())(np.zeros(4), np.full(4, 0.1)).success
    assert not made


def test_a_grip_counts_and_compiles_nothing(monkeypatch: pytest.MonkeyPatch):
    from armillary.kernel import jit

    part = arm.Manipulator(
        name="part",
        links=[arm.Link(name="b", collisions=[Box(size=(0.1, 0.1, 0.1))])],
    )
    cell = among_balls()
    cell = cell.replace(manipulators=[*cell.manipulators, part])
    start = free_positions(planner_of_balls().check, 1)[0]
    aside = cell.home.replace(q=start).place("part", arm.Pose.translation(0, 0, 2))
    held = aside.attach("part", "robot/link3", pose=arm.Pose.translation(0.3, 0.0, 0.0))
    without = cell.planner(cell.collision(aside))
    without(start, start)
    made: list[object] = []
    real = jit.to_object
    monkeypatch.setattr(
        jit, "to_object", lambda *a, **k: made.append(a) or real(*a, **k)
    )
    check = cell.collision(held)
    planner = cell.planner(check)
    for a, b in problems(check, 4):
        plan = planner(a, b, timeout=None)
        assert plan.success and plan.proven
        assert not check(dense(plan.q, 500)).any()
    assert not made


def test_a_check_in_python_is_asked_by_the_same_loop():
    # As for triangles of meshes, and for scripts that are not compiled.
    planner = planner_of_balls()
    start, goal = cornered_problem(planner)
    asked: list[int] = []

    def check(Q: Array) -> Array:
        asked.append(len(Q))
        return planner.check(Q)

    columns = check_in_python(check, 4)
    lower, upper = among_balls().limits
    tests = EdgeTests(columns, columns, None)
    space = Space(lower, upper, np.ones(4), among_balls().limit_rows)
    ground = LoopGround.of(space, LoopOptions(step=STEP), LoopKind.of(tests))
    loop = NativeLoop.of(tests, ground)
    found = loop.solve(Problem(start, goal[np.newaxis], 1, 0))
    assert len(found.q) > 2 and asked
    assert (found.q[0] == start).all() and (found.q[-1] == goal).all()
    steps = [max(2, int(np.linalg.norm(b - a) / STEP)) for a, b in pairwise(found.q)]
    for (a, b), count in zip(pairwise(found.q), steps, strict=True):
        t = np.linspace(0.0, 1.0, count)[:, None]
        assert planner.check(a + t * (b - a)).mean() < 0.1


def test_a_planner_is_pickled_by_its_check():
    planner = planner_of_balls()
    start, goal = cornered_problem(planner)
    other = pickle.loads(pickle.dumps(planner))
    assert np.array_equal(other(start, goal).q, planner(start, goal).q)


def test_a_way_is_timed():
    planner = planner_of_balls()
    start, goal = cornered_problem(planner)
    plan = planner(start, goal)
    timed = plan.timed(velocity=1.0, acceleration=5.0)
    assert timed.duration > 0.0
    for blend in (-1.0, float("nan"), float("inf"), "0.1"):
        with pytest.raises(ModelError, match="blend"):
            plan.timed(blend=blend, acceleration=5.0)
    with pytest.raises(ModelError, match="take no start="):
        plan.timed(start=1.0, acceleration=5.0)
    with pytest.raises(ModelError, match="no way to time"):
        planner(start, goal, timeout=0.0).timed(velocity=1.0, acceleration=5.0)


def test_states_with_other_attachments_are_refused():
    cell = arm.example("irb2400").add(
        arm.Manipulator(name="part", links=[arm.Link(name="body")]), bolted=False
    )
    planner = cell.planner(cell.collision())
    gripped = cell.home.attach("part", "tool0")
    for start, goal in ((gripped, cell.home), (cell.home, [gripped])):
        with pytest.raises(
            StateError, match=r"other parts are attached.*cell\.collision"
        ):
            planner(start, goal)
    assert cell.planner(cell.collision(gripped))(gripped, gripped).success


def test_names_of_frames_count_where_no_goal_is_a_pose():
    cell = arm.example("irb2400")
    planner = cell.planner(cell.collision())
    with pytest.raises(UnknownName, match="nosuch"):
        planner(cell.home, cell.home, frame="nosuch")


def test_the_finest_resolution_is_a_part_of_how_far_joints_move():
    joint = arm.joints.Prismatic(axis=(1, 0, 0))
    for size, finest in ((1e-6, 2e-12), (1.0, 1e-6)):
        ball = Sphere(radius=0.1 * size)
        links = [
            arm.Link(name="rail"),
            arm.Link(
                name="ball",
                parent="rail",
                joint=joint,
                joint_name="x",
                limits=arm.Limits(lower=-size, upper=size),
                collisions=[ball],
            ),
        ]
        still = arm.Manipulator(
            name="b", links=[arm.Link(name="ball", collisions=[ball])]
        )
        cell = arm.Cell(manipulators=[arm.Manipulator(name="a", links=links), still])
        check = cell.collision()
        start, goal = [0.5 * size], [0.8 * size]
        assert cell.planner(check, resolution=1.1 * finest)(start, goal).success
        with pytest.raises(ModelError, match=f"at least {finest:g}"):
            cell.planner(check, resolution=0.9 * finest)


def test_searches_in_other_boxes_work_in_the_same_memory(
    monkeypatch: pytest.MonkeyPatch,
):
    """Joints that stay where they start make a box of each start; it grew by them."""
    made: list[int] = []
    of = LoopMemory.of

    def counted(n: int, nodes: int, made_for: LoopKind) -> LoopMemory:
        made.append(nodes)
        return of(n, nodes, made_for)

    monkeypatch.setattr(LoopMemory, "of", staticmethod(counted))
    planner = planner_of_balls()
    name = planner.check.cell.joint_names[0]
    start, goal = cornered_problem(planner)
    for k in range(6):
        here, there = start.copy(), goal.copy()
        here[0] = there[0] = start[0] + 1e-3 * k
        planner(here, there, fixed=[name])
    assert len(made) <= 1  # none where another test has made it
