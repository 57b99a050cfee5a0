"""Numeric search: joint positions for targets, for any tree of joints."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.ik.avoidance import marked, search_free
from armillary.ik.enumerate import search_all
from armillary.ik.loop_search import (
    ClosedSamples,
    LoopSearch,
    loop_constants,
    loop_tolerances,
)
from armillary.ik.method import Candidates
from armillary.ik.nearest import LOCAL, nearest_found, turn_near
from armillary.ik.problem import Problem
from armillary.ik.query import Query, query_of
from armillary.ik.reason import Reason
from armillary.ik.search_step import (
    largest_errors,
    residual_of_errors,
    step_program,
)
from armillary.ik.solution import Solution
from armillary.ik.targets import POSE_SIZE, rigid_program
from armillary.ik.whole_turns import nearest_turns
from armillary.kernel.search import (
    SOLVED,
    Plan,
    Search,
    SearchOptions,
    SearchResult,
    make_plan,
    shared_search,
)
from armillary.kernel.seed_table import SeedTable, make_seed_table
from armillary.kernel.threads import default_threads

Array = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Run = Callable[..., SearchResult]

TABLE_SIZE = 32768
PER_CELL = 128
TABLE_SEED = 271828
MOST_PLANS = 64
# A search is brief at first: what it misses is mostly out of reach, by its distance.
BRIEF, WHOLE = SearchOptions(starts=SearchOptions().patient_after), SearchOptions()
ONCE = SearchOptions(steps=40, stale_factor=math.inf, starts=1)
# The answer before is a good start: it is given up late.
FOLLOWING = SearchOptions(steps=40, stale_from=16)
# What is missed is searched with limits of two turns: do the true ones block it?
BEYOND = SearchOptions(starts=40)


class NumericSearch:
    """Inverse kinematics by search; call it with targets.

    The first call compiles one native loop: forward kinematics, Jacobian, a damped
    step, limits, convergence and restarts for as many targets at once as a register has
    lanes. Starts come from a table of sampled poses of the very cell, nearest first.

    Attributes:
        problem: What is reached, by which joints.
        branches: Empty.
    """

    branches: tuple[tuple[str, ...], ...] = ()

    def __init__(self, problem: Problem) -> None:
        """Prepare the search for a problem; see `cell.ik`."""
        self.problem = problem
        self._bound = [
            np.ravel(each) for each in problem.selection.values(problem.tree)
        ]
        self._searches: dict[bool, Search | LoopSearch] = {}
        self._plans: dict[Any, Plan] = {}

    def __call__(self, targets: Any, **options: Any) -> Solution:
        """Find joint positions that reach targets.

        Args:
            targets: As for a call of `InverseKinematics`.
            options: As there, but for `method` and `arm_angle`.

        Raises:
            ShapeError: A shape does not fit, or a tolerance is not above 0.
        """
        query = query_of(self.problem, targets, **options)
        return Solution(self.candidates(query), query.batch)

    def candidates(self, query: Query, *, every: bool = False) -> Candidates:
        """Return what is found for each target, from `near`, `seed` or the table.

        Every candidate is what is found from `query.starts` starts each.
        """
        if every:
            return marked(self._all(query), query)
        return search_free(self._found(query), self._found, query, self.problem)

    def _found(self, query: Query) -> Candidates:
        """Return what is found for each target, whatever it touches."""
        rows, near = _rows(query), query.near is not None
        threads = 1 if len(rows) == 1 else query.threads or default_threads()
        run: Run = self._search(near)
        if threads > 1 or query.deadline:
            run = partial(run, threads=threads, deadline=query.deadline)
        first = self._within(query) if near or query.seed is not None else None
        if near and first is not None:
            rows = np.concatenate((rows, first), axis=1)
            found = self._near(run, rows, first, query)
        else:
            found = run(rows, self._plan(query, query.search_options), seeds=first)
        if not found.failures or not (query.explain or query.search_options is None):
            return _candidates(found)
        reasons = self._settle(found, rows, query, run, first)
        if near and first is not None:
            turn_near(found, first, self.problem)
        return _candidates(found, reasons)

    def local(self, query: Query) -> Candidates:
        """Return what is found from `near` alone, by steps as short as can be."""
        first = self._within(query)
        rows = np.concatenate((_rows(query), first), axis=1)
        plan = self._plan(query, LOCAL)
        search = self._search(True)
        found = search(rows, plan, seeds=first, deadline=query.deadline)
        return marked(_candidates(found), query)

    def follow(
        self, query: Query, start: Array, options: SearchOptions = FOLLOWING
    ) -> Candidates:
        """Return what is found for a sequence of targets, each from the one before.

        Args:
            query: The targets, in order.
            start: Joint positions to come from, shape (n,).
            options: When to give a start up, and when a target.
        """
        rows, search = _rows(query), self._search(False)
        found = search.chain(
            rows, self._plan(query, options), start, deadline=query.deadline
        )
        if not (query.explain and found.failures):
            return marked(_candidates(found), query)
        run = partial(search, deadline=query.deadline)
        query = query._replace(search_options=options)
        reasons = self._settle(found, rows, query, run, None)
        return marked(_candidates(found, reasons), query)

    # inside

    def _all(self, query: Query) -> Candidates:
        query = query._replace(explain=False)
        asked = self._found(query)
        if query.avoid is not None:
            asked = asked.joined(self.candidates(query))
        query = query._replace(search_options=ONCE)
        return search_all(asked, self._found, query, self.problem)

    def _near(self, run: Run, rows: Array, near: Array, query: Query) -> SearchResult:
        """Return the nearest answers that are found; where none is, any other."""

        def search(rows: Array, options: SearchOptions, seeds: Array) -> SearchResult:
            return run(rows, self._plan(query, options), seeds=seeds)

        found = nearest_found(search, rows, near, self.problem, query.random_seed)
        if not found.failures:
            return found
        plan = self._plan(query, query.search_options)
        left = np.flatnonzero(found.endings[:, 0] != SOLVED)
        other = run(rows[left], plan, seeds=near[left])
        found.take(left, turn_near(other, near[left], self.problem))
        failures = int((found.endings[:, 0] != SOLVED).sum())
        return found._replace(failures=failures)

    def _within(self, query: Query) -> Array:
        """Return `wanted` for each target, within the limits, shape (count, n)."""
        lower, upper = self.problem.finite_limits
        vectors = np.empty((len(query.targets), len(lower)))
        np.maximum(query.wanted, lower, out=vectors)
        return np.minimum(vectors, upper, out=vectors)

    def _search(self, near: bool) -> Search | LoopSearch:
        found = self._searches.get(near)
        if found is None:
            step = step_program(self.problem, near=near)
            guard = rigid_program(len(self.problem.goals))
            scales = tuple(self._scales.tolist())
            found = shared_search(step, guard, scales)
            if self._closed is not None:
                found = LoopSearch(self.problem, found, self._closed)
            self._searches[near] = found
        return found

    @cached_property
    def _closed(self) -> ClosedSamples | None:
        """Return samples of closed loops, None where the joints move none."""
        if not self.problem.selection.passive:
            return None
        rng = np.random.default_rng(TABLE_SEED)
        return ClosedSamples(self.problem, rng, TABLE_SIZE)

    def _plan(
        self, query: Query, options: SearchOptions | None, *, limited: bool = True
    ) -> Plan:
        key = query.tolerance, options, query.random_seed, limited
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= MOST_PLANS:
                self._plans.clear()
            (lower, upper), ends = self.problem.start_range, self.problem.limits
            tolerances = largest_errors(query.tolerance, len(self.problem.goals))
            if not limited:
                turn = np.full(len(lower), math.pi)
                (lower, upper), ends = (-turn, turn), (-4.0 * turn, 4.0 * turn)
            if self._closed is not None:
                span, exact = self._closed.passive_range, min(query.tolerance)
                passive = self.problem.passive_limits
                if not limited:
                    turn = np.full(len(passive[0]), 4.0 * math.pi)
                    passive = -turn, turn
                lower, upper = map(np.append, (lower, upper), span)
                ends = [*map(np.append, ends, passive), loop_constants(self.problem)]
                tolerances = loop_tolerances(self.problem, tolerances, exact)
            plan = self._plans[key] = make_plan(
                table=self._table,
                tolerances=tolerances,
                lower=lower,
                upper=upper,
                search_options=options or BRIEF,
                random_seed=query.random_seed,
                constants=np.concatenate([*ends, *self._bound]),
            )
        return plan

    @cached_property
    def _table(self) -> SeedTable:
        """Return the table of sampled poses."""
        lower, upper = self.problem.start_range
        n = len(lower)
        if self._closed is None:
            rng = np.random.default_rng(TABLE_SEED)
            q = rng.uniform(lower, upper, (TABLE_SIZE, n))
        else:
            q = self._closed.vectors
        rows = self.problem.fk(q[:, :n]).reshape(len(q), -1)
        return make_seed_table(rows, q, (3, 7, 11), self._scales, PER_CELL)

    @cached_property
    def _scales(self) -> Array:
        return np.concatenate([goal.scales for goal in self.problem.goals])

    def _settle(
        self,
        found: SearchResult,
        rows: Array,
        query: Query,
        search: Run,
        first: Array | None,
    ) -> npt.NDArray[np.int8]:
        """Return how targets ended, as numbers of `Reason`, those missed tried again.

        Args:
            found: What a search found; what is found now is written over it.
            rows: The targets.
            query: They are searched longer if it leaves the options to the search.
            search: The search, within the time that is left.
            first: Where it started, shape (count, n); None for the table.
        """
        reasons = found.endings[:, 0].astype(np.int8)
        missed = np.flatnonzero(
            (reasons == Reason.NOT_FOUND) | (reasons == Reason.TIMEOUT)
        )
        far = self.problem.out_of_reach(rows[missed])
        reasons[missed[far]] = Reason.OUT_OF_REACH
        left = missed[~far]
        left = left[reasons[left] == Reason.NOT_FOUND]
        if query.search_options is None and left.size:
            seeds = None if first is None else first[left]
            found.take(left, search(rows[left], self._plan(query, WHOLE), seeds=seeds))
            reasons[left] = found.endings[left, 0]
            left = left[reasons[left] == Reason.NOT_FOUND]
        limits = self.problem.limits
        if query.explain and left.size and np.isfinite(limits[1] - limits[0]).any():
            query = query._replace(random_seed=0)
            plan = self._plan(query, BEYOND, limited=False)
            beyond = search(np.ascontiguousarray(rows[left]), plan)
            met = beyond.endings[:, 0] == SOLVED
            q = beyond.unknowns[met]
            seeds = nearest_turns(q, q, limits, self.problem.turning).clip(*limits)
            left = left[met]
            reasons[left] = Reason.LIMITS
            within = search(rows[left], self._plan(query, ONCE), seeds=seeds)
            if within.failures < len(left):
                solved = within.endings[:, 0] == SOLVED
                found.take(left[solved], within.at(solved))
                reasons[left[solved]] = Reason.SOLVED
        return reasons


def _rows(query: Query) -> Array:
    """Return targets as rows of sixteen numbers for each goal."""
    count, goals = query.targets.shape[:2]
    return np.ascontiguousarray(query.targets).reshape(count, POSE_SIZE * goals)


def _candidates(
    found: SearchResult, reasons: npt.NDArray[np.int8] | None = None
) -> Candidates:
    """Return what was found, by default with the reasons of the search itself."""
    endings = found.endings

    def plain() -> npt.NDArray[np.int8]:
        return endings[:, 0].astype(np.int8)

    return Candidates(
        q=found.unknowns[:, np.newaxis],
        reason=plain if reasons is None else reasons,
        residual=lambda: residual_of_errors(found.errors),
        steps=lambda: endings[:, 1],
        starts=lambda: endings[:, 2],
        settled=True,
    )
