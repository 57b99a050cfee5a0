"""Pairs of links whose spheres are near, against all pairs one by one."""

from __future__ import annotations

import numpy as np
import pytest

from armillary.collision import broad_phase
from armillary.collision.broad_phase import BroadPhase

COUNT = 30


def pairs(tested: np.ndarray, radii: np.ndarray) -> BroadPhase:
    bits = np.packbits(np.triu(tested, 1), axis=1)
    codes = np.flatnonzero(np.triu(tested, 1))
    return BroadPhase(radii, codes, np.arange(len(codes)), bits)


@pytest.mark.parametrize("within", [0.0, 0.4, -0.1, 1e300, np.inf])
@pytest.mark.parametrize("away", [0.0, 1e4])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("whole", [0, 2048])
def test_near_pairs_are_those_of_all(
    within: float,
    away: float,
    size: float,
    whole: int,
    monkeypatch: pytest.MonkeyPatch,
):
    rng = np.random.default_rng(0)
    monkeypatch.setattr(broad_phase, "MOST_WHOLE", whole)
    P = size * rng.uniform(-1, 1, (COUNT, 3))
    radii, tested = rng.uniform(0, 0.3, COUNT), rng.random((COUNT, COUNT)) < 0.7
    P[3], radii[5] = np.nan, np.inf
    monkeypatch.setattr(broad_phase, "BLOCK", 7 * COUNT)
    sure = pairs(tested, radii)
    one, other = np.divmod(sure.codes, COUNT)
    gap = np.linalg.norm(P[one] - P[other], axis=1) - radii[one] - radii[other]
    found = sure.near(P + away, within)
    assert (np.diff(found) > 0).all()
    is_near = np.isin(np.arange(len(gap)), found)
    within = max(within, 0.0)
    assert is_near[~(gap > within)].all()
    # What is farther by a part of the size of all is left out.
    slack = 2e-4 * (size + 1.0) ** 2 / max(size, 0.1)
    assert not is_near[gap > within + slack].any()
