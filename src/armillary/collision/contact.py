"""Where two links touch or are nearest."""

from __future__ import annotations

import math
from typing import final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.collision.check_tables import CheckTables

__all__ = ["Contact", "contacts_of"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


@final
class Contact(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Two links, and where they are nearest or overlap; arrays are read-only.

    Attributes:
        links: Their qualified names, in the order of `check.pairs`.
        distance: [m], below 0 where they overlap; as in `armillary.shapes.distance`.
            It is 0 where meshes overlap in an `exact` check.
        points: The nearest points of both in the world [m], shape (2, 3).
        normal: Unit vector from the first link to the second, in the world, shape (3,).
        shapes: Names of the two shapes, which may be empty.
    """

    links: tuple[str, str]
    distance: float
    points: Array
    normal: Array
    shapes: tuple[str, str]

    def __str__(self) -> str:
        return f"{self.links[0]} and {self.links[1]}: {self.distance:.6g} m"


def contacts_of(tables: CheckTables, links: Indices, numbers: Array) -> list[Contact]:
    """Return the contacts of pairs of links, nearest first; NaN comes last.

    Args:
        tables: The pairs of a check.
        links: The pairs of links, positions in `tables.tested`, shape (p,).
        numbers: What `CONTACT` says of each, shape (p, 11); it is made read-only.
    """
    if not len(links):
        return []
    numbers.setflags(write=False)  # and so are parts of it
    points, normals = numbers[:, 2:8].reshape(-1, 2, 3), numbers[:, 8:]
    rows: list[list[float]] = numbers.tolist()
    values = [math.inf if math.isnan(row[0]) else row[0] for row in rows]
    order = sorted(range(len(rows)), key=values.__getitem__)
    # Names of shapes tell those of one link apart.
    names, shapes = tables.tested.links, tables.pairs.shapes
    sides: list[list[int]] = tables.tested.indices.take(links, axis=0).tolist()
    pairs = tables.pairs.pairs
    contacts: list[Contact] = []
    for k in order:
        row, (i, j) = rows[k], sides[k]
        both: list[int] = pairs[int(row[1])].tolist()
        a, b = both
        contacts.append(
            Contact(
                (names[i], names[j]),
                row[0],
                points[k],
                normals[k],
                (shapes[a].shape.name, shapes[b].shape.name),
            )
        )
    return contacts
