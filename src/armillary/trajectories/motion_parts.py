"""Parts of motions: samples, peaks, markers and attachments."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, quote
from armillary.kernel.arguments import positive_number

__all__ = [
    "POWERS",
    "Attachment",
    "Marker",
    "Peaks",
    "Samples",
    "check_meeting",
    "in_order",
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


def in_order(events: Iterable[Any]) -> tuple[Any, ...]:
    """Return markers or attachments in order of time; equal times keep theirs."""
    return tuple(sorted(events, key=lambda event: event.time))


def check_meeting(
    joint_names: Sequence[str],
    last: Sequence[Array],
    first: Sequence[Array],
    pause: float,
    smooth: bool,
    tolerance: float,
) -> None:
    """Refuse a motion that does not begin as the one before it ends.

    Args:
        joint_names: Those of both motions.
        last: q, qd, qdd and qddd at the end of the motion before, (n,) each.
        first: The same at the start of the other.
        pause: How long joints rest in between [s].
        smooth: Whether accelerations must meet, too.
        tolerance: By how much they may differ.

    Raises:
        ModelError: They differ by more; a joint moves where it should rest.
    """
    pairs = [("positions", last[0], first[0])]
    if pause:
        rests = np.zeros_like(last[0])
        pairs += [("rates at the pause", last[1], rests)]
        pairs += [("rates at the pause", rests, first[1])]
    else:
        pairs += [("rates", last[1], first[1])]
        pairs += [("accelerations", last[2], first[2])] if smooth else []
    for what, a, b in pairs:
        gap = np.abs(a - b)
        if not (gap <= tolerance).all():
            k = int(np.argmax(gap))
            raise ModelError(
                f"Two motions do not meet: their {what} of {quote(joint_names[k])} are "
                f"{a[k]:g} and {b[k]:g} there. Let the next motion begin as the one "
                "before ends, or let both rest there and give pause=."
            )
