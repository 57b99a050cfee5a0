"""Arcs of a sine, a cosine, a tangent, a direction: all within 3 ulp everywhere.

With z = t^2 and polynomials A, S that are minimax in the relative error of the result
(Remez exchange in 250 bits, then rounded; errors below 2**-56 and 2**-27):

    atan t = t + t z A(z), 0 <= t <= 1
    asin t = t + t z S(z), 0 <= t <= 1/2

and from these, with no branch, by

    atan t = pi/2 - atan 1/t
    asin t = pi/2 - 2 asin sqrt((1 - t)/2)
    acos t = pi/2 - asin t = 2 asin sqrt((1 - t)/2)
"""

from __future__ import annotations

import math

from armillary.kernel.builder import Value
from armillary.kernel.intrinsics.ieee import flip_sign, is_negative, sign_bit
from armillary.kernel.intrinsics.polynomial import paired

# Coefficients of A, then of S, from the lowest power of z on. A converges slowly at t =
# 1, where its terms are almost 1/k: 20 of them.
ATAN = {
    64: (
        -0.3333333333333307,
        0.19999999999951745,
        -0.1428571428258768,
        0.111111110073263,
        -0.09090907007465077,
        0.07692279884448398,
        -0.06666404382701564,
        0.058805295442563174,
        -0.0525352551864126,
        0.04722343806565819,
        -0.04219230994055568,
        0.03664289147292117,
        -0.02990530334726463,
        0.021986509882409418,
        -0.013902021013490707,
        0.007197474371981964,
        -0.0028853888655337046,
        0.0008314784270938987,
        -0.00015219287129157033,
        1.3228102978865999e-05,
    ),
    32: (
        -0.33333298563957214,
        0.1999852955341339,
        -0.14264042675495148,
        0.1095128133893013,
        -0.08401597291231155,
        0.05794646963477135,
        -0.03119359351694584,
        0.01094007957726717,
        -0.001803518389351666,
    ),
}
ASIN = {
    64: (
        0.16666666666666763,
        0.07499999999970129,
        0.04464285717525421,
        0.030381942676920442,
        0.022372215856825788,
        0.017351596428274947,
        0.013981006895703845,
        0.011397392161578155,
        0.010788745461676817,
        0.0036744308163572416,
        0.02178501982207152,
        -0.02110853649375441,
        0.032696913758446404,
    ),
    32: (
        0.16666659712791443,
        0.07500521093606949,
        0.04451363533735275,
        0.03183605521917343,
        0.01432918943464756,
        0.03767312318086624,
    ),
}
# pi/2 and what its rounding leaves.
HALF_PI = {
    64: (math.pi / 2, 6.123233995736766e-17),
    32: (1.5707963705062866, -4.3711390001862426e-08),
}


def atan(x: Value) -> Value:
    """Return the angle in [-pi/2, pi/2] [rad] whose tangent is x."""
    size = abs(x)
    is_steep = size > 1.0
    # t = min(|x|, 1/|x|), by one division.
    t = is_steep.select(1.0, size) / is_steep.select(size, 1.0)
    angle = _atan_of_ratio(t)
    # pi/2 - angle, with the low part of pi/2 taken from the angle first.
    high, low = HALF_PI[x.type.bits]
    rest = high - (angle - low)
    return is_steep.select(rest, angle).with_sign_of(x)


def atan2(y: Value, x: Value) -> Value:
    """Return the angle in [-pi, pi] [rad] of the direction (x, y), as C defines it."""
    across, up = abs(x), abs(y)
    is_steep = up > across
    small, large = is_steep.select(across, up), is_steep.select(up, across)
    # The quotients 0/0 and inf/inf stand for 0 and 1.
    same = large.equals(0.0).select(0.0, x.constant(1.0))
    t = small.equals(large).select(same, small / large)
    angle = _atan_of_ratio(t)
    # Up to three reflections: at the diagonal, at the y axis, at the x axis.
    high, low = HALF_PI[x.type.bits]
    is_back = is_negative(x)
    straight = is_back.select(2.0 * high, x.constant(0.0))
    base = is_steep.select(high, straight)
    is_flipped = is_steep ^ is_back
    angle = is_flipped.select(-angle, angle)
    # The base is 0, 1 or 2 times pi/2; what its rounding leaves is in proportion.
    angle = base + base.multiply_add(low / high, angle)
    return angle.with_sign_of(y)


def _atan_of_ratio(t: Value) -> Value:
    """Return the arc of a tangent 0 <= t <= 1."""
    z = t * t
    # Two steps of Horner's rule at the end halve the error of the pairs.
    first, second, *rest = ATAN[t.type.bits]
    tail = z.multiply_add(paired(z, rest), second)
    return (t * z).multiply_add(z.multiply_add(tail, first), t)


def asin(x: Value) -> Value:
    """Return the angle in [-pi/2, pi/2] [rad] whose sine is x; NaN for |x| > 1."""
    is_large, t, excess = _asin_of_reduced(x)
    # Beyond 1/2: pi/2 - 2 (t + excess), whose first difference loses little.
    high, low = HALF_PI[x.type.bits]
    rest = t.multiply_add(-2.0, high) + excess.multiply_add(-2.0, low)
    return is_large.select(rest, t + excess).with_sign_of(x)


def acos(x: Value) -> Value:
    """Return the angle in [0, pi] [rad] whose cosine is x; NaN for |x| > 1."""
    is_large, t, excess = _asin_of_reduced(x)
    high, low = HALF_PI[x.type.bits]
    # |x| > 1/2: twice the reduced arc for x > 0, pi less that for x < 0.
    # Else: pi/2 less the arc of x, which is the reduced arc with the sign of x.
    factor = is_large.select(2.0, x.constant(-1.0))
    signed = flip_sign(factor, sign_bit(x))
    straight = is_negative(x).select(2.0 * high, x.constant(0.0))
    base = is_large.select(straight, high)
    tail = signed.multiply_add(excess, base * (low / high))
    # The large parts in one step; what is small is added last.
    return signed.multiply_add(t, base) + tail


def _asin_of_reduced(x: Value) -> tuple[Value, Value, Value]:
    """Return whether |x| is large, t and asin t - t.

    t is |x|, or sqrt((1 - |x|)/2) where |x| > 1/2; so it is at most 1/2.
    """

    def make() -> tuple[Value, Value, Value]:
        size = abs(x)
        is_large = size > 0.5
        # z = t^2 in both cases, and exact for the large ones, where 1 - |x| is.
        z = is_large.select(size.multiply_add(-0.5, 0.5), x * x)
        t = is_large.select(z.sqrt(), size)
        return is_large, t, t * z * paired(z, ASIN[x.type.bits])

    return x.function.once(("asin", x.text), make)
