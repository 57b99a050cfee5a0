"""Points of PCD files, the format of the Point Cloud Library, version 0.7.

A header of words tells fields, their sizes and types, and how many points follow: as
words, as records of little-endian numbers, or compressed, then one field of all points
after another. The compression is LZF: a byte c below 32 says that c + 1 bytes follow as
they are; else c >> 5, and where that is 7 the next byte more, plus 2 bytes are copied
from ((c & 31) << 8) + next byte + 1 bytes back.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["MAGIC", "NotPCD", "points_of_pcd"]

Array = npt.NDArray[np.float64]

MAGIC: Final = (b"# .PCD", b"VERSION")
"""What a file begins with."""

AXES: Final = ("x", "y", "z")

LONGEST_HEADER: Final = 65_536
"""Most bytes of a header."""

TYPES: Final = {"F": (4, 8), "I": (1, 2, 4, 8), "U": (1, 2, 4, 8)}
"""Sizes of numbers [bytes], by the letters of types."""

LONG: Final = 7
"""The length of a copy that another byte adds to."""

LITERAL: Final = 32
"""Bytes below this are numbers of bytes that follow as they are."""


class NotPCD(ValueError):
    """What a file does wrong."""


class PCDField(NamedTuple):
    """Numbers of a point.

    Attributes:
        name: Their name; that of padding repeats.
        type: Of each number, little-endian.
        width: How many there are.
    """

    name: str
    type: np.dtype[Any]
    width: int


class PCDHeader(NamedTuple):
    """What a header tells.

    Attributes:
        fields: What a point has, one after another.
        points: How many points there are.
        kind: How they are stored: `ascii`, `binary` or `binary_compressed`.
        size: Bytes of the header.
    """

    fields: list[PCDField]
    points: int
    kind: str
    size: int


def points_of_pcd(data: bytes) -> Array:
    """Return x, y and z of all points that are not missing, shape (n, 3).

    Missing ones are NaN. The viewpoint, and all other fields, are left out.

    Raises:
        NotPCD: The file is faulty.
    """
    header = _header_of(data)
    body, count = data[header.size :], header.points
    if header.kind == "ascii":
        points = _of_words(body, header.fields, count)
    else:
        record = sum(field.type.itemsize * field.width for field in header.fields)
        if header.kind == "binary_compressed":
            body = _unpacked(body, record * count)
        if len(body) < record * count:
            raise NotPCD(
                f"it ends after {len(body)} of {record * count} bytes of points"
            )
        # Fields follow one another in each record, or, compressed, each field has its
        # numbers of all points together.
        points = np.empty((count, 3))
        start = 0
        for name, type_, width in header.fields:
            if name in AXES:
                is_packed = header.kind == "binary_compressed"
                first, stride = (
                    (start * count, type_.itemsize) if is_packed else (start, record)
                )
                column = np.ndarray((count,), type_, body, first, (stride,))
                points[:, AXES.index(name)] = column
            start += type_.itemsize * width
    return points[~np.isnan(points).all(axis=1)]


def _header_of(data: bytes) -> PCDHeader:
    """Return what a header tells.

    Raises:
        NotPCD: It is faulty.
    """
    said: dict[str, list[str]] = {}
    size = 0
    for line in data[:LONGEST_HEADER].splitlines(keepends=True):
        size += len(line)
        words = line.decode("ascii", "replace").split()
        if not words or words[0].startswith("#"):
            continue
        said[words[0]] = words[1:]
        if words[0] == "DATA":
            break
    # Lines may be in any order, but DATA is the last.
    missing = [name for name in ("FIELDS", "SIZE", "TYPE", "DATA") if name not in said]
    if missing:
        raise NotPCD(f"its header has no line {missing[0]}")
    kind = " ".join(said["DATA"])
    if kind not in {"ascii", "binary", "binary_compressed"}:
        raise NotPCD(
            f"its points are stored as '{kind}'; known are ascii, binary and "
            "binary_compressed"
        )
    names = said["FIELDS"]
    counts = _numbers(said.get("COUNT", ["1"] * len(names)), "COUNT")
    sizes, types = _numbers(said["SIZE"], "SIZE"), said["TYPE"]
    if not len(names) == len(sizes) == len(types) == len(counts):
        raise NotPCD("FIELDS, SIZE, TYPE and COUNT differ in length")
    fields: list[PCDField] = []
    for name, size_, letter, of in zip(names, sizes, types, counts, strict=True):
        if size_ not in TYPES.get(letter, ()) or not 0 < of <= LONGEST_HEADER:
            raise NotPCD(
                f"field '{name}' has numbers of type '{letter}', {size_} bytes each, "
                f"{of} of them"
            )
        if name in AXES and of != 1:
            raise NotPCD(f"field '{name}' has {of} numbers")
        fields.append(PCDField(name, np.dtype(f"<{letter.lower()}{size_}"), of))
    if sorted(name for name in names if name in AXES) != list(AXES):
        raise NotPCD("its fields have no x, y and z, or have one twice")
    # Older files have no POINTS: it is WIDTH times HEIGHT.
    if "POINTS" in said:
        (count,) = _numbers(said["POINTS"][:1] or ["?"], "POINTS")
    else:
        sides = [*said.get("WIDTH", ["?"])[:1], *said.get("HEIGHT", ["1"])[:1]]
        count = int(np.prod(_numbers(sides, "WIDTH or HEIGHT"), dtype=object))
    return PCDHeader(fields, count, kind, size)


def _numbers(words: list[str], name: str) -> list[int]:
    """Return whole numbers of at least 0.

    Raises:
        NotPCD: One is something else.
    """
    if not all(word.isdecimal() and word.isascii() for word in words):
        raise NotPCD(f"its {name} '{' '.join(words)}' is not of whole numbers")
    return [int(word) for word in words]


def _of_words(body: bytes, fields: list[PCDField], count: int) -> Array:
    """Return points that are written as words, a line each.

    Raises:
        NotPCD: The count differs, or a word is not a number.
    """
    widths = [field.width for field in fields]
    words = body.split()
    if len(words) != count * sum(widths):
        raise NotPCD(
            f"it has {len(words)} words, and {count} points have {count * sum(widths)}"
        )
    names = [field.name for field in fields]
    places = [sum(widths[: names.index(axis)]) for axis in AXES]
    rows = np.array(words).reshape(count, sum(widths))
    try:
        return rows[:, places].astype(np.float64)
    except ValueError as error:
        raise NotPCD(f"a coordinate is not a number: {error}") from error


def _unpacked(body: bytes, size: int) -> bytes:
    """Return what LZF holds.

    Raises:
        NotPCD: It is faulty, or holds other than `size` bytes.
    """
    if len(body) < 8:
        raise NotPCD("it ends before its points")
    packed, whole = np.frombuffer(body, "<u4", 2).tolist()
    if whole != size:
        raise NotPCD(f"it holds {whole} bytes of points, and its header says {size}")
    source = body[8 : 8 + packed]
    if len(source) < packed:
        raise NotPCD(f"it ends after {len(source)} of {packed} compressed bytes")
    out = bytearray()
    at = 0
    try:
        while at < packed:
            # Below 32 so many bytes and one more follow. Else the upper three bits are
            # a length less 2, or 7 and a byte, the lower five and a byte how far back.
            control = source[at]
            at += 1
            if control < LITERAL:
                out += source[at : at + control + 1]
                at += control + 1
                continue
            length = control >> 5
            if length == LONG:
                length += source[at]
                at += 1
            back = ((control & 31) << 8) + source[at] + 1
            at += 1
            length += 2
            if back > len(out) or len(out) + length > size:
                raise NotPCD("its compressed bytes are faulty")
            first = len(out) - back
            # What is copied may reach into what is being written.
            part = out[first : first + length]
            out += (part * (length // len(part) + 1))[:length]
    except IndexError as error:
        raise NotPCD("its compressed bytes end early") from error
    return bytes(out)
