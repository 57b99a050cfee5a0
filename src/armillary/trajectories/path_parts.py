"""What is asked and found of paths: limits, curves and times."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.trajectories.curve import PathCurve

__all__ = ["Curves", "PathLimits", "Timed"]

Array = npt.NDArray[np.float64]


class PathLimits(NamedTuple):
    """Lower and upper limits, shape (..., 2, n) each.

    Attributes:
        velocity: Of rates [m/s or rad/s].
        acceleration: Of accelerations [m/s^2 or rad/s^2].
    """

    velocity: Array
    acceleration: Array


class Curves(NamedTuple):
    """The paths of a question.

    Attributes:
        curve: The curves; those of rows that are faulty are meaningless.
        reason: What is wrong with each path, as numbers of `PathReason`, shape (...).
        still: Which paths rest at one point, shape (...).
    """

    curve: PathCurve
    reason: npt.NDArray[np.int8]
    still: npt.NDArray[np.bool_]


class Timed(NamedTuple):
    """What is found of paths: the first fields of `TimedPath`."""

    duration: Array
    time: Array
    speed: Array
    reason: npt.NDArray[np.int8]
    curve: PathCurve
