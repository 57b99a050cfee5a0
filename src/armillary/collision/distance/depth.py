"""Depth of overlapping convex bodies: the origin is inside their difference A - B.

The depth is the least width h(d) = max w . d over unit directions d and all points w of
A - B: the distance from the origin to the plane across d that bounds A - B. A polytope
inside of A - B grows until it proves that (`kernel/polytope.py`). For polytopes the
search ends with the exact facet. Bodies with rims and sides known in closed form have
stationary widths besides (`stationary.py`): those across faces are a first bound, and
Newton's method improves the direction in which the search ends to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from armillary.collision.distance.columns import PairColumns
from armillary.collision.distance.gjk import aimed, difference
from armillary.collision.distance.separation import direction
from armillary.collision.distance.stationary import (
    NEWTON_RECORDS,
    NEWTON_TABLE,
    face_stage,
    newton_stages,
)
from armillary.collision.distance.support import supports
from armillary.kernel.columns import least_width, when
from armillary.kernel.stages import Stage
from armillary.spatial.vector import Matrix, Number, Vector, Vector3, negate, three
from armillary.trace.functions import by_precision, minimum

__all__ = ["RECORDS", "TABLES", "depth_stages"]

ANY: Final[Vector3] = (0.2673, 0.9134, 0.3071)
"""A direction that is looked at first where the distance ended in none."""

TABLES: Final = (NEWTON_TABLE,)
"""What the stages read, whatever the shapes."""

RECORDS: Final[Mapping[str, Mapping[str, Sequence[Any]]]] = {
    NEWTON_TABLE.name: NEWTON_RECORDS
}
"""What is in those tables."""


class NoDepth(NamedTuple):
    """What there is before the first direction."""

    depth: Number
    axis: Vector


def depth_stages(columns: PairColumns) -> tuple[Stage, ...]:
    """Return stages from what `gjk_stages` left to `depth`, `axis` and `least`.

    A depth below 0 is minus the distance of bodies that hardly touch.
    """
    stage = columns.stage
    search = least_width(
        columns.along,
        stage(_opposite, writes=columns.against),
        *aimed(columns, columns.against),
        *supports(columns),
        stage(_reached, writes=columns.farthest),
        point=columns.farthest,
        extent=columns.extent,
        depth=columns.depth,
        axis=columns.axis,
        least=columns.least,
    )
    begin, proven = stage(_begin), stage(_proven, writes=columns.least)
    newton = newton_stages(columns)
    # The search ends next to the least width, unless many are about as small.
    further = (
        (stage(_doubt, writes=columns.doubt), when(columns.doubt, *newton, *newton))
        if newton
        else ()
    )
    return begin, *face_stage(columns), search, *newton, *further, proven


def _begin(last: Vector) -> NoDepth:
    # The last v that was not 0 points out of A - B where the origin is not deep.
    return NoDepth(math.inf, direction(negate(three(last)), 0.0, ANY))


def _opposite(along: Vector) -> Vector:
    return negate(three(along))


def _reached(X: Matrix, point_a: Vector, point_b: Vector) -> Vector:
    return difference(X, point_a, point_b)


def _doubt(depth: Number, least: Number, extent: Number) -> Number:
    return depth - least - by_precision(depth, double=1e-8, single=1e-4) * extent


def _proven(depth: Number, least: Number) -> Number:
    return minimum(least, depth)
