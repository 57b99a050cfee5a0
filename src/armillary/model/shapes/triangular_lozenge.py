"""Triangular lozenges: swept triangles."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armillary.model.fields import ThreePoints
from armillary.model.geometry.bounding import BoundingSphere, sphere_around
from armillary.model.geometry.moments import Moments
from armillary.model.geometry.swept import (
    Polygon,
    swept_area,
    swept_moments,
    swept_triangles,
)
from armillary.model.geometry.triangles import Triangles
from armillary.model.primitive import MILLIMETRE, Primitive, farthest_of
from armillary.spatial.vector import Vector3

Array = npt.NDArray[np.float64]

NARROWEST = 1e-9


class TriangularLozenge(Primitive, frozen=True, kw_only=True, tag="triangular_lozenge"):
    """All within a distance of a triangle.

    Attributes:
        corners: Of the triangle [m], not in one line.
        radius: That distance [m].
    """

    corners: ThreePoints
    radius: float

    def check(self) -> None:
        """Check the lengths, and that the corners make a triangle."""
        self._store_points("corners", 3)
        self._store_length("radius")
        a, b, c = np.array(self.corners)
        edges = np.array([b - a, c - b, a - c])
        longest = float(np.linalg.norm(edges, axis=1).max())
        if np.linalg.norm(np.cross(b - a, c - a)) <= NARROWEST * longest * longest:
            raise self._fault("its corners lie in one line; a Capsule is about a line")

    @property
    def _core(self) -> Polygon:
        corners = np.array(self.corners)
        edges = np.roll(corners, -1, axis=0) - corners
        normal = np.cross(edges[0], edges[1])
        lengths = np.linalg.norm(edges, axis=1, keepdims=True)
        return Polygon(corners, edges / lengths, normal / np.linalg.norm(normal))

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
        """Return the smallest sphere around the triangle, grown by the radius."""
        centre, radius = sphere_around(np.array(self.corners))
        return BoundingSphere(centre, radius + self.radius)

    def triangles(self, tolerance: float = MILLIMETRE) -> Triangles:
        """Return triangles between outlines about the triangle's normal."""
        return swept_triangles(self._core, self.radius, tolerance)

    @property
    def rounding(self) -> float:
        """Return the radius that its core is rounded by [m]."""
        return self.radius

    def farthest(self, direction: Vector3) -> Vector3:
        """Return a corner of the triangle."""
        return farthest_of(self.corners, direction)
