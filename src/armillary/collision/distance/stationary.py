"""Least widths of round bodies: where the width of A - B is stationary.

The width h(d) = max w . d of A - B is least, among directions d near by, in one of
three kinds of places. Its gradient, the farthest point w without its part along d,
jumps where the farthest point jumps along an edge or a side of a body: there h has a
crease. Creases of boxes, cylinders and cones are circles of directions, l . d = s. So
h is least

- where two creases cross, or at the axis of a disc: A - B has a face there, and d is
  known in closed form;
- on one crease, with w . t = 0 along its tangent t;
- on none, with no part of w across d.

Newton's method finds the last two to rounding from where a polytope has proven the
width (`depth.py`). It may find another least width than that near which it begins, or
none: widths are compared.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

from armillary.collision.distance.columns import NEWTON_TABLE, PairColumns
from armillary.collision.distance.creases import (
    AXES,
    FLAT,
    ROUND,
    Crease,
    across,
    corners_of,
    creases_of,
    crossings,
    onto,
    unit,
)
from armillary.collision.distance.separation import choose
from armillary.collision.distance.sizes import with_numbers
from armillary.kernel.columns import each
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
from armillary.trace.functions import absolute, by_precision, maximum, select, sqrt

__all__ = ["face_stage", "newton_stages"]

LONGEST: Final = 0.3
"""Longest step, as a tangent."""

Z_AXIS: Final[Vector3] = (0.0, 0.0, 1.0)


def newton_stages(columns: PairColumns) -> tuple[Stage, ...]:
    """Return stages that improve `depth` and `axis`; none for other kinds of shapes."""
    if not _is_known(columns):
        return ()
    pair, stage = Pair(columns), columns.stage
    numbers: Any = columns.numbers
    return (
        stage(pair.began, writes=columns.trials, **numbers),
        each(
            NEWTON_TABLE,
            stage(pair.moved, writes=columns.trials, **numbers),
        ),
        stage(pair.taken, **numbers),
    )


def face_stage(columns: PairColumns) -> tuple[Stage, ...]:
    """Return the stage that compares `depth` with the widths across faces of A - B."""
    if not _is_known(columns):
        return ()
    numbers: Any = columns.numbers
    return (columns.stage(Pair(columns).faces, **numbers),)


def _is_known(columns: PairColumns) -> bool:
    return all(type(shape) in AXES for shape in columns.shapes)


class Least(NamedTuple):
    """The least width so far."""

    depth: Number
    axis: Vector


Widths: TypeAlias = Callable[[Vector3], Vector3]
"""The farthest point of A - B in a direction."""


class Pair:
    """The formulas of two shapes."""

    def __init__(self, columns: PairColumns) -> None:
        """Set the shapes."""
        self._shapes = columns.shapes

    def faces(
        self,
        X: Matrix,
        extent: Number,
        depth: Number,
        axis: Vector,
        a: Vector = (),
        b: Vector = (),
    ) -> Least:
        """Return the least width, also of directions across faces."""
        least = _Comparison(self.farthest(X, a, b), extent, depth, axis)
        pose = Pose.from_matrix(X)
        axes = Z_AXIS, apply(pose.rotation, Z_AXIS)
        for shape, towards in zip(self._shapes, axes, strict=True):
            if isinstance(shape, ROUND):
                least.offer(towards)
                least.offer(negate(towards))
        # On the crease of a round body h is least against a corner of the other one.
        of_a, of_b = self.creases(X, a, b)
        shape_a, shape_b = self._shapes
        if isinstance(shape_a, FLAT):
            for corner in corners_of(with_numbers(shape_a, a)):
                for crease in of_b:
                    least.offer(onto(crease, subtract(pose.position, corner)))
        if isinstance(shape_b, FLAT):
            for corner in corners_of(with_numbers(shape_b, b)):
                for crease in of_a:
                    least.offer(onto(crease, pose @ corner))
        creases = [*of_a, *of_b]
        for k, crease in enumerate(creases):
            for other in creases[:k]:
                for crossing in crossings(crease, other):
                    least.offer(crossing)
        return least.found

    def began(
        self, X: Matrix, axis: Vector, a: Vector = (), b: Vector = ()
    ) -> list[Vector3]:
        """Return where Newton's method begins: at the axis and beside it on creases."""
        creases = list(itertools.chain(*self.creases(X, a, b)))
        return [three(axis), *(onto(crease, three(axis)) for crease in creases)]

    def moved(
        self, X: Matrix, trials: Matrix, a: Vector = (), b: Vector = ()
    ) -> list[Vector3]:
        """Return the directions after a step."""
        farthest = self.farthest(X, a, b)
        free, *bound = map(three, trials)
        creases = list(itertools.chain(*self.creases(X, a, b)))
        steps = zip(creases, bound, strict=True)
        return [_newton(farthest, free)] + [_slid(farthest, *each) for each in steps]

    def taken(
        self,
        X: Matrix,
        extent: Number,
        trials: Matrix,
        depth: Number,
        axis: Vector,
        a: Vector = (),
        b: Vector = (),
    ) -> Least:
        """Return the least width, also of those directions."""
        least = _Comparison(self.farthest(X, a, b), extent, depth, axis)
        for trial in trials:
            least.offer(three(trial))
        return least.found

    def creases(
        self, X: Matrix, a: Vector, b: Vector
    ) -> tuple[list[Crease], list[Crease]]:
        """Return the creases of A - B that are those of A, and those of B."""
        rotation = Pose.from_matrix(X).rotation
        shape_a, shape_b = self._shapes
        of_a = creases_of(with_numbers(shape_a, a))
        of_b = creases_of(with_numbers(shape_b, b))
        # A - B reaches as far along d as B does along -d.
        turned = [Crease(negate(apply(rotation, axis)), sine) for axis, sine in of_b]
        return of_a, turned

    def farthest(self, X: Matrix, a: Vector, b: Vector) -> Widths:
        """Return the farthest point of A - B, as a function of the direction."""
        shape_a, shape_b = self._shapes
        body_a, body_b = with_numbers(shape_a, a), with_numbers(shape_b, b)
        pose = Pose.from_matrix(X)
        back = transpose(pose.rotation)

        def farthest(d: Vector3) -> Vector3:
            on_b = pose @ three(body_b.farthest(negate(apply(back, d))))
            return subtract(three(body_a.farthest(d)), on_b)

        return farthest


class _Comparison:
    """The least of some widths."""

    def __init__(
        self, farthest: Widths, extent: Number, depth: Number, axis: Vector
    ) -> None:
        self._farthest = farthest
        self._tiny = by_precision(depth, double=1e-13, single=1e-6) * extent
        self._depth, self._axis = depth, three(axis)

    def offer(self, d: Vector3) -> None:
        """Compare a unit vector; NaN is ignored."""
        width = dot(d, self._farthest(d))
        is_less = width < self._depth - self._tiny
        self._depth = select(is_less, width, self._depth)
        self._axis = choose(is_less, d, self._axis)

    @property
    def found(self) -> Least:
        return Least(self._depth, self._axis)


def _newton(farthest: Widths, d: Vector3) -> Vector3:
    """Return a direction after a step of Newton's method in the plane across it.

    There h(d + t) has the gradient w and a Hessian of differences of w, and the width
    is h(d + t) / |d + t|, with the Hessian less by h.
    """
    u, v = across(d)
    tiny = by_precision(d[0], double=1e-6, single=1e-3)
    w = farthest(d)
    along_u = scale(1.0 / tiny, subtract(farthest(add(d, scale(tiny, u))), w))
    along_v = scale(1.0 / tiny, subtract(farthest(add(d, scale(tiny, v))), w))
    width = dot(w, d)
    p, q = dot(w, u), dot(w, v)
    uu, vv = dot(along_u, u) - width, dot(along_v, v) - width
    uv = 0.5 * (dot(along_u, v) + dot(along_v, u))
    # The Hessian is made positive by a multiple of 1, where it is not.
    mean, half = 0.5 * (uu + vv), 0.5 * (uu - vv)
    more = maximum(_least_bend(width) - mean + sqrt(half * half + uv * uv), 0.0)
    uu, vv = uu + more, vv + more
    scaled = 1.0 / (uu * vv - uv * uv)
    s, t = (uv * q - vv * p) * scaled, (uv * p - uu * q) * scaled
    step = add(scale(s, u), scale(t, v))
    return unit(add(d, _short(step, norm(step))))


def _slid(farthest: Widths, crease: Crease, d: Vector3) -> Vector3:
    """Return a direction after a step of Newton's method along a crease."""
    axis, sine = crease
    middle = scale(sine, axis)
    aside = subtract(d, middle)
    tangent = unit(cross(axis, d))
    # Both points are taken on the same side of the crease.
    tiny = by_precision(d[0], double=1e-6, single=1e-3)
    nudge = scale(by_precision(d[0], double=1e-9, single=1e-5), axis)
    next_to = onto(crease, add(d, scale(tiny, tangent)))
    w = farthest(add(d, nudge))
    change = scale(1.0 / tiny, subtract(farthest(add(next_to, nudge)), w))
    slope = dot(w, tangent)
    bend = dot(change, tangent) - dot(w, aside) / dot(aside, aside)
    least = _least_bend(dot(w, d))
    step = scale(-slope / select(bend > least, bend, least), tangent)
    return onto(crease, add(d, _short(step, norm(step))))


def _least_bend(width: Number) -> Number:
    """Return the least second derivative that is more than rounding."""
    # Of nearly concentric bodies it is as small as their offset.
    return by_precision(width, double=1e-6, single=1e-2) * absolute(width)


def _short(step: Vector3, length: Number) -> Vector3:
    """Return a step, of the same direction and at most `LONGEST`; 0 if it is NaN."""
    factor = select(length > LONGEST, LONGEST / length, 1.0)
    return choose(length >= 0.0, scale(factor, step), (0.0, 0.0, 0.0))
