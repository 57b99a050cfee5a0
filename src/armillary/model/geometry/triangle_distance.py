"""Distances of points from triangles, and how often triangles wind around points."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["distances_to_triangles", "windings"]

Array = npt.NDArray[np.float64]

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
    found = np.full(len(points), np.inf)
    step = max(1, BLOCK // max(1, len(points)))
    for start in range(0, len(corners), step):
        squares = _squares(points, corners[start : start + step])
        np.minimum(found, squares.min(axis=1), out=found)
    return np.sqrt(found)


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
