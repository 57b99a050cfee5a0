"""What inverse kinematics answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from armillary.solve.ik.reason import Reason

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """The answers to a batch of targets; its arrays are read-only.

    Attributes:
        q: Joint positions [m or rad], shape (..., n): an answer where `success`, else
            the nearest that was found; NaN for targets that are no pose.
        success: Whether the target is met within the tolerances, shape (...).
        residual: Distance [m] and angle [rad] that remain, the largest of all goals,
            shape (..., 2).
        reason: Why, as numbers of `Reason`, shape (...).
        steps: Steps of the search, shape (...).
        starts: Places it started from, shape (...).
    """

    q: Array
    success: npt.NDArray[np.bool_]
    residual: Array
    reason: npt.NDArray[np.int8]
    steps: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        """Close the arrays for writing."""
        for name in self.__slots__:
            getattr(self, name).flags.writeable = False

    def summary(self) -> dict[str, int]:
        """Return how many targets ended how, most frequent first."""
        values, counts = np.unique(self.reason, return_counts=True)
        pairs = sorted(zip(values, counts, strict=True), key=lambda pair: -pair[1])
        return {Reason(int(value)).name: int(count) for value, count in pairs}

    def __str__(self) -> str:
        total = self.success.size
        lines = [f"{int(self.success.sum())} of {total} solved"]
        for name, count in self.summary().items():
            if name != "SOLVED":
                lines.append(f"{count} {Reason[name].sentence}")
        return "; ".join(lines)
