"""Where two links touch or are nearest, and how their distance changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from armillary.collision.placed_pairs import PlacedPairs
from armillary.kinematics.questions import jacobian

__all__ = ["Contact", "contact_of", "gradients", "nearest_first"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


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


def contact_of(pairs: PlacedPairs, links: int, shapes: int, X: Array) -> Contact:
    """Return the contact of two links.

    Args:
        pairs: The pairs of a check.
        links: The pair of links, a position in `pairs.tables.tested`.
        shapes: Their nearest pair of shapes, a position in `pairs.tables.pairs`.
        X: Poses of moving links, shape (1, f, 3, 4).
    """
    # Results are read-only; names of shapes tell those of one link apart.
    tables = pairs.tables
    nearest = pairs.nearest(X, 0, shapes)
    for array in (nearest.points, nearest.normal):
        array.flags.writeable = False
    a, b = (tables.pairs.shapes[int(k)].shape for k in tables.pairs.pairs[shapes])
    return Contact(
        tables.tested[links],
        float(nearest.value),
        nearest.points,
        nearest.normal,
        (a.name, b.name),
    )


def nearest_first(contact: Contact) -> tuple[bool, float]:
    """Return the key by which contacts are sorted: NaN comes last."""
    is_nan = np.isnan(contact.distance)
    return bool(is_nan), 0.0 if is_nan else contact.distance


def gradients(pairs: PlacedPairs, Q: Array, X: Array, nearest: Indices) -> Array:
    """Return the slopes of distances of pairs of links by joint positions.

    Two bodies approach each other as their nearest points do, along the normal n
    between these, as if the points were fixed to the links: that they slide along the
    surfaces is a motion across n. So the slope is n' (v_b - v_a).

    Args:
        pairs: The pairs of a check.
        Q: Joint positions, shape (r, n).
        X: Poses of moving links there, shape (r, f, 3, 4).
        nearest: The pair of shapes that is nearest for each pair of links, (r, k).

    Returns:
        Slopes [m per unit], shape (r, k, n).
    """
    tables, triangles = pairs.tables, pairs.triangles
    shapes = tables.pairs.shapes
    names = [shapes[int(k)].link for k in tables.first[:-1]]
    number = {name: k for k, name in enumerate(names)}
    slopes = np.zeros((*nearest.shape, Q.shape[1]))
    if not slopes.size:
        return slopes
    # Rows with the same nearest pair of shapes are computed together.
    J = np.asarray(jacobian(pairs.state.cell, names, state=pairs.state)(Q))
    for pair in np.unique(nearest).tolist():
        rows, at = np.nonzero(nearest == pair)
        contact = pairs.nearest(X, rows, pair)
        sides: list[int] = tables.pairs.pairs[pair].tolist()
        slope: Any = 0.0
        for side, shape in enumerate(sides):
            # The speed n' v of a point p of a link is the power of the wrench of a unit
            # force n in p: (n, (p - origin) x n) times the twist of the link.
            origin = pairs.link_poses(X, rows, shape)[:, :3, 3]
            moment = np.cross(contact.points[:, side] - origin, contact.normal)
            wrench = np.concatenate([contact.normal, moment], axis=1)
            twists = J[rows, number[shapes[shape].link]]
            power = np.einsum("ri,rij->rj", wrench, twists)
            slope = slope + power if side else slope - power
        if triangles and triangles.has_mesh[pair]:  # overlapping surfaces have no depth
            slope = np.where(contact.value[:, np.newaxis] <= 0.0, 0.0, slope)
        slopes[rows, at] = slope
    return slopes
