"""Twists and wrenches: six numbers, the linear three first.

A twist (v, w) is the velocity of a body: v of the point that is at the frame's origin,
w its angular velocity. A wrench (f, m) is a force and its moment about that point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from armillary.errors import ShapeError
from armillary.spatial import rotation as rot
from armillary.spatial.pose import Pose
from armillary.spatial.rotation import c2, c3, inverse_coefficient
from armillary.spatial.vector import (
    ZERO,
    Number,
    Rows,
    Vector3,
    add,
    apply,
    cross,
    dot,
    multiply,
    number,
    scale,
    skew,
    subtract,
    transpose,
)

Vector6: TypeAlias = tuple[Number, Number, Number, Number, Number, Number]
"""Six numbers, linear first."""

ZERO6: Final[Vector6] = (*ZERO, *ZERO)

Rows6: TypeAlias = tuple[Vector6, Vector6, Vector6, Vector6, Vector6, Vector6]
"""A 6x6 matrix, row by row."""


def vector6(values: Any) -> Vector6:
    """Return six numbers as a tuple; `values` has shape (6,).

    Raises:
        ShapeError: They are not six numbers.
    """
    array = np.asarray(values, dtype=object)
    if array.shape != (6,):
        raise ShapeError(f"A twist or wrench has shape (6,), not {array.shape}.")
    a, b, c, d, e, f = map(number, array)
    return a, b, c, d, e, f


def six(values: Sequence[Number]) -> Vector6:
    """Return a sequence of six as a tuple."""
    a, b, c, d, e, f = values
    return a, b, c, d, e, f


def halves(six: Vector6) -> tuple[Vector3, Vector3]:
    """Return the linear and the angular three."""
    return six[:3], six[3:]


def transform_twist(X_AB: Pose, V_B: Vector6) -> Vector6:
    """Return a twist given in B, of the point at B's origin, in A, at A's origin.

    (R v + p x R w, R w): the same motion of the same body.
    """
    v, w = halves(turn(X_AB.rotation, V_B))
    return (*add(v, cross(X_AB.position, w)), *w)


def transform_wrench(X_AB: Pose, F_B: Vector6) -> Vector6:
    """Return a wrench given in B, about B's origin, in A: (R f, R m + p x R f)."""
    f, m = halves(turn(X_AB.rotation, F_B))
    return (*f, *add(m, cross(X_AB.position, f)))


def inverse_transform_twist(X_AB: Pose, V_A: Vector6) -> Vector6:
    """Return a twist given in A, at A's origin, in B: (R' (v + w x p), R' w)."""
    return turn(transpose(X_AB.rotation), move_twist(V_A, X_AB.position))


def inverse_transform_wrench(X_AB: Pose, F_A: Vector6) -> Vector6:
    """Return a wrench given in A, about A's origin, in B: (R' f, R' (m - p x f))."""
    f, m = halves(F_A)
    at_B = subtract(m, cross(X_AB.position, f))
    return turn(transpose(X_AB.rotation), (*f, *at_B))


def turn(R_AB: Rows, six_B: Vector6) -> Vector6:
    """Return a twist or wrench in the axes of A, at the same point."""
    linear, angular = halves(six_B)
    return (*apply(R_AB, linear), *apply(R_AB, angular))


def move_twist(V: Vector6, offset: Vector3) -> Vector6:
    """Return the twist of the point that is `offset` [m] away: (v + w x o, w)."""
    v, w = halves(V)
    return (*add(v, cross(w, offset)), *w)


def cross_twist(V: Vector6, W: Vector6) -> Vector6:
    """Return V x W, the rate of the twist W that moves with V: (w x x + v x y, w x y).

    Here V = (v, w) and W = (x, y).
    """
    v, w = halves(V)
    x, y = halves(W)
    return (*add(cross(w, x), cross(v, y)), *cross(w, y))


def cross_wrench(V: Vector6, F: Vector6) -> Vector6:
    """Return V x* F, the rate of the wrench F that moves with V.

    (w x f, v x f + w x m) with V = (v, w), F = (f, m). It is minus the transpose of
    `cross_twist`: (V x W) . F = -W . (V x* F).
    """
    v, w = halves(V)
    f, m = halves(F)
    return (*cross(w, f), *add(cross(v, f), cross(w, m)))


def adjoint(X_AB: Pose) -> Rows6:
    """Return the matrix of `transform_twist`, [R, [p]R; 0, R]."""
    moved = multiply(skew(X_AB.position), X_AB.rotation)
    upper = zip(X_AB.rotation, moved, strict=True)
    a, b, c = ((*row, *other) for row, other in upper)
    d, e, f = ((*ZERO, *row) for row in X_AB.rotation)
    return a, b, c, d, e, f


def coadjoint(X_AB: Pose) -> Rows6:
    """Return the matrix of `transform_wrench`, [R, 0; [p]R, R]."""
    moved = multiply(skew(X_AB.position), X_AB.rotation)
    a, b, c = ((*row, *ZERO) for row in X_AB.rotation)
    lower = zip(moved, X_AB.rotation, strict=True)
    d, e, f = ((*row, *other) for row, other in lower)
    return a, b, c, d, e, f


def add6(a: Vector6, b: Vector6) -> Vector6:
    """Return a + b."""
    return (*add(a[:3], b[:3]), *add(a[3:], b[3:]))


def scale6(factor: Number, a: Vector6) -> Vector6:
    """Return factor a."""
    return (*scale(factor, a[:3]), *scale(factor, a[3:]))


def power(V: Vector6, F: Vector6) -> Number:
    """Return v . f + w . m [W]."""
    return dot(V[:3], F[:3]) + dot(V[3:], F[3:])


def exp(V: Vector6) -> Pose:
    """Return the pose that a body reaches in unit time with the constant twist V.

    p = v + c_2 w x v + c_3 w x (w x v), with Stumpff's functions of w . w.
    """
    v, w = halves(V)
    square = dot(w, w)
    once = cross(w, v)
    twice = cross(w, once)
    position = add(v, add(scale(c2(square), once), scale(c3(square), twice)))
    return Pose(rot.exp(w), position)


def log(X: Pose) -> Vector6:
    """Return the twist V with exp(V) = X and the least angle, at most pi [rad]."""
    return screw(rot.log(X.rotation), X.position)


def screw(rotation_vector: Vector3, position: Vector3) -> Vector6:
    """Return the twist (v, w) whose `exp` has that rotation w and that origin.

    v = p - w x p / 2 + b w x (w x p) with b = (1 - (t/2) cot(t/2)) / t^2, t = |w|.
    """
    w = rotation_vector
    once = cross(w, position)
    twice = scale(inverse_coefficient(dot(w, w)), cross(w, once))
    return (*add(subtract(position, scale(0.5, once)), twice), *w)
