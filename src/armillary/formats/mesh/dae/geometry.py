"""The triangles of a COLLADA `<mesh>`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.errors import quote
from armillary.formats.mesh.dae.library import Library, floats, whole_numbers
from armillary.formats.mesh.parts import refusal
from armillary.formats.xml import Element

__all__ = ["triangles_of"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


def triangles_of(
    geometry: Element, library: Library
) -> Iterator[tuple[Array, Indices, Element]]:
    """Yield corners, shape (n, 3), triangles, (m, 3), and where they stand.

    Raises:
        FormatError: They are faulty, or have holes, which are not read.
    """
    for mesh in geometry.children_named("mesh"):
        for element in mesh.children:
            reader = READERS.get(element.name)
            if reader is not None:
                stride, offset, vertices = _inputs(element, library)
                faces = [f for f in reader(element, stride, offset) if len(f)]
                if faces:
                    yield vertices, np.vstack(faces), element


def _inputs(element: Element, library: Library) -> tuple[int, int, Array]:
    """Return how many numbers make a corner, which is its place, and the places."""
    stride, found = 1, None
    for entry in element.children_named("input"):
        offset = _count(entry, "offset", 0)
        stride = max(stride, offset + 1)
        if entry.attributes.get("semantic") == "VERTEX":
            found = offset, library.find(entry, "source", "vertices")
    if found is None:
        raise refusal(
            element.place, "missing-element", f"{element.label} has no input 'VERTEX'"
        )
    offset, vertices = found
    for entry in vertices.children_named("input"):
        if entry.attributes.get("semantic") == "POSITION":
            return (
                stride,
                offset,
                _source(library.find(entry, "source", "source"), library),
            )
    raise refusal(
        vertices.place, "missing-element", f"{vertices.label} has no input 'POSITION'"
    )


def _source(source: Element, library: Library) -> Array:
    """Return the points of a source, shape (n, 3)."""
    accessor = next(
        (
            each
            for technique in source.children_named("technique_common")
            for each in technique.children_named("accessor")
        ),
        None,
    )
    if accessor is None:
        raise refusal(
            source.place, "missing-element", f"{source.label} has no <accessor>"
        )
    values = library.find(accessor, "source", "float_array")
    numbers = floats(values, _count(values, "count", None))
    count = _count(accessor, "count", 0)
    stride, offset = _count(accessor, "stride", 1), _count(accessor, "offset", 0)
    if stride < 3 or offset + count * stride > len(numbers):
        raise refusal(
            accessor.place,
            "wrong-count",
            f"{count} points of {stride} numbers do not fit into the {len(numbers)} of "
            f"{values.label}",
        )
    return numbers[offset : offset + count * stride].reshape(-1, stride)[:, :3]


def _count(element: Element, name: str, default: int | None) -> int:
    """Return an attribute that counts something."""
    text = element.attributes.get(name)
    if text is None and default is not None:
        return default
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise refusal(
            element.place,
            "wrong-count",
            f"{name} of {element.label} is {quote(text or '')}, no count",
        )
    return int(text)


# Each kind of element lists corners in its own way; all are made triangles.


def _corners(element: Element, stride: int, offset: int) -> Iterator[Indices]:
    """Yield the vertices in each `<p>` of an element, shape (k,)."""
    for p in element.children_named("p"):
        numbers = whole_numbers(p)
        if len(numbers) % stride:
            raise refusal(
                p.place,
                "wrong-count",
                f"<p> of {element.label} holds {len(numbers)} numbers; {stride} make a "
                "corner",
            )
        yield numbers[offset::stride]


def _triangles(element: Element, stride: int, offset: int) -> Iterator[Indices]:
    for corners in _corners(element, stride, offset):
        if len(corners) % 3:
            raise _no_polygons(element, len(corners))
        yield corners.reshape(-1, 3)


def _polylist(element: Element, stride: int, offset: int) -> Iterator[Indices]:
    """Yield polygons, of which `<vcount>` tells how many corners each has."""
    sizes = [whole_numbers(each) for each in element.children_named("vcount")]
    for size, corners in zip(sizes, _corners(element, stride, offset), strict=False):
        is_size = (size >= 3) & (size <= len(corners))
        if not is_size.all() or size.sum() != len(corners):
            raise _no_polygons(element, len(corners))
        yield corners[_fans(size)]


def _polygons(element: Element, stride: int, offset: int) -> Iterator[Indices]:
    """Yield polygons, of which each has its own `<p>`."""
    if element.children_named("ph"):
        raise refusal(
            element.place,
            "unsupported-hole",
            f"{element.label} has polygons with holes",
            hint="Export triangles.",
        )
    yield from _trifans(element, stride, offset)


def _trifans(element: Element, stride: int, offset: int) -> Iterator[Indices]:
    for corners in _corners(element, stride, offset):
        if len(corners) < 3:
            raise _no_polygons(element, len(corners))
        yield corners[_fans(np.array([len(corners)]))]


def _tristrips(element: Element, stride: int, offset: int) -> Iterator[Indices]:
    for corners in _corners(element, stride, offset):
        if len(corners) < 3:
            raise _no_polygons(element, len(corners))
        strip = np.column_stack([corners[:-2], corners[1:-1], corners[2:]])
        strip[1::2] = strip[1::2, ::-1]
        yield strip


def _fans(sizes: Indices) -> Indices:
    """Return triangles of polygons whose corners follow each other, shape (m, 3)."""
    starts = np.cumsum(sizes) - sizes
    count = sizes - 2
    first = np.repeat(starts, count)
    before = np.repeat(np.cumsum(count) - count, count)
    second = first + 1 + np.arange(len(first), dtype=np.int64) - before
    return np.column_stack([first, second, second + 1])


def _no_polygons(element: Element, count: int) -> Exception:
    return refusal(
        element.place,
        "wrong-count",
        f"the {count} corners of {element.label} do not make its polygons",
    )


READERS: Final[dict[str, Callable[[Element, int, int], Iterator[Indices]]]] = {
    "triangles": _triangles,
    "polylist": _polylist,
    "polygons": _polygons,
    "tristrips": _tristrips,
    "trifans": _trifans,
}
