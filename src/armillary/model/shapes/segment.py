"""Line segments, which bodies of revolution stand along."""

from __future__ import annotations

import math
from typing import Any

from armillary.errors import ModelError
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.rotation import about_axis
from armillary.spatial.vector import Vector3, add, scale, snap_rows, subtract, vector


def along(start: Any, end: Any) -> tuple[Pose, float]:
    """Return the frame in the middle of a segment, z along it, and its length [m].

    start: Shape (3,), as is `end`; where they are equal the axes are not turned.

    Raises:
        ShapeError: A shape differs.
        ModelError: They are not finite.
    """
    a, b = vector(start), vector(end)
    step = subtract(b, a)
    length = math.hypot(*step)
    if not math.isfinite(length):
        raise ModelError(f"The segment from {a} to {b} is not finite.")
    turn = facing(step) if length else IDENTITY
    return Pose(turn.rotation, scale(0.5, add(a, b))), length


def facing(direction: Vector3) -> Pose:
    """Return the smallest turn that takes z to a direction of any length but 0.

    Raises:
        ModelError: The direction is zero or not finite.
    """
    x, y, z = direction
    flat = math.hypot(x, y)
    if flat == 0.0 and z < 0.0:
        return Pose.rotation_x(math.pi)
    if flat == 0.0 and 0.0 < z < math.inf:
        return IDENTITY
    if not (0.0 < flat < math.inf and math.isfinite(z)):
        raise ModelError(f"The direction {direction} is zero or not finite.")
    axis = (0.0 - y / flat, x / flat, 0.0)
    rows = about_axis(axis, math.atan2(flat, z))
    return Pose(snap_rows(rows), (0.0, 0.0, 0.0))
