"""Half spaces."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.model.geometry.bounding import BoundingSphere
from armillary.model.geometry.moments import Moments
from armillary.model.geometry.triangles import Triangles
from armillary.model.primitive import MILLIMETRE, Primitive
from armillary.model.shapes.segment import facing
from armillary.spatial.pose import Pose
from armillary.spatial.vector import vector

Array = npt.NDArray[np.float64]


class HalfSpace(Primitive, frozen=True, kw_only=True, tag="half_space"):
    """All below the plane of x and y: z points out of it."""

    @classmethod
    def below(cls, point: Any, normal: Any, **looks: Any) -> Self:
        """Return the half space behind a plane.

        Args:
            point: Of the plane [m], shape (3,).
            normal: Out of the half space, of any length but 0, shape (3,).
            looks: Name and colour.

        Raises:
            ModelError: The normal is zero or not finite.
        """
        turn = facing(vector(normal))
        return cls(pose=Pose(turn.rotation, vector(point)), **looks)

    @property
    def moments(self) -> Moments:
        """Refuse to weigh it.

        Raises:
            ModelError: Always.
        """
        raise self._infinite("it has no mass")

    @property
    def volume(self) -> float:
        """Return infinity."""
        return math.inf

    @property
    def area(self) -> float:
        """Return infinity."""
        return math.inf

    @property
    def bounding_sphere(self) -> BoundingSphere:
        """Refuse to be in a sphere.

        Raises:
            ModelError: Always.
        """
        raise self._infinite("no sphere holds it")

    def triangles(self, tolerance: float = MILLIMETRE) -> Triangles:
        """Refuse to be drawn whole.

        Raises:
            ModelError: Always.
        """
        raise self._infinite("draw a part of its plane instead")

    def _support(self, directions: Array) -> Array:
        if np.isfinite(self._reach(directions)).all():
            return np.zeros_like(directions)
        raise self._infinite("only along its normal has it a farthest point")

    def _reach(self, directions: Array) -> Array:
        is_normal = (directions == (0.0, 0.0, 1.0)).all(axis=1)
        return np.where(is_normal, 0.0, np.inf)

    def _infinite(self, what: str) -> ModelError:
        return self._fault(f"a half space is infinite; {what}")
