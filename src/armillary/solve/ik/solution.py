"""What inverse kinematics answers."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.kernel.search import Found
from armillary.solve.ik.reason import Reason

Array = npt.NDArray[np.float64]


class Solution:
    """The answers to a batch of targets; its arrays are read-only.

    Attributes:
        q: Joint positions [m or rad], shape (..., n): an answer where `success`, else
            the nearest that was found; NaN for targets that are no pose.
    """

    def __init__(
        self,
        found: Found,
        reason: npt.NDArray[np.int8] | None,
        batch: tuple[int, ...],
    ) -> None:
        """Say what a search found.

        Args:
            found: All of it, one row for each target.
            reason: Why, for each target; none where all are solved.
            batch: The shape of the batch.
        """
        self._found = found
        self._reason = reason
        self._batch = batch
        self.q: Array = _closed(found.unknowns.reshape(*batch, found.unknowns.shape[1]))

    @cached_property
    def success(self) -> npt.NDArray[np.bool_]:
        """Whether each target is met within the tolerances, shape (...)."""
        return _closed(self.reason == Reason.SOLVED)

    @cached_property
    def residual(self) -> Array:
        """Distance [m] and angle [rad] that remain, the largest, shape (..., 2)."""
        return _closed(_residuals(self._found.errors).reshape(*self._batch, 2))

    @cached_property
    def reason(self) -> npt.NDArray[np.int8]:
        """Why, as numbers of `Reason`, shape (...)."""
        reason = self._reason
        if reason is None:
            reason = np.zeros(len(self._found.endings), np.int8)
        return _closed(reason.reshape(self._batch))

    @cached_property
    def steps(self) -> npt.NDArray[np.int64]:
        """Steps of the search, shape (...)."""
        return _closed(self._found.endings[:, 1].reshape(self._batch))

    @cached_property
    def starts(self) -> npt.NDArray[np.int64]:
        """Places that the search started from, shape (...)."""
        return _closed(self._found.endings[:, 2].reshape(self._batch))

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


def _closed(array: Any) -> Any:
    array.setflags(write=False)
    return array


def _residuals(errors: Array) -> Array:
    """Return distance and angle of the worst goal from the squares of the search."""
    distance = np.sqrt(errors[:, 0::2].max(axis=1))
    square = errors[:, 1::2].max(axis=1)
    beyond = square >= 4.0
    within: Array = np.clip(square - 4.0 * beyond, 0.0, 1.0).astype(np.float64)
    below: Array = np.arcsin(np.sqrt(within))
    angle: Array = np.where(beyond, math.pi - below, below)
    return np.stack([distance, angle], axis=1)
