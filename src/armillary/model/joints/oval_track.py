"""The joint that rides an oval track."""

from __future__ import annotations

import math

from armillary.errors import JointError
from armillary.model.joint import Joint
from armillary.model.unit import Unit
from armillary.spatial.pose import Pose
from armillary.spatial.twist import Vector6
from armillary.spatial.vector import Number
from armillary.trace.functions import floor, select


class OvalTrack(Joint, frozen=True):
    """Ride an oval of two straights and two half circles, x along the track.

    The oval lies in the xy-plane of F, its centre at the origin. At q = 0 the outer
    frame is in the middle of the lower straight, (0, -radius), heading +x; it then goes
    round counter-clockwise, z up. q is the distance along the track [m], any number.

    Attributes:
        straight: Length of each straight [m], not below 0.
        radius: Radius of the half circles [m], above 0.
    """

    straight: float
    radius: float
    unit = Unit.METRE
    lengths = ("straight", "radius")

    def check(self) -> None:
        """Check the lengths.

        Raises:
            JointError: The straight is negative, or the radius not above zero.
        """
        if self.straight < 0.0 or self.radius <= 0.0:
            raise JointError(
                "OvalTrack needs straight >= 0 and radius > 0, not "
                f"{self.straight} and {self.radius}."
            )

    @property
    def period(self) -> float:
        """Return the length of a lap [m]: 2 straight + 2 pi radius."""
        return 2.0 * (self.straight + math.pi * self.radius)

    def pose(self, q: Number) -> Pose:
        """Return the pose after the distance q along the track.

        The frame hangs `radius` below a point that slides along the middle line while
        it rides a straight, and stands still while it turns about it on a bend.
        """
        on_lower_half, along = self._place(q)
        on_straight = along < self.straight
        slid = select(on_straight, along, self.straight) - 0.5 * self.straight
        turned = select(on_straight, 0.0, along - self.straight) / self.radius

        slider = select(on_lower_half, 1.0, -1.0) * slid
        heading = select(on_lower_half, 0.0, math.pi) + turned
        hanging = Pose.rotation_z(heading) @ Pose.translation(0.0, -self.radius, 0.0)
        return Pose.translation(slider, 0.0, 0.0) @ hanging

    def subspace(self, q: Number) -> Vector6:
        """Return (x, curvature z): 1 / radius on the bends and 0 on the straights."""
        _, along = self._place(q)
        curvature = select(along < self.straight, 0.0, 1.0 / self.radius)
        return (1.0, 0.0, 0.0, 0.0, 0.0, curvature)

    def _place(self, q: Number) -> tuple[Number, Number]:
        """Return whether q is on the lower half, and the way into its half [m].

        A half is a straight and the bend after it.
        """
        s = q + 0.5 * self.straight
        s = s - self.period * floor(s / self.period)
        half_lap = 0.5 * self.period
        on_lower_half = s < half_lap
        return on_lower_half, select(on_lower_half, s, s - half_lap)
