"""Separation of any two convex bodies, known only by their farthest points.

Most pairs are apart, and the first search proves it. If it finds the origin inside of
A - B, or ends on the origin, the depth follows.
"""

from __future__ import annotations

from typing import Any, Final

from armillary.collision.distance.depth import depth_stages
from armillary.collision.distance.gjk import STATE, gjk_stages
from armillary.collision.distance.separation import choose, direction
from armillary.collision.distance.sizes import with_numbers
from armillary.collision.distance.support import sizes_of
from armillary.kernel.pipeline import Stage, When
from armillary.model.primitive import Primitive
from armillary.spatial.vector import (
    Vector3,
    add,
    dot,
    negate,
    norm,
    scale,
    three,
)
from armillary.trace import Program, trace
from armillary.trace.functions import by_precision, maximum, select

__all__ = ["convex_stages"]

ANOTHER: Final[Vector3] = (0.2673, 0.9134, 0.3071)
"""A direction that no edge or face of a model is likely to have."""

VECTOR: Final = (3,)
PLACE: Final = {"X": (3, 4), "first": VECTOR}
RESULT: Final = {"value": (), "gap": (), "normal": VECTOR}


def convex_stages(
    a: Primitive, b: Primitive, *, is_full: bool, has_depth: bool, has_distance: bool
) -> tuple[Stage, ...]:
    """Return stages from the pose X of `b` in `a` to the separation of their cores.

    Without depth the value is 0 unless the bodies are proven to be apart; then without
    distance it is not above that.
    """
    search = gjk_stages(a, b, is_full=is_full, has_distance=has_depth or has_distance)
    first = trace(_first, name="first", outputs=("first",), X=(3, 4))
    left = {name: STATE[name] for name in ("v", "lower", "extent", "inside")}
    if not has_depth:
        value = trace(_proven(has_distance), name="proven", outputs=("value",), **left)
        return first, _radii(a, b), *search, value
    apart = trace(_apart, name="apart", outputs=(*RESULT, "meets"), **left)
    found = {"depth": (), "axis": VECTOR, "least": ()}
    meet = trace(_meet, name="meet", outputs=tuple(RESULT), **found)
    overlap = (*depth_stages(a, b), meet)
    if not is_full:
        return first, *search, apart, When("meets", overlap)
    out = trace(
        _moved_out,
        name="moved_out",
        outputs=("X", "first"),
        X=(3, 4),
        depth=(),
        axis=VECTOR,
        extent=(),
    )
    other = trace(
        _other, name="other", outputs=("on_b",), on_a=VECTOR, value=(), normal=VECTOR
    )
    return first, *search, apart, When("meets", (*overlap, out, *search)), other


def _first(X: Any) -> Any:
    """Return about the position of A from B, in a general direction."""
    back = negate(three(X[:, 3]))
    aside = add(back, scale(0.01 * norm(back), ANOTHER))
    return choose(dot(aside, aside) > 0.0, aside, ANOTHER)


def _radii(a: Primitive, b: Primitive) -> Program:
    """Return the program that adds the radii around the cores of two shapes."""
    sizes = {**sizes_of(a, "a"), **sizes_of(b, "b")}

    def enough(X: Any, *numbers: Any) -> Any:
        given = dict(zip(sizes, numbers, strict=True))
        both = (with_numbers(s, given.get(k, ())) for k, s in (("a", a), ("b", b)))
        return sum((shape.rounding for shape in both), 0.0)

    return trace(enough, name="radii", outputs=("enough",), X=(3, 4), **sizes)


def _apart(v: Any, lower: Any, extent: Any, inside: Any) -> Any:
    """Return distance, what is not proven of it, and the normal; and if bodies meet."""
    v = three(v)
    distance = norm(v)
    normal = direction(negate(v), 0.0, (0.0, 0.0, 1.0))
    gap = maximum(distance - maximum(lower, 0.0), 0.0)
    rounding = by_precision(distance, double=1e-9, single=1e-5) * extent
    is_unproven = (distance >= 0.0) & (lower <= 0.0)
    is_doubtful = (distance <= rounding) | is_unproven
    return distance, gap, normal, select(is_doubtful, 1.0, inside)


def _proven(has_distance: bool) -> Any:
    def proven(v: Any, lower: Any, extent: Any, inside: Any) -> Any:
        """Return what is proven: 0 if bodies may touch, below 0 if they overlap."""
        rounding = by_precision(lower, double=1e-15, single=1e-6) * extent
        distance = norm(three(v))
        at_most = select(distance >= 0.0, 0.0 - inside * extent, distance)  # or NaN
        return select(lower > rounding, distance if has_distance else lower, at_most)

    return proven


def _meet(depth: Any, axis: Any, least: Any) -> Any:
    return 0.0 - depth, depth - least, axis


def _moved_out(X: Any, depth: Any, axis: Any, extent: Any) -> Any:
    """Return the pose of B moved along the axis until it is just free of A."""
    just = by_precision(depth, double=1e-9, single=1e-4) * extent
    axis = three(axis)
    return _moved(X, scale(depth + just, axis)), negate(axis)


def _moved(X: Any, step: Vector3) -> Any:
    rows = [list(X[k]) for k in range(3)]
    for row, distance in zip(rows, step, strict=True):
        row[3] = row[3] + distance
    return rows


def _other(on_a: Any, value: Any, normal: Any) -> Any:
    return add(three(on_a), scale(value, three(normal)))
