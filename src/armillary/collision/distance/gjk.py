"""Distance of any two convex bodies by iteration on points of their difference A - B.

The distance is that of the origin from A - B. A simplex of its points comes nearer
until the plane through its nearest point v, across v, has nothing of A - B before it
(Gilbert, Johnson and Keerthi, 1988). That plane proves the distance: for the farthest
point w against v, v . w / |v| <= distance <= |v|.
"""

from __future__ import annotations

import math
from typing import Any, Final

from armillary.collision.distance.separation import choose
from armillary.collision.distance.simplex import nearest_of
from armillary.collision.distance.support import support_of
from armillary.kernel.pipeline import Stage, While
from armillary.model.primitive import Primitive
from armillary.spatial.pose import Pose
from armillary.spatial.vector import (
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
from armillary.trace import Program, trace
from armillary.trace.functions import by_precision, maximum, select, sqrt

__all__ = ["gjk_stages"]

LIMIT: Final = 64
"""Most iterations; hulls take about 6, round bodies 15."""

STATE: Final = {
    "v": (3,),  # nearest to the origin of what is known of A - B
    "simplex": (3, 3),  # points of A - B around v
    "tip": (3,),  # the last point; with the simplex around the origin if inside
    "last": (3,),  # v before, which is longer
    "lower": (),  # the distance is proven not to be below,
    "proof": (3,),  # by the plane across this
    "extent": (),  # size of the numbers that v is a difference of
    "open": (),  # above 0 as long as it goes on, 1 before the first step
    "inside": (),  # 1 where the origin is inside the simplex with the tip
}
SOURCES: Final = {
    "simplex_a": (3, 3),  # points of A that those of the simplex come from
    "on_a": (3,),  # the point of A that v comes from
}
ENOUGH: Final[dict[str, tuple[int, ...]]] = {"enough": ()}  # the last input of a step


def gjk_stages(
    a: Primitive, b: Primitive, *, is_full: bool, has_distance: bool = True
) -> tuple[Stage, ...]:
    """Return stages from the pose X of `b` in `a` to the columns of `STATE`.

    The column `first` is what the first direction is against, any but 0; `is_full` adds
    the points on A. Without distance it ends when bodies are proven to be farther apart
    than the column `enough`.
    """
    state = {**STATE, **SOURCES} if is_full else STATE
    begin = trace(_begin(is_full), name="begin", outputs=tuple(state), first=(3,))
    step = trace(
        _step(is_full, has_distance),
        name="step",
        outputs=tuple(state),
        X=(3, 4),
        point_a=(3,),
        point_b=(3,),
        **state,
        **({} if has_distance else ENOUGH),
    )
    search = (aim("v"), *support_of(a, "a"), *support_of(b, "b"), step)
    return begin, While("open", search, LIMIT)


def aim(column: str) -> Program:
    """Return the directions in which A and B are searched: A - B against a column."""
    return trace(_aim, name="aim", outputs=("to_a", "to_b"), X=(3, 4), **{column: (3,)})


def _aim(X: Any, v: Any) -> Any:
    rotation = Pose.from_matrix(X).rotation
    return negate(three(v)), apply(transpose(rotation), three(v))


def difference(X: Any, point_a: Any, point_b: Any) -> Vector3:
    """Return a point of A - B, from a point in each body's frame."""
    return subtract(three(point_a), Pose.from_matrix(X) @ three(point_b))


def _begin(is_full: bool) -> Any:
    def begin(first: Any) -> Any:
        first = three(first)
        nothing = [[math.nan] * 3] * 3
        zeros = (0.0, 0.0, 0.0)
        found = first, nothing, zeros, first, -math.inf, first, 0.0, 1.0, 0.0
        return (*found, nothing, zeros) if is_full else found

    return begin


def _step(is_full: bool, has_distance: bool) -> Any:
    def step(X: Any, point_a: Any, point_b: Any, v: Any, *state: Any) -> Any:
        simplex, _tip, last, lower, proof, extent, is_open, _, *others = state
        v, point_a = three(v), three(point_a)
        w = difference(X, point_a, point_b)
        square, along = dot(v, v), dot(v, w)
        bound = along / sqrt(square)
        proof = choose(bound > lower, v, proof)
        lower = maximum(lower, bound)
        is_first = is_open == 1.0
        near = by_precision(square, double=1e-11, single=1e-5)
        is_near = ~is_first & (square - along <= near * square)
        old = [three(point) for point in simplex]
        found = nearest_of(w, old)
        # Below this, v is the rounding of the points that it is a difference of.
        noise = by_precision(square, double=1e-14, single=1e-6)
        extent = maximum(extent, norm(point_a) + norm(w))
        rounding = noise * extent
        is_touching = ~found.is_inside & (found.square <= rounding * rounding)
        is_better = is_first | (found.square < square)
        ends = is_near | is_touching | found.is_inside
        if not has_distance:
            ends |= lower > others[-1] + rounding
        # Four steps in a row may gain nothing: rounding hides what the last ones will.
        open_next = select(is_better, 0.5, is_open - 0.125)
        equal = by_precision(square, double=1.0 + 1e-15, single=1.0 + 5e-7) * square
        is_new = (is_first | (found.square <= equal)) & ~(is_near | found.is_inside)
        simplex = [
            choose(is_new & ~kept, w, point)
            for kept, point in zip(found.kept, old, strict=True)
        ]
        result = (
            choose(is_new, found.point, v),
            simplex,
            w,
            choose(is_new, v, last),
            lower,
            proof,
            extent,
            select(ends, 0.0, open_next),
            select(found.is_inside & ~is_near, 1.0, 0.0),
        )
        if not is_full:
            return result
        simplex_a, on_a = [three(point) for point in others[0]], three(others[1])
        point = scale(1.0 - sum(found.weights, 0.0), point_a)
        for weight, source in zip(found.weights, simplex_a, strict=True):
            used = choose(weight == 0.0, (0.0, 0.0, 0.0), source)  # absent ones are NaN
            point = add(point, scale(weight, used))
        simplex_a = [
            choose(is_new & ~kept, point_a, source)
            for kept, source in zip(found.kept, simplex_a, strict=True)
        ]
        return *result, simplex_a, choose(is_new, point, on_a)

    return step
