"""Distance of boxes and lozenges from each other: of |x_k| <= half_k in two frames."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from armillary.collision.distance.axes import Gap, Widest, toward, widest
from armillary.collision.distance.capsule import segment_slab
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
    scale,
    subtract,
    three,
    transpose,
)
from armillary.trace.functions import absolute, maximum, select, sqrt


def box_box(a: Any, b: Any, X: Pose) -> Separation:
    """Return the distance of two boxes."""
    return _slab_slab(_halves(*a.size), _halves(*b.size), X)


def box_box_gap(a: Any, b: Any, X: Pose) -> Number:
    """Return the widest gap of two boxes along an axis; minus the depth if none."""
    return _axes(_halves(*a.size), _halves(*b.size), X)[0]


def box_lozenge(a: Any, b: Any, X: Pose) -> Separation:
    """Return the distance of a rectangle from a box."""
    return _slab_slab(_halves(*a.size), _halves(*b.size, 0.0), X)


def lozenge_lozenge(a: Any, b: Any, X: Pose) -> Separation:
    """Return the distance of two rectangles."""
    return _slab_slab(_halves(*a.size, 0.0), _halves(*b.size, 0.0), X)


def _halves(*size: Number) -> Vector3:
    return three([0.5 * length for length in size])


def _slab_slab(half_a: Vector3, half_b: Vector3, X: Pose) -> Separation:
    """Return the distance: that of an edge of A from B, or of a corner of B from A.

    Where they overlap, B is moved out along the least depth, and touches.
    """
    # The nearest points of two boxes are on an edge of one and the other box, or a
    # corner of one and the other box: all edges of A are compared with B, then all
    # corners of B with A. Flat boxes are rectangles, with fewer edges and corners.
    depth, axis = _axes(half_a, half_b, X)
    back = scale(maximum(0.0 - depth, 0.0), axis)
    moved = Pose(X.rotation, add(X.position, back))
    Y = moved.inverse()
    least, on_a, on_b = None, Y.position, Y.position  # in the frame of B
    for middle, edge in _edges(half_a):
        square, near, on_edge = segment_slab(Y @ middle, Y.rotate(edge), half_b)
        on_a = on_edge if least is None else choose(square < least, on_edge, on_a)
        on_b = near if least is None else choose(square < least, near, on_b)
        least = square if least is None else select(square < least, square, least)
    on_a, on_b = moved @ on_a, moved @ on_b
    for corner in _corners(half_b):
        point = moved @ corner
        near = three([clamp(x, h) for x, h in zip(point, half_a, strict=True)])
        d = subtract(point, near)
        square = dot(d, d)
        on_a = choose(square < least, near, on_a)
        on_b = choose(square < least, point, on_b)
        least = select(square < least, square, least)
    # Where boxes overlap, the points are those of B moved out; that of B is moved back.
    value = select(depth > 0.0, sqrt(least), depth)
    extent = sum(half_a, 0.0) + sum(half_b, 0.0)
    away = direction(subtract(on_b, on_a), extent, axis)
    normal = choose(depth > 0.0, away, axis)
    return Separation(value, on_a, subtract(on_b, back), normal)


def _edges(half: Vector3) -> Iterator[tuple[Vector3, Vector3]]:
    """Yield the middle of each edge, and half of the edge."""
    for k in range(3):
        if not _is_flat(half[k]):
            edge = three([half[k] if j == k else 0.0 for j in range(3)])
            yield from ((middle, edge) for middle in _corners(half, leave=k))


def _corners(half: Vector3, leave: int | None = None) -> Iterator[Vector3]:
    """Yield the corners of a box; of its outline along one of its axes."""
    signs = [
        (0.0,) if k == leave or _is_flat(length) else (-1.0, 1.0)
        for k, length in enumerate(half)
    ]
    for chosen in itertools.product(*signs):
        yield three([s * h if s else 0.0 for s, h in zip(chosen, half, strict=True)])


def _is_flat(length: Number) -> bool:
    return isinstance(length, float) and length == 0.0


def _axes(half_a: Vector3, half_b: Vector3, X: Pose) -> Gap:
    """Return the largest separation along an axis, and the axis, from A to B.

    Axes are the normals of faces and products of edges; below 0 it is minus the depth
    (Gottschalk, Lin and Manocha, OBBTree, 1996).
    """
    # With R and t of B in A: along the unit axis a of a box with half sides h, another
    # of half sides g and axes r_j reaches sum_j g_j |a . r_j|. The gap is the distance
    # of centres along a, less both reaches.
    R, t, columns = X.rotation, X.position, transpose(X.rotation)
    faces: list[Gap] = []
    others: list[Gap] = []
    for i in range(3):
        reach = half_a[i] + _reach(half_b, R[i])
        faces.append(toward(t[i], reach, three([float(k == i) for k in range(3)])))
    for j in range(3):
        reach = half_b[j] + _reach(half_a, columns[j])
        others.append(toward(dot(t, columns[j]), reach, columns[j]))
    # The product x_i x r_j of edges i of A and j of B has no entry i, and two entries
    # of column j of R: so along x_i A has no extent, nor B along r_j.
    edges = Widest()
    for i, j in itertools.product(range(3), range(3)):
        k, m = (i + 1) % 3, (i + 2) % 3
        axis = {i: 0.0, k: 0.0 - R[m][j], m: R[k][j]}
        reach = half_a[k] * absolute(R[m][j]) + half_a[m] * absolute(R[k][j])
        for n in range(3):
            if n != j:
                # R[i][n] up to its sign; but that has not enough digits where edges
                # are nearly parallel.
                along_b = R[k][j] * R[m][n] - R[m][j] * R[k][n]
                reach = reach + half_b[n] * absolute(along_b)
        along = t[m] * R[k][j] - t[k] * R[m][j]
        square = R[k][j] * R[k][j] + R[m][j] * R[m][j]
        edges.offer(along, reach, square, three([axis[n] for n in range(3)]))
    return widest(faces, [*others, edges.found])


def _reach(half: Sequence[Number], axis: Vector3) -> Number:
    """Return how far a box reaches along an axis."""
    return sum((h * absolute(x) for h, x in zip(half, axis, strict=True)), 0.0)
