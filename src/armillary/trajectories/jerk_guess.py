"""Motions near those that are looked for, within limits of jerk.

Newton's method takes about thirty iterations from afar, and less than ten from a motion
on a grid of fewer intervals. Symbols are those of `jerk_stages.py`; `was_` are those of
the other grid.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.spatial.vector import Number, Vector
from armillary.trace.functions import maximum, minimum, power, select
from armillary.trajectories.curve import PathCurve
from armillary.trajectories.jerk_columns import GRADED
from armillary.trajectories.jerk_spline import FAST

__all__ = [
    "begin_guess",
    "coarser",
    "find_place",
    "grid_points",
    "guess_point",
    "still_sound",
]

Array = npt.NDArray[np.float64]

COARSER: Final = 5
"""How many intervals are one of the grid that is searched first."""


def coarser(curve: PathCurve, per_knot: int) -> tuple[PathCurve, int]:
    """Return knots, and intervals between them, of a coarser grid.

    Args:
        curve: The curves.
        per_knot: How many intervals there are between two knots.
    """
    if per_knot > 1:
        return curve, max(1, per_knot // COARSER)
    knots = curve.at.shape[-1]
    # The intervals at both ends stay: a motion on a grid that is another one there
    # exceeds limits many times.
    kept = sorted({0, *range(1, knots - 2, COARSER), max(knots - 2, 0), knots - 1})
    fewer = PathCurve(curve.at[..., kept], curve.knots[..., kept, :, :])
    return fewer, per_knot


def grid_points(curve: PathCurve, per_knot: int, special: Array) -> Array:
    """Return s at the points of a grid: shape (..., g).

    Args:
        curve: The curves.
        per_knot: How many intervals there are between two knots.
        special: Of a grid with as many or fewer intervals, see `jerk_columns.py`.
    """
    at, gaps = curve.at, np.diff(curve.at)
    parts = np.arange(per_knot) / per_knot
    evenly = (at[..., :-1, None] + gaps[..., None] * parts).reshape(
        *at.shape[:-1], gaps.shape[-1] * per_knot
    )[..., 1:]
    width = gaps[..., [0, -1]] / per_knot
    with np.errstate(all="ignore"):
        part = np.minimum(special / width, 0.8)[..., None]
        steps = np.arange(GRADED)
        shares = np.where(part > 0.0, part ** (1.0 - steps / GRADED), steps / GRADED)
    graded = shares * width[..., None]
    batch = graded.shape[:-2]
    begin, inner, end = (
        np.broadcast_to(each, (*batch, each.shape[-1]))
        for each in (
            at[..., :1] + graded[..., 0, :],
            evenly,
            at[..., -1:] - graded[..., 1, ::-1],
        )
    )
    return np.concatenate([begin, inner, end], axis=-1)


class OuterMotion(NamedTuple):
    """Both ends of a motion on another grid."""

    was_first: Number
    was_last: Number
    was_speed_first: Number
    was_speed_last: Number


class GuessBegun(NamedTuple):
    """What is known of another motion before the first interval."""

    was_outer: Vector
    most_place: Number
    place_first: Number
    is_sound: Number


def begin_guess(
    outer: OuterMotion, was_intervals: Number, is_known: Number
) -> GuessBegun:
    """Return what is known of another motion before the first interval."""
    return GuessBegun([*outer], was_intervals - 1.0, 0.0, is_known)


def find_place(
    grid_here: Number,
    grid_next: Number,
    place_before: Number,
    was_next: Number,
    was_after: Number,
    most_place: Number,
) -> Number:
    """Return in which interval of the other grid the middle of an interval lies.

    Its intervals are longer, or as long, so that the place before is one or two behind.
    """
    middle = 0.5 * (grid_here + grid_next)
    ahead = select(was_next <= middle, 1.0, 0.0)
    ahead = select(was_after <= middle, 2.0, ahead)
    return minimum(place_before + ahead, most_place)


class OtherPiece(NamedTuple):
    """The piece of the other motion where an interval lies."""

    was_from: Number
    was_to: Number
    was_speed: Number
    was_acceleration: Number
    was_acceleration_to: Number


def guess_point(
    grid_here: Number,
    grid_next: Number,
    piece: OtherPiece,
    was_outer: Vector,
    was_special: Vector,
) -> Number:
    """Return a control point of x near that of another motion.

    It is the polar form of its quadratic piece at both ends of the interval, so that x
    stays as it is where points of the other grid are points.
    """
    start, end, speed, acceleration, acceleration_end = piece
    # x = s'^2, y = 2 s''
    x, y, y_end = speed * speed, 2.0 * acceleration, 2.0 * acceleration_end
    middle = 0.5 * (grid_here + grid_next)
    c = (y_end - y) / (end - start)
    way = middle - start
    exact = x + y * way
    polar = exact + 0.5 * c * (grid_here - start) * (grid_next - start)
    guess = maximum(polar, 0.5 * (exact + 0.5 * c * way * way))
    # x = x1 (s / hs)^(4/3) near ends at rest
    first, last, v_first, v_last = was_outer
    for beyond, hs, v in (
        (middle - first, was_special[0], v_first),
        (last - middle, was_special[1], v_last),
    ):
        near = maximum(1.0 + beyond / select(hs > 0.0, hs, 1.0), 0.0)
        guess = select(near < 1.0, v * v * power(near, 4.0 / 3.0), guess)
    return guess


def still_sound(guess_here: Number, is_sound: Number) -> Number:
    """Return whether all control points as far as here are above 0 and finite."""
    return select((guess_here > 0.0) & (guess_here < FAST), is_sound, 0.0)
