"""Separation of any two convex bodies, known only by their farthest points.

Most pairs are apart, and the first search proves it. If it finds the origin inside of
A - B, or ends on the origin, the depth follows. The points of bodies that overlap are
found by a second search, of B moved out of A by the depth.
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

from armillary.collision.distance.columns import PairColumns
from armillary.collision.distance.depth import are_apart, depth_stages
from armillary.collision.distance.gjk import gjk_stages
from armillary.collision.distance.separation import choose, direction
from armillary.collision.distance.sizes import with_numbers
from armillary.kernel.columns import when
from armillary.kernel.stages import Stage
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
    first = stage(_first, writes=columns.first)
    enough = () if is_exact else (_enough(columns, is_limited=is_limited),)
    search = *enough, *gjk_stages(columns, is_full=is_full, is_exact=is_exact)
    if not has_depth:
        proven = partial(_proven, has_distance=is_exact)
        return first, *search, stage(proven, writes=columns.value)
    # The depth, then points: B is moved out by the depth, and the search repeated,
    # whose nearest points are where bodies touch then; the point of B follows from that
    # of A.
    looks = partial(_apart, is_full=is_full)
    apart = stage(looks if is_exact else partial(_apart_or_bound, is_full=is_full))
    overlap = depth_stages(columns)
    if not is_full:
        return first, *search, apart, when(columns.meets, *overlap)
    exact = gjk_stages(columns, is_full=True)
    again = stage(_moved_out, writes=(columns.X, columns.first)), *exact
    on_b = stage(_on_b, writes=columns.on_b)
    return first, *search, apart, when(columns.meets, *overlap, *again), on_b


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
        return select(wanted < 0.0, 0.0, wanted) + radii(a, b)  # NaN stays NaN

    enough = wanted if is_limited else apart
    return columns.stage(enough, writes=columns.enough, **columns.numbers)


class Apart(NamedTuple):
    """The separation of bodies that do not overlap, and whether they might."""

    value: Number
    gap: Number
    normal: Vector
    meets: Number


def _apart(
    v: Vector,
    lower: Number,
    proof: Vector,
    extent: Number,
    inside: Number,
    *,
    is_full: bool,
) -> Apart:
    """Return |v|, what of it is not proven, and where; and whether bodies meet."""
    # `inside` is a proof of overlap. Without it bodies are looked at again where |v| is
    # only rounding, or where nothing is proven, as after the last iteration. NaN of v
    # makes neither true: the value is NaN.
    v = three(v)
    distance = norm(v)
    gap = maximum(distance - maximum(lower, 0.0), 0.0)
    # Of bodies that nearly touch rounding may leave v aside, but not the best plane.
    is_aside = (lower > 0.0) & (gap > 1e-6 * distance)
    towards = choose(is_aside, three(proof), v)
    normal = direction(negate(towards), 0.0, (0.0, 0.0, 1.0))
    rounding = by_precision(distance, double=1e-9, single=1e-5) * extent
    is_unproven = (distance >= 0.0) & (lower <= 0.0)
    is_doubtful = (distance <= rounding) | is_unproven
    # The value of what is proven to be apart is |v| whatever is asked for; of that a
    # second look finds a better normal.
    is_apart = are_apart(lower, extent)
    meets = select(is_apart, 0.0, select(is_doubtful, 1.0, inside))
    if is_full:
        meets = select(is_apart & (distance <= rounding), 1.0, meets)
    return Apart(distance, gap, normal, meets)


def _apart_or_bound(
    v: Vector,
    lower: Number,
    proof: Vector,
    extent: Number,
    inside: Number,
    enough: Number,
    *,
    is_full: bool,
) -> Apart:
    """Return the same, but a bound where that is enough."""
    apart = _apart(v, lower, proof, extent, inside, is_full=is_full)
    is_enough = lower > enough
    value = select(is_enough, lower, apart.value)
    return apart._replace(value=value, meets=select(is_enough, 0.0, apart.meets))


def _proven(
    v: Vector, lower: Number, extent: Number, inside: Number, *, has_distance: bool
) -> Number:
    """Return what is proven: 0 if bodies may touch, below 0 if they overlap."""
    # Bodies inside of each other get any number below 0, here minus their size.
    distance = norm(three(v))
    at_most = select(distance >= 0.0, 0.0 - inside * extent, distance)  # or NaN
    proven = distance if has_distance else lower
    return select(are_apart(lower, extent), proven, at_most)


def _moved_out(
    X: Matrix, value: Number, normal: Vector, extent: Number
) -> tuple[Matrix, Vector]:
    """Return the pose of B moved along the normal until it is just free of A."""
    # Not exactly by the depth: the search needs a v that is more than rounding, and
    # begins against the normal, which is near its result.
    just = by_precision(value, double=1e-9, single=1e-4) * extent
    normal = three(normal)
    return _moved(X, scale(just - value, normal)), negate(normal)


def _moved(X: Matrix, step: Vector3) -> Matrix:
    rows = [list(X[k]) for k in range(3)]
    for row, distance in zip(rows, step, strict=True):
        row[3] = row[3] + distance
    return rows


def _on_b(on_a: Vector, value: Number, normal: Vector) -> Vector:
    return add(three(on_a), scale(value, three(normal)))
