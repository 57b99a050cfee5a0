"""Ellipsoids."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from armillary.model.fields import ThreeFloats
from armillary.model.geometry.bounding import BoundingSphere
from armillary.model.geometry.moments import Moments
from armillary.model.geometry.tessellation import half_circle, revolved, steps_around
from armillary.model.geometry.triangles import Triangles
from armillary.model.primitive import MILLIMETRE, Primitive
from armillary.spatial.vector import ZERO, Vector3
from armillary.trace.functions import select, sqrt

Array = npt.NDArray[np.float64]

EQUAL = 1e-9  # what is left counts squared


class Ellipsoid(Primitive, frozen=True, kw_only=True, tag="ellipsoid"):
    """An ellipsoid about its centre.

    Attributes:
        radii: Half lengths along x, y, z [m].
    """

    radii: ThreeFloats

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

        R_G is Carlson's symmetric elliptic integral (DLMF 19.33.1). With z the middle
        of the three products, no digits cancel (DLMF 19.21.10):
        2 R_G = z R_F - (x - z) (y - z) R_D / 3 + sqrt(x y / z).
        """
        a, b, c = sorted(self.radii)
        flat = 2.0 * math.pi * b * c
        x, z = ((a / each) ** 2 if a else 0.0 for each in (c, b))  # over the largest
        if x == 0.0:
            return flat
        R_F, R_D = _carlson(x, 1.0, z)
        twice = z * R_F - (x - z) * (1.0 - z) * R_D / 3.0 + math.sqrt(x / z)
        return flat * twice

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

    def farthest(self, direction: Vector3) -> Vector3:
        """Return r r d / |r d|, with products by component."""
        a, b, c = self.radii
        x, y, z = a * direction[0], b * direction[1], c * direction[2]
        square = x * x + y * y + z * z
        is_long = square > 0.0
        factor = select(is_long, 1.0 / sqrt(select(is_long, square, 1.0)), 0.0)
        return a * factor * x, b * factor * y, c * factor * z


def _carlson(x: float, y: float, z: float) -> tuple[float, float]:
    """Return R_F(x, y, z) and R_D(x, y, z), by duplication until all are equal.

    DLMF 19.26.18 and 19.26.20; a duplication takes a quarter of what they differ by.
    """
    tail, weight = 0.0, 1.0
    while max(x, y, z) - min(x, y, z) > EQUAL * max(x, y, z):
        a, b, c = math.sqrt(x), math.sqrt(y), math.sqrt(z)
        step = a * b + b * c + c * a
        tail += weight / (c * (z + step))
        weight *= 0.25
        x, y, z = (0.25 * (each + step) for each in (x, y, z))
    mean = (x + y + z) / 3.0
    return 1.0 / math.sqrt(mean), 3.0 * tail + weight / (mean * math.sqrt(mean))
