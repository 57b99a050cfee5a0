"""The kernels that find times along paths: of a whole path at once, or piece by piece.

A short path through waypoints is one call: the spline, the backward and the forward
sweep. Of others the spline is laid by NumPy, and both sweeps go over pieces of it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from armillary.kernel import Kernel
from armillary.kernel.kernel import shared_kernel
from armillary.kernel.pipeline import Each, Pipeline, program
from armillary.kernel.pipeline_kernel import CompiledPipeline, compile_pipeline
from armillary.kernel.tables import Table, index
from armillary.trace import Port
from armillary.trace.functions import maximum, minimum, select
from armillary.trajectories.curve import basis
from armillary.trajectories.pass_stages import (
    FIRST,
    GRID,
    LAST,
    TOLERANCE,
    backward_stages,
    backward_table,
    forward_stages,
    forward_table,
    grid_columns,
    grid_stage,
)
from armillary.trajectories.spline_stages import (
    TABLES,
    spline_columns,
    spline_stages,
    spline_tables,
)
from armillary.trajectories.timed_path import PathReason

__all__ = [
    "LARGE",
    "SMALL",
    "Size",
    "Sweeps",
    "backward_pipeline",
    "backward_tables",
    "entry",
    "forward_pipeline",
    "forward_tables",
    "path_pipeline",
    "path_tables",
    "sweeps",
    "whole_path",
]

START_TOO_FAST: Final = float(PathReason.START_TOO_FAST)
END_TOO_FAST: Final = float(PathReason.END_TOO_FAST)
STOPS: Final = float(PathReason.STOPS)
REPEATED: Final = float(PathReason.REPEATED)


class Size(NamedTuple):
    """What kernels have room for.

    Attributes:
        knots: Of a path, or a piece of one.
        points: Of its grid.
    """

    knots: int
    points: int

    def holds(self, intervals: int, per_knot: int) -> bool:
        """Tell whether a grid fits."""
        return intervals < self.knots and intervals * per_knot < self.points


SMALL: Final = Size(12, 128)
LARGE: Final = Size(64, 1024)

AROUND: Final = Table(
    "around",
    (
        index("first_low", "lows"),
        index("first_high", "highs"),
        index("last_time", "time"),
    ),
    is_single=True,
)


def path_pipeline(joints: int, size: Size) -> Pipeline:
    """Return the pipeline from waypoints to times.

    Its inputs are `path`; the parameters `given` where `is_given` is above 0; lower and
    upper limits of rates and accelerations; and the path speeds at both ends. Results
    are the curve, `time` and `speed` at the points of the grid, the `reason`, and
    `moves`, which is 0 where all waypoints are the same.
    """
    n, number = joints, ()
    limits = Port("velocity", (2, n)), Port("acceleration", (2, n))
    enter = {
        "start": number,
        "state": (3,),
        **dict.fromkeys(("first_low", "first_high"), number),
    }
    leave = {"last_time": number, "fault": number, "state": (3,)}
    return Pipeline(
        "time_path",
        (
            Port("path", (size.knots, n)),
            Port("given", (size.knots,)),
            Port("is_given", number),
            *limits,
            Port("start", number),
            Port("end", number),
        ),
        (*TABLES, GRID, backward_table(0), LAST, forward_table(0), FIRST, AROUND),
        (
            *spline_stages(n),
            grid_stage(n),
            program(_squares, "lo_end hi_end", end=number),
            *backward_stages(n, 0),
            Each(
                "around", (program(_enter_path, "x_start time_start fault", **enter),)
            ),
            *forward_stages(n, 0),
            Each("around", (program(_leave, "reason moves", **leave),)),
        ),
        ("at", "knots", "time", "speed", "reason", "moves"),
        (
            *spline_columns(size.knots, n),
            *grid_columns(size.points, n),
            *(
                Port(name, (size.points,))
                for name in ("lows", "highs", "x", "time", "speed")
            ),
        ),
    )


def backward_pipeline(joints: int, size: Size, rows: int = 0) -> Pipeline:
    """Return the pipeline of the backward sweep along a piece of a path.

    Its inputs are the parameter `at` and `knots`, each a position, slope and curvature,
    the lower and upper limits, `rows` at each point of the grid, if there are any, and
    the interval of x at the end. Results are the intervals of x at the points of the
    grid, from `lows` to `highs`, which is below 0 where there is none.
    """
    n = joints
    return Pipeline(
        "backward_sweep",
        (
            *_curve_inputs(n, size),
            Port("velocity", (2, n)),
            *_limit_inputs(n, size, rows),
            Port("lo_end", ()),
            Port("hi_end", ()),
        ),
        (GRID, backward_table(rows), LAST),
        (grid_stage(n), *backward_stages(n, rows)),
        ("lows", "highs"),
        (
            *grid_columns(size.points, n),
            Port("lows", (size.points,)),
            Port("highs", (size.points,)),
        ),
    )


def forward_pipeline(joints: int, size: Size, rows: int = 0) -> Pipeline:
    """Return the pipeline of the forward sweep along a piece of a path.

    Its inputs are as for the backward sweep, without the limits of rates; the results
    of that; and `x` and the `time` [s] at the first point. Results are `x`, `time` and
    `speed` at the points of the grid.
    """
    n = joints
    return Pipeline(
        "forward_sweep",
        (
            *_curve_inputs(n, size),
            *_limit_inputs(n, size, rows),
            Port("lows", (size.points,)),
            Port("highs", (size.points,)),
            Port("x_start", ()),
            Port("time_start", ()),
        ),
        (GRID, forward_table(rows), FIRST),
        (grid_stage(n), *forward_stages(n, rows)),
        ("x", "time", "speed"),
        (
            *grid_columns(size.points, n),
            *(Port(name, (size.points,)) for name in ("x", "time", "speed")),
        ),
    )


def _curve_inputs(joints: int, size: Size) -> tuple[Port, ...]:
    return Port("at", (size.knots,)), Port("knots", (size.knots, 3, joints))


def _limit_inputs(joints: int, size: Size, rows: int) -> tuple[Port, ...]:
    more = (Port("rows", (size.points, rows, 4)),) if rows else ()
    return Port("acceleration", (2, joints)), *more


def path_tables(intervals: int, per_knot: int) -> dict[str, dict[str, Any]]:
    """Return the tables of `path_pipeline` for a grid.

    Args:
        intervals: How many there are between knots.
        per_knot: Intervals of the grid in each of them.
    """
    ends = {
        **dict.fromkeys(("first_low", "first_high"), np.array([0])),
        "last_time": np.array([intervals * per_knot]),
    }
    return {
        **spline_tables(intervals),
        **backward_tables(intervals, per_knot),
        **forward_tables(intervals, per_knot),
        "around": ends,
    }


def backward_tables(
    intervals: int, per_knot: int, rows: int = 0
) -> dict[str, dict[str, Any]]:
    """Return the same of `backward_pipeline`."""
    last = per_knot * intervals
    here = np.arange(last)[::-1]
    names = "last_point", "last_lo", "last_hi"
    of_here, of_next = ["point", "gap", "lo", "hi"], ["next_point", "lo_next"]
    of_next.append("hi_next")
    if rows:
        of_here.append("row")
        of_next.append("next_row")
    return {
        "grid": _grid_table(intervals, per_knot),
        "backward_steps": {
            **dict.fromkeys(of_here, here),
            **dict.fromkeys(of_next, here + 1),
        },
        "last": {name: np.array([last]) for name in names},
    }


def forward_tables(
    intervals: int, per_knot: int, rows: int = 0
) -> dict[str, dict[str, Any]]:
    """Return the same of `forward_pipeline`."""
    here = np.arange(per_knot * intervals)
    of_here = ["from_point", "from_gap", "x_here", "time_here"]
    of_next = ["to_point", "to_lo", "to_hi", "x_next", "time_next", "speed_next"]
    if rows:
        of_here.append("from_row")
        of_next.append("to_row")
    return {
        "grid": _grid_table(intervals, per_knot),
        "forward_steps": {
            **dict.fromkeys(of_here, here),
            **dict.fromkeys(of_next, here + 1),
        },
        "first": {
            name: np.array([0]) for name in ("first_x", "first_time", "first_speed")
        },
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
def _code(
    joints: int, size: Size, rows: int
) -> tuple[CompiledPipeline, CompiledPipeline]:
    return (
        compile_pipeline(backward_pipeline(joints, size, rows)),
        compile_pipeline(forward_pipeline(joints, size, rows)),
    )


@lru_cache(maxsize=64)
def _path_code(joints: int, size: Size) -> CompiledPipeline:
    return compile_pipeline(path_pipeline(joints, size))


@lru_cache(maxsize=256)
def sweeps(
    joints: int, size: Size, intervals: int, per_knot: int, rows: int = 0
) -> Sweeps:
    """Return the kernels of sweeps over a grid that fits.

    They are compiled for joints, sizes and rows only.

    Args:
        joints: How many.
        size: What there is room for.
        intervals: How many there are between knots.
        per_knot: Intervals of the grid in each of them.
        rows: Rows at each point besides those of accelerations.
    """
    backward, forward = _code(joints, size, rows)
    return Sweeps(
        backward(backward_tables(intervals, per_knot, rows)),
        forward(forward_tables(intervals, per_knot, rows)),
    )


@lru_cache(maxsize=256)
def whole_path(joints: int, size: Size, intervals: int, per_knot: int) -> Kernel:
    """Return the kernel of `path_pipeline` for a grid that fits."""
    return _path_code(joints, size)(path_tables(intervals, per_knot))


@lru_cache(maxsize=1)
def entry() -> Kernel:
    """Return the kernel from the path speed at the start, and the interval of x.

    Takes `start`, `low` and `high`; returns x there and what is wrong.
    """
    numbers = dict.fromkeys(("start", "low", "high"), ())
    return shared_kernel(program(_enter, "x fault", **numbers))


def _squares(end: Any) -> Any:
    return end * end, end * end


def _enter(start: Any, low: Any, high: Any) -> Any:
    """Return x at the start, as near to that of a speed as can be, and its fault."""
    x = start * start
    is_fast = (high >= 0.0) & (x > high * (1.0 + TOLERANCE))
    is_slow = (high < 0.0) | (x < low * (1.0 - TOLERANCE))
    fault = select(is_fast, START_TOO_FAST, select(is_slow, END_TOO_FAST, 0.0))
    return maximum(minimum(x, high), low), fault


def _enter_path(start: Any, state: Any, low: Any, high: Any) -> Any:
    """Return x and the time at the start, and what is wrong with a path by then."""
    x, of_speed = _enter(start, low, high)
    of_path, moves, stalls = state
    is_repeated = (stalls > 0.0) & (moves > 0.0) & (of_path <= 0.0)
    of_path = select(is_repeated, REPEATED, of_path)
    own = select(moves > 0.0, of_speed, 0.0)  # what rests has no speed
    return x, 0.0, select(of_path > 0.0, of_path, own)


def _leave(time: Any, fault: Any, state: Any) -> Any:
    """Return the reason, and whether the path moves."""
    moves = state[1]
    stops = (fault <= 0.0) & ~(time < np.inf) & (moves > 0.0)
    return select(stops, STOPS, fault), moves + 0.0
