"""All answers of an arm of six joints, in stages that run where needed.

1. Every target in the better order of the arm, one look at each root.
2. Where three roots are close, something near a solution did not become one, or the
   number of solutions is odd or zero: the roots of the crowd again, their angles
   corrected first, and all roots of the other order. Where roots are inexact in either:
   Newton's method from the solutions of poses next to the target, too.
3. Where roots are inexact in both orders, or the number is odd still: the angles of all
   roots, real or not, and many next to those that may be.
4. Where that finds more, or leaves the number odd: Newton's method from next to each
   solution, along both directions in which the arm moves least.

What the last stage that runs leaves odd, or finds, is in doubt. So are targets whose
determinant vanishes for every angle, in both orders, or of which poses next to them
show more: solutions may form curves there, and roots are rounding alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.ik.closed_forms.family import NotApplicable, require
from armillary.ik.closed_forms.general_6r.geometry import SixAxes, moved, weakest
from armillary.ik.closed_forms.general_6r.nearby import FOUND
from armillary.ik.closed_forms.general_6r.roots import LONE, MEMBER, PAIR, ROOTS, SINGLE
from armillary.ik.closed_forms.general_6r.stages import (
    KEYS,
    apart_kernel,
    near_kernel,
    polish_kernel,
    roots_kernel,
)
from armillary.kernel import Kernel

__all__ = ["SixAxesSolver", "Solutions"]

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Whole = npt.NDArray[np.int64]

MOST = 16
"""Solutions of a generic target, at most (Lee and Liang 1988)."""

MISSED = 0.09
"""Square of what may miss before Newton's method: nothing worse has led anywhere."""

CLOSE = 1e-4
"""Square of what misses so little that a solution must be near."""

ERROR = 1e-9
"""Largest error of a solution, of the pose in units of the arm."""

APART = 5e-6
"""Keys of different solutions differ by more."""

SAMPLES = 128
SAME, MOST_LOST = 1e-3, 6
BLUR = 3e-5, 2e-4
"""Largest error of a root that shows where to look, first and where roots crowd."""

BLIND = 5e-3
"""Error of roots in the better order from which on they say nothing."""

BLIND_IF_EMPTY = 1e-4
"""The same where they led to no solution."""

DIM = 3e-5
"""Error of roots in either order from which on poses next to a target are asked."""

MOST_TURN = 0.6
"""Largest turn about a far axis that stands for a slide [rad]."""

LENGTHS = 2.0
"""How far joints slide in poses that an arm is tried at, in its `scale`."""

STILL = 0.3
"""Largest angle from which a joint that stays at zero is put there [rad]."""

MURKY = 5e-5
"""Error of roots in the better order from which on poses farther away are, too."""

ROUNDS, NEARLY = 2, 1e-6
"""Rounds of Newton's method after the first; an error that would fall further."""

_HALF = np.array([[0.0, 0.002, 0.004], [-0.002, 0.0, -0.003], [-0.004, 0.003, 0.0]])
_AWAY = np.eye(4)
_AWAY[:3, :3] = np.linalg.solve(np.eye(3) - _HALF, np.eye(3) + _HALF)  # Cayley
_AWAY[:3, 3] = 0.006, -0.005, 0.007
DISPLACED: tuple[Array, Array] = _AWAY, np.linalg.inv(_AWAY).astype(np.float64)
"""A turn [rad] and a shift of 0.01 in no special direction: one for each order."""

WIDE = 3, 10
"""How many times as far, for arms with far axes or where roots are murky."""

SCALES = 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0
"""How far from solutions others are looked for [rad]."""

SHIFTS = 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 4e-2
LOOKS = {"passes": 1, "count": 1}, {"passes": 1, "count": 2}, {"passes": 2, "count": 2}
ONE, TWO, AGAIN = range(3)
"""How to look at a root: for one solution, for two, for two and from there again."""

EVEN = range(2, MOST + 1, 2)
SLOTS = ROOTS * FOUND, 3 * ROOTS * FOUND


class Solutions(NamedTuple):
    """The solutions of targets, one behind the other.

    Attributes:
        rows: The target of each, in order, shape (m,).
        angles: Of the axes [rad], shape (m, 6).
        unsure: Which targets may have others, shape (count,).
        blind: Which of these have roots that are rounding alone, shape (count,).
    """

    rows: Whole
    angles: Array
    unsure: Truths
    blind: Truths


class _Order:
    """The kernels of one order of an arm: of roots, and of `LOOKS`."""

    def __init__(self, arm: SixAxes, *, hides_five: bool) -> None:
        """Prepare the kernels.

        Args:
            arm: The axes.
            hides_five: Whether joint 5 is hidden, else joint 2.
        """
        constants, *self._around = arm.order(hides_five=hides_five)
        self._sliding, self._far = arm.sliding, arm.far
        self._roots = roots_kernel(constants)
        self._looks = tuple(near_kernel(constants, **how) for how in LOOKS)

    def roots(self, inner: Array, *, threads: int | None = None) -> tuple[Array, ...]:
        """Return `angles`, `marks` and `blur` of the kernel of roots."""
        return _called(self._roots, threads, self._seen(inner))

    def look(
        self, how: int, inner: Array, angles: Array, *, threads: int | None = None
    ) -> tuple[Array, Array]:
        """Return `found` and `missed` of the kernel of a look.

        Turns about far axes become slides; where they are large there is no answer.
        """
        found, missed = _called(self._looks[how], threads, self._seen(inner), angles)
        if self._sliding:
            turns = found[..., self._sliding]
            missed = np.where((np.abs(turns) < MOST_TURN).all(-1), missed, np.inf)
            found[..., self._sliding] = self._far * np.sin(turns)
        return found, missed

    def _seen(self, inner: Array) -> Array:
        """Return targets for the axes that the order is about."""
        if not self._sliding:
            return inner
        front, back = self._around
        return np.ascontiguousarray(front @ inner @ back)


NONE, NO_BLUR = np.zeros(0, np.bool_), np.zeros((0, 2))


class _Found(NamedTuple):
    """Solutions: targets, angles and keys of each; targets that are in doubt.

    `alone` are looks that found fewer solutions than they can. `blur` is the error of
    the roots of targets in both orders, shape (count, 2), the smaller first.
    """

    rows: Whole
    angles: Array
    keys: Array
    doubt: Truths
    alone: Truths = NONE
    blur: Array = NO_BLUR

    @property
    def parts(self) -> tuple[Whole, Array, Array]:
        return self[:3]

    def picked(self, which: Whole) -> _Found:
        """Return some of it, by positions."""
        rows, angles, keys = self.parts
        return _Found(rows[which], angles[which], keys[which], self.doubt)

    def ordered(self) -> _Found:
        """Return the same by targets, in order."""
        order = np.argsort(self.rows, kind="stable")
        return self.picked(order)

    def thinned(self) -> _Found:
        """Return the same by targets, in order, without most of the copies."""
        table = np.column_stack([self.rows, np.rint(self.keys / APART)])
        _, first = np.unique(table, axis=0, return_index=True)
        return self.picked(first)

    def of(self, targets: Whole) -> _Found:
        """Return what is found of some targets, as the targets of their own."""
        place = np.full(len(self.doubt), -1)
        place[targets] = np.arange(len(targets))
        rows = place[self.rows]
        kept = rows >= 0
        return _Found(
            rows[kept], self.angles[kept], self.keys[kept], self.doubt[targets]
        )


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
        self._polish = polish_kernel(links[:, :3], arm.slides, len(arm.slides))
        self._orders = [_Order(arm, hides_five=five) for five in (True, False)]
        # Of each sample the answer nearest to the positions that made it: if that is
        # another for some, or there are too many, the arm has infinitely many.
        q, poses = _samples(links, arm.slides)
        whole = self._of_six(poses, None)
        gap = whole.angles - q[whole.rows]
        gap = np.abs(np.where(arm.slides, gap, _wrapped(gap))).max(axis=1)
        own = np.full(SAMPLES, np.inf)
        np.minimum.at(own, whole.rows, gap)
        counts = np.bincount(whole.rows, minlength=SAMPLES)
        lost = int(((own > SAME) | (counts > MOST)).sum())
        require(lost <= MOST_LOST, "its axes leave infinitely many answers to a pose")
        # The order that misses fewer answers without noticing, then with fewer doubts.
        costs: list[tuple[int, int]] = []
        for order in self._orders:
            found = self._first(order, poses, None)
            alone = np.bincount(found.rows, minlength=SAMPLES)
            again = found.doubt | (alone % 2 == 1)
            costs.append((int(((alone < counts) & ~again).sum()), int(again.sum())))
        if costs[1] < costs[0]:
            self._orders.reverse()

    def solve(self, inner: Array, *, threads: int | None = None) -> Solutions:
        """Return all solutions of targets.

        Where some axes stay at zero, those are joint positions that miss the targets
        least, of all those that may reach them.

        Args:
            inner: The last axis's frame in that of the first, lengths in units of the
                arm's `scale`, shape (count, 4, 4).
            threads: As for kernels.
        """
        whole = self._of_six(inner, threads)
        return (
            whole if self._stilled is None else self._put_still(whole, inner, threads)
        )

    def _put_still(
        self, whole: Solutions, inner: Array, threads: int | None
    ) -> Solutions:
        """Return solutions with the axes at zero that stay there, and close to it are.

        In doubt is only what is so with another choice of these axes, too.
        """
        assert self._stilled is not None
        angles = whole.angles[:, self.arm.moves :]
        is_close = (np.abs(_wrapped(angles)) < STILL).all(axis=1)
        counts = np.bincount(whole.rows[is_close], minlength=len(inner))
        # where none is close the others lead to a miss, of which the least is wanted
        close = np.flatnonzero(is_close | (counts == 0)[whole.rows])
        rows = whole.rows[close]
        q, _, keys = _called(self._stilled, threads, inner[rows], whole.angles[close])
        parts = [_Found(rows, q, keys, whole.unsure)]
        unsure, blind = whole.unsure, whole.blind
        again = np.flatnonzero(unsure)
        if again.size and self._other is not None:
            solver, front, back = self._other
            there = np.ascontiguousarray(front @ inner[again] @ back)
            more = solver.solve(there, threads=threads)
            unsure, blind = unsure.copy(), blind.copy()
            unsure[again], blind[again] = more.unsure, more.blind
            rows = again[more.rows]
            q, _, keys = _called(self._stilled, threads, inner[rows], more.angles)
            parts.append(_Found(rows, q, keys, unsure))
        found = self._distinct(parts).ordered()
        return Solutions(found.rows, found.angles, unsure, blind)

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

    def _of_six(self, inner: Array, threads: int | None) -> Solutions:
        """Return all solutions where all six axes move."""
        count = len(inner)
        found = self._first(self._orders[0], inner, threads)
        unsure, hidden = np.zeros((2, count), np.bool_)
        blur = np.zeros((count, 2))
        for stage in (self._second, self._third, self._fourth):
            counts = np.bincount(found.rows, minlength=count)
            unsure = found.doubt | (counts % 2 == 1)
            is_first = stage == self._second
            if is_first and self._is_mixed:  # either order has other far axes
                unsure[:] = True
            elif is_first:  # that there is none is proven by distance, or both orders
                unsure |= (counts == 0) & self._is_near(inner)
            again = np.flatnonzero(unsure)
            if not again.size:
                break
            before = found.of(again)
            more = stage(np.ascontiguousarray(inner[again]), before, threads)
            found = self._joined(found, again, [before, *more])
            if is_first:
                blur[again] = more[-1].blur
                for least, ways in self._ways:
                    dim = np.flatnonzero(~(blur < least).all(axis=1))
                    found, shown = self._displaced(found, inner, dim, ways, threads)
                    hidden[dim] |= shown
            else:  # what finds nothing more leaves no doubt
                grown = np.bincount(found.rows, minlength=count) > counts
                found = found._replace(doubt=grown)
        else:
            odd = np.bincount(found.rows, minlength=count) % 2 == 1
            unsure = found.doubt | odd
        blind = ~(blur[:, 0] < BLIND) | hidden
        is_empty = np.bincount(found.rows, minlength=count) == 0
        blind |= is_empty & ~(blur[:, 0] < BLIND_IF_EMPTY)
        return Solutions(found.rows, found.angles, unsure | blind, blind)

    @property
    def _is_mixed(self) -> bool:
        return any(self.arm.slides)

    def _is_near(self, inner: Array) -> Truths:
        """Return which targets are within the sum of the lengths of all links."""
        reach = np.linalg.norm(self._links[:, :3, 3], axis=1).sum()
        near = (inner[:, :3, 3] ** 2).sum(axis=1) <= (1.0 + ERROR) * reach**2
        return np.asarray(near)

    def solve_one(self, inner: Array) -> tuple[Array, bool]:
        """Return what `solve` does of one target: angles (m, 6), whether unsure.

        inner: Shape (4, 4).
        """
        order = self._orders[0]
        angles, marks, blur = order.roots(inner)
        found = None
        if not self._is_mixed and blur < BLUR[0] and not (marks == MEMBER).any():
            found = self._looks_at_one(order, inner, angles, marks)
        if found is not None:
            if self._stilled is None:
                return found, False
            sure, rows = np.zeros(1, np.bool_), np.zeros(len(found), np.int64)
            whole = Solutions(rows, found, sure, sure)
            return self._put_still(whole, inner[np.newaxis], None).angles, False
        solved = self.solve(inner[np.newaxis])
        return solved.angles, bool(solved.unsure[0])

    def _looks_at_one(
        self, order: _Order, inner: Array, angles: Array, marks: Array
    ) -> Array | None:
        """Return the angles that looks at roots find, None where that leaves a doubt.

        They are those of `_first`, in the order of these.
        """
        starts: list[Array] = []
        misses: list[Array] = []
        for how, some in ((ONE, marks == SINGLE), (TWO, marks > SINGLE)):
            at, missed = order.look(how, inner, angles[some])
            starts.append(at.reshape(-1, 6))
            misses.append(missed.ravel())
        missed = np.concatenate(misses)
        kept = np.flatnonzero(missed < MISSED)
        q, error, keys = self._polish(inner, np.concatenate(starts)[kept])
        good = error < ERROR
        if (missed[kept[~good]] < CLOSE).any():
            return None
        kept, q, keys = kept[good], q[good], keys[good]
        # Of a pair of roots that are close both must lead to answers, or none.
        others = marks[marks > SINGLE]
        if (others == PAIR).any():
            every = np.full((len(missed), KEYS), np.nan)
            every[kept] = keys
            both = every[len(misses[0]) :].reshape(-1, FOUND, KEYS)
            if (_are_alone(both) & (others == PAIR)).any():
                return None
        # The first of each set of copies; answers come in even numbers.
        same = np.abs(keys[:, np.newaxis] - keys).max(axis=2, initial=0.0) <= APART
        q = q[same.argmax(axis=1) == np.arange(len(q))] if len(q) else q
        return q if len(q) in EVEN else None

    def _first(self, order: _Order, inner: Array, threads: int | None) -> _Found:
        """Return what one look at each root finds; crowds are in doubt."""
        angles, marks, blur = order.roots(inner, threads=threads)
        doubt = (marks == MEMBER).any(axis=1) | ~(blur < BLUR[0])
        single = np.nonzero(marks == SINGLE)
        starts = single[0], angles[single]
        parts = [self._looked(order, ONE, inner, starts, threads)]
        others = np.nonzero(marks > SINGLE)
        if others[0].size:
            starts = others[0], angles[others]
            found = self._looked(order, TWO, inner, starts, threads)
            pairs = np.flatnonzero(marks[others] == PAIR)
            doubt[others[0][pairs[found.alone[pairs]]]] = True
            parts.append(found)
        for each in parts:
            doubt |= each.doubt
        parts[-1] = parts[-1]._replace(doubt=doubt)
        return self._distinct(parts)

    def _second(
        self, inner: Array, before: _Found, threads: int | None
    ) -> list[_Found]:
        """Return what crowds hold, and what the other order finds."""
        del before
        parts: list[_Found] = []
        blurs: list[Array] = []
        for k, order in enumerate(self._orders):
            angles, marks, blur = order.roots(inner, threads=threads)
            blurs.append(blur)
            # a second look may leave for another solution, so it replaces none
            looks = [(AGAIN, MEMBER), (TWO, SINGLE)] if k else [(AGAIN, MEMBER)]
            for how, least in looks:
                some = np.nonzero(marks >= least)
                starts = some[0], angles[some]
                parts.append(self._looked(order, how, inner, starts, threads))
        blur = np.sort(np.column_stack(blurs), axis=1)  # NaN last
        lost = ~(blur[:, 0] < BLUR[1])
        found = [self._distinct([each._replace(doubt=lost)]) for each in parts]
        found[-1] = found[-1]._replace(blur=blur)
        return found

    @cached_property
    def _ways(self) -> list[tuple[Array, Sequence[tuple[_Order, Array]]]]:
        """Return how targets are displaced, by orders, and from which errors on.

        Those are two: of the better order, and of the other.
        """
        wide: list[Array] = [
            np.linalg.matrix_power(way, k) for way in DISPLACED for k in WIDE
        ]
        ways = [*zip(self._orders, DISPLACED, strict=True)]
        more = [(order, way) for order in self._orders for way in wide]
        if self._is_mixed:
            return [(np.zeros(2), ways + more)]
        return [(np.array([DIM, DIM]), ways), (np.array([MURKY, np.inf]), more)]

    def _displaced(
        self,
        found: _Found,
        inner: Array,
        dim: Whole,
        ways: Sequence[tuple[_Order, Array]],
        threads: int | None,
    ) -> tuple[_Found, Truths]:
        """Return what is found with what poses next to targets lead to, and where.

        Close to singular sets of an arm the determinant is rounding alone, while poses
        that are a little displaced have good roots: Newton's method leads from their
        solutions to those of the target.

        Args:
            found: So far.
            inner: All targets.
            dim: The targets that are asked for.
            ways: Orders, and where targets are displaced to, (4, 4).
            threads: As for kernels.

        Returns:
            All solutions, and of which of these targets more were found, or nearly so,
            (len(dim),): there roots do not show all.
        """
        targets = np.ascontiguousarray(inner[dim])
        parts = [found.of(dim)]
        near = np.zeros(len(dim), np.bool_)
        if not dim.size:
            return found, near
        for order, way in ways:
            there = self._first(order, targets @ way, threads)
            q, rows = there.angles, there.rows
            own = targets[rows]
            q, error, keys = _called(self._polish, threads, own, q)
            for _ in range(ROUNDS):
                q, error, keys = _called(self._polish, threads, own, q)
            good = error < ERROR
            near[rows[~good & (error < NEARLY)]] = True
            parts.append(_Found(rows[good], q[good], keys[good], near))
        counts = np.bincount(found.rows, minlength=len(inner))[dim]
        joined = self._joined(found, dim, parts)
        grown = np.bincount(joined.rows, minlength=len(inner))[dim] > counts
        if self._is_mixed:  # pairs that are close are complex for far axes
            grown[:] = False
        return joined._replace(doubt=found.doubt), grown | near

    def _third(self, inner: Array, before: _Found, threads: int | None) -> list[_Found]:
        """Return what is found from all roots and next to them."""
        del before
        parts: list[_Found] = []
        for order in self._orders:
            angles, marks, _ = order.roots(inner, threads=threads)
            near, at = np.nonzero(marks >= LONE)
            every, which = np.nonzero(marks >= 0.0)
            ways = [x for shift in SHIFTS for x in (shift, -shift)]
            shifted = (angles[near, at] + np.array(ways)[:, np.newaxis]).ravel()
            starts = (
                np.concatenate([every, np.tile(near, len(ways))]),
                np.concatenate([angles[every, which], shifted]),
            )
            found = self._looked(order, TWO, inner, starts, threads)
            parts.append(found.thinned())
        return [self._distinct([each]) for each in parts]

    def _fourth(
        self, inner: Array, before: _Found, threads: int | None
    ) -> list[_Found]:
        """Return what is found from next to solutions: of close ones each finds all."""
        parts: list[_Found] = []
        one, two = weakest(self._links, self.arm.slides, before.angles)
        ways = np.array([one, -one, two, -two, one + two, -one - two, one - two])
        for scale in SCALES:
            starts = (before.angles + scale * ways).reshape(-1, 6)
            rows = np.tile(before.rows, len(ways))
            q, error, keys = _called(self._polish, threads, inner[rows], starts)
            good = error < ERROR
            found = _Found(rows[good], q[good], keys[good], before.doubt)
            parts.append(found.thinned())
        return [self._distinct([each]) for each in parts]

    def _looked(
        self,
        order: _Order,
        how: int,
        inner: Array,
        starts: tuple[Whole, Array],
        threads: int | None,
    ) -> _Found:
        """Return what is found next to angles of targets, copies among it.

        In doubt are those in which something misses little, and leads nowhere.
        """
        rows, angles = starts
        count = LOOKS[how]["count"]
        at, missed = order.look(how, inner[rows], angles, threads=threads)
        missed = missed.ravel()
        kept = np.flatnonzero(missed < MISSED)
        rows = rows[kept // count]
        q, error, keys = _called(
            self._polish, threads, inner[rows], at.reshape(-1, 6)[kept]
        )
        good = error < ERROR
        # What began near a solution and did not arrive may be two that are close.
        doubt = np.zeros(len(inner), np.bool_)
        doubt[rows[~good & (missed[kept] < CLOSE)]] = True
        alone = NONE
        if how == TWO:
            both = np.full((len(angles), FOUND, KEYS), np.nan)
            both.reshape(-1, KEYS)[kept[good]] = keys[good]
            alone = _are_alone(both)
        return _Found(rows[good], q[good], keys[good], doubt, alone)

    def _joined(self, found: _Found, again: Whole, more: list[_Found]) -> _Found:
        """Return what is found, with more of some targets."""
        doubt = more[-1].doubt
        is_new = np.zeros(len(found.doubt), np.bool_)
        is_new[again] = True
        is_again = is_new[found.rows]
        new = self._distinct(more)
        whole = np.zeros(len(found.doubt), np.bool_)
        whole[again] = doubt
        rest = found.picked(np.flatnonzero(~is_again))
        return _Found(
            np.concatenate([rest.rows, again[new.rows]]),
            np.concatenate([rest.angles, new.angles]),
            np.concatenate([rest.keys, new.keys]),
            whole,
        ).ordered()

    @staticmethod
    def _distinct(parts: list[_Found]) -> _Found:
        """Return what is found without copies, by targets."""
        rows, angles, keys = parts[0].parts
        if len(parts) > 1:
            joined = _Found(
                np.concatenate([each.rows for each in parts]),
                np.concatenate([each.angles for each in parts]),
                np.concatenate([each.keys for each in parts]),
                parts[0].doubt,
            )
            rows, angles, keys = joined.ordered().parts
        doubt = parts[-1].doubt
        count = len(doubt)
        counts = np.bincount(rows, minlength=count)
        slots = SLOTS[0] if counts.max(initial=0) <= SLOTS[0] else SLOTS[1]
        slot = np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]
        # more than all slots are copies, nearly all of them
        if counts.max(initial=0) > slots:
            fits = slot < slots
            rows, angles, keys, slot = rows[fits], angles[fits], keys[fits], slot[fits]
            counts = np.minimum(counts, slots)
        table = np.zeros((count, slots, KEYS))
        table[rows, slot] = keys
        new = apart_of(slots)(table, counts.astype(np.float64), APART)
        kept = new[rows, slot] > 0.0
        return _Found(rows[kept], angles[kept], keys[kept], doubt)


def _called(kernel: Kernel, threads: int | None, *inputs: Array) -> Any:
    """Return what a kernel does; it has a quick way in where no threads are given."""
    return kernel(*inputs) if threads is None else kernel(*inputs, threads=threads)


def _samples(links: Array, slides: Sequence[bool]) -> tuple[Array, Array]:
    """Return random q (SAMPLES, 6) of an arm, and the poses that they lead to."""
    most = np.where(slides, LENGTHS, np.pi)
    q = np.random.default_rng(99).uniform(-1.0, 1.0, (SAMPLES, len(slides))) * most
    poses = moved(q[:, 0], slides=slides[0])
    for k, link in enumerate(links):
        poses = poses @ link @ moved(q[:, k + 1], slides=slides[k + 1])
    return q, np.ascontiguousarray(poses)


def apart_of(slots: int) -> Kernel:
    """Return the kernel that finds copies among so many solutions."""
    if slots not in _APART:
        _APART[slots] = apart_kernel(slots)
    return _APART[slots]


_APART: dict[int, Kernel] = {}


def _are_alone(keys: Array) -> Truths:
    """Return which looks for two solutions did not find two: keys (m, 2, 3)."""
    return ~(np.abs(keys[:, 0] - keys[:, 1]).max(axis=1) > APART)


def _wrapped(angles: Array) -> Array:
    return (angles + np.pi) % (2.0 * np.pi) - np.pi
