"""What moves a frame during a run, and within which limits."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.model.limit_rows import LimitRows
from armillary.programs.tracks import JointValues
from armillary.trajectories.kept_limits import BEYOND, greatest_ratios, spline_excess
from armillary.trajectories.motion import Motion

__all__ = ["BEND", "EXACT", "LIMIT_ROUNDING", "PEAK", "Mover", "rests"]

Array = npt.NDArray[np.float64]

LIMIT_ROUNDING: Final = 1e-9
"""By which part limits may be exceeded, as rounding has it."""

EXACT: Final = (1e-9, 1e-9)
"""What may remain of the pose of a frame that moves [m, rad]: an answer that the one
before already is within a wider tolerance would let joints move by steps."""

PEAK: Final = 1.875
BEND: Final = 5.7735026918962573
"""The greatest s' and s'' of 10 u^3 - 15 u^4 + 6 u^5 from 0 to 1, for u = t."""

STILL: Final = 1e-7
"""Rates and accelerations below this are those of joints at rest."""


class Mover(NamedTuple):
    """What moves a frame, and within which limits.

    Attributes:
        solver: Poses in the world to positions of the joints of a task.
        position: Least and greatest positions [m or rad], shape (2, n).
        velocity: Least and greatest rates, shape (2, n).
        acceleration: Least and greatest accelerations, shape (2, n).
        coupled: Limits that couple joints, the others being where they are.
    """

    solver: InverseKinematics | None
    position: Array
    velocity: Array
    acceleration: Array
    coupled: LimitRows | None = None

    @property
    def limits(self) -> bytes:
        """Return its limits, to tell movers apart."""
        return self.velocity.tobytes() + self.acceleration.tobytes()

    def least(self, way: Array) -> float:
        """Return what no motion of joints by a way, (n,), is shorter than [s]."""
        return self._longest(way, self._fastest(way))

    def shortest(self, way: Array) -> float:
        """Return the least duration of a polynomial from rest to rest [s].

        Its greatest rate is PEAK times way / T, its greatest acceleration BEND times
        way / T^2, of either sign.

        way: By how much joints move, shape (n,).
        """
        bends = np.minimum(self.acceleration[1], -self.acceleration[0])
        of_rates = PEAK * self._longest(way, self._fastest(way))
        return max(of_rates, math.sqrt(BEND * self._longest(way, bends)))

    def _fastest(self, way: Array) -> Array:
        """Return the greatest rates in the directions of a way, shape (n,)."""
        upper, lower = self.velocity[1], self.velocity[0]
        return np.asarray(np.where(way > 0.0, upper, -lower), np.float64)

    @staticmethod
    def _longest(way: Array, most: Array) -> float:
        """Return the greatest ratio of ways to limits of joints that move."""
        goes = way != 0.0
        with np.errstate(divide="ignore"):
            return float((np.abs(way[goes]) / most[goes]).max(initial=0.0))

    def are_within(self, low: Array, high: Array) -> npt.NDArray[np.bool_]:
        """Return whether motions keep limits of positions, joint by joint, shape (k,).

        Args:
            low: Their least positions, shape (k, n).
            high: Their greatest, shape (k, n).
        """
        lower, upper = self.position
        inside: Any = (low >= lower - BEYOND) & (high <= upper + BEYOND)
        return np.asarray(inside.all(axis=1))

    def is_at_limit(self, q: Array) -> bool:
        """Return whether a joint is at a limit of positions at any sample, (k, n)."""
        lower, upper = self.position
        if self.coupled is not None and (q @ self.coupled.A.T >= self.coupled.b).any():
            return True
        return bool(((q <= lower + BEYOND) | (q >= upper - BEYOND)).any())

    def are_kept(self, curve: Array, q: Array) -> bool:
        """Return whether limits of positions hold between samples of a curve, too.

        Args:
            curve: Coefficients of its pieces, shape (k, 6, n).
            q: The samples, shape (m, n).
        """
        n = q.shape[1]
        rows = self.coupled or LimitRows.of(np.zeros((0, n)), np.zeros(0), (), n)
        return spline_excess(curve, q, rows.polytope(*self.position)) <= BEYOND

    def are_kept_along(self, motion: Motion) -> bool:
        """Return whether all limits hold at all instants of a motion."""
        ends = motion.curve[:, [0]].sum(axis=1), motion.curve.sum(axis=1)
        if not self.are_kept(motion.curve, np.concatenate(ends)):
            return False
        (most,) = greatest_ratios([motion], self.velocity, self.acceleration)
        return bool(most <= 1.0 + LIMIT_ROUNDING)


def rests(values: JointValues) -> bool:
    """Return whether joints neither move nor begin to."""
    return all(-STILL <= rate <= STILL for rate in values.qd.tolist()) and all(
        -1e-4 <= bend <= 1e-4 for bend in values.qdd.tolist()
    )
