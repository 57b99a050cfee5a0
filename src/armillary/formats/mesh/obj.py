"""Wavefront OBJ, and the colours and images in its MTL files."""

from __future__ import annotations

import math
import posixpath
from array import array
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.formats.diagnostic import Place, fault
from armillary.formats.mesh.images import Image, no_image
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

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Open = Callable[[str, Place], bytes | None]
OpenImage = Callable[[str, Place], bytes]


def read_obj(
    data: bytes, surface: Surface, open_beside: Open, *, open_image: OpenImage
) -> None:
    """Add the polygons of an OBJ file; its lengths count as metres.

    Args:
        data: Of the file.
        surface: To which they are added.
        open_beside: Returns the bytes of another file, or None where it is not there.
        open_image: Returns the bytes of another file, which must be there.

    Raises:
        FormatError: The file is faulty, or holds curved surfaces.
    """
    path = surface.path
    words: list[bytes] = []
    vertex_lines, face_lines = array("q"), array("q")
    corners, sizes, materials = array("q"), array("q"), array("q")
    looks = _Looks(open_beside, open_image)
    places = _Places()
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
                if looks.have_images:
                    places.add_corners(rest, len(corners))
                sizes.append(len(rest))
                face_lines.append(line)
                materials.append(material)
            case b"vt" if looks.have_images:
                places.add(rest)
            case b"usemtl":
                material = looks.number(b" ".join(rest), Place(path, line))
            case b"mtllib":
                looks.read(b" ".join(rest), Place(path, line))
            case _ if keyword not in UNUSED and not keyword.startswith(b"#"):
                raise _unknown(keyword, Place(path, line))
            case _:
                continue
    vertices = floats(words, lambda k: Place(path, vertex_lines[k // 3])).reshape(-1, 3)
    count = np.array(sizes, np.int64)
    flat = np.array(corners, np.int64)
    used = np.array(materials, np.int64)
    _check(flat, count, len(vertices), lambda row: Place(path, face_lines[row]))
    uv, in_image = places.table(), places.of_corners(len(flat))
    for number in sorted(set(materials)):
        chosen = used == number
        is_of_these = np.repeat(chosen, count)
        colour, image = looks.of(number)
        # A vertex with two places in the image becomes two.
        key = flat[is_of_these] * len(uv)
        key += in_image[is_of_these] % len(uv) if image else 0
        kept, renumbered = np.unique(key, return_inverse=True)
        surface.add(
            vertices[kept // len(uv)],
            renumbered,
            count[chosen],
            colour=colour,
            image=image,
            uv=uv[kept % len(uv)] if image else None,
        )


def _check(
    corners: Indices, sizes: Indices, count: int, place: Callable[[int], Place]
) -> None:
    """Check that polygons have enough corners, and these are among `count` vertices.

    place: The location of the k-th polygon.
    """
    if len(corners) and corners.max() >= count:
        first = int(np.argmax(corners >= count))
        row = int(np.searchsorted(np.cumsum(sizes), first, side="right"))
        raise _no_vertex(int(corners[first]) + 1, count, place(row))
    if len(sizes) and sizes.min() < 3:
        message = f"a polygon has at least 3 corners, not {sizes.min()}"
        raise fault(place(int(np.argmin(sizes))), "bad-polygon", message)


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


class _Places:
    """Where corners are in an image.

    What is broken loses images, but no triangles.
    """

    def __init__(self) -> None:
        self._table = array("d")
        self._corners = array("q")

    def __len__(self) -> int:
        return len(self._table) // 2

    def add(self, words: list[bytes]) -> None:
        """Add the place that a `vt` says, from the lower left corner."""
        u, v, *_ = [*words, b"0", b"0"]
        try:
            self._table.extend((float(u), 1.0 - float(v)))
        except ValueError:
            self._table.extend((math.nan, math.nan))

    def add_corners(self, words: list[bytes], count: int) -> None:
        """Add the `vt` of corners `v/vt/vn`, which are the last of `count` corners."""
        self._corners.extend([-1] * (count - len(words) - len(self._corners)))
        for word in words:
            try:
                number = int([*word.split(b"/"), b""][1] or b"0")
            except ValueError:
                number = 0
            place = number - 1 if number > 0 else len(self) + number
            self._corners.append(place if number and 0 <= place < LARGEST else -1)

    def of_corners(self, count: int) -> Indices:
        """Return the row of each corner in the table, -1 without one."""
        self._corners.extend([-1] * (count - len(self._corners)))
        found = np.array(self._corners, np.int64)
        return np.where(found < len(self), found, -1)

    def table(self) -> Array:
        """Return places, from the upper left corner, and NaN after the last: (n, 2)."""
        return np.append(self._table, [math.nan, math.nan]).reshape(-1, 2)


class _Look(NamedTuple):
    """A material."""

    colour: list[float] | None
    image: Image | None


class _Looks:
    """The materials that a file uses; their colours and images are in other files."""

    def __init__(self, open_beside: Open, open_image: OpenImage) -> None:
        self._open = open_beside
        self._open_image = open_image
        self._numbers: dict[bytes, int] = {b"": 0}
        self._libraries: set[bytes] = set()
        self._known: dict[bytes, _Look] = {}
        self.have_images = False

    def number(self, material: bytes, place: Place) -> int:
        """Return the number of a material."""
        if len(self._numbers) > MOST_MATERIALS:
            message = f"it has more than {MOST_MATERIALS} materials"
            raise fault(place, "mesh-too-large", message)
        return self._numbers.setdefault(material, len(self._numbers))

    def read(self, library: bytes, place: Place) -> None:
        """Read the materials in another file."""
        if library in self._libraries:
            return
        if len(self._libraries) == MOST_LIBRARIES:
            message = f"it names more than {MOST_LIBRARIES} files of colours"
            raise fault(place, "mesh-too-large", message)
        self._libraries.add(library)
        name = library.decode("utf-8", errors="replace")
        images: dict[bytes, Image] = {}
        for material, words in _materials(self._open(name, place)).items():
            opacity = words.get(b"d", [])
            if b"map_Kd" not in words:
                colour = _numbers([*words.get(b"Kd", ()), *opacity])
                self._known[material] = _Look(colour, None)
                continue
            file = b" ".join(words[b"map_Kd"])
            if file not in images:
                images[file] = self._image(file, name, place)
            colour = _numbers([b"1", b"1", b"1", *opacity])
            self._known[material] = _Look(colour, images[file])
            self.have_images = True

    def _image(self, file: bytes, library: str, place: Place) -> Image:
        """Return an image that a library names, relative to its own folder."""
        if file.startswith(b"-"):
            return no_image("options of an image are not read", place)
        name = file.decode("utf-8", errors="replace")
        reference = posixpath.join(posixpath.dirname(library), name)
        return Image(lambda: self._open_image(reference, place), place)

    def of(self, number: int) -> _Look:
        """Return a material by its number."""
        return self._known.get(list(self._numbers)[number], _Look(None, None))


def _materials(data: bytes | None) -> dict[bytes, dict[bytes, list[bytes]]]:
    """Return the words after each keyword of each material of an MTL file."""
    found: dict[bytes, dict[bytes, list[bytes]]] = {}
    material: dict[bytes, list[bytes]] = {}
    for line in (data or b"").splitlines():
        keyword, *words = line.split() or [b""]
        if keyword == b"newmtl":
            material = found.setdefault(b" ".join(words), {})
        else:
            material[keyword] = words
    return found


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
