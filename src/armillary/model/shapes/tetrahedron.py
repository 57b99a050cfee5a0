"""Tetrahedra."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armillary.model.fields import FourPoints
from armillary.model.geometry.bounding import BoundingSphere, sphere_around
from armillary.model.geometry.moments import Moments
from armillary.model.geometry.tessellation import check_tolerance
from armillary.model.geometry.triangles import Triangles
from armillary.model.primitive import MILLIMETRE, Primitive, farthest_of
from armillary.spatial.vector import Vector3

Array = npt.NDArray[np.float64]

FACES = ((0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2))
FLATTEST = 1e-9


class Tetrahedron(Primitive, frozen=True, kw_only=True, tag="tetrahedron"):
    """A tetrahedron.

    Attributes:
        corners: Four [m], not in one plane; the edges from the first to the others are
            right-handed.
    """

    corners: FourPoints

    def check(self) -> None:
        """Check that the corners make a right-handed body."""
        self._store_points("corners", 4)
        edges = np.array(self.corners[1:]) - self.corners[0]
        lengths = np.linalg.norm(edges, axis=1)
        spanned = float(np.linalg.det(edges))
        if abs(spanned) <= FLATTEST * float(lengths.max()) ** 3:
            raise self._fault("its corners lie in one plane")
        if spanned < 0.0:
            raise self._fault("its edges are left-handed; exchange two corners")

    @property
    def _surface(self) -> Triangles:
        return Triangles(self.corners, FACES)

    @property
    def moments(self) -> Moments:
        """Return the moments of its volume."""
        return self._surface.moments

    @property
    def area(self) -> float:
        """Return the area of its surface [m^2]."""
        return self._surface.area

    @property
    def bounding_sphere(self) -> BoundingSphere:
        """Return the smallest sphere around its corners."""
        return sphere_around(np.array(self.corners))

    def triangles(self, tolerance: float = MILLIMETRE) -> Triangles:
        """Return its four sides."""
        check_tolerance(tolerance)
        return self._surface

    def farthest(self, direction: Vector3) -> Vector3:
        """Return a corner."""
        return farthest_of(self.corners, direction)
