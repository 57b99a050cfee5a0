"""Distance of two convex bodies of known curvature by Newton's method on the normal.

The distance of A and B, apart, is the largest of all gaps between planes across a unit
vector d, the normal from A to B,

    L(d) = min over q in B of q . d - max over p in A of p . d.

In a direction d a box, a capsule or a body of revolution has a segment of points that
are farthest or would be farthest after a small turn: an edge, or a line of its side.
`segment_of` returns it and how the body bends across it. Of both segments the nearest
points p and q are known in closed form. So

    L(d) <= distance <= |q - p|,

and where both are equal up to rounding the distance is proven. Where they are not, d
moves by a step e across it, in a plane:

- where p is inside of its segment s, the normal is across that: s . (d + e) = 0;
- the same of q. Two segments determine e;
- else q - p becomes parallel to d + e: with the second derivatives H of the support of
  A - B, the sum of both bodies' k t t' for tangents t and radii of curvature k, and
  v = p - q it is (H + |v|) e = -v, in the plane or in what a segment leaves of it.

This is Newton's method where a body is smooth, and exact where it is flat: 3 to 5 steps
take d to rounding, also where bodies nearly touch and v has no digits left. Contacts
inside of a face are found before the first step, as d is known there. What is left,
1 to 5 of 100 poses and all bodies that overlap, `gjk.py` searches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from armillary.collision.distance.columns import PairColumns
from armillary.collision.distance.creases import AXES, ROUND, across
from armillary.collision.distance.separation import are_apart, choose, clamp, direction
from armillary.collision.distance.sizes import with_numbers
from armillary.kernel.columns import repeat, when
from armillary.kernel.stages import Stage
from armillary.model.cloud import Cloud
from armillary.model.primitive import Primitive
from armillary.model.shapes import (
    Box,
    Capsule,
    CircularLozenge,
    Cone,
    Cylinder,
    Ellipsoid,
    Lozenge,
)
from armillary.spatial.pose import Pose
from armillary.spatial.vector import (
    Matrix,
    Number,
    Vector,
    Vector3,
    add,
    apply,
    dot,
    negate,
    norm,
    scale,
    subtract,
    three,
    transpose,
)
from armillary.trace.functions import absolute, by_precision, maximum, select, sqrt

__all__ = ["are_curved", "curved_stages", "proven_stages"]

LIMIT: Final = 6
"""Most steps; bodies that are apart take 3 to 5."""

RESUMED_LIMIT: Final = 16
"""Most steps after a search; a corner that nearly touches a rim takes up to 14."""

HOPEFUL: Final = 2.5
"""After as many steps bodies that no plane is between are taken to overlap."""

LONGEST: Final = 1.0
"""Longest step, as a tangent."""

SEEN: Final = -2.0
"""`open` where a plane along a face proves the distance."""

MOVED: Final = -1.0
"""The same where steps do."""

NOTHING: Final[Vector3] = (0.0, 0.0, 0.0)
ANY: Final[Vector3] = (0.2673, 0.9134, 0.3071)


class Segment(NamedTuple):
    """The points of a body that are about farthest in a direction.

    Attributes:
        start: One end.
        along: From there to the other end; 0 where there is a single point.
        bends: Tangents t with the radii k at both ends, whose k t t' add up to the
            second derivatives of the support.
    """

    start: Vector3
    along: Vector3 = NOTHING
    bends: Sequence[tuple[Vector3, Number, Number]] = ()

    def at(self, part: Number) -> Vector3:
        """Return a point of it, for `part` from 0 to 1."""
        return add(self.start, scale(part, self.along)) if self.is_long else self.start

    def farthest(self, d: Vector3) -> Vector3:
        """Return the end that is farther in a direction."""
        if not self.is_long:
            return self.start
        return choose(dot(self.along, d) > 0.0, self.at(1.0), self.start)

    def placed(self, X: Pose) -> Segment:
        """Return it in another frame."""
        bends = [(X.rotate(t), k, m) for t, k, m in self.bends]
        along = X.rotate(self.along) if self.is_long else NOTHING
        return Segment(X @ self.start, along, bends)

    @property
    def is_long(self) -> bool:
        """Return whether it is more than a point."""
        return self.along is not NOTHING


class Moved(NamedTuple):
    """What is known of bodies after a step; see the columns of these names.

    `open` is below 0 where the distance is proven, else 1: `gjk.py` begins with that.
    """

    along: Vector
    v: Vector
    lower: Number
    proof: Vector
    extent: Number
    open: Number
    moving: Number


class MovedWithPoint(NamedTuple):
    """The same, and the nearest point of A."""

    moved: Moved
    on_a: Vector


class StepsBegun(NamedTuple):
    """What is known before the first step; there is no simplex."""

    known: Moved
    inside: Number
    simplex: Matrix


class StepsBegunWithPoint(NamedTuple):
    """The same, and the nearest point of A."""

    begun: StepsBegun
    on_a: Vector


def are_curved(a: Primitive | Cloud, b: Primitive | Cloud) -> bool:
    """Return whether the curvature of both shapes is known."""
    return type(a) in AXES and type(b) in AXES


def curved_stages(
    columns: PairColumns, *search: Stage, is_full: bool, is_exact: bool
) -> tuple[Stage, ...]:
    """Return stages from the pose X of B in A to the columns of `StepsBegun`.

    search: What follows where steps do not prove the distance, from `first` to the same
        columns. Steps go on from there.

    Other arguments are those of `gjk_stages`.
    """
    pair, stage = _Pair(columns), columns.stage
    numbers: Any = columns.numbers
    more: Any = {**numbers, "enough": None} if is_exact else numbers
    begun = stage(pair.begun_with_point if is_full else pair.begun, **more)
    moved = stage(pair.moved_with_point if is_full else pair.moved, **more)
    points: tuple[Stage, ...] = ()
    if is_full:
        points = (stage(pair.points, writes=columns.on_a, **numbers),)

    def steps(limit: int) -> tuple[Stage, ...]:
        return repeat(columns.moving, moved, limit=limit), *points

    first = stage(_first, writes=columns.first)
    again = stage(_resumed), *steps(RESUMED_LIMIT)
    return begun, *steps(LIMIT), when(columns.open, first, *search, *again)


def proven_stages(columns: PairColumns) -> tuple[Stage, ...]:
    """Return stages to the distance of cores that steps prove, and 0 elsewhere."""
    pair, stage = _Pair(columns), columns.stage
    more: dict[str, Any] = {**columns.numbers, "enough": None}
    steps = repeat(columns.moving, stage(pair.moved, **more), limit=LIMIT)
    return stage(pair.begun, **more), steps, stage(_proven, writes=columns.value)


def _proven(v: Vector, lower: Number, extent: Number, open: Number) -> Number:
    return select((open < 0.0) & are_apart(lower, extent), norm(three(v)), 0.0)


def _first(proof: Vector) -> Vector:
    return three(proof)


class Resumed(NamedTuple):
    """Where steps go on, and whether they do."""

    along: Vector
    open: Number
    moving: Number


def _resumed(proof: Vector, inside: Number) -> Resumed:
    along = negate(direction(three(proof), 0.0, ANY))
    return Resumed(along, 1.0, 1.0 - inside)


class _Pair:
    """The formulas of two shapes."""

    def __init__(self, columns: PairColumns) -> None:
        self._shapes = columns.shapes

    def begun(
        self, X: Matrix, enough: Number = math.inf, a: Vector = (), b: Vector = ()
    ) -> StepsBegun:
        return self.begun_with_point(X, enough, a, b).begun

    def begun_with_point(
        self, X: Matrix, enough: Number = math.inf, a: Vector = (), b: Vector = ()
    ) -> StepsBegunWithPoint:
        """Return what planes along faces prove, and the first direction."""
        shape_a, shape_b = self._numbered(a, b)
        pose = Pose.from_matrix(X)
        back = pose.inverse()
        centre = pose.position
        towards = _towards(shape_a, shape_b, pose)
        lower, proof, on_a = -math.inf, towards, centre
        is_proven = norm(centre) < 0.0  # false
        # The farthest point of B against the normal n of a face of A is the nearest one
        # if it is over that face; then that of A is on n below it.
        for n, is_over in _faces(shape_a, centre):
            q = pose @ three(shape_b.farthest(back.rotate(negate(n))))
            gap = dot(subtract(q, three(shape_a.farthest(n))), n)
            is_better, is_face = gap > lower, is_over(q) & (gap > 0.0)
            is_proven = (is_proven & ~is_better) | (is_face & is_better)
            lower, proof = select(is_better, gap, lower), choose(is_better, n, proof)
            on_a = choose(is_better, subtract(q, scale(gap, n)), on_a)
        for n, is_over in _faces(shape_b, negate(back.rotate(centre))):
            d = negate(pose.rotate(n))
            p = three(shape_a.farthest(d))
            gap = dot(subtract(back @ p, three(shape_b.farthest(n))), n)
            is_better, is_face = gap > lower, is_over(back @ p) & (gap > 0.0)
            is_proven = (is_proven & ~is_better) | (is_face & is_better)
            lower, proof = select(is_better, gap, lower), choose(is_better, d, proof)
            on_a = choose(is_better, p, on_a)
        extent = norm(centre) + norm(on_a)
        noise = by_precision(extent, double=1e-14, single=1e-6) * extent
        is_proven |= lower > enough + noise
        known = Moved(
            along=choose(is_proven, proof, towards),
            v=scale(-1.0 * select(is_proven, lower, 1.0), proof),
            lower=lower,
            proof=negate(proof),
            extent=extent,
            open=select(is_proven, SEEN, 1.0),
            moving=select(is_proven, 0.0, 1.0),
        )
        begun = StepsBegun(known, 0.0, [[math.nan] * 3] * 3)
        return StepsBegunWithPoint(begun, on_a)

    def moved(
        self,
        X: Matrix,
        before: Moved,
        enough: Number = math.inf,
        a: Vector = (),
        b: Vector = (),
    ) -> Moved:
        return self.moved_with_point(X, before, NOTHING, enough, a, b).moved

    def moved_with_point(
        self,
        X: Matrix,
        before: Moved,
        on_a: Vector,
        enough: Number = math.inf,
        a: Vector = (),
        b: Vector = (),
    ) -> MovedWithPoint:
        """Return what is known after a step; `v` and `on_a` stay until it is proven."""
        d, lower, proof = three(before.along), before.lower, before.proof
        of_a, of_b = self._segments(X, d, a, b)

        # What is proven by d and by the nearest points of both segments.
        s, t = _nearest(of_a, of_b)
        p, q = of_a.at(s), of_b.at(t)
        length = norm(subtract(p, q))
        extent = maximum(before.extent, norm(p) + norm(q))
        gap = dot(subtract(of_b.farthest(negate(d)), of_a.farthest(d)), d)
        is_better = gap > lower
        lower, proof = (
            select(is_better, gap, lower),
            choose(is_better, negate(d), proof),
        )

        # It ends where both are equal and d will not move any more.
        step, size = _step((of_a, s), (of_b, t), d)
        following = add(d, step)
        reach = norm(following)  # at least 1, or NaN
        following = choose(reach > 0.5, scale(1.0 / reach, following), d)
        small = by_precision(length, double=5e-12, single=1e-5)
        rounding = by_precision(length, double=4e-16, single=2e-7) * extent
        is_proven = length - gap <= small * length + rounding
        is_proven &= (gap > 0.0) & (
            size <= by_precision(size, double=1e-7, single=1e-3)
        )
        noise = by_precision(length, double=1e-14, single=1e-6) * extent
        is_proven |= lower > enough + noise
        # Bodies that overlap by more than a little have no such plane.
        shallow = by_precision(extent, double=-1e-4, single=-1e-3) * extent
        is_hopeless = (before.moving > HOPEFUL) & (lower < shallow)
        moved = Moved(
            along=following,
            v=choose(is_proven, scale(0.0 - length, following), three(before.v)),
            lower=lower,
            proof=proof,
            extent=extent,
            open=select(is_proven, MOVED, 1.0),
            moving=select(is_proven | is_hopeless, 0.0, before.moving + 1.0),
        )
        return MovedWithPoint(moved, choose(is_proven, p, three(on_a)))

    def points(
        self,
        X: Matrix,
        along: Vector,
        v: Vector,
        extent: Number,
        open: Number,
        on_a: Vector,
        a: Vector = (),
        b: Vector = (),
    ) -> Vector3:
        """Return the nearest point of A across the direction after the last step.

        Where that is across a face, the point before it is as near.
        """
        of_a, of_b = self._segments(X, three(along), a, b)
        s, t = _nearest(of_a, of_b)
        p = of_a.at(s)
        rounding = by_precision(extent, double=4e-16, single=2e-7) * extent
        is_near = norm(subtract(p, of_b.at(t))) <= norm(three(v)) + rounding
        return choose((open == MOVED) & is_near, p, on_a)

    def _segments(
        self, X: Matrix, d: Vector3, a: Vector, b: Vector
    ) -> tuple[Segment, Segment]:
        """Return the segment of A along d and that of B against it."""
        shape_a, shape_b = self._numbered(a, b)
        pose = Pose.from_matrix(X)
        against = negate(apply(transpose(pose.rotation), d))
        return segment_of(shape_a, d), segment_of(shape_b, against).placed(pose)

    def _numbered(self, a: Vector, b: Vector) -> tuple[Any, Any]:
        shape_a, shape_b = self._shapes
        return with_numbers(shape_a, a), with_numbers(shape_b, b)


def _towards(a: Any, b: Any, X: Pose) -> Vector3:
    """Return about the direction from A to B: that between their axes, or boxes."""
    of_a, of_b = _axis(a), _axis(b).placed(X)
    s, t = _nearest(of_a, of_b)
    p, q = of_a.at(s), of_b.at(t)
    if isinstance(a, (Box, Lozenge)):
        p = _clamped(a.size, q)
    if isinstance(b, (Box, Lozenge)):
        q = X @ _clamped(b.size, X.inverse() @ p)
    # Where these meet, the centres say more.
    between, centre = subtract(q, p), X.position
    is_far = dot(between, between) > 1e-6 * dot(centre, centre)
    return direction(choose(is_far, between, centre), 0.0, ANY)


def _axis(shape: Any) -> Segment:
    if isinstance(shape, (Capsule, Cylinder, Cone)):
        return Segment((0.0, 0.0, -0.5 * shape.length), (0.0, 0.0, shape.length))
    return Segment(NOTHING)


def _clamped(size: Sequence[Number], q: Vector3) -> Vector3:
    """Return the nearest point of a box, or a rectangle."""
    near = [clamp(x, 0.5 * length) for x, length in zip(q, size, strict=False)]
    return three([*near, *[0.0] * (3 - len(near))])


def segment_of(shape: Any, d: Vector3) -> Segment:
    """Return the segment of a shape of a kind in `AXES`; its numbers may be traced."""
    match shape:
        case Cylinder():
            return _side(d, shape.radius, shape.radius, shape.length)
        case Cone():
            return _side(d, shape.bottom, shape.top, shape.length)
        case CircularLozenge():
            return _side(d, shape.disc, shape.disc, 0.0)
        case Capsule():
            return Segment((0.0, 0.0, -0.5 * shape.length), (0.0, 0.0, shape.length))
        case Ellipsoid():
            return _ellipsoid(shape.radii, d)
        case Box() | Lozenge():
            return _edge(shape.size, d)
        case _:
            return Segment(NOTHING)


def _side(d: Vector3, bottom: Number, top: Number, length: Number) -> Segment:
    """Return the line on the side of a truncated cone, with the radii of its rims.

    The support of a rim of radius r is r out, with out = sqrt(d_x^2 + d_y^2): it bends
    by r / out along the rim.
    """
    x, y, _ = d
    least = by_precision(x, double=1e-280, single=1e-36)
    out = sqrt(maximum(x * x + y * y, least))
    x, y = x / out, y / out
    more = top - bottom
    start = bottom * x, bottom * y, -0.5 * length
    along = more * x, more * y, length
    return Segment(start, along, [((0.0 - y, x, 0.0), bottom / out, top / out)])


def _ellipsoid(radii: Sequence[Number], d: Vector3) -> Segment:
    """Return the farthest point p of an ellipsoid.

    With the matrix R of its radii the support is h = |R d|, p = R^2 d / h, and its
    second derivatives are (R^2 - p p') / h.
    """
    stretched = three([r * x for r, x in zip(radii, d, strict=True)])
    least = by_precision(d[0], double=1e-280, single=1e-36)
    factor = 1.0 / sqrt(maximum(dot(stretched, stretched), least))
    p = three([factor * r * x for r, x in zip(radii, stretched, strict=True)])
    bends: list[tuple[Vector3, Number, Number]] = [(p, 0.0 - factor, 0.0 - factor)]
    for k, r in enumerate(radii):
        axis = [0.0, 0.0, 0.0]
        axis[k] = r
        bends.append((three(axis), factor, factor))
    return Segment(p, NOTHING, bends)


def _edge(size: Sequence[Number], d: Vector3) -> Segment:
    """Return the edge of a box, or of a rectangle, that is most across a direction."""
    least, start, along = absolute(d[0]), list[Number](), list[Number]()
    for x in d[1 : len(size)]:
        least = select(absolute(x) < least, absolute(x), least)
    is_free = d[0] != d[0]  # false
    for x, length in zip(d, size, strict=False):
        is_edge = (absolute(x) == least) & ~is_free
        is_free |= is_edge
        start.append(select((x < 0.0) | is_edge, -0.5 * length, 0.5 * length))
        along.append(select(is_edge, length, 0.0))
    missing = [0.0] * (3 - len(size))
    return Segment(three([*start, *missing]), three([*along, *missing]))


Over = Callable[[Vector3], Any]
"""Whether a point is over a face, along its normal."""


def _faces(shape: Any, towards: Vector3) -> Iterator[tuple[Vector3, Over]]:
    """Yield normals of the faces of a shape that look towards a point."""
    if isinstance(shape, ROUND):
        up = towards[2] >= 0.0
        radius: Number = shape.radius if isinstance(shape, Cylinder) else 0.0
        if isinstance(shape, CircularLozenge):
            radius = shape.disc
        elif isinstance(shape, Cone):
            radius = select(up, shape.top, shape.bottom)
        yield (
            (0.0, 0.0, select(up, 1.0, -1.0)),
            lambda q: q[0] * q[0] + q[1] * q[1] <= radius * radius,
        )
    if isinstance(shape, (Box, Lozenge)):
        halves = [0.5 * length for length in shape.size]
        for k in range(3) if isinstance(shape, Box) else (2,):
            n: list[Number] = [0.0, 0.0, 0.0]
            n[k] = select(towards[k] >= 0.0, 1.0, -1.0)
            rest = [i for i in range(len(halves)) if i != k]
            yield three(n), _within(halves, rest)


def _within(halves: Sequence[Number], axes: Sequence[int]) -> Over:
    def is_over(q: Vector3) -> Any:
        truth: Any = q[0] == q[0]
        for i in axes:
            truth &= absolute(q[i]) <= halves[i]
        return truth

    return is_over


def _nearest(of_a: Segment, of_b: Segment) -> tuple[Number, Number]:
    """Return where on both segments the points are that are nearest to each other.

    With w from the start of B to that of A, |w + s a - t b| is least where

        s = ((a.b)(b.w) - (b.b)(a.w)) / ((a.a)(b.b) - (a.b)^2)
        t = ((a.b) s + b.w) / b.b

    and clamped one after the other, the last is found again; see Ericson, "Real-Time
    Collision Detection", 2005, 5.1.9.
    """
    a, b = of_a.along, of_b.along
    w = subtract(of_a.start, of_b.start)
    aa, ab, bb, aw, bw = dot(a, a), dot(a, b), dot(b, b), dot(a, w), dot(b, w)
    square = aa * bb - ab * ab
    s: Number = 0.0
    t: Number = 0.0
    if of_a.is_long and of_b.is_long:
        is_crossing = square > _parallel(square) * aa * bb
        s = _part(select(is_crossing, (ab * bw - bb * aw) / square, 0.5))
    if of_b.is_long:
        t = select(bb > 0.0, _part((ab * s + bw) / bb), 0.0)
    if of_a.is_long:
        s = select(aa > 0.0, _part((ab * t - aw) / aa), 0.0)
    return s, t


def _parallel(x: Number) -> Number:
    """Return the square of the sine below which segments are parallel."""
    return by_precision(x, double=1e-12, single=1e-6)


def _part(x: Number) -> Number:
    return select(x > 0.0, select(x < 1.0, x, 1.0), 0.0)


def _step(
    a: tuple[Segment, Number], b: tuple[Segment, Number], d: Vector3
) -> tuple[Vector3, Number]:
    """Return the step e of the normal across it, and how long it is.

    a: The segment of A, and where on it the nearest point is.
    b: The same of B.
    """
    (of_a, s), (of_b, t) = a, b
    v = subtract(of_a.at(s), of_b.at(t))
    x, y = across(d)

    def flat(w: Vector3) -> tuple[Number, Number]:
        return dot(w, x), dot(w, y)

    # In the plane across d: (H + |v|) e = -v, with the entries h of a matrix. Where
    # v is about across d, half of |v| keeps the step of a corner within a tangent of 2:
    # a longer one would be cut, and with it what turns d about a rim.
    g1, g2 = flat(v)
    h11: Number = maximum(0.0 - dot(v, d), 0.5 * norm(v))
    h12, h22 = 0.0, h11
    for segment, part in (a, b):
        for tangent, first, last in segment.bends:
            k = first + part * (last - first)
            t1, t2 = flat(tangent)
            h11, h12, h22 = h11 + k * t1 * t1, h12 + k * t1 * t2, h22 + k * t2 * t2
    factor = 1.0 / (h11 * h22 - h12 * h12)
    e = factor * (h12 * g2 - h22 * g1), factor * (h12 * g1 - h11 * g2)

    # With p inside of its segment a, e is across that: r + u m, where m is across a in
    # the plane, and r = -(a . d) a / |a|^2 turns d across a.
    is_inside: Any = True
    lines: list[tuple[Number, Number, Number]] = []
    for segment, part in (b, a):
        if not segment.is_long:
            continue
        (s1, s2), off = flat(segment.along), dot(segment.along, d)
        lines.append((s1, s2, off))
        factor = (0.0 - off) / (s1 * s1 + s2 * s2)
        r1, r2 = factor * s1, factor * s2
        slope = (g1 + h11 * r1 + h12 * r2) * s2 - (g2 + h12 * r1 + h22 * r2) * s1
        u = slope / (h11 * s2 * s2 - 2.0 * h12 * s1 * s2 + h22 * s1 * s1)
        truth = (part > 0.0) & (part < 1.0)
        e = choose(truth, (r1 - u * s2, r2 + u * s1), e)
        is_inside = truth & is_inside

    # With both inside e turns d across both.
    if len(lines) == 2:
        (a1, a2, off_a), (b1, b2, off_b) = lines
        area = a1 * b2 - a2 * b1
        square = (a1 * a1 + a2 * a2) * (b1 * b1 + b2 * b2)
        is_crossing = area * area > _parallel(square) * square
        both = (off_b * a2 - off_a * b2) / area, (off_a * b1 - off_b * a1) / area
        e = choose(is_inside & is_crossing, both, e)
    e1, e2 = e
    size = sqrt(e1 * e1 + e2 * e2)
    factor = select(size > LONGEST, LONGEST / size, 1.0)
    return add(scale(factor * e1, x), scale(factor * e2, y)), size
