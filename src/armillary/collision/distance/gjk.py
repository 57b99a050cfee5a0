"""Distance of any two convex bodies by iteration on points of their difference A - B.

The distance of A and B is that of the origin from A - B = {p - q}, a convex body whose
farthest point in a direction d is that of A in d minus that of B in -d. GJK (Gilbert,
Johnson and Keerthi, "A fast procedure for computing the distance between complex
objects in three-dimensional space", 1988) keeps a simplex of up to four points of
A - B. In each step it

1. takes the point v of the simplex that is nearest to the origin, with the smallest
   face that has it; other corners are dropped;
2. finds the farthest point w of A - B against v;
3. ends if the plane through v, across v, has nothing of A - B before it: v . w = |v|^2.
   Else w joins the simplex.

The plane across v through w has A - B behind it, so the distance is proven:

    v . w / |v| <= distance <= |v|.

Where the simplex is a tetrahedron around the origin, bodies overlap, and `depth.py`
follows. The subalgorithm of the paper looks for v in all faces of the simplex; here
only those with the new corner w are computed, since v was nearest of all others, and
all of them without branches, since the rows of a batch are computed together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from armillary.collision.distance.columns import PairColumns
from armillary.collision.distance.separation import choose
from armillary.collision.distance.support import supports
from armillary.kernel.columns import repeat
from armillary.kernel.stages import Stage
from armillary.spatial.pose import Pose
from armillary.spatial.vector import (
    Matrix,
    Number,
    Vector,
    Vector3,
    add,
    apply,
    cross,
    dot,
    negate,
    norm,
    scale,
    subtract,
    three,
    transpose,
)
from armillary.trace import Port
from armillary.trace.functions import by_precision, maximum, minimum, select, sqrt

__all__ = ["aimed", "difference", "gjk_stages"]

LIMIT: Final = 64
"""Most iterations; hulls take about 6, round bodies 15."""


class GjkState(NamedTuple):
    """What is known between two steps; see the columns of these names."""

    v: Vector
    simplex: Matrix
    last: Vector
    lower: Number
    proof: Vector
    extent: Number
    open: Number
    inside: Number


class PointsOfA(NamedTuple):
    """Where points of the difference come from in A; those in B follow."""

    simplex_a: Matrix
    on_a: Vector


class GjkStateWithPoints(NamedTuple):
    """What is known, with points."""

    state: GjkState
    points: PointsOfA


def gjk_stages(
    columns: PairColumns, *, is_full: bool, is_exact: bool = True
) -> tuple[Stage, ...]:
    """Return stages from the pose X of B in A to the columns of `GjkState`.

    The column `first` is what the first direction is against; `is_full` adds `on_a`.
    Unless it is exact, the search ends when bodies are proven to be farther apart than
    the column `enough`.
    """
    begin, step = _begin, _step if is_exact else _step_until_enough
    if is_full:
        begin = _begin_with_points
        step = _step_with_points if is_exact else _step_with_points_until_enough
    aim = *aimed(columns, columns.v), *supports(columns)
    search = *aim, columns.stage(step)
    return columns.stage(begin), repeat(columns.open, *search, limit=LIMIT)


def aimed(columns: PairColumns, against: Port) -> tuple[Stage, ...]:
    """Return the stage that aims the search of A and B: A - B against a column."""
    a, b = columns.sides
    return (columns.stage(_aim, against=against, writes=(a.to, b.to)),)


def _aim(X: Matrix, against: Vector) -> tuple[Vector3, Vector3]:
    # B counts with a minus, so that it is searched along v, in its own frame: R' v.
    rotation = Pose.from_matrix(X).rotation
    return negate(three(against)), apply(transpose(rotation), three(against))


def difference(X: Matrix, point_a: Vector, point_b: Vector) -> Vector3:
    """Return a point of A - B, from a point in each body's frame."""
    return subtract(three(point_a), Pose.from_matrix(X) @ three(point_b))


def _begin(first: Vector) -> GjkState:
    v = three(first)
    return GjkState(
        v=v,
        simplex=[[math.nan] * 3] * 3,  # NaN in a comparison is false: no corner
        last=v,
        lower=-math.inf,
        proof=v,
        extent=0.0,
        open=1.0,
        inside=0.0,
    )


def _begin_with_points(first: Vector) -> GjkStateWithPoints:
    points = PointsOfA([[math.nan] * 3] * 3, (0.0, 0.0, 0.0))
    return GjkStateWithPoints(_begin(first), points)


def _step(X: Matrix, point_a: Vector, point_b: Vector, state: GjkState) -> GjkState:
    return _next(X, point_a, point_b, state).state


def _step_until_enough(
    X: Matrix, point_a: Vector, point_b: Vector, state: GjkState, enough: Number
) -> GjkState:
    return _next(X, point_a, point_b, state, enough).state


def _step_with_points(
    X: Matrix, point_a: Vector, point_b: Vector, state: GjkState, points: PointsOfA
) -> GjkStateWithPoints:
    return _with_points(_next(X, point_a, point_b, state), point_a, points)


def _step_with_points_until_enough(
    X: Matrix,
    point_a: Vector,
    point_b: Vector,
    state: GjkState,
    points: PointsOfA,
    enough: Number,
) -> GjkStateWithPoints:
    return _with_points(_next(X, point_a, point_b, state, enough), point_a, points)


def _with_points(
    step: GjkStep, point_a: Vector, points: PointsOfA
) -> GjkStateWithPoints:
    """Return the next state, and which point of A the new v comes from.

    v is a sum of corners with weights, and each corner a difference of points of A and
    B: so the same sum of the points of A is the nearest point of A.
    """
    corner = three(point_a)
    simplex_a = [three(point) for point in points.simplex_a]
    on_a = three(points.on_a)
    weights = step.nearest.weights
    point = scale(1.0 - sum(weights, 0.0), corner)
    for weight, source in zip(weights, simplex_a, strict=True):
        used = choose(weight == 0.0, (0.0, 0.0, 0.0), source)  # absent ones are NaN
        point = add(point, scale(weight, used))
    simplex_a = [
        choose(step.is_new & ~remains, corner, source)
        for remains, source in zip(step.nearest.remains, simplex_a, strict=True)
    ]
    points = PointsOfA(simplex_a, choose(step.is_new, point, on_a))
    return GjkStateWithPoints(step.state, points)


class GjkStep(NamedTuple):
    """What a step leaves.

    Attributes:
        state: The next state.
        nearest: What of the simplex with its new corner is nearest to the origin.
        is_new: Whether the next state has that.
    """

    state: GjkState
    nearest: Nearest
    is_new: Any


def _next(
    X: Matrix,
    point_a: Vector,
    point_b: Vector,
    state: GjkState,
    enough: Number | None = None,
) -> GjkStep:
    v, point_a = three(state.v), three(point_a)
    w = difference(X, point_a, point_b)

    # v . w / |v| bounds the distance from below; the best bound is kept.
    square, along = dot(v, v), dot(v, w)
    bound = along / sqrt(square)
    proof = choose(bound > state.lower, v, state.proof)
    lower = maximum(state.lower, bound)

    # |v|^2 - v . w is what a step may still gain of |v|^2: it ends where that is
    # little. The first v is a mere direction, not a point of A - B.
    is_first = state.open == 1.0
    near = by_precision(square, double=1e-11, single=1e-5)
    is_near = ~is_first & (square - along <= near * square)

    old = [three(point) for point in state.simplex]
    nearest = nearest_of(w, old)
    # Below this, v is the rounding of the points that it is a difference of.
    noise = by_precision(square, double=1e-14, single=1e-6)
    extent = maximum(state.extent, norm(point_a) + norm(w))
    rounding = noise * extent
    is_touching = ~nearest.is_inside & (nearest.square <= rounding * rounding)
    is_better = is_first | (nearest.square < square)
    ends = is_near | is_touching | nearest.is_inside
    if enough is not None:
        ends |= lower > enough + rounding
    # Four steps in a row may gain nothing: rounding hides what the last ones will.
    open_next = select(is_better, 0.5, state.open - 0.125)

    # The new simplex is taken unless it is farther by more than rounding. Its new
    # corner takes the place of those that the face of v does not have.
    equal = by_precision(square, double=1.0 + 1e-15, single=1.0 + 5e-7) * square
    is_new = (is_first | (nearest.square <= equal)) & ~(is_near | nearest.is_inside)
    simplex = [
        choose(is_new & ~remains, w, point)
        for remains, point in zip(nearest.remains, old, strict=True)
    ]
    following = GjkState(
        v=choose(is_new, nearest.point, v),
        simplex=simplex,
        last=choose(is_new, v, state.last),
        lower=lower,
        proof=proof,
        extent=extent,
        open=select(ends, 0.0, open_next),
        inside=select(nearest.is_inside & ~is_near, 1.0, 0.0),
    )
    return GjkStep(following, nearest, is_new)


# The point of a simplex that is nearest to the origin


class Nearest(NamedTuple):
    """What is nearest to the origin.

    Attributes:
        point: The nearest point.
        square: The square of its distance.
        weights: The weights of the three old corners; the new one has the rest of 1.
        remains: For each old corner, whether the face of `point` has it.
        is_inside: Whether the origin is well inside the tetrahedron; nothing else
            counts then.
    """

    point: Vector3
    square: Number
    weights: tuple[Number, Number, Number]
    remains: list[Any]
    is_inside: Any


def nearest_of(w: Vector3, corners: Sequence[Vector3]) -> Nearest:
    """Return the point nearest to 0 of those faces of a simplex that have corner w.

    All other faces are known to be farther. A corner that is equal to `w`, or NaN,
    counts as absent. The seven faces are w itself, three edges, three triangles; an
    eighth case is the inside of the tetrahedron.
    """
    flat = by_precision(w[0], double=1e-20, single=1e-9)  # relative area and volume
    edges = [subtract(corner, w) for corner in corners]
    along = [dot(w, edge) for edge in edges]
    squares = [dot(edge, edge) for edge in edges]
    least, nearest = dot(w, w), w
    remains: list[Any] = [w[0] != w[0]] * 3
    weights: list[Any] = [0.0, 0.0, 0.0]

    def offer(truth: Any, square: Any, point: Vector3, shares: dict[int, Any]) -> None:
        nonlocal least, nearest
        truth = truth & (square < least)
        least, nearest = select(truth, square, least), choose(truth, point, nearest)
        for k in range(3):
            remains[k] = (remains[k] | truth) if k in shares else (remains[k] & ~truth)
            weights[k] = select(truth, shares.get(k, 0.0), weights[k])

    # Edges: w + t e is across e where t = -(w . e) / |e|^2; it is on the edge, and not
    # one of its ends, for 0 < t < 1. That of an absent corner, 0 / 0, is NaN: false.
    for i in range(3):
        t = -along[i] / squares[i]
        point = add(w, scale(t, edges[i]))
        offer((t > 0.0) & (t < 1.0), dot(point, point), point, {i: t})

    # Triangles: the origin is over w + s e_i + t e_j, where with n = e_i x e_j
    # s = -(n x w) . e_j / |n|^2 and t = (n x w) . e_i / |n|^2; s and t are compared
    # before they are divided. The point is n (w . n) / |n|^2. Slivers have no normal.
    normals: list[Vector3] = []
    for i, j in ((0, 1), (1, 2), (2, 0)):
        normal = cross(edges[i], edges[j])
        area = dot(normal, normal)
        across = cross(normal, w)
        s, t = -dot(across, edges[j]), dot(across, edges[i])
        is_over = (s > 0.0) & (t > 0.0) & (s + t < area)
        is_face = is_over & (area > flat * squares[i] * squares[j])
        height = dot(w, normal) / area
        square = height * dot(w, normal)
        offer(is_face, square, scale(height, normal), {i: s / area, j: t / area})
        normals.append(normal)

    # Inside: by Cramer's rule the weights of the old corners are -w . n_k / V, with the
    # triple product V of the edges; all four have to be above rounding, times V.
    volume = dot(edges[2], normals[0])
    sign = select(volume < 0.0, -1.0, 1.0)
    a, b, c = (-sign * dot(w, normal) for normal in normals)
    volume = sign * volume
    least_part = by_precision(volume, double=1e-12, single=1e-5) * volume
    rest = volume - (a + b + c)
    part = minimum(minimum(a, b), minimum(c, rest))
    is_inside = part > least_part
    size = squares[0] * squares[1] * squares[2]
    is_inside &= volume * volume > flat * size
    x, y, z = weights
    return Nearest(nearest, least, (x, y, z), remains, is_inside)
