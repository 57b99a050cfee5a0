"""Ellipsoids."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from armillary.model.geometry.bounding import BoundingSphere
from armillary.model.geometry.elliptic import carlson_g
from armillary.model.geometry.loft import half_circle, revolved, steps_around
from armillary.model.geometry.moments import Moments
from armillary.model.geometry.triangles import Triangles
from armillary.model.primitive import MILLIMETRE, Primitive
from armillary.spatial.vector import ZERO

Array = npt.NDArray[np.float64]


class Ellipsoid(Primitive, frozen=True, kw_only=True, tag="ellipsoid"):
    """An ellipsoid about its centre.

    Attributes:
        radii: Half lengths along x, y, z [m].
    """

    radii: tuple[float, float, float]

    def check(self) -> None:
        """Check the lengths."""
        self._store_lengths("radii", 3)

    @property
    def moments(self) -> Moments:
        """Return the moments of its volume: V a^2 / 5 along each axis."""
        a, b, c = self.radii
        volume = 4.0 / 3.0 * math.pi * a * b * c
        fifth = 0.2 * volume
        return Moments.symmetric(volume, fifth * a * a, fifth * b * b, fifth * c * c)

    @property
    def area(self) -> float:
        """Return the area of its surface [m^2]: 4 pi R_G(a^2 b^2, b^2 c^2, c^2 a^2).

        R_G is Carlson's symmetric elliptic integral (DLMF 19.33.1).
        """
        a, b, c = self.radii
        products = (a * b) ** 2, (b * c) ** 2, (c * a) ** 2
        return 4.0 * math.pi * carlson_g(*products)

    @property
    def bounding_sphere(self) -> BoundingSphere:
        """Return the sphere through the ends of its longest axis."""
        return BoundingSphere(ZERO, max(self.radii))

    def triangles(self, tolerance: float = MILLIMETRE) -> Triangles:
        """Return those of a sphere, stretched."""
        # Stretching stretches the distance to the surface as well.
        steps = steps_around(max(self.radii), 0.5 * tolerance)
        ball = revolved(half_circle(steps, 1.0), steps, tolerance)
        return Triangles(ball.vertices * self.radii, ball.faces)

    def _support(self, directions: Array) -> Array:
        stretched = directions * self.radii
        length = np.linalg.norm(stretched, axis=1, keepdims=True)
        zeros = np.zeros_like(stretched)
        unit = np.divide(stretched, length, out=zeros, where=length > 0.0)
        return unit * self.radii
