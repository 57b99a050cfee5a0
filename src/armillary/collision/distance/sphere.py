"""Distance of spheres from other shapes: of a centre p from the body A.

All bodies are convex, and p is either outside, where the nearest point q of A gives the
distance |p - q| and the normal (p - q) / |p - q|, or inside, where the depth is that of
the nearest face, and the normal that of the face. Both are computed, and `select` takes
one, since the rows of a batch are computed together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from armillary.collision.distance.separation import (
    Separation,
    choose,
    clamp,
    direction,
)
from armillary.model.shapes.tetrahedron import FACES
from armillary.spatial.pose import Pose
from armillary.spatial.vector import (
    Number,
    Vector3,
    add,
    cross,
    dot,
    negate,
    norm,
    scale,
    subtract,
)
from armillary.trace.functions import (
    absolute,
    by_precision,
    maximum,
    minimum,
    select,
    sqrt,
)

X_AXIS: Vector3 = (1.0, 0.0, 0.0)
Z_AXIS: Vector3 = (0.0, 0.0, 1.0)


def sphere_sphere(a: Any, b: Any, X: Pose) -> Separation:
    """Return the distance of two centres."""
    p = X.position
    return Separation(norm(p), (0.0, 0.0, 0.0), p, direction(p, 0.0, Z_AXIS))


def capsule_sphere(a: Any, b: Any, X: Pose) -> Separation:
    """Return the distance of a centre from a segment."""
    p = X.position
    near = 0.0, 0.0, clamp(p[2], 0.5 * a.length)
    d = subtract(p, near)
    return Separation(norm(d), near, p, direction(d, a.length, X_AXIS))


def box_sphere(a: Any, b: Any, X: Pose) -> Separation:
    """Return the distance of a centre from a box."""
    return _from_slab(X.position, [0.5 * length for length in a.size])


def lozenge_sphere(a: Any, b: Any, X: Pose) -> Separation:
    """Return the distance of a centre from a rectangle."""
    return _from_slab(X.position, [0.5 * a.size[0], 0.5 * a.size[1], 0.0])


def _from_slab(p: Vector3, half: Sequence[Number]) -> Separation:
    """Return the distance from |x| <= half_x, |y| <= half_y, |z| <= half_z."""
    # By how much p is beyond the faces of each axis. Inside all are below 0: the
    # largest is minus the depth. Outside, those above 0 are the sides of a right angle.
    beyond = [absolute(x) - h for x, h in zip(p, half, strict=True)]
    inside = maximum(maximum(beyond[0], beyond[1]), beyond[2])
    outside = [maximum(x, 0.0) for x in beyond]
    value = select(inside > 0.0, norm((outside[0], outside[1], outside[2])), inside)
    # The nearest face, for p inside, or so near that p - near is only rounding.
    is_z = beyond[2] >= maximum(beyond[0], beyond[1])
    is_y = ~is_z & (beyond[1] >= beyond[0])
    signs = [select(x < 0.0, -1.0, 1.0) for x in p]
    face = (
        select(is_z | is_y, 0.0, signs[0]),
        select(is_y, signs[1], 0.0),
        select(is_z, signs[2], 0.0),
    )
    near: Any = [clamp(x, h) for x, h in zip(p, half, strict=True)]
    apart = direction(subtract(p, near), sum(half, 0.0), face)
    normal = choose(inside > 0.0, apart, face)
    return Separation(value, subtract(p, scale(value, normal)), p, normal)


def cylinder_sphere(a: Any, b: Any, X: Pose) -> Separation:
    """Return the distance of a centre from a cylinder."""
    return _from_tube(X.position, a.radius, 0.5 * a.length)


def circular_lozenge_sphere(a: Any, b: Any, X: Pose) -> Separation:
    """Return the distance of a centre from a disc, which is a cylinder of no length."""
    return _from_tube(X.position, a.disc, 0.0)


def _from_tube(p: Vector3, radius: Number, half: Number) -> Separation:
    """Return the distance from all within a radius of z, and |z| <= half."""
    # In the half plane of z and p the body is a rectangle: p is `out` from the axis,
    # `across` beyond the wall and `along` beyond the nearer end.
    outward = direction((p[0], p[1], 0.0), radius, X_AXIS)
    out = dot(p, outward)
    across, along = out - radius, absolute(p[2]) - half
    inside = maximum(across, along)
    outside = maximum(across, 0.0), maximum(along, 0.0)
    distance = sqrt(outside[0] * outside[0] + outside[1] * outside[1])
    value = select(inside > 0.0, distance, inside)
    upward = 0.0, 0.0, select(p[2] < 0.0, -1.0, 1.0)
    face = choose(along >= across, upward, outward)
    d = add(scale(outside[0], outward), scale(outside[1], upward))
    normal = choose(inside > 0.0, direction(d, radius + half, face), face)
    return Separation(value, subtract(p, scale(value, normal)), p, normal)


def cone_sphere(a: Any, b: Any, X: Pose) -> Separation:
    """Return the distance of a centre from a cone.

    In the half plane of z and the centre the cone is a convex quadrilateral; inside,
    the nearest of its sides is that of the nearest line.
    """
    p, half = X.position, 0.5 * a.length
    # p is `out` from the axis, at height z. The wall leads from (bottom, -half) to
    # (top, half); its unit normal is (rise, -lean) / sqrt(rise^2 + lean^2), and (1, 0)
    # where it has no length. `beyond` is how far p is in front of it.
    outward = direction((p[0], p[1], 0.0), a.bottom + a.top, X_AXIS)
    out, z = dot(p, outward), p[2]
    rise, lean = a.length, a.top - a.bottom
    square = rise * rise + lean * lean
    is_long = square > by_precision(square, double=1e-280, single=1e-36)
    across = 1.0 / sqrt(select(is_long, square, 1.0))
    slope = select(is_long, rise * across, 1.0), select(is_long, -lean * across, 0.0)
    beyond = slope[0] * (out - a.bottom) + slope[1] * (z + half)
    below, above = -half - z, z - half
    rim = out - maximum(a.bottom, a.top)  # for a cone without length
    inside = maximum(maximum(below, above), maximum(beyond, rim))
    # The nearest point of the outline: on the wall, on the lower or on the upper disc.
    # t is the part of the wall at which the foot of p is, clamped to its ends.
    t = (lean * (out - a.bottom) + rise * (z + half)) * across * across
    t = minimum(maximum(select(is_long, t, 0.0), 0.0), 1.0)
    candidates = [
        (a.bottom + t * lean, -half + t * rise),
        (minimum(out, a.bottom), -half),
        (minimum(out, a.top), half),
    ]
    squares = [(out - x) * (out - x) + (z - y) * (z - y) for x, y in candidates]
    least, near = squares[0], candidates[0]
    for square, each in zip(squares[1:], candidates[1:], strict=True):
        near = choose(square < least, each, near)
        least = minimum(square, least)
    # Inside, the nearest of both discs and the wall gives the normal.
    flat = select(below >= above, -1.0, 1.0)
    is_flat = maximum(below, above) >= beyond
    face = select(is_flat, 0.0, slope[0]), select(is_flat, flat, slope[1])
    side = add(scale(face[0], outward), (0.0, 0.0, face[1]))
    d = add(scale(out - near[0], outward), (0.0, 0.0, z - near[1]))
    extent = a.bottom + a.top + a.length
    normal = choose(inside > 0.0, direction(d, extent, side), side)
    value = select(inside > 0.0, sqrt(least), inside)
    return Separation(value, subtract(p, scale(value, normal)), p, normal)


def triangular_lozenge_sphere(a: Any, b: Any, X: Pose) -> Separation:
    """Return the distance of a centre from a triangle."""
    # A triangle has no inside. Where p is on it the normal is across it, or z if the
    # triangle has no area.
    p, corners = X.position, a.corners
    _, near = _nearest_of_triangle(p, corners)
    d = subtract(p, near)
    above = cross(subtract(corners[1], corners[0]), subtract(corners[2], corners[0]))
    extent = maximum(norm(subtract(corners[1], corners[0])), norm(d))
    normal = direction(d, extent, direction(above, 0.0, Z_AXIS))
    return Separation(norm(d), near, p, normal)


def tetrahedron_sphere(a: Any, b: Any, X: Pose) -> Separation:
    """Return the distance of a centre from a tetrahedron."""
    p = X.position
    # p is inside where it is above no side; minus the height over the highest one is
    # the depth there. Outside, the nearest point is that of the nearest side.
    sides = [_side(p, [a.corners[k] for k in side]) for side in FACES]
    least, near, highest, face = sides[0]
    for square, point, height, normal in sides[1:]:
        near = choose(square < least, point, near)
        face = choose(height > highest, normal, face)
        least, highest = minimum(square, least), maximum(height, highest)
    d = subtract(p, near)
    extent = norm(subtract(a.corners[1], a.corners[0]))
    normal = choose(highest > 0.0, direction(d, extent, face), face)
    value = select(highest > 0.0, norm(d), highest)
    return Separation(value, subtract(p, scale(value, normal)), p, normal)


def _side(
    p: Vector3, corners: Sequence[Vector3]
) -> tuple[Number, Vector3, Number, Vector3]:
    """Return squared distance and nearest point of a side, height over it, normal."""
    square, point = _nearest_of_triangle(p, corners)
    u, v, w = corners
    normal = direction(cross(subtract(v, u), subtract(w, u)), 0.0, Z_AXIS)
    return square, point, dot(normal, subtract(p, u)), normal


def _nearest_of_triangle(p: Vector3, corners: Any) -> tuple[Number, Vector3]:
    """Return the squared distance of `p` from a triangle, and the nearest point."""
    # The nearest point of the outline, unless p is over the triangle.
    a, b, c = corners
    near = _nearest_of_edge(p, a, b)
    least = _square(p, near)
    for u, v in ((b, c), (c, a)):
        point = _nearest_of_edge(p, u, v)
        square = _square(p, point)
        near = choose(square < least, point, near)
        least = minimum(square, least)
    # The foot of p is a + (s ab + t ac) / |n|^2 with n = ab x ac, s = (n x ap) . ac and
    # t = -(n x ap) . ab: barycentric coordinates (Ericson, Real-Time Collision
    # Detection, 3.4). It is inside for s, t > 0 and s + t < |n|^2.
    ab, ac, ap = subtract(b, a), subtract(c, a), subtract(p, a)
    normal = cross(ab, ac)
    area = dot(normal, normal)
    across = cross(normal, ap)
    s, t = dot(across, ac), dot(across, negate(ab))
    is_over = (s > 0.0) & (t > 0.0) & (s + t < area)
    height = dot(normal, ap) / area
    over = subtract(p, scale(height, normal))
    return (
        select(is_over, height * height * area, least),
        choose(is_over, over, near),
    )


def _nearest_of_edge(p: Vector3, u: Vector3, v: Vector3) -> Vector3:
    edge = subtract(v, u)  # its foot is at t of the edge, clamped to the ends
    t = dot(subtract(p, u), edge) / dot(edge, edge)
    return add(u, scale(minimum(maximum(t, 0.0), 1.0), edge))


def _square(p: Vector3, q: Vector3) -> Number:
    d = subtract(p, q)
    return dot(d, d)
