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
from typing import Final, NamedTuple

from armillary.collision.distance.columns import PairColumns
from armillary.collision.distance.gjk import aimed, difference
from armillary.collision.distance.separation import are_apart, choose, direction
from armillary.collision.distance.stationary import (
    face_stage,
    newton_stages,
)
from armillary.collision.distance.support import supports
from armillary.kernel.columns import least_width, when
from armillary.kernel.stages import Stage
from armillary.spatial.vector import (
    Matrix,
    Number,
    Vector,
    Vector3,
    cross,
    dot,
    negate,
    norm,
    scale,
    subtract,
    three,
)
from armillary.trace.functions import by_precision, maximum, minimum, select

__all__ = ["depth_stages"]

ANY: Final[Vector3] = (0.2673, 0.9134, 0.3071)
"""A direction that is looked at first where the distance ended in none."""


class Trial(NamedTuple):
    """A width that is known, where it is, and where another one may be less."""

    depth: Number
    axis: Vector
    along: Vector
    is_shallow: Number
    is_deep: Number


class KnownWidth(NamedTuple):
    """The least width so far."""

    depth: Number
    axis: Vector


class Touching(NamedTuple):
    """The separation of bodies that hardly overlap, and whether they do by more."""

    value: Number
    gap: Number
    normal: Vector
    is_deep: Number


class Overlap(NamedTuple):
    """The separation of bodies that overlap."""

    value: Number
    gap: Number
    normal: Vector


def depth_stages(
    columns: PairColumns, *, is_limited: bool = False, has_point: bool = False
) -> tuple[Stage, ...]:
    """Return stages from what `gjk_stages` left to `value`, `gap` and `normal`.

    A depth below 0 is minus the distance of bodies that hardly touch.

    Args:
        columns: Those of the two shapes.
        is_limited: Whether any bound of the value above a column `enough` will do.
        has_point: Whether they also leave `touch`: both shapes are polyhedra.
    """
    stage = columns.stage
    farthest = *supports(columns), stage(_reached, writes=columns.farthest)
    reach = (
        stage(_opposite, writes=columns.against),
        *aimed(columns, columns.against),
        *farthest,
    )
    narrow = columns.narrow if is_limited else None
    search = least_width(
        columns.along,
        *reach,
        point=columns.farthest,
        extent=columns.extent,
        depth=columns.depth,
        axis=columns.axis,
        least=columns.least,
        wanted=narrow,
        touch=(columns.point_a, columns.touch) if has_point else None,
    )
    newton = newton_stages(columns)
    # The search ends next to the least width, unless many are about as small.
    further = (
        (
            stage(_doubt, narrow=narrow, writes=columns.doubt),
            when(columns.doubt, *newton, *newton),
        )
        if newton
        else ()
    )
    proven = stage(_proven, writes=columns.least)
    last = *aimed(columns, columns.v), *farthest, stage(_trial), *face_stage(columns)
    shallow = *reach, stage(_tried), *newton, stage(_touching)
    deep = search, *newton, *further, proven, stage(_overlap)
    if is_limited:
        deep = stage(_narrow, writes=columns.narrow), *deep
    if has_point:
        last = *last, stage(_unknown, writes=columns.touch)
    return *last, when(columns.is_shallow, *shallow), when(columns.is_deep, *deep)


def _trial(
    farthest: Vector,
    simplex: Matrix,
    lower: Number,
    proof: Vector,
    extent: Number,
    inside: Number,
) -> Trial:
    """Return the width that bounds the distance, and the nearest face of a simplex.

    Where that is a face of A - B, as of bodies that touch, no width is less.

    farthest: The last point that was found, which with three has the origin inside.
    """
    corners = [three(farthest), *map(three, simplex)]
    axis = direction(negate(three(proof)), 0.0, ANY)
    along, least = axis, math.inf
    for k in range(4):
        p, q, r, opposite = (corners[(k + n) % 4] for n in range(4))
        normal = cross(subtract(q, p), subtract(r, p))
        # Seen from outside, the fourth corner is behind the face.
        is_turned = dot(normal, subtract(opposite, p)) > 0.0
        normal = choose(is_turned, negate(normal), normal)
        scaled = 1.0 / norm(normal)
        height = scaled * dot(normal, p)
        is_lower = height < least  # false of NaN, where there is no such corner
        along = choose(is_lower, scale(scaled, normal), along)
        least = select(is_lower, height, least)
    # The simplex is inside of A - B: no width is less than the height of its faces.
    deep = select((inside > 0.0) & (least > _touch(extent)), 1.0, 0.0)
    return Trial(0.0 - lower, axis, along, 1.0 - deep, deep)


def _tried(along: Vector, farthest: Vector, depth: Number, axis: Vector) -> KnownWidth:
    width = dot(three(along), three(farthest))
    is_less = width < depth
    nearer = choose(is_less, three(along), three(axis))
    return KnownWidth(select(is_less, width, depth), nearer)


def _touching(
    depth: Number,
    axis: Vector,
    value: Number,
    lower: Number,
    extent: Number,
    inside: Number,
) -> Touching:
    """Return what a width proves: no depth is more.

    value: The distance, where bodies are not proven to overlap. It stays where they are
        proven to be apart.
    """
    most = select(inside > 0.0, 0.0, value)
    gap = maximum(most + depth, 0.0)
    deep = select(gap <= _touch(extent), 0.0, 1.0)
    value = select(are_apart(lower, extent), value, 0.0 - depth)
    return Touching(value, gap, axis, deep)


def _touch(extent: Number) -> Number:
    """Return the depth of bodies that touch: any direction of less width will do."""
    return by_precision(extent, double=1e-9, single=1e-5) * extent


def _opposite(along: Vector) -> Vector:
    return negate(three(along))


def _reached(X: Matrix, point_a: Vector, point_b: Vector) -> Vector:
    return difference(X, point_a, point_b)


def _unknown(depth: Number) -> Vector3:
    # No constant: a program writes what depends on the row.
    unknown = 0.0 * depth + math.nan
    return unknown, unknown, unknown


def _narrow(enough: Number) -> Number:
    return 0.0 - enough


def _doubt(
    depth: Number, least: Number, extent: Number, narrow: Number = -math.inf
) -> Number:
    much = by_precision(depth, double=1e-8, single=1e-4) * extent
    return select(depth < narrow, 0.0, depth - least - much)


def _proven(depth: Number, least: Number) -> Number:
    return minimum(least, depth)


def _overlap(depth: Number, axis: Vector, least: Number) -> Overlap:
    return Overlap(0.0 - depth, depth - least, axis)
