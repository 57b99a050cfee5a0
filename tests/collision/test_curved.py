"""Bodies with known curvature: steps of Newton's method on the normal between them."""

from __future__ import annotations

import numpy as np
import pytest

from armillary.collision.distance.pair_kernel import pair_kernel
from armillary.model.primitive import Primitive
from armillary.model.shapes import (
    Box,
    Capsule,
    CircularLozenge,
    Cone,
    Cylinder,
    Ellipsoid,
    Lozenge,
    Sphere,
)
from armillary.shapes import distance, distance_kernel

Array = np.ndarray

SHAPES: dict[str, Primitive] = {
    "ball": Sphere(radius=0.1),
    "box": Box(size=(0.4, 0.3, 0.6)),
    "capsule": Capsule(radius=0.1, length=0.4),
    "cone": Cone(bottom=0.2, length=0.5),
    "cup": Cone(bottom=0.1, top=0.2, length=0.3),
    "cylinder": Cylinder(radius=0.1, length=0.4),
    "disc": Cylinder(radius=0.2, length=1e-3),
    "drum": Cylinder(radius=0.3, length=0.2),
    "egg": Ellipsoid(radii=(0.1, 0.2, 0.3)),
    "leaf": Ellipsoid(radii=(0.2, 0.1, 1e-3)),
    "needle": Ellipsoid(radii=(1e-3, 2e-3, 0.5)),
    "pill": CircularLozenge(radius=0.05, disc=0.2),
    "plate": Lozenge(radius=0.05, size=(0.3, 0.2)),
    "rod": Cylinder(radius=1e-4, length=1.0),
}

PAIRS = [
    ("cylinder", "drum"),
    ("disc", "disc"),
    ("cylinder", "rod"),
    ("box", "cylinder"),
    ("box", "egg"),
    ("capsule", "cylinder"),
    ("capsule", "leaf"),
    ("cone", "cup"),
    ("cup", "drum"),
    ("cylinder", "egg"),
    ("egg", "ball"),
    ("egg", "leaf"),
    ("egg", "needle"),
    ("pill", "drum"),
    ("plate", "cylinder"),
]


def poses(rng: np.random.Generator, count: int, spread: float) -> Array:
    X = np.tile(np.eye(4), (count, 1, 1))
    turns = np.linalg.qr(rng.normal(size=(count, 3, 3)))[0]
    X[:, :3, :3] = turns * np.linalg.det(turns)[:, None, None]
    X[:, :3, 3] = rng.uniform(-spread, spread, (count, 3))
    return X


def reach(shape: Primitive, X: Array, d: Array) -> Array:
    """Return how far a shape at poses reaches along unit vectors."""
    local = np.einsum("nij,ni->nj", X[:, :3, :3], d)
    points = shape.support(local)
    return np.einsum("ni,ni->n", local, points) + np.einsum("ni,ni->n", X[:, :3, 3], d)


@pytest.mark.parametrize("names", PAIRS, ids="-".join)
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_planes_separate_bodies_by_their_distance(names: tuple[str, str], size: float):
    """Support functions alone say so, and points are on both planes."""
    a, b = (SHAPES[name].scaled(size) for name in names)
    X = poses(np.random.default_rng(5), 300, 0.9)
    X[:, :3, 3] *= size
    found, here = distance(a, np.eye(4), b, X), np.tile(np.eye(4), (len(X), 1, 1))
    is_free = found.value > 1e-9 * size
    n = found.normal
    between = -reach(a, here, n) - reach(b, X, -n)
    np.testing.assert_allclose(
        between[is_free], found.value[is_free], rtol=0, atol=1e-11 * size
    )
    heights = np.einsum("nki,ni->nk", found.points, n)
    np.testing.assert_allclose(
        heights[:, 0], reach(a, here, n), rtol=0, atol=1e-7 * size
    )
    np.testing.assert_allclose(
        heights[:, 1], -reach(b, X, -n), rtol=0, atol=1e-7 * size
    )
    np.testing.assert_allclose(np.linalg.norm(n, axis=1), 1.0, rtol=0, atol=1e-14)


def nearly_touching(
    rng: np.random.Generator, a: Primitive, b: Primitive, count: int
) -> tuple[Array, Array, Array]:
    """Return poses of b in a, normals and distances, at points, sides and rims.

    Normals are across no axis of revolution, one of A, one of B, or one of each. Points
    on supporting planes that are opposite to each other are nearest.
    """
    X, normals = poses(rng, count, 1.0), rng.normal(size=(count, 3))
    distances = 10.0 ** rng.uniform(-9.0, -3.0, count)
    for k in range(count):
        turn = X[k, :3, :3]
        axes = np.eye(3)[2], turn[:, 2]
        across = [axis for m, axis in enumerate(axes) if k >> m & 1]
        normal = np.cross(*across) if len(across) == 2 else normals[k]
        normal -= sum(axis * (normal @ axis) for axis in across)
        normals[k] = normal / np.linalg.norm(normal)
    p = points(rng, a, normals)
    turns = X[:, :3, :3]
    q = points(rng, b, np.einsum("kij,ki->kj", turns, -normals))
    X[:, :3, 3] = p + distances[:, None] * normals - np.einsum("kij,kj->ki", turns, q)
    return X, normals, distances


def points(rng: np.random.Generator, shape: Primitive, normals: Array) -> Array:
    """Return points that are farthest along normals, of a line of a side any ones."""
    beside = np.array([0.0, 0.0, 1e-12])
    tops, *ends = (shape.support(normals + k * beside) for k in (0.0, 1.0, -1.0))
    heights = np.vecdot(tops, normals)
    least = np.minimum(*(np.vecdot(each, normals) for each in ends))
    part = rng.dirichlet([0.5, 0.5], len(normals))
    found = part[:, :1] * ends[0] + part[:, 1:] * ends[1]
    found += (heights - np.vecdot(found, normals))[:, None] * normals
    return np.where((least < heights - 1e-10)[:, None], tops, found)


@pytest.mark.parametrize("names", [p for p in PAIRS if "rod" not in p], ids="-".join)
def test_normals_of_bodies_that_nearly_touch(names: tuple[str, str]):
    a, b = (SHAPES[name] for name in names)
    X, normals, distances = nearly_touching(np.random.default_rng(8), a, b, 400)
    found = distance(a, np.eye(4), b, X)
    off = np.linalg.norm(found.normal - normals, axis=1)
    # Positions are rounded to 1e-16: a part of the distance.
    np.testing.assert_array_less(off, 2e-6 + 4e-15 / distances)
    np.testing.assert_allclose(found.value, distances, rtol=0, atol=1e-10)
    between = found.points[:, 1] - found.points[:, 0]
    length = found.value[:, None] * found.normal
    np.testing.assert_allclose(between, length, rtol=0, atol=1e-15)


@pytest.mark.parametrize("names", [p for p in PAIRS if "needle" not in p], ids="-".join)
def test_steps_prove_most_distances(names: tuple[str, str]):
    a, b = (SHAPES[name] for name in names)
    X = poses(np.random.default_rng(9), 2_000, 0.9)
    whole = distance_kernel(a, b)(X)
    steps = pair_kernel(a, b, "steps", np.dtype(float))(X)
    is_proven = steps > 0.0
    np.testing.assert_array_equal(steps[is_proven], whole[is_proven])
    assert is_proven.sum() > 0.9 * (whole > 0.0).sum()


def test_normals_of_tips_and_sides_that_nearly_touch():
    """Points of cones have normals that are known only once their lines are right."""
    a, b = SHAPES["cone"], SHAPES["cylinder"]
    X, normals, distances = nearly_touching(np.random.default_rng(11), a, b, 4_000)
    found = distance(a, np.eye(4), b, X)
    off = np.linalg.norm(found.normal - normals, axis=1)
    np.testing.assert_array_less(off, 1.5e-5 + 4e-15 / distances)
    assert (off > 2e-6 + 4e-15 / distances).sum() <= 2
    np.testing.assert_allclose(found.value, distances, rtol=0, atol=1e-10)


def test_steps_prove_most_distances_of_bodies_that_nearly_touch():
    """A step of a corner that is cut does not keep a rim from its place."""
    a, b = SHAPES["cylinder"], SHAPES["drum"]
    X, _, distances = nearly_touching(np.random.default_rng(8), a, b, 1_000)
    steps = pair_kernel(a, b, "steps", np.dtype(float))(X)
    is_proven = steps > 0.0
    np.testing.assert_allclose(steps[is_proven], distances[is_proven], atol=1e-11)
    assert is_proven.mean() > 0.65
