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

from armillary.kernel.intrinsics.ieee import flip_sign, nearest_whole
from armillary.kernel.vector_builder import Value, VectorBuilder

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


def sin(b: VectorBuilder, x: Value) -> Value:
    """Return the sine of x [rad]."""
    return sincos(b, x)[0]


def cos(b: VectorBuilder, x: Value) -> Value:
    """Return the cosine of x [rad]."""
    return sincos(b, x)[1]


def tan(b: VectorBuilder, x: Value) -> Value:
    """Return the tangent of x [rad]."""
    return b.fdiv(*sincos(b, x))


def sincos(b: VectorBuilder, x: Value) -> tuple[Value, Value]:
    """Return the sine and the cosine of x."""
    known = b.shared.get(("sincos", x))
    if known is None:
        known = b.shared["sincos", x] = _sincos(b, x)
    return known


def _sincos(b: VectorBuilder, x: Value) -> tuple[Value, Value]:
    quadrant, r = _reduce(b, x)
    z = b.fmul(r, r)
    # x^2 + z exceeds the square of the limit exactly where |x| exceeds the limit. It is
    # NaN for infinite x, whose sine and cosine are NaN already.
    b.limit(b.fma(x, x, z), LIMIT[b.shape.bits] ** 2)
    sine, cosine = _kernels(b, r, z)
    # Odd quadrants swap the two; signs are bit 1 (sine), bit 1 xor bit 0 (cosine).
    top = b.shape.bits - 1
    low_bit = b.integers("shl", quadrant, b.integer(top))
    next_bit = b.integers("shl", quadrant, b.integer(top - 1))
    swapped = b.icmp("slt", low_bit, b.integer(0))
    sign = b.integer(-(1 << top))
    sine_sign = b.integers("and", next_bit, sign)
    cosine_sign = b.integers("and", b.integers("xor", next_bit, low_bit), sign)
    return (
        flip_sign(b, b.select(swapped, cosine, sine), sine_sign),
        flip_sign(b, b.select(swapped, sine, cosine), cosine_sign),
    )


def _reduce(b: VectorBuilder, x: Value) -> tuple[Value, Value]:
    """Return k, in its low bits at least, and r with x = k pi/2 + r."""
    quadrant, k = nearest_whole(b, x, 2.0 / math.pi)
    r = x
    for part in PARTS[b.shape.bits]:
        r = b.fma(k, b.real(-part), r)
    return quadrant, r


def _kernels(b: VectorBuilder, r: Value, z: Value) -> tuple[Value, Value]:
    """Return sin(r) and cos(r) of z = r^2, |r| up to a little more than pi/4."""
    sine = b.fma(b.fmul(r, z), b.polynomial(z, SIN[b.shape.bits]), r)
    return sine, b.polynomial(z, (1.0, -0.5, *COS[b.shape.bits]))
