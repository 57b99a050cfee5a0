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

What a level wants is b = c + (1 - M^8) (v - c) with M = d (S + d)^-1, S its matrix
J W^-1 J' in the null space of those above and d = damping^2: eightfold iterated
Tikhonov regularisation. Directions with singular values above 10 dampings keep all but
1e-16; towards singular ones the rates stay below 1.74 |v| / damping. With one M in
place of M^8 it is damped least squares (Nakamura and Hanafusa 1986; Wampler 1986).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain, islice
from typing import NamedTuple, Self

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
from armillary.trace.functions import absolute, maximum, minimum, select

FAR = 1e30  # a time that no event comes to
SMALL = 1e-13  # of the trace of a matrix, added to keep it positive
SINGULAR = 1e-12  # of a squared right-hand side: more than this has no solution
NOISE = 1e-11  # of the size of the terms of a sum: less than this is rounding
TINY = 1e-30


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
        x: The rates.
        remaining: 1 - t of the present level.
        level: Its number from 1; 0 before the first.
        scales: t of each level of tasks.
        multipliers: y, a number for each row.
        held: For each rate 1 at its greatest, -1 at its least, 0 between.
        change: b - c in the rows of the present level, 0 in others.
    """

    x: list[Number]
    remaining: Number
    level: Number
    scales: list[Number]
    multipliers: list[Number]
    held: list[Number]
    change: list[Number]

    @classmethod
    def read(cls, sizes: Sequence[int], n: int, numbers: Sequence[Number]) -> Self:
        """Return the progress that `numbers` holds; zeros are the start."""
        left = iter(numbers)
        m = sum(sizes)
        x = list(islice(left, n))
        remaining, level = islice(left, 2)
        parts = [list(islice(left, size)) for size in (len(sizes), m, n, m)]
        return cls(x, remaining, level, *parts)

    @property
    def numbers(self) -> list[Number]:
        """Return it all in one list."""
        lists = self.scales, self.multipliers, self.held, self.change
        return [*self.x, self.remaining, self.level, *chain.from_iterable(lists)]

    @staticmethod
    def size(sizes: Sequence[int], n: int) -> int:
        """Return the length of that list."""
        return 2 * (n + sum(sizes) + 1) + len(sizes)


class Follower:
    """Follows a hierarchy corner by corner."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        """Prepare what does not change on the way."""
        self._all = hierarchy
        G = gram(hierarchy.rows, [1.0 / w for w in hierarchy.weights])
        trace = sum((G[k][k] for k in range(len(G))), 0.0)
        self._small = SMALL * trace + TINY
        self._filters = [self._filter(G, span) for span in hierarchy.spans]
        self._movable: list[Number] = [1.0 for _ in hierarchy.weights]
        if hierarchy.bounds is not None:
            self._movable = [
                select(high > low, 1.0, 0.0)
                for low, high in zip(*hierarchy.bounds, strict=True)
            ]

    def _filter(self, G: Rows, span: range) -> Rows:
        """Return 1 - M^8 of one level."""
        S = self._schur(G, span)
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

    def _schur(self, G: Rows, span: range) -> Rows:
        """Return the matrix of a level in the null space of those above."""
        above = range(span.start)
        if not above:
            return [[G[i][k] for k in span] for i in span]
        held = [[G[i][k] for k in above] for i in above]
        factor = LDLFactor.of(shifted(held, self._small), self._small)
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
        at = self._begun(at)
        direction = self._direction(at)
        if self._all.bounds is None:
            x = [a + b for a, b in zip(at.x, direction.rates, strict=True)]
            return at._replace(x=x, remaining=0.0, scales=self._scales(at, 0.0, True))
        return self._moved(at, direction)

    def _begun(self, at: Progress) -> Progress:
        """Return the progress at the start of the next level where one has ended."""
        levels = float(self._all.levels)
        ended = select(at.level < levels, 1.0, 0.0)
        starts = select(at.remaining > 0.0, 0.0, ended)
        if isinstance(starts, float) and starts == 0.0:
            return at
        level = at.level + starts
        change: list[Number] = []
        for p, (span, filtered) in enumerate(
            zip(self._all.spans, self._filters, strict=True)
        ):
            here = _equals(level, p + 1.0)
            gap = [self._all.wanted[k] - inner(self._all.rows[k], at.x) for k in span]
            b = apply_rows(filtered, gap)
            change += [
                select(starts > 0.0, here * u, at.change[k])
                for k, u in zip(span, b, strict=True)
            ]
        remaining = select(starts > 0.0, 1.0, at.remaining)
        return at._replace(change=change, remaining=remaining, level=level)

    def _direction(self, at: Progress) -> _Direction:
        """Return how everything moves per unit of t, or that it cannot."""
        h = self._all
        counts = [
            select(at.level > p + 0.5, 1.0, 0.0)
            for p, span in enumerate(h.spans)
            for _ in span
        ]
        rows = [
            [c * number for number in row]
            for c, row in zip(counts, h.rows, strict=True)
        ]
        free = [m * (1.0 - k * k) for m, k in zip(self._movable, at.held, strict=True)]
        last: Number = 0.0 if h.null is None else _equals(at.level, float(h.levels))
        null = h.null or [0.0] * len(free)
        pull = [last * r for r in null]
        G = gram(rows, [f / w for f, w in zip(free, h.weights, strict=True)])
        for k, count in enumerate(counts):
            G[k][k] = G[k][k] + (1.0 - count)
        right = [
            b - inner(row, [f * r for f, r in zip(free, pull, strict=True)])
            for b, row in zip(at.change, rows, strict=True)
        ]
        y, rest = _solved(G, right, self._small)
        if h.bounds is None:
            moves: Number = 1.0
        else:
            rises = inner(rest, rest) > SINGULAR * inner(right, right)
            moves = select(rises, 0.0, 1.0)
        y = [select(moves > 0.0, a, b) for a, b in zip(y, rest, strict=True)]
        columns = [[row[i] for row in rows] for i in range(len(free))]
        greatest: Number = 0.0
        for number in y:
            greatest = maximum(greatest, absolute(number))
        forces = [
            _heard(moves * w * r, inner(column, y), greatest * _length(column))
            for w, r, column in zip(h.weights, pull, columns, strict=True)
        ]
        position = last * (1.0 - at.remaining)
        return _Direction(
            moves=moves,
            multipliers=y,
            free=free,
            rates=[
                moves * (f * u / w)
                for f, u, w in zip(free, forces, h.weights, strict=True)
            ],
            forces=forces,
            pressures=[
                inner(column, at.multipliers) - w * (x - position * r)
                for w, x, r, column in zip(h.weights, at.x, null, columns, strict=True)
            ],
        )

    def _moved(self, at: Progress, d: _Direction) -> Progress:
        """Return the progress after the first event on the way, or at the end."""
        assert self._all.bounds is not None
        times = self._times(at, d)
        unending = select(at.remaining > 0.0, FAR, 0.0)
        limit = select(d.moves > 0.0, at.remaining, unending)
        step = limit
        for time in times:
            step = minimum(step, time)
        x: list[Number] = []
        held: list[Number] = []
        found: Number = 0.0
        for k, (low, high) in enumerate(zip(*self._all.bounds, strict=True)):
            first = select(times[k] < limit, 1.0 - found, 0.0)
            here = select(times[k] > step, 0.0, first)
            found = found + here
            rises = select(d.rates[k] > 0.0, 1.0, -1.0)
            stopped = select(d.free[k] > 0.0, rises, 0.0)
            held.append(select(here > 0.0, stopped, at.held[k]))
            moved = at.x[k] + step * d.rates[k]
            moved = minimum(maximum(moved, low), high)
            end = select(rises > 0.0, high, low)
            x.append(select(here * d.free[k] > 0.0, end, moved))
        left = select(d.moves > 0.0, at.remaining - step, at.remaining)
        remaining = select(found > 0.0, maximum(left, 0.0), 0.0)
        paid = select(step < FAR, step, 0.0)
        return at._replace(
            x=x,
            held=held,
            multipliers=[
                a + paid * b for a, b in zip(at.multipliers, d.multipliers, strict=True)
            ],
            remaining=remaining,
            scales=self._scales(at, remaining, d.moves > 0.0),
        )

    def _times(self, at: Progress, d: _Direction) -> list[Number]:
        """Return after which step each rate comes to a bound or leaves it."""
        assert self._all.bounds is not None
        times: list[Number] = []
        for k, (low, high) in enumerate(zip(*self._all.bounds, strict=True)):
            room = select(d.rates[k] > 0.0, high - at.x[k], at.x[k] - low)
            hit = _quotient(maximum(room, 0.0), absolute(d.rates[k]))
            pressure = maximum(at.held[k] * d.pressures[k], 0.0)
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


class _Direction(NamedTuple):
    """How things change per unit of t.

    Where `moves` is 0 the line cannot be followed with the rates that are free; then
    the multipliers change alone, until a rate may leave its bound.

    Attributes:
        moves: 1 or 0.
        multipliers: Change of y.
        free: 1 for rates between their bounds, else 0.
        rates: Change of x.
        forces: Change of J' y - W (x - r) with x held: what would move it.
        pressures: That number itself, which presses rates against their bounds.
    """

    moves: Number
    multipliers: list[Number]
    free: list[Number]
    rates: list[Number]
    forces: list[Number]
    pressures: list[Number]


def _solved(
    G: Rows, right: Sequence[Number], small: Number
) -> tuple[list[Number], list[Number]]:
    """Return y with G y = right as well as there is one, and what is left of right."""
    factor = LDLFactor.of(shifted(G, small), small)
    first = factor.solve(right)
    second = factor.solve([small * a for a in first])
    y = [a + b for a, b in zip(first, second, strict=True)]
    return y, [small * b for b in second]


def _heard(a: Number, b: Number, size: Number) -> Number:
    """Return a + b, 0 where it is but rounding of b, a sum of terms of a size."""
    noise = NOISE * (absolute(a) + size)
    return select(absolute(a + b) > noise, a + b, 0.0)


def _length(column: Sequence[Number]) -> Number:
    return sum((absolute(number) for number in column), 0.0)


def _quotient(a: Number, b: Number) -> Number:
    """Return a / b where b is above 0, else what is far."""
    return select(b > 0.0, a / select(b > 0.0, b, 1.0), FAR)


def _equals(a: Number, b: float) -> Number:
    """Return 1 where a whole number is b, else 0."""
    return select(a > b - 0.5, select(a < b + 0.5, 1.0, 0.0), 0.0)
