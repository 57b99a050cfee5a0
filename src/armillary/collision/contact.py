"""Where two links touch, or are nearest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from armillary.collision.check_tables import CheckTables
from armillary.collision.distance.pair import distance
from armillary.collision.exact import ExactMeshes
from armillary.collision.shape_pairs import Placed

__all__ = ["Contact", "contact_of", "nearest_first"]

Array = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Contact:
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


def contact_of(
    tables: CheckTables,
    placed: Placed,
    pair: int,
    at: int,
    X: Array,
    exact: ExactMeshes | None,
) -> Contact:
    """Return the contact of two links.

    Args:
        tables: The pairs of a check.
        placed: Where the shapes are.
        pair: The position of the links in `tables.tested`.
        at: That of the pair of shapes in `tables.pairs`.
        X: Poses of moving links, shape (f, 3, 4).
        exact: What treats meshes by their triangles.
    """
    table = tables.pairs
    numbers: list[int] = table.pairs[at].tolist()
    a, b = (table.shapes[k] for k in numbers)
    X_A, X_B = (
        placed.link_poses(X[placed.rows[k]], k) @ table.shapes[k].primary.matrix()
        for k in numbers
    )
    if exact:
        found = exact.nearest(at, X_A, X_B)
    else:
        found = distance(a.shape, X_A, b.shape, X_B)
    for array in (found.points, found.normal):
        array.flags.writeable = False
    names = a.shape.name, b.shape.name
    value = float(found.value)
    return Contact(tables.tested[pair], value, found.points, found.normal, names)


def nearest_first(contact: Contact) -> tuple[bool, float]:
    """Return the key by which contacts are sorted: NaN comes last."""
    is_nan = np.isnan(contact.distance)
    return bool(is_nan), 0.0 if is_nan else contact.distance
