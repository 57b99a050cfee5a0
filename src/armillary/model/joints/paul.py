"""Joints by the Denavit-Hartenberg parameters in Paul's order, the standard one."""

from __future__ import annotations

import math

from armillary.model.joint import Joint
from armillary.model.unit import Unit
from armillary.spatial import dh
from armillary.spatial.pose import Pose
from armillary.spatial.twist import Vector6
from armillary.spatial.vector import ZERO, Number, Vector3, sine_cosine


class PaulRevolute(Joint, frozen=True):
    """Turn by q [rad], by Paul's order: Tz(d) Rz(theta + q) Tx(a) Rx(alpha).

    Attributes:
        theta: Angle about z at q = 0 [rad].
        d: Offset along z [m].
        a: Length along x [m].
        alpha: Twist about x [rad].
    """

    theta: float = 0.0
    d: float = 0.0
    a: float = 0.0
    alpha: float = 0.0
    lengths = ("d", "a")

    @property
    def period(self) -> float:
        """Return a turn [rad]."""
        return 2.0 * math.pi

    def pose(self, q: Number) -> Pose:
        """Return the pose with theta + q in place of theta."""
        return dh.paul(theta=self.theta + q, d=self.d, a=self.a, alpha=self.alpha)

    def subspace(self, q: Number) -> Vector6:
        """Return (a z x x, z) with z the axis of F, which is constant in M."""
        x, y, z = _axis(self.alpha)
        return (0.0, self.a * z, -self.a * y, x, y, z)


class PaulPrismatic(Joint, frozen=True):
    """Slide by q [m], by Paul's order: Tz(d + q) Rz(theta) Tx(a) Rx(alpha).

    Attributes:
        theta: Angle about z [rad].
        d: Offset along z at q = 0 [m].
        a: Length along x [m].
        alpha: Twist about x [rad].
    """

    theta: float = 0.0
    d: float = 0.0
    a: float = 0.0
    alpha: float = 0.0
    unit = Unit.METRE
    lengths = ("d", "a")

    def pose(self, q: Number) -> Pose:
        """Return the pose with d + q in place of d."""
        return dh.paul(theta=self.theta, d=self.d + q, a=self.a, alpha=self.alpha)

    def subspace(self, q: Number) -> Vector6:
        """Return (z, 0) with z the axis of F, which is constant in M."""
        return (*_axis(self.alpha), *ZERO)


def _axis(alpha: float) -> Vector3:
    """Return z of F in the axes of M, Rx(alpha)' z."""
    s, c = sine_cosine(alpha)
    return (0.0, s, c)
