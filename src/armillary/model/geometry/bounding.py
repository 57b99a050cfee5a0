"""Boxes and spheres around bodies."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.spatial.vector import Vector3, add, cross, dot, scale, subtract

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
    # At most five points: numbers are quicker than arrays.
    best: tuple[Vector3, float, Sequence[Vector3]] | None = None
    first, rest = _point(point), list(map(_point, others))
    for count in range(min(len(rest), 3) + 1):
        for chosen in itertools.combinations(rest, count):
            centre = _centre_through(first, chosen)
            if centre is None:
                continue
            radius = math.dist(first, centre)
            reach = max((math.dist(each, centre) for each in rest), default=0.0)
            fits = reach <= radius * (1.0 + ROUNDING)
            if fits and (best is None or radius < best[1]):
                best = centre, radius, (first, *chosen)
    if best is None:
        return None
    return np.array(best[0]), best[1], np.array(best[2])


def _centre_through(first: Vector3, others: Sequence[Vector3]) -> Vector3 | None:
    """Return the nearest point that is as far from each of up to four points.

    With u, v, w the others as seen from the first p, it is p + u / 2,

        p + (|v|^2 (u x v) x u + |u|^2 v x (u x v)) / 2 |u x v|^2,
        p + (|u|^2 v x w + |v|^2 w x u + |w|^2 u x v) / 2 u (v x w).
    """
    seen = [subtract(each, first) for each in others]
    if not seen:
        return first
    u, squares = seen[0], [dot(each, each) for each in seen]
    if len(seen) == 1:
        return add(first, scale(0.5, u))
    normal = cross(u, seen[1])
    if len(seen) == 2:
        divisor = dot(normal, normal)
        terms = [scale(squares[1], cross(normal, u))]
        terms.append(scale(squares[0], cross(seen[1], normal)))
    else:
        _, v, w = seen
        divisor = dot(normal, w)
        terms = [scale(squares[0], cross(v, w)), scale(squares[1], cross(w, u))]
        terms.append(scale(squares[2], normal))
    if divisor == 0.0:  # they lie in one line or plane
        return None
    return add(first, scale(0.5 / divisor, functools.reduce(add, terms)))


def _point(values: Array) -> Point:
    return float(values[0]), float(values[1]), float(values[2])
