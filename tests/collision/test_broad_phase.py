"""Pairs of links whose spheres are near, against all pairs one by one."""

from __future__ import annotations

import numpy as np
import pytest

from armillary.collision import broad_phase
from armillary.collision.broad_phase import BroadPhase
from armillary.spatial.pose import Pose

FRAMES = 5


def pairs(tested: np.ndarray, radii: np.ndarray) -> BroadPhase:
    """Return the broad phase of pairs that are numbered from the last code on."""
    bits = np.packbits(np.triu(tested, 1), axis=1, bitorder="little")
    codes = np.flatnonzero(np.triu(tested, 1))
    return BroadPhase(radii, codes, np.arange(len(codes))[::-1].copy(), bits)


@pytest.mark.parametrize("within", [0.0, 0.4, -0.1, 1e300, np.inf])
@pytest.mark.parametrize("away", [0.0, 1e4])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("count", [1, 8, 30])
@pytest.mark.parametrize("room", [2, 4096])
def test_near_pairs_are_those_of_all(
    within: float,
    away: float,
    size: float,
    count: int,
    room: int,
    monkeypatch: pytest.MonkeyPatch,
):
    rng = np.random.default_rng(0)
    monkeypatch.setattr(broad_phase, "LIKELY", room)
    poses = [
        Pose.rotation_z(angle) @ Pose.rotation_x(angle) for angle in np.arange(FRAMES)
    ]
    X = np.array([pose.matrix()[:3] for pose in poses])
    X[:, :, 3] = away + size * rng.uniform(-1, 1, (FRAMES, 3))
    rows = rng.integers(0, FRAMES, count)
    centres = size * rng.uniform(-1, 1, (count, 3))
    radii, tested = rng.uniform(0, 0.3, count), rng.random((count, count)) < 0.7
    if count > 8:
        centres[3], radii[5] = np.nan, np.inf
    all_pairs = pairs(tested, radii)
    P = np.einsum("nij,nj->ni", X[rows][:, :, :3], centres) + X[rows][:, :, 3]
    one, other = np.divmod(all_pairs.codes, count)
    gap = np.linalg.norm(P[one] - P[other], axis=1) - radii[one] - radii[other]
    found = all_pairs.near(X, rows, centres, within)
    assert (np.diff(found) > 0).all()
    is_near = np.isin(all_pairs.places, found)
    within = max(within, 0.0)
    assert is_near[~(gap > within)].all()
    # What is farther by a part of the largest number is left out.
    assert not is_near[gap > within + 1e-13 * (away + 2.0 * size + 1.0)].any()


def test_spheres_that_just_touch_are_near_wherever_they_are():
    rng = np.random.default_rng(1)
    for away in 10.0 ** rng.uniform(-3, 6, 200):
        P = away * rng.uniform(-1, 1, (2, 3))
        gap = float(np.linalg.norm(P[0] - P[1]))
        touching = pairs(np.ones((2, 2), bool), np.array([0.3, 0.7]) * gap)
        X = np.eye(4)[np.newaxis, :3]
        assert touching.near(X, np.zeros(2, np.int64), P, 0.0).tolist() == [0]
