"""Torques, powers and energy of the joints of a cell during a recording."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.dynamics.questions import inverse_dynamics
from armillary.programs.recording import Recording
from armillary.programs.tracks import inside_of

__all__ = ["Loads", "loads"]

Array = npt.NDArray[np.float64]

SAMPLE: Final = 0.002
"""The longest time between samples [s]; motions have others where they change."""

FINER_SAMPLES: Final = 9
MOST_REFINEMENTS: Final = 8
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
        """Return peaks as parts of the limits, shape (n,).

        0 for joints without a limit or without load, infinite for a load beside a limit
        of 0, as files have that do not know it.
        """
        with np.errstate(divide="ignore"):
            return np.divide(
                self.peak, self.limit, out=np.zeros_like(self.peak), where=self.peak > 0
            )


def loads(recording: Recording) -> Loads:
    """Return torques, powers and energy, see `Timeline.loads`."""
    cell = recording.cell
    n = len(cell.joint_names)
    peak, when, squares = np.zeros(n), np.zeros(n), np.zeros(n)
    power = energy = braking = 0.0
    for start, end in recording.attached_spans():
        knots = recording.knots(start, end, most=SAMPLE)
        if len(knots) < 2:
            continue
        times = inside_of(knots)
        torque, qd = _torques(recording, start, times)
        greatest = np.abs(torque).reshape(-1, n)
        rows = np.argmax(greatest, axis=0)
        for k in range(n):
            best, time = _refined(
                recording, start, times, k, float(greatest[rows[k], k]), int(rows[k])
            )
            if best > peak[k]:
                peak[k], when[k] = best, time
        h = np.diff(knots)
        squares += 0.5 * h @ (torque**2).sum(axis=1)
        watts = torque * qd
        power = max(power, float(watts.sum(axis=2).max()))
        energy += float((0.5 * h @ np.maximum(watts, 0.0).sum(axis=1)).sum())
        braking -= float((0.5 * h @ np.minimum(watts, 0.0).sum(axis=1)).sum())
    duration = recording.duration or 1.0
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


def _torques(recording: Recording, start: float, times: Array) -> tuple[Array, Array]:
    """Return torques and rates at instants with the attachments of one of them."""
    state = recording.state(start)
    values = recording.at(times)
    kernel = inverse_dynamics(recording.cell, state=state)
    return np.asarray(kernel(*values)), values.qd


def _refined(
    recording: Recording, start: float, times: Array, k: int, value: float, row: int
) -> tuple[float, float]:
    """Return a greatest torque between samples, and when that is.

    row: The sample with the greatest one, in two columns of instants.
    """
    interval = row // 2
    time = float(times.ravel()[row])
    low = float(times[max(interval - 1, 0), 0])
    high = float(times[min(interval + 1, len(times) - 1), 1])
    for _ in range(MOST_REFINEMENTS):
        fine = np.asarray(np.linspace(low, high, FINER_SAMPLES), np.float64)
        torque, _qd = _torques(recording, start, fine)
        found = np.abs(torque[:, k])
        best = int(np.argmax(found))
        if found[best] > value:
            value, time = float(found[best]), float(fine[best])
        low, high = map(
            float, fine[[max(best - 1, 0), min(best + 1, FINER_SAMPLES - 1)]]
        )
    return value, time
