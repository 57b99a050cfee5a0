"""Motions along paths are played as they are returned."""

from __future__ import annotations

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ShapeError
from armillary.view.motion import motion_of


def test_samples_of_a_path():
    cell = arm.example("pan_tilt")
    path = np.array([[0.0, 0.0], [1.0, 0.4], [0.3, 0.8]])
    timed = cell.time_path(path, velocity=1.0, acceleration=2.0)
    samples = timed.sampled(rate=50)
    motion = motion_of(cell.home, samples, times=None, rate=None)
    assert np.array_equal(motion.times, samples.time)
    assert np.array_equal(motion.at(samples.time[7]).q, samples.q[7])
    slower = motion_of(cell.home, samples, times=2.0 * samples.time, rate=None)
    assert slower.times[-1] == 2.0 * samples.time[-1]
    two = cell.time_path(np.stack([path, path]), velocity=1.0, acceleration=2.0)
    with pytest.raises(ShapeError, match=r"batch \(2,\).*row=0"):
        motion_of(cell.home, two.at(np.zeros((2, 3))), times=None, rate=None)
