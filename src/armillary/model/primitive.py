"""Primitives: shapes that formulas describe, all of them convex."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError
from armillary.model.geometry.bounding import BoundingBox, BoundingSphere
from armillary.model.geometry.moments import Moments, check_finite
from armillary.model.geometry.triangles import Triangles
from armillary.model.shape import Shape
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import Number, Vector3, dot, three
from armillary.trace import Op, evaluate, trace
from armillary.trace.functions import by_precision, select, sqrt

__all__ = [
    "Primitive",
    "farthest_of",
    "on_circle",
]

Array = npt.NDArray[np.float64]

MILLIMETRE = 1e-3

# farthest points of simple bodies, on floats or traced scalars


def on_circle(direction: Vector3, radius: Number) -> tuple[Number, Number]:
    """Return x, y of a point of a disc about z that is farthest; (0, 0) along z."""
    x, y, _ = direction
    square = x * x + y * y
    is_long = square > by_precision(square, double=1e-280, single=1e-36)
    factor = select(is_long, radius / sqrt(select(is_long, square, 1.0)), 0.0)
    return factor * x, factor * y


def farthest_of(points: Sequence[Vector3], direction: Vector3) -> Vector3:
    """Return the first of a few points that is farthest in a direction."""
    x, y, z = points[0]
    reach = dot((x, y, z), direction)
    for point in points[1:]:
        along = dot(point, direction)
        is_farther = along > reach
        reach = select(is_farther, along, reach)
        x, y, z = (
            select(is_farther, p, q) for p, q in zip(point, (x, y, z), strict=True)
        )
    return x, y, z


# primitives: shapes that formulas describe, all of them convex


class Primitive(Shape, frozen=True, kw_only=True):
    """A convex body in closed form.

    Everything is in its own frame, but for `inertia`, which is in the link's primary
    frame. A size of 0 is allowed where a flat body, a line or a point is left; it has
    no volume.
    """

    # What a kind of primitive defines.

    @property
    def moments(self) -> Moments:
        """Return the moments of its volume, in its own frame.

        Raises:
            ModelError: It is infinite.
        """
        raise NotImplementedError

    @property
    def area(self) -> float:
        """Return the area of its surface [m^2]."""
        raise NotImplementedError

    @property
    def bounding_sphere(self) -> BoundingSphere:
        """Return the smallest sphere around it, in its own frame.

        Raises:
            ModelError: It is infinite.
        """
        raise NotImplementedError

    def triangles(self, tolerance: float = MILLIMETRE) -> Triangles:
        """Return triangles with corners on its surface, for drawing; in its own frame.

        Where it has volume they are closed and face outwards.

        tolerance: The largest distance between them and the surface [m], above 0.

        Raises:
            ModelError: It is infinite, or there would be too many triangles.
        """
        raise NotImplementedError

    @property
    def rounding(self) -> float:
        """Return the radius [m] of the ball that rounds its core; 0 without one."""
        return 0.0

    def farthest(self, direction: Vector3) -> Vector3:
        """Return a point of its core that is farthest in a direction.

        It is traced: `direction`, of any length but 0, and the parameters of `self` may
        be traced scalars. The shape is all within `rounding` of its core.
        """
        raise NotImplementedError

    def _support(self, directions: Array) -> Array:
        """Return a farthest point in each unit direction, shapes (n, 3)."""
        program = trace(self._farthest, name="farthest", direction=(3,))
        core = evaluate(program, list(directions.T), _on_arrays)
        points = np.empty_like(directions)
        for k in range(3):
            points[:, k] = core[k]
        return points + self.rounding * directions

    def _farthest(self, direction: Any) -> Vector3:
        return self.farthest(three(direction))

    def _reach(self, directions: Array) -> Array:
        """Return how far it reaches in each unit direction [m], shape (n,)."""
        return np.einsum("ij,ij->i", directions, self._support(directions))

    # What follows.

    @property
    def volume(self) -> float:
        """Return its volume [m^3].

        Raises:
            ModelError: It is infinite.
        """
        return self.moments.volume

    def inertia(self, density: float) -> SpatialInertia:
        """Return its inertia about the origin of the link's primary frame.

        density: [kg/m^3], above 0.

        Raises:
            ModelError: It is infinite, or the density is invalid.
        """
        inertia = self.moments.inertia(density).transformed(self.pose)
        check_finite(inertia)
        return inertia

    def support(self, direction: npt.ArrayLike) -> Array:
        """Return a point of it that is farthest in a direction, in its own frame.

        direction: Of any length but 0, shape (..., 3).

        Returns:
            Points [m], shape (..., 3).

        Raises:
            ShapeError: The shape differs.
            ModelError: A direction is invalid, or there is no farthest point.
        """
        given = np.asarray(direction, dtype=np.float64)
        if given.ndim == 0 or given.shape[-1] != 3:
            raise ShapeError(f"A direction has shape (..., 3), not {given.shape}.")
        return self._support(_units(given.reshape(-1, 3))).reshape(given.shape)

    def bounding_box(self, X_AS: Pose = IDENTITY) -> BoundingBox:
        """Return the smallest box around it along the axes of a frame.

        X_AS: The pose of its own frame S in that frame A: by default A is S; with
            `shape.pose` it is the link's primary frame.

        Returns:
            The box in A, infinite where the shape is.
        """
        R, p = np.array(X_AS.rotation), np.array(X_AS.position)
        # Row i of R is axis i of A, written in S.
        upper, lower = p + self._reach(R), p - self._reach(-R)
        return BoundingBox(tuple(lower.tolist()), tuple(upper.tolist()))


def _units(directions: Array) -> Array:
    """Return directions with length 1, shape (n, 3).

    Raises:
        ModelError: One is 0 or not finite.
    """
    size = np.abs(directions).max(axis=1, keepdims=True, initial=0.0)
    is_good = (size > 0.0) & (size < np.inf)
    if not is_good.all():
        bad = directions[int(np.argmin(is_good[:, 0]))].tolist()
        raise ModelError(f"The direction {bad} is zero or not finite.")
    scaled = directions / size
    return scaled / np.linalg.norm(scaled, axis=1, keepdims=True)


def _on_arrays(meaning: Any) -> Any:
    return meaning.on_arrays if isinstance(meaning, Op) else meaning
