"""Torques, powers and energy of the joints of a cell during a timeline."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.dynamics.questions import inverse_dynamics
from armillary.programs.timeline import Timeline

__all__ = ["Loads", "loads"]

Array = npt.NDArray[np.float64]

SAMPLE: Final = 0.002
"""The longest time between samples [s]; motions have others where they change."""

FINER: Final = 9
ROUNDS: Final = 8
"""Samples between those around a greatest torque, and how often it is refined."""


class Loads(NamedTuple):
    """What the motors of a cell have to do, in the order of its joints.

    Attributes:
        joints: Names of the n joints.
        peak: Greatest torques or forces, in either direction [N m or N], shape (n,).
        when: When these are needed [s], shape (n,).
        rms: Root mean squares over the timeline, shape (n,).
        limit: Effort limits, infinite where the model has none, shape (n,).
        power: The greatest power of all motors together [W].
        energy: The work that motors do while they drive [J]; what they take in while
            they brake is not subtracted.
        braking: The work that motors take in while they brake [J].
    """

    joints: tuple[str, ...]
    peak: Array
    when: Array
    rms: Array
    limit: Array
    power: float
    energy: float
    braking: float

    @property
    def use(self) -> Array:
        """Return peaks as parts of the limits, shape (n,); 0 where there is none."""
        return np.where(np.isfinite(self.limit), self.peak / self.limit, 0.0)


def loads(timeline: Timeline) -> Loads:
    """Return torques, powers and energy, see `Timeline.loads`."""
    cell = timeline.cell
    n = len(cell.joint_names)
    peak, when, squares = np.zeros(n), np.zeros(n), np.zeros(n)
    power = energy = braking = 0.0
    for start, end in _spans(timeline):
        knots = timeline.knots(start, end, most=SAMPLE)
        if len(knots) < 2:
            continue
        # Accelerations jump at knots: both ends of each interval are its own.
        times = np.stack([knots[:-1], np.nextafter(knots[1:], -math.inf)], axis=1)
        torque, qd = _torques(timeline, start, times)
        greatest = np.abs(torque).reshape(-1, n)
        rows = np.argmax(greatest, axis=0)
        for k in range(n):
            best, time = _refined(
                timeline, start, times, k, float(greatest[rows[k], k]), int(rows[k])
            )
            if best > peak[k]:
                peak[k], when[k] = best, time
        h = np.diff(knots)
        squares += 0.5 * h @ (torque**2).sum(axis=1)
        watts = torque * qd
        power = max(power, float(watts.sum(axis=2).max()))
        energy += float((0.5 * h @ np.maximum(watts, 0.0).sum(axis=1)).sum())
        braking -= float((0.5 * h @ np.minimum(watts, 0.0).sum(axis=1)).sum())
    duration = timeline.duration or 1.0
    return Loads(
        tuple(cell.joint_names),
        peak,
        when,
        np.sqrt(squares / duration),
        np.array(cell.effort_limits),
        power,
        energy,
        braking,
    )


def _spans(timeline: Timeline) -> Iterator[tuple[float, float]]:
    times = sorted({event.time for event in timeline.events})
    yield from pairwise([*times, max(timeline.duration, times[-1])])


def _torques(timeline: Timeline, start: float, times: Array) -> tuple[Array, Array]:
    """Return torques and rates at instants with the attachments of one of them."""
    state = timeline.state(start)
    values = timeline.at(times)
    kernel = inverse_dynamics(timeline.cell, state=state)
    return np.asarray(kernel(*values)), values.qd


def _refined(
    timeline: Timeline, start: float, times: Array, k: int, value: float, row: int
) -> tuple[float, float]:
    """Return a greatest torque between samples, and when that is.

    row: The sample with the greatest one, in two columns of instants.
    """
    interval = row // 2
    time = float(times.ravel()[row])
    low, high = (
        times[max(interval - 1, 0), 0],
        times[min(interval + 1, len(times) - 1), 1],
    )
    for _ in range(ROUNDS):
        fine = np.linspace(low, high, FINER)
        torque, _qd = _torques(timeline, start, fine)
        found = np.abs(torque[:, k])
        best = int(np.argmax(found))
        if found[best] > value:
            value, time = float(found[best]), float(fine[best])
        low, high = fine[max(best - 1, 0)], fine[min(best + 1, FINER - 1)]
    return value, time
