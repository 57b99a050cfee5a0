"""Bounds of rates with which joints can always stop before their limits."""

from __future__ import annotations

from typing import Final, NamedTuple

from armillary.spatial.vector import Number, Vector
from armillary.trace.functions import absolute, maximum, minimum, select, sqrt, truncate

__all__ = ["SOURCES", "UNLIMITED", "JointLimits", "StepBounds", "rate_bounds"]

SOURCES: Final = "position", "velocity", "acceleration"
"""The limits that a bound of a rate may come from."""

UNLIMITED: Final = 1e12
"""The acceleration limit of a joint that has none [m/s^2 or rad/s^2]."""

INSIDE: Final = 1.0 - 4e-16
"""Factor of the greatest rate, so that rounding does not exceed it."""

ROUNDING: Final = 1e-6
"""Part of the greatest change of a rate that may be due to rounding."""


class JointLimits(NamedTuple):
    """Limits of joints.

    Attributes:
        lower: Lower limits of positions [m or rad], shape (c,).
        upper: Upper limits, likewise.
        velocity: Greatest rates [m/s or rad/s], shape (c,).
        acceleration: Greatest accelerations [m/s^2 or rad/s^2], shape (c,).
    """

    lower: Vector
    upper: Vector
    velocity: Vector
    acceleration: Vector


class StepBounds(NamedTuple):
    """Bounds of rates in a step.

    Attributes:
        low: The least rates, shape (c,).
        high: The greatest rates, shape (c,).
        full_braking: The rates of maximum braking, all joints in proportion, (c,).
        passed: Above 0 where a joint will pass a limit.
        braking_time: How long maximum braking takes from here [s].
        sources: For each joint, shape (c,), 3 times the index in `SOURCES` of the limit
            that its greatest rate comes from, plus that of its least rate.
    """

    low: Vector
    high: Vector
    full_braking: Vector
    passed: Number
    braking_time: Number
    sources: Vector


def rate_bounds(q: Vector, qd: Vector, limits: JointLimits, dt: Number) -> StepBounds:
    """Return bounds of the rates in a step of dt, and the rates of maximum braking.

    Rates change by at most a dt. A joint may approach a limit only as fast as it can
    still stop before it, in steps of that size; a joint beyond a limit may stay or come
    back. Where these bounds contradict each other, that of the change has precedence.

    Args:
        q: Joint positions [m or rad], shape (c,).
        qd: Rates before the step [m/s or rad/s], shape (c,).
        limits: Limits of the joints; accelerations are a.
        dt: The length of the step [s].
    """
    low: list[Number] = []
    high: list[Number] = []
    sources: list[Number] = []
    passed: Number = 0.0
    braking_time: Number = 0.0
    # Each joint by itself.
    for x, v, down, up, most, a in zip(q, qd, *limits, strict=True):
        # By how much a rate may change in this step.
        change = a * dt
        fall, rise = _fastest(x - down, a, dt), _fastest(up - x, a, dt)
        # What limits of positions and rates allow, then what accelerations do.
        least, greatest = 0.0 - minimum(most, fall), minimum(most, rise)
        lowest, highest = v - change, v + change
        # A joint passes a limit if even maximum braking leaves it too fast: the
        # interval of limits lies beyond that of accelerations.
        passed = select(greatest < lowest - ROUNDING * change, 1.0, passed)
        passed = select(least > highest + ROUNDING * change, 1.0, passed)
        # Where both intervals do not meet, the nearest end of that of accelerations.
        low.append(minimum(maximum(least, lowest), highest))
        high.append(maximum(minimum(greatest, highest), lowest))
        sources.append(
            3.0 * _source(high[-1], greatest, most, rise)
            + _source(low[-1], least, most, fall)
        )
        speed = select(v < 0.0, 0.0 - v, v)
        # The joint that needs longest to come to rest.
        braking_time = maximum(braking_time, speed / a)
    # In proportion: all joints come to rest in the time that the slowest needs.
    share = maximum(1.0 - dt / maximum(braking_time, dt), 0.0)
    full_braking = [
        minimum(maximum(share * v, a), b) for v, a, b in zip(qd, low, high, strict=True)
    ]
    return StepBounds(low, high, full_braking, passed, braking_time, sources)


def _source(bound: Number, wanted: Number, most: Number, stops: Number) -> Number:
    """Return the index in `SOURCES` of the limit that a bound of a rate comes from.

    It is acceleration where that does not allow the bound that is wanted: the lower of
    the greatest speed and the speed from which the joint stops before its limit.
    """
    # 0 for position, 1 for velocity, 2 for acceleration: indices in SOURCES.
    source = select(most < stops, 1.0, 0.0)
    return select(absolute(bound - wanted) > 0.0, 2.0, source)


def _fastest(room: Number, a: Number, dt: Number) -> Number:
    """Return the greatest rate from which a joint stops within a distance.

    From v, with m whole steps of braking by a dt behind this one, it goes on by
    dt ((m + 1) v - a dt m (m + 1) / 2). That is a convex function of v, linear between
    multiples of a dt, where it is a dt^2 m (m + 1) / 2; here it is inverted.
    """
    room = maximum(room, 0.0)
    # Braking in m steps from m a dt takes unit m (m + 1) / 2 of the room.
    unit = a * dt * dt
    halves = minimum(room / unit, 1e12)
    # The greatest whole m with m (m + 1) / 2 <= room / unit: how many whole steps
    # of braking there are.
    m = truncate(0.5 * (sqrt(1.0 + 8.0 * halves) - 1.0))
    # The piece of the convex function between m and m + 1 whole steps, inverted.
    v = (room / dt + 0.5 * a * dt * m * (m + 1.0)) / (m + 1.0)
    return select(room < 1e300, v * INSIDE, room)
