"""Convex polyhedra with few corners around points."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.model.geometry.triangles import distances_to_triangles

__all__ = [
    "check_spans_body",
    "convex_hull",
    "outer_hull",
]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

ROUGHLY: Final = 12
"""Faces whose normals are equal to one in so many parts are tried as one at first."""

PADDING: Final = 1e-10
"""By which part of the extent planes move outwards, so that rounding cuts nothing."""

BLOCK: Final = 1 << 22
"""Pairs of a corner and a plane that are compared at once."""

# convex hulls of points

FLATTEST: Final = 1e-9
"""Thickness of the thinnest body, as a part of its extent."""


def convex_hull(points: Array) -> Indices:
    """Return the triangles of the convex hull of points, computed by SciPy (Qhull).

    points: Shape (n, 3), finite.

    Returns:
        The corners of each triangle, counter-clockwise from outside, shape (m, 3).
        Points inside, and those within a face or edge, may be no corner.

    Raises:
        ModelError: The points lie within 1e-9 of their extent of one plane, or SciPy
            is not installed.
    """
    try:
        from scipy.spatial import (  # pyright: ignore[reportMissingTypeStubs]
            ConvexHull,
            QhullError,
        )
    except ImportError as error:
        raise ModelError(
            "The convex hull of points needs SciPy: pip install 'armillary[mesh]'."
        ) from error
    scaled = check_spans_body(points)
    try:
        hull = ConvexHull(scaled, qhull_options="Qt")
    except QhullError as error:
        raise ModelError(f"The points span no body: {_first_line(error)}") from error
    faces = np.array(hull.simplices, dtype=np.int64)
    a, b, c = scaled[faces].swapaxes(0, 1)
    inward = (np.cross(b - a, c - a) * hull.equations[:, :3]).sum(axis=1) < 0.0
    faces[inward] = faces[inward, ::-1]
    return faces


def check_spans_body(points: Array) -> Array:
    """Return points scaled to an extent of 1 about the origin, if they span a body.

    Raises:
        ModelError: They lie within 1e-9 of their extent of one plane.
    """
    if len(points) < 4:
        raise ModelError(f"{len(points)} points span no body; it takes four.")
    centred = points - 0.5 * (points.min(axis=0) + points.max(axis=0))
    extent = float(np.abs(centred).max())
    scaled = centred / (extent or 1.0)
    # The least singular value is the thickness times a number up to sqrt(n).
    *_, axes = np.linalg.svd(scaled - scaled.mean(axis=0), full_matrices=False)
    if extent == 0.0 or np.ptp(scaled @ axes[2]) <= FLATTEST:
        raise ModelError("The points lie in one plane, so they span no body.")
    return scaled


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


# convex polyhedra with few corners around points


def outer_hull(points: Array, tolerance: float, *, most: int) -> Array | None:
    """Return the corners of a convex polyhedron around points, with few corners.

    It contains the convex hull, and reaches at most `tolerance` beyond it. Its faces
    are those of a box around the points and then, again and again, the face of the hull
    that is farthest below each corner that is still too far away (the outer half of the
    sandwich algorithms: Kamenev, "A class of adaptive algorithms for approximating
    convex bodies by polyhedra", 1992). Flat points become a plate as thick as allowed.

    points: [m], finite, shape (n, 3), n above 0.
    tolerance: [m], above 0.
    most: The most corners it may have.

    Returns:
        Corners [m], shape (k, 3); None if there would be too many.

    Raises:
        ModelError: The points are flat, and the tolerance less than 1e-9 of their
            extent; or SciPy is not installed.
    """
    points = _thickened(points, tolerance)
    faces = convex_hull(points)
    exact = points[np.unique(faces)]
    box, hull = _Box(exact), _Hull(points[faces])
    planes = box.planes()
    # Bounds of how far corners are out, from cheap to exact: heights above faces of
    # some directions, above all faces, and distances.
    while True:
        corners = box.corners(planes)
        if len(corners) >= len(exact):
            return exact
        if len(corners) > most:
            return None
        heights, lowest = hull.above(corners, hull.directions)
        if heights.max() <= tolerance:
            heights, lowest = hull.above(corners)
        if heights.max() <= tolerance:
            heights = hull.distances(corners, heights)
        far = np.flatnonzero(heights > tolerance)
        if not len(far):
            return corners
        # Most corners that are too far away vanish when the worst of them do.
        worst = far[np.argsort(-heights[far])][: max(4, len(far) // 4)]
        chosen = np.unique(lowest[worst])
        added = box.normalised(hull.normals[chosen], hull.offsets[chosen])
        planes = np.vstack([planes, added])


class _Hull:
    """The faces of a convex hull, normal . x <= offset inside.

    triangles: Shape (m, 3, 3).
    """

    def __init__(self, triangles: Array) -> None:
        a, b, c = np.moveaxis(triangles, 1, 0)
        normals = np.cross(b - a, c - a)
        size = np.linalg.norm(normals, axis=1)
        self._triangles = triangles[size > 0.0]
        self.normals = normals[size > 0.0] / size[size > 0.0, None]
        self.offsets = np.einsum("mi,mi->m", self.normals, a[size > 0.0])
        # One face of each rounded normal is enough for a first bound.
        rounded = np.rint(ROUGHLY * self.normals)
        _, self.directions = np.unique(rounded, axis=0, return_index=True)

    def above(
        self, points: Array, some: Indices | None = None
    ) -> tuple[Array, Indices]:
        """Return how far each point is above the face farthest below, and that face.

        some: The faces that count; by default all.
        """
        chosen = np.arange(len(self.normals)) if some is None else some
        normals, offsets = self.normals[chosen].T, self.offsets[chosen]
        heights = np.empty(len(points))
        lowest = np.empty(len(points), np.int64)
        step = max(1, BLOCK // len(chosen))
        for start in range(0, len(points), step):
            rows = slice(start, start + step)
            all_heights = points[rows] @ normals - offsets
            lowest[rows] = chosen[np.argmax(all_heights, axis=1)]
            heights[rows] = np.max(all_heights, axis=1)
        return heights, lowest

    def distances(self, points: Array, heights: Array) -> Array:
        """Return the distances of points, whose heights are known, from the hull.

        The nearest triangle is one of those that the point is above.
        """
        found = heights.copy()
        for k in np.flatnonzero(heights > 0.0):
            seen = self.normals @ points[k] > self.offsets
            found[k] = distances_to_triangles(points[k : k + 1], self._triangles[seen])[
                0
            ]
        return found


class _Box:
    """A box around points along their principal axes, mapped to the unit cube.

    Planes are rows (n, d) with n . z + d <= 0 inside, in the coordinates of the cube.
    """

    def __init__(self, points: Array) -> None:
        # Qhull intersects half spaces about a point inside of all, best where the body
        # is about as long in all directions: here the mean of the corners, in the cube.
        self._middle = points.mean(axis=0)
        *_, axes = np.linalg.svd(points - self._middle, full_matrices=False)
        along = (points - self._middle) @ axes.T
        low, high = along.min(axis=0), along.max(axis=0)
        self._middle = self._middle + 0.5 * (low + high) @ axes
        self._to_points = 0.5 * (high - low)[:, None] * axes
        mean = points.mean(axis=0) - self._middle
        inverse = axes.T / (0.5 * (high - low))
        self._centre = np.asarray(mean @ inverse, np.float64)

    def planes(self) -> Array:
        """Return the sides of the box."""
        normals = np.vstack([np.eye(3), -np.eye(3)])
        return np.hstack([normals, np.full((6, 1), -1.0 - PADDING)])

    def normalised(self, normals: Array, offsets: Array) -> Array:
        """Return planes normal . x <= offset as rows."""
        # With x = T' z + middle, n . x <= o is (T n) . z + n . middle - o <= 0.
        n = normals @ self._to_points.T
        d = normals @ self._middle - offsets
        rows = np.hstack([n, d[:, None]])
        rows /= np.linalg.norm(n, axis=1, keepdims=True)
        rows[:, 3] -= PADDING
        return rows

    def corners(self, planes: Array) -> Array:
        """Return the corners of what is inside all planes, in points' coordinates."""
        from scipy.spatial import (  # pyright: ignore[reportMissingTypeStubs]
            HalfspaceIntersection,
            QhullError,
        )

        try:
            meet: Any = HalfspaceIntersection(planes, self._centre).intersections
        except QhullError as error:
            raise ModelError("The points lie nearly in one plane.") from error
        return np.asarray(meet, np.float64) @ self._to_points + self._middle


def _thickened(points: Array, tolerance: float) -> Array:
    """Return flat points with copies on both sides, a quarter of the tolerance away."""
    # Flat along the principal axes in which points are hardly wider than rounding. Rows
    # of zeros see to it that there are three axes, however few points.
    middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
    centred = points - middle
    extent = float(np.abs(centred).max())
    scaled = centred / (extent or 1.0)
    rows = np.vstack([scaled - scaled.mean(axis=0), np.zeros((3, 3))])
    *_, axes = np.linalg.svd(rows, full_matrices=False)
    width = np.ptp(scaled @ axes.T, axis=0)
    for axis in axes[width <= FLATTEST]:
        step = 0.25 * tolerance * axis
        points = np.vstack([points - step, points + step])
    return points
