"""Powers as C's pow defines them: within 1.5 ulp.

x^y = exp(y log|x|), the logarithm and its product with y as sums of two reals.
"""

from __future__ import annotations

import math

from armillary.kernel.intrinsics.exponential import exp_of_sum
from armillary.kernel.intrinsics.ieee import flip_sign, select_zero, sign_bit
from armillary.kernel.intrinsics.logarithm import log_as_sum
from armillary.kernel.intrinsics.minmax import at_least, at_most
from armillary.kernel.vector_builder import Value, VectorBuilder

# With this exponent any |x| but 1 already gives 0 or infinity.
LARGEST = {64: 2.0**64, 32: 2.0**32}
# And so does this product of exponent and logarithm.
FAR = {64: 800.0, 32: 160.0}


def power(b: VectorBuilder, x: Value, y: Value) -> Value:
    """Return x to the power y; NaN for negative x where y is not whole."""
    size = _power_of_size(b, x, y)
    zero, one = b.real(0.0), b.real(1.0)
    whole = b.fcmp("oeq", b.call("floor", y), y)
    half = b.fmul(y, b.real(0.5))
    odd = b.truths("and", whole, b.fcmp("une", b.call("floor", half), half))
    even = b.truths("xor", odd, b.truth(True))
    result = flip_sign(b, size, select_zero(b, even, sign_bit(b, x)))
    # NaN, unless one of the two limits C makes: x^0 = 1^y = 1.
    below = b.truths("and", b.fcmp("olt", x, zero), b.fcmp("one", x, b.real(-math.inf)))
    broken = b.truths("xor", b.truths("or", whole, below), whole)
    invalid = b.truths("or", broken, b.fcmp("uno", x, y))
    result = b.select(invalid, b.real(math.nan), result)
    unit = b.truths("or", b.fcmp("oeq", y, zero), b.fcmp("oeq", x, one))
    return b.select(unit, one, result)


def _power_of_size(b: VectorBuilder, x: Value, y: Value) -> Value:
    """Return |x|^y for numbers x and y, y not 0."""
    zero, infinity = b.real(0.0), b.real(math.inf)
    bits = b.shape.bits
    log, log_rest = log_as_sum(b, x)
    limited = at_least(b, at_most(b, y, LARGEST[bits]), -LARGEST[bits])
    product = b.fmul(limited, log)
    rest = b.fma(limited, log_rest, b.fma(limited, log, b.fneg(product)))
    far = b.fcmp("ogt", b.call("fabs", product), b.real(FAR[bits]))
    result = exp_of_sum(b, product, b.select(far, zero, rest))
    # |x| of 0 or infinity, for which the logarithm above means nothing.
    size = b.call("fabs", x)
    nothing = b.fcmp("oeq", size, zero)
    everything = b.fcmp("oeq", size, infinity)
    grows = b.truths("xor", nothing, b.fcmp("ogt", y, zero))
    end = b.select(grows, infinity, zero)
    return b.select(b.truths("or", nothing, everything), end, result)
