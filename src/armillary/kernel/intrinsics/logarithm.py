"""The natural logarithm: within 1.5 ulp; and as a sum of two reals, for powers.

    x = 2^k m, sqrt(1/2) <= m < sqrt(2),  f = m - 1,  s = f / (m + 1),  z = s^2
    log m = 2 atanh s = 2 s + s z L(z) = f - (f^2/2 - s (f^2/2 + z L(z)))

The last form is that of fdlibm's e_log.c. L, and M in L(z) = 2/3 + z M(z), are minimax
in the relative error of log m (Remez exchange in 250 bits, then rounded; errors below
2**-59 and 2**-30, and 2**-65 and 2**-36).
"""

from __future__ import annotations

import math
from typing import TypeAlias

from armillary.kernel.builder import Value
from armillary.kernel.intrinsics.exponential import LN_2
from armillary.kernel.intrinsics.ieee import layout, real_of, whole_fma
from armillary.kernel.intrinsics.polynomial import polynomial

# Coefficients of L, then of M, from the lowest power of z on: near 2/3, 2/5, 2/7, ...,
# and without the first.
L = {
    64: (
        0.6666666666666734,
        0.3999999999941663,
        0.285714287420335,
        0.22222198604176793,
        0.18183562912501683,
        0.15314083007633802,
        0.1479565239347784,
    ),
    32: (0.6666677594184875, 0.39977583289146423, 0.2987080216407776),
}
M = {
    64: (
        0.40000000000002256,
        0.28571428570100094,
        0.22222222519819182,
        0.18181784377039076,
        0.1538675684039994,
        0.13256829877744822,
        0.1319621029735484,
    ),
    32: (0.40000152587890625, 0.2854713201522827, 0.23418578505516052),
}
TWO_THIRDS = {
    64: (0.6666666666666666, 3.700743415417188e-17),
    32: (0.6666666865348816, -1.9868215517249155e-08),
}
# ln 2 in two parts, the first so short that its products with k are exact.
SHORT_LN_2 = {
    64: (0.6931471805598903, 5.497923018708371e-14),
    32: (0.693145751953125, 1.4286068203094173e-06),
}
# The bits of sqrt(1/2).
SQRT_HALF_BITS = {64: 0x3FE6A09E667F3BCD, 32: 0x3F3504F3}


def log(x: Value) -> Value:
    """Return the natural logarithm of x: -inf at 0, NaN below."""
    k, m = _split(x)
    f = m - 1.0
    s = f / (m + 1.0)
    z = s * s
    # f is exact (Sterbenz), so the leading terms of the last form lose nothing.
    half_square = f * 0.5 * f
    series = half_square + z * polynomial(z, L[x.type.bits])
    high, low = LN_2[x.type.bits]
    rest = s.multiply_add(series, k * low)
    result = whole_fma(k, high, f - (half_square - rest))
    # Infinity and NaN are their own logarithms.
    result = (x < math.inf).select(result, x)
    result = x.equals(0.0).select(-math.inf, result)
    return (x < 0.0).select(math.nan, result)


Pair: TypeAlias = tuple[Value, Value]
"""A large and a small part, whose sum is meant."""


def log_as_sum(x: Value) -> Pair:
    """Return the logarithm of |x| as a large and a small part, |x| finite and not 0.

    Their sum has a relative error below 2**-62 (2**-34 in float32).
    """

    def make() -> Pair:
        k, m = _split(x)
        large, small = _log_of_m(m)
        # k times the short part of ln 2 is exact, and beyond log m unless k = 0.
        high, low = SHORT_LN_2[x.type.bits]
        result, rest = _quick_sum(k * high, large)
        return result, rest + whole_fma(k, low, small)

    return x.function.once(("log as sum", x.text), make)


def _split(x: Value) -> Pair:
    """Return k, as a real, and m with |x| = 2^k m and sqrt(1/2) <= m < sqrt(2)."""
    return x.function.once(("split", x.text), lambda: _made_split(x))


def _made_split(x: Value) -> Pair:
    form, root = layout(x), SQRT_HALF_BITS[x.type.bits]
    # Subnormal numbers have no leading bit; they are made normal first.
    size, extra = abs(x), form.fraction + 2
    is_tiny = size < form.least_normal
    size = is_tiny.select(size * 2.0**extra, size)
    # Moved so that the exponent steps at sqrt(1/2) and not at 1.
    moved = size.bits() + (form.power_bits(0) - root)
    exponent = moved >> form.fraction
    fraction = moved & ((1 << form.fraction) - 1)
    m = (fraction + root).from_bits()
    offset = 2.0**form.fraction + form.bias
    k = real_of(exponent, is_tiny.select(offset + extra, x.constant(offset)))
    return k, m


def _log_of_m(m: Value) -> Pair:
    """Return 2 s + s t with t = z (2/3 + z M(z)), all in pairs of reals."""
    bits = m.type.bits
    # s and what rounding leaves of it: f - s d over d, for d = m + 1 as d + d_low.
    f, d = m - 1.0, m + 1.0
    d_low = m - (d - 1.0)
    s = f / d
    remainder = (-s).fma(d_low, (-s).fma(d, f))
    s_low = remainder * s.multiply_add(-0.5, 0.5)  # 1/d = (1 - s)/2
    z, z_low = _product((s, s_low), (s, s_low))
    third, third_low = TWO_THIRDS[bits]
    c = z * polynomial(z, M[bits])
    q, q_low = _quick_sum(z.constant(third), c)
    t = _product((z, z_low), (q, q_low + third_low))
    u, u_low = _product((s, s_low), t)
    result, low = _quick_sum(s + s, u)
    return result, low + s_low.multiply_add(2.0, u_low)


def _quick_sum(x: Value, y: Value) -> Pair:
    """Return x + y and what its rounding leaves, where |x| >= |y| or x = 0.

    Dekker's Fast2Sum, A Floating-Point Technique for Extending the Available Precision
    (1971).
    """
    total = x + y
    return total, y - (total - x)


def _product(x: Pair, y: Pair) -> Pair:
    """Return the product of two sums; that of the small parts is left out."""
    product = x[0] * y[0]
    error = x[0].fma(y[0], -product)
    return product, x[0].fma(y[1], x[1].fma(y[0], error))
