"""The joint that does not move."""

from __future__ import annotations

from armillary.model.joint import Joint
from armillary.model.unit import Unit
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import Number


class Fixed(Joint, frozen=True):
    """Hold the outer frame at the precursor; takes no place in q."""

    unit = Unit.OTHER
    lengths = ()

    def pose(self, q: Number) -> Pose:
        """Return the identity."""
        return IDENTITY
