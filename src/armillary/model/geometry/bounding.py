"""Boxes and spheres around bodies."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Point = tuple[float, float, float]

# A sphere through support points misses them by rounding; farther is outside.
ROUNDING = 1e-12
MOST_STEPS = 10_000


class BoundingBox(NamedTuple):
    """All between two corners, along the axes of one frame.

    Attributes:
        lower: Least x, y, z [m], -inf where there is none.
        upper: Greatest x, y, z [m], inf where there is none.
    """

    lower: Point
    upper: Point


class BoundingSphere(NamedTuple):
    """All within a distance of a point.

    Attributes:
        centre: In one frame [m].
        radius: [m].
    """

    centre: Point
    radius: float


def box_around(points: Array) -> BoundingBox:
    """Return the smallest box around points, shape (n, 3)."""
    return BoundingBox(_point(points.min(axis=0)), _point(points.max(axis=0)))


def sphere_around(points: Array) -> BoundingSphere:
    """Return the smallest sphere around points, shape (n, 3).

    The sphere is that of at most four support points. The point farthest outside joins
    them, and of the spheres through it and some of the others the smallest around all
    is next; spheres only grow, so this ends (the simplex method on the LP-type problem
    of Welzl, "Smallest enclosing disks", 1991).
    """
    middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
    about = points - middle
    support = about[:1]
    centre, radius = about[0], 0.0
    for _ in range(MOST_STEPS):
        distances = np.linalg.norm(about - centre, axis=1)
        farthest = int(np.argmax(distances))
        if distances[farthest] <= radius * (1.0 + ROUNDING):
            break
        grown = _smallest_through(about[farthest], support)
        if grown is None or grown[1] <= radius:  # rounding is all that is left
            break
        centre, radius, support = grown
    centre = centre + middle
    radius = float(np.linalg.norm(points - centre, axis=1).max())
    return BoundingSphere(_point(centre), radius)


def _smallest_through(point: Array, others: Array) -> tuple[Array, float, Array] | None:
    """Return the smallest sphere around all that has `point` on it, and its support."""
    best: tuple[Array, float, Array] | None = None
    everything = np.vstack([others, point])
    for count in range(len(everything)):
        if count > 3:
            break
        for chosen in itertools.combinations(range(len(others)), count):
            support = np.vstack([point, others[list(chosen)]])
            centre = _centre_through(support)
            if centre is None:
                continue
            radius = float(np.linalg.norm(point - centre))
            reach = float(np.linalg.norm(everything - centre, axis=1).max())
            fits = reach <= radius * (1.0 + ROUNDING)
            if fits and (best is None or radius < best[1]):
                best = centre, radius, support
    return best


def _centre_through(support: Array) -> Array | None:
    """Return the nearest point that is as far from each of up to four points.

    c = p0 + D' x with D the differences to p0: (D D') x = diag(D D') / 2.
    """
    if len(support) == 1:
        return support[0]
    D = support[1:] - support[0]
    gram = D @ D.T
    try:
        x = np.asarray(np.linalg.solve(gram, 0.5 * np.diag(gram)), np.float64)
    except np.linalg.LinAlgError:  # they lie in one line or plane
        return None
    return support[0] + x @ D


def _point(values: Array) -> Point:
    return float(values[0]), float(values[1]), float(values[2])
