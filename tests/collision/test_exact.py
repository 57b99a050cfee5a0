"""Meshes in collision checks by their triangles, with coal."""

from __future__ import annotations

import itertools
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError
from armillary.formats.mesh import MeshFiles
from armillary.model.geometry.triangles import Triangles
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

pytestmark = pytest.mark.peers

SLIDE = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1)}


def boxes(*parts: tuple[Any, Any]) -> Triangles:
    """Return the surfaces of boxes of a size and a centre."""
    solids = [
        Box(size=size).triangles().transformed(arm.Pose.translation(*centre))
        for size, centre in parts
    ]
    counts = np.cumsum([0] + [len(each.vertices) for each in solids])
    return Triangles(
        np.concatenate([each.vertices for each in solids]),
        np.concatenate([s.faces + n for s, n in zip(solids, counts, strict=False)]),
    )


def ring(inner: float, outer: float, half: float) -> Triangles:
    """Return a closed square ring about z."""
    square = np.array([(1, 1), (-1, 1), (-1, -1), (1, -1)])
    vertices = np.array(
        [(*r * xy, z) for r, z in turns(inner, outer, half) for xy in square]
    )
    faces: list[tuple[int, int, int]] = []
    for k, j in itertools.product(range(4), repeat=2):
        a, b = 4 * k + j, 4 * k + (j + 1) % 4
        c, d = (4 * (k + 1) + (j + 1) % 4) % 16, (4 * (k + 1) + j) % 16
        faces += [(a, b, c), (a, c, d)]
    return Triangles(vertices, faces)


def turns(inner: float, outer: float, half: float) -> list[tuple[float, float]]:
    return [(inner, -half), (outer, -half), (outer, half), (inner, half)]


BRACKET = boxes(((1.0, 0.1, 0.1), (0.5, 0, 0)), ((0.1, 1.0, 0.1), (0, 0.5, 0)))
CUBE = Box(size=(1, 1, 1)).triangles()
RING = ring(0.2, 0.3, 0.05)


def cell_of(folder: Path, surface: Triangles, *other: Any) -> arm.Cell:
    """Return a mesh in a world where another body slides along x, y and z."""
    files = MeshFiles(folder)
    bodies = [saved(folder, surface, "mesh"), *other]
    still = arm.Manipulator(
        name="still", links=[arm.Link(name="mesh", collisions=[bodies[0]])]
    )
    links = [arm.Link(name="base")]
    for name, axis in SLIDE.items():
        links.append(
            arm.Link(
                name=name,
                parent=links[-1].name,
                joint=arm.joints.Prismatic(axis=axis),
                collisions=bodies[1:] if name == "z" else (),
            )
        )
    moving = arm.Manipulator(name="moving", links=links)
    return arm.Cell(manipulators=[still, moving], meshes=files)


def saved(folder: Path, surface: Triangles, name: str, **more: Any) -> Mesh:
    lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in surface.vertices.tolist()]
    lines += [f"f {a} {b} {c}" for a, b, c in (surface.faces + 1).tolist()]
    (folder / f"{name}.obj").write_text("\n".join(lines) + "\n")
    return Mesh(file=f"{name}.obj", **more)


def test_a_ball_fits_into_a_bracket_whose_hull_it_is_in(tmp_path: Path):
    cell = cell_of(tmp_path, BRACKET, Sphere(radius=0.1))
    check = cell.collision(exact=True)
    q = [0.3, 0.3, 0.0]
    assert not check(q)
    assert check.clearance(q) == pytest.approx(0.15, abs=1e-9)
    np.testing.assert_allclose(check.distances(q), [0.15], atol=1e-9)
    (contact,) = check.contacts(q, within=0.2)
    assert contact.distance == pytest.approx(0.15, abs=1e-9)
    step = contact.points[1] - contact.points[0]
    np.testing.assert_allclose(step, 0.15 * contact.normal, atol=1e-9)
    with pytest.warns(UserWarning, match="convex hull"):
        assert cell.collision()(q)
    assert cell.collision(exact=True, margin=0.16)(q)
    assert check([0.1, 0.3, 0.0])
    assert check.contacts([0.1, 0.3, 0.0])[0].distance == 0.0


def test_a_rod_slides_through_a_ring(tmp_path: Path):
    check = cell_of(tmp_path, RING, Capsule(radius=0.05, length=1.0)).collision(
        exact=True
    )
    X = np.linspace(-0.5, 0.5, 101)
    Q = np.stack([X, 0 * X, 0.1 * X], axis=1)
    gap = np.where(np.abs(X) < 0.25, 0.15 - np.abs(X), np.abs(X) - 0.35)
    np.testing.assert_allclose(check.clearance(Q), np.maximum(gap, 0.0), atol=1e-9)
    np.testing.assert_array_equal(check(Q), ~(check.clearance(Q) > 0.0))
    assert 0.1 < check(Q).mean() < 0.5
    motion = check.motion([0, 0, 0], [0.1, 0, 0])
    assert not motion.fraction  # by hulls
    assert check.motion([0, 0, 0], [0.1, 0, 0], step=0.01).fraction == 1.0


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("body", ["ball", "box", "mesh", "lozenge"])
def test_a_body_inside_a_closed_mesh_touches(
    tmp_path: Path, body: str, is_turned: bool
):
    bodies = {
        "ball": Sphere(radius=0.1),
        "box": Box(size=(0.1, 0.2, 0.3)),
        "mesh": saved(tmp_path, ring(0.1, 0.2, 0.1), "other"),
        "lozenge": Lozenge(size=(0.1, 0.1), radius=0.05),
    }
    surface = CUBE.reversed() if is_turned else CUBE
    check = cell_of(tmp_path, surface, bodies[body]).collision(exact=True)
    assert check([0.05, 0.02, 0.01])
    assert check.clearance([0.05, 0.02, 0.01]) == 0.0
    assert not check([0.8, 0.0, 0.0])
    (contact,) = check.contacts([0.2, 0.0, 0.0])
    assert contact.distance == 0.0
    if body == "ball":  # the way out is the nearest
        sign = 1.0 if contact.links[1] == "moving/z" else -1.0
        np.testing.assert_allclose(contact.normal, (sign, 0, 0), atol=1e-9)


def test_an_open_mesh_has_no_inside_but_a_body_around_it_touches(tmp_path: Path):
    tub = Triangles(CUBE.vertices, CUBE.faces[2:])
    assert not tub.is_watertight
    inside = cell_of(tmp_path, tub, Sphere(radius=0.1)).collision(exact=True)
    assert not inside([0.0, 0.0, 0.0])
    assert inside.clearance([0.0, 0.1, 0.0]) == pytest.approx(0.3, abs=1e-9)
    for around in (
        Box(size=(2, 2, 2)),
        Sphere(radius=2),
        Cylinder(radius=2.0, length=3.0),
        HalfSpace(pose=arm.Pose.translation(0, 0, 2)),
        saved(tmp_path, Box(size=(2, 2, 2)).triangles(), "around"),
    ):
        assert cell_of(tmp_path, tub, around).collision(exact=True)([0.1, 0.2, 0.3])


def test_one_part_of_a_mesh_inside_another_is_found(tmp_path: Path):
    parts = boxes(((0.1,) * 3, (3, 0, 0)), ((0.1,) * 3, (0, 0, 0)))
    other = saved(tmp_path, parts, "parts")
    check = cell_of(tmp_path, CUBE, other).collision(exact=True)
    assert check([[0, 0, 0], [-3, 0, 0]]).all()
    assert not check([-1.5, 0, 0])


SOLIDS = {
    "sphere": Sphere(radius=0.2),
    "capsule": Capsule(radius=0.1, length=0.4),
    "box": Box(size=(0.4, 0.3, 0.2)),
    "cylinder": Cylinder(radius=0.2, length=0.3),
    "cone": Cone(bottom=0.2, top=0.1, length=0.3),
    "ellipsoid": Ellipsoid(radii=(0.1, 0.2, 0.3)),
    "lozenge": Lozenge(size=(0.3, 0.2), radius=0.1),
    "triangle": TriangularLozenge(
        corners=((0, 0, 0), (0.3, 0, 0), (0, 0.2, 0.1)), radius=0.1
    ),
    "disc": CircularLozenge(disc=0.2, radius=0.05),
    "tetrahedron": Tetrahedron(
        corners=((0, 0, 0), (0.3, 0, 0), (0, 0.3, 0), (0, 0, 0.3))
    ),
    "hull": ConvexPolyhedron.around(
        np.random.default_rng(1).normal(size=(20, 3)) * 0.2
    ),
    "half space": HalfSpace(),
}


@pytest.mark.parametrize("kind", SOLIDS)
def test_a_convex_mesh_is_as_far_from_all_solids_as_its_hull(tmp_path: Path, kind: str):
    """The judge is the distance of a box, by a closed form or another iteration."""
    rng = np.random.default_rng(7)
    turn = arm.Pose.rotation_x(0.4) @ arm.Pose.rotation_y(0.7)
    solid = msgspec.structs.replace(SOLIDS[kind], pose=turn)
    check = cell_of(tmp_path, CUBE, solid).collision(exact=True)
    Q = rng.uniform(-1.5, 1.5, (300, 3))
    X = np.tile(np.eye(4), (300, 1, 1))
    X[:, :3, 3] = Q
    expected = arm.shapes.distance(Box(size=(1, 1, 1)), np.eye(4), solid, X).value
    assert 0.05 < (expected > 0).mean() < 0.95
    error = 1.5e-4 if kind == "cone" else 1e-6
    found = check.clearance(Q)
    np.testing.assert_allclose(found, np.maximum(expected, 0.0), atol=error)
    np.testing.assert_array_equal(check(Q), ~(found > 0.0))


@pytest.mark.parametrize("kind", ["sphere", "capsule", "box", "cylinder", "lozenge"])
def test_a_mesh_is_as_far_as_the_nearest_of_its_triangles(tmp_path: Path, kind: str):
    """The judge is our distance of each triangle."""
    turn = arm.Pose.rotation_x(0.4) @ arm.Pose.rotation_y(0.7)
    solid = msgspec.structs.replace(SOLIDS[kind], pose=turn)
    mesh = saved(
        tmp_path, BRACKET, "turned", pose=arm.Pose.rotation_z(0.3), scale=(1, -1, 2)
    )
    links = [
        arm.Link(name="base"),
        arm.Link(
            name="mesh",
            parent="base",
            joint=arm.joints.Revolute(axis=(0, 0.6, 0.8)),
            collisions=[mesh],
        ),
    ]
    still = arm.Link(name="solid", collisions=[solid])
    cell = arm.Cell(
        manipulators=[
            arm.Manipulator(name="turning", links=links),
            arm.Manipulator(name="still", links=[still]),
        ],
        meshes=MeshFiles(tmp_path),
    )
    at = arm.Pose.translation(0.3, -0.4, 0.2)
    check = cell.collision(cell.home.place("still", at), exact=True)
    Q = np.linspace(-3.0, 3.0, 40)[:, None]
    X = cell.fk("turning/mesh")(Q)
    triangles = cell.meshes.triangles(mesh)
    expected = np.min(
        [
            arm.shapes.distance(
                TriangularLozenge(corners=corners, radius=0.0, pose=mesh.pose),
                X,
                solid,
                at.matrix(),
            ).value
            for corners in triangles.corners.tolist()
        ],
        axis=0,
    )
    assert 0.0 < (expected > 0).mean() < 1.0
    found = check.clearance(Q)
    np.testing.assert_allclose(found, np.maximum(expected, 0.0), atol=1e-6)
    for q in Q[expected > 0][:5]:
        (contact,) = check.contacts(q, within=9.0)
        step = contact.points[1] - contact.points[0]
        np.testing.assert_allclose(step, contact.distance * contact.normal, atol=1e-8)


def test_answers_agree_where_hulls_overlap(tmp_path: Path):
    rng = np.random.default_rng(5)
    other = saved(tmp_path, RING, "ring", pose=arm.Pose.rotation_x(0.7))
    cell = cell_of(tmp_path, BRACKET, other, Box(size=(0.05, 0.05, 0.6)))
    for margin in (0.0, 0.05):
        check = cell.collision(exact=True, margin=margin)
        Q = rng.uniform(-0.6, 1.2, (200, 3))
        touching, clearance = check(Q), check.clearance(Q)
        np.testing.assert_array_equal(touching, ~(clearance > margin))
        np.testing.assert_array_equal(touching[3], check(Q[3]))
        np.testing.assert_allclose(check.distances(Q).min(axis=1), clearance)
        np.testing.assert_array_equal(check.distances(Q[3]), check.distances(Q)[3])
        np.testing.assert_array_equal(check.gradients(Q[3]), check.gradients(Q[3:4])[0])
        for q, least in zip(Q[:30], clearance, strict=False):
            (contact,) = check.contacts(q, within=9.0)
            assert contact.distance == pytest.approx(least, abs=1e-8)
        with pytest.warns(UserWarning, match="convex hull"):
            hulls = cell.collision(margin=margin)(Q)
            cell = arm.Cell(manipulators=cell.manipulators, meshes=cell.meshes)
        assert not (touching & ~hulls).any()
        assert (hulls & ~touching).mean() > 0.03


def test_slopes_of_distances_are_those_of_triangles(tmp_path: Path):
    rng, h = np.random.default_rng(2), 1e-5
    check = cell_of(tmp_path, BRACKET, Capsule(radius=0.05, length=0.3)).collision(
        exact=True
    )
    Q = rng.uniform(-0.2, 1.0, (60, 3))
    steps = h * np.eye(3)
    nearby = np.stack([check.distances(Q[:, None] + s * steps) for s in (1, -1)])
    slopes = (nearby[0] - nearby[1])[..., 0] / (2 * h)
    close = np.abs(check.gradients(Q)[:, 0] - slopes).max(axis=1) < 1e-4
    assert close.mean() > 0.95  # but at edges between two nearest points
    touching = check(Q)
    assert touching.any()
    assert not check.gradients(Q[touching]).any()


def test_nan_is_not_known_to_be_free(tmp_path: Path):
    check = cell_of(tmp_path, BRACKET, Sphere(radius=0.1)).collision(exact=True)
    Q = np.array([[0.3, 0.3, 0.0], [np.nan, 0.3, 0.0]])
    np.testing.assert_array_equal(check(Q), [False, True])
    np.testing.assert_array_equal(np.isnan(check.clearance(Q)), [False, True])
    np.testing.assert_array_equal(np.isnan(check.distances(Q))[:, 0], [False, True])
    assert np.isnan(check.contacts(Q[1])[0].distance)
    assert np.isnan(check.gradients(Q)[1]).all()


def test_meshes_that_do_not_move_are_exact_too(tmp_path: Path):
    mesh = saved(tmp_path, BRACKET, "mesh")
    ball = Sphere(radius=0.1, pose=arm.Pose.translation(0.3, 0.3, 0))
    links = [
        arm.Manipulator(name=n, links=[arm.Link(name="l", collisions=[body])])
        for n, body in (("a", mesh), ("b", ball))
    ]
    cell = arm.Cell(manipulators=links, meshes=MeshFiles(tmp_path))
    rules = cell.rules.include("a/l", "b/l")
    check = cell.collision(rules=rules, exact=True)
    assert len(check.pairs) == 1
    assert not check([])
    assert check.clearance([]) == pytest.approx(0.15, abs=1e-9)


def test_copies_and_threads_answer_alike(tmp_path: Path):
    other = saved(tmp_path, RING, "ring")
    check = cell_of(tmp_path, BRACKET, other).collision(exact=True, margin=0.01)
    Q = np.random.default_rng(0).uniform(-0.5, 1.0, (200, 3))
    expected = check.clearance(Q)
    again = pickle.loads(pickle.dumps(check))
    np.testing.assert_array_equal(again.clearance(Q), expected)
    assert again.margin == 0.01
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(check.clearance, [Q] * 8):
            np.testing.assert_array_equal(found, expected)


def test_without_meshes_nothing_changes_and_coal_is_not_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with_mesh = cell_of(tmp_path, BRACKET, Sphere(radius=0.1))
    plain = arm.example("ur5e_on_oval")
    monkeypatch.setitem(sys.modules, "coal", None)
    q = plain.home.q
    assert plain.collision(exact=True).clearance(q) == plain.collision().clearance(q)
    with pytest.raises(ModelError, match=r"pip install armillary\[exact\]"):
        with_mesh.collision(exact=True)


def test_a_shape_without_triangles_is_refused(tmp_path: Path):
    class Speck(arm.shapes.Primitive, frozen=True, kw_only=True):
        """A point that is above its origin."""

        height: float

        def farthest(self, direction: Any) -> Any:
            return 0.0, 0.0, self.height

    with pytest.raises(ModelError, match=r"'moving/z' has a Speck.*`triangles`"):
        cell_of(tmp_path, CUBE, Speck(height=0.1)).collision(exact=True)
