"""All the answers to targets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.ik.reason import succeeded

Array = npt.NDArray[np.float64]

SAME = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Every answer to a batch of targets; its arrays are read-only.

    Attributes:
        q: Joint positions [m or rad], shape (..., b, n). Of a closed form, those beyond
            the joint limits stand here, too; NaN where a branch does not exist.
        success: Which of them reach the target within the limits, shape (..., b).
        squares: Squares of the distance [m^2] and of twice the sine of half the angle
            that remain, shape (..., b, 2).
        reason: Why, as numbers of `Reason`, shape (..., b).
        branches: The name of each of the b branches of a closed form, else empty.
        complete: Whether there are no others, apart from whole turns of joints: true
            of a closed form, unknown of a search.
    """

    q: Array
    success: npt.NDArray[np.bool_]
    squares: Array
    reason: npt.NDArray[np.int8]
    branches: tuple[tuple[str, ...], ...]
    complete: bool

    @classmethod
    def of(
        cls,
        batch: tuple[int, ...],
        q: Array,
        squares: Array,
        reason: npt.NDArray[np.int8],
        branches: tuple[tuple[str, ...], ...] = (),
    ) -> Answers:
        """Return answers of the same number for each target, complete with `branches`.

        Args:
            batch: The shape of the batch, of count targets in all.
            q: Shape (..., n), like all of these one target after the other.
            squares: Shape (..., 2).
            reason: Shape (...).
            branches: The name of each.
        """
        width = len(branches) or reason.size // max(1, math.prod(batch))
        reason = reason.reshape((*batch, width))
        return cls(
            q=q.reshape(*reason.shape, q.shape[-1]),
            success=succeeded(reason),
            squares=squares.reshape(*reason.shape, 2),
            reason=reason,
            branches=branches,
            complete=bool(branches),
        )

    def __post_init__(self) -> None:
        """Close the arrays for writing."""
        for array in (self.q, self.success, self.squares, self.reason):
            array.flags.writeable = False

    @property
    def residual(self) -> Array:
        """Return the distance [m] and angle [rad] that remain, shape (..., b, 2)."""
        return residual_of(self.squares)

    @property
    def count(self) -> npt.NDArray[np.int64]:
        """Return how many branches succeed, shape (...)."""
        return np.asarray(self.success.sum(axis=-1), dtype=np.int64)

    def distinct(self, index: Any = ()) -> Array:
        """Return the answers to one target that differ from each other, shape (k, n).

        At the edge of reach and at singular targets several branches give the same.

        Args:
            index: Which target of the batch.
        """
        kept: list[Array] = []
        for q in self.q[index][self.success[index]]:
            if all(np.abs(q - other).max() > SAME for other in kept):
                kept.append(q)
        return np.array(kept).reshape(len(kept), self.q.shape[-1])


def residual_of(squares: Array) -> Array:
    """Return distance and angle of squares as `Answers` has them, shape (..., 2)."""
    roots = np.sqrt(squares)
    roots[..., 1] = 2.0 * np.arcsin(np.minimum(0.5 * roots[..., 1], 1.0))
    return roots
