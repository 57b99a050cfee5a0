"""The stages that lay a natural spline through waypoints, see `natural_spline`.

Its equations are solved by Gaussian elimination without exchanges (Thomas): rows are
diagonally dominant. With p[0] = r[0] = 0 and c[0] = c[k-1] = 0, forwards and then back

    w = 2 (h[i-1] + h[i]) - h[i-1] p[i-1],    p[i] = h[i] / w
    r[i] = (6 (d[i] - d[i-1]) - h[i-1] r[i-1]) / w,    c[i] = r[i] - p[i] c[i+1]
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

import numpy as np

from armillary.kernel.stages import Stage
from armillary.spatial.vector import Matrix, Number, Vector
from armillary.trace import Port
from armillary.trace.functions import absolute, select, sqrt
from armillary.trajectories.path_columns import PathColumns, Records
from armillary.trajectories.timed_path import PathReason

__all__ = ["spline_columns", "spline_records", "spline_stages"]

REPEATED: Final = float(PathReason.REPEATED)
INVALID: Final = float(PathReason.INVALID)


def spline_columns(columns: PathColumns) -> tuple[Port, ...]:
    """Return the columns that the stages write entry by entry."""
    return (
        columns.at,
        columns.widths,
        columns.pivots,
        columns.chords,
        columns.rights,
        columns.curvatures,
        columns.knots,
    )


def spline_stages(columns: PathColumns) -> tuple[Stage, ...]:
    """Return the stages from `path` to `at` and `knots`.

    Where `is_given` is above 0, `at` is `given`, else the length of the polygon. They
    also find `state`, three numbers: the fault, that of a `PathReason`; whether the
    path moves, 0 where all waypoints are the same; and whether two in a row are, where
    that is not a fault in itself.
    """
    ends = partial(_ends, joints=columns.n)
    return (
        PathColumns.ENDS.each(columns, columns.stage(ends)),
        PathColumns.CHORDS.each(columns, columns.stage(_chord)),
        PathColumns.AHEAD.each(
            columns,
            columns.stage(_eliminated, writes=(columns.pivot_here, columns.right_here)),
        ),
        PathColumns.BACK.each(
            columns, columns.stage(_curvature, writes=columns.curvature)
        ),
        PathColumns.KNOTS.each(columns, columns.stage(_knot, writes=columns.knot_made)),
    )


def spline_records(intervals: int) -> dict[str, Records]:
    """Return the records of the tables `SPLINE` for so many intervals."""
    here = np.arange(intervals)
    inner = here[1:]
    knot = np.arange(intervals + 1)
    is_last = knot == intervals
    return {
        **PathColumns.CHORDS.records(here=here),
        **PathColumns.AHEAD.records(here=inner),
        **PathColumns.BACK.records(here=inner[::-1]),
        **PathColumns.ENDS.records(first=np.array([0]), last=np.array([intervals])),
        # q' = d - h (c[a]/3 + c[b]/6) where an interval begins, and where it ends
        # q' = d + h (c[a]/6 + c[b]/3)
        **PathColumns.KNOTS.records(
            here=knot,
            interval=np.minimum(knot, intervals - 1),
            weight_a=np.where(is_last, 1.0 / 6.0, -1.0 / 3.0),
            weight_b=np.where(is_last, 1.0 / 3.0, -1.0 / 6.0),
        ),
    }


class SplineEnds(NamedTuple):
    """What is known at both ends before the elimination."""

    first_at: Number
    first_pivot: Number
    first_right: Vector
    first_curvature: Vector
    last_curvature: Vector
    state: Vector


def _ends(first_given: Number, is_given: Number, *, joints: int) -> SplineEnds:
    """Return zeros, and the parameter of the first waypoint."""
    rest: list[Number] = [0.0] * joints
    at = select(is_given > 0.0, first_given, 0.0)
    fault = select(absolute(at) < np.inf, 0.0, INVALID)
    return SplineEnds(at, 0.0, rest, rest, rest, (fault, 0.0, 0.0))


class Chord(NamedTuple):
    """An interval between two waypoints, and what is wrong with the path so far."""

    at_b: Number
    width: Number
    chord: Vector
    state: Vector


def _chord(
    q_a: Vector,
    q_b: Vector,
    given_b: Number,
    at_a: Number,
    is_given: Number,
    state: Vector,
) -> Chord:
    """Return the next parameter, length and slope of a chord, and what is wrong.

    The next parameter is the given one, or |q_b - q_a| farther on. Of equal waypoints
    it is 1 farther on, so that all stays finite; whether that is a fault is known at
    the end, as a path may rest altogether.
    """
    fault, moves, stalls = state
    steps: list[Number] = [b - a for a, b in zip(q_a, q_b, strict=True)]
    square: Number = 0.0
    for a, b, step in zip(q_a, q_b, steps, strict=True):
        square = square + step * step
        moves = select(absolute(step) > 0.0, 1.0, moves)
        is_finite = (absolute(a) < np.inf) & (absolute(b) < np.inf)
        fault = select(is_finite, fault, INVALID)
    fault = select((absolute(given_b) < np.inf) | (is_given <= 0.0), fault, INVALID)
    length = sqrt(square)
    is_polygon = is_given <= 0.0
    stalls = select(is_polygon & ~(length > 0.0), 1.0, stalls)
    safe_length = select(length > 0.0, length, 1.0)
    at_b = select(is_polygon, at_a + safe_length, given_b)
    width = at_b - at_a
    ascends = width > 0.0
    fault = select(ascends | (fault > 0.0), fault, REPEATED)
    safe = select(ascends, width, 1.0)
    return Chord(at_b, safe, [step / safe for step in steps], (fault, moves, stalls))


def _eliminated(
    width_before: Number,
    width_after: Number,
    chord_before: Vector,
    chord_after: Vector,
    pivot_before: Number,
    right_before: Vector,
) -> tuple[Number, Vector]:
    """Return p[i] and r[i]."""
    w = 2.0 * (width_before + width_after) - width_before * pivot_before
    inverse = 1.0 / w
    right = [
        inverse * (6.0 * (b - a) - width_before * before)
        for a, b, before in zip(chord_before, chord_after, right_before, strict=True)
    ]
    return width_after * inverse, right


def _curvature(pivot: Number, right: Vector, next_curvature: Vector) -> Vector:
    """Return c[i] from c[i+1]."""
    return [r - pivot * c for r, c in zip(right, next_curvature, strict=True)]


def _knot(
    q_here: Vector,
    curvature_here: Vector,
    curvature_a: Vector,
    curvature_b: Vector,
    width_here: Number,
    chord_here: Vector,
    weight_a: Number,
    weight_b: Number,
) -> Matrix:
    """Return position, slope and curvature at a waypoint."""
    slopes = [
        d + width_here * (weight_a * a + weight_b * b)
        for d, a, b in zip(chord_here, curvature_a, curvature_b, strict=True)
    ]
    return [list(q_here), slopes, list(curvature_here)]
