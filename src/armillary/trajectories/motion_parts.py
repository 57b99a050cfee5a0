"""Parts of motions: samples, peaks, markers and attachments."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.kernel.arguments import positive_number

__all__ = [
    "POWERS",
    "Attachment",
    "Marker",
    "Peaks",
    "Samples",
    "sample_times",
]

Array = npt.NDArray[np.float64]

POWERS: Final = 6
"""Coefficients of each polynomial of a motion."""


class Samples(NamedTuple):
    """Motion of joints at instants.

    Attributes:
        time: Instants [s], shape (..., m).
        q: Positions [m or rad], shape (..., m, n).
        qd: Rates [m/s or rad/s], shape (..., m, n).
        qdd: Accelerations [m/s^2 or rad/s^2], shape (..., m, n).
        qddd: Jerks [m/s^3 or rad/s^3], shape (..., m, n).
    """

    time: Array
    q: Array
    qd: Array
    qdd: Array
    qddd: Array


class Peaks(NamedTuple):
    """The greatest rates, accelerations and jerks, in either direction.

    Attributes:
        velocity: Greatest rates [m/s or rad/s], shape (..., n).
        acceleration: Greatest accelerations [m/s^2 or rad/s^2], shape (..., n).
        jerk: Greatest jerks [m/s^3 or rad/s^3], shape (..., n).
    """

    velocity: Array
    acceleration: Array
    jerk: Array


class Marker(NamedTuple):
    """A name for an instant, such as one at which a tool is switched.

    Attributes:
        name: What is marked.
        time: When [s].
    """

    name: str
    time: float


class Attachment(NamedTuple):
    """A part that is gripped or released on the way.

    Attributes:
        part: The manipulator.
        time: When [s].
        by: The frame that grips it; None where the part is released.
    """

    part: str
    time: float
    by: str | None = None


def sample_times(duration: float, rate: float) -> Array:
    """Return instants at a constant rate, and the end [s].

    Raises:
        ModelError: The rate is not above 0.
    """
    rate = positive_number("The rate", rate)
    count = math.ceil(duration * rate * (1.0 - 1e-12))
    return np.append(np.arange(count) / rate, duration)
