"""From the angle of a joint to its coordinate, whole turns on, within its limits."""

from __future__ import annotations

import math
from typing import Any

from armillary.equations.closed.arm import Drive
from armillary.equations.closed.turn import Turn
from armillary.spatial.vector import Number
from armillary.trace.functions import floor, maximum, minimum, select

SLACK = 1e-9  # a limit that is missed by less is met exactly


def coordinate(
    turn: Turn, drive: Drive, limits: tuple[float, float], near: Number | None
) -> tuple[Number, Any]:
    """Return the q of an angle, and whether it is within limits.

    Args:
        turn: The angle.
        drive: How q makes it.
        limits: Least and greatest q.
        near: Of the q within limits that nearest to this is returned, or to zero.
    """
    low, high = limits
    q = (turn.angle - drive.offset) / drive.gain
    if near is not None:
        period = 2.0 * math.pi / abs(drive.gain)
        q = q - period * floor((q - near) / period + 0.5)
        q = select(q > high + SLACK, q - period, q)
        q = select(q < low - SLACK, q + period, q)
    else:
        q = _near_zero(q, drive, low, high)
        if _never_leaves(drive, low, high):
            return q, True
    return _within(q, low, high)


def length(
    shift: Number, drive: Drive, limits: tuple[float, float]
) -> tuple[Number, Any]:
    """Return the q of a length that a joint slides, and whether it is within limits."""
    return _within((shift - drive.offset) / drive.gain, *limits)


def _within(q: Number, low: float, high: float) -> tuple[Number, Any]:
    within = (q >= low - SLACK) & (q <= high + SLACK)
    return select(within, minimum(maximum(q, low), high), q), within


def _near_zero(q: Number, drive: Drive, low: float, high: float) -> Number:
    """Return q in the range of one turn from `start`: one comparison is enough."""
    period = 2.0 * math.pi / abs(drive.gain)
    half = 0.5 * period
    start = -half
    if low > -half and high >= half:
        start = low - SLACK
    elif high < half and low <= -half:
        start = high + SLACK - period
    least = -drive.offset / drive.gain - half  # of q as it is
    on = math.ceil((start - least) / period - SLACK)
    q = q + period * on
    if least + period * on <= start + SLACK:
        return q
    return select(q > start + period, q - period, q)


def _never_leaves(drive: Drive, low: float, high: float) -> bool:
    """Tell whether every angle has a q within the limits, roundings included."""
    half = math.pi / abs(drive.gain)
    plain = drive.offset == 0.0 and abs(drive.gain) == 1.0
    slack = 0.0 if plain else SLACK
    return low <= -half - slack and high >= half + slack
