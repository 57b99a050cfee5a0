"""Capsules."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from armillary.model.geometry.bounding import BoundingSphere
from armillary.model.geometry.moments import Moments
from armillary.model.geometry.tessellation import half_circle, revolved, steps_around
from armillary.model.geometry.triangles import Triangles
from armillary.model.primitive import MILLIMETRE, Primitive
from armillary.model.shapes.segment import along
from armillary.spatial.vector import ZERO, Vector3
from armillary.trace.functions import select

Array = npt.NDArray[np.float64]


class Capsule(Primitive, frozen=True, kw_only=True, tag="capsule"):
    """All within a distance of a line segment that is centred on z.

    Attributes:
        radius: That distance [m].
        length: Of the segment [m], without the round ends.
    """

    radius: float
    length: float

    @classmethod
    def between(cls, start: Any, end: Any, *, radius: float, **looks: Any) -> Self:
        """Return the capsule about the segment between two points.

        Args:
            start: One end of the segment [m], shape (3,).
            end: The other end [m], shape (3,).
            radius: Of the capsule [m].
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
        """Return the moments of a cylinder and the two halves of a ball."""
        r, h = self.radius, self.length
        tube = math.pi * r * r * h
        ball = 4.0 / 3.0 * math.pi * r**3
        across = tube * r * r / 4.0 + ball * r * r / 5.0
        lengthwise = tube * h * h / 12.0 + ball * (
            h * h / 4.0 + 3.0 / 8.0 * h * r + r * r / 5.0
        )
        return Moments.symmetric(tube + ball, across, across, lengthwise)

    @property
    def area(self) -> float:
        """Return the area of its surface [m^2]."""
        return 2.0 * math.pi * self.radius * (self.length + 2.0 * self.radius)

    @property
    def bounding_sphere(self) -> BoundingSphere:
        """Return the sphere that touches both ends."""
        return BoundingSphere(ZERO, 0.5 * self.length + self.radius)

    def triangles(self, tolerance: float = MILLIMETRE) -> Triangles:
        """Return triangles between circles about z."""
        steps = steps_around(self.radius, 0.5 * tolerance)  # its ends bend both ways
        out, up = half_circle(steps, self.radius)
        middle = len(out) // 2
        half = 0.5 * self.length
        out = np.insert(out, middle, out[middle])
        up = np.insert(up, middle, up[middle])
        up += np.where(np.arange(len(up)) <= middle, -half, half)
        return revolved((out, up), steps, tolerance)

    @property
    def rounding(self) -> float:
        """Return the radius that its core is rounded by [m]."""
        return self.radius

    def farthest(self, direction: Vector3) -> Vector3:
        """Return an end of the segment."""
        half = 0.5 * self.length
        return 0.0, 0.0, select(direction[2] < 0.0, -half, half)
