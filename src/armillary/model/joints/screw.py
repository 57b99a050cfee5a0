"""The joint that turns about an axis and advances along it."""

from __future__ import annotations

from armillary.model.axis import Z, unit_axis
from armillary.model.fields import ThreeFloats, default
from armillary.model.joint import Joint
from armillary.spatial.pose import Pose
from armillary.spatial.twist import Vector6
from armillary.spatial.vector import Number, scale


class Screw(Joint, frozen=True):
    """Turn about `axis` by q [rad] and advance along it by pitch q.

    The lead of a thread, its advance per turn, is 2 pi pitch. Actin states a screw by
    its rotation per unit of length, 1 / pitch, and lets q be the length.

    Attributes:
        pitch: Advance per angle [m/rad]; below zero for a left-handed thread.
        axis: Direction in F and M; stored with length 1.
    """

    pitch: float
    axis: ThreeFloats = default(Z)
    lengths = ("pitch",)

    def check(self) -> None:
        """Give the axis length 1."""
        unit_axis(self)

    def pose(self, q: Number) -> Pose:
        """Return the rotation by q about the axis at pitch q along it."""
        turned = Pose.rotation_about(self.axis, q)
        return Pose(turned.rotation, scale(self.pitch * q, self.axis))

    def subspace(self, q: Number) -> Vector6:
        """Return (pitch axis, axis)."""
        return (*scale(self.pitch, self.axis), *self.axis)
