"""Where the grid of a path within limits of jerk has its points.

Some are added between knots, where a motion on a coarser grid takes long, or changes
its speed by a large factor or its acceleration by much: at sharp bends. Interval j
between knots is divided into

    1 + m (0.2 t_j / sum t + 0.5 l_j / sum l + 0.3 c_j / sum c)

intervals, of m more in all, where t_j is its duration, l_j = |log(v'/v)| for path
speeds v and v' at its ends, and c_j how much the path acceleration changes. The first
and the last one stay: the grid is finer at both ends anyway, and as that of the motion.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.kernel import Kernel
from armillary.kernel.columns import Column
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import CompiledPipeline, compile_pipeline
from armillary.spatial.vector import Matrix, Number, Vector
from armillary.trace.functions import absolute, floor, log, maximum, select
from armillary.trajectories.hermite import knot_between
from armillary.trajectories.jerk_columns import GRADED, JerkColumns
from armillary.trajectories.jerk_spline import FAST, TINY
from armillary.trajectories.path_columns import Records, Steps, chosen_entry, entry

__all__ = ["MORE", "closer_knots", "knots_pipeline", "knots_records"]

Array = npt.NDArray[np.float64]

MORE: Final = 149
"""How many intervals are added."""

TOGETHER: Final = 6000
"""How many knots of a joint a kernel takes at most, so that it has room for them."""

BY_TIME, BY_SPEED, BY_CHANGE = 0.2, 0.5, 0.3
"""Shares of points that are added by the time, by the logarithm of speed, and by
changes of acceleration."""

LEAST_SPEED: Final = 0.02
"""Slower parts of a motion count as if they had this part of its greatest speed."""


class KnotColumns(JerkColumns):
    """Columns of the pipeline that adds knots; i, p and k are those of the result."""

    top = Column("the greatest path speed at a knot")
    slow = Column("the path speed that slower parts count as if they had")
    sums = Column("sums of durations, of changes of log(speed) and of acceleration", 3)
    is_found = Column("whether there is a motion: above 0")
    placed = Column("how many intervals are placed so far, not rounded")
    begins = Column("the first interval of the result in each interval", "p")
    numbers = Column("in which interval each interval of the result lies", "p")
    closer_at = Column("the parameter s of each knot of the result", "k")
    closer = Column("position, slope and curvature there", "k", 3, "n")

    # The intervals between knots, but for the first and the last one.
    speed_a, speed_b = entry(JerkColumns.speeds, 1), entry(JerkColumns.speeds, 2)
    push_a = entry(JerkColumns.accelerations, 1)
    push_b = entry(JerkColumns.accelerations, 2)
    time_a, time_b = entry(JerkColumns.times, 1), entry(JerkColumns.times, 2)
    begin_next = entry(begins, of="knot")
    share_evenly = Column("its share of intervals that are added evenly")
    BETWEEN = Steps(
        "between",
        *(speed_a, speed_b, push_a, push_b, time_a, time_b, begin_next, share_evenly),
    )

    # The intervals of the result.
    number_before, number_here = entry(numbers), entry(numbers, 1)
    next_begin = chosen_entry(begins, 1, by=number_before)
    own_begin = chosen_entry(begins, by=number_here)
    own_end = chosen_entry(begins, 1, by=number_here)
    own_s, own_s_end = (
        chosen_entry(JerkColumns.at, by=number_here),
        chosen_entry(JerkColumns.at, 1, by=number_here),
    )
    own_knot, own_knot_end = (
        chosen_entry(JerkColumns.knots, by=number_here),
        chosen_entry(JerkColumns.knots, 1, by=number_here),
    )
    closer_s, closer_knot = entry(closer_at), entry(closer)
    position = Column("its number")
    PIECES = Steps(
        "pieces",
        *(number_before, number_here, next_begin, own_begin, own_end, own_s, own_s_end),
        *(own_knot, own_knot_end, closer_s, closer_knot, position),
    )

    # Both ends.
    begin_first, begin_second = entry(begins, of="first"), entry(begins, 1, of="first")
    begin_last = entry(begins, of="last_knot")
    number_first = entry(numbers, of="first")
    s_end = entry(JerkColumns.at, of="last_knot")
    knot_end = entry(JerkColumns.knots, of="last_knot")
    closer_s_last = entry(closer_at, of="last_closer")
    closer_last = entry(closer, of="last_closer")
    count = Column("how many intervals the result has")
    ENDS_OF_KNOTS = Steps(
        "ends_of_knots",
        *(begin_first, begin_second, begin_last, number_first, s_end, knot_end),
        *(closer_s_last, closer_last, count),
        is_single=True,
    )


def knots_pipeline(joints: int, *, knots: int, intervals: int) -> Pipeline:
    """Return the pipeline from curves and a motion to curves with more knots.

    Args:
        joints: How many there are.
        knots: The most knots of the result.
        intervals: The most intervals of the grid of the motion.
    """
    columns = KnotColumns(knots=knots, intervals=intervals, joints=joints, rows=0)
    stage = columns.stage
    between, pieces, ends = (
        columns.BETWEEN,
        columns.PIECES,
        columns.ENDS_OF_KNOTS,
    )
    results = columns.closer_at, columns.closer
    return Pipeline(
        "jerk_knots",
        (
            *(columns.at, columns.knots),
            *(columns.times, columns.speeds, columns.accelerations),
        ),
        tuple(steps.table(columns) for steps in (between, pieces, ends)),
        (
            ends.each(columns, stage(_begin)),
            between.each(columns, stage(_greatest_speed, writes=columns.top)),
            stage(_slow, writes=columns.slow),
            between.each(columns, stage(_added, writes=columns.sums)),
            stage(_whether_found, writes=columns.is_found),
            between.each(
                columns,
                stage(_placed, writes=(columns.begin_next, columns.placed)),
            ),
            ends.each(columns, stage(_end)),
            pieces.each(columns, stage(_number, writes=columns.number_here)),
            pieces.several(
                columns,
                stage(_piece, writes=(columns.closer_s, columns.closer_knot)),
            ),
        ),
        tuple(column.name for column in results),
        (columns.begins, columns.numbers, *results),
    )


class KnotsBegun(NamedTuple):
    """Before the first interval."""

    begin_first: Number
    begin_second: Number
    number_first: Number
    placed: Number
    top: Number
    sums: Vector


def _begin() -> KnotsBegun:
    return KnotsBegun(0.0, 1.0, 0.0, 1.0, 0.0, [0.0, 0.0, 0.0])


class Passed(NamedTuple):
    """The motion at both ends of an interval."""

    speed_a: Number
    speed_b: Number
    push_a: Number
    push_b: Number
    time_a: Number
    time_b: Number

    def measures(self, slow: Number) -> list[Number]:
        """Return how long it takes, and how log(speed) and acceleration change."""
        ratio = maximum(self.speed_b, slow) / maximum(self.speed_a, slow)
        change = absolute(self.push_b - self.push_a)
        return [self.time_b - self.time_a, absolute(log(ratio)), change]


def _greatest_speed(top: Number, passed: Passed) -> Number:
    return maximum(maximum(top, passed.speed_a), passed.speed_b)


def _slow(top: Number) -> Number:
    return LEAST_SPEED * maximum(top, TINY)


def _added(sums: Vector, passed: Passed, slow: Number) -> Vector:
    return [held + m for held, m in zip(sums, passed.measures(slow), strict=True)]


def _whether_found(top: Number, sums: Vector) -> Number:
    lasts, by_speed, by_change = sums
    is_found = (top < FAST) & (lasts > 0.0) & (lasts < FAST)
    is_found = is_found & (by_speed < FAST) & (by_change < FAST)
    return select(is_found, 1.0, 0.0)


def _placed(
    sums: Vector,
    passed: Passed,
    slow: Number,
    share_evenly: Number,
    is_found: Number,
    placed: Number,
) -> tuple[Number, Number]:
    """Return where the next interval begins, in intervals of the result."""
    share: Number = 0.0
    parts = BY_TIME, BY_SPEED, BY_CHANGE
    for part, measure, total in zip(parts, passed.measures(slow), sums, strict=True):
        is_sound = (is_found > 0.0) & (total > 0.0)
        share = share + part * select(is_sound, measure / total, share_evenly)
    placed = placed + 1.0 + MORE * share
    return floor(placed + 0.5), placed


class KnotsEnded(NamedTuple):
    """The last interval, and the last knot."""

    begin_last: Number
    closer_s_last: Number
    closer_last: Matrix


def _end(count: Number, s_end: Number, knot_end: Matrix) -> KnotsEnded:
    return KnotsEnded(count, s_end, knot_end)


def _number(number_before: Number, next_begin: Number, position: Number) -> Number:
    """Return in which interval one of the result lies; each has one at least."""
    return number_before + select(next_begin <= position, 1.0, 0.0)


class Divided(NamedTuple):
    """The interval in which one of the result lies."""

    own_begin: Number
    own_end: Number
    own_s: Number
    own_s_end: Number
    own_knot: Matrix
    own_knot_end: Matrix


def _piece(interval: Divided, position: Number) -> tuple[Number, Matrix]:
    """Return s, position, slope and curvature where one of the result begins."""
    begin, end, s, s_end, knot, knot_end = interval
    part = (position - begin) / (end - begin)
    h = s_end - s
    return s + part * h, knot_between(knot, knot_end, h, part)


def knots_records(intervals: int) -> dict[str, Records]:
    """Return the records of the tables of `knots_pipeline`.

    intervals: How many are between the knots of the curves, one of the grid each,
        before those at the ends are divided.
    """
    count = intervals + MORE
    inner = np.arange(1, intervals - 1)
    return {
        **KnotColumns.BETWEEN.records(
            here=inner + GRADED - 1,
            knot=inner + 1,
            share_evenly=np.full(len(inner), 1.0 / max(1, len(inner))),
        ),
        **KnotColumns.PIECES.records(
            here=np.arange(count), position=np.arange(float(count))
        ),
        **KnotColumns.ENDS_OF_KNOTS.records(
            first=np.array([0]),
            last_knot=np.array([intervals]),
            last_closer=np.array([count]),
            count=np.array([float(count)]),
        ),
    }


@lru_cache(maxsize=32)
def _code(joints: int, size: tuple[int, int]) -> CompiledPipeline:
    pipeline = knots_pipeline(joints, knots=size[0], intervals=size[1])
    return compile_pipeline(pipeline, lanes=1)


@lru_cache(maxsize=128)
def _kernel(joints: int, size: tuple[int, int], intervals: int) -> Kernel:
    return _code(joints, size)(knots_records(intervals))


def closer_knots(
    curve: tuple[Array, Array],
    motion: tuple[Array, Array, Array],
    size: tuple[int, int],
    intervals: int,
) -> tuple[Array, Array]:
    """Return curves with more knots: s, and position, slope and curvature at each.

    Args:
        curve: The same of the curves, with room for more knots.
        motion: Times, path speeds and accelerations of motions on their grid, with
            room for more.
        size: The most knots, and the most intervals of a grid.
        intervals: As for `knots_records`.
    """
    at, knots = curve
    joints = knots.shape[-1]
    group = max(1, TOGETHER // size[0])
    found = [
        _kernel(min(group, joints - k), size, intervals)(
            at, knots[..., k : k + group], *motion
        )
        for k in range(0, joints, group)
    ]
    if len(found) == 1:
        return found[0][0], found[0][1]
    return found[0][0], np.concatenate([each[1] for each in found], axis=-1)
