"""Searches that pause and go on, judged by those that do not."""

from __future__ import annotations

import functools
from itertools import pairwise

import numpy as np
import pytest

import armillary as arm
from armillary.collision.check import CollisionCheck
from armillary.kernel.column_function import RowFunction
from armillary.planning.goals import Goals
from armillary.planning.layout import PAUSED
from armillary.planning.loop_memory import RESULTS, LoopMemory, NativeCall, Problem
from armillary.planning.way_search import AskedWay
from armillary.shapes import Box
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
    begun: list[Problem] = []
    begin = LoopMemory.begin

    def noted(self: LoopMemory, problem: Problem) -> object:
        begun.append(problem)
        return begin(self, problem)

    monkeypatch.setattr(LoopMemory, "begin", noted)
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
