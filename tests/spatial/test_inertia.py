"""Spatial inertia, against clouds of point masses."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from armillary.errors import ModelError, ShapeError
from armillary.spatial import rotation as rot
from armillary.spatial import twist
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import IDENTITY, Pose

near = {"rtol": 1e-12, "atol": 1e-13}
rng = np.random.default_rng(11)
MASSES = rng.uniform(0.1, 2.0, 7)
POINTS = rng.normal(0.0, 1.0, (7, 3))


def of_points(masses: np.ndarray, points: np.ndarray) -> SpatialInertia:
    """Sum m, m p and m (p.p 1 - p p'), the definition."""
    first = masses @ points
    second = np.einsum("i,ij,ik->jk", masses, points, points)
    rotational = np.trace(second) * np.eye(3) - 0.5 * (second + second.T)
    rows = tuple(tuple(map(float, row)) for row in rotational)
    return SpatialInertia(float(masses.sum()), tuple(map(float, first)), rows)


def assert_close(a: SpatialInertia, b: SpatialInertia) -> None:
    np.testing.assert_allclose(a.matrix(), b.matrix(), **near)


BODY = of_points(MASSES, POINTS)


def poses(sample) -> list[Pose]:
    return [Pose(rot.exp(x[3:]), x[:3]) for x in sample(6)]


def test_transforming_is_moving_every_point(sample) -> None:
    for X in poses(sample):
        moved = np.array([X @ point for point in POINTS])
        assert_close(BODY.transformed(X), of_points(MASSES, moved))
    assert BODY.transformed(IDENTITY) == BODY


def test_transforming_follows_products_and_adjoints(sample) -> None:
    for X, Y in zip(*[iter(poses(sample))] * 2, strict=True):
        assert_close(BODY.transformed(Y).transformed(X), BODY.transformed(X @ Y))
        back = np.array(twist.adjoint(X.inverse()))
        expected = back.T @ BODY.matrix() @ back
        np.testing.assert_allclose(BODY.transformed(X).matrix(), expected, **near)


def test_the_sum_of_parts_is_the_whole() -> None:
    parts = of_points(MASSES[:3], POINTS[:3]) + of_points(MASSES[3:], POINTS[3:])
    assert_close(parts, BODY)
    assert BODY + SpatialInertia.zero() == BODY


def test_momentum_is_that_of_every_point(sample) -> None:
    for V in sample(6):
        velocities = V[:3] + np.cross(V[3:], POINTS)
        impulses = MASSES[:, None] * velocities
        moment = np.cross(POINTS, impulses).sum(axis=0)
        expected = [*impulses.sum(axis=0), *moment]
        np.testing.assert_allclose(BODY.apply(V), expected, **near)
        np.testing.assert_allclose(BODY.matrix() @ V, expected, **near)
        energy = 0.5 * np.sum(MASSES * np.sum(velocities**2, axis=1))
        assert 0.5 * twist.power(V, BODY.apply(V)) == pytest.approx(energy, rel=1e-12)


def test_the_matrix_is_symmetric_and_positive() -> None:
    matrix = BODY.matrix()
    assert np.array_equal(matrix, matrix.T)
    assert np.linalg.eigvalsh(matrix)[0] > 0.0


def test_centre_and_second_moment_give_the_same_inertia() -> None:
    second = np.einsum("i,ij,ik->jk", MASSES, POINTS, POINTS)
    xx, yy, zz = np.diag(second)
    six = (xx, yy, zz, second[0, 1], second[0, 2], second[1, 2])
    assert_close(
        SpatialInertia.from_second_moment(BODY.mass, BODY.first_moment, six), BODY
    )
    again = SpatialInertia.from_centre(BODY.mass, BODY.centre(), BODY.about_centre())
    assert_close(again, BODY)


def test_about_the_centre_is_the_inertia_in_a_frame_there() -> None:
    there = BODY.transformed(Pose.translation(*BODY.centre()).inverse())
    np.testing.assert_allclose(there.first_moment, (0, 0, 0), atol=1e-14)
    np.testing.assert_allclose(there.rotational, BODY.about_centre(), **near)


def test_a_rod_has_a_third_of_its_mass_at_the_end() -> None:
    middle = np.diag([0.0, 3.0 * 4.0 / 12.0, 3.0 * 4.0 / 12.0])
    rod = SpatialInertia.from_centre(3.0, (1.0, 0.0, 0.0), middle)
    assert rod.rotational == ((0, 0, 0), (0, 4.0, 0), (0, 0, 4.0))
    assert rod.faults() == []


def test_equal_inertias_are_one_value() -> None:
    same = pickle.loads(pickle.dumps(BODY))
    assert same == BODY
    assert hash(same) == hash(BODY)


def test_bodies_have_no_faults_in_any_frame(sample) -> None:
    point = of_points(MASSES[:1], POINTS[:1])
    rod = of_points(MASSES[:2], POINTS[:2])
    plate = of_points(MASSES[:3], POINTS[:3])
    for X in poses(sample):
        for body in (BODY, point, rod, plate, SpatialInertia.zero()):
            assert body.transformed(X).faults() == []
            body.check()


@pytest.mark.parametrize(
    ("mass", "first", "rotational", "fault"),
    [
        (-1.0, (0, 0, 0), np.eye(3), "mass is negative: -1 kg"),
        (0.0, (0, 0, 1.0), np.zeros((3, 3)), "moments without mass"),
        (0.0, (0, 0, 0), np.eye(3), "moments without mass"),
        (1.0, (0, 0, 0), np.diag([1.0, 1.0, 2.01]), "triangle inequality: 1, 1, 2.01"),
        (1.0, (0, 0, 0), np.diag([1.0, -0.1, 1.0]), "negative: -0.1, 1, 1"),
        (1.0, (0, 0, 2.0), np.eye(3), "principal moment is negative"),
        (1.0, (0, 0, 0), np.eye(3) + np.eye(3, k=1), "not symmetric"),
        (math.nan, (0, 0, 0), np.eye(3), "not finite"),
        (1.0, (0, math.inf, 0), np.eye(3), "not finite"),
    ],
)
def test_what_no_body_has_is_found(mass, first, rotational, fault: str) -> None:
    rows = tuple(map(tuple, rotational.tolist()))
    inertia = SpatialInertia(mass, first, rows)
    assert len(inertia.faults()) == 1
    with pytest.raises(ModelError, match=f"No body has this inertia: .*{fault}"):
        inertia.check()


def test_the_rounding_of_files_is_allowed_for_by_the_tolerance() -> None:
    rounded = SpatialInertia.from_centre(1.0, (0, 0, 0), np.diag([0.01, 0.01, 0.0201]))
    assert rounded.faults() != []
    assert rounded.faults(tolerance=0.01) == []


def test_there_is_no_centre_without_mass() -> None:
    with pytest.raises(ModelError, match="without mass has no centre"):
        SpatialInertia.zero().centre()


def test_another_count_of_moments_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"second moment has shape \(6,\), not \(3,\)"):
        SpatialInertia.from_second_moment(1.0, (0, 0, 0), (1, 1, 1))
    with pytest.raises(ShapeError, match=r"shape \(3,\)"):
        SpatialInertia.from_centre(1.0, (0, 0), np.eye(3))
