"""What differential inverse kinematics answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armillary.ik.reason import RateReason

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """The rates for a batch of wanted twists; its arrays are read-only.

    Where there are k > 1 tasks, the arrays other than `qd` have an axis k after those
    of the batch.

    Attributes:
        qd: Joint rates [m/s or rad/s], shape (..., n); NaN where anything given was.
        twist: What they achieve, all six numbers [m/s, rad/s], shape (..., 6).
        residual: Length of what is missing in the rows that count, linear [m/s] and
            angular [rad/s], shape (..., 2).
        scale: How far on the straight line from what higher tasks leave to what is
            wanted, less damping, shape (...); 1 where limits take nothing.
        reason: Why, as numbers of `RateReason`, shape (...).
    """

    qd: Array
    twist: Array
    residual: Array
    scale: Array
    reason: npt.NDArray[np.int8]

    def __post_init__(self) -> None:
        """Close the arrays for writing."""
        for name in self.__slots__:
            getattr(self, name).flags.writeable = False

    @property
    def success(self) -> npt.NDArray[np.bool_]:
        """Return whether the residual is within the tolerances, shape (...)."""
        return self.reason == RateReason.MET

    def summary(self) -> dict[str, int]:
        """Return how many tasks ended how, most frequent first."""
        return RateReason.summary(self.reason)

    def __str__(self) -> str:
        return RateReason.text(self.reason, self.success)
