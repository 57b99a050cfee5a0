"""Drawable and CollisionModel: what is drawn, and what may touch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from armillary.errors import ModelError, quote
from armillary.formats.robwork.desk import Desk
from armillary.formats.robwork.meshes import Meshes
from armillary.formats.robwork.transform import TRANSFORM, read_transform
from armillary.formats.xml import Element
from armillary.model.shape import Colour, Shape
from armillary.model.shapes import Box, Cone, Cylinder, HalfSpace, Mesh, Sphere

__all__ = ["MODELS", "Model", "ShapeReader"]

MODELS: Final = ("Drawable", "CollisionModel")
GEOMETRY: Final = (
    "Polytope",
    "Plane",
    "Sphere",
    "Box",
    "Cone",
    "Cylinder",
    "Tube",
    "Custom",
)
SWITCH: Final = ("Enabled", "Disabled")


@dataclass(frozen=True, slots=True)
class Model:
    """The shapes of one element, and what they are for."""

    shapes: tuple[Shape, ...]
    is_drawn: bool
    may_touch: bool


class ShapeReader:
    """Reads the geometry of frames."""

    def __init__(self, desk: Desk, meshes: Meshes) -> None:
        self._desk = desk
        self._meshes = meshes
        self._readers: dict[str, Callable[[Element, dict[str, Any]], Shape | None]] = {
            "Polytope": self._polytope,
            "Sphere": self._sphere,
            "Box": self._box,
            "Cone": self._cone,
            "Cylinder": self._cylinder,
            "Plane": self._plane,
        }

    def read(self, element: Element) -> Model:
        """Return the shapes of a `Drawable` or a `CollisionModel`."""
        desk = self._desk
        is_drawn = element.name == "Drawable"
        name = element.attribute("name")
        if name is None:
            desk.report.warning(
                element.place, "missing-name", f"{element.label} has no name"
            )
        may_touch = (
            not is_drawn
            or desk.choice(element, "colmodel", SWITCH, "Enabled") == "Enabled"
        )
        # Who reads it has asked for the frame.
        element.attribute("refframe")
        looks = {
            "name": name or "",
            "pose": read_transform(element, desk),
            "colour": self._colour(element) if is_drawn else None,
        }
        known = (*TRANSFORM, "RGB", *GEOMETRY)
        found = [
            self._shape(child, looks)
            for child in desk.children(element, known)
            if child.name in GEOMETRY
        ]
        desk.close(element)
        shapes = tuple(shape for shape in found if shape is not None)
        return Model(shapes, is_drawn, may_touch)

    def _shape(self, element: Element, looks: dict[str, Any]) -> Shape | None:
        reader = self._readers.get(element.name)
        if reader is None:
            self._desk.unkept.add(f"the geometry <{element.name}>", element.place)
            return None
        if element.attribute("level") is not None:
            self._desk.unkept.add(
                "the attribute 'level', how finely RobWork draws what is round,",
                element.place,
            )
        try:
            shape = reader(element, looks)
        except ModelError as error:
            message = str(error).removesuffix(".")
            self._desk.report.error(element.place, "bad-shape", message)
            shape = None
        self._desk.close(element)
        return shape

    def _colour(self, element: Element) -> Colour | None:
        rgb = element.only_child("RGB", self._desk.report)
        if rgb is None:
            return None
        values = list(rgb.text_numbers(None, self._desk.report) or ())
        self._desk.close(rgb)
        if len(values) not in {3, 4} or not all(0.0 <= v <= 1.0 for v in values):
            self._desk.report.warning(
                rgb.place,
                "bad-colour",
                f"the colour {quote(rgb.text.strip())} of {element.label} is left out",
                hint="It is red, green, blue and, if wanted, opacity, from 0 to 1.",
            )
            return None
        return (values[0], values[1], values[2], values[3] if len(values) == 4 else 1.0)

    def _sizes(self, element: Element, *names: str) -> list[float] | None:
        """Return sizes that are not negative; report others, and warn of zeros."""
        report = self._desk.report
        given = [element.number(name, report, required=True) for name in names]
        sizes = [value for value in given if value is not None]
        if len(sizes) < len(given):
            return None
        if min(sizes) < 0.0:
            report.error(
                element.place, "negative-size", f"{element.label} has a negative size"
            )
            return None
        if min(sizes) == 0.0:
            report.warning(
                element.place, "no-volume", f"{element.label} has a size of zero"
            )
        return sizes

    def _polytope(self, element: Element, looks: dict[str, Any]) -> Shape | None:
        file = element.required_attribute("file", self._desk.report)
        if file is None:
            return None
        if not file.strip():
            self._desk.report.error(
                element.place, "empty-reference", f"{element.label} names no file"
            )
            return None
        return Mesh(file=self._meshes.resolve(file.strip(), element.place), **looks)

    def _sphere(self, element: Element, looks: dict[str, Any]) -> Shape | None:
        sizes = self._sizes(element, "radius")
        return None if sizes is None else Sphere(radius=sizes[0], **looks)

    def _box(self, element: Element, looks: dict[str, Any]) -> Shape | None:
        sizes = self._sizes(element, "x", "y", "z")
        if sizes is None:
            return None
        return Box(size=(sizes[0], sizes[1], sizes[2]), **looks)

    def _cone(self, element: Element, looks: dict[str, Any]) -> Shape | None:
        """Return a cone about the middle of its height, its tip upwards."""
        sizes = self._sizes(element, "radius", "z")
        if sizes is None:
            return None
        return Cone(bottom=sizes[0], length=sizes[1], **looks)

    def _plane(self, element: Element, looks: dict[str, Any]) -> Shape | None:
        """Return all below the plane of x and y."""
        return HalfSpace(**looks)

    def _cylinder(self, element: Element, looks: dict[str, Any]) -> Shape | None:
        sizes = self._sizes(element, "radius", "z")
        if sizes is None:
            return None
        return Cylinder(radius=sizes[0], length=sizes[1], **looks)
