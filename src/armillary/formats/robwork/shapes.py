"""Drawable and CollisionModel: what is drawn, and what may touch."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from armillary.errors import ModelError, quote
from armillary.formats.robwork.desk import Desk
from armillary.formats.robwork.meshes import Meshes
from armillary.formats.robwork.transform import TRANSFORM, read_transform
from armillary.formats.xml import Element
from armillary.model.shape import Colour, Shape
from armillary.model.shapes import (
    Box,
    Cone,
    ConvexPolyhedron,
    Cylinder,
    HalfSpace,
    Mesh,
    Sphere,
)

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
TUBE_LEVEL: Final = 20
MOST_TUBE_PIECES: Final = 200
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
            self._shapes(child, looks)
            for child in desk.children(element, known)
            if child.name in GEOMETRY
        ]
        desk.close(element)
        return Model(tuple(itertools.chain(*found)), is_drawn, may_touch)

    def _shapes(self, element: Element, looks: dict[str, Any]) -> tuple[Shape, ...]:
        if element.name == "Custom":
            self._desk.unsupported.add(
                "the geometry <Custom>, which a plug-in of RobWork makes,",
                element.place,
            )
            return ()
        if element.name != "Tube" and element.attribute("level") is not None:
            self._desk.unsupported.add(
                "the attribute 'level', how finely RobWork draws what is round,",
                element.place,
            )
        try:
            if element.name == "Tube":
                shapes = self._tube(element, looks)
            else:
                shape = self._readers[element.name](element, looks)
                shapes = () if shape is None else (shape,)
        except ModelError as error:
            message = str(error).removesuffix(".")
            self._desk.report.error(element.place, "bad-shape", message)
            shapes = ()
        self._desk.close(element)
        return shapes

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

    def _tube(self, element: Element, looks: dict[str, Any]) -> tuple[Shape, ...]:
        """Return the pieces of a tube around z, as many as RobWork makes of it.

        Its radius is the inner one.
        """
        report = self._desk.report
        sizes = self._sizes(element, "thickness", "z")
        inner = element.number("radius", report, required=True)
        level = element.number("level", report, default=TUBE_LEVEL)
        if inner is not None and inner < 0.0:
            report.error(
                element.place, "negative-size", f"{element.label} has a negative size"
            )
        if sizes is None or min(sizes) == 0.0 or inner is None or inner < 0.0:
            return ()
        count = int(level) if 3 <= level <= MOST_TUBE_PIECES else TUBE_LEVEL
        if count != level:
            report.warning(
                element.place,
                "bad-level",
                f"a tube of {level:g} pieces is read as one of {count}",
            )
        thickness, length = sizes
        angles = 2.0 * np.pi * np.arange(count + 1) / count
        ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return tuple(
            ConvexPolyhedron.around(
                [
                    (radius * x, radius * y, z)
                    for radius in {inner, inner + thickness}
                    for x, y in ring[k : k + 2].tolist()
                    for z in (-0.5 * length, 0.5 * length)
                ],
                **looks,
            )
            for k in range(count)
        )

    def _cylinder(self, element: Element, looks: dict[str, Any]) -> Shape | None:
        sizes = self._sizes(element, "radius", "z")
        if sizes is None:
            return None
        return Cylinder(radius=sizes[0], length=sizes[1], **looks)
