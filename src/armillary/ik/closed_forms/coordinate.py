"""From the angle of a joint to its coordinate, whole turns on, within its limits."""

from __future__ import annotations

import math
from typing import Any

from armillary.ik.closed_forms.subproblems import Turn
from armillary.model.drive import Drive
from armillary.spatial.vector import Number
from armillary.trace.functions import floor, maximum, minimum, select

SLACK = 1e-9  # what rounding may add to an angle [rad]
MOST_SLACK = 0.01


def coordinate(
    turn: Turn,
    drive: Drive,
    limits: tuple[float, float],
    near: Number | None,
    slack: Number,
) -> Number:
    """Return the q of an angle, within limits where whole turns lead there.

    Args:
        turn: The angle.
        drive: How q makes it.
        limits: Least and greatest q.
        near: Within limits; of the q there that nearest to this is returned, or to
            zero.
        slack: What is beyond a limit by less gets no whole turn; at most MOST_SLACK.
    """
    low, high = limits
    q = (turn.angle - drive.offset) / drive.multiplier
    if near is None:
        return _near_zero(q, drive, low, high)
    period = 2.0 * math.pi / abs(drive.multiplier)
    q = q - period * floor((q - near) / period + 0.5)
    # a turn that leads beyond the other limit is not taken
    most, least = low + period - SLACK, high - period + SLACK
    if high - low > period - 2.0 * MOST_SLACK:
        most, least = maximum(high + slack, most), minimum(low - slack, least)
    if high < math.inf:
        q = select(q > most, q - period, q)
    return select(q < least, q + period, q) if low > -math.inf else q


def clipped(q: Number, low: float, high: float) -> Number:
    """Return q, at a limit where it is beyond it."""
    q = select(q < low, low, q) if low > -math.inf else q
    return select(q > high, high, q) if high < math.inf else q


def is_within(q: Number, low: float, high: float, excess: Number) -> Any:
    """Return whether q is beyond its limits by at most `excess`."""
    within: Any = True
    if low > -math.inf:
        within = q >= low - excess
    return within & (q <= high + excess) if high < math.inf else within


def _near_zero(q: Number, drive: Drive, low: float, high: float) -> Number:
    """Return q in the range of one turn from `start`: one comparison is enough.

    Limits less than a turn apart lie in the middle of that range.
    """
    period = 2.0 * math.pi / abs(drive.multiplier)
    half = 0.5 * period
    start = -half
    if high - low < period:
        start = 0.5 * (low + high) - half
    elif low > -half and high >= half:
        start = low - SLACK
    elif high < half and low <= -half:
        start = high + SLACK - period
    least = -drive.offset / drive.multiplier - half  # of q as it is
    on = math.ceil((start - least) / period - SLACK)
    q = q + period * on
    if least + period * on <= start + SLACK:
        return q
    return select(q > start + period, q - period, q)


def never_leaves(drive: Drive, low: float, high: float) -> bool:
    """Return whether every angle near zero is within the limits, for certain."""
    half = math.pi / abs(drive.multiplier)
    plain = drive.offset == 0.0 and abs(drive.multiplier) == 1.0
    slack = 0.0 if plain else SLACK
    return low <= -half - slack and high >= half + slack
