"""Stages that find the farthest point of a body in a direction: its support.

The iterations of `gjk.py` and `depth.py` know a body by nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from armillary.collision.distance.columns import CORNERS, PairColumns, Side
from armillary.collision.distance.separation import choose
from armillary.collision.distance.sizes import with_numbers
from armillary.kernel.columns import each
from armillary.kernel.pipeline import Stage
from armillary.model.primitive import Primitive
from armillary.model.shapes import ConvexPolyhedron
from armillary.spatial.vector import Matrix, Number, Vector, dot, three
from armillary.trace.functions import select

__all__ = ["hull_records", "support_of", "supports"]

NOTHING: Final = -1e30
"""How far along a direction no corner is [m]; all corners are farther."""


class Farther(NamedTuple):
    """A corner, behind how far it is along a direction."""

    along: Number
    corner: Vector


def supports(columns: PairColumns) -> tuple[Stage, ...]:
    """Return the stages from the columns `to_a`, `to_b` to `point_a`, `point_b`."""
    a, b = columns.sides
    return *support_of(columns, a), *support_of(columns, b)


def support_of(columns: PairColumns, side: Side) -> tuple[Stage, ...]:
    """Return the stages from the direction to the point of one shape, in its frame."""
    if isinstance(side.shape, ConvexPolyhedron):
        return _farthest_corner(columns, side)

    def farthest(direction: Vector, numbers: Vector = ()) -> Vector:
        return with_numbers(side.shape, numbers).farthest(three(direction))

    # A shape's own `farthest` is the formula, on a shape with traced numbers.
    numbers = columns.numbers[side.name]
    return (
        columns.stage(farthest, direction=side.to, numbers=numbers, writes=side.point),
    )


def _farthest_corner(columns: PairColumns, side: Side) -> tuple[Stage, ...]:
    """Return the stages that compare the corners of a polyhedron, some at once."""
    best = side.best, side.point
    begin = columns.stage(_no_corner, direction=side.to, writes=best)
    step = columns.stage(
        _farthest_of,
        corners=side.corners,
        direction=side.to,
        along=side.best,
        corner=side.point,
        writes=best,
    )
    # Where a product and a sum are rounded as one, another corner that is as far may
    # be taken, which is as good.
    return begin, each(side.hull, replace(step, is_loose=True))


def _no_corner(direction: Vector) -> Farther:
    return Farther(NOTHING, (0.0, 0.0, 0.0))


def _farthest_of(
    corners: Matrix, direction: Vector, along: Number, corner: Vector
) -> Farther:
    """Return the farthest of some corners and of the one that was before."""
    known = [Farther(along, corner)]
    known += [Farther(dot(three(c), three(direction)), c) for c in corners]
    # A tournament: pairs do not wait for each other, as a chain of maxima would.
    while len(known) > 1:
        pairs = zip(known[0::2], known[1::2], strict=False)
        known = [_farther(x, y) for x, y in pairs] + known[len(known) & ~1 :]
    return known[0]


def _farther(x: Farther, y: Farther) -> Farther:
    is_farther = y.along > x.along
    return Farther(
        select(is_farther, y.along, x.along), choose(is_farther, y.corner, x.corner)
    )


def hull_records(shape: Primitive, side: Side) -> Mapping[str, Any]:
    """Return the records of `side.hull` for a polyhedron.

    The last record repeats a corner if need be.
    """
    assert isinstance(shape, ConvexPolyhedron)
    # -n mod 4 corners are missing in the last record.
    corners = np.array(shape.vertices)
    missing = -len(corners) % CORNERS
    padded = np.concatenate([corners, np.repeat(corners[-1:], missing, axis=0)])
    return {side.corners.name: padded.reshape(-1, CORNERS, 3)}
