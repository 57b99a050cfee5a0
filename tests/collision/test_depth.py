"""Depths of overlapping shapes, against judges that know only support functions."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.distance_agreement import (
    KINDS,
    TOLERANCE,
    extent,
    judge,
    pairs,
    poses,
)

from armillary.model.primitive import Primitive
from armillary.model.shapes import Box, Cone, Cylinder, Ellipsoid, Tetrahedron
from armillary.shapes import distance, distance_kernel
from armillary.spatial.pose import Pose


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kinds", pairs(), ids=" and ".join)
def test_values_are_right_or_said_to_be_uncertain(kinds: tuple[str, str]):
    rng = np.random.default_rng(pairs().index(kinds))
    # The other way round is another kernel, unless both are of one kind.
    is_back_tried = kinds[0] == kinds[1] or pairs().index(kinds) % 4 == 0
    for _ in range(2):
        a, b = (KINDS[kind](rng.uniform(0.05, 1.0, 3), rng) for kind in kinds)
        X = poses(rng, a, b, 40)
        found = distance(a, np.eye(4), b, X)
        wrong, _, false_free = judge(a, b, X, found)
        size = extent(a) + extent(b)
        assert not false_free.any()
        assert not (wrong & (found.gap < TOLERANCE * size)).any()
        assert found.gap.max() < 1e-2 * size
        # About a tenth of the poses are nearly concentric.
        assert (found.gap > 1e-6 * size).mean() < 0.15
        if is_back_tried:
            back = distance(b, X, a, np.eye(4)).value
            uncertain = np.maximum(found.gap, TOLERANCE * size)
            assert (np.abs(back - found.value) < 3.0 * uncertain + 1e-7 * size).all()


CONCENTRIC: list[tuple[Primitive, Primitive, float]] = [
    (Cylinder(radius=0.3, length=1.0), Cylinder(radius=0.2, length=0.8), 0.5),
    (Cylinder(radius=0.3, length=0.2), Cylinder(radius=0.9, length=0.4), 0.3),
    (Ellipsoid(radii=(0.3, 0.4, 0.5)), Ellipsoid(radii=(0.2, 0.9, 0.9)), 0.5),
    (Ellipsoid(radii=(1.0, 1.0, 1.0)), Ellipsoid(radii=(0.5, 0.5, 0.5)), 1.5),
    (Cone(bottom=0.3, top=0.3, length=2.0), Cylinder(radius=0.1, length=2.0), 0.4),
]


@pytest.mark.parametrize(("a", "b", "depth"), CONCENTRIC)
@pytest.mark.parametrize("offset", [0.0, 1e-12, 1e-9])
def test_nearly_concentric_round_shapes(
    a: Primitive, b: Primitive, depth: float, offset: float
):
    X = Pose.translation(0.6 * offset, 0.0, -0.8 * offset)
    found = distance(a, np.eye(4), b, X)
    assert found.value == pytest.approx(-depth, abs=3e-9)
    assert found.gap < 0.1


def test_the_depth_of_a_tetrahedron_in_itself_is_that_of_its_difference():
    """The difference has a side across two opposite edges, 1 / sqrt(2) apart."""
    corners = [(1, 1, 1), (-1, 1, -1), (1, -1, -1), (-1, -1, 1)]
    solid = Tetrahedron(corners=[np.multiply(0.5, p) for p in corners])
    found = distance(solid, np.eye(4), solid, np.eye(4))
    assert found.value == pytest.approx(-1.0)
    assert found.gap < 1e-6


ROUND: list[Primitive] = [
    Cylinder(radius=0.2, length=0.5),
    Cone(bottom=0.2, top=0.05, length=0.5),
]


@pytest.mark.parametrize("other", ROUND, ids=lambda shape: type(shape).__name__)
def test_a_round_body_turned_about_its_axis_is_as_deep_in_a_box(other: Primitive):
    # A polytope finds another depth for each turn, up to its tolerance of 1e-9; widths
    # that are stationary are exact.
    depth = distance_kernel(Box(size=(0.4, 0.3, 0.6)), other)
    rng = np.random.default_rng(4)
    poses = [
        Pose.rotation_z(angle) @ Pose.rotation_x(tilt) @ Pose.rotation_z(twist)
        for angle, tilt, twist in rng.uniform(-3.0, 3.0, (40, 3))
    ]
    X = np.array([pose.matrix() for pose in poses])
    X[:, :3, 3] = rng.uniform(-0.25, 0.25, (40, 3))
    turned = X @ Pose.rotation_z(0.7).matrix()
    before = depth(X)
    assert (before < 0.0).sum() > 30
    assert np.abs(depth(turned) - before)[before < 0.0].max() < 1e-13


def test_a_corner_leaves_a_cylinder_along_its_radius():
    # The vertical edge of a box, 0.2 m in x and y from the axis: 0.3 m less sqrt(0.08).
    pole, box = Cylinder(radius=0.3, length=9.0), Box(size=(1.0, 1.0, 9.0))
    found = distance(pole, np.eye(4), box, Pose.translation(0.7, 0.7, 0.1))
    assert found.value == pytest.approx(np.sqrt(0.08) - 0.3, abs=1e-15)
    assert found.gap < 1e-7


def round_and_flat(s: float) -> list[tuple[Primitive, Primitive]]:
    """Pairs of shapes without closed forms, s times as large."""
    corners = s * np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)])
    pole = Cylinder(radius=0.2 * s, length=0.8 * s)
    return [
        (Cylinder(radius=0.3 * s, length=s), pole),
        (Box(size=(0.3 * s, 0.4 * s, 0.5 * s)), pole),
        (Cone(bottom=0.3 * s, length=0.6 * s), Ellipsoid(radii=(0.2 * s, 0.3 * s, s))),
        (Tetrahedron(corners=corners), Tetrahedron(corners=corners)),
    ]


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e3])
@pytest.mark.parametrize("pair", range(4))
def test_bodies_that_touch(pair: int, scale: float):
    """Moved along the normal by little more or less than their distance."""
    a, b = round_and_flat(scale)[pair]
    size, rng = extent(a) + extent(b), np.random.default_rng(8)
    X = poses(rng, a, b, 60)
    found = distance(a, np.eye(4), b, X)
    for _ in range(3):
        X[:, :3, 3] -= found.value[:, None] * found.normal
        found = distance(a, np.eye(4), b, X)
    signs = rng.choice([-1.0, 0.0, 1.0], len(X))
    moved = signs * size * 10.0 ** rng.uniform(-15, -7, len(X))
    X[:, :3, 3] += moved[:, None] * found.normal
    found = distance(a, np.eye(4), b, X)
    far = size + np.linalg.norm(X[:, :3, 3], axis=1)
    wrong, unproven, false_free = judge(a, b, X, found)
    # Normals of what is apart by little more lose digits where corners meet.
    touches = np.abs(moved) <= TOLERANCE * far
    assert not (wrong | (unproven & touches) | false_free).any()
    assert touches.sum() > 30
    assert (np.abs(found.value - moved) <= 3.0 * TOLERANCE * far).all()
    assert (found.gap <= 3.0 * TOLERANCE * far).all()
    assert np.abs(np.linalg.norm(found.normal, axis=1) - 1.0).max() < 1e-14
    # Alone, in lanes, and as values only.
    alone = np.array([distance_kernel(a, b)(x) for x in X])
    assert (np.abs(alone - found.value) <= 2.0 * TOLERANCE * far).all()
    assert np.abs(distance_kernel(a, b)(X) - alone).max() <= (TOLERANCE * far).max()
    # The other way round, and both moved.
    back = distance(b, X, a, np.eye(4)).value
    assert (np.abs(back - found.value) <= 2.0 * TOLERANCE * far).all()
    there = (Pose.translation(0.3 * scale, 0.0, -0.2 * scale) @ turned()).matrix()
    again = distance(a, there, b, there @ X)
    assert (np.abs(again.value - found.value) <= 3.0 * TOLERANCE * far).all()


def test_no_space_is_made_where_edges_touch():
    """Where the search ends aside the value is what a plane proves."""
    a, b = round_and_flat(1.0)[1]
    X = np.concatenate([poses(np.random.default_rng(k), a, b, 60) for k in range(60)])
    for _ in range(3):
        found = distance(a, np.eye(4), b, X)
        X[:, :3, 3] -= found.value[:, None] * found.normal
    found = distance(a, np.eye(4), b, X)
    wrong, _, false_free = judge(a, b, X, found)
    assert not (wrong | false_free).any()
    assert found.gap.max() < 1e-9


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("pair", range(4))
def test_rows_that_touch_are_answered_as_if_alone(pair: int, dtype: type):
    """A batch is computed without depths first, and ends where a bound will do."""
    a, b = round_and_flat(1.0)[pair]
    size, rng = extent(a) + extent(b), np.random.default_rng(9)
    X = poses(rng, a, b, 100)
    touch = X[:60]
    found = distance(a, np.eye(4), b, touch)
    left = rng.choice([-1, 0, 1], 60) * 10.0 ** rng.uniform(-17, -6, 60) * size
    touch[:, :3, 3] -= (found.value - left)[:, None] * found.normal
    X = X[rng.permutation(len(X))].astype(dtype)
    for depth, apart in ((True, True), (True, False), (False, True), (False, False)):
        kernel = distance_kernel(a, b, depth=depth, apart=apart, dtype=dtype)
        values = kernel(X)
        np.testing.assert_array_equal(values, [kernel(x) for x in X])
        np.testing.assert_array_equal(values, kernel(X, threads=2))
        assert min((values > 0.0).sum(), (values <= 0.0).sum()) > 10


def turned() -> Pose:
    """A rotation by general angles."""
    return Pose.rotation_z(0.7) @ Pose.rotation_x(1.1)
