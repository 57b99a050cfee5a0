"""Distances of flat shapes, and of shapes that touch, coincide, are far or tiny."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from armillary.errors import ModelError, ShapeError
from armillary.model.joints import Revolute
from armillary.model.primitive import Primitive
from armillary.model.shapes import (
    Box,
    Capsule,
    CircularLozenge,
    Cone,
    ConvexPolyhedron,
    Cylinder,
    Ellipsoid,
    HalfSpace,
    Lozenge,
    Mesh,
    Sphere,
    Tetrahedron,
    TriangularLozenge,
)
from armillary.shapes import distance, distance_kernel
from armillary.spatial.pose import Pose

Array = np.ndarray


def shapes_of_size(s: float) -> dict[str, Primitive]:
    """Shapes of all kinds, many of them flat, thin or points."""
    cube = itertools.product((-0.5 * s, 0.5 * s), repeat=3)
    triangle = ((0.0, 0.0, 0.0), (0.5 * s, 0.0, 0.0), (0.0, 0.5 * s, 0.0))
    return {
        "sphere": Sphere(radius=0.3 * s),
        "point": Sphere(radius=0.0),
        "capsule": Capsule(radius=0.2 * s, length=0.8 * s),
        "segment": Capsule(radius=0.0, length=0.8 * s),
        "box": Box(size=(0.4 * s, 0.8 * s, s)),
        "plate": Box(size=(0.4 * s, 0.8 * s, 0.0)),
        "stick": Box(size=(0.4 * s, 0.0, 0.0)),
        "lozenge": Lozenge(size=(0.4 * s, 0.8 * s), radius=0.1 * s),
        "disc": CircularLozenge(disc=0.4 * s, radius=0.0),
        "triangle": TriangularLozenge(corners=triangle, radius=0.0),
        "cylinder": Cylinder(radius=0.3 * s, length=0.8 * s),
        "needle": Cylinder(radius=0.0, length=0.8 * s),
        "flat cylinder": Cylinder(radius=0.3 * s, length=0.0),
        "cone": Cone(bottom=0.4 * s, length=0.6 * s),
        "flat cone": Cone(bottom=0.4 * s, length=0.0),
        "cone of no radius": Cone(bottom=0.0, length=0.6 * s),
        "ellipsoid": Ellipsoid(radii=(0.2 * s, 0.3 * s, 0.4 * s)),
        "flat ellipsoid": Ellipsoid(radii=(0.2 * s, 0.3 * s, 0.0)),
        "tetrahedron": Tetrahedron(corners=(*triangle, (0.0, 0.0, 0.5 * s))),
        "polyhedron": ConvexPolyhedron(vertices=list(cube)),
        "half space": HalfSpace(),
    }


def lattice() -> Array:
    """Return poses at which many shapes have parallel faces, touch or coincide."""
    steps = (0.0, 0.1, 0.4, 0.5, 0.7, 0.8, 1.0, -0.6)
    positions = np.array(list(itertools.product(steps, repeat=3)))
    c, s = np.cos(0.5), np.sin(0.5)
    rotations = np.array(
        [
            np.eye(3),
            [[0, -1, 0], [1, 0, 0], [0, 0, 1]],
            [[1, 0, 0], [0, 0, -1], [0, 1, 0]],
            [[1, 0, 0], [0, -1, 0], [0, 0, -1]],
            [[c, -s, 0], [s, c, 0], [0, 0, 1]],
        ]
    )
    X = np.tile(np.eye(4), (len(rotations) * len(positions), 1, 1))
    X[:, :3, :3] = np.repeat(rotations, len(positions), axis=0)
    X[:, :3, 3] = np.tile(positions, (len(rotations), 1))
    return X


LATTICE = lattice()
SOME = np.random.default_rng(1)
DIRECTIONS = np.vstack([SOME.normal(size=(100, 3)), np.eye(3), -np.eye(3)])
DIRECTIONS /= np.linalg.norm(DIRECTIONS, axis=1, keepdims=True)


def reach(shape: Primitive, X: Array, normals: Array) -> Array:
    """Return how far shapes at poses reach along normals."""
    local = np.einsum("nij,ni->nj", X[:, :3, :3], normals)
    if isinstance(shape, HalfSpace):
        upward = np.tile([0.0, 0.0, 1.0], (len(X), 1))
        np.testing.assert_allclose(local, upward, atol=1e-9)
        farthest = np.zeros_like(local)
    else:
        farthest = shape.support(local)
    return np.einsum("ni,ni->n", X[:, :3, 3], normals) + (local * farthest).sum(axis=1)


def beyond(shape: Primitive, X: Array, points: Array) -> float:
    """Return how far points are out of shapes at poses, in some directions."""
    local = np.einsum("nij,ni->nj", X[:, :3, :3], points - X[:, :3, 3])
    if isinstance(shape, HalfSpace):
        return float(local[:, 2].max())
    reaches = (DIRECTIONS * shape.support(DIRECTIONS)).sum(axis=1)
    return float((local @ DIRECTIONS.T - reaches).max())


def prove(a: Primitive, X_A: Array, b: Primitive, X_B: Array, exact: float) -> Array:
    """Check values by a plane between the shapes and a point of each."""
    X_A, X_B = np.broadcast_arrays(X_A, X_B)
    found = distance(a, X_A, b, X_B)
    points, normal = found.points, found.normal
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1.0, atol=1e-9)
    step = points[:, 1] - points[:, 0]
    np.testing.assert_allclose(step, found.value[:, None] * normal, atol=exact)
    width = reach(a, X_A, normal) + reach(b, X_B, 0.0 - normal)
    np.testing.assert_allclose(found.value, -width, atol=5.0 * exact)
    assert beyond(a, X_A, points[:, 0]) < exact
    assert beyond(b, X_B, points[:, 1]) < exact
    return found.value


KINDS = [*shapes_of_size(1.0)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("size", [1e-4, 1.0, 1e3])
@pytest.mark.parametrize("first", KINDS[:-1])
def test_touching_parallel_and_coincident_shapes(first: str, size: float, seed: int):
    """At a tenth of the lattice, drawn for each pair; a sixth of them if not of 1 m."""
    shapes = shapes_of_size(size)
    draw = np.random.default_rng([seed, KINDS.index(first)])
    others = KINDS[KINDS.index(first) :]
    if size != 1.0:
        others = draw.choice(others, -(-len(others) // 6), replace=False).tolist()
    for second in others:
        X = draw.choice(LATTICE, len(LATTICE) // 10, replace=False)
        X[:, :3, 3] *= size
        value = prove(shapes[first], np.eye(4), shapes[second], X, 1e-8 * size)
        assert np.isfinite(value).all()


@pytest.mark.parametrize("first", ["box", "capsule", "cylinder", "tetrahedron"])
def test_a_shape_that_equals_another_is_as_deep_as_it_is_thin(first: str):
    shape = shapes_of_size(1.0)[first]
    found = distance(shape, np.eye(4), shape, np.eye(4))
    least = {"box": 0.4, "capsule": 0.4, "cylinder": 0.6}
    if first in least:
        assert found.value == pytest.approx(-least[first])
    else:  # the difference of a tetrahedron and itself has a side through two edges
        assert -0.5 <= found.value <= -0.5 / np.sqrt(3.0) + 1e-9


def test_the_inner_of_two_nested_balls_leaves_through_the_nearest_side():
    outer, inner = Ellipsoid(radii=(2.0, 3.0, 4.0)), Ellipsoid(radii=(0.5, 0.2, 0.1))
    X = np.eye(4)
    X[:3, 3] = 1.0, 0.0, 0.0
    found = distance(outer, np.eye(4), inner, X)
    assert found.value == pytest.approx(-1.5)
    np.testing.assert_allclose(found.normal, (1.0, 0.0, 0.0), atol=1e-4)
    # A depth exact to 1e-9 leaves the direction, and so the points, to its root.
    np.testing.assert_allclose(found.points, [(2, 0, 0), (0.5, 0, 0)], atol=1e-4)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("second", KINDS)
def test_far_from_the_origin_it_is_as_near(second: str):
    shapes = shapes_of_size(1.0)
    X_A, X_B = np.tile(np.eye(4), (len(LATTICE), 1, 1)), LATTICE.copy()
    near = distance(shapes["cylinder"], X_A, shapes[second], X_B).value
    far = np.array([1e6, -2e6, 3e6])
    X_A[:, :3, 3] += far
    X_B[:, :3, 3] += far
    found = distance(shapes["cylinder"], X_A, shapes[second], X_B)
    is_free = near > 1e-6
    np.testing.assert_allclose(found.value[is_free], near[is_free], atol=2e-9)
    assert (found.value[near < -1e-6] < 0.0).all()


@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize(
    ("first", "second"), [("box", "capsule"), ("cone", "ellipsoid")]
)
def test_nan_stays_in_its_row(first: str, second: str, kind: Any):
    shapes = shapes_of_size(1.0)
    kernel = distance_kernel(shapes[first], shapes[second], dtype=kind)
    X = LATTICE[::7].astype(kind)
    wanted = kernel(X)
    X[3, 0, 3] = np.nan
    X[11, 1, 2] = np.nan
    bad = np.isin(np.arange(len(X)), (3, 11))
    np.testing.assert_array_equal(np.isnan(kernel(X)), bad)
    np.testing.assert_array_equal(kernel(X)[~bad], wanted[~bad])
    if kind == "float64":
        found = distance(shapes[first], np.eye(4), shapes[second], X)
        np.testing.assert_array_equal(np.isnan(found.value), bad)
        np.testing.assert_array_equal(np.isnan(found.points).all(axis=(1, 2)), bad)


ONE_OF_EACH_TYPE = [*{type(shapes_of_size(1.0)[kind]): kind for kind in KINDS}.values()]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("first", ONE_OF_EACH_TYPE[:-1])
def test_single_precision_is_near(first: str, seed: int):
    """To another shape, drawn for each, since each pair of types is a kernel."""
    shapes = shapes_of_size(1.0)
    draw = random.Random(f"{seed} {first}")
    second = draw.choice(KINDS[KINDS.index(first) :])
    a, b = shapes[first], shapes[second]
    exact = distance(a, np.eye(4), b, LATTICE)
    found = distance_kernel(a, b, dtype="float32")(LATTICE.astype("float32"))
    is_sure = (exact.value > 0.0) | (exact.gap == 0.0)
    assert np.abs(found - exact.value)[is_sure].max(initial=0.0) < 1e-3
    assert (found[exact.value < -1e-3] < 0.0).all()


def test_ten_thousand_vertices_are_refused_and_the_corners_of_many_points_fit():
    points = np.random.default_rng(0).normal(size=(10_000, 3))
    with pytest.raises(ModelError, match="more than 1000"):
        ConvexPolyhedron(vertices=points)
    hull = ConvexPolyhedron.around(points)
    X = np.eye(4)
    X[0, 3] = 9.0
    highest = points[:, 0].max()
    assert distance_kernel(hull, HalfSpace())(np.linalg.inv(X)) < 0.0
    wall = HalfSpace.below((0, 0, 0), (-1, 0, 0))
    found = distance(hull, np.eye(4), wall, X)
    assert found.value == pytest.approx(9.0 - highest)


# What a call may hold.


def test_the_pose_of_a_shape_counts():
    X = Pose.from_rpy(0.1, 0.2, 0.3, (1.0, 2.0, 3.0))
    ball = Sphere(radius=0.5, pose=Pose.translation(0.0, 0.0, 4.0))
    box = Box(size=(1, 1, 1), pose=X)
    there = Pose.translation(0.2, 0.0, 0.0)
    found = distance(ball, np.eye(4), box, there)
    plain = distance(
        Sphere(radius=0.5), ball.pose, Box(size=(1, 1, 1)), there.matrix() @ X.matrix()
    )
    assert found.value == pytest.approx(plain.value)
    np.testing.assert_allclose(found.points, plain.points)
    assert distance_kernel(ball, box)(there) == pytest.approx(found.value)
    assert distance_kernel(box, ball)(there.inverse()) == pytest.approx(found.value)


def test_batches_broadcast():
    a, b = Sphere(radius=0.5), Box(size=(1.0, 1.0, 1.0))
    found = distance(a, LATTICE[:6].reshape(3, 2, 4, 4), b, LATTICE[7:9])
    assert found.value.shape == found.gap.shape == (3, 2)
    assert found.points.shape == (3, 2, 2, 3)
    assert found.normal.shape == (3, 2, 3)
    one = distance(a, LATTICE[3], b, LATTICE[8])
    assert one.value == found.value[1, 1]
    np.testing.assert_array_equal(one.points, found.points[1, 1])


def test_other_sizes_compile_nothing(monkeypatch: pytest.MonkeyPatch):
    distance_kernel(Cylinder(radius=1.0, length=2.0), Cone(bottom=1.0, length=1.0))
    many = np.random.default_rng(3).normal(size=(50, 3))
    distance_kernel(ConvexPolyhedron.around(many), Sphere(radius=1.0))
    monkeypatch.setattr("armillary.kernel.compiler.compiled", None)
    cylinder = Cylinder(radius=0.3, length=0.5, name="pipe", colour=(1, 0, 0, 1))
    cone = Cone(bottom=0.2, top=0.1, length=1.5, pose=Pose.rotation_x(0.3))
    distance_kernel(cylinder, cone)
    distance_kernel(ConvexPolyhedron.around(many[:20]), Sphere(radius=0.2))


class Egg(Primitive, frozen=True, kw_only=True):
    """A ball, and a point above it; rounded."""

    ball: float
    tip: float
    shell: float

    @property
    def rounding(self) -> float:
        return self.shell

    def farthest(self, direction: Any) -> Any:
        x, y, z = direction
        length = np.sqrt(x * x + y * y + z * z)
        if self.tip * z > self.ball * length:
            return 0.0, 0.0, self.tip
        return tuple(self.ball / length * each for each in direction)


@pytest.mark.thorough
def test_a_shape_of_the_user_takes_part():
    """An egg is the nearer of its ball and the cone that touches ball and tip."""
    egg = Egg(ball=1, tip=2.0, shell=0.1)  # the whole number is an input, too
    X = LATTICE.copy()
    X[:, :3, 3] *= 4.0
    for shape in map(shapes_of_size(1.0).get, ONE_OF_EACH_TYPE):
        free = X[distance(egg, np.eye(4), shape, X).value > 0.0]
        assert len(free)
        prove(egg, np.eye(4), shape, free, 1e-8)
    ball = distance(egg, np.eye(4), Sphere(radius=0.0), Pose.translation(0, 0, -3))
    tip = distance(egg, np.eye(4), Sphere(radius=0.0), Pose.translation(0, 0, 3))
    assert (ball.value, tip.value) == pytest.approx((1.9, 0.9))
    assert Egg(ball=0.5, tip=1.0, shell=0.0).support((0, 0, 1))[2] == 1.0


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (HalfSpace(), HalfSpace(), "Two half spaces overlap without end"),
        (Mesh(file="a.stl"), Sphere(radius=1.0), "A Mesh has no distance; take its"),
        (Sphere(radius=1.0), Revolute(), "of two shapes, such as a Box, not of Revol"),
    ],
)
def test_pairs_without_a_distance_raise_an_error(a: Any, b: Any, message: str):
    with pytest.raises(ModelError, match=message):
        distance(a, np.eye(4), b, np.eye(4))


def test_poses_have_four_rows():
    with pytest.raises(ShapeError, match="X_B"):
        distance(Sphere(radius=1.0), np.eye(4), Sphere(radius=1.0), np.eye(3))


# Edges that are nearly parallel to faces, beside exact fractions.


def squared_distance(p: list[Fraction], u: list[Fraction], half: list[Fraction]):
    """Return that of p + t u, |t| <= 1, from |x_k| <= half_k.

    It is the least at one of the zeros of its slope, for each choice of faces that are
    passed, or where faces are passed, or at an end.
    """
    times = [Fraction(-1), Fraction(1)]
    for k in range(3):
        times += [(s * half[k] - p[k]) / u[k] for s in (-1, 1) if u[k]]
    for signs in itertools.product((-1, 0, 1), repeat=3):
        rise = sum(e * e for e, s in zip(u, signs, strict=True) if s)
        if rise:
            terms = zip(p, u, half, signs, strict=True)
            slope = sum(e * (x - s * h) for x, e, h, s in terms if s)
            times.append(-slope / rise)
    return min(
        sum(
            max(abs(x + t * e) - h, Fraction(0)) ** 2
            for x, e, h in zip(p, u, half, strict=True)
        )
        for t in times
        if abs(t) <= 1
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", [(0.4, 0.3, 0.6), (0.4, 0.2, 0.0), (0.4, 0.0, 0.0)])
@pytest.mark.parametrize("turned", [1e-16, 1e-12, 1e-9, 1e-6, 1e-3])
def test_nearly_parallel_segments_are_exact(
    size: tuple[float, float, float], turned: float
):
    rng = np.random.default_rng(7)
    box, segment = Box(size=size), Capsule(radius=0.0, length=0.6)
    X = np.tile(np.eye(4), (60, 1, 1))
    for k, pose in enumerate(X):
        axis = np.roll([0.0, 0.0, 1.0], k) + turned * rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        across = np.cross(axis, np.roll(axis, 1))
        across /= np.linalg.norm(across)
        pose[:3, :3] = np.column_stack([np.cross(across, axis), across, axis])
        middle = rng.choice([0.0, 0.1, 0.2, 0.3, 0.5], 3)
        pose[:3, 3] = middle + rng.choice([0.0, 1e-9]) * rng.normal(size=3)
    found = distance_kernel(box, segment)(X)
    half = [Fraction(length) / 2 for length in size]
    assert (found > 0.0).sum() > 10
    for value, pose in zip(found, X, strict=True):
        p, u = ([Fraction(x) for x in pose[:3, column]] for column in (3, 2))
        length = Fraction(segment.length) / 2
        square = squared_distance(p, [length * e for e in u], half)
        if square:
            assert abs(value - float(square) ** 0.5) < 1e-15
        else:
            assert value < 1e-15
