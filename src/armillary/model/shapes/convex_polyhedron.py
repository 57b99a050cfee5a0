"""Convex polyhedra."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError
from armillary.model.fields import TupleOfPoints, reduced
from armillary.model.geometry.bounding import BoundingSphere, sphere_around
from armillary.model.geometry.hull import (
    check_spans_body,
    convex_hull,
    outer_hull,
)
from armillary.model.geometry.moments import Moments
from armillary.model.geometry.tessellation import check_tolerance
from armillary.model.geometry.triangles import Triangles
from armillary.model.primitive import MILLIMETRE, Primitive
from armillary.model.shape import LARGEST

Array = npt.NDArray[np.float64]

MOST_VERTICES: Final = 1000


class ConvexPolyhedron(
    Primitive, frozen=True, kw_only=True, tag="convex_polyhedron", dict=True
):
    """The convex hull of points; its faces and moments are computed by SciPy.

    Attributes:
        vertices: At least four [m], not in one plane; at most 1000.
    """

    vertices: TupleOfPoints

    @classmethod
    def around(
        cls, points: npt.ArrayLike, *, tolerance: float = 0.0, **looks: Any
    ) -> Self:
        """Return a convex polyhedron around points, by default the smallest.

        Args:
            points: At least four [m], shape (n, 3); those inside are left out.
            tolerance: How far it may reach beyond the hull [m], so that it has fewer
                corners. Then any points will do: flat ones get as thick as allowed.
            looks: Pose, name and colour.

        Raises:
            ShapeError: The shape differs.
            ModelError: They are not finite, lie in one plane, or too many are corners;
                or the tolerance is invalid.
        """
        given = np.asarray(points, dtype=np.float64)
        if given.ndim != 2 or given.shape[1] != 3:
            raise ShapeError(f"Points have shape (n, 3), not {given.shape}.")
        if not np.all(np.abs(given) <= LARGEST):
            raise ModelError(
                "A convex polyhedron is around finite points, with coordinates of at "
                f"most {LARGEST:g} m."
            )
        if not 0.0 <= tolerance <= LARGEST:
            raise ModelError(f"The tolerance must be at least 0 m, not {tolerance!r}.")
        if tolerance > 0.0 and len(given):
            corners = outer_hull(given, tolerance, most=MOST_VERTICES)
            if corners is None:
                raise ModelError(
                    f"Within {tolerance:g} m of these points, a convex polyhedron has "
                    f"more than {MOST_VERTICES} vertices; allow a greater tolerance."
                )
        else:
            corners = given[np.unique(convex_hull(given))]
        return cls(vertices=tuple(map(tuple, corners.tolist())), **looks)

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(self)

    def check(self) -> None:
        """Check that the vertices span a body."""
        count = len(self.vertices)
        if count > MOST_VERTICES:
            raise self._fault(
                f"it has {count} vertices, more than {MOST_VERTICES}; make it coarser: "
                "ConvexPolyhedron.around(points, tolerance=0.001)"
            )
        self._store_points("vertices", None)
        try:
            check_spans_body(np.array(self.vertices))
        except ModelError as error:
            raise self._fault(str(error).removesuffix(".")) from error

    @cached_property
    def _surface(self) -> Triangles:
        vertices = np.array(self.vertices)
        return Triangles(vertices, convex_hull(vertices))

    @property
    def faces(self) -> npt.NDArray[np.int64]:
        """Return the triangles of its surface, counter-clockwise from outside.

        They are numbers of vertices, shape (m, 3).
        """
        return self._surface.faces

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
        """Return the smallest sphere around its vertices."""
        return sphere_around(np.array(self.vertices))

    def triangles(self, tolerance: float = MILLIMETRE) -> Triangles:
        """Return its surface."""
        check_tolerance(tolerance)
        return self._surface

    def _support(self, directions: Array) -> Array:
        vertices = np.array(self.vertices)
        return vertices[np.argmax(directions @ vertices.T, axis=1)]
