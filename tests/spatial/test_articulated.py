"""Articulated inertias against their matrices."""

from __future__ import annotations

import numpy as np

from armillary.spatial.articulated import ArticulatedInertia
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import Pose
from armillary.spatial.twist import coadjoint


def matrix(inertia: ArticulatedInertia) -> np.ndarray:
    mixed = np.array(inertia.mixed)
    linear, rotational = np.array(inertia.linear), np.array(inertia.rotational)
    return np.block([[linear, mixed], [mixed.T, rotational]])


def test_articulated_inertias_are_matrices() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        inertia = SpatialInertia.from_second_moment(
            rng.normal(), rng.normal(size=3), rng.normal(size=6)
        )
        own = ArticulatedInertia.of(inertia)
        np.testing.assert_allclose(matrix(own), inertia.matrix())
        U = rng.normal(size=6)
        less = own.less(tuple(U), tuple(0.3 * U))
        np.testing.assert_allclose(
            matrix(less), inertia.matrix() - 0.3 * np.outer(U, U)
        )
        X = Pose.from_rpy(*rng.normal(size=3), rng.normal(size=3))
        carry = np.array(coadjoint(X))
        np.testing.assert_allclose(
            matrix(less.transformed(X)), carry @ matrix(less) @ carry.T, atol=1e-12
        )
        V = rng.normal(size=6)
        np.testing.assert_allclose(less.apply(tuple(V)), matrix(less) @ V, atol=1e-12)
        np.testing.assert_allclose(matrix(less + own), matrix(less) + matrix(own))
