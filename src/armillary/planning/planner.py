"""Planners of motions that touch nothing, to joint positions or to poses."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from armillary.collision.check import CollisionCheck
from armillary.errors import ModelError, ShapeError, quote
from armillary.kernel.arguments import numbers_of, whole_number
from armillary.kernel.search import deadline_of
from armillary.kernel.threads import default_threads, share
from armillary.kinematics.state import State
from armillary.model.fields import kept_few
from armillary.model.workcell import WORLD, Workcell
from armillary.planning.cartesian_path import CartesianPath
from armillary.planning.constraint import FrameConstraint, Manifold, constraints_of
from armillary.planning.detoured_path import DetouredPath, detoured
from armillary.planning.edges import EdgeTests, check_in_python
from armillary.planning.goals import FreeAxes, Goals, goals_of, positions_of
from armillary.planning.graph import GraphQuery
from armillary.planning.layout import FOUND, GOAL_TOUCHES, START_TOUCHES
from armillary.planning.loop import (
    Found,
    LoopGround,
    LoopKind,
    LoopOptions,
    NativeLoop,
    Problem,
    Space,
    solve_all,
)
from armillary.planning.motions import loops_are_proven
from armillary.planning.plan import Plan, PlanReason
from armillary.planning.planned_cell import PlannedCell, planned_cell, seconds_of
from armillary.planning.region import Bounds, Region, region_of
from armillary.planning.separation import MOST_JOINTS, separating_pairs
from armillary.spatial.pose import Pose

__all__ = ["Planner", "planner"]

Array = npt.NDArray[np.float64]


STEP: Final = 1.0 / 32.0
"""Distance of samples by default [rad or m of one joint]."""

LARGEST_TREE: Final = 2**31 - 1
"""The most nodes of a tree, whose numbers have 32 bits."""

FEWEST_POSITIONS, MOST_POSITIONS = 64, 10_000
"""Positions of a straight motion that are looked at for what is in the way."""

TIME_BEFORE_PROOF: Final = 20_000_000
"""How long is searched for a way before a proof that there is none is tried [ns]."""

MOST_TIME_BEFORE_PROOF: Final = 1_000_000_000
"""The same where so many joints move that there mostly is a way, at most [ns]."""

ENDED: Final = (FOUND, START_TOUCHES, GOAL_TOUCHES)
"""How a search ends that knows the answer."""

MOST_SEED: Final = 2**62 - 1
"""Bits of a seed that count."""

NEARLY_TOUCHING: Final = 1e-3
"""What is nearer than the margin and this is nearly touching [m]."""

STATUS: Final = (
    PlanReason.FOUND,
    PlanReason.START_TOUCHES,
    PlanReason.GOAL_TOUCHES,
    PlanReason.TIMED_OUT,
    PlanReason.NOT_FOUND,
)
"""Reasons by the statuses of `layout`."""


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
        constraints = constraints_of(constraints)
        if fixed or bounds or constraints:
            region = region_of(self.check.cell, q0, fixed, bounds or {})
            goals = goals_of(self.check, q0, goal, free, region.fixed)
        else:
            region, goals = None, goals_of(self.check, q0, goal, free)
        asked = self._planned.asked(q0, goals, region)
        if isinstance(asked, Plan):
            return asked
        number = whole_number("seed", seed, least=0) & MOST_SEED
        # Code that is compiled at the first call takes nothing of the time.
        loop = self._loop(q0, asked.q, region)
        if constraints or loops_are_proven(self.check):
            manifold = self._planned.manifold(constraints, q0, asked.q, region)
            if constraints:
                self._planned.compile(manifold, q0)
            until = 0 if more == 0.0 else deadline_of(more)
            query = GraphQuery(q0, asked.q, number, deadline_of(seconds), until)
            return self._planned.along(manifold, [query], [asked], [loop])[0]
        separated = None if frame else self._separated(q0, asked.q, loop)
        if separated is not None:
            return separated
        until = 0 if more == 0.0 else deadline_of(more)
        problem = Problem(q0, asked.q, number, deadline_of(seconds), until)
        found = self._solved(loop, problem, is_pose=frame is not None)
        if isinstance(found, Plan):
            return found
        return self._plan(found, loop, q0, asked, time.perf_counter() - began)

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
        constraints = constraints_of(constraints)
        region = fixed, bounds or {}, bool(constraints)
        asked = self._asked_of_all(rows, goals, every, free, region)
        number = whole_number("seed", seed, least=0) & MOST_SEED
        workers = default_threads() if threads is None else threads
        workers = whole_number("threads", workers, least=1)
        plans = [each if isinstance(each, Plan) else None for each in asked]
        left = [each for each in asked if isinstance(each, _BatchProblem)]
        if constraints or loops_are_proven(self.check):
            self._along_all(left, plans, constraints, number, seconds, workers)
            return tuple(each for each in plans if each is not None)
        deadline = deadline_of(seconds)
        items = [
            (one.loop, Problem(one.start, one.goals.q, number, deadline))
            for one in left
        ]
        found = self._solved_all(items, workers, is_pose=frame is not None)
        took = (time.perf_counter() - began) / max(len(rows), 1)
        for one, each in zip(left, found, strict=True):
            plans[one.number] = (
                each
                if isinstance(each, Plan)
                else self._plan(each, one.loop, one.start, one.goals, took)
            )
        return tuple(each for each in plans if each is not None)

    def _asked_of_all(
        self,
        starts: Array,
        goals: Any,
        every: list[Any],
        free: FreeAxes,
        where: tuple[Sequence[str], Bounds, bool],
    ) -> list[_BatchProblem | Plan]:
        """Return the problems of a batch, or plans of those that need no search.

        Args:
            starts: Where they start [m or rad], shape (k, n).
            goals: What was given.
            every: The goal of each.
            free: The frame of poses, and their axes.
            where: Joints that are fixed, bounds, and whether there are constraints.
        """
        fixed, bounds, has_constraints = where
        has_region = bool(fixed or bounds or has_constraints)
        is_surface = has_constraints or loops_are_proven(self.check)
        usual = {} if free.frame or has_region else self._usual(starts, goals)
        asked: list[_BatchProblem | Plan] = []
        for k, (q0, goal) in enumerate(zip(starts, every, strict=True)):
            region, wanted = None, usual.get(k)
            if wanted is None:
                if has_region:
                    region = region_of(self.check.cell, q0, fixed, bounds)
                stays = region.fixed if region else ()
                wanted = goals_of(self.check, q0, goal, free, stays)
                wanted = self._planned.asked(q0, wanted, region)
            if isinstance(wanted, Plan):
                asked.append(wanted)
                continue
            loop = self._loop(q0, wanted.q, region)
            is_searched = free.frame or is_surface
            separated = None if is_searched else self._separated(q0, wanted.q, loop)
            one = _BatchProblem(k, q0, wanted, region, loop)
            asked.append(one if separated is None else separated)
        return asked

    def _along_all(
        self,
        asked: Sequence[_BatchProblem],
        plans: list[Plan | None],
        constraints: Sequence[FrameConstraint],
        seed: int,
        seconds: float | None,
        threads: int,
    ) -> None:
        """Put plans of many problems within constraints where they belong.

        Those that share the constraints and limits are planned together.
        """
        planned = self._planned
        has_targets = all(each.target is not None for each in constraints)
        groups: dict[Any, list[_BatchProblem]] = {}
        for one in asked:
            lower, upper = planned.box(one.start, one.goals.q)
            if one.region is not None:
                lower = np.maximum(lower, one.region.lower)
                upper = np.minimum(upper, one.region.upper)
            own = b"" if has_targets else one.start.tobytes()
            key = lower.tobytes(), upper.tobytes(), own
            groups.setdefault(key, []).append(one)
        surfaces: list[Manifold] = []
        for one, *_ in groups.values():
            surface = planned.manifold(constraints, one.start, one.goals.q, one.region)
            if constraints:
                planned.compile(surface, one.start)
            surfaces.append(surface)
        deadline = deadline_of(seconds)
        every = list(groups.values())

        def work(piece: slice) -> None:
            for k in range(piece.start, piece.stop):
                members = every[k]
                queries = [
                    GraphQuery(one.start, one.goals.q, seed, deadline)
                    for one in members
                ]
                found = planned.along(
                    surfaces[k],
                    queries,
                    [one.goals for one in members],
                    [one.loop for one in members],
                    threads if len(every) == 1 else 1,
                )
                for one, plan in zip(members, found, strict=True):
                    plans[one.number] = plan

        share(len(every), threads, work, len(every))

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

    def _solved(
        self, loop: NativeLoop, problem: Problem, *, is_pose: bool
    ) -> Found | Plan:
        """Return what the loop finds, or that it is proven that there is no way.

        Where few joints move, a short search comes before that proof; else there mostly
        is a way, and up to a quarter of the time is for the first search. All of the
        search comes behind the proof, for which half of the time is left at least.
        """
        check, space = self.check, loop.ground.space
        count = np.count_nonzero(space.lower < space.upper)
        if is_pose or check.is_exact or check.state.passive.size or count < 2:
            return loop.solve(problem)
        now, deadline = time.monotonic_ns(), problem.deadline
        soon = now + TIME_BEFORE_PROOF
        if count > MOST_JOINTS:
            soon = now + MOST_TIME_BEFORE_PROOF
            if deadline:
                soon = min(soon, now + (deadline - now) // 4)
        is_short = 0 < deadline <= soon
        # A way that is found late may be less short than without this deadline.
        part = problem if is_short else problem._replace(deadline=soon, improve=0)
        found = loop.solve(part)
        if found.status in ENDED or is_short:
            if is_short or not (found.is_late or problem.improve):
                return found
            again = loop.solve(problem)
            return again if again.status in ENDED else found
        limits, ends = (space.lower, space.upper), (problem.start, problem.goals)
        least, most = self._planned.limits
        is_limited = np.isfinite(least) & np.isfinite(most)
        until = max(soon, now + (deadline - now) // 2) if deadline else 0
        pairs = separating_pairs(check, limits, is_limited, *ends, until)
        if pairs is None:
            return loop.solve(problem)
        between = self._between(problem.start, problem.goals[0])
        nearest = check.distances_of(pairs, between).min(axis=1)
        contacts = self._planned.touching(between[nearest.argmin()])
        return self._planned.without(PlanReason.SEPARATED, pairs=contacts)

    def _solved_all(
        self, items: list[tuple[NativeLoop, Problem]], threads: int, *, is_pose: bool
    ) -> list[Found | Plan]:
        """Return the same for many problems, on several threads.

        All are searched for a short time first, so that those without a way leave time
        to the others; these, and those that end late, share what is left then.
        """
        first = solve_all(items, threads, TIME_BEFORE_PROOF)
        left = [
            k
            for k, each in enumerate(first)
            if each.is_late or each.status not in ENDED
        ]
        found: list[Found | Plan] = list(first)
        begun = itertools.count()

        def work(piece: slice) -> None:
            for k in left[piece]:
                loop, problem = items[k]
                waiting = -(-(len(left) - next(begun)) // threads)
                if problem.deadline:
                    now = time.monotonic_ns()
                    rest = problem.deadline - now
                    if rest <= 0:
                        return
                    problem = problem._replace(deadline=now + rest // waiting)
                again = self._solved(loop, problem, is_pose=is_pose)
                # A way that was found late is kept where it is not found in time now.
                is_known = isinstance(again, Plan) or again.status in ENDED
                if is_known or not first[k].is_late:
                    found[k] = again

        share(len(left), threads, work, len(left))
        return found

    def _between(self, start: Array, goal: Array) -> Array:
        """Return positions on the straight motion between two."""
        way = goal - start
        length = float(np.linalg.norm(way * self.weights))
        count = max(
            FEWEST_POSITIONS, min(MOST_POSITIONS, math.ceil(length / self.options.step))
        )
        return start + np.linspace(0.0, 1.0, count)[:, np.newaxis] * way

    def _separated(self, q0: Array, goals: Array, loop: NativeLoop) -> Plan | None:
        """Return that there is no way, where one joint alone moves and that is proven.

        Whatever way it takes, it passes all positions between start and goal. So one of
        them at which links touch is a proof. Of joints without limits nothing is said,
        since they may turn the other way to the same place.
        """
        lower, upper = loop.ground.space[:2]
        moving = np.flatnonzero(lower < upper)
        ends = [each[moving] for each in self._planned.limits]
        if len(moving) != 1 or not np.isfinite(ends).all():
            return None
        is_free = ~self.check(np.concatenate([q0[np.newaxis], goals]))
        if not (is_free[0] and is_free[1:].any()):
            return None  # the loop says so
        first: Array | None = None
        for goal in goals[is_free[1:]]:
            between = self._between(q0, goal)
            touching = self.check(between)
            if not touching.any():
                return None
            first = between[touching.argmax()] if first is None else first
        assert first is not None
        pairs = self._planned.touching(first)
        return self._planned.without(PlanReason.SEPARATED, pairs=pairs)

    def _plan(
        self, found: Found, loop: NativeLoop, q0: Array, goals: Goals, seconds: float
    ) -> Plan:
        """Return what the loop found as a plan."""
        reason = STATUS[found.status]
        pairs: Any = ()
        if reason is PlanReason.START_TOUCHES:
            pairs = self._planned.touching(q0)
        elif reason is PlanReason.GOAL_TOUCHES:
            pairs = self._planned.touching(goals.q[0])
        edges, checks, proofs, samples, nodes = found.counts
        is_found = reason is PlanReason.FOUND
        return Plan(
            q=found.q,
            reason=reason,
            proven=is_found and loop.tests.prover is not None,
            goal=int(goals.numbers[found.goal]) if is_found else -1,
            length=found.length,
            edges=edges,
            checks=checks,
            proofs=proofs,
            samples=samples,
            nodes=nodes,
            pairs=pairs,
            joints=(),
            seconds=seconds,
            resolution=self.options.step,
            check=self.check,
        )

    # what answers

    @cached_property
    def _planned(self) -> PlannedCell:
        return PlannedCell(self.check, self.weights, self.options.step)

    def _loop(
        self, q0: Array, goals: Array, region: Region | None = None
    ) -> NativeLoop:
        """Return the loop for joint positions within limits, or in a region."""
        if region is None and not self._planned.is_open:
            return self._whole
        lower, upper = self._planned.box(q0, goals)
        key = lower.tobytes() + upper.tobytes()
        least, most = lower, upper
        if region is not None:
            least, most = (
                np.maximum(lower, region.lower),
                np.minimum(upper, region.upper),
            )

        def made() -> NativeLoop:
            # Tests hold within limits, so that regions of a planner share them.
            tests = kept_few(self, "tests", key, lambda: self._tests(lower, upper))
            return self._made(tests, least, most)

        name = key + least.tobytes() + most.tobytes()
        return kept_few(self, "loops", name, made)

    @cached_property
    def _whole(self) -> NativeLoop:
        """Return the loop within the limits of all joints, which are finite."""
        return self._made(self._tests(*self._planned.limits), *self._planned.limits)

    def _made(self, tests: EdgeTests, lower: Array, upper: Array) -> NativeLoop:
        # What the loop reads of a space is the same for all checks of a cell, and so is
        # the memory that it works in.
        kind = LoopKind.of(tests)
        parts = tuple(each.tobytes() for each in (lower, upper, self.weights))

        def made() -> LoopGround:
            space = Space(lower, upper, self.weights, self._planned.rows)
            return LoopGround.of(space, self.options, kind)

        key = parts, self.options, kind
        ground = kept_few(self.check.cell, "planned spaces", key, made)
        return NativeLoop.of(tests, ground)

    def _tests(self, lower: Array, upper: Array) -> EdgeTests:
        proofs = self.check.motion_columns(lower, upper)
        # What is proven at last may be searched with a larger margin, so that the proof
        # fails less often; where nothing is proven, what rounding decides touches.
        wide = self.check.edge_columns(certain=proofs is None, pad=NEARLY_TOUCHING)
        tight = self.check.edge_columns(certain=proofs is None)
        quick = proofs and self.check.edge_proof_columns(lower, upper)
        if wide is None or tight is None:
            wide = tight = check_in_python(self.check, len(lower))
        if quick is None:
            return EdgeTests(wide, tight, proofs and proofs.now())
        # Quick proofs are enough for most plans, so that others wait for their records.
        return EdgeTests(wide, tight, proofs and proofs.function, quick, later=proofs)


class _BatchProblem(NamedTuple):
    """A problem of a batch.

    Attributes:
        number: Which one it is.
        start: Joint positions [m or rad], shape (n,).
        goals: Its goals.
        region: Where joints may be; None for within limits.
        loop: What searches.
    """

    number: int
    start: Array
    goals: Goals
    region: Region | None
    loop: NativeLoop


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
