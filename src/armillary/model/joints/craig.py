"""Joints by the Denavit-Hartenberg parameters in Craig's order, the modified one."""

from __future__ import annotations

import math

from armillary.model.axis import Z
from armillary.model.joint import Joint
from armillary.model.unit import Unit
from armillary.spatial import dh
from armillary.spatial.pose import Pose
from armillary.spatial.twist import Vector6
from armillary.spatial.vector import ZERO, Number


class CraigRevolute(Joint, frozen=True):
    """Turn by q [rad], by Craig's order: Tx(a) Rx(alpha) Tz(d) Rz(theta + q).

    Attributes:
        alpha: Twist about x [rad].
        a: Length along x [m].
        theta: Angle about z at q = 0 [rad].
        d: Offset along z [m].
    """

    alpha: float = 0.0
    a: float = 0.0
    theta: float = 0.0
    d: float = 0.0
    lengths = ("a", "d")

    @property
    def period(self) -> float:
        """Return a turn [rad]."""
        return 2.0 * math.pi

    def pose(self, q: Number) -> Pose:
        """Return the pose with theta + q in place of theta."""
        return dh.craig(alpha=self.alpha, a=self.a, theta=self.theta + q, d=self.d)

    def subspace(self, q: Number) -> Vector6:
        """Return (0, z)."""
        return (*ZERO, *Z)


class CraigPrismatic(Joint, frozen=True):
    """Slide by q [m], by Craig's order: Tx(a) Rx(alpha) Tz(d + q) Rz(theta).

    Attributes:
        alpha: Twist about x [rad].
        a: Length along x [m].
        theta: Angle about z [rad].
        d: Offset along z at q = 0 [m].
    """

    alpha: float = 0.0
    a: float = 0.0
    theta: float = 0.0
    d: float = 0.0
    unit = Unit.METRE
    lengths = ("a", "d")

    def pose(self, q: Number) -> Pose:
        """Return the pose with d + q in place of d."""
        return dh.craig(alpha=self.alpha, a=self.a, theta=self.theta, d=self.d + q)

    def subspace(self, q: Number) -> Vector6:
        """Return (z, 0)."""
        return (*Z, *ZERO)
