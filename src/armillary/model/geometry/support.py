"""Farthest points of simple bodies, on floats or traced scalars."""

from __future__ import annotations

from collections.abc import Sequence

from armillary.spatial.vector import Number, Vector3, dot
from armillary.trace.functions import by_precision, select, sqrt

__all__ = ["farthest_of", "on_circle"]


def on_circle(direction: Vector3, radius: Number) -> tuple[Number, Number]:
    """Return x, y of a point of a disc about z that is farthest; (0, 0) along z."""
    x, y, _ = direction
    square = x * x + y * y
    is_long = square > by_precision(square, double=1e-280, single=1e-36)
    factor = select(is_long, radius / sqrt(select(is_long, square, 1.0)), 0.0)
    return factor * x, factor * y


def farthest_of(points: Sequence[Vector3], direction: Vector3) -> Vector3:
    """Return the first of a few points that is farthest in a direction."""
    x, y, z = points[0]
    reach = dot((x, y, z), direction)
    for point in points[1:]:
        along = dot(point, direction)
        is_farther = along > reach
        reach = select(is_farther, along, reach)
        x, y, z = (
            select(is_farther, p, q) for p, q in zip(point, (x, y, z), strict=True)
        )
    return x, y, z
