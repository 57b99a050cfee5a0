"""The stages that lay a natural spline through waypoints, see `natural_spline`.

Its equations are solved by Gaussian elimination without exchanges (Thomas): rows are
diagonally dominant. With p[0] = r[0] = 0 and c[0] = c[k-1] = 0,

    w = 2 (h[i-1] + h[i]) - h[i-1] p[i-1],    p[i] = h[i] / w
    r[i] = (6 (d[i] - d[i-1]) - h[i-1] r[i-1]) / w,    c[i] = r[i] - p[i] c[i+1]
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from armillary.kernel.pipeline import Each, Stage, program
from armillary.kernel.tables import Table, index, reals
from armillary.spatial.vector import Number
from armillary.trace import Port
from armillary.trace.functions import absolute, select, sqrt
from armillary.trajectories.timed_path import PathReason

__all__ = ["TABLES", "spline_columns", "spline_stages", "spline_tables"]

REPEATED: Final = float(PathReason.REPEATED)
INVALID: Final = float(PathReason.INVALID)

CHORDS: Final = Table(
    "chords",
    (
        index("q_a", "path"),
        index("q_b", "path"),
        index("given_b", "given"),
        index("at_a", "at"),
        index("at_b", "at"),
        index("width", "widths"),
        index("chord", "chords"),
    ),
)
"""The intervals between waypoints in order."""

AHEAD: Final = Table(
    "ahead",
    (
        index("width_before", "widths"),
        index("width_after", "widths"),
        index("chord_before", "chords"),
        index("chord_after", "chords"),
        index("pivot_before", "pivots"),
        index("right_before", "rights"),
        index("pivot_here", "pivots"),
        index("right_here", "rights"),
    ),
)
"""The inner waypoints in order."""

BACK: Final = Table(
    "back",
    (
        index("pivot", "pivots"),
        index("right", "rights"),
        index("bend", "bends"),
        index("next_bend", "bends"),
    ),
)
"""The inner waypoints, the last one first."""

ENDS: Final = Table(
    "ends",
    (
        index("first_at", "at"),
        index("first_given", "given"),
        index("first_pivot", "pivots"),
        index("first_right", "rights"),
        index("first_bend", "bends"),
        index("last_bend", "bends"),
    ),
    is_single=True,
)

KNOTS: Final = Table(
    "knots_made",
    (
        index("q_here", "path"),
        index("bend_here", "bends"),
        index("bend_a", "bends"),
        index("bend_b", "bends"),
        index("width_here", "widths"),
        index("chord_here", "chords"),
        reals("weight_a"),
        reals("weight_b"),
        index("knot_made", "knots"),
    ),
)
"""The waypoints; the interval is that after each, and for the last one that before."""

TABLES: Final = CHORDS, AHEAD, BACK, ENDS, KNOTS


def spline_columns(count: int, joints: int) -> tuple[Port, ...]:
    """Return the columns that the stages write, for so many waypoints at most."""
    numbers = "at", "widths", "pivots"
    rows = "chords", "rights", "bends"
    return (
        *(Port(name, (count,)) for name in numbers),
        *(Port(name, (count, joints)) for name in rows),
        Port("knots", (count, 3, joints)),
    )


def spline_stages(joints: int) -> tuple[Stage, ...]:
    """Return the stages from `path` to `at` and `knots`.

    Where `is_given` is above 0, `at` is `given`, else the length of the polygon. They
    also find `state`, three numbers: the fault, that of a `PathReason`; whether the
    path moves, 0 where all waypoints are the same; and whether two in a row are, where
    that is not a fault in itself.

    joints: How many.
    """
    n, row = (), (joints,)
    chord = {
        **dict.fromkeys(("q_a", "q_b"), row),
        **dict.fromkeys(("given_b", "at_a", "is_given"), n),
        "state": (3,),
    }
    ahead = {
        **dict.fromkeys(("width_before", "width_after"), n),
        **dict.fromkeys(("chord_before", "chord_after"), row),
        "pivot_before": n,
        "right_before": row,
    }
    back = {"pivot": n, "right": row, "next_bend": row}
    knot = {
        **dict.fromkeys(("q_here", "bend_here", "bend_a", "bend_b"), row),
        "width_here": n,
        "chord_here": row,
        **dict.fromkeys(("weight_a", "weight_b"), n),
    }
    ends = "first_at first_pivot first_right first_bend last_bend state"
    return (
        Each(
            "ends",
            (program(_ends_of(joints), ends, first_given=n, is_given=n),),
        ),
        Each("chords", (program(_chord, "at_b width chord state", **chord),)),
        Each("ahead", (program(_ahead, "pivot_here right_here", **ahead),)),
        Each("back", (program(_back, "bend", **back),)),
        Each("knots_made", (program(_knot, "knot_made", **knot),)),
    )


def spline_tables(intervals: int) -> dict[str, dict[str, Any]]:
    """Return the records of `TABLES` for so many intervals between waypoints."""
    here = np.arange(intervals)
    inner = here[1:]
    knot = np.arange(intervals + 1)
    piece = np.minimum(knot, intervals - 1)
    is_last = knot == intervals
    before = "width_before", "chord_before", "pivot_before", "right_before"
    after = "width_after", "chord_after", "pivot_here", "right_here"
    first = "first_at", "first_given", "first_pivot", "first_right", "first_bend"
    return {
        "chords": {
            **dict.fromkeys(("q_a", "at_a", "width", "chord"), here),
            **dict.fromkeys(("q_b", "given_b", "at_b"), here + 1),
        },
        "ahead": {**dict.fromkeys(before, inner - 1), **dict.fromkeys(after, inner)},
        "back": {
            **dict.fromkeys(("pivot", "right", "bend"), inner[::-1]),
            "next_bend": inner[::-1] + 1,
        },
        "ends": {
            **dict.fromkeys(first, np.array([0])),
            "last_bend": np.array([intervals]),
        },
        "knots_made": {
            **dict.fromkeys(("q_here", "bend_here", "knot_made"), knot),
            **dict.fromkeys(("bend_a", "width_here", "chord_here"), piece),
            "bend_b": piece + 1,
            "weight_a": np.where(is_last, 1.0 / 6.0, -1.0 / 3.0),
            "weight_b": np.where(is_last, 1.0 / 3.0, -1.0 / 6.0),
        },
    }


def _ends_of(joints: int) -> Any:
    """Return the formula of what is known at both ends."""

    def ends(given: Any, is_given: Any) -> Any:
        rest: list[Number] = [0.0] * joints
        at = select(is_given > 0.0, given, 0.0)
        fault = select(absolute(at) < np.inf, 0.0, INVALID)
        return at, 0.0, rest, rest, rest, (fault, 0.0, 0.0)

    return ends


def _chord(
    q_a: Any,
    q_b: Any,
    given_b: Any,
    at_a: Any,
    is_given: Any,
    state: Any,
) -> Any:
    """Return the next parameter, what there is of an interval, and what is wrong."""
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
    is_own = is_given <= 0.0
    stalls = select(is_own & ~(length > 0.0), 1.0, stalls)
    own = select(length > 0.0, length, 1.0)
    at_b = select(is_own, at_a + own, given_b)
    width = at_b - at_a
    ascends = width > 0.0
    fault = select(ascends | (fault > 0.0), fault, REPEATED)
    safe = select(ascends, width, 1.0)
    return at_b, safe, [step / safe for step in steps], (fault, moves, stalls)


def _ahead(
    width_a: Any, width_b: Any, chord_a: Any, chord_b: Any, pivot: Any, right: Any
) -> Any:
    inverse = 1.0 / (2.0 * (width_a + width_b) - width_a * pivot)
    rights = [
        inverse * (6.0 * (b - a) - width_a * before)
        for a, b, before in zip(chord_a, chord_b, right, strict=True)
    ]
    return width_b * inverse, rights


def _back(pivot: Any, right: Any, next_bend: Any) -> Any:
    return [r - pivot * c for r, c in zip(right, next_bend, strict=True)]


def _knot(
    q: Any,
    bend: Any,
    bend_a: Any,
    bend_b: Any,
    width: Any,
    chord: Any,
    weight_a: Any,
    weight_b: Any,
) -> Any:
    """Return position, slope and curvature at a waypoint."""
    slopes = [
        d + width * (weight_a * a + weight_b * b)
        for d, a, b in zip(chord, bend_a, bend_b, strict=True)
    ]
    return [list(q), slopes, list(bend)]
