"""Polyhedra that nearly touch, at poses whose normals and distances are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from armillary.collision.distance.pair_kernel import pair_kernel
from armillary.model.primitive import Primitive
from armillary.model.shapes import Box, ConvexPolyhedron, Tetrahedron
from armillary.shapes import distance, distance_kernel

Array = np.ndarray

ROUNDING = 4e-15
"""Of positions, as a part of the size."""


def hull(seed: int, count: int, size: float, away: float = 0.0) -> ConvexPolyhedron:
    """Return a hull of corners on a sphere, its origin some sizes away."""
    rng = np.random.default_rng(seed)
    corners = rng.normal(size=(count, 3))
    corners /= 2.0 * np.linalg.norm(corners, axis=1)[:, None]
    return ConvexPolyhedron.around(size * (corners + away * rng.normal(size=3)))


def tetrahedron(size: float, thickness: float = 1.0) -> Tetrahedron:
    corners = [(0, 0, 0), (1, 0, 0), (0.3, thickness, 0), (0.1, 0, thickness)]
    return Tetrahedron(corners=[np.multiply(size, p) for p in corners])


def corners_of(shape: Any) -> Array:
    if isinstance(shape, Box):
        signs = np.array(np.meshgrid(*[(-0.5, 0.5)] * 3)).reshape(3, -1).T
        return signs * np.array(shape.size)
    is_hull = isinstance(shape, ConvexPolyhedron)
    return np.array(shape.vertices if is_hull else shape.corners)


def nearly_touching(
    rng: np.random.Generator, a: Primitive, b: Primitive, count: int
) -> tuple[Array, Array, Array]:
    """Return poses of b in a, normals, and distances: corners, edges and faces meet.

    Bodies whose supporting planes across n meet are as far apart as the planes, with
    that normal, where points of both are opposite.
    """
    P, Q = corners_of(a), corners_of(b)
    size = np.ptp(P, axis=0).max()
    X, normals = np.tile(np.eye(4), (count, 1, 1)), np.empty((count, 3))
    distances = size * 10.0 ** rng.uniform(-12.0, -3.0, count)
    for k in range(count):
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        turn *= np.linalg.det(turn)
        turned = Q @ turn.T
        # Across no edge, one of A, one of B, or one of each.
        edges = [
            np.diff(V[rng.permutation(len(V))[:2]], axis=0)[0] for V in (P, turned)
        ]
        across = [edge for m, edge in enumerate(edges) if k >> m & 1]
        normal = np.cross(*across) if len(across) == 2 else rng.normal(size=3)
        for edge in across:
            normal -= edge * (normal @ edge) / (edge @ edge)
        normal /= np.linalg.norm(normal)
        near = [point(rng, V, n, size) for V, n in ((P, normal), (turned, -normal))]
        X[k, :3, :3] = turn
        X[k, :3, 3] = near[0] + distances[k] * normal - near[1]
        normals[k] = normal
    return X, normals, distances


def point(
    rng: np.random.Generator, corners: Array, normal: Array, size: float
) -> Array:
    """Return a point of the corner, edge or face that is farthest along a normal."""
    heights = corners @ normal
    farthest = corners[heights > heights.max() - 1e-12 * size]
    return rng.dirichlet(np.full(len(farthest), 0.5)) @ farthest


@pytest.mark.parametrize("size", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("kind", range(5))
def test_normals_are_right_to_rounding(kind: int, size: float):
    a, b = [
        (tetrahedron(size), tetrahedron(size)),
        (tetrahedron(size, 1e-3), tetrahedron(size)),
        (hull(1, 8, size), hull(2, 20, size)),
        (hull(3, 12, size, 3.0), hull(4, 12, size, 3.0)),
        (Box(size=(size, 0.5 * size, 2.0 * size)), hull(5, 40, size)),
    ][kind]
    rng = np.random.default_rng(kind)
    X, normals, distances = nearly_touching(rng, a, b, 600)
    found = distance(a, np.eye(4), b, X)
    extent = sum(np.abs(corners_of(shape)).max() for shape in (a, b))
    # The position of b is rounded, so that the nearest points are, too.
    off = np.linalg.norm(found.normal - normals, axis=1)
    assert (off <= 1e-5 + ROUNDING * extent / distances).all()
    assert np.abs(found.value - distances).max() <= ROUNDING * extent
    step = found.value[:, None] * found.normal
    apart = found.points[:, 1] - found.points[:, 0] - step
    assert np.abs(apart).max() <= ROUNDING * extent
    # Both points are on their bodies: no direction has corners less far.
    for shape, pose, points, out in (
        (a, np.tile(np.eye(4), (len(X), 1, 1)), found.points[:, 0], normals),
        (b, X, found.points[:, 1], -normals),
    ):
        placed = np.einsum("nij,kj->nki", pose[:, :3, :3], corners_of(shape))
        relative = placed + pose[:, None, :3, 3] - points[:, None]
        heights = np.einsum("nki,ni->nk", relative, out).max(axis=1)
        assert np.abs(heights).max() <= ROUNDING * extent


def test_rows_are_answered_as_if_alone():
    a, b = tetrahedron(1.0), hull(2, 20, 1.0)
    X, *_ = nearly_touching(np.random.default_rng(8), a, b, 200)
    kernel = pair_kernel(b, a, "all", np.dtype(np.float64))
    rows = kernel(np.eye(4), X)
    alone = [kernel(np.eye(4), x) for x in X]
    for k, batch in enumerate(rows):
        np.testing.assert_array_equal(batch, [row[k] for row in alone])
    values = distance_kernel(b, a)(X)
    np.testing.assert_array_equal(values, rows[0])
