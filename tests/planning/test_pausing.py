"""Searches that pause and go on, judged by those that do not."""

from __future__ import annotations

import functools
import threading
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.collision.check import CollisionCheck
from armillary.kernel.binding import address_of
from armillary.kernel.column_function import RowFunction
from armillary.planning.goals import Goals
from armillary.planning.layout import FOUND, FULL, PAUSED, TREE, WORK
from armillary.planning.loop_memory import RESULTS, LoopMemory, NativeCall, Problem
from armillary.planning.search_code import REMOVED
from armillary.planning.way_search import AskedWay, WaySearch
from armillary.shapes import Box, Sphere
from ball_arm import among_balls, at, cell_of, dense, free_positions, gaps

Array = np.ndarray
PLANE = arm.FrameConstraint(
    "robot/link3", target=arm.Pose.identity(), position="z", rotation=""
)


@functools.cache
def planner(resolution: float = 1.0 / 32.0) -> arm.Planner:
    cell = among_balls()
    return cell.planner(cell.collision(), resolution=resolution)


@functools.cache
def between_walls(resolution: float) -> arm.Planner:
    walls = [
        at(Box, 0.9, y, z, size=(0.1, 0.9, 0.9))
        for y in (-0.6, 0.6)
        for z in (-0.6, 0.6)
    ]
    cell = cell_of(walls, limit=2.6)
    return cell.planner(cell.collision(), resolution=resolution)


def problems(count: int) -> list[tuple[Array, Array]]:
    return list(pairwise(free_positions(planner().check, count + 1)))


def ends_on_the_plane(count: int) -> Array:
    planned = planner()._planned
    surface = planned.manifold([PLANE], None, np.empty((0, 4)), None)
    rng = np.random.default_rng(3)
    Q, is_on = surface.project(
        rng.uniform(surface.lower, surface.upper, (40 * count, 4))
    )
    return Q[is_on & ~planner().check(Q)][:count]


@pytest.mark.parametrize("resolution", [1.0 / 32.0, 1.5])
def test_a_search_that_pauses_finds_the_same(resolution: float):
    planned, paused = between_walls(resolution), 0
    for start, goal in pairwise(free_positions(planned.check, 20)):
        loop = planned._ways.loop(start, goal[np.newaxis])
        problem = Problem(start, goal[np.newaxis], 5, 0)
        whole = loop.solve(problem)
        with loop.begun(problem) as search:
            # A time that is over: each part of the search takes a few samples.
            found = search.run(1)
            while found.status == PAUSED:
                paused += 1
                found = search.run(1)
        assert found.q.tobytes() == whole.q.tobytes()
        assert found.counts == whole.counts and found.length == whole.length
    assert paused > 5


@pytest.mark.parametrize("resolution", [0.7, 1.5, 4.0])
def test_ways_of_coarse_samples_touch_nothing(resolution: float):
    """Coarse samples jump over the balls; proofs refute motions then."""
    for seed, (start, goal) in enumerate(problems(12)):
        plan = planner(resolution)(start, goal, seed=seed, timeout=None)
        assert plan.proven
        assert gaps(dense(plan.q, 2000)).min() > 0.0


def test_no_search_begins_anew_behind_a_proof(monkeypatch: pytest.MonkeyPatch):
    usual = [planner()(*ends, timeout=None) for ends in problems(6)]
    begun = counted_begins(monkeypatch)
    # Each search pauses as soon as it may, and nothing is separated.
    name = "armillary.planning.way_search.MOST_TIME_BEFORE_PROOF"
    monkeypatch.setattr(name, 0)
    asked: list[int] = []
    monkeypatch.setattr(
        "armillary.planning.way_search.separating_pairs",
        lambda *_: asked.append(0),
    )
    again = [planner()(*ends, timeout=None) for ends in problems(6)]
    assert asked and len(begun) == len(usual)
    for one, other in zip(usual, again, strict=True):
        assert one.q.tobytes() == other.q.tobytes()
        assert (one.edges, one.samples) == (other.edges, other.samples)


def counted_begins(monkeypatch: pytest.MonkeyPatch) -> list[Problem]:
    """Return a list to which searches are added that begin by themselves."""
    begun: list[Problem] = []
    begin = LoopMemory.begin

    def noted(self: LoopMemory, problem: Problem) -> object:
        begun.append(problem)
        return begin(self, problem)

    monkeypatch.setattr(LoopMemory, "begin", noted)
    return begun


@pytest.mark.parametrize("room", [64, 2])
def test_searches_of_a_batch_go_on_where_they_were(
    monkeypatch: pytest.MonkeyPatch, room: int
):
    starts, goals = map(np.array, zip(*problems(40), strict=True))
    usual = planner().batch(starts, goals, timeout=None)
    begun = counted_begins(monkeypatch)
    # Each search pauses as soon as it may, and nothing is separated.
    monkeypatch.setattr("armillary.planning.way_search.TIME_BEFORE_PROOF", 0)
    monkeypatch.setattr(
        "armillary.planning.way_search.separating_pairs", lambda *_: None
    )
    monkeypatch.setattr("armillary.planning.loop.MOST_PAUSED", room)
    paused: list[int] = []
    solve_some = LoopMemory.solve_some

    def noted(*given: Any) -> Any:
        found, owned = solve_some(*given)
        paused.append(sum(each.status == PAUSED for each in found))
        return found, owned

    monkeypatch.setattr(LoopMemory, "solve_some", noted)
    again = planner().batch(starts, goals, timeout=None)
    assert sum(paused) > 4
    assert len(begun) == max(0, sum(paused) - room)
    for one, other in zip(usual, again, strict=True):
        assert one.q.tobytes() == other.q.tobytes()
        assert (one.edges, one.samples) == (other.edges, other.samples)


def test_a_search_has_what_a_proof_leaves(monkeypatch: pytest.MonkeyPatch):
    """A search that needs most of the timeout is not lost by a proof in vain."""
    ((start, goal),) = problems(1)
    now = timeout = 10**9
    searched: list[int] = []
    proven: list[int] = []

    class Clock:
        """Time that passes in searches and proofs alone."""

        @staticmethod
        def monotonic_ns() -> int:
            return now

    def passes(until: int, noted: list[int]) -> None:
        nonlocal now
        noted.append(until - now)
        now = until

    def run(memory: LoopMemory, _: NativeCall, problem: Problem, until: int) -> None:
        passes(until or problem.deadline, searched)
        memory.call[RESULTS] = PAUSED  # nothing is found

    monkeypatch.setattr(LoopMemory, "run", run)
    name = "armillary.planning.way_search"
    monkeypatch.setattr(f"{name}.time", Clock())
    monkeypatch.setattr(
        f"{name}.separating_pairs", lambda *given: passes(given[-1], proven)
    )
    ways = planner()._ways
    goals = Goals(goal[np.newaxis], np.zeros(1, np.int64))
    one = ways.asked(0, start, goals, None)
    assert isinstance(one, AskedWay)
    ways._solved(one, one.problem(0, now + timeout))
    assert sum(searched) >= 0.7 * timeout and 0 < sum(proven) <= 0.3 * timeout


def test_a_way_along_constraints_takes_one_call_of_the_loop(
    monkeypatch: pytest.MonkeyPatch,
):
    Q = ends_on_the_plane(8)
    usual = [planner()(*ends, constraints=[PLANE], timeout=2.0) for ends in pairwise(Q)]
    solved = [ends for ends, plan in zip(pairwise(Q), usual, strict=True) if plan]
    calls: dict[str, int] = {"loop": 0, "rows": 0}

    def counted(name: str, function):
        def call(*given):
            calls[name] += 1
            return function(*given)

        return call

    def never(*_):
        raise AssertionError("a way is checked or proven in Python")

    monkeypatch.setattr(LoopMemory, "begin", counted("loop", LoopMemory.begin))
    rows = counted("rows", RowFunction.__call__)
    monkeypatch.setattr(RowFunction, "__call__", rows)
    monkeypatch.setattr(CollisionCheck, "__call__", never)
    monkeypatch.setattr(CollisionCheck, "motion", property(never))
    for ends in solved:
        plan = planner()(*ends, constraints=[PLANE], timeout=None)
        assert plan.success and plan.proven
    # The rows are the errors of start and goal.
    assert calls == {"loop": len(solved), "rows": len(solved)} and len(solved) > 2


def trees_of(memory: LoopMemory) -> list[tuple[Array, Array]]:
    """Return the parents and radii of the nodes of both trees."""
    arrays = [each for each in memory.owned if isinstance(each, np.ndarray)]
    known = {address_of(each): each for each in arrays}
    first = WORK.offsets["tree"] // 8
    found: list[tuple[Array, Array]] = []
    for tree in memory.words[first : first + 2].tolist():
        words = known[tree]
        count = words[TREE.offsets["count"] // 8]
        parent, radius = (
            known[words[TREE.offsets[x] // 8]][:count] for x in ("parent", "radius")
        )
        found.append((parent, radius))
    return found


def behind_a_thin_wall(hole: float, at_y: float) -> arm.Planner:
    """Return a ball on two slides, before a wall that samples jump over."""
    size, thick = 10.0, 1e-3
    slides = [
        arm.Link(
            name=name,
            parent=parent,
            joint=arm.joints.Prismatic(axis=axis),
            limits=arm.Limits(lower=-size, upper=size),
            collisions=[Sphere(radius=1e-3)] if parent == "a" else [],
        )
        for name, parent, axis in (("a", "base", (1, 0, 0)), ("b", "a", (0, 1, 0)))
    ]
    robot = arm.Manipulator(name="robot", links=[arm.Link(name="base"), *slides])
    ends = (-size - 1.0, at_y - 0.5 * hole, at_y + 0.5 * hole, size + 1.0)
    walls = [
        at(Box, 0.0, 0.5 * (low + high), 0.0, size=(thick, high - low, 1.0))
        for low, high in (ends[:2], ends[2:])
    ]
    wall = arm.Manipulator(name="wall", links=[arm.Link(name="b", collisions=walls)])
    cell = arm.Cell(manipulators=[robot, wall])
    return cell.planner(cell.collision(), resolution=size)


@pytest.mark.parametrize("hole", [0.0, 0.02])
def test_edges_that_are_refuted_are_removed_with_all_they_bear(hole: float):
    """Detours through a small hole are seldom found; without it there are none."""
    at_y, endings = 6.0, set[tuple[int, bool]]()
    planned = behind_a_thin_wall(hole, at_y)
    # Trees are full soon where no way is found.
    ways = WaySearch(planned._planned, planned.options._replace(nodes=500))
    start, goals = np.array([-5.0, -5.0]), np.array([[5.0, -4.0]])
    loop = ways.loop(start, goals)
    for seed in range(16):
        with loop.begun(Problem(start, goals, seed, 0)) as search:
            found = search.run()
            trees = trees_of(search._memory)
        for parent, radius in trees:
            is_there = (radius != REMOVED) & (parent >= 0)
            assert (radius[parent[is_there]] != REMOVED).all()
        is_pruned = any((radius == REMOVED).any() for _, radius in trees)
        endings.add((found.status, is_pruned))
        for p, q in pairwise(found.q):
            if (p[0] < 0.0) != (q[0] < 0.0):
                y = p[1] + (q[1] - p[1]) * p[0] / (p[0] - q[0])
                assert abs(y - at_y) < 0.5 * hole
    assert (FOUND if hole else FULL, True) in endings
    assert {status for status, _ in endings} <= {FULL, *([FOUND] if hole else [])}


def test_a_signal_before_the_thread_begins_ends_the_search(
    monkeypatch: pytest.MonkeyPatch,
):
    planned = behind_a_thin_wall(0.0, 6.0)
    start, goal = np.array([-5.0, -5.0]), np.array([5.0, -4.0])
    monkeypatch.setattr("armillary.planning.loop_memory.UNINTERRUPTED", 0)

    def interrupted(_: threading.Thread) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("threading.Thread.start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            planned(start, goal, timeout=None)
    assert planned(start, start + 1.0)
