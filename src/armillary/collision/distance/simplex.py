"""The point of a simplex that is nearest to the origin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from armillary.collision.distance.separation import choose
from armillary.spatial.vector import Number, Vector3, add, cross, dot, scale, subtract
from armillary.trace.functions import by_precision, minimum, select


class Nearest(NamedTuple):
    """What is nearest to the origin.

    Attributes:
        point: The nearest point.
        square: Of its distance.
        weights: Of the three old corners; the new one has the rest of 1.
        kept: For each old corner, whether the face of `point` has it.
        is_inside: Whether the origin is well inside the tetrahedron; nothing else
            counts then.
    """

    point: Vector3
    square: Number
    weights: tuple[Number, Number, Number]
    kept: list[Any]
    is_inside: Any


def nearest_of(w: Vector3, corners: Sequence[Vector3]) -> Nearest:
    """Return the point nearest to 0 of those faces of a simplex that have corner w.

    All other faces are known to be farther. A corner that is equal to `w`, or NaN,
    counts as absent.
    """
    flat = by_precision(w[0], double=1e-20, single=1e-9)  # relative area and volume
    edges = [subtract(corner, w) for corner in corners]
    along = [dot(w, edge) for edge in edges]
    squares = [dot(edge, edge) for edge in edges]
    least, nearest = dot(w, w), w
    kept: list[Any] = [w[0] != w[0]] * 3
    weights: list[Any] = [0.0, 0.0, 0.0]

    def offer(truth: Any, square: Any, point: Vector3, shares: dict[int, Any]) -> None:
        nonlocal least, nearest
        truth = truth & (square < least)
        least, nearest = select(truth, square, least), choose(truth, point, nearest)
        for k in range(3):
            kept[k] = (kept[k] | truth) if k in shares else (kept[k] & ~truth)
            weights[k] = select(truth, shares.get(k, 0.0), weights[k])

    for i in range(3):
        t = -along[i] / squares[i]
        point = add(w, scale(t, edges[i]))
        offer((t > 0.0) & (t < 1.0), dot(point, point), point, {i: t})
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
    return Nearest(nearest, least, (x, y, z), kept, is_inside)
