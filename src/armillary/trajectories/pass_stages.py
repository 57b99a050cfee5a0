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

f is convex, so the greatest x with f <= 0 is found by Newton's method from above in
finitely many steps, one for each pair of lines at most. Each step goes lower by `SLACK`
than the root, so that f <= 0 is verified in floating point where it ends. Where a is
zero the lines are steep, and bound x alone. Besides the rows of accelerations there may
be others, whose numbers are given for each point of the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from armillary.kernel.pipeline import Each, Stage, While, program
from armillary.kernel.tables import Table, index, reals
from armillary.spatial.vector import Number
from armillary.trace import Port, Program
from armillary.trace.functions import absolute, maximum, minimum, select, sqrt
from armillary.trajectories.curve import BASIS_ROWS

__all__ = [
    "FIRST",
    "GRID",
    "LAST",
    "TOLERANCE",
    "backward_stages",
    "backward_table",
    "forward_stages",
    "forward_table",
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

GRID: Final = Table(
    "grid",
    (
        index("knot_a", "knots"),
        index("knot_b", "knots"),
        index("s_a", "at"),
        index("s_b", "at"),
        reals("basis", (2, BASIS_ROWS)),
        reals("share"),
        index("grid_point", "points"),
        index("grid_gap", "gaps"),
    ),
)
"""The points of the grid; the gap to the next is a share of that of its knots."""

LAST: Final = Table(
    "last",
    (
        index("last_point", "points"),
        index("last_lo", "lows"),
        index("last_hi", "highs"),
    ),
    is_single=True,
)


def backward_table(rows: int) -> Table:
    """Return the table of the intervals of the grid, the last one first.

    rows: How many there are besides those of accelerations.
    """
    fields = (
        index("point", "points"),
        index("next_point", "points"),
        index("gap", "gaps"),
        index("lo", "lows"),
        index("lo_next", "lows"),
        index("hi", "highs"),
        index("hi_next", "highs"),
    )
    more = index("row", "rows"), index("next_row", "rows")
    return Table("backward_steps", (*fields, *(more if rows else ())))


def forward_table(rows: int) -> Table:
    """Return the table of the intervals of the grid in order."""
    fields = (
        index("from_point", "points"),
        index("to_point", "points"),
        index("from_gap", "gaps"),
        index("to_lo", "lows"),
        index("to_hi", "highs"),
        index("x_here", "x"),
        index("x_next", "x"),
        index("time_here", "time"),
        index("time_next", "time"),
        index("speed_next", "speed"),
    )
    more = index("from_row", "rows"), index("to_row", "rows")
    return Table("forward_steps", (*fields, *(more if rows else ())))


FIRST: Final = Table(
    "first",
    (
        index("first_x", "x"),
        index("first_time", "time"),
        index("first_speed", "speed"),
    ),
    is_single=True,
)


def grid_columns(points: int, joints: int) -> tuple[Port, ...]:
    """Return the columns that `grid_stage` writes, for so many points at most."""
    return Port("points", (points, 2, joints)), Port("gaps", (points,))


def grid_stage(joints: int) -> Stage:
    """Return the stage that evaluates paths at the points of the grid."""
    knots = dict.fromkeys(("knot_a", "knot_b"), (3, joints))
    numbers = dict.fromkeys(("s_a", "s_b"), ())
    shares = {"basis": (2, BASIS_ROWS), "share": ()}
    names = "grid_point grid_gap"
    return Each("grid", (program(_grid_point, names, **knots, **numbers, **shares),))


def backward_stages(joints: int, rows: int) -> tuple[Stage, ...]:
    """Return the stages of the backward sweep.

    They go from `lo_end` and `hi_end`, the interval of x at the end, to `lows` and
    `highs`, those at the points of the grid; a high below 0 says that there is none.
    Limits are `velocity` and `acceleration`, the lower and the upper ones.

    Args:
        joints: How many.
        rows: Rows of `rows` at each point, each a, b, lower and upper.
    """
    n, number = joints, ()
    bounds = {**_line_shapes(n, rows), "d": number, "d_hi": number, "d_lo": number}
    highest = {"point": (2, n), "velocity": (2, n), "hi_next": number}
    lower = program(_lower, "y going", y=number, **bounds)
    higher = program(_higher, "z going", z=number, y=number, **bounds)
    least = program(
        _least_of_rows if rows else _least, "z going", lo_next=number, y=number
    )
    step = (
        _lines_program("point next_point gap lo_next hi_next row next_row", n, rows),
        program(_highest, "y going", **highest),
        While("going", (lower,), LIMIT),
        least,
        While("going", (higher,), LIMIT),
        program(_interval, "lo hi", y=number, z=number),
    )
    ends = dict.fromkeys(("lo_end", "hi_end"), number)
    last = {"last_point": (2, n), "velocity": (2, n), **ends}
    return (
        Each("last", (program(_last, "last_lo last_hi", **last),)),
        Each("backward_steps", step),
    )


def forward_stages(joints: int, rows: int) -> tuple[Stage, ...]:
    """Return the stages of the forward sweep.

    They go from `x_start` and `time_start` to `x`, `time` [s] and `speed` at the points
    of the grid.
    """
    n, number = joints, ()
    here = dict.fromkeys(("x_here", "time_here", "to_lo", "to_hi"), number)
    lines = {
        name: shape
        for name, shape in _line_shapes(n, rows).items()
        if name in {"p", "above"}
    }
    advance = program(
        _advance, "x_next time_next speed_next", **here, **lines, d=number, d_hi=number
    )
    starts = dict.fromkeys(("x_start", "time_start"), number)
    first = program(_begin, "first_x first_time first_speed", **starts)
    names = "from_point to_point from_gap to_lo to_hi from_row to_row"
    return (
        Each("first", (first,)),
        Each("forward_steps", (_lines_program(names, n, rows), advance)),
    )


def _line_shapes(joints: int, rows: int) -> dict[str, tuple[int, ...]]:
    return dict.fromkeys(("p", "above", "below"), (2 * (joints + rows),))


def _lines_program(inputs: str, joints: int, rows: int) -> Program:
    here, following, gap, lo, hi, row, next_row = inputs.split()
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys((here, following), (2, joints)),
        **dict.fromkeys((gap, lo, hi), ()),
        "acceleration": (2, joints),
    }
    if rows:
        shapes |= dict.fromkeys((row, next_row), (rows, 4))
    return program(_lines, "p above below d d_hi d_lo", **shapes)


def _grid_point(a: Any, b: Any, s_a: Any, s_b: Any, rows: Any, share: Any) -> Any:
    """Return slope and curvature of a path at a grid point, and the gap to the next."""
    length = s_b - s_a
    found: list[list[Number]] = []
    for order, row in enumerate(rows, 1):
        scale = 1.0 / length if order == 1 else 1.0 / (length * length)
        values: list[Number] = []
        for qa, qb, ma, mb, ca, cb in zip(
            a[0], b[0], a[1], b[1], a[2], b[2], strict=True
        ):
            of_length = row[1] * ma + row[2] * mb
            of_square = row[3] * ca + row[4] * cb
            total = row[0] * (qb - qa) + length * (of_length + length * of_square)
            values.append(scale * total)
        found.append(values)
    return found, share * length


def _most(point: Any, velocity: Any) -> Any:
    """Return the greatest x that limits of rates allow."""
    most: Number = FASTEST
    for slope, lower, upper in zip(point[0], *velocity, strict=True):
        v = select(slope > 0.0, upper, lower)
        own = v / select(absolute(slope) > 0.0, slope, 1.0)
        most = minimum(most, select(absolute(slope) > 0.0, own * own, FASTEST))
    return most


def _last(point: Any, velocity: Any, lo: Any, hi: Any) -> Any:
    """Return the interval at the last point; its end is below 0 if there is none."""
    most = _most(point, velocity)
    is_open = (hi >= 0.0) & (lo <= most * (1.0 + TOLERANCE))
    return select(is_open, minimum(lo, most), 0.0), select(
        is_open, minimum(hi, most), -1.0
    )


def _lines(
    point: Any,
    next_point: Any,
    gap: Any,
    lo_next: Any,
    hi_next: Any,
    acceleration: Any,
    row: Any = (),
    next_row: Any = (),
) -> Any:
    """Return slopes and offsets of the lines that bound u, and of the next interval."""
    step = 2.0 * gap
    found: list[tuple[Number, Number, Number]] = []
    for curve, shift in ((point, 0.0), (next_point, step)):
        for slope, bend, least, most in zip(*curve, *acceleration, strict=True):
            found.append(_line(slope + shift * bend, bend, least, most))
    for given, shift in ((row, 0.0), (next_row, step)):
        for a, b, least, most in given:
            found.append(_line(a + shift * b, b, least, most))
    p, above, below = (list(numbers) for numbers in zip(*found, strict=True))
    reciprocal = 1.0 / step
    return p, above, below, -reciprocal, hi_next * reciprocal, lo_next * reciprocal


def _line(a: Any, b: Any, least: Any, most: Any) -> tuple[Number, Number, Number]:
    """Return slope and offsets of the lines by which least <= a u + b x <= most."""
    is_flat = absolute(a) < LEAST_SLOPE
    inverse = 1.0 / select(is_flat, LEAST_SLOPE, a)
    rests = is_flat & (absolute(b) < LEAST_SLOPE)
    upper, lower = most * inverse, least * inverse
    falls = inverse < 0.0
    above, below = select(falls, lower, upper), select(falls, upper, lower)
    return (
        select(rests, 0.0, -b * inverse),
        select(rests, select(most < 0.0, -FASTEST, np.inf), above),
        select(rests, select(least > 0.0, FASTEST, -np.inf), below),
    )


def _highest(point: Any, velocity: Any, hi_next: Any) -> Any:
    """Return from where x is lowered, and whether there is anything to find."""
    is_open = hi_next >= 0.0
    return select(is_open, _most(point, velocity), -1.0), select(is_open, 1.0, 0.0)


def _gap(
    x: Any,
    p: Sequence[Any],
    above: Sequence[Any],
    below: Sequence[Any],
    d: Any,
    d_hi: Any,
    d_lo: Any,
) -> tuple[Any, Any, Any]:
    """Return f at x, and slope and offset of the line that f follows there."""
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


def _chosen(truth: Any, a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    return select(truth, a[0], b[0]), select(truth, a[1], b[1])


def _lower(y: Any, p: Any, above: Any, below: Any, d: Any, d_hi: Any, d_lo: Any) -> Any:
    """Return y nearer to the greatest x with f <= 0, and whether it must go on."""
    f, slope, offset = _gap(y, p, above, below, d, d_hi, d_lo)
    is_met, falls = f <= 0.0, (slope > 0.0) & (y > 0.0)
    root = -offset / select(falls, slope, 1.0)
    lower = maximum(minimum(root, y) * (1.0 - SLACK), 0.0)
    y = select(is_met, y, select(falls, lower, -1.0))
    return y, select(falls & ~is_met, 1.0, 0.0)


def _least(lo_next: Any, y: Any) -> Any:
    """Return from where x is raised to the least, and whether it must be."""
    return 0.0, select((lo_next > 0.0) & (y >= 0.0), 1.0, 0.0)


def _least_of_rows(lo_next: Any, y: Any) -> Any:
    """Return the same where rows may exclude that the path rests."""
    return 0.0, select(y >= 0.0, 1.0, 0.0)


def _higher(
    z: Any, y: Any, p: Any, above: Any, below: Any, d: Any, d_hi: Any, d_lo: Any
) -> Any:
    """Return z nearer to the least x with f <= 0, and whether it must go on."""
    f, slope, offset = _gap(z, p, above, below, d, d_hi, d_lo)
    is_met, falls = f <= 0.0, (slope < 0.0) & (z <= y)
    root = -offset / select(falls, slope, -1.0)
    higher = maximum(root, z) * (1.0 + SLACK)
    z = select(is_met, z, select(falls, higher, 2.0 * FASTEST))
    return z, select(falls & ~is_met, 1.0, 0.0)


def _interval(y: Any, z: Any) -> Any:
    """Return the ends of the interval; the greater one is below 0 where it is empty."""
    return z, select(z <= y, y, -1.0)


def _begin(x: Any, time: Any) -> Any:
    return x + 0.0, time + 0.0, sqrt(x)


def _advance(
    x: Any,
    time: Any,
    lo_next: Any,
    hi_next: Any,
    p: Any,
    above: Any,
    d: Any,
    d_hi: Any,
) -> Any:
    """Return x, the time and the path speed at the next grid point."""
    u = d * x + d_hi
    for slope, offset in zip(p, above, strict=True):
        u = minimum(u, slope * x + offset)
    step = -1.0 / d
    following = maximum(minimum(x + step * u, hi_next), lo_next)
    speed = sqrt(following)
    return following, time + step / (sqrt(x) + speed), speed
