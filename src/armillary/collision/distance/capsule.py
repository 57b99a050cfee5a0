"""Distance of capsules from capsules, boxes and lozenges: of segments along z."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from armillary.collision.distance.separation import (
    Separation,
    choose,
    clamp,
    direction,
)
from armillary.spatial.pose import Pose
from armillary.spatial.vector import (
    Number,
    Vector3,
    add,
    dot,
    norm,
    scale,
    subtract,
    three,
)
from armillary.trace.functions import absolute, by_precision, maximum, select, sqrt

X_AXIS: Vector3 = (1.0, 0.0, 0.0)


def capsule_capsule(a: Any, b: Any, X: Pose) -> Separation:
    """Return the distance of two segments, s z and p + t u.

    The best s for a free t, then the best t in its range, then the best s in its range
    (Ericson, Real-Time Collision Detection, 5.1.9). With z . u = u_z, 1 - u_z^2 is
    taken as u_x^2 + u_y^2, so that no digits cancel where they are nearly parallel.
    """
    half_a, half_b = 0.5 * a.length, 0.5 * b.length
    p, u = X.position, _axis(X)
    flat = u[0] * u[0] + u[1] * u[1]
    least = by_precision(flat, double=1e-30, single=1e-14)
    s = clamp(p[2] - u[2] * (p[0] * u[0] + p[1] * u[1]) / maximum(flat, least), half_a)
    t = clamp(u[2] * s - dot(p, u), half_b)
    s = clamp(u[2] * t + p[2], half_a)
    on_a, on_b = (0.0, 0.0, s), add(p, scale(t, u))
    d = subtract(on_b, on_a)
    crossed = direction((0.0 - u[1], u[0], 0.0), 0.0, X_AXIS)
    normal = direction(d, half_a + half_b, crossed)
    return Separation(norm(d), on_a, on_b, normal)


def box_capsule(a: Any, b: Any, X: Pose) -> Separation:
    """Return the distance of a segment from a box."""
    return _slab_capsule([0.5 * length for length in a.size], b, X)


def lozenge_capsule(a: Any, b: Any, X: Pose) -> Separation:
    """Return the distance of a segment from a rectangle."""
    return _slab_capsule([0.5 * a.size[0], 0.5 * a.size[1], 0.0], b, X)


def _slab_capsule(half: Sequence[Number], b: Any, X: Pose) -> Separation:
    """Return the distance of a segment p + t u from a box.

    Where they overlap, the segment is moved out along the least depth, and touches.
    """
    p, u = X.position, scale(0.5 * b.length, _axis(X))
    depth, axis = _segment_axes(p, u, half)
    moved = add(p, scale(maximum(0.0 - depth, 0.0), axis))
    _, near, on_b = segment_slab(moved, u, half)
    d = subtract(on_b, near)
    square, *_ = segment_slab(p, u, half)
    value = select(depth > 0.0, sqrt(square), depth)
    away = direction(d, sum(half, 0.0) + 0.5 * b.length, axis)
    normal = choose(depth > 0.0, away, axis)
    back = scale(maximum(0.0 - depth, 0.0), axis)
    return Separation(value, near, subtract(on_b, back), normal)


def segment_slab(
    p: Vector3, u: Vector3, half: Sequence[Number]
) -> tuple[Number, Vector3, Vector3]:
    """Return how near p + t u, t in [-1, 1], comes to |x_k| <= half_k.

    The derivative of the squared distance by t rises, and is linear between those t
    where a coordinate passes a face; its zero is found between two of them.

    Returns:
        The squared distance, the nearest point of the box, and that of the segment.
    """

    def slope(t: Number) -> Number:
        at = add(p, scale(t, u))
        return sum(
            (e * (y - clamp(y, h)) for e, y, h in zip(u, at, half, strict=True)), 0.0
        )

    low, high = -1.0, 1.0
    slope_low, slope_high = slope(low), slope(high)
    first, last = slope_low, slope_high
    for x, e, h in zip(p, u, half, strict=True):
        smallest = by_precision(e, double=1e-280, single=1e-36)
        inverse = 1.0 / select(absolute(e) < smallest, smallest, e)
        for face in (h, 0.0 - h):
            t = clamp((face - x) * inverse, 1.0)
            rate = slope(t)
            is_low, is_high = (rate <= 0.0) & (t >= low), (rate > 0.0) & (t <= high)
            low, slope_low = choose(is_low, (t, rate), (low, slope_low))
            high, slope_high = choose(is_high, (t, rate), (high, slope_high))
    rise = slope_high - slope_low
    t = low - slope_low * (high - low) / select(rise > 0.0, rise, 1.0)
    t = select(first >= 0.0, -1.0, select(last <= 0.0, 1.0, clamp(t, 1.0)))
    on_segment = add(p, scale(t, u))
    near = three([clamp(x, h) for x, h in zip(on_segment, half, strict=True)])
    d = subtract(on_segment, near)
    return dot(d, d), near, on_segment


def _segment_axes(
    p: Vector3, u: Vector3, half: Sequence[Number]
) -> tuple[Number, Vector3]:
    """Return the largest separation p + t u from a box along an axis, and the axis.

    Axes are normals of faces and products of edges with the segment; below 0 it is
    minus the depth (Gottschalk, Lin and Manocha, OBBTree, 1996).
    """
    best, axis = None, X_AXIS
    for k in range(3):
        gap = absolute(p[k]) - half[k] - absolute(u[k])
        sign = select(p[k] < 0.0, -1.0, 1.0)
        unit = three([sign if j == k else 0.0 for j in range(3)])
        axis = unit if best is None else choose(gap > best, unit, axis)
        best = gap if best is None else maximum(gap, best)
    square = dot(u, u)
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        flat = u[i] * u[i] + u[j] * u[j]
        is_good = flat > by_precision(flat, double=1e-24, single=1e-10) * square
        along = p[i] * u[j] - p[j] * u[i]
        factor = 1.0 / sqrt(select(is_good, flat, 1.0))
        sign = select(along < 0.0, 0.0 - factor, factor)
        reach = half[i] * absolute(u[j]) + half[j] * absolute(u[i])
        gap = select(is_good, (absolute(along) - reach) * factor, best)
        entries = {i: sign * u[j], j: 0.0 - sign * u[i], k: 0.0}
        axis = choose(gap > best, [entries[m] for m in range(3)], axis)
        best = maximum(gap, best)
    return best, axis


def _axis(X: Pose) -> Vector3:
    """Return z of B in A."""
    return X.rotation[0][2], X.rotation[1][2], X.rotation[2][2]
