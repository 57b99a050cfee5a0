"""Planners of motions that touch nothing, to joint positions or to poses."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from operator import le
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from armillary.collision.check import CollisionCheck
from armillary.errors import ModelError, ShapeError, quote
from armillary.kernel.arguments import numbers_of, positive_number, whole_number
from armillary.kernel.search import deadline_after
from armillary.kernel.threads import default_threads
from armillary.kinematics.state import State
from armillary.model.fields import kept_few
from armillary.model.limit_rows import LimitRows
from armillary.model.workcell import WORLD, Workcell
from armillary.planning.constraint import LOOSE, FrameConstraint, Manifold
from armillary.planning.edges import EdgeTests, columns_in_python
from armillary.planning.goals import FreeAxes, Goals, goals_of, positions_of
from armillary.planning.graph import Graph, GraphQuery, search
from armillary.planning.loop import Found, LoopOptions, NativeLoop, Problem, Space
from armillary.planning.motions import MotionTests
from armillary.planning.plan import Plan, PlanReason
from armillary.planning.region import Bounds, Region, region_of
from armillary.spatial.pose import Pose

__all__ = ["Planner", "planner"]

Array = npt.NDArray[np.float64]

LOG = logging.getLogger("armillary.planning")

STEP: Final = 1.0 / 32.0
"""Distance of samples by default [rad or m of one joint]."""

FINEST: Final = 1e-6
"""The least resolution [rad or m of one joint]."""

HEAVIEST: Final = 1e6
"""The greatest weight of a joint; the least is its inverse."""

LARGEST_TREE: Final = 2**31 - 1
"""The most nodes of a tree, whose numbers have 32 bits."""

LONGEST: Final = 1e9
"""Time after which a search ends in any case [s]; a clock of nanoseconds holds it."""

MOST_SEED: Final = 2**62 - 1
"""Bits of a seed that count."""

TURN: Final = 2.0 * np.pi

NEAR: Final = 1e-3
"""What is nearer than the margin and this is nearly touching [m]."""

NEARLY: Final = 2e-6
"""Pairs that are nearer than the margin and this are named where links touch [m]."""

LARGEST_GRAPH: Final = 10_000
"""Nodes of a graph that is searched within constraints."""

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
    given: Any = check
    if not isinstance(given, CollisionCheck):
        raise ModelError(
            "A planner needs a collision check, as in cell.planner(cell.collision()); "
            f"what was given is {quote(given)}."
        )
    if check.cell != cell:
        raise ModelError(
            f"The check is of another cell, '{check.cell.name}': make it by "
            "cell.collision(state) of the cell that plans."
        )
    n = len(check.state.q)
    if not n:
        raise ModelError(f"No joint of '{cell.name}' moves: there is nothing to plan.")
    w = np.ones(n) if weights is None else np.array(numbers_of("weights", weights))
    if w.shape != (n,):
        raise ShapeError(f"The weights are of shape {w.shape}, not ({n},).")
    if not ((w >= 1.0 / HEAVIEST) & (w <= HEAVIEST)).all():
        raise ModelError(
            f"The weights of joints must be from {1.0 / HEAVIEST:g} to {HEAVIEST:g}, "
            f"not {w.tolist()}."
        )
    step = positive_number("The resolution", resolution)
    if not FINEST <= step < math.inf:
        raise ModelError(
            f"The resolution must be finite and at least {FINEST:g}, not {step!r}."
        )
    room = whole_number("nodes", nodes, least=2)
    if room > LARGEST_TREE:
        raise ModelError(f"A tree has {LARGEST_TREE} nodes at most, not {room}.")
    if not len(check.pairs):
        LOG.warning(
            "the check of a planner has no pairs of links: every motion counts as free"
        )
    return Planner(check, w, LoopOptions(step=step, nodes=room))


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
                once one is found [s]; each is proven as the first one. Plans with
                constraints of frames do not.
            fixed: Names of joints that stay where they start.
            bounds: Least and greatest positions of some joints during the motion [m or
                rad], by their names, beside their limits.
            constraints: What holds during the motion, `arm.FrameConstraint`. Such plans
                are searched for in a graph, in Python.
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
        if fixed or bounds or constraints:
            region = region_of(self.check.cell, q0, fixed, bounds or {})
            goals = goals_of(self.check, q0, goal, free, region.fixed)
        else:
            region, goals = None, goals_of(self.check, q0, goal, free)
        asked = self.asked(q0, goals, region)
        if isinstance(asked, Plan):
            return asked
        number = whole_number("seed", seed, least=0) & MOST_SEED
        if constraints:
            manifold = self.manifold(constraints, q0, asked.q, region)
            query = GraphQuery(q0, asked.q, number, end_of_time(seconds))
            return self.within(manifold, query, asked)
        # Code that is compiled at the first call takes nothing of the time.
        loop, goals = self._loop(q0, asked.q, region), asked
        until = 0 if more == 0.0 else deadline_of(more)
        problem = Problem(q0, goals.q, number, deadline_of(seconds), until)
        found = loop.solve(problem)
        return self._plan(found, loop, q0, goals, time.perf_counter() - began)

    def batch(  # noqa: PLR0913
        self,
        starts: npt.ArrayLike,
        goals: Any,
        *,
        seed: int = 0,
        timeout: float | None = 1.0,
        threads: int | None = None,
        frame: str | None = None,
        relative_to: str = WORLD,
        position: str = "xyz",
        rotation: str = "xyz",
        axes: str = "target",
    ) -> tuple[Plan, ...]:
        """Return the ways of many problems, on several threads.

        Each is what a call gives for it alone.

        Args:
            starts: Joint positions [m or rad], shape (k, n) or (n,).
            goals: A goal for each, or one for all: as for a call.
            seed: As for a call.
            timeout: Time for the whole call [s]; None for as long as it takes.
            threads: How many threads share them, by default as for kernels.
            frame: Of which frame poses are.
            relative_to: In which frame they are given.
            position: Which of x, y and z of a pose count, as for `Cell.ik`.
            rotation: Rotations about which axes count, as for `Cell.ik`.
            axes: Whose axes these are, as for `Cell.ik`.

        Raises:
            ShapeError: As for a call, or there are not as many goals as starts.
            ModelError: As for a call.
        """
        began = time.perf_counter()
        seconds = seconds_of(timeout)
        n = len(self.weights)
        rows = np.ascontiguousarray(starts, float)
        if rows.ndim == 1:
            rows = np.tile(rows, (len(goals), 1))
        if rows.ndim != 2 or rows.shape[1] != n:
            raise ShapeError(f"The starts are of shape {rows.shape}, not (k, {n}).")
        every = _each(goals, len(rows))
        free = FreeAxes(frame, relative_to, position, rotation, axes)
        plans: list[Plan | None] = [None] * len(rows)
        # Problems within the same joint positions are solved by the same loop.
        groups: dict[int, tuple[NativeLoop, list[tuple[int, Goals]]]] = {}
        usual = self._usual(rows, goals) if frame is None else {}
        for k, (q0, goal) in enumerate(zip(rows, every, strict=True)):
            wanted = usual.get(k)
            if wanted is None:
                wanted = self.asked(q0, goals_of(self.check, q0, goal, free))
            if isinstance(wanted, Plan):
                plans[k] = wanted
                continue
            loop = self._loop(q0, wanted.q)
            groups.setdefault(id(loop), (loop, []))[1].append((k, wanted))
        number = whole_number("seed", seed, least=0) & MOST_SEED
        deadline = deadline_of(seconds)
        workers = default_threads() if threads is None else threads
        for loop, members in groups.values():
            problems = [
                Problem(rows[k], wanted.q, number, deadline) for k, wanted in members
            ]
            found = loop.solve_all(problems, whole_number("threads", workers, least=1))
            took = (time.perf_counter() - began) / len(rows)
            for (k, wanted), each in zip(members, found, strict=True):
                plans[k] = self._plan(each, loop, rows[k], wanted, took)
        return tuple(each for each in plans if each is not None)

    def _usual(self, starts: Array, goals: Any) -> dict[int, Goals]:
        """Return the goals of those problems of which all are within limits.

        They are looked at together where each is one row of an array.
        """
        is_array = type(goals) is np.ndarray and goals.dtype == np.float64
        if not is_array or goals.shape != starts.shape:
            return {}
        if self._is_open or len(self._rows) or not self.check.may_be_free:
            return {}
        lower, upper = self._limits
        is_within = ((lower <= starts) & (starts <= upper)).all(axis=1)
        is_within &= ((lower <= goals) & (goals <= upper)).all(axis=1)
        q, first = np.ascontiguousarray(goals), np.zeros(1, np.int64)
        which = np.flatnonzero(is_within).tolist()
        return {k: Goals(q[k : k + 1], first) for k in which}

    # what is asked

    def asked(
        self, q0: Array, goals: Goals, region: Region | None = None
    ) -> Goals | Plan:
        """Return the goals that can be reached, or why there are none.

        Args:
            q0: Where a plan starts [m or rad], shape (n,).
            goals: What was asked for.
            region: Where joints may be; by default within limits.
        """
        if goals.reason is not None:
            return self._without(goals.reason)
        lower, upper = self._limits if region is None else region[:2]
        # Numbers of Python are compared sooner than few ones of NumPy. What is not
        # finite is within no limits, unless these are infinite.
        low, high = self._ends if region is None else (lower.tolist(), upper.tolist())
        is_usual = not (self._is_open or len(self._rows)) and all(
            all(map(le, low, row)) and all(map(le, row, high))
            for row in (q0.tolist(), *goals.q.tolist())
        )
        if not is_usual:
            is_within = ((lower <= goals.q) & (goals.q <= upper)).all(axis=1)
            if not (np.isfinite(q0).all() and np.isfinite(goals.q).all()):
                return self._without(PlanReason.INVALID)
            if len(self._rows):
                is_within = is_within & self._rows.holds(goals.q)
            beyond = self._beyond(q0, lower, upper)
            if not (beyond or is_within.any()):
                beyond = self._beyond(goals.q[0], lower, upper)
            if beyond:
                return self._without(PlanReason.LIMITS, beyond)
            if not is_within.all():
                q = np.ascontiguousarray(goals.q[is_within])
                goals = Goals(q, goals.numbers[is_within])
        if not self.check.may_be_free:
            return self._without(PlanReason.START_TOUCHES, pairs=self._touching(q0))
        return goals

    @cached_property
    def _limits(self) -> tuple[Array, Array]:
        return self.check.cell.limits

    @cached_property
    def _ends(self) -> tuple[list[float], list[float]]:
        """Return the same as numbers of Python."""
        lower, upper = self._limits
        return lower.tolist(), upper.tolist()

    @cached_property
    def _rows(self) -> LimitRows:
        """Return the limits that couple joints."""
        return self.check.cell.limit_rows

    def _beyond(self, q: Array, lower: Array, upper: Array) -> tuple[str, ...]:
        """Return the names of limits that joint positions do not keep."""
        rows, names = self._rows, self.check.cell.joint_names
        out = np.flatnonzero((q < lower) | (q > upper)).tolist()
        missed = np.flatnonzero(rows.A @ q > rows.b).tolist()
        labels = dict.fromkeys(rows.labels[k] for k in missed)
        return (*(names[k] for k in out), *labels)

    @cached_property
    def _is_open(self) -> bool:
        """Return whether joints have no limits."""
        return not all(np.isfinite(each).all() for each in self._limits)

    def _without(
        self,
        reason: PlanReason,
        joints: tuple[str, ...] = (),
        pairs: Any = (),
        violated: tuple[str, ...] = (),
    ) -> Plan:
        """Return that there is no way, of which nothing was tested."""
        nothing = np.empty((0, len(self.weights)))
        return Plan(
            q=nothing,
            reason=reason,
            proven=False,
            goal=-1,
            length=0.0,
            edges=0,
            checks=0,
            proofs=0,
            samples=0,
            nodes=0,
            pairs=pairs,
            joints=joints,
            seconds=0.0,
            resolution=self.options.step,
            check=self.check,
            violated=violated,
        )

    def _plan(
        self, found: Found, loop: NativeLoop, q0: Array, goals: Goals, seconds: float
    ) -> Plan:
        """Return what the loop found as a plan."""
        reason = STATUS[found.status]
        pairs: Any = ()
        if reason is PlanReason.START_TOUCHES:
            pairs = self._touching(q0)
        elif reason is PlanReason.GOAL_TOUCHES:
            pairs = self._touching(goals.q[0])
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

    def _touching(self, q: Array) -> tuple[Any, ...]:
        """Return the pairs of links that touch."""
        within = self.check.margin + NEARLY
        return tuple(self.check.contacts(q, within=within))

    # what answers

    def _loop(
        self, q0: Array, goals: Array, region: Region | None = None
    ) -> NativeLoop:
        """Return the loop for joint positions within limits, or in a region."""
        if region is None and not self._is_open:
            return self._whole
        lower, upper = self._box(q0, goals)
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
        return self._made(self._tests(*self._limits), *self._limits)

    def _made(self, tests: EdgeTests, lower: Array, upper: Array) -> NativeLoop:
        space = Space(lower, upper, self.weights, self._rows)
        return NativeLoop.of(tests, space, self.options)

    def _box(self, q0: Array, goals: Array) -> tuple[Array, Array]:
        """Return the limits of joints.

        Joints without limits move within a turn around start and goals, rounded to
        whole turns, so that there are few loops.
        """
        lower, upper = self._limits
        if not self._is_open:
            return lower, upper
        ends = np.concatenate([q0[np.newaxis], goals])
        first = TURN * (np.floor(ends.min(axis=0) / TURN) - 1.0)
        last = TURN * (np.ceil(ends.max(axis=0) / TURN) + 1.0)
        return (
            np.where(np.isfinite(lower), lower, first),
            np.where(np.isfinite(upper), upper, last),
        )

    def _tests(self, lower: Array, upper: Array) -> EdgeTests:
        prover = self.check.motion_columns(lower, upper)
        # What is proven at last may be searched with a larger margin, so that the proof
        # fails less often; where nothing is proven, what rounding decides touches.
        wide = self.check.edge_columns(certain=prover is None, pad=NEAR)
        tight = self.check.edge_columns(certain=prover is None)
        quick = prover and self.check.edge_proof_columns(lower, upper)
        if wide is None or tight is None:
            wide = tight = columns_in_python(self.check, len(lower))
        return EdgeTests(wide, tight, prover, quick)

    # within constraints

    def manifold(
        self,
        constraints: Sequence[FrameConstraint],
        start: Array | None,
        goals: Array,
        region: Region | None,
    ) -> Manifold:
        """Return the joint positions that satisfy constraints; see `Manifold`.

        Args:
            constraints: What holds during motions.
            start: Where frames without a target are kept [m or rad], shape (n,).
            goals: Other positions that are to be within limits, shape (k, n).
            region: Where joints may be; by default within limits.

        Raises:
            ModelError: A value is not a constraint, or it has no target and there is
                no start.
            UnknownName: A frame does not exist.
        """
        n = len(self.weights)
        ends = (np.zeros(n) if start is None else start), goals
        lower, upper = self._box(*ends)
        if region is not None:
            lower, upper = np.maximum(lower, region[0]), np.minimum(upper, region[1])
        return Manifold(
            self.check.cell,
            self.check.state,
            constraints,
            start=start,
            lower=lower,
            upper=upper,
            weights=self.weights,
        )

    def within(
        self,
        manifold: Manifold,
        query: GraphQuery,
        goals: Goals,
        graph: Graph | None = None,
    ) -> Plan:
        """Return a way within constraints.

        Args:
            manifold: The constraints.
            query: What is asked: joint positions [m or rad] and a deadline.
            goals: Its goals, with their numbers.
            graph: What is searched; by default one that grows.
        """
        began = time.perf_counter()
        motions = MotionTests(self.check, manifold, self.options.step)
        ends = np.concatenate([query.start[np.newaxis], goals.q])
        violations = manifold.violations(ends)
        holds, is_free = manifold.is_near(ends), motions.are_free(ends)
        if not (holds[0] and holds[1:].any()):
            bad = np.flatnonzero(violations[int(holds[0])] > LOOSE)
            names = tuple(str(manifold.parts[k].asked) for k in bad)
            at_start, at_goal = PlanReason.START_VIOLATES, PlanReason.GOAL_VIOLATES
            return self._without(at_goal if holds[0] else at_start, violated=names)
        if not is_free[0]:
            return self._without(
                PlanReason.START_TOUCHES, pairs=self._touching(query.start)
            )
        good = np.flatnonzero(holds[1:] & is_free[1:])
        if not len(good):
            first = goals.q[np.flatnonzero(holds[1:])[0]]
            return self._without(PlanReason.GOAL_TOUCHES, pairs=self._touching(first))
        asked = query._replace(goals=goals.q[good])
        if graph is None:
            answer, grown = search(
                asked, motions, min(self.options.nodes, LARGEST_GRAPH)
            )
        else:
            answer, grown = graph.ask(asked, motions), graph
        is_late = time.perf_counter() > query.deadline
        nothing = PlanReason.TIMED_OUT if is_late else PlanReason.NOT_FOUND
        way = answer.q
        length = 0.0 if way is None else motions.lengths(way[:-1], way[1:]).sum()
        return Plan(
            q=np.empty((0, len(self.weights))) if way is None else way,
            reason=nothing if way is None else PlanReason.FOUND,
            proven=way is not None and motions.is_proven,
            goal=-1 if way is None else int(goals.numbers[good[answer.goal]]),
            length=float(length),
            edges=motions.edges,
            checks=motions.checks,
            proofs=motions.proofs,
            samples=len(grown.Q),
            nodes=len(grown.Q),
            pairs=(),
            joints=(),
            seconds=time.perf_counter() - began,
            resolution=self.options.step,
            check=self.check,
        )


def _each(goals: Any, count: int) -> list[Any]:
    """Return a goal for each problem.

    Raises:
        ShapeError: They are neither one nor `count`.
    """
    if isinstance(goals, State | Pose):
        return [goals] * count
    if not np.iterable(goals):
        raise ShapeError(f"The goals are {quote(goals)}; give one for each start.")
    every: list[Any] = list(goals)
    if every and np.isscalar(every[0]):
        return [goals] * count
    if len(every) != count:
        raise ShapeError(
            f"There are {count} starts and {len(every)} goals; give a goal for each "
            "start, or one for all."
        )
    return every


def seconds_of(timeout: float | None, name: str = "timeout") -> float | None:
    """Return a timeout [s], None for none.

    Raises:
        ModelError: The timeout is not a number from 0 up.
    """
    if timeout is None or (type(timeout) is float and 0.0 <= timeout < LONGEST):
        return timeout
    seconds = float(timeout) if isinstance(timeout, Real) else math.nan
    if not seconds >= 0.0:
        raise ModelError(f"The {name} must be a number from 0 up, not {timeout!r}.")
    return None if seconds == math.inf else min(seconds, LONGEST)


def end_of_time(seconds: float | None) -> float:
    """Return when time is up that begins now, as `time.perf_counter` tells [s]."""
    return math.inf if seconds is None else time.perf_counter() + seconds


def deadline_of(seconds: float | None) -> int:
    """Return the deadline of a search that begins now [ns], 0 for none."""
    return 0 if seconds is None else max(1, deadline_after(seconds))
