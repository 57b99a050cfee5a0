"""Where the grid of a path within limits of jerk has its points.

Some are added between knots, where a motion on a coarser grid takes long, or changes
its speed by a large factor: at sharp bends.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.trajectories.curve import PathCurve
from armillary.trajectories.jerk_spline import TINY

__all__ = ["closer_knots"]

Array = npt.NDArray[np.float64]

EVENLY, BY_TIME, BY_SPEED = 0.1, 0.4, 0.5
"""Shares of points that are added evenly, by the time and by the logarithm of speed."""

LEAST_SPEED: Final = 0.02
"""Slower parts of a motion count as if they had this part of its greatest speed."""


def closer_knots(curve: PathCurve, time: Array, speed: Array, count: int) -> PathCurve:
    """Return the same curves with more knots, between those that they have.

    Args:
        curve: The curves.
        time: When a motion along each passes its knots, shape (..., k) [s]; NaN where
            no motion was found.
        speed: Its path speed there.
        count: How many intervals the result has.
    """
    *batch, knots = time.shape
    intervals = knots - 1
    time, speed = time.reshape(-1, knots), speed.reshape(-1, knots)
    is_found = np.isfinite(time).all(axis=-1, keepdims=True)
    is_found &= np.isfinite(speed).all(axis=-1, keepdims=True)
    if not is_found.all():
        time, speed = np.where(is_found, time, 0.0), np.where(is_found, speed, 1.0)
    lasts = np.diff(time)
    slow = LEAST_SPEED * np.maximum(speed.max(axis=-1, keepdims=True), TINY)
    changes = np.abs(np.diff(np.log(np.maximum(speed, slow))))
    # the grid is finer at both ends anyway, and as that of the motion
    evenly = np.ones(lasts.shape)
    for part in (evenly, lasts, changes):
        part[:, [0, -1]] = 0.0
    evenly = _shares(evenly, np.zeros(()))
    share = EVENLY * evenly
    share += BY_TIME * _shares(lasts, evenly) + BY_SPEED * _shares(changes, evenly)
    # Interval i begins with the point that has the number ends[i]; as shares are not
    # below 0, each has one at least.
    ends = np.zeros(time.shape, np.int64)
    placed = np.cumsum(1.0 + (count - intervals) * share, axis=-1)
    ends[:, 1:] = placed + 0.5
    ends[:, -1] = count
    begins = np.zeros((len(time), count), np.int64)
    rows = np.arange(len(time))[:, None]
    begins[rows, ends[:, 1:-1]] = 1
    first = np.cumsum(begins, axis=-1)
    begin, end = ends[rows, first], ends[rows, first + 1]
    part = (np.arange(count) - begin) / (end - begin)
    at = np.broadcast_to(curve.at, (*batch, knots)).reshape(ends.shape)
    begin, end = at[rows, first], at[rows, first + 1]
    s = np.concatenate([begin + part * (end - begin), at[:, -1:]], axis=-1)
    s = s.reshape(*batch, count + 1)
    return PathCurve(s, curve.at_parameters(s))


def _shares(parts: Array, otherwise: Array) -> Array:
    """Return parts of their sum, shape (..., k); others if that is 0."""
    total = parts.sum(axis=-1, keepdims=True)
    safe = np.where(total > 0.0, total, 1.0)
    return np.asarray(np.where(total > 0.0, parts / safe, otherwise))
