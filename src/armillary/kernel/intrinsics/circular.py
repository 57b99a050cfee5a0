"""Sine and cosine together: within 2 ulp for |x| up to 2**30, flagged beyond.

Reduction: k = round(2 x / pi) by adding and removing 1.5 * 2**52 (2**23 for float32),
which leaves k in the low bits; r = x - k pi/2 with pi/2 in three parts and fused
steps. The first difference is exact and the later ones lose less than an ulp of r, also
for x next to a multiple of pi/2. Kernels: the minimax polynomials on [-pi/4, pi/4] of
fdlibm (k_sin.c, k_cos.c) and of FDLIBM's float variants.
"""

from __future__ import annotations

import math

from armillary.kernel.block import Block, Value

SIN_64 = (
    -1.66666666666666307295e-1,
    8.33333333332211858878e-3,
    -1.98412698295895385996e-4,
    2.75573136213857245213e-6,
    -2.50507477628578072866e-8,
    1.58962301576546568060e-10,
)
COS_64 = (
    4.16666666666665929218e-2,
    -1.38888888888730564116e-3,
    2.48015872888517045348e-5,
    -2.75573141792967388112e-7,
    2.08757008419747316778e-9,
    -1.13585365213876817300e-11,
)
SIN_32 = (-0.166666667163372, 8.33333376795e-3, -1.98393348360e-4, 2.71831149398e-6)
COS_32 = (0.0416666455566883, -1.38873163610e-3, 2.44331571e-5)

# pi/2 as a sum of parts, each the rounding of what the ones before leave.
PARTS_64 = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
PARTS_32 = (1.57079637050628662109375, -4.37113900018624283e-8, -1.7151245100059e-15)

LIMIT_64, LIMIT_32 = 2.0**30, 2.0**17


def sincos(b: Block, x: Value) -> tuple[Value, Value]:
    """Return the sine and the cosine of x."""
    known = b.shared.get(("sincos", x))
    if known is None:
        known = b.shared["sincos", x] = _sincos(b, x)
    return known


def _sincos(b: Block, x: Value) -> tuple[Value, Value]:
    wide = b.shape.bits == 64
    limit = LIMIT_64 if wide else LIMIT_32
    b.flag(b.fcmp("ogt", b.call("fabs", x), b.real(limit)))
    quadrant, r = _reduce(b, x, PARTS_64 if wide else PARTS_32)
    sine, cosine = _kernels(b, r, *((SIN_64, COS_64) if wide else (SIN_32, COS_32)))
    swapped = b.icmp("ne", b.integers("and", quadrant, b.integer(1)), b.integer(0))
    sign = b.integer(b.shape.bits - 2)
    two = b.integer(2)
    sine_sign = b.integers("shl", b.integers("and", quadrant, two), sign)
    next_quadrant = b.integers("add", quadrant, b.integer(1))
    cosine_sign = b.integers("shl", b.integers("and", next_quadrant, two), sign)
    return (
        _signed(b, b.select(swapped, cosine, sine), sine_sign),
        _signed(b, b.select(swapped, sine, cosine), cosine_sign),
    )


def _reduce(b: Block, x: Value, parts: tuple[float, ...]) -> tuple[Value, Value]:
    """Return k, in its low bits at least, and r with x = k pi/2 + r."""
    magic = b.real(1.5 * 2.0 ** (52 if b.shape.bits == 64 else 23))
    shifted = b.fma(x, b.real(2.0 / math.pi), magic)
    k = b.fsub(shifted, magic)
    r = x
    for part in parts:
        r = b.fma(k, b.real(-part), r)
    return b.bits(shifted), r


def _kernels(
    b: Block, r: Value, sin: tuple[float, ...], cos: tuple[float, ...]
) -> tuple[Value, Value]:
    """Return sin(r) and cos(r) for |r| up to a little more than pi/4."""
    z = b.fmul(r, r)
    sine = b.fma(b.fmul(r, z), b.polynomial(z, sin), r)
    head = b.fma(z, b.real(-0.5), b.real(1.0))
    cosine = b.fma(b.fmul(z, z), b.polynomial(z, cos), head)
    return sine, cosine


def _signed(b: Block, x: Value, sign: Value) -> Value:
    return b.from_bits(b.integers("xor", b.bits(x), sign))


def sin(b: Block, x: Value) -> Value:
    """Return the sine of x [rad]."""
    return sincos(b, x)[0]


def cos(b: Block, x: Value) -> Value:
    """Return the cosine of x [rad]."""
    return sincos(b, x)[1]
