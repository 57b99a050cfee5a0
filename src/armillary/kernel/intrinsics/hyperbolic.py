"""Hyperbolic functions: within 3 ulp.

For t = |x| < 1 the sine is its power series, within 2**-56 of it there. Else, with
h = e^t / 2, which overflows where the results do and not before,

    sinh t = h - 1 / (4 h),  cosh t = h + 1 / (4 h)
    tanh t = sinh t / sqrt(1 + sinh^2 t),  or 1 - 2 / (e^(2 t) + 1)
"""

from __future__ import annotations

import math

from armillary.kernel.intrinsics.exponential import exp_of_sum
from armillary.kernel.intrinsics.logarithm import SHORT_LN_2
from armillary.kernel.vector_builder import Value, VectorBuilder

TERMS = {64: 8, 32: 4}


def sinh(b: VectorBuilder, x: Value) -> Value:
    """Return the hyperbolic sine of x."""
    size = b.call("fabs", x)
    half = _half_exp(b, size)
    far = b.fsub(half, b.fdiv(b.real(0.25), half))
    near = _near(b, size)
    small = b.fcmp("olt", size, b.real(1.0))
    return b.call("copysign", b.select(small, near, far), x)


def cosh(b: VectorBuilder, x: Value) -> Value:
    """Return the hyperbolic cosine of x."""
    half = _half_exp(b, b.call("fabs", x))
    return b.fadd(half, b.fdiv(b.real(0.25), half))


def tanh(b: VectorBuilder, x: Value) -> Value:
    """Return the hyperbolic tangent of x."""
    size, one = b.call("fabs", x), b.real(1.0)
    sine = _near(b, size)
    near = b.fdiv(sine, b.call("sqrt", b.fma(sine, sine, one)))
    half = _half_exp(b, b.fadd(size, size))
    far = b.fsub(one, b.fdiv(one, b.fadd(half, b.real(0.5))))
    small = b.fcmp("olt", size, one)
    return b.call("copysign", b.select(small, near, far), x)


def _half_exp(b: VectorBuilder, t: Value) -> Value:
    """Return e^t / 2 = e^(t - ln 2) for t >= 0."""
    high, low = SHORT_LN_2[b.shape.bits]
    return exp_of_sum(b, b.fsub(t, b.real(high)), b.real(-low))


def _near(b: VectorBuilder, t: Value) -> Value:
    """Return the hyperbolic sine of 0 <= t < 1."""
    z = b.fmul(t, t)
    count = TERMS[b.shape.bits]
    series = [1.0 / math.factorial(2 * k + 3) for k in range(count)]
    return b.fma(b.fmul(t, z), b.polynomial(z, series), t)
