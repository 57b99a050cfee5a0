"""Convex hulls of points."""

from __future__ import annotations

from typing import Final, final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.model.geometry.orientation import Face, Orientation

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

FLATTEST: Final = 1e-9


def convex_hull(points: Array) -> Indices:
    """Return the triangles of the convex hull of points.

    By quickhull (Barber, Dobkin, Huhdanpaa 1996) with exact decisions, so that the
    surface is closed and no point is above it, whatever the rounding.

    points: Shape (n, 3), finite.

    Returns:
        The corners of each triangle, counter-clockwise from outside, shape (m, 3).
        Points inside, and those within a face or edge, may be no corner.

    Raises:
        ModelError: The points lie within 1e-9 of their extent of one plane.
    """
    hull = _Hull(points)
    while hull.waiting:
        hull.take_farthest()
    return np.array(list(hull.above), dtype=np.int64)


@final
class _Hull:
    """A hull that grows.

    above: For each face the points that wait above it; each waits at one face only.
    waiting: Faces above which points may wait.
    """

    def __init__(self, points: Array) -> None:
        self._orientation = Orientation(points)
        self._behind: dict[tuple[int, int], Face] = {}
        self.above: dict[Face, Indices] = {}
        self.waiting: list[Face] = []
        a, b, c, d = _first_simplex(points)
        if self._orientation.height((a, b, c), d) > 0.0:
            b, c = c, b
        everything = np.arange(len(points))
        self._add([(a, b, c), (a, c, d), (c, b, d), (b, a, d)], everything)

    def take_farthest(self) -> None:
        """Put the point farthest above a face that waits on the hull."""
        face = self.waiting.pop()
        above = self.above.get(face)
        if above is None or not len(above):
            return
        point = int(above[np.argmax(self._orientation.heights(face, above))])
        visible, horizon = self._seen_from(point, face)
        loose = np.concatenate([self._remove(each) for each in visible])
        self._add([(a, b, point) for a, b in horizon], loose[loose != point])

    def _seen_from(
        self, point: int, face: Face
    ) -> tuple[set[Face], list[tuple[int, int]]]:
        """Return the faces that a point is strictly above, and the edges around."""
        visible = {face}
        horizon: list[tuple[int, int]] = []
        hidden: set[Face] = set()
        reached = [face]
        while reached:
            for edge in _edges(reached.pop()):
                beside = self._behind[edge[1], edge[0]]
                if beside in visible:
                    continue
                if beside in hidden or self._orientation.height(beside, point) <= 0.0:
                    hidden.add(beside)
                    horizon.append(edge)
                else:
                    visible.add(beside)
                    reached.append(beside)
        return visible, horizon

    def _remove(self, face: Face) -> Indices:
        for edge in _edges(face):
            del self._behind[edge]
        return self.above.pop(face)

    def _add(self, faces: list[Face], loose: Indices) -> None:
        """Add faces, and let each loose point wait at the first it is above.

        A point that waited at a removed face and is still outside is above a new one.
        """
        for face in faces:
            for edge in _edges(face):
                self._behind[edge] = face
            is_above = self._orientation.heights(face, loose) > 0.0
            self.above[face] = loose[is_above]
            loose = loose[~is_above]
            if is_above.any():
                self.waiting.append(face)


def _edges(face: Face) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    a, b, c = face
    return (a, b), (b, c), (c, a)


def _first_simplex(points: Array) -> tuple[int, int, int, int]:
    """Return four points that span much of the extent of all.

    Raises:
        ModelError: There are none: all lie in a plane, a line or a point.
    """
    if len(points) < 4:
        raise ModelError(f"{len(points)} points span no body; it takes four.")
    extent = np.ptp(points, axis=0)
    axis = int(np.argmax(extent))
    a, b = int(np.argmin(points[:, axis])), int(np.argmax(points[:, axis]))
    away = (points - points[a]) / (extent[axis] or 1.0)
    along = away[b] / (np.linalg.norm(away[b]) or 1.0)
    across = np.linalg.norm(np.cross(away, along), axis=1)
    c = int(np.argmax(across))
    normal = np.cross(along, away[c])
    height = np.abs(away @ (normal / (np.linalg.norm(normal) or 1.0)))
    d = int(np.argmax(height))
    if across[c] <= FLATTEST or height[d] <= FLATTEST:
        raise ModelError("The points lie in one plane, so they span no body.")
    return a, b, c, d
