"""STL, binary and text."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from armillary.formats.diagnostic import Place, fault
from armillary.formats.mesh.surface import Surface
from armillary.formats.mesh.words import floats, place_of_word, shown

__all__ = ["read_stl"]

START: Final = 84
TRIANGLE: Final = np.dtype(
    [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")]
)
# The words of a triangle in text; - stands for a number.
KEYWORDS: Final = (
    b"facet normal - - - outer loop vertex - - - vertex - - - vertex - - - "
    b"endloop endfacet".split()
)
FACET: Final = np.array(KEYWORDS, dtype=object)
NAMES: Final = re.compile(rb"^[ \t]*(?:end[ \t]*)?solid\b.*$", re.MULTILINE)


def read_stl(data: bytes, surface: Surface) -> None:
    """Add the triangles of an STL file; its lengths count as metres.

    Bytes behind the last triangle of a binary file are left out with a warning.

    Raises:
        FormatError: The file is faulty.
    """
    place = Place(surface.path)
    count = int.from_bytes(data[START - 4 : START], "little")
    size = START + TRIANGLE.itemsize * count
    # Binary files may begin with "solid" too; their size tells them apart.
    is_text = data[:512].lstrip()[:5].lower() == b"solid" and b"\0" not in data
    if is_text and len(data) != size:
        _read_text(data.lower(), surface)
        return
    excess = len(data) - size
    if excess < 0 or (excess and excess % TRIANGLE.itemsize * count == 0):
        raise fault(
            place,
            "wrong-size",
            f"the file has {len(data)} bytes, but the {count} triangles that it "
            f"announces take {size}; it is not STL in text either, which begins with "
            "'solid'",
        )
    if excess:
        surface.report.warning(
            place,
            "trailing-bytes",
            f"the file announces {count} triangles; the {excess} bytes "
            "behind them are left out",
        )
    surface.check_counts(3 * count, count, place)
    triangles = np.frombuffer(data, TRIANGLE, count, offset=START)
    vertices = triangles["corners"].reshape(-1, 3).astype(np.float64)
    surface.add(vertices, np.arange(3 * count, dtype=np.int64))


def _read_text(text: bytes, surface: Surface) -> None:
    text = NAMES.sub(b"", text)
    # Each triangle ends with a word of 8 letters; text without is not split at all.
    surface.check_counts(0, text.count(b"endfacet"), Place(surface.path))
    most = len(FACET) * (text.count(b"endfacet") + 1)
    words = text.split(None, most)[:most]
    missing = -len(words) % len(FACET)
    table = np.array([*words, *[b""] * missing], dtype=object).reshape(-1, len(FACET))
    wrong = np.flatnonzero((table != FACET) & (FACET != b"-"))
    if len(wrong):
        first = int(wrong[0])
        found = words[first] if first < len(words) else b""
        expected = KEYWORDS[first % len(FACET)]
        raise fault(
            place_of_word(text, surface.path, first),
            "unexpected-word",
            f"expected {expected.decode()}, found "
            f"{shown(found) if found else 'the end of the file'}",
        )
    columns = np.flatnonzero(FACET == b"-")[3:]  # without the normal

    def place(index: int) -> Place:
        row, column = divmod(index, len(columns))
        word = row * len(FACET) + int(columns[column])
        return place_of_word(text, surface.path, word)

    numbers = floats(table[:, columns].ravel().tolist(), place)
    vertices = numbers.reshape(-1, 3)
    surface.add(vertices, np.arange(len(vertices), dtype=np.int64))
