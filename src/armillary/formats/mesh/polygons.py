"""Polygons cut into triangles, concave ones too."""

from __future__ import annotations

import importlib
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.formats.diagnostic import Budget, Place, fault
from armillary.limits import POLYGON_WORK
from armillary.model.distinct_numbers import distinct_numbers

__all__ = ["triangulate"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

TOLERANCE: Final = 1e-6


def triangulate(
    vertices: Array, corners: Indices, sizes: Indices, place: Place, budget: Budget
) -> tuple[Indices, int]:
    """Return triangles of polygons, and how many polygons cross themselves.

    A polygon becomes a fan about its first corner where all triangles of that fan face
    the side of the polygon, which is so for all convex ones. Others are cut by the
    library `mapbox_earcut`, seen along their normal. One whose triangles then have
    another area than the polygon crosses itself, and becomes a fan all the same.

    Args:
        vertices: Shape (n, 3).
        corners: Vertices of all polygons, one after the other, shape (sum of sizes,).
        sizes: Corners of each polygon, at least 3, shape (p,).
        place: For messages.
        budget: Bounds the sum of the squares of the numbers of corners of concave
            polygons, as the time of cutting grows.

    Raises:
        FormatError: A polygon is concave, and the library is not installed, or there
            are too many of them.
    """
    # All polygons of one size are an array (p, size), and so are their fans
    # (p, size - 2, 3): corner 0 with each edge that does not touch it.
    starts = np.cumsum(sizes) - sizes
    begins = np.concatenate([[0], np.cumsum(sizes - 2)])
    faces = np.empty((int(begins[-1]), 3), dtype=np.int64)
    crossed, work = 0, 0
    for size in distinct_numbers(sizes).tolist():
        chosen = np.flatnonzero(sizes == size)
        polygons = corners[starts[chosen, None] + np.arange(size)]
        first = np.broadcast_to(polygons[:, :1], (len(chosen), size - 2))
        fans = np.stack([first, polygons[:, 1:-1], polygons[:, 2:]], axis=-1)
        if size > 3:
            points = vertices[polygons]
            concave = np.flatnonzero(~_is_fan(points))
            work += size**2 * len(concave)
            budget.check(POLYGON_WORK, work, place)
            for row in concave.tolist():
                triangles = _cut(points[row], place)
                if triangles is None:
                    crossed += 1
                else:
                    fans[row] = polygons[row][triangles]
        faces[begins[chosen, None] + np.arange(size - 2)] = fans
    return faces, crossed


def _is_fan(points: Array) -> npt.NDArray[np.bool_]:
    """Return which polygons are a fan about their first corner; points (p, k, 3)."""
    # Triangles of the fan that face the other way than their sum have a negative
    # product with it.
    rays = points[:, 1:] - points[:, :1]
    areas = np.cross(rays[:, :-1], rays[:, 1:])  # twice each, along its normal
    whole = areas.sum(axis=1)
    along = np.einsum("pkx,px->pk", areas, whole)
    limit = TOLERANCE * np.einsum("px,px->p", whole, whole)
    return (along >= -limit[:, None]).all(axis=1)


def _cut(points: Array, place: Place) -> Indices | None:
    """Return the triangles of a polygon, shape (k - 2, 3), or None; points (k, 3)."""
    # The normal is the sum of those of the fan, which holds for concave polygons, too.
    # The null space of the normal gives two axes of its plane.
    rays = points[1:] - points[0]
    normal = np.cross(rays[:-1], rays[1:]).sum(axis=0)
    area = float(np.linalg.norm(normal))  # twice
    normal /= area
    first = np.linalg.svd(normal[None])[2][1]
    flat = (points - points[0]) @ np.stack([first, np.cross(normal, first)], axis=1)
    earcut = _earcut(place)
    ends = np.array([len(flat)], dtype=np.uint32)
    faces = np.asarray(earcut.triangulate_float64(flat, ends), np.int64).reshape(-1, 3)
    # Triangles are turned to face as the polygon; together they must have its area.
    a, b, c = np.moveaxis(flat[faces], 1, 0)
    ab, ac = b - a, c - a
    areas = ab[:, 0] * ac[:, 1] - ab[:, 1] * ac[:, 0]
    faces = np.where(areas[:, None] < 0.0, faces[:, ::-1], faces)
    if abs(np.abs(areas).sum() - area) > TOLERANCE * area:
        return None
    # Equal corners are cut off; a triangle without area stands for each.
    missing = len(points) - 2 - len(faces)
    return np.vstack([faces, np.zeros((missing, 3), dtype=np.int64)])


def _earcut(place: Place) -> Any:
    """Return the library that cuts polygons.

    Raises:
        FormatError: It is not installed.
    """
    try:
        return importlib.import_module("mapbox_earcut")
    except ImportError as error:
        raise fault(
            place,
            "missing-library",
            "a concave polygon is read with the library mapbox_earcut, which is not "
            "installed",
            hint="Install it: pip install armillary[mesh].",
        ) from error
