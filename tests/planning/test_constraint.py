"""Ways within constraints, judged by formulas of their own in plain NumPy."""

from __future__ import annotations

import functools
import time
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError, ShapeError, UnknownName
from armillary.ik.search_step import step_program
from armillary.kernel import compiler
from armillary.planning import proven_search
from armillary.planning.constraint import Manifold
from armillary.planning.graph import merged
from armillary.planning.motions import MotionTests
from armillary.planning.planned_cell import PlannedCell
from armillary.planning.region import region_of
from armillary.shapes import Sphere
from ball_arm import (
    BALLS,
    LENGTHS,
    Wave,
    among_balls,
    at,
    cell_of,
    centres,
    dense,
    free_positions,
    gaps,
)

Array = np.ndarray
FRAME = "robot/link3"


@functools.cache
def planner() -> arm.Planner:
    cell = among_balls()
    return cell.planner(cell.collision())


def origins(Q: Array) -> Array:
    """Return where the last link begins: its balls are on a line from there."""
    X = centres(Q)
    return 2.0 * X[:, 6] - X[:, 7]


def axes(Q: Array) -> Array:
    """Return the direction of the last link."""
    X = centres(Q)
    return (X[:, 7] - X[:, 6]) / (0.5 * LENGTHS[3])


def terms_of(planned: arm.Planner) -> PlannedCell:
    return PlannedCell(planned.check, planned.weights, planned.options.step)


def manifold(*constraints: arm.FrameConstraint, start: Array | None = None) -> Manifold:
    return terms_of(planner()).manifold(constraints, start, np.empty((0, 4)), None)


def ends_on(surface: Manifold, count: int) -> Array:
    """Return free positions that satisfy constraints."""
    check = planner().check
    Q, is_done = surface.project(free_positions(check, 40 * count))
    Q = Q[is_done]
    return Q[~check(Q)][:count]


POINT = arm.Pose.translation(0.45, 0.1, 0.12)
CASES = {
    "plane": (
        arm.FrameConstraint(FRAME, target=POINT, position="z", rotation=""),
        lambda Q: np.abs(origins(Q)[:, 2] - 0.12),
        1e-3,
    ),
    "line": (
        arm.FrameConstraint(FRAME, target=POINT, position="xz", rotation=""),
        lambda Q: np.linalg.norm(origins(Q)[:, [0, 2]] - (0.45, 0.12), axis=1),
        1e-3,
    ),
    "box": (
        arm.FrameConstraint(
            FRAME,
            target=arm.Pose.translation(0.0, 0.0, 0.0),
            position="",
            rotation="",
            box=((-1.0, -1.0, -0.1), (1.0, 1.0, 0.2)),
        ),
        lambda Q: np.maximum(origins(Q)[:, 2] - 0.2, -0.1 - origins(Q)[:, 2]),
        1e-3,
    ),
    "axis": (
        arm.FrameConstraint(
            FRAME,
            target=arm.Pose.rotation_y(-0.2),
            position="",
            rotation="yz",
            angle=0.02,
        ),
        lambda Q: np.arccos(
            np.clip(axes(Q) @ (np.cos(0.2), 0.0, np.sin(0.2)), -1.0, 1.0)
        ),
        0.02,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_violations_are_those_of_formulas(name: str):
    constraint, error, most = CASES[name]
    Q = np.random.default_rng(0).uniform(-2.5, 2.5, (203, 4))
    found = manifold(constraint).violations(Q)[:, 0]
    np.testing.assert_allclose(found, np.maximum(error(Q), 0.0) / most, atol=1e-9)


def test_other_targets_tolerances_and_limits_compile_nothing(monkeypatch):
    def asked(target: arm.Pose, distance: float, limit: float) -> Array:
        constraint = arm.FrameConstraint(
            FRAME, target=target, position="z", rotation="", distance=distance
        )
        lower, upper = np.full((2, 4), limit) * [[-1.0], [1.0]]
        check = planner().check
        surface = Manifold(
            check.cell,
            check.state,
            [constraint],
            start=None,
            lower=lower,
            upper=upper,
            weights=np.ones(4),
        )
        Q = np.zeros((3, 4))
        assert surface.holds(Q, Q, 0.1).any() == (target.position[2] == 0.0)
        return surface.violations(Q)

    first = asked(arm.Pose.translation(0.4, 0.0, 0.0), 1e-3, 2.0)

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("traced anew")

    monkeypatch.setattr("armillary.planning.constraint_proof.trace", refused)
    other = asked(arm.Pose.translation(0.4, 0.0, 0.01), 2e-3, 1.5)
    np.testing.assert_allclose(first, 0.0, atol=1e-9)
    np.testing.assert_allclose(other, 5.0)


@pytest.mark.parametrize("name", CASES)
def test_constraints_hold_between_way_points(name: str):
    constraint, error, most = CASES[name]
    surface = manifold(constraint)
    Q = ends_on(surface, 4)
    assert error(Q).max() < 1e-6
    found = 0
    for start, goal in pairwise(Q):
        plan = planner()(start, goal, constraints=[constraint], timeout=1.0)
        if not plan:
            assert plan.reason in {arm.PlanReason.TIMED_OUT, arm.PlanReason.NOT_FOUND}
            continue
        found += 1
        assert plan.proven
        assert (plan.q[0] == start).all() and (plan.q[-1] == goal).all()
        between = dense(plan.q, 400)
        assert error(between).max() < most
        assert gaps(between).min() > 0.0
    assert found


@pytest.mark.parametrize("name", CASES)
def test_projections_are_near_and_stay(name: str):
    constraint, error, _ = CASES[name]
    surface = manifold(constraint)
    rng = np.random.default_rng(4)
    Q = rng.uniform(surface.lower, surface.upper, (203, 4))
    on, is_done = surface.project(Q)
    assert is_done.mean() > 0.7 and error(on[is_done]).max() < 1e-6
    on = on[is_done]
    assert ((surface.lower <= on) & (on <= surface.upper)).all()
    again, is_done = surface.project(on)
    assert is_done.all() and np.abs(again - on).max() < 1e-6
    # From nearby the way back is about as short as it can be: Newton's method in NumPy.
    near = np.clip(on + 0.02 * rng.standard_normal(on.shape), -2.7, 2.7)
    back, is_done = surface.project(near)
    other, is_other = surface._by_newton(near)
    both = is_done & is_other
    assert both.mean() > 0.9
    moved, least = (np.linalg.norm(x - near, axis=1)[both] for x in (back, other))
    assert (moved < 1.1 * least + 1e-3).all()
    assert len(surface.project(near[:0])[0]) == 0


def test_what_coarse_samples_miss_is_gone_around():
    """Samples of such motions jump over the balls; proofs find that, and detours."""
    constraint, error, most = CASES["plane"]
    coarse = among_balls().planner(planner().check, resolution=2.0)
    Q = ends_on(manifold(constraint), 5)
    found = 0
    for start, goal in pairwise(Q):
        plan = coarse(start, goal, constraints=[constraint], timeout=0.5)
        if plan:
            found += 1
            between = dense(plan.q, 400)
            assert plan.proven and error(between).max() < most
            assert gaps(between).min() > 0.0
    assert found


def test_users_joints_keep_a_plane():
    cell = cell_of([at(Sphere, *p, radius=0.15) for p in BALLS], joint=Wave)
    check = cell.collision()
    planned, tip = cell.planner(check), cell.fk(FRAME)
    constraint = CASES["plane"][0]
    nothing = np.empty((0, 4))
    surface = terms_of(planned).manifold([constraint], None, nothing, None)
    Q, is_done = surface.project(free_positions(check, 40))
    Q = Q[is_done]
    Q = Q[~check(Q)][:5]
    plans = [
        planned(a, b, constraints=[constraint], timeout=0.5) for a, b in pairwise(Q)
    ]
    ways = [plan for plan in plans if plan]
    assert ways
    for plan in ways:
        between = dense(plan.q, 400)
        height = tip(between)[:, 2, 3] - 0.12
        assert plan.proven and np.abs(height).max() < 1e-3
        assert not check(between).any()


def test_what_is_not_constrained_leaves_the_plane():
    constraint, error, most = CASES["plane"]
    Q = ends_on(manifold(constraint), 7)
    ways = [planner()(a, b) for a, b in pairwise(Q)]
    assert max(error(dense(plan.q, 400)).max() for plan in ways if plan) > 10 * most


def test_motions_that_leave_the_tolerance_between_samples_are_refused():
    constraint, error, most = CASES["plane"]
    surface = manifold(constraint)
    Q, _ = surface.project(free_positions(planner().check, 60))
    A, B = Q[:-1], Q[1:]
    B = A + np.linspace(0.0, 1.0, len(A))[:, None] * (B - A)
    B, is_done = surface.project(B)
    A, B = A[is_done], B[is_done]
    t = np.linspace(0.0, 1.0, 1001)[:, None]
    worst = np.array([error(a + t * (b - a)).max() for a, b in zip(A, B, strict=True)])
    holds = surface.holds(A, B, 0.01)
    assert not holds[worst > most].any()
    assert holds[worst < 0.7 * most].all()
    assert 3 < holds.sum() < len(holds) - 3


def test_the_pose_at_the_start_is_kept_by_default():
    start = np.array([0.3, -1.2, 0.4, 0.2])
    keep = arm.FrameConstraint(FRAME, position="z", rotation="")
    goal = start + np.array([0.0, 0.0, 0.0, 0.8])
    plan = planner()(start, goal, constraints=[keep])
    height = origins(dense(plan.q, 400))[:, 2]
    assert plan and np.ptp(height) < 2e-3


@functools.cache
def two_arms() -> arm.Planner:
    robot = arm.example("irb2400").manipulators[0]
    aside = arm.Pose.translation(0.0, 1.5, 0.0)
    cell = arm.Cell(
        manipulators=[robot.replace(name="left"), robot.replace(name="right")],
        mounts=[arm.Mount(manipulator="right", pose=aside)],
    )
    rules = cell.rules.include_self("left").include_self("right")
    cell = cell.replace(rules=rules)
    return cell.planner(cell.collision())


TOOLS = ["left/tool0", "right/tool0"]
HELD = np.array([0.3, 0.2, 0.1, 0.2, 0.8, 0.1, -0.3, 0.3, 0.0, 0.1, 0.7, 0.2])


def slips(Q: Array) -> tuple[Array, Array]:
    """Return how far the left tool is from where the right one held it, and turned."""
    pose = arm.Cell.of(two_arms().check.cell).fk(TOOLS)
    both = pose(Q), pose(HELD)
    now, then = (np.linalg.inv(X[..., 1, :, :]) @ X[..., 0, :, :] for X in both)
    turn = np.einsum("kij,ij->k", now[:, :3, :3], then[:3, :3])
    angle = np.arccos(np.clip(0.5 * (turn - 1.0), -1.0, 1.0))
    return np.linalg.norm(now[:, :3, 3] - then[:3, 3], axis=1), angle


def test_two_frames_keep_their_place_to_each_other():
    planned = two_arms()
    hold = arm.FrameConstraint(TOOLS[0], relative_to=TOOLS[1])
    surface = terms_of(planned).manifold([hold], HELD, HELD[None], None)
    goal, is_done = surface.project(
        HELD + 0.4 * np.random.default_rng(0).standard_normal((20, 12))
    )
    goal = goal[is_done & ~planned.check(goal)][0]
    plan = planned(HELD, goal, constraints=[hold], timeout=20.0)
    assert plan and plan.proven and len(plan.q) > 2
    far, angle = slips(dense(plan.q, 100))
    assert far.max() < 1e-3 and angle.max() < 1e-2


def test_two_arms_that_hold_a_part_move_far():
    planned = two_arms()
    hold = arm.FrameConstraint(TOOLS[0], relative_to=TOOLS[1])
    surface = terms_of(planned).manifold([hold], HELD, HELD[None], None)
    rng = np.random.default_rng(0)
    Q, is_done = surface.project(rng.uniform(surface.lower, surface.upper, (80, 12)))
    assert is_done.mean() > 0.9
    Q = Q[is_done]
    far, angle = slips(Q)
    assert far.max() < 1e-8 and angle.max() < 1e-7
    assert ((surface.lower <= Q) & (surface.upper >= Q)).all()
    Q = Q[~planned.check(Q)]
    # Most others are in regions that joint limits separate from each other.
    plan = planned(Q[2], Q[3], constraints=[hold], timeout=20.0)
    assert plan and plan.proven
    assert np.ptp(plan.q, axis=0).max() > 2.0
    inner = dense(plan.q, 20)
    far, angle = slips(inner)
    assert far.max() < 1e-3 and angle.max() < 1e-2
    assert not planned.check(inner).any()


def test_projections_keep_fixed_joints_and_are_compiled_once(monkeypatch):
    planned = two_arms()
    hold = arm.FrameConstraint(TOOLS[0], relative_to=TOOLS[1])
    bounds = {"left/joint_1": (0.0, 0.5)}
    region = region_of(planned.check.cell, HELD, ["right/joint_2"], bounds)
    traced = []
    monkeypatch.setattr(
        "armillary.planning.projector.step_program",
        lambda *args, **more: traced.append(args) or step_program(*args, **more),
    )
    for shift in (0.0, 0.1):
        aside = HELD + shift
        surface = terms_of(planned).manifold([hold], aside, aside[None], region)
        rng = np.random.default_rng(0)
        Q, is_done = surface.project(aside + 0.1 * rng.standard_normal((20, 12)))
        assert is_done.any()
        assert (Q[:, 7] == HELD[7]).all()
        assert ((Q[is_done, 0] >= 0.0) & (Q[is_done, 0] <= 0.5)).all()
    assert len(traced) <= 1


def test_what_moving_frames_slip_between_samples_is_found():
    planned, rng = two_arms(), np.random.default_rng(1)
    hold = arm.FrameConstraint(
        TOOLS[0], relative_to=TOOLS[1], distance=2e-3, angle=4e-3
    )
    surface = terms_of(planned).manifold([hold], HELD, HELD[None], None)
    near = HELD + rng.uniform(0.0, 0.4, (40, 1)) * rng.standard_normal((40, 12))
    B, is_done = surface.project(near)
    B = B[is_done]
    A = np.tile(HELD, (len(B), 1))
    t = np.linspace(0.0, 1.0, 401)[:, None]
    slipped = [slips(a + t * (b - a)) for a, b in zip(A, B, strict=True)]
    worst = np.array([max(d.max() / 2e-3, w.max() / 4e-3) for d, w in slipped])
    holds = surface.holds(A, B, 0.01)
    assert not holds[worst > 1.0].any()
    assert holds[worst < 0.7].all()
    assert 3 < holds.sum() < len(holds) - 3


def test_loops_are_sampled_and_that_is_said():
    cell = arm.example("five_bar")
    planned = cell.planner(cell.collision())
    start, tip = np.array(cell.home.q), cell.fk("five_bar/tip")
    here = arm.Pose.translation(*tip(start)[:3, 3])
    level = arm.FrameConstraint("five_bar/tip", target=here, position="y", rotation="")
    surface = terms_of(planned).manifold([level], start, start[None], None)
    goals, is_done = surface.project(start + np.array([[0.25, 0.25], [-0.25, -0.25]]))
    assert is_done.all()
    for goal in goals:
        plan = planned(start, goal, constraints=[level])
        assert plan and not plan.proven and len(plan.q) > 2
        height = tip(dense(plan.q, 200))[:, 1, 3] - tip(start)[1, 3]
        assert np.abs(height).max() < 1e-3


def test_frames_that_nothing_moves_constrain_nothing():
    start, goal = free_positions(planner().check, 2)
    still = arm.FrameConstraint("thing0/b")
    plan = planner()(start, goal, constraints=[still], timeout=None)
    assert plan and plan.proven and gaps(dense(plan.q, 400)).min() > 0.0


def test_a_search_ends_where_there_is_no_way():
    constraint, _, _ = CASES["line"]
    Q = ends_on(manifold(constraint), 6)
    check = planner().check
    small = among_balls().planner(check, nodes=200)
    plans = [
        small(*ends, constraints=[constraint], timeout=None) for ends in pairwise(Q)
    ]
    reasons = [plan.reason for plan in plans]
    assert {*reasons} == {arm.PlanReason.FOUND, arm.PlanReason.NOT_FOUND}
    lost = [plan for plan in plans if not plan]
    assert all(not len(plan.q) and not plan.proven and plan.goal == -1 for plan in lost)


def test_fixed_and_bounded_joints():
    check = planner().check
    Q = free_positions(check, 30)
    fixed = bounded = 0
    for start, end in pairwise(Q):
        goal = end.copy()
        goal[3] = start[3]
        plan = planner()(start, goal, fixed=["robot/link3"], timeout=0.2)
        if plan:
            assert plan.proven and (plan.q[:, 3] == start[3]).all()
            fixed += len(plan.q) > 2
        low, high = sorted((start[0], goal[0]))
        low, high = low - 0.1, high + 0.1
        plan = planner()(start, goal, bounds={"robot/link0": (low, high)}, timeout=0.2)
        if plan:
            assert plan.q[:, 0].min() >= low and plan.q[:, 0].max() <= high
            bounded += len(plan.q) > 2
    assert fixed and bounded


def test_goals_that_fixed_joints_do_not_reach_are_named():
    start, goal = free_positions(planner().check, 2)
    plan = planner()(start, goal, fixed=["robot/link1"])
    assert plan.reason is arm.PlanReason.LIMITS and plan.joints == ("robot/link1",)


def test_a_pose_is_reached_by_the_joints_that_may_move():
    cell = arm.example("ur10_on_rail")
    planned = cell.planner(cell.collision())
    start = np.array([0.3, 0.3, -1.2, 0.9, 0.3, 0.3, 0.3])
    X = cell.fk("ur10/tool0")(start + 0.2 * np.arange(7) / 7)
    plan = planned(start, X, frame="ur10/tool0", fixed=["track/carriage"])
    assert plan and (plan.q[:, 0] == 0.3).all()
    assert cell.fk("ur10/tool0")(plan.q[-1]) == pytest.approx(X, abs=1e-6)


def test_ends_that_violate_a_constraint_are_named():
    constraint, _, _ = CASES["plane"]
    on = ends_on(manifold(constraint), 1)[0]
    off = free_positions(planner().check, 5)[4]
    plan = planner()(off, on, constraints=[constraint])
    assert plan.reason is arm.PlanReason.START_VIOLATES
    assert FRAME in plan.violated[0] and FRAME in repr(plan)
    plan = planner()(on, off, constraints=[constraint])
    assert plan.reason is arm.PlanReason.GOAL_VIOLATES and not len(plan.q)


def test_no_time_ends_a_search():
    constraint, _, _ = CASES["line"]
    Q = ends_on(manifold(constraint), 12)
    plans = [
        planner()(a, b, constraints=[constraint], timeout=0.0) for a, b in pairwise(Q)
    ]
    assert arm.PlanReason.TIMED_OUT in {plan.reason for plan in plans}


def test_no_timeout_counts_what_is_compiled(monkeypatch: pytest.MonkeyPatch):
    cell = cell_of([at(Sphere, 0.5, 0.3, 0.25, radius=0.14)], limit=2.6)
    planned = cell.planner(cell.collision())
    start, goal = free_positions(planned.check, 2)
    loaded, ends = compiler.loaded, []

    def watched(*arguments: object, **options: object):
        assert not ends, "the time is running"
        return loaded(*arguments, **options)

    monkeypatch.setattr(compiler, "loaded", watched)
    name = "armillary.planning.planner.deadline_of"
    monkeypatch.setattr(name, lambda _: ends.append(0) or 0)
    kept = arm.FrameConstraint(
        FRAME, position="", rotation="", box=((-2.0,) * 3, (2.0,) * 3)
    )
    assert planned(start, goal, constraints=[kept]) and ends


def test_a_seed_gives_one_way():
    constraint, _, _ = CASES["plane"]
    a, b = ends_on(manifold(constraint), 2)
    ways = [planner()(a, b, constraints=[constraint], seed=4).q for _ in range(2)]
    assert (ways[0] == ways[1]).all()


def counts_of(plan: arm.Plan) -> tuple[object, ...]:
    counts = plan.edges, plan.checks, plan.proofs, plan.samples, plan.nodes
    return plan.reason, plan.proven, plan.goal, plan.length, *counts


@pytest.mark.parametrize("has_target", [True, False])
def test_a_batch_within_constraints_gives_what_calls_give(has_target: bool):
    constraint, error, most = CASES["plane"]
    Q = ends_on(manifold(constraint), 8)
    if not has_target:
        box, most = ((-0.5,) * 3, (0.5,) * 3), 1.0
        constraint = arm.FrameConstraint(FRAME, position="", rotation="", box=box)
    off, nothing = free_positions(planner().check, 5)[4], np.full(4, np.nan)
    starts = np.concatenate([Q[:-1], [off, Q[0], nothing]])
    goals = np.concatenate([Q[1:], [Q[0], off, Q[0]]])
    # Trees of few nodes end searches where there is no way, without a clock.
    small = among_balls().planner(planner().check, nodes=300)
    alone = [
        small(*ends, constraints=[constraint], seed=3, timeout=None)
        for ends in zip(starts, goals, strict=True)
    ]
    reasons = {plan.reason for plan in alone}
    assert {arm.PlanReason.FOUND, arm.PlanReason.INVALID} < reasons
    assert (arm.PlanReason.START_VIOLATES in reasons) == has_target
    for threads in (1, 2):
        batch = small.batch(
            starts,
            goals,
            constraints=[constraint],
            seed=3,
            timeout=None,
            threads=threads,
        )
        for one, plan in zip(alone, batch, strict=True):
            assert plan.q.tobytes() == one.q.tobytes()
            assert counts_of(plan) == counts_of(one)
    for plan in alone:
        if plan:
            assert plan.proven and error(dense(plan.q, 400)).max() < most
            assert gaps(dense(plan.q, 400)).min() > 0.0


def test_a_search_of_a_batch_waits_for_no_other(monkeypatch: pytest.MonkeyPatch):
    constraint, _, _ = CASES["line"]
    Q = ends_on(manifold(constraint), 6)
    asked = {"constraints": [constraint], "timeout": None}
    small = among_balls().planner(planner().check, nodes=200)
    alone = [small(*ends, **asked) for ends in pairwise(Q)]
    # Where nothing is found in so short a time, it is searched for behind the others.
    monkeypatch.setattr("armillary.planning.way_search.TIME_BEFORE_PROOF", 1000)
    batch = small.batch(Q[:-1], Q[1:], **asked)
    assert [plan.q.tobytes() for plan in batch] == [x.q.tobytes() for x in alone]
    assert {plan.reason for plan in batch} > {arm.PlanReason.FOUND}


def test_a_batch_with_fixed_and_bounded_joints_gives_what_calls_give():
    Q = free_positions(planner().check, 6)
    goals = Q[1:].copy()
    goals[:, 3] = Q[:-1, 3]
    asked = {
        "fixed": ["robot/link3"],
        "bounds": {"robot/link0": (-2.5, 2.5)},
        "timeout": None,
    }
    alone = [planner()(*e, **asked) for e in zip(Q[:-1], goals, strict=True)]
    batch = planner().batch(Q[:-1], goals, **asked)
    for one, plan, start in zip(alone, batch, Q, strict=False):
        assert plan.q.tobytes() == one.q.tobytes() and plan.reason is one.reason
        assert (plan.q[:, 3] == start[3]).all()
    assert sum(plan.success for plan in batch) > 1


class Clock:
    """Time that passes when it is asked for: a second each time."""

    def __init__(self) -> None:
        self.now = time.monotonic_ns()

    def monotonic_ns(self) -> int:
        self.now += 10**9
        return self.now


def half(way: Array, motions: MotionTests) -> Array:
    """Return a way without every second point."""
    return np.concatenate([way[:-1:2], way[-1:]])


@pytest.mark.parametrize("left_out", [merged, half])
def test_ways_within_constraints_are_made_shorter(
    left_out: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(proven_search, "merged", left_out)
    constraint, error, most = CASES["plane"]
    Q = ends_on(manifold(constraint), 5)
    found = gain = 0
    for ends in pairwise(Q):
        first = planner()(*ends, constraints=[constraint], timeout=2.0)
        if not first:
            continue
        # So that there are as many rounds on slow machines.
        monkeypatch.setattr(proven_search, "time", Clock())
        plan = planner()(*ends, constraints=[constraint], timeout=None, improve=30.0)
        assert plan.proven and plan.length <= first.length * (1.0 + 1e-12)
        assert (plan.q[0] == ends[0]).all() and (plan.q[-1] == ends[1]).all()
        # What is returned is proven, not what was before points were left out.
        motions = MotionTests(plan.check, manifold(constraint), plan.resolution)
        assert motions.proven([plan.q])[0] is not None
        between = dense(plan.q, 400)
        assert error(between).max() < most and gaps(between).min() > 0.0
        found += 1
        gain += plan.length < 0.99 * first.length
    assert found and gain


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"rotation": "z"}, ModelError, "leaves two rotations free"),
        ({"position": "xw"}, ModelError, "letters of 'xyz'"),
        ({"position": "", "rotation": ""}, ModelError, "constrains nothing"),
        ({"distance": 0.0}, ModelError, "distance= is a finite number above 0"),
        ({"angle": np.nan}, ModelError, "angle= is a finite number above 0"),
        ({"angle": "small"}, ModelError, "angle= is a finite number above 0"),
        ({"angle": 1e-9}, ModelError, "angle= is 1e-09; it must be 1e-07 or more"),
        ({"target": np.eye(3)}, ShapeError, r"shape \(3, 3\)"),
        ({"target": 2.0 * np.eye(4)}, ModelError, "rigid pose"),
        ({"target": np.diag([1.0, 1.0, -1.0, 1.0])}, ModelError, "reflected"),
        ({"target": "there"}, ShapeError, "target needs real numbers"),
        ({"box": (1.0, 2.0)}, ShapeError, r"not \(2, 3\)"),
        ({"box": ((0, 0, 1), (0, 0, 0))}, ModelError, "box is empty"),
        ({"box": "all"}, ShapeError, "box needs real numbers"),
    ],
)
def test_constraints_that_do_not_fit_are_refused(fields, error, message: str):
    with pytest.raises(error, match=message):
        arm.FrameConstraint(FRAME, **fields)


def test_what_does_not_fit_is_refused():
    start, goal = free_positions(planner().check, 2)
    for options, error, message in (
        ({"fixed": ["robot/link9"]}, UnknownName, "link9"),
        ({"fixed": "robot/link1"}, ModelError, "list of names"),
        ({"bounds": {"robot/link1": (1.0, 0.0)}}, ModelError, "least and the greatest"),
        ({"bounds": {"robot/link1": (4.0, 5.0)}}, ModelError, "beyond its limits"),
        ({"constraints": [np.eye(4)]}, ModelError, "FrameConstraint"),
        ({"constraints": arm.FrameConstraint(FRAME)}, ModelError, "is a list"),
        ({"constraints": [arm.FrameConstraint("nothing")]}, UnknownName, "nothing"),
    ):
        with pytest.raises(error, match=message):
            planner()(start, goal, **options)
        with pytest.raises(error, match=message):
            planner().batch(start[None], goal[None], **options)


def test_constraints_that_can_be_read_once_hold():
    constraint, error, most = CASES["box"]
    start, goal = ends_on(manifold(constraint), 2)
    plans = [
        planner()(start, goal, constraints=iter([constraint]), timeout=None),
        *planner().batch(
            np.stack([start, goal]),
            np.stack([goal, start]),
            constraints=iter([constraint]),
            timeout=None,
        ),
    ]
    expected = planner()(start, goal, constraints=[constraint], timeout=None)
    assert np.array_equal(plans[0].q, expected.q)
    for plan in plans:
        assert error(dense(plan.q, 400)).max() < most
