"""Surfaces of triangles: values, what they enclose, and how they move."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from armillary.errors import ModelError, ShapeError
from armillary.model.geometry.hull import convex_hull
from armillary.model.geometry.triangles import Triangles
from armillary.spatial.pose import Pose

CORNERS = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
FACES = np.array([(0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2)])
POSE = Pose.from_rpy(0.3, -0.7, 1.9, (1.0, -2.0, 0.5))


def tetrahedron() -> Triangles:
    return Triangles(CORNERS, FACES)


def blob(seed: int = 0) -> Triangles:
    points = np.random.default_rng(seed).normal(size=(60, 3))
    return Triangles(points, convex_hull(points))


def test_a_tetrahedron_is_what_it_is():
    mesh = tetrahedron()
    assert mesh.is_watertight
    assert mesh.volume == pytest.approx(1.0 / 6.0)
    assert mesh.area == pytest.approx(1.5 + np.sqrt(3.0) / 2.0)
    inertia = mesh.inertia(6.0)
    assert inertia.mass == pytest.approx(1.0)
    assert inertia.centre() == pytest.approx((0.25,) * 3)
    # int x^2 = 1/60 and int x y = 1/120 over the unit simplex
    expected = np.full((3, 3), -6.0 / 120.0)
    np.fill_diagonal(expected, 12.0 / 60.0)
    assert np.array(inertia.rotational) == pytest.approx(expected)
    assert mesh.bounding_box == ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    assert mesh.bounding_sphere.radius == pytest.approx(np.sqrt(2.0 / 3.0))


@pytest.mark.parametrize("seed", range(4))
def test_moments_move_with_the_body(seed: int):
    mesh = blob(seed)
    moved = mesh.transformed(POSE)
    expected = mesh.inertia(2.0).transformed(POSE).matrix()
    assert moved.inertia(2.0).matrix() == pytest.approx(expected)
    assert moved.area == pytest.approx(mesh.area)


@pytest.mark.parametrize(
    "factors", [2.0, (1.0, 2.0, 3.0), (-1.0, 1.0, 1.0), (-1, -2, 3)]
)
def test_scaled_ones_still_face_outwards(factors):
    mesh = blob()
    volume = mesh.volume * np.abs(np.prod(np.broadcast_to(factors, 3)))
    assert mesh.scaled(factors).volume == pytest.approx(volume)


def test_parts_of_a_body_have_its_moments_together():
    whole = blob()
    inner = np.array([0.1, 0.1, -0.1])
    parts = [Triangles(np.vstack([inner, corners]), FACES) for corners in whole.corners]
    assert sum(part.volume for part in parts) == pytest.approx(whole.volume)
    matrices = [part.inertia(1.0).matrix() for part in parts]
    assert np.sum(matrices, axis=0) == pytest.approx(whole.inertia(1.0).matrix())


def test_open_and_inward_surfaces_enclose_nothing():
    mesh = tetrahedron()
    opened = Triangles(mesh.vertices, mesh.faces[:3])
    assert opened.open_edges == 3
    assert not opened.is_watertight
    with pytest.raises(ModelError, match="not closed: 3 of its edges"):
        _ = opened.volume
    turned = Triangles(mesh.vertices, [*FACES[:3], FACES[3][::-1]])
    assert turned.open_edges == 3
    doubled = Triangles(mesh.vertices, [*FACES, *FACES])
    assert doubled.open_edges == 6
    with pytest.raises(ModelError, match=r"face inwards; turn them with \.reversed"):
        mesh.reversed().inertia(1.0)
    assert mesh.reversed().reversed() == mesh
    nothing = Triangles([], [])
    assert not nothing.is_watertight
    with pytest.raises(ModelError, match="There are no triangles"):
        _ = nothing.volume
    with pytest.raises(ModelError, match="no corners"):
        _ = nothing.bounding_box


def test_welding_makes_one_of_equal_corners():
    mesh = blob()
    soup = Triangles(
        mesh.corners.reshape(-1, 3), np.arange(3 * len(mesh.faces)).reshape(-1, 3)
    )
    assert not soup.is_watertight
    assert soup.welded().is_watertight
    assert soup.welded().volume == pytest.approx(mesh.volume)
    folded = Triangles(
        [(0, 0, 0), (0, 0, -0.0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2), (1, 2, 3)]
    )
    assert len(folded.welded().faces) == 1
    assert Triangles([], []).welded() == Triangles([], [])


def test_normals_point_outwards_and_flat_ones_are_nothing():
    mesh = blob()
    assert np.linalg.norm(mesh.normals, axis=1) == pytest.approx(1.0)
    assert np.all(np.einsum("ij,ij->i", mesh.normals, mesh.corners[:, 0]) > 0.0)
    flat = Triangles([(0, 0, 0), (1, 0, 0), (2, 0, 0)], [(0, 1, 2)])
    assert np.isnan(flat.normals).all()


def test_they_are_values():
    vertices, faces = CORNERS.copy(), FACES.copy()
    mesh = Triangles(vertices, faces)
    vertices[:] = 9.0
    faces[:] = 0
    assert mesh == tetrahedron()
    assert hash(mesh) == hash(tetrahedron())
    assert hash(Triangles(-0.0 * CORNERS, FACES)) == hash(Triangles(0 * CORNERS, FACES))
    assert mesh != mesh.reversed()
    assert mesh != 3
    assert pickle.loads(pickle.dumps(mesh)) == mesh
    assert repr(mesh) == "<Triangles: 4 of 4 corners>"
    for array in (mesh.vertices, mesh.faces):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    assert mesh.vertices.dtype == np.float64
    assert mesh.faces.dtype == np.int64


@pytest.mark.parametrize(
    ("vertices", "faces", "error", "why"),
    [
        (CORNERS[:, :2], FACES, ShapeError, r"Vertices have shape \(n, 3\)"),
        (
            CORNERS,
            FACES[:, :2],
            ShapeError,
            r"Faces are whole numbers of shape \(m, 3\)",
        ),
        (CORNERS, FACES.astype(float), ShapeError, "not float64"),
        (CORNERS * np.nan, FACES, ModelError, "Vertex 0 is .*must be finite"),
        (CORNERS, FACES + 1, ModelError, r"Triangle 1 has the corners \[1, 2, 4\]"),
        (CORNERS, FACES - 1, ModelError, "Triangle 0 has the corners"),
        ([], FACES, ModelError, "there are only 0"),
    ],
)
def test_what_is_not_a_surface_is_refused(vertices, faces, error, why):
    with pytest.raises(error, match=why):
        Triangles(vertices, faces)
