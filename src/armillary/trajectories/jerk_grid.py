"""The grid of paths within limits of jerk, and where iterations begin.

Symbols are those of `jerk_stages.py`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from armillary.spatial.vector import Matrix, Number, Vector
from armillary.trace.functions import (
    absolute,
    cbrt,
    maximum,
    minimum,
    power,
    select,
    sqrt,
)
from armillary.trajectories.hermite import BASIS
from armillary.trajectories.jerk_columns import GRADED, RATES
from armillary.trajectories.jerk_spline import (
    FAST,
    PLACE,
    SIMPSON,
    TINY,
    GridEnds,
    GridInterval,
    bound_rows,
    greater,
    spline_at,
)

__all__ = [
    "BetweenKnots",
    "GridLimits",
    "begin_envelope",
    "choose_guess",
    "chosen_point",
    "derivatives",
    "end_jerks",
    "end_ratio",
    "envelope_point",
    "fall_envelope",
    "grade",
    "greatest_ratio",
    "grid_interval",
    "guessed_point",
    "interval_ratio",
    "least_steep",
    "lower_all",
    "lowered_point",
    "no_ratio",
    "relaxed_limits",
    "rise_envelope",
    "settle_ends",
    "smooth_point",
    "start_ends",
    "turn_envelope",
    "useful_jerk",
]

START_RATIO: Final = 0.8
"""Greatest part of a limit where iterations begin."""

POOR: Final = 2.0
"""By how much a motion to begin with may exceed limits of x."""

GUESS_RATIO: Final = 0.99
"""The same of a motion that is given to begin with."""


SHORTEST: Final = 1e-6
"""The least part of a path in which a motion accelerates fully."""


# The grid


class GridLimits(NamedTuple):
    """The greatest rates, accelerations and jerks of joints."""

    velocity: Matrix
    acceleration: Matrix
    jerk: Vector


class OuterKnots(NamedTuple):
    """The first and the last knot, where these and their neighbours are, and parts."""

    knot_first: Matrix
    knot_last: Matrix
    s_first: Number
    s_second: Number
    s_last: Number
    s_before: Number
    parts: Number


def useful_jerk(
    knots: OuterKnots, acceleration: Matrix, jerk: Vector, pushes: Vector
) -> Vector:
    """Return limits of jerk, or the part of them that is made use of.

    They may be so high that a motion accelerates fully within `SHORTEST` of its path,
    over lengths that no grid resolves: s = j t^3 / 6 with t = a / j.
    """
    length = SHORTEST * (knots.s_last - knots.s_first)
    share: Number = 1.0
    for knot, most in zip((knots.knot_first, knots.knot_last), pushes, strict=True):
        push, more = most, FAST
        for m, low, high, j in zip(knot[1], *acceleration, jerk, strict=True):
            over = 1.0 / maximum(absolute(m), TINY)
            push = minimum(push, minimum(-low, high) * over)
            more = minimum(more, j * over)
        useful = sqrt(push * push * push / (6.0 * length)) / more
        share = select(useful < share, useful, share)
    return [share * j for j in jerk]


class Graded(NamedTuple):
    """How both ends of the grid are."""

    shares: Vector
    special: Vector
    moving: Vector
    first_slopes: Vector
    last_slopes: Vector
    scales: Matrix
    steepest: Number
    h_zero: Number
    h_end: Number


def grade(
    knots: OuterKnots,
    limits: GridLimits,
    start: Number,
    end: Number,
    pushes: Vector,
) -> Graded:
    """Return where the grid is finer, and how long jerk is constant at ends at rest.

    That is half of the way in which a constant jerk alone would raise the acceleration
    or the rate to what limits allow, or a 64th of the path.
    """
    velocity, acceleration, jerk = limits
    length = knots.s_last - knots.s_first
    shares: list[Number] = []
    lengths: list[Number] = []
    slopes: list[list[Number]] = []
    widths = knots.s_second - knots.s_first, knots.s_last - knots.s_before
    for knot, gap, speed, most in zip(
        (knots.knot_first, knots.knot_last), widths, (start, end), pushes, strict=True
    ):
        width = gap / knots.parts
        rate, push, more = FAST, most, FAST
        slope = [absolute(m) for m in knot[1]]
        for m, low, high, low2, high2, j in zip(
            slope, *velocity, *acceleration, jerk, strict=True
        ):
            over = 1.0 / maximum(m, TINY)
            rate = minimum(rate, minimum(-low, high) * over)
            push = minimum(push, minimum(-low2, high2) * over)
            more = minimum(more, j * over)
        t = minimum(push / more, sqrt(rate / more))
        way = minimum(more * t * t * t / 6.0, length / 32.0)
        special = minimum(0.5 * way, 0.8 * width)
        part = special / width
        root = sqrt(sqrt(part))
        powers = [part, root * root * root, root * root, root]
        is_moving = speed > 0.0
        shares += [select(is_moving, k / GRADED, powers[k]) for k in range(GRADED)]
        lengths.append(select(is_moving, 0.0, special))
        slopes.append(slope)
    shares[GRADED:] = shares[GRADED:][::-1]  # the last point is nearest to the end
    return Graded(
        [*shares, 0.0],
        lengths,
        [select(start > 0.0, 1.0, 0.0), select(end > 0.0, 1.0, 0.0)],
        [m / j for m, j in zip(slopes[0], jerk, strict=True)],
        [m / j for m, j in zip(slopes[1], jerk, strict=True)],
        _scales(acceleration, jerk),
        FAST,
        0.0,
        0.0,
    )


def _scales(acceleration: Matrix, jerk: Vector) -> Matrix:
    """Return jerks over half the range of accelerations, and its middle over half."""
    factors: list[Number] = []
    middles: list[Number] = []
    for low, high, j in zip(*acceleration, jerk, strict=True):
        over = 2.0 / (high - low)
        factors.append(j * over)
        middles.append(0.5 * (high + low) * over)
    return factors, middles


class BetweenKnots(NamedTuple):
    """The knots around an interval, and where in between it starts and ends."""

    from_knot: Matrix
    to_knot: Matrix
    s_from: Number
    s_to: Number
    graded_from: Number
    graded_to: Number
    base_from: Number
    scale_from: Number
    base_to: Number
    scale_to: Number

    def parts(self) -> tuple[Number, Number]:
        """Return its start and its end, as parts of the way between the knots."""
        return (
            self.base_from + self.scale_from * self.graded_from,
            self.base_to + self.scale_to * self.graded_to,
        )

    def polynomials(self) -> list[list[Number]]:
        """Return coefficients of r to r^5 of each joint, r the part of the way."""
        h = self.s_to - self.s_from
        found: list[list[Number]] = []
        for (qa, ma, ca), (qb, mb, cb) in zip(
            zip(*self.from_knot, strict=True),
            zip(*self.to_knot, strict=True),
            strict=True,
        ):
            parts = [qb - qa, h * ma, h * mb, h * h * ca, h * h * cb]
            found.append(
                [
                    sum(float(BASIS[j, k]) * parts[j] for j in range(5) if BASIS[j, k])
                    for k in range(1, 6)
                ]
            )
        return found


def derivatives(c: Vector, r: Number) -> tuple[Number, Number, Number]:
    """Return the first three derivatives of sum c[k] r^(k + 1), k from 0 to 4."""
    c1, c2, c3, c4, c5 = c
    return (
        c1 + r * (2.0 * c2 + r * (3.0 * c3 + r * (4.0 * c4 + r * 5.0 * c5))),
        2.0 * c2 + r * (6.0 * c3 + r * (12.0 * c4 + r * 20.0 * c5)),
        6.0 * c3 + r * (24.0 * c4 + r * 60.0 * c5),
    )


class IntervalMade(NamedTuple):
    """An interval of the grid."""

    h_here: Number
    deriv: Matrix
    cap: Vector
    rise_here: Number
    grid_here: Number
    grid_next: Number
    steep_here: Number


def grid_interval(
    knots: BetweenKnots,
    limits: GridLimits,
    factor_here: Number,
    bound: Matrix = (),
) -> IntervalMade:
    """Return what limits at places of an interval are made of.

    Accelerations are made of the same numbers as jerks, so that `factor_here` counts
    for them, too.
    """
    velocity, acceleration, jerk = limits
    s_from = knots.s_from
    h = knots.s_to - s_from
    r0, r1 = knots.parts()
    inverse = 1.0 / h
    square = inverse * inverse
    polynomials = knots.polynomials()
    over = [factor_here / j for j in jerk]
    # of divisors first the greatest, as dividing takes long
    per_rate, per_acceleration = (
        [[1.0 / most for most in side] for side in limit]
        for limit in (velocity, acceleration)
    )
    places: list[list[list[Number]]] = []
    highest: Number = TINY
    steepest: Number = TINY
    sharpest: Number = TINY
    for tau in PLACE:
        r = r0 + tau * (r1 - r0)
        rows: list[list[Number]] = [[], [], []]
        for c, low, high, j in zip(polynomials, *per_acceleration, over, strict=True):
            a, b, d = derivatives(c, r)
            a, b, d = a * inverse, b * square, d * (inverse * square) * j
            rows[0].append(d)
            rows[1].append(1.5 * b * j)
            rows[2].append(0.5 * a * j)
            highest = greater(b * select(b > 0.0, high, low), highest)
            sharpest = greater(absolute(d), sharpest)
            steepest = greater(absolute(a) * j, steepest)
        places.append(rows)
    root = cbrt(1.0 / sharpest)
    ceiling = minimum(FAST, minimum(1.0 / highest, root * root))
    caps: list[Number] = []
    for k in range(RATES):
        r = r0 + k / RATES * (r1 - r0)
        least: Number = 1.0 / FAST
        for c, low, high in zip(polynomials, *per_rate, strict=True):
            a, _, _ = derivatives(c, r)
            v = a * inverse * select(a > 0.0, high, low)
            least = greater(v * v, least)
        caps.append(least)
        ceiling = minimum(ceiling, 1.0 / least)
    for _, b, m in bound:
        room = select(b > 0.0, 1.0 + m, 1.0 - m)
        ceiling = minimum(ceiling, room / maximum(absolute(b), TINY))
    return IntervalMade(
        (r1 - r0) * h,
        places,
        caps,
        power(ceiling, 0.75),
        s_from + r0 * h,
        s_from + r1 * h,
        minimum(FAST, 1.0 / steepest),
    )


def least_steep(steepest: Number, steep_here: Number) -> Number:
    """Return the least J / |q'| as far as here."""
    return minimum(steepest, steep_here)


class EndsOfPath(NamedTuple):
    """Both ends of the path, at rest or in motion, and of its grid."""

    special: Vector
    moving: Vector
    first_slopes: Vector
    last_slopes: Vector
    first_deriv: Matrix
    last_deriv: Matrix


def end_jerks(ends: EndsOfPath) -> Matrix:
    """Return jerks over limits and x^(3/2) of constant path jerks, 0 in motion.

    Near an end at rest x = x1 (s / hs)^(4/3), so that at hs

        y1 = +-4/3 x1 / hs,  c sqrt(x) / 2 = 2/9 x1^(3/2) / hs^2

    where the path curves jerks there are others than those at the end, where they are
    |q'| 2/9 x1^(3/2) / hs^2. The greater one counts.
    """
    found: list[list[Number]] = []
    for hs, moves, slopes, rows, sign in (
        (ends.special[0], ends.moving[0], ends.first_slopes, ends.first_deriv[0], 1.0),
        (ends.special[1], ends.moving[1], ends.last_slopes, ends.last_deriv[-1], -1.0),
    ):
        is_moving = moves > 0.0
        inverse = 1.0 / select(is_moving, 1.0, hs)
        third = 2.0 / 9.0 * inverse * inverse
        found.append(
            [
                select(
                    is_moving,
                    0.0,
                    maximum(
                        third * slope,
                        absolute(
                            d + sign * 4.0 / 3.0 * inverse * v + 2.0 * third * half
                        ),
                    ),
                )
                for slope, d, v, half in zip(slopes, *rows, strict=True)
            ]
        )
    return found


# A first iterate


class Begun(NamedTuple):
    """What iterations need of both ends."""

    folds: Vector
    envelope: Vector
    b_first: Number
    b_second: Number
    b_last: Number
    b_before: Number


def begin_envelope(
    special: Vector,
    moving: Vector,
    h_first: Number,
    h_last: Number,
    steepest: Number,
    start: Number,
) -> Begun:
    """Return how the outer control points follow from the next ones, and an envelope.

    At rest x = x1 (s / hs)^(4/3), so y1 = 4/3 x1 / hs, and b[1] = b[0] + y1 h / 2. The
    envelope rises like x^(3/4) under 0.3 of the jerk: x = C s^(4/3), with C =
    6^(4/3) / 4 j^(2/3).
    """
    folds: list[Number] = []
    for hs, h, moves in zip(special, (h_first, h_last), moving, strict=True):
        inside = 1.0 / (1.0 + 2.0 * h / (3.0 * select(moves > 0.0, 1.0, hs)))
        folds.append(select(moves > 0.0, 0.0, inside))
    rise = 6.0 / 4.0**0.75 * sqrt(0.3 * steepest)
    y = select(moving[0] > 0.0, power(start, 1.5), rise * special[0])
    return Begun(folds, [y, rise], 0.0, 0.0, 0.0, 0.0)


def rise_envelope(
    h_before: Number, h_here: Number, rise_here: Number, envelope: Vector
) -> tuple[Number, Vector]:
    """Return x^(3/4), which rises from the one before no faster than may be."""
    y, rise = envelope
    y = minimum(y + rise * 0.5 * (h_before + h_here), rise_here)
    return y, (y, rise)


def turn_envelope(
    special: Vector, moving: Vector, end: Number, envelope: Vector
) -> Vector:
    """Return the envelope where it starts at the end."""
    rise = envelope[1]
    return select(moving[1] > 0.0, power(end, 1.5), rise * special[1]), rise


def fall_envelope(
    back_h: Number, back_h_after: Number, back_rise: Number, envelope: Vector
) -> tuple[Number, Vector]:
    """Return the same towards the end."""
    return rise_envelope(back_h, back_h_after, back_rise, envelope)


def envelope_point(rise_here: Number) -> Number:
    """Return a control point of the envelope."""
    return power(rise_here, 4.0 / 3.0)


class Settled(NamedTuple):
    """Outer control points that fit the next ones."""

    b_first: Number
    b_last: Number
    kept: Number


def settle_ends(b_second: Number, b_before: Number, folds: Vector) -> Settled:
    """Return the outer control points that fit the next ones."""
    first = folds[0] * b_second
    return Settled(first, folds[1] * b_before, first)


def smooth_point(b1: Number, b2: Number, kept: Number) -> tuple[Number, Number]:
    """Return a control point smoothed with its neighbours."""
    return 0.25 * kept + 0.5 * b1 + 0.25 * b2, b1


def guessed_point(
    b1: Number, guess_here: Number, is_sound: Number
) -> tuple[Number, Number]:
    """Return a control point as it is guessed, where it is, and of the envelope."""
    return select(is_sound > 0.0, guess_here, b1), b1


def choose_guess(ratio: Vector, is_sound: Number, parts: Number) -> Number:
    """Return whether iterations begin with the guess: above 0.

    One that has to be lowered by much is of another curve, where knots were left out,
    and farther away than the envelope.
    """
    straight, of_jerk, _ = ratio
    worst = maximum(straight, power(of_jerk, 2.0 / 3.0))
    return select((worst < POOR) | (parts > 1.5), is_sound, 0.0)


def chosen_point(b1: Number, d1: Number, chosen: Number) -> Number:
    """Return a control point of the guess, or else of the envelope."""
    return select(chosen > 0.0, b1, d1)


def no_ratio(start: Number) -> Vector:
    """Return what ratios begin with."""
    return [0.0 * start] * 3


def interval_ratio(interval: GridInterval, bound: Matrix = ()) -> Vector:
    """Return the greatest parts of limits, and the duration, of an interval."""
    straight: Number = 0.0
    of_jerk: Number = 0.0
    lasts: Number = 0.0
    _, h_here, *_, deriv, cap, scales = interval
    begin = interval.start()
    for k, (tau, rows) in enumerate(zip(PLACE, deriv, strict=True)):
        x, y, c = spline_at(begin, h_here, tau)
        root = sqrt(maximum(x, TINY))
        lasts = lasts + SIMPSON[k] * h_here / root
        third = 2.0 / 3.0 * x
        for d, v, half, scale, middle in zip(*rows, *scales, strict=True):
            r = scale * (v * third + half * y) - middle
            straight = maximum(straight, absolute(r))
            of_jerk = maximum(of_jerk, absolute(d * x + v * y + half * c) * root)
    for k, inverse in enumerate(cap):
        straight = maximum(straight, spline_at(begin, h_here, k / RATES)[0] * inverse)
    for k, tau in enumerate(PLACE):
        x, y, _ = spline_at(begin, h_here, tau)
        for a, b, m in bound_rows(bound, k):
            moving = 0.5 * a * y + b * x
            room = select(moving > 0.0, 1.0 + m, m - 1.0)
            straight = maximum(straight, moving / room)
    return straight, of_jerk, lasts


def greatest_ratio(ratio: Vector, ratio_here: Vector) -> Vector:
    """Return the greatest parts of limits and the duration, as far as here."""
    straight, of_jerk, lasts = ratio
    return (
        maximum(straight, ratio_here[0]),
        maximum(of_jerk, ratio_here[1]),
        lasts + ratio_here[2],
    )


def end_ratio(b_first: Number, b_last: Number, ends: GridEnds, ratio: Vector) -> Vector:
    """Return the same with the constant jerks at both ends."""
    straight, of_jerk, lasts = ratio
    points = b_first, b_last
    for x, row, hs in zip(points, ends.end_rows, ends.special, strict=True):
        root = sqrt(maximum(x, TINY))
        lasts = lasts + 3.0 * hs / root
        for u in row:
            of_jerk = maximum(of_jerk, u * x * root)
    return straight, of_jerk, lasts


def lower_all(ratio: Vector, moving: Vector, chosen: Number) -> Number:
    """Return by what the first iterate is multiplied to be within limits.

    In motion it stays near to what is given at the ends; limits are relaxed instead.
    """
    straight, of_jerk, _ = ratio
    most = select(chosen > 0.0, GUESS_RATIO, START_RATIO)
    lower = minimum(most / straight, power(most / of_jerk, 2.0 / 3.0))
    is_moving = moving[0] + moving[1] > 0.0
    return select(is_moving, 1.0, minimum(lower, 1.0))


def lowered_point(b1: Number, step: Number) -> Number:
    """Return a control point that is multiplied by `step`."""
    return b1 * step


class GivenMotion(NamedTuple):
    """The path speed and acceleration that are given at both ends."""

    start: Number
    end: Number
    start_acceleration: Number
    end_acceleration: Number


class Started(NamedTuple):
    """The first iterate at both ends."""

    b_first: Number
    b_second: Number
    b_last: Number
    b_before: Number


def start_ends(
    b_second: Number,
    b_before: Number,
    folds: Vector,
    moving: Vector,
    h_first: Number,
    h_last: Number,
    given: GivenMotion,
) -> Started:
    """Return outer control points: of given speeds and accelerations, or at rest."""
    start, end, start_acceleration, end_acceleration = given
    is_moving, ends_moving = moving[0] > 0.0, moving[1] > 0.0
    x0, x1 = start * start, end * end
    first = select(is_moving, x0, folds[0] * b_second)
    second = select(is_moving, x0 + start_acceleration * h_first, b_second)
    last = select(ends_moving, x1, folds[1] * b_before)
    before = select(ends_moving, x1 - end_acceleration * h_last, b_before)
    return Started(first, second, last, before)


class Relaxed(NamedTuple):
    """Limits that hold at the first iterate, and how long it takes."""

    relax: Number
    relaxing: Number
    going: Number
    lasts: Number


def relaxed_limits(ratio: Vector) -> Relaxed:
    """Return by what limits are relaxed at first, and whether there is a motion."""
    worst = maximum(ratio[0], ratio[1])
    is_within = worst < 0.9999
    is_number = worst < FAST
    return Relaxed(
        select(is_within, 1.0, 1.5 * worst),
        select(is_within, 0.0, 1.0),
        select(is_number, 1.0, 0.0),
        ratio[2],
    )
