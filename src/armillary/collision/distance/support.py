"""Stages that find the farthest point of a body in a direction: its support.

The iterations of `gjk.py` and `depth.py` know a body by nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from armillary.collision.distance.columns import CORNERS, PairColumns, Side
from armillary.collision.distance.sizes import with_numbers
from armillary.kernel.columns import farthest
from armillary.kernel.stages import Stage
from armillary.model.primitive import Primitive
from armillary.model.shapes import ConvexPolyhedron
from armillary.spatial.vector import Vector, three

__all__ = ["hull_records", "support_of", "supports"]


def supports(columns: PairColumns) -> tuple[Stage, ...]:
    """Return the stages from the columns `to_a`, `to_b` to `point_a`, `point_b`."""
    a, b = columns.sides
    return *support_of(columns, a), *support_of(columns, b)


def support_of(columns: PairColumns, side: Side) -> tuple[Stage, ...]:
    """Return the stages from the direction to the point of one shape, in its frame."""
    if isinstance(side.shape, ConvexPolyhedron):
        return (farthest(side.hull, side.corners, side.to, side.point),)

    def own_farthest(direction: Vector, numbers: Vector = ()) -> Vector:
        return with_numbers(side.shape, numbers).farthest(three(direction))

    # A shape's own `farthest` is the formula, on a shape with traced numbers.
    numbers = columns.numbers[side.name]
    return (
        columns.stage(
            own_farthest, direction=side.to, numbers=numbers, writes=side.point
        ),
    )


def hull_records(shape: Primitive, side: Side) -> Mapping[str, Any]:
    """Return the records of `side.hull` for a polyhedron.

    The last record repeats a corner if need be.
    """
    assert isinstance(shape, ConvexPolyhedron)
    # -n mod CORNERS are missing in the last record.
    corners = np.array(shape.vertices)
    missing = -len(corners) % CORNERS
    padded = np.concatenate([corners, np.repeat(corners[-1:], missing, axis=0)])
    records = padded.reshape(-1, CORNERS, 3).transpose(0, 2, 1)
    return {side.corners.name: records}
