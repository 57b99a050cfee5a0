"""A joint in ten lines: an arm that rides a circle, from the tutorial of Actin."""

from __future__ import annotations

import math

import numpy as np

import armillary as arm


class CircleJoint(arm.Joint):
    """Ride a circle about z, x pointing outward; q is the way along the rim [m]."""

    radius: float = 3.0  # [m]
    unit = arm.METRE

    def pose(self, q):
        """Return the pose after the distance q."""
        turned = arm.Pose.rotation_z(q / self.radius)
        return turned @ arm.Pose.translation(self.radius, 0, 0)


# The rest follows from the pose: here the motion after 0.7 m at 1.3 m/s.
joint = CircleJoint(radius=2.0)
print("pose", joint.transform(0.7).position)
print("velocity", joint.velocity(0.7, 1.3))
print("acceleration", joint.acceleration(0.7, 1.3, 0.5))
print("farthest", joint.origin_bound(-math.inf, math.inf), "m")
print("twice as large", joint.scaled(2.0))

# Its circle in an upright plane: a quarter turn about x in front of it.
upright = joint.prepend(arm.Pose.rotation_x(math.pi / 2))
print("upright, a quarter round", upright.transform(math.pi).position)

# Linear then angular, written in the moving frame: forward 1.3 m/s, turning 0.65 rad/s,
# and pulled to the centre with v^2 / r.
assert np.allclose(joint.velocity(0.7, 1.3), [0, 1.3, 0, 0, 0, 0.65])
pull = -(1.3**2) / 2.0
assert np.allclose(joint.acceleration(0.7, 1.3, 0.5), [pull, 0.5, 0, 0, 0, 0.25])
assert np.allclose(upright.transform(math.pi).position, (0, 0, 2))
assert joint.scaled(2.0) == CircleJoint(radius=4.0)
