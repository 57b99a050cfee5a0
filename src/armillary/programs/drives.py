"""Joints that move by themselves, such as conveyors and turntables."""

from __future__ import annotations

import math

import numpy as np

from armillary.errors import quote
from armillary.programs.ending import Impossible, RunReason
from armillary.programs.steps import Drive
from armillary.programs.tracks import JointValues
from armillary.programs.world import RunLimits
from armillary.trajectories.motion import Motion
from armillary.trajectories.motion_parts import POWERS

__all__ = ["driven"]


def driven(
    step: Drive, joint: int, values: JointValues, limits: RunLimits, longest: float
) -> Motion | None:
    """Return the motion of a joint that changes its speed and keeps it.

    Args:
        step: The speed, and how fast it gets there.
        joint: The place of the joint in q.
        values: Where it is now, shape (1,) each.
        limits: Of joints.
        longest: For how long it goes on [s]; at its limit a joint stops before.

    Returns:
        The motion; None where the joint rests and goes on to do so.

    Raises:
        Impossible: It is faster than its limit.
    """
    q, v, speed = float(values.q[0]), float(values.qd[0]), step.speed
    least, most = limits.velocity[:, joint]
    if not least <= speed <= most:
        raise Impossible(
            RunReason.LIMITS,
            f"{quote(step.joint)} has rates from {least:g} to {most:g}, not {speed:g}",
        )
    a = step.acceleration or float(limits.acceleration[1, joint])
    ramp = abs(speed - v) / a if a < math.inf else 0.0
    times, pieces = [0.0], list[list[float]]()  # coefficients of each piece
    if ramp:
        times.append(ramp)
        pieces.append([q, v, 0.5 * (speed - v) / ramp])
        q += 0.5 * (v + speed) * ramp
    if speed:
        end = limits.position[1 if speed > 0.0 else 0, joint]
        way = (end - q) / speed if math.isfinite(end) else math.inf
        if way > 0.0:
            times.append(ramp + min(way, longest))
            pieces.append([q, speed])
    if not pieces:
        return None
    law = np.zeros((len(pieces), POWERS))
    law[:, 1] = 1.0
    curve = np.zeros((len(pieces), POWERS, 1))
    for row, coefficients in enumerate(pieces):
        curve[row, : len(coefficients), 0] = coefficients
    return Motion(
        times=np.array(times),
        law=law,
        curve=curve,
        piece=np.arange(len(pieces)),
        joint_names=(),
    )
