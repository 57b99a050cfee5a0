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

Where bodies are apart by little, v is a small difference of large numbers. Rounding
makes it lean against the edge that it is across, so that 2. finds an end of that edge
again and again, or |v| does not fall where it should. A sharp search (`sharp_stages`)
goes on from there: points of edges are products across them, faces are compared by the
bounds that they prove of the simplex, and it ends where those are proven.
|v| changes by the square of an angle and such a bound by the angle itself, so that
normals are right to rounding over distance, not to its root.

Where the simplex is a tetrahedron around the origin, bodies overlap, and `depth.py`
follows. The subalgorithm of the paper looks for v in all faces of the simplex; here
only those with the new corner w are computed, since v was nearest of all others, and
all of them without branches, since the rows of a batch are computed together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from armillary.collision.distance.columns import PairColumns
from armillary.collision.distance.separation import choose
from armillary.collision.distance.support import supports
from armillary.kernel.columns import repeat, when
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

__all__ = ["aimed", "difference", "gjk_stages", "sharp_stages"]

LIMIT: Final = 64
"""Most iterations; hulls take about 6, round bodies 15."""

SHARP_LIMIT: Final = 24
"""Most iterations of a sharp search; hulls take about 2."""


class GjkState(NamedTuple):
    """What is known between two steps; see the columns of these names."""

    v: Vector
    simplex: Matrix
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


class NextStep(NamedTuple):
    """Which step is next; see the columns of these names."""

    is_first: Number
    is_second: Number
    is_third: Number
    is_later: Number


class SearchBegun(NamedTuple):
    """What is known before the first step."""

    state: GjkState
    following: NextStep


class SearchBegunWithPoints(NamedTuple):
    """The same, with points."""

    begun: SearchBegun
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
    # The first steps have fewer corners, so that most of what others compute is left
    # out: of hulls that is three steps of five. Rows that are computed at once begin
    # together, so that all whose search goes on are in the same step.
    turns = columns.is_first, columns.is_second, columns.is_third, columns.is_later
    steps = (
        when(turn, columns.stage(partial(step, corners=corners)), together=True)
        for corners, turn in enumerate(turns)
    )
    aim = *aimed(columns, columns.v), *supports(columns)
    search = *aim, *steps, columns.stage(_following)
    return columns.stage(begin), repeat(columns.open, *search, limit=LIMIT)


def sharp_stages(columns: PairColumns, *, is_full: bool) -> tuple[Stage, ...]:
    """Return stages of a sharp search, which goes on where `open` is above 0."""
    step = columns.stage(_step_sharp_with_points if is_full else _step_sharp)
    aim = *aimed(columns, columns.v), *supports(columns)
    return (repeat(columns.open, *aim, step, limit=SHARP_LIMIT),)


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


def _begin(first: Vector) -> SearchBegun:
    v = three(first)
    state = GjkState(
        v=v,
        simplex=[[math.nan] * 3] * 3,  # NaN in a comparison is false: no corner
        lower=-math.inf,
        proof=v,
        extent=0.0,
        open=1.0,
        inside=0.0,
    )
    return SearchBegun(state, NextStep(1.0, 0.0, 0.0, 0.0))


def _begin_with_points(first: Vector) -> SearchBegunWithPoints:
    points = PointsOfA([[math.nan] * 3] * 3, (0.0, 0.0, 0.0))
    return SearchBegunWithPoints(_begin(first), points)


def _following(step: NextStep) -> NextStep:
    later = step.is_third + step.is_later
    return NextStep(0.0 * step.is_first, step.is_first, step.is_second, later)


def _step_sharp(
    X: Matrix, point_a: Vector, point_b: Vector, state: GjkState
) -> GjkState:
    return _next_sharp(X, point_a, point_b, state).state


def _step_sharp_with_points(
    X: Matrix, point_a: Vector, point_b: Vector, state: GjkState, points: PointsOfA
) -> GjkStateWithPoints:
    step = _next_sharp(X, point_a, point_b, state)
    return _with_points(step, point_a, points)


def _step(
    X: Matrix, point_a: Vector, point_b: Vector, state: GjkState, *, corners: int
) -> GjkState:
    return _next(X, point_a, point_b, state, corners=corners).state


def _step_until_enough(
    X: Matrix,
    point_a: Vector,
    point_b: Vector,
    state: GjkState,
    enough: Number,
    *,
    corners: int,
) -> GjkState:
    return _next(X, point_a, point_b, state, enough, corners=corners).state


def _step_with_points(
    X: Matrix,
    point_a: Vector,
    point_b: Vector,
    state: GjkState,
    points: PointsOfA,
    *,
    corners: int,
) -> GjkStateWithPoints:
    step = _next(X, point_a, point_b, state, corners=corners)
    return _with_points(step, point_a, points)


def _step_with_points_until_enough(
    X: Matrix,
    point_a: Vector,
    point_b: Vector,
    state: GjkState,
    points: PointsOfA,
    enough: Number,
    *,
    corners: int,
) -> GjkStateWithPoints:
    step = _next(X, point_a, point_b, state, enough, corners=corners)
    return _with_points(step, point_a, points)


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
    for weight, source in zip(weights, simplex_a, strict=False):  # of its corners
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
    *,
    corners: int,
) -> GjkStep:
    """Return the next step.

    corners: How many corners the simplex may have before it; others are equal to one
        of these. The first v, without any, is a mere direction, not a point of A - B.
    """
    v, point_a = three(state.v), three(point_a)
    w = difference(X, point_a, point_b)

    # v . w / |v| bounds the distance from below; the best bound is kept.
    square, along = dot(v, v), dot(v, w)
    bound = along / sqrt(square)
    proof = choose(bound > state.lower, v, state.proof)
    lower = maximum(state.lower, bound)

    # |v|^2 - v . w is what a step may still gain of |v|^2: it ends where that is
    # little.
    never = _never(w)
    near = by_precision(square, double=1e-11, single=1e-5)
    is_near = square - along <= near * square if corners else never

    old = [three(point) for point in state.simplex]
    nearest = nearest_of(w, old[:corners])
    # Below this, v is the rounding of the points that it is a difference of.
    noise = by_precision(square, double=1e-14, single=1e-6)
    extent = maximum(state.extent, norm(point_a) + norm(w))
    rounding = noise * extent
    is_touching = ~nearest.is_inside & (nearest.square <= rounding * rounding)
    is_better = nearest.square < square if corners else ~never
    ends = is_near | is_touching | nearest.is_inside
    if enough is not None:
        ends |= lower > enough + rounding
    # Four steps in a row may gain nothing: rounding hides what the last ones will.
    open_next = select(is_better, 0.5, state.open - 0.125)

    # The new simplex is taken unless it is farther by more than rounding.
    equal = by_precision(square, double=1.0 + 1e-15, single=1.0 + 5e-7) * square
    is_new = nearest.square <= equal if corners else ~never
    known = Known(lower, proof, extent, select(ends, 0.0, open_next))
    return _taken(state, w, nearest, known, is_near=is_near, is_new=is_new)


def _next_sharp(
    X: Matrix, point_a: Vector, point_b: Vector, state: GjkState
) -> GjkStep:
    """Return the next step of the sharp search, see `sharp_stages`."""
    v, point_a = three(state.v), three(point_a)
    w = difference(X, point_a, point_b)
    length = norm(v)
    bound = dot(v, w) / length
    extent = maximum(state.extent, norm(point_a) + norm(w))

    # Bounds are equal up to the rounding of v . w. Of equal ones the last is taken.
    small = by_precision(length, double=4e-16, single=2e-7)
    noise = small * extent
    proof = choose(bound > state.lower - noise, v, state.proof)
    lower = maximum(state.lower, bound)
    is_near = length - bound <= noise + small * length

    # A step is taken if the plane across its v proves more of the simplex, and |v| does
    # not grow by more than rounding, which may hide that it falls. Else v is right, or
    # no digits are left.
    nearest = proving_of(w, [three(point) for point in state.simplex])
    reached = norm(nearest.point)
    rounding = by_precision(length, double=1e-14, single=1e-6) * extent
    is_touching = reached <= rounding
    is_new = (0.0 - nearest.square > bound) & (reached <= length + rounding)
    ends = is_near | nearest.is_inside | is_touching | ~is_new
    known = Known(lower, proof, extent, select(ends, 0.0, 0.5))
    return _taken(state, w, nearest, known, is_near=is_near, is_new=is_new)


class Known(NamedTuple):
    """What is known of the distance after a step; see the columns of these names."""

    lower: Number
    proof: Vector
    extent: Number
    open: Number


def _taken(
    state: GjkState,
    w: Vector3,
    nearest: Nearest,
    known: Known,
    *,
    is_near: Any,
    is_new: Any,
) -> GjkStep:
    """Return the step to the face of `nearest`, unless bodies are near or overlap.

    Its new corner takes the place of those that the face does not have.
    """
    is_new = is_new & ~(is_near | nearest.is_inside)
    simplex = [
        choose(is_new & ~remains, w, three(point))
        for remains, point in zip(nearest.remains, state.simplex, strict=True)
    ]
    v = three(state.v)
    following = GjkState(
        v=choose(is_new, nearest.point, v),
        simplex=simplex,
        lower=known.lower,
        proof=known.proof,
        extent=known.extent,
        open=known.open,
        inside=select(nearest.is_inside & ~is_near, 1.0, 0.0),
    )
    return GjkStep(following, nearest, is_new)


# The point of a simplex that is nearest to the origin


class Nearest(NamedTuple):
    """What is nearest to the origin.

    Attributes:
        point: The nearest point.
        square: The square of its distance.
        weights: The weights of old corners; the new one has the rest of 1.
        remains: For each of three old corners, whether the face of `point` has it.
        is_inside: Whether the origin is well inside the tetrahedron; nothing else
            counts then.
    """

    point: Vector3
    square: Number
    weights: Sequence[Number]
    remains: list[Any]
    is_inside: Any


def nearest_of(w: Vector3, corners: Sequence[Vector3]) -> Nearest:
    """Return the point nearest to 0 of those faces of a simplex that have corner w.

    All other faces are known to be farther. A corner that is equal to `w`, or NaN,
    counts as absent. The seven faces are w itself, three edges, three triangles; an
    eighth case is the inside of the tetrahedron. Of fewer than three corners there are
    fewer faces.
    """
    count = len(corners)
    flat = _flat(w)
    edges = [subtract(corner, w) for corner in corners]
    along = [dot(w, edge) for edge in edges]
    squares = [dot(edge, edge) for edge in edges]
    best = BestFace(w, dot(w, w), count)

    # Edges: w + t e is across e where t = -(w . e) / |e|^2; it is on the edge, and not
    # one of its ends, for 0 < t < 1. That of an absent corner, 0 / 0, is NaN: false.
    for i in range(count):
        t = -along[i] / squares[i]
        point = add(w, scale(t, edges[i]))
        best.offer((t > 0.0) & (t < 1.0), dot(point, point), point, {i: t})

    # Triangles: the origin is over w + s e_i + t e_j, where with n = e_i x e_j
    # s = -(n x w) . e_j / |n|^2 and t = (n x w) . e_i / |n|^2; s and t are compared
    # before they are divided. The point is n (w . n) / |n|^2. Slivers have no normal.
    normals: list[Vector3] = []
    for i, j in ((0, 1), (1, 2), (2, 0))[: count * (count - 1) // 2]:
        normal = cross(edges[i], edges[j])
        area = dot(normal, normal)
        across = cross(normal, w)
        s, t = -dot(across, edges[j]), dot(across, edges[i])
        is_over = (s > 0.0) & (t > 0.0) & (s + t < area)
        is_face = is_over & (area > flat * squares[i] * squares[j])
        height = dot(w, normal) / area
        square = height * dot(w, normal)
        best.offer(is_face, square, scale(height, normal), {i: s / area, j: t / area})
        normals.append(normal)

    is_inside = _is_inside(w, edges, squares, normals) if count == 3 else _never(w)
    return best.nearest(is_inside)


def proving_of(w: Vector3, corners: Sequence[Vector3]) -> Nearest:
    """Return the same point as `nearest_of`, of which small parts have all digits.

    Faces are compared by what planes across their points p prove of the simplex, the
    least p . c / |p| of its corners c; `square` is minus that.
    """
    edges = [subtract(corner, w) for corner in corners]
    squares = [dot(edge, edge) for edge in edges]

    def short(point: Vector3) -> Any:
        least = dot(point, w)
        for corner in corners:  # `minimum` would take an absent one
            along = dot(point, corner)
            least = select(along < least, along, least)
        return 0.0 - least / norm(point)

    # Differences of large numbers are avoided: where c is near the origin and w far
    # away, w x c has the digits of c. Edges: with e = c - w and q = w x c the point is
    # e x q / |e|^2, and w and c have the weights c . e / |e|^2 and -w . e / |e|^2.
    best = BestFace(w, short(w))
    moments = [cross(w, corner) for corner in corners]
    for i in range(3):
        t, rest = -dot(w, edges[i]), dot(corners[i], edges[i])
        factor = 1.0 / squares[i]
        point = scale(factor, cross(edges[i], moments[i]))
        best.offer((t > 0.0) & (rest > 0.0), short(point), point, {i: factor * t})

    # Triangles: with n = e_i x e_j the weights of w, c_i and c_j are n . (c_i x c_j),
    # -n . q_j and n . q_i over |n|^2.
    normals: list[Vector3] = []
    for i, j in ((0, 1), (1, 2), (2, 0)):
        normal = cross(edges[i], edges[j])
        rest = dot(normal, cross(corners[i], corners[j]))
        s, t = -dot(normal, moments[j]), dot(normal, moments[i])
        factor = 1.0 / dot(normal, normal)
        point = scale(factor * dot(w, normal), normal)
        is_over = (s > 0.0) & (t > 0.0) & (rest > 0.0)
        best.offer(is_over, short(point), point, {i: factor * s, j: factor * t})
        normals.append(normal)
    return best.nearest(_is_inside(w, edges, squares, normals))


class BestFace:
    """The best of some faces of a simplex, each with its point nearest to 0."""

    def __init__(self, corner: Vector3, measure: Number, count: int = 3) -> None:
        """Begin with the new corner, of some old ones; see `offer`."""
        self._least, self._point = measure, corner
        self._remains: list[Any] = [corner[0] != corner[0]] * 3
        self._weights: list[Any] = [0.0] * count

    def offer(
        self, truth: Any, measure: Number, point: Vector3, shares: dict[int, Any]
    ) -> None:
        """Take a face if it is true that it has such a point, and it is less.

        Args:
            truth: Whether the point is on the face.
            measure: What is compared.
            point: The point.
            shares: The weights of its old corners.
        """
        truth = truth & (measure < self._least)
        self._least = select(truth, measure, self._least)
        self._point = choose(truth, point, self._point)
        for k in range(len(self._weights)):
            remains = self._remains[k]
            self._remains[k] = (remains | truth) if k in shares else (remains & ~truth)
            self._weights[k] = select(truth, shares.get(k, 0.0), self._weights[k])

    def nearest(self, is_inside: Any) -> Nearest:
        """Return the best one, and whether the origin is inside of the simplex."""
        found = self._point, self._least, tuple(self._weights), self._remains
        return Nearest(*found, is_inside)


def _never(w: Vector3) -> Any:
    """Return a truth that is false, of each row."""
    return w[0] < w[0]


def _is_inside(
    w: Vector3,
    edges: Sequence[Vector3],
    squares: Sequence[Number],
    normals: Sequence[Vector3],
) -> Any:
    """Return whether the origin is well inside of a tetrahedron.

    By Cramer's rule the weights of the old corners are -w . n_k / V, with the triple
    product V of the edges; all four have to be above rounding, times V.
    """
    flat = _flat(w)
    volume = dot(edges[2], normals[0])
    sign = select(volume < 0.0, -1.0, 1.0)
    a, b, c = (-sign * dot(w, normal) for normal in normals)
    volume = sign * volume
    least_part = by_precision(volume, double=1e-12, single=1e-5) * volume
    rest = volume - (a + b + c)
    part = minimum(minimum(a, b), minimum(c, rest))
    is_inside = part > least_part
    size = squares[0] * squares[1] * squares[2]
    return is_inside & (volume * volume > flat * size)


def _flat(w: Vector3) -> Number:
    """Return the square of a relative area or volume that is rounding."""
    return by_precision(w[0], double=1e-20, single=1e-9)
