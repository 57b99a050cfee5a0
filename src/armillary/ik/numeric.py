"""The numeric solver: targets in, joint positions out, for any tree of joints."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, quote
from armillary.ik.nearest import LOCAL, Space, nearest_found, turn_near
from armillary.ik.reach_bound import reach_of
from armillary.ik.reason import Reason
from armillary.ik.residuals import goal_scales, residuals_of, squared_tolerances
from armillary.ik.search_step import POSE_SIZE, Goal, guard_program, step_program
from armillary.ik.solution import Solution, Whole
from armillary.ik.validation import (
    TOLERANCE,
    Batch,
    Tolerance,
    as_poses,
    as_vectors,
    deadline_of,
)
from armillary.ik.whole_turns import finite_limits, nearest_turns, turning_joints
from armillary.kernel.search import (
    SOLVED,
    Plan,
    Search,
    SearchOptions,
    SearchResult,
    make_plan,
    shared_search,
)
from armillary.kernel.seed_table import Table, make_table
from armillary.kernel.threads import default_threads
from armillary.kinematics.bound_kernel import AnyKernel
from armillary.kinematics.inputs import Inputs
from armillary.model.tree import Tree

Array = npt.NDArray[np.float64]

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


class Solver:
    """Inverse kinematics of chosen frames; call it with targets.

    It is made by `cell.ik`. The first call compiles one native loop: forward
    kinematics, Jacobian, a damped step, limits, convergence and restarts for as many
    targets at once as a register has lanes. Starts come from a table of sampled poses
    of the very cell, nearest first.

    Attributes:
        joints: Names of the joints in q.
        goals: What is reached.
    """

    def __init__(
        self,
        tree: Tree,
        goals: Sequence[Goal],
        selection: Inputs,
        joints: tuple[str, ...],
        fk: Callable[[], AnyKernel],
    ) -> None:
        """Prepare the solver of `goals`; see `cell.ik`.

        Raises:
            ModelError: None of the chosen joints moves a frame, or a goal is empty.
        """
        self.joints = joints
        self.goals = tuple(goals)
        self._tree = tree
        self._selection = selection
        self._fk = fk
        lower, upper = (
            np.array([limit[k] for k in selection.inputs]) for limit in tree.cell.limits
        )
        self._lower, self._upper = lower, upper
        self._finite = finite_limits(lower, upper)
        self._bound = [np.ravel(each) for each in selection.values(tree)]
        self._check()
        self._searches: dict[bool, Search] = {}
        self._plans: dict[Any, Plan] = {}

    def _check(self) -> None:
        tree = self._tree
        for goal in self.goals:
            if not (goal.has_position or goal.has_rotation):
                raise ModelError("A goal of ik must ask for something.")
            path = tree.between([goal.frame, goal.relative_to])
            moved = set(tree.moving_joints(path))
            if not moved & set(self._selection.inputs):
                link = tree.name(goal.frame.link)
                raise ModelError(
                    f"None of these joints moves link {quote(link)}, which ik is to "
                    f"place: {', '.join(self.joints) or 'there are none'}. If "
                    "it is gripped in a state, pass that: cell.ik(..., state=state)."
                )

    def __call__(  # noqa: PLR0913
        self,
        targets: Any,
        *,
        seed: Any = None,
        near: Any = None,
        tolerance: Tolerance = TOLERANCE,
        search_options: SearchOptions | None = None,
        random_seed: int = 0,
        threads: int | None = None,
        timeout: float | None = None,
        explain: bool = True,
    ) -> Solution:
        """Find joint positions that reach targets.

        Args:
            targets: Poses, shape (..., 4, 4); with k > 1 frames (..., k, 4, 4).
            seed: Where to start first, shape (..., n); by default the nearest poses of
                a table.
            near: Joint positions that the answer is to stay near, shape (..., n); it
                starts there, and what the targets leave free is drawn to them.
            tolerance: Largest distance [m] and angle [rad] that remain.
            search_options: When to give a start up, and when a target.
            random_seed: Another number gives other random starts.
            threads: How many threads may share a large batch; by default as for
                kernels.
            timeout: Time for the whole call [s]; targets that are left then end as
                `TIMEOUT`.
            explain: Whether to find out if joint limits block targets that are missed;
                else these are `NOT_FOUND`.

        Returns:
            The answers; those of a batch do not depend on its order or on threads.

        Raises:
            ShapeError: A shape does not fit, or a tolerance is not above 0.
        """
        deadline = deadline_of(timeout)
        rows, batch = self._rows(targets)
        first = None
        if near is not None:
            first = self._within(near, "near", batch)
            rows = np.concatenate((rows, first), axis=1)
        elif seed is not None:
            first = self._within(seed, "seed", batch)
        search = self._search(near is not None)
        workers = 1 if len(rows) == 1 else threads or default_threads()
        run = partial(search, threads=workers, deadline=deadline)
        if near is None or first is None:
            plan = self._plan(tolerance, search_options, random_seed)
            found = run(rows, plan, seeds=first)
        else:
            found = self._near(run, rows, first, tolerance, random_seed)
            if found.failures:
                plan = self._plan(tolerance, search_options, random_seed)
                left = np.flatnonzero(found.endings[:, 0] != SOLVED)
                other = run(rows[left], plan, seeds=first[left])
                found.take(left, turn_near(other, first[left], self._space))
                failures = int((found.endings[:, 0] != SOLVED).sum())
                found = found._replace(failures=failures)
        if not found.failures or not (explain or search_options is None):
            return self._told(found, batch)

        def again(left: Whole) -> SearchResult:
            plan = self._plan(tolerance, WHOLE, random_seed)
            return run(rows[left], plan, seeds=None if first is None else first[left])

        more = again if search_options is None else None
        reasons = self._settled(found, rows, tolerance, run, more, explain=explain)
        if near is not None and first is not None:
            turn_near(found, first, self._space)
        return self._told(found, batch, reasons)

    def local(
        self, targets: Any, near: Any, tolerance: Tolerance, deadline: int = 0
    ) -> Solution:
        """Find joint positions from `near` alone, by steps that are as short as can be.

        Args:
            targets: As for a call.
            near: As for a call.
            tolerance: As for a call.
            deadline: When to stop, see `deadline_of`.

        Raises:
            ShapeError: A shape does not fit.
        """
        rows, batch = self._rows(targets)
        first = self._within(near, "near", batch)
        plan = self._plan(tolerance, LOCAL, 0)
        rows = np.concatenate((rows, first), axis=1)
        found = self._search(True)(rows, plan, seeds=first, deadline=deadline)
        return self._told(found, batch)

    def follow(
        self,
        targets: Any,
        start: Array,
        tolerance: Tolerance,
        *,
        search_options: SearchOptions = FOLLOWING,
        timeout: float | None = None,
        explain: bool = True,
    ) -> Solution:
        """Find joint positions for a sequence of targets, each from the one before.

        Args:
            targets: Poses, shape (k, 4, 4), or for several frames (k, f, 4, 4).
            start: Joint positions to come from, shape (n,).
            tolerance: As for a call.
            search_options: When to give a start up, and when a target.
            timeout: As for a call.
            explain: As for a call.

        Raises:
            ShapeError: A shape does not fit.
        """
        deadline = deadline_of(timeout)
        rows, batch = self._rows(targets)
        plan, search = self._plan(tolerance, search_options, 0), self._search(False)
        found = search.chain(rows, plan, start, deadline=deadline)
        if not (explain and found.failures):
            return self._told(found, batch)
        run = partial(search, deadline=deadline)
        return self._told(found, batch, self._settled(found, rows, tolerance, run))

    # inside

    def _near(
        self,
        search: Callable[..., SearchResult],
        rows: Array,
        near: Array,
        tolerance: Tolerance,
        random_seed: int,
    ) -> SearchResult:
        """Return the nearest answers that are found, those missed left as they are."""

        def run(
            rows: Array, search_options: SearchOptions, seeds: Array
        ) -> SearchResult:
            plan = self._plan(tolerance, search_options, random_seed)
            return search(rows, plan, seeds=seeds)

        return nearest_found(run, rows, near, self._space, self._too_far, random_seed)

    @cached_property
    def _space(self) -> Space:
        n = len(self.joints)
        return Space(
            limits=(self._lower, self._upper),
            starts=self._start_range,
            turning=turning_joints(self._fk, n),
            redundant=n
            > sum(sum(goal.position + goal.rotation) for goal in self.goals),
        )

    def _rows(self, targets: Any) -> tuple[Array, Batch]:
        """Return targets as rows of sixteen numbers for each goal, and the batch."""
        count = len(self.goals)
        if count == 1 and _is_plain(targets):  # the quick way for a single target
            return targets.reshape(1, POSE_SIZE), ()
        poses, batch = as_poses(targets, count)
        return np.ascontiguousarray(poses).reshape(-1, POSE_SIZE * count), batch

    def _within(self, values: Any, name: str, batch: Batch) -> Array:
        """Return joint vectors for each target, within the limits, shape (count, n)."""
        vectors = np.empty((math.prod(batch), n := len(self.joints)))
        np.maximum(as_vectors(values, name, n, batch), self._finite[0], out=vectors)
        return np.minimum(vectors, self._finite[1], out=vectors)

    @cached_property
    def _start_range(self) -> tuple[Array, Array]:
        """Return where random starts lie: within limits, or one turn without any."""
        lower = np.where(np.isfinite(self._lower), self._lower, -math.pi)
        upper = np.where(np.isfinite(self._upper), self._upper, math.pi)
        return np.minimum(lower, upper), np.maximum(lower, upper)

    def _search(self, near: bool) -> Search:
        if near not in self._searches:
            limits = self._lower.tolist(), self._upper.tolist()
            step = step_program(
                self._tree, self.goals, self._selection, limits, near=near
            )
            guard = guard_program(len(self.goals))
            scales = tuple(self._scales.tolist())
            self._searches[near] = shared_search(step, guard, scales)
        return self._searches[near]

    def _plan(
        self,
        tolerance: Tolerance,
        search_options: SearchOptions | None,
        salt: int,
        *,
        limited: bool = True,
    ) -> Plan:
        key = *tolerance, search_options, salt, limited
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= MOST_PLANS:
                self._plans.clear()
            if limited:
                (lower, upper), ends = self._start_range, (self._lower, self._upper)
            else:
                turn = np.full(len(self.joints), math.pi)
                (lower, upper), ends = (-turn, turn), (-4.0 * turn, 4.0 * turn)
            plan = self._plans[key] = make_plan(
                table=self._known,
                tolerances=squared_tolerances(tolerance, len(self.goals)),
                lower=lower,
                upper=upper,
                search_options=search_options or BRIEF,
                salt=salt,
                constants=np.concatenate([*ends, *self._bound]),
            )
        return plan

    @cached_property
    def _known(self) -> Table:
        """Return the table of sampled poses."""
        lower, upper = self._start_range
        rng = np.random.default_rng(TABLE_SEED)
        q = rng.uniform(lower, upper, (TABLE_SIZE, len(self.joints)))
        rows = self._fk()(q).reshape(TABLE_SIZE, -1)
        return make_table(rows, q, (3, 7, 11), self._scales, PER_CELL)

    @cached_property
    def _scales(self) -> Array:
        return np.array([scale for goal in self.goals for scale in goal_scales(goal)])

    def _told(
        self,
        found: SearchResult,
        batch: Batch,
        reasons: npt.NDArray[np.int8] | None = None,
    ) -> Solution:
        """Return what was found, by default with the reasons of the search itself."""
        endings = found.endings

        def plain() -> npt.NDArray[np.int8]:
            return endings[:, 0].astype(np.int8)

        return Solution(
            q=found.unknowns.reshape(*batch, len(self.joints)),
            reason=plain if reasons is None else reasons,
            residual=lambda: residuals_of(found.errors),
            steps=lambda: endings[:, 1],
            starts=lambda: endings[:, 2],
        )

    def _settled(
        self,
        found: SearchResult,
        rows: Array,
        tolerance: Tolerance,
        search: Callable[..., SearchResult],
        again: Callable[[Whole], SearchResult] | None = None,
        *,
        explain: bool = True,
    ) -> npt.NDArray[np.int8]:
        """Return how targets ended, as numbers of `Reason`, those missed tried again.

        Args:
            found: What a search found; what is found now is written over it.
            rows: The targets.
            tolerance: As for a call.
            search: The search, within the time that is left.
            again: Searches longer for some of them; None where that is over.
            explain: Whether to search beyond the limits, too.
        """
        reasons = found.endings[:, 0].astype(np.int8)
        missed = np.flatnonzero(
            (reasons == Reason.NOT_FOUND) | (reasons == Reason.TIMEOUT)
        )
        far = self._too_far(rows[missed])
        reasons[missed[far]] = Reason.OUT_OF_REACH
        left = missed[~far]
        left = left[reasons[left] == Reason.NOT_FOUND]
        if again is not None and left.size:
            found.take(left, again(left))
            reasons[left] = found.endings[left, 0]
            left = left[reasons[left] == Reason.NOT_FOUND]
        if explain and left.size and np.isfinite(self._upper - self._lower).any():
            plan = self._plan(tolerance, BEYOND, 0, limited=False)
            beyond = search(np.ascontiguousarray(rows[left]), plan)
            met = beyond.endings[:, 0] == SOLVED
            limits, turning = self._space.limits, self._space.turning
            q = beyond.unknowns[met]
            seeds = nearest_turns(q, q, limits, turning).clip(*limits)
            left = left[met]
            reasons[left] = Reason.LIMITS
            plan = self._plan(tolerance, ONCE, 0)
            within = search(rows[left], plan, seeds=seeds)
            if within.failures < len(left):
                solved = within.endings[:, 0] == SOLVED
                found.take(left[solved], within.at(solved))
                reasons[left[solved]] = Reason.SOLVED
        return reasons

    def _too_far(self, rows: Array) -> npt.NDArray[np.bool_]:
        """Return which targets are proven to be out of reach, shape (count,)."""
        far = np.zeros(len(rows), np.bool_)
        for k, (goal, (centre, reach)) in enumerate(
            zip(self.goals, self._reaches, strict=True)
        ):
            if all(goal.position):
                p = rows[:, POSE_SIZE * k + 3 : POSE_SIZE * k + 12 : 4]
                far |= np.linalg.norm(p - centre, axis=1) > reach * (1.0 + 1e-9)
        return far

    @cached_property
    def _reaches(self) -> list[tuple[Array, float]]:
        limits = self._lower, self._upper
        return [
            reach_of(self._tree, goal, self._selection, limits) for goal in self.goals
        ]


def _is_plain(targets: Any) -> bool:
    """Tell whether targets are one matrix, just as the search reads it."""
    return (
        type(targets) is np.ndarray
        and targets.shape == (4, 4)
        and targets.dtype == np.float64
        and targets.flags.c_contiguous
    )
