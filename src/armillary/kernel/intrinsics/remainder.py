"""The remainder of a division towards zero: exact for quotients below 2**52 (2**23).

    q = trunc(|x| / |y|),  r = |x| - q |y|

The rounded quotient may have reached the next whole number; then q is one too large, r
is negative, and adding |y| corrects it. Both differences are representable, so exact.
"""

from __future__ import annotations

from armillary.kernel.intrinsics.ieee import layout
from armillary.kernel.vector_builder import Value, VectorBuilder


def fmod(b: VectorBuilder, x: Value, y: Value) -> Value:
    """Return x - y trunc(x / y), with the sign of x, as C defines it.

    Flags the lanes whose quotient is too large.
    """
    dividend, divisor = b.call("fabs", x), b.call("fabs", y)
    quotient = b.call("trunc", b.fdiv(dividend, divisor))
    r = b.fma(b.fneg(quotient), divisor, dividend)
    large = b.fcmp("oge", quotient, b.real(2.0 ** layout(b).fraction))
    # Where r is NaN, so is the remainder: x is infinite or y is 0.
    b.flag(b.truths("and", large, b.fcmp("ord", r, r)))
    r = b.select(b.fcmp("olt", r, b.real(0.0)), b.fadd(r, divisor), r)
    # Also where y is infinite.
    r = b.select(b.fcmp("olt", dividend, divisor), dividend, r)
    return b.call("copysign", r, x)
