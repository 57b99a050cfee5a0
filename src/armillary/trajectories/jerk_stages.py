"""The stages that find the fastest motion along paths within limits of jerk.

With x = s'^2 as a function of s, y = dx/ds and c = dy/ds, path acceleration and jerk are
s'' = y / 2 and s''' = c sqrt(x) / 2, so that for a path q(s)

    qd = q' sqrt(x),    qdd = q'' x + q' y / 2
    qddd = sqrt(x) w,    w = q''' x + 3/2 q'' y + q' c / 2

x is a quadratic spline of s with control points b, so that x, y and c are linear in
three of them in each interval of a grid. The duration, the integral of 1 / sqrt(x), is
convex in b. So are the limits of rates and accelerations, but not |w| <= J / sqrt(x):
its right side is convex, and is bounded from below by its tangent at each iterate
(Debrouwere et al., "Time-optimal path following for robots with convex-concave
constraints using sequential convex programming", IEEE Transactions on Robotics 29(6),
2013). The duration over mu, less the logarithms of all slacks, is minimised by Newton's
method, with the tangent renewed in each iteration. Its matrix has five diagonals, and is
eliminated in the same sweep over the grid in which it is summed. Iterates stay strictly
within limits; where the motion at a given end breaks them at first, all are relaxed by a
factor that falls to 1.

Near an end at rest s''' is constant in time, s = j t^3 / 6, over a length hs of s, so
x = x1 (s / hs)^(4/3) there, which no polynomial of s is near to.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from armillary.kernel.columns import repeat, when
from armillary.kernel.pipeline import Pipeline, Stage
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
from armillary.trajectories.curve import BASIS, basis
from armillary.trajectories.jerk_columns import GRADED, PLACES, RATES, JerkColumns
from armillary.trajectories.path_columns import Records
from armillary.trajectories.spline_stages import (
    spline_columns,
    spline_records,
    spline_stages,
)
from armillary.trajectories.timed_path import PathReason

__all__ = ["jerk_pipeline", "jerk_records"]

GAP: Final = 4e-4
"""The weight of logarithms: mu is this part of the duration, over the intervals."""

ENOUGH: Final = 40.0
"""Iterations end where Newton's decrement, squared, is less: the next one wins mu times
that, which is far below GAP."""

KEPT: Final = 0.95
"""The greatest share of a slack that a step takes."""

START_RATIO: Final = 0.8
"""Greatest part of a limit where iterations begin."""

TOGETHER: Final = 7
"""How many numbers are inverted by one division."""

TIGHTER: Final = 0.75
"""What is kept of the slack of relaxed limits: Newton's method can about double it."""

RELAXED_WEIGHT: Final = 1e-4
"""What the duration counts less while limits are relaxed."""

LIMIT: Final = 60
"""Most iterations."""

FAST: Final = 1e24
TINY: Final = 1e-200

START_TOO_FAST: Final = float(PathReason.START_TOO_FAST)
END_TOO_FAST: Final = float(PathReason.END_TOO_FAST)
STOPS: Final = float(PathReason.STOPS)

# Nodes and weights of Gauss and Legendre on [0, 1]
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)
NODES: Final = tuple((0.5 + 0.5 * _NODES).tolist())
WEIGHTS: Final = tuple((0.5 * _WEIGHTS).tolist())
SIMPSON: Final = (1.0 / 6.0, 4.0 / 6.0, 1.0 / 6.0)
PLACE: Final = (0.0, 0.5, 1.0)

LAW: Final = np.stack(
    [basis(np.linspace(0.0, 1.0, 9), order) for order in range(4)], axis=1
)
"""Polynomials of `curve.py` and their derivatives at parts of a time, (9, 4, 5)."""


def jerk_pipeline(
    joints: int, *, knots: int, intervals: int, has_spline: bool
) -> Pipeline:
    """Return the pipeline from waypoints, or curves, to times within limits of jerk.

    Args:
        joints: How many there are.
        knots: The most knots of a path.
        intervals: The most intervals of a grid.
        has_spline: Whether inputs are waypoints, not a curve.
    """
    columns = JerkColumns(knots=knots, intervals=intervals, joints=joints)
    given = (
        (columns.path, columns.given, columns.is_given)
        if has_spline
        else (columns.at, columns.knots)
    )
    tables = (
        *(columns.SPLINE if has_spline else ()),
        *(columns.INTERVALS, columns.BACKWARDS, columns.BOTH_ENDS),
    )
    each = JerkColumns.INTERVALS.each
    back = JerkColumns.BACKWARDS.each
    ends = JerkColumns.BOTH_ENDS.each
    stage = columns.stage
    look = (
        stage(_no_ratio, writes=columns.ratio),
        each(columns, stage(_ratio, writes=columns.ratio)),
        ends(columns, stage(_end_ratio, writes=columns.ratio)),
    )
    stages: tuple[Stage, ...] = (
        *(spline_stages(columns) if has_spline else ()),
        ends(columns, stage(_grade)),
        each(columns, stage(_interval)),
        ends(columns, stage(_begin)),
        each(columns, stage(_rise, writes=(columns.b1, columns.envelope))),
        ends(columns, stage(_turn, writes=columns.envelope)),
        back(columns, stage(_fall, writes=(columns.back_b1, columns.envelope))),
        ends(columns, stage(_settle)),
        each(columns, stage(_smooth, writes=(columns.b1, columns.kept))),
        ends(columns, stage(_settle)),
        each(columns, stage(_smooth, writes=(columns.b1, columns.kept))),
        ends(columns, stage(_settle)),
        *look,
        ends(columns, stage(_lower, writes=columns.step)),
        each(columns, stage(_lowered, writes=columns.b1)),
        ends(columns, stage(_start)),
        *look,
        stage(_relaxed),
        repeat(
            columns.going,
            ends(columns, stage(_open)),
            each(columns, stage(_newton)),
            ends(columns, stage(_close)),
            back(columns, stage(_back, writes=columns.back0)),
            ends(columns, stage(_end_share, writes=columns.most)),
            each(columns, stage(_share, writes=columns.most)),
            stage(_length),
            ends(columns, stage(_ends_moved)),
            each(columns, stage(_moved, writes=columns.b1)),
            when(columns.relaxing, *look),
            ends(columns, stage(_renewed)),
            limit=LIMIT,
        ),
        stage(_no_peak, writes=columns.peak),
        each(columns, stage(_result)),
        ends(columns, stage(_reason, writes=columns.fault_here)),
    )
    results = (
        *((columns.at, columns.knots, columns.state) if has_spline else ()),
        *(columns.grid, columns.squares, columns.slopes, columns.spans),
        *(columns.special, columns.peak, columns.fault_here),
    )
    scratch = (
        *(spline_columns(columns) if has_spline else ()),
        *(columns.lengths, columns.derivs, columns.caps, columns.ceilings),
        *(columns.control, columns.change, columns.factors),
        *(columns.grid, columns.squares, columns.slopes, columns.spans),
    )
    limits = columns.velocity, columns.acceleration, columns.jerk
    motion = (
        *(columns.start, columns.end),
        *(columns.start_acceleration, columns.end_acceleration),
    )
    return Pipeline(
        "jerk_path",
        (*given, *limits, *motion),
        tuple(steps.table(columns) for steps in tables),
        stages,
        tuple(column.name for column in results),
        scratch,
    )


def jerk_records(
    intervals: int, per_knot: int, *, has_spline: bool
) -> dict[str, Records]:
    """Return the records of the tables of `jerk_pipeline`.

    Args:
        intervals: How many there are between knots.
        per_knot: Intervals of the grid in each of them, before those at the ends are
            divided.
    """
    # of each point of the grid: the knot before, the share, a graded one and its factor
    none = 2 * GRADED
    points = [(0, 0.0, 1.0 / per_knot, k) for k in range(GRADED)]
    points += [
        (k // per_knot, (k % per_knot) / per_knot, 0.0, none)
        for k in range(1, intervals * per_knot)
    ]
    last = intervals - 1
    points += [(last, 1.0, -1.0 / per_knot, GRADED + k) for k in range(GRADED)]
    here = np.arange(len(points) - 1)
    knot, base, scale, near = (np.array(part) for part in zip(*points, strict=True))
    # an interval that ends at a knot ends at share 1 of the knots before it
    at_knot = knot[1:] != knot[:-1]
    count = len(here)
    records = JerkColumns.INTERVALS.records(
        here=here,
        knot=knot[:-1],
        near=near[:-1],
        far=near[1:],
        base_from=base[:-1],
        scale_from=scale[:-1],
        base_to=np.where(at_knot, 1.0, base[1:]),
        scale_to=np.where(at_knot, 0.0, scale[1:]),
        is_first=here == 0,
        is_second=here == 1,
        is_last=here == count - 1,
    )
    return {
        **(spline_records(intervals) if has_spline else {}),
        **records,
        **JerkColumns.BACKWARDS.records(here=here[::-1]),
        **JerkColumns.BOTH_ENDS.records(
            first=np.array([0]),
            last_knot=np.array([intervals]),
            last_b=np.array([count]),
            last_h=np.array([count]),
            parts=np.array([float(per_knot)]),
            count=np.array([float(count)]),
        ),
    }


# The grid


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


def _grade(
    knot_first: Matrix,
    knot_second: Matrix,
    knot_last: Matrix,
    knot_before: Matrix,
    s_first: Number,
    s_second: Number,
    s_last: Number,
    s_before: Number,
    parts: Number,
    velocity: Matrix,
    acceleration: Matrix,
    jerk: Vector,
    start: Number,
    end: Number,
) -> Graded:
    """Return where the grid is finer, and how long jerk is constant at ends at rest.

    That is half of the way in which a constant jerk alone would raise the acceleration
    or the rate to what limits allow, or a 64th of the path.
    """
    shares: list[Number] = []
    lengths: list[Number] = []
    slopes: list[list[Number]] = []
    for knot, width, speed in (
        (knot_first, (s_second - s_first) / parts, start),
        (knot_last, (s_last - s_before) / parts, end),
    ):
        rate, push, more = FAST, FAST, FAST
        slope = [absolute(m) for m in knot[1]]
        for m, low, high, low2, high2, j in zip(
            slope, *velocity, *acceleration, jerk, strict=True
        ):
            over = 1.0 / maximum(m, TINY)
            rate = minimum(rate, minimum(-low, high) * over)
            push = minimum(push, minimum(-low2, high2) * over)
            more = minimum(more, j * over)
        t = minimum(push / more, sqrt(rate / more))
        way = minimum(more * t * t * t / 6.0, (s_last - s_first) / 32.0)
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


class Interval(NamedTuple):
    """An interval of the grid."""

    h_here: Number
    deriv: Matrix
    cap: Vector
    ceiling: Number
    grid_here: Number
    grid_next: Number
    steepest: Number


def _interval(
    from_knot: Matrix,
    to_knot: Matrix,
    s_from: Number,
    s_to: Number,
    graded_from: Number,
    graded_to: Number,
    base_from: Number,
    scale_from: Number,
    base_to: Number,
    scale_to: Number,
    velocity: Matrix,
    acceleration: Matrix,
    jerk: Vector,
    steepest: Number,
) -> Interval:
    """Return what limits at places of an interval are made of."""
    h = s_to - s_from
    r0 = base_from + scale_from * graded_from
    r1 = base_to + scale_to * graded_to
    inverse = 1.0 / h
    square = inverse * inverse
    polynomials: list[list[Number]] = []
    for (qa, ma, ca), (qb, mb, cb) in zip(
        zip(*from_knot, strict=True), zip(*to_knot, strict=True), strict=True
    ):
        parts = [qb - qa, h * ma, h * mb, h * h * ca, h * h * cb]
        polynomials.append(
            [
                sum(float(BASIS[j, k]) * parts[j] for j in range(5) if BASIS[j, k])
                for k in range(1, 6)
            ]
        )
    over = [1.0 / j for j in jerk]
    places: list[list[list[Number]]] = []
    ceiling: Number = FAST
    sharpest: Number = TINY
    for tau in PLACE:
        r = r0 + tau * (r1 - r0)
        rows: list[list[Number]] = [[], [], []]
        for (c1, c2, c3, c4, c5), low, high, j in zip(
            polynomials, *acceleration, over, strict=True
        ):
            a = c1 + r * (2.0 * c2 + r * (3.0 * c3 + r * (4.0 * c4 + r * 5.0 * c5)))
            b = 2.0 * c2 + r * (6.0 * c3 + r * (12.0 * c4 + r * 20.0 * c5))
            d = 6.0 * c3 + r * (24.0 * c4 + r * 60.0 * c5)
            a, b, d = a * inverse, b * square, d * (inverse * square) * j
            rows[0].append(d)
            rows[1].append(1.5 * b * j)
            rows[2].append(0.5 * a * j)
            most = select(b > 0.0, high, -low)
            ceiling = minimum(ceiling, most / maximum(absolute(b), TINY))
            sharpest = maximum(sharpest, absolute(d))
            steepest = minimum(steepest, 1.0 / maximum(absolute(a) * j, TINY))
        places.append(rows)
    root = cbrt(1.0 / sharpest)
    ceiling = minimum(ceiling, root * root)
    caps: list[Number] = []
    for k in range(RATES):
        r = r0 + k / RATES * (r1 - r0)
        least: Number = 1.0 / FAST
        for (c1, c2, c3, c4, c5), low, high in zip(polynomials, *velocity, strict=True):
            a = c1 + r * (2.0 * c2 + r * (3.0 * c3 + r * (4.0 * c4 + r * 5.0 * c5)))
            v = a * inverse / select(a > 0.0, high, low)
            least = maximum(least, v * v)
        caps.append(least)
        ceiling = minimum(ceiling, 1.0 / least)
    return Interval(
        (r1 - r0) * h,
        places,
        caps,
        ceiling,
        s_from + r0 * h,
        s_from + r1 * h,
        steepest,
    )


# A first iterate


class Begun(NamedTuple):
    """What iterations need of both ends."""

    folds: Vector
    envelope: Vector
    b_first: Number
    b_second: Number
    b_last: Number
    b_before: Number


def _begin(
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


def _rise(
    h_before: Number, h_here: Number, ceiling: Number, envelope: Vector
) -> tuple[Number, Vector]:
    """Return a control point that rises from the one before no faster than may be."""
    y, rise = envelope
    y = minimum(y + rise * 0.5 * (h_before + h_here), power(ceiling, 0.75))
    return power(y, 4.0 / 3.0), (y, rise)


def _turn(special: Vector, moving: Vector, end: Number, envelope: Vector) -> Vector:
    rise = envelope[1]
    return select(moving[1] > 0.0, power(end, 1.5), rise * special[1]), rise


def _fall(
    back_h: Number, back_h_after: Number, back_b1: Number, envelope: Vector
) -> tuple[Number, Vector]:
    """Return the same towards the end."""
    y, rise = envelope
    y = minimum(y + rise * 0.5 * (back_h + back_h_after), power(back_b1, 0.75))
    return power(y, 4.0 / 3.0), (y, rise)


class Settled(NamedTuple):
    """Outer control points that fit the next ones."""

    b_first: Number
    b_last: Number
    kept: Number


def _settle(b_second: Number, b_before: Number, folds: Vector) -> Settled:
    first = folds[0] * b_second
    return Settled(first, folds[1] * b_before, first)


def _smooth(b1: Number, b2: Number, kept: Number) -> tuple[Number, Number]:
    return 0.25 * kept + 0.5 * b1 + 0.25 * b2, b1


def _no_ratio(start: Number) -> Vector:
    return [0.0 * start] * 3


def _spline(
    h_before: Number, h_here: Number, h_after: Number, b: Vector
) -> tuple[Number, Number, Number]:
    """Return x and y at the start of an interval, and c in it."""
    before, after = 1.0 / (h_before + h_here), 1.0 / (h_here + h_after)
    x = (h_here * b[0] + h_before * b[1]) * before
    y0, y1 = 2.0 * (b[1] - b[0]) * before, 2.0 * (b[2] - b[1]) * after
    return x, y0, (y1 - y0) / h_here


def _at(start: Vector, h: Number, tau: float) -> tuple[Number, Number, Number]:
    """Return x, y and c at a place of an interval."""
    x, y, c = start
    if tau == 0.0:
        return x, y, c
    way = tau * h
    return x + way * (y + 0.5 * way * c), y + way * c, c


def _ratio(
    h_before: Number,
    h_here: Number,
    h_after: Number,
    b0: Number,
    b1: Number,
    b2: Number,
    deriv: Matrix,
    cap: Vector,
    scales: Matrix,
    ratio: Vector,
) -> Vector:
    """Return the greatest parts of limits and the duration, as far as here."""
    straight, of_jerk, lasts = ratio
    begin = _spline(h_before, h_here, h_after, (b0, b1, b2))
    for k, (tau, rows) in enumerate(zip(PLACE, deriv, strict=True)):
        x, y, c = _at(begin, h_here, tau)
        root = sqrt(maximum(x, TINY))
        lasts = lasts + SIMPSON[k] * h_here / root
        third = 2.0 / 3.0 * x
        for d, v, half, scale, middle in zip(*rows, *scales, strict=True):
            r = scale * (v * third + half * y) - middle
            straight = maximum(straight, absolute(r))
            of_jerk = maximum(of_jerk, absolute(d * x + v * y + half * c) * root)
    for k, inverse in enumerate(cap):
        straight = maximum(straight, _at(begin, h_here, k / RATES)[0] * inverse)
    return straight, of_jerk, lasts


def _end_rows(
    special: Vector, moving: Vector, slopes: tuple[Vector, Vector]
) -> list[list[Number]]:
    """Return w / x over limits of the constant jerks at both ends, 0 in motion.

    The path jerk is 2/9 x1^(3/2) / hs^2.
    """
    rows: list[list[Number]] = []
    for hs, moves, slope in zip(special, moving, slopes, strict=True):
        is_moving = moves > 0.0
        factor = select(is_moving, 0.0, 2.0 / 9.0)
        safe = select(is_moving, 1.0, hs)
        rows.append([factor / (safe * safe) * m for m in slope])
    return rows


def _end_ratio(
    b_first: Number,
    b_last: Number,
    special: Vector,
    moving: Vector,
    first_slopes: Vector,
    last_slopes: Vector,
    ratio: Vector,
) -> Vector:
    straight, of_jerk, lasts = ratio
    rows = _end_rows(special, moving, (first_slopes, last_slopes))
    for x, row, hs in zip((b_first, b_last), rows, special, strict=True):
        root = sqrt(maximum(x, TINY))
        lasts = lasts + 3.0 * hs / root
        for u in row:
            of_jerk = maximum(of_jerk, u * x * root)
    return straight, of_jerk, lasts


def _lower(ratio: Vector, moving: Vector) -> Number:
    """Return by what the first iterate is multiplied to be within limits.

    In motion it stays near to what is given at the ends; limits are relaxed instead.
    """
    straight, of_jerk, _ = ratio
    lower = minimum(START_RATIO / straight, power(START_RATIO / of_jerk, 2.0 / 3.0))
    is_moving = moving[0] + moving[1] > 0.0
    return select(is_moving, 1.0, minimum(lower, 1.0))


def _lowered(b1: Number, step: Number) -> Number:
    return b1 * step


class Started(NamedTuple):
    """The first iterate at both ends."""

    b_first: Number
    b_second: Number
    b_last: Number
    b_before: Number


def _start(
    b_second: Number,
    b_before: Number,
    folds: Vector,
    moving: Vector,
    h_first: Number,
    h_last: Number,
    start: Number,
    end: Number,
    start_acceleration: Number,
    end_acceleration: Number,
) -> Started:
    """Return outer control points: of given speeds and accelerations, or at rest."""
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


def _relaxed(ratio: Vector) -> Relaxed:
    worst = maximum(ratio[0], ratio[1])
    is_within = worst < 0.99
    is_number = worst < FAST
    return Relaxed(
        select(is_within, 1.0, 1.5 * worst),
        select(is_within, 0.0, 1.0),
        select(is_number, 1.0, 0.0),
        ratio[2],
    )


# Newton's method


class Opened(NamedTuple):
    """Sums at the start of the grid."""

    hess: Vector
    grad: Vector
    decrement: Number
    total: Number
    weight: Number


def _end_terms(x: Number, row: Vector, relax: Number) -> tuple[Number, Number]:
    """Return gradient and curvature in x1 of the logarithms of jerk at an end.

    With v = u x sqrt(x) / relax, of -log(1 - v^2): v' = 3/2 v / x, where the curvature
    is that without the one of 1 / sqrt(x), as in `_newton`.
    """
    gradient, curvature = 0.0, 0.0
    inverse = 1.0 / x
    f = sqrt(x) / relax
    for u in row:
        v = u * x * f
        p = 1.0 / (1.0 - v * v)
        # w = u x and m = 1 / f: of w / m = v
        gradient = gradient + 2.0 * v * p * (u * f) + (p - 1.0) * inverse
        sums = (1.0 + v * v) * p * p
        curvature = (
            curvature
            + sums * (2.0 * u * u * f * f + 0.5 * inverse * inverse)
            + 4.0 * v * p * p * f * u * inverse
            + inverse * inverse
        )
    return gradient, curvature


def _of_duration(
    root: Number, inverse: Number, length: Number, over: Number
) -> tuple[Number, Number, Number]:
    """Return length / sqrt(x), and its first two derivatives, the latter over mu.

    root: 1 / sqrt(x); its square is inverse.
    """
    value = length * root
    slope = -0.5 * value * inverse * over
    return value, slope, -1.5 * slope * inverse


def _inverses(numbers: Vector) -> list[Number]:
    """Return 1 / each of numbers above 0 and up to 1, by few divisions.

    One divides the product of some; parts of the product multiply it.
    """
    found: list[Number] = []
    for first in range(0, len(numbers), TOGETHER):
        group = numbers[first : first + TOGETHER]
        before = [group[0]]
        for each in group[1:]:
            before.append(before[-1] * each)
        inverse = 1.0 / before[-1]
        of_group: list[Number] = []
        for k in range(len(group) - 1, 0, -1):
            of_group.append(inverse * before[k - 1])
            inverse = inverse * group[k]
        found += [inverse, *reversed(of_group)]
    return found


def _open(
    b_first: Number,
    special: Vector,
    moving: Vector,
    first_slopes: Vector,
    last_slopes: Vector,
    relax: Number,
    relaxing: Number,
    lasts: Number,
    count: Number,
) -> Opened:
    rows = _end_rows(special, moving, (first_slopes, last_slopes))
    gradient, curvature = _end_terms(b_first, rows[0], relax)
    # first of all within limits: then what is farthest from them is looked for
    over = count / (GAP * lasts) * select(relaxing > 0.0, RELAXED_WEIGHT, 1.0)
    root = 1.0 / sqrt(b_first)
    value, slope, bend = _of_duration(root, root * root, 3.0 * special[0], over)
    zeros = [0.0] * 5
    return Opened(
        [curvature + bend, *zeros], [gradient + slope, 0.0, 0.0], 0.0, value, over
    )


class Eliminated(NamedTuple):
    """Sums, with one more control point eliminated."""

    factor: Vector
    hess: Vector
    grad: Vector
    decrement: Number
    total: Number


def _newton(  # noqa: PLR0913, PLR0915
    h_before: Number,
    h_here: Number,
    h_after: Number,
    b0: Number,
    b1: Number,
    b2: Number,
    deriv: Matrix,
    cap: Vector,
    scales: Matrix,
    is_first: Number,
    is_second: Number,
    moving: Vector,
    folds: Vector,
    relax: Number,
    weight: Number,
    hess: Vector,
    grad: Vector,
    decrement: Number,
    total: Number,
) -> Eliminated:
    """Add an interval to Newton's equations, and eliminate its first control point.

    Sums are in x, y and c at a place, then in those at the start of the interval, then
    in its three control points.
    """
    begin = _spline(h_before, h_here, h_after, (b0, b1, b2))
    # g and H in (x0, y0, c)
    G: list[Number] = [0.0, 0.0, 0.0]
    S: list[Number] = [0.0] * 6  # xx, xy, xc, yy, yc, cc
    tight = 1.0 / relax
    for k, (tau, part) in enumerate(zip(PLACE, SIMPSON, strict=True)):
        x, y, c = _at(begin, h_here, tau)
        root = 1.0 / sqrt(x)
        inverse = root * root
        rows = list(zip(*deriv[k], strict=True))
        # Jerks: v = f w / J with f = sqrt(x) / relax, slack of log(1 - v^2).
        f = tight * x * root
        X, Y, C = f * x, f * y, f * c
        V = [d * X + v * Y + half * C for d, v, half in rows]
        slacks = [1.0 - v * v for v in V]
        # Accelerations; the end of an interval is the start of the next one.
        R: list[Number] = []
        if k < PLACES - 1:
            X, Y = 2.0 / 3.0 * tight * x, tight * y
            R = [
                scale * (v * X + half * Y) - tight * middle
                for (_, v, half), scale, middle in zip(rows, *scales, strict=True)
            ]
            slacks += [1.0 - r * r for r in R]
        inverses = _inverses(slacks)
        gx, gy, gc = 0.0, 0.0, 0.0
        xx, xy, xc, yy, yc, cc = (0.0,) * 6
        # Sums over joints of p, of (1 + v^2) p^2, and of v p^2 by each of x, y and c.
        P, Q = 0.0, 0.0
        ex, ey, ec = 0.0, 0.0, 0.0
        for (d, v, half), value, p in zip(rows, V, inverses[: len(rows)], strict=True):
            vp = value * p
            e = vp * p
            q = p * p + value * e
            gx, gy, gc = gx + vp * d, gy + vp * v, gc + vp * half
            ex, ey, ec = ex + e * d, ey + e * v, ec + e * half
            P, Q = P + p, Q + q
            qd, qv = q * d, q * v
            xx, xy, xc = xx + qd * d, xy + qd * v, xc + qd * half
            yy, yc, cc = yy + qv * v, yc + qv * half, cc + q * half * half
        twice = 2.0 * f
        square = twice * f
        cross = twice * inverse
        value, slope, bend = _of_duration(root, inverse, part * h_here, weight)
        total = total + value
        count = float(len(rows))
        gx = twice * gx + inverse * (P - count) + slope
        gy, gc = twice * gy, twice * gc
        xx = (
            square * xx
            + 2.0 * cross * ex
            + inverse * inverse * (0.5 * Q + count)
            + bend
        )
        xy, xc = square * xy + cross * ey, square * xc + cross * ec
        yy, yc, cc = square * yy, square * yc, square * cc
        for (_, v, half), r, p, scale in zip(
            rows[: len(R)], R, inverses[len(rows) :], scales[0], strict=False
        ):
            u = 2.0 * p * scale * tight
            g = u * r
            curved = (u * scale * tight) + g * g
            b = 2.0 / 3.0 * v
            gx, gy = gx + g * b, gy + g * half
            cb = curved * b
            xx, xy = xx + cb * b, xy + cb * half
            yy = yy + curved * half * half
        # x = x0 + t y0 + t^2 c / 2, y = y0 + t c
        t = tau * h_here
        q = 0.5 * t * t
        G[0] = G[0] + gx
        G[1] = G[1] + t * gx + gy
        G[2] = G[2] + q * gx + t * gy + gc
        S[0] = S[0] + xx
        S[1] = S[1] + t * xx + xy
        S[2] = S[2] + q * xx + t * xy + xc
        S[3] = S[3] + t * (t * xx + 2.0 * xy) + yy
        S[4] = S[4] + t * (q * xx + t * xy + xc) + q * xy + t * yy + yc
        S[5] = S[5] + q * (q * xx + 2.0 * (t * xy + xc)) + t * (t * yy + 2.0 * yc) + cc
    limits = [tight * each for each in cap]
    slacks = [
        1.0 - _at(begin, h_here, k / RATES)[0] * limit for k, limit in enumerate(limits)
    ]
    for k, (limit, p) in enumerate(zip(limits, _inverses(slacks), strict=True)):
        t = k / RATES * h_here
        q = 0.5 * t * t
        g = limit * p
        curved = g * g
        G[0], G[1], G[2] = G[0] + g, G[1] + t * g, G[2] + q * g
        S[0], S[1], S[2] = S[0] + curved, S[1] + t * curved, S[2] + q * curved
        S[3] = S[3] + t * t * curved
        S[4], S[5] = S[4] + t * q * curved, S[5] + q * q * curved
    # x0 = u b0 + v b1, y0 = 2 before (b1 - b0), c = (y1 - y0) / h
    before, after = 1.0 / (h_before + h_here), 1.0 / (h_here + h_after)
    over_h = 1.0 / h_here
    x_b = (h_here * before, h_before * before, 0.0)
    y_b = (-2.0 * before, 2.0 * before, 0.0)
    c_b = (
        2.0 * before * over_h,
        -2.0 * (before + after) * over_h,
        2.0 * after * over_h,
    )
    M = ((S[0], S[1], S[2]), (S[1], S[3], S[4]), (S[2], S[4], S[5]))
    columns = [
        [row[0] * x_b[k] + row[1] * y_b[k] + row[2] * c_b[k] for row in M]
        for k in range(3)
    ]

    def product(k: int, n: int) -> Number:
        return x_b[k] * columns[n][0] + y_b[k] * columns[n][1] + c_b[k] * columns[n][2]

    H00, H01, H02, H11, H12, H22 = (
        held + product(k, n)
        for held, (k, n) in zip(
            hess, ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)), strict=True
        )
    )
    g0, g1, g2 = (
        held + x_b[k] * G[0] + y_b[k] * G[1] + c_b[k] * G[2]
        for k, held in enumerate(grad)
    )
    # An end at rest: b0 = fold b1. In motion b0 and b1 are given.
    opens, is_given = is_first > 0.5, moving[0] > 0.5
    fold = folds[0]
    is_fixed = opens | ((is_second > 0.5) & is_given)
    H11 = H11 + select(opens, fold * (2.0 * H01 + fold * H00), 0.0)
    H12 = H12 + select(opens, fold * H02, 0.0)
    g1 = g1 + select(opens, fold * g0, 0.0)
    inverse = select(is_fixed, 0.0, 1.0 / H00)
    l1, l2, z = H01 * inverse, H02 * inverse, -g0 * inverse
    return Eliminated(
        [select(opens, -fold, l1), l2, z],
        [H11 - l1 * H01, H12 - l1 * H02, 0.0, H22 - l2 * H02, 0.0, 0.0],
        [g1 - l1 * g0, g2 - l2 * g0, 0.0],
        decrement - z * g0,
        total,
    )


class Closed(NamedTuple):
    """The change of the last two control points."""

    d_before: Number
    d_last: Number
    lasts: Number
    decrement: Number


def _close(
    b_last: Number,
    special: Vector,
    moving: Vector,
    folds: Vector,
    first_slopes: Vector,
    last_slopes: Vector,
    relax: Number,
    lasts: Number,
    weight: Number,
    hess: Vector,
    grad: Vector,
    decrement: Number,
    total: Number,
) -> Closed:
    rows = _end_rows(special, moving, (first_slopes, last_slopes))
    gradient, curvature = _end_terms(b_last, rows[1], relax)
    root = 1.0 / sqrt(b_last)
    value, slope, bend = _of_duration(root, root * root, 3.0 * special[1], weight)
    fold = folds[1]
    H = hess[0] + fold * (2.0 * hess[1] + fold * (hess[3] + curvature + bend))
    g = grad[0] + fold * (grad[1] + gradient + slope)
    z = select(moving[1] > 0.5, 0.0, -g / H)
    return Closed(z, fold * z, total + value, decrement - z * g)


def _back(back_factor: Vector, back1: Number, back2: Number) -> Number:
    """Return the change of a control point from those of the next two."""
    l1, l2, z = back_factor
    return z - l1 * back1 - l2 * back2


def _end_share(
    b_first: Number,
    b_last: Number,
    d_first: Number,
    d_last: Number,
    special: Vector,
    moving: Vector,
    first_slopes: Vector,
    last_slopes: Vector,
    relax: Number,
) -> Number:
    """Return what the change takes of slacks at both ends."""
    most: Number = 0.0
    rows = _end_rows(special, moving, (first_slopes, last_slopes))
    for x, change, row in zip((b_first, b_last), (d_first, d_last), rows, strict=True):
        inverse = 1.0 / x
        f = sqrt(x) / relax
        shrink = 0.5 * change * inverse
        most = maximum(most, -change * inverse)
        for u in row:
            v, dv = u * x * f, u * change * f
            most = maximum(most, _taken(v, dv, shrink, 1.0 / (1.0 - v * v)))
    return most


def _taken(v: Number, dv: Number, shrink: Number, p: Number) -> Number:
    """Return the greatest share of the slacks of |v| <= 1 that a change takes.

    shrink: What both limits fall by, in parts of them.
    p: 1 / (1 - v^2).
    """
    return maximum((dv + shrink) * (1.0 + v), (shrink - dv) * (1.0 - v)) * p


def _share(
    h_before: Number,
    h_here: Number,
    h_after: Number,
    b0: Number,
    b1: Number,
    b2: Number,
    d0: Number,
    d1: Number,
    d2: Number,
    deriv: Matrix,
    cap: Vector,
    scales: Matrix,
    relax: Number,
    most: Number,
) -> Number:
    """Return the greatest share of a slack that the change takes, as far as here."""
    begin = _spline(h_before, h_here, h_after, (b0, b1, b2))
    changed = _spline(h_before, h_here, h_after, (d0, d1, d2))
    tight = 1.0 / relax
    for k, tau in enumerate(PLACE):
        x, y, c = _at(begin, h_here, tau)
        dx, dy, dc = _at(changed, h_here, tau)
        rows = list(zip(*deriv[k], strict=True))
        root = 1.0 / sqrt(x)
        inverse = root * root
        most = maximum(most, -dx * inverse)
        shrink = 0.5 * dx * inverse
        f = tight * x * root
        X, Y, C, dX, dY, dC = (f * each for each in (x, y, c, dx, dy, dc))
        V = [d * X + v * Y + half * C for d, v, half in rows]
        dV = [d * dX + v * dY + half * dC for d, v, half in rows]
        slacks = [1.0 - v * v for v in V]
        R: list[Number] = []
        dR: list[Number] = []
        if k < PLACES - 1:
            X, Y, dX, dY = (
                tight * each for each in (2.0 / 3.0 * x, y, 2.0 / 3.0 * dx, dy)
            )
            for (_, v, half), scale, middle in zip(rows, *scales, strict=True):
                R.append(scale * (v * X + half * Y) - tight * middle)
                dR.append(scale * (v * dX + half * dY))
            slacks += [1.0 - r * r for r in R]
        inverses = _inverses(slacks)
        for v, dv, p in zip(V, dV, inverses[: len(V)], strict=True):
            most = maximum(most, _taken(v, dv, shrink, p))
        for r, dr, p in zip(R, dR, inverses[len(V) :], strict=True):
            most = maximum(most, (absolute(dr) + dr * r) * p)
    limits = [tight * each for each in cap]
    places = [_at(begin, h_here, k / RATES)[0] for k in range(RATES)]
    inverses = _inverses([1.0 - x * i for x, i in zip(places, limits, strict=True)])
    for k, (limit, p) in enumerate(zip(limits, inverses, strict=True)):
        most = maximum(most, _at(changed, h_here, k / RATES)[0] * limit * p)
    return most


class Length(NamedTuple):
    """How long the step is, and whether another one follows."""

    step: Number
    going: Number


def _length(most: Number, decrement: Number, lasts: Number, relaxing: Number) -> Length:
    """Return the step; far from limits, the whole change.

    The next iterate wins about mu times the squared decrement.
    """
    step = minimum(1.0, KEPT / maximum(most, 1e-9))
    is_number = (lasts < FAST) & (decrement < FAST)
    step = select(is_number, step, 0.0)
    is_near = (decrement < ENOUGH) & (step > 0.5) & (relaxing <= 0.0)
    return Length(step, select(is_near | ~is_number, 0.0, 1.0))


class EndsMoved(NamedTuple):
    """The first and the last control point after a step."""

    b_first: Number
    b_last: Number


def _ends_moved(
    b_first: Number, b_last: Number, d_first: Number, d_last: Number, step: Number
) -> EndsMoved:
    return EndsMoved(b_first + step * d_first, b_last + step * d_last)


def _moved(b1: Number, d1: Number, step: Number) -> Number:
    return b1 + step * d1


class Renewed(NamedTuple):
    """Limits that hold at the next iterate."""

    relax: Number
    relaxing: Number


def _renewed(relax: Number, relaxing: Number, ratio: Vector) -> Renewed:
    worst = maximum(ratio[0], ratio[1])
    lower = minimum(relax, worst + TIGHTER * (relax - worst))
    is_within = (relaxing <= 0.0) | (worst < 0.999)
    return Renewed(
        select(is_within, 1.0, maximum(lower, 1.0)), select(is_within, 0.0, 1.0)
    )


# Results


def _no_peak(start: Number) -> Vector:
    return [0.0 * start] * 3


class Results(NamedTuple):
    """The motion in an interval."""

    square_here: Number
    square_next: Number
    slope_here: Number
    slope_next: Number
    span_here: Number
    peak: Vector


def _result(
    h_before: Number,
    h_here: Number,
    h_after: Number,
    b0: Number,
    b1: Number,
    b2: Number,
    deriv: Matrix,
    cap: Vector,
    scales: Matrix,
    is_first: Number,
    is_last: Number,
    special: Vector,
    peak: Vector,
) -> Results:
    """Return x and y at both ends, how long it takes, and parts of limits.

    Between the three places derivatives of q are taken as parabolas of s, which they
    are along cubic splines.
    """
    begin = _spline(h_before, h_here, h_after, (b0, b1, b2))
    time = 0.0
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        x = _at(begin, h_here, node)[0]
        time = time + weight * h_here / sqrt(maximum(x, TINY))
    rate, straight, of_jerk = peak
    # The motion is the polynomial of time that has s, s' and s'' at both ends.
    x1, y1, _ = _at(begin, h_here, 1.0)
    over = 1.0 / time
    ends = (
        h_here,
        time * sqrt(maximum(begin[0], 0.0)),
        time * sqrt(maximum(x1, 0.0)),
        0.5 * time * time * begin[1],
        0.5 * time * time * y1,
    )
    for table in LAW:
        s, first, second, third = (
            sum(float(c) * end for c, end in zip(row, ends, strict=True) if c)
            for row in table
        )
        first, second, third = first * over, second * over**2, third * over**3
        part = s / h_here
        shares = (
            2.0 * (part - 0.5) * (part - 1.0),
            4.0 * part * (1.0 - part),
            2.0 * part * (part - 0.5),
        )
        square, mixed = first * first, 2.0 * first * second
        cube = square * first
        for n, (scale, middle) in enumerate(zip(*scales, strict=True)):
            d, v, half = (
                sum(
                    share * place[order][n]
                    for share, place in zip(shares, deriv, strict=True)
                )
                for order in range(3)
            )
            r = scale * (2.0 / 3.0 * v * square + 2.0 * half * second) - middle
            straight = maximum(straight, absolute(r))
            jerk = d * cube + v * mixed + 2.0 * half * third
            of_jerk = maximum(of_jerk, absolute(jerk))
    for k, most in enumerate(cap):
        rate = maximum(rate, _at(begin, h_here, k / RATES)[0] * most)
    x0, y0, _ = begin
    # the constant path jerk near ends at rest, where it meets the grid
    for is_end, hs, rows, x, y in (
        (is_first, special[0], deriv[0], x0, y0),
        (is_last, special[1], deriv[-1], x1, y1),
    ):
        is_near = (is_end > 0.5) & (hs > 0.0)
        safe = select(hs > 0.0, hs, 1.0)
        root = sqrt(maximum(x, 0.0))
        cube = x * root
        third = 4.0 / 9.0 * cube / (safe * safe)
        for d, v, half in zip(*rows, strict=True):
            jerk = absolute(d * cube + v * root * y + half * third)
            of_jerk = maximum(of_jerk, select(is_near, jerk, 0.0))
    return Results(x0, x1, y0, y1, time, (rate, straight, of_jerk))


def _reason(relaxing: Number, moving: Vector, lasts: Number) -> Number:
    too_fast = select(moving[0] > 0.0, START_TOO_FAST, END_TOO_FAST)
    return select(lasts < FAST, select(relaxing > 0.0, too_fast, 0.0), STOPS)
