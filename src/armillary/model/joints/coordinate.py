"""Joints that hold a coordinate of a mechanism and move nothing themselves."""

from __future__ import annotations

from armillary.model.joint import Joint
from armillary.model.unit import Unit
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import Number


class AngleCoordinate(Joint, frozen=True):
    """Hold an angle q [rad] with its limits, for a `Mechanism` to take.

    The link that it carries does not move: the mechanism's does.
    """

    lengths = ()

    def pose(self, q: Number) -> Pose:
        """Return the identity."""
        return IDENTITY


class LengthCoordinate(Joint, frozen=True):
    """Hold a length q [m] with its limits, for a `Mechanism` to take.

    The link that it carries does not move: the mechanism's does.
    """

    unit = Unit.METRE
    lengths = ()

    def pose(self, q: Number) -> Pose:
        """Return the identity."""
        return IDENTITY
