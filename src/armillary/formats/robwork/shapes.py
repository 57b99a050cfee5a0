"""Drawable and CollisionModel: what is drawn, and what is tested for collision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from armillary.errors import ModelError, quote
from armillary.formats.diagnostic import Report
from armillary.formats.robwork.elements import (
    GEOMETRY,
    SHAPES,
    Context,
    known_children,
    values,
)
from armillary.formats.robwork.frames import Node
from armillary.formats.robwork.transform import (
    number_text,
    numbers_element,
    read_transform,
    transform_elements,
)
from armillary.formats.xml import Element, tag
from armillary.model.link import Link
from armillary.model.shape import Colour, Shape
from armillary.model.shapes import Box, Cone, ConvexPolyhedron, Mesh

__all__ = ["read_shapes", "shape_elements"]

TUBE_LEVEL: Final = 20
MOST_TUBE_PIECES: Final = 200
ONES: Final = (1.0, 1.0, 1.0)


def read_shapes(element: Element, node: Node, context: Context) -> None:
    """Give a frame the shapes of a `Drawable` or a `CollisionModel`."""
    report = context.report
    given = values(element, report)
    if "name" not in element.attributes:
        report.warning(element.place, "missing-name", f"{element.label} has no name")
    is_drawn = element.name == "Drawable"
    is_tested = not is_drawn or given["colmodel"] == "Enabled"
    common = {
        "name": given["name"],
        "pose": read_transform(element, report),
        "colour": _colour(element, report) if is_drawn else None,
    }
    for child in known_children(element):
        if child.name not in GEOMETRY:
            continue
        try:
            shapes = _shapes(child, common, context)
        except ModelError as error:
            message = str(error).removesuffix(".")
            report.error(child.place, "bad-shape", message)
            continue
        node.visuals += shapes if is_drawn else ()
        node.collisions += shapes if is_tested else ()


def _colour(element: Element, report: Report) -> Colour | None:
    rgb = element.only_child("RGB", report)
    if rgb is None:
        return None
    parts = list(rgb.text_numbers(None, report) or ())
    if len(parts) not in {3, 4} or not all(0.0 <= part <= 1.0 for part in parts):
        report.warning(
            rgb.place,
            "bad-colour",
            f"the colour {quote(rgb.text.strip())} of {element.label} is left out",
            hint="Give red, green, blue and, if needed, opacity, from 0 to 1.",
        )
        return None
    return (parts[0], parts[1], parts[2], parts[3] if len(parts) == 4 else 1.0)


def _shapes(
    element: Element, common: Mapping[str, Any], context: Context
) -> Sequence[Shape]:
    """Return the shapes that an element of geometry stands for."""
    kind, report = element.name, context.report
    if kind == "Custom":
        what = "the geometry <Custom>, which a plug-in of RobWork makes,"
        context.report.unsupported.add(what, element.place)
        return ()
    given = values(element, report)
    if kind != "Tube" and given["level"]:
        what = "the attribute 'level', how finely RobWork draws what is round,"
        context.report.unsupported.add(what, element.place)
    if kind == "Polytope":
        file = given["file"]
        if file is None or not file.strip():
            if file is not None:
                message = f"{element.label} names no file"
                report.error(element.place, "empty-reference", message)
            return ()
        path = context.finder.mesh(file.strip(), element.place, report)
        return (Mesh(file=path, **common),)
    if None in given.values():
        return ()
    names = ("thickness", "z") if kind == "Tube" else SHAPES[kind][1]
    sizes = [given[name] for name in names]
    if 0.0 in sizes:
        message = f"{element.label} has a size of zero"
        report.warning(element.place, "no-volume", message)
    if kind == "Tube":
        return () if 0.0 in sizes else _tube(element, common, given, report)
    return (_simple(kind, sizes, common),)


def _simple(kind: str, sizes: Sequence[float], common: Mapping[str, Any]) -> Shape:
    shape, fields = SHAPES[kind]
    if shape is Box:
        x, y, z = sizes
        return Box(size=(x, y, z), **common)
    return shape(**dict(zip(fields.values(), sizes, strict=True)), **common)


def _tube(
    element: Element,
    common: Mapping[str, Any],
    given: Mapping[str, float],
    report: Report,
) -> list[Shape]:
    """Return the pieces of a tube around z, as many as RobWork makes of it.

    Its radius is the inner one.
    """
    level = element.number("level", report, default=TUBE_LEVEL)
    count = int(level) if 3 <= level <= MOST_TUBE_PIECES else TUBE_LEVEL
    if count != level:
        message = f"a tube of {level:g} pieces is read as one of {count}"
        report.warning(element.place, "bad-level", message)
    inner, length = given["radius"], given["z"]
    angles = 2.0 * np.pi * np.arange(count + 1) / count
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return [
        ConvexPolyhedron.around(
            [
                (radius * x, radius * y, z)
                for radius in {inner, inner + given["thickness"]}
                for x, y in ring[k : k + 2].tolist()
                for z in (-0.5 * length, 0.5 * length)
            ],
            **common,
        )
        for k in range(count)
    ]


# Writing


def shape_elements(link: Link, report: Report) -> list[Element]:
    """Return the shapes of a link; one that is drawn and tested is written once."""
    rest = list(link.collisions)
    models: list[tuple[str, str | None, Shape]] = []
    for shape in link.visuals:
        models.append(("Drawable", None if shape in rest else "Disabled", shape))
        if shape in rest:
            rest.remove(shape)
    models += [("CollisionModel", None, shape) for shape in rest]
    found: list[Element] = []
    for kind, switch, shape in models:
        geometry = _geometry(shape, report)
        content = transform_elements(link.primary @ shape.pose)
        if shape.colour is not None and kind == "Drawable":
            is_opaque = shape.colour[3] == 1.0
            rgb = shape.colour[:3] if is_opaque else shape.colour
            content.append(numbers_element("RGB", rgb))
        elif shape.colour is not None:
            report.unsupported.add("the colour of a shape that is not drawn")
        if geometry is None:
            report.unsupported.add(f"a shape of type {type(shape).__name__}")
        else:
            attributes = {"name": shape.name, "colmodel": switch}
            found.append(tag(kind, attributes, *content, geometry))
    return found


def _geometry(shape: Shape, report: Report) -> Element | None:
    """Return the element of a shape without its pose, None if RobWork has none."""
    if isinstance(shape, Mesh):
        if shape.scale != ONES:
            report.unsupported.add("the scale of a mesh")
        return tag("Polytope", {"file": shape.file})
    if isinstance(shape, Cone) and shape.top != 0.0:
        return None
    for kind, (known, fields) in SHAPES.items():
        if type(shape) is known:
            sizes = [getattr(shape, field) for field in fields.values()]
            sizes = shape.size if isinstance(shape, Box) else sizes
            return tag(kind, dict(zip(fields, map(number_text, sizes), strict=True)))
    return None
