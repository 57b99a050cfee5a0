"""The triangles of a PLY file."""

from __future__ import annotations

from typing import Final

import numpy as np

from armillary.formats.diagnostic import Place
from armillary.formats.mesh.lines import lines_of
from armillary.formats.mesh.parts import MOST_FACES, MOST_VERTICES, Parts, too_many
from armillary.formats.mesh.ply.binary import Rows
from armillary.formats.mesh.ply.header import read_header
from armillary.formats.mesh.ply.text import TextRows
from armillary.model.geometry.triangles import Triangles

__all__ = ["read_ply"]

CORNERS: Final = (b"vertex_indices", b"vertex_index")


def read_ply(data: bytes, path: str) -> Triangles:
    """Return the triangles of a PLY file; its lengths count as metres.

    Raises:
        FormatError: The file is faulty, or empty.
    """
    header = read_header(data, path)
    rows: Rows | TextRows
    if header.order:
        rows = Rows(data, header.size, header.order)
    else:
        rows = TextRows(lines_of(data[header.size :], path, first=header.lines + 1))
    vertices = np.zeros((0, 3))
    faces = np.zeros((0, 3), dtype=np.int64)
    for table in header.tables:
        match table.name:
            case b"vertex":
                if table.rows > MOST_VERTICES:
                    raise too_many(table.place)
                x, y, z = (table.column(name) for name in (b"x", b"y", b"z"))
                vertices = rows.numbers(table, (x, y, z))
            case b"face":
                if table.rows > MOST_FACES:
                    raise too_many(table.place)
                faces = rows.polygons(table, table.column(*CORNERS))
            case _:
                rows.skip(table)
    parts = Parts(path)
    parts.add(vertices, faces, Place(path))
    return parts.joined()
