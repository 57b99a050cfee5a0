"""Cylinders."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from armillary.model.geometry.bounding import BoundingSphere
from armillary.model.geometry.moments import Moments
from armillary.model.geometry.tessellation import revolved, steps_around
from armillary.model.geometry.triangles import Triangles
from armillary.model.primitive import MILLIMETRE, Primitive, on_circle
from armillary.model.shapes.segment import along
from armillary.spatial.vector import ZERO, Vector3
from armillary.trace.functions import select

Array = npt.NDArray[np.float64]


class Cylinder(Primitive, frozen=True, kw_only=True, tag="cylinder"):
    """A cylinder about its centre, its axis along z.

    Attributes:
        radius: [m].
        length: Full length along z [m].
    """

    radius: float
    length: float

    @classmethod
    def between(cls, start: Any, end: Any, *, radius: float, **looks: Any) -> Self:
        """Return the cylinder with the centres of its ends at two points.

        Args:
            start: The centre of one end [m], shape (3,).
            end: The centre of the other end [m], shape (3,).
            radius: Of the cylinder [m].
            looks: Its `name` and `colour`.

        Raises:
            ModelError: The points are not finite.
        """
        pose, length = along(start, end)
        return cls(pose=pose, length=length, radius=radius, **looks)

    def check(self) -> None:
        """Check the lengths."""
        self._store_length("radius")
        self._store_length("length")

    @property
    def moments(self) -> Moments:
        """Return the moments of its volume: V r^2 / 4 across, V h^2 / 12 along."""
        r, h = self.radius, self.length
        volume = math.pi * r * r * h
        across = volume * r * r / 4.0
        return Moments.symmetric(volume, across, across, volume * h * h / 12.0)

    @property
    def area(self) -> float:
        """Return the area of its surface [m^2]."""
        return 2.0 * math.pi * self.radius * (self.radius + self.length)

    @property
    def bounding_sphere(self) -> BoundingSphere:
        """Return the sphere through both rims."""
        return BoundingSphere(ZERO, math.hypot(self.radius, 0.5 * self.length))

    def triangles(self, tolerance: float = MILLIMETRE) -> Triangles:
        """Return triangles along z, and two fans."""
        r, half = self.radius, 0.5 * self.length
        steps = steps_around(r, tolerance)
        out, up = np.array([0.0, r, r, 0.0]), np.array([-half, -half, half, half])
        return revolved((out, up), steps, tolerance)

    def farthest(self, direction: Vector3) -> Vector3:
        """Return a point of a rim."""
        x, y = on_circle(direction, self.radius)
        half = 0.5 * self.length
        return x, y, select(direction[2] < 0.0, -half, half)
