"""What a search compares: squares of tolerances and residuals, scales of targets."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from armillary.ik.search_step import Goal
from armillary.ik.validation import Tolerance, check_tolerance

Array = npt.NDArray[np.float64]

ROTATION_SCALE = 0.3  # metres that a unit of an axis counts for


def squared_tolerances(tolerance: Tolerance, goals: int) -> Array:
    """Return the largest squares of distance and sine for each of so many goals.

    Raises:
        ShapeError: A tolerance is not above 0.
    """
    check_tolerance(tolerance)
    distance, angle = tolerance
    return np.array([distance**2, math.sin(min(angle, 1.5)) ** 2] * goals)


def goal_scales(goal: Goal) -> list[float]:
    """Return how much each number of a target counts where starts are compared."""
    scales = np.zeros((4, 4))
    if goal.in_target:
        scales[:3, 3] = 1.0 if goal.has_position else 0.0
        bound = [k for k in range(3) if goal.rotation[k]]
        if len(bound) == 3:
            scales[:3, :2] = ROTATION_SCALE  # two axes tell the third
        elif len(bound) == 2:
            free = 3 - sum(bound)
            scales[:3, free] = ROTATION_SCALE
    else:
        scales[:3, 3] = goal.position
        scales[:3, :2] = ROTATION_SCALE if all(goal.rotation) else 0.0
    return scales.ravel().tolist()


def residuals_of(errors: Array) -> Array:
    """Return distance and angle of the worst goal from the squares of the search."""
    distance = np.sqrt(errors[:, 0::2].max(axis=1))
    square = errors[:, 1::2].max(axis=1)
    beyond = square >= 4.0
    within: Array = np.clip(square - 4.0 * beyond, 0.0, 1.0).astype(np.float64)
    below: Array = np.arcsin(np.sqrt(within))
    angle: Array = np.where(beyond, math.pi - below, below)
    return np.stack([distance, angle], axis=1)
