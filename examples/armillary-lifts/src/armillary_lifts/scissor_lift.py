"""A table on crossed beams, lifted by a spindle that pulls their feet together."""

from __future__ import annotations

import numpy as np

import armillary as arm


class ScissorLift(arm.Joint):
    """Lift a table along z; q is how far the spindle has pulled the feet together [m].

    With beams of length b and feet s - q apart, k crossed pairs on top of each other
    reach the height k sqrt(b^2 - (s - q)^2).

    Attributes:
        beam: Length of a beam from foot to head [m].
        spread: How far apart the feet are at q = 0 [m].
        stages: Number of crossed pairs on top of each other.
    """

    beam: float
    spread: float
    stages: int = 1

    tag = "lifts.ScissorLift"
    unit = arm.METRE
    lengths = ("beam", "spread")

    def check(self) -> None:
        """Refuse beams that do not reach over the feet, and lifts without a stage."""
        if not 0.0 < self.spread < self.beam:
            raise arm.errors.JointError(
                f"A ScissorLift needs 0 < spread < beam, not spread={self.spread}, "
                f"beam={self.beam}."
            )
        if self.stages < 1:
            raise arm.errors.JointError(
                f"A ScissorLift has {self.stages} stages; it needs 1."
            )

    def pose(self, q):
        """Return the pose of the table above the ground."""
        height = np.sqrt(self.beam**2 - (self.spread - q) ** 2)
        return arm.Pose.translation(0.0, 0.0, self.stages * height)
