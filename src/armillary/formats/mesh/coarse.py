"""Binary STL files that are too large to be kept, as fewer triangles for display.

The file is read in pieces, twice, so that memory does not grow with it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.formats.diagnostic import Place, fault
from armillary.formats.files import read_pieces
from armillary.formats.mesh.stl import START, TRIANGLE
from armillary.model.geometry.triangles import Triangles
from armillary.model.shape import LARGEST
from armillary.model.shapes.mesh import MeshPart

__all__ = ["coarse_stl"]

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
        a, b, c = number.T
        kept = (a != b) & (b != c) & (c != a)
        vertices[number[kept]] = corners[kept]
        keys = np.union1d(keys, _keys(number[kept]))
    if not len(keys):
        return None
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
