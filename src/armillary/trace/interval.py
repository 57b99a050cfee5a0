"""Intervals: the enclosures from which true bounds over a range are proved.

An enclosure holds every number that its operation gives for numbers of its arguments,
roundings included. Where some of them give none, such as the square root of [-1, 1] or
a pole, the interval says so in `undefined` and holds the results of the others. Numbers
are real: that a float overflows to infinity, and infinity to NaN, is not foreseen.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Concatenate, ParamSpec

import msgspec
from msgspec.structs import replace

from armillary.trace import floats

TAU = 2.0 * math.pi
ROUNDING = 8.0 * 2.0**-52  # relative, of a few operations
UNDERFLOW = 2.0**-1070  # absolute, of a few operations

P = ParamSpec("P")


class Interval(msgspec.Struct, frozen=True):
    """All numbers between `low` and `high`, both included; either may be infinite.

    Attributes:
        low: The least number.
        high: The largest number.
        undefined: Whether there may also be no number: NaN, or the infinity of a pole.
    """

    low: float
    high: float
    undefined: bool = False

    @property
    def width(self) -> float:
        """Return high - low, infinite for an unbounded interval."""
        return self.high - self.low if self.low < self.high else 0.0

    def contains(self, number: float) -> bool:
        """Tell whether `number` lies in the interval."""
        return self.low <= number <= self.high


EVERYTHING = Interval(-math.inf, math.inf)


def exactly(number: float) -> Interval:
    """Return the interval of one number."""
    return anything() if math.isnan(number) else Interval(number, number)


def anything() -> Interval:
    """Return the interval of which nothing is known."""
    return Interval(-math.inf, math.inf, undefined=True)


def outward(low: float, high: float, *, undefined: bool = False) -> Interval:
    """Return [low, high] widened by the rounding of a few operations."""
    if math.isnan(low) or math.isnan(high):
        return anything()
    return Interval(_below(low), -_below(-high), undefined)


def _below(x: float) -> float:
    if x in {0.0, -math.inf}:
        return x
    if x == math.inf:  # a finite number may have been rounded to it
        return sys.float_info.max
    # In proportion for normal numbers; subnormal ones lose an absolute amount.
    return x - ROUNDING * abs(x) - UNDERFLOW


Enclosure = Callable[Concatenate[Interval, P], Interval]


def _carrying(enclose: Enclosure[P]) -> Enclosure[P]:
    """Make the result undefined where an argument is: NaN in, NaN out."""

    def carry(x: Interval, *args: P.args, **options: P.kwargs) -> Interval:
        result = enclose(x, *args, **options)
        if x.undefined or any(isinstance(y, Interval) and y.undefined for y in args):
            return replace(result, undefined=True)
        return result

    carry.__name__, carry.__doc__ = enclose.__name__, enclose.__doc__
    return carry


def _rising(function: Callable[[float], float], doc: str) -> Callable[..., Interval]:
    def enclose(x: Interval) -> Interval:
        return outward(function(x.low), function(x.high))

    enclose.__doc__ = doc
    return _carrying(enclose)


@_carrying
def add(x: Interval, y: Interval) -> Interval:
    """Enclose x + y."""
    return outward(x.low + y.low, x.high + y.high)


@_carrying
def sub(x: Interval, y: Interval) -> Interval:
    """Enclose x - y."""
    return outward(x.low - y.high, x.high - y.low)


@_carrying
def neg(x: Interval) -> Interval:
    """Enclose -x."""
    return Interval(-x.high, -x.low)


@_carrying
def mul(x: Interval, y: Interval) -> Interval:
    """Enclose x y. The same interval object stands for the same number."""
    if x is y:
        return square(x)
    # A product is extreme at corners. Numbers are finite, so 0 times an end at infinity
    # is 0.
    corners = [_times(a, b) for a in (x.low, x.high) for b in (y.low, y.high)]
    return outward(min(corners), max(corners))


def _times(a: float, b: float) -> float:
    return 0.0 if a == 0.0 or b == 0.0 else a * b


@_carrying
def square(x: Interval) -> Interval:
    """Enclose x squared."""
    ends = (x.low * x.low, x.high * x.high)
    return outward(0.0 if x.contains(0.0) else min(ends), max(ends))


@_carrying
def div(x: Interval, y: Interval) -> Interval:
    """Enclose x / y: everything where y may be zero."""
    if y.contains(0.0):
        return anything()
    # No pole inside: a quotient is extreme at corners, too.
    corners = [_over(a, b) for a in (x.low, x.high) for b in (y.low, y.high)]
    return outward(min(corners), max(corners))


def _over(a: float, b: float) -> float:
    return 0.0 if a == 0.0 or math.isinf(b) else a / b


@_carrying
def sqrt(x: Interval) -> Interval:
    """Enclose the square root over the part of x that has one."""
    if x.high < 0.0:
        return anything()
    low, high = math.sqrt(max(x.low, 0.0)), math.sqrt(x.high)
    return outward(low, high, undefined=x.low < 0.0)


@_carrying
def log(x: Interval) -> Interval:
    """Enclose the natural logarithm over the part of x that has one."""
    if x.high < 0.0:
        return anything()
    return outward(_log(max(x.low, 0.0)), _log(x.high), undefined=x.low <= 0.0)


def _log(x: float) -> float:
    return math.log(x) if x > 0.0 else -math.inf


@_carrying
def cos(x: Interval) -> Interval:
    """Enclose the cosine."""
    return _wave(math.cos, 0.0, x)


@_carrying
def sin(x: Interval) -> Interval:
    """Enclose the sine."""
    return _wave(math.sin, math.pi / 2.0, x)


def _wave(function: Callable[[float], float], top: float, x: Interval) -> Interval:
    """Enclose a function that swings between 1, first at `top`, and -1."""
    size = max(abs(x.low), abs(x.high))
    if not (x.width < TAU and math.isfinite(size)):
        return Interval(-1.0, 1.0)
    ends = (function(x.low), function(x.high))
    # TAU and the angle are rounded; the angle grows with the number of whole periods.
    margin = 1e-9 + 1e-15 * size  # an extremum this near to an end counts as inside
    inside = outward(min(ends), max(ends))
    low = -1.0 if _hits(top + math.pi, x, margin) else max(inside.low, -1.0)
    high = 1.0 if _hits(top, x, margin) else min(inside.high, 1.0)
    return Interval(low, high)


def _hits(angle: float, x: Interval, margin: float) -> bool:
    """Tell whether `angle` plus some number of turns lies in x, or near to it."""
    first = math.ceil((x.low - margin - angle) / TAU)
    return angle + first * TAU <= x.high + margin


@_carrying
def tan(x: Interval) -> Interval:
    """Enclose the tangent: everything where a pole may lie inside."""
    # Between two poles the tangent rises, and the cosine has no zero.
    if not x.width < math.pi or cos(x).contains(0.0):
        return Interval(-math.inf, math.inf)
    return outward(math.tan(x.low), math.tan(x.high))


@_carrying
def asin(x: Interval) -> Interval:
    """Enclose the inverse sine over the part of x that has one."""
    low, high = math.asin(_clamped(x.low)), math.asin(_clamped(x.high))
    return outward(low, high, undefined=x.low < -1.0 or x.high > 1.0)


@_carrying
def acos(x: Interval) -> Interval:
    """Enclose the inverse cosine over the part of x that has one."""
    low, high = math.acos(_clamped(x.high)), math.acos(_clamped(x.low))
    return outward(low, high, undefined=x.low < -1.0 or x.high > 1.0)


def _clamped(x: float) -> float:
    return min(max(x, -1.0), 1.0)


@_carrying
def atan2(y: Interval, x: Interval) -> Interval:
    """Enclose the angle of (x, y): the whole circle if the cut or origin may be hit."""
    if x.low <= 0.0 and y.contains(0.0):
        return outward(-math.pi, math.pi)
    corners = [math.atan2(a, b) for a in (y.low, y.high) for b in (x.low, x.high)]
    return outward(min(corners), max(corners))


@_carrying
def absolute(x: Interval) -> Interval:
    """Enclose |x|."""
    ends = (abs(x.low), abs(x.high))
    return Interval(0.0 if x.contains(0.0) else min(ends), max(ends))


@_carrying
def sign(x: Interval) -> Interval:
    """Enclose the sign."""
    return Interval(_sign(x.low), _sign(x.high))


def _sign(x: float) -> float:
    return math.copysign(1.0, x) if x else 0.0


@_carrying
def minimum(x: Interval, y: Interval) -> Interval:
    """Enclose min(x, y)."""
    return Interval(min(x.low, y.low), min(x.high, y.high))


@_carrying
def maximum(x: Interval, y: Interval) -> Interval:
    """Enclose max(x, y)."""
    return Interval(max(x.low, y.low), max(x.high, y.high))


@_carrying
def hypot(x: Interval, y: Interval) -> Interval:
    """Enclose the length of (x, y)."""
    a, b = absolute(x), absolute(y)
    return outward(math.hypot(a.low, b.low), math.hypot(a.high, b.high))


@_carrying
def floor(x: Interval) -> Interval:
    """Enclose the largest whole number that is not above x."""
    return Interval(floats.floor(x.low), floats.floor(x.high))


@_carrying
def nearest(x: Interval) -> Interval:
    """Enclose the nearest whole number."""
    low, high = (round(end) if math.isfinite(end) else end for end in (x.low, x.high))
    return Interval(float(low), float(high))


@_carrying
def cosh(x: Interval) -> Interval:
    """Enclose the hyperbolic cosine."""
    size = absolute(x)
    return outward(
        _overflowing(math.cosh, size.low), _overflowing(math.cosh, size.high)
    )


@_carrying
def fmod(x: Interval, y: Interval) -> Interval:
    """Enclose the remainder of x / y with the sign of x."""
    size = absolute(y)
    if absolute(x).high < size.low:  # y goes into x no time
        return x
    is_one_sided = 0.0 <= x.low < math.inf or -math.inf < x.high <= 0.0
    if is_one_sided and size.low == size.high and x.width < size.low * (1.0 - 1e-12):
        low, high = math.fmod(x.low, size.low), math.fmod(x.high, size.low)
        if low <= high:  # y goes into all of x the same number of times
            return Interval(low, high)
    low = max(-size.high, min(x.low, 0.0))
    return Interval(low, min(size.high, max(x.high, 0.0)), y.contains(0.0))


@_carrying
def power(x: Interval, y: Interval) -> Interval:
    """Enclose x to the power y; nothing is known where x may be below zero."""
    if x.low < 0.0:
        return anything()
    # It rises or falls in x for every y, and in y for every x.
    corners = [_power(a, b) for a in (x.low, x.high) for b in (y.low, y.high)]
    has_pole = x.low == 0.0 and y.low < 0.0
    return outward(min(corners), max(corners), undefined=has_pole)


def _power(x: float, y: float) -> float:
    try:
        return math.pow(x, y)
    except (OverflowError, ValueError):  # the latter for zero and y below zero
        return math.inf


def _overflowing(function: Callable[[float], float], x: float) -> float:
    try:
        return function(x)
    except OverflowError:
        return math.inf


def _exp(x: float) -> float:
    return _overflowing(math.exp, x)


def _sinh(x: float) -> float:
    return math.copysign(_overflowing(math.sinh, abs(x)), x)


exp = _rising(_exp, "Enclose e to the power x.")
sinh = _rising(_sinh, "Enclose the hyperbolic sine.")
tanh = _rising(math.tanh, "Enclose the hyperbolic tangent.")
cbrt = _rising(math.cbrt, "Enclose the cube root.")
atan = _rising(math.atan, "Enclose the inverse tangent.")


def hull(x: Interval, y: Interval) -> Interval:
    """Return the smallest interval that holds both."""
    undefined = x.undefined or y.undefined
    return Interval(min(x.low, y.low), max(x.high, y.high), undefined)


# The truth of a comparison over intervals is itself an interval of 0 and 1. A
# comparison with what may be no number may be false.
NEVER, ALWAYS, MAYBE = Interval(0.0, 0.0), Interval(1.0, 1.0), Interval(0.0, 1.0)


def less(x: Interval, y: Interval) -> Interval:
    """Tell whether x < y always, never or maybe."""
    if x.low >= y.high:
        return NEVER
    return ALWAYS if x.high < y.low and _defined(x, y) else MAYBE


def less_equal(x: Interval, y: Interval) -> Interval:
    """Tell whether x <= y always, never or maybe."""
    if x.low > y.high:
        return NEVER
    return ALWAYS if x.high <= y.low and _defined(x, y) else MAYBE


def equal(x: Interval, y: Interval) -> Interval:
    """Tell whether x = y always, never or maybe."""
    if x.high < y.low or y.high < x.low:
        return NEVER
    return ALWAYS if x.low == x.high == y.low == y.high and _defined(x, y) else MAYBE


def _defined(x: Interval, y: Interval) -> bool:
    return not (x.undefined or y.undefined)


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
