"""The joint that turns about an axis."""

from __future__ import annotations

import math

from armillary.model.axis import Z, unit_axis
from armillary.model.fields import ThreeFloats, default
from armillary.model.joint import Joint
from armillary.spatial.pose import Pose
from armillary.spatial.twist import Vector6
from armillary.spatial.vector import ZERO, Number


class Revolute(Joint, frozen=True):
    """Turn about `axis` through the common origin, q the angle [rad].

    Attributes:
        axis: Direction in F and M; stored with length 1.
    """

    axis: ThreeFloats = default(Z)
    lengths = ()

    def check(self) -> None:
        """Give the axis length 1."""
        unit_axis(self)

    @property
    def period(self) -> float:
        """Return a turn [rad]."""
        return 2.0 * math.pi

    def pose(self, q: Number) -> Pose:
        """Return the rotation by q about the axis."""
        return Pose.rotation_about(self.axis, q)

    def subspace(self, q: Number) -> Vector6:
        """Return (0, axis)."""
        return (*ZERO, *self.axis)
