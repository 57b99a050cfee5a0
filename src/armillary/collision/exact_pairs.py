"""Distances, contacts and slopes of pairs of links by the triangles of their meshes.

coal answers for one pair of shapes at a time, so that this is Python for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from armillary.collision.columns import CONTACT
from armillary.collision.link_twists import link_twists
from armillary.collision.placed_pairs import PlacedPairs

__all__ = ["ExactPairs"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class ExactPairs:
    """What measures the pairs of links of an exact check, as `NearestPairs` does.

    Attributes:
        pairs: The pairs.
    """

    pairs: PlacedPairs

    def distances(self, X: Array) -> Array:
        """Return the distance of each pair of links; see `NearestPairs`."""
        return self.pairs.distances(X, np.arange(len(self.pairs.tables.starts)))

    def contacts(self, X: Array, within: float) -> tuple[Indices, Array]:
        """Return the pairs of links that are near, and their contacts; see there."""
        pairs, tables = self.pairs, self.pairs.tables
        # Only the shapes of links whose spheres are near are looked at.
        links = pairs.near(X, within)
        shapes, starts = tables.shapes_of(links)
        values = pairs.values(X[np.newaxis], np.zeros_like(shapes), shapes)
        near: list[int] = []
        numbers: list[Array] = []
        # Of each pair of links the nearest pair of shapes is its contact.
        ends = np.append(starts[1:], len(shapes))
        for link, start, end in zip(links.tolist(), starts, ends, strict=True):
            at = start + int(np.argmin(values[start:end]))  # a NaN, if there is one
            if not values[at] > within:
                found = pairs.nearest(X[np.newaxis], 0, int(shapes[at]))
                first = np.array([values[at], shapes[at]], np.float64)
                parts = first, found.points.ravel(), found.normal
                near.append(link)
                numbers.append(np.concatenate(parts))
        return np.array(near, np.int64), np.reshape(numbers, (-1, CONTACT))

    def slopes(self, Q: Array, X: Array) -> Array:
        """Return the slopes of distances by joint positions; see `NearestPairs`."""
        starts = self.pairs.tables.starts
        # Of the pairs of shapes of each pair of links the nearest one counts.
        values = self.pairs.all_values(X)
        of_links = np.split(values, starts[1:], axis=1)
        nearest = np.stack([np.argmin(each, axis=1) for each in of_links], axis=1)
        nearest += starts
        slopes = self._of_shapes(Q, X, nearest)
        slopes[np.isnan(np.take_along_axis(values, nearest, axis=1))] = np.nan
        return slopes

    def width(self, _asked: str) -> int:
        """Return about how many numbers a row of a question takes."""
        return max(12 * self.pairs.moving.count, len(self.pairs.tables.pairs.pairs))

    def _of_shapes(self, Q: Array, X: Array, nearest: Indices) -> Array:
        """Return the slopes of the distances of pairs of shapes, shape (r, k, joints).

        nearest: The pair of shapes that is nearest for each pair of links, (r, k).
        """
        pairs = self.pairs
        tables, triangles = pairs.tables, pairs.triangles
        assert triangles is not None
        shapes = tables.pairs.shapes
        names = [shapes[int(k)].link for k in tables.first[:-1]]
        number = {name: k for k, name in enumerate(names)}
        slopes = np.zeros((*nearest.shape, Q.shape[1]))
        if not slopes.size:
            return slopes
        # Rows with the same nearest pair of shapes are computed together.
        J = np.asarray(link_twists(pairs.state, names, Q.shape[1])(Q))
        for pair in np.unique(nearest).tolist():
            rows, at = np.nonzero(nearest == pair)
            contact = pairs.nearest(X, rows, pair)
            sides: list[int] = tables.pairs.pairs[pair].tolist()
            slope: Any = 0.0
            for side, shape in enumerate(sides):
                # The speed n' v of a point p of a link is the power of the wrench of
                # a unit force n in p, (n, (p - origin) x n), times the link's twist.
                origin = pairs.link_poses(X, rows, shape)[:, :3, 3]
                moment = np.cross(contact.points[:, side] - origin, contact.normal)
                wrench = np.concatenate([contact.normal, moment], axis=1)
                twists = J[rows, number[shapes[shape].link]]
                power = np.einsum("ri,rij->rj", wrench, twists)
                slope = slope + power if side else slope - power
            if triangles.has_mesh[pair]:  # overlapping surfaces have no depth
                slope = np.where(contact.value[:, np.newaxis] <= 0.0, 0.0, slope)
            slopes[rows, at] = slope
        return slopes
