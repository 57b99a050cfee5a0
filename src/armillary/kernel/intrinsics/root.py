"""The cube root: within 1 ulp, and exact where the root is a short number.

From y = exp(log|x| / 3), which lacks some digits, a step of Newton's method:

    y + (x - y^3) / (3 y^2),  the difference from exact products
"""

from __future__ import annotations

import math

from armillary.kernel.intrinsics.exponential import exp
from armillary.kernel.intrinsics.logarithm import log
from armillary.kernel.vector_builder import Value, VectorBuilder

# Below the first, |x| is scaled up by 2 to three times the second.
SCALES = {64: (2.0**-900, 40), 32: (2.0**-90, 16)}


def cbrt(b: VectorBuilder, x: Value) -> Value:
    """Return the number whose cube is x."""
    size = b.call("fabs", x)
    limit, power = SCALES[b.shape.bits]
    tiny = b.fcmp("olt", size, b.real(limit))
    scaled = b.select(tiny, b.fmul(size, b.real(2.0 ** (3 * power))), size)
    y = exp(b, b.fmul(log(b, scaled), b.real(1.0 / 3.0)))
    square = b.fmul(y, y)
    rest = b.fma(y, y, b.fneg(square))
    error = b.fma(b.fneg(y), square, scaled)
    error = b.fma(b.fneg(y), rest, error)
    root = b.fadd(y, b.fdiv(error, b.fmul(square, b.real(3.0))))
    root = b.select(tiny, b.fmul(root, b.real(2.0**-power)), root)
    zero, infinity = b.real(0.0), b.real(math.inf)
    for end in (zero, infinity):
        root = b.select(b.fcmp("oeq", size, end), size, root)
    return b.call("copysign", root, x)
