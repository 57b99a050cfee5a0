"""The smallest sphere around points."""

from __future__ import annotations

import numpy as np
import pytest

from armillary.model.geometry.bounding import box_around, sphere_around

CLOUDS = {
    "one": np.array([[1.0, 2.0, 3.0]]),
    "same": np.ones((7, 3)),
    "two": np.array([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]]),
    "line": np.outer(np.linspace(-1.0, 3.0, 9), (1.0, 2.0, 2.0)),
    "acute": np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.5, 0.9, 0.0]]),
    "obtuse": np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.5, 0.1, 0.0]]),
    "cube": np.array(np.meshgrid(*[[0.0, 1.0]] * 3)).reshape(3, -1).T,
    "disc": np.array([(np.cos(a), np.sin(a), 5.0) for a in np.linspace(0.0, 6.0, 40)]),
    "normal": np.random.default_rng(0).normal(size=(3000, 3)),
    "far": 1e6 + np.random.default_rng(0).normal(size=(50, 3)),
    "small": 1e-9 * np.random.default_rng(0).normal(size=(50, 3)),
}


@pytest.mark.parametrize("name", CLOUDS)
def test_it_holds_all_and_cannot_be_smaller(name: str):
    """It is the smallest if its centre is a mean of points that it touches."""
    points = CLOUDS[name]
    centre, radius = sphere_around(points)
    distances = np.linalg.norm(points - centre, axis=1)
    assert distances.max() <= radius
    size = max(radius, 1e-12)
    touching = points[distances >= radius - 1e-7 * size]
    if len(np.unique(points, axis=0)) == 1:
        assert radius == 0.0
        return
    # No direction leads away from the centre to the inside of all that it touches.
    random = np.random.default_rng(1).normal(size=(2000, 3))
    towards = (touching - centre) @ random.T / size
    assert np.all(towards.max(axis=0) >= -1e-6)
    assert np.all(towards.min(axis=0) <= 1e-6)


def test_known_spheres():
    assert sphere_around(CLOUDS["two"]) == ((1.0, 0.0, 0.0), 1.0)
    assert sphere_around(CLOUDS["line"]).radius == pytest.approx(6.0)
    assert sphere_around(CLOUDS["cube"]).radius == pytest.approx(np.sqrt(0.75))
    assert sphere_around(CLOUDS["obtuse"]).radius == pytest.approx(0.5)
    assert sphere_around(CLOUDS["disc"]).radius == pytest.approx(1.0, rel=1e-2)


def test_order_does_not_matter():
    points = CLOUDS["normal"]
    first = sphere_around(points)
    again = sphere_around(points[::-1])
    assert again.radius == pytest.approx(first.radius, rel=1e-12)
    assert again.centre == pytest.approx(first.centre, rel=1e-9, abs=1e-9)


def test_box_around():
    assert box_around(CLOUDS["two"]) == ((0.0, 0.0, 0.0), (2.0, 0.0, 0.0))
