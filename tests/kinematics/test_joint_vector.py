"""Vectors of joint positions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from armillary.kinematics.joint_vector import distinct


@pytest.mark.parametrize(
    ("turning", "kept"),
    [(False, [0, 1, 2, 3]), (True, [0, 3]), ([True, False], [0, 2, 3])],
)
def test_joints_that_may_turn_differ_by_less_than_whole_turns(turning, kept):
    q = np.array([[0.1, 0.2], [0.1 - math.tau, 0.2], [0.1, 0.2 + math.tau], [2.0, 0.2]])
    assert distinct(q, 1e-6, turning=turning) == kept
    assert distinct(q + 1e-7 * q, 1e-6, turning=turning) == kept
    assert distinct(q[[0, 0, 3]] + [[0.0], [9e-7], [0.0]], [1e-6, 1e-8]) == [0, 1, 2]
