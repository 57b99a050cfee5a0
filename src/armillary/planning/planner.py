"""Planners of motions that touch nothing, to joint positions or to poses."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from armillary.collision.check import CollisionCheck
from armillary.errors import ModelError, ShapeError, quote
from armillary.kernel.arguments import numbers_of, whole_number
from armillary.kernel.search import deadline_of
from armillary.kernel.threads import default_threads, share
from armillary.kinematics.state import State
from armillary.model.workcell import WORLD, Workcell
from armillary.planning.cartesian_path import CartesianPath
from armillary.planning.constraint import FrameConstraint, Manifold, constraints_of
from armillary.planning.detoured_path import DetouredPath, detoured
from armillary.planning.goals import FreeAxes, Goals, goals_of, positions_of
from armillary.planning.graph import GraphQuery
from armillary.planning.loop import (
    LoopOptions,
)
from armillary.planning.loop_memory import (
    Problem,
)
from armillary.planning.plan import Plan
from armillary.planning.planned_cell import PlannedCell, planned_cell, seconds_of
from armillary.planning.region import Bounds, region_of
from armillary.planning.way_search import AskedWay, WaySearch
from armillary.spatial.pose import Pose

__all__ = ["Planner", "planner"]

Array = npt.NDArray[np.float64]

STEP: Final = 1.0 / 32.0
"""Distance of samples by default [rad or m of one joint]."""

LARGEST_TREE: Final = 2**31 - 1
"""The most nodes of a tree, whose numbers have 32 bits."""

MOST_SEED: Final = 2**62 - 1
"""Bits of a seed that count."""


def planner(
    cell: Workcell,
    check: CollisionCheck,
    *,
    weights: npt.ArrayLike | None = None,
    resolution: float = STEP,
    nodes: int = 100_000,
) -> Planner:
    """Return the planner of motions of a cell that a check finds free.

    Make it once, and ask it often:

        planner = cell.planner(cell.collision(state, margin=0.01))
        plan = planner(q, goal)
        plan.q, plan.reason, plan.proven

    Its loop is compiled once for a machine, whatever the cell; other states, grips and
    scenes compile nothing.

    Args:
        cell: The cell.
        check: What must not touch, in which state, and with which margin, as
            `cell.collision(state, margin=0.01)` returns it.
        weights: How much each joint counts in lengths of motions, shape (n,), above 0;
            by default 1 for each radian and metre.
        resolution: Distance of the samples of a motion, in weighted lengths, where
            links have no bounds of their speed. Else the way that is returned is
            proven, and the search tests half as many samples.
        nodes: Joint positions that each of both trees may have; with those the memory
            of a search is bounded.

    Raises:
        ModelError: `check` is not a collision check, or of another cell; no joint
            moves; or a number is not above 0, too large or too small.
        ShapeError: The weights have another shape.
    """
    planned = planned_cell(cell, check, weights, resolution)
    room = whole_number("nodes", nodes, least=2)
    if room > LARGEST_TREE:
        raise ModelError(f"A tree has {LARGEST_TREE} nodes at most, not {room}.")
    options = LoopOptions(step=planned.step, nodes=room)
    return Planner(check, planned.weights, options)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Planner:
    """A planner of motions, see `Cell.planner`; threads may share it.

    Attributes:
        check: What must not touch.
        weights: Of joints in lengths of motions, shape (n,).
        options: How is searched.
    """

    check: CollisionCheck
    weights: Array
    options: LoopOptions

    def __reduce__(self) -> tuple[Any, ...]:
        return Planner, (self.check, self.weights, self.options)

    def __repr__(self) -> str:
        return f"<planner with {self.check!r}>"

    def __call__(  # noqa: PLR0913
        self,
        start: Any,
        goal: Any,
        *,
        seed: int = 0,
        timeout: float | None = 1.0,
        improve: float = 0.0,
        fixed: Sequence[str] = (),
        bounds: Bounds | None = None,
        constraints: Sequence[FrameConstraint] = (),
        frame: str | None = None,
        relative_to: str = WORLD,
        position: str = "xyz",
        rotation: str = "xyz",
        axes: str = "target",
    ) -> Plan:
        """Return a way from a start to a goal that touches nothing.

        The same start, goal and seed give the same way, whatever else runs; the timeout
        only ends a search. With `improve` the way depends on the time that there is.

        Args:
            start: Joint positions [m or rad], shape (n,), or a state.
            goal: The same; several of them, shape (k, n); a pose of a frame, shape
                (4, 4), all of whose answers of inverse kinematics are goals; or a list
                of these. Any of them may be reached.
            seed: Another number gives other samples.
            timeout: Time for the search [s]; None for as long as it takes.
            improve: Until how long after the call began shorter ways are searched for,
                once one is found [s]; each is proven as the first one.
            fixed: Names of joints that stay where they start.
            bounds: Least and greatest positions of some joints during the motion [m or
                rad], by their names, beside their limits.
            constraints: What holds during the motion, `arm.FrameConstraint`.
            frame: Of which frame poses are.
            relative_to: In which frame they are given.
            position: Which of x, y and z of a pose count, as for `Cell.ik`.
            rotation: Rotations about which axes count, as for `Cell.ik`.
            axes: Whose axes these are, as for `Cell.ik`.

        Raises:
            ShapeError: Start or goal have another shape.
            ModelError: A goal is a pose and no frame is named, a time is below 0 or
                NaN, the seed is not an integer from 0 up, or bounds are empty.
            StateError: In a state that is given other parts are attached, or other
                bases moved, than in that of the check.
            UnknownName: A frame or joint does not exist.
        """
        began = time.perf_counter()
        seconds, more = seconds_of(timeout), seconds_of(improve, "time to improve")
        q0 = positions_of(start, self.check.state, "start")
        free = FreeAxes(frame, relative_to, position, rotation, axes)
        where = fixed, bounds or {}, constraints_of(constraints)
        # Code that is compiled at the first call takes nothing of the time.
        one = self._asked(0, q0, goal, free, where)
        if isinstance(one, Plan):
            return one
        return self._planned_way(one, _number(seed), seconds, more, began)

    def _planned_way(
        self,
        one: AskedWay,
        seed: int,
        seconds: float | None,
        more: float | None,
        began: float,
    ) -> Plan:
        """Return a way that is searched for.

        Args:
            one: What is asked.
            seed: Bits of the seed.
            seconds: Time for the search [s]; None for as long as it takes.
            more: Time in which it is made shorter [s], 0 for none.
            began: When the call began, by `time.perf_counter` [s].
        """
        is_behind = one.is_proven_behind or (one.manifold is not None and more != 0.0)
        if is_behind:
            self._planned.compile(one.manifold, one.start)
        until = 0 if more == 0.0 else deadline_of(more)
        problem = one.problem(seed, deadline_of(seconds), until)
        if is_behind:
            return self._proven_behind([one], [problem])[0]
        return self._ways.plan(one, problem, began)

    def along(
        self, path: CartesianPath, *, seed: int = 0, timeout: float | None = 1.0
    ) -> DetouredPath:
        """Return a path of a tool with planned ways in place of what touches.

        Each way leads from the last sample before a stretch that touches to the first
        one behind it, so that the tool leaves its curve between them. Joints that the
        path does not have stay.

        Args:
            path: What `cell.line` returned, with a check or without; the planner's
                decides what touches.
            seed: As for a call.
            timeout: Time for each way [s]; None for as long as it takes.

        Raises:
            ModelError: The path is of another cell or state, or something else; or as
                for a call.
        """

        def planned(start: Array, goal: Array, fixed: Sequence[str]) -> Plan:
            return self(start, goal, fixed=fixed, seed=seed, timeout=timeout)

        return detoured(path, self.check, planned)

    def batch(  # noqa: PLR0913
        self,
        starts: npt.ArrayLike,
        goals: Any,
        *,
        seed: int = 0,
        timeout: float | None = 1.0,
        threads: int | None = None,
        fixed: Sequence[str] = (),
        bounds: Bounds | None = None,
        constraints: Sequence[FrameConstraint] = (),
        frame: str | None = None,
        relative_to: str = WORLD,
        position: str = "xyz",
        rotation: str = "xyz",
        axes: str = "target",
    ) -> tuple[Plan, ...]:
        """Return the ways of many problems, on several threads.

        Each is what a call gives for it alone. Within constraints problems are searched
        for on threads and proven together, as rows.

        Args:
            starts: Joint positions [m or rad], shape (k, n) or (n,).
            goals: A goal for each, or one for all: as for a call.
            seed: As for a call.
            timeout: Time for the whole call [s]; None for as long as it takes.
            threads: How many threads share them, by default as for kernels.
            fixed: As for a call.
            bounds: As for a call.
            constraints: As for a call; one without a target keeps the frame where it is
                at the start of each problem.
            frame: Of which frame poses are.
            relative_to: In which frame they are given.
            position: Which of x, y and z of a pose count, as for `Cell.ik`.
            rotation: Rotations about which axes count, as for `Cell.ik`.
            axes: Whose axes these are, as for `Cell.ik`.

        Raises:
            ShapeError: As for a call, or there are not as many goals as starts.
            ModelError: As for a call.
            UnknownName: As for a call.
        """
        began = time.perf_counter()
        seconds = seconds_of(timeout)
        n = len(self.weights)
        rows = np.ascontiguousarray(numbers_of("starts", starts))
        if rows.ndim not in {1, 2} or rows.shape[-1] != n:
            raise ShapeError(f"The starts are of shape {rows.shape}, not (k, {n}).")
        every = _each(goals, None if rows.ndim == 1 else len(rows), n)
        if rows.ndim == 1:
            rows = np.tile(rows, (len(every), 1))
        free = FreeAxes(frame, relative_to, position, rotation, axes)
        where = fixed, bounds or {}, constraints_of(constraints)
        usual = {} if frame or any(where) else self._usual(rows, goals)
        asked = [
            self._ways.asked_within(k, q0, usual[k])
            if k in usual
            else self._asked(k, q0, goal, free, where)
            for k, (q0, goal) in enumerate(zip(rows, every, strict=True))
        ]
        workers = default_threads() if threads is None else threads
        workers = whole_number("threads", workers, least=1)
        return self._plans(asked, _number(seed), seconds, workers, began)

    def _plans(
        self,
        asked: Sequence[AskedWay | Plan],
        seed: int,
        seconds: float | None,
        workers: int,
        began: float,
    ) -> tuple[Plan, ...]:
        """Return the plans of a batch.

        Args:
            asked: What is to be searched for, or plans.
            seed: Bits of the seed.
            seconds: Time for all of them [s]; None for as long as it takes.
            workers: How many threads share them.
            began: When the call began, by `time.perf_counter` [s].
        """
        left = [each for each in asked if isinstance(each, AskedWay)]
        behind = [one for one in left if one.is_proven_behind]
        for one in behind:
            self._planned.compile(one.manifold, one.start)
        deadline = deadline_of(seconds)
        problems = {one.number: one.problem(seed, deadline) for one in left}
        plans = {k: each for k, each in enumerate(asked) if isinstance(each, Plan)}
        some = [one for one in left if not one.is_proven_behind]
        found = self._ways.plans(
            some, [problems[one.number] for one in some], workers, began
        )
        plans |= {one.number: plan for one, plan in zip(some, found, strict=True)}
        plans |= self._behind_of_all(behind, problems, workers)
        return tuple(plans[k] for k in range(len(asked)))

    def _asked(
        self,
        number: int,
        q0: Array,
        goal: Any,
        free: FreeAxes,
        where: tuple[Sequence[str], Bounds, Sequence[FrameConstraint]],
    ) -> AskedWay | Plan:
        """Return what is to be searched for; a plan where no search is needed.

        Args:
            number: Which one of a batch it is.
            q0: Where it starts [m or rad], shape (n,).
            goal: What was given.
            free: The frame of poses, and their axes.
            where: Joints that are fixed, bounds, and constraints.
        """
        fixed, bounds, constraints = where
        region = None
        if any(where):
            region = region_of(self.check.cell, q0, fixed, bounds)
        goals = goals_of(self.check, q0, goal, free, region.fixed if region else ())
        is_pose = free.frame is not None
        return self._ways.asked(number, q0, goals, region, constraints, is_pose=is_pose)

    def _proven_behind(
        self, asked: Sequence[AskedWay], problems: Sequence[Problem], threads: int = 1
    ) -> list[Plan]:
        """Return plans within the same constraints, if any, that Python proves."""
        (manifold,) = {one.manifold for one in asked}
        assert manifold is not None
        queries = [GraphQuery(*problem) for problem in problems]
        goals, loops = [one.goals for one in asked], [one.loop for one in asked]
        return self._planned.along(manifold, queries, goals, loops, threads)

    def _behind_of_all(
        self, asked: Sequence[AskedWay], problems: dict[int, Problem], threads: int
    ) -> dict[int, Plan]:
        """Return such plans by their numbers.

        Those that share the constraints and limits are planned together.
        """
        groups: dict[Manifold | None, list[AskedWay]] = {}
        for one in asked:
            groups.setdefault(one.manifold, []).append(one)
        every = list(groups.values())
        plans: dict[int, Plan] = {}

        def work(piece: slice) -> None:
            for members in every[piece]:
                given = [problems[one.number] for one in members]
                workers = threads if len(every) == 1 else 1
                found = self._proven_behind(members, given, workers)
                plans.update((k.number, x) for k, x in zip(members, found, strict=True))

        share(len(every), threads, work, len(every))
        return plans

    def _usual(self, starts: Array, goals: Any) -> dict[int, Goals]:
        """Return the goals of those problems of which all are within limits.

        They are looked at together where each is one row of an array.
        """
        is_array = type(goals) is np.ndarray and goals.dtype == np.float64
        if not is_array or goals.shape != starts.shape:
            return {}
        if (
            self._planned.is_open
            or len(self._planned.rows)
            or not self.check.may_be_free
        ):
            return {}
        lower, upper = self._planned.limits
        is_within = ((lower <= starts) & (starts <= upper)).all(axis=1)
        is_within &= ((lower <= goals) & (goals <= upper)).all(axis=1)
        q, first = np.ascontiguousarray(goals), np.zeros(1, np.int64)
        which = np.flatnonzero(is_within).tolist()
        return {k: Goals(q[k : k + 1], first) for k in which}

    # what answers

    @cached_property
    def _planned(self) -> PlannedCell:
        return PlannedCell(self.check, self.weights, self.options.step)

    @cached_property
    def _ways(self) -> WaySearch:
        return WaySearch(self._planned, self.options)


def _number(seed: int) -> int:
    """Return the bits of a seed that count.

    Raises:
        ModelError: It is not an integer from 0 up.
    """
    return whole_number("seed", seed, least=0) & MOST_SEED


def _each(goals: Any, count: int | None, n: int) -> list[Any]:
    """Return a goal for each problem.

    Args:
        goals: What was given.
        count: How many starts there are; None for one of all goals.
        n: How many joints there are.

    Raises:
        ShapeError: They are neither one nor `count`.
    """
    is_pose = n != 4 and np.shape(goals) == (4, 4)
    if isinstance(goals, State | Pose) or is_pose:
        return [goals] * (1 if count is None else count)
    if not np.iterable(goals):
        raise ShapeError(f"The goals are {quote(goals)}; give one for each start.")
    every: list[Any] = list(goals)
    if every and np.isscalar(every[0]):
        return [goals] * (1 if count is None else count)
    if count is not None and len(every) != count:
        raise ShapeError(
            f"There are {count} starts and {len(every)} goals; give a goal for each "
            "start, or one for all."
        )
    return every
