"""Quaternions w, x, y, z, and the rotations they stand for."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np

from armillary.errors import ModelError, ShapeError
from armillary.spatial.vector import (
    Number,
    Rows,
    Vector3,
    add,
    cross,
    dot,
    number,
    scale,
)
from armillary.trace import Traced
from armillary.trace.functions import select, sqrt

Quaternion: TypeAlias = tuple[Number, Number, Number, Number]
"""Four numbers, w first."""

SMALLEST_SQUARE: Final = 1e-300
ONE: Final[Quaternion] = (1.0, 0.0, 0.0, 0.0)


def quaternion(values: Any) -> Quaternion:
    """Return four numbers as a tuple; `values` has shape (4,).

    Raises:
        ShapeError: They are not four numbers.
    """
    array = np.asarray(values, dtype=object)
    if array.shape != (4,):
        raise ShapeError(f"A quaternion has shape (4,), not {array.shape}.")
    w, x, y, z = array
    return number(w), number(x), number(y), number(z)


def product(a: Quaternion, b: Quaternion) -> Quaternion:
    """Return a b, the rotation that does `b` first."""
    u, v = a[1:], b[1:]
    x, y, z = add(add(scale(a[0], v), scale(b[0], u)), cross(u, v))
    return a[0] * b[0] - dot(u, v), x, y, z


def conjugate(q: Quaternion) -> Quaternion:
    """Return w, -x, -y, -z, the inverse of a unit quaternion."""
    return q[0], 0.0 - q[1], 0.0 - q[2], 0.0 - q[3]


def rotate(q: Quaternion, a: Vector3) -> Vector3:
    """Return the vector `a` rotated by the unit quaternion `q`."""
    u = q[1:]
    twice = scale(2.0, cross(u, a))
    return add(a, add(scale(q[0], twice), cross(u, twice)))


def inner(a: Quaternion, b: Quaternion) -> Number:
    """Return the sum of the products of like entries."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]


def normalised(q: Quaternion) -> Quaternion:
    """Return q / |q|; a traced `q` must not become zero.

    Raises:
        ModelError: `q` is zero or not finite.
    """
    length = sqrt(_square(q))
    return q[0] / length, q[1] / length, q[2] / length, q[3] / length


def with_positive_w(q: Quaternion) -> Quaternion:
    """Return the one of `q` and -q, which are the same rotation, that has w >= 0."""
    sign = select(q[0] < 0.0, -1.0, 1.0)
    return sign * q[0], sign * q[1], sign * q[2], sign * q[3]


def rows_from_quaternion(q: Quaternion) -> Rows:
    """Return the rotation of `q`, whatever its length.

    Raises:
        ModelError: `q` is zero or not finite.
    """
    return _rows(q, 2.0 / _square(q))


def rows_from_unit_quaternion(q: Quaternion) -> Rows:
    """Return the rotation of `q`, which has length 1."""
    return _rows(q, 2.0)


def quaternion_from_rows(m: Rows) -> Quaternion:
    """Return the unit quaternion of a rotation, with w >= 0.

    The trace and the diagonal give 4w^2, 4x^2, 4y^2 and 4z^2; the largest of them is
    at least 1 and safe to divide by (Shepperd, 1978).
    """
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = m
    four_squares = (
        1.0 + xx + yy + zz,
        1.0 + xx - yy - zz,
        1.0 - xx + yy - zz,
        1.0 - xx - yy + zz,
    )
    wx, wy, wz = zy - yz, xz - zx, yx - xy
    xy, xz, yz = xy + yx, xz + zx, yz + zy
    products = (
        (four_squares[0], wx, wy, wz),
        (wx, four_squares[1], xy, xz),
        (wy, xy, four_squares[2], yz),
        (wz, xz, yz, four_squares[3]),
    )
    best, chosen = four_squares[0], products[0]
    for square, candidate in zip(four_squares[1:], products[1:], strict=True):
        is_better = best < square
        best = select(is_better, square, best)
        chosen = (
            select(is_better, candidate[0], chosen[0]),
            select(is_better, candidate[1], chosen[1]),
            select(is_better, candidate[2], chosen[2]),
            select(is_better, candidate[3], chosen[3]),
        )
    half = 0.5 / sqrt(best)
    w, x, y, z = chosen
    return with_positive_w((half * w, half * x, half * y, half * z))


def _square(q: Quaternion) -> Number:
    square = inner(q, q)
    if not isinstance(square, Traced) and not SMALLEST_SQUARE <= square < np.inf:
        raise ModelError(
            f"The quaternion {q} stands for no rotation: it is zero or not finite."
        )
    return square


def _rows(q: Quaternion, s: Number) -> Rows:
    w, x, y, z = q
    wx, wy, wz = s * (w * x), s * (w * y), s * (w * z)
    xx, yy, zz = s * (x * x), s * (y * y), s * (z * z)
    xy, xz, yz = s * (x * y), s * (x * z), s * (y * z)
    return (
        (1.0 - (yy + zz), xy - wz, xz + wy),
        (xy + wz, 1.0 - (xx + zz), yz - wx),
        (xz - wy, yz + wx, 1.0 - (xx + yy)),
    )
