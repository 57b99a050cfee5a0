"""Shapes in files: what is drawn, and what may touch.

They stand in Actin's `shapeContainer`, but are elements of our own, with our
parameters: how Actin's shapes lie in their frames is not known well enough.
"""

from __future__ import annotations

from typing import Any, Final, cast

from armillary.errors import ArmillaryError, quote
from armillary.formats.actin.names import OWN, PREFIXES
from armillary.formats.actin.transforms import pose_element, read_pose
from armillary.formats.actin.values import identifier, text_element
from armillary.formats.diagnostic import Place, Report
from armillary.formats.numbers import number_text
from armillary.formats.xml import Element, report_unused, tag
from armillary.model.shape import Shape
from armillary.model.shapes import SHAPES

__all__ = ["KINDS", "SHAPE_NAMES", "read_shapes", "shape_elements"]

COMMON: Final = frozenset({"name", "pose", "colour"})
TEXTS: Final = frozenset({"file"})
POINTS: Final = frozenset({"corners", "vertices"})


def _name(kind: type[Any]) -> str:
    """Return what a kind of shape is called in files: `convex_polyhedron` in camels."""
    first, *rest = str(kind.__struct_config__.tag).split("_")
    return first + "".join(map(str.capitalize, rest))


KINDS: Final[dict[str, type[Any]]] = {_name(kind): kind for kind in SHAPES}
_FIELDS: Final = {field for kind in SHAPES for field in kind.__struct_fields__}
SHAPE_NAMES: Final = (
    *((n, PREFIXES["mn"]) for n in ("shapeContainer", "physicalExtent")),
    ("boundingVolume", PREFIXES["mn"]),
    *((name, OWN) for name in (*KINDS, *sorted(_FIELDS - {"pose"}))),
)
"""Names of elements with their namespaces."""


def read_shapes(
    link: Element, report: Report
) -> tuple[tuple[Shape, ...], tuple[Shape, ...]]:
    """Return what is drawn of a link, and what may touch."""
    holder = link.only_child("shapeContainer", report)
    if holder is None:
        return (), ()
    found: list[tuple[Shape, ...]] = []
    for name in ("physicalExtent", "boundingVolume"):
        inner = holder.only_child(name, report)
        children = () if inner is None else inner.children
        made = [_shape(child, report) for child in children]
        found.append(tuple(shape for shape in made if shape is not None))
    report_unused(holder, report)
    return found[0], found[1]


def _shape(element: Element, report: Report) -> Shape | None:
    kind = KINDS.get(element.name)
    if kind is None or element.namespace != OWN:
        message = f"the shape {element.label} is left out"
        hint = f"Shapes are read where they are in the namespace {OWN}."
        report.warning(element.place, "unkept-shape", message, hint=hint)
        return None
    values: dict[str, Any] = {"name": identifier(element, report)}
    for field in kind.__struct_fields__:
        child = None if field in {"name", "pose"} else element.only_child(field, report)
        if child is None:
            continue
        values[field] = _value(field, child, report)
        report_unused(child, report)
    values["pose"] = read_pose(element, report)
    try:
        return cast(Shape, kind(**values))
    except (ArmillaryError, TypeError) as error:
        message = f"{element.label}: {str(error).removesuffix('.')}"
        report.error(element.place, "bad-shape", message)
        return None


def _value(field: str, element: Element, report: Report) -> Any:
    if field in TEXTS:
        return element.read_text()
    numbers = element.text_numbers(None, report) or ()
    if field in POINTS:
        return tuple(numbers[k : k + 3] for k in range(0, len(numbers), 3))
    return numbers[0] if len(numbers) == 1 else numbers


def shape_elements(
    visuals: tuple[Shape, ...], collisions: tuple[Shape, ...], report: Report
) -> list[Element]:
    """Return the shapes of a link, to be written; nothing where there are none."""
    holders: list[Element] = []
    for name, shapes in (("physicalExtent", visuals), ("boundingVolume", collisions)):
        made = [_element(shape, report) for shape in shapes]
        children = [each for each in made if each is not None]
        if children:
            holders.append(tag(f"mn:{name}", {}, *children))
    return [tag("mn:shapeContainer", {}, *holders)] if holders else []


def _element(shape: Shape, report: Report) -> Element | None:
    name = next((n for n, kind in KINDS.items() if kind is type(shape)), None)
    if name is None:
        message = f"a shape of type {quote(type(shape).__name__)} is not kept"
        report.warning(Place(), "lost-shape", message)
        return None
    children = list(pose_element("am:pose", shape.pose).children)
    if shape.name:
        children.insert(0, text_element("mn:identifier", shape.name, report))
    for field in shape.__struct_fields__:
        value = getattr(shape, field)
        if field in {"name", "pose"} or value is None:
            continue
        text = value if isinstance(value, str) else _numbers(value)
        children.append(text_element(f"am:{field}", text, report))
    return tag(f"am:{name}", {}, *children)


def _numbers(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(_numbers, cast(tuple[Any, ...], value)))
    return number_text(value)
