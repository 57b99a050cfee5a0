"""Stages that find the farthest point of a body in a direction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

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

GROUP: Final = 4
"""Corners of a polyhedron that are compared at once."""


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

    def farthest_of(corners: Any, direction: Any, *found: Any) -> Any:
        known: list[Any] = [found]
        for corner in corners:
            known.append((dot(three(corner), three(direction)), corner))
        while len(known) > 1:
            pairs = zip(known[0::2], known[1::2], strict=False)
            known = [_farther(x, y) for x, y in pairs] + known[len(known) & ~1 :]
        return known[0]

    begin = trace(
        _no_corner,
        name="no_corner",
        outputs=(best, point),
        **{direction: (3,)},
    )
    corners = {f"corners_{side}": (GROUP, 3)}
    inputs = {**corners, direction: (3,), best: (), point: (3,)}
    step = trace(farthest_of, name="farthest", outputs=(best, point), **inputs)
    return begin, Each(f"hull_{side}", (replace(step, is_loose=True),))


def _farther(x: Any, y: Any) -> Any:
    """Return that of two points, each behind how far it is, which is farther."""
    is_farther = y[0] > x[0]
    return select(is_farther, y[0], x[0]), choose(is_farther, y[1], x[1])


def _no_corner(direction: Any) -> Any:
    return NOTHING, (0.0, 0.0, 0.0)


def hull_table(side: str) -> Table:
    """Return the table of the corners of a polyhedron."""
    return Table(f"hull_{side}", (reals(f"corners_{side}", (GROUP, 3)),))


def hull_records(shape: ConvexPolyhedron, side: str) -> Mapping[str, Any]:
    """Return the records of that table; the last one repeats a corner if need be."""
    corners = np.array(shape.vertices)
    missing = -len(corners) % GROUP
    padded = np.concatenate([corners, np.repeat(corners[-1:], missing, axis=0)])
    return {f"corners_{side}": padded.reshape(-1, GROUP, 3)}
