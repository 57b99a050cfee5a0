"""The length of a plane vector: within 1.5 ulp, no overflow or underflow inside."""

from __future__ import annotations

from armillary.kernel.intrinsics.ieee import layout
from armillary.kernel.vector_builder import Value, VectorBuilder

# Above the first, scale down by the last power of two; below the second, up.
SCALES = {64: (500, -500, 600), 32: (60, -50, 90)}


def hypot(b: VectorBuilder, x: Value, y: Value) -> Value:
    """Return sqrt(x^2 + y^2); NaN where x or y is NaN, even beside an infinity."""
    large, small, step = (b.real(2.0**power) for power in SCALES[b.shape.bits])
    inverse_step = b.real(2.0 ** -SCALES[b.shape.bits][2])
    across, up = b.call("fabs", x), b.call("fabs", y)
    size = b.select(b.fcmp("ogt", across, up), across, up)
    scale = b.select(b.fcmp("ogt", size, large), inverse_step, b.real(1.0))
    scale = b.select(b.fcmp("olt", size, small), step, scale)
    x, y = b.fmul(x, scale), b.fmul(y, scale)
    length = b.call("sqrt", b.fma(x, x, b.fmul(y, y)))
    return b.fmul(length, _inverse_of_power(b, scale))


def _inverse_of_power(b: VectorBuilder, scale: Value) -> Value:
    """Return 1 / scale for a power of two."""
    twice = b.integer(2 * layout(b).power_bits(0))
    return b.from_bits(b.integers("sub", twice, b.bits(scale)))
