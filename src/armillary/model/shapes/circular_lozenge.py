"""Circular lozenges: swept discs."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from armillary.model.geometry.bounding import BoundingSphere
from armillary.model.geometry.moments import Moments
from armillary.model.geometry.swept import OUTER_SLICES, SLICES
from armillary.model.geometry.tessellation import half_circle, revolved, steps_around
from armillary.model.geometry.triangles import Triangles
from armillary.model.primitive import MILLIMETRE, Primitive, on_circle
from armillary.spatial.vector import ZERO, Vector3

Array = npt.NDArray[np.float64]


class CircularLozenge(Primitive, frozen=True, kw_only=True, tag="circular_lozenge"):
    """All within a distance of a disc, which is centred in the plane of x and y.

    Attributes:
        disc: Radius of the disc [m].
        radius: That distance [m].
    """

    disc: float
    radius: float

    def check(self) -> None:
        """Check the lengths."""
        self._store_length("disc")
        self._store_length("radius")

    @property
    def moments(self) -> Moments:
        """Return the moments of its volume.

        At height z its slice is a disc of radius R + s with s = sqrt(r^2 - z^2):
        V = pi int (R + s)^2 dz, int x^2 = pi / 4 int (R + s)^4 dz,
        int z^2 = pi int z^2 (R + s)^2 dz.
        """
        R, r = self.disc, self.radius
        powers = r ** np.arange(1.0, 6.0)
        squares = np.array([R * R, 2.0 * R, 1.0])
        fourths = np.array([R**4, 4.0 * R**3, 6.0 * R * R, 4.0 * R, 1.0])
        volume = math.pi * float(squares @ (powers[:3] * SLICES[:3]))
        across = math.pi / 4.0 * float(fourths @ (powers * SLICES))
        along = math.pi * float(squares @ (powers[2:] * OUTER_SLICES))
        return Moments.symmetric(volume, across, across, along)

    @property
    def area(self) -> float:
        """Return the area of its surface [m^2]."""
        R, r = self.disc, self.radius
        return 2.0 * math.pi * (R * R + math.pi * R * r + 2.0 * r * r)

    @property
    def bounding_sphere(self) -> BoundingSphere:
        """Return the sphere that touches it all around."""
        return BoundingSphere(ZERO, self.disc + self.radius)

    def triangles(self, tolerance: float = MILLIMETRE) -> Triangles:
        """Return triangles between circles about z, and two fans."""
        # The rim bends both ways: its outline about z, and from below to above.
        steps = steps_around(self.disc + self.radius, 0.5 * tolerance)
        out, up = half_circle(steps_around(self.radius, 0.5 * tolerance), self.radius)
        profile = np.r_[0.0, self.disc + out, 0.0], np.r_[up[0], up, up[-1]]
        return revolved(profile, steps, tolerance)

    @property
    def rounding(self) -> float:
        """Return the radius that its core is rounded by [m]."""
        return self.radius

    def farthest(self, direction: Vector3) -> Vector3:
        """Return a point of the rim of the disc."""
        x, y = on_circle(direction, self.disc)
        return x, y, 0.0
