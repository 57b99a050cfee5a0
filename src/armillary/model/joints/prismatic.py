"""The joint that slides along an axis."""

from __future__ import annotations

from armillary.model.axis import Z, unit_axis
from armillary.model.fields import ThreeFloats, default
from armillary.model.joint import Joint
from armillary.model.unit import Unit
from armillary.spatial.pose import Pose
from armillary.spatial.twist import Vector6
from armillary.spatial.vector import ZERO, Number, scale


class Prismatic(Joint, frozen=True):
    """Slide along `axis`, q the distance [m].

    Attributes:
        axis: Direction in F and M; stored with length 1.
    """

    axis: ThreeFloats = default(Z)
    unit = Unit.METRE
    lengths = ()

    def check(self) -> None:
        """Give the axis length 1."""
        unit_axis(self)

    def pose(self, q: Number) -> Pose:
        """Return the translation by q along the axis."""
        return Pose.translation(*scale(q, self.axis))

    def subspace(self, q: Number) -> Vector6:
        """Return (axis, 0)."""
        return (*self.axis, *ZERO)
