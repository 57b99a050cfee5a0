"""Actin's own primitive shapes, by the names of its headers.

They are given by points in the primary frame of their link [m]. Boxes and circles are
not read: it is not known whether the extents of a box are halves, nor how a circle
states its plane.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.formats.actin.names import PREFIXES, PRIMARY, bare
from armillary.formats.actin.values import AXES, number, read_pose
from armillary.formats.diagnostic import Report
from armillary.formats.xml import Element, report_unused
from armillary.model.shape import Shape
from armillary.model.shapes import (
    Capsule,
    Cone,
    Cylinder,
    Ellipsoid,
    HalfSpace,
    Lozenge,
    Sphere,
    Tetrahedron,
    TriangularLozenge,
)
from armillary.spatial.pose import Pose

__all__ = ["is_actins", "read_actins"]

Array = npt.NDArray[np.float64]

SQUARE: Final = 1e-9
"""Cosine of the angle between edges that counts as a right one."""


def is_actins(element: Element) -> bool:
    """Return whether an element is a shape of Actin's that can be read."""
    return bare(element.namespace) == PREFIXES["mn"] and element.name in _READERS


def read_actins(element: Element, report: Report) -> Shape | None:
    """Return a shape of Actin's, None after an error in it."""
    made: Shape | None = None
    try:
        made = _READERS[element.name](_ShapeValues(element, report))
    except _MissingError:
        pass
    except ModelError as error:
        message = f"{element.label}: {str(error).removesuffix('.')}"
        report.error(element.place, "bad-shape", message)
    report_unused(element, report)
    return made


class _MissingError(Exception):
    """A value is missing or faulty, which the report says already."""


class _ShapeValues:
    """The numbers and points of an element."""

    def __init__(self, element: Element, report: Report) -> None:
        self._element = element
        self._report = report

    def inside(self, name: str) -> _ShapeValues:
        """Return the values of a child, which must be there."""
        child = self._element.required_child(name, self._report)
        if child is None:
            raise _MissingError
        return _ShapeValues(child, self._report)

    def number(self, name: str) -> float:
        """Return the number in a child, which must be there."""
        if self._element.required_child(name, self._report) is None:
            raise _MissingError
        value = number(self._element, name, self._report)
        if value is None:
            raise _MissingError
        return value

    def point(self, name: str) -> Array:
        """Return the point in a child, (3,): attributes x, y, z, or three numbers."""
        child = self._element.required_child(name, self._report)
        if child is None:
            raise _MissingError
        if child.read_text():
            found = child.text_numbers(3, self._report)
        else:
            found = child.each_number(AXES, self._report, default=0.0)
        if found is None:
            raise _MissingError
        return np.array(found, np.float64)

    def frame(self) -> Pose:
        """Return the pose in the child `primaryFrame`; the identity without one."""
        return read_pose(self._element.only_child(PRIMARY, self._report), self._report)


def _ends(values: _ShapeValues) -> tuple[Array, Array]:
    segment = values.inside("lineSegment")
    return segment.point("endpoint0"), segment.point("endpoint1")


def _sphere(values: _ShapeValues) -> Shape:
    centre = Pose.translation(*values.point("center").tolist())
    return Sphere(radius=values.number("radius"), pose=centre)


def _capsule(values: _ShapeValues) -> Shape:
    return Capsule.between(*_ends(values), radius=values.number("radius"))


def _cylinder(values: _ShapeValues) -> Shape:
    return Cylinder.between(*_ends(values), radius=values.number("radius"))


def _cone(values: _ShapeValues) -> Shape:
    radii = values.number("radius0"), values.number("radius1")
    return Cone.between(*_ends(values), bottom=radii[0], top=radii[1])


def _ellipsoid(values: _ShapeValues) -> Shape:
    a, b, c = (values.number(f"ellipsoid{name}") for name in "ABC")
    return Ellipsoid(radii=(a, b, c), pose=values.frame())


def _half_space(values: _ShapeValues) -> Shape:
    plane = values.inside("plane")
    normal = plane.point("planeNormalVector")
    return HalfSpace.below(plane.point("planeBasePoint"), normal)


def _tetrahedron(values: _ShapeValues) -> Shape:
    origin = values.point("tetrahedronV0")
    edges = [values.point(f"tetrahedronEdge{k}") for k in (1, 2, 3)]
    return Tetrahedron(corners=_corners(origin, *edges))


def _triangular_lozenge(values: _ShapeValues) -> Shape:
    triangle = values.inside("triangle")
    edges = [triangle.point(f"triangleEdge{k}") for k in (0, 1)]
    corners = _corners(triangle.point("triangleOrigin"), *edges)
    return TriangularLozenge(corners=corners, radius=values.number("radius"))


def _corners(origin: Array, *edges: Array) -> Any:
    """Return a corner and those at the other ends of the edges from it."""
    return tuple(
        tuple(each.tolist()) for each in (origin, *(origin + e for e in edges))
    )


def _lozenge(values: _ShapeValues) -> Shape:
    rectangle = values.inside("rectangle")
    origin = rectangle.point("rectangleOrigin")
    u, v = (rectangle.point(f"rectangleEdge{k}") for k in (0, 1))
    lengths = float(np.linalg.norm(u)), float(np.linalg.norm(v))
    if not (min(lengths) > 0.0 and math.isfinite(max(lengths))):
        raise ModelError("an edge of the rectangle has no length.")
    x, y = u / lengths[0], v / lengths[1]
    if abs(float(x @ y)) > SQUARE:
        raise ModelError("the edges of the rectangle are not at right angles.")
    X = np.eye(4)
    X[:3, :3] = np.stack([x, y, np.cross(x, y)], axis=1)
    X[:3, 3] = origin + 0.5 * (u + v)
    pose = Pose.from_matrix(X).normalised()
    return Lozenge(size=lengths, radius=values.number("radius"), pose=pose)


_READERS: Final[dict[str, Callable[[_ShapeValues], Shape]]] = {
    "sphere": _sphere,
    "capsule": _capsule,
    "cylinder": _cylinder,
    "cone": _cone,
    "ellipsoid": _ellipsoid,
    "halfSpace": _half_space,
    "tetrahedron": _tetrahedron,
    "triangularLozenge": _triangular_lozenge,
    "lozenge": _lozenge,
}
