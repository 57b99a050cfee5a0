"""Corners of polygons of waypoints, rounded by curves of stated deviation.

At a corner c from which lines lead along the unit vectors -u (back) and w (on), the
path leaves the first line a distance d before c and joins the second one d behind it.
Between them it is the polynomial of degree 5 of s over a length 2 d with the slopes u
and w, and no curvature, at its ends, so that curvature is continuous along all of the
path. Each of its points is c - a u + b w with a, b >= 0, and so is min(a, b) (w - u)
from a point of the lines. That is greatest in the middle, where both are

    a = b = d / 2 - 2 d H1(1/2) = 3/16 d

so that no joint deviates by more than 3/16 d |w - u|.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError
from armillary.kernel.arguments import numbers_of
from armillary.trajectories.curve import PathCurve
from armillary.trajectories.path_parts import Curves
from armillary.trajectories.timed_path import PathReason

__all__ = ["blended"]

Array = npt.NDArray[np.float64]

DEVIATION: Final = 3.0 / 16.0

MOST: Final = 0.49
"""The greatest part of a line that a curve at one of its ends takes, and"""

MOST_AT_END: Final = 0.9
"""of the first and the last line."""


def blended(positions: Array, deviation: Any) -> Curves:
    """Return polygons with rounded corners, as curves q(s).

    Args:
        positions: Corners [m or rad], shape (..., k, n).
        deviation: By how much each joint may deviate from the polygon at each inner
            corner at most [m or rad], shape (), (k - 2,) or (..., k - 2). Where lines
            are too short for the curve, it deviates less.

    Raises:
        ShapeError: Deviations do not fit.
        ModelError: One is not above 0, or not finite.
    """
    *batch, k, n = positions.shape
    most = numbers_of("blend", deviation)
    try:
        most = np.broadcast_to(most, (*batch, k - 2))
    except ValueError as error:
        raise ShapeError(
            f"blend is one number, or one for each of the {k - 2} inner waypoints; an "
            f"array of shape {most.shape} was given."
        ) from error
    if not ((most > 0.0) & (most < np.inf)).all():
        raise ModelError(
            "blend is a deviation at corners, a finite number above 0. To stop at each "
            "corner, time each line as a path of two waypoints."
        )
    with np.errstate(all="ignore"):
        steps = np.diff(positions, axis=-2)
        lengths = np.sqrt((steps * steps).sum(axis=-1))
        unit = steps / lengths[..., None]
        is_finite = np.isfinite(positions).all(axis=(-1, -2))
        turn = np.abs(unit[..., 1:, :] - unit[..., :-1, :]).max(axis=-1, initial=0.0)
        room = np.full(k - 1, MOST)
        before, behind = room.copy(), room
        before[0] = behind[-1] = MOST_AT_END
        d = np.minimum(lengths[..., :-1] * before[:-1], lengths[..., 1:] * behind[1:])
        d = np.fmin(d, most / (DEVIATION * turn))
        # s: along lines to each curve, and 2 d along it
        rest = lengths.copy()
        rest[..., :-1] -= d
        rest[..., 1:] -= d
        gaps = np.empty((*batch, 2 * k - 3))
        gaps[..., ::2] = rest
        gaps[..., 1::2] = 2.0 * d
        at = np.zeros((*batch, 2 * k - 2))
        np.cumsum(gaps, axis=-1, out=at[..., 1:])
        knots = np.zeros((*batch, 2 * k - 2, 3, n))
        knots[..., 0, 0, :], knots[..., -1, 0, :] = (
            positions[..., 0, :],
            positions[..., -1, :],
        )
        inner = positions[..., 1:-1, :]
        knots[..., 1:-1:2, 0, :] = inner - d[..., None] * unit[..., :-1, :]
        knots[..., 2:-1:2, 0, :] = inner + d[..., None] * unit[..., 1:, :]
        knots[..., ::2, 1, :] = unit
        knots[..., 1::2, 1, :] = unit
    still = (steps == 0.0).all(axis=(-1, -2))
    repeats = (lengths == 0.0).any(axis=-1) & ~still
    reason = np.where(
        is_finite, np.where(repeats, PathReason.REPEATED, 0), PathReason.INVALID
    )
    if still.any():
        at[still] = np.arange(2 * k - 2)
        knots[still] = 0.0
        knots[..., 0, :][still] = positions[..., :1, :][still]
    return Curves(PathCurve(at, knots), reason.astype(np.int8), still)
