"""Wavefront OBJ, and the colours in its MTL files."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from armillary.formats.diagnostic import Place, fault
from armillary.formats.mesh.surface import Surface
from armillary.formats.mesh.words import floats, shown, whole_numbers

__all__ = ["read_obj"]

# Normals, groups, points, lines and looks without a colour.
UNUSED: Final = frozenset(
    b"vt vn vp g o s mg usemap maplib bevel c_interp d_interp lod shadow_obj trace_obj "
    b"p l".split()
)
CURVED: Final = frozenset(
    b"cstype deg bmat step curv curv2 surf parm trim hole scrv sp end con".split()
)

LARGEST: Final = 10**15
MOST_LIBRARIES: Final = 100
MOST_MATERIALS: Final = 10_000

Open = Callable[[str, Place], bytes | None]


def read_obj(data: bytes, surface: Surface, open_beside: Open) -> None:
    """Add the polygons of an OBJ file; its lengths count as metres.

    open_beside: Returns the bytes of another file, or None where it is not there.

    Raises:
        FormatError: The file is faulty, or holds curved surfaces.
    """
    path = surface.path
    words: list[bytes] = []
    vertex_lines, face_lines = array("q"), array("q")
    corners, sizes, materials = array("q"), array("q"), array("q")
    colours = _Colours(open_beside)
    material = 0
    for line, (keyword, *rest) in _lines(data, path):
        match keyword:
            case b"v":
                if len(rest) < 3:  # a weight or a colour may follow
                    message = f"a vertex has 3 coordinates, not {len(rest)}"
                    raise fault(Place(path, line), "wrong-count", message)
                words += rest[:3]
                vertex_lines.append(line)
            case b"f" | b"fo":
                corners.extend(_corners(rest, len(vertex_lines), Place(path, line)))
                sizes.append(len(rest))
                face_lines.append(line)
                materials.append(material)
            case b"usemtl":
                material = colours.number(b" ".join(rest), Place(path, line))
            case b"mtllib":
                colours.read(b" ".join(rest), Place(path, line))
            case _ if keyword not in UNUSED and not keyword.startswith(b"#"):
                raise _unknown(keyword, Place(path, line))
            case _:
                continue
    vertices = floats(words, lambda k: Place(path, vertex_lines[k // 3])).reshape(-1, 3)
    count = np.array(sizes, np.int64)
    flat = np.array(corners, np.int64)
    used = np.array(materials, np.int64)
    if len(flat) and flat.max() >= len(vertices):
        first = int(np.argmax(flat >= len(vertices)))
        row = int(np.searchsorted(np.cumsum(count), first, side="right"))
        raise _no_vertex(
            corners[first] + 1, len(vertices), Place(path, face_lines[row])
        )
    if len(count) and count.min() < 3:
        at = Place(path, face_lines[int(np.argmin(count))])
        message = f"a polygon has at least 3 corners, not {count.min()}"
        raise fault(at, "bad-polygon", message)
    for number in sorted(set(materials)):
        chosen = used == number
        of_these = flat[np.repeat(chosen, count)]
        kept, renumbered = np.unique(of_these, return_inverse=True)
        surface.add(
            vertices[kept],
            renumbered,
            count[chosen],
            colour=colours.of(number),
        )


def _lines(data: bytes, path: str) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the number and words of each line; a backslash continues one."""
    if b"\0" in data:
        raise fault(Place(path), "not-text", "this is not text: it has a zero byte")
    start, pending = 0, list[bytes]()
    for number, line in enumerate(data.splitlines(), start=1):
        words = line.split()
        start = start if pending else number
        if words and words[-1] == b"\\":
            pending += words[:-1] or [b""]
            continue
        pending += words
        if pending := [word for word in pending if word]:
            yield start, pending
        pending = []


def _corners(words: list[bytes], count: int, place: Place) -> list[int]:
    """Return the numbers, from 0, of corners written `v/vt/vn`.

    A number below 0 counts back from the last vertex so far.
    """
    heads = [word.split(b"/", 1)[0] for word in words]
    try:
        numbers = [int(head) for head in heads]
    except ValueError:
        numbers = []
    if len(numbers) < len(heads) or any(abs(n) > LARGEST for n in numbers):
        numbers = whole_numbers(heads, lambda _: place).tolist()
    for number in numbers:
        if number == 0 or -number > count:
            raise _no_vertex(number, count, place)
    return [n - 1 if n > 0 else count + n for n in numbers]


class _Colours:
    """The materials that a file uses, and their colours in other files."""

    def __init__(self, open_beside: Open) -> None:
        self._open = open_beside
        self._numbers: dict[bytes, int] = {b"": 0}
        self._libraries: set[bytes] = set()
        self._known: dict[bytes, list[float]] = {}

    def number(self, material: bytes, place: Place) -> int:
        """Return the number of a material."""
        if len(self._numbers) > MOST_MATERIALS:
            message = f"it has more than {MOST_MATERIALS} materials"
            raise fault(place, "mesh-too-large", message)
        return self._numbers.setdefault(material, len(self._numbers))

    def read(self, library: bytes, place: Place) -> None:
        """Read the colours in another file."""
        if library in self._libraries:
            return
        if len(self._libraries) == MOST_LIBRARIES:
            message = f"it names more than {MOST_LIBRARIES} files of colours"
            raise fault(place, "mesh-too-large", message)
        self._libraries.add(library)
        name = library.decode("utf-8", errors="replace")
        self._known |= _colours(self._open(name, place))

    def of(self, number: int) -> list[float] | None:
        """Return the colour of a material by its number."""
        return self._known.get(list(self._numbers)[number])


def _colours(data: bytes | None) -> dict[bytes, list[float]]:
    """Return the diffuse colour and opacity of each material of an MTL file."""
    found: dict[bytes, dict[bytes, list[bytes]]] = {}
    material: dict[bytes, list[bytes]] = {}
    for line in (data or b"").splitlines():
        keyword, *words = line.split() or [b""]
        if keyword == b"newmtl":
            material = found.setdefault(b" ".join(words), {})
        else:
            material[keyword] = words
    return {
        name: _numbers([*material.get(b"Kd", ()), *material.get(b"d", ())])
        for name, material in found.items()
    }


def _numbers(words: list[bytes]) -> list[float]:
    try:
        return [float(word) for word in words]
    except ValueError:
        return []


def _no_vertex(number: int, count: int, place: Place) -> Exception:
    return fault(
        place,
        "bad-index",
        f"there is no vertex {number}; there are {count}, counted from 1",
    )


def _unknown(keyword: bytes, place: Place) -> Exception:
    if keyword in CURVED:
        return fault(
            place,
            "curved-surface",
            f"{shown(keyword)} belongs to a curved surface; only polygons are read",
            hint="Export polygons.",
        )
    message = f"{shown(keyword)} is not a statement of OBJ"
    return fault(place, "unexpected-word", message)
