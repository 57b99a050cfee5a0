"""Where the grid of a path within limits of jerk has its points.

Some are added between knots, where a motion on a coarser grid takes long, or changes
its speed by a large factor: at sharp bends.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.trajectories.curve import PathCurve

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
        time: When a motion along each passes points that divide the intervals between
            knots evenly, shape (..., g) [s]; NaN where no motion was
            found.
        speed: Its path speed there.
        count: How many intervals the result has.
    """
    intervals = curve.at.shape[-1] - 1
    per_knot = (time.shape[-1] - 1) // intervals
    shape = *time.shape[:-1], intervals, per_knot
    lasts = np.nan_to_num(np.diff(time)).reshape(shape).sum(axis=-1)
    fastest = np.nan_to_num(speed).max(axis=-1, keepdims=True)
    slow = LEAST_SPEED * np.where(fastest > 0.0, fastest, 1.0)
    steps = np.diff(np.log(np.maximum(np.nan_to_num(speed), slow)))
    changes = np.abs(steps).reshape(shape).sum(axis=-1)
    # the grid is finer at both ends anyway
    changes[..., [0, -1]] = 0.0
    share = EVENLY / intervals + BY_TIME * _shares(lasts) + BY_SPEED * _shares(changes)
    # Interval i begins with the point that has the number ends[i]; as shares are above
    # 0, each has one at least.
    ends = np.zeros((*share.shape[:-1], intervals + 1), np.int64)
    placed = np.cumsum(1.0 + (count - intervals) * share, axis=-1)
    ends[..., 1:] = np.floor(placed + 0.5)
    ends[..., -1] = count
    number = np.arange(count)
    begins = np.zeros((*share.shape[:-1], count), np.int64)
    np.put_along_axis(begins, ends[..., 1:-1], 1, axis=-1)
    first = np.cumsum(begins, axis=-1)
    begin = np.take_along_axis(ends, first, axis=-1)
    part = (number - begin) / (np.take_along_axis(ends, first + 1, axis=-1) - begin)
    at = np.broadcast_to(curve.at, ends.shape)
    begin, end = (np.take_along_axis(at, first + k, axis=-1) for k in (0, 1))
    s = np.concatenate([begin + part * (end - begin), at[..., -1:]], axis=-1)
    return PathCurve(s, curve.at_parameters(s))


def _shares(parts: Array) -> Array:
    """Return parts of their sum, shape (..., k); equal ones if that is 0."""
    total = parts.sum(axis=-1, keepdims=True)
    safe = np.where(total > 0.0, total, 1.0)
    return np.asarray(np.where(total > 0.0, parts / safe, 1.0 / parts.shape[-1]))
