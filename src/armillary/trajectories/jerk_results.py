"""What is found along a path within limits of jerk: the motion, and what it exceeds.

Symbols are those of `jerk_stages.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from armillary.spatial.vector import Number, Vector
from armillary.trace.functions import absolute, maximum, select, sqrt
from armillary.trajectories.hermite import basis
from armillary.trajectories.jerk_grid import BetweenKnots, GridLimits, derivatives
from armillary.trajectories.jerk_spline import (
    FAST,
    TINY,
    GridInterval,
    greater,
    spline_at,
)
from armillary.trajectories.timed_path import PathReason

__all__ = [
    "begin_motion",
    "end_motion",
    "greatest_peak",
    "interval_motion",
    "interval_peak",
    "measured",
    "motion_point",
    "no_peak",
    "pass_interval",
    "reason_found",
]

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


def measured(measures: Number) -> Number:
    """Return whether it is measured what the motion exceeds."""
    return measures + 0.0


def no_peak(start: Number) -> Vector:
    """Return what peaks begin with."""
    return [0.0 * start] * 3


class IntervalMotion(NamedTuple):
    """The motion in an interval."""

    square_here: Number
    square_next: Number
    slope_here: Number
    slope_next: Number
    span_here: Number


def interval_motion(interval: GridInterval) -> IntervalMotion:
    """Return x and y at both ends, and how long an interval takes."""
    h_here, begin = interval.h_here, interval.start()
    time = 0.0
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        x = spline_at(begin, h_here, node)[0]
        time = time + weight * h_here / sqrt(maximum(x, TINY))
    x0, y0, _ = begin
    x1, y1, _ = spline_at(begin, h_here, 1.0)
    return IntervalMotion(x0, x1, y0, y1, time)


class IntervalPeak(NamedTuple):
    """The greatest parts of limits in an interval."""

    jerk_here: Number
    peak_here: Vector


class PathEnd(NamedTuple):
    """Whether an interval is at an end of the path, and how these are."""

    is_first: Number
    is_last: Number
    special: Vector


def interval_peak(
    interval: GridInterval,
    knots: BetweenKnots,
    span_here: Number,
    end: PathEnd,
    factor_here: Number,
    limits: GridLimits,
) -> IntervalPeak:
    """Return the greatest parts of limits in an interval.

    With a, b and d for the derivatives of q by the part r of the way between knots,
    and u, v and w for those of r by time,

        qd = a u,  qdd = b u^2 + a v,  qddd = d u^3 + 3 b u v + a w
    """
    velocity, acceleration, jerk = limits
    begin, time = interval.start(), span_here
    x1, y1, _ = spline_at(begin, interval.h_here, 1.0)
    # The motion is the polynomial of time that has s, s' and s'' at both ends.
    ends = (
        interval.h_here,
        time * sqrt(maximum(begin[0], 0.0)),
        time * sqrt(maximum(x1, 0.0)),
        0.5 * time * time * begin[1],
        0.5 * time * time * y1,
    )
    start, _ = knots.parts()
    per_way, per_time = 1.0 / (knots.s_to - knots.s_from), 1.0 / time
    polynomials = knots.polynomials()
    per_rate = [[1.0 / most for most in side] for side in velocity]
    scales = [2.0 / (high - low) for low, high in zip(*acceleration, strict=True)]
    middles = [
        0.5 * (high + low) * scale
        for low, high, scale in zip(*acceleration, scales, strict=True)
    ]
    per_jerk = [1.0 / most for most in jerk]
    samples: list[list[Vector]] = []
    for table in LAW:
        way, u, v, w = (
            per_way * sum(float(c) * x for c, x in zip(row, ends, strict=True) if c)
            for row in table
        )
        u, v, w = u * per_time, v * per_time**2, w * per_time**3
        square, mixed, cube = u * u, 3.0 * u * v, u * u * u
        rates: list[Number] = []
        accelerations: list[Number] = []
        jerks: list[Number] = []
        for n, c in enumerate(polynomials):
            a, b, d = derivatives(c, start + way)
            rate = a * u
            rates.append(greater(rate * per_rate[0][n], rate * per_rate[1][n]))
            accelerations.append((b * square + a * v) * scales[n] - middles[n])
            jerks.append((d * cube + b * mixed + a * w) * per_jerk[n])
        samples.append([rates, accelerations, jerks])
    top_rate, top, of_jerk = (_greatest(each) for each in zip(*samples, strict=True))
    at_end = _end_jerk(interval, end) / factor_here
    return IntervalPeak(maximum(of_jerk, at_end), [top_rate * top_rate, top])


def _end_jerk(interval: GridInterval, end: PathEnd) -> Number:
    """Return the jerk over its limit of the constant path jerks at ends at rest.

    That is where they meet the grid, with limits of the interval as they are counted.
    """
    is_first, is_last, special = end
    deriv = interval.deriv
    x0, y0, _ = begin = interval.start()
    x1, y1, _ = spline_at(begin, interval.h_here, 1.0)
    greatest: Number = 0.0
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
            here = absolute(d * cube + v * root * y + half * third)
            greatest = maximum(greatest, select(is_near, here, 0.0))
    return greatest


def greatest_peak(peak: Vector, peak_here: Vector, jerk_here: Number) -> Vector:
    """Return the greatest parts of limits as far as here."""
    here = (*peak_here, jerk_here)
    return [maximum(most, each) for most, each in zip(peak, here, strict=True)]


def _greatest(samples: Sequence[Vector]) -> Number:
    """Return the greatest of some functions of time, sampled in equal steps.

    Between samples parabolas exceed them by an eighth of second differences at most.
    That is far more than they do where they do not turn, but bounds by slopes let a
    motion exceed its limits by 0.3 %. Those through the last three samples may exceed
    the last one, where they turn before it, and likewise at the start.
    """
    most: Number = 0.0
    for values in zip(*samples, strict=True):
        bends = [
            absolute(a - 2.0 * b + c)
            for a, b, c in zip(values, values[1:], values[2:], strict=False)
        ]
        first, last = _turns(*values[:3]), _turns(*values[:-4:-1])
        bends = [first * bends[0], *bends, last * bends[-1]]
        for value, bend in zip(values, bends, strict=True):
            most = greater(most, absolute(value) + 0.125 * bend)
    return most


def _turns(a: Number, b: Number, c: Number) -> Number:
    """Return 1 where a parabola exceeds the end a behind it, else 0.

    b and c are the next samples: its slope at a is (4 b - 3 a - c) / 2.
    """
    return select(a * (4.0 * b - 3.0 * a - c) > 0.0, 1.0, 0.0)


def reason_found(relaxing: Number, moving: Vector, lasts: Number) -> Number:
    """Return the number of a `PathReason`: why there is no motion, or 0."""
    too_fast = select(moving[0] > 0.0, START_TOO_FAST, END_TOO_FAST)
    return select(lasts < FAST, select(relaxing > 0.0, too_fast, 0.0), STOPS)


# The motion


class MotionPoint(NamedTuple):
    """The motion at a point of the grid."""

    way_here: Number
    speed_here: Number
    acceleration_here: Number


def motion_point(
    grid_here: Number, square_here: Number, slope_here: Number
) -> MotionPoint:
    """Return s, s' and s'' where an interval starts: s' = sqrt(x), s'' = y / 2."""
    speed = sqrt(maximum(square_here, 0.0))
    return MotionPoint(grid_here, speed, 0.5 * slope_here)


class MotionBegun(NamedTuple):
    """The motion at the start of the path, and at the first point of the grid."""

    way_first: Number
    speed_first: Number
    acceleration_first: Number
    time_first: Number
    time_second: Number


def begin_motion(
    s_first: Number,
    special: Vector,
    speed_second: Number,
    acceleration_second: Number,
) -> MotionBegun:
    """Return the motion as far as the grid.

    At rest s = j t^3 / 6, which takes 3 s / s'. In motion the grid begins there.
    """
    hs = special[0]
    rests = hs > 0.0
    return MotionBegun(
        s_first,
        select(rests, 0.0, speed_second),
        select(rests, 0.0, acceleration_second),
        0.0,
        select(rests, 3.0 * hs / speed_second, 0.0),
    )


def pass_interval(passed: Number, span_here: Number) -> Number:
    """Return when the next point of the grid is passed."""
    return passed + span_here


class MotionEnded(NamedTuple):
    """The motion at the last point of the grid, and at the end of the path."""

    way_before: Number
    way_last: Number
    speed_before: Number
    speed_last: Number
    acceleration_before: Number
    acceleration_last: Number
    time_last: Number


class GridEnded(NamedTuple):
    """The last point of the grid."""

    grid_last: Number
    square_last: Number
    slope_last: Number
    time_before: Number


def end_motion(grid: GridEnded, s_last: Number, special: Vector) -> MotionEnded:
    """Return the motion behind the grid."""
    s, square, slope, time = grid
    _, speed, acceleration = motion_point(s, square, slope)
    hs = special[1]
    rests = hs > 0.0
    return MotionEnded(
        s,
        s_last,
        speed,
        select(rests, 0.0, speed),
        acceleration,
        select(rests, 0.0, acceleration),
        time + select(rests, 3.0 * hs / speed, 0.0),
    )
