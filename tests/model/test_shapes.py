"""Laws of shapes, over every kind of them."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy.special import elliprg

from armillary.errors import ModelError, ShapeError
from armillary.model.geometry.bounding import sphere_around
from armillary.model.primitive import Primitive
from armillary.model.shape import Shape
from armillary.model.shapes import (
    SHAPES,
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
    Points,
    Sphere,
    Tetrahedron,
    TriangularLozenge,
    Voxels,
)
from armillary.spatial.pose import IDENTITY, Pose
from solids import BEYOND, CORNERS, SOLIDS, beyond

DENSITY = 3.0
CURVED = [name for name in SOLIDS if "hedron" not in name and name != "box"]
each_solid = pytest.mark.parametrize("name", SOLIDS)


def box_of_all(shape: Primitive) -> tuple[np.ndarray, np.ndarray]:
    lower, upper = shape.bounding_box()
    return np.array(lower), np.array(upper)


def integrals(points: np.ndarray) -> np.ndarray:
    """Return 1, x, y, z, xx, yy, zz, xy, xz, yz of each point."""
    x, y, z = points.T
    one = np.ones_like(x)
    return np.stack([one, x, y, z, x * x, y * y, z * z, x * y, x * z, y * z])


def numbers(moments: Any) -> np.ndarray:
    return np.array([moments.volume, *moments.first, *moments.second])


def directions(count: int, seed: int = 3) -> np.ndarray:
    """Return directions in general, along axes and nearly along axes."""
    random = np.random.default_rng(seed)
    axes = np.vstack([np.eye(3), -np.eye(3)])
    return np.vstack(
        [
            random.normal(size=(count, 3)),
            axes,
            axes + 1e-7 * random.normal(size=axes.shape),
        ]
    )


def some_pose(seed: int = 5) -> Pose:
    random = np.random.default_rng(seed)
    return Pose.from_quaternion(random.normal(size=4), random.normal(size=3))


# Volume and inertia.


@each_solid
@pytest.mark.parametrize("count", [1_000, 60_000])
def test_moments_are_those_of_random_points(name: str, count: int):
    """The error stays below 4.5 of what n points allow, which falls as n^-1/2."""
    shape = SOLIDS[name]
    lower, upper = box_of_all(shape)
    points = np.random.default_rng(11).uniform(lower, upper, (count, 3))
    values = integrals(points) * (beyond(shape, points) <= 0.0) * np.prod(upper - lower)
    spread = values.std(axis=1) / math.sqrt(count)
    error = values.mean(axis=1) - numbers(shape.moments)
    assert np.all(np.abs(error) < 4.5 * spread + 1e-12)


@pytest.mark.parametrize("name", CURVED)
def test_moments_of_triangles_converge_to_those_of_the_shape(name: str):
    """Inscribed triangles lie within t of the surface: their error falls as t."""
    shape = SOLIDS[name]
    exact = numbers(shape.moments)
    coarse, fine = (numbers(shape.triangles(t).moments) - exact for t in (4e-3, 1e-3))
    assert coarse[0] < 0.0 and fine[0] < 0.0
    assert np.all(np.abs(fine) < 2e-3 * shape.area)
    assert fine[0] / coarse[0] == pytest.approx(0.25, rel=0.2)
    # One step of extrapolation leaves the next order.
    ratio = fine[0] / coarse[0]
    better = (fine - ratio * coarse) / (1.0 - ratio)
    assert np.all(np.abs(better) < 0.05 * np.abs(fine).max())


@pytest.mark.parametrize("name", sorted(set(SOLIDS) - set(CURVED)))
def test_moments_of_flat_faces_are_exact(name: str):
    shape = SOLIDS[name]
    exact, found = numbers(shape.moments), numbers(shape.triangles().moments)
    assert found == pytest.approx(exact, rel=1e-12, abs=1e-13)


@each_solid
def test_area_is_that_of_fine_triangles(name: str):
    shape = SOLIDS[name]
    coarse, fine = (shape.triangles(t).area for t in (4e-3, 1e-3))
    better = fine + (fine - coarse) / 3.0
    assert better == pytest.approx(shape.area, rel=2e-4)
    assert fine <= shape.area * (1.0 + 1e-12)


@each_solid
def test_inertia_is_about_the_primary_frame(name: str):
    shape, X_PS = SOLIDS[name], some_pose()
    placed = msgspec.structs.replace(shape, pose=X_PS)
    expected = shape.moments.inertia(DENSITY).transformed(X_PS)
    assert placed.inertia(DENSITY) == expected
    assert placed.inertia(DENSITY).fault() is None
    assert placed.inertia(DENSITY).mass == pytest.approx(DENSITY * shape.volume)
    # A mass that is all at the samples says the same.
    points = shape.triangles(5e-4).transformed(X_PS).inertia(DENSITY)
    assert points.matrix() == pytest.approx(expected.matrix(), rel=0.01, abs=0.01)


@each_solid
@pytest.mark.parametrize("factor", [1e-3, 0.5, 3.0])
def test_scaling_laws(name: str, factor: float):
    shape = msgspec.structs.replace(SOLIDS[name], pose=some_pose())
    scaled = shape.scaled(factor)
    assert scaled.volume == pytest.approx(factor**3 * shape.volume)
    assert scaled.area == pytest.approx(factor**2 * shape.area)
    before, after = shape.inertia(DENSITY), scaled.inertia(DENSITY)
    assert after.mass == pytest.approx(factor**3 * before.mass)
    assert after.first_moment == pytest.approx(
        np.multiply(factor**4, before.first_moment), abs=1e-12 * factor**4
    )
    assert np.array(after.rotational) == pytest.approx(
        factor**5 * np.array(before.rotational), abs=1e-12 * factor**5
    )
    d = directions(20)
    assert scaled.support(d) == pytest.approx(factor * shape.support(d))
    assert scaled.bounding_sphere.radius == pytest.approx(
        factor * shape.bounding_sphere.radius
    )


def test_shapes_about_a_core_are_one_family():
    """Each is the limit of the next, so their separate formulas must agree."""
    ball = numbers(Sphere(radius=0.3).moments)
    pill = numbers(Capsule(radius=0.3, length=1.2).moments)
    flat = numbers(Lozenge(size=(0.0, 1.2), radius=0.3).moments)
    turned = [0, 1, 3, 2, 4, 6, 5, 8, 7, 9]  # y along the core, not z
    assert numbers(Capsule(radius=0.3, length=0.0).moments) == pytest.approx(ball)
    assert numbers(CircularLozenge(disc=0.0, radius=0.3).moments) == (
        pytest.approx(ball)
    )
    assert numbers(Lozenge(size=(0.0, 0.0), radius=0.3).moments) == pytest.approx(ball)
    assert flat[turned] == pytest.approx(pill)
    assert numbers(Cone(bottom=0.3, top=0.3, length=0.7).moments) == pytest.approx(
        numbers(Cylinder(radius=0.3, length=0.7).moments)
    )
    assert numbers(Ellipsoid(radii=(0.3, 0.3, 0.3)).moments) == pytest.approx(ball)


def test_two_triangles_make_a_lozenge():
    """Their swept volumes together are that of the rectangle and of the diagonal."""
    a, b, c, d = (0.0, 0.0, 0.1), (1.0, 0.0, 0.1), (1.0, 0.6, 0.1), (0.0, 0.6, 0.1)
    whole = Lozenge(size=(1.0, 0.6), radius=0.2)
    middle = Pose.translation(0.5, 0.3, 0.1)
    diagonal = Capsule.between(a, c, radius=0.2)
    halves = [
        TriangularLozenge(corners=corners, radius=0.2)
        for corners in ((a, b, c), (c, d, a))
    ]
    together = halves[0].inertia(DENSITY) + halves[1].inertia(DENSITY)
    expected = msgspec.structs.replace(whole, pose=middle).inertia(DENSITY)
    assert together.matrix() == pytest.approx(
        (expected + diagonal.inertia(DENSITY)).matrix()
    )


# Bounds and support.


@each_solid
def test_bounds_hold_everything_and_touch_it(name: str):
    shape, X_AS = SOLIDS[name], some_pose()
    tolerance = 1e-4
    points = shape.triangles(tolerance).transformed(X_AS).vertices
    lower, upper = shape.bounding_box(X_AS)
    assert np.all(points >= np.array(lower) - 1e-12)
    assert np.all(points <= np.array(upper) + 1e-12)
    assert points.min(axis=0) == pytest.approx(lower, abs=2 * tolerance)
    assert points.max(axis=0) == pytest.approx(upper, abs=2 * tolerance)


@each_solid
def test_the_bounding_sphere_is_the_smallest(name: str):
    shape = SOLIDS[name]
    tolerance = 1e-3
    points = shape.triangles(tolerance).vertices
    centre, radius = shape.bounding_sphere
    assert np.linalg.norm(points - centre, axis=1).max() <= radius * (1.0 + 1e-12)
    smallest = sphere_around(points).radius
    assert smallest <= radius * (1.0 + 1e-9)
    assert radius <= smallest + 2 * tolerance


@each_solid
def test_random_points_inside_are_within_all_bounds(name: str):
    shape = SOLIDS[name]
    lower, upper = box_of_all(shape)
    wide = np.random.default_rng(1).uniform(lower - 0.5, upper + 0.5, (8_000, 3))
    points = wide[beyond(shape, wide) <= 0.0]
    assert len(points) > 100
    assert np.all((points >= lower) & (points <= upper))
    centre, radius = shape.bounding_sphere
    assert np.linalg.norm(points - centre, axis=1).max() <= radius
    d = directions(100)
    reach = np.einsum("ij,ij->i", d, shape.support(d))
    assert np.all(points @ d.T <= reach + 1e-12)


@each_solid
def test_support_is_attained(name: str):
    shape = SOLIDS[name]
    points = shape.support(directions(200))
    middle = np.mean(shape.triangles(1e-2).vertices, axis=0)
    inwards = points + 1e-6 * (middle - points)
    assert np.all(beyond(shape, inwards) <= 0.0)


@each_solid
def test_reach_is_convex_and_grows_with_the_direction(name: str):
    shape = SOLIDS[name]
    a, b = directions(300, seed=1), directions(300, seed=2)

    def reach(d: np.ndarray) -> np.ndarray:
        return np.einsum("ij,ij->i", d, shape.support(d))

    assert np.all(reach(a + b + 1e-9) <= reach(a) + reach(b) + 1e-7)
    for size in (1e-300, 1e300):
        assert shape.support(size * a) == pytest.approx(shape.support(a), abs=1e-9)


@each_solid
@pytest.mark.parametrize("batch", [(), (1,), (3, 1, 2), (0,)])
def test_support_takes_batches(name: str, batch: tuple[int, ...]):
    shape = SOLIDS[name]
    d = np.random.default_rng(4).normal(size=(*batch, 3))
    points = shape.support(d)
    assert points.shape == d.shape
    for index in np.ndindex(batch):
        assert np.array_equal(points[index], shape.support(d[index]))


def test_directions_that_are_invalid_are_refused():
    for bad in ((0, 0, 0), (math.nan, 0, 1), (math.inf, 0, 0)):
        with pytest.raises(ModelError, match="is zero or not finite"):
            Sphere(radius=1.0).support(bad)
    with pytest.raises(ShapeError, match=r"shape \(\.\.\., 3\), not \(2,\)"):
        Sphere(radius=1.0).support((1.0, 2.0))


# Triangles.


@each_solid
@pytest.mark.parametrize("tolerance", [3e-2, 2e-3])
def test_triangles_are_closed_and_near_the_surface(name: str, tolerance: float):
    """Each face lies a little behind the plane that touches along its normal."""
    shape = SOLIDS[name]
    mesh = shape.triangles(tolerance)
    assert mesh.is_watertight
    assert len(mesh.vertices) - len(mesh.faces) // 2 == 2  # Euler: one closed body
    touching = np.einsum("ij,ij->i", mesh.normals, shape.support(mesh.normals))
    depth = touching - np.einsum("ij,ij->i", mesh.normals, mesh.corners[:, 0])
    assert depth.min() > -1e-12
    assert depth.max() <= tolerance


def test_triangles_refuse_what_is_not_a_tolerance():
    for shape in SOLIDS.values():
        for bad in (0.0, -1.0, math.nan):
            with pytest.raises(ModelError, match="A tolerance is a length above 0"):
                shape.triangles(bad)
    for name in CURVED:
        with pytest.raises(ModelError, match="asks for more than 4000000 triangles"):
            SOLIDS[name].triangles(1e-15)


# Flat, thin and pointed ones.

FLAT = [
    Box(size=(0.0, 1.0, 2.0)),
    Box(size=(0.0, 0.0, 0.0)),
    Sphere(radius=0.0),
    Cylinder(radius=1.0, length=0.0),
    Cylinder(radius=0.0, length=1.0),
    Capsule(radius=0.0, length=1.0),
    Lozenge(size=(1.0, 2.0), radius=0.0),
    CircularLozenge(disc=1.0, radius=0.0),
    TriangularLozenge(corners=CORNERS[:3], radius=0.0),
    Ellipsoid(radii=(0.0, 1.0, 2.0)),
    Ellipsoid(radii=(0.0, 1.0, 0.0)),
    Cone(bottom=0.0, top=0.0, length=1.0),
    Cone(bottom=1.0, top=2.0, length=0.0),
]


@pytest.mark.parametrize("shape", FLAT, ids=repr)
def test_sizes_of_zero_leave_flat_bodies(shape: Primitive):
    assert shape.volume == 0.0
    assert shape.inertia(DENSITY).mass == 0.0
    d = directions(50)
    points = shape.support(d)
    assert np.isfinite(points).all()
    centre, radius = shape.bounding_sphere
    assert np.linalg.norm(points - centre, axis=1).max() <= radius * (1.0 + 1e-12)
    lower, upper = box_of_all(shape)
    assert np.all((points >= lower) & (points <= upper))
    corners = shape.triangles(0.1).vertices
    assert np.all((corners >= lower - 1e-12) & (corners <= upper + 1e-12))


def test_a_flat_disc_has_two_sides():
    assert Cylinder(radius=1.0, length=0.0).area == pytest.approx(2.0 * math.pi)
    assert Ellipsoid(radii=(1.0, 0.0, 2.0)).area == pytest.approx(4.0 * math.pi)
    assert Ellipsoid(radii=(0.0, 0.0, 2.0)).area == 0.0


def test_a_vertex_inside_a_convex_polyhedron_changes_nothing():
    whole, without = (ConvexPolyhedron(vertices=v) for v in (INSIDE, INSIDE[:4]))
    assert whole.volume == pytest.approx(without.volume)
    assert whole.bounding_sphere == without.bounding_sphere
    directions = np.random.default_rng(0).normal(size=(50, 3))
    assert np.array_equal(whole.support(directions), without.support(directions))


def test_area_of_ellipsoids_is_that_of_the_elliptic_integral_of_scipy():
    random = np.random.default_rng(0)
    for a, b, c in 10.0 ** random.uniform(-3.0, 3.0, (200, 3)):
        area = 4.0 * math.pi * elliprg((a * b) ** 2, (b * c) ** 2, (c * a) ** 2)
        assert Ellipsoid(radii=(a, b, c)).area == pytest.approx(area, rel=1e-13)


# Half spaces.


def test_a_half_space_has_bounds_only_along_its_normal():
    floor = HalfSpace()
    assert floor.bounding_box() == ((-math.inf,) * 3, (math.inf, math.inf, 0.0))
    wall = HalfSpace.below((1.0, 2.0, 3.0), (-2.0, 0.0, 0.0))
    lower, upper = wall.bounding_box(wall.pose)
    assert lower == (1.0, -math.inf, -math.inf)
    assert upper == (math.inf,) * 3
    assert np.array_equal(floor.support((0.0, 0.0, 2.0)), np.zeros(3))
    assert floor.volume == floor.area == math.inf
    assert floor.scaled(2.0) == floor


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (lambda s: s.support((0.1, 0.0, 1.0)), "only along its normal"),
        (lambda s: s.inertia(1.0), "it has no mass"),
        (lambda s: s.moments, "it has no mass"),
        (lambda s: s.bounding_sphere, "no sphere holds it"),
        (lambda s: s.triangles(), "draw a part of its plane"),
    ],
)
def test_a_half_space_is_infinite(ask: Callable[[HalfSpace], Any], why: str):
    with pytest.raises(ModelError, match=f"'floor': a half space is infinite; {why}"):
        ask(HalfSpace(name="floor"))


@pytest.mark.parametrize("normal", [(0, 0, 5), (0, 0, -1), (1, 2, 3), (1, 0, -1e-9)])
def test_a_half_space_lies_behind_its_plane(normal: tuple[float, float, float]):
    point = (1.0, -2.0, 3.0)
    pose = HalfSpace.below(point, normal).pose
    assert pose.position == point
    out = np.array(normal) / np.linalg.norm(normal)
    assert pose.rotate((0.0, 0.0, 1.0)) == pytest.approx(out, abs=1e-15)


# Where they stand.


@pytest.mark.parametrize("kind", [Capsule, Cylinder])
def test_round_ones_stand_between_two_points(kind: type[Capsule] | type[Cylinder]):
    for seed in range(20):
        a, b = np.random.default_rng(seed).normal(size=(2, 3))
        shape = kind.between(a, b, radius=0.1, name="tube")
        ends = [shape.pose @ (0.0, 0.0, z * shape.length) for z in (-0.5, 0.5)]
        assert np.array(ends) == pytest.approx(np.array([a, b]), abs=1e-12)
        assert shape.name == "tube"
    down = kind.between((0, 0, 1), (0, 0, -1), radius=1.0)
    assert down.length == 2.0
    assert np.array(down.pose @ (0.0, 0.0, 1.0)) == pytest.approx([0, 0, -1])
    assert kind.between((1, 2, 3), (1, 2, 3), radius=1.0).length == 0.0
    with pytest.raises(ModelError, match="is not finite"):
        kind.between((0, 0, 0), (0, 0, math.inf), radius=1.0)


def test_a_cone_is_wide_where_it_starts():
    cone = Cone.between((0, 0, 0), (2, 0, 0), bottom=1.0)
    assert cone.bounding_box(cone.pose).lower == pytest.approx((0, -1, -1), abs=1e-12)
    assert cone.bounding_box(cone.pose).upper == pytest.approx((2, 1, 1), abs=1e-12)
    assert cone.inertia(1.0).centre() == pytest.approx((0.5, 0, 0))


def test_a_polyhedron_around_points_leaves_inner_ones_out():
    cube = np.stack(np.meshgrid(*[[0.0, 0.5, 1.0]] * 3), axis=-1).reshape(-1, 3)
    shape = ConvexPolyhedron.around(cube, name="cube")
    assert len(shape.vertices) == 8
    assert shape.volume == pytest.approx(1.0)
    assert len(shape.faces) == 12
    assert shape.bounding_sphere.radius == pytest.approx(0.5 * math.sqrt(3.0))
    # Points on faces and edges are fine, they are only no corners.
    on_surface = cube[np.any((cube == 0.0) | (cube == 1.0), axis=1)]
    assert ConvexPolyhedron(vertices=on_surface).volume == pytest.approx(1.0)


# As values.


@pytest.mark.parametrize(
    "shape", [*SOLIDS.values(), HalfSpace(), Mesh(file="a.stl")], ids=repr
)
def test_shapes_are_values(shape: Shape):
    placed = msgspec.structs.replace(
        shape, pose=some_pose(), name="x", colour=(1, 0, 0, 0.5)
    )
    for twin in (pickle.loads(pickle.dumps(placed)), copy.deepcopy(placed)):
        assert twin == placed
        assert hash(twin) == hash(placed)
    assert placed != shape
    assert placed.scaled(1.0) == placed
    with pytest.raises(AttributeError, match="immutable type"):
        placed.name = "y"  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ModelError, match="scaled by a number above 0"):
        shape.scaled(0.0)


def test_every_kind_is_tried():
    others = {HalfSpace, Mesh, Points, Voxels}  # test_clouds.py has the last two
    assert {*map(type, SOLIDS.values()), *others} == set(SHAPES)
    assert set(BEYOND) == set(SHAPES) - others


def test_numbers_of_any_kind_are_stored_as_floats():
    mixed: Any = [1, np.float32(2.0), np.int64(3)]
    X: Any = np.eye(4)
    box = Box(size=mixed, pose=X, colour=[1] * 4)
    assert repr(box) == repr(Box(size=(1.0, 2.0, 3.0), colour=(1.0, 1.0, 1.0, 1.0)))
    assert hash(box) == hash(Box(size=(1.0, 2.0, 3.0), colour=(1.0,) * 4))
    assert box.pose == IDENTITY
    corners = np.array(CORNERS)
    assert Tetrahedron(corners=corners) == Tetrahedron(corners=CORNERS)


LEFT_HANDED = (CORNERS[1], CORNERS[0], *CORNERS[2:])
IN_A_LINE = ((0, 0, 0), (1, 1, 1), (2, 2, 2 + 1e-12))
INSIDE = (*CORNERS, (0.4, 0.5, 0.6))
SHEARED = Pose(((1.0, 0.1, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)), (0.0, 0.0, 0.0))
MIRROR = Pose(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, -1.0)), (0.0, 0.0, 0.0))
NOWHERE = Pose(IDENTITY.rotation, (0.0, math.nan, 0.0))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Sphere(radius=-1.0), r"Sphere: radius is -1\.0; it must be a length"),
        (lambda: Sphere(radius=math.nan), "radius is nan"),
        (lambda: Sphere(radius=math.inf), "radius is inf"),
        (lambda: Sphere(radius=2e15), r"radius is 20.*0; it must be .* to 1e\+15 m"),
        (lambda: Sphere(radius="1"), "radius is '1'"),  # pyright: ignore
        (lambda: Sphere(radius=True), "radius is True"),
        (lambda: Sphere(radius=10**400), "radius is 1000"),
        (lambda: Box(name="lid", size=(1, 2, -3)), r"Box 'lid': size\[2\] is -3"),
        (lambda: Box(size=(1, 2)), "size has 2 parts; it must have 3"),  # pyright: ignore
        (lambda: Box(size=1.0), "size is 1.0; it must be a sequence"),  # pyright: ignore
        (lambda: Ellipsoid(radii=(1, math.nan, 1)), r"radii\[1\] is nan"),
        (lambda: Cone(bottom=1.0, top=-0.1, length=1.0), "top is -0.1"),
        (lambda: Lozenge(size=(1, 1), radius=-0.1), "radius is -0.1"),
        (lambda: CircularLozenge(disc=-1, radius=1), "disc is -1"),
        (lambda: Cylinder(radius=1, length=-1), "length is -1"),
        (lambda: Capsule(radius=1, length=-1), "length is -1"),
        (lambda: Tetrahedron(corners=LEFT_HANDED), "left-handed; exchange two"),
        (lambda: Tetrahedron(corners=(*CORNERS[:3], CORNERS[0])), "in one plane"),
        (lambda: Tetrahedron(corners=((0, 0, 0),) * 4), "in one plane"),
        (lambda: Tetrahedron(corners=CORNERS[:3]), "has 3 parts"),  # pyright: ignore
        (lambda: TriangularLozenge(corners=IN_A_LINE, radius=1), "lie in one line"),
        (lambda: TriangularLozenge(corners=((0, 0, 0),) * 3, radius=1), "one line"),
        (
            lambda: TriangularLozenge(
                corners=((0, 0, math.nan), *CORNERS[:2]), radius=1
            ),
            r"corners\[0\] holds nan",
        ),
        (lambda: ConvexPolyhedron(vertices=CORNERS[:3]), "3 points span no body"),
        (lambda: ConvexPolyhedron(vertices=()), "0 points span no body"),
        (lambda: ConvexPolyhedron(vertices=CORNERS[:3] * 2), "lie in one plane"),
        (lambda: ConvexPolyhedron(vertices=CORNERS * 251), "1004 vertices, more than"),
        (lambda: ConvexPolyhedron.around([(0, 0, math.inf)] * 5), "finite points"),
        (lambda: HalfSpace.below((0, 0, 0), (0, 0, 0)), "zero or not finite"),
        (lambda: Mesh(file=" "), "names no file"),
        (lambda: Mesh(file="a.stl", scale=(1, 1, math.inf)), "scale holds inf"),
        (lambda: Sphere(radius=1, pose=SHEARED), "sheared, scaled or reflected"),
        (lambda: Sphere(radius=1, pose=MIRROR), "sheared, scaled or reflected"),
        (lambda: Sphere(radius=1, pose=NOWHERE), "not a finite number"),
        (lambda: Sphere(radius=1, pose=np.ones((4, 4))), "its pose is invalid"),  # pyright: ignore
        (lambda: Sphere(radius=1, colour=(1, 0, 0, 2)), r"leaves \[0, 1\]"),
        (lambda: Sphere(radius=1, colour=(1, 0, math.nan, 1)), r"leaves \[0, 1\]"),
        (lambda: Sphere(radius=1, colour="red"), "must be a sequence"),  # pyright: ignore
    ],
)
def test_what_is_not_a_shape_is_refused(make: Callable[[], Shape], why: str):
    with pytest.raises(ModelError, match=why):
        make()


def test_densities_that_are_invalid_are_refused():
    for density in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ModelError, match="A density is a number above 0"):
            Sphere(radius=1.0).inertia(density)
    far = Sphere(radius=1.0, pose=Pose.translation(1e200, 0.0, 0.0))
    with pytest.raises(ModelError, match="too large for a double"):
        far.inertia(1.0)


def test_points_of_a_wrong_shape_are_refused():
    with pytest.raises(ShapeError, match=r"Points have shape \(n, 3\), not \(3,\)"):
        ConvexPolyhedron.around([1.0, 2.0, 3.0])


# Another library.


@pytest.mark.peers
def test_coal_agrees_on_volumes_and_inertia():
    coal = pytest.importorskip("coal")
    pairs = [
        (Box(size=(0.4, 1.0, 1.7)), coal.Box(0.4, 1.0, 1.7)),
        (Sphere(radius=0.7), coal.Sphere(0.7)),
        (Cylinder(radius=0.4, length=1.5), coal.Cylinder(0.4, 1.5)),
        (Capsule(radius=0.3, length=1.1), coal.Capsule(0.3, 1.1)),
        (Ellipsoid(radii=(0.3, 0.8, 1.2)), coal.Ellipsoid(0.3, 0.8, 1.2)),
    ]
    for ours, theirs in pairs:
        assert ours.volume == pytest.approx(theirs.computeVolume())
        assert np.array(ours.inertia(1.0).rotational) == pytest.approx(
            theirs.computeMomentofInertia()
        )
