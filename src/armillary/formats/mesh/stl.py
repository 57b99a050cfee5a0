"""STL, binary and text; large binary files as fewer triangles."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.formats.diagnostic import Place, fault
from armillary.formats.files import read_pieces
from armillary.formats.mesh.surface import MeshSurface
from armillary.formats.mesh.words import floats, place_of_word, shown
from armillary.model.geometry.triangles import Triangles
from armillary.model.shape import LARGEST
from armillary.model.shapes.mesh import MeshPart

__all__ = ["coarse_stl", "read_stl", "stl_bytes"]

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


def stl_bytes(corners: npt.NDArray[np.float64]) -> bytes:
    """Return the binary STL of triangles, without normals, which readers find.

    corners: Of each triangle [m], shape (m, 3, 3).
    """
    rows = np.zeros(len(corners), TRIANGLE)
    rows["corners"] = corners
    return bytes(START - 4) + len(rows).to_bytes(4, "little") + rows.tobytes()


def read_stl(data: bytes, surface: MeshSurface) -> None:
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


def _read_text(text: bytes, surface: MeshSurface) -> None:
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


# Binary files that are too large to be kept, as fewer triangles for display. They are
# read in pieces, twice, so that memory does not grow with them.


Array = npt.NDArray[np.float32]
Keys = npt.NDArray[np.int64]

BITS: Final = 7  # of a cell along x, y, z: three cells of a triangle fit in 64 bits
CELLS: Final = 1 << BITS
PIECE: Final = TRIANGLE.itemsize * 200_000


def coarse_stl(path: str | os.PathLike[str], size_cap: int) -> MeshPart | None:
    """Return the triangles of a binary STL file on a grid of 128 cells along its box.

    The vertices in a cell become one of them, as in `view.surfaces.decimated`.

    Args:
        path: A plain file.
        size_cap: The most bytes that it may have.

    Returns:
        None where the file is not binary STL, or all of it is within one cell.

    Raises:
        FormatError: It cannot be read, is too large, or a corner is not finite.
    """
    if not _is_binary(path, size_cap):
        return None
    # First the box, then, in a second pass, the cell of each corner in it.
    place = Place(os.fspath(path))
    lower, upper, count = np.full(3, np.inf), np.full(3, -np.inf), 0
    for corners in _pieces(path, size_cap):
        if not (np.abs(corners) <= LARGEST).all():  # nor NaN
            raise fault(place, "bad-number", "a vertex is not finite or too far away")
        lower = np.minimum(lower, corners.min(axis=(0, 1)))
        upper = np.maximum(upper, corners.max(axis=(0, 1)))
        count += len(corners)
    least = lower.astype(np.float32)
    # A little less than the cells that there are, so that rounding stays below them.
    scale = np.float32((CELLS - 0.01) / max(float((upper - lower).max()), 1e-30))
    vertices = np.zeros((CELLS**3, 3), np.float32)
    keys: Keys = np.zeros(0, np.int64)
    for corners in _pieces(path, size_cap):
        cells = ((corners - least) * scale).astype(np.int32)
        x, y, z = np.moveaxis(cells, -1, 0)
        number = (x << 2 * BITS) + (y << BITS) + z
        # A triangle counts if its corners are in three cells; the last corner of a cell
        # stands for all that are in it.
        a, b, c = number.T
        has_area = (a != b) & (b != c) & (c != a)
        vertices[number[has_area]] = corners[has_area]
        keys = np.union1d(keys, _keys(number[has_area]))
    if not len(keys):
        return None
    # A key holds three numbers of cells of 21 bits; only cells in use become vertices.
    mask = CELLS**3 - 1
    faces = np.stack([keys >> 6 * BITS, keys >> 3 * BITS, keys], axis=-1) & mask
    used, renumbered = np.unique(faces, return_inverse=True)
    triangles = Triangles(vertices[used], renumbered.reshape(-1, 3))
    return MeshPart(triangles, None, whole=count)


def _is_binary(path: str | os.PathLike[str], size_cap: int) -> bool:
    """Return whether a file has the size that its head says."""
    head = next(read_pieces(path, size_cap, piece=START), b"")
    size = os.stat(path).st_size
    count = int.from_bytes(head[START - 4 :], "little")
    return count > 0 and size == START + TRIANGLE.itemsize * count


def _pieces(path: str | os.PathLike[str], size_cap: int) -> Iterator[Array]:
    """Yield corners of triangles, shape (n, 3, 3)."""
    for piece in read_pieces(path, size_cap, piece=PIECE, start=START):
        whole = len(piece) // TRIANGLE.itemsize
        if whole:
            yield np.frombuffer(piece, TRIANGLE, whole)["corners"].copy()


def _keys(number: npt.NDArray[np.int32]) -> Keys:
    """Return triangles of three cells, each once, the smallest cell first."""
    turn = (number.argmin(axis=1)[:, None] + np.arange(3)) % 3
    a, b, c = np.take_along_axis(number, turn, axis=1).T.astype(np.int64)
    return np.unique((a << 6 * BITS) | (b << 3 * BITS) | c)
