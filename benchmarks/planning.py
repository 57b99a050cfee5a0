"""Planners: motions from A to B, beside VAMP on its own robot and OMPL over our checks.

VAMP's robot is a Panda in 59 spheres with its own pairs of links; ours is read from the
same files. Its search and ours are RRT-Connect with steps and samples of one distance,
and both shorten what they find. Ours is proven as well. Each question is asked several
times by turns, of which the best of each counts; times are those of the whole call,
as seen from Python, but of VAMP also what it says itself, without its call.

`ARMILLARY_PROBLEMS` is how many problems of each set are asked, 25 by default of 100;
`ARMILLARY_JUDGED` how many answers of each set are judged, 10 by default.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

import armillary as arm
from armillary.planning.plan import Plan
from armillary.planning.planner import Planner
from armillary.shapes import Box, Primitive
from benchmarks.collisions import cell_with
from benchmarks.learned_rules import panda_urdf
from benchmarks.measure import (
    Figure,
    absent,
    cheaper,
    duration,
    faster,
    fewer,
    within,
)
from benchmarks.planning_constraints import constraint_figures
from benchmarks.planning_judges import CoalJudge, SphereJudge, samples
from benchmarks.planning_peers import (
    CAGE_GOAL,
    CAGE_START,
    MISSING,
    Ompl,
    Vamp,
    among,
    cage_shapes,
    made_problems,
    panda_of_vamp,
    vamp_source,
)
from benchmarks.planning_sets import MAKERS, hulls, scenes_of, setting

SEEDS = fewer(100)
TURNS = 3
FEW = 5
SCENES = 40
PROBLEMS = int(os.environ.get("ARMILLARY_PROBLEMS", "25"))
JUDGED = int(os.environ.get("ARMILLARY_JUDGED", "10"))
BATCH = 10_000
IMPROVED = 0.2
"""How long ways are made shorter [s]."""
MEDIAN, LATE = 5e-3, 50e-3
"""What is asked of sets of our own [s]."""


def figures() -> Iterator[Figure]:
    """Yield the figures of planning."""
    if vamp_source() is None:
        yield absent("planning beside VAMP", f"{MISSING} is not there")
    else:
        yield from cage_figures()
        yield from made_figures()
        yield from anytime_figures()
        yield from batch_figures()
    yield from scene_figures()
    yield from constraint_figures()
    yield from own_figures()


def seconds_of(task: Callable[[], Any], turns: int = TURNS) -> tuple[float, Any]:
    """Return the shortest time of some calls [s], and the last answer."""
    best, answer = np.inf, None
    for _ in range(turns):
        start = time.perf_counter()
        answer = task()
        best = min(best, time.perf_counter() - start)
    return best, answer


@cache
def caged() -> tuple[arm.Cell, Planner]:
    """Return VAMP's sphere cage and its planner, which has compiled its code."""
    cell = among(panda_of_vamp(), cage_shapes())
    planner = cell.planner(cell.collision())
    planner(CAGE_START, CAGE_GOAL)
    return cell, planner


def cage_figures() -> Iterator[Figure]:
    """Yield figures of the sphere cage: times, lengths, and what a judge finds."""
    cell, planner = caged()
    vamp = Vamp()
    environment = vamp.cage()
    ours: list[float] = []
    plans: list[Plan] = []
    theirs: list[tuple[float, float, float]] = []
    for seed in range(SEEDS):
        took, plan = seconds_of(lambda: planner(CAGE_START, CAGE_GOAL, seed=seed))  # noqa: B023
        ours.append(took)
        plans.append(plan)
        found = [
            vamp(CAGE_START, CAGE_GOAL, environment, seed=seed) for _ in range(TURNS)
        ]
        own = min(each.seconds for each in found), min(each.called for each in found)
        theirs.append((*own, found[0].length))
    assert all(plan.success and plan.proven for plan in plans)
    title = f"sphere cage, {SEEDS} seeds"
    yield from _beside_vamp(title, ours, theirs, (0.6, 0.7))
    judge = SphereJudge(cell, planner.check)
    worst = max(judge.depth(plan.q) for plan in plans[:JUDGED])
    yield free_figure(f"{title}, deepest of {JUDGED} ways, by NumPy", worst)
    yield _lengths(title, plans, [length for *_, length in theirs])
    yield from _ompl(planner)


def _beside_vamp(
    title: str,
    ours: Sequence[float],
    theirs: Sequence[tuple[float, float, float]],
    asked: tuple[float, float],
) -> Iterator[Figure]:
    mine = np.percentile(ours, (50, 95)).tolist()
    own, called, _ = np.percentile(theirs, (50, 95), axis=0).T.tolist()
    names = "median", "95 of 100"
    for name, here, there in zip(names, mine, own, strict=True):
        what = f"{title}, {name}; VAMP, without its call"
        yield cheaper(what, here, there, at_most=asked[0])
    for name, here, there in zip(names, mine, called, strict=True):
        what = f"{title}, {name}; VAMP, from Python"
        yield cheaper(what, here, there, at_most=asked[1])


def _lengths(title: str, plans: Sequence[Plan], theirs: Sequence[float]) -> Figure:
    ours, peer = (
        float(np.median([plan.length for plan in plans])),
        float(np.median(theirs)),
    )
    ratio = ours / peer
    return Figure(
        f"{title}, length; VAMP",
        f"{ours:.2f} rad",
        f"{peer:.2f} rad",
        "<= 1.05 of its length",
        f"{ratio:.2f}",
        ratio <= 1.05,
        ratio,
    )


def free_figure(what: str, depth: float) -> Figure:
    """Return the line for how deep a judge finds links in each other [m]."""
    is_free = depth <= 0.0
    got = "free" if is_free else f"{1e3 * depth:.3g} mm deep"
    return Figure(what, got, "", "free", got, is_free)


def _ompl(planner: Planner) -> Iterator[Figure]:
    """Yield how much longer OMPL takes in the cage with our check, from Python."""
    if find_spec("ompl") is None:
        yield absent("sphere cage; OMPL over our check", "ompl is not installed")
        return
    check = planner.check
    ompl = Ompl(check, check.cell.limits, planner.options.step)
    ours, theirs = [], []
    for seed in range(FEW):
        took, _ = seconds_of(lambda: planner(CAGE_START, CAGE_GOAL, seed=seed))  # noqa: B023
        ours.append(took)
        theirs.append(ompl(CAGE_START, CAGE_GOAL, timeout=30.0).called)
    what = "sphere cage; RRT-Connect of OMPL over our check, median"
    yield faster(what, float(np.median(ours)), float(np.median(theirs)), at_least=50)


def made_figures() -> Iterator[Figure]:
    """Yield figures of the problems of MotionBenchMaker."""
    vamp, robot = Vamp(), panda_of_vamp()
    ours: list[float] = []
    theirs: list[tuple[float, float, float]] = []
    plans: list[Plan] = []
    worst, judged, of_kind = -np.inf, 0, dict[str, int]()
    for problem in made_problems():
        cell = among(robot, problem.shapes)
        planner = cell.planner(cell.collision())
        goals = problem.goals
        planner(problem.start, goals, timeout=10.0)
        took, plan = seconds_of(lambda: planner(problem.start, goals))  # noqa: B023
        environment = vamp.environment(problem)
        found = [vamp(problem.start, goals, environment) for _ in range(TURNS)]
        own = min(each.seconds for each in found), min(each.called for each in found)
        ours.append(took)
        plans.append(plan)
        theirs.append((*own, found[0].length))
        count = of_kind[problem.kind] = of_kind.get(problem.kind, 0) + 1
        if count <= JUDGED and plan.success:
            judge = SphereJudge(cell, planner.check)
            worst, judged = max(worst, judge.depth(plan.q)), judged + 1
    title = f"MotionBenchMaker, {len(ours)} problems"
    yield from _beside_vamp(title, ours, theirs, (0.65, 0.7))
    yield solved_figure(title, plans)
    yield free_figure(f"{title}, deepest of {judged} ways, by NumPy", worst)
    yield _lengths(title, plans, [length for *_, length in theirs])


def solved_figure(what: str, plans: Sequence[Plan]) -> Figure:
    """Return the line for how many problems have an answer that is proven."""
    count = sum(plan.success and plan.proven for plan in plans)
    got = f"{count} of {len(plans)}"
    return Figure(
        f"{what}, solved and proven", got, "", "all", got, count == len(plans)
    )


def anytime_figures() -> Iterator[Figure]:
    """Yield how short ways in the cage are that are improved for 0.2 s."""
    _, planner = caged()
    plans = [
        planner(CAGE_START, CAGE_GOAL, seed=seed, improve=IMPROVED)
        for seed in range(FEW)
    ]
    length = float(np.median([plan.length for plan in plans]))
    took = float(np.median([plan.seconds for plan in plans]))
    got = f"{length:.2f} rad"
    what = f"sphere cage, length after {duration(took)}, proven, median of {FEW} seeds"
    is_proven = all(plan.proven for plan in plans)
    yield Figure(what, got, "", "<= 4.4 rad", got, is_proven and length <= 4.4)


def scene_figures() -> Iterator[Figure]:
    """Yield how long planners take that are given a new scene of 15 shapes.

    What is measured is how much longer the first question takes than the same again,
    with all that is made before it. What stood before is beside it: a cell that is
    edited in full, with its planner.
    """
    rng = np.random.default_rng(0)
    robot = cell_with(())
    goal = CAGE_START + 1e-3

    def boxes() -> dict[str, Primitive]:
        angle, radius = rng.uniform(-np.pi, np.pi, 15), rng.uniform(0.6, 0.9, 15)
        height, size = rng.uniform(0.0, 1.0, 15), rng.uniform(0.1, 0.2, (15, 3))
        places = np.stack([radius * np.cos(angle), radius * np.sin(angle), height], 1)
        return {
            f"thing{k}": Box(size=tuple(edges), pose=arm.Pose.translation(*place))
            for k, (edges, place) in enumerate(
                zip(size.tolist(), places.tolist(), strict=True)
            )
        }

    alone, many = robot.collision(), among(robot, [*boxes().values()])

    def obstacles(given: dict[str, Primitive]) -> Planner:
        return robot.planner(alone.with_obstacles(given))

    def state(given: dict[str, Primitive]) -> Planner:
        places = {name: each.pose for name, each in given.items()}
        return many.planner(many.collision(many.home.place_all(places)))

    def edited(given: dict[str, Primitive]) -> Planner:
        cell = among(robot, [*given.values()])
        return cell.planner(cell.collision())

    def asked(make: Callable[[dict[str, Primitive]], Planner]) -> float:
        given = boxes()
        start = time.thread_time()
        planner = make(given)
        planner(CAGE_START, goal)
        first = time.thread_time()
        planner(CAGE_START, goal)
        return 2.0 * first - start - time.thread_time()

    ways = obstacles, state, edited
    took = [[asked(make) for make in ways] for _ in range(SCENES)]
    new, moved, whole = np.median(took[5:], axis=0).tolist()
    asks = "planner, until it plans, median; a cell edited in full"
    yield within(f"15 new boxes: check, {asks}", new, at_most=0.5e-3, peer=whole)
    yield within(
        f"15 boxes moved: state, check, {asks}", moved, at_most=0.5e-3, peer=whole
    )


def batch_figures() -> Iterator[Figure]:
    """Yield how many problems are planned and proven a second, on two threads."""
    problem = next(each for each in made_problems() if each.kind == "table_pick")
    cell = among(panda_of_vamp(), problem.shapes)
    planner = cell.planner(cell.collision())
    lower, upper = cell.limits
    rng = np.random.default_rng(0)

    def near(q: np.ndarray) -> np.ndarray:
        Q = q + rng.uniform(-0.2, 0.2, (4 * BATCH, 7))
        Q = Q[((lower < Q) & (upper > Q)).all(axis=1)]
        return Q[~planner.check(Q)][:BATCH]

    starts, goals = near(problem.start), near(problem.goals[0])
    count = min(len(starts), len(goals))
    starts, goals = starts[:count], goals[:count]
    planner.batch(starts[:100], goals[:100], threads=2)
    start = time.perf_counter()
    plans = planner.batch(starts, goals, threads=2, timeout=60.0)
    took = time.perf_counter() - start
    title = f"{count:,} problems like one of MotionBenchMaker, 2 threads"
    yield within(f"{title}, each", took / count, at_most=1e-4)
    yield solved_figure(title, plans)


def hull_figures() -> Iterator[Figure]:
    """Yield figures of a Panda in hulls in the sphere cage."""
    cell = among(arm.load(panda_urdf()), cage_shapes())
    planner = cell.planner(cell.collision())
    fingers = [0.02] * (len(cell.joint_names) - 7)
    start, goal = (np.array([*q, *fingers]) for q in (CAGE_START, CAGE_GOAL))
    planner(start, goal, timeout=30.0)
    asked = [
        seconds_of(lambda: planner(start, goal, seed=k), turns=1)  # noqa: B023
        for k in range(SEEDS // 4)
    ]
    title = "Panda in hulls in the sphere cage"
    yield solved_figure(title, [plan for _, plan in asked])
    middle = float(np.median([took for took, _ in asked]))
    yield within(f"{title}, median", middle, at_most=10e-3)


def own_figures() -> Iterator[Figure]:
    """Yield figures of problems of our own, real meshes as hulls."""
    if find_spec("pinocchio") is None:
        yield absent("arms in hulls", "pinocchio is not installed")
        return
    yield from hull_figures()
    arms = hulls()
    for robot in MAKERS:
        for scene in scenes_of(robot, 0):
            made = setting(robot, scene, arms)
            problems = made.problems(PROBLEMS)
            planner = made.cell.planner(made.check)
            planner(problems[0].start, problems[0].goal)
            asked = [
                seconds_of(lambda: planner(each.start, each.goal, seed=k), turns=1)  # noqa: B023
                for k, each in enumerate(problems)
            ]
            plans = [plan for _, plan in asked]
            middle, late = np.percentile([took for took, _ in asked], (50, 95)).tolist()
            title = f"{made.name}, hulls, {len(problems)} problems"
            yield solved_figure(f"{title} in 1 s", plans)
            yield within(f"{title}, median", middle, at_most=MEDIAN)
            yield within(f"{title}, 95 of 100", late, at_most=LATE)
            judge = CoalJudge(made.cell, made.check)
            ways = [plan.q for plan in plans[:JUDGED] if plan.success]
            count = sum(bool(judge.touching(samples(way)).any()) for way in ways)
            got = f"{count} of {len(ways)}"
            what = f"{title}, ways that coal finds touching"
            yield Figure(what, got, "", "none", got, not count)
