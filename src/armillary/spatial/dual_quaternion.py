"""Dual quaternions (rw, rx, ry, rz, dw, dx, dy, dz): a pose in eight numbers.

The real part r is the rotation, the dual part d = t r / 2 with the position t as a
quaternion (0, x, y, z). A dual quaternion and its negative are the same pose.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from armillary.errors import ShapeError
from armillary.spatial import quaternion as quat
from armillary.spatial import rotation as rot
from armillary.spatial import twist
from armillary.spatial.pose import Pose
from armillary.spatial.quaternion import Quaternion
from armillary.spatial.twist import Vector6
from armillary.spatial.vector import Number, number
from armillary.trace.functions import select

DualQuaternion: TypeAlias = tuple[
    Number, Number, Number, Number, Number, Number, Number, Number
]
"""Eight numbers, the real part first."""


def dual_quaternion(values: Any) -> DualQuaternion:
    """Return eight numbers as a tuple; `values` has shape (8,).

    Raises:
        ShapeError: They are not eight numbers.
    """
    array = np.asarray(values, dtype=object)
    if array.shape != (8,):
        raise ShapeError(f"A dual quaternion has shape (8,), not {array.shape}.")
    a, b, c, d, e, f, g, h = map(number, array)
    return a, b, c, d, e, f, g, h


def parts(dual: DualQuaternion) -> tuple[Quaternion, Quaternion]:
    """Return the real and the dual part."""
    return dual[:4], dual[4:]


def from_pose(X: Pose) -> DualQuaternion:
    """Return the unit dual quaternion of a pose, with rw >= 0."""
    real = X.quaternion()
    x, y, z = X.position
    return (*real, *quat.product((0.0, 0.5 * x, 0.5 * y, 0.5 * z), real))


def to_pose(dual: DualQuaternion) -> Pose:
    """Return the pose of a dual quaternion of any length: t = 2 d r* / |r|^2.

    Raises:
        ModelError: The real part is zero or not finite.
    """
    r, d = parts(dual)
    X = Pose.from_quaternion(r)
    _, x, y, z = quat.product(d, quat.conjugate(r))
    factor = 2.0 / quat.inner(r, r)
    return Pose(X.rotation, (factor * x, factor * y, factor * z))


def product(a: DualQuaternion, b: DualQuaternion) -> DualQuaternion:
    """Return a b, the pose X_AC of X_AB and X_BC: (r r, r d + d r)."""
    (ar, ad), (br, bd) = parts(a), parts(b)
    one, other = quat.product(ar, bd), quat.product(ad, br)
    w, x, y, z = (p + q for p, q in zip(one, other, strict=True))
    return (*quat.product(ar, br), w, x, y, z)


def conjugate(dual: DualQuaternion) -> DualQuaternion:
    """Return both parts conjugated, the inverse of a unit dual quaternion."""
    r, d = parts(dual)
    return (*quat.conjugate(r), *quat.conjugate(d))


def normalised(dual: DualQuaternion) -> DualQuaternion:
    """Return the unit dual quaternion of the same pose: |r| = 1, r . d = 0.

    Raises:
        ModelError: The real part is zero or not finite.
    """
    r, d = parts(dual)
    unit = quat.normalised(r)
    length = quat.inner(unit, r)
    along = quat.inner(unit, d)
    w, x, y, z = ((p - along * q) / length for p, q in zip(d, unit, strict=True))
    return (*unit, w, x, y, z)


def exp(V: Vector6) -> DualQuaternion:
    """Return the unit dual quaternion of the pose reached with the twist V."""
    return from_pose(twist.exp(V))


def log(dual: DualQuaternion) -> Vector6:
    """Return the twist that leads to a unit dual quaternion by the shorter way.

    With r = (cos t/2, sin t/2 l) the rotation vector is t l, t at most pi; the twist
    is that of the screw with it and the translation 2 d r*. Both signs of `dual` give
    the same.
    """
    r, d = parts(dual)
    sign = select(r[0] < 0.0, -1.0, 1.0)
    w, x, y, z = r
    rotation = rot.quaternion_log((sign * w, sign * x, sign * y, sign * z))
    _, x, y, z = quat.product(d, quat.conjugate(r))
    return twist.screw(rotation, (2.0 * x, 2.0 * y, 2.0 * z))


def screw_between(a: DualQuaternion, b: DualQuaternion) -> Vector6:
    """Return the twist that moves unit `a` to unit `b` in unit time, log(a* b).

    It is written in the axes of `a`. Whatever signs `a` and `b` have, it is the screw
    displacement with an angle of at most pi.
    """
    return log(product(conjugate(a), b))


def difference(a: DualQuaternion, b: DualQuaternion) -> DualQuaternion:
    """Return a - b or a + b, where `b` has the sign that is nearer to `a`.

    It is zero for equal poses, whichever of their two signs they came with.
    """
    sign = select(quat.inner(a[:4], b[:4]) < 0.0, -1.0, 1.0)
    p, q, r, s, t, u, v, w = (x - sign * y for x, y in zip(a, b, strict=True))
    return p, q, r, s, t, u, v, w
