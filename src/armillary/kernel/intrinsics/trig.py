"""Sine, cosine and tangent, for |x| up to 2**30 (2**20 in float32), flagged beyond.

Sine and cosine are within 2 ulp, the tangent within 4, also for x next to a multiple of
pi/2.

    k = round(2 x / pi),  r = x - k pi/2,  z = r^2
    sin r = r + r z S(z),  cos r = 1 + z (-1/2 + z C(z))

with pi/2 in three parts and fused steps. The first difference is exact and the later
ones lose less than an ulp of r. S and C are minimax in the relative error of the result
on |r| <= pi/4, in float32 on what the rounding of k lets |r| reach, pi/4 + 0.03 (Remez
exchange in 250 bits, then rounded; errors below 2**-57 and 2**-27).
"""

from __future__ import annotations

import math

from armillary.kernel.builder import Value
from armillary.kernel.intrinsics.ieee import flip_sign, nearest_whole, whole_fma
from armillary.kernel.intrinsics.polynomial import polynomial

# Coefficients of S, then of C, from the lowest power of z on: those of sin r / r and
# cos r, changed so that the greatest error is the least.
SIN = {
    64: (
        -0.16666666666666632,
        0.00833333333332249,
        -0.0001984126982985781,
        2.7557313707020664e-06,
        -2.5050760246623834e-08,
        1.5896909261624052e-10,
    ),
    32: (-0.16666652262210846, 0.00833200290799141, -0.00019493285799399018),
}
COS = {
    64: (
        0.041666666666666595,
        -0.0013888888888873342,
        2.480158728900206e-05,
        -2.7557314217036065e-07,
        2.087570539678339e-09,
        -1.1358749816186234e-11,
    ),
    32: (0.04166664183139801, -0.0013887115055695176, 2.4409318939433433e-05),
}
# pi/2 as a sum of parts, each the rounding of what the ones before leave.
PARTS = {
    64: (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
    32: (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
}
LIMIT = {64: 2.0**30, 32: 2.0**20}


def sin(x: Value) -> Value:
    """Return the sine of x [rad]."""
    return sincos(x)[0]


def cos(x: Value) -> Value:
    """Return the cosine of x [rad]."""
    return sincos(x)[1]


def tan(x: Value) -> Value:
    """Return the tangent of x [rad]."""
    sine, cosine = sincos(x)
    return sine / cosine


def sincos(x: Value) -> tuple[Value, Value]:
    """Return the sine and the cosine of x."""
    return x.function.once(("sincos", x.text), lambda: _sincos(x))


def _sincos(x: Value) -> tuple[Value, Value]:
    bits = x.type.bits
    quadrant, r = _reduce(x)
    z = r * r
    # x^2 + z exceeds the square of the limit exactly where |x| exceeds the limit. It is
    # NaN for infinite x, whose sine and cosine are NaN already.
    x.function.limit(x.multiply_add(x, z), LIMIT[bits] ** 2)
    sine = (r * z).multiply_add(polynomial(z, SIN[bits]), r)
    # 1 - z/2 + z^2 C(z), from the highest power down.
    cosine = polynomial(z, (1.0, -0.5, *COS[bits]))
    # Odd quadrants swap the two; signs are bit 1 (sine), bit 1 xor bit 0 (cosine).
    # The bit is moved to the place of the sign, where a comparison with 0 reads it:
    # AVX2 has no test of a bit in each lane.
    low_bit = quadrant << (bits - 1)
    next_bit = quadrant << (bits - 2)
    is_swapped = low_bit < 0
    sign = -(1 << (bits - 1))
    sine_sign = next_bit & sign
    cosine_sign = (next_bit ^ low_bit) & sign
    return (
        flip_sign(is_swapped.select(cosine, sine), sine_sign),
        flip_sign(is_swapped.select(sine, cosine), cosine_sign),
    )


def _reduce(x: Value) -> tuple[Value, Value]:
    """Return k, in its low bits at least, and r with x = k pi/2 + r."""
    quadrant, k = nearest_whole(x, 2.0 / math.pi)
    # x - k pi/2 by the parts of pi/2 (Cody and Waite, Software Manual for the
    # Elementary Functions, 1980), each step fused: up to the limit k has 30 bits (20),
    # and the product of k with a part is never rounded by itself.
    r = x
    for part in PARTS[x.type.bits]:
        r = whole_fma(k, -part, r)
    return quadrant, r
