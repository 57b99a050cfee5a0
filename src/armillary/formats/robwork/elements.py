"""Poses, shapes, limits and properties as elements of RobWork."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from armillary.formats.robwork.limits import LARGEST
from armillary.formats.robwork.notes import OWN_NOTES
from armillary.formats.xml import Element, tag
from armillary.model.limits import Limits
from armillary.model.property import Property
from armillary.model.shape import Shape
from armillary.model.shapes import Box, Cone, Cylinder, HalfSpace, Mesh, Sphere
from armillary.spatial.euler import moving_zyx, rows_from_moving_zyx
from armillary.spatial.pose import Pose
from armillary.spatial.vector import EYE, ZERO, Rows, Vector3

__all__ = [
    "limit_elements",
    "property_elements",
    "shape_elements",
    "transform_elements",
]

ROUNDING: Final = 1e-15
DIGITS: Final = 10
ONES: Final = (1.0, 1.0, 1.0)


def transform_elements(pose: Pose) -> list[Element]:
    """Return a pose: round angles and a position where they do, else twelve numbers.

    The identity is left out.
    """
    if pose.is_identity:
        return []
    angles = _angles(pose.rotation)
    if angles is not None:
        return [_numbers("RPY", angles), _numbers("Pos", pose.position)]
    rows = [(*row, p) for row, p in zip(pose.rotation, pose.position, strict=True)]
    return [_numbers("Transform", [n for row in rows for n in row])]


def _angles(m: Rows) -> Vector3 | None:
    """Return the angles about z, y, x [degree] of a rotation, None unless round."""
    if m == EYE:
        return (0.0, 0.0, 0.0)
    z, y, x = map(math.degrees, moving_zyx(m))
    angles = round(z, DIGITS), round(y, DIGITS), round(x, DIGITS)
    back = rows_from_moving_zyx(*map(math.radians, angles))
    is_same = Pose(m, ZERO).approx_equal(Pose(back, ZERO), ROUNDING)
    return angles if is_same else None


def _numbers(name: str, values: Sequence[float]) -> Element:
    text = " ".join(_text(value) for value in values)
    return tag(name, text=text)


def _text(value: float) -> str:
    """Return the shortest text of a number; whole ones without a point."""
    value = value + 0.0  # no negative zero
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


# Limits


def limit_elements(limits: Limits, turns: bool, losses: Counter[str]) -> list[Element]:
    """Return the limits of a joint that there are; degrees for one that turns."""

    def number(value: float) -> str:
        if math.isinf(value):
            return repr(math.copysign(LARGEST, value))
        return _text(_degrees(value) if turns else value)

    found: list[Element] = []
    if math.isfinite(limits.lower) or math.isfinite(limits.upper):
        ends = {"min": number(limits.lower), "max": number(limits.upper)}
        found.append(tag("PosLimit", ends))
    if math.isfinite(limits.velocity):
        found.append(tag("VelLimit", {"max": number(limits.velocity)}))
    if math.isfinite(limits.acceleration):
        found.append(tag("AccLimit", {"max": number(limits.acceleration)}))
    if math.isfinite(limits.effort):
        losses["a limit of force or torque"] += 1
    return found


def _degrees(value: float) -> float:
    """Return an angle in degrees that reads back as the same number of radians."""
    plain = math.degrees(value)
    for near in (
        round(plain, DIGITS),
        plain,
        math.nextafter(plain, math.inf),
        math.nextafter(plain, -math.inf),
    ):
        if near * (math.pi / 180.0) == value:
            return near
    return plain


# Shapes


def shape_elements(
    visuals: Sequence[Shape],
    collisions: Sequence[Shape],
    primary: Pose,
    losses: Counter[str],
) -> list[Element]:
    """Return the shapes of a link: what is drawn and may touch is written once."""
    rest = list(collisions)
    found: list[Element] = []
    for shape in visuals:
        may_touch = shape in rest
        if may_touch:
            rest.remove(shape)
        switch = {} if may_touch else {"colmodel": "Disabled"}
        found += _model("Drawable", shape, primary, losses, switch)
    for shape in rest:
        if shape.colour is not None:
            losses["the colour of a shape that is not drawn"] += 1
        found += _model("CollisionModel", shape, primary, losses, {})
    return found


def _model(
    kind: str,
    shape: Shape,
    primary: Pose,
    losses: Counter[str],
    switch: dict[str, str],
) -> list[Element]:
    geometry = _geometry(shape, losses)
    if geometry is None:
        losses[f"a shape of type {type(shape).__name__}"] += 1
        return []
    colour: list[Element] = []
    if shape.colour is not None and kind == "Drawable":
        opaque = shape.colour[3] == 1.0
        colour = [_numbers("RGB", shape.colour[:3] if opaque else shape.colour)]
    return [
        tag(
            kind,
            {"name": shape.name, **switch},
            *transform_elements(primary @ shape.pose),
            *colour,
            geometry,
        )
    ]


def _geometry(shape: Shape, losses: Counter[str]) -> Element | None:
    match shape:
        case Box():
            x, y, z = map(_text, shape.size)
            return tag("Box", {"x": x, "y": y, "z": z})
        case Sphere():
            return tag("Sphere", {"radius": _text(shape.radius)})
        case Cylinder():
            sizes = {"radius": _text(shape.radius), "z": _text(shape.length)}
            return tag("Cylinder", sizes)
        case Cone(top=0.0):
            sizes = {"radius": _text(shape.bottom), "z": _text(shape.length)}
            return tag("Cone", sizes)
        case HalfSpace():
            return tag("Plane")
        case Mesh():
            if shape.scale != ONES:
                losses["the scale of a mesh"] += 1
            return tag("Polytope", {"file": shape.file})
        case _:
            return None


# Properties


def property_elements(
    notes: Sequence[Property], losses: Counter[str], of: str = ""
) -> list[Element]:
    """Return the properties of a link, or of a whole, but those of the format."""
    return [
        _property(note, losses)
        for note in notes
        if note.of == of and note.name not in OWN_NOTES
    ]


def _property(note: Property, losses: Counter[str]) -> Element:
    kind, text = None, note.text
    if note.numbers and not note.text:
        kind = "double" if len(note.numbers) == 1 else "Q"
        text = " ".join(map(_text, note.numbers))
    elif note.numbers:
        losses["the numbers of a property that has a text too"] += 1
    if text != text.strip():
        losses["white space around the text of a property"] += 1
    description = note.description or None
    return tag(
        "Property", {"name": note.name, "type": kind, "desc": description}, text=text
    )
