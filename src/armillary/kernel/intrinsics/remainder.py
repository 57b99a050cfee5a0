"""The remainder of a division towards zero: exact for quotients below 2**52 (2**23).

    q = trunc(|x| / |y|),  r = |x| - q |y|

The rounded quotient may have reached the next whole number; then q is one too large, r
is negative, and adding |y| corrects it. Both differences are representable, so exact.
"""

from __future__ import annotations

from armillary.kernel.builder import Value
from armillary.kernel.intrinsics.ieee import layout


def fmod(x: Value, y: Value) -> Value:
    """Return x - y trunc(x / y), with the sign of x, as C defines it.

    Flags the lanes whose quotient is too large.
    """
    dividend, divisor = abs(x), abs(y)
    quotient = (dividend / divisor).intrinsic("trunc")
    r = (-quotient).fma(divisor, dividend)
    # Where r is NaN, so is the remainder: x is infinite or y is 0.
    is_large = quotient >= 2.0 ** layout(x).fraction
    x.function.flag(is_large & r.compare("ord", r))
    r = (r < 0.0).select(r + divisor, r)
    # Also where y is infinite, whose product with the quotient 0 is NaN.
    r = (dividend < divisor).select(dividend, r)
    return r.with_sign_of(x)
