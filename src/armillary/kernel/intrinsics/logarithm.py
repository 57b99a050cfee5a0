"""The natural logarithm: within 1.5 ulp; and as a sum of two reals, for powers.

    x = 2^k m, sqrt(1/2) <= m < sqrt(2),  f = m - 1,  s = f / (m + 1),  z = s^2
    log m = 2 atanh s = 2 s + s z L(z) = f - (f^2/2 - s (f^2/2 + z L(z)))

The last form is that of fdlibm's e_log.c. L, and M in L(z) = 2/3 + z M(z), are minimax
in the relative error of log m (Remez exchange in 250 bits, then rounded; errors below
2**-59 and 2**-30, and 2**-65 and 2**-36).
"""

from __future__ import annotations

import math

from armillary.kernel.intrinsics.exponential import LN_2
from armillary.kernel.intrinsics.ieee import layout, real_of
from armillary.kernel.vector_builder import Value, VectorBuilder

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
SQRT_HALF_BITS = {64: 0x3FE6A09E667F3BCD, 32: 0x3F3504F3}


def log(b: VectorBuilder, x: Value) -> Value:
    """Return the natural logarithm of x: -inf at 0, NaN below."""
    k, m = _split(b, x)
    one = b.real(1.0)
    f = b.fsub(m, one)
    s = b.fdiv(f, b.fadd(m, one))
    z = b.fmul(s, s)
    half_square = b.fmul(b.fmul(f, b.real(0.5)), f)
    series = b.fadd(half_square, b.fmul(z, b.polynomial(z, L[b.shape.bits])))
    high, low = (b.real(part) for part in LN_2[b.shape.bits])
    rest = b.fma(s, series, b.fmul(k, low))
    result = b.fma(k, high, b.fsub(f, b.fsub(half_square, rest)))
    return _at_the_ends(b, x, result)


def _at_the_ends(b: VectorBuilder, x: Value, result: Value) -> Value:
    zero, infinity = b.real(0.0), b.real(math.inf)
    result = b.select(b.fcmp("olt", x, infinity), result, x)
    result = b.select(b.fcmp("oeq", x, zero), b.real(-math.inf), result)
    return b.select(b.fcmp("olt", x, zero), b.real(math.nan), result)


def log_as_sum(b: VectorBuilder, x: Value) -> tuple[Value, Value]:
    """Return the logarithm of |x| as a large and a small part, |x| finite and not 0.

    Their sum has a relative error below 2**-62 (2**-34 in float32).
    """
    known = b.shared.get(("log as sum", x))
    if known is None:
        k, m = _split(b, x)
        known = b.shared["log as sum", x] = _add_exponent(b, k, *_log_of_m(b, m))
    return known


def _split(b: VectorBuilder, x: Value) -> tuple[Value, Value]:
    """Return k, as a real, and m with |x| = 2^k m and sqrt(1/2) <= m < sqrt(2)."""
    known = b.shared.get(("split", x))
    if known is None:
        known = b.shared["split", x] = _make_split(b, x)
    return known


def _make_split(b: VectorBuilder, x: Value) -> tuple[Value, Value]:
    form, root = layout(b), SQRT_HALF_BITS[b.shape.bits]
    size, extra = b.call("fabs", x), form.fraction + 2
    tiny = b.fcmp("olt", size, b.real(form.least_normal))
    size = b.select(tiny, b.fmul(size, b.real(2.0**extra)), size)
    # Moved so that the exponent steps at sqrt(1/2) and not at 1.
    moved = b.integers("add", b.bits(size), b.integer(form.power_bits(0) - root))
    exponent = b.integers("lshr", moved, b.integer(form.fraction))
    fraction = b.integers("and", moved, b.integer((1 << form.fraction) - 1))
    m = b.from_bits(b.integers("add", fraction, b.integer(root)))
    offset = 2.0**form.fraction + form.bias
    k = real_of(b, exponent, b.select(tiny, b.real(offset + extra), b.real(offset)))
    return k, m


def _log_of_m(b: VectorBuilder, m: Value) -> tuple[Value, Value]:
    """Return 2 s + s t with t = z (2/3 + z M(z)), all in pairs of reals."""
    one = b.real(1.0)
    f, d = b.fsub(m, one), b.fadd(m, one)
    d_low = b.fsub(m, b.fsub(d, one))
    s = b.fdiv(f, d)
    remainder = b.fma(b.fneg(s), d_low, b.fma(b.fneg(s), d, f))
    s_low = b.fmul(remainder, b.fma(s, b.real(-0.5), b.real(0.5)))  # 1/d = (1 - s)/2
    z, z_low = _product(b, (s, s_low), (s, s_low))
    third, third_low = (b.real(part) for part in TWO_THIRDS[b.shape.bits])
    c = b.fmul(z, b.polynomial(z, M[b.shape.bits]))
    q, q_low = _quick_sum(b, third, c)
    t = _product(b, (z, z_low), (q, b.fadd(q_low, third_low)))
    u, u_low = _product(b, (s, s_low), t)
    result, low = _quick_sum(b, b.fadd(s, s), u)
    return result, b.fadd(low, b.fma(s_low, b.real(2.0), u_low))


def _add_exponent(
    b: VectorBuilder, k: Value, large: Value, small: Value
) -> tuple[Value, Value]:
    high, low = (b.real(part) for part in SHORT_LN_2[b.shape.bits])
    result, rest = _quick_sum(b, b.fmul(k, high), large)
    return result, b.fadd(rest, b.fma(k, low, small))


def _quick_sum(b: VectorBuilder, x: Value, y: Value) -> tuple[Value, Value]:
    """Return x + y and what its rounding leaves, where |x| >= |y| or x = 0."""
    total = b.fadd(x, y)
    return total, b.fsub(y, b.fsub(total, x))


def _product(
    b: VectorBuilder, x: tuple[Value, Value], y: tuple[Value, Value]
) -> tuple[Value, Value]:
    """Return the product of two sums of a large and a small part, as such a sum."""
    product = b.fmul(x[0], y[0])
    error = b.fma(x[0], y[0], b.fneg(product))
    return product, b.fma(x[0], y[1], b.fma(x[1], y[0], error))
