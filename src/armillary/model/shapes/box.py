"""Boxes."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from armillary.model.fields import ThreeFloats
from armillary.model.geometry.bounding import BoundingSphere
from armillary.model.geometry.moments import Moments
from armillary.model.geometry.tessellation import check_tolerance
from armillary.model.geometry.triangles import Triangles
from armillary.model.primitive import MILLIMETRE, Primitive
from armillary.spatial.vector import ZERO, Vector3
from armillary.trace.functions import select

Array = npt.NDArray[np.float64]

# Corner k lies at the upper end of x, y, z where bit 4, 2, 1 of k is set.
CORNERS = np.array([[k >> 2, k >> 1 & 1, k & 1] for k in range(8)]) - 0.5
SIDES = (
    (0, 1, 3, 2),
    (4, 6, 7, 5),
    (0, 4, 5, 1),
    (2, 3, 7, 6),
    (0, 2, 6, 4),
    (1, 5, 7, 3),
)
FACES = np.array([(a, *pair) for a, b, c, d in SIDES for pair in ((b, c), (c, d))])


class Box(Primitive, frozen=True, kw_only=True, tag="box"):
    """A cuboid about its centre.

    Attributes:
        size: Full lengths along x, y, z [m].
    """

    size: ThreeFloats

    def check(self) -> None:
        """Check the lengths."""
        self._store_lengths("size", 3)

    @property
    def moments(self) -> Moments:
        """Return the moments of its volume: V a^2 / 12 along each axis."""
        x, y, z = self.size
        volume = x * y * z
        twelfth = volume / 12.0
        return Moments.symmetric(
            volume, twelfth * x * x, twelfth * y * y, twelfth * z * z
        )

    @property
    def area(self) -> float:
        """Return the area of its surface [m^2]."""
        x, y, z = self.size
        return 2.0 * (x * y + y * z + z * x)

    @property
    def bounding_sphere(self) -> BoundingSphere:
        """Return the sphere through its corners."""
        return BoundingSphere(ZERO, 0.5 * math.hypot(*self.size))

    def triangles(self, tolerance: float = MILLIMETRE) -> Triangles:
        """Return two triangles for each side."""
        check_tolerance(tolerance)
        return Triangles(CORNERS * self.size, FACES)

    def farthest(self, direction: Vector3) -> Vector3:
        """Return a corner."""
        x, y, z = (
            select(d < 0.0, -0.5 * length, 0.5 * length)
            for d, length in zip(direction, self.size, strict=True)
        )
        return x, y, z
