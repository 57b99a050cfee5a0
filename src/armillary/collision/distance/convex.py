"""Separation of any two convex bodies, known only by their farthest points."""

from __future__ import annotations

from typing import Any

from armillary.collision.distance.depth import depth_stages
from armillary.collision.distance.gjk import STATE, gjk_stages
from armillary.collision.distance.separation import choose, direction
from armillary.kernel.pipeline import Stage, When
from armillary.model.primitive import Primitive
from armillary.spatial.vector import (
    add,
    cross,
    dot,
    negate,
    norm,
    scale,
    subtract,
    three,
)
from armillary.trace import trace
from armillary.trace.functions import by_precision, maximum, select

__all__ = ["convex_stages"]


def convex_stages(a: Primitive, b: Primitive, *, is_full: bool) -> tuple[Stage, ...]:
    """Return stages from the pose X of `b` in `a` to the separation of their cores."""
    search = gjk_stages(a, b, is_full=is_full)
    apart = trace(
        _apart,
        name="apart",
        outputs=("value", "gap", "normal"),
        **{name: STATE[name] for name in ("v", "simplex", "last", "lower", "extent")},
    )
    deep = trace(
        _deep,
        name="deep",
        outputs=("value", "gap", "normal"),
        depth=(),
        axis=(3,),
    )
    overlap: tuple[Stage, ...] = (*depth_stages(a, b), deep)
    if is_full:  # the nearest points after B is moved out
        out = trace(
            _moved_out,
            name="moved_out",
            outputs=("X",),
            X=(3, 4),
            depth=(),
            axis=(3,),
            extent=(),
        )
        overlap = (*overlap, out, *search)
    stages: tuple[Stage, ...] = (*search, apart, When("inside", overlap))
    if not is_full:
        return stages
    other = trace(
        _other,
        name="other",
        outputs=("on_b",),
        on_a=(3,),
        value=(),
        normal=(3,),
    )
    return *stages, other


def _apart(v: Any, simplex: Any, last: Any, lower: Any, extent: Any) -> Any:
    """Return distance, what is not proven of it, and the normal.

    Where v is only rounding, the bodies touch: the normal is that of the simplex.
    """
    v, last = three(v), three(last)
    distance = norm(v)
    p, q, r = (three(point) for point in simplex)
    across = cross(subtract(q, p), subtract(r, p))
    across = scale(select(dot(across, last) > 0.0, -1.0, 1.0), across)
    before = direction(negate(last), 0.0, (0.0, 0.0, 1.0))
    is_there = dot(across, across) > 0.0  # not where a corner is absent
    face = choose(is_there, direction(across, 0.0, before), before)
    normal = direction(negate(v), extent, face)
    gap = maximum(distance - maximum(lower, 0.0), 0.0)
    return distance, gap, normal


def _deep(depth: Any, axis: Any) -> Any:
    return 0.0 - depth, depth, axis


def _other(on_a: Any, value: Any, normal: Any) -> Any:
    return add(three(on_a), scale(value, three(normal)))


def _moved_out(X: Any, depth: Any, axis: Any, extent: Any) -> Any:
    """Return the pose of B moved along the axis until it is just free of A."""
    just = by_precision(depth, double=1e-9, single=1e-4) * extent
    step = scale(depth + just, three(axis))
    rows = [list(X[k]) for k in range(3)]
    for k in range(3):
        rows[k][3] = rows[k][3] + step[k]
    return rows
