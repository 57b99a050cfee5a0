"""Searches for ways: the native loop in the spaces of a planner, and what it asks."""

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

from armillary.kernel.threads import share
from armillary.model.fields import kept, kept_few
from armillary.planning.constraint import FrameConstraint, Manifold
from armillary.planning.edges import EdgeTests, check_in_python
from armillary.planning.goals import Goals
from armillary.planning.layout import FULL, PAUSED
from armillary.planning.loop import (
    LoopGround,
    LoopOptions,
    NativeLoop,
    PausingSearch,
    Space,
    solve_all,
)
from armillary.planning.loop_memory import (
    Found,
    LoopKind,
    LoopMemory,
    Problem,
)
from armillary.planning.motions import loops_are_proven
from armillary.planning.plan import Plan, PlanReason
from armillary.planning.planned_cell import PlannedCell
from armillary.planning.region import Region
from armillary.planning.separation import MOST_JOINTS, separating_pairs

__all__ = ["AskedWay", "WaySearch"]

Array = npt.NDArray[np.float64]

FEWEST_POSITIONS, MOST_POSITIONS = 64, 10_000
"""Positions of a straight motion that are looked at for what is in the way."""

TIME_BEFORE_PROOF: Final = 20_000_000
"""How long is searched for a way before a proof that there is none is tried [ns]."""

MOST_TIME_BEFORE_PROOF: Final = 1_000_000_000
"""The same where so many joints move that there mostly is a way, at most [ns]."""

SHARE_BEFORE_PROOF: Final = 4
"""The part of the timeout that this is then, at most, and that the proof is."""

NEARLY_TOUCHING: Final = 1e3
"""What is nearer than the margin and so many times what touches in motions, a
millimetre in most cells, is nearly touching."""

STATUS: Final = (
    PlanReason.FOUND,
    PlanReason.START_TOUCHES,
    PlanReason.GOAL_TOUCHES,
    PlanReason.TIMED_OUT,
    PlanReason.NOT_FOUND,
)
"""Reasons by the statuses of `layout`."""


class AskedWay(NamedTuple):
    """A way that is asked for, and what searches for it.

    Attributes:
        number: Which one of a batch it is.
        start: Joint positions [m or rad], shape (n,).
        goals: Its goals.
        loop: What searches, along constraints if any.
        manifold: The constraints; None where there are none, and loops are not proven.
        may_be_separated: Whether it may be proven that there is no way.
    """

    number: int
    start: Array
    goals: Goals
    loop: NativeLoop
    manifold: Manifold | None = None
    may_be_separated: bool = False

    @property
    def is_proven_behind(self) -> bool:
        """Return whether the loop samples ways that are proven in Python then."""
        return self.manifold is not None and not self.loop.tests.proves

    def problem(self, seed: int, deadline: int, improve: int = 0) -> Problem:
        """Return what the loop is asked."""
        return Problem(self.start, self.goals.q, seed, deadline, improve)


@final
@dataclass(frozen=True, eq=False)
class WaySearch:
    """Searches for the ways of a planner; threads share it.

    Attributes:
        planned: The cell with its check.
        options: How is searched.
    """

    planned: PlannedCell
    options: LoopOptions

    def asked(
        self,
        number: int,
        q0: Array,
        goals: Goals,
        region: Region | None,
        constraints: Sequence[FrameConstraint] = (),
        *,
        is_pose: bool = False,
    ) -> AskedWay | Plan:
        """Return a way that is asked for; a plan where no search is needed.

        What has to be compiled for the loop is compiled.

        Args:
            number: Which one of a batch it is.
            q0: Where it starts [m or rad], shape (n,).
            goals: What was asked for.
            region: Where joints may be; None for within limits.
            constraints: What holds along it.
            is_pose: Whether goals are those of a pose.
        """
        planned = self.planned
        wanted = planned.asked(q0, goals, region)
        if isinstance(wanted, Plan):
            return wanted
        if constraints:
            straight = self.loop(q0, wanted.q, region)
            surface = planned.manifold(constraints, q0, wanted.q, region)
            loop = kept(surface, "loop", lambda: straight.along(surface.surface))
            wanted = planned.kept_by(surface, q0, wanted)
            if isinstance(wanted, Plan):
                return wanted
            return AskedWay(number, q0, wanted, loop, surface)
        return self.asked_within(number, q0, wanted, region, is_pose=is_pose)

    def asked_within(
        self,
        number: int,
        q0: Array,
        goals: Goals,
        region: Region | None = None,
        *,
        is_pose: bool = False,
    ) -> AskedWay | Plan:
        """Return the same where all is known to be within limits."""
        planned, loop = self.planned, self.loop(q0, goals.q, region)
        if loops_are_proven(planned.check):
            manifold = planned.manifold((), q0, goals.q, region)
            return AskedWay(number, q0, goals, loop, manifold)
        if is_pose:
            return AskedWay(number, q0, goals, loop)
        separated = self._passed(q0, goals.q, loop)
        if separated is not None:
            return separated
        return AskedWay(number, q0, goals, loop, may_be_separated=True)

    def plan(self, one: AskedWay, problem: Problem, began: float) -> Plan:
        """Return what the loop finds, or that it is proven that there is no way.

        began: When the call began, by `time.perf_counter` [s].
        """
        found = self._solved(one, problem)
        if isinstance(found, Plan):
            return found
        return self._plan(one, found, time.perf_counter() - began)

    def plans(
        self,
        asked: Sequence[AskedWay],
        problems: Sequence[Problem],
        threads: int,
        began: float,
    ) -> list[Plan]:
        """Return the same for many problems, on several threads.

        All are searched for a short time first, so that those without a way leave time
        to the others; these share what is left then. Searches go on where they were.
        """
        items = [
            (one.loop, problem) for one, problem in zip(asked, problems, strict=True)
        ]
        first = solve_all(items, threads, TIME_BEFORE_PROOF)
        found: dict[int, Found | Plan] = {
            k: each
            for k, each in enumerate(first)
            if isinstance(each, Found) and each.status not in {PAUSED, FULL}
        }
        left = [k for k in range(len(first)) if k not in found]
        begun = itertools.count()

        def work(piece: slice) -> None:
            for k in left[piece]:
                problem = problems[k]
                waiting = -(-(len(left) - next(begun)) // threads)
                if problem.deadline:
                    now = time.monotonic_ns()
                    rest = max(problem.deadline - now, 0)
                    problem = problem._replace(deadline=now + rest // waiting)
                found[k] = self._solved(asked[k], problem, first[k])

        share(len(left), threads, work, len(left))
        took = (time.perf_counter() - began) / max(len(asked), 1)
        plans: list[Plan] = []
        for k, one in enumerate(asked):
            each = found[k]
            plans.append(
                each if isinstance(each, Plan) else self._plan(one, each, took)
            )
        return plans

    def _solved(
        self,
        one: AskedWay,
        problem: Problem,
        before: Found | PausingSearch | None = None,
    ) -> Found | Plan:
        """Return what the loop finds, or that it is proven that there is no way.

        Where few joints move, a short search comes before that proof; else there mostly
        is a way, and up to a quarter of the time is for the search before. The proof
        has as much, and then the search goes on where it was: so what a search finds in
        three quarters of the time is found.

        before: What a search of `TIME_BEFORE_PROOF` found, or that search.
        """
        check, ground = self.planned.check, one.loop.ground
        count, deadline = ground.moving, problem.deadline
        is_known = one.may_be_separated and not check.is_exact
        may_prove = is_known and not check.state.passive.size and count > 1
        full = before if isinstance(before, Found) and before.status == FULL else None
        is_continued = isinstance(before, PausingSearch)
        with before if is_continued else one.loop.begun(problem) as search:
            if not may_prove:
                return full or search.run(deadline=deadline)
            now = time.monotonic_ns()
            few = (deadline - now) // SHARE_BEFORE_PROOF
            soon = TIME_BEFORE_PROOF if count <= MOST_JOINTS else MOST_TIME_BEFORE_PROOF
            if deadline and count > MOST_JOINTS:
                soon = min(soon, few)
            soon -= is_continued * TIME_BEFORE_PROOF
            found = full or search.run(now + max(soon, 0), deadline)
            if found.status not in {PAUSED, FULL}:
                return found
            until = time.monotonic_ns() + few if deadline else 0
            separated = self._separated(problem, ground.space, until)
            if separated is not None or found.status == FULL:
                return found if separated is None else separated
            return search.run()

    def _separated(self, problem: Problem, space: Space, until: int) -> Plan | None:
        """Return that a few joints keep a start from its goals, if that is proven."""
        check, planned = self.planned.check, self.planned
        limits, ends = (space.lower, space.upper), (problem.start, problem.goals)
        least, most = planned.limits
        is_limited = np.isfinite(least) & np.isfinite(most)
        pairs = separating_pairs(check, limits, is_limited, *ends, until)
        if pairs is None:
            return None
        between = self._between(problem.start, problem.goals[0])
        nearest = check.distances_of(pairs, between).min(axis=1)
        contacts = planned.touching(between[nearest.argmin()])
        return planned.without(PlanReason.SEPARATED, pairs=contacts)

    def _passed(self, q0: Array, goals: Array, loop: NativeLoop) -> Plan | None:
        """Return that there is no way, where one joint alone moves and that is proven.

        Whatever way it takes, it passes all positions between start and goal. So one of
        them at which links touch is a proof. Of joints without limits nothing is said,
        since they may turn the other way to the same place.
        """
        if loop.ground.moving != 1:
            return None
        lower, upper = loop.ground.space[:2]
        ends = [each[lower < upper] for each in self.planned.limits]
        if not np.isfinite(ends).all():
            return None
        check = self.planned.check
        is_free = ~check(np.concatenate([q0[np.newaxis], goals]))
        if not (is_free[0] and is_free[1:].any()):
            return None  # the loop says so
        first: Array | None = None
        for goal in goals[is_free[1:]]:
            between = self._between(q0, goal)
            touching = check(between)
            if not touching.any():
                return None
            first = between[touching.argmax()] if first is None else first
        assert first is not None
        pairs = self.planned.touching(first)
        return self.planned.without(PlanReason.SEPARATED, pairs=pairs)

    def _between(self, start: Array, goal: Array) -> Array:
        """Return positions on the straight motion between two."""
        way = goal - start
        length = float(np.linalg.norm(way * self.planned.weights))
        count = max(
            FEWEST_POSITIONS, min(MOST_POSITIONS, math.ceil(length / self.options.step))
        )
        return start + np.linspace(0.0, 1.0, count)[:, np.newaxis] * way

    def _plan(self, one: AskedWay, found: Found, seconds: float) -> Plan:
        """Return what the loop found as a plan."""
        reason, goals = STATUS[found.status], one.goals
        pairs: Any = ()
        if reason is PlanReason.START_TOUCHES:
            pairs = self.planned.touching(one.start)
        elif reason is PlanReason.GOAL_TOUCHES:
            pairs = self.planned.touching(goals.q[0])
        edges, checks, proofs, samples, nodes = found.counts
        is_found = reason is PlanReason.FOUND
        return Plan(
            q=found.q,
            reason=reason,
            proven=is_found and one.loop.tests.proves,
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
            check=self.planned.check,
        )

    # loops

    def loop(self, q0: Array, goals: Array, region: Region | None = None) -> NativeLoop:
        """Return the loop for joint positions within limits, or in a region."""
        if region is None and not self.planned.is_open:
            return self._whole
        lower, upper = self.planned.box(q0, goals)
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
        return self._made(self._tests(*self.planned.limits), *self.planned.limits)

    def _made(self, tests: EdgeTests, lower: Array, upper: Array) -> NativeLoop:
        # What the loop reads of a space is the same for all checks of a cell. The
        # memory that it works in, some megabytes, is that of all spaces.
        kind, weights = LoopKind.of(tests), self.planned.weights
        cell, nodes = self.planned.check.cell, self.options.nodes
        idle = kept_few(cell, "planning memory", (nodes, kind), list[LoopMemory])
        parts = tuple(each.tobytes() for each in (lower, upper, weights))

        def made() -> LoopGround:
            space = Space(lower, upper, weights, self.planned.rows)
            return LoopGround.of(space, self.options, kind, idle)

        key = parts, self.options, kind
        ground = kept_few(cell, "planned spaces", key, made)
        return NativeLoop.of(tests, ground)

    def _tests(self, lower: Array, upper: Array) -> EdgeTests:
        check = self.planned.check
        proofs = check.motion_columns(lower, upper)
        # What is proven at last may be searched with a larger margin, so that the proof
        # fails less often; where nothing is proven, what rounding decides touches.
        pad = NEARLY_TOUCHING * check.nearness
        wide = check.edge_columns(certain=proofs is None, pad=pad)
        tight = check.edge_columns(certain=proofs is None)
        quick = proofs and check.edge_proof_columns(lower, upper)
        if wide is None or tight is None:
            wide = tight = check_in_python(check, len(lower))
        if quick is None:
            return EdgeTests(wide, tight, proofs and proofs.now())
        # Quick proofs are enough for most plans, so that others wait for their records.
        return EdgeTests(wide, tight, proofs and proofs.function, quick, later=proofs)
