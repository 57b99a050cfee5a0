"""What is about a frame, read and written: shapes, limits and properties.

Limits of angles are in degrees, everything else in metres and radians.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from armillary.errors import ModelError, quote
from armillary.formats.diagnostic import Report
from armillary.formats.elements import all_numbers
from armillary.formats.robwork.elements import (
    ELEMENTS,
    GEOMETRY,
    LIMITS,
    MODELS,
    SETUPS,
    SHAPES,
    Context,
    number_text,
)
from armillary.formats.robwork.frames import (
    DAF,
    DEVICE,
    JUNCTION,
    PREFIX,
    TYPE,
    FileFrame,
)
from armillary.formats.robwork.transform import (
    ANGLE_DIGITS,
    looks_like_radians,
    numbers_element,
    read_transform,
    transform_elements,
)
from armillary.formats.xml import Element
from armillary.model.limits import Limits
from armillary.model.link import Link
from armillary.model.property import Property
from armillary.model.shape import Colour, Shape
from armillary.model.shapes import Cone, ConvexPolyhedron, Mesh
from armillary.model.unit import Unit

__all__ = [
    "limit_elements",
    "property_elements",
    "read_part",
    "read_property",
    "shape_elements",
]


def read_part(element: Element, frame: FileFrame, context: Context) -> None:
    """Give a frame the shape, limit or property of an element."""
    if element.name in LIMITS:
        _read_limit(element, frame, context.report)
    elif element.name in MODELS:
        _read_shapes(element, frame, context)
    else:
        read_property(element, frame.properties, context.report)


# Shapes: `Drawable` is drawn and, unless it says otherwise, tested for collision

TUBE_LEVEL: Final = 20
MOST_TUBE_PIECES: Final = 200
ONES: Final = (1.0, 1.0, 1.0)


def _read_shapes(element: Element, frame: FileFrame, context: Context) -> None:
    report = context.report
    model = ELEMENTS.read(element, report)
    if "name" not in element.attributes:
        report.warning(element.place, "missing-name", f"{element.label} has no name")
    is_drawn = element.name == "Drawable"
    looks = {
        "name": model["name"],
        "pose": read_transform(element, report),
        "colour": _colour(element, report) if is_drawn else None,
    }
    for child in ELEMENTS.children(element):
        if child.name not in GEOMETRY:
            continue
        try:
            shapes = _shapes(child, looks, context)
        except ModelError as error:
            message = str(error).removesuffix(".")
            report.error(child.place, "bad-shape", message)
            continue
        frame.visuals += shapes if is_drawn else ()
        frame.collisions += shapes if model.get("is_tested", True) else ()


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
    element: Element, looks: Mapping[str, Any], context: Context
) -> Sequence[Shape]:
    """Return the shapes that an element of geometry stands for."""
    kind, report = element.name, context.report
    if kind == "Custom":
        what = "the geometry <Custom>, which a plug-in of RobWork makes,"
        report.unsupported.add(what, element.place)
        return ()
    fields = ELEMENTS.read(element, report)
    level = fields.pop("level")
    if kind != "Tube" and level:
        what = "the attribute 'level', how finely RobWork draws what is round,"
        report.unsupported.add(what, element.place)
    if None in fields.values():
        return ()
    if kind == "Polytope":
        path = context.finder.mesh(fields["file"].strip(), element.place, report)
        return (Mesh(file=path, **looks),)
    inner = fields.pop("radius") if kind == "Tube" else 0.0
    is_flat = 0.0 in all_numbers(fields)
    if is_flat:
        message = f"{element.label} has a size of zero"
        report.warning(element.place, "no-volume", message)
    if kind != "Tube":
        return (SHAPES[kind](**fields, **looks),)
    return [] if is_flat else _tube(element, looks, inner, fields, report)


def _tube(
    element: Element,
    looks: Mapping[str, Any],
    inner: float,
    sizes: Mapping[str, float],
    report: Report,
) -> list[Shape]:
    """Return the pieces of a tube around z, as many as RobWork makes of it."""
    level = element.number("level", report, default=TUBE_LEVEL)
    count = int(level) if 3 <= level <= MOST_TUBE_PIECES else TUBE_LEVEL
    if count != level:
        message = f"a tube of {level:g} pieces is read as one of {count}"
        report.warning(element.place, "bad-level", message)
    angles = 2.0 * np.pi * np.arange(count + 1) / count
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    # Each piece is the convex hull of its eight corners, four where the bore is closed.
    return [
        ConvexPolyhedron.around(
            [
                (radius * x, radius * y, z)
                for radius in {inner, inner + sizes["thickness"]}
                for x, y in ring[k : k + 2].tolist()
                for z in (-0.5 * sizes["z"], 0.5 * sizes["z"])
            ],
            **looks,
        )
        for k in range(count)
    ]


def shape_elements(link: Link, report: Report) -> list[Element]:
    """Return the shapes of a link; one that is drawn and tested is written once."""
    only_tested = list(link.collisions)
    models: list[tuple[str, bool, Shape]] = []
    for shape in link.visuals:
        is_tested = shape in only_tested
        models.append(("Drawable", is_tested, shape))
        if is_tested:
            only_tested.remove(shape)
    models += [("CollisionModel", True, shape) for shape in only_tested]
    elements: list[Element] = []
    for kind, is_tested, shape in models:
        geometry = _geometry(shape, report)
        content = transform_elements(link.primary @ shape.pose)
        if shape.colour is not None and kind == "Drawable":
            is_opaque = shape.colour[3] == 1.0
            rgb = shape.colour[:3] if is_opaque else shape.colour
            content.append(numbers_element("RGB", rgb))
        elif shape.colour is not None:
            report.unsupported.add("the colour of a shape that is not drawn")
        if geometry is not None:
            content.append(geometry)
            model = ELEMENTS.write(kind, shape, *content, is_tested=is_tested)
            elements.append(model)
    return elements


def _geometry(shape: Shape, report: Report) -> Element | None:
    """Return the element of a shape without its pose, None if RobWork has none."""
    if isinstance(shape, Mesh) and shape.scale != ONES:
        report.unsupported.add("the scale of a mesh")
    if isinstance(shape, Cone) and shape.top != 0.0:
        report.unsupported.add("a cone without a tip")
        return None
    return ELEMENTS.of(shape)


# Limits

# RobWork's own default, which it reads and writes for a joint without a limit.
LARGEST: Final = sys.float_info.max
UNLIMITED: Final = 1e300


def _read_limit(element: Element, frame: FileFrame, report: Report) -> None:
    """Give a joint the limit of an element; the last one of its kind counts."""
    limit = ELEMENTS.read(element, report)
    del limit["refjoint"]
    name, numbers = quote(frame.full_name), list(limit.values())
    if None in numbers:
        return
    if len(frame.steps) != 1:
        kind = "has several coordinates" if frame.steps else "is not a joint"
        message = f"{element.label} is about {name}, which {kind}"
        report.warning(element.place, "not-kept", message)
        return
    fault = ""
    if numbers != sorted(numbers):
        fault = f"goes from {numbers[0]:g} to {numbers[1]:g}"
    elif len(numbers) == 1 and numbers[0] < 0.0:
        fault = "is negative"
    if fault:
        message = f"{element.label} of {name} {fault}"
        report.error(element.place, "bad-limit", message)
        return
    is_angle = frame.steps[0][1].unit is Unit.RADIAN
    if is_angle and len(numbers) > 1 and any(map(looks_like_radians, numbers)):
        report.warning(
            element.place,
            "radians",
            f"the limits of {name}, {numbers[0]:g} and {numbers[1]:g}, look like "
            "radians; they are read as degrees, as RobWork does",
        )
    factor = math.pi / 180.0 if is_angle else 1.0
    changes = {field: _or_infinite(value * factor) for field, value in limit.items()}
    # Limits that were infinite so far may be given without a warning.
    before = {field: getattr(frame.limits, field) for field in changes}
    if before != changes and not all(map(math.isinf, before.values())):
        message = f"{name} has another <{element.name}>; this one counts"
        report.warning(element.place, "repeated-limit", message)
    frame.limits = msgspec.structs.replace(frame.limits, **changes)


def _or_infinite(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) >= UNLIMITED else value


def limit_elements(limits: Limits, is_angle: bool, report: Report) -> list[Element]:
    """Return the finite limits of a joint, in degrees for an angle."""

    def in_file(value: float) -> float:
        number = _degrees(value) if is_angle else value
        if math.isinf(number) and math.isfinite(value):
            report.unsupported.add("a limit that is too large in degrees")
        return math.copysign(LARGEST, value) if math.isinf(number) else number

    elements: list[Element] = []
    for table in (ELEMENTS[kind] for kind in LIMITS):
        fields = {f: getattr(limits, f) for f in table.fields if f != "refjoint"}
        # RobWork has no open range: an infinite end is written as the largest double.
        if any(map(math.isfinite, fields.values())):
            elements.append(table.write({f: in_file(v) for f, v in fields.items()}))
    return elements


def _degrees(value: float) -> float:
    """Return an angle in degrees that reads back as the same number of radians."""
    plain = math.degrees(value)
    # The reader multiplies by pi / 180, which may miss the last bit: the rounded
    # number or one of the neighbours usually does not.
    near = (
        round(plain, ANGLE_DIGITS),
        plain,
        math.nextafter(plain, math.inf),
        math.nextafter(plain, -math.inf),
    )
    return next((d for d in near if d * (math.pi / 180.0) == value), plain)


# Properties

_KEPT_AS_FIELDS: Final = frozenset(
    (DAF, DEVICE, TYPE, JUNCTION, *(f"{PREFIX}{kind}" for kind in SETUPS))
)
"""Properties that become attributes and elements of their own."""


def read_property(
    element: Element, properties: dict[str, Property], report: Report
) -> None:
    """Add the property of an element; RobWork keeps the first of each name."""
    fields = ELEMENTS.read(element, report)
    name, kind = fields["name"], fields["type"]
    text = element.read_text()
    numbers: tuple[float, ...] | None = ()
    if kind != "string":
        count, text = (1 if kind == "double" else None), ""
        numbers = element.text_numbers(count, report.tolerating("it is left out"))
    if name is None or numbers is None:
        return
    if name in properties:
        message = (
            f"there is a property {quote(name)} already, which counts, as in RobWork"
        )
        report.warning(element.place, "repeated-property", message)
        return
    properties[name] = Property(
        name=name, text=text, numbers=numbers, description=fields["description"]
    )


def property_elements(
    properties: Iterable[Property], report: Report, of: str = ""
) -> list[Element]:
    """Return the properties of a link, or of a whole, that are `Property` elements."""
    elements: list[Element] = []
    for each in properties:
        if each.of != of or each.name in _KEPT_AS_FIELDS:
            continue
        kind, text = "string", each.text
        if each.numbers and not each.text:
            kind = "double" if len(each.numbers) == 1 else "Q"
            text = " ".join(map(number_text, each.numbers))
        elif each.numbers:
            what = "the numbers of a property that has a text too"
            report.unsupported.add(what)
        if text != text.strip():
            report.unsupported.add("white space around the text of a property")
        elements.append(ELEMENTS.write("Property", each, type=kind, text=text))
    return elements
