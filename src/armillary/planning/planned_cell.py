"""What planners and roadmaps share: goals that may be reached, plans in graphs."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from operator import le
from typing import Any, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from armillary.collision.check import CollisionCheck
from armillary.errors import ModelError, ShapeError, quote
from armillary.kernel.arguments import numbers_of, positive_number
from armillary.kernel.search import is_over
from armillary.model.fields import kept, kept_few
from armillary.model.limit_rows import LimitRows
from armillary.model.workcell import Workcell
from armillary.planning.constraint import (
    PART_OF_TOLERANCE,
    FrameConstraint,
    Manifold,
    constraints_of,
    content_of,
)
from armillary.planning.goals import Goals
from armillary.planning.graph import Answer, Graph, GraphQuery
from armillary.planning.loop import NativeLoop
from armillary.planning.motions import MotionTests, loops_are_proven
from armillary.planning.plan import Plan, PlanReason
from armillary.planning.proven_search import (
    ProvenSearch,
    Searched,
    search_all,
)
from armillary.planning.region import Region

__all__ = ["PlannedCell", "planned_cell", "seconds_of"]

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

LOG = logging.getLogger("armillary.planning")

TURN: Final = 2.0 * np.pi

NEARLY: Final = 2.0
"""Pairs that are nearer than the margin and so many times what touches in motions are
named where links touch."""

LONGEST_SEARCH: Final = 1e9
"""Time after which a search ends in any case [s]; a clock of nanoseconds holds it."""

HEAVIEST: Final = 1e6
"""The greatest weight of a joint; the least is its inverse."""

FINEST_RESOLUTION: Final = 1e-6
"""The least resolution, in weighted lengths; in cells whose joints move by less than 1
in all it is this part of that."""


def planned_cell(
    cell: Workcell,
    check: CollisionCheck,
    weights: npt.ArrayLike | None,
    resolution: float,
) -> PlannedCell:
    """Return a cell with a check, in which motions are planned.

    Arguments and errors are those of `planner`.
    """
    given: Any = check
    if not isinstance(given, CollisionCheck):
        raise ModelError(
            "A planner needs a collision check, as in cell.planner(cell.collision()); "
            f"what was given is {quote(given)}."
        )
    if check.cell is not cell and check.cell != cell:
        raise ModelError(
            f"The check is of another cell, '{check.cell.name}': make it by "
            "cell.collision(state) of the cell that plans."
        )
    n = len(check.state.q)
    if not n:
        raise ModelError(f"No joint of '{cell.name}' moves: there is nothing to plan.")
    w = np.ones(n) if weights is None else _weights(weights, n)
    step = positive_number("The resolution", resolution)
    lower, upper = cell.limits
    finest = FINEST_RESOLUTION * min(1.0, float(np.linalg.norm(w * (upper - lower))))
    if not finest <= step < math.inf:
        raise ModelError(
            f"The resolution must be finite and at least {finest:g}, not {step!r}."
        )
    if not len(check.pairs):
        LOG.warning(
            "the check of a planner has no pairs of links: every motion counts as free"
        )
    return PlannedCell(check, w, step)


def _weights(given: npt.ArrayLike, n: int) -> Array:
    """Return the weights of joints.

    Raises:
        ModelError: A number is not above 0, too large or too small.
        ShapeError: They have another shape.
    """
    w = np.array(numbers_of("weights", given))
    if w.shape != (n,):
        raise ShapeError(f"The weights are of shape {w.shape}, not ({n},).")
    if not ((w >= 1.0 / HEAVIEST) & (w <= HEAVIEST)).all():
        raise ModelError(
            f"The weights of joints must be from {1.0 / HEAVIEST:g} to {HEAVIEST:g}, "
            f"not {w.tolist()}."
        )
    return w


@final
@dataclass(frozen=True, eq=False)
class PlannedCell:
    """A cell in which motions are planned.

    Attributes:
        check: What must not touch.
        weights: Of joints in lengths of motions, shape (n,).
        step: Distance of samples of a motion, in weighted lengths.
    """

    check: CollisionCheck
    weights: Array
    step: float

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
            return self.without(goals.reason)
        lower, upper = self.limits if region is None else region[:2]
        # Numbers of Python are compared sooner than few ones of NumPy. What is not
        # finite is within no limits, unless these are infinite.
        low, high = self._ends if region is None else (lower.tolist(), upper.tolist())
        is_usual = not (self.is_open or len(self.rows)) and all(
            all(map(le, low, row)) and all(map(le, row, high))
            for row in (q0.tolist(), *goals.q.tolist())
        )
        if not is_usual:
            is_within = ((lower <= goals.q) & (goals.q <= upper)).all(axis=1)
            if not (np.isfinite(q0).all() and np.isfinite(goals.q).all()):
                return self.without(PlanReason.INVALID)
            if len(self.rows):
                is_within = is_within & self.rows.holds(goals.q)
            beyond = self._beyond(q0, lower, upper)
            if not (beyond or is_within.any()):
                beyond = self._beyond(goals.q[0], lower, upper)
            if beyond:
                return self.without(PlanReason.LIMITS, beyond)
            if not is_within.all():
                q = np.ascontiguousarray(goals.q[is_within])
                goals = Goals(q, goals.numbers[is_within])
        if not self.check.may_be_free:
            return self.without(PlanReason.START_TOUCHES, pairs=self.touching(q0))
        return goals

    @cached_property
    def limits(self) -> tuple[Array, Array]:
        """Return the least and the greatest joint positions [m or rad]."""
        return self.check.cell.limits

    @cached_property
    def _ends(self) -> tuple[list[float], list[float]]:
        """Return the same as numbers of Python."""
        lower, upper = self.limits
        return lower.tolist(), upper.tolist()

    @cached_property
    def rows(self) -> LimitRows:
        """Return the limits that couple joints."""
        return self.check.cell.limit_rows

    def _beyond(self, q: Array, lower: Array, upper: Array) -> tuple[str, ...]:
        """Return the names of limits that joint positions do not keep."""
        rows, names = self.rows, self.check.cell.joint_names
        out = np.flatnonzero((q < lower) | (q > upper)).tolist()
        missed = np.flatnonzero(rows.A @ q > rows.b).tolist()
        labels = dict.fromkeys(rows.labels[k] for k in missed)
        return (*(names[k] for k in out), *labels)

    @cached_property
    def is_open(self) -> bool:
        """Return whether joints have no limits."""
        cell = self.check.cell
        return kept(
            cell,
            "open limits",
            lambda: not all(np.isfinite(each).all() for each in cell.limits),
        )

    def without(
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
            resolution=self.step,
            check=self.check,
            violated=violated,
        )

    def touching(self, q: Array) -> tuple[Any, ...]:
        """Return the pairs of links that touch."""
        within = self.check.margin + NEARLY * self.check.nearness
        return tuple(self.check.contacts(q, within=within))

    def box(self, q0: Array, goals: Array) -> tuple[Array, Array]:
        """Return the limits of joints.

        Joints without limits move within a turn around start and goals, at least, by
        whole turns. All that is within a turn of zero has the same limits, and what is
        elsewhere shares those of its turn: loops are made for limits.
        """
        lower, upper = self.limits
        if not self.is_open:
            return lower, upper
        ends: Array = np.vstack([q0, goals]) / TURN
        least: Array = ends.min(axis=0)
        most: Array = ends.max(axis=0)
        is_near = np.maximum(-least, most) <= 1.0
        middle: Array = np.where(is_near, 0.0, np.round(0.5 * (least + most)))
        farthest = np.maximum(most - middle, middle - least)
        reach = np.maximum(np.ceil(farthest), 1.0) + 1.0
        first, last = TURN * (middle - reach), TURN * (middle + reach)
        return (
            np.where(np.isfinite(lower), lower, first),
            np.where(np.isfinite(upper), upper, last),
        )

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
        lower, upper = self.box(*ends)
        if region is not None:
            lower, upper = np.maximum(lower, region[0]), np.minimum(upper, region[1])
        every = constraints_of(constraints)
        numbers = [lower, upper]
        if start is not None and any(each.target is None for each in every):
            numbers.append(start)

        def made() -> Manifold:
            return Manifold(
                self.check.cell,
                self.check.state,
                every,
                start=start,
                lower=lower,
                upper=upper,
                weights=self.weights,
            )

        contents = *map(content_of, every), *(each.tobytes() for each in numbers)
        return kept_few(self, "manifolds", contents, made)

    def compile(self, manifold: Manifold | None, start: Array) -> None:
        """Compile what plans within constraints call, so that no timeout counts it."""
        if manifold is None or not manifold.parts:
            return

        def compiled() -> bool:
            row = start[np.newaxis]
            manifold.project(row)
            manifold.violations(row)
            motions = MotionTests(self.check, manifold, self.step, loops=True)
            motions.proven([np.concatenate([row, row])])
            return True

        kept_few(self, "compiled", manifold.code_key, compiled)

    def within(
        self,
        manifold: Manifold,
        query: GraphQuery,
        goals: Goals,
        graphs: Iterable[Graph],
    ) -> Plan:
        """Return a way within constraints along the motions of a graph.

        Args:
            manifold: The constraints.
            query: What is asked: joint positions [m or rad] and a deadline.
            goals: Its goals, with their numbers.
            graphs: What is searched; the next one where that has no way.
        """
        began = time.perf_counter()
        motions = MotionTests(self.check, manifold, self.step)
        prover = motions
        if loops_are_proven(self.check):
            prover = MotionTests(self.check, manifold, self.step, loops=True)
        (asked,) = self._admitted([query], [goals], motions)
        if isinstance(asked, Plan):
            return asked
        answer, nodes = Answer(None, -1), 0
        for graph in graphs:
            answer, nodes = graph.ask(asked.query, motions, prover), len(graph.Q)
            if answer.q is not None or is_over(query.deadline):
                break
        if prover is not motions:
            motions.proofs += prover.proofs
        found = Searched(answer, nodes, nodes, bool(prover.is_proven[0]))
        return self._plan(found, asked, motions, 0, time.perf_counter() - began)

    def along(
        self,
        manifold: Manifold,
        queries: Sequence[GraphQuery],
        goals: Sequence[Goals],
        loops: Sequence[NativeLoop],
        threads: int = 1,
    ) -> list[Plan]:
        """Return ways within constraints, or of closed loops, that loops search for.

        Args:
            manifold: The constraints of all of them.
            queries: What is asked: joint positions [m or rad] and deadlines.
            goals: The goals of each, with their numbers.
            loops: The loop for each, along the constraints.
            threads: How many threads share the native searches.
        """
        began, count = time.perf_counter(), len(queries)
        motions = MotionTests(
            self.check, manifold, self.step, loops=True, problems=count
        )
        plans = self._admitted(queries, goals, motions)
        searches = {
            k: ProvenSearch(loops[k], each.query)
            for k, each in enumerate(plans)
            if not isinstance(each, Plan)
        }
        answers = search_all(searches, motions, threads)
        took = (time.perf_counter() - began) / count
        return [
            each
            if isinstance(each, Plan)
            else self._plan(answers[k], each, motions, k, took)
            for k, each in enumerate(plans)
        ]

    def _admitted(
        self,
        queries: Sequence[GraphQuery],
        goals: Sequence[Goals],
        motions: MotionTests,
    ) -> list[_Admitted | Plan]:
        """Return problems with those goals that are free, or why there is no way."""
        manifold = motions.manifold
        ends = [
            np.concatenate([query.start[np.newaxis], each.q])
            for query, each in zip(queries, goals, strict=True)
        ]
        counts = [len(each) for each in ends]
        rows, of = np.concatenate(ends), np.repeat(np.arange(len(ends)), counts)
        violations, is_free = manifold.violations(rows), motions.are_free(rows, of)
        holds = np.asarray((violations <= PART_OF_TOLERANCE).all(axis=1))
        first = np.cumsum([0, *counts])
        found: list[_Admitted | Plan] = []
        for k, (query, each) in enumerate(zip(queries, goals, strict=True)):
            part = slice(first[k], first[k + 1])
            missed = self._missed(manifold, violations[part])
            if missed is None:
                verdicts = holds[part], is_free[part]
                missed = self._admitted_one(query, each, verdicts)
            found.append(missed)
        return found

    def kept_by(self, manifold: Manifold, start: Array, goals: Goals) -> Goals | Plan:
        """Return those goals at which constraints hold, or why there is no way."""
        violations = manifold.violations(np.concatenate([start[np.newaxis], goals.q]))
        missed = self._missed(manifold, violations)
        if missed is not None:
            return missed
        good = np.flatnonzero((violations[1:] <= PART_OF_TOLERANCE).all(axis=1))
        if len(good) == len(goals.q):
            return goals
        return Goals(goals.q[good], goals.numbers[good])

    def _missed(self, manifold: Manifold, violations: Array) -> Plan | None:
        """Return what is violated at a start or at all goals, if that is so.

        violations: Those of the start, then of the goals, shape (1 + k, parts).
        """
        holds: Truths = np.all(violations <= PART_OF_TOLERANCE, axis=1)
        if holds[0] and holds[1:].any():
            return None
        bad = np.flatnonzero(violations[int(holds[0])] > PART_OF_TOLERANCE)
        names = tuple(str(manifold.parts[k].asked) for k in bad)
        at_start, at_goal = PlanReason.START_VIOLATES, PlanReason.GOAL_VIOLATES
        return self.without(at_goal if holds[0] else at_start, violated=names)

    def _admitted_one(
        self,
        query: GraphQuery,
        goals: Goals,
        verdicts: tuple[Truths, Truths],
    ) -> _Admitted | Plan:
        """Return a problem with its free goals, by verdicts of start and goals."""
        holds, is_free = verdicts
        if not is_free[0]:
            touching = self.touching(query.start)
            return self.without(PlanReason.START_TOUCHES, pairs=touching)
        good = np.flatnonzero(holds[1:] & is_free[1:])
        if not len(good):
            first = goals.q[np.flatnonzero(holds[1:])[0]]
            return self.without(PlanReason.GOAL_TOUCHES, pairs=self.touching(first))
        return _Admitted(query._replace(goals=goals.q[good]), goals.numbers[good])

    def _plan(
        self,
        found: Searched,
        asked: _Admitted,
        motions: MotionTests,
        number: int,
        seconds: float,
    ) -> Plan:
        """Return what was found as the plan of one of the problems of motions."""
        is_late = is_over(asked.query.deadline)
        nothing = PlanReason.TIMED_OUT if is_late else PlanReason.NOT_FOUND
        way, goal = found.answer
        return Plan(
            q=np.empty((0, len(self.weights))) if way is None else way,
            reason=nothing if way is None else PlanReason.FOUND,
            proven=way is not None and found.is_proven,
            goal=-1 if way is None else int(asked.numbers[goal]),
            length=0.0 if way is None else motions.length_of(way),
            edges=int(motions.edges[number]),
            checks=int(motions.checks[number]),
            proofs=int(motions.proofs[number]),
            samples=found.samples,
            nodes=found.nodes,
            pairs=(),
            joints=(),
            seconds=seconds,
            resolution=self.step,
            check=self.check,
        )


class _Admitted(NamedTuple):
    """A problem whose start is free.

    Attributes:
        query: What is asked, with those goals that are free.
        numbers: The numbers of these, shape (k,).
    """

    query: GraphQuery
    numbers: npt.NDArray[np.int64]


def seconds_of(timeout: float | None, name: str = "timeout") -> float | None:
    """Return a timeout [s], None for none.

    Raises:
        ModelError: The timeout is not a number from 0 up.
    """
    if timeout is None or (type(timeout) is float and 0.0 <= timeout < LONGEST_SEARCH):
        return timeout
    seconds = float(timeout) if isinstance(timeout, Real) else math.nan
    if not seconds >= 0.0:
        raise ModelError(f"The {name} must be a number from 0 up, not {timeout!r}.")
    return None if seconds == math.inf else min(seconds, LONGEST_SEARCH)
