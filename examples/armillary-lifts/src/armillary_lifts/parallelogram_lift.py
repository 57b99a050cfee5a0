"""A table on two parallel cranks, which keep it level."""

from __future__ import annotations

import math

import numpy as np

import armillary as arm


class ParallelogramLift(arm.Joint):
    """Swing a table on an arc in the plane of x and z without turning it.

    q is the angle of the cranks above the ground [rad].

    Attributes:
        crank: Length of the cranks [m].
    """

    crank: float

    tag = "lifts.ParallelogramLift"
    lengths = ("crank",)

    def check(self) -> None:
        """Refuse cranks without length."""
        if self.crank <= 0.0:
            raise arm.errors.JointError(
                f"A crank is longer than 0, not {self.crank} m."
            )

    @property
    def period(self) -> float:
        """Return one turn of the cranks [rad]."""
        return 2.0 * math.pi

    def pose(self, q):
        """Return the pose of the table."""
        return arm.Pose.translation(self.crank * np.cos(q), 0.0, self.crank * np.sin(q))

    def subspace(self, q):
        """Return the velocity of the table at unit rate: it moves, and never turns."""
        return (-self.crank * np.sin(q), 0.0, self.crank * np.cos(q), 0.0, 0.0, 0.0)
