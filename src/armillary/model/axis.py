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


def unit_axis(joint: Any) -> None:
    """Give the `axis` of a joint length 1, once, while the joint is being made.

    Raises:
        JointError: The axis is no direction: not three numbers, or all zero.
    """
    axis: tuple[Any, ...] = joint.axis
    kind = type(joint).__name__
    if not isinstance(axis, tuple) or len(axis) != 3:
        raise JointError(f"{kind}.axis must be three numbers, not {axis!r}.")
    length = math.hypot(*axis)
    if length < 1e-12:
        raise JointError(f"{kind}.axis is {axis}, which has no direction.")
    if abs(length - 1.0) > ROUNDING:
        axis = tuple(component / length for component in axis)
    msgspec.structs.force_setattr(joint, "axis", tuple(float(a) + 0.0 for a in axis))
