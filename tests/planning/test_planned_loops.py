"""Planned ways of cells with closed loops, judged by dense samples."""

from __future__ import annotations

import time
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.planning.loop_memory import LoopMemory, Problem
from armillary.planning.planner import STEP
from armillary.planning.proven_search import ProvenSearch
from ball_arm import dense, free_positions


def test_a_loop_that_does_not_close_is_said():
    cell = arm.example("five_bar")
    goal = np.array([-0.5, 3.6])
    plan = cell.planner(cell.collision())(cell.home.q, goal)
    assert plan.reason is arm.PlanReason.GOAL_TOUCHES
    assert "a loop of links does not close" in repr(plan)


@cache
def delta_above_a_box():
    """A delta robot with a plate, and a box that the plate must go around."""
    cell = arm.example("delta")
    robot = cell.manipulators[0]
    plate = arm.shapes.Cylinder(radius=0.06, length=0.03)
    links = [
        link.replace(collisions=[plate]) if link.name == "platform" else link
        for link in robot.links
    ]
    box = arm.shapes.Box(
        size=(0.25, 0.25, 0.3), pose=arm.Pose.translation(0.0, 0.0, -0.95)
    )
    thing = arm.Manipulator(name="thing", links=[arm.Link(name="b", collisions=[box])])
    cell = cell.replace(manipulators=[robot.replace(links=links), thing])
    return cell.planner(cell.collision())


def test_ways_of_loops_are_proven():
    planner = delta_above_a_box()
    check = planner.check
    refuted = 0
    for start, goal in pairwise(free_positions(check, 120)):
        goals = goal[np.newaxis].copy()
        sampled = planner._ways.loop(start, goals).solve(Problem(start, goals, 0, 0)).q
        if check(dense(sampled, 400)).any():  # samples alone miss contacts
            plan = planner(start, goal, timeout=None)
            assert plan.success and plan.proven
            assert not check(dense(plan.q, 400)).any()
            refuted += 1
    assert refuted > 2


@pytest.mark.parametrize("slice_of_time", [None, 1000])
def test_problems_of_loops_are_those_of_calls(
    monkeypatch: pytest.MonkeyPatch, slice_of_time: int | None
):
    if slice_of_time is not None:  # in which nothing is found
        name = "armillary.planning.proven_search.FIRST_SLICE"
        monkeypatch.setattr(name, slice_of_time)
    begun: list[Problem] = []
    begin = LoopMemory.begin
    monkeypatch.setattr(
        LoopMemory, "begin", lambda *given: begun.append(given[1]) or begin(*given)
    )
    planner = delta_above_a_box()
    Q = free_positions(planner.check, 4)
    plans = planner.batch(Q[:-1], Q[1:], timeout=None)
    of_batch = len(begun)
    for plan, start, goal in zip(plans, Q[:-1], Q[1:], strict=True):
        assert plan.proven
        assert np.array_equal(plan.q, planner(start, goal, timeout=None).q)
    # Searches pause and go on: none begins anew.
    assert of_batch == len(begun) - of_batch


def test_roadmaps_of_loops_are_proven():
    check = delta_above_a_box().check
    made = arm.Cell.of(check.cell).roadmap(check, nodes=40)
    for start, goal in pairwise(free_positions(check, 40)):
        plan = made(start, goal, timeout=None)
        if plan:
            assert plan.proven and not check(dense(plan.q, 400)).any()
    # Motions of which samples are free were refuted, and are not taken again.
    refuted = [
        k
        for k, way in made.graph.ways.items()
        if way is None and not check(dense(made.graph.Q[list(k)], 12)).any()
    ]
    assert refuted and made.graph.proven


def test_ways_of_loops_are_made_shorter(monkeypatch: pytest.MonkeyPatch):
    planner = delta_above_a_box()
    check, improved = planner.check, ProvenSearch._improved

    def later(self: ProvenSearch, *given: Any) -> Any:
        # The time begins once there is a way, however long that takes.
        until = time.monotonic_ns() + self.query.improve - began
        self.query = self.query._replace(improve=until)
        return improved(self, *given)

    monkeypatch.setattr(ProvenSearch, "_improved", later)
    for more in (0.3, 2.0, 10.0):  # as much as a slow machine needs
        searched = 0
        for start, goal in pairwise(free_positions(check, 6)):
            first = planner(start, goal, timeout=None)
            if len(first.q) <= 2:
                continue
            began = time.monotonic_ns()
            plan = planner(start, goal, timeout=None, improve=more)
            assert plan.proven and plan.length <= first.length
            assert not check(dense(plan.q, 400)).any()
            searched += plan.samples > first.samples
        if searched:
            return
    raise AssertionError("nothing was searched for")


def test_motions_of_loops_rest_at_corners():
    planner = delta_above_a_box()
    check = planner.check
    for start, goal in pairwise(free_positions(check, 13)):
        plan = planner(start, goal, timeout=None)
        if len(plan.q) > 2:
            motion = plan.timed(acceleration=5.0)
            t = np.linspace(0.0, motion.duration, 500)
            assert not check(motion.at(t).q).any()
            return
    raise AssertionError("no way has corners")


def test_what_is_not_proven_of_loops_is_sampled_and_that_is_said():
    planner = delta_above_a_box()
    check = planner.check
    start, goal = free_positions(check, 2)
    flat = arm.FrameConstraint(
        "delta/platform",
        target=arm.Pose.translation(0.0, 0.0, 0.0),
        position="",
        rotation="",
        box=((-9.0, -9.0, -9.0), (9.0, 9.0, 9.0)),
    )
    plan = planner(start, goal, constraints=[flat], timeout=None)
    assert plan.success and not plan.proven and "sampled" in repr(plan)
    assert plan.resolution == STEP and not check(dense(plan.q, 400)).any()
