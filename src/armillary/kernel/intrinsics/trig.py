"""Sine, cosine and tangent, for |x| up to 2**30 (2**16 in float32), flagged beyond.

Sine and cosine are within 2 ulp, the tangent within 4, also for x next to a multiple of
pi/2; sine and cosine within 2.5 ulp where there are no fused steps.

    k = round(2 x / pi),  r = x - k pi/2,  z = r^2
    sin r = r + r z S(z),  cos r = 1 + z (-1/2 + z C(z))

with pi/2 in three parts and fused steps. The first difference is exact and the later
ones lose less than an ulp of r. S and C are minimax in the relative error of the result
on |r| <= pi/4, in float32 on what the rounding of k lets |r| reach, pi/4 + 0.03 (Remez
exchange in 250 bits, then rounded; errors below 2**-57 and 2**-27).

WebAssembly has neither fused steps nor many registers. There pi/2 has four parts (five
in float32), of which all products but the last are exact, and

    cos r = sqrt(1 - (sin r)^2)

which loses as little for |r| <= pi/4.
"""

from __future__ import annotations

import math

from armillary.kernel.builder import Value
from armillary.kernel.intrinsics.ieee import (
    flip_sign,
    kept_in_place,
    nearest_whole,
    whole_fma,
)
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
# The same in parts of 23 (8) digits, whose products with whole numbers of 30 (16)
# digits are exact, and what they leave.
SHORT_PARTS = {
    64: (
        1.570796251296997,
        7.549789415861596e-08,
        5.390302529957765e-15,
        3.2820035428735005e-22,
    ),
    32: (
        1.5703125,
        0.000484466552734375,
        -6.407499313354492e-07,
        9.89530235528946e-10,
        2.5633440682570896e-12,
    ),
}
LIMIT = {64: 2.0**30, 32: 2.0**16}


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
    if x.type.of_wasm:
        cosine = (1.0 - sine * sine).sqrt()
    else:
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
    if not x.type.of_wasm:
        return (
            flip_sign(is_swapped.select(cosine, sine), sine_sign),
            flip_sign(is_swapped.select(sine, cosine), cosine_sign),
        )
    # Each choice is three instructions of x86, or a jump; this exchange is four in all.
    change = (sine.bits() ^ cosine.bits()) & is_swapped.to(x.type.integer, "sext")
    return (
        kept_in_place(flip_sign(sine, change ^ sine_sign)),
        kept_in_place(flip_sign(cosine, change ^ cosine_sign)),
    )


def _reduce(x: Value) -> tuple[Value, Value]:
    """Return k, in its low bits at least, and r with x = k pi/2 + r."""
    bits = x.type.bits
    quadrant, k = nearest_whole(x, 2.0 / math.pi)
    # x - k pi/2 by the parts of pi/2 (Cody and Waite, Software Manual for the
    # Elementary Functions, 1980), each step fused: up to the limit k has 30 bits (20),
    # and the product of k with a part is never rounded by itself.
    r = x
    if x.type.of_wasm:
        for part in SHORT_PARTS[bits]:
            r = r - k * part
        return quadrant, r
    for part in PARTS[bits]:
        r = whole_fma(k, -part, r)
    return quadrant, r
