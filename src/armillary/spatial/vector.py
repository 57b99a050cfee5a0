"""Vectors of three numbers and matrices of three rows, on floats or traced scalars.

Constants are Python floats, so that the tracer folds their zeros and ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from armillary.errors import ModelError, ShapeError
from armillary.trace import Traced
from armillary.trace.functions import absolute, cos, hypot, maximum, sin, sqrt

Number: TypeAlias = Any
"""A float or a traced scalar."""

Vector: TypeAlias = Sequence[Number]
"""Numbers in a row, of any count."""

Matrix: TypeAlias = Sequence[Sequence[Number]]
"""Rows of numbers, all of one length."""

Vector3: TypeAlias = tuple[Number, Number, Number]
"""Three numbers."""

Rows: TypeAlias = tuple[Vector3, Vector3, Vector3]
"""A 3x3 matrix, row by row."""

ZERO: Final[Vector3] = (0.0, 0.0, 0.0)
EYE: Final[Rows] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
SNAP_DISTANCE: Final = 1e-15
DIMENSIONS: Final = 3


def number(value: Any) -> Number:
    """Return a traced scalar as it is, anything else as a float.

    Raises:
        ShapeError: It is not a number.
    """
    if type(value) is float or isinstance(value, Traced):
        return value
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise ShapeError(f"A number was expected, not {value!r}.") from error


def are_floats(values: Iterable[Number]) -> bool:
    """Return whether none of `values` is traced."""
    kinds = {*map(type, values)}
    return kinds == {float} or not any(issubclass(kind, Traced) for kind in kinds)


def vector(values: Any) -> Vector3:
    """Return three numbers as a tuple; `values` has shape (3,).

    Raises:
        ShapeError: They are not three numbers.
    """
    if _is_plain(values):
        return values
    array = np.asarray(values, dtype=object)
    if array.shape != (3,):
        raise ShapeError(f"A vector has shape (3,), not {array.shape}.")
    return number(array[0]), number(array[1]), number(array[2])


def _is_plain(values: Any) -> bool:
    """Return whether something is a vector of floats, as vectors are stored."""
    if values.__class__ is not tuple or len(values) != DIMENSIONS:
        return False
    x, y, z = values
    return type(x) is type(y) is type(z) is float


def three(values: Sequence[Number]) -> Vector3:
    """Return a sequence of three numbers, not checked, as a tuple."""
    x, y, z = values
    return x, y, z


def without_negative_zeros(a: Vector3) -> Vector3:
    """Return `a` with 0.0 for -0.0."""
    return a[0] + 0.0, a[1] + 0.0, a[2] + 0.0


def rows(values: Any) -> Rows:
    """Return a matrix as a tuple of rows; `values` has shape (3, 3).

    Raises:
        ShapeError: They are not three rows of three numbers.
    """
    is_tuple = values.__class__ is tuple and len(values) == DIMENSIONS
    if is_tuple and all(map(_is_plain, values)):
        return values
    try:
        array = np.asarray(values, dtype=object)
    except ValueError as error:
        raise ShapeError("A rotation has three rows of three numbers.") from error
    if array.shape != (3, 3):
        raise ShapeError(f"A rotation has shape (3, 3), not {array.shape}.")
    return vector(array[0]), vector(array[1]), vector(array[2])


def add(a: Vector3, b: Vector3) -> Vector3:
    """Return a + b."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def subtract(a: Vector3, b: Vector3) -> Vector3:
    """Return a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def negate(a: Vector3) -> Vector3:
    """Return -a, without making negative zeros."""
    return 0.0 - a[0], 0.0 - a[1], 0.0 - a[2]


def scale(factor: Number, a: Vector3) -> Vector3:
    """Return factor a."""
    return factor * a[0], factor * a[1], factor * a[2]


def dot(a: Vector3, b: Vector3) -> Number:
    """Return a . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Vector3, b: Vector3) -> Vector3:
    """Return a x b."""
    return (
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


def norm(a: Vector3) -> Number:
    """Return the length of `a`; it has no derivative at zero."""
    return sqrt(dot(a, a))


def unit(a: Vector3) -> Vector3:
    """Return a / |a|, for lengths of any size; a traced `a` must not become zero.

    Raises:
        ModelError: `a` is zero or not finite.
    """
    if not are_floats(a):  # hypot of hypot has no derivative along z
        return scale(1.0 / norm(a), a)
    length = hypot(hypot(a[0], a[1]), a[2])
    if not 0.0 < length < np.inf:
        raise ModelError(f"The direction {a} is zero or not finite.")
    if abs(length - 1.0) <= SNAP_DISTANCE:  # rounding: keep the entries
        return a
    return a[0] / length, a[1] / length, a[2] / length


def transpose(m: Rows) -> Rows:
    """Return the transpose of `m`, the inverse of a rotation."""
    x, y, z = m
    return (x[0], y[0], z[0]), (x[1], y[1], z[1]), (x[2], y[2], z[2])


def apply(m: Rows, a: Vector3) -> Vector3:
    """Return m a."""
    (b, c, d), (e, f, g), (h, i, j) = m
    x, y, z = a
    return b * x + c * y + d * z, e * x + f * y + g * z, h * x + i * y + j * z


def multiply(m: Rows, n: Rows) -> Rows:
    """Return m n."""
    (a, b, c), (d, e, f), (g, h, i) = m
    (x, y, z), (p, q, r), (s, t, u) = n
    return (
        (a * x + b * p + c * s, a * y + b * q + c * t, a * z + b * r + c * u),
        (d * x + e * p + f * s, d * y + e * q + f * t, d * z + e * r + f * u),
        (g * x + h * p + i * s, g * y + h * q + i * t, g * z + h * r + i * u),
    )


def add_rows(m: Rows, n: Rows) -> Rows:
    """Return m + n."""
    return add(m[0], n[0]), add(m[1], n[1]), add(m[2], n[2])


def subtract_rows(m: Rows, n: Rows) -> Rows:
    """Return m - n."""
    return subtract(m[0], n[0]), subtract(m[1], n[1]), subtract(m[2], n[2])


def skew(a: Vector3) -> Rows:
    """Return [a], the matrix with [a] b = a x b."""
    x, y, z = a
    return (0.0, 0.0 - z, y), (z, 0.0, 0.0 - x), (0.0 - y, x, 0.0)


def determinant(m: Rows) -> Number:
    """Return the determinant of `m`."""
    return dot(m[0], cross(m[1], m[2]))


def largest(values: Iterable[Number]) -> Number:
    """Return the largest absolute value, NaN where one is NaN, 0 of nothing."""
    listed: list[Any] = list(values)
    if all(type(value) is float for value in listed):  # the same, many times faster
        sizes: list[float] = [abs(value) for value in listed]
        return math.nan if any(map(math.isnan, sizes)) else max(sizes, default=0.0)
    result: Number = 0.0
    for value in listed:
        result = maximum(result, absolute(value))
    return result


def snap(x: Number) -> Number:
    """Return 0, 1 or -1 where the float `x` lies within 1e-15 of it, else `x`.

    Right angles have no exact float: cos(pi / 2) is 6e-17. Left in a model, such
    numbers keep the tracer from removing the products that they stand in. A traced
    scalar is returned as it is.
    """
    if type(x) is not float and isinstance(x, Traced):
        return x
    size = abs(x)
    if size <= SNAP_DISTANCE:
        return 0.0
    if abs(size - 1.0) <= SNAP_DISTANCE:
        return 1.0 if x > 0.0 else -1.0
    return x


def snap_rows(m: Rows) -> Rows:
    """Return `m` with each of its floats snapped."""
    x, y, z = m
    return (
        (snap(x[0]), snap(x[1]), snap(x[2])),
        (snap(y[0]), snap(y[1]), snap(y[2])),
        (snap(z[0]), snap(z[1]), snap(z[2])),
    )


def sine_cosine(angle: Number) -> tuple[Number, Number]:
    """Return sine and cosine of `angle` [rad], exact at right angles of floats."""
    if type(angle) is float and math.isfinite(angle):
        return snap(math.sin(angle)), snap(math.cos(angle))
    return snap(sin(angle)), snap(cos(angle))
