"""Convex polyhedra with few corners: around everything, and not far beyond it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.spatial import ConvexHull

from armillary.errors import ModelError
from armillary.model.geometry.triangles import distances_to_triangles
from armillary.model.shapes import ConvexPolyhedron

Array = np.ndarray


def on_sphere(random: np.random.Generator, count: int) -> Array:
    points = random.normal(size=(count, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def rings(*heights_and_radii: tuple[float, float]) -> Array:
    turn = np.linspace(0.0, 2.0 * np.pi, 400)
    return np.vstack(
        [
            np.stack([r * np.cos(turn), r * np.sin(turn), z + 0.0 * turn], axis=1)
            for z, r in heights_and_radii
        ]
    )


CLOUDS: dict[str, Callable[[np.random.Generator], Array]] = {
    "normal": lambda r: r.normal(size=(300, 3)),
    "ball": lambda r: on_sphere(r, 1500),
    "needle": lambda r: on_sphere(r, 1500) * (1.0, 1e-3, 1e-3),
    "plate": lambda r: on_sphere(r, 1500) * (1.0, 1.0, 1e-3),
    "far": lambda r: 0.1 * on_sphere(r, 1500) + (100.0, 0.0, -50.0),
    "tube": lambda r: rings((0.0, 0.1), (0.7, 0.1)),
    "cone": lambda r: rings((0.0, 0.3), (1.0, 0.0)),
    "turned tube": lambda r: (
        rings((0.0, 0.1), (0.7, 0.1)) @ np.linalg.qr(r.normal(size=(3, 3)))[0]
    ),
}


def distance_from_hull(point: Array, points: Array) -> float:
    """Project on the hull: least |sum w_k p_k - point| with w >= 0 and sum w = 1."""
    heavy = 1e4  # the row that keeps the sum at 1
    matrix = np.vstack([(points - point).T, np.full((1, len(points)), heavy)])
    w, _ = nnls(matrix, np.array([0.0, 0.0, 0.0, heavy]), maxiter=10_000)
    return float(np.linalg.norm((points - point).T @ w))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CLOUDS)
@pytest.mark.parametrize("part", [0.03, 0.006])
def test_it_contains_all_points_and_reaches_no_farther_than_said(
    name: str, part: float
):
    random = np.random.default_rng(4)
    points = CLOUDS[name](random)
    tolerance = part * float(np.ptp(points, axis=0).max())
    found = ConvexPolyhedron.around(points, tolerance=tolerance)
    corners = np.array(found.vertices)
    exact = points[ConvexHull(points).vertices]
    assert len(corners) <= len(exact)
    directions = random.normal(size=(500, 3))
    size = np.abs(points).max()
    slack = (corners @ directions.T).max(axis=0) - (points @ directions.T).max(axis=0)
    assert slack.min() >= -1e-12 * size
    step = max(1, len(corners) // 25)
    for corner in corners[::step]:
        assert distance_from_hull(corner, exact) <= 1.001 * tolerance + 1e-9 * size


@pytest.mark.thorough
def test_a_coarse_one_has_few_corners():
    ball = on_sphere(np.random.default_rng(0), 10_000)
    counts = [
        len(ConvexPolyhedron.around(ball, tolerance=t).vertices)
        for t in (0.3, 0.1, 0.03, 0.01)
    ]
    assert counts == sorted(counts)
    assert counts[0] <= 40
    assert counts[-1] <= 1000
    box = np.array(np.meshgrid(*[np.linspace(0, 1, 12)] * 3)).reshape(3, -1).T
    turned = box @ np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    assert len(ConvexPolyhedron.around(turned, tolerance=1e-3).vertices) == 8


FLAT = {
    "point": np.full((1, 3), 2.0),
    "points at one place": np.full((7, 3), 2.0),
    "line": np.outer(np.arange(5.0), (1.0, 2.0, 3.0)),
    "triangle": np.eye(3),
    "disc": rings((0.5, 0.2)),
}


@pytest.mark.parametrize("name", FLAT)
def test_flat_points_get_as_thick_as_allowed(name: str):
    points = FLAT[name]
    found = ConvexPolyhedron.around(points, tolerance=0.01)
    corners = np.array(found.vertices)
    directions = np.random.default_rng(2).normal(size=(500, 3))
    slack = (corners @ directions.T).max(axis=0) - (points @ directions.T).max(axis=0)
    assert slack.min() >= -1e-12
    for corner in corners:
        assert distance_from_hull(corner, points) <= 0.01
    assert found.volume > 0.0
    with pytest.raises(ModelError, match="span no body"):
        ConvexPolyhedron.around(points)


def test_too_many_corners_and_invalid_tolerances_are_errors():
    ball = on_sphere(np.random.default_rng(0), 5000)
    with pytest.raises(ModelError, match="allow a greater tolerance"):
        ConvexPolyhedron.around(ball, tolerance=1e-5)
    with pytest.raises(ModelError, match=r"make it coarser: .*tolerance="):
        ConvexPolyhedron.around(ball)
    for tolerance in (-1.0, np.nan, np.inf):
        with pytest.raises(ModelError, match="tolerance must be at least 0"):
            ConvexPolyhedron.around(ball, tolerance=tolerance)
    with pytest.raises(ModelError, match="0 points"):
        ConvexPolyhedron.around(np.zeros((0, 3)), tolerance=1.0)


def test_distances_to_triangles_are_those_of_a_projection():
    random = np.random.default_rng(5)
    triangles = random.normal(size=(40, 3, 3))
    triangles[:5, 2] = triangles[:5, 0]  # edges
    triangles[5:8] = triangles[5:8, :1]  # points
    points = 2.0 * random.normal(size=(30, 3))
    found = distances_to_triangles(points, triangles)
    expected = [
        min(distance_from_hull(point, each) for each in triangles) for point in points
    ]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    inside = np.einsum("mk,mki->mi", random.dirichlet([1, 1, 1], 40), triangles)
    np.testing.assert_allclose(distances_to_triangles(inside, triangles), 0, atol=1e-7)
