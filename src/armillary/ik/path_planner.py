"""PathPlanner of paths: which answers to a sequence of targets are compared.

`PathPlanner.follow` stops at the first of these ways that does not jump:

1. Each target is searched from the answer before, from up to 1 + MOST_BEGINNINGS
   answers to the first target.
2. Joints that targets leave free are made to move more evenly (`evened`): the answer at
   each target is sought near the mean of those around it, so that a step is spread over
   its neighbours. Means of many neighbours first, then of fewer.
3. The shortest way through all answers that are known to each target (`path_graph.py`):
   the branches of a closed form, at arm angles refined around those of the best way so
   far; without a closed form, ways followed to both ends from answers to a few targets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.ik.answer import answer
from armillary.ik.free_joint import free_joint
from armillary.ik.general_form import GeneralForm
from armillary.ik.held_joints import HeldForm
from armillary.ik.method import Candidates
from armillary.ik.numeric import NumericSearch
from armillary.ik.path import Path, are_large, best_of, cost_of, judged, steps_of
from armillary.ik.path_graph import WholeTurns, through
from armillary.ik.query import IKQuery
from armillary.ik.reason import Reason
from armillary.ik.recognised_form import RecognisedForm, has_free_elbow
from armillary.ik.solution import SAME, Solution
from armillary.ik.user_form import UserForm
from armillary.kernel.search import SearchOptions

Array = npt.NDArray[np.float64]

AT_ONCE = 4096  # targets that are planned together
# Finer and finer arm angles around those that were chosen of 24 [rad].
FINER = [np.linspace(-1.0, 1.0, 9) * math.tau / 24 / 4.0**k for k in range(3)]
# Without a closed form, ways are followed from answers to a few targets to both ends.
MOST_BEGINNINGS = 8
MOST_ORIGINS, MOST_ANSWERS, APART = 6, 12, 1e-3
TRACKING = SearchOptions(steps=40, stale_from=16, starts=4)
# Of paths that are made even.
NARROWEST = 2  # targets to either side that a mean is taken of
ROUNDS = 8
FREE_ROUNDS = 3
DENSITIES = 1, 2  # of poses with all branches: the way between jumps may be narrow
ENOUGH = 0.98  # a round that leaves more than this part of the squares of steps ends


class PathPlanner(msgspec.Struct, frozen=True, dict=True):
    """Finds the way through the answers to a sequence of targets.

    Attributes:
        forms: The closed forms that may be used.
        numeric: The search.
        query: The targets; its arm angle is that of the closed form.
        largest_step: Above which a step of each joint to each target is a jump, shape
            (count, n) [m or rad].
        weights: How much a step of each joint counts, shape (n,).
    """

    forms: Sequence[RecognisedForm | GeneralForm | UserForm | HeldForm]
    numeric: NumericSearch
    query: IKQuery
    largest_step: Array
    weights: Array

    def branches(self, came: Array | None) -> Path:
        """Return the best way through the branches of the closed form.

        came: Where the arm comes from, shape (n,).
        """
        way = answer(self.forms, self.numeric, self.query._replace(near=came))
        return self.plan([way], came)

    def follow(self, came: Array | None) -> Path:
        """Return the best way, each answer sought from the one before.

        Where it jumps, or targets leave joints free and a step is much larger than the
        mean or joints have weights, what is free is made to move more evenly. Where
        that does not help, the way is sought through all answers to each target, too;
        not for a large step alone if there is no arm angle, since that takes long.

        Args:
            came: Where the arm comes from, shape (n,).
        """
        starts = self._beginnings() if came is None else [came]
        ways = [self.numeric.follow(self.query, q) for q in starts]
        paths = [self._judged(way, came) for way in ways]
        k = 0
        if len(paths) > 1:
            k = min(range(len(paths)), key=lambda k: self._cost(paths[k]))
        best = paths[k]
        # what is free can drift to a singularity, and speed up slowly there
        jumped, is_free = bool(best.jumps.size), self._is_free
        is_weighted = bool(self.weights.min() < 1.0)
        if not (jumped or (is_free and (is_weighted or best.is_uneven))):
            return best
        best = self._evened(best, came)
        if best.jumps.size or (is_free and (is_weighted or best.is_uneven)):
            best = self._by_free_joint(best, came)
        if self.query.is_late:
            return best
        plans_for_speed = is_free and jumped
        if self._elbow_is_free:  # takes long, and its branches were compared before
            plans_for_speed = is_free and not self._has_free_joint
        if not (best.jumps.size or (plans_for_speed and best.is_uneven)):
            return best
        planned = self.plan([ways[k], *ways], came)
        return best_of([best, self._evened(planned, came)], self.weights)

    def _by_free_joint(self, best: Path, came: Array | None) -> Path:
        """Return a better path through all branches at values of a free joint.

        Each round looks around the best path so far as well.
        """
        if not self._has_free_joint or self.query.is_late:
            return best
        free = free_joint(self.numeric.problem)
        assert free is not None
        measure = self.largest_step, self.weights
        for density in DENSITIES:
            for _ in range(FREE_ROUNDS if density == 1 else 1):
                known, before = best.answer.q, self._cost(best)
                way = free.way(
                    self.query, self.numeric.local, known, came, *measure, density
                )
                path = self._judged(way, came)
                best = best_of([best, path, self._evened(path, came)], self.weights)
                cost = self._cost(best)
                if cost[0] == before[0] and cost[1] > ENOUGH * before[1]:
                    break
            if not best.jumps.size or self.query.is_late:
                break
        return best

    def _beginnings(self) -> list[Array]:
        """Return joint positions from which a path may begin, each of shape (n,)."""
        home = self.query.home
        if not len(self.query.targets):
            return [home]
        first = answer(self.forms, self.numeric, self.query.at([0], near=home))
        q = first.q[0, 0]
        if not first.success.all():
            return [q if np.isfinite(q).all() else home]
        others = self._every(0)
        return [q, *others[:: -(-len(others) // MOST_BEGINNINGS) or 1]]

    def plan(self, ways: list[Candidates], came: Array | None) -> Path:
        """Return the best way through all answers that are known to each target.

        Args:
            ways: Ways that are known; what the first says of targets without an answer
                is returned for these.
            came: Where the arm comes from, shape (n,).
        """
        known, start = ways[0], came
        for way in ways[1:]:
            known = known.joined(way)
        pieces: list[Candidates] = []
        for first in range(0, len(known.q), AT_ONCE):
            rows = slice(first, first + AT_ONCE)
            if self.query.is_late:
                piece = ways[0].at(rows)
            else:
                most = self.largest_step[rows]
                piece = self._planned(self.query.at(rows), known.at(rows), start, most)
            pieces.append(piece)
            solved = np.flatnonzero(piece.success[:, 0])
            start = piece.q[solved[-1], 0] if solved.size else start
        if not pieces:
            return self._judged(ways[0], None)
        q, residual, reason = (
            np.concatenate([getattr(piece, name) for piece in pieces])
            for name in ("q", "residual", "reason")
        )
        steps, starts = ways[0].steps, ways[0].starts
        way = Candidates(
            q=q, reason=reason, residual=residual, steps=steps, starts=starts
        )
        return self._judged(way, came)

    def _judged(self, way: Candidates, came: Array | None) -> Path:
        """Return the path of answers to all targets."""
        moves, weights = self._moves, self.weights
        return judged(way, self.largest_step, came, moves=moves, weights=weights)

    def _cost(self, path: Path) -> tuple[int, float]:
        return cost_of(path, self.weights)

    def _evened(self, path: Path, came: Array | None) -> Path:
        """Return a path on which what is free moves more evenly."""
        if not self._is_free:
            return path
        judge = partial(self._judged, came=came)
        local, most = self.numeric.local, self.largest_step
        return evened(path, self.query, local, judge, most, self.weights)

    def _planned(
        self, query: IKQuery, known: Candidates, start: Array | None, most: Array
    ) -> Candidates:
        """Return the way through what is known and the other answers to targets."""
        problem = self.numeric.problem
        around = query.home if start is None else start
        turns = WholeTurns(problem.turning, problem.limits, around)

        def best(layers: Candidates) -> Candidates:
            return through(layers, turns, most, start, self.weights)

        if query.is_late:
            return best(known)
        if not self.forms:
            return best(known.joined(self._tracks(query, known)))
        form = self.forms[0]
        known = best(known.joined(form.candidates(query, every=True)))
        if not self._elbow_is_free or form.arm_angle is None:
            return known
        for finer in FINER:
            if query.is_late:
                break
            chosen = np.nan_to_num(form.arm_angle(known.q[:, 0]))
            angles = query._replace(arm_angle=chosen[:, np.newaxis] + finer)
            known = best(known.joined(form.candidates(angles, every=True)))
        return known

    def _tracks(self, query: IKQuery, known: Candidates) -> Candidates:
        """Return ways to both ends from the answers to a few of the targets."""
        reached = np.flatnonzero(known.success.any(axis=1))
        q = known.q[reached, 0]
        tracks: list[tuple[npt.NDArray[Any], ...]] = []
        for origin in self._origins(q):
            for one in self._every(reached[origin])[:MOST_ANSWERS]:
                seen = [q[origin], *(track[0][origin] for track in tracks)]
                if query.is_late or self._is_among(one, seen):
                    continue
                there = self._followed(query.at(reached[origin:]), one)
                back = self._followed(query.at(reached[origin::-1]), one)
                tracks.append(
                    tuple(
                        np.concatenate([b[:0:-1], a])
                        for a, b in zip(there, back, strict=True)
                    )
                )
        shape = len(known.q), len(tracks)
        layers = Candidates(
            q=np.zeros((*shape, known.q.shape[2])),
            reason=np.full(shape, Reason.NOT_FOUND, np.int8),
            residual=np.zeros((*shape, 2)),
        )
        for k, track in enumerate(tracks):
            layers.q[reached, k], layers.reason[reached, k] = track[:2]
            layers.residual[reached, k] = track[2]
        return layers

    def _followed(self, query: IKQuery, start: Array) -> tuple[npt.NDArray[Any], ...]:
        """Return q, reason and residual of targets that are followed from a start."""
        query = query._replace(explain=False)
        way = self.numeric.follow(query, start, TRACKING)
        return way.q[:, 0], way.reason[:, 0], way.residual[:, 0]

    def _every(self, k: int) -> Array:
        """Return the distinct answers to one of the targets, shape (m, n)."""
        first = [*self.forms, self.numeric][0]
        query = self.query.at([k], near=self.query.home)
        answers = first.candidates(query, every=True)
        q = answers.q[answers.success]
        return q[self.numeric.problem.distinct(q, SAME)]

    def _origins(self, q: Array) -> list[int]:
        """Return targets to begin at: both ends, and where a way jumps."""
        if not len(q):
            return []
        steps = np.abs(np.diff(q, axis=0)).max(axis=1, initial=0.0)
        jumps = np.argsort(-steps, kind="stable")[: MOST_ORIGINS - 2] + 1
        return list(dict.fromkeys([0, len(q) - 1, *jumps.tolist()]))

    def _is_among(self, q: Array, others: list[Array]) -> bool:
        """Return whether one of other answers is the same but for whole turns."""
        both = np.array([*others, q])
        return len(others) not in self.numeric.problem.distinct(both, APART)

    @cached_property
    def _moves(self) -> Array:
        """Return how far each target is from the one before, shape (count,).

        That is a norm of all that changes, lengths as parts of the arm's.
        """
        targets = self.query.targets
        scale = np.ones((4, 4))
        scale[:3, 3] /= self.numeric.problem.size
        rows = (targets * scale).reshape(len(targets), scale.size * targets.shape[1])
        moves = np.zeros(len(rows))
        change = rows[1:] - rows[:-1]
        moves[1:] = np.sqrt(np.einsum("ij,ij->i", change, change))
        return moves

    @property
    def _is_free(self) -> bool:
        """Return whether targets leave joints free, and a search can use that."""
        problem = self.numeric.problem
        is_free = problem.is_redundant and self.query.arm_angle is None
        return is_free and problem.can_search

    @property
    def _has_free_joint(self) -> bool:
        """Return whether all branches at values of one joint can be compared."""
        return self._is_free and free_joint(self.numeric.problem) is not None

    @property
    def _elbow_is_free(self) -> bool:
        return has_free_elbow([*self.forms, self.numeric][0], self.query)


def evened(
    path: Path,
    query: IKQuery,
    local: Callable[[IKQuery], Candidates],
    judge: Callable[[Candidates], Path],
    largest_step: float | Array,
    weights: Array | None = None,
) -> Path:
    """Return a path on which joints that targets leave free move more evenly.

    The joint positions at each target are sought near the mean of those around it,
    first of many, which spreads a sudden motion widely, then of fewer. The result has
    no higher cost than the path.

    Args:
        path: Where to begin.
        query: Its targets.
        local: Finds answers close to `near`.
        judge: Tells the jumps of answers.
        largest_step: A larger step of a joint is a jump, over which a mean may not go
            [m or rad], shape (), (n,) or (count, n).
        weights: How much a step of each joint counts, shape (n,); by default 1.
    """
    best, least = path, _cost(path.answer.q, largest_step, weights)
    for _ in range(ROUNDS):
        before = least
        width = len(path.answer.q) // 2
        while width >= NARROWEST:
            for most in (np.inf, largest_step):
                if query.is_late:
                    break
                way = _nearer_to_means(best.answer, width, most, query, local)
                if way is None:
                    continue
                cost = _cost(way.q[:, 0], largest_step, weights)
                if cost < least:
                    best, least = judge(way), cost
            width //= 2
        if least[0] == before[0] and least[1] > ENOUGH * before[1]:
            break
    return best_of([best, path], weights)


def _cost(
    q: Array, largest_step: float | Array, weights: Array | None
) -> tuple[int, float]:
    """Return how many steps are large, and the sum of squares of the others."""
    steps = steps_of(q)
    is_large = are_large(steps, largest_step)
    if weights is not None:
        steps *= weights[:, np.newaxis]
    small = steps.max(axis=0, initial=0.0)[~is_large]
    return int(is_large.sum()), float(small @ small)


def _nearer_to_means(
    answer: Solution,
    width: int,
    most: float | Array,
    query: IKQuery,
    local: Callable[[IKQuery], Candidates],
) -> Candidates | None:
    """Return answers nearer to the means of those around them; None if one is lost.

    Args:
        answer: The answers to the targets.
        width: How many to either side a mean is taken of.
        most: The largest step over which a mean goes [m or rad], as `largest_step`.
        query: The targets.
        local: Finds answers close to `near`.
    """
    solved = answer.success
    near = _means(answer.q, width, _segments(answer.q, solved, most))
    nearer = local(query._replace(near=near))
    if not (nearer.success[:, 0] | ~solved).all():
        return None
    rows = solved[:, None]
    q = np.where(rows, nearer.q[:, 0], answer.q)
    residual = np.where(rows, nearer.residual[:, 0], answer.residual)
    return Candidates(
        q=q[:, None],
        reason=np.where(solved, nearer.reason[:, 0], answer.reason)[:, None],
        residual=residual[:, None],
        steps=answer.steps[:, None],
        starts=answer.starts[:, None],
    )


def _segments(
    q: Array, solved: npt.NDArray[np.bool_], most: float | Array
) -> list[slice]:
    """Return runs of solved targets without a step of a joint beyond `most`."""
    ends = are_large(steps_of(q), most)[1:] | ~solved[1:] | ~solved[:-1]
    edges = [0, *(np.flatnonzero(ends) + 1).tolist(), len(q)]
    return [slice(a, b) for a, b in pairwise(edges)]


def _means(q: Array, width: int, segments: list[slice]) -> Array:
    """Return the means of q over `width` rows to either side, shape (count, n).

    Beyond its ends a segment goes on point-symmetrically, so that the ends stay.
    """
    # A mean of 2 w + 1 rows is a difference of two running sums. Beyond an end p a
    # segment goes on as 2 p - q, so that the mean there is p.
    means = q.copy()
    for rows in segments:
        part = q[rows]
        w = min(width, len(part) - 1)
        if w < 1:
            continue
        before, after = (
            2.0 * part[0] - part[w:0:-1],
            2.0 * part[-1] - part[-2 : -w - 2 : -1],
        )
        sums = np.cumsum(np.concatenate([before, part, after]), axis=0)
        sums = np.concatenate([np.zeros((1, q.shape[1])), sums])
        means[rows] = (sums[2 * w + 1 :] - sums[: -2 * w - 1]) / (2 * w + 1)
    return means
