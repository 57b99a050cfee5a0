"""AC3D, which RobWork's models use."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.formats.diagnostic import Place, fault
from armillary.formats.mesh.surface import MeshSurface
from armillary.formats.mesh.words import floats, shown, whole_numbers
from armillary.limits import MESH_DEPTH

__all__ = ["read_ac"]

Array = npt.NDArray[np.float64]

POLYGON: Final = 0  # what the lowest four bits of a surface's flags say; else lines
WORD: Final = re.compile(rb'"[^"\n]*"|\S+')
# How many words follow those that say nothing of triangles.
UNUSED: Final = {
    b"name": 1,
    b"texture": 1,
    b"texrep": 2,
    b"texoff": 2,
    b"subdiv": 1,
    b"crease": 1,
    b"url": 1,
    b"hidden": 0,
    b"locked": 0,
    b"folded": 0,
}


def read_ac(data: bytes, surface: MeshSurface) -> None:
    """Add the polygons of an AC3D file; its lengths count as metres.

    Raises:
        FormatError: The file is faulty.
    """
    if not data.startswith(b"AC3D"):
        raise fault(
            Place(surface.path), "wrong-content", "an AC3D file begins with 'AC3D'"
        )
    scan = _Scanner(data, surface.path)
    scan.word()
    colours: list[list[float]] = []
    # Objects follow each other depth first, and each says how many are inside of it.
    parents = [(1, np.eye(4), 0)]  # objects still to come, where, and how deep
    item, depth = _Object(np.eye(4)), 0
    is_complete = False
    while not is_complete:
        match keyword := scan.word():
            case b"MATERIAL":
                colours.append(_colour(scan))
            case b"OBJECT" if parents:
                scan.word()
                left, parent, depth = parents.pop()
                parents += [(left - 1, parent, depth)] if left > 1 else []
                item = _Object(parent)
                surface.budget.check(MESH_DEPTH, depth, scan.place)
            case b"kids":
                matrix = item.add_to(surface, colours, scan.place)
                count = scan.count()
                parents += [(count, matrix, depth + 1)] if count else []
                is_complete = not parents
            case b"":
                message = "the file ends before its last object"
                raise fault(scan.place, "wrong-count", message)
            case _:
                item.read(keyword, scan, surface)


def _colour(scan: _Scanner) -> list[float]:
    """Return the colour and opacity of a material."""
    scan.word()
    values: dict[bytes, Array] = {}
    for keyword, count in (
        (b"rgb", 3),
        (b"amb", 3),
        (b"emis", 3),
        (b"spec", 3),
        (b"shi", 1),
        (b"trans", 1),
    ):
        scan.expect(keyword)
        values[keyword] = scan.floats(count)
    return [*values[b"rgb"].tolist(), 1.0 - float(values[b"trans"][0])]


class _Object:
    """The vertices and polygons of one object."""

    def __init__(self, parent: Array) -> None:
        self._parent = parent
        self._local = np.eye(4)
        self._vertices = np.zeros((0, 3))
        self._polygons: dict[int, tuple[list[int], list[int]]] = {}

    def read(self, keyword: bytes, scan: _Scanner, surface: MeshSurface) -> None:
        """Read what follows a keyword."""
        match keyword:
            case b"loc":
                self._local[:3, 3] = scan.floats(3)
            case b"rot":
                self._local[:3, :3] = scan.floats(9).reshape(3, 3)
            case b"data":
                scan.skip(scan.count())
            case b"numvert":
                count = scan.count()
                surface.check_counts(count, 0, scan.place)
                self._vertices = scan.floats(3 * count).reshape(-1, 3)
            case b"numsurf":
                count = scan.count()
                surface.check_counts(0, count, scan.place)
                for _ in range(count):
                    self._read_polygon(scan)
            case _ if keyword in UNUSED:
                scan.words(UNUSED[keyword])
            case _:
                message = f"{shown(keyword)} is not a keyword of AC3D"
                raise fault(scan.place, "unexpected-word", message)

    def _read_polygon(self, scan: _Scanner) -> None:
        """Read one surface; lines bound nothing."""
        scan.expect(b"SURF")
        flags = scan.word()
        if not re.fullmatch(rb"(0[xX])?[0-9a-fA-F]{1,8}", flags):
            message = f"{shown(flags)} is not a hexadecimal number"
            raise fault(scan.place, "bad-number", message)
        material, keyword = 0, scan.word()
        if keyword == b"mat":
            material, keyword = scan.count(), scan.word()
        if keyword != b"refs":
            message = f"expected refs, found {shown(keyword)}"
            raise fault(scan.place, "unexpected-word", message)
        count = scan.count()
        words = scan.words(3 * count)[::3]  # the others are texture coordinates
        if int(flags, 16) & 0xF == POLYGON:
            corners, sizes = self._polygons.setdefault(material, ([], []))
            corners.extend(whole_numbers(words, lambda _: scan.place).tolist())
            sizes.append(count)

    def add_to(
        self, surface: MeshSurface, colours: list[list[float]], place: Place
    ) -> Array:
        """Add the polygons to a surface, and return where the object is."""
        matrix = self._parent @ self._local
        for material, (corners, sizes) in self._polygons.items():
            surface.add(
                self._vertices,
                np.array(corners, np.int64),
                np.array(sizes, np.int64),
                place=place,
                matrix=matrix,
                colour=colours[material] if material < len(colours) else None,
            )
        return matrix


class _Scanner:
    """Words of a text, one after the other."""

    def __init__(self, data: bytes, path: str) -> None:
        self._data = data
        self._path = path
        self._at = 0
        self._counted, self._lines = 0, 1  # up to where lines are counted

    @property
    def place(self) -> Place:
        """Return where the last word is."""
        self._lines += self._data.count(b"\n", self._counted, self._at)
        self._counted = self._at
        return Place(self._path, self._lines)

    def word(self) -> bytes:
        """Return the next word, empty behind the last."""
        match = WORD.search(self._data, self._at)
        self._at = match.end() if match else len(self._data)
        return match[0] if match else b""

    def words(self, count: int) -> list[bytes]:
        """Return the next words."""
        words: list[bytes] = []
        while len(words) < count:
            words.append(self.word())
            if not words[-1]:
                raise fault(self.place, "wrong-count", "the file ends too early")
        return words

    def expect(self, keyword: bytes) -> None:
        """Pass over a keyword."""
        word = self.word()
        if word != keyword:
            message = f"expected {keyword.decode()}, found {shown(word)}"
            raise fault(self.place, "unexpected-word", message)

    def floats(self, count: int) -> Array:
        """Return the next numbers, shape (count,)."""
        return floats(self.words(count), lambda _: self.place)

    def count(self) -> int:
        """Return the next whole number, which counts something."""
        (number,) = whole_numbers(self.words(1), lambda _: self.place).tolist()
        if number < 0:
            message = f"there cannot be {number}"
            raise fault(self.place, "wrong-count", message)
        return number

    def skip(self, count: int) -> None:
        """Pass over the bytes of the next line."""
        end = self._data.find(b"\n", self._at)
        self._at = len(self._data) if end < 0 else min(len(self._data), end + 1 + count)
