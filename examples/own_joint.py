"""A joint that no library has: a scissor lift in ten lines, with an arm on it."""

from __future__ import annotations

import numpy as np

import armillary as arm


class ScissorLift(arm.Joint):
    """Lift a table on crossed beams; q is how far apart their feet are [m]."""

    beam: float  # length of a beam [m]
    stages: int = 1
    unit = arm.METRE

    def pose(self, q):
        """Return where the table is above the ground."""
        return arm.Pose.translation(0, 0, self.stages * np.sqrt(self.beam**2 - q**2))


# A cell with it: the arm that comes with armillary, on the table of a lift.
_, ur5e = arm.example("ur5e_on_oval").manipulators
lift = arm.Manipulator(
    name="lift",
    links=[
        arm.Link(name="ground"),
        arm.Link(
            name="table",
            parent="ground",
            joint=ScissorLift(beam=1.0, stages=2),
            limits=arm.Limits(lower=0.2, upper=0.9),
        ),
    ],
)
cell = arm.Cell(
    manipulators=[lift, ur5e], mounts=[arm.Mount(manipulator="ur5e", on="table")]
)
print(cell.joint_names)

# Poses, one or many, and exact derivatives follow from the one method.
q = np.array([0.6, 0.3, -1.1, 0.8, 0.4, -0.7, 0.2])
height = cell.fk("table")(q)[2, 3]
rate = cell.jacobian("table")(q)[2, 0]
print(f"table at {height:.3f} m, moving {rate:.3f} m per metre of q")

Q = np.tile(q, (100_000, 1))
Q[:, 0] = np.linspace(0.2, 0.9, len(Q))
poses = cell.fk("tool0")(Q)
print(f"{len(poses):,} poses of the tool, {np.ptp(poses[:, 2, 3]):.3f} m of travel")

assert np.isclose(height, 2 * 0.8)
assert np.isclose(rate, -2 * 0.6 / 0.8)
stretch = 2 * (np.sqrt(1 - 0.2**2) - np.sqrt(1 - 0.9**2))
assert np.isclose(np.ptp(poses[:, 2, 3]), stretch)
