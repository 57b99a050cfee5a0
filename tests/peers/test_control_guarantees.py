"""What controllers guarantee, over simulations among moving obstacles; coal judges."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.control_guarantees import MARGIN, SCENES, judged, run_of

pytestmark = pytest.mark.peers


@pytest.mark.parametrize(
    ("name", "speed"), [*((name, 0.1) for name in SCENES), ("two UR5", 0.0)]
)
def test_distances_and_limits_are_kept(name: str, speed: float, tmp_path: Path) -> None:
    run = SCENES[name](tmp_path, 10)
    kept = run_of(run, 1.2, speed)
    assert kept.beyond(run.cell) == 0
    assert kept.excess < 1e-9
    # An obstacle may come where no joint can retreat.
    assert kept.is_kept[-1].mean() >= 0.75
    assert kept.distance[kept.is_kept].min() > MARGIN - 5e-4
    assert np.quantile(kept.distance.min(axis=0), 0.1) > MARGIN - 5e-4
    seed = int(np.argmin(kept.distance.min(axis=0)))
    every = 25
    theirs = judged(run, kept, seed, every)
    ours = kept.distance[::every, seed]
    # Against obstacles ours are those of capsules around shapes, so that coal's are
    # greater; it stops at 1e-6.
    assert (theirs > ours - 1e-5).all()
