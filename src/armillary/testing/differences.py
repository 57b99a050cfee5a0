"""Finite differences, and the test that their error falls as it must.

A central difference is wrong by a multiple of the square of its step. Where halving the
step does not bring its distance from a claimed derivative to a quarter, the claim is
wrong, however near the two may be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Function = Callable[[Array], Array]

LEAST_RATIO: Final = 3.0  # of errors at steps of ratio 2: a slope of 1.6 at least
ROUNDING: Final = 64.0 * 2.0**-52
LEVELS: Final = 12


def first_difference(function: Function, x: Array, step: Array) -> Array:
    """Return (f(x + h) - f(x - h)) / 2h.

    Args:
        function: Takes shape (n,), returns (n, ...).
        x: Shape (n,).
        step: h, shape (n,).
    """
    change = function(x + step) - function(x - step)
    return change / _along(2.0 * step, change)


def second_difference(function: Function, x: Array, step: Array) -> Array:
    """Return (f(x + h) - 2 f(x) + f(x - h)) / h^2, shapes as in `first_difference`."""
    change = function(x + step) - 2.0 * function(x) + function(x - step)
    return change / _along(step**2, change)


@dataclass(frozen=True, slots=True)
class Descent:
    """The errors of differences at steps h, h / 2, h / 4, ... of several samples.

    Attributes:
        errors: Shape (levels, n), relative to the size of what is differentiated.
        floors: What rounding may make of them, shape (levels, n).
    """

    errors: Array
    floors: Array

    @property
    def visible(self) -> Array:
        """Return the largest error at each step of the samples it is visible in."""
        return np.where(self.errors > self.floors, self.errors, 0.0).max(axis=1)

    @property
    def is_quadratic(self) -> bool:
        """Return whether the largest error falls as h^2 until rounding hides it."""
        if not np.isfinite(self.errors).all():
            return False
        visible = self.visible[self.visible > 0.0]
        # Halving h divides an error of order h^2 by 4; 3 allows for terms of higher
        # order. Only the last ratios count, where those are small.
        ratios = visible[:-1] / visible[1:]
        return bool((ratios[-3:] >= LEAST_RATIO).all())

    @property
    def worst(self) -> int:
        """Return the sample whose error stands out most at the smallest steps."""
        excess = (np.nan_to_num(self.errors, nan=np.inf) / self.floors)[-2:]
        return int(np.argmax(excess.max(axis=0)))


def descent(
    claim: Array,
    difference: Callable[[Array], Array],
    step: Array,
    magnitude: Array,
    *,
    order: int,
) -> Descent:
    """Compare claimed derivatives with differences at falling steps.

    Args:
        claim: The derivatives, shape (n, ...).
        difference: From steps, shape (n,), to the differences, shape (n, ...).
        step: The largest steps, shape (n,).
        magnitude: How large the numbers are whose differences are taken, shape (n,).
        order: 1 or 2; rounding makes errors of 1 / h and 1 / h^2.
    """
    # Relative to large derivatives, absolute for small ones.
    size = 1.0 + _largest(claim)
    errors: list[Array] = []
    floors: list[Array] = []
    for level in range(LEVELS):
        h = step / 2.0**level
        errors.append(_largest(difference(h) - claim) / size)
        # Subtracting numbers of this size loses their last bits, which the division by
        # h or h^2 enlarges.
        floors.append(ROUNDING * magnitude / h**order / size)
    return Descent(np.array(errors), np.array(floors))


def _largest(values: Array) -> Array:
    return np.abs(values.reshape(len(values), -1)).max(axis=1)


def _along(step: Array, values: Array) -> Array:
    return step.reshape(-1, *([1] * (values.ndim - 1)))
