"""An arm with one joint more than a pose needs: nearest answers, and ways through all.

One joint f is given, so that the others have a closed form (`held_joints.py`). The
nearest answer to one pose is sought on a grid of f, then on finer ones.

A way leads through a graph of layers. Each of K poses along the path has a layer of
nodes (f, branch), f on a grid. A way of least sum of squared steps leads through them
(Viterbi 1967), from a node to those of the next layer whose f is at most a few grid
steps away; then f is on a finer grid around the way, twice. Between the K poses f is
interpolated, and of the branches there the one near the way is taken: each pose takes
one evaluation of a closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.ik.closed_forms.family import NotApplicable
from armillary.ik.closed_forms.program import FORBIDDEN, OUTSIDE
from armillary.ik.held_joints import HeldForm
from armillary.ik.method import RANKS, Candidates, residual_of, squares_from
from armillary.ik.problem import IKProblem
from armillary.ik.query import TOLERANCE, IKQuery
from armillary.ik.reason import ELBOW, SINGULAR, SOLVED
from armillary.ik.whole_turns import nearest_turns
from armillary.model.fields import kept

__all__ = ["FreeJoint", "free_joint", "row_candidate"]

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Whole = npt.NDArray[np.int64]
Rows = Callable[[Array], Array]

LAYERS, VALUES, FEW = 128, 96, (64, 32)
"""Poses with a layer and values of the joint in it, and of arms whose form is slow."""

SOME = 24
"""Values of which all branches of one pose are returned."""


class _JointGrid(NamedTuple):
    """Which values of the joint are tried for the nearest answer.

    Attributes:
        parts: First, as parts of the span of values.
        around: About the best of these, as parts of the distance between two.
        best: About how many.
    """

    parts: Array
    around: Array
    best: int


PLAIN: Final = _JointGrid(np.linspace(0.0, 1.0, 256), np.linspace(-1.0, 1.0, 17), 3)
TESTED: Final = _JointGrid(np.linspace(0.0, 1.0, 24), np.linspace(-1.0, 1.0, 9), 1)
"""Where answers are tested for collision, which takes longer than finding them."""

WIDER: Final = 4.0  # as far a joint without limits is tried if nothing is found
SUCCESSES: Final = SOLVED, SINGULAR
AT_ONCE: Final = 256  # targets of which the nearest answer is sought
BEHIND_Q: Final = 4  # numbers behind q in a row

AROUND: Final = np.linspace(-1.0, 1.0, 9)
FINER: Final = 4
"""Values around one that was chosen; then these are nearer to each other by this."""

MOST_SLIDES: Final = 3
"""As many joints may slide of six that have a formula; or none."""

REACH: Final = 2  # grid steps from one layer to the next at first
NEXT: Final = 1.0  # the most that a joint moves between layers [m or rad]
JUMP: Final = 1e6  # cost of a larger step
BESIDE: Final = 0.01  # an answer between layers that is as near is taken [m or rad]


def free_joint(problem: IKProblem) -> FreeJoint | None:
    """Return a joint that may be given, so that the others have a closed form.

    It is the last or the first of one more than a pose needs: that which leaves a
    formula, if one does. None where there is none, or only one that takes long because
    joints that are left slide.
    """
    return kept(problem, "free joint", lambda: _found(problem))


def _found(problem: IKProblem) -> FreeJoint | None:
    if len(problem.goals) != 1 or not problem.goals[0].is_whole:
        return None
    goal, chosen = problem.goals[0], problem.selection
    path = problem.tree.between([goal.frame, goal.relative_to])
    moving = problem.tree.moving_joints(path)
    used = [k for k, joint in enumerate(chosen.inputs) if joint in moving]
    if len(used) != 7 or chosen.passive or len(problem.rows):
        return None
    found: HeldForm | None = None
    for place in (used[-1], used[0]):
        slides = sum(not problem.turning[k] for k in used if k != place)
        if 0 < slides < MOST_SLIDES:  # no formula
            continue
        try:
            form = HeldForm(problem, (place,))
        except NotApplicable:
            continue
        if not form.branches:  # it is between the others
            continue
        if not form.is_general:
            return FreeJoint(problem, form)
        if found is None and not slides:
            found = form
    return None if found is None else FreeJoint(problem, found)


class FreeJoint:
    """A joint that may be given, and the closed form of the others.

    Attributes:
        problem: What is solved.
        place: The place in q of the joint.
    """

    def __init__(self, problem: IKProblem, form: HeldForm) -> None:
        """Prepare for a problem and the closed form for a given joint."""
        self.problem, self._form = problem, form
        self.place = problem.joints.index(form.joints[0])
        self._is_named = not form.is_general

    branches: tuple[tuple[str, ...], ...] = ()

    @property
    def is_quick(self) -> bool:
        """Return whether the others have a formula: about a microsecond for a pose."""
        return self._is_named

    def candidates(self, query: IKQuery, *, every: bool = False) -> Candidates:
        """Return all branches at SOME values of the joint, or the nearest answer.

        For that, see `nearest`; what it is to be near is `query.wanted`.
        """
        if every:
            low, high = self._ends
            values = np.linspace(low, high, SOME)
            return self.every_at(query, np.tile(values, (len(query.targets), 1)))
        return self.nearest(query, np.full(len(query.targets), np.inf))

    def nearest(self, query: IKQuery, least: Array) -> Candidates:
        """Return the nearest answer that is found, among many values of the joint.

        Args:
            query: The targets, and what answers are to be `near`.
            least: The sum of squares of steps of an answer that is known for each,
                infinite where there is none, shape (count,): no answer is sought where
                the joint alone is farther from `near` than that.
        """
        near = np.clip(query.wanted, *self.problem.finite_limits)
        query = query._replace(near=near)
        parts = [
            self._nearest(query.at(slice(k, k + AT_ONCE)), least[k : k + AT_ONCE])
            for k in range(0, max(len(least), 1), AT_ONCE)
        ]
        rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
        found = _candidates(rows)
        outside = np.flatnonzero(rows[:, -2] % 1.0 >= OUTSIDE)
        if outside.size:  # they are put at limits
            held = np.ascontiguousarray(rows[outside, self.place, np.newaxis])
            at = self._form.candidates(query.at(outside, held=held))
            found.take(outside, at)
        return found

    def answered(self, target: Array, near: Array, least: float) -> Array | None:
        """Return what `nearest` finds for one target as a row, None if no answer.

        Args:
            target: The pose, shape (4, 4).
            near: Joint positions within limits, shape (n,).
            least: As for `nearest`.

        Returns:
            Shape (n + 4,), see `HeldForm.nearest`; `row_candidate` makes a candidate.
        """
        kernel, allowed = self._form.nearest, self._form.allowed(TOLERANCE)
        assert kernel is not None

        def rows(values: Array) -> Array:
            held = values.reshape(-1, 1)
            return kernel(target, allowed, near, held, threads=1)[np.newaxis]

        place = slice(self.place, self.place + 1)
        (row,) = self._best(rows, near[place], np.array([least]), PLAIN)
        return row if row[-2] in SUCCESSES else None

    def _nearest(self, query: IKQuery, least: Array) -> Array:
        """Return the rows of `HeldForm.nearest` that are best, shape (count, n + 4)."""
        near = np.broadcast_to(query.wanted[..., self.place], len(least))
        if query.avoid is not None:
            return self._best(partial(self._free_rows, query), near, least, TESTED)

        def rows(values: Array) -> Array:
            return self._form.rows(query, values[..., np.newaxis])

        return self._best(rows, near, least, PLAIN)

    def _best(
        self, rows_at: Rows, near: Array, least: Array, grid: _JointGrid
    ) -> Array:
        """Return the best rows that are found for each target.

        The worth of the nearest branch at values of the joint has local minima. About
        the best few of them finer grids are searched, twice.

        Args:
            rows_at: Takes values, shape (count, V), to rows (count, V, n + 4).
            near: Of this joint, shape (count,).
            least: As for `nearest`.
            grid: Which values.
        """
        most = np.sqrt(least)
        if not self._is_endless:
            return _searched(rows_at, *self._span(near, most), grid)
        # Without limits no farther than what is known; else within a part, and then as
        # far as what is found there, or within a larger part.
        lower, upper = self._ends
        part = np.where(np.isinf(most), 0.5 * (upper - lower), most)
        best = _searched(rows_at, *self._span(near, part), grid)
        if np.isinf(most).any():
            found = np.sqrt(best[:, -1])
            part = np.where(best[:, -1] < FORBIDDEN, found, WIDER * part)
            wider = _searched(rows_at, *self._span(near, part), grid)
            better = np.isinf(most) & (wider[:, -1] < best[:, -1])
            best[better] = wider[better]
        return best

    def _span(self, near: Array, most: Array) -> tuple[Array, Array]:
        """Return the ends of the values of the joint that are tried, (count, 1).

        most: How far from `near` they may be, (count,).
        """
        low, high = (ends[self.place] for ends in self.problem.limits)
        ends = np.maximum(near - most, low), np.minimum(near + most, high)
        return ends[0][:, np.newaxis], ends[1][:, np.newaxis]

    @cached_property
    def _is_endless(self) -> bool:
        """Return whether the joint lacks a limit."""
        return not all(math.isfinite(x[self.place]) for x in self.problem.limits)

    def _free_rows(self, query: IKQuery, values: Array) -> Array:
        """Return rows at values, shape (count, V, n + 4), that touch nothing."""
        found, shape = self._form_at(query, values), values.shape
        q = found.q.reshape(*shape, -1)
        near = query.wanted[..., np.newaxis, :]
        reason = found.reason.reshape(shape)
        steps = ((q - near) ** 2).sum(axis=2)
        rows = np.empty((*shape, q.shape[2] + BEHIND_Q))
        rows[..., :-BEHIND_Q] = q
        rows[..., -4:-2] = squares_from(found.residual).reshape(*shape, 2)
        rows[..., -2] = reason
        rows[..., -1] = np.nan_to_num(steps) + FORBIDDEN * RANKS[reason]
        return rows

    def _form_at(
        self, query: IKQuery, values: Array, *, every: bool = False
    ) -> Candidates:
        """Return what the closed form finds at values of the joint, row by row."""
        count, width = values.shape
        rows: Whole = np.repeat(np.arange(count, dtype=np.int64), width)
        held = np.ascontiguousarray(values).reshape(-1, 1)
        return self._form.candidates(query.at(rows, held=held), every=every)

    def every_at(self, query: IKQuery, values: Array) -> Candidates:
        """Return all candidates for each target at its values, shape (count, V)."""
        found = self._form_at(query, values, every=True)
        return Candidates(
            q=found.q.reshape(len(values), -1, found.q.shape[2]),
            reason=found.reason,
            residual=lambda: found.residual,
            doubt=ELBOW,
        )

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """Return the least and greatest value of the joint that are tried."""
        low, high = self.problem.start_range
        return float(low[self.place]), float(high[self.place])

    def way(
        self,
        query: IKQuery,
        local: Callable[[IKQuery], Candidates],
        known: Array,
        start: Array | None,
        largest_step: Array,
        weights: Array,
        density: int = 1,
    ) -> Candidates:
        """Return a way through all answers to targets.

        Args:
            query: The targets, in order; at least one.
            local: A search from `near`, where the closed form has no answer near the
                way.
            known: A way that is known, shape (count, n): where few values of the joint
                lead to answers, the grid may miss them.
            start: Where the arm comes from, shape (n,).
            largest_step: A larger step of a joint to a target is a jump, shape
                (count, n) [m or rad].
            weights: How much a step of each joint counts, shape (n,).
            density: How many times as many poses as usual have a layer.
        """
        count = len(query.targets)
        layers, width = (LAYERS, VALUES) if self._is_named else FEW
        layers = min(density * layers, count)
        keys = np.unique(np.linspace(0, count - 1, layers).round().astype(np.int64))
        query = query._replace(near=query.home if start is None else start)
        k, (low, high) = self.place, self._ends
        grid = np.linspace(low, high, width)
        known = np.clip(known[keys, k], low, high)
        values = np.column_stack([np.tile(grid, (len(keys), 1)), known])
        values.sort(axis=1)
        if start is not None:
            values[0] = start[k]
        # From one layer to the next a joint may go as far as on all steps between.
        most = np.minimum(np.add.reduceat(largest_step, keys[:-1] + 1), NEXT)
        steps = most, weights
        q = self._through(query.at(keys), values, steps, start, REACH)
        spacing = (high - low) / (width - 1)
        for _ in range(2):
            values = np.clip(q[:, k, None] + spacing * AROUND, low, high)
            if start is not None:
                values[0] = start[k]
            q = self._through(query.at(keys), values, steps, start, len(AROUND) - 1)
            spacing /= FINER
        every: Array = np.arange(count, dtype=np.float64)
        columns: list[Array] = [np.interp(every, keys, column) for column in q.T]
        near: Array = self.problem.within(np.stack(columns, axis=1))
        held = np.ascontiguousarray(near[:, k, None])
        found = self._form.candidates(query._replace(near=near, held=held))
        found = found.nearest(near)
        # Where branches meet, the joint may turn back, so that the way has no answer at
        # the value between two layers: a search from there finds what is beside it.
        solved = found.success[:, 0]
        steps = np.where(solved, ((found.q[:, 0] - near) ** 2).sum(axis=1), np.inf)
        far = np.flatnonzero(~(steps <= BESIDE**2))
        if far.size:
            beside = local(query.at(far, near=near[far]))
            others = ((beside.q[:, 0] - near[far]) ** 2).sum(axis=1)
            better = beside.success[:, 0] & (others < steps[far])
            found.take(far[better], beside, better)
        return found

    def _through(
        self,
        query: IKQuery,
        values: Array,
        measure: tuple[Array, Array],
        start: Array | None,
        reach: int,
    ) -> Array:
        """Return q (K, n) of the best way through layers; NaN becomes what is beside.

        Args:
            query: Their targets.
            values: Of the given joint in each, shape (K, G).
            measure: The largest step of each joint from each to the next, shape
                (K - 1, n), and how much a step of each counts, shape (n,).
            start: Where the arm comes from, shape (n,).
            reach: By how many places in `values` neighbours may differ.
        """
        q, ok = self._nodes(query, values)
        layers, width, branches, n = q.shape
        cost = np.where(ok[0], 0.0, np.inf)
        if start is not None:
            moved = np.abs(q[0] - start)
            size, is_far = (measure[1] * moved).max(axis=-1), moved.max(axis=-1) > NEXT
            cost = np.where(ok[0], size * size + JUMP * is_far, np.inf)
        sources = self._sources(width, branches, reach)
        steps = self._steps(q, *measure, sources)
        numbers: Whole = np.arange(width * branches, dtype=np.int64)
        places = numbers.reshape(width, branches)
        back = np.zeros((layers, width, branches), np.int64)
        for t in range(1, layers):
            if not ok[t].any():  # the way goes on from what is known
                q[t], ok[t], back[t] = q[t - 1], ok[t - 1], places
                continue
            total = steps[t - 1] + cost.ravel()[sources]
            k = total.argmin(axis=2)[..., None]
            cost = np.take_along_axis(total, k, axis=2)[..., 0]
            back[t] = np.take_along_axis(sources, k, axis=2)[..., 0]
            cost = np.where(ok[t], cost, np.inf)
            if not np.isfinite(cost).any():  # it begins anew
                cost = np.where(ok[t], JUMP, np.inf)
        way = np.empty((layers, n))
        place = int(cost.argmin())
        for t in range(layers - 1, -1, -1):
            way[t] = q[t].reshape(-1, n)[place]
            place = int(back[t].flat[place])
        return self._unwound(way, start)

    def _sources(self, width: int, branches: int, reach: int) -> Whole:
        """Return from which nodes of the layer before one is entered, (G, b, m).

        Branches that have names stay the same, except from the same place in G: there
        the way may pass a singularity.
        """
        g = np.arange(width)[:, None, None]
        others = np.arange(branches)
        shifts = np.arange(-reach, reach + 1)
        if self._is_named:
            same = np.clip(g - shifts, 0, width - 1) * branches + others[:, None]
            any_ = np.broadcast_to(g * branches + others, (width, branches, branches))
            return np.concatenate([same, any_], axis=2)
        before = np.clip(g - shifts[:, None], 0, width - 1) * branches + others
        shape = width, branches, len(shifts) * branches
        return np.broadcast_to(before.reshape(width, 1, -1), shape)

    def _steps(
        self, q: Array, most: Array, weights: Array, sources: Whole
    ) -> npt.NDArray[Any]:
        """Return the costs of steps to nodes of the next layer, (K - 1, G, b, m).

        Args:
            q: Nodes, shape (K, G, b, n).
            most: The largest step of each joint from each layer to the next, shape
                (K - 1, n).
            weights: How much a step of each counts, shape (n,).
            sources: The nodes that they are entered from, shape (G, b, m).
        """
        layers, *nodes, n = q.shape
        numbers = np.ascontiguousarray(np.moveaxis(q, 3, 0), dtype=np.float32)
        numbers = numbers.reshape(n, layers, -1)
        largest: npt.NDArray[Any] = np.zeros((), np.float32)
        excess: npt.NDArray[Any] = largest  # over what the joint may move
        is_even = (most * weights == most[:, :1]).all()
        parts = (1.0 / most).astype(np.float32).T[:, :, None, None, None]
        for one, turns, weight, part in zip(
            numbers, self._turns, weights.tolist(), parts, strict=True
        ):
            step = one[:-1].take(sources, axis=1)
            step -= one[1:].reshape(layers - 1, *nodes, 1)
            if turns:
                step -= np.float32(math.tau) * np.rint(step * np.float32(1 / math.tau))
            step = np.abs(step, out=step)
            if not is_even:  # one array less, in the usual case
                excess = np.maximum(excess, step * part)
                step *= np.float32(weight)
            largest = np.maximum(largest, step)
        if is_even:
            is_over = largest > most[:, 0, None, None, None]
        else:
            is_over = excess > np.float32(1.0)
        return largest**2 + JUMP * is_over

    def _nodes(self, query: IKQuery, values: Array) -> tuple[Array, Truths]:
        """Return q (K, G, b, n) of all branches at values, and which succeed."""
        layers, width = values.shape
        found = self.every_at(query, values)
        n = found.q.shape[2]
        q, ok = found.q.reshape(layers * width, -1, n), found.success
        ok = ok.reshape(q.shape[:2])
        if not self._is_named:
            q, ok = _first(q, ok)
        q = np.where(ok[..., None], q, 0.0)
        shape = layers, width, q.shape[1]
        return q.reshape(*shape, n), ok.reshape(shape)

    @cached_property
    def _turns(self) -> Truths:
        """Return which joints may be whole turns apart within limits, shape (n,)."""
        low, high = self.problem.limits
        return self.problem.turning & (high - low > math.tau)

    def _unwound(self, way: Array, start: Array | None) -> Array:
        """Return a way on which joints that turn do so as little as limits allow."""
        problem = self.problem
        came = way[0] if start is None else start
        for t, q in enumerate(way):
            way[t] = came = nearest_turns(q, came, problem.limits, problem.turning)
        return way


def _searched(rows_at: Rows, low: Array, high: Array, grid: _JointGrid) -> Array:
    """Return the best rows for values between ends (count, 1), see `_best`."""
    each = np.arange(len(low))[:, np.newaxis]
    values = low + (high - low) * grid.parts
    worth = rows_at(values)[..., -1]
    # Local minima, the best first; where there are fewer, any others.
    is_least = np.ones(worth.shape, np.bool_)
    falls = worth[:, 1:] < worth[:, :-1]
    is_least[:, :-1] &= ~falls
    is_least[:, 1:] &= worth[:, 1:] <= worth[:, :-1]
    order = np.where(is_least, worth, np.inf).argpartition(grid.best, axis=1)
    centre = values[each, order[:, : grid.best]]
    spacing = (high - low)[..., np.newaxis] / (len(grid.parts) - 1)
    rows = np.empty(0)
    for _ in range(2):
        values = centre[..., np.newaxis] + spacing * grid.around
        values = np.minimum(np.maximum(values, low[..., None]), high[..., None])
        rows = rows_at(values.reshape(len(low), -1))
        places = rows[..., -1].reshape(values.shape).argmin(axis=2)
        centre = np.take_along_axis(values, places[..., np.newaxis], axis=2)[..., 0]
        spacing = spacing * (grid.around[1] - grid.around[0])
    best: Whole = rows[..., -1].argmin(axis=1)
    return rows[each[:, 0], best]


def _candidates(rows: Array) -> Candidates:
    """Return the candidates that are rows with numbers behind q."""
    n = rows.shape[1] - BEHIND_Q
    return Candidates(
        q=np.ascontiguousarray(rows[:, np.newaxis, :n]),
        reason=rows[:, n + 2].astype(np.int8),
        residual=residual_of(rows[:, n : n + 2]),
    )


def row_candidate(row: Array) -> Candidates:
    """Return the candidate that is a row of `FreeJoint.answered`."""
    found = _candidates(row[np.newaxis])
    found.settled = True
    return found


def _first(q: Array, ok: Truths) -> tuple[Array, Truths]:
    """Return answers, those that succeed first, as few as there are at most."""
    most = max(int(ok.sum(axis=1).max(initial=0)), 1)
    order = np.argsort(~ok, axis=1, kind="stable")[:, :most]
    chosen = np.take_along_axis(q, order[..., None], axis=1)
    return chosen, np.take_along_axis(ok, order, axis=1)
