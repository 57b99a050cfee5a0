"""Distance of capsules from capsules, boxes and lozenges: of segments along z."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from armillary.collision.distance.axes import Gap, Widest, widest
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
    cross,
    dot,
    norm,
    scale,
    subtract,
    three,
)
from armillary.trace.functions import absolute, by_precision, maximum, select, sqrt

X_AXIS: Vector3 = (1.0, 0.0, 0.0)
Z_AXIS: Vector3 = (0.0, 0.0, 1.0)


def capsule_capsule(a: Any, b: Any, X: Pose) -> Separation:
    """Return the distance of two segments, of which that of A is along its z."""
    return segment_segment(Z_AXIS, 0.5 * a.length, X.position, _axis(X), 0.5 * b.length)


def segment_segment(
    unit_a: Vector3, half_a: Number, p: Vector3, unit_b: Vector3, half_b: Number
) -> Separation:
    """Return the distance of two segments, s z and p + t u.

    The best s for a free t, then the best t in its range, then the best s in its range
    (Ericson, Real-Time Collision Detection, 5.1.9). 1 - (z . u)^2 is taken as
    |z x u|^2, so that no digits cancel where they are nearly parallel.

    Args:
        unit_a: The direction z of the first one, a unit vector; its middle is 0.
        half_a: Half of its length.
        p: The middle of the second one.
        unit_b: Its direction u.
        half_b: Half of its length.
    """
    # |p + t u - s z|^2 has its minimum, for free s and t, where both derivatives
    # vanish: s = z . p + (z . u) t, and t = (z . u) s - p . u. So s (1 - (z . u)^2) is
    # z . p - (z . u) (p . u), solved below in terms of z x p and z x u; parallel
    # segments, where `flat` is 0, may take any s.
    z, u = unit_a, unit_b
    across, along, turned = _across(u, z), dot(z, p), dot(z, u)
    flat = dot(across, across)
    least = by_precision(flat, double=1e-30, single=1e-14)
    free = along - turned * dot(_across(p, z), across) / maximum(flat, least)
    s = clamp(free, half_a)
    t = clamp(turned * s - dot(p, u), half_b)
    s = clamp(turned * t + along, half_a)
    # Segments that cross have no direction between them: z x u is across both.
    on_a, on_b = scale(s, z), add(p, scale(t, u))
    d = subtract(on_b, on_a)
    crossed = direction(cross(z, u), 0.0, X_AXIS)
    normal = direction(d, half_a + half_b, crossed)
    return Separation(norm(d), on_a, on_b, normal)


def _across(v: Vector3, z: Vector3) -> Vector3:
    """Return z x v with its entries in another order, for products of two of them.

    For z = (0, 0, 1) they are (v_x, v_y, 0), of which no operation is left.
    """
    x, y, w = cross(z, v)
    return y, 0.0 - x, w


def box_capsule(a: Any, b: Any, X: Pose) -> Separation:
    """Return the distance of a segment from a box."""
    return _slab_capsule([0.5 * length for length in a.size], b, X)


def lozenge_capsule(a: Any, b: Any, X: Pose) -> Separation:
    """Return the distance of a segment from a rectangle."""
    return _slab_capsule([0.5 * a.size[0], 0.5 * a.size[1], 0.0], b, X)


def _slab_capsule(half: Sequence[Number], b: Any, X: Pose) -> Separation:
    return slab_segment(half, X.position, _axis(X), 0.5 * b.length)


def slab_segment(
    half: Sequence[Number], p: Vector3, unit: Vector3, length: Number
) -> Separation:
    """Return the distance of a segment from a box, |x_k| <= half_k.

    Where they overlap, the segment is moved out along the least depth, and touches.

    Args:
        half: Half of the sides of the box.
        p: The middle of the segment.
        unit: Its direction, a unit vector.
        length: Half of its length.
    """
    # `depth` is the widest gap along an axis: below 0, minus the depth. The segment is
    # moved out by as much before its nearest points are computed, and these back after.
    u = scale(length, unit)
    depth, axis = _segment_axes(p, unit, length, half)
    moved = add(p, scale(maximum(0.0 - depth, 0.0), axis))
    _, near, on_b = segment_slab(moved, u, half)
    d = subtract(on_b, near)
    square, *_ = segment_slab(p, u, half)
    value = select(depth > 0.0, sqrt(square), depth)
    away = direction(d, sum(half, 0.0) + length, axis)
    normal = choose(depth > 0.0, away, axis)
    back = scale(maximum(0.0 - depth, 0.0), axis)
    return Separation(value, near, subtract(on_b, back), normal)


def segment_slab(
    p: Vector3, u: Vector3, half: Sequence[Number]
) -> tuple[Number, Vector3, Vector3]:
    """Return how near p + t u, t in [-1, 1], comes to |x_k| <= half_k.

    The derivative of the squared distance by t rises, and is linear between those t
    where a coordinate passes a face. The last t at which it is not above 0 and the
    first at which it is are next to its zero.

    Returns:
        The squared distance, the nearest point of the box, and that of the segment.
    """
    # With x = p + t u and e = x - clamp(x), half the derivative of |e|^2 is u . e. At a
    # t where coordinate k passes a face, e_k is 0, so that only the others count.
    low, high = -1.0, 1.0
    for k in range(3):
        # Below this, a coordinate is the same for all t.
        least = by_precision(u[k], double=1e-30, single=1e-15)
        inverse = 1.0 / select(absolute(u[k]) < least, least, u[k])
        for face in (half[k], 0.0 - half[k]):
            t = (face - p[k]) * inverse
            others = [j for j in range(3) if j != k]
            beyond = {j: _beyond(p[j] + t * u[j], half[j]) for j in others}
            is_low = sum((u[j] * beyond[j] for j in others), 0.0) <= 0.0
            low = _larger(low, select(is_low, t, low))
            high = _smaller(high, select(is_low, high, t))
    # Between both, u . e = slope + rise (t - middle) is linear, and one step of Newton
    # from the middle is exact. Its rise counts the coordinates that are beyond a face.
    middle = 0.5 * (low + high)
    out = [_beyond(x + middle * e, h) for x, e, h in zip(p, u, half, strict=True)]
    slope = sum((e * d for e, d in zip(u, out, strict=True)), 0.0)
    rise = sum((select(d == 0.0, 0.0, e * e) for e, d in zip(u, out, strict=True)), 0.0)
    t = middle - slope / select(rise > 0.0, rise, 1.0)
    t = clamp(_smaller(_larger(t, low), high), 1.0)
    on_segment = add(p, scale(t, u))
    near = three([clamp(x, h) for x, h in zip(on_segment, half, strict=True)])
    d = subtract(on_segment, near)
    return dot(d, d), near, on_segment


def _beyond(x: Number, half: Number) -> Number:
    """Return how far `x` is from [-half, half], with its sign."""
    return x - clamp(x, half)


def _larger(x: Number, y: Number) -> Number:
    return select(x > y, x, y)


def _smaller(x: Number, y: Number) -> Number:
    return select(x < y, x, y)


def _segment_axes(
    p: Vector3, u: Vector3, length: Number, half: Sequence[Number]
) -> Gap:
    """Return the largest separation of a segment from a box along an axis, and that.

    Axes are normals of faces and products of edges with the segment; below 0 it is
    minus the depth (Gottschalk, Lin and Manocha, OBBTree, 1996).

    Args:
        p: The middle of the segment.
        u: Its direction, a unit vector.
        length: Half of its length.
        half: Of the box.
    """
    # Along x_k the segment reaches length |u_k| to both sides of p, the box half_k.
    faces: list[Gap] = []
    for k in range(3):
        gap = absolute(p[k]) - half[k] - length * absolute(u[k])
        sign = select(p[k] < 0.0, -1.0, 1.0)
        faces.append((gap, three([sign if j == k else 0.0 for j in range(3)])))
    # Across x_k and u, w = u x x_k = (u_j, -u_i) in the plane of x_i and x_j: along it
    # the segment is a point, and the box reaches half_i |u_j| + half_j |u_i|.
    edges = Widest()
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        along = p[i] * u[j] - p[j] * u[i]
        reach = half[i] * absolute(u[j]) + half[j] * absolute(u[i])
        entries = {i: u[j], j: 0.0 - u[i], k: 0.0}
        square = u[i] * u[i] + u[j] * u[j]
        edges.offer(along, reach, square, three([entries[m] for m in range(3)]))
    return widest(faces, [edges.found])


def _axis(X: Pose) -> Vector3:
    """Return z of B in A."""
    return X.rotation[0][2], X.rotation[1][2], X.rotation[2][2]
