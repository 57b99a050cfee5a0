"""The pipeline that finds the greatest speed along paths, by two sweeps over a grid.

With the path speed s' squared, x = s'^2, and the path acceleration u = s'', rates and
accelerations of the joints are

    qd = q'(s) s',    qdd = q'(s) u + q''(s) x,    dx/ds = 2 u

so limits are linear in (x, u). Between grid points u is constant, and limits hold at
both ends of each interval. The backward sweep finds at each grid point the interval
[lo, hi] of those x from which the end can be reached; the forward sweep takes the
greatest u that leads to such an interval (Pham and Pham, "A new approach to
time-optimal path parameterization based on reachability analysis", IEEE Transactions on
Robotics 34(3), 2018, algorithm 1).

At a grid point each limit bounds u by two lines in x:

    max_r (p_r x - t_r) = L(x) <= u <= U(x) = min_r (p_r x + t_r),    f = L - U

f is convex, so the greatest x with f <= 0 is found by Newton's method from above in
finitely many steps, one for each pair of lines at most. Each step goes lower by `SLACK`
than the root, so that f <= 0 is verified in floating point where it ends. Where q' of
a joint is zero its lines are steep, and bound x alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from armillary.control.path_curve import BASIS_ROWS, basis
from armillary.kernel import Kernel
from armillary.kernel.pipeline import Each, Pipeline, Stage, While, program
from armillary.kernel.pipeline_kernel import CompiledPipeline, compile_pipeline
from armillary.kernel.tables import Table, index, reals
from armillary.spatial.vector import Number
from armillary.trace import Port, Program
from armillary.trace.functions import absolute, maximum, minimum, select, sqrt

__all__ = [
    "KNOTS",
    "POINTS",
    "TOLERANCE",
    "Sweeps",
    "backward_pipeline",
    "backward_tables",
    "forward_pipeline",
    "forward_tables",
    "sweeps",
]

SLACK: Final = 1e-12
"""By how much, relative to x, each step of Newton's method goes beyond the root."""

TOLERANCE: Final = 1e-9
"""By how much, relative to x, a given speed at an end may be above what is possible."""

FASTEST: Final = 1e24
"""The greatest x, where nothing limits it."""

LEAST_SLOPE: Final = 1e-100
"""Takes the place of a q' of zero."""

LIMIT: Final = 200
"""Most steps of Newton's method."""

KNOTS: Final = 12
"""Knots of the longest piece of a path that kernels take at once."""
POINTS: Final = 128
"""Points of its grid."""

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

BACKWARD: Final = Table(
    "steps",
    (
        index("point", "points"),
        index("next_point", "points"),
        index("gap", "gaps"),
        index("lo", "lows"),
        index("lo_next", "lows"),
        index("hi", "highs"),
        index("hi_next", "highs"),
    ),
)
"""The intervals of the grid, the last one first."""

LAST: Final = Table(
    "last",
    (
        index("last_point", "points"),
        index("last_lo", "lows"),
        index("last_hi", "highs"),
    ),
    is_single=True,
)

FORWARD: Final = Table(
    "steps",
    (
        index("point", "points"),
        index("next_point", "points"),
        index("gap", "gaps"),
        index("lo_next", "lows"),
        index("hi_next", "highs"),
        index("x_here", "x"),
        index("x_next", "x"),
        index("time_here", "time"),
        index("time_next", "time"),
    ),
)
"""The intervals of the grid in order."""

FIRST: Final = Table(
    "first", (index("first_x", "x"), index("first_time", "time")), is_single=True
)


def backward_pipeline(joints: int) -> Pipeline:
    """Return the pipeline of the backward sweep along a piece of a path.

    Its inputs are the parameter `at` and `knots`, each a position, slope and curvature,
    the limits, and the interval of x at the end. Results are the intervals of x at the
    points of the grid, from `lows` to `highs`, which is below 0 where there is none.

    joints: How many.
    """
    n, number = joints, ()
    bounds = {**_rows(n), "d": number, "t_hi": number, "t_lo": number}
    highest = {"point": (2, n), "velocity": (n,), "hi_next": number}
    lower = program(_lower, "y going", y=number, **bounds)
    higher = program(_higher, "z going", z=number, y=number, **bounds)
    step = (
        _lines_program(n),
        program(_highest, "y going", **highest),
        While("going", (lower,), LIMIT),
        program(_least, "z going", lo_next=number, y=number),
        While("going", (higher,), LIMIT),
        program(_interval, "lo hi", y=number, z=number),
    )
    ends = dict.fromkeys(("lo_end", "hi_end"), number)
    last = {"last_point": (2, n), "velocity": (n,), **ends}
    return Pipeline(
        "backward_sweep",
        (
            *_curve_inputs(n),
            Port("velocity", (n,)),
            Port("acceleration", (n,)),
            *(Port(name, number) for name in ends),
        ),
        (GRID, BACKWARD, LAST),
        (
            _grid_stage(n),
            Each("last", (program(_last, "last_lo last_hi", **last),)),
            Each("steps", step),
        ),
        ("lows", "highs"),
        (*_grid_columns(n), Port("lows", (POINTS,)), Port("highs", (POINTS,))),
    )


def forward_pipeline(joints: int) -> Pipeline:
    """Return the pipeline of the forward sweep along a piece of a path.

    Its inputs are as for the backward sweep, without the limits of rates; the results
    of that; and `x` and the `time` [s] at the first point. Results are `x` and `time`
    at the points of the grid.

    joints: How many.
    """
    n, number = joints, ()
    here = dict.fromkeys(("x_here", "time_here", "lo_next", "hi_next"), number)
    advance = program(
        _advance, "x_next time_next", **here, **_rows(n), d=number, t_hi=number
    )
    starts = dict.fromkeys(("x_start", "time_start"), number)
    first = program(_begin, "first_x first_time", **starts)
    return Pipeline(
        "forward_sweep",
        (
            *_curve_inputs(n),
            Port("acceleration", (n,)),
            Port("lows", (POINTS,)),
            Port("highs", (POINTS,)),
            *(Port(name, number) for name in starts),
        ),
        (GRID, FORWARD, FIRST),
        (
            _grid_stage(n),
            Each("first", (first,)),
            Each("steps", (_lines_program(n), advance)),
        ),
        ("x", "time"),
        (*_grid_columns(n), Port("x", (POINTS,)), Port("time", (POINTS,))),
    )


def _curve_inputs(joints: int) -> tuple[Port, ...]:
    return Port("at", (KNOTS,)), Port("knots", (KNOTS, 3, joints))


def _grid_columns(joints: int) -> tuple[Port, ...]:
    return Port("points", (POINTS, 2, joints)), Port("gaps", (POINTS,))


def _grid_stage(joints: int) -> Stage:
    """Return the stage that evaluates paths at the points of the grid."""
    knots = dict.fromkeys(("knot_a", "knot_b"), (3, joints))
    numbers = dict.fromkeys(("s_a", "s_b"), ())
    shares = {"basis": (2, BASIS_ROWS), "share": ()}
    names = "grid_point grid_gap"
    return Each("grid", (program(_grid_point, names, **knots, **numbers, **shares),))


def _rows(joints: int) -> dict[str, tuple[int, ...]]:
    return dict.fromkeys(("p", "t"), (2 * joints,))


def _lines_program(joints: int) -> Program:
    points = dict.fromkeys(("point", "next_point"), (2, joints))
    numbers = dict.fromkeys(("gap", "lo_next", "hi_next"), ())
    names = "p t d t_hi t_lo"
    return program(_lines, names, **points, **numbers, acceleration=(joints,))


def backward_tables(intervals: int, per_knot: int) -> dict[str, dict[str, Any]]:
    """Return the tables of `backward_pipeline` for a grid.

    Args:
        intervals: How many there are between knots.
        per_knot: Intervals of the grid in each of them.
    """
    last = per_knot * intervals
    here = np.arange(last)[::-1]
    names = "last_point", "last_lo", "last_hi"
    return {
        "grid": _grid_table(intervals, per_knot),
        "steps": {
            **dict.fromkeys(("point", "gap", "lo", "hi"), here),
            **dict.fromkeys(("next_point", "lo_next", "hi_next"), here + 1),
        },
        "last": {name: np.array([last]) for name in names},
    }


def forward_tables(intervals: int, per_knot: int) -> dict[str, dict[str, Any]]:
    """Return the same of `forward_pipeline`."""
    here = np.arange(per_knot * intervals)
    next_names = "next_point", "lo_next", "hi_next", "x_next", "time_next"
    return {
        "grid": _grid_table(intervals, per_knot),
        "steps": {
            **dict.fromkeys(("point", "gap", "x_here", "time_here"), here),
            **dict.fromkeys(next_names, here + 1),
        },
        "first": {name: np.array([0]) for name in ("first_x", "first_time")},
    }


def _grid_table(intervals: int, per_knot: int) -> dict[str, Any]:
    point = np.arange(per_knot * intervals + 1)
    knot = np.minimum(point // per_knot, intervals - 1)
    part = (point - knot * per_knot) / per_knot
    return {
        **dict.fromkeys(("knot_a", "s_a"), knot),
        **dict.fromkeys(("knot_b", "s_b"), knot + 1),
        "basis": np.stack([basis(part, 1), basis(part, 2)], axis=1),
        "share": np.full(len(point), 1.0 / per_knot),
        **dict.fromkeys(("grid_point", "grid_gap"), point),
    }


class Sweeps(NamedTuple):
    """The kernels of both sweeps."""

    backward: Kernel
    forward: Kernel


@lru_cache(maxsize=64)
def _code(joints: int) -> tuple[CompiledPipeline, CompiledPipeline]:
    return (
        compile_pipeline(backward_pipeline(joints)),
        compile_pipeline(forward_pipeline(joints)),
    )


@lru_cache(maxsize=256)
def sweeps(joints: int, intervals: int, per_knot: int) -> Sweeps:
    """Return the kernels of sweeps over a grid; only `joints` are compiled for.

    Args:
        joints: How many.
        intervals: How many there are between knots, less than `KNOTS`.
        per_knot: Intervals of the grid in each of them, less than `POINTS` in all.
    """
    backward, forward = _code(joints)
    return Sweeps(
        backward(backward_tables(intervals, per_knot)),
        forward(forward_tables(intervals, per_knot)),
    )


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
    for slope, v in zip(point[0], velocity, strict=True):
        rate = absolute(slope)
        own = v / select(rate > 0.0, rate, 1.0)
        most = minimum(most, select(rate > 0.0, own * own, FASTEST))
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
) -> Any:
    """Return slopes and offsets of the lines that bound u, and of the next interval."""
    p: list[Number] = []
    t: list[Number] = []
    step = 2.0 * gap
    for curve, shift in ((point, 0.0), (next_point, step)):
        for slope, bend, c in zip(curve[0], curve[1], acceleration, strict=True):
            a = slope + shift * bend
            # |a u + bend x| <= c
            is_flat = absolute(a) < LEAST_SLOPE
            inverse = 1.0 / select(is_flat, LEAST_SLOPE, a)
            rests = is_flat & (absolute(bend) < LEAST_SLOPE)
            p.append(select(rests, 0.0, -bend * inverse))
            t.append(select(rests, np.inf, c * absolute(inverse)))
    reciprocal = 1.0 / step
    return p, t, -reciprocal, hi_next * reciprocal, lo_next * reciprocal


def _highest(point: Any, velocity: Any, hi_next: Any) -> Any:
    """Return from where x is lowered, and whether there is anything to find."""
    is_open = hi_next >= 0.0
    return select(is_open, _most(point, velocity), -1.0), select(is_open, 1.0, 0.0)


def _gap(
    x: Any, p: Sequence[Any], t: Sequence[Any], d: Any, t_hi: Any, t_lo: Any
) -> tuple[Any, Any, Any]:
    """Return f at x, and slope and offset of the line that f follows there."""
    upper, lower = d * x + t_hi, d * x + t_lo
    of_upper, of_lower = (d, t_hi), (d, t_lo)
    for slope, offset in zip(p, t, strict=True):
        above, below = slope * x + offset, slope * x - offset
        is_less, is_more = above < upper, below > lower
        upper, lower = select(is_less, above, upper), select(is_more, below, lower)
        of_upper = _chosen(is_less, (slope, offset), of_upper)
        of_lower = _chosen(is_more, (slope, -offset), of_lower)
    return lower - upper, of_lower[0] - of_upper[0], of_lower[1] - of_upper[1]


def _chosen(truth: Any, a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    return select(truth, a[0], b[0]), select(truth, a[1], b[1])


def _lower(y: Any, p: Any, t: Any, d: Any, t_hi: Any, t_lo: Any) -> Any:
    """Return y nearer to the greatest x with f <= 0, and whether it must go on."""
    f, slope, offset = _gap(y, p, t, d, t_hi, t_lo)
    is_met, falls = f <= 0.0, (slope > 0.0) & (y > 0.0)
    root = -offset / select(falls, slope, 1.0)
    lower = maximum(minimum(root, y) * (1.0 - SLACK), 0.0)
    y = select(is_met, y, select(falls, lower, -1.0))
    return y, select(falls & ~is_met, 1.0, 0.0)


def _least(lo_next: Any, y: Any) -> Any:
    """Return from where x is raised to the least, and whether it must be."""
    return 0.0, select((lo_next > 0.0) & (y >= 0.0), 1.0, 0.0)


def _higher(z: Any, y: Any, p: Any, t: Any, d: Any, t_hi: Any, t_lo: Any) -> Any:
    """Return z nearer to the least x with f <= 0, and whether it must go on."""
    f, slope, offset = _gap(z, p, t, d, t_hi, t_lo)
    is_met, falls = f <= 0.0, (slope < 0.0) & (z <= y)
    root = -offset / select(falls, slope, -1.0)
    higher = maximum(root, z) * (1.0 + SLACK)
    z = select(is_met, z, select(falls, higher, 2.0 * FASTEST))
    return z, select(falls & ~is_met, 1.0, 0.0)


def _interval(y: Any, z: Any) -> Any:
    """Return the ends of the interval; the greater one is below 0 where it is empty."""
    return z, select(z <= y, y, -1.0)


def _begin(x: Any, time: Any) -> Any:
    return x + 0.0, time + 0.0


def _advance(
    x: Any, time: Any, lo_next: Any, hi_next: Any, p: Any, t: Any, d: Any, t_hi: Any
) -> Any:
    """Return x and the time at the next grid point."""
    u = d * x + t_hi
    for slope, offset in zip(p, t, strict=True):
        u = minimum(u, slope * x + offset)
    step = -1.0 / d
    following = maximum(minimum(x + step * u, hi_next), lo_next)
    return following, time + step / (sqrt(x) + sqrt(following))
