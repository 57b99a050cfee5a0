"""Motions near those that are looked for, within limits of jerk.

Newton's method takes about thirty iterations from afar, and less than ten from a motion
on a grid of fewer intervals. Symbols are those of `jerk_stages.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.trajectories.curve import PathCurve
from armillary.trajectories.jerk_columns import GRADED
from armillary.trajectories.jerk_spline import FAST

__all__ = ["coarser", "grid_points", "guess_at", "guess_on", "motion_at_knots"]

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


def guess_on(points: Array, found: Sequence[Array], count: int) -> Array:
    """Return control points of x on a grid, of motions on another one.

    A control point is the polar form of the quadratic piece at both ends of its
    interval, so that x stays as it is where points of the other grid are points.

    Args:
        points: s at the points of the grid, shape (..., g).
        found: What the kernel returns of the other one.
        count: How many intervals that has.

    Returns:
        Shape (..., g - 1); 0 where there is no motion.
    """
    grid, squares, slopes, _, special, *_, fault = found
    shape = *fault.shape, points.shape[-1]
    s, own, x, y = (
        each.reshape(-1, each.shape[-1])
        for each in (
            np.broadcast_to(points, shape),
            grid[..., : count + 1],
            squares[..., : count + 1],
            slopes[..., : count + 1],
        )
    )
    a, b = s[:, :-1], s[:, 1:]
    middle = 0.5 * (a + b)
    piece = np.zeros(middle.shape, np.int64)
    for k, (knots, here) in enumerate(zip(own, middle, strict=True)):
        piece[k] = knots[1:-1].searchsorted(here, side="right")
    with np.errstate(all="ignore"):
        c = np.diff(y) / np.diff(own)
        rows = np.arange(len(piece))[:, None]
        own_a, x_a, y_a, c_a = (each[rows, piece] for each in (own, x, y, c))
        to_middle = middle - own_a
        exact = x_a + y_a * to_middle
        polar = exact + 0.5 * c_a * (a - own_a) * (b - own_a)
        guess = np.maximum(polar, 0.5 * (exact + 0.5 * c_a * to_middle * to_middle))
        # x = x1 (s / hs)^(4/3) near ends at rest
        hs = special.reshape(-1, 2)[:, :, None]
        rise = (
            np.maximum(1.0 + (middle - own[:, :1]) / hs[:, 0], 0.0),
            np.maximum(1.0 + (own[:, -1:] - middle) / hs[:, 1], 0.0),
        )
        for near, x_end in zip(rise, (x[:, :1], x[:, -1:]), strict=True):
            guess = np.where(near < 1.0, x_end * near ** (4.0 / 3.0), guess)
        sound = (guess > 0.0) & (guess < FAST)
    # where the motion at an end is given, a guess for it is of little use
    sound = sound.all(axis=-1, keepdims=True) & (fault.reshape(-1, 1) == 0.0)
    sound &= (special > 0.0).all(axis=-1).reshape(-1, 1)
    return np.where(sound, guess, 0.0).reshape(*shape[:-1], shape[-1] - 1)


def motion_at_knots(found: Sequence[Array], knots: int) -> tuple[Array, Array]:
    """Return times and path speeds at knots, shape (..., k) each.

    Args:
        found: What the kernel returns, of one interval between two knots.
        knots: How many they are.

    Returns:
        NaN or infinity where there is no motion.
    """
    _, squares, _, spans, special, *_, fault = found
    count = knots - 1 + 2 * GRADED - 2
    time, speed = (np.zeros((*fault.shape, count + 3)) for _ in range(2))
    steps = np.empty((*fault.shape, count + 2))
    with np.errstate(all="ignore"):
        speed[..., 1:-1] = np.sqrt(squares[..., : count + 1])
        steps[..., 1:-1] = spans[..., :count]
        # s = j t^3 / 6 at ends at rest, which takes 3 s / s'
        steps[..., 0] = 3.0 * special[..., 0] / speed[..., 1]
        steps[..., -1] = 3.0 * special[..., 1] / speed[..., -2]
        np.cumsum(steps, axis=-1, out=time[..., 1:])
    # the first and the last interval between knots have more points
    at_knots = [0, *range(GRADED + 1, GRADED + knots - 1), count + 2]
    return time[..., at_knots], speed[..., at_knots]


def guess_at(found: Sequence[Array], count: int) -> Array:
    """Return control points of x, of motions on the same grid: shape (..., i).

    Args:
        found: What the kernel returns, of i intervals with room.
        count: How many of them there are.
    """
    grid, squares, slopes, *_, fault = found
    guess = np.zeros((*fault.shape, grid.shape[-1] - 1))
    with np.errstate(all="ignore"):
        h = np.diff(grid[..., : count + 1])
        here = squares[..., :count] + 0.5 * h * slopes[..., :count]
        sound = ((here > 0.0) & (here < FAST)).all(axis=-1) & (fault == 0.0)
    guess[..., :count] = np.where(sound[..., None], here, 0.0)
    return guess
