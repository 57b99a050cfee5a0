"""Bodies as small convex pieces: their surface and all that it encloses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.model.geometry.triangles import (
    Triangles,
    distances_to_triangles,
    windings,
)

__all__ = ["BodyPieces"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

FINEST: Final = 96
"""Cubes along the longest side at most."""

MOST_ANGLES: Final = 30_000_000
"""Pairs of a corner of a cube and a triangle that are looked at."""

SLACK: Final = 1e-9
"""By which part of a cube triangles reach into their neighbours, for rounding."""

CORNERS: Final = np.array(np.meshgrid(*[[0, 1]] * 3, indexing="ij")).reshape(3, -1).T


@final
class BodyPieces:
    """Cut bodies of triangles into cubes, and describe each piece by points around it.

    The bodies are all points of the triangles, and all that cannot reach infinity on a
    way through cubes without triangles: no triangle has to face a certain side, and
    holes narrower than a cube are closed. The piece in a cube lies in the convex hull
    of its points: corners of triangles that may touch the cube, cut until no edge is
    longer than a cube, and the cube's corners that may be inside. (A point of a convex
    hull's boundary that is extreme is a corner of the cube or of a triangle cut by it,
    and such a cut lies in the hull of the triangle.)

    Attributes:
        points: Points of all pieces [m], shape (n, 3); those of a piece are together.
        starts: The first point of each piece, shape (k,).
        surface: Points of the surface, about a cube apart or less, shape (s, 3).
    """

    def __init__(self, bodies: Sequence[Triangles], count: int) -> None:
        """Cut bodies into about `count` cubes.

        Raises:
            ModelError: There are no triangles, or SciPy is not installed.
        """
        self._bodies = [body for body in bodies if len(body.faces)]
        if not self._bodies:
            raise ModelError("There are no triangles to put spheres around.")
        corners = np.concatenate([body.corners for body in self._bodies])
        lower, upper = corners.min(axis=(0, 1)), corners.max(axis=(0, 1))
        size = upper - lower
        longest = float(size.max())
        if longest == 0.0:
            raise ModelError("All corners of the triangles are at one point.")
        # Cubes of one size, so that about `count` of them fill the box; a margin of one
        # and a half around it is outside for certain. Triangles are cut to the size of
        # a cube, so that each touches few of them.
        flat = np.maximum(size, longest / FINEST)
        self._edge = max(longest / FINEST, float(np.cbrt(flat.prod() / count)))
        self._origin = lower - 1.5 * self._edge
        self._shape = tuple((np.ceil(size / self._edge) + 3).astype(int).tolist())
        small = _cut(corners, self._edge)
        self.surface = np.unique(small.reshape(-1, 3), axis=0)
        touched, cubes, points = self._touched(small)
        is_outside = _outside(touched)
        self._is_inside = ~(touched | is_outside)
        self.points, self.starts = self._pieces(touched, is_outside, cubes, points)

    def _touched(self, small: Array) -> tuple[npt.NDArray[np.bool_], Indices, Array]:
        """Return which cubes triangles may touch, and each such cube with a point."""
        # A triangle may touch all cubes of its bounding box: those at each step from
        # the lowest one, for all triangles whose box reaches that far.
        low = self._cube(small.min(axis=1) - SLACK * self._edge)
        high = self._cube(small.max(axis=1) + SLACK * self._edge)
        touched_by: list[Any] = []
        which: list[npt.NDArray[Any]] = []
        for step in np.ndindex(*(high - low).max(axis=0) + 1):
            cube = low + step
            (is_touched,) = np.nonzero((cube <= high).all(axis=1))
            at = tuple(cube[is_touched].T)
            touched_by.append(np.ravel_multi_index(at, self._shape))
            which.append(is_touched)
        cubes = np.concatenate(touched_by)
        touched = np.zeros(self._shape, np.bool_)
        touched.flat[cubes] = True
        points = small[np.concatenate(which)].reshape(-1, 3)
        return touched, np.repeat(cubes, 3), points

    def _pieces(
        self,
        touched: npt.NDArray[np.bool_],
        is_outside: npt.NDArray[np.bool_],
        cubes: Indices,
        points: Array,
    ) -> tuple[Array, Indices]:
        """Return the points of all pieces, and where each begins."""
        # A corner of cubes counts as inside if no cube around it is outside; it is in
        # doubt if none of them is enclosed either, so that all have triangles.
        (filled,) = np.nonzero(~is_outside.ravel())
        at = np.stack(np.unravel_index(filled, self._shape), axis=1)
        nodes = at[:, None] + CORNERS
        # A corner is inside if no cube at it is outside. Corners among cubes with
        # triangles are doubtful, until the winding number decides.
        around = np.ones([n + 1 for n in self._shape], np.bool_)
        outer, inner = np.zeros_like(around), np.zeros_like(around)
        for corner in CORNERS:
            here = tuple(
                slice(c, c + n) for c, n in zip(corner, self._shape, strict=True)
            )
            outer[here] |= is_outside
            inner[here] |= self._is_inside
        around &= ~outer
        self._decide(around, around & ~inner)
        self._corners_inside = around
        # The points of a piece are those of its triangles and such corners of its cube,
        # sorted by cube, each once.
        is_kept = around[tuple(np.moveaxis(nodes, -1, 0))]
        corners = self._origin + self._edge * nodes[is_kept]
        owners = np.broadcast_to(filled[:, None], is_kept.shape)[is_kept]
        everything = np.concatenate([points, corners])
        owner = np.concatenate([cubes, owners])
        # Points of the same piece beside each other, equal ones too: neighbours that
        # are equal are dropped.
        order = np.lexsort((*everything.T, owner))
        everything, owner = everything[order], owner[order]
        is_new = np.ones(len(owner), np.bool_)
        is_new[1:] = (owner[1:] != owner[:-1]) | (
            everything[1:] != everything[:-1]
        ).any(axis=1)
        everything, owner = everything[is_new], owner[is_new]
        return everything, np.flatnonzero(np.diff(owner, prepend=-1))

    def _decide(
        self, around: npt.NDArray[np.bool_], doubtful: npt.NDArray[np.bool_]
    ) -> None:
        """Take corners of cubes out of `around` that are outside closed bodies.

        doubtful: Corners among triangles.
        """
        # Windings are exact, but cost a product of corners and triangles; without them,
        # or where a surface is open, corners in doubt count as inside.
        nodes = np.argwhere(doubtful)
        count = sum(len(body.faces) for body in self._bodies)
        if len(nodes) * count > MOST_ANGLES:
            return
        if all(body.is_watertight for body in self._bodies):
            points = self._origin + self._edge * nodes
            turns = [windings(points, body.corners) for body in self._bodies]
            is_out = np.all(np.abs(turns) < 0.5, axis=0)
            around[tuple(nodes[is_out].T)] = False

    def _cube(self, points: Array) -> Indices:
        return np.floor((points - self._origin) / self._edge).astype(np.int64)

    def estimates(self) -> Callable[[Array], Array]:
        """Return a fast estimate of `distances`: (n, 3) -> (n,).

        It interpolates between corners of cubes.
        """
        from scipy import ndimage, spatial  # pyright: ignore[reportMissingTypeStubs]

        # A field of signed distances from points of the surface, at all corners of
        # cubes.
        volumes: Any = ndimage
        library: Any = spatial
        shape = self._corners_inside.shape
        nodes: Array = self._origin + self._edge * np.argwhere(np.ones(shape))
        away, _ = library.cKDTree(self.surface).query(nodes, eps=0.05)
        field = np.where(self._corners_inside, -1.0, 1.0) * away.reshape(shape)

        def estimate(points: Array) -> Array:
            at = (points - self._origin).T / self._edge
            estimates: Array = volumes.map_coordinates(
                field, at, order=1, mode="nearest"
            )
            return estimates

        return estimate

    def is_inside(self, points: Array) -> npt.NDArray[np.bool_]:
        """Return whether the cubes of points are enclosed by others: (n, 3) -> (n,)."""
        cube = self._cube(points)
        is_in = ((cube >= 0) & (cube < self._shape)).all(axis=1)
        inside = np.zeros(len(points), np.bool_)
        inside[is_in] = self._is_inside[tuple(cube[is_in].T)]
        return inside

    def distances(self, points: Array) -> Array:
        """Return how far points are from the bodies at most [m], (n, 3) -> (n,).

        It is below 0 inside: minus the distance from the surface where a point is
        known to be enclosed.
        """
        distances = np.full(len(points), np.inf)
        is_inside = self.is_inside(points)
        for body in self._bodies:
            away = distances_to_triangles(points, body.corners)
            distances = np.minimum(distances, away)
            if body.is_watertight:
                is_inside |= np.abs(windings(points, body.corners)) > 0.5
        return np.where(is_inside, -distances, distances)


def _cut(triangles: Array, longest: float) -> Array:
    """Return triangles halved at their longest edges until none is longer."""
    done: list[Array] = []
    while len(triangles):
        edges = np.linalg.norm(np.roll(triangles, -1, axis=1) - triangles, axis=2)
        is_short = edges.max(axis=1) <= longest
        done.append(triangles[is_short])
        triangles, edges = triangles[~is_short], edges[~is_short]
        # Corners are turned so that the longest edge is a b, which is halved.
        first = np.argmax(edges, axis=1)
        rows = np.arange(len(triangles))
        a, b, c = (triangles[rows, (first + k) % 3] for k in range(3))
        middle = 0.5 * (a + b)
        halves = (np.stack(half, axis=1) for half in ((a, middle, c), (middle, b, c)))
        triangles = np.concatenate(list(halves))
    return np.concatenate(done)


def _outside(touched: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which cubes the outermost ones reach through cubes without triangles."""
    try:
        from scipy import ndimage  # pyright: ignore[reportMissingTypeStubs]
    except ImportError as error:
        raise ModelError(
            "Bounding spheres need SciPy: pip install 'armillary[mesh]'."
        ) from error
    library: Any = ndimage
    labels, _ = library.label(~touched)
    outside: npt.NDArray[np.bool_] = labels == labels[0, 0, 0]
    return outside
