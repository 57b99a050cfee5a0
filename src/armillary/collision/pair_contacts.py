"""Which pairs of links touch, each by itself, at many joint positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self, final

import numpy as np
import numpy.typing as npt

from armillary.collision.check_tables import CheckTables
from armillary.collision.distance.pair_kernel import ValueAsked
from armillary.collision.shape_pairs import Placed
from armillary.collision.tested_shapes import (
    placed_shapes,
    shapes_of_links,
    tables_of_shapes,
)
from armillary.kinematics.moving_links import MovingLinks, moving_links, poses_of_links
from armillary.kinematics.state import State
from armillary.model.link_pairs import Pairs
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell

__all__ = ["PairContacts"]

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]

BLOCK: Final = 1 << 18
"""Pairs of shapes whose spheres are compared at once."""


@final
@dataclass(frozen=True, eq=False)
class PairContacts:
    """Pairs of links with their shapes, meshes as hulls.

    Attributes:
        known: Positions of the pairs whose shapes can be read, among all given ones.
        state: The state whose attachments and moved bases are used.
    """

    known: Indices
    state: State
    _tables: CheckTables
    _placed: Placed
    _moving: MovingLinks

    @classmethod
    def of(
        cls,
        cell: Workcell,
        state: State,
        pairs: Pairs,
        meshes: MeshSource | None,
        *,
        skip_unread: bool = False,
    ) -> Self:
        """Read the shapes of the links of pairs.

        skip_unread: Whether pairs of links whose shapes cannot be read are left out.

        Raises:
            ModelError: A mesh cannot be read, or both shapes of a pair are half spaces.
        """
        moving = moving_links(cell)
        shapes = shapes_of_links(cell, pairs, meshes, skip_unread=skip_unread)
        known = np.flatnonzero(np.isin(pairs.indices, list(shapes)).all(axis=1))
        tables = tables_of_shapes(pairs.part(known), shapes, moving, state.tree)
        placed = placed_shapes(tables, moving, state.tree)
        return cls(known, state, tables, placed, moving)

    def poses(self, Q: Array) -> Array:
        """Return the poses of f moving links [m]: (n, joints) -> (n, f, 3, 4)."""
        return poses_of_links(self._moving, self.state)(Q)

    def touching(self, X: Array, within: float, which: Indices | None = None) -> Truths:
        """Return which pairs are at most a distance apart.

        Args:
            X: Poses of moving links, shape (n, f, 3, 4).
            within: The distance [m].
            which: Which pairs, as positions in `known`, shape (k,); by default all.

        Returns:
            Truths, shape (n, k); False where a pose is NaN.
        """
        # Bounding spheres are compared first; shapes only where these are near.
        table = self._tables
        links = np.arange(len(self.known)) if which is None else which
        if not len(links):
            return np.zeros((len(X), 0), np.bool_)
        shapes, starts = table.shapes_of(links)
        asked: ValueAsked = "touch" if within == 0.0 else "free"
        found = np.zeros((len(X), len(shapes)), np.bool_)
        step = max(1, BLOCK // len(shapes))
        for start in range(0, len(X), step):
            some = X[start : start + step]
            rows = np.repeat(np.arange(len(some)), len(shapes))
            tiled = np.tile(shapes, len(some))
            bounds = table.pairs.bounds(self._placed, some, rows, tiled)
            near = np.flatnonzero(bounds <= within)
            values = table.pairs.distances(
                self._placed, some, rows[near], tiled[near], asked
            )
            part = found[start : start + step].reshape(-1)
            part[near] = values <= within
        return np.asarray(np.logical_or.reduceat(found, starts, axis=1))
