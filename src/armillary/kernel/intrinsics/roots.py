"""Roots: of a cube, and the length of a plane vector.

The cube root is within 1 ulp, and exact where it is a short number. From
y = exp(log|x| / 3), which lacks some digits, a step of Newton's method:

    y + (x - y^3) / (3 y^2),  the difference from exact products

The length sqrt(x^2 + y^2) is within 1.5 ulp. Its squares would overflow above 2**512 or
lose digits below 2**-511 (2**64, 2**-63), so both numbers are scaled by a power of two.
"""

from __future__ import annotations

import math

from armillary.kernel.builder import Value
from armillary.kernel.intrinsics.exponential import exp
from armillary.kernel.intrinsics.ieee import layout
from armillary.kernel.intrinsics.logarithm import log

# Below the first, |x| is scaled up by 2 to three times the second.
CUBE_SCALES = {64: (2.0**-900, 40), 32: (2.0**-90, 16)}
# Above the first, scale down by the last power of two; below the second, up.
LENGTH_SCALES = {64: (500, -500, 600), 32: (60, -50, 90)}


def cbrt(x: Value) -> Value:
    """Return the number whose cube is x."""
    size = abs(x)
    limit, power = CUBE_SCALES[x.type.bits]
    tiny = size < limit
    scaled = tiny.select(size * 2.0 ** (3 * power), size)
    y = exp(log(scaled) * (1.0 / 3.0))
    # y^2 = square + rest exactly, so that x - y^3 keeps the digits that cancel.
    square = y * y
    rest = y.fma(y, -square)
    error = (-y).fma(square, scaled)
    error = (-y).fma(rest, error)
    root = y + error / (square * 3.0)
    root = tiny.select(root * 2.0**-power, root)
    # The logarithm of 0 and of infinity leads nowhere; both are their own roots.
    for end in (0.0, math.inf):
        root = size.equals(end).select(size, root)
    return root.with_sign_of(x)


def hypot(x: Value, y: Value) -> Value:
    """Return sqrt(x^2 + y^2); NaN where x or y is NaN, even beside an infinity."""
    large, small, step = (2.0**power for power in LENGTH_SCALES[x.type.bits])
    across, up = abs(x), abs(y)
    size = (across > up).select(across, up)
    scale = (size > large).select(1.0 / step, x.constant(1.0))
    scale = (size < small).select(step, scale)
    x, y = x * scale, y * scale
    length = x.multiply_add(x, y * y).sqrt()
    return length * _inverse_of_power(scale)


def _inverse_of_power(scale: Value) -> Value:
    """Return 1 / scale for a power of two: its exponent, negated, in the bits."""
    one = layout(scale).power_bits(0)
    bits = scale.bits()
    return (bits.constant(2 * one) - bits).from_bits()
