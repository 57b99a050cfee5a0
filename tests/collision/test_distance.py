"""Distances of shapes: each is proven by points of both and a plane between them."""

from __future__ import annotations

import itertools
import random
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.spatial import ConvexHull

from armillary.collision.distance.table import FORMULAS
from armillary.model.primitive import Primitive
from armillary.model.shapes import (
    Box,
    Capsule,
    ConvexPolyhedron,
    HalfSpace,
    Lozenge,
    Tetrahedron,
    TriangularLozenge,
)
from armillary.shapes import Distance, distance, distance_kernel
from armillary.spatial.pose import Pose
from solids import BEYOND, SOLIDS, beyond

Array = np.ndarray
ALL: dict[str, Primitive] = {**SOLIDS, "half space": HalfSpace()}
PAIRS = [
    pair
    for pair in itertools.combinations_with_replacement(ALL, 2)
    if pair != ("half space", "half space")
]
each_pair = pytest.mark.parametrize(("first", "second"), PAIRS)
COUNT = 300


def poses(rng: np.random.Generator, count: int, spread: float = 1.5) -> Array:
    """Return random poses, shape (count, 4, 4)."""
    q, _ = np.linalg.qr(rng.normal(size=(count, 3, 3)))
    X = np.tile(np.eye(4), (count, 1, 1))
    X[:, :3, :3] = q * np.linalg.det(q)[:, None, None]
    X[:, :3, 3] = rng.uniform(-spread, spread, (count, 3))
    return X


def two_poses(first: str, second: str) -> tuple[Array, Array]:
    rng = np.random.default_rng(PAIRS.index((first, second)))
    return poses(rng, COUNT), poses(rng, COUNT)


def reach(shape: Primitive, X: Array, normals: Array) -> Array:
    """Return how far shapes at poses reach along normals."""
    local = np.einsum("nij,ni->nj", X[:, :3, :3], normals)
    if isinstance(shape, HalfSpace):
        np.testing.assert_allclose(
            local, np.tile([0.0, 0.0, 1.0], (len(X), 1)), atol=1e-9
        )
        points = np.zeros_like(local)
    else:
        points = shape.support(local)
    world = np.einsum("nij,nj->ni", X[:, :3, :3], points) + X[:, :3, 3]
    return np.einsum("ni,ni->n", world, normals)


def inside(shape: Primitive, X: Array, points: Array) -> Array:
    """Return numbers that are not above 0 where points are in shapes at poses."""
    local = np.einsum("nij,ni->nj", X[:, :3, :3], points - X[:, :3, 3])
    return local[:, 2] if isinstance(shape, HalfSpace) else beyond(shape, local)


def check(a: Primitive, X_A: Array, b: Primitive, X_B: Array, exact: float) -> Distance:
    """Prove distances: that bodies are no nearer, and that the points are theirs.

    Where they overlap this proves that the translation separates them.
    """
    found = distance(a, X_A, b, X_B)
    points, normal = found.points, found.normal
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1.0, atol=1e-9)
    step = found.value[:, None] * normal
    np.testing.assert_allclose(points[:, 1] - points[:, 0], step, atol=exact)
    width = reach(a, X_A, normal) + reach(b, X_B, -normal)
    np.testing.assert_allclose(found.value, -width, atol=exact)
    assert inside(a, X_A, points[:, 0]).max() < 10.0 * exact
    assert inside(b, X_B, points[:, 1]).max() < 10.0 * exact
    return found


@pytest.mark.sampled(6)
@each_pair
def test_a_plane_and_two_points_prove_it(first: str, second: str):
    X_A, X_B = two_poses(first, second)
    a, b = ALL[first], ALL[second]
    found = check(a, X_A, b, X_B, 1e-8)
    assert 0.03 < (found.value > 0.0).mean() < 0.97
    is_free = found.value > 0.0
    assert found.gap[is_free].max() < 1e-8
    assert (found.gap >= 0.0).all()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shape", ALL)
def test_it_is_symmetric_and_moves_with_both(shape: str, seed: int):
    """With another shape, drawn for each, since each pair takes two kernels."""
    pairs = [pair for pair in PAIRS if shape in pair]
    for first, second in random.Random(f"{seed} {shape}").sample(pairs, 1):
        X_A, X_B = two_poses(first, second)
        a, b = ALL[first], ALL[second]
        found = distance(a, X_A, b, X_B)
        sure = (found.value > 0.0) | (found.gap == 0.0)
        X = poses(np.random.default_rng(9), 1, 1.0)
        for value in (
            distance(b, X_B, a, X_A).value,
            distance(a, X @ X_A, b, X @ X_B).value,
            distance_kernel(a, b)(np.linalg.inv(X_A) @ X_B),
        ):
            np.testing.assert_allclose(
                value[sure],
                found.value[sure],
                atol=1e-8,
                err_msg=f"{first} and {second}",
            )


@pytest.mark.sampled(6)
@each_pair
def test_it_changes_by_no_more_than_bodies_move(first: str, second: str):
    X_A, X_B = two_poses(first, second)
    a, b = ALL[first], ALL[second]
    rng = np.random.default_rng(4)
    step = 10.0 ** rng.uniform(-9.0, -0.5, (COUNT, 1)) * rng.normal(size=(COUNT, 3))
    moved = X_B.copy()
    moved[:, :3, 3] += step
    before, after = distance(a, X_A, b, X_B), distance(a, X_A, b, moved)
    is_sure = np.maximum(before.gap, after.gap) < 1e-8
    change = np.abs(after.value - before.value) - np.linalg.norm(step, axis=1)
    assert change[is_sure].max() < 1e-8


def test_every_kind_of_primitive_is_tried():
    assert {type(shape) for shape in ALL.values()} == {*BEYOND, HalfSpace}


# The depth, beside all of A - B.

EXACT = [
    pair
    for pair in PAIRS
    if {*pair} & {"half space"}
    or (type(ALL[pair[0]]), type(ALL[pair[1]])) in FORMULAS
    or (type(ALL[pair[1]]), type(ALL[pair[0]])) in FORMULAS
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("first", "second"), [pair for pair in EXACT if "half space" not in pair]
)
def test_no_direction_separates_with_less(first: str, second: str):
    X_A, X_B = two_poses(first, second)
    a, b = ALL[first], ALL[second]
    found = distance(a, X_A, b, X_B)
    deep = np.flatnonzero(found.value < 0.0)[:40]
    assert deep.size
    rng = np.random.default_rng(8)
    for k in deep:
        N = rng.normal(size=(3000, 3))
        N /= np.linalg.norm(N, axis=1, keepdims=True)
        near = found.normal[k] + 0.01 * rng.normal(size=(500, 3))
        N = np.vstack([N, near / np.linalg.norm(near, axis=1, keepdims=True)])
        width = reach(a, X_A[[k]], N) + reach(b, X_B[[k]], -N)
        assert width.min() > -found.value[k] - 1e-9


def corners_of(shape: Any) -> Array:
    """Return the corners of a polytope, the core of a shape."""
    match shape:
        case Box():
            signs = np.array(list(itertools.product((-0.5, 0.5), repeat=3)))
            return signs * shape.size
        case Capsule():
            return np.array([[0, 0, -0.5], [0, 0, 0.5]]) * shape.length
        case Lozenge():
            signs = np.array(list(itertools.product((-0.5, 0.5), (-0.5, 0.5), (0.0,))))
            return signs * (*shape.size, 0.0)
        case Tetrahedron() | TriangularLozenge():
            return np.array(shape.corners)
        case _:
            return np.array(shape.vertices)


POLYTOPES = ("box", "lozenge", "triangular lozenge", "tetrahedron", "polyhedron")


@pytest.mark.parametrize(
    ("first", "second"), [pair for pair in PAIRS if {*pair} <= {*POLYTOPES, "capsule"}]
)
def test_the_depth_of_polytopes_is_that_of_their_difference(first: str, second: str):
    """Qhull has every facet of A - B; the nearest one to the origin is the depth."""
    X_A, X_B = two_poses(first, second)
    a, b = ALL[first], ALL[second]
    found = distance(a, X_A, b, X_B)
    radii = a.rounding + b.rounding
    deep = np.flatnonzero(found.value < -radii - 1e-6)[:60]
    if {first, second} == {"capsule"}:
        assert not deep.size
        return
    exact = np.empty(len(deep))
    for n, k in enumerate(deep):
        p, q = (
            corners_of(shape) @ X[k, :3, :3].T + X[k, :3, 3]
            for shape, X in ((a, X_A), (b, X_B))
        )
        difference = (p[:, None] - q[None]).reshape(-1, 3)
        exact[n] = -ConvexHull(difference).equations[:, 3].max() + radii
    ours = -found.value[deep]
    np.testing.assert_allclose(ours, exact, atol=1e-9)


@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("size", [4, 7, 33])
def test_hulls_are_as_far_apart_as_the_nearest_convex_combinations(
    kind: Any, size: int
):
    """Nonnegative least squares: the least |A s - B t| for weights of sum 1."""
    rng = np.random.default_rng(size)
    a, b = (rng.normal(size=(size, 3)) * (0.3, 0.2, 0.1) for _ in range(2))
    X = poses(rng, 100, 0.8).astype(kind)
    hulls = ConvexPolyhedron.around(a), ConvexPolyhedron.around(b)
    found = np.maximum(distance_kernel(*hulls, depth=False, dtype=kind)(X), 0.0)
    exact = {"float64": 1e-7, "float32": 1e-4}[kind]
    assert 0.05 < (found > 0.0).mean() < 0.95
    for value, pose in zip(found, X, strict=True):
        moved = b @ pose[:3, :3].T + pose[:3, 3]
        difference = (a[:, None] - moved[None]).reshape(-1, 3)
        convex = np.vstack([difference.T, 1e4 * np.ones(len(difference))])
        weights, _ = nnls(convex, np.array([0.0, 0.0, 0.0, 1e4]))
        nearest = np.linalg.norm(difference.T @ weights / weights.sum())
        assert value == pytest.approx(nearest, abs=exact)


@pytest.mark.sampled(4)
@each_pair
def test_without_depth_it_is_the_same_where_shapes_are_apart(first: str, second: str):
    X_A, X_B = two_poses(first, second)
    a, b = ALL[first], ALL[second]
    X = np.linalg.inv(X_A) @ X_B
    found = distance_kernel(a, b, depth=False)(X)
    value = distance(a, X_A, b, X_B).value
    is_free = value > 1e-7
    np.testing.assert_allclose(found[is_free], value[is_free], atol=1e-8)
    assert (found[value < -1e-7] <= 0.0).all()


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("first", "second", "depth"),
    [
        (*pair, depth)
        for shape, depth in (("box", True), ("polyhedron", False))
        for pair in PAIRS
        if shape in pair
    ],
)
def test_without_distance_it_is_a_bound_of_the_same_sign(
    first: str, second: str, depth: bool
):
    X_A, X_B = two_poses(first, second)
    a, b = ALL[first], ALL[second]
    found = distance_kernel(a, b, depth=depth, apart=False)(np.linalg.inv(X_A) @ X_B)
    value = distance(a, X_A, b, X_B).value
    is_free, is_deep = value > 1e-7, value < -1e-7
    assert (found[is_free] > 0.0).all()
    assert (found[is_free] <= value[is_free] + 1e-8).all()
    assert (found[is_deep] <= 0.0).all()
    if depth and (type(a), type(b)) in FORMULAS:
        np.testing.assert_allclose(found[is_deep], value[is_deep], atol=1e-12)


def test_without_distance_nan_stays():
    box = Box(size=(0.4, 0.3, 0.6))
    for entry in range(12):
        X = np.eye(4)
        X.flat[entry] = np.nan
        assert np.isnan(distance_kernel(box, box, apart=False)(X))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("first", "second"), EXACT)
def test_kernels_count_poses_of_shapes(first: str, second: str):
    a, b = ALL[first], ALL[second]
    rng = np.random.default_rng(5)
    X_A, X_B = poses(rng, 2, 0.3)
    X = poses(rng, COUNT)
    placed = (
        msgspec.structs.replace(shape, pose=Pose.from_matrix(X))
        for shape, X in ((a, X_A), (b, X_B))
    )
    found = distance_kernel(*placed)(X)
    wanted = distance_kernel(a, b)(np.linalg.inv(X_A) @ X @ X_B)
    np.testing.assert_allclose(found, wanted, atol=1e-12)
