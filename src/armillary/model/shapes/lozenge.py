"""Lozenges: swept rectangles."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from armillary.model.fields import TwoFloats
from armillary.model.geometry.bounding import BoundingSphere
from armillary.model.geometry.moments import Moments
from armillary.model.geometry.swept import (
    Polygon,
    swept_area,
    swept_moments,
    swept_triangles,
)
from armillary.model.geometry.triangles import Triangles
from armillary.model.primitive import MILLIMETRE, Primitive
from armillary.spatial.vector import ZERO, Vector3
from armillary.trace.functions import select

Array = npt.NDArray[np.float64]

CORNERS = np.array(
    [[-0.5, -0.5, 0.0], [0.5, -0.5, 0.0], [0.5, 0.5, 0.0], [-0.5, 0.5, 0.0]]
)
DIRECTIONS = np.array(
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]]
)


class Lozenge(Primitive, frozen=True, kw_only=True, tag="lozenge"):
    """All within a distance of a rectangle, which is centred in the plane of x and y.

    Attributes:
        size: Edges of the rectangle along x, y [m].
        radius: That distance [m].
    """

    size: TwoFloats
    radius: float

    def check(self) -> None:
        """Check the lengths."""
        self._store_lengths("size", 2)
        self._store_length("radius")

    @property
    def _core(self) -> Polygon:
        corners = CORNERS * (*self.size, 0.0)
        return Polygon(corners, DIRECTIONS, np.array([0.0, 0.0, 1.0]))

    @property
    def moments(self) -> Moments:
        """Return the moments of its volume."""
        return swept_moments(self._core, self.radius)

    @property
    def area(self) -> float:
        """Return the area of its surface [m^2]."""
        return swept_area(self._core, self.radius)

    @property
    def bounding_sphere(self) -> BoundingSphere:
        """Return the sphere that touches all four round corners."""
        return BoundingSphere(ZERO, 0.5 * math.hypot(*self.size) + self.radius)

    def triangles(self, tolerance: float = MILLIMETRE) -> Triangles:
        """Return triangles between outlines about z."""
        return swept_triangles(self._core, self.radius, tolerance)

    @property
    def rounding(self) -> float:
        """Return the radius that its core is rounded by [m]."""
        return self.radius

    def farthest(self, direction: Vector3) -> Vector3:
        """Return a corner of the rectangle."""
        x, y = (
            select(d < 0.0, -0.5 * length, 0.5 * length)
            for d, length in zip(direction[:2], self.size, strict=True)
        )
        return x, y, 0.0
