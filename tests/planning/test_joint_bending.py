"""Cells of the range of a joint within which its twist changes gradually."""

from __future__ import annotations

import math

import numpy as np

import armillary as arm
from armillary.planning.joint_bending import bend_table


def test_the_ends_of_straights_are_found():
    track = arm.joints.OvalTrack(straight=3.0, radius=1.0)
    table = bend_table(track, -2.0, 8.0)
    assert table.is_known
    jumps = [-1.5, 1.5, 1.5 + math.pi, 4.5 + math.pi]
    cells = np.stack([table.edges[:-1], table.edges[1:]], axis=1)
    found = cells[np.isinf(table.bends)]
    np.testing.assert_allclose(found.mean(axis=1), jumps, atol=1e-9)
    assert np.ptp(found, axis=1).max() < 1e-7
    # Of straights nothing bends; of bends at most sqrt(2) over their radius.
    assert table.greatest(np.array([-1.0]), np.array([1.0])).tolist() == [0.0]
    (bend,) = table.greatest(np.array([2.0]), np.array([4.0]))
    assert 1.0 <= bend <= 1.5
    across = table.greatest(np.array([1.4, 1.5, 2.0]), np.array([1.6, 1.5, 9.0]))
    assert np.isinf(across).all()


def test_a_joint_that_bends_evenly_has_no_jumps():
    table = bend_table(arm.joints.CircleTrack(radius=2.0), -4.0, 4.0)
    assert np.isfinite(table.bends).all()


class Kinked(arm.Joint, frozen=True):
    """Turns, and lifts beyond half a radian: its velocity jumps there."""

    def pose(self, q):
        lift = 0.3 * (q - 0.5) if q > 0.5 else 0.0
        return arm.Pose.rotation_z(q) @ arm.Pose.translation(0.1, 0.0, lift)


def test_jumps_of_users_joints_are_found():
    table = bend_table(Kinked(), -1.0, 1.0)
    assert np.isinf(table.greatest(np.array([0.4]), np.array([0.6]))).all()
    apart = table.greatest(np.array([-1.0, 0.6]), np.array([0.4, 1.0]))
    assert np.isfinite(apart).all()
