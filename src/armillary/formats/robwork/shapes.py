"""Drawable and CollisionModel: what is drawn, and what is tested for collision."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from armillary.errors import ModelError, quote
from armillary.formats.diagnostic import Diagnostic, Place, Unsupported
from armillary.formats.robwork.frames import Node
from armillary.formats.robwork.include import FileFinder
from armillary.formats.robwork.reader_context import ReaderContext
from armillary.formats.robwork.transform import (
    TRANSFORM,
    number_text,
    numbers_element,
    read_transform,
    transform_elements,
)
from armillary.formats.xml import Element, tag
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
from armillary.spatial.pose import Pose

__all__ = ["MODELS", "ShapeReader", "shape_elements"]

MODELS: Final = ("Drawable", "CollisionModel")
SIZES: Final = {
    "Sphere": ("radius",),
    "Box": ("x", "y", "z"),
    "Cone": ("radius", "z"),
    "Cylinder": ("radius", "z"),
    "Plane": (),
}
"""The attributes of the simple shapes, in the order in which they are used below."""

GEOMETRY: Final = ("Polytope", *SIZES, "Tube", "Custom")
TUBE_LEVEL: Final = 20
MOST_TUBE_PIECES: Final = 200

MESH_SUFFIXES: Final = (
    *("", ".stl", ".stla", ".stlb", ".obj"),
    *(".3ds", ".ac", ".ac3d", ".tri", ".dae"),
)
"""What RobWork adds to a file name without a suffix, some of it in another order."""

MOST_LOOKED_UP: Final = 2000
ONES: Final = (1.0, 1.0, 1.0)


class ShapeReader:
    """Reads the shapes of frames; names mesh files as seen from the first file.

    Files of meshes are looked up, but not opened.
    """

    def __init__(self, context: ReaderContext, finder: FileFinder) -> None:
        self._context = context
        self._finder = finder
        self._meshes: dict[tuple[str, str], str] = {}
        self._missing: list[tuple[Place, str]] = []

    def read(self, element: Element, node: Node) -> None:
        """Give a frame the shapes of a `Drawable` or a `CollisionModel`."""
        context = self._context
        is_drawn, is_tested = element.name == "Drawable", True
        name = element.attribute("name")
        if name is None:
            message = f"{element.label} has no name"
            context.warning(element.place, "missing-name", message)
        if is_drawn:
            switch = ("Enabled", "Disabled")
            value = context.choice(element, "colmodel", switch, "Enabled")
            is_tested = value == "Enabled"
        element.attribute("refframe")
        common = {
            "name": name or "",
            "pose": read_transform(element, context),
            "colour": self._colour(element) if is_drawn else None,
        }
        for child in context.children(element, (*TRANSFORM, "RGB", *GEOMETRY)):
            if child.name in GEOMETRY:
                shapes = self._shapes(child, common)
                node.visuals += shapes if is_drawn else ()
                node.collisions += shapes if is_tested else ()
        context.close(element)

    def _shapes(self, element: Element, common: dict[str, Any]) -> Sequence[Shape]:
        unsupported = self._context.unsupported
        if element.name == "Custom":
            what = "the geometry <Custom>, which a plug-in of RobWork makes,"
            unsupported.add(what, element.place)
            return ()
        if element.name != "Tube" and element.attribute("level") is not None:
            what = "the attribute 'level', how finely RobWork draws what is round,"
            unsupported.add(what, element.place)
        shapes: Sequence[Shape] = ()
        try:
            if element.name == "Tube":
                shapes = self._tube(element, common)
            elif element.name == "Polytope":
                shapes = self._mesh(element, common)
            else:
                sizes = self._sizes(element, *SIZES[element.name])
                if sizes is not None:
                    shapes = (_simple(element.name, sizes, common),)
        except ModelError as error:
            message = str(error).removesuffix(".")
            self._context.error(element.place, "bad-shape", message)
        self._context.close(element)
        return shapes

    def _colour(self, element: Element) -> Colour | None:
        rgb = element.only_child("RGB", self._context.report)
        if rgb is None:
            return None
        values = list(rgb.text_numbers(None, self._context.report) or ())
        self._context.close(rgb)
        if len(values) not in {3, 4} or not all(0.0 <= v <= 1.0 for v in values):
            self._context.warning(
                rgb.place,
                "bad-colour",
                f"the colour {quote(rgb.text.strip())} of {element.label} is left out",
                hint="Give red, green, blue and, if needed, opacity, from 0 to 1.",
            )
            return None
        return (values[0], values[1], values[2], values[3] if len(values) == 4 else 1.0)

    def _sizes(self, element: Element, *names: str) -> list[float] | None:
        """Return sizes that are not negative; report others, and warn of zeros."""
        report = self._context.report
        given = [element.number(name, report, required=True) for name in names]
        sizes = [value for value in given if value is not None]
        if len(sizes) < len(given):
            return None
        if min(sizes, default=1.0) < 0.0:
            message = f"{element.label} has a negative size"
            report.error(element.place, "negative-size", message)
            return None
        if min(sizes, default=1.0) == 0.0:
            message = f"{element.label} has a size of zero"
            report.warning(element.place, "no-volume", message)
        return sizes

    def _tube(self, element: Element, common: dict[str, Any]) -> Sequence[Shape]:
        """Return the pieces of a tube around z, as many as RobWork makes of it.

        Its radius is the inner one.
        """
        report = self._context.report
        sizes = self._sizes(element, "thickness", "z")
        inner = element.number("radius", report, required=True)
        level = element.number("level", report, default=TUBE_LEVEL)
        if inner is not None and inner < 0.0:
            message = f"{element.label} has a negative size"
            report.error(element.place, "negative-size", message)
        if sizes is None or min(sizes) == 0.0 or inner is None or inner < 0.0:
            return ()
        count = int(level) if 3 <= level <= MOST_TUBE_PIECES else TUBE_LEVEL
        if count != level:
            message = f"a tube of {level:g} pieces is read as one of {count}"
            report.warning(element.place, "bad-level", message)
        thickness, length = sizes
        angles = 2.0 * np.pi * np.arange(count + 1) / count
        ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return [
            ConvexPolyhedron.around(
                [
                    (radius * x, radius * y, z)
                    for radius in {inner, inner + thickness}
                    for x, y in ring[k : k + 2].tolist()
                    for z in (-0.5 * length, 0.5 * length)
                ],
                **common,
            )
            for k in range(count)
        ]

    # Meshes

    def _mesh(self, element: Element, common: dict[str, Any]) -> Sequence[Shape]:
        file = element.required_attribute("file", self._context.report)
        if file is None:
            return ()
        if not file.strip():
            message = f"{element.label} names no file"
            self._context.error(element.place, "empty-reference", message)
            return ()
        return (Mesh(file=self._mesh_path(file.strip(), element.place), **common),)

    def _mesh_path(self, reference: str, place: Place) -> str:
        """Return the path of a mesh from the folder of the first file.

        The suffix is added if a file with one of those that RobWork tries exists.
        """
        reference = reference.replace("\\", "/")
        folder = os.path.dirname(os.path.abspath(place.path))
        key = (folder, reference)
        if key not in self._meshes:
            if len(self._meshes) < MOST_LOOKED_UP:
                reference += self._suffix(folder, reference, place)
            path = reference
            if not os.path.isabs(path):
                path = os.path.join(folder, path)
                path = os.path.relpath(path, self._finder.folder).replace(os.sep, "/")
            self._meshes[key] = path
        return self._meshes[key]

    def _suffix(self, folder: str, reference: str, place: Place) -> str:
        """Return what a file name lacks; report a missing or forbidden file."""
        path = os.path.join(folder, reference)
        for suffix in MESH_SUFFIXES:
            if _is_file(path + suffix):
                found = self._finder.find(reference + suffix, place)
                if isinstance(found, Diagnostic):
                    self._context.warning(
                        place, found.code, found.message, hint=found.hint
                    )
                return suffix
        self._missing.append((place, reference))
        return ""

    def report_missing(self) -> None:
        """Report how many mesh files are missing, in one warning."""
        if not self._missing:
            return
        place, first = self._missing[0]
        others = f" and {len(self._missing) - 1} more" if self._missing[1:] else ""
        self._context.warning(
            place,
            "missing-mesh",
            f"there is no file for the geometry {quote(first)}{others}, of "
            f"{len(self._meshes)} in all; shapes keep the names",
            hint="Poses need none of them; drawing and collisions do.",
        )


def _simple(kind: str, sizes: Sequence[float], common: dict[str, Any]) -> Shape:
    match kind, sizes:
        case "Sphere", [radius]:
            return Sphere(radius=radius, **common)
        case "Box", [x, y, z]:
            return Box(size=(x, y, z), **common)
        case "Cone", [radius, z]:  # about the middle of its height, its tip upwards
            return Cone(bottom=radius, length=z, **common)
        case "Cylinder", [radius, z]:
            return Cylinder(radius=radius, length=z, **common)
        case _:  # a plane is all below that of x and y
            return HalfSpace(**common)


def _is_file(path: str) -> bool:
    try:
        return os.path.isfile(path)
    except ValueError:
        return False


# Writing


def shape_elements(
    visuals: Sequence[Shape],
    collisions: Sequence[Shape],
    primary: Pose,
    unsupported: Unsupported,
) -> list[Element]:
    """Return the shapes of a link; one that is drawn and tested is written once."""
    rest = list(collisions)
    found: list[Element] = []
    for shape in visuals:
        switch = None if shape in rest else "Disabled"
        if shape in rest:
            rest.remove(shape)
        attributes = {"name": shape.name, "colmodel": switch}
        found += _model("Drawable", attributes, shape, primary, unsupported)
    for shape in rest:
        if shape.colour is not None:
            unsupported.add("the colour of a shape that is not drawn")
        attributes = {"name": shape.name}
        found += _model("CollisionModel", attributes, shape, primary, unsupported)
    return found


def _model(
    kind: str,
    attributes: Mapping[str, str | None],
    shape: Shape,
    primary: Pose,
    unsupported: Unsupported,
) -> list[Element]:
    """Return the element of a shape, none with a count of what is lost."""
    geometry = _geometry(shape, unsupported)
    if geometry is None:
        unsupported.add(f"a shape of type {type(shape).__name__}")
        return []
    content = transform_elements(primary @ shape.pose)
    if shape.colour is not None and kind == "Drawable":
        is_opaque = shape.colour[3] == 1.0
        rgb = shape.colour[:3] if is_opaque else shape.colour
        content.append(numbers_element("RGB", rgb))
    return [tag(kind, attributes, *content, geometry)]


def _geometry(shape: Shape, unsupported: Unsupported) -> Element | None:
    match shape:
        case Box():
            kind, sizes = "Box", shape.size
        case Sphere():
            kind, sizes = "Sphere", (shape.radius,)
        case Cylinder():
            kind, sizes = "Cylinder", (shape.radius, shape.length)
        case Cone(top=0.0):
            kind, sizes = "Cone", (shape.bottom, shape.length)
        case HalfSpace():
            kind, sizes = "Plane", ()
        case Mesh():
            if shape.scale != ONES:
                unsupported.add("the scale of a mesh")
            return tag("Polytope", {"file": shape.file})
        case _:
            return None
    return tag(kind, dict(zip(SIZES[kind], map(number_text, sizes), strict=True)))
