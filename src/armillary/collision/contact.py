"""Where two links touch or are nearest."""

from __future__ import annotations

import math
from typing import TypeAlias, final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.collision.check_tables import CheckTables
from armillary.model.fields import kept

__all__ = ["Contact", "contacts_of"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Names: TypeAlias = tuple[tuple[str, str], tuple[str, str]]
"""Those of both links, and of both shapes."""


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
    known = kept(tables, "names of contacts", dict[float, Names])
    contacts: list[Contact] = []
    for k in order:
        row = rows[k]
        pair = row[1]
        names = known.get(pair)
        if names is None:
            names = known[pair] = _names(tables, int(links[k]), int(pair))
        contacts.append(Contact(names[0], row[0], points[k], normals[k], names[1]))
    return contacts


def _names(tables: CheckTables, link_pair: int, shape_pair: int) -> Names:
    """Return the names of two links, and those of two shapes of them."""
    # Names of shapes tell those of one link apart.
    sides: list[int] = tables.tested.indices[link_pair].tolist()
    both: list[int] = tables.pairs.pairs[shape_pair].tolist()
    (i, j), (a, b) = sides, both
    names, shapes = tables.tested.links, tables.pairs.shapes
    return (names[i], names[j]), (shapes[a].shape.name, shapes[b].shape.name)
