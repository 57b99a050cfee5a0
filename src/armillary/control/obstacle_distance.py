"""The distance of a capsule of a link from an obstacle."""

from __future__ import annotations

from typing import Any, NamedTuple

from armillary.collision.distance.capsule import slab_segment
from armillary.control.obstacles import OBSTACLE
from armillary.spatial.pose import Pose
from armillary.spatial.vector import (
    Number,
    Vector3,
    add,
    cross,
    dot,
    norm,
    scale,
    subtract,
    three,
)
from armillary.trace.functions import maximum, minimum, select, sqrt

__all__ = ["RodGap", "gap_of_rods", "placed_rod"]


def placed_rod(rod_pose: Any, rod_a: Any, rod_b: Any) -> Any:
    """Return the ends of a capsule of a link in the world [m]."""
    X = Pose.from_matrix(rod_pose)
    return X @ three(rod_a), X @ three(rod_b)


class RodGap(NamedTuple):
    """How far a capsule of a link is from an obstacle.

    Attributes:
        value: Their distance [m].
        point: The nearest point of the segment of the link.
        normal: A unit vector from the obstacle to the link.
    """

    value: Number
    point: Vector3
    normal: Vector3


def gap_of_rods(end_a: Any, end_b: Any, rod_radius: Any, obstacle: Any) -> RodGap:
    """Return how far a capsule in the world is from an obstacle."""
    a, b = three(end_a), three(end_b)
    if len(obstacle) != OBSTACLE:
        return _gap_of_box(a, b, rod_radius, obstacle)
    p, q = three(obstacle[:3]), three(obstacle[3:6])
    on_a, on_b = _nearest(a, b, p, q)
    between = subtract(on_a, on_b)
    square = dot(between, between)
    is_apart = square > 1e-20
    length = sqrt(select(is_apart, square, 1.0))
    sideways = cross(subtract(b, a), subtract(q, p))
    n = three(
        [
            select(is_apart, x / length, y)
            for x, y in zip(between, _direction(sideways), strict=True)
        ]
    )
    value = select(is_apart, length, 0.0) - rod_radius - obstacle[9]
    return RodGap(value, on_a, n)


def _gap_of_box(a: Vector3, b: Vector3, rod_radius: Any, obstacle: Any) -> RodGap:
    """Return how far a capsule in the world is from a box that may be rounded."""
    R = [[obstacle[10 + 3 * i + j] for j in range(3)] for i in range(3)]
    X = Pose.from_matrix([[*R[i], obstacle[i]] for i in range(3)])
    to_box = X.inverse()
    along = subtract(b, a)
    length = norm(along)
    found = slab_segment(
        list(obstacle[3:6]),
        to_box @ scale(0.5, add(a, b)),
        to_box.rotate(_direction(along)),
        0.5 * length,
    )
    value = found.value - rod_radius - obstacle[9]
    return RodGap(value, X @ found.on_b, X.rotate(found.normal))


def _direction(a: Vector3) -> Vector3:
    """Return a unit vector along one, z in place of zero."""
    square = dot(a, a)
    is_any = square > 1e-20
    length = sqrt(select(is_any, square, 1.0))
    return three(
        [select(is_any, x / length, z) for x, z in zip(a, (0.0, 0.0, 1.0), strict=True)]
    )


def _nearest(a: Vector3, b: Vector3, p: Vector3, q: Vector3) -> tuple[Vector3, Vector3]:
    """Return the nearest points of two segments (Ericson 2005, section 5.1.9)."""
    u, v, w = subtract(b, a), subtract(q, p), subtract(a, p)
    uu, uv, vv = dot(u, u), dot(u, v), dot(v, v)
    uw, vw = dot(u, w), dot(v, w)
    along, across = maximum(uu, 1e-30), maximum(vv, 1e-30)
    flat = uu * vv - uv * uv
    is_flat = flat > 1e-12 * uu * vv
    s = select(is_flat, (uv * vw - vv * uw) / select(is_flat, flat, 1.0), 0.5)
    s = _part(s)
    t = _part((uv * s + vw) / across)
    s = _part((uv * t - uw) / along)
    return add(a, scale(s, u)), add(p, scale(t, v))


def _part(x: Number) -> Number:
    return minimum(maximum(x, 0.0), 1.0)
