"""Axes: directions that joints turn about and slide along."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from armillary.errors import JointError

Axis = tuple[float, float, float]

X: Axis = (1.0, 0.0, 0.0)
Y: Axis = (0.0, 1.0, 0.0)
Z: Axis = (0.0, 0.0, 1.0)

ROUNDING = 4e-16
SHORTEST = 1e-12


def unit_axis(joint: Any) -> None:
    """Give the `axis` of a joint length 1, once, while the joint is being made.

    Raises:
        JointError: The axis is zero.
    """
    axis = direction(joint.axis, f"{type(joint).__name__}.axis")
    if axis is not joint.axis:
        msgspec.structs.force_setattr(joint, "axis", axis)


def direction(vector: Axis, name: str) -> Axis:
    """Return a vector of finite numbers with length 1, itself where it has that.

    Raises:
        JointError: It has no direction; the message calls it `name`.
    """
    size = max(map(abs, vector))
    if size < SHORTEST:
        raise JointError(f"{name} is {vector}, which has no direction.")
    if abs(math.hypot(*vector) - 1.0) <= ROUNDING:
        return vector
    x, y, z = (component / size for component in vector)
    length = math.hypot(x, y, z)
    return (x / length + 0.0, y / length + 0.0, z / length + 0.0)
