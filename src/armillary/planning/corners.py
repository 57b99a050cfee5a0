"""Ways with rounded corners that are proven to touch nothing, and their times.

At a corner c, with the directions -u back and w on, the curve of `blended` is

    q(t) = c - a(t) u + a(1 - t) w,    a(t) = 2 d (1/2 - t + t^3 - t^4 / 2)

for t from 0 to 1, whose second derivative along its length 2 d is at most 3 / (4 d)
times w - u. So between points that are 2 d / m apart no joint is farther from the
straight line than

    e = (2 d / m)^2 / 8 * 3 / (4 d) |w - u| = 3 d / (8 m^2) |w - u|

If links keep the margin and r e more on the straight lines, where r is how fast they
can approach each other, they keep the margin on the curve.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.collision.check import CollisionCheck, check_of
from armillary.kinematics.kernels import selection_of
from armillary.trajectories.blends import blended
from armillary.trajectories.motion import Motion
from armillary.trajectories.time_path import time_path

__all__ = ["free_blends", "timed_way"]

Array = npt.NDArray[np.float64]

LINES: Final = 16
"""Straight lines that stand for a curve."""
HALVINGS: Final = 5
ROUNDING: Final = 1e-9
"""Of positions of links [m]."""


def timed_way(
    check: CollisionCheck, way: Array, blend: float, limits: Mapping[str, Any]
) -> Motion:
    """Return the fastest motion along a way.

    Args:
        check: What must not touch.
        way: Way points [m or rad], shape (k, n), motions between which are free.
        blend: By how much joints may deviate at corners at most [m or rad].
        limits: As for `Cell.time_path`; its joints are all that move.

    Raises:
        ModelError: As for `Cell.time_path`.
    """
    way = _corners(way)
    blends = free_blends(check, way, blend)
    rests = [0, *(np.flatnonzero(blends == 0.0) + 1).tolist(), len(way) - 1]
    motions = [
        _timed(check, way[a : b + 1], blends[a : b - 1], limits)
        for a, b in pairwise(rests)
    ]
    return replace(motions[0].then(*motions[1:]), start=check.state)


def _timed(
    check: CollisionCheck, way: Array, blends: Array, limits: Mapping[str, Any]
) -> Motion:
    rounded = {"blend": blends} if len(way) > 2 else {}
    chosen = selection_of(check.cell, limits.get("joints")).inputs
    positions = way[:, list(chosen)]
    return time_path(check.cell, positions, **rounded, **limits).motion()


def _corners(way: Array) -> Array:
    """Return a way without points on the straight lines between others."""
    kept = [0]
    for k in range(1, len(way) - 1):
        before, behind = way[k] - way[kept[-1]], way[k + 1] - way[k]
        lengths = np.linalg.norm(before) * np.linalg.norm(behind)
        if before @ behind < lengths * (1.0 - 1e-14):
            kept.append(k)
    return way[[*kept, len(way) - 1]]


def free_blends(check: CollisionCheck, way: Array, blend: float) -> Array:
    """Return deviations at corners with which curves are proven to touch nothing.

    Args:
        check: What must not touch.
        way: Way points, shape (k, n).
        blend: The greatest deviation [m or rad].

    Returns:
        Shape (k - 2,), 0 where no curve is proven. None is of closed loops: between
        a curve and the lines that are tested their passive joints have no bounds.
    """
    count = len(way) - 2
    if count < 1 or not blend > 0.0 or check.state.passive.size:
        return np.zeros(max(count, 0))
    rates = check.approach_rates(way.min(axis=0), way.max(axis=0))
    found, wanted = np.zeros(count), np.full(count, float(blend))
    # Short lines leave room for less; what is halved is what there is.
    _, _, off = _lines(way, wanted)
    wanted = np.minimum(wanted, 0.5 * LINES**2 * off.max(axis=1))
    wanted[wanted == 0.0] = blend
    open_ones = np.arange(count)
    for _ in range(HALVINGS):
        starts, ends, off = _lines(way, wanted)
        # Coordinates of which nothing is known do not matter where they rest.
        moves = off > 0.0
        grown = np.where(moves, rates[:, None] * np.where(moves, off, 0.0), 0.0)
        more = grown[:, open_ones].sum(axis=2).max(initial=0.0)
        if not np.isfinite(more):
            break
        margin = check.margin + float(more) + ROUNDING
        options = check.options._replace(margin=margin)
        wider = check_of(check.cell, check.state, options, check.obstacles)
        free = wider.motion(starts[open_ones], ends[open_ones]).free.all(axis=1)
        found[open_ones[free]] = wanted[open_ones[free]]
        open_ones = open_ones[~free]
        if not len(open_ones):
            break
        wanted[open_ones] *= 0.5
    return found


def _lines(way: Array, deviations: Array) -> tuple[Array, Array, Array]:
    """Return lines between points of curves, and how far the curves are from them.

    Returns:
        Starts and ends, shape (k - 2, m, n), and deviations, shape (k - 2, n).
    """
    curve = blended(way, deviations).curve
    d = 0.5 * np.diff(curve.at)[1::2, np.newaxis]
    steps = np.diff(way, axis=0)
    sizes = np.linalg.norm(steps, axis=1, keepdims=True)
    unit = np.asarray(steps / sizes, np.float64)
    u, w = unit[:-1], unit[1:]
    # The curve at corner k leads from knot 2 k + 1 to the next one.
    count, n = u.shape
    knots = np.arange(1.0, 2.0 * int(count), 2.0)
    parts: Array = knots[:, np.newaxis] + np.linspace(0.0, 1.0, LINES + 1)
    points = curve.evaluate((), parts.ravel())[0].reshape(count, LINES + 1, n)
    off = 3.0 / 8.0 / LINES**2 * d * np.abs(w - u)
    return points[:, :-1], points[:, 1:], off
