"""Hyperbolic functions: within 3 ulp.

For t = |x| < 1 the sine is its power series, within 2**-56 of it there. Else, with
h = e^t / 2, which overflows where the results do and not before,

    sinh t = h - 1 / (4 h),  cosh t = h + 1 / (4 h)
    tanh t = sinh t / sqrt(1 + sinh^2 t),  or 1 - 2 / (e^(2 t) + 1)
"""

from __future__ import annotations

import math

from armillary.kernel.builder import Value
from armillary.kernel.intrinsics.exponential import exp_of_sum
from armillary.kernel.intrinsics.logarithm import SHORT_LN_2
from armillary.kernel.intrinsics.polynomial import polynomial

TERMS = {64: 8, 32: 4}


def sinh(x: Value) -> Value:
    """Return the hyperbolic sine of x."""
    size = abs(x)
    half = _half_exp(size)
    far = half - 0.25 / half
    near = _near(size)
    return (size < 1.0).select(near, far).with_sign_of(x)


def cosh(x: Value) -> Value:
    """Return the hyperbolic cosine of x."""
    half = _half_exp(abs(x))
    return half + 0.25 / half


def tanh(x: Value) -> Value:
    """Return the hyperbolic tangent of x."""
    size = abs(x)
    # 1 - 2 / (e^(2 t) + 1) cancels near 0; far off, the square of the sine overflows.
    sine = _near(size)
    near = sine / sine.multiply_add(sine, 1.0).sqrt()
    half = _half_exp(size + size)
    far = 1.0 - 1.0 / (half + 0.5)
    return (size < 1.0).select(near, far).with_sign_of(x)


def _half_exp(t: Value) -> Value:
    """Return e^t / 2 = e^(t - ln 2) for t >= 0."""
    # ln 2 in two parts, so that the difference keeps its digits for large t.
    high, low = SHORT_LN_2[t.type.bits]
    return exp_of_sum(t - high, -low)


def _near(t: Value) -> Value:
    """Return the hyperbolic sine of 0 <= t < 1: t + t^3/3! + t^5/5! + ..."""
    z = t * t
    count = TERMS[t.type.bits]
    # The first term left out is t^(2 count + 3) / (2 count + 3)!: below 2**-56 of the
    # sine.
    series = [1.0 / math.factorial(2 * k + 3) for k in range(count)]
    return (t * z).multiply_add(polynomial(z, series), t)
