"""Rotations as three rows: about axes, from and to rotation vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from armillary.spatial.quaternion import (
    Quaternion,
    quaternion_from_rows,
    rows_from_unit_quaternion,
)
from armillary.spatial.vector import (
    Number,
    Rows,
    Vector3,
    determinant,
    dot,
    largest,
    rows,
    scale,
    sine_cosine,
    snap_rows,
    unit,
)
from armillary.trace.functions import atan2, cos, select, sin, sqrt

SMALL_SINE_SQUARE: Final = 1e-3

# asin(s) / s in powers of s^2.
_ARC_SINE_RATIO: Final = (
    1.0,
    1.0 / 6.0,
    3.0 / 40.0,
    15.0 / 336.0,
    105.0 / 3456.0,
    945.0 / 42240.0,
)

# stumpff's functions: the coefficients of every exponential, smooth at angle zero
#
# c_n(x) = sum_k (-x)^k / (2k + n)! c_0 = cos t, c_1 = sin t / t, c_2 = (1 - cos t) /
# t^2, c_3 = (t - sin t) / t^3
#
# with x = t^2. Near zero the series is used, elsewhere the closed form; the argument of
# the one that is not chosen is replaced, so that derivatives of any order stay finite.

SMALL: Final = 0.25
TERMS: Final = 9

_SERIES: Final = [
    [(-1.0) ** k / math.factorial(2 * k + n) for k in range(TERMS)] for n in range(4)
]
# Bernoulli numbers: (1 - (t/2) cot(t/2)) / t^2 = sum_k |B_2k| / (2k)! x^(k - 1).
_INVERSE_SERIES: Final = [
    1.0 / 12.0,
    1.0 / 720.0,
    1.0 / 30240.0,
    1.0 / 1209600.0,
    1.0 / 47900160.0,
    691.0 / 1307674368000.0,
    1.0 / 74724249600.0,
    3617.0 / 10670622842880000.0,
]


def c0(x: Number) -> Number:
    """Return cos t of x = t^2."""
    return _near_or_far(x, _SERIES[0], lambda y: cos(sqrt(y)))


def c1(x: Number) -> Number:
    """Return sin(t) / t of x = t^2."""
    return _near_or_far(x, _SERIES[1], _sine_ratio)


def c2(x: Number) -> Number:
    """Return (1 - cos t) / t^2 of x = t^2, free of cancellation."""
    half = c1(0.25 * x)
    return 0.5 * (half * half)


def c3(x: Number) -> Number:
    """Return (t - sin t) / t^3 of x = t^2."""
    return _near_or_far(x, _SERIES[3], lambda y: (1.0 - _sine_ratio(y)) / y)


def inverse_coefficient(x: Number) -> Number:
    """Return (1 - (t/2) cot(t/2)) / t^2 of x = t^2, for t within (-2 pi, 2 pi)."""
    return _near_or_far(x, _INVERSE_SERIES, _inverse_far)


def _inverse_far(y: Number) -> Number:
    half = 0.5 * sqrt(y)
    return (1.0 - half * cos(half) / sin(half)) / y


def _sine_ratio(y: Number) -> Number:
    t = sqrt(y)
    return sin(t) / t


def _near_or_far(
    x: Number, series: Sequence[float], far: Callable[[Number], Number]
) -> Number:
    is_near = x < SMALL
    near = select(is_near, x, 0.0)
    total: Number = 0.0
    for coefficient in reversed(series):
        total = total * near + coefficient
    return select(is_near, total, far(select(is_near, 1.0, x)))


# rotations as three rows: about axes, from and to rotation vectors


def about_x(angle: Number) -> Rows:
    """Return the rotation by `angle` [rad] about the x axis."""
    s, c = sine_cosine(angle)
    return (1.0, 0.0, 0.0), (0.0, c, 0.0 - s), (0.0, s, c)


def about_y(angle: Number) -> Rows:
    """Return the rotation by `angle` [rad] about the y axis."""
    s, c = sine_cosine(angle)
    return (c, 0.0, s), (0.0, 1.0, 0.0), (0.0 - s, 0.0, c)


def about_z(angle: Number) -> Rows:
    """Return the rotation by `angle` [rad] about the z axis."""
    s, c = sine_cosine(angle)
    return (c, 0.0 - s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)


def about_axis(axis: Vector3, angle: Number) -> Rows:
    """Return the rotation by `angle` [rad] about `axis`, of any length but zero.

    R = a a' + c (1 - a a') + s [a], where the diagonal of 1 - a a' is written as
    squares of the other two entries: about a coordinate axis nothing has to cancel.

    Raises:
        ModelError: `axis` is zero or not finite.
    """
    x, y, z = unit(axis)
    s, c = sine_cosine(angle)
    v = 1.0 - c
    xx, yy, zz = x * x, y * y, z * z
    xy, xz, yz = x * y * v, x * z * v, y * z * v
    return snap_rows(
        (
            (xx + c * (yy + zz), xy - z * s, xz + y * s),
            (xy + z * s, yy + c * (xx + zz), yz - x * s),
            (xz - y * s, yz + x * s, zz + c * (xx + yy)),
        )
    )


def exp(rotation_vector: Vector3) -> Rows:
    """Return the rotation by |v| [rad] about v."""
    return rows_from_unit_quaternion(quaternion_exp(rotation_vector))


def log(m: Rows) -> Vector3:
    """Return the rotation vector of `m` [rad], of length at most pi."""
    return quaternion_log(quaternion_from_rows(m))


def quaternion_exp(rotation_vector: Vector3) -> Quaternion:
    """Return the unit quaternion (cos t/2, sin t/2 v/t) with t = |v| [rad]."""
    quarter = 0.25 * dot(rotation_vector, rotation_vector)
    x, y, z = scale(0.5 * c1(quarter), rotation_vector)
    return c0(quarter), x, y, z


def quaternion_log(q: Quaternion) -> Vector3:
    """Return the rotation vector [rad] of a unit quaternion with w >= 0."""
    v = q[1:]
    sine_square = dot(v, v)
    is_small = sine_square < SMALL_SINE_SQUARE
    near = select(is_small, sine_square, 0.0)
    series: Number = 0.0
    for coefficient in reversed(_ARC_SINE_RATIO):
        series = series * near + coefficient
    sine = sqrt(select(is_small, 1.0, sine_square))
    ratio = select(is_small, series, atan2(sine, q[0]) / sine)
    return scale(2.0 * ratio, v)


def orthonormality_error(m: Rows) -> Number:
    """Return the largest entry of |m m' - 1|."""
    x, y, z = m
    squares = dot(x, x) - 1.0, dot(y, y) - 1.0, dot(z, z) - 1.0
    return largest((*squares, dot(x, y), dot(x, z), dot(y, z)))


def is_proper(m: Rows) -> bool:
    """Return whether `m` keeps right-handed what is right-handed."""
    return determinant(m) > 0.0


def nearest_rotation(m: Rows) -> Rows:
    """Return the rotation nearest to the floats `m`, `m` itself where it is one.

    By the singular value decomposition m = u s v, of which it is u v.
    """
    if orthonormality_error(m) <= 1e-15 and is_proper(m):
        return m
    u, _, v = np.linalg.svd(np.array(m, dtype=np.float64))
    return snap_rows(rows(u @ v))
