"""The kernels that find times along paths: of a whole path at once, or piece by piece.

A short path through waypoints is one call: the spline, the backward and the forward
sweep. Of others the spline is laid by NumPy, and both sweeps go over pieces of it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from armillary.kernel import Kernel
from armillary.kernel.kernel import shared_kernel
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import CompiledPipeline, compile_pipeline
from armillary.spatial.vector import Number, Vector
from armillary.trace import Port, Program, trace
from armillary.trace.functions import maximum, minimum, select
from armillary.trajectories.pass_stages import (
    TOLERANCE,
    backward_records,
    backward_stages,
    backward_steps,
    forward_records,
    forward_stages,
    forward_steps,
    grid_columns,
    grid_stage,
)
from armillary.trajectories.path_columns import PathColumns, Records
from armillary.trajectories.spline_stages import (
    spline_columns,
    spline_records,
    spline_stages,
)
from armillary.trajectories.timed_path import PathReason

__all__ = [
    "LARGE",
    "LONG",
    "SIZES",
    "SMALL",
    "Size",
    "Sweeps",
    "backward_pipeline",
    "entry",
    "forward_pipeline",
    "path_pipeline",
    "path_records",
    "spline",
    "spline_pipeline",
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
        knots: The most knots of a path, or of a piece of one.
        points: The most points of its grid.
    """

    knots: int
    points: int

    def holds(self, intervals: int, per_knot: int) -> bool:
        """Return whether a grid fits."""
        return intervals < self.knots and intervals * per_knot < self.points

    def columns(self, joints: int, rows: int = 0) -> PathColumns:
        """Return the columns of paths of this size, with further rows at each point."""
        return PathColumns(
            knots=self.knots, points=self.points, joints=joints, rows=rows
        )


SMALL: Final = Size(12, 128)
LARGE: Final = Size(64, 1024)
LONG: Final = Size(192, 1024)
SIZES: Final = (SMALL, LARGE, LONG)


def path_pipeline(joints: int, size: Size) -> Pipeline:
    """Return the pipeline from waypoints to times.

    Its inputs are `path`; the parameters `given` where `is_given` is above 0; lower and
    upper limits of rates and accelerations; and the path speeds at both ends. Results
    are the curve, `time` and `speed` at the points of the grid, the `reason`, and
    `moves`, which is 0 where all waypoints are the same.
    """
    columns = size.columns(joints)
    waypoints = columns.path, columns.given, columns.is_given
    tables = (
        *(*columns.SPLINE, columns.GRID, columns.BACKWARD, columns.LAST),
        *(columns.FORWARD, columns.FIRST, columns.AROUND),
    )
    return Pipeline(
        "time_path",
        (
            *waypoints,
            columns.velocity,
            columns.acceleration,
            columns.start,
            columns.end,
        ),
        tuple(steps.table(columns) for steps in tables),
        (
            *spline_stages(columns),
            grid_stage(columns),
            columns.stage(_squares, writes=(columns.lo_end, columns.hi_end)),
            *backward_stages(columns),
            PathColumns.AROUND.each(columns, columns.stage(_enter_path)),
            *forward_stages(columns),
            PathColumns.AROUND.each(
                columns, columns.stage(_leave, writes=(columns.reason, columns.moves))
            ),
        ),
        _names(
            columns.at,
            columns.knots,
            columns.time,
            columns.speed,
            columns.reason,
            columns.moves,
        ),
        (
            *spline_columns(columns),
            *grid_columns(columns),
            *(columns.lows, columns.highs, columns.x, columns.time, columns.speed),
        ),
    )


def spline_pipeline(joints: int, size: Size) -> Pipeline:
    """Return the pipeline from `path` and the `given` parameters to `knots`."""
    columns = size.columns(joints)
    return Pipeline(
        "path_spline",
        (columns.path, columns.given, columns.is_given),
        tuple(steps.table(columns) for steps in columns.SPLINE),
        spline_stages(columns),
        _names(columns.knots),
        spline_columns(columns),
    )


def backward_pipeline(joints: int, size: Size, rows: int = 0) -> Pipeline:
    """Return the pipeline of the backward sweep along a piece of a path.

    Its inputs are the parameter `at` and `knots`, each a position, slope and curvature,
    the lower and upper limits, `rows` at each point of the grid, if there are any, and
    the interval of x at the end. Results are the intervals of x at the points of the
    grid, from `lows` to `highs`, which is below 0 where there is none.
    """
    columns = size.columns(joints, rows)
    further = (columns.rows,) if rows else ()
    bounds = columns.lows, columns.highs
    return Pipeline(
        "backward_sweep",
        (
            *(columns.at, columns.knots, columns.velocity, columns.acceleration),
            *further,
            *(columns.lo_end, columns.hi_end),
        ),
        tuple(
            steps.table(columns)
            for steps in (columns.GRID, backward_steps(rows), columns.LAST)
        ),
        (grid_stage(columns), *backward_stages(columns)),
        _names(*bounds),
        (*grid_columns(columns), *bounds),
    )


def forward_pipeline(joints: int, size: Size, rows: int = 0) -> Pipeline:
    """Return the pipeline of the forward sweep along a piece of a path.

    Its inputs are as for the backward sweep, without the limits of rates; the results
    of that; and `x` and the `time` [s] at the first point. Results are `x`, `time` and
    `speed` at the points of the grid.
    """
    columns = size.columns(joints, rows)
    further = (columns.rows,) if rows else ()
    motion = columns.x, columns.time, columns.speed
    return Pipeline(
        "forward_sweep",
        (
            *(columns.at, columns.knots, columns.acceleration),
            *further,
            *(columns.lows, columns.highs, columns.x_start, columns.time_start),
        ),
        tuple(
            steps.table(columns)
            for steps in (columns.GRID, forward_steps(rows), columns.FIRST)
        ),
        (grid_stage(columns), *forward_stages(columns)),
        _names(*motion),
        (*grid_columns(columns), *motion),
    )


def _names(*columns: Port) -> tuple[str, ...]:
    return tuple(column.name for column in columns)


def path_records(intervals: int, per_knot: int) -> dict[str, Records]:
    """Return the records of the tables of `path_pipeline` for a grid.

    Args:
        intervals: How many there are between knots.
        per_knot: Intervals of the grid in each of them.
    """
    first, last = np.array([0]), np.array([intervals * per_knot])
    return {
        **spline_records(intervals),
        **backward_records(intervals, per_knot),
        **forward_records(intervals, per_knot),
        **PathColumns.AROUND.records(first=first, last=last),
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
        joints: How many joints there are.
        size: The knots and points that the kernels have room for.
        intervals: How many there are between knots.
        per_knot: Intervals of the grid in each of them.
        rows: Rows at each point besides those of accelerations.
    """
    backward, forward = _code(joints, size, rows)
    return Sweeps(
        backward(backward_records(intervals, per_knot, rows)),
        forward(forward_records(intervals, per_knot, rows)),
    )


@lru_cache(maxsize=256)
def whole_path(joints: int, size: Size, intervals: int, per_knot: int) -> Kernel:
    """Return the kernel of `path_pipeline` for a grid that fits."""
    return _path_code(joints, size)(path_records(intervals, per_knot))


@lru_cache(maxsize=64)
def _spline_code(joints: int, size: Size) -> CompiledPipeline:
    return compile_pipeline(spline_pipeline(joints, size), lanes=1)


@lru_cache(maxsize=256)
def spline(joints: int, size: Size, intervals: int) -> Kernel:
    """Return the kernel of `spline_pipeline` for so many intervals between knots."""
    return _spline_code(joints, size)(spline_records(intervals))


@lru_cache(maxsize=1)
def entry() -> Kernel:
    """Return the kernel from the path speed at the start, and the interval of x.

    Takes `start`, `low` and `high`; returns x there and what is wrong.
    """
    program: Program = trace(
        _enter, name="x", outputs=("x", "fault"), start=(), low=(), high=()
    )
    return shared_kernel(program)


def _squares(end: Number) -> tuple[Number, Number]:
    return end * end, end * end


def _enter(start: Number, low: Number, high: Number) -> tuple[Number, Number]:
    """Return x at the start, as near to that of a speed as can be, and its fault.

    Above the interval the start is too fast. Below it, or if there is none, the end is:
    to be as fast as that there, the path would have to start faster.
    """
    x = start * start
    is_fast = (high >= 0.0) & (x > high * (1.0 + TOLERANCE))
    is_slow = (high < 0.0) | (x < low * (1.0 - TOLERANCE))
    fault = select(is_fast, START_TOO_FAST, select(is_slow, END_TOO_FAST, 0.0))
    return maximum(minimum(x, high), low), fault


class Entered(NamedTuple):
    """The motion at the start of a path."""

    x_start: Number
    time_start: Number
    fault: Number


def _enter_path(
    start: Number, state: Vector, first_low: Number, first_high: Number
) -> Entered:
    """Return x and the time at the start, and what is wrong with a path by then."""
    x, of_speed = _enter(start, first_low, first_high)
    of_path, moves, stalls = state
    is_repeated = (stalls > 0.0) & (moves > 0.0) & (of_path <= 0.0)
    of_path = select(is_repeated, REPEATED, of_path)
    of_speed = select(moves > 0.0, of_speed, 0.0)  # what rests has no speed
    return Entered(x, 0.0, select(of_path > 0.0, of_path, of_speed))


def _leave(last_time: Number, fault: Number, state: Vector) -> tuple[Number, Number]:
    """Return the reason, and whether the path moves."""
    moves = state[1]
    stops = (fault <= 0.0) & ~(last_time < np.inf) & (moves > 0.0)
    return select(stops, STOPS, fault), moves + 0.0
