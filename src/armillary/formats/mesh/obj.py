"""Wavefront OBJ, and the colours and images in its MTL files."""

from __future__ import annotations

import codecs
import math
import posixpath
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.formats.diagnostic import Budget, Place, fault
from armillary.formats.mesh.images import Image, no_image
from armillary.formats.mesh.surface import MeshSurface
from armillary.formats.mesh.words import floats, shown, whole_numbers
from armillary.limits import OBJ_LIBRARIES, OBJ_MATERIALS

__all__ = ["read_obj"]

# Normals, groups (but for parts), points, lines and looks without a colour.
UNUSED: Final = frozenset(
    b"vt vn vp g o s mg usemap maplib bevel c_interp d_interp lod shadow_obj trace_obj "
    b"p l".split()
)
CURVED: Final = frozenset(
    b"cstype deg bmat step curv curv2 surf parm trim hole scrv sp end con".split()
)

LARGEST: Final = 10**15  # numbers up to it are whole ones of doubles

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Open = Callable[[str, Place], bytes | None]
OpenImage = Callable[[str, Place], bytes]


def read_obj(
    data: bytes, surface: MeshSurface, open_beside: Open, *, open_image: OpenImage
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
    reader = _ObjReader(surface, _Looks(open_beside, open_image, surface.budget))
    reader.read(data)
    reader.add_to_surface()


class _ObjReader:
    """Collect vertices, and polygons with their materials and places in images."""

    def __init__(self, surface: MeshSurface, looks: _Looks) -> None:
        self._surface = surface
        self._is_meant = surface.takes()  # what has no name yet
        self._path = surface.path
        self._looks = looks
        self._places = _Places()
        self._words: list[bytes] = []
        self._vertex_lines, self._face_lines = array("q"), array("q")
        self._corners, self._sizes = array("q"), array("q")
        self._materials = array("q")
        self._material = 0

    def read(self, data: bytes) -> None:
        """Read all lines: runs of lines that are alike at once, others one by one."""
        for line, part in _parts(data, self._path):
            if isinstance(part, list):
                self._read_line(line, part)
            elif not self._read_run(line, part):
                for number, text in enumerate(part.text.splitlines(), start=line):
                    self._read_line(number, text.split())

    def _read_run(self, line: int, run: _AlikeLines) -> bool:
        """Read lines that are alike; return whether that was possible.

        line: Of the first.
        """
        if run.keyword == b"vt" and not self._looks.have_images:
            return True
        if run.keyword == b"f" and not self._is_meant:
            return True
        # The keyword begins each line, and each line has as many words as the others.
        words = run.text.replace(b"/", b" ").split()
        per_line = len(words) // run.lines
        del words[::per_line]
        lines = np.arange(line, line + run.lines).tobytes()
        if run.keyword == b"v":
            self._words += words
            self._vertex_lines.frombytes(lines)
            return True
        if run.keyword == b"vt":
            return self._places.add_all(words, per_line - 1)
        size = per_line - 1
        numbers = np.fromiter(map(int, words), np.int64, len(words))
        if run.parts > 1:
            size //= run.parts
        # A row for each corner: its vertex, and perhaps its place and normal. Numbers
        # below 1 count back from the last vertex, which lines one by one can tell.
        numbers = numbers.reshape(-1, run.parts) - 1
        if numbers[:, 0].min() < 0:
            return False
        self._corners.frombytes(numbers[:, 0].tobytes())
        if self._looks.have_images:
            uv = numbers[:, 1] if run.has_places else np.full(len(numbers), -1)
            self._places.add_numbers(uv, len(self._corners))
        self._sizes.extend(array("q", [size]) * run.lines)
        self._face_lines.frombytes(lines)
        self._materials.extend(array("q", [self._material]) * run.lines)
        return True

    def _read_line(self, line: int, words: list[bytes]) -> None:
        keyword, *rest = words
        place = Place(self._path, line)
        match keyword:
            case b"v":
                if len(rest) < 3:  # a weight or a colour may follow
                    message = f"a vertex has 3 coordinates, not {len(rest)}"
                    raise fault(place, "wrong-count", message)
                self._words += rest[:3]
                self._vertex_lines.append(line)
            case b"o" | b"g":  # the last one counts, with all its names or one of them
                names = [b" ".join(rest), *rest]
                self._is_meant = self._surface.takes(
                    *(each.decode("utf-8", "replace") for each in names)
                )
            case b"f" | b"fo" if not self._is_meant:
                pass
            case b"f" | b"fo":
                corners = _corners(rest, len(self._vertex_lines), place)
                self._corners.extend(corners)
                if self._looks.have_images:
                    self._places.add_corners(rest, len(self._corners))
                self._sizes.append(len(rest))
                self._face_lines.append(line)
                self._materials.append(self._material)
            case b"vt" if self._looks.have_images:
                self._places.add(rest)
            case b"usemtl":
                self._material = self._looks.number(b" ".join(rest), place)
            case b"mtllib":
                self._looks.read(b" ".join(rest), place)
            case _ if keyword not in UNUSED and not keyword.startswith(b"#"):
                raise _unknown(keyword, place)
            case _:
                pass

    def add_to_surface(self) -> None:
        """Add the polygons of each material to the surface.

        Raises:
            FormatError: A number or a corner is faulty.
        """
        path, lines = self._path, self._vertex_lines
        vertices = floats(self._words, lambda k: Place(path, lines[k // 3]))
        vertices = vertices.reshape(-1, 3)
        count = np.array(self._sizes, np.int64)
        flat = np.array(self._corners, np.int64)
        used = np.array(self._materials, np.int64)
        faces = self._face_lines
        _check(flat, count, len(vertices), lambda row: Place(path, faces[row]))
        uv, in_image = self._places.table(), self._places.of_corners(len(flat))
        for number in np.unique(used).tolist():
            chosen = used == number
            is_of_these = np.repeat(chosen, count)
            colour, image = self._looks.of(number)
            # A vertex with two places in the image becomes two.
            key = flat[is_of_these] * len(uv)
            key += in_image[is_of_these] % len(uv) if image else 0
            kept, renumbered = np.unique(key, return_inverse=True)
            self._surface.add(
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
    """Check that the corners of polygons are among `count` vertices.

    place: The location of the k-th polygon.
    """
    if len(corners) and corners.max() >= count:
        first = int(np.argmax(corners >= count))
        row = int(np.searchsorted(np.cumsum(sizes), first, side="right"))
        raise _no_vertex(int(corners[first]) + 1, count, place(row))


class _AlikeLines(NamedTuple):
    """Lines one after the other that are alike, but for their numbers.

    Attributes:
        keyword: Of each: `v`, `vt` or `f`.
        text: All of them.
        lines: How many there are.
        parts: How many numbers each corner of a face has.
        has_places: Whether the second of them is its place in an image.
    """

    keyword: bytes
    text: bytes
    lines: int
    parts: int = 1
    has_places: bool = False


def _runs(keyword: bytes, word: bytes, sizes: Sequence[int]) -> bytes:
    """Return the patterns of lines of one keyword, with so many equal words."""
    lines = (
        rb"(?:%s(?:[ \t]++%s){%d}[ \t]*+\r?\n)++" % (keyword, word, size)
        for size in sizes
    )
    return b"|".join(lines)


_NUMBER: Final = rb"[-+.0-9eE]++"
_WHOLE: Final = rb"[0-9]{1,15}+"
_FORMS: Final = {  # of corners; how many numbers they have, and whether one is a place
    _WHOLE: (1, False),
    rb"%s//%s" % (_WHOLE, _WHOLE): (2, False),
    rb"%s/%s" % (_WHOLE, _WHOLE): (2, True),
    rb"%s/%s/%s" % (_WHOLE, _WHOLE, _WHOLE): (3, True),
}
_RUNS: Final = (
    (b"v", 1, False, re.compile(_runs(b"v", _NUMBER, (3,)))),
    (b"vt", 1, False, re.compile(_runs(b"vt", _NUMBER, (2, 3)))),
    *(
        (b"f", *form, re.compile(_runs(b"f", word, (3, 4))))
        for word, form in _FORMS.items()
    ),
)
_SKIPPED: Final = re.compile(rb"(?:(?:#|vn[ \t])[^\\\r\n]*+\r?\n|\r?\n)++")


def _parts(data: bytes, path: str) -> Iterator[tuple[int, list[bytes] | _AlikeLines]]:
    """Yield the number and the words of each line, or a run of lines that are alike.

    A backslash continues a line.
    """
    if b"\0" in data:
        raise fault(Place(path), "not-text", "this is not text: it has a zero byte")
    if data.count(b"\r") > data.count(b"\r\n"):  # which ends lines, too
        data = b"\n".join(data.splitlines())
    at, line, end = 0, 1, len(data)
    while at < end:
        skipped = _SKIPPED.match(data, at)
        if skipped is not None:
            line += data.count(b"\n", at, skipped.end())
            at = skipped.end()
            continue
        for keyword, parts, has_places, pattern in _RUNS:
            match = pattern.match(data, at)
            if match is not None:
                count = match[0].count(b"\n")
                yield line, _AlikeLines(keyword, match[0], count, parts, has_places)
                line, at = line + count, match.end()
                break
        else:
            start, words = line, list[bytes]()
            while at < end:
                stop = data.find(b"\n", at) + 1 or end
                more = data[at:stop].split()
                line, at = line + 1, stop
                words += more
                if words[-1:] != [b"\\"]:
                    break
                words.pop()
            else:
                return  # a continuation of nothing
            if words:
                yield start, words


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

    def add_all(self, words: list[bytes], width: int) -> bool:
        """Add places of `width` numbers each; return whether all are numbers."""
        try:
            numbers = np.array(list(map(float, words)), np.float64).reshape(-1, width)
        except ValueError:
            return False
        self._table.frombytes((numbers[:, :2] * (1, -1) + (0, 1)).tobytes())
        return True

    def add_numbers(self, numbers: Indices, count: int) -> None:
        """Add rows of the table, -1 for none, of the last of `count` corners."""
        self._corners.extend([-1] * (count - len(numbers) - len(self._corners)))
        self._corners.frombytes(numbers.tobytes())

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
        rows = np.array(self._corners, np.int64)
        return np.where(rows < len(self), rows, -1)

    def table(self) -> Array:
        """Return places, from the upper left corner, and NaN after the last: (n, 2)."""
        return np.append(self._table, [math.nan, math.nan]).reshape(-1, 2)


class _Look(NamedTuple):
    """A material."""

    colour: list[float] | None
    image: Image | None


class _Looks:
    """The materials that a file uses; their colours and images are in other files."""

    def __init__(
        self, open_beside: Open, open_image: OpenImage, budget: Budget
    ) -> None:
        self._budget = budget
        self._open = open_beside
        self._open_image = open_image
        self._numbers: dict[bytes, int] = {b"": 0}
        self._libraries: set[bytes] = set()
        self._known: dict[bytes, _Look] = {}
        self.have_images = False

    def number(self, material: bytes, place: Place) -> int:
        """Return the number of a material."""
        self._budget.check(OBJ_MATERIALS, len(self._numbers), place)
        return self._numbers.setdefault(material, len(self._numbers))

    def read(self, library: bytes, place: Place) -> None:
        """Read the materials in another file."""
        if library in self._libraries:
            return
        self._budget.spend(OBJ_LIBRARIES, place)
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
    materials: dict[bytes, dict[bytes, list[bytes]]] = {}
    material: dict[bytes, list[bytes]] = {}
    for line in (data or b"").removeprefix(codecs.BOM_UTF8).splitlines():
        keyword, *words = line.split() or [b""]
        if keyword == b"newmtl":
            material = materials.setdefault(b" ".join(words), {})
        else:
            material[keyword] = words
    return materials


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
