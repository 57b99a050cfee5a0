"""The exponential: within 1.5 ulp, with gradual underflow.

    k = round(x / ln 2),  r = x - k ln 2,  exp x = 2^k (1 + (r + r^2 E(r)))

E is minimax in the relative error of exp r on |r| <= ln(2)/2 (Remez exchange in 250
bits, then rounded; error below 2**-57 and 2**-28). The scaling by 2^k is done in two
halves, so that only the last product overflows or underflows, and rounds once.
"""

from __future__ import annotations

import math

from armillary.kernel.builder import Value
from armillary.kernel.intrinsics.ieee import (
    layout,
    nearest_whole,
    power_of_two,
    whole_fma,
)
from armillary.kernel.intrinsics.minmax import at_least, at_most
from armillary.kernel.intrinsics.polynomial import paired

# Coefficients of E, from the lowest power of r on: near 1/2!, 1/3!, 1/4!, ...
EXP = {
    64: (
        0.5000000000000004,
        0.16666666666666424,
        0.041666666666572066,
        0.008333333333497181,
        0.001388888893430474,
        0.00019841269485077007,
        2.4801501560376492e-05,
        2.7557615375118053e-06,
        2.762754724492434e-07,
        2.49886189211079e-08,
    ),
    32: (
        0.4999999403953552,
        0.1666651964187622,
        0.04166839271783829,
        0.008368778973817825,
        0.0013814532430842519,
    ),
}
# ln 2 and what its rounding leaves.
LN_2 = {
    64: (math.log(2.0), 2.3190468138462996e-17),
    32: (0.6931471824645996, -1.904654323148236e-09),
}
# Where the result is 0 or infinite, and a little further.
RANGE = {64: (-746.0, 710.0), 32: (-104.0, 89.0)}


def exp(x: Value) -> Value:
    """Return e to the power x."""
    return exp_of_sum(x, None)


def exp_of_sum(x: Value, rest: Value | float | None) -> Value:
    """Return e to the power x + rest, for a rest small beside 1.

    The rest must be finite also where x is far out of the range of the exponential.
    """
    bits = x.type.bits
    lowest, highest = RANGE[bits]
    # Beyond the range k would overflow its exponent's field; the ends give 0 and
    # infinity.
    x = at_least(at_most(x, highest), lowest)
    shifted, k = nearest_whole(x, 1.0 / math.log(2.0))
    # ln 2 in two parts: k times the first is taken from x without error.
    high, low = LN_2[bits]
    r = whole_fma(k, -high, x)
    r = whole_fma(k, -low, r)
    if rest is not None:
        r += rest
    # exp r - 1, small beside 1: its own errors count for a fraction of an ulp.
    series = (r * r).multiply_add(paired(r, EXP[bits]), r)
    return _scale(series + 1.0, shifted)


def _scale(x: Value, shifted: Value) -> Value:
    """Return 2^k x, given k as the bits of k + magic."""
    form = layout(x)
    # k + 2 bias, halved twice over: both halves are exponents of normal numbers, where
    # k itself may be that of a subnormal one.
    biased = shifted - (form.magic_bits - 2 * form.bias)
    half = biased >> 1
    other = biased - half
    return x * power_of_two(half) * power_of_two(other)
