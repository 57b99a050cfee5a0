"""Powers as C's pow defines them: within 1.5 ulp.

x^y = exp(y log|x|), the logarithm and its product with y as sums of two reals.
"""

from __future__ import annotations

import math

from armillary.kernel.builder import Value
from armillary.kernel.intrinsics.exponential import exp_of_sum
from armillary.kernel.intrinsics.ieee import flip_sign, sign_bit
from armillary.kernel.intrinsics.logarithm import log_as_sum
from armillary.kernel.intrinsics.minmax import at_least, at_most

# With this exponent any |x| but 1 already gives 0 or infinity.
LARGEST = {64: 2.0**64, 32: 2.0**32}
# And so does this product of exponent and logarithm.
FAR = {64: 800.0, 32: 160.0}


def power(x: Value, y: Value) -> Value:
    """Return x to the power y; NaN for negative x where y is not whole."""
    size = _power_of_size(x, y)
    is_whole = y.intrinsic("floor").equals(y)
    # y is odd where y / 2 is not whole; beyond 2**53 all y are even.
    half = y * 0.5
    is_odd = is_whole & half.intrinsic("floor").differs(half)
    # The sign of x stays where y is odd.
    result = flip_sign(size, (~is_odd).select(0, sign_bit(x)))
    # NaN, unless one of the two limits C makes: x^0 = 1^y = 1.
    is_below = (x < 0.0) & x.compare("one", -math.inf)
    is_broken = (is_whole | is_below) ^ is_whole  # below, and y not whole
    is_invalid = is_broken | x.compare("uno", y)
    result = is_invalid.select(math.nan, result)
    is_one = y.equals(0.0) | x.equals(1.0)
    return is_one.select(1.0, result)


def _power_of_size(x: Value, y: Value) -> Value:
    """Return |x|^y for numbers x and y, y not 0."""
    bits = x.type.bits
    log, log_rest = log_as_sum(x)
    # No infinite y, whose product with log 1 = 0 would be NaN.
    limited = at_least(at_most(y, LARGEST[bits]), -LARGEST[bits])
    # y log|x| = product + rest; the product loses what the fused step gives back.
    product = limited * log
    rest = limited.fma(log_rest, limited.fma(log, -product))
    # Far out rest may be NaN or large; the result is 0 or infinite anyway.
    is_far = abs(product) > FAR[bits]
    result = exp_of_sum(product, is_far.select(0.0, rest))
    # |x| of 0 or infinity, for which the logarithm above means nothing.
    size = abs(x)
    is_zero = size.equals(0.0)
    is_infinite = size.equals(math.inf)
    # 0^y is 0 for y > 0, infinity^y is infinite, and the other way about for y < 0.
    grows = is_zero ^ (y > 0.0)
    end = grows.select(math.inf, x.constant(0.0))
    return (is_zero | is_infinite).select(end, result)
