"""Cones, whole and truncated."""

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
from armillary.spatial.vector import Vector3
from armillary.trace.functions import select, sqrt

Array = npt.NDArray[np.float64]


class Cone(Primitive, frozen=True, kw_only=True, tag="cone"):
    """A truncated cone, its axis along z and centred; with a radius of 0 a whole one.

    Attributes:
        bottom: Radius at the lower end, z = -length / 2 [m].
        top: Radius at the upper end [m].
        length: Along z [m].
    """

    bottom: float
    top: float = 0.0
    length: float

    @classmethod
    def between(
        cls, start: Any, end: Any, *, bottom: float, top: float = 0.0, **looks: Any
    ) -> Self:
        """Return the cone with the centres of its ends at two points.

        Args:
            start: The centre of one end [m], shape (3,).
            end: The centre of the other end [m], shape (3,).
            bottom: The radius at `start` [m].
            top: The radius at `end` [m].
            looks: Its `name` and `colour`.

        Raises:
            ModelError: The points are not finite.
        """
        pose, length = along(start, end)
        return cls(pose=pose, length=length, bottom=bottom, top=top, **looks)

    def check(self) -> None:
        """Check the lengths."""
        self._store_length("bottom")
        self._store_length("top")
        self._store_length("length")

    @property
    def moments(self) -> Moments:
        """Return the moments of its volume.

        With radii a below and b above, V = pi h (a^2 + a b + b^2) / 3,
        int z = pi h^2 (b^2 - a^2) / 12, int z^2 = pi h^3 (2 a^2 + a b + 2 b^2) / 60,
        int x^2 = pi h (a^4 + a^3 b + a^2 b^2 + a b^3 + b^4) / 20.
        """
        a, b, h = self.bottom, self.top, self.length
        aa, ab, bb = a * a, a * b, b * b
        across = math.pi * h * (aa * aa + ab * (aa + ab + bb) + bb * bb) / 20.0
        lengthwise = math.pi * h**3 * (2.0 * aa + ab + 2.0 * bb) / 60.0
        return Moments(
            math.pi * h * (aa + ab + bb) / 3.0,
            (0.0, 0.0, math.pi * h * h * (bb - aa) / 12.0),
            (across, across, lengthwise, 0.0, 0.0, 0.0),
        )

    @property
    def area(self) -> float:
        """Return the area of its surface [m^2]."""
        a, b = self.bottom, self.top
        slope = math.hypot(self.length, a - b)
        return math.pi * (a * a + b * b + (a + b) * slope)

    @property
    def bounding_sphere(self) -> BoundingSphere:
        """Return the sphere through both rims, or about the larger where that is all.

        Its centre is as far from both rims, z = (b^2 - a^2) / (2 h), but on the axis
        between them.
        """
        a, b, half = self.bottom, self.top, 0.5 * self.length
        z = math.copysign(half, b - a)
        if abs(b * b - a * a) < self.length * self.length:
            z = (b - a) * (b + a) / (2.0 * self.length)
        radius = max(math.hypot(a, half + z), math.hypot(b, half - z))
        return BoundingSphere((0.0, 0.0, z), radius)

    def triangles(self, tolerance: float = MILLIMETRE) -> Triangles:
        """Return triangles along the slope, and fans."""
        a, b, half = self.bottom, self.top, 0.5 * self.length
        steps = steps_around(max(a, b), tolerance)
        out, up = np.array([0.0, a, b, 0.0]), np.array([-half, -half, half, half])
        return revolved((out, up), steps, tolerance)

    def farthest(self, direction: Vector3) -> Vector3:
        """Return a point of the rim that reaches farther."""
        flat = sqrt(direction[0] * direction[0] + direction[1] * direction[1])
        half = 0.5 * self.length
        rise = half * direction[2]
        is_top = self.top * flat + rise >= self.bottom * flat - rise
        x, y = on_circle(direction, select(is_top, self.top, self.bottom))
        return x, y, select(is_top, half, -half)
