"""Denavit-Hartenberg poses, in the orders that are in use; lengths [m], angles [rad].

Translation along and rotation about one axis commute, so that RobWork's `DH` is Paul's
order and its `craigDH` Craig's.
"""

from __future__ import annotations

from armillary.spatial.pose import Pose
from armillary.spatial.vector import Number


def paul(*, theta: Number, d: Number, a: Number, alpha: Number) -> Pose:
    """Return Tz(d) Rz(theta) Tx(a) Rx(alpha), the standard convention."""
    return _screw_z(theta, d) @ _screw_x(alpha, a)


def craig(*, alpha: Number, a: Number, theta: Number, d: Number) -> Pose:
    """Return Tx(a) Rx(alpha) Tz(d) Rz(theta), the modified convention."""
    return _screw_x(alpha, a) @ _screw_z(theta, d)


def parallel(*, alpha: Number, a: Number, beta: Number, b: Number) -> Pose:
    """Return Ty(b) Ry(beta) Tx(a) Rx(alpha), for axes that are nearly parallel.

    RobWork's DHHGP: the origin is (a cos(beta), b, -a sin(beta)), the rotation
    Ry(beta) Rx(alpha).
    """
    turned = Pose(
        Pose.rotation_y(beta).rotation, Pose.translation(0.0, b, 0.0).position
    )
    return turned @ _screw_x(alpha, a)


def _screw_x(angle: Number, distance: Number) -> Pose:
    along = Pose.translation(distance, 0.0, 0.0)
    return Pose(Pose.rotation_x(angle).rotation, along.position)


def _screw_z(angle: Number, distance: Number) -> Pose:
    along = Pose.translation(0.0, 0.0, distance)
    return Pose(Pose.rotation_z(angle).rotation, along.position)
