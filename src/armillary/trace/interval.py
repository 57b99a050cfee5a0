"""Intervals: the enclosures from which true bounds over a range are proved."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

TAU = 2.0 * math.pi


@dataclass(frozen=True, slots=True)
class Interval:
    """All numbers between `low` and `high`, both included; either may be infinite."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """Return high - low, infinite for an unbounded interval."""
        return self.high - self.low if self.low < self.high else 0.0

    def contains(self, number: float) -> bool:
        """Tell whether `number` lies in the interval."""
        return self.low <= number <= self.high


EVERYTHING = Interval(-math.inf, math.inf)


def outward(low: float, high: float) -> Interval:
    """Return [low, high] widened by the rounding of a few operations."""
    if math.isnan(low) or math.isnan(high):
        return EVERYTHING
    slack = 8.0 * 2.0**-52
    return Interval(low - slack * abs(low) - 5e-324, high + slack * abs(high) + 5e-324)


def _times(a: float, b: float) -> float:
    return 0.0 if a == 0.0 or b == 0.0 else a * b


def add(x: Interval, y: Interval) -> Interval:
    """Enclose x + y."""
    return outward(x.low + y.low, x.high + y.high)


def sub(x: Interval, y: Interval) -> Interval:
    """Enclose x - y."""
    return outward(x.low - y.high, x.high - y.low)


def neg(x: Interval) -> Interval:
    """Enclose -x."""
    return Interval(-x.high, -x.low)


def mul(x: Interval, y: Interval) -> Interval:
    """Enclose x y; where both are the same interval object it encloses the square."""
    if x is y:
        return square(x)
    corners = [_times(a, b) for a in (x.low, x.high) for b in (y.low, y.high)]
    return outward(min(corners), max(corners))


def square(x: Interval) -> Interval:
    """Enclose x squared."""
    ends = (x.low * x.low, x.high * x.high)
    return outward(0.0 if x.contains(0.0) else min(ends), max(ends))


def div(x: Interval, y: Interval) -> Interval:
    """Enclose x / y: everything where y may be zero."""
    if y.contains(0.0):
        return EVERYTHING
    return mul(x, outward(1.0 / y.high, 1.0 / y.low))


def rising(function: Callable[[float], float]) -> Callable[[Interval], Interval]:
    """Make the enclosure of a function that never falls."""

    def enclose(x: Interval) -> Interval:
        return outward(function(x.low), function(x.high))

    return enclose


def sqrt(x: Interval) -> Interval:
    """Enclose the square root over the part of x that has one."""
    if x.high < 0.0:
        return EVERYTHING
    return outward(math.sqrt(max(x.low, 0.0)), math.sqrt(x.high))


def log(x: Interval) -> Interval:
    """Enclose the natural logarithm over the part of x that has one."""
    if x.high <= 0.0:
        return EVERYTHING
    return outward(
        -math.inf if x.low <= 0.0 else math.log(x.low),
        math.inf if x.high == math.inf else math.log(x.high),
    )


def cos(x: Interval) -> Interval:
    """Enclose the cosine."""
    if not x.width < TAU or max(abs(x.low), abs(x.high)) > 1e9:
        return Interval(-1.0, 1.0)
    ends = (math.cos(x.low), math.cos(x.high))
    margin = 1e-9  # an extremum this near to an end counts as inside
    first_top = math.ceil((x.low - margin) / TAU) * TAU
    first_bottom = math.ceil((x.low - math.pi - margin) / TAU) * TAU + math.pi
    high = 1.0 if first_top <= x.high + margin else max(ends)
    low = -1.0 if first_bottom <= x.high + margin else min(ends)
    widened = outward(low, high)
    return Interval(max(widened.low, -1.0), min(widened.high, 1.0))


def sin(x: Interval) -> Interval:
    """Enclose the sine."""
    return cos(sub(x, Interval(math.pi / 2, math.pi / 2)))


def tan(x: Interval) -> Interval:
    """Enclose the tangent: everything where a pole may lie inside."""
    cosine = cos(x)
    if not x.width < math.pi or cosine.contains(0.0):
        return EVERYTHING
    return outward(math.tan(x.low), math.tan(x.high))


def clamped(function: Callable[[float], float]) -> Callable[[float], float]:
    """Make an inverse sine or cosine that takes what lies outside [-1, 1] to its ends."""
    return lambda x: function(min(max(x, -1.0), 1.0))


def acos(x: Interval) -> Interval:
    """Enclose the inverse cosine."""
    falling = clamped(math.acos)
    return outward(falling(x.high), falling(x.low))


def atan2(y: Interval, x: Interval) -> Interval:
    """Enclose atan2(y, x): the whole circle where the cut or the origin may be hit."""
    if x.low <= 0.0 and y.contains(0.0):
        return Interval(-math.pi - 1e-15, math.pi + 1e-15)
    corners = [math.atan2(a, b) for a in (y.low, y.high) for b in (x.low, x.high)]
    return outward(min(corners), max(corners))


def absolute(x: Interval) -> Interval:
    """Enclose |x|."""
    ends = (abs(x.low), abs(x.high))
    return Interval(0.0 if x.contains(0.0) else min(ends), max(ends))


def sign(x: Interval) -> Interval:
    """Enclose the sign."""
    return Interval(
        float((x.low > 0.0) - (x.low < 0.0)), float((x.high > 0.0) - (x.high < 0.0))
    )


def minimum(x: Interval, y: Interval) -> Interval:
    """Enclose min(x, y)."""
    return Interval(min(x.low, y.low), min(x.high, y.high))


def maximum(x: Interval, y: Interval) -> Interval:
    """Enclose max(x, y)."""
    return Interval(max(x.low, y.low), max(x.high, y.high))


def hypot(x: Interval, y: Interval) -> Interval:
    """Enclose the length of (x, y)."""
    a, b = absolute(x), absolute(y)
    return outward(math.hypot(a.low, b.low), math.hypot(a.high, b.high))


def fmod(x: Interval, y: Interval) -> Interval:
    """Enclose the remainder of x / y with the sign of x."""
    if y.low == y.high and y.low != 0.0 and math.isfinite(x.low + x.high):
        size = abs(y.low)
        turns = (math.trunc(x.low / size), math.trunc(x.high / size))
        if turns[0] == turns[1] and (x.low >= 0.0 or x.high <= 0.0):
            shift = turns[0] * size
            near = 1e-12 * (abs(shift) + size)  # the quotient may have been rounded
            inside = Interval(x.low - shift, x.high - shift)
            if near < abs(inside.low) < size - near and abs(inside.high) < size - near:
                return outward(inside.low, inside.high)
    bound = max(abs(y.low), abs(y.high))
    reach = Interval(max(-bound, min(x.low, 0.0)), min(bound, max(x.high, 0.0)))
    return outward(reach.low, reach.high)


def power(x: Interval, y: Interval) -> Interval:
    """Enclose x to the power y for x above zero; everything otherwise."""
    if x.low <= 0.0:
        return EVERYTHING
    exponent = mul(log(x), y)
    return outward(_exp(exponent.low), _exp(exponent.high))


def _exp(x: float) -> float:
    return math.exp(x) if x < 709.0 else math.inf


exp = rising(_exp)
asin = rising(clamped(math.asin))
atan = rising(math.atan)
floor = rising(lambda x: x if math.isinf(x) else float(math.floor(x)))


def hull(x: Interval, y: Interval) -> Interval:
    """Return the smallest interval that holds both."""
    return Interval(min(x.low, y.low), max(x.high, y.high))


# The truth of a comparison over intervals is itself an interval of 0 and 1.
NEVER, ALWAYS, MAYBE = Interval(0.0, 0.0), Interval(1.0, 1.0), Interval(0.0, 1.0)


def less(x: Interval, y: Interval) -> Interval:
    """Tell whether x < y always, never or maybe."""
    return ALWAYS if x.high < y.low else NEVER if x.low >= y.high else MAYBE


def less_equal(x: Interval, y: Interval) -> Interval:
    """Tell whether x <= y always, never or maybe."""
    return ALWAYS if x.high <= y.low else NEVER if x.low > y.high else MAYBE


def equal(x: Interval, y: Interval) -> Interval:
    """Tell whether x = y always, never or maybe."""
    if x.low == x.high == y.low == y.high:
        return ALWAYS
    return NEVER if x.high < y.low or y.high < x.low else MAYBE


def both(x: Interval, y: Interval) -> Interval:
    """Enclose the truth of "x and y"."""
    return minimum(x, y)


def either(x: Interval, y: Interval) -> Interval:
    """Enclose the truth of "x or y"."""
    return maximum(x, y)


def inverted(x: Interval) -> Interval:
    """Enclose the truth of "not x"."""
    return Interval(1.0 - x.high, 1.0 - x.low)


def select(truth: Interval, x: Interval, y: Interval) -> Interval:
    """Enclose x where `truth` holds and y elsewhere."""
    return x if truth == ALWAYS else y if truth == NEVER else hull(x, y)
