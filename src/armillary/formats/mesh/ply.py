"""PLY, text and binary."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.errors import FormatError, unknown
from armillary.formats.diagnostic import Place, fault
from armillary.formats.mesh.surface import MeshSurface
from armillary.formats.mesh.words import floats, place_of_word, shown, whole_numbers
from armillary.limits import PLY_HEADER, PLY_PROPERTIES
from armillary.model.shapes.ply import ORDERS, TYPES

__all__ = ["read_ply"]

Indices = npt.NDArray[np.int64]

CORNERS: Final = (b"vertex_indices", b"vertex_index")


@dataclass(frozen=True, slots=True)
class _Property:
    name: bytes
    type: str
    length: str = ""  # the type of the length of a list


@dataclass(frozen=True, slots=True)
class _Element:
    name: bytes
    rows: int
    place: Place
    properties: list[_Property] = field(default_factory=list[_Property])

    def index(self, *names: bytes) -> int:
        """Return the index of the property that has one of these names."""
        for k, each in enumerate(self.properties):
            if each.name in names:
                return k
        raise fault(
            self.place,
            "missing-property",
            f"element {shown(self.name)} has no property {shown(names[0])}",
        )


def read_ply(data: bytes, surface: MeshSurface) -> None:
    """Add the polygons of a PLY file; its lengths count as metres.

    Raises:
        FormatError: The file is faulty.
    """
    order, elements, lines, size = _header(data, surface)
    rows = _PlyRows(data[size:], order, lines + 1, surface.path)
    vertices = np.zeros((0, 3))
    corners, sizes = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for element in elements:
        if element.name in {b"vertex", b"face"}:
            surface.check_counts(element.rows, element.rows, element.place)
        starts, lengths = rows.layout(element)
        if element.name == b"vertex":
            axes = [element.index(name) for name in (b"x", b"y", b"z")]
            if (lengths[:, axes] != 1).any():
                message = "a coordinate cannot be a list"
                raise fault(element.place, "bad-header", message)
            types = [element.properties[k].type for k in axes]
            columns = map(rows.numbers, starts[:, axes].T, types)
            vertices = np.stack(list(columns), axis=1).astype(np.float64)
        elif element.name == b"face":
            k = element.index(*CORNERS)
            type, sizes = element.properties[k].type, lengths[:, k]
            # Corner j of a face is at the start of its list plus j numbers.
            before = np.repeat(np.cumsum(sizes) - sizes, sizes)
            within = np.arange(len(before), dtype=np.int64) - before
            at = np.repeat(starts[:, k], sizes) + within * rows.width(type)
            numbers = rows.numbers(at, type)
            corners = numbers.astype(np.int64)
            if (corners != numbers).any():
                message = "a corner of a face is not a whole number"
                raise fault(element.place, "bad-number", message)
    if rows.left:
        place = Place(surface.path)
        message = f"{rows.left} bytes or words follow the last row"
        if not order:
            raise fault(place, "wrong-count", message)
        surface.report.warning(place, "trailing-bytes", f"{message}, and are left out")
    surface.add(vertices, corners, sizes)


def _header(data: bytes, surface: MeshSurface) -> tuple[str, list[_Element], int, int]:
    """Return the byte order, empty for text, the elements, and the header's size."""
    path = surface.path
    longest = surface.budget.most(PLY_HEADER)
    lines = data[:longest].splitlines(keepends=True)
    if not lines or lines[0].strip() != b"ply":
        raise fault(Place(path), "wrong-content", "a PLY file begins with 'ply'")
    order: str | None = None
    elements: list[_Element] = []
    size = len(lines[0])
    for number, line in enumerate(lines[1:], start=2):
        size += len(line)
        place = Place(path, number)
        match line.split():
            case [] | [b"comment" | b"obj_info", *_]:
                continue
            case [b"format", name, b"1.0"] if name in ORDERS and order is None:
                order = ORDERS[name]
            case [b"element", name, count]:
                rows = int(whole_numbers([count], lambda _, place=place: place)[0])
                if rows < 0:
                    message = f"an element cannot have {rows} rows"
                    raise fault(place, "wrong-count", message)
                elements.append(_Element(name, rows, place))
            case [b"property", *words] if elements:
                elements[-1].properties.append(_property(words, place))
                count = len(elements[-1].properties)
                surface.budget.check(PLY_PROPERTIES, count, place)
            case [b"end_header"] if order is not None:
                return order, elements, number, size
            case [b"format" | b"element" | b"property" | b"end_header", *_]:
                message = f"{shown(line.strip())} is not part of a header"
                raise fault(place, "bad-header", message)
            case _:
                message = f"{shown(line.strip())} is not part of a header"
                surface.report.warning(
                    place, "bad-header", f"{message}; it is read as a comment"
                )
    if len(data) > longest:
        raise surface.budget.excess(PLY_HEADER, path)
    raise fault(Place(path), "bad-header", "the header does not end")


def _property(words: list[bytes], place: Place) -> _Property:
    match words:
        case [b"list", length, kind, name]:
            of_length = _type(length, place)
            if of_length.startswith("f"):
                message = "the length of a list cannot be a float"
                raise fault(place, "bad-header", message)
            return _Property(name, _type(kind, place), of_length)
        case [kind, name]:
            return _Property(name, _type(kind, place))
        case _:
            message = f"{shown(b' '.join(words))} is not a property"
            raise fault(place, "bad-header", message)


def _type(name: bytes, place: Place) -> str:
    code = TYPES.get(name)
    if code is None:
        known = [each.decode() for each in TYPES]
        error = unknown("type", name.decode("utf-8", errors="replace"), known)
        raise fault(place, "bad-header", str(error)) from error
    return code


class _PlyRows:
    """The numbers behind the header, by offsets: bytes, or words where it is text."""

    def __init__(self, data: bytes, order: str, first_line: int, path: str) -> None:
        self._order = order
        self._place = Place(path)
        self._at = 0
        self._units: npt.NDArray[Any] = np.frombuffer(data, np.uint8)
        if not order:

            def place(index: int) -> Place:
                return place_of_word(data, path, index, first_line=first_line)

            self._units = floats(data.split(), place)

    @property
    def left(self) -> int:
        """Return how many units follow what has been read."""
        return len(self._units) - self._at

    def width(self, type: str) -> int:
        """Return how many units a number has."""
        return int(type[1]) if self._order else 1

    def numbers(self, starts: Indices, type: str) -> npt.NDArray[Any]:
        """Return the numbers that start there."""
        if not self._order:
            return self._units[starts]
        units = self._units[starts[:, None] + np.arange(self.width(type))]
        return units.reshape(-1).view(self._order + type)

    def layout(self, element: _Element) -> tuple[Indices, Indices]:
        """Return where the numbers of each row start, and how many there are.

        Both have shape (rows, properties).
        """
        fields = [
            (each.length, self.width(each.length or each.type), self.width(each.type))
            for each in element.properties
        ]
        least = sum(width for _, width, _ in fields)
        at, rows = self._at, element.rows if fields else 0
        if rows * least > self.left:
            raise self._too_short(element)
        if not any(length for length, _, _ in fields):
            widths = np.array([width for _, width, _ in fields], dtype=np.int64)
            self._at += rows * least
            starts = at + least * np.arange(rows)[:, None] + np.cumsum(widths) - widths
            return starts, np.ones_like(starts)
        # Lists make rows of different lengths: each begins where the last one ends.
        starts, counts = array("q"), array("q")
        for _ in range(rows):
            for length, first, width in fields:
                count = 1
                if length:
                    count = self._count(at, length, element)
                    at += first
                end = at + count * width
                if end > len(self._units):
                    raise self._too_short(element)
                starts.append(at)
                counts.append(count)
                at = end
        self._at = at
        shape = (rows, len(fields))
        return np.array(starts).reshape(shape), np.array(counts).reshape(shape)

    def _count(self, at: int, type: str, element: _Element) -> int:
        """Return the length of a list; it starts at `at`."""
        if at + self.width(type) > len(self._units):
            raise self._too_short(element)
        if self._order:
            order = "big" if self._order == ">" else "little"
            units = self._units[at : at + self.width(type)].tobytes()
            count = int.from_bytes(units, order, signed=type.startswith("i"))
        else:
            count = self._units[at]
        if count < 0 or count != int(count):
            message = f"a list cannot have {count} entries"
            raise fault(element.place, "wrong-count", message)
        return int(count)

    def _too_short(self, element: _Element) -> FormatError:
        return fault(
            self._place,
            "wrong-size",
            f"the file is too short for the {element.rows} rows of "
            f"{shown(element.name)}",
        )
