"""The stages of two sweeps over a grid that find the greatest speed along paths.

With the path speed s' squared, x = s'^2, and the path acceleration u = s'', rates and
accelerations of the joints are

    qd = q'(s) s',    qdd = q'(s) u + q''(s) x,    dx/ds = 2 u

so limits are linear in (x, u). Between grid points u is constant, and limits hold at
both ends of each interval. The backward sweep finds at each grid point the interval
[lo, hi] of those x from which the end can be reached; the forward sweep takes the
greatest u that leads to such an interval (Pham and Pham, "A new approach to
time-optimal path parameterization based on reachability analysis", IEEE Transactions on
Robotics 34(3), 2018, algorithm 1).

At a grid point each limit lower <= a u + b x <= upper bounds u by two lines in x:

    max_r (p_r x + below_r) = L(x) <= u <= U(x) = min_r (p_r x + above_r),    f = L - U

with p = -b / a, and above and below the greater and the lesser of upper / a and
lower / a. Limits at the next point, where x is x + 2 u gap, are such lines too, of the
rows (a + 2 gap b, b); and so is that x + 2 u gap is within the next interval [lo, hi]:

    d x + d_lo <= u <= d x + d_hi,    d = -1 / (2 gap),    d_lo, d_hi = lo, hi / (2 gap)

f is convex, so the greatest x with f <= 0 is found by Newton's method from above in
finitely many steps, one for each pair of lines at most. Each step goes lower by `SLACK`
than the root, so that f <= 0 is verified in floating point where it ends. Where a is
zero the lines are steep, and bound x alone. Besides the rows of accelerations there may
be others, whose numbers are given for each point of the grid.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.kernel.columns import repeat
from armillary.kernel.stages import Stage
from armillary.spatial.vector import Matrix, Number, Vector
from armillary.trace import Port
from armillary.trace.functions import absolute, maximum, minimum, select, sqrt
from armillary.trajectories.hermite import basis as basis_at
from armillary.trajectories.path_columns import PathColumns, Records, Steps

__all__ = [
    "TOLERANCE",
    "backward_records",
    "backward_stages",
    "backward_steps",
    "forward_records",
    "forward_stages",
    "forward_steps",
    "grid_columns",
    "grid_stage",
]

SLACK: Final = 1e-12
"""By how much, relative to x, each step of Newton's method goes beyond the root."""

TOLERANCE: Final = 1e-9
"""By how much, relative to x, a given speed at an end may be above what is possible."""

FASTEST: Final = 1e24
"""The greatest x, where nothing limits it."""

LEAST_SLOPE: Final = 1e-100
"""Takes the place of a factor of zero."""

LIMIT: Final = 200
"""Most steps of Newton's method."""


def backward_steps(rows: int) -> Steps:
    """Return the table of the intervals of the grid, the last one first.

    rows: How many there are besides those of accelerations.
    """
    return PathColumns.BACKWARD_ROWS if rows else PathColumns.BACKWARD


def forward_steps(rows: int) -> Steps:
    """Return the table of the intervals of the grid in order."""
    return PathColumns.FORWARD_ROWS if rows else PathColumns.FORWARD


def backward_records(
    intervals: int, per_knot: int, rows: int = 0
) -> dict[str, Records]:
    """Return the records of the grid and of the backward sweep.

    Args:
        intervals: How many there are between knots.
        per_knot: Intervals of the grid in each of them.
        rows: How many there are besides those of accelerations.
    """
    last = per_knot * intervals
    return {
        **_grid_records(intervals, per_knot),
        **backward_steps(rows).records(here=np.arange(last)[::-1]),
        **PathColumns.LAST.records(here=np.array([last])),
    }


def forward_records(intervals: int, per_knot: int, rows: int = 0) -> dict[str, Records]:
    """Return the records of the grid and of the forward sweep."""
    return {
        **_grid_records(intervals, per_knot),
        **forward_steps(rows).records(here=np.arange(per_knot * intervals)),
        **PathColumns.FIRST.records(here=np.array([0])),
    }


def _grid_records(intervals: int, per_knot: int) -> dict[str, Records]:
    here: npt.NDArray[np.int64] = np.arange(per_knot * intervals + 1, dtype=np.int64)
    knot = np.minimum(here // per_knot, intervals - 1)
    part = (here - knot * per_knot) / per_knot
    return PathColumns.GRID.records(
        here=here,
        knot=knot,
        basis=np.stack([basis_at(part, 1), basis_at(part, 2)], axis=1),
        share=np.full(len(here), 1.0 / per_knot),
    )


def grid_columns(columns: PathColumns) -> tuple[Port, ...]:
    """Return the columns that `grid_stage` writes entry by entry."""
    return columns.points, columns.gaps


def grid_stage(columns: PathColumns) -> Stage:
    """Return the stage that evaluates paths at the points of the grid."""
    return PathColumns.GRID.each(
        columns,
        columns.stage(_grid_point, writes=(columns.grid_point, columns.grid_gap)),
    )


def backward_stages(columns: PathColumns) -> tuple[Stage, ...]:
    """Return the stages of the backward sweep.

    They go from `lo_end` and `hi_end`, the interval of x at the end, to `lows` and
    `highs`, those at the points of the grid; a high below 0 says that there is none.
    Limits are `velocity` and `acceleration`, the lower and the upper ones, and the
    `rows` at each point, if the size r of the columns is above 0.
    """
    has_rows = columns.r > 0
    lines = columns.stage(
        _lines,
        row=columns.row if has_rows else None,
        next_row=columns.next_row if has_rows else None,
    )
    return (
        PathColumns.LAST.each(
            columns, columns.stage(_last, writes=(columns.last_lo, columns.last_hi))
        ),
        backward_steps(columns.r).each(
            columns,
            lines,
            columns.stage(_highest),
            repeat(columns.active, columns.stage(_lower), limit=LIMIT),
            columns.stage(_least_of_rows if has_rows else _least),
            repeat(columns.active, columns.stage(_higher), limit=LIMIT),
            columns.stage(_interval, writes=(columns.lo, columns.hi)),
        ),
    )


def forward_stages(columns: PathColumns) -> tuple[Stage, ...]:
    """Return the stages of the forward sweep.

    They go from `x_start` and `time_start` to `x`, `time` [s] and `speed` at the points
    of the grid.
    """
    has_rows = columns.r > 0
    lines = columns.stage(
        _lines,
        point=columns.from_point,
        next_point=columns.to_point,
        gap=columns.from_gap,
        lo_next=columns.to_lo,
        hi_next=columns.to_hi,
        row=columns.from_row if has_rows else None,
        next_row=columns.to_row if has_rows else None,
    )
    return (
        PathColumns.FIRST.each(
            columns,
            columns.stage(
                _begin,
                writes=(columns.first_x, columns.first_time, columns.first_speed),
            ),
        ),
        forward_steps(columns.r).each(columns, lines, columns.stage(_advance)),
    )


# The grid


def _grid_point(
    knot_a: Matrix,
    knot_b: Matrix,
    s_a: Number,
    s_b: Number,
    basis: Matrix,
    share: Number,
) -> tuple[Matrix, Number]:
    """Return slope and curvature of a path at a grid point, and the gap to the next.

    With h = s_b - s_a, derivative k of the polynomials of `curve.py` is that by r,
    over h^k.
    """
    h = s_b - s_a
    derivatives: list[list[Number]] = []
    for order, H in enumerate(basis, 1):
        scale = 1.0 / h if order == 1 else 1.0 / (h * h)
        values: list[Number] = []
        for (qa, ma, ca), (qb, mb, cb) in zip(
            zip(*knot_a, strict=True), zip(*knot_b, strict=True), strict=True
        ):
            of_slopes = H[1] * ma + H[2] * mb
            of_curvatures = H[3] * ca + H[4] * cb
            total = H[0] * (qb - qa) + h * (of_slopes + h * of_curvatures)
            values.append(scale * total)
        derivatives.append(values)
    return derivatives, share * h


# The backward sweep


def _last(
    last_point: Matrix, velocity: Matrix, lo_end: Number, hi_end: Number
) -> tuple[Number, Number]:
    """Return the interval at the last point; its end is below 0 if there is none."""
    most = _most(last_point, velocity)
    is_open = (hi_end >= 0.0) & (lo_end <= most * (1.0 + TOLERANCE))
    return select(is_open, minimum(lo_end, most), 0.0), select(
        is_open, minimum(hi_end, most), -1.0
    )


def _most(point: Matrix, velocity: Matrix) -> Number:
    """Return the greatest x that limits of rates allow: the least of (v / q')^2."""
    most: Number = FASTEST
    for slope, lower, upper in zip(point[0], *velocity, strict=True):
        v = select(slope > 0.0, upper, lower)
        speed = v / select(absolute(slope) > 0.0, slope, 1.0)
        most = minimum(most, select(absolute(slope) > 0.0, speed * speed, FASTEST))
    return most


class BoundLines(NamedTuple):
    """The lines in x that bound u at a point."""

    p: Vector
    above: Vector
    below: Vector
    d: Number
    d_hi: Number
    d_lo: Number


class UpperBoundLines(NamedTuple):
    """Those that bound u from above."""

    p: Vector
    above: Vector
    d: Number
    d_hi: Number


def _lines(
    point: Matrix,
    next_point: Matrix,
    gap: Number,
    lo_next: Number,
    hi_next: Number,
    acceleration: Matrix,
    row: Matrix = (),
    next_row: Matrix = (),
) -> BoundLines:
    """Return the lines of limits at both ends of an interval, and of the next one."""
    step = 2.0 * gap
    lines: list[tuple[Number, Number, Number]] = []
    for curve, shift in ((point, 0.0), (next_point, step)):
        for slope, curvature, least, most in zip(*curve, *acceleration, strict=True):
            lines.append(_line(slope + shift * curvature, curvature, least, most))
    for further, shift in ((row, 0.0), (next_row, step)):
        for a, b, least, most in further:
            lines.append(_line(a + shift * b, b, least, most))
    p, above, below = (list(numbers) for numbers in zip(*lines, strict=True))
    reciprocal = 1.0 / step
    return BoundLines(
        p, above, below, -reciprocal, hi_next * reciprocal, lo_next * reciprocal
    )


def _line(
    a: Number, b: Number, least: Number, most: Number
) -> tuple[Number, Number, Number]:
    """Return slope and offsets of the lines by which least <= a u + b x <= most."""
    is_flat = absolute(a) < LEAST_SLOPE
    inverse = 1.0 / select(is_flat, LEAST_SLOPE, a)
    # Where a and b are zero the limit holds for all u and x, or for none.
    is_constant = is_flat & (absolute(b) < LEAST_SLOPE)
    upper, lower = most * inverse, least * inverse
    falls = inverse < 0.0
    above, below = select(falls, lower, upper), select(falls, upper, lower)
    return (
        select(is_constant, 0.0, -b * inverse),
        select(is_constant, select(most < 0.0, -FASTEST, np.inf), above),
        select(is_constant, select(least > 0.0, FASTEST, -np.inf), below),
    )


def _gap(x: Number, lines: BoundLines) -> tuple[Number, Number, Number]:
    """Return f at x, and slope and offset of the line that f follows there."""
    p, above, below, d, d_hi, d_lo = lines
    upper, lower = d * x + d_hi, d * x + d_lo
    of_upper, of_lower = (d, d_hi), (d, d_lo)
    for slope, most, least in zip(p, above, below, strict=True):
        rise = slope * x
        is_less, is_more = rise + most < upper, rise + least > lower
        upper = select(is_less, rise + most, upper)
        lower = select(is_more, rise + least, lower)
        of_upper = _chosen(is_less, (slope, most), of_upper)
        of_lower = _chosen(is_more, (slope, least), of_lower)
    return lower - upper, of_lower[0] - of_upper[0], of_lower[1] - of_upper[1]


def _chosen(
    truth: Number, a: tuple[Number, Number], b: tuple[Number, Number]
) -> tuple[Number, Number]:
    return select(truth, a[0], b[0]), select(truth, a[1], b[1])


class Lowered(NamedTuple):
    """A step to the greatest x of an interval."""

    greatest: Number
    active: Number


class Raised(NamedTuple):
    """A step to the least x of an interval."""

    least: Number
    active: Number


def _highest(point: Matrix, velocity: Matrix, hi_next: Number) -> Lowered:
    """Return from where x is lowered, and whether there is anything to find."""
    is_open = hi_next >= 0.0
    return Lowered(
        select(is_open, _most(point, velocity), -1.0), select(is_open, 1.0, 0.0)
    )


def _lower(greatest: Number, lines: BoundLines) -> Lowered:
    """Return x nearer to the greatest one with f <= 0, and whether it must go on.

    It is the root of the line that f follows at x. Where that line does not fall as x
    is lowered there is none, and x is -1.
    """
    x = greatest
    f, slope, offset = _gap(x, lines)
    is_met, falls = f <= 0.0, (slope > 0.0) & (x > 0.0)
    root = -offset / select(falls, slope, 1.0)
    lower = maximum(minimum(root, x) * (1.0 - SLACK), 0.0)
    x = select(is_met, x, select(falls, lower, -1.0))
    return Lowered(x, select(falls & ~is_met, 1.0, 0.0))


def _least(lo_next: Number, greatest: Number) -> Raised:
    """Return from where x is raised to the least, and whether it must be.

    Where the next interval begins at 0, so does this one: a path may rest.
    """
    return Raised(0.0, select((lo_next > 0.0) & (greatest >= 0.0), 1.0, 0.0))


def _least_of_rows(lo_next: Number, greatest: Number) -> Raised:
    """Return the same where rows may exclude that the path rests."""
    return Raised(0.0, select(greatest >= 0.0, 1.0, 0.0))


def _higher(least: Number, greatest: Number, lines: BoundLines) -> Raised:
    """Return x nearer to the least one with f <= 0, and whether it must go on.

    It is above the greatest, and the interval empty, where there is none.
    """
    x = least
    f, slope, offset = _gap(x, lines)
    is_met, falls = f <= 0.0, (slope < 0.0) & (x <= greatest)
    root = -offset / select(falls, slope, -1.0)
    higher = maximum(root, x) * (1.0 + SLACK)
    x = select(is_met, x, select(falls, higher, 2.0 * FASTEST))
    return Raised(x, select(falls & ~is_met, 1.0, 0.0))


def _interval(greatest: Number, least: Number) -> tuple[Number, Number]:
    """Return the ends of the interval; the greater one is below 0 where it is empty."""
    return least, select(least <= greatest, greatest, -1.0)


# The forward sweep


def _begin(x_start: Number, time_start: Number) -> Vector:
    return x_start + 0.0, time_start + 0.0, sqrt(x_start)


class Advanced(NamedTuple):
    """The motion at the next point."""

    x_next: Number
    time_next: Number
    speed_next: Number


def _advance(
    x_here: Number,
    time_here: Number,
    to_lo: Number,
    to_hi: Number,
    lines: UpperBoundLines,
) -> Advanced:
    """Return x, the time and the path speed at the next grid point.

    u is the greatest that all lines allow, and the time that an interval takes is its
    length over the mean of the path speeds at its ends: gap = (s'[i] + s'[i+1]) t / 2.
    Rounding may lead x a little out of the next interval; it is put back.
    """
    p, above, d, d_hi = lines
    u = d * x_here + d_hi
    for slope, offset in zip(p, above, strict=True):
        u = minimum(u, slope * x_here + offset)
    step = -1.0 / d  # 2 gap
    x_next = maximum(minimum(x_here + step * u, to_hi), to_lo)
    speed = sqrt(x_next)
    return Advanced(x_next, time_here + step / (sqrt(x_here) + speed), speed)
