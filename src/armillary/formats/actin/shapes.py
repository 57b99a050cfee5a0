"""Shapes of links, in Actin's `shapeContainer`.

They are written as elements of our own, with our parameters, since Actin's do not hold
all of them. Actin's primitive shapes are read, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.formats.actin.names import OWN, PREFIXES, PRIMARY, actin_tag, bare
from armillary.formats.actin.values import (
    AXES,
    built,
    number,
    pose_elements,
    read_pose,
    text,
    text_element,
    value_text,
)
from armillary.formats.diagnostic import Report
from armillary.formats.xml import Element, report_unused
from armillary.model.cloud import Cloud
from armillary.model.link import Link
from armillary.model.shape import Shape
from armillary.model.shapes import (
    SHAPES,
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

__all__ = ["KINDS", "SHAPE_NAMES", "read_shapes", "shape_elements"]

Array = npt.NDArray[np.float64]

HOLDERS: Final = {"visuals": "physicalExtent", "collisions": "boundingVolume"}
TEXTS: Final = frozenset({"file"})
POINTS: Final = frozenset({"corners", "vertices"})


def _name(kind: type[Any]) -> str:
    """Return the element of a kind of shape: `convex_polyhedron` in camel case."""
    first, *rest = str(kind.__struct_config__.tag).split("_")
    return first + "".join(map(str.capitalize, rest))


def _parameters(kind: type[Any]) -> list[str]:
    """Return the fields that are elements of their own names."""
    return [name for name in kind.__struct_fields__ if name not in {"name", "pose"}]


# Clouds have far more numbers than XML is made for.
CLOUDS: Final = tuple(kind for kind in SHAPES if issubclass(kind, Cloud))
KINDS: Final[dict[str, type[Any]]] = {
    _name(kind): kind for kind in SHAPES if kind not in CLOUDS
}
_FIELDS: Final = sorted({f for kind in KINDS.values() for f in _parameters(kind)})
SHAPE_NAMES: Final = tuple((name, OWN) for name in (*KINDS, *_FIELDS))
"""Names of elements with their namespaces."""


def read_shapes(link: Element, report: Report) -> dict[str, tuple[Shape, ...]]:
    """Return the shapes of a link, by its fields."""
    outer = link.only_child("shapeContainer", report)
    if outer is None:
        return {}
    shapes: dict[str, tuple[Shape, ...]] = {}
    for field, name in HOLDERS.items():
        holder = outer.only_child(name, report)
        if holder is not None:
            made = [_read_shape(each, report) for each in holder.children]
            shapes[field] = tuple(shape for shape in made if shape is not None)
            if any(map(_is_actins, holder.children)):
                # Actin tests what is drawn where there is nothing else to test.
                shapes.setdefault("collisions", shapes[field])
    return shapes


def _read_shape(element: Element, report: Report) -> Shape | None:
    if _is_actins(element):
        return _read_actins(element, report)
    kind = KINDS.get(element.name)
    if kind is None or element.namespace != OWN:
        message = f"the shape {element.label} is left out"
        hint = f"Any shape is read if it is in the namespace {OWN}."
        report.warning(element.place, "unkept-shape", message, hint=hint)
        return None
    fields: dict[str, Any] = {
        "name": text(element, "identifier", report),
        "pose": read_pose(element, report),
    }
    for name in _parameters(kind):
        child = element.only_child(name, report)
        if child is not None:
            fields[name] = _value_of(name, child, report)
    report_unused(element, report)
    return built(kind, fields, element, "bad-shape", report)


def _value_of(field: str, element: Element, report: Report) -> Any:
    if field in TEXTS:
        return element.read_text()
    numbers = element.text_numbers(None, report) or ()
    if field in POINTS:
        return tuple(numbers[k : k + 3] for k in range(0, len(numbers), 3))
    return numbers[0] if len(numbers) == 1 else numbers


def shape_elements(link: Link, report: Report) -> list[Element]:
    """Return the shapes of a link, nothing if there are none."""
    holders: list[Element] = []
    for field, name in HOLDERS.items():
        made = [_shape_element(shape, report) for shape in getattr(link, field)]
        children = [each for each in made if each is not None]
        if children:
            holders.append(actin_tag(name, {}, *children))
    return [actin_tag("shapeContainer", {}, *holders)] if holders else []


def _shape_element(shape: Shape, report: Report) -> Element | None:
    kind = type(shape)
    if kind not in KINDS.values():
        return None  # `report_losses` says so
    children = list(pose_elements(shape.pose))
    if shape.name:
        children.insert(0, text_element("identifier", shape.name, report))
    for field in _parameters(kind):
        value = getattr(shape, field)
        if value is not None:
            children.append(text_element(f"am:{field}", value_text(value), report))
    return actin_tag(f"am:{_name(kind)}", {}, *children)


# Actin's own primitive shapes, by the names of its headers. They are given by points in
# the primary frame of their link [m]. Boxes and circles are not read: it is not known
# whether the extents of a box are halves, nor how a circle states its plane.

SQUARE: Final = 1e-9
"""Cosine of the angle between edges that counts as a right one."""


def _is_actins(element: Element) -> bool:
    """Return whether an element is a shape of Actin's that can be read."""
    return bare(element.namespace) == PREFIXES["mn"] and element.name in _READERS


def _read_actins(element: Element, report: Report) -> Shape | None:
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
            point = child.text_numbers(3, self._report)
        else:
            point = child.each_number(AXES, self._report, default=0.0)
        if point is None:
            raise _MissingError
        return np.array(point, np.float64)

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
