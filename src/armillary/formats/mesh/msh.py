"""MSH, the binary meshes of MuJoCo."""

from __future__ import annotations

from typing import Final

import numpy as np

from armillary.formats.diagnostic import Place, fault
from armillary.formats.mesh.surface import MeshSurface

__all__ = ["read_msh"]

COUNTS: Final = np.dtype("<i4")
NUMBERS: Final = np.dtype("<f4")
HEADER: Final = 4 * COUNTS.itemsize


def read_msh(data: bytes, surface: MeshSurface) -> None:
    """Add the triangles of an MSH file; its lengths count as metres.

    It begins with the numbers of vertices, normals, texture coordinates and triangles;
    arrays of these follow in that order.

    Raises:
        FormatError: The file is faulty.
    """
    place = Place(surface.path)
    if len(data) < HEADER:
        raise fault(place, "truncated", f"the file has {len(data)} bytes")
    header = np.frombuffer(data, COUNTS, 4)
    vertices, normals, textures, triangles = map(int, header)
    if min(header) < 0:
        raise fault(place, "wrong-size", "the file announces numbers below 0")
    surface.check_counts(vertices, triangles, place)
    before = 3 * vertices + 3 * normals + 2 * textures
    size = HEADER + NUMBERS.itemsize * (before + 3 * triangles)
    if len(data) != size:
        raise fault(
            place,
            "wrong-size",
            f"the file has {len(data)} bytes, but the {vertices} vertices and "
            f"{triangles} triangles that it announces take {size}",
        )
    points = np.frombuffer(data, NUMBERS, 3 * vertices, offset=HEADER)
    start = HEADER + NUMBERS.itemsize * before
    faces = np.frombuffer(data, COUNTS, 3 * triangles, offset=start)
    surface.add(points.reshape(-1, 3).astype(np.float64), faces.astype(np.int64))
