"""Numeric search: joint positions for targets, for any tree of joints.

One search is a native loop (`kernel/search.py`) of the step of `search_step.py`. Its
lanes work on one target each and take the next when they are done:

    start      `near` or `seed` if given, then the nearest of a table of sampled poses,
               |scales (target - pose)|, then random positions
    iterate    q' = step(q), until all squared errors are within the tolerance
    restart    from the next start, after `steps` steps, or when the error no longer
               falls by `stale_factor`; after `patient_after` starts only when the
               error hardly changes any more

so an answer depends on its target alone, not on the batch. What a search misses gets
its reason in this order (`_settle`):

    OUT_OF_REACH   it is farther than the joints can lead, by `reach_bound.py`
    -              searched once more with the whole budget of starts
    LIMITS         found with limits of two turns, and not within the true ones, from
                   there put at them
    NOT_FOUND      all else

Near a vector `nearest_search.py` compares what is found from several starts; far from
it, closed forms answer where a joint may be given (`free_joint.py`). All answers
(`search_all`) are those from many starts, the same for all targets, made sharp, with
multiples of 2 pi taken out, and merged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from armillary.disk_cache import cached_arrays
from armillary.forks import IMPORT_LOCK
from armillary.ik.all_answers import search_all
from armillary.ik.avoidance import marked, search_free
from armillary.ik.method import Candidates
from armillary.ik.nearest_search import (
    LOCAL,
    nearest_found,
    recounted,
    solved,
    turn_near,
)
from armillary.ik.problem import IKProblem
from armillary.ik.query import TOLERANCE, IKQuery, is_plain_vector, query_of
from armillary.ik.reason import LIMITS, NOT_FOUND, OUT_OF_REACH, TIMEOUT
from armillary.ik.search_step import (
    ROW_ERROR,
    largest_errors,
    residual_of_errors,
    row_ends,
    step_program,
)
from armillary.ik.solution import Solution
from armillary.ik.targets import POSE_SIZE, rigid_program
from armillary.ik.whole_turns import nearest_turns
from armillary.kernel.compiler import emitter_fingerprint
from armillary.kernel.host import host
from armillary.kernel.search import (
    Search,
    SearchOptions,
    SearchPlan,
    SearchResult,
    make_plan,
    shared_search,
)
from armillary.kernel.search_layout import ENDING, SOLVED
from armillary.kernel.seed_table import UNREAD, SeedTable, make_seed_table
from armillary.kernel.threads import default_threads

if TYPE_CHECKING:
    from armillary.ik.loop_search import ClosedSamples, LoopSearch
    from armillary.trace import Program

Array = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]
Run = Callable[..., SearchResult]

NEAR_MISS = (
    0.05  # of a search from `near`: parts of the arm's size, or sine of an angle
)
TABLE_SIZE = 32768  # sampled poses
PER_CELL = 128  # of them are compared with a target
TABLE_SEED = 271828
TABLE_MAKERS = ("armillary.ik.numeric", "armillary.kernel.seed_table")
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

    def __init__(self, problem: IKProblem) -> None:
        """Prepare the search for a problem; see `cell.ik`."""
        self.problem = problem
        self._searches: dict[bool, Search | LoopSearch] = {}
        self._plans: dict[Any, SearchPlan] = {}

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

    def candidates(self, query: IKQuery, *, every: bool = False) -> Candidates:
        """Return what is found for each target, from `near`, `seed` or the table.

        Every candidate is what is found from `query.starts` starts each.
        """
        if every:
            return marked(self._all(query), query)
        return search_free(self._found(query), self._found, query, self.problem)

    def _found(self, query: IKQuery) -> Candidates:
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
            plan = self._plan(query, query.search_options, seeded=first is not None)
            found = run(rows, plan, seeds=first)
        if not found.failures or not (query.explain or query.search_options is None):
            return _candidates(found)
        if near:
            run = self._run_anywhere(query, run)
        reasons = self._settle(found, rows, query, run, first)
        if near and first is not None:
            turn_near(found, first, self.problem)
        return _candidates(found, reasons)

    def answered(
        self, target: Any, near: Any, *, explain: bool = True
    ) -> Solution | None:
        """Return the answer to one target that a search finds at once.

        What is returned equals what `candidates` finds with the usual options. None
        where the arguments are not plain arrays, or a search from `near` does not end
        near it.

        Args:
            target: As for a call.
            near: The same.
            explain: The same.
        """
        if near is not None:
            return self._answered_near(target, near, alone=False)
        single = self._single
        row = None if single is None else single(target)
        if row is None:
            return None
        if row.item(len(row) - 1) == 1.0:
            return Solution.of_row(row, len(self.problem.joints), self._candidate)
        found, rows = self._result(row, 1), target.reshape(1, -1)
        reasons = found.endings[:, 0].astype(np.int8)
        is_missed, distance = reasons[0] == NOT_FOUND, TOLERANCE[0]
        if is_missed and self.problem.out_of_reach(rows, distance)[0]:
            reasons[0] = OUT_OF_REACH  # as `_settle` finds first
        elif is_missed:
            query = query_of(self.problem, target, explain=explain)
            search = self._search(False)
            self._search_longer(found, reasons, rows, query, search, None)
        return Solution(_candidates(found, reasons), ())

    def answered_beside(self, target: Any, near: Any) -> Solution | None:
        """Return the answer beside `near`, where a search from there ends in CLOSE."""
        return self._answered_near(target, near, alone=True)

    def _answered_near(self, target: Any, near: Any, *, alone: bool) -> Solution | None:
        """Return the answer that a search from `near` finds, or else a free joint.

        That is asked if not `alone`, where the search ends farther than CLOSE.
        """
        single = self._single_near
        lower, upper = self.problem.finite_limits
        if single is None or not is_plain_vector(near, lower):
            return None
        near = np.minimum(np.maximum(near, lower), upper)
        row = single(target, near)
        if row is None:
            return None
        if row.item(len(row) - 1) == 1.0:
            return Solution.of_row(row, len(near), self._candidate)
        return None if alone else self._far(target, near, row)

    def _far(self, target: Array, near: Array, row: Array) -> Solution | None:
        """Return the nearest answer by a free joint, if there is one.

        Args:
            target: As for a call.
            near: The same, within limits.
            row: What a search from there found, far away or nothing.
        """
        if not self.problem.is_redundant:
            return None
        with IMPORT_LOCK:
            from armillary.ik.free_joint import free_joint, row_candidate

        free, n = free_joint(self.problem), len(near)
        if free is None or not free.is_quick:
            return None
        least = math.inf
        ending = row[-1 - ENDING : -1].view(np.int64)
        if ending[0] == SOLVED:
            steps = row[:n] - near
            least = float((steps * steps).sum())
        elif self._is_near_miss(row[np.newaxis, n : -1 - ENDING]).item():
            return None
        nearer = free.answered(target, near, least)
        if nearer is None:
            return None
        if nearer[-1] < least:
            return Solution.of_row(nearer, n, row_candidate)
        return Solution.of_row(row, n, self._candidate)

    @cached_property
    def _single(self) -> Callable[..., Any] | None:
        return self._single_of(near=False, options=None)

    @cached_property
    def _single_near(self) -> Callable[..., Any] | None:
        return self._single_of(near=True, options=LOCAL)

    def _single_of(
        self, *, near: bool, options: SearchOptions | None
    ) -> Callable[..., Any] | None:
        """Return the function of machine code for one target, if there is one."""
        if self._closed is not None or not self.problem.can_search:
            return None
        usual = query_of(self.problem, np.broadcast_to(np.eye(4), self._shape))
        search = self._search(near)
        assert isinstance(search, Search)
        return search.single(self._plan(usual, options, seeded=near))

    @property
    def _shape(self) -> tuple[int, ...]:
        """Return the shape of one target."""
        goals = len(self.problem.goals)
        return (4, 4) if goals == 1 else (goals, 4, 4)

    def _candidate(self, row: Array) -> Candidates:
        """Return the candidate that is a row of such a function."""
        return _candidates(self._result(row, 0))

    def _result(self, row: Array, failures: int) -> SearchResult:
        """Return the result that is a row of such a function."""
        n = len(self.problem.joints)
        ending = row[-1 - ENDING : -1].view(np.int64)
        errors = row[n : -1 - ENDING]
        return SearchResult(row[None, :n], errors[None], ending[None], failures)

    def local(self, query: IKQuery) -> Candidates:
        """Return what is found from `near` alone, by steps as short as can be."""
        first = self._within(query)
        rows = np.concatenate((_rows(query), first), axis=1)
        plan = self._plan(query, LOCAL, seeded=True)
        search = self._search(True)
        found = search(rows, plan, seeds=first, deadline=query.deadline)
        if found.failures and self.problem.is_redundant:
            found = self._freed(found, rows, first, query)
        return marked(_candidates(found), query)

    def _freed(
        self, found: SearchResult, rows: Array, first: Array, query: IKQuery
    ) -> SearchResult:
        """Return what a search from `near` found; what failed is sought without a pull.

        With it, all joints that a step leads beyond limits stay at them; without it,
        those that errors draw back leave them, which may be all that was missing.
        """
        left = np.flatnonzero(~solved(found))
        left = left[self._is_near_miss(found.errors[left])]
        if not left.size:
            return found
        plan, search = self._plan(query, LOCAL, seeded=True), self._search(False)
        other = search(rows[left], plan, seeds=first[left], deadline=query.deadline)
        good = solved(other)
        found.take(left[good], other.at(good))
        return recounted(found)

    def _is_near_miss(self, errors: Array) -> Truths:
        """Return whether what a search ended with is next to a target, (count,)."""
        most = NEAR_MISS * np.array([self.problem.size, 1.0])
        goals = errors[:, : 2 * len(self.problem.goals)].reshape(len(errors), -1, 2)
        return np.asarray((goals <= most * most).all(axis=(1, 2)))

    def follow(
        self, query: IKQuery, start: Array, options: SearchOptions = FOLLOWING
    ) -> Candidates:
        """Return what is found for a sequence of targets, each from the one before.

        Args:
            query: The targets, in order.
            start: Joint positions to come from, shape (n,).
            options: When to give a start up, and when a target.
        """
        rows, search = _rows(query), self._search(False)
        chain = partial(search.chain, first=start, deadline=query.deadline)
        # The answer before is mostly the only start that is read: then a table, which
        # another grip or moved base would make anew, is not needed.
        plan = self._plan(query, replace(options, starts=1), seeded=True)
        found = None if "_table" in vars(self) else chain(rows, plan)
        if found is None or (found.failures and options.starts > 1):
            found = chain(rows, self._plan(query, options))
        if not (query.explain and found.failures):
            return marked(_candidates(found), query)
        run = partial(search, deadline=query.deadline)
        query = query._replace(search_options=options)
        reasons = self._settle(found, rows, query, run, None)
        return marked(_candidates(found, reasons), query)

    def follow_until_missed(self, query: IKQuery, start: Array) -> Candidates:
        """Return the same as `follow` up to the first target that is not found.

        Those behind it are not sought from other starts, which takes as long as all
        starts do where nothing is within reach.
        """
        rows, search = _rows(query), self._search(False)
        chain = partial(search.chain, deadline=query.deadline)
        seeded = self._plan(query, replace(FOLLOWING, starts=1), seeded=True)
        found = chain(rows, seeded, first=start)
        missed = np.flatnonzero(~solved(found))
        if missed.size:
            plan, came = self._plan(query, FOLLOWING), start
            if missed[0]:
                came = found.unknowns[missed[0] - 1]
            for k in range(int(missed[0]), len(rows)):
                one = chain(rows[k : k + 1], plan, first=came)
                found.take(np.array([k]), one)
                if one.failures:
                    break
                came = one.unknowns[0]
        return marked(_candidates(found), query)

    # inside

    def _all(self, query: IKQuery) -> Candidates:
        asked = self._found(query)
        query = query._replace(explain=False)
        if query.avoid is not None:
            asked = asked.joined(self.candidates(query))
        query = query._replace(search_options=ONCE)
        return search_all(asked, self._found, query, self.problem)

    def _near(self, run: Run, rows: Array, near: Array, query: IKQuery) -> SearchResult:
        """Return the nearest answers that are found; where none is, any other."""

        def search(rows: Array, options: SearchOptions, seeds: Array) -> SearchResult:
            return run(rows, self._plan(query, options, seeded=True), seeds=seeds)

        seed, distance = query.random_seed, query.tolerance[0]
        found = nearest_found(search, rows, near, self.problem, seed, distance)
        if not found.failures:
            return found
        plan = self._plan(query, query.search_options)
        left = np.flatnonzero(~solved(found))
        other = self._run_anywhere(query, run)(rows[left], plan, seeds=near[left])
        found.take(left, turn_near(other, near[left], self.problem))
        return recounted(found)

    def _run_anywhere(self, query: IKQuery, run: Run) -> Run:
        """Return the search of what one with a pull to `near` missed.

        Next to a singularity the pull can keep the errors of a redundant arm alive; of
        others it leads nowhere.
        """
        if not self.problem.is_redundant:
            return run
        options = {"threads": query.threads or default_threads()}
        return partial(self._search(False), **options, deadline=query.deadline)

    def _within(self, query: IKQuery) -> Array:
        """Return `wanted` for each target, within the limits, shape (count, n)."""
        lower, upper = self.problem.finite_limits
        vectors = np.empty((len(query.targets), len(lower)))
        np.maximum(query.wanted, lower, out=vectors)
        return np.minimum(vectors, upper, out=vectors)

    def _search(self, near: bool) -> Search | LoopSearch:
        search = self._searches.get(near)
        if search is None:
            search = self.problem.once(("search", near), partial(self._made, near=near))
            if self._closed is not None:
                with IMPORT_LOCK:
                    from armillary.ik.loop_search import LoopSearch

                search = LoopSearch(self.problem, search, self._closed)
            self._searches[near] = search
        return search

    def _made(self, problem: IKProblem, *, near: bool) -> Search:
        """Return the search of a problem with these goals."""

        def traced() -> tuple[Program, Program]:
            return step_program(problem, near=near), rigid_program(len(problem.goals))

        what = "step near a vector" if near else "step"
        step, guard = problem.kept_program(what, traced)
        single = self._shape if self._closed is None else None
        return shared_search(step, guard, tuple(self._scales.tolist()), single)

    @cached_property
    def _closed(self) -> ClosedSamples | None:
        """Return samples of closed loops, None where the joints move none."""
        if not self.problem.selection.passive:
            return None
        with IMPORT_LOCK:
            from armillary.ik.loop_search import ClosedSamples

        rng = np.random.default_rng(TABLE_SEED)
        return ClosedSamples(self.problem, rng, TABLE_SIZE)

    def _plan(
        self,
        query: IKQuery,
        options: SearchOptions | None,
        *,
        limited: bool = True,
        seeded: bool = False,
    ) -> SearchPlan:
        """Return how to search; `seeded` where the first start of each is given."""
        once = options is not None and options.starts == 1
        unread = once and seeded and self._closed is None
        key = query.tolerance, options, query.random_seed, limited, unread
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= MOST_PLANS:
                self._plans.clear()
            lower, upper, *ends = self._ranges(limited)
            tolerances = largest_errors(query.tolerance, len(self.problem.goals))
            if len(self.problem.rows):
                ends.append(row_ends(self.problem, limited=limited))
            if self._closed is not None:
                with IMPORT_LOCK:
                    from armillary.ik.loop_search import loop_constants, loop_tolerances

                exact = min(query.tolerance)
                tolerances = loop_tolerances(self.problem, tolerances, exact)
                ends.append(loop_constants(self.problem))
            if len(self.problem.rows):
                tolerances = np.append(tolerances, ROW_ERROR)
            plan = self._plans[key] = make_plan(
                table=UNREAD if unread else self._table,
                tolerances=tolerances,
                lower=lower,
                upper=upper,
                search_options=options or BRIEF,
                random_seed=query.random_seed,
                constants=np.concatenate([*ends, *map(np.ravel, self.problem.values)]),
            )
        return plan

    def _ranges(self, limited: bool) -> list[Array]:
        """Return the least and greatest random start, and the limits, of all unknowns.

        limited: Whether limits are those of the problem; else two turns either way.
        """
        ranges = [*self.problem.start_range, *self.problem.limits]
        if not limited:
            turn = np.full(len(self.problem.joints), math.pi)
            ranges = [-turn, turn, -4.0 * turn, 4.0 * turn]
        if self._closed is None:
            return ranges
        passive = self.problem.passive_limits
        if not limited:
            turns = np.full(len(passive[0]), 4.0 * math.pi)
            passive = -turns, turns
        of_passive = (*self._closed.passive_range, *passive)
        return [np.append(*pair) for pair in zip(ranges, of_passive, strict=True)]

    @cached_property
    def _table(self) -> SeedTable:
        """Return the table of sampled poses."""
        ranges, closed, fk = self.problem.start_range, self._closed, self.problem.fk

        def made() -> SeedTable:
            if closed is None:
                q = _sampled(*(tuple(each.tolist()) for each in ranges))
                held = self.problem.rows.holds(q)
                q = q[held] if held.any() else q
            else:
                q = closed.vectors
            rows = fk(q[:, : len(ranges[0])]).reshape(len(q), -1)
            return make_seed_table(rows, q, (3, 7, 11), self._scales, PER_CELL)

        if self.problem.selection.shapes and closed is None:
            return made()  # of each grip, a file would take longer to write
        vectors = [] if closed is None else [closed.vectors]
        if len(self.problem.rows):
            vectors += [self.problem.rows.A, self.problem.rows.b]
        made_with = host().identity, emitter_fingerprint()
        parts = [*made_with, fk.fingerprint, *ranges, self._scales, *vectors]
        *arrays, void = cached_arrays("starts", parts, made, made_by=TABLE_MAKERS)
        return SeedTable(*arrays, void=int(void))

    @cached_property
    def _scales(self) -> Array:
        return np.concatenate([goal.scales for goal in self.problem.goals])

    def _settle(
        self,
        found: SearchResult,
        rows: Array,
        query: IKQuery,
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
        missed = np.flatnonzero((reasons == NOT_FOUND) | (reasons == TIMEOUT))
        far = self.problem.out_of_reach(rows[missed], query.tolerance[0])
        reasons[missed[far]] = OUT_OF_REACH
        if not far.all():
            self._search_longer(found, reasons, rows, query, search, first)
        return reasons

    def _search_longer(
        self,
        found: SearchResult,
        reasons: npt.NDArray[np.int8],
        rows: Array,
        query: IKQuery,
        search: Run,
        first: Array | None,
    ) -> None:
        """Search once more for what may be in reach, see `_settle`.

        Reasons of targets that are missed are `NOT_FOUND` before.
        """
        left = np.flatnonzero(reasons == NOT_FOUND)
        if query.search_options is None and left.size:
            seeds = None if first is None else first[left]
            found.take(left, search(rows[left], self._plan(query, WHOLE), seeds=seeds))
            reasons[left] = found.endings[left, 0]
            left = left[reasons[left] == NOT_FOUND]
        lower, upper = self.problem.limits
        limited = np.isfinite(upper - lower).any() or len(self.problem.rows)
        if query.explain and left.size and limited:
            self._explain(found, reasons, left, rows, query, search)

    def _explain(
        self,
        found: SearchResult,
        reasons: npt.NDArray[np.int8],
        left: Places,
        rows: Array,
        query: IKQuery,
        search: Run,
    ) -> None:
        """Note which of the targets that are left are blocked by limits.

        They are those with an answer within limits of two turns. From there, put at the
        true limits, a search may still find one within these.
        """
        limits, query = self.problem.limits, query._replace(random_seed=0)
        plan = self._plan(query, BEYOND, limited=False)
        beyond = search(np.ascontiguousarray(rows[left]), plan)
        left, q = left[solved(beyond)], beyond.unknowns[solved(beyond)]
        if not left.size:
            return
        reasons[left] = LIMITS
        seeds = nearest_turns(q, q, limits, self.problem.turning)
        seeds = self.problem.within(seeds)
        plan = self._plan(query, ONCE, seeded=True)
        within = search(rows[left], plan, seeds=seeds)
        if within.failures < len(left):
            is_solved = solved(within)
            found.take(left[is_solved], within.at(is_solved))
            reasons[left[is_solved]] = SOLVED


@lru_cache(maxsize=4)
def _sampled(lower: tuple[float, ...], upper: tuple[float, ...]) -> Array:
    """Return random joint positions between limits, shape (TABLE_SIZE, n)."""
    rng = np.random.default_rng(TABLE_SEED)
    q = rng.uniform(lower, upper, (TABLE_SIZE, len(lower)))
    q.flags.writeable = False
    return q


def _rows(query: IKQuery) -> Array:
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
        # Behind those of goals there may be one of limits that couple joints.
        residual=lambda: residual_of_errors(
            found.errors[:, : found.errors.shape[1] & ~1]
        ),
        steps=lambda: endings[:, 1],
        starts=lambda: endings[:, 2],
        settled=True,
    )
