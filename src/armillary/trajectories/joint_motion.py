"""Motions of joints whose jerk is constant in parts: `cell.point_to_point` makes them.

From the start of a part, t [s] later and with jerk j,

    qdd = a + j t,    qd = v + a t + j t^2 / 2,    q = p + v t + a t^2 / 2 + j t^3 / 6
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from armillary.errors import ShapeError
from armillary.kinematics.kernels import Joints
from armillary.trajectories.position_limits import greatest_excess, workcell_of
from armillary.trajectories.timed_path import Peaks, Samples, sample_times

__all__ = ["JointMotion"]

Array = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class JointMotion:
    """One motion of joints in parts of constant jerk; arrays are read-only.

    Attributes:
        time: When each of m parts begins, and when the last one ends [s], shape (m +
            1,).
        q: Joint positions then [m or rad], shape (m + 1, n).
        qd: Rates then [m/s or rad/s], shape (m + 1, n).
        qdd: Accelerations at the beginning of each part [m/s^2 or rad/s^2], shape (m,
            n).
        jerk: Jerks in each part [m/s^3 or rad/s^3], shape (m, n).
    """

    time: Array
    q: Array
    qd: Array
    qdd: Array
    jerk: Array

    @property
    def duration(self) -> float:
        """Return how long it takes [s]."""
        return float(self.time[-1])

    def at(self, time: npt.ArrayLike) -> Samples:
        """Return the motion at instants.

        Before the start and after the end it rests at that end: rates and accelerations
        are zero there.

        Args:
            time: Instants [s], shape (...).

        Raises:
            ShapeError: They are not numbers.
        """
        try:
            instants = np.asarray(time, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ShapeError(f"Instants are an array of numbers: {error}.") from error
        is_known = ~np.isnan(instants)
        t = np.where(is_known, instants, 0.0)
        k = np.searchsorted(self.time, t, side="right") - 1
        k = np.clip(k, 0, len(self.jerk) - 1)
        since = (np.clip(t, 0.0, self.duration) - self.time[k])[..., None]
        v, a, j = self.qd[k], self.qdd[k], self.jerk[k]
        rests = ((t < 0.0) | (t > self.duration))[..., None]
        motion = (
            self.q[k] + since * (v + since * (a / 2.0 + since * j / 6.0)),
            np.where(rests, 0.0, v + since * (a + since * j / 2.0)),
            np.where(rests, 0.0, a + since * j),
        )
        known = is_known[..., None]
        return Samples(instants, *(np.where(known, part, np.nan) for part in motion))

    def sampled(self, *, rate: float) -> Samples:
        """Return the motion at a constant rate, and at its end.

        Args:
            rate: Samples a second.

        Raises:
            ModelError: The rate is not above 0.
        """
        return self.at(sample_times(self.duration, rate))

    def peaks(self) -> Peaks:
        """Return the greatest rates and accelerations; jerks are in `jerk`."""
        last = self.last_accelerations()
        rates = np.abs(np.concatenate([self.qd, self.turning_rates()])).max(axis=0)
        accelerations = np.maximum(np.abs(self.qdd), np.abs(last)).max(axis=0)
        return Peaks(rates, accelerations)

    def limit_excess(self, cell: Any, *, joints: Joints = None) -> float:
        """Return by how much it is beyond the limit of positions that it misses most.

        It is 0 or less where limits are kept [m or rad]; see `TimedPath.limit_excess`.

        Args:
            cell: The cell that moves.
            joints: As for `cell.point_to_point`.

        Raises:
            UnknownName: A joint does not exist.
            ShapeError: The cell has other joints.
        """
        h = np.diff(self.time)[:, None]
        powers = [
            self.q[:-1],
            self.qd[:-1] * h,
            self.qdd * h * h / 2.0,
            self.jerk * h * h * h / 6.0,
        ]
        workcell = workcell_of(cell, self.q.shape[-1], joints)
        return greatest_excess(workcell, np.stack(powers, axis=1), joints)

    def last_accelerations(self) -> Array:
        """Return accelerations at the ends of parts [m/s^2 or rad/s^2], (k, n)."""
        return self.qdd + self.jerk * np.diff(self.time)[:, None]

    def turning_rates(self) -> Array:
        """Return the rates where accelerations are 0 inside of parts, (k, n).

        Those at the start of a part where they are not [m/s or rad/s].
        """
        # qdd = a + j t is 0 at t = -a / j, where qd = v + a t + j t^2 / 2 = v + a t / 2
        reverses = (self.qdd * self.last_accelerations() < 0.0) & (self.jerk != 0.0)
        when = np.where(reverses, -self.qdd / np.where(reverses, self.jerk, 1.0), 0.0)
        return self.qd[:-1] + 0.5 * when * self.qdd

    def __repr__(self) -> str:
        return f"<JointMotion: {self.duration:.6g} s>"
