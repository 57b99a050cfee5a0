"""All answers of an arm of six joints, in stages that run where needed.

Each solution of a target is a real root of its determinant. The roots of both orders
say how many may be real, within what rounding may have done to them; a target that has
as many solutions as that in either order has all of them. Other targets go on:

1. Every target in the better order of the arm, one search near each root; where that
   leaves doubt, the other order (`first_search.py`).
2. The clusters of roots again, their angles corrected first, and all roots of the other
   order. Where roots are inexact: Newton's method from the solutions of displaced
   targets, too.
3. The angles of all roots, real or not, and many next to those that may be.
4. Newton's method from next to each solution, along both directions in which the arm
   moves least.
5. Where roots are inexact: Newton's method from anywhere, as far as it leads to
   solutions that stand alone.

A target that has fewer after that is unsure: it may have others. Where the roots of
both orders are rounding alone, solutions may form curves.

Arms of which one or two joints slide have equations of their own in the first stage
(`one_slide.py`, `two_slides.py`), and of these the number of real roots; if one slides,
mostly in one order alone. Later stages, and the other order, search by turns about far
axes (`geometry.py`), whose roots prove nothing. With three slides that is all: each
target goes through all stages, and is in doubt.

Terms: a root is *isolated* or in a *cluster*, if others are near; its *error* [rad] is
what rounding may have done to it (`roots.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.ik.closed_forms.family import NotApplicable, require
from armillary.ik.closed_forms.general_6r.first_search import STATE
from armillary.ik.closed_forms.general_6r.found_solutions import (
    FoundSolutions,
    distinct,
)
from armillary.ik.closed_forms.general_6r.geometry import (
    SixAxes,
    drawn,
    jacobians,
    weakest,
)
from armillary.ik.closed_forms.general_6r.orders import (
    ERROR,
    MISSED,
    SEARCHES,
    Order,
    called,
)
from armillary.ik.closed_forms.general_6r.roots import (
    CLUSTERED,
    ISOLATED,
    NEAR_ANOTHER,
)
from armillary.ik.closed_forms.general_6r.stages import polish_kernel
from armillary.kernel import Kernel

__all__ = ["SixAxesSolver", "Solutions"]

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Whole = npt.NDArray[np.int64]

MOST = 16
"""Solutions of a generic target, at most (Lee and Liang 1988)."""

SAMPLES = 128
SAME, MOST_LOST = 1e-3, 6
INEXACT = 2e-4
"""Error of roots in both orders from which on all of them are tried."""

ROUNDING = 5e-3
"""Error of roots in the better order from which on they are rounding alone."""

ROUNDING_IF_EMPTY = 1e-4
"""The same where they led to no solution."""

DISPLACED_FROM = 3e-5
"""Error of roots in either order from which on displaced targets are solved."""

FARTHER_FROM = 5e-5
"""Error of roots in the better order from which on some farther away are, too."""

SELF_MOTION = 1e-9
"""Least singular value of arms that move with their last frame at rest."""

STILL = 0.3
"""Largest angle from which a joint that stays at zero is put there [rad]."""

ROUNDS, NEARLY = 2, 1e-6
"""Rounds of Newton's method after the first; an error that would fall further."""

_HALF = np.array([[0.0, 0.002, 0.004], [-0.002, 0.0, -0.003], [-0.004, 0.003, 0.0]])
_AWAY = np.eye(4)
_AWAY[:3, :3] = np.linalg.solve(np.eye(3) - _HALF, np.eye(3) + _HALF)  # Cayley
_AWAY[:3, 3] = 0.006, -0.005, 0.007
DISPLACED: tuple[Array, Array] = _AWAY, np.linalg.inv(_AWAY).astype(np.float64)
"""A turn [rad] and a shift of 0.01 in no special direction: one for each order."""

FARTHER = 3, 10
"""How many times as far those are that are farther away."""

SCALES = 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0
"""How far from solutions others are looked for [rad]."""

FIRST_AT_ONCE = 512
"""Targets of the first search in one call: its arrays stay in the cache."""

AT_ONCE = 20_000
"""Starts of Newton's method next to solutions that are tried in one call, about."""

ANYWHERE, NEAREST, HOPEFUL, HOPEFUL_ROUNDS = 1024, 64, 0.3, 4
"""Joint positions anywhere, and how many of them Newton's method starts from, whose
poses are nearest to a target; after two rounds from there those whose error is less go
on, for as many more."""

ANYWHERE_FROM = 1e-5
"""Error of roots in the better order from which on Newton's method starts there."""

SHIFTS = 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 4e-2
ONE, TWO, AGAIN = range(len(SEARCHES))
"""Near a root: search for one solution, for two, for two and from there again."""


class Solutions(NamedTuple):
    """The solutions of targets, one behind the other.

    Attributes:
        rows: The target of each, in order, shape (m,).
        angles: Of the axes [rad], shape (m, 6).
        unsure: Which targets may have others, shape (count,).
        infinite: Which of these may have infinitely many, shape (count,).
    """

    rows: Whole
    angles: Array
    unsure: Truths
    infinite: Truths


class SixAxesSolver:
    """The kernels of an arm, and in which order it is cut.

    Attributes:
        arm: Its axes.
    """

    def __init__(self, arm: SixAxes) -> None:
        """Choose the order of an arm by what is found at some of its poses.

        Raises:
            NotApplicable: Known joint angles are not found at their own poses.
        """
        self.arm = arm
        links = arm.scaled
        self._links = links
        rng = np.random.default_rng(99)
        q, poses = drawn(rng, links, arm.slides, SAMPLES)
        self._orders = [Order(arm, poses, hides_five=five) for five in (True, False)]
        first = [self._first(order, poses, None) for order in self._orders]
        both = distinct([FoundSolutions.joined([x for x, *_ in first]).ordered()])
        counts = both.counts
        if self._is_mixed or self._lost(q, both) > MOST_LOST:
            whole = self._of_six(poses, None)
            counts = np.bincount(whole.rows, minlength=SAMPLES)
            lost = self._lost(q, whole)
            require(lost <= MOST_LOST, self._why_lost(q))
        # The order that leaves fewer targets in doubt; where that proves nothing, the
        # one that misses fewer solutions without noticing, then fewer at all.
        costs: list[tuple[bool, int, int]] = []
        for order, (found, is_whole, _) in zip(self._orders, first, strict=True):
            unnoticed = self._is_mixed & is_whole & (found.counts < counts)
            doubts = int(unnoticed.sum()), int((~is_whole).sum())
            costs.append((not order.is_exact, *doubts))
        if costs[1] < costs[0]:
            self._orders.reverse()

    def _why_lost(self, q: Array) -> str:
        """Return why answers of samples are not found, to say to users."""
        J = jacobians(self._links, self.arm.slides, q)
        if np.median(np.linalg.svd(J, compute_uv=False)[:, -1]) < SELF_MOTION:
            return "its axes leave infinitely many answers to a pose"
        return "of its axes the equations vanish, or have equal roots, at all poses"

    def _lost(self, q: Array, found: Solutions | FoundSolutions) -> int:
        """Return for how many samples the nearest answer is not what they are made of.

        Then, or where there are too many, the arm has infinitely many.
        """
        gap = found.angles - q[found.rows]
        gap = np.abs(np.where(self.arm.slides, gap, _wrapped(gap))).max(axis=1)
        own = np.full(SAMPLES, np.inf)
        np.minimum.at(own, found.rows, gap)
        counts = np.bincount(found.rows, minlength=SAMPLES)
        return int(((own > SAME) | (counts > MOST)).sum())

    @cached_property
    def first(self) -> Kernel | None:
        """Return the kernel of the first search where what it is sure of is the answer.

        Its input is `inner`, see `solve`; its outputs are those of `search_kernel`.
        """
        if self._is_mixed or self._stilled is not None:
            return None
        return self._orders[0].first

    def solve(
        self,
        inner: Array,
        *,
        first: Sequence[Array] | None = None,
        threads: int | None = None,
    ) -> Solutions:
        """Return all solutions of targets.

        Where some axes stay at zero, those are joint positions that miss the targets
        least, of all those that may reach them.

        Args:
            inner: The last axis's frame in that of the first, lengths in units of the
                arm's `scale`, shape (count, 4, 4).
            first: What the kernel `first` has found, if it was asked.
            threads: As for kernels.
        """
        whole = self._of_six(inner, threads, first)
        return (
            whole if self._stilled is None else self._put_still(whole, inner, threads)
        )

    def _put_still(
        self, whole: Solutions, inner: Array, threads: int | None
    ) -> Solutions:
        """Return solutions with the axes at zero that stay there, and close to it are.

        Unsure is only what is so with another choice of these axes, too.
        """
        assert self._stilled is not None
        angles = whole.angles[:, self.arm.moves :]
        is_close = (np.abs(_wrapped(angles)) < STILL).all(axis=1)
        counts = np.bincount(whole.rows[is_close], minlength=len(inner))
        # where none is close the others lead to a miss, of which the least is wanted
        close = np.flatnonzero(is_close | (counts == 0)[whole.rows])
        rows = whole.rows[close]
        q, _, keys, regular = called(
            self._stilled, threads, inner[rows], whole.angles[close]
        )
        parts = [FoundSolutions(rows, q, keys, regular, len(inner))]
        unsure, infinite = whole.unsure, whole.infinite
        again = np.flatnonzero(unsure)
        if again.size and self._other is not None:
            solver, front, back = self._other
            there = np.ascontiguousarray(front @ inner[again] @ back)
            more = solver.solve(there, threads=threads)
            unsure, infinite = unsure.copy(), infinite.copy()
            unsure[again], infinite[again] = more.unsure, more.infinite
            rows = again[more.rows]
            q, _, keys, regular = called(
                self._stilled, threads, inner[rows], more.angles
            )
            parts.append(FoundSolutions(rows, q, keys, regular, len(inner)))
        found = distinct(parts).ordered()
        return Solutions(found.rows, found.angles, unsure, infinite)

    @cached_property
    def _polish(self) -> Kernel:
        """Return Newton's method, of which the first search has its own."""
        return polish_kernel(self._links[:, :3], self.arm.slides, len(self.arm.slides))

    @cached_property
    def _stilled(self) -> Kernel | None:
        """Return Newton's method with axes that stay at zero, None where all move."""
        moves = self.arm.moves
        if moves == len(self.arm.slides):
            return None
        # tolerances are as many metres as radians
        links, scale = self._links[:, :3], self.arm.scale
        return polish_kernel(links, self.arm.slides, moves, scale)

    @cached_property
    def _other(self) -> tuple[SixAxesSolver, Array, Array] | None:
        """Return a solver with other axes that stay at zero, and where its targets are.

        It takes targets between two poses; None of that solver itself.
        """
        other = self.arm.other
        if other is None:
            return None
        front, back = self.arm.seen_by(other)
        try:
            return SixAxesSolver(other), front, back
        except NotApplicable:
            return None

    def _of_six(
        self,
        inner: Array,
        threads: int | None,
        first: Sequence[Array] | None = None,
    ) -> Solutions:
        """Return all solutions where all six axes move."""
        if first is None:
            found, is_whole, most = self._first(self._orders[0], inner, threads)
        else:
            found, is_whole, most = _of_outputs(*first)
        again = np.arange(len(inner)) if self._is_mixed else np.flatnonzero(~is_whole)
        unsure, infinite = np.zeros((2, len(inner)), np.bool_)
        if not again.size:
            return Solutions(found.rows, found.angles, unsure, infinite)
        # Few are left: what is known of the others is not copied time and again.
        targets, some = np.ascontiguousarray(inner[again]), found.of(again)
        if not self._is_mixed:
            more, is_whole, real = self._first(self._orders[1], targets, threads)
            some = distinct([some, more])
            is_whole &= some.counts == more.counts
            is_whole[some.rows[some.regular < 1.0]] = False
            last = np.flatnonzero(~is_whole)
            if last.size:
                real = np.column_stack([most[again], real])[last]
                rest, *doubt = self._thorough(
                    np.ascontiguousarray(targets[last]), some.of(last), real, threads
                )
                some = some.with_others(last, rest)
                unsure[again[last]], infinite[again[last]] = doubt
        else:
            real = np.zeros((len(targets), 2))
            some, unsure, infinite = self._thorough(targets, some, real, threads)
        is_kept = np.ones(len(inner), np.bool_)
        is_kept[again] = False
        kept = np.flatnonzero(is_kept[found.rows])
        rows, more_rows = found.rows[kept], again[some.rows]
        at = np.searchsorted(rows, more_rows)
        angles = np.insert(found.angles[kept], at, some.angles, axis=0)
        return Solutions(np.insert(rows, at, more_rows), angles, unsure, infinite)

    def _thorough(
        self,
        inner: Array,
        found: FoundSolutions,
        real: Array,
        threads: int | None,
    ) -> tuple[FoundSolutions, Truths, Truths]:
        """Return what all stages find, what is unsure, and may have infinitely many.

        Args:
            inner: The targets.
            found: By the first search.
            real: How many roots may be real, in each order, shape (count, 2).
            threads: As for kernels.
        """
        count = len(inner)
        unsure = np.ones(count, np.bool_)
        root_error, hidden = np.zeros((count, 2)), np.zeros(count, np.bool_)
        for stage in (None, self._third, self._fourth):
            again = np.flatnonzero(unsure)
            if not again.size:
                break
            counts, before = found.counts, found.of(again)
            targets = np.ascontiguousarray(inner[again])
            if stage is None:
                more, root_error[again], roots = self._second(targets, threads)
                if not self._slides_exactly:
                    real[again] = roots
                found = self._joined(found, again, [before, *more])
                unsure = self._is_unsure(found, real)
                for least, ways in self._ways:
                    inexact = ~(root_error < least).all(axis=1)
                    some = np.flatnonzero(inexact & unsure)
                    found, shown = self._displaced(found, inner, some, ways, threads)
                    hidden[some] |= shown
                    unsure = self._is_unsure(found, real)
                goes_on = ~(root_error[:, 0] < INEXACT)
            else:
                more = stage(targets, before, threads)
                found = self._joined(found, again, [before, *more])
                goes_on = found.counts > counts
            # what finds nothing more, and leaves no odd number, would find no more
            unsure &= goes_on | (found.counts % 2 == 1)
        inexact = ~(root_error[:, 0] < ANYWHERE_FROM)
        some = np.flatnonzero(inexact & self._is_unsure(found, real))
        if some.size:
            more = self._fifth(np.ascontiguousarray(inner[some]), threads)
            found = self._joined(found, some, [found.of(some), more])
        infinite = ~(root_error[:, 0] < ROUNDING) | hidden
        infinite |= (found.counts == 0) & ~(root_error[:, 0] < ROUNDING_IF_EMPTY)
        unsure = self._is_unsure(found, real)
        return found, unsure, unsure & infinite

    def _is_unsure(self, found: FoundSolutions, real: Array) -> Truths:
        """Return which targets have not as many solutions as real roots.

        A solution where the arm is singular is a multiple root, or is on a curve.

        Args:
            found: Of all targets.
            real: How many roots may be real, in each order, shape (count, 2).
        """
        if self._is_mixed:  # roots of far axes prove nothing
            return np.ones(len(real), np.bool_)
        unsure = np.asarray((real != found.counts[:, np.newaxis]).all(axis=1))
        unsure[found.rows[found.regular < 1.0]] = True
        return unsure

    @property
    def _is_mixed(self) -> bool:
        """Return whether all roots are those of an arm with far axes."""
        return not any(order.is_exact for order in self._orders)

    @property
    def _slides_exactly(self) -> bool:
        """Return whether roots are those of the arm although joints slide."""
        return any(self.arm.slides) and not self._is_mixed

    def solve_one(self, inner: Array) -> tuple[Array, bool]:
        """Return what `solve` does of one target: angles (m, 6), whether unsure.

        inner: Shape (4, 4).
        """
        found = None if self._is_mixed else self._first_of_one(inner)
        if found is not None:
            if self._stilled is None:
                return found, False
            sure, rows = np.zeros(1, np.bool_), np.zeros(len(found), np.int64)
            whole = Solutions(rows, found, sure, sure)
            return self._put_still(whole, inner[np.newaxis], None).angles, False
        solved = self.solve(inner[np.newaxis])
        return solved.angles, bool(solved.unsure[0])

    def _first_of_one(self, inner: Array) -> Array | None:
        """Return the angles that `_first` finds, None where there may be others."""
        found, is_whole, _ = self._orders[0].first(inner)
        if not is_whole > 0.0:
            return None
        return found[found[:, STATE] > 0.0, :STATE]

    def _first(
        self, order: Order, inner: Array, threads: int | None
    ) -> tuple[FoundSolutions, Truths, Array]:
        """Return what one search near each root finds, and where that is all.

        Then how many roots may be real.

        Where axes are far it is not: turns about these are counted.
        """
        count = len(inner)
        if not order.is_exact:
            found, is_whole, most = self._first_of_mixed(order, inner, threads)
            if self._is_mixed:
                return found, is_whole, most
            return found, np.zeros(count, np.bool_), np.full(count, np.nan)
        parts: list[tuple[Any, ...]] = []
        for k in range(0, max(count, 1), FIRST_AT_ONCE):
            targets = inner[k : k + FIRST_AT_ONCE]
            part, *others = _of_outputs(*called(order.first, threads, targets))
            parts.append((part.rows + k, *part.parts[1:], *others))
        joined = map(np.concatenate, zip(*parts, strict=True))
        rows, of, keys, regular, is_whole, most = joined if len(parts) > 1 else parts[0]
        return FoundSolutions(rows, of, keys, regular, count), is_whole, most

    def _first_of_mixed(
        self, order: Order, inner: Array, threads: int | None
    ) -> tuple[FoundSolutions, Truths, Array]:
        angles, marks, _, most = order.roots(inner, threads=threads)
        parts: list[FoundSolutions] = []
        for how, some in ((ONE, marks == ISOLATED), (TWO, marks > ISOLATED)):
            at = np.nonzero(some)
            if how == ONE or at[0].size:
                starts = at[0], angles[at]
                parts.append(self._searched(order, how, inner, starts, threads))
        found = distinct(parts)
        return found, found.counts == _even(most), _even(most)

    def _second(
        self, inner: Array, threads: int | None
    ) -> tuple[list[FoundSolutions], Array, Array]:
        """Return what clusters hold, and what the other order finds.

        Then the error of roots in both orders, the smaller first, and how many may be
        real in each, shape (count, 2).
        """
        parts: list[FoundSolutions] = []
        errors: list[Array] = []
        real: list[Array] = []
        for k, order in enumerate(self._orders):
            angles, marks, error, most = order.roots(inner, threads=threads)
            errors.append(error)
            real.append(_even(most))
            # a second search may leave for another solution, so it replaces none
            searches = (
                [(AGAIN, CLUSTERED), (TWO, ISOLATED)] if k else [(AGAIN, CLUSTERED)]
            )
            for how, least in searches:
                some = np.nonzero(marks >= least)
                starts = some[0], angles[some]
                parts.append(self._searched(order, how, inner, starts, threads))
        found = [distinct([each]) for each in parts]
        root_error = np.sort(np.column_stack(errors), axis=1)  # NaN last
        return found, root_error, np.column_stack(real)

    @cached_property
    def _ways(self) -> list[tuple[Array, Sequence[tuple[Order, Array]]]]:
        """Return how targets are displaced, by orders, and from which errors on.

        Those are two: of the better order, and of the other.
        """
        wide: list[Array] = [
            np.linalg.matrix_power(way, k) for way in DISPLACED for k in FARTHER
        ]
        ways = [*zip(self._orders, DISPLACED, strict=True)]
        more = [(order, way) for order in self._orders for way in wide]
        if any(self.arm.slides):
            return [(np.zeros(2), ways + more)]
        least = np.array([DISPLACED_FROM, DISPLACED_FROM])
        return [(least, ways), (np.array([FARTHER_FROM, np.inf]), more)]

    def _displaced(
        self,
        found: FoundSolutions,
        inner: Array,
        some: Whole,
        ways: Sequence[tuple[Order, Array]],
        threads: int | None,
    ) -> tuple[FoundSolutions, Truths]:
        """Return what is found with what poses next to targets lead to, and where.

        Close to singular sets of an arm the determinant is rounding alone, while poses
        that are a little displaced have good roots: Newton's method leads from their
        solutions to those of the target.

        Args:
            found: So far.
            inner: All targets.
            some: The targets that are asked for.
            ways: Orders, and where targets are displaced to, (4, 4).
            threads: As for kernels.

        Returns:
            All solutions, and of which of these targets more were found, or nearly so,
            (len(some),): there roots do not show all.
        """
        targets = np.ascontiguousarray(inner[some])
        parts = [found.of(some)]
        near = np.zeros(len(some), np.bool_)
        if not some.size:
            return found, near
        for order, way in ways:
            there = self._first(order, targets @ way, threads)[0]
            q, rows = there.angles, there.rows
            own = targets[rows]
            q, error, keys, regular = called(self._polish, threads, own, q)
            for _ in range(ROUNDS):
                q, error, keys, regular = called(self._polish, threads, own, q)
            good = error < ERROR
            near[rows[~good & (error < NEARLY)]] = True
            parts.append(
                FoundSolutions(
                    rows[good], q[good], keys[good], regular[good], len(some)
                )
            )
        joined = self._joined(found, some, parts)
        grown = joined.counts[some] > found.counts[some]
        if self._is_mixed:  # pairs that are close are complex for far axes
            grown[:] = False
        return joined, grown | near

    def _third(
        self, inner: Array, before: FoundSolutions, threads: int | None
    ) -> list[FoundSolutions]:
        """Return what is found from all roots and next to them."""
        del before
        parts: list[FoundSolutions] = []
        for order in self._orders:
            angles, marks, *_ = order.roots(inner, threads=threads)
            near, at = np.nonzero(marks >= NEAR_ANOTHER)
            every, which = np.nonzero(marks >= 0.0)
            ways = [x for shift in SHIFTS for x in (shift, -shift)]
            shifted = (angles[near, at] + np.array(ways)[:, np.newaxis]).ravel()
            starts = (
                np.concatenate([every, np.tile(near, len(ways))]),
                np.concatenate([angles[every, which], shifted]),
            )
            found = self._searched(order, TWO, inner, starts, threads)
            parts.append(found.thinned())
        return [distinct([each]) for each in parts]

    def _fourth(
        self, inner: Array, before: FoundSolutions, threads: int | None
    ) -> list[FoundSolutions]:
        """Return what is found from next to solutions: of close ones each finds all."""
        one, two = weakest(self._links, self.arm.slides, before.angles)
        ways = np.array([one, -one, two, -two, one + two, -one - two, one - two])
        shifts = np.multiply.outer(np.array(SCALES), ways).reshape(-1, *one.shape)
        # All starts of a target are tried in one call: which of copies is kept, and
        # which points of a curve are, then depends on no other target.
        ends = np.cumsum(np.bincount(before.rows, minlength=before.targets))
        call = ends[before.rows] // max(1, AT_ONCE // len(shifts))
        parts: list[FoundSolutions] = []
        whole = np.arange(len(before.rows))
        for some in np.split(whole, np.flatnonzero(np.diff(call)) + 1):
            starts = (before.angles[some] + shifts[:, some]).reshape(-1, 6)
            rows = np.tile(before.rows[some], len(shifts))
            q, error, keys, regular = called(self._polish, threads, inner[rows], starts)
            good = error < ERROR
            found = FoundSolutions(
                rows[good], q[good], keys[good], regular[good], before.targets
            )
            parts.append(found.thinned())
        return [distinct([each]) for each in parts]

    def _fifth(self, inner: Array, threads: int | None) -> FoundSolutions:
        """Return what is found from anywhere, of solutions that stand alone."""
        starts, poses = self._anywhere
        parts = list[FoundSolutions]()
        together = AT_ONCE // NEAREST
        for k in range(0, len(inner), together):
            some = inner[k : k + together]
            # |a - b|^2 = a a - 2 a b + b b, of which the first is the same for all.
            # Sums are those of each target alone, so a single call has the same bits.
            flat = some[:, :3].reshape(len(some), -1)
            products = np.einsum("ij,kj->ik", flat, poses)
            apart = (poses * poses).sum(axis=1) - 2.0 * products
            chosen = np.argpartition(apart, NEAREST, axis=1)[:, :NEAREST]
            rows = k + np.repeat(np.arange(len(some)), NEAREST)
            targets, q = inner[rows], starts[np.sort(chosen, axis=1).ravel()]
            q, *_ = called(self._polish, threads, targets, q)
            q, error, *_ = called(self._polish, threads, targets, q)
            near = np.flatnonzero(error < HOPEFUL)
            rows, targets, q = rows[near], targets[near], q[near]
            for _ in range(HOPEFUL_ROUNDS - 1):
                q, *_ = called(self._polish, threads, targets, q)
            q, error, keys, regular = called(self._polish, threads, targets, q)
            good = (error < ERROR) & (regular > 0.0)
            found = FoundSolutions(
                rows[good], q[good], keys[good], regular[good], len(inner)
            )
            parts.append(found.thinned())
        return distinct([FoundSolutions.joined(parts)])

    @cached_property
    def _anywhere(self) -> tuple[Array, Array]:
        """Return joint positions anywhere, and the numbers of their poses, (k, 12)."""
        rng = np.random.default_rng(7)
        q, poses = drawn(rng, self._links, self.arm.slides, ANYWHERE)
        return q, poses[:, :3].reshape(len(poses), -1)

    def _searched(
        self,
        order: Order,
        how: int,
        inner: Array,
        starts: tuple[Whole, Array],
        threads: int | None,
    ) -> FoundSolutions:
        """Return what is found next to angles of targets, copies among it."""
        rows, angles = starts
        at, missed = order.near(how, inner[rows], angles, threads=threads)
        kept = np.flatnonzero(missed.ravel() < MISSED)
        rows = rows[kept // SEARCHES[how]["count"]]
        q, error, keys, regular = called(
            self._polish, threads, inner[rows], at.reshape(-1, 6)[kept]
        )
        good = error < ERROR
        return FoundSolutions(
            rows[good], q[good], keys[good], regular[good], len(inner)
        )

    def _joined(
        self, found: FoundSolutions, again: Whole, more: list[FoundSolutions]
    ) -> FoundSolutions:
        """Return what is found, with more of some targets."""
        return found.with_others(again, distinct(more))


def _of_outputs(
    slots: Array, is_whole: Array, most: Array
) -> tuple[FoundSolutions, Truths, Array]:
    """Return what `_first` does, of outputs of the kernel."""
    return FoundSolutions.of_slots(slots), is_whole > 0.0, _even(most)


def _even(most: Any) -> Any:
    """Return how many roots may be real: those that are not are pairs z, 1 / conj z."""
    return 2.0 * np.floor(0.5 * most)


def _wrapped(angles: Array) -> Array:
    return (angles + np.pi) % (2.0 * np.pi) - np.pi
