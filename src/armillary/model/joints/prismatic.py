"""The joint that slides along an axis."""

from __future__ import annotations

import math

from armillary.model.axis import Axis, Z, unit_axis
from armillary.model.joint import Joint
from armillary.model.unit import Unit
from armillary.spatial.pose import Pose
from armillary.spatial.twist import Vector6
from armillary.spatial.vector import ZERO, Number, norm, scale


class Prismatic(Joint, frozen=True):
    """Slide along `axis`, q the distance [m].

    Attributes:
        axis: Direction in F and M; stored with length 1.
    """

    axis: Axis = Z
    unit = Unit.METRE

    def __post_init__(self) -> None:
        """Give the axis length 1."""
        super().__post_init__()
        unit_axis(self)

    def pose(self, q: Number) -> Pose:
        """Return the translation by q along the axis."""
        return Pose.translation(*scale(q, self.axis))

    def subspace(self, q: Number) -> Vector6:
        """Return (axis, 0)."""
        return (*self.axis, *ZERO)


    def origin_bound(self, lower: float, upper: float) -> float:
        """Return the larger distance at the two limits: it is convex between [m]."""
        if not math.isfinite(lower + upper):
            return math.inf
        return max(float(norm(self.placement(q).position)) for q in (lower, upper))
