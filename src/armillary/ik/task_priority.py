"""Rates that meet tasks in their order of priority, within hard bounds.

Of the rates x with low <= x <= high, level p of the hierarchy takes those that make
J_p x as much of v_p as those above leave possible, and of the rates that remain the
last takes the one that is nearest to given rates r: it minimises (x - r)' W (x - r).

Each level is followed from what it finds, c = J_p x, to what it wants, on the straight
line J_p x = c + t (b - c), t from 0 to 1, with everything above held. On that line the
optimal x is piecewise linear: at each corner a joint comes to a bound, or leaves one
whose multiplier has vanished (parametric active sets: Best 1996; the aim, scaling a
task that bounds do not allow, is that of Flacco, De Luca and Khatib, IEEE T-RO 31,
2015). So the direction of the first task is kept, the t reached is the greatest there
is, and x is within the bounds at every corner, also where one stops early.
Inequalities A x >= b that hold at x = 0 are bounds likewise: `active_rows.py` keeps the
rows that hold x, and `scaled_rates.py` looks for the first one that x comes to.

What a level wants is b = c + (1 - M^8) (v - c) with M = d (S + d)^-1, S its matrix
J W^-1 J' in the null space of those above and d = damping^2: eightfold iterated
Tikhonov regularisation. Directions with singular values above 10 dampings keep all but
1e-16; towards singular ones the rates stay below 1.74 |v| / damping. With one M in
place of M^8 it is damped least squares (Nakamura and Hanafusa 1986; Wampler 1986).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple, Self

from armillary.ik.active_rows import FAR, NO_SLOTS, Hit, Slots
from armillary.spatial.ldl import (
    LDLFactor,
    Rows,
    apply_rows,
    gram,
    inner,
    multiply_symmetric,
    shifted,
)
from armillary.spatial.vector import Number
from armillary.trace.functions import absolute, maximum, minimum, select, sqrt

SMALL = 1e-13  # of the trace of a matrix, added to keep it positive
LEAST = 1e-6  # square of the length that rows of inequalities are brought to, at least
SINGULAR = 1e-12  # of a squared right-hand side: more than this has no solution
FAINT = 1e-18  # of a squared gap: less than this is given up
PARALLEL = 1e-13  # of the greatest rate: less than this is rounding
NOISE = 1e-11  # of the size of the terms of a sum: less than this is rounding
TINY = 1e-30
REFINEMENTS = 2  # of rates, where inequalities hold them


class Hierarchy(NamedTuple):
    """What is wanted of the rates x, n of them.

    Attributes:
        rows: The rows of J of all levels, the highest first.
        sizes: How many rows each level has.
        wanted: v, a number for each row.
        weights: The diagonal of W.
        null: The rates r, None for none.
        bounds: Least and greatest x with 0 between; None for none.
        damping: d, greater than 0.
        sharp: Above 0 for M^8, else M.
    """

    rows: Rows
    sizes: tuple[int, ...]
    wanted: Sequence[Number]
    weights: Sequence[Number]
    null: Sequence[Number] | None
    bounds: tuple[Sequence[Number], Sequence[Number]] | None
    damping: Number
    sharp: Number

    @property
    def spans(self) -> list[range]:
        """Return which rows each level has."""
        ends = list(accumulate(self.sizes))
        return [range(e - s, e) for s, e in zip(self.sizes, ends, strict=True)]

    @property
    def levels(self) -> int:
        """Return how many levels there are, the last motion included."""
        return len(self.sizes) + (self.null is not None)


class Progress(NamedTuple):
    """How far the hierarchy has been followed.

    Attributes:
        z: The rates x, less those at the start of the way.
        remaining: 1 - t of the present level.
        level: Its number from 1; 0 before the first.
        scales: t of each level of tasks.
        task_pressures: The multipliers y, a number for each row of tasks.
        held: For each rate 1 at its greatest, -1 at its least, 0 between.
        change: b - c in the rows of the present level, 0 in others.
    """

    z: list[Number]
    remaining: Number
    level: Number
    scales: list[Number]
    task_pressures: list[Number]
    held: list[Number]
    change: list[Number]

    @classmethod
    def start(cls, sizes: Sequence[int], n: int) -> Self:
        """Return the start of n rates, before levels of so many rows."""
        rates, rows = [0.0] * n, [0.0] * sum(sizes)
        return cls(rates, 0.0, 0.0, [0.0] * len(sizes), rows, rates, rows)


class Prepared(NamedTuple):
    """What does not change on the way.

    Attributes:
        trace: The trace of J W^-1 J'.
        filters: 1 - M^8 of each level.
    """

    trace: Number
    filters: Sequence[Rows]


class Follower:
    """Follows a hierarchy corner by corner."""

    def __init__(self, hierarchy: Hierarchy, prepared: Prepared | None = None) -> None:
        """Prepare what does not change on the way.

        Args:
            hierarchy: What is wanted.
            prepared: From another follower of the same.
        """
        self._all = hierarchy
        self.prepared = self._prepared() if prepared is None else prepared
        self._small = self._shift(self.prepared.trace)
        self._movable: list[Number] = [1.0 for _ in hierarchy.weights]
        if hierarchy.bounds is not None:
            self._movable = [
                select(high > low, 1.0, 0.0)
                for low, high in zip(*hierarchy.bounds, strict=True)
            ]

    def _prepared(self) -> Prepared:
        G = gram(self._all.rows, [1.0 / w for w in self._all.weights])
        trace = sum((G[k][k] for k in range(len(G))), 0.0)
        small = self._shift(trace)
        return Prepared(
            trace, [self._filter(G, span, small) for span in self._all.spans]
        )

    @staticmethod
    def _shift(trace: Number) -> Number:
        """Return what is added to the diagonal of a matrix to keep it positive."""
        return SMALL * trace + TINY

    @property
    def _length(self) -> Number:
        """Return what rows of inequalities are brought to: as long as those of J."""
        return sqrt(maximum(self.prepared.trace / len(self._all.rows), LEAST))

    def _filter(self, G: Rows, span: range, small: Number) -> Rows:
        """Return 1 - M^8 of one level."""
        S = self._schur(G, span, small)
        d = self._all.damping
        factor = LDLFactor.of(shifted(S, d), d)
        size = len(span)
        M: Rows = [
            factor.solve([d if i == k else 0.0 for i in range(size)])
            for k in range(size)
        ]
        eighth = M
        for _ in range(3):
            eighth = multiply_symmetric(eighth, eighth)
        sharp = self._all.sharp > 0.0
        return [
            [
                (1.0 if i == k else 0.0) - select(sharp, eighth[i][k], M[i][k])
                for k in range(size)
            ]
            for i in range(size)
        ]

    def _schur(self, G: Rows, span: range, small: Number) -> Rows:
        """Return the matrix of a level in the null space of those above."""
        above = range(span.start)
        if not above:
            return [[G[i][k] for k in span] for i in span]
        held = [[G[i][k] for k in above] for i in above]
        factor = LDLFactor.of(shifted(held, small), small)
        shares = [factor.solve([G[i][k] for i in above]) for k in span]
        return [
            [
                G[i][k] - inner([G[i][j] for j in above], share)
                for k, share in zip(span, shares, strict=True)
            ]
            for i in span
        ]

    def corner(self, at: Progress) -> Progress:
        """Return the progress up to the next corner, or to the end of the level."""
        at = self.begun(at)
        direction = self.direction(at)
        if self._all.bounds is None:
            x = [a + b for a, b in zip(at.z, direction.rates, strict=True)]
            return at._replace(z=x, remaining=0.0, scales=self._scales(at, 0.0, True))
        return self.moved(at, direction)[0]

    @property
    def levels(self) -> int:
        """Return how many levels there are."""
        return self._all.levels

    def has_more(self, at: Progress) -> Number:
        """Return 1 where corners are to come, else 0."""
        more = select(at.level < float(self._all.levels), 1.0, 0.0)
        return select(at.remaining > 0.0, 1.0, more)

    def begun(self, at: Progress) -> Progress:
        """Return the progress at the start of the next level where one has ended."""
        levels = float(self._all.levels)
        ended = select(at.level < levels, 1.0, 0.0)
        starts = select(at.remaining > 0.0, 0.0, ended)
        if isinstance(starts, float) and starts == 0.0:
            return at
        level = at.level + starts
        change: list[Number] = []
        for p, (span, filtered) in enumerate(
            zip(self._all.spans, self.prepared.filters, strict=True)
        ):
            here = _equals(level, p + 1.0)
            gap = [self._all.wanted[k] - inner(self._all.rows[k], at.z) for k in span]
            b = _significant(apply_rows(filtered, gap), gap)
            change += [
                select(starts > 0.0, here * u, at.change[k])
                for k, u in zip(span, b, strict=True)
            ]
        remaining = select(starts > 0.0, 1.0, at.remaining)
        return at._replace(change=change, remaining=remaining, level=level)

    def direction(self, at: Progress, slots: Slots = NO_SLOTS) -> Direction:
        """Return how everything moves per unit of t, or that it cannot.

        slots: The rows of inequalities that hold x.
        """
        h, asked = self._all, self.asked(at, slots)
        motion = held_motion(
            h.rows,
            slots.slot_rows,
            asked,
            h.weights,
            refinements=REFINEMENTS if slots.slot_rows else 1,
            is_bounded=h.bounds is not None,
        )
        return self.directed(at, asked, motion)

    def asked(self, at: Progress, slots: Slots) -> AskedMotion:
        """Return which motion is asked for, of rows of tasks and then of slots."""
        h = self._all
        counts = [
            select(at.level > p + 0.5, 1.0, 0.0)
            for p, span in enumerate(h.spans)
            for _ in span
        ]
        small = (
            self._small + SMALL * self._length**2 if slots.slot_rows else self._small
        )
        last = self._last(at)
        return AskedMotion(
            row_counts=[*counts, *slots.filled],
            row_changes=[*at.change, *(0.0 for _ in slots.slots)],
            free=[
                m * (1.0 - k * k) for m, k in zip(self._movable, at.held, strict=True)
            ],
            pull_now=[last * r for r in h.null or [0.0] * len(h.weights)],
            pressing=[*at.task_pressures, *slots.pressures],
            small=small,
        )

    def _last(self, at: Progress) -> Number:
        """Return 1 while the rates follow those that are asked for what is left."""
        h = self._all
        return 0.0 if h.null is None else _equals(at.level, float(h.levels))

    def directed(
        self, at: Progress, asked: AskedMotion, motion: HeldMotion
    ) -> Direction:
        """Return how everything moves, from what rates do."""
        h = self._all
        moves, y, rates, toward, pressed, lengths = motion
        greatest = _greatest(y)
        pulls = [moves * w * r for w, r in zip(h.weights, asked.pull_now, strict=True)]
        null = h.null or [0.0] * len(h.weights)
        position = self._last(at) * (1.0 - at.remaining)
        return Direction(
            moves=moves,
            pulls=y,
            free=asked.free,
            rates=[moves * rate for rate in rates],
            least=moves * PARALLEL * _greatest([*rates, *asked.pull_now]),
            forces=[
                _heard(own, along, greatest * length)
                for own, along, length in zip(pulls, toward, lengths, strict=True)
            ],
            bound_pressures=[
                along - w * (x - position * r)
                for w, x, r, along in zip(h.weights, at.z, null, pressed, strict=True)
            ],
        )

    def moved(
        self,
        at: Progress,
        d: Direction,
        slots: Slots = NO_SLOTS,
        hit: Hit | None = None,
    ) -> tuple[Progress, Slots]:
        """Return all after the first event on the way, or at the end.

        Of events at the same time, that of the rate or row with the least number comes
        first, which keeps them from taking turns for ever (Bland 1977).

        Args:
            at: The progress before.
            d: How everything moves.
            slots: The rows of inequalities that hold x.
            hit: The first row that x comes to.
        """
        assert self._all.bounds is not None
        n = len(at.z)
        times = self._times(at, d)
        order: list[Number] = [float(k) for k in range(n)]
        times += slots.times(d.pulls[len(at.change) :])
        order += [number + n for number in slots.slots]
        if hit is not None:
            times.append(hit.hit_time)
            order.append(hit.hit_number + n)
        unending = select(at.remaining > 0.0, FAR, 0.0)
        limit = select(d.moves > 0.0, at.remaining, unending)
        step = limit
        for time in times:
            step = minimum(step, time)
        is_event = select(step < limit, 1.0, 0.0)
        first: Number = FAR
        for time, place in zip(times, order, strict=True):
            first = minimum(first, select(time > step, FAR, place))
        happens = [is_event * _equals(first, place) for place in order]
        x: list[Number] = []
        held: list[Number] = []
        for k, (low, high) in enumerate(zip(*self._all.bounds, strict=True)):
            here = happens[k]
            rises = select(d.rates[k] > 0.0, 1.0, -1.0)
            stopped = select(d.free[k] > 0.0, rises, 0.0)
            held.append(select(here > 0.0, stopped, at.held[k]))
            moved = at.z[k] + step * d.rates[k]
            moved = minimum(maximum(moved, low), high)
            end = select(rises > 0.0, high, low)
            x.append(select(here * d.free[k] > 0.0, end, moved))
        left = select(d.moves > 0.0, at.remaining - step, at.remaining)
        remaining = select(is_event > 0.0, maximum(left, 0.0), 0.0)
        paid = select(step < FAR, step, 0.0)
        changes = [paid * b for b in d.pulls]
        if hit is not None:
            slots = slots.pressed(changes[len(at.change) :])
            slots = slots.without(happens[n:-1])
            slots = slots.with_row(hit, happens[-1], self._all.weights, self._length)
        return at._replace(
            z=x,
            held=held,
            task_pressures=[
                a + b for a, b in zip(at.task_pressures, changes, strict=False)
            ],
            remaining=remaining,
            scales=self._scales(at, remaining, d.moves > 0.0),
        ), slots

    def _times(self, at: Progress, d: Direction) -> list[Number]:
        """Return after which step each rate comes to a bound or leaves it."""
        assert self._all.bounds is not None
        times: list[Number] = []
        for k, (low, high) in enumerate(zip(*self._all.bounds, strict=True)):
            room = select(d.rates[k] > 0.0, high - at.z[k], at.z[k] - low)
            speed = absolute(d.rates[k])
            speed = select(speed > d.least, speed, 0.0)
            hit = _quotient(maximum(room, 0.0), speed)
            pressure = maximum(at.held[k] * d.bound_pressures[k], 0.0)
            leaves = _quotient(pressure, 0.0 - at.held[k] * d.forces[k])
            bound = select(self._movable[k] > 0.0, leaves, FAR)
            times.append(select(d.free[k] > 0.0, hit, bound))
        return times

    def _scales(self, at: Progress, remaining: Number, moves: object) -> list[Number]:
        reached = 1.0 - remaining
        return [
            select(_equals(at.level, p + 1.0) > 0.0, select(moves, reached, s), s)
            for p, s in enumerate(at.scales)
        ]


class AskedMotion(NamedTuple):
    """The motion that is asked for, of rows of tasks and then of slots.

    Attributes:
        row_counts: 1 for rows that count, else 0.
        row_changes: How their values change per unit of t.
        free: 1 for rates between their bounds, else 0.
        pull_now: The rates that are nearest to what is wanted of the rest.
        pressing: The multipliers of rows.
        small: What is added to the diagonal of C W^-1 C' to keep it positive.
    """

    row_counts: list[Number]
    row_changes: list[Number]
    free: list[Number]
    pull_now: list[Number]
    pressing: list[Number]
    small: Number


class HeldMotion(NamedTuple):
    """The motion that there is, where C are the rows that count.

    Attributes:
        moves: 1, or 0 where the line cannot be followed.
        pulls: How multipliers y change.
        motion_rates: How rates would.
        toward: C' y.
        pressed: C' times the multipliers that there are.
        lengths: Sums of sizes in each column of C.
    """

    moves: Number
    pulls: list[Number]
    motion_rates: list[Number]
    toward: list[Number]
    pressed: list[Number]
    lengths: list[Number]


def held_motion(
    task_rows: Rows,
    slot_rows: Rows,
    asked: AskedMotion,
    weights: Sequence[Number],
    *,
    refinements: int,
    is_bounded: bool = True,
) -> HeldMotion:
    """Return the motion of rates that rows, and bounds of those that stand, hold.

    Args:
        task_rows: J of all levels.
        slot_rows: The rows of slots, zeros in those that hold none.
        asked: What is asked for.
        weights: The diagonal of W.
        refinements: As for `least_motion`.
        is_bounded: Whether rates are bounded, so that there may be no motion.
    """
    counts, change, free, pull, pressing, small = asked
    # Slots that hold nothing are zeros: their rows need no factor.
    rows = [
        [c * number for number in row]
        for c, row in zip(counts[: len(task_rows)], task_rows, strict=True)
    ]
    rows += slot_rows
    motion = least_motion(
        rows,
        change,
        counts=counts,
        free=free,
        weights=weights,
        pull=pull,
        small=small,
        refinements=refinements,
    )
    right, rest = motion.right, motion.rest
    moves: Number = 1.0
    if is_bounded:
        moves = select(inner(rest, rest) > SINGULAR * inner(right, right), 0.0, 1.0)
    y = [
        select(moves > 0.0, a, b) for a, b in zip(motion.multipliers, rest, strict=True)
    ]
    columns = list(map(list, zip(*rows, strict=True)))
    return HeldMotion(
        moves,
        y,
        motion.rates,
        [inner(column, y) for column in columns],
        [inner(column, pressing) for column in columns],
        [_length(column) for column in columns],
    )


class LeastMotion(NamedTuple):
    """Rates that meet equations, and what they rest on.

    Attributes:
        rates: The rates x.
        multipliers: y, with W (x - r) = C' y for the rates that are free.
        right: c - C r, what the equations ask for beyond r.
        rest: The part of it that no rates meet; then C' rest is 0.
    """

    rates: list[Number]
    multipliers: list[Number]
    right: list[Number]
    rest: list[Number]


def least_motion(
    rows: Rows,
    wanted: Sequence[Number],
    *,
    counts: Sequence[Number],
    free: Sequence[Number],
    weights: Sequence[Number],
    pull: Sequence[Number],
    small: Number,
    refinements: int,
) -> LeastMotion:
    """Return the free rates x with C x = c that make (x - r)' W (x - r) least.

    What first rates miss is added to the rates, not only to y, which has lost more
    digits (corrected seminormal equations: Bjorck, Numerical Methods for Least Squares
    Problems, 1996, section 6.6.5).

    Args:
        rows: C; zeros in rows that do not count.
        wanted: c, 0 in rows that do not count.
        counts: 1 for rows that count, else 0.
        free: 1 for rates that may move; others are 0.
        weights: The diagonal of W.
        pull: The rates r.
        small: What is added to the diagonal of C W^-1 C' to keep it positive.
        refinements: How often rates are corrected; each takes them nearer by the ratio
            of `small` and the least eigenvalue of that matrix.
    """
    columns = list(map(list, zip(*rows, strict=True)))
    shares = [f / w for f, w in zip(free, weights, strict=True)]
    G = gram(rows, shares)
    for k, count in enumerate(counts):
        G[k][k] = G[k][k] + (1.0 - count)
    factor = LDLFactor.of(shifted(G, small), small)

    def added(rates: Sequence[Number], y: Sequence[Number]) -> list[Number]:
        return [
            rate + share * inner(column, y)
            for rate, share, column in zip(rates, shares, columns, strict=True)
        ]

    def missed(rates: Sequence[Number]) -> list[Number]:
        return [c - inner(row, rates) for c, row in zip(wanted, rows, strict=True)]

    rates = [f * r for f, r in zip(free, pull, strict=True)]
    right = missed(rates)
    y = more = factor.solve(right)
    rates = added(rates, y)
    for _ in range(refinements):
        more = factor.solve(missed(rates))
        rates = added(rates, more)
        y = [a + b for a, b in zip(y, more, strict=True)]
    return LeastMotion(rates, y, right, [small * b for b in more])


class Direction(NamedTuple):
    """How things change per unit of t.

    Where `moves` is 0 the line cannot be followed with the rates that are free; then
    the multipliers change alone, until a bound or row may be left.

    Attributes:
        moves: 1 or 0.
        pulls: Change of y, of tasks and then of active rows.
        free: 1 for rates between their bounds, else 0.
        rates: Change of x.
        least: Rates below this are rounding.
        forces: Change of J' y - W (x - r) with x held: what would move it.
        bound_pressures: That number itself, which presses rates against their bounds.
    """

    moves: Number
    pulls: list[Number]
    free: list[Number]
    rates: list[Number]
    least: Number
    forces: list[Number]
    bound_pressures: list[Number]

    @classmethod
    def none(cls, multipliers: int, n: int) -> Direction:
        """Return no motion of n rates and so many multipliers."""
        still = [0.0] * n
        return cls(0.0, [0.0] * multipliers, still, still, 0.0, still, still)


def _greatest(numbers: Sequence[Number]) -> Number:
    """Return the greatest size of numbers."""
    greatest: Number = 0.0
    for number in numbers:
        greatest = maximum(greatest, absolute(number))
    return greatest


def _heard(a: Number, b: Number, size: Number) -> Number:
    """Return a + b, 0 where it is but rounding of b, a sum of terms of a size."""
    noise = NOISE * (absolute(a) + size)
    return select(absolute(a + b) > noise, a + b, 0.0)


def _significant(b: list[Number], gap: list[Number]) -> list[Number]:
    """Return b, zeros where it is but rounding of a filtered gap."""
    least = FAINT * inner(gap, gap)
    return [select(inner(b, b) > least, number, 0.0) for number in b]


def _length(column: Sequence[Number]) -> Number:
    return sum((absolute(number) for number in column), 0.0)


def _quotient(a: Number, b: Number) -> Number:
    """Return a / b where b is above 0, else what is far."""
    return select(b > 0.0, a / select(b > 0.0, b, 1.0), FAR)


def _equals(a: Number, b: Number) -> Number:
    """Return 1 where whole numbers are equal, else 0."""
    return select(a > b - 0.5, select(a < b + 0.5, 1.0, 0.0), 0.0)
