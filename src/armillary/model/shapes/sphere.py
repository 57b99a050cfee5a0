"""Spheres."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from armillary.model.geometry.bounding import BoundingSphere
from armillary.model.geometry.moments import Moments
from armillary.model.geometry.tessellation import half_circle, revolved, steps_around
from armillary.model.geometry.triangles import Triangles
from armillary.model.primitive import MILLIMETRE, Primitive
from armillary.spatial.vector import ZERO, Vector3

Array = npt.NDArray[np.float64]


class Sphere(Primitive, frozen=True, kw_only=True, tag="sphere"):
    """A ball about its centre.

    Attributes:
        radius: [m].
    """

    radius: float

    def check(self) -> None:
        """Check the radius."""
        self._store_length("radius")

    @property
    def moments(self) -> Moments:
        """Return the moments of its volume: V r^2 / 5 along each axis."""
        r = self.radius
        volume = 4.0 / 3.0 * math.pi * r**3
        second = 0.2 * volume * r * r
        return Moments.symmetric(volume, second, second, second)

    @property
    def area(self) -> float:
        """Return the area of its surface [m^2]."""
        return 4.0 * math.pi * self.radius**2

    @property
    def bounding_sphere(self) -> BoundingSphere:
        """Return the sphere itself."""
        return BoundingSphere(ZERO, self.radius)

    def triangles(self, tolerance: float = MILLIMETRE) -> Triangles:
        """Return triangles between circles about z."""
        steps = steps_around(self.radius, 0.5 * tolerance)  # it bends both ways
        return revolved(half_circle(steps, self.radius), steps, tolerance)

    @property
    def rounding(self) -> float:
        """Return the radius that its core is rounded by [m]."""
        return self.radius

    def farthest(self, direction: Vector3) -> Vector3:
        """Return the centre."""
        return ZERO
