"""Stages that find the farthest point of a body in a direction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from armillary.collision.distance.separation import choose
from armillary.collision.distance.sizes import numbers_of, with_numbers
from armillary.kernel.pipeline import Each, Stage
from armillary.kernel.tables import Table, reals
from armillary.model.primitive import Primitive
from armillary.model.shapes import ConvexPolyhedron
from armillary.spatial.vector import dot, three
from armillary.trace import trace
from armillary.trace.functions import select

Shape = tuple[int, ...]

NOTHING = -1e30


def sizes_of(shape: Primitive, side: str) -> dict[str, Shape]:
    """Return the input that holds the numbers of a shape: `a` or `b`, if any."""
    count = len(numbers_of(shape))
    return {side: (count,)} if count else {}


def support_of(shape: Primitive, side: str) -> tuple[Stage, ...]:
    """Return the stages from the column `to_a` to `point_a`, for `side` a; so for b.

    Both are in the frame of the shape. The corners of a polyhedron are a table.
    """
    direction, point, best = f"to_{side}", f"point_{side}", f"best_{side}"
    if not isinstance(shape, ConvexPolyhedron):

        def farthest(direction: Any, *sizes: Any) -> Any:
            return with_numbers(shape, *sizes or ((),)).farthest(three(direction))

        inputs = {direction: (3,), **sizes_of(shape, side)}
        return (trace(farthest, name="farthest", outputs=(point,), **inputs),)

    def farther(corner: Any, direction: Any, reach: Any, found: Any) -> Any:
        along = dot(three(corner), three(direction))
        is_farther = along > reach
        return select(is_farther, along, reach), choose(is_farther, corner, found)

    begin = trace(
        _no_corner,
        name="no_corner",
        outputs=(best, point),
        **{direction: (3,)},
    )
    inputs = {f"corner_{side}": (3,), direction: (3,), best: (), point: (3,)}
    step = trace(farther, name="farther", outputs=(best, point), **inputs)
    return begin, Each(f"hull_{side}", (step,))


def _no_corner(direction: Any) -> Any:
    return NOTHING, (0.0, 0.0, 0.0)


def hull_table(side: str) -> Table:
    """Return the table of the corners of a polyhedron."""
    return Table(f"hull_{side}", (reals(f"corner_{side}", (3,)),))


def hull_records(shape: ConvexPolyhedron, side: str) -> Mapping[str, Any]:
    """Return the records of that table."""
    return {f"corner_{side}": np.array(shape.vertices)}
