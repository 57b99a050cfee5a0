"""The fastest motion along a straight line of joint positions, in closed form.

The way r runs from 0 to 1 with q = q0 + r (q1 - q0). Each joint bounds r' and r'' by
its limits divided by its way; with the least of these, v and a, the motion is

    r'' = a  until r' = v,    r'' = 0,    r'' = -a

and without the middle part where v^2 > a, since both others then take all of the way.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.trajectories.motion_parts import POWERS

__all__ = ["MotionArrays", "straight_motion"]

Array = npt.NDArray[np.float64]


class MotionArrays(NamedTuple):
    """The arrays of a motion, see `Motion`."""

    times: Array
    law: Array
    curve: Array
    piece: npt.NDArray[np.int64]


def straight_motion(
    q0: Array, q1: Array, velocity: Array, acceleration: Array
) -> MotionArrays | None:
    """Return the fastest motion from rest to rest; None where nothing moves.

    Args:
        q0: Joint positions where it begins [m or rad], shape (n,).
        q1: Where it ends, shape (n,).
        velocity: Least and greatest rates [m/s or rad/s], shape (2, n).
        acceleration: Least and greatest accelerations, shape (2, n); a bound of either
            holds for both the start and the end of the motion.
    """
    way = q1 - q0
    moves = way != 0.0
    if not moves.any():
        return None
    d = np.abs(way[moves])
    fastest = np.asarray(np.where(way > 0.0, velocity[1], -velocity[0]), np.float64)
    rates = fastest[moves]
    greatest = np.asarray(np.minimum(acceleration[1], -acceleration[0]))[moves]
    v, a = float(np.min(rates / d)), float(np.min(greatest / d))
    if v * v >= a:
        half = math.sqrt(1.0 / a)
        ends = [half, half]
        law = [[0.0, 0.0, 0.5 * a], [0.5, a * half, -0.5 * a]]
    else:
        ramp, cruise = v / a, 1.0 / v - v / a
        reached = 0.5 * v * ramp
        ends = [ramp, cruise, ramp]
        law = [[0.0, 0.0, 0.5 * a], [reached, v, 0.0], [1.0 - reached, v, -0.5 * a]]
    m = len(ends)
    laws, curve = np.zeros((m, POWERS)), np.zeros((1, POWERS, len(q0)))
    laws[:, :3] = law
    curve[0, 0], curve[0, 1] = q0, way
    times = np.concatenate([[0.0], np.cumsum(ends)])
    return MotionArrays(times, laws, curve, np.zeros(m, np.int64))
