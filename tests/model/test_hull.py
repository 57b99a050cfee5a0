"""Convex hulls: closed, convex, around everything."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from armillary.errors import ModelError
from armillary.model.geometry.hull import convex_hull
from armillary.model.geometry.triangles import Triangles


def on_sphere(random: np.random.Generator) -> np.ndarray:
    points = random.normal(size=(150, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def grid(step: float) -> np.ndarray:
    axes = [step * np.arange(5)] * 3
    return np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 3)


CLOUDS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "four": lambda r: r.normal(size=(4, 3)),
    "normal": lambda r: r.normal(size=(200, 3)),
    "sphere": on_sphere,
    "grid": lambda r: grid(0.1),  # many points in each plane, up to rounding
    "turned grid": lambda r: grid(0.1) @ np.linalg.qr(r.normal(size=(3, 3)))[0],
    "far grid": lambda r: grid(0.1) + 1e4,
    "stretched grid": lambda r: grid(0.1) * (1e-3, 1.0, 1e3),
    "whole numbers": lambda r: r.integers(0, 3, (200, 3)).astype(float),
    "each point twice": lambda r: np.repeat(r.normal(size=(30, 3)), 2, axis=0),
    "thin": lambda r: r.normal(size=(60, 3)) * (1.0, 1.0, 1e-7),
    "tiny": lambda r: 1e-200 * r.normal(size=(30, 3)),
    "huge": lambda r: 1e200 * r.normal(size=(30, 3)),
    "of all sizes": lambda r: r.normal(size=(60, 3)) * 10.0 ** r.uniform(-300, 0, 3),
}


@pytest.mark.parametrize("name", CLOUDS)
@pytest.mark.parametrize("seed", range(3))
def test_hull_is_closed_convex_and_around_everything(name: str, seed: int):
    points = CLOUDS[name](np.random.default_rng(seed))
    try:
        faces = convex_hull(points)
    except ModelError:
        assert name == "of all sizes"  # some of those are flat
        return
    mesh = Triangles(points, faces)
    assert mesh.is_watertight
    assert len(np.unique(faces)) - len(faces) // 2 == 2  # Euler
    scaled = points / np.abs(points).max()
    a, b, c = scaled[faces].swapaxes(0, 1)
    normals = np.cross(b - a, c - a)
    heights = np.einsum("fi,fpi->fp", normals, scaled[None] - a[:, None])
    assert heights.max() <= 1e-12


@pytest.mark.parametrize("name", sorted(set(CLOUDS) - {"tiny", "huge", "of all sizes"}))
def test_hull_is_that_of_qhull(name: str):
    points = CLOUDS[name](np.random.default_rng(3))
    mesh, theirs = Triangles(points, convex_hull(points)), ConvexHull(points)
    # A hull far from the origin loses digits in either.
    assert mesh.area == pytest.approx(theirs.area, rel=1e-9)
    assert mesh.volume == pytest.approx(theirs.volume, rel=1e-7)


def test_hull_does_not_depend_on_order_or_place():
    random = np.random.default_rng(0)
    points = random.normal(size=(80, 3))
    corners = set(np.unique(convex_hull(points)).tolist())
    order = random.permutation(80)
    assert set(order[np.unique(convex_hull(points[order]))].tolist()) == corners
    assert set(np.unique(convex_hull(4.0 * points)).tolist()) == corners


@pytest.mark.parametrize(
    "points",
    [
        np.zeros((0, 3)),
        np.eye(3),
        np.ones((9, 3)),
        np.outer(np.arange(9.0), (1.0, 2.0, 3.0)),
        np.random.default_rng(0).normal(size=(20, 3)) * (1.0, 1.0, 0.0),
        np.random.default_rng(0).normal(size=(20, 3)) * (1.0, 1.0, 1e-11),
    ],
    ids=["none", "three", "one", "line", "plane", "nearly a plane"],
)
def test_flat_points_have_no_hull(points: np.ndarray):
    with pytest.raises(ModelError, match="span no body"):
        convex_hull(points)
