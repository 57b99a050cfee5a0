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

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from armillary.kernel.columns import repeat, when
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.stages import Stage
from armillary.trace import Port, Program
from armillary.trajectories.jerk_columns import GRADED, JerkColumns
from armillary.trajectories.jerk_grid import (
    begin_envelope,
    choose_guess,
    chosen_point,
    end_jerks,
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
    useful_jerk,
)
from armillary.trajectories.jerk_guess import (
    begin_guess,
    find_place,
    guess_point,
    still_sound,
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
from armillary.trajectories.jerk_results import (
    begin_motion,
    end_motion,
    greatest_peak,
    interval_motion,
    interval_peak,
    measured,
    motion_point,
    no_peak,
    pass_interval,
    reason_found,
)
from armillary.trajectories.path_columns import Records

__all__ = ["jerk_pipeline", "jerk_records"]


LIMIT: Final = 60
"""Most iterations."""

GAP: Final = 4e-4
"""The weight of logarithms: mu is this part of the duration, over the intervals."""

COARSE_GAP: Final = 3e-3
"""The same of motions on a coarser grid, from which others begin."""

ENDING: Final = 0.6, 0.5
"""Iterations end where Newton's decrement, squared, is less than this for each
interval, and a step is longer: the next one wins mu times that, 0.02 %."""

COARSE_ENDING: Final = 3.0, 0.1
"""The same of motions on a coarser grid."""


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
    regions = _Regions(columns)
    tables = regions.steps, columns.BACKWARDS, columns.BOTH_ENDS
    limits = columns.velocity, columns.acceleration, columns.jerk
    motion = (
        *(columns.start, columns.end),
        *(columns.start_acceleration, columns.end_acceleration, columns.pushes),
        columns.tighter,
        *(columns.was_way, columns.was_speeds, columns.was_accelerations),
        *(columns.was_special, columns.is_known),
    )
    results = (
        *(columns.way, columns.times, columns.speeds, columns.accelerations),
        *(columns.special, columns.jerks, columns.peak, columns.fault_here),
    )
    scratch = (
        *(columns.lengths, columns.derivs, columns.caps),
        *(columns.control, columns.change, columns.factors),
        *(columns.grid, columns.squares, columns.slopes, columns.spans),
        *(columns.jerks, columns.steeps, columns.rises, columns.ratios),
        *(columns.hessians, columns.gradients, columns.taken, columns.peaks),
        *(columns.places, columns.guess),
        *(columns.way, columns.times, columns.speeds, columns.accelerations),
    )
    further = (columns.bounds,) if rows else ()
    return Pipeline(
        "jerk_path",
        (columns.at, columns.knots, *limits, *motion, *further),
        tuple(steps.table(columns) for steps in tables),
        (*_first_iterate(regions), _iterations(regions), *_motion(regions)),
        tuple(column.name for column in results),
        scratch,
    )


class _Regions:
    """The regions of the pipeline: what runs for records of which table."""

    def __init__(self, columns: JerkColumns) -> None:
        """Set which table intervals have, with or without further limits."""
        self.columns = columns
        self.steps = JerkColumns.BOUNDED if columns.r else JerkColumns.INTERVALS
        self.reads: dict[str, Any] = {} if columns.r else {"bound": None}

    def each(self, formula: Callable[..., Any], *writes: Port) -> Stage:
        """Return a formula for each interval in order."""
        return self.steps.each(self.columns, self._stage(formula, writes))

    def several(self, formula: Callable[..., Any], *writes: Port) -> Stage:
        """Return a formula for intervals in any order."""
        return self.steps.several(self.columns, self._stage(formula, writes))

    def bounded(self, formula: Callable[..., Any], *writes: Port) -> Stage:
        """Return the same of a formula that reads further limits, too."""
        stage = self.columns.stage(formula, writes=writes, **self.reads)
        return self.steps.several(self.columns, stage)

    def back(self, formula: Callable[..., Any], *writes: Port) -> Stage:
        """Return a formula for each interval, the last one first."""
        return JerkColumns.BACKWARDS.each(self.columns, self._stage(formula, writes))

    def ends(self, formula: Callable[..., Any], *writes: Port) -> Stage:
        """Return a formula for both ends of the grid."""
        return JerkColumns.BOTH_ENDS.each(self.columns, self._stage(formula, writes))

    def _stage(self, formula: Callable[..., Any], writes: Sequence[Port]) -> Program:
        return self.columns.stage(formula, writes=writes)

    def look(self) -> tuple[Stage, ...]:
        """Return the stages that compare an iterate with limits."""
        columns = self.columns
        return (
            columns.stage(no_ratio, writes=columns.ratio),
            self.bounded(interval_ratio, columns.ratio_here),
            self.each(greatest_ratio, columns.ratio),
            self.ends(end_ratio, columns.ratio),
        )


def _first_iterate(regions: _Regions) -> tuple[Stage, ...]:
    """Return the stages to the grid, and to where iterations begin."""
    columns, each, several = regions.columns, regions.each, regions.several
    ends, back = regions.ends, regions.back
    smooth = each(smooth_point, columns.b1, columns.kept)
    return (
        ends(useful_jerk, columns.jerk),
        ends(grade),
        regions.bounded(grid_interval),
        ends(end_jerks, columns.end_rows),
        each(least_steep, columns.steepest),
        ends(begin_envelope),
        each(rise_envelope, columns.rise_here, columns.envelope),
        ends(turn_envelope, columns.envelope),
        back(fall_envelope, columns.back_rise, columns.envelope),
        several(envelope_point, columns.b1),
        *(ends(settle_ends), smooth, ends(settle_ends), smooth),
        ends(begin_guess),
        each(find_place, columns.place_here),
        several(guess_point, columns.guess_here),
        each(still_sound, columns.is_sound),
        several(guessed_point, columns.b1, columns.d1),
        ends(settle_ends),
        *regions.look(),
        ends(choose_guess, columns.chosen),
        several(chosen_point, columns.b1),
        ends(settle_ends),
        *regions.look(),
        ends(lower_all, columns.step),
        several(lowered_point, columns.b1),
        ends(start_ends),
        *regions.look(),
        columns.stage(relaxed_limits),
    )


def _iterations(regions: _Regions) -> Stage:
    """Return Newton's method."""
    columns, each, ends = regions.columns, regions.each, regions.ends
    return repeat(
        columns.going,
        ends(open_sums),
        regions.bounded(newton_interval),
        each(eliminate_point),
        ends(close_sums),
        regions.back(back_substituted, columns.back0),
        ends(end_share, columns.most),
        regions.bounded(share_taken, columns.taken_here),
        each(greatest_share, columns.most),
        ends(step_length),
        ends(move_ends),
        regions.several(moved_point, columns.b1),
        when(columns.relaxing, *regions.look()),
        ends(renewed_limits),
        limit=LIMIT,
    )


def _motion(regions: _Regions) -> tuple[Stage, ...]:
    """Return the stages from the last iterate to the motion."""
    columns = regions.columns
    return (
        regions.several(interval_motion),
        columns.stage(no_peak, writes=columns.peak),
        regions.ends(measured, columns.is_measured),
        when(
            columns.is_measured,
            regions.several(interval_peak),
            regions.each(greatest_peak, columns.peak),
        ),
        regions.several(motion_point),
        regions.ends(begin_motion),
        regions.each(pass_interval, columns.passed_next),
        regions.ends(end_motion),
        regions.ends(reason_found, columns.fault_here),
    )


def jerk_records(
    intervals: int, per_knot: int, was: int, *, rows: int = 0, is_last: bool = True
) -> dict[str, Records]:
    """Return the records of the tables of `jerk_pipeline`.

    Args:
        intervals: How many there are between knots.
        per_knot: Intervals of the grid in each of them, before those at the ends are
            divided.
        was: How many intervals the grid of the motion has with which this one begins.
        rows: As for `jerk_pipeline`.
        is_last: Whether this is the motion that is looked for, or one on a coarser grid
            from which others begin: mu is greater, and what it exceeds is not measured.
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
            was_last=np.array([was]),
            was_intervals=np.array([float(was)]),
            parts=np.array([float(per_knot)]),
            count=np.array([float(count)]),
            gap=np.array([GAP if is_last else COARSE_GAP]),
            ending=np.array([ENDING if is_last else COARSE_ENDING]),
            measures=np.array([float(is_last)]),
        ),
    }
