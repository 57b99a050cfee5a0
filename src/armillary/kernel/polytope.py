"""Least width of a convex body: a polytope inside of it grows.

The width of a body in a unit direction d is h(d) = max w . d of its points w: where the
origin is inside, how far the plane across d is that bounds it. The least one is found
by EPA (van den Bergen, "Proximity queries and penetration depth computation on 3D game
objects", 2001): the hull of some of its points is a polytope, and no width is less than
the height of its lowest face. The farthest point across that face either proves it, or
becomes a corner: the faces that it sees are replaced by those between it and the sides
around them (the horizon of incremental convex hulls).

Several faces are looked at together, the lowest ones. What a point sees is found from
the face that it was found across, through sides: so it is one piece, whatever rounding
says of faces elsewhere; a face is seen where the point is above it by more than
rounding. A body may be flat: then its width across is the least one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "AXES",
    "FACES",
    "FULL",
    "POINTS",
    "PROBES",
    "ROOM",
    "UNPROVEN",
    "Width",
    "least_width",
    "margins",
]

Array: TypeAlias = npt.NDArray[Any]

POINTS: Final = 256
"""Most corners of a polytope; hulls take about 25, round bodies 35."""

FACES: Final = 2 * POINTS
"""Most faces: a polytope of n corners has 2 n - 4."""

ROOM: Final = 16
"""Most directions that are looked at together."""

FULL: Final = 1
"""The polytope has no room for another corner."""

UNPROVEN: Final = 2
"""Rounding left no polytope."""

# Rotated by general angles, so that no model is likely to have faces along them.
_FRAME: Final = (
    (0.8893489214500944, 0.387011838132938, 0.24347552866873162),
    (-0.4201006481020959, 0.9018380933768753, 0.10101236953245588),
    (-0.18048252375161633, -0.1921194692875426, 0.9646326596901642),
)

AXES: Final[Sequence[tuple[float, float, float]]] = [
    (sign * x, sign * y, sign * z) for x, y, z in _FRAME for sign in (1.0, -1.0)
]
"""Directions that are looked at first, with the given one and its opposite."""

PROBES: Final = len(AXES) + 2
"""How many these are."""


def margins(bits: int) -> tuple[float, float, float]:
    """Return parts of the size of numbers, for reals of some bits.

    The first is how far a point is above a face that it sees, the second by how much
    the least width may be wrong, a thousandth of it at most, the third at least.
    """
    return (1e-12, 1e-9, 1e-10) if bits == 64 else (1e-6, 1e-5, 1e-5)


class Width(NamedTuple):
    """The least width of a body, where it is, and what it is proven not to be below."""

    depth: float
    axis: Array
    least: float


def least_width(
    extent: float,
    depth: float,
    axis: Array,
    farthest: Callable[[Array], Array],
    wanted: float = -math.inf,
) -> Width:
    """Return the least width of a body: the reference for the machine code.

    Args:
        extent: The size of the numbers that points are made of.
        depth: A width that is known, or infinity.
        axis: Where it is, or another unit vector.
        farthest: From directions, shape (n, 3), to the farthest points there.
        wanted: A width below it will do; then nothing is proven.
    """
    # The polytope is made anew in each round, by brute force: all planes through three
    # points that have the others behind them.
    outside, tolerance, precise = (extent * part for part in margins(64))
    probes = np.array([*AXES, -axis, axis])
    points = np.empty((0, 3))
    least = math.inf
    while len(probes):
        found = farthest(probes)
        widths = np.sum(probes * found, axis=1)
        best = int(np.argmin(widths))
        if widths[best] < depth:
            depth, axis = float(widths[best]), probes[best]
        if depth < wanted:
            return Width(depth, axis, 0.0)
        is_new = [
            all(np.linalg.norm(point - old) > outside for old in points)
            for point in found
        ]
        if len(points) and not any(is_new):
            break
        points = np.concatenate([points, found[is_new]])
        normals, heights = _planes(points, outside)
        if not len(heights):
            return Width(depth, axis, min(depth, 0.0))
        allowed = max(min(tolerance, 1e-3 * depth), precise)
        least = float(heights.min())
        order = np.argsort(heights)[:8]
        probes = normals[order][heights[order] < depth - allowed]
    return Width(depth, axis, min(depth, least))


def _planes(points: Array, outside: float) -> tuple[Array, Array]:
    """Return normals and heights of the planes that have all points behind them."""
    i, j, k = np.array(
        [(i, j, k) for i in range(len(points)) for j in range(i) for k in range(j)]
    ).T
    normals = np.cross(points[j] - points[i], points[k] - points[i])
    lengths = np.linalg.norm(normals, axis=1)
    normals = normals[lengths > 0.0] / lengths[lengths > 0.0, np.newaxis]
    corners = points[i[lengths > 0.0]]
    normals = np.concatenate([normals, -normals])
    heights = np.sum(normals * np.concatenate([corners, corners]), axis=1)
    is_face = ((normals @ points.T) <= heights[:, np.newaxis] + outside).all(axis=1)
    return normals[is_face], heights[is_face]
