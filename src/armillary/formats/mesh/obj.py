"""Wavefront OBJ."""

from __future__ import annotations

from array import array
from typing import Final

import numpy as np

from armillary.errors import quote
from armillary.formats.diagnostic import Place
from armillary.formats.mesh.lines import Drawing, lines_of, whole_number
from armillary.formats.mesh.parts import Parts, refusal
from armillary.model.geometry.triangles import Triangles

__all__ = ["read_obj"]

# Looks, groups, points and lines: they bound nothing. Files that are named stay closed.
LOOKS: Final = frozenset(
    b"vt vn vp g o s mg usemtl mtllib usemap maplib bevel c_interp d_interp lod "
    b"shadow_obj trace_obj p l".split()
)
CURVED: Final = frozenset(
    b"cstype deg bmat step curv curv2 surf parm trim hole scrv sp end con".split()
)


def read_obj(data: bytes, path: str) -> Triangles:
    """Return the triangles of an OBJ file; its lengths count as metres.

    Raises:
        FormatError: The file is faulty, holds curved surfaces, or nothing.
    """
    drawing = Drawing()
    face_lines = array("q")
    for place, words in lines_of(data, path):
        match words[0]:
            case b"v":
                # A weight or a colour may follow.
                drawing.add_vertex(words[1:4], place)
            case b"f" | b"fo":
                corners = [_corner(word, drawing.count, place) for word in words[1:]]
                drawing.add_polygon(corners, place)
                face_lines.extend([place.line] * (len(corners) - 2))
            case keyword if keyword in LOOKS or keyword.startswith(b"#"):
                continue
            case keyword:
                raise _unknown(keyword, place)
    faces = drawing.faces
    missing = np.flatnonzero((faces >= drawing.count).any(axis=1))
    if len(missing):
        raise _no_vertex(
            int(faces[missing[0]].max()) + 1,
            drawing.count,
            Place(path, face_lines[int(missing[0])]),
        )
    parts = Parts(path)
    parts.add(drawing.vertices, faces, Place(path))
    return parts.joined()


def _corner(word: bytes, count: int, place: Place) -> int:
    """Return the number, from 0, of the corner that `v/vt/vn` stands for.

    A number below 0 counts back from the last vertex so far.
    """
    number = whole_number(word.split(b"/", 1)[0], place)
    if number > 0:
        return number - 1
    if number == 0 or -number > count:
        raise _no_vertex(number, count, place)
    return count + number


def _no_vertex(number: int, count: int, place: Place) -> Exception:
    return refusal(
        place,
        "bad-index",
        f"there is no vertex {number}; there are {count}, counted from 1",
    )


def _unknown(keyword: bytes, place: Place) -> Exception:
    shown = quote(keyword.decode("utf-8", errors="replace"))
    if keyword in CURVED:
        return refusal(
            place,
            "curved-surface",
            f"{shown} belongs to a curved surface; only polygons are read",
            hint="Export polygons.",
        )
    return refusal(place, "unexpected-word", f"{shown} is no statement of OBJ")
