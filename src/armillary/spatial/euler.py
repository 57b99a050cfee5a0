"""Rotations from three angles, in the orders that files use, and back.

*Moving* axes turn with the body, so that the first angle's rotation comes first in the
product; *fixed* axes stay. All angles are in radians.

    fixed_xyz(roll, pitch, yaw)  Rz(yaw) Ry(pitch) Rx(roll)   URDF's rpy
    moving_zyx(z, y, x)          Rz(z) Ry(y) Rx(x)            RobWork's RPY
    moving_xyz(x, y, z)          Rx(x) Ry(y) Rz(z)            Isaac's roll, pitch, yaw

Where the first and the last axis fall together, only a sum or difference of their
angles is known; each function says which of them is then 0. The rotation always comes
back, however near that spot is.
"""

from __future__ import annotations

from typing import Final

from armillary.spatial.rotation import about_x, about_y, about_z
from armillary.spatial.vector import (
    Number,
    Rows,
    Vector3,
    multiply,
    negate,
    sine_cosine,
    snap_rows,
    transpose,
)
from armillary.trace.functions import atan2, select, sqrt

LOCKED: Final = 1e-14


def rows_from_moving_zyx(z: Number, y: Number, x: Number) -> Rows:
    """Return Rz(z) Ry(y) Rx(x)."""
    (sz, cz), (sy, cy), (sx, cx) = sine_cosine(z), sine_cosine(y), sine_cosine(x)
    # Rz Ry = (cz cy, -sz, cz sy; sz cy, cz, sz sy; -sy, 0, cy), and that times Rx,
    # without the products with 0 and 1.
    a, b = cz * sy, sz * sy
    return snap_rows(
        (
            (cz * cy, a * sx - sz * cx, a * cx + sz * sx),
            (sz * cy, b * sx + cz * cx, b * cx - cz * sx),
            (0.0 - sy, cy * sx, cy * cx),
        )
    )


def rows_from_fixed_xyz(roll: Number, pitch: Number, yaw: Number) -> Rows:
    """Return Rz(yaw) Ry(pitch) Rx(roll)."""
    return rows_from_moving_zyx(yaw, pitch, roll)


def rows_from_moving_xyz(x: Number, y: Number, z: Number) -> Rows:
    """Return Rx(x) Ry(y) Rz(z)."""
    return snap_rows(multiply(multiply(about_x(x), about_y(y)), about_z(z)))


def moving_zyx(m: Rows) -> Vector3:
    """Return z, y, x with y in [-pi/2, pi/2]; z is 0 where y is a right angle."""
    sine, cosine, length = _direction(m[1][0], m[0][0])
    z = atan2(sine, cosine)
    y = atan2(0.0 - m[2][0], length)
    x = atan2(
        sine * m[0][2] - cosine * m[1][2],
        cosine * m[1][1] - sine * m[0][1],
    )
    return z, y, x


def fixed_xyz(m: Rows) -> Vector3:
    """Return roll, pitch, yaw, pitch in [-pi/2, pi/2]; yaw is 0 where it is +-pi/2."""
    yaw, pitch, roll = moving_zyx(m)
    return roll, pitch, yaw


def moving_xyz(m: Rows) -> Vector3:
    """Return x, y, z with y in [-pi/2, pi/2]; z is 0 where y is a right angle.

    The transpose of Rx(x) Ry(y) Rz(z) is Rz(-z) Ry(-y) Rx(-x).
    """
    z, y, x = moving_zyx(transpose(m))
    return negate((x, y, z))


def _direction(y: Number, x: Number) -> tuple[Number, Number, Number]:
    """Return sine and cosine of the angle of (x, y) and its length; 0, 1, 0 if none."""
    square = x * x + y * y
    is_locked = square < LOCKED * LOCKED
    length = sqrt(select(is_locked, 1.0, square))
    return (
        select(is_locked, 0.0, y / length),
        select(is_locked, 1.0, x / length),
        select(is_locked, 0.0, length),
    )
