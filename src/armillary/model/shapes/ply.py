"""Points of PLY files (Stanford Polygon File Format 1.0), as words or as records.

A header of lines tells elements, their properties and how many rows follow. Points are
the rows of the element `vertex`: its x, y and z are read, and all else is left out.
`formats/mesh/ply.py` reads the faces of such files.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.limits import PLY_HEADER, PLY_PROPERTIES

__all__ = ["MAGIC", "ORDERS", "TYPES", "NotPLY", "points_of_ply"]

Array = npt.NDArray[np.float64]

MAGIC: Final = (b"ply\n", b"ply\r")
"""What a file begins with."""

TYPES: Final = {
    name: type
    for names, type in (
        (b"char int8", "i1"),
        (b"uchar uint8", "u1"),
        (b"short int16", "i2"),
        (b"ushort uint16", "u2"),
        (b"int int32", "i4"),
        (b"uint uint32", "u4"),
        (b"float float32", "f4"),
        (b"double float64", "f8"),
    )
    for name in names.split()
}
"""Types of NumPy, by the names of types."""

ORDERS: Final = {b"ascii": "", b"binary_little_endian": "<", b"binary_big_endian": ">"}
"""Byte orders by the names of formats; none of text."""

AXES: Final = (b"x", b"y", b"z")


class NotPLY(ValueError):
    """What a file does wrong."""


class PLYElement(NamedTuple):
    """What rows of a kind hold.

    Attributes:
        name: What kind.
        rows: How many there are.
        names: Of the properties of a row, one after another.
        types: Of each, without byte order; empty of a list.
    """

    name: bytes
    rows: int
    names: list[bytes]
    types: list[str]


def points_of_ply(data: bytes) -> Array:
    """Return x, y and z of all vertices that are not missing, shape (n, 3).

    Missing ones are NaN. Faces, and all other properties, are left out.

    Raises:
        NotPLY: The file is faulty.
    """
    order, elements, size = _header_of(data)
    body = data[size:]
    words = body.split() if not order else []
    at = 0
    if b"vertex" not in {element.name for element in elements}:
        raise NotPLY("its header has no element vertex")
    for element in elements:
        if not all(element.types):
            raise NotPLY(
                f"its element '{_text(element.name)}' has lists and is not behind the "
                "vertices"
            )
        if element.name == b"vertex":
            points = _points(element, body, words, at, order)
            return points[~np.isnan(points).all(axis=1)]
        row = len(element.types) if not order else _record(element, order).itemsize
        at += element.rows * row
    raise AssertionError("the vertices are among them")


def _points(
    vertices: PLYElement, body: bytes, words: list[bytes], at: int, order: str
) -> Array:
    """Return the points that begin at a byte, or at a word of text.

    Raises:
        NotPLY: There are fewer, or a word is not a number.
    """
    names, count = vertices.names, vertices.rows
    if sorted(name for name in names if name in AXES) != list(AXES):
        raise NotPLY("its vertices have no x, y and z, or have one twice")
    if not order:
        width = len(names)
        if len(words) - at < count * width:
            raise NotPLY(
                f"{len(words) - at} words are there for {count} vertices of {width}"
            )
        rows = np.array(words[at : at + count * width]).reshape(count, width)
        try:
            return rows[:, [names.index(axis) for axis in AXES]].astype(np.float64)
        except ValueError as error:
            raise NotPLY(f"a coordinate is not a number: {error}") from error
    record = _record(vertices, order)
    if len(body) - at < count * record.itemsize:
        raise NotPLY(
            f"it ends after {max(len(body) - at, 0)} of {count * record.itemsize} "
            "bytes of vertices"
        )
    table = np.frombuffer(body, record, count, at)
    columns = [table[f"f{names.index(axis)}"] for axis in AXES]
    return np.stack(columns, axis=1).astype(np.float64)


def _record(element: PLYElement, order: str) -> np.dtype[Any]:
    """Return the type of a row, whose fields are f0, f1, ..."""
    return np.dtype([("", order + type_) for type_ in element.types])


def _header_of(data: bytes) -> tuple[str, list[PLYElement], int]:
    """Return the byte order, the elements, and the bytes of the header.

    Raises:
        NotPLY: It is faulty.
    """
    order: str | None = None
    elements: list[PLYElement] = []
    size = 0
    for line in data[: PLY_HEADER.most].splitlines(keepends=True):
        size += len(line)
        match line.split():
            case [b"format", name, b"1.0"] if name in ORDERS:
                order = ORDERS[name]
            case [b"format", *words]:
                raise NotPLY(
                    f"its format is '{_text(b' '.join(words))}'; known are "
                    + ", ".join(f"'{_text(name)} 1.0'" for name in ORDERS)
                )
            case [b"element", name, count]:
                if not count.isdigit():
                    raise NotPLY(f"it has '{_text(count)}' rows of '{_text(name)}'")
                elements.append(PLYElement(name, int(count), [], []))
            case [b"property", *words, name] if elements and words:
                kind = words[0]
                if len(words) > 1 and kind != b"list":
                    raise NotPLY(f"'{_text(line.strip())}' is not a property")
                if kind != b"list" and kind not in TYPES:
                    raise NotPLY(
                        f"property '{_text(name)}' has the type '{_text(kind)}'"
                    )
                elements[-1].names.append(name)
                elements[-1].types.append(TYPES.get(kind, ""))
                count = len(elements[-1].names)
                if count > PLY_PROPERTIES.most:
                    raise NotPLY(PLY_PROPERTIES.excess(count))
            case [b"end_header"]:
                if order is None:
                    raise NotPLY("its header has no line format")
                return order, elements, size
            case _:
                continue
    raise NotPLY("its header does not end")


def _text(name: bytes) -> str:
    return name[:80].decode("ascii", "replace")
