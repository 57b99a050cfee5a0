"""The joint that turns about an axis."""

from __future__ import annotations

from armillary.model.axis import Axis, Z, unit_axis
from armillary.model.joint import Joint
from armillary.spatial.pose import Pose
from armillary.spatial.twist import Vector6
from armillary.spatial.vector import ZERO, Number, norm


class Revolute(Joint, frozen=True):
    """Turn about `axis` through the common origin, q the angle [rad].

    Attributes:
        axis: Direction in F and M; stored with length 1.
    """

    axis: Axis = Z

    def __post_init__(self) -> None:
        """Give the axis length 1."""
        super().__post_init__()
        unit_axis(self)

    def pose(self, q: Number) -> Pose:
        """Return the rotation by q about the axis."""
        return Pose.rotation_about(self.axis, q)

    def subspace(self, q: Number) -> Vector6:
        """Return (0, axis)."""
        return (*ZERO, *self.axis)

    def origin_bound(self, lower: float, upper: float) -> float:
        """Return |p_P|, the same for all q [m]."""
        return float(norm(self.precursor.position))
