"""Formulas of what is near: spheres, rounded boxes and capsules."""

from __future__ import annotations

from armillary.spatial.pose import Pose
from armillary.spatial.vector import (
    Matrix,
    Number,
    Vector,
    Vector3,
    dot,
    subtract,
    three,
)
from armillary.trace.functions import absolute, maximum, minimum

__all__ = ["around", "axis_of", "beyond", "to_axis", "to_box", "within"]


def around(centre: Vector3, radius: Number) -> tuple[Vector3, Vector3]:
    """Return the least and the greatest coordinates of a sphere."""
    low, high = ([x + sign * radius for x in centre] for sign in (-1.0, 1.0))
    return three(low), three(high)


def within(square_of_distance: Number, reach: Number) -> Number:
    """Return a number above 0 where something may be nearer than a reach."""
    return reach * reach - square_of_distance


def beyond(square_of_distance: Number, reach: Number) -> Number:
    """Return a number above 0 where something is farther than a reach."""
    return square_of_distance - reach * reach


def to_box(point: Vector, centre: Vector, axes: Matrix, half: Vector) -> Number:
    """Return the square of the distance of a point from a box."""
    d = [a - b for a, b in zip(three(point), three(centre), strict=True)]
    total: Number = 0.0
    for axis, h in zip(axes, half, strict=True):
        along = axis[0] * d[0] + axis[1] * d[1] + axis[2] * d[2]
        beyond = maximum(absolute(along) - h, 0.0)
        total = total + beyond * beyond
    return total


def axis_of(pose: Matrix, ends: Matrix) -> tuple[Vector3, Vector3]:
    """Return where the axis of a capsule begins, and where it leads from there."""
    X = Pose.from_matrix(pose)
    start = X @ three(ends[0])
    return start, subtract(X @ three(ends[1]), start)


def to_axis(point: Vector, start: Vector, way: Vector, scale: Number) -> Number:
    """Return the square of the distance of a point from a segment."""
    d, v = subtract(three(point), three(start)), three(way)
    t = minimum(maximum(dot(d, v) * scale, 0.0), 1.0)
    d = subtract(d, three([t * x for x in v]))
    return dot(d, d)
