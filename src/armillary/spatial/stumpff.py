"""Stumpff's functions: the coefficients of every exponential, smooth at angle zero.

    c_n(x) = sum_k (-x)^k / (2k + n)!
    c_0 = cos t,  c_1 = sin t / t,  c_2 = (1 - cos t) / t^2,  c_3 = (t - sin t) / t^3

with x = t^2. Near zero the series is used, elsewhere the closed form; the argument of
the one that is not chosen is replaced, so that derivatives of any order stay finite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from armillary.spatial.vector import Number
from armillary.trace.functions import cos, select, sin, sqrt

SMALL: Final = 0.25
TERMS: Final = 9

_SERIES: Final = [
    [(-1.0) ** k / math.factorial(2 * k + n) for k in range(TERMS)] for n in range(4)
]
# Bernoulli numbers: (1 - (t/2) cot(t/2)) / t^2 = sum_k |B_2k| / (2k)! x^(k - 1).
_INVERSE_SERIES: Final = [
    1.0 / 12.0,
    1.0 / 720.0,
    1.0 / 30240.0,
    1.0 / 1209600.0,
    1.0 / 47900160.0,
    691.0 / 1307674368000.0,
    1.0 / 74724249600.0,
    3617.0 / 10670622842880000.0,
]


def c0(x: Number) -> Number:
    """Return cos t of x = t^2."""
    return _near_or_far(x, _SERIES[0], lambda y: cos(sqrt(y)))


def c1(x: Number) -> Number:
    """Return sin(t) / t of x = t^2."""
    return _near_or_far(x, _SERIES[1], _sine_ratio)


def c2(x: Number) -> Number:
    """Return (1 - cos t) / t^2 of x = t^2, free of cancellation."""
    half = c1(0.25 * x)
    return 0.5 * (half * half)


def c3(x: Number) -> Number:
    """Return (t - sin t) / t^3 of x = t^2."""
    return _near_or_far(x, _SERIES[3], lambda y: (1.0 - _sine_ratio(y)) / y)


def inverse_coefficient(x: Number) -> Number:
    """Return (1 - (t/2) cot(t/2)) / t^2 of x = t^2, for t within (-2 pi, 2 pi)."""
    return _near_or_far(x, _INVERSE_SERIES, _inverse_far)


def _inverse_far(y: Number) -> Number:
    half = 0.5 * sqrt(y)
    return (1.0 - half * cos(half) / sin(half)) / y


def _sine_ratio(y: Number) -> Number:
    t = sqrt(y)
    return sin(t) / t


def _near_or_far(
    x: Number, series: Sequence[float], far: Callable[[Number], Number]
) -> Number:
    is_near = x < SMALL
    near = select(is_near, x, 0.0)
    total: Number = 0.0
    for coefficient in reversed(series):
        total = total * near + coefficient
    return select(is_near, total, far(select(is_near, 1.0, x)))
