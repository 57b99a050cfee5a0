"""Spatial inertia, against clouds of point masses."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from armillary.errors import ModelError, ShapeError
from armillary.model.link import Link
from armillary.spatial import rotation as rot
from armillary.spatial import twist
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import EYE, ZERO

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


def test_what_is_only_moved_is_as_if_it_were_turned_by_nothing(sample) -> None:
    unturned = tuple(tuple(row) for row in np.eye(3).tolist())
    assert unturned is not EYE
    bodies = [BODY, SpatialInertia.zero(), BODY.point_mass()]
    # Moments that differ in their last digits across the diagonal, and negative zeros.
    bodies.append(
        SpatialInertia(
            1.0,
            (0.1, -0.0, 0.2),
            ((0.3, 0.1, -0.0), (0.1 + 1e-9, 0.4, 0.0), (1e-12, -0.0, 0.5)),
        )
    )
    for position in (*(x[:3] for x in sample(6)), ZERO, (-0.0, 0.5, -0.0)):
        p = tuple(map(float, position))
        for body in bodies:
            moved = body.transformed(Pose(EYE, p))
            assert repr(moved) == repr(body.transformed(Pose(unturned, p)))


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
    assert rod.fault() is None


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
            assert body.transformed(X).fault() is None


@pytest.mark.parametrize(
    ("mass", "first", "rotational", "fault"),
    [
        (-1.0, (0, 0, 0), np.eye(3), "the mass is negative, -1 kg"),
        (0.0, (0, 0, 1.0), np.zeros((3, 3)), "there is a first moment, but no mass"),
        (0.0, (0, 0, 0), -np.eye(3), "a principal moment is negative: -1, -1, -1"),
        (1.0, (0, 0, 0), np.diag([1.0, -0.1, 1.0]), "moment is negative: -0.1, 1, 1"),
        (1.0, (0, 0, 2.0), np.eye(3), "a principal moment is negative: -3, -3, 1"),
        (1.0, (0, 0, 2.0), np.zeros((3, 3)), "moment is negative: -4, -4, 0"),
        (1.0, (1e200, 0, 0), np.eye(3), "the moments are too large for the mass"),
        (1.0, (0, 0, 0), -1e300 * np.eye(3), "a principal moment is negative"),
        (1.0, (0, 0, 0), np.eye(3) + np.eye(3, k=1), "inertia is not symmetric"),
        (math.nan, (0, 0, 0), np.eye(3), "an entry is not finite"),
        (1.0, (0, math.inf, 0), np.eye(3), "an entry is not finite"),
    ],
)
def test_links_refuse_what_makes_energies_negative(
    mass, first, rotational, fault: str
) -> None:
    inertia = SpatialInertia(mass, first, tuple(map(tuple, rotational.tolist())))
    found = inertia.fault()
    assert found is not None
    assert fault in found.message
    assert found.is_refused
    with pytest.raises(ModelError, match="inertia of link 'a' is impossible: "):
        Link(name="a", inertia=inertia)


@pytest.mark.parametrize(
    ("mass", "moments", "fault"),
    [
        (0.0, (1.0, 1.0, 1.0), "there are moments of inertia, but no mass"),
        (1.0, (1.0, 1.0, 2.01), "exceeds the sum of the others: 1, 1, 2.01 kg m^2"),
        (1.0, (1.0, 0.0, 0.0), "exceeds the sum of the others: 0, 0, 1 kg m^2"),
    ],
)
def test_links_keep_what_is_wrong_but_harmless(mass, moments, fault: str) -> None:
    inertia = SpatialInertia(mass, (0, 0, 0), tuple(map(tuple, np.diag(moments))))
    found = inertia.fault()
    assert found is not None
    assert fault in found.message
    assert not found.is_refused
    assert Link(name="a", inertia=inertia).inertia == inertia


@pytest.mark.parametrize("size", [1e-12, 1e-8, 1.0, 1e4, 1e100])
def test_errors_of_moments_are_relative_to_them(size: float) -> None:
    turn = Pose(rot.exp((0.3, -0.7, 0.4)), (0, 0, 0))
    for error, is_fault in ((1e-9, False), (1e-4, True)):
        for moments in ((1.0, 1.0, 2.0 + error), (1.0, 1.0, -error)):
            rows = np.diag(moments) * size
            inertia = SpatialInertia.from_centre(1.0, (0, 0, 0), rows)
            assert (inertia.transformed(turn).fault() is not None) == is_fault


def test_what_rounding_leaves_of_a_point_mass_is_not_a_fault() -> None:
    rows = ((0.0, 0.0, 2.4e-35), (0.0, 0.0, 0.0), (2.4e-35, 0.0, 0.0))
    head = SpatialInertia.from_centre(1.33687, (0.0, 0.0, 0.0), rows)
    assert head.fault() is None
    assert Link(name="head", inertia=head).inertia == head


def test_a_point_mass_keeps_mass_and_centre() -> None:
    rows = ((-1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    body = SpatialInertia.from_centre(2.0, (0.1, -0.2, 0.3), rows)
    assert body.fault() is not None
    point = body.point_mass()
    assert point.fault() is None
    assert (point.mass, point.first_moment) == (body.mass, body.first_moment)
    assert np.allclose(point.about_centre(), 0.0, atol=1e-15)


def test_the_quick_test_of_moments_agrees_with_eigenvalues() -> None:
    for _ in range(500):
        root = rng.normal(size=(3, 3))
        signs = np.diag(rng.choice([1.0, 1.0, 1.0, -0.1], 3))
        second = root @ signs @ root.T  # of mass, indefinite where a sign is negative
        rows = np.trace(second) * np.eye(3) - second
        moments = np.linalg.eigvalsh(rows)
        fault = SpatialInertia(1.0, (0, 0, 0), tuple(map(tuple, rows))).fault()
        is_fine = moments[0] >= 0.0 and moments[0] + moments[1] >= moments[2]
        assert (fault is None) == is_fine
        assert fault is None or fault.is_refused == (moments[0] < 0.0)


def test_what_is_not_an_inertia_is_refused() -> None:
    with pytest.raises(ModelError, match="inertia of link 'a' is 5; it must be a Spat"):
        Link(name="a", inertia=5)  # pyright: ignore[reportArgumentType]


def test_there_is_not_a_centre_without_mass() -> None:
    with pytest.raises(ModelError, match="without mass has no centre"):
        SpatialInertia.zero().centre()


def test_another_count_of_moments_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"second moment has shape \(6,\), not \(3,\)"):
        SpatialInertia.from_second_moment(1.0, (0, 0, 0), (1, 1, 1))
    with pytest.raises(ShapeError, match=r"shape \(3,\)"):
        SpatialInertia.from_centre(1.0, (0, 0), np.eye(3))
