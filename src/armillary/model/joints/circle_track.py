"""The joint that rides a circle."""

from __future__ import annotations

import math

from armillary.errors import JointError
from armillary.model.joint import Joint
from armillary.model.unit import Unit
from armillary.spatial.pose import Pose
from armillary.spatial.twist import Vector6
from armillary.spatial.vector import Number


class CircleTrack(Joint, frozen=True):
    """Ride a circle about z of F, q the distance along the rim [m].

    At q = 0 the outer frame is at (radius, 0, 0); it goes round counter-clockwise, z
    along the axis of the circle and x along the radius.

    Attributes:
        radius: Radius of the circle [m], above 0.
        inward: Whether x points to the centre; outward by default.
    """

    radius: float
    inward: bool = False
    unit = Unit.METRE
    lengths = ("radius",)

    def check(self) -> None:
        """Check the radius.

        Raises:
            JointError: It is not above zero.
        """
        if self.radius <= 0.0:
            raise JointError(
                f"CircleTrack needs radius > 0, not {self.radius}. To ride the other "
                "way round, turn the precursor half a turn about x."
            )

    @property
    def period(self) -> float:
        """Return the circumference [m]."""
        return 2.0 * math.pi * self.radius

    def pose(self, q: Number) -> Pose:
        """Return the pose after the distance q along the rim."""
        arm = Pose.translation(self.radius, 0.0, 0.0)
        turned = Pose.rotation_z(q / self.radius) @ arm
        return turned @ FACING_BACK if self.inward else turned

    def subspace(self, q: Number) -> Vector6:
        """Return (y, z / radius), y reversed where x points inward."""
        forward = -1.0 if self.inward else 1.0
        return (0.0, forward, 0.0, 0.0, 0.0, 1.0 / self.radius)


FACING_BACK = Pose.rotation_z(math.pi)
