"""The distance of a capsule of a link from an obstacle."""

from __future__ import annotations

from typing import NamedTuple

from armillary.collision.distance.capsule import slab_segment
from armillary.control.columns import WorldCapsule
from armillary.control.obstacles import OBSTACLE
from armillary.spatial.pose import Pose
from armillary.spatial.vector import (
    Matrix,
    Number,
    Vector,
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

__all__ = ["CapsuleEnds", "ObstacleGap", "gap_to_obstacle", "placed_capsule"]


class CapsuleEnds(NamedTuple):
    """The ends of the segment of a capsule in the world [m]."""

    end_a: Vector
    end_b: Vector


def placed_capsule(
    capsule_pose: Matrix, capsule_a: Vector, capsule_b: Vector
) -> CapsuleEnds:
    """Return the ends of a capsule of a link in the world [m]."""
    X = Pose.from_matrix(capsule_pose)
    return CapsuleEnds(X @ three(capsule_a), X @ three(capsule_b))


class ObstacleGap(NamedTuple):
    """How far a capsule of a link is from an obstacle.

    Attributes:
        value: Their distance [m].
        point: The nearest point of the segment of the link.
        normal: A unit vector from the obstacle to the link.
    """

    value: Number
    point: Vector3
    normal: Vector3


def gap_to_obstacle(capsule: WorldCapsule, obstacle: Vector) -> ObstacleGap:
    """Return how far a capsule is from an obstacle.

    obstacle: Its numbers, as in `Obstacles.numbers`.
    """
    a, b, radius = three(capsule.end_a), three(capsule.end_b), capsule.capsule_radius
    # Boxes have more numbers than capsules; both kinds share no code.
    if len(obstacle) != OBSTACLE:
        return _gap_to_box(a, b, radius, obstacle)
    p, q = three(obstacle[:3]), three(obstacle[3:6])
    # Distance of the segments, less both radii.
    on_a, on_b = _nearest(a, b, p, q)
    between = subtract(on_a, on_b)
    square = dot(between, between)
    is_apart = square > 1e-20
    length = sqrt(select(is_apart, square, 1.0))
    # Where segments cross, any direction across both of them separates them.
    sideways = cross(subtract(b, a), subtract(q, p))
    n = three(
        [
            select(is_apart, x / length, y)
            for x, y in zip(between, _direction(sideways), strict=True)
        ]
    )
    value = select(is_apart, length, 0.0) - radius - obstacle[9]
    return ObstacleGap(value, on_a, n)


def _gap_to_box(
    a: Vector3, b: Vector3, radius: Number, obstacle: Vector
) -> ObstacleGap:
    """Return how far a capsule in the world is from a box that may be rounded."""
    # Numbers of a box: centre, half sides, velocity, radius, rotation.
    R = [[obstacle[10 + 3 * i + j] for j in range(3)] for i in range(3)]
    X = Pose.from_matrix([[*R[i], obstacle[i]] for i in range(3)])
    to_box = X.inverse()
    # In the frame of the box the nearest points are those of a slab and a segment.
    along = subtract(b, a)
    length = norm(along)
    found = slab_segment(
        list(obstacle[3:6]),
        to_box @ scale(0.5, add(a, b)),
        to_box.rotate(_direction(along)),
        0.5 * length,
    )
    value = found.value - radius - obstacle[9]
    return ObstacleGap(value, X @ found.on_b, X.rotate(found.normal))


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
    # Least |a + s u - p - t v|^2 over s and t, each from 0 to 1.
    u, v, w = subtract(b, a), subtract(q, p), subtract(a, p)
    uu, uv, vv = dot(u, u), dot(u, v), dot(v, v)
    uw, vw = dot(u, w), dot(v, w)
    along, across = maximum(uu, 1e-30), maximum(vv, 1e-30)
    # The determinant vanishes for segments that are parallel or points.
    flat = uu * vv - uv * uv
    is_flat = flat > 1e-12 * uu * vv
    # Parallel segments have many nearest points; any s will do to begin with.
    s = select(is_flat, (uv * vw - vv * uw) / select(is_flat, flat, 1.0), 0.5)
    # Clip one parameter, find the best other one, and once more: the nearest points
    # of convex pieces are found so.
    s = _part(s)
    t = _part((uv * s + vw) / across)
    s = _part((uv * t - uw) / along)
    return add(a, scale(s, u)), add(p, scale(t, v))


def _part(x: Number) -> Number:
    return minimum(maximum(x, 0.0), 1.0)
