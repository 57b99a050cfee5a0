"""What a joint of the user's own costs beside a built-in one: the track of the demo."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

import armillary as arm
from benchmarks.measure import Figure, best_times, cheaper

BATCH = 10_000


class OwnTrack(arm.Joint):
    """An oval track as the demo writes it: plain Python, with `if`."""

    straight: float  # [m]
    radius: float  # [m]
    unit = arm.METRE

    def pose(self, q):
        """Return where the cart is after the distance q, heading along the track."""
        bend = math.pi * self.radius
        lap = 2 * (self.straight + bend)
        s = q + self.straight / 2
        s = s - lap * np.floor(s / lap)
        if s < self.straight:
            x, heading = s - self.straight / 2, 0.0
        elif s < self.straight + bend:
            x, heading = self.straight / 2, (s - self.straight) / self.radius
        elif s < 2 * self.straight + bend:
            x, heading = self.straight * 1.5 + bend - s, math.pi
        else:
            x, heading = -self.straight / 2, (s - 2 * self.straight) / self.radius
        centre = arm.Pose.translation(x, 0, 0) @ arm.Pose.rotation_z(heading)
        return centre @ arm.Pose.translation(0, -self.radius, 0)


def figures() -> Iterator[Figure]:
    """Yield the figure of a user's own joint."""
    cell = arm.example("oval_track_cell")
    rail = cell.manipulators[0]
    cart = rail.link("cart")
    own = cart.replace(joint=OwnTrack(straight=3.0, radius=1.0))
    fk, rival = cell.exchange(rail.exchange(own)).fk("tool0"), cell.fk("tool0")
    Q = np.random.default_rng(0).uniform(-3.0, 3.0, (BATCH, len(cell.joint_names)))
    Q[:, 0] *= 5.0  # [m], laps of the track
    X, Y = np.empty((2, BATCH, 4, 4))
    ours, peer = best_times(
        lambda: fk(Q, out=X, threads=1), lambda: rival(Q, out=Y, threads=1), turns=100
    )
    assert np.abs(X - Y).max() < 1e-12
    what = "a user's own oval track in place of the built-in one"
    yield cheaper(what, ours / BATCH, peer / BATCH, at_most=1.4)
