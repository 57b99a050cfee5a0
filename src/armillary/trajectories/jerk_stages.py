"""The stages that find the fastest motion along paths within limits of jerk.

With x = s'^2 as a function of s, y = dx/ds and c = dy/ds, path acceleration and path
jerk are s'' = y / 2 and s''' = c sqrt(x) / 2, so that for a path q(s)

    qd = q' sqrt(x),    qdd = q'' x + q' y / 2
    qddd = sqrt(x) w,    w = q''' x + 3/2 q'' y + q' c / 2

x is a quadratic spline of s with control points b, so that x, y and c are linear in
three of them in each interval of a grid. The duration, the integral of 1 / sqrt(x), is
convex in b. So are the limits of rates and accelerations, but not |w| <= J / sqrt(x):
its right side is convex, and is bounded from below by its tangent at each iterate
(Debrouwere et al., "Time-optimal path following for robots with convex-concave
constraints using sequential convex programming", IEEE Transactions on Robotics 29(6),
2013). The duration over mu, less the logarithms of all slacks, is minimised by
Newton's method, with the tangent renewed in each iteration. Its matrix has five
diagonals, and is eliminated in the same sweep over the grid in which it is summed.
Iterates stay strictly within limits; where the motion at a given end breaks them at
first, all are relaxed by a factor that falls to 1.

Near an end at rest s''' is constant in time, s = j t^3 / 6, over a length hs of s, so
x = x1 (s / hs)^(4/3) there, which no polynomial of s is near to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from armillary.kernel.columns import repeat, when
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.stages import Stage
from armillary.spatial.vector import Number, Vector
from armillary.trace.functions import (
    absolute,
    maximum,
    select,
    sqrt,
)
from armillary.trajectories.hermite import basis
from armillary.trajectories.jerk_columns import GRADED, JerkColumns
from armillary.trajectories.jerk_grid import (
    GridLimits,
    begin_envelope,
    choose_guess,
    chosen_point,
    end_ratio,
    envelope_point,
    fall_envelope,
    grade,
    greatest_ratio,
    grid_interval,
    guessed_point,
    interval_ratio,
    least_steep,
    lower_all,
    lowered_point,
    no_ratio,
    relaxed_limits,
    rise_envelope,
    settle_ends,
    smooth_point,
    start_ends,
    turn_envelope,
)
from armillary.trajectories.jerk_newton import (
    back_substituted,
    close_sums,
    eliminate_point,
    end_share,
    greatest_share,
    move_ends,
    moved_point,
    newton_interval,
    open_sums,
    renewed_limits,
    share_taken,
    step_length,
)
from armillary.trajectories.jerk_spline import (
    FAST,
    TINY,
    GridInterval,
    greater,
    spline_at,
)
from armillary.trajectories.path_columns import Records
from armillary.trajectories.timed_path import PathReason

__all__ = ["jerk_pipeline", "jerk_records"]


LIMIT: Final = 60
"""Most iterations."""

GAP: Final = 4e-4
"""The weight of logarithms by default; see `jerk_records`."""


START_TOO_FAST: Final = float(PathReason.START_TOO_FAST)
END_TOO_FAST: Final = float(PathReason.END_TOO_FAST)
STOPS: Final = float(PathReason.STOPS)

# Nodes and weights of Gauss and Legendre on [0, 1]
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)
NODES: Final = tuple((0.5 + 0.5 * _NODES).tolist())
WEIGHTS: Final = tuple((0.5 * _WEIGHTS).tolist())


LAW: Final = np.stack(
    [basis(np.linspace(0.0, 1.0, 9), order) for order in range(4)], axis=1
)
"""Polynomials of `curve.py` and their derivatives at parts of a time, (9, 4, 5)."""


def jerk_pipeline(
    joints: int, *, knots: int, intervals: int, rows: int = 0
) -> Pipeline:
    """Return the pipeline from curves to times within limits of jerk.

    Args:
        joints: How many there are.
        knots: The most knots of a path.
        intervals: The most intervals of a grid.
        rows: How many further limits there are at each place.
    """
    columns = JerkColumns(knots=knots, intervals=intervals, joints=joints, rows=rows)
    steps_of = JerkColumns.BOUNDED if rows else JerkColumns.INTERVALS
    reads: dict[str, Any] = {} if rows else {"bound": None}
    tables = (*(steps_of, columns.BACKWARDS, columns.BOTH_ENDS),)
    each, abreast = steps_of.each, steps_of.abreast
    back = JerkColumns.BACKWARDS.each
    ends = JerkColumns.BOTH_ENDS.each
    stage = columns.stage
    look = (
        stage(no_ratio, writes=columns.ratio),
        abreast(columns, stage(interval_ratio, writes=columns.ratio_here, **reads)),
        each(columns, stage(greatest_ratio, writes=columns.ratio)),
        ends(columns, stage(end_ratio, writes=columns.ratio)),
    )
    stages: tuple[Stage, ...] = (
        ends(columns, stage(grade)),
        abreast(columns, stage(grid_interval, **reads)),
        each(columns, stage(least_steep, writes=columns.steepest)),
        ends(columns, stage(begin_envelope)),
        each(
            columns, stage(rise_envelope, writes=(columns.rise_here, columns.envelope))
        ),
        ends(columns, stage(turn_envelope, writes=columns.envelope)),
        back(
            columns, stage(fall_envelope, writes=(columns.back_rise, columns.envelope))
        ),
        abreast(columns, stage(envelope_point, writes=columns.b1)),
        ends(columns, stage(settle_ends)),
        each(columns, stage(smooth_point, writes=(columns.b1, columns.kept))),
        ends(columns, stage(settle_ends)),
        each(columns, stage(smooth_point, writes=(columns.b1, columns.kept))),
        abreast(columns, stage(guessed_point, writes=(columns.b1, columns.d1))),
        ends(columns, stage(settle_ends)),
        *look,
        ends(columns, stage(choose_guess, writes=columns.chosen)),
        abreast(columns, stage(chosen_point, writes=columns.b1)),
        ends(columns, stage(settle_ends)),
        *look,
        ends(columns, stage(lower_all, writes=columns.step)),
        abreast(columns, stage(lowered_point, writes=columns.b1)),
        ends(columns, stage(start_ends)),
        *look,
        stage(relaxed_limits),
        repeat(
            columns.going,
            ends(columns, stage(open_sums)),
            abreast(columns, stage(newton_interval, **reads)),
            each(columns, stage(eliminate_point)),
            ends(columns, stage(close_sums)),
            back(columns, stage(back_substituted, writes=columns.back0)),
            ends(columns, stage(end_share, writes=columns.most)),
            abreast(columns, stage(share_taken, writes=columns.taken_here, **reads)),
            each(columns, stage(greatest_share, writes=columns.most)),
            stage(step_length),
            ends(columns, stage(move_ends)),
            abreast(columns, stage(moved_point, writes=columns.b1)),
            when(columns.relaxing, *look),
            ends(columns, stage(renewed_limits)),
            limit=LIMIT,
        ),
        abreast(columns, stage(_result)),
        stage(_no_peak, writes=columns.peak),
        each(columns, stage(_greatest_peak, writes=columns.peak)),
        ends(columns, stage(_reason, writes=columns.fault_here)),
    )
    results = (
        *(columns.grid, columns.squares, columns.slopes, columns.spans),
        *(columns.special, columns.jerks, columns.peak, columns.fault_here),
    )
    scratch = (
        *(columns.lengths, columns.derivs, columns.caps),
        *(columns.control, columns.change, columns.factors),
        *(columns.grid, columns.squares, columns.slopes, columns.spans),
        *(columns.jerks, columns.steeps, columns.rises, columns.ratios),
        *(columns.hessians, columns.gradients, columns.taken, columns.peaks),
    )
    limits = columns.velocity, columns.acceleration, columns.jerk
    motion = (
        *(columns.start, columns.end),
        *(columns.start_acceleration, columns.end_acceleration, columns.pushes),
        *(columns.tighter, columns.guess),
    )
    return Pipeline(
        "jerk_path",
        (
            columns.at,
            columns.knots,
            *limits,
            *motion,
            *((columns.bounds,) if rows else ()),
        ),
        tuple(steps.table(columns) for steps in tables),
        stages,
        tuple(column.name for column in results),
        scratch,
    )


def jerk_records(
    intervals: int, per_knot: int, *, rows: int = 0, gap: float = GAP
) -> dict[str, Records]:
    """Return the records of the tables of `jerk_pipeline`.

    Args:
        intervals: How many there are between knots.
        per_knot: Intervals of the grid in each of them, before those at the ends are
            divided.
        rows: As for `jerk_pipeline`.
        gap: The weight of logarithms: mu is this part of the duration, over the
            intervals.
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
    steps_of = JerkColumns.BOUNDED if rows else JerkColumns.INTERVALS
    records = steps_of.records(
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
        **records,
        **JerkColumns.BACKWARDS.records(here=here[::-1]),
        **JerkColumns.BOTH_ENDS.records(
            first=np.array([0]),
            last_knot=np.array([intervals]),
            last_b=np.array([count]),
            last_h=np.array([count]),
            parts=np.array([float(per_knot)]),
            count=np.array([float(count)]),
            gap=np.array([gap]),
        ),
    }


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
    jerk_here: Number
    peak_here: Vector


def _result(
    interval: GridInterval,
    is_first: Number,
    is_last: Number,
    special: Vector,
    factor_here: Number,
    limits: GridLimits,
) -> Results:
    """Return x and y at both ends, how long it takes, and parts of limits.

    Between the three places derivatives of q are taken as parabolas of s, which they
    are along cubic splines.
    """
    _, h_here, *_, deriv, _, scales = interval
    velocity, _, jerk = limits
    begin = interval.start()
    time = 0.0
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        x = spline_at(begin, h_here, node)[0]
        time = time + weight * h_here / sqrt(maximum(x, TINY))
    of_jerk: Number = 0.0
    as_it_is = 1.0 / factor_here
    samples: list[list[Vector]] = []
    per_rate = [
        [2.0 * as_it_is * j / most for j, most in zip(jerk, side, strict=True)]
        for side in velocity
    ]
    # The motion is the polynomial of time that has s, s' and s'' at both ends.
    x1, y1, _ = spline_at(begin, h_here, 1.0)
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
        rates: list[Number] = []
        accelerations: list[Number] = []
        jerks: list[Number] = []
        for n, (scale, middle) in enumerate(zip(*scales, strict=True)):
            d, v, half = (
                sum(
                    share * place[order][n]
                    for share, place in zip(shares, deriv, strict=True)
                )
                for order in range(3)
            )
            r = (2.0 / 3.0 * v * square + 2.0 * half * second) * as_it_is
            accelerations.append(scale * r - middle)
            jerks.append(d * cube + v * mixed + 2.0 * half * third)
            rate = half * first
            rates.append(greater(rate * per_rate[0][n], rate * per_rate[1][n]))
        samples.append([rates, accelerations, jerks])
    top_rate, top, top_jerk = (_greatest(each) for each in zip(*samples, strict=True))
    of_jerk = maximum(of_jerk, top_jerk)
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
            of_end = absolute(d * cube + v * root * y + half * third)
            of_jerk = maximum(of_jerk, select(is_near, of_end, 0.0))
    peak = [top_rate * top_rate, top]
    return Results(x0, x1, y0, y1, time, of_jerk * as_it_is, peak)


def _greatest_peak(peak: Vector, peak_here: Vector, jerk_here: Number) -> Vector:
    """Return the greatest parts of limits as far as here."""
    here = (*peak_here, jerk_here)
    return [maximum(most, each) for most, each in zip(peak, here, strict=True)]


def _greatest(samples: Sequence[Vector]) -> Number:
    """Return the greatest of some functions of time, sampled in equal steps.

    Between samples parabolas exceed them by an eighth of second differences at most.
    That is far more than they do where they do not turn, but bounds by slopes let a
    motion exceed its limits by 0.3 %.
    """
    most: Number = 0.0
    for values in zip(*samples, strict=True):
        bends = [
            absolute(a - 2.0 * b + c)
            for a, b, c in zip(values, values[1:], values[2:], strict=False)
        ]
        for value, bend in zip(values, [0.0, *bends, 0.0], strict=True):
            most = greater(most, absolute(value) + 0.125 * bend)
    return most


def _reason(relaxing: Number, moving: Vector, lasts: Number) -> Number:
    too_fast = select(moving[0] > 0.0, START_TOO_FAST, END_TOO_FAST)
    return select(lasts < FAST, select(relaxing > 0.0, too_fast, 0.0), STOPS)
