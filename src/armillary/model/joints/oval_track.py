"""The joint that rides an oval track."""

from __future__ import annotations

import math

from armillary.errors import JointError
from armillary.model.joint import Joint
from armillary.model.unit import Unit
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Number


class OvalTrack(Joint, frozen=True):
    """Ride an oval of two straights and two half circles, x along the track.

    The oval lies in the xy-plane of F, its centre at the origin. At q = 0 the outer frame
    is in the middle of the lower straight, (0, -radius), heading +x; it then goes round
    counter-clockwise, z up. q may be any number: a lap is 2 straight + 2 pi radius.

    Attributes:
        straight: Length of each straight [m], not below 0.
        radius: Radius of the half circles [m], above 0.
    """

    straight: float
    radius: float
    unit = Unit.METRE

    def check(self) -> None:
        """Refuse a negative straight and a radius that is not above zero."""
        if self.straight < 0.0 or self.radius <= 0.0:
            raise JointError(
                "OvalTrack needs straight >= 0 and radius > 0, not "
                f"{self.straight} and {self.radius}."
            )

    def pose(self, q: Number) -> Pose:
        """Return the pose after the distance q along the track."""
        half_turn = math.pi * self.radius
        half = 0.5 * self.straight
        s = (q + half) % (2.0 * self.straight + 2.0 * half_turn)
        if s < self.straight:
            return Pose.translation(s - half, -self.radius, 0.0)
        s = s - self.straight
        if s < half_turn:
            return self._bend(half, s / self.radius)
        s = s - half_turn
        if s < self.straight:
            return Pose.translation(half - s, self.radius, 0.0) @ TURNED
        return self._bend(-half, (s - self.straight) / self.radius + math.pi)

    def _bend(self, centre: float, angle: Number) -> Pose:
        rim = Pose.translation(0.0, -self.radius, 0.0)
        return Pose.translation(centre, 0.0, 0.0) @ Pose.rotation_z(angle) @ rim


TURNED = Pose.rotation_z(math.pi)
