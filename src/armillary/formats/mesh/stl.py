"""STL, binary and text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from armillary.errors import quote
from armillary.formats.diagnostic import Place
from armillary.formats.mesh.lines import Drawing, Line, lines_of
from armillary.formats.mesh.parts import MOST_FACES, Parts, refusal, too_many
from armillary.model.geometry.triangles import Triangles

__all__ = ["read_stl"]

HEADER: Final = 80
START: Final = HEADER + 4
TRIANGLE: Final = np.dtype(
    [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")]
)
# What a triangle in text is made of: the words each line begins with.
FACET: Final = (
    (b"facet", b"normal"),
    (b"outer", b"loop"),
    (b"vertex",),
    (b"vertex",),
    (b"vertex",),
    (b"endloop",),
    (b"endfacet",),
)


def read_stl(data: bytes, path: str) -> Triangles:
    """Return the triangles of an STL file; its lengths count as metres.

    Raises:
        FormatError: The file is faulty, or empty.
    """
    place = Place(path)
    count = int.from_bytes(data[HEADER:START], "little")
    size = START + TRIANGLE.itemsize * count
    # Binary files may begin with "solid" too; only the size tells them apart.
    if len(data) != size or len(data) < START:
        if data[:512].lstrip()[:5].lower() == b"solid":
            return _read_text(data, path)
        raise refusal(place, "wrong-size", _sizes(len(data), count, size))
    if count > MOST_FACES:
        raise too_many(place)
    triangles = np.frombuffer(data, TRIANGLE, count, offset=START)
    vertices = triangles["corners"].reshape(-1, 3).astype(np.float64)
    parts = Parts(path)
    parts.add(vertices, np.arange(3 * count, dtype=np.int64).reshape(-1, 3), place)
    return parts.joined()


def _sizes(size: int, count: int, expected: int) -> str:
    if size < START:
        return f"an STL file has at least {START} bytes, not {size}"
    return (
        f"the file speaks of {count} triangles, which take {expected} bytes, but it "
        f"has {size}; nor is it STL in text, which begins with 'solid'"
    )


def _read_text(data: bytes, path: str) -> Triangles:
    drawing = Drawing()
    lines = lines_of(data, path)
    for place, words in lines:
        match words[0].lower():
            case b"solid" | b"endsolid":
                continue
            case b"facet":
                corner = drawing.count
                _read_facet(drawing, (place, words), lines)
                drawing.add_polygon(range(corner, drawing.count), place)
            case other:
                raise _unexpected(place, other, "facet, solid or endsolid")
    parts = Parts(path)
    parts.add(drawing.vertices, drawing.faces, Place(path))
    return parts.joined()


def _read_facet(drawing: Drawing, first: Line, lines: Iterator[Line]) -> None:
    """Read the lines of one triangle; the first has been taken already."""
    place, words = first
    for step, expected in enumerate(FACET):
        if step:
            place, words = next(lines, None) or (place, [])
        if not _begins(words, expected):
            found = words[0] if words else b"the end of the file"
            raise _unexpected(place, found, b" ".join(expected).decode())
        if expected == (b"vertex",):
            drawing.add_vertex(words[1:], place)


def _begins(words: Sequence[bytes], expected: Sequence[bytes]) -> bool:
    return tuple(word.lower() for word in words[: len(expected)]) == tuple(expected)


def _unexpected(place: Place, found: bytes, expected: str) -> Exception:
    shown = quote(found.decode("utf-8", errors="replace"))
    return refusal(place, "unexpected-word", f"expected {expected}, found {shown}")
