"""Surfaces of triangles."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError
from armillary.model.geometry.bounding import (
    BoundingBox,
    BoundingSphere,
    box_around,
    sphere_around,
)
from armillary.model.geometry.moments import Moments, moments_of_surface
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import Pose

__all__ = [
    "Triangles",
    "distances_to_triangles",
]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


@final
class Triangles:
    """Triangles with shared corners, immutable, equal by value.

    vertices: Corners [m], shape (n, 3), float64.
    faces: Three corners of each triangle, counter-clockwise from outside, shape (m, 3),
        int64.

    Both are copied, and read-only here.

    Raises:
        ShapeError: A shape differs.
        ModelError: A corner is not finite, or a triangle has one that is not there.
    """

    def __init__(self, vertices: npt.ArrayLike, faces: npt.ArrayLike) -> None:
        self._vertices = _vertices(vertices)
        self._faces = _faces(faces, len(self._vertices))

    @property
    def vertices(self) -> Array:
        """Return the corners [m], shape (n, 3)."""
        return self._vertices

    @property
    def faces(self) -> Indices:
        """Return the numbers of each triangle's corners, shape (m, 3)."""
        return self._faces

    @property
    def corners(self) -> Array:
        """Return the corners of each triangle [m], shape (m, 3, 3)."""
        return self._vertices[self._faces]

    def __eq__(self, other: object) -> bool:
        """Return whether the corners and triangles are the same, in the same order."""
        return isinstance(other, Triangles) and (
            np.array_equal(self._vertices, other._vertices)
            and np.array_equal(self._faces, other._faces)
        )

    def __hash__(self) -> int:
        """Return a hash by value."""
        zero = self._vertices + 0.0  # -0.0 equals 0.0
        return hash((zero.tobytes(), self._faces.tobytes()))

    def __repr__(self) -> str:
        return f"<Triangles: {len(self._faces)} of {len(self._vertices)} corners>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Triangles, (self._vertices, self._faces)

    # What they enclose.

    @cached_property
    def open_edges(self) -> int:
        """Return how many edges have no triangle on their other side, turned alike.

        On a closed surface every edge is passed once in each direction.
        """
        start = self._faces.ravel()
        end = self._faces[:, (1, 2, 0)].ravel()
        low, high = np.minimum(start, end), np.maximum(start, end)
        edges, edge = np.unique(low * len(self._vertices) + high, return_inverse=True)
        forth = np.bincount(edge[start < end], minlength=len(edges))
        back = np.bincount(edge[start > end], minlength=len(edges))
        return int(np.count_nonzero((forth != 1) | (back != 1)))

    @property
    def is_watertight(self) -> bool:
        """Return whether they are a closed surface, all facing the same side."""
        return len(self._faces) > 0 and self.open_edges == 0

    @cached_property
    def moments(self) -> Moments:
        """Return the moments of the volume inside.

        Raises:
            ModelError: The surface is open, or faces inwards.
        """
        if not len(self._faces):
            raise ModelError("There are no triangles, so nothing is inside them.")
        if self.open_edges:
            raise ModelError(
                f"The surface is not closed: {self.open_edges} of its edges do not lie "
                "between exactly two triangles that face the same side. A volume needs "
                "a closed surface; use primitives, or a convex hull."
            )
        moments = moments_of_surface(self.corners)
        if moments.volume < 0.0:
            raise ModelError(
                "The triangles face inwards; turn them with .reversed() if that is a "
                "fault of the file."
            )
        return moments

    @property
    def volume(self) -> float:
        """Return the volume inside [m^3].

        Raises:
            ModelError: The surface is open, or faces inwards.
        """
        return self.moments.volume

    def inertia(self, density: float) -> SpatialInertia:
        """Return the inertia of a body that fills them, about the frame's origin.

        density: [kg/m^3].

        Raises:
            ModelError: The surface is open or faces inwards, or there is no density.
        """
        return self.moments.inertia(density)

    # What they are on the outside.

    @cached_property
    def area(self) -> float:
        """Return the area of all triangles [m^2]."""
        return float(0.5 * np.linalg.norm(self._cross, axis=1).sum())

    @property
    def normals(self) -> Array:
        """Return the unit normal of each triangle, NaN where it is flat; (m, 3)."""
        cross = self._cross
        length = np.linalg.norm(cross, axis=1, keepdims=True)
        flat = np.where(length > 0.0, length, np.nan)
        return cross / flat

    @property
    def _cross(self) -> Array:
        a, b, c = np.moveaxis(self.corners, 1, 0)
        return np.asarray(np.cross(b - a, c - a), np.float64)

    @property
    def bounding_box(self) -> BoundingBox:
        """Return the smallest box around them, along the frame's axes.

        Raises:
            ModelError: There are no corners.
        """
        return box_around(self._some)

    @property
    def bounding_sphere(self) -> BoundingSphere:
        """Return the smallest sphere around them.

        Raises:
            ModelError: There are no corners.
        """
        return sphere_around(self._some)

    @property
    def _some(self) -> Array:
        if not len(self._vertices):
            raise ModelError("There are no corners to put anything around.")
        return self._vertices

    # Others like them.

    def transformed(self, X_AB: Pose) -> Triangles:
        """Return these triangles, given in B, in A."""
        matrix = X_AB.matrix()
        return Triangles(self._vertices @ matrix[:3, :3].T + matrix[:3, 3], self._faces)

    def scaled(self, factors: npt.ArrayLike) -> Triangles:
        """Return them stretched along x, y, z, still facing outwards.

        factors: One number or shape (3,); below zero where they are mirrored.
        """
        by = np.broadcast_to(np.asarray(factors, dtype=np.float64), (3,))
        is_mirrored = np.prod(np.sign(by)) < 0.0
        faces = self._faces[:, ::-1] if is_mirrored else self._faces
        return Triangles(self._vertices * by, faces)

    def reversed(self) -> Triangles:
        """Return them facing the other side."""
        return Triangles(self._vertices, self._faces[:, ::-1])

    def welded(self) -> Triangles:
        """Return them with equal corners made one, without what that leaves over.

        Triangles that vanish are dropped, and so are corners that no triangle has.
        """
        if not len(self._vertices):
            return self
        kept, place = _first_of_equals(self._vertices)
        faces = place[self._faces]
        a, b, c = faces.T
        faces = faces[(a != b) & (b != c) & (c != a)]
        used = np.zeros(len(kept), dtype=bool)
        used[faces] = True
        number = np.cumsum(used) - 1
        return Triangles(self._vertices[kept[used]], number[faces])


def _vertices(given: npt.ArrayLike) -> Array:
    vertices = np.array(given, dtype=np.float64, order="C", ndmin=2)
    if vertices.size == 0:
        vertices = vertices.reshape(0, 3)
    if vertices.ndim != 2 or vertices.shape[1] != 3:
        raise ShapeError(f"Vertices have shape (n, 3), not {vertices.shape}.")
    if not np.isfinite(vertices).all():
        row = int(np.argmin(np.isfinite(vertices).all(axis=1)))
        raise ModelError(f"Vertex {row} is {vertices[row]}; it must be finite.")
    vertices.flags.writeable = False
    return vertices


def _faces(given: npt.ArrayLike, count: int) -> Indices:
    loose = np.asarray(given)
    if loose.size == 0:
        loose = np.zeros((0, 3), dtype=np.int64)
    if loose.ndim != 2 or loose.shape[1] != 3 or loose.dtype.kind not in "iu":
        raise ShapeError(
            f"Faces are whole numbers of shape (m, 3), not {loose.dtype} of shape "
            f"{loose.shape}."
        )
    is_there = ((loose >= 0) & (loose < count)).all(axis=1)
    if not is_there.all():
        row = int(np.argmin(is_there))
        raise ModelError(
            f"Triangle {row} has the corners {loose[row].tolist()}, but there are only "
            f"{count}, numbered from 0."
        )
    faces = np.array(loose, dtype=np.int64, order="C")
    faces.flags.writeable = False
    return faces


def _first_of_equals(points: Array) -> tuple[Indices, Indices]:
    """Return which points are the first of their kind, and of which kind each is.

    points: Shape (n, 3), n above 0.
    """
    order = np.lexsort(points.T)  # stable: of equal points the first comes first
    ordered = points[order]
    is_new = np.ones(len(points), dtype=bool)
    is_new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    first = order[is_new]
    kind = np.empty(len(points), dtype=np.int64)
    kind[order] = np.cumsum(is_new) - 1
    # Kinds are numbered as their first points come.
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return np.sort(first), rank[kind]


# distances of points from triangles


BLOCK: Final = 1 << 18
"""Pairs of a point and a triangle that are computed at once."""


def distances_to_triangles(points: Array, corners: Array) -> Array:
    """Return the distance of each point from the nearest of some triangles [m].

    The nearest point of a triangle is the projection on its plane if that lies inside,
    else on an edge. Triangles may be flat.

    points: Shape (n, 3).
    corners: The corners of each triangle, shape (m, 3, 3), m above 0.

    Returns:
        Shape (n,).
    """
    smallest = np.full(len(points), np.inf)
    step = max(1, BLOCK // max(1, len(points)))
    for start in range(0, len(corners), step):
        squares = _squares(points, corners[start : start + step])
        np.minimum(smallest, squares.min(axis=1), out=smallest)
    return np.sqrt(smallest)


def _squares(points: Array, corners: Array) -> Array:
    """Return the square of each distance, shapes (n, 3), (m, 3, 3) -> (n, m)."""
    # Edge by edge: the foot on the edge, clamped to its ends, and whether the point is
    # on the inner side of the edge, against the direction n x edge. A point on all
    # inner sides is over the triangle, at a height of its own.
    a, edges = corners, np.roll(corners, -1, axis=1) - corners
    normal = np.cross(edges[:, 0], edges[:, 1])
    area = np.einsum("mi,mi->m", normal, normal)
    is_inside = np.broadcast_to(area > 0.0, (len(points), len(corners))).copy()
    best = np.full(is_inside.shape, np.inf)
    for k in range(3):
        away = points[:, None] - a[None, :, k]
        edge = edges[:, k]
        length = np.einsum("mi,mi->m", edge, edge)
        along = np.einsum("nmi,mi->nm", away, edge)
        part = np.clip(along / np.where(length > 0.0, length, 1.0), 0.0, 1.0)
        rest = away - part[..., None] * edge
        best = np.minimum(best, np.einsum("nmi,nmi->nm", rest, rest))
        is_inside &= np.einsum("nmi,mi->nm", away, np.cross(normal, edge)) >= 0.0
    height = np.einsum("nmi,mi->nm", points[:, None] - a[None, :, 0], normal)
    plane = height**2 / np.where(area > 0.0, area, 1.0)
    return np.where(is_inside, np.minimum(best, plane), best)


def windings(points: Array, corners: Array) -> Array:
    """Return how many times closed triangles wind around points: (n, 3) -> (n,).

    The solid angles of the triangles sum up to 4 pi times the windings. With a, b, c
    from the point to the corners, the tangent of half of one is

        a . (b x c) / (|a| |b| |c| + (a . b) |c| + (b . c) |a| + (c . a) |b|)

    (van Oosterom and Strackee, "The solid angle of a plane triangle", 1983, eq. 8).

    points: Shape (n, 3).
    corners: The corners of each triangle, shape (m, 3, 3).
    """
    turns = np.zeros(len(points))
    for k, point in enumerate(points):
        a, b, c = np.moveaxis(corners - point, 1, 0)
        x, y, z = (np.linalg.norm(edge, axis=1) for edge in (a, b, c))
        volume = np.einsum("ij,ij->i", a, np.cross(b, c))
        ab, bc, ca = (np.einsum("ij,ij->i", *two) for two in ((a, b), (b, c), (c, a)))
        half_angles = np.arctan2(volume, x * y * z + ab * z + bc * x + ca * y)
        turns[k] = half_angles.sum() / (2.0 * np.pi)
    return turns
