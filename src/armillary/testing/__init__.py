"""Public checks of a user's own parts: does this joint keep the joint contract?"""

from __future__ import annotations

from armillary.testing.inverse import check_inverse
from armillary.testing.jacobian_transpose import jacobian_transpose
from armillary.testing.joint import check_joint
from armillary.testing.loops import check_loops
from armillary.testing.samples import random_direction, random_joint, random_pose

__all__ = [
    "check_inverse",
    "check_joint",
    "check_loops",
    "jacobian_transpose",
    "random_direction",
    "random_joint",
    "random_pose",
]
