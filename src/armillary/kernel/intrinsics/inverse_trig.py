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

from armillary.kernel.intrinsics.ieee import flip_sign, is_negative, sign_bit
from armillary.kernel.intrinsics.polynomial import paired
from armillary.kernel.vector_builder import Value, VectorBuilder

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


def atan(b: VectorBuilder, x: Value) -> Value:
    """Return the angle in [-pi/2, pi/2] [rad] whose tangent is x."""
    one, size = b.real(1.0), b.call("fabs", x)
    steep = b.fcmp("ogt", size, one)
    t = b.fdiv(b.select(steep, one, size), b.select(steep, size, one))
    angle = _atan_of_ratio(b, t)
    high, low = (b.real(part) for part in HALF_PI[b.shape.bits])
    rest = b.fsub(high, b.fsub(angle, low))
    return b.call("copysign", b.select(steep, rest, angle), x)


def atan2(b: VectorBuilder, y: Value, x: Value) -> Value:
    """Return the angle in [-pi, pi] [rad] of the direction (x, y), as C defines it."""
    zero, one = b.real(0.0), b.real(1.0)
    across, up = b.call("fabs", x), b.call("fabs", y)
    steep = b.fcmp("ogt", up, across)
    small, large = b.select(steep, across, up), b.select(steep, up, across)
    # The quotients 0/0 and inf/inf stand for 0 and 1.
    same = b.select(b.fcmp("oeq", large, zero), zero, one)
    t = b.select(b.fcmp("oeq", small, large), same, b.fdiv(small, large))
    angle = _atan_of_ratio(b, t)
    # Up to three reflections: at the diagonal, at the y axis, at the x axis.
    high, low = HALF_PI[b.shape.bits]
    back = is_negative(b, x)
    straight = b.select(back, b.real(2.0 * high), zero)
    base = b.select(steep, b.real(high), straight)
    flipped = b.truths("xor", steep, back)
    angle = b.select(flipped, b.fneg(angle), angle)
    angle = b.fadd(base, b.fma(base, b.real(low / high), angle))
    return b.call("copysign", angle, y)


def _atan_of_ratio(b: VectorBuilder, t: Value) -> Value:
    z = b.fmul(t, t)
    # Two steps of Horner's rule at the end halve the error of the pairs.
    first, second, *rest = ATAN[b.shape.bits]
    tail = b.fma(z, paired(b, z, rest), b.real(second))
    return b.fma(b.fmul(t, z), b.fma(z, tail, b.real(first)), t)


def asin(b: VectorBuilder, x: Value) -> Value:
    """Return the angle in [-pi/2, pi/2] [rad] whose sine is x; NaN for |x| > 1."""
    large = b.fcmp("ogt", b.call("fabs", x), b.real(0.5))
    root, excess = _asin_of_reduced(b, x, large)
    rest = _right_angle_less_twice(b, root, excess)
    return b.call("copysign", b.select(large, rest, b.fadd(root, excess)), x)


def acos(b: VectorBuilder, x: Value) -> Value:
    """Return the angle in [0, pi] [rad] whose cosine is x; NaN for |x| > 1."""
    large = b.fcmp("ogt", b.call("fabs", x), b.real(0.5))
    root, excess = _asin_of_reduced(b, x, large)
    high, low = HALF_PI[b.shape.bits]
    # |x| > 1/2: twice the reduced arc for x > 0, pi less that for x < 0.
    # Else: pi/2 less the arc of x, which is the reduced arc with the sign of x.
    sign = sign_bit(b, x)
    factor = b.select(large, b.real(2.0), b.real(-1.0))
    turned = flip_sign(b, factor, sign)
    straight = b.select(is_negative(b, x), b.real(2.0 * high), b.real(0.0))
    base = b.select(large, straight, b.real(high))
    tail = b.fma(turned, excess, b.fmul(base, b.real(low / high)))
    head = b.fma(turned, root, base)
    return b.fadd(head, tail)


def _asin_of_reduced(b: VectorBuilder, x: Value, large: Value) -> tuple[Value, Value]:
    """Return t and asin t - t for t = |x|, or sqrt((1 - |x|)/2) where it is large."""
    known = b.shared.get(("asin", x))
    if known is None:
        size, half = b.call("fabs", x), b.real(0.5)
        z = b.select(large, b.fma(size, b.real(-0.5), half), b.fmul(x, x))
        t = b.select(large, b.call("sqrt", z), size)
        excess = b.fmul(b.fmul(t, z), paired(b, z, ASIN[b.shape.bits]))
        known = b.shared["asin", x] = t, excess
    return known


def _right_angle_less_twice(b: VectorBuilder, root: Value, excess: Value) -> Value:
    """Return pi/2 - 2 (root + excess), whose first difference loses little."""
    high, low = (b.real(part) for part in HALF_PI[b.shape.bits])
    minus_two = b.real(-2.0)
    return b.fadd(b.fma(root, minus_two, high), b.fma(excess, minus_two, low))
