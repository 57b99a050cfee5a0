"""Separation of any two convex bodies, known only by their farthest points.

Most pairs are apart, and the first search proves it. If it finds the origin inside of
A - B, or ends on the origin, the depth follows. The points of bodies that overlap are
found by a second search, of B moved out of A by the depth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from armillary.collision.distance.columns import PairColumns
from armillary.collision.distance.curved import are_curved, curved_stages
from armillary.collision.distance.depth import depth_stages
from armillary.collision.distance.gjk import gjk_stages, sharp_stages
from armillary.collision.distance.separation import are_apart, choose, direction
from armillary.collision.distance.sizes import with_numbers
from armillary.kernel.columns import when
from armillary.kernel.stages import Stage
from armillary.model.shapes import (
    Box,
    Capsule,
    ConvexPolyhedron,
    Lozenge,
    Sphere,
    Tetrahedron,
    TriangularLozenge,
)
from armillary.spatial.vector import (
    Matrix,
    Number,
    Vector,
    Vector3,
    add,
    dot,
    negate,
    norm,
    scale,
    three,
)
from armillary.trace import Program
from armillary.trace.functions import by_precision, maximum, select

__all__ = ["convex_stages"]

ANOTHER: Final[Vector3] = (0.2673, 0.9134, 0.3071)
"""A direction that no edge or face of a model is likely to have."""

POLYHEDRA: Final = (
    *(Sphere, Capsule, Lozenge, TriangularLozenge),
    *(Box, ConvexPolyhedron, Tetrahedron),
)
"""Kinds whose core has corners, and nothing round."""


def convex_stages(
    columns: PairColumns,
    *,
    is_full: bool,
    has_depth: bool,
    has_distance: bool,
    is_limited: bool,
) -> tuple[Stage, ...]:
    """Return stages from the pose X of B in A to the separation of their cores.

    Without depth the value is 0 unless the bodies are proven to be apart; then without
    distance it is not above that, nor where they are farther apart than a column
    `wanted` if it is limited.
    """
    stage = columns.stage
    is_exact = has_distance and not is_limited
    enough = () if is_exact else (_enough(columns, is_limited=is_limited),)
    search = gjk_stages(columns, is_full=is_full, is_exact=is_exact)
    if are_curved(*columns.shapes):
        search = curved_stages(columns, *search, is_full=is_full, is_exact=is_exact)
    else:
        search = stage(_first, writes=columns.first), *search
    search = *enough, *search
    if not has_depth:
        of = _least if are_curved(*columns.shapes) else _longest
        proven = partial(_proven, has_distance=is_exact, of=of)
        return *search, stage(proven, writes=columns.value)
    # The depth, then points: B is moved out by the depth, and the search repeated,
    # whose nearest points are where bodies touch then; the point of B follows from that
    # of A.
    apart = _apart_stages(columns, is_full=is_full, is_exact=is_exact)
    has_point = is_full and _are_polyhedra(columns)
    overlap = depth_stages(columns, is_limited=is_limited, has_point=has_point)
    if not is_full:
        return *search, *apart, when(columns.meets, *overlap)
    # The steps are those of the first search, so that there is one code for both.
    moved_out = _moved_out if is_exact else _moved_out_exactly
    moved_out = partial(moved_out, farther=0.1 if has_point else 0.0)
    again = stage(moved_out), *gjk_stages(columns, is_full=True, is_exact=is_exact)
    if has_point or is_limited:
        enough = columns.enough if is_limited else None
        touch = columns.touch if has_point else None
        touched = stage(_touched, enough=enough, touch=touch)
        again = touched, when(columns.meets, *again)
    on_b = stage(_on_b, writes=columns.on_b)
    return *search, *apart, when(columns.meets, *overlap, *again), on_b


def _apart_stages(
    columns: PairColumns, *, is_full: bool, is_exact: bool
) -> tuple[Stage, ...]:
    """Return stages to what is known of bodies that are apart; see `Apart`.

    Normals of polyhedra that nearly touch are found by a sharp search. The simplices of
    round bodies are slivers then, from which it gains little.
    """
    apart = _apart if is_exact else _apart_or_bound
    if not _are_polyhedra(columns):
        of = _least if are_curved(*columns.shapes) else _longest
        apart = partial(apart, has_second_look=is_full, of=of)
        return (columns.stage(apart, value=None),)
    looked = partial(_looked, is_full=is_full)
    enough = None if is_exact else columns.enough
    sharp = sharp_stages(columns, is_full=is_full)
    return columns.stage(looked, enough=enough), *sharp, columns.stage(apart)


def _are_polyhedra(columns: PairColumns) -> bool:
    return all(isinstance(shape, POLYHEDRA) for shape in columns.shapes)


def _first(X: Matrix) -> Vector:
    """Return about the position of A from B, in a general direction.

    The first point is then farthest about along the line of centres. Without a part
    aside it would be one of many where faces of aligned bodies are opposite.
    """
    back = negate(three([row[3] for row in X]))
    aside = add(back, scale(0.01 * norm(back), ANOTHER))
    return choose(dot(aside, aside) > 0.0, aside, ANOTHER)


def _enough(columns: PairColumns, *, is_limited: bool) -> Program:
    """Return the program to the distance of cores from which on a bound will do.

    That is the sum of the radii around the cores of two shapes: cores that are farther
    apart are those of shapes that are apart. Of what is wanted it is as much more.
    """

    def radii(a: Vector, b: Vector) -> Number:
        both = zip(columns.shapes, (a, b), strict=True)
        return sum((with_numbers(*shape).rounding for shape in both), 0.0)

    def apart(X: Matrix, a: Vector = (), b: Vector = ()) -> Number:
        return radii(a, b)

    def wanted(wanted: Number, a: Vector = (), b: Vector = ()) -> Number:
        return wanted + radii(a, b)

    enough = wanted if is_limited else apart
    return columns.stage(enough, writes=columns.enough, **columns.numbers)


class Looked(NamedTuple):
    """The distance if it is proven, else infinity; above 0 for a sharp search."""

    value: Number
    open: Number


def _looked(
    v: Vector,
    lower: Number,
    proof: Vector,
    extent: Number,
    inside: Number,
    enough: Number = math.inf,
    *,
    is_full: bool,
) -> Looked:
    """Return where a sharp search goes on, and what it leaves as it is."""
    # A sharp search tells whether bodies meet that are neither proven to be apart nor
    # to overlap. The value of what is proven to be apart stays |v|, whatever is asked
    # for; where normals are, their angle of arccos(lower / |v|) is to be small, and v
    # itself, where that is little, to have proven it.
    v, proof = three(v), three(proof)
    distance = norm(v)
    is_apart = are_apart(lower, extent)
    is_open = ~is_apart
    if is_full:
        least = by_precision(distance, double=1.0 - 1e-11, single=1.0 - 1e-5)
        is_other = (v[0] != proof[0]) | (v[1] != proof[1]) | (v[2] != proof[2])
        is_little = distance < by_precision(distance, double=1e-4, single=1e-1) * extent
        is_open |= (lower < least * distance) | (is_little & is_other)
    # A shorter v is rounding: no direction.
    rounding = by_precision(distance, double=1e-14, single=1e-6) * extent
    is_open &= (inside == 0.0) & (distance > rounding) & ~(lower > enough)
    value = select(is_apart, distance, math.inf)
    return Looked(value, select(is_open, 0.5, 0.0))


class Apart(NamedTuple):
    """The separation of bodies that do not overlap, and whether they might."""

    value: Number
    gap: Number
    normal: Vector
    meets: Number


class SearchedDistance(NamedTuple):
    """What the searches for the distance leave; see the columns of these names."""

    v: Vector
    lower: Number
    proof: Vector
    extent: Number
    inside: Number
    open: Number


DistanceOf: TypeAlias = Callable[[Vector3, Number, Number], Number]


def _longest(v: Vector3, lower: Number, open: Number) -> Number:
    """Return |v|, which the distance is not above."""
    return norm(v)


def _least(v: Vector3, lower: Number, open: Number) -> Number:
    """Return |v|, or what is proven where the search ended with a v that is too long.

    The best plane of round bodies that nearly touch is right there mostly, and space
    that does not exist is worse than some that is missing. Where steps of Newton's
    method ended, `open` is below 0, and v is right.
    """
    return select((open >= 0.0) & _is_aside(v, lower), lower, norm(v))


def _is_aside(v: Vector3, lower: Number) -> Any:
    length = norm(v)
    return (lower > 0.0) & (length - lower > 1e-6 * length)


def _apart(
    found: SearchedDistance,
    value: Number = math.inf,
    *,
    has_second_look: bool = False,
    of: DistanceOf = _longest,
) -> Apart:
    """Return the distance, what of it is not proven, and where; and if bodies meet.

    value: The first |v| of bodies that were proven to be apart, else infinity.
    has_second_look: Whether `depth_stages` look for normals of what hardly touches.
    of: Returns the distance by v, and what is proven of it.
    """
    # `inside` is a proof of overlap. Without it bodies are looked at again where |v| is
    # only rounding, or where nothing is proven, as after the last iteration. NaN of v
    # makes neither true: the value is NaN.
    v, lower, extent = three(found.v), found.lower, found.extent
    distance = select(value < math.inf, value, of(v, lower, found.open))
    gap = maximum(distance - maximum(lower, 0.0), 0.0)
    # Of bodies that nearly touch rounding may leave v aside, but not the best plane.
    towards = choose(_is_aside(v, lower), three(found.proof), v)
    normal = direction(negate(towards), 0.0, (0.0, 0.0, 1.0))
    rounding = by_precision(distance, double=1e-9, single=1e-5) * extent
    is_unproven = (distance >= 0.0) & (lower <= 0.0)
    is_doubtful = (distance <= rounding) | is_unproven
    # The value of what is proven to be apart is |v| whatever is asked for.
    is_apart = are_apart(lower, extent)
    meets = select(is_apart, 0.0, select(is_doubtful, 1.0, found.inside))
    if has_second_look:
        # Where steps of Newton's method ended, `open` is below 0, and v is right.
        is_next = is_apart & (distance <= rounding) & (found.open >= 0.0)
        meets = select(is_next, 1.0, meets)
    return Apart(distance, gap, normal, meets)


def _apart_or_bound(
    found: SearchedDistance,
    enough: Number,
    value: Number = math.inf,
    *,
    has_second_look: bool = False,
    of: DistanceOf = _longest,
) -> Apart:
    """Return the same, but a bound where that is enough."""
    apart = _apart(found, value, has_second_look=has_second_look, of=of)
    is_enough = found.lower > enough
    value = select(is_enough, found.lower, apart.value)
    return apart._replace(value=value, meets=select(is_enough, 0.0, apart.meets))


def _proven(
    v: Vector,
    lower: Number,
    extent: Number,
    inside: Number,
    open: Number,
    *,
    has_distance: bool,
    of: DistanceOf,
) -> Number:
    """Return what is proven: 0 if bodies may touch, below 0 if they overlap."""
    # Bodies inside of each other get any number below 0, here minus their size.
    distance = of(three(v), lower, open)
    at_most = select(distance >= 0.0, 0.0 - inside * extent, distance)  # or NaN
    proven = distance if has_distance else lower
    return select(are_apart(lower, extent), proven, at_most)


class TouchPoint(NamedTuple):
    """The point of A where the depth ends, and above 0 where it is to be searched."""

    on_a: Vector
    meets: Number


def _touched(
    on_a: Vector,
    value: Number,
    enough: Number = math.inf,
    touch: Vector | None = None,
) -> TouchPoint:
    is_sought: Any = ~(value > enough)
    if touch is not None:
        is_known = touch[0] == touch[0]
        on_a = choose(is_known, touch, on_a)
        is_sought &= ~is_known
    return TouchPoint(on_a, select(is_sought, 1.0, 0.0))


class MovedOut(NamedTuple):
    """The pose of B, just free of A, and what the first direction is against."""

    X: Matrix
    first: Vector


class MovedOutExactly(NamedTuple):
    """The same, of which the exact distance is asked for."""

    X: Matrix
    first: Vector
    enough: Number


def _moved_out_exactly(
    X: Matrix, value: Number, normal: Vector, extent: Number, *, farther: float
) -> MovedOutExactly:
    moved = _moved_out(X, value, normal, extent, farther=farther)
    return MovedOutExactly(moved.X, moved.first, 0.0 * value + math.inf)


def _moved_out(
    X: Matrix, value: Number, normal: Vector, extent: Number, *, farther: float
) -> MovedOut:
    """Return the pose of B moved along the normal until it is just free of A.

    farther: What part of the depth it is moved on. The same points stay the nearest
        where the normal is exact, as that of a face is, in fewer steps.
    """
    # Not exactly by the depth: the search needs a v that is more than rounding, and
    # begins against the normal, which is near its result.
    just = by_precision(value, double=1e-9, single=1e-4) * extent - farther * value
    normal = three(normal)
    return MovedOut(_moved(X, scale(just - value, normal)), negate(normal))


def _moved(X: Matrix, step: Vector3) -> Matrix:
    rows = [list(X[k]) for k in range(3)]
    for row, distance in zip(rows, step, strict=True):
        row[3] = row[3] + distance
    return rows


def _on_b(on_a: Vector, value: Number, normal: Vector) -> Vector:
    return add(three(on_a), scale(value, three(normal)))
