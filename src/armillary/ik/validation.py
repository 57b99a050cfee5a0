"""What a solver of inverse kinematics is called with: checked, one row a target."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.errors import ShapeError
from armillary.ik.targets import as_matrices, as_reals
from armillary.kernel.search import deadline_after

Array = npt.NDArray[np.float64]
Batch = tuple[int, ...]
Tolerance = tuple[float, float]

LEAST_TIME = 1e-9
TOLERANCE: Tolerance = (1e-6, 1e-6)
"""What may remain of a target that is met, if nothing is said [m, rad]."""


def as_poses(targets: Any, goals: int) -> tuple[Array, Batch]:
    """Return targets, shape (count, goals, 4, 4), and the shape of their batch.

    They may be matrices, quaternions with origins, or dual quaternions.

    Raises:
        ShapeError: They are no poses, or not one for each goal.
    """
    array = as_matrices(targets)
    core = (4, 4) if goals == 1 else (goals, 4, 4)
    if array.shape[array.ndim - len(core) :] != core or array.ndim < len(core):
        shape = ", ".join(map(str, core))
        raise ShapeError(
            f"ik needs targets of shape (..., {shape}), or with 7 numbers (quaternion, "
            f"origin) or 8 (dual quaternion) in place of 4, 4; an array of shape "
            f"{np.shape(targets)} was given."
        )
    batch = array.shape[: array.ndim - len(core)]
    return array.reshape(math.prod(batch), goals, 4, 4), batch


def as_vectors(values: Any, name: str, n: int, batch: Batch) -> Array:
    """Return joint vectors for all targets, shape (n,), or for each, (count, n).

    Raises:
        ShapeError: They are no vectors of n, do not fit the batch, or hold NaN.
    """
    array = as_reals(values, name)
    if array.shape[-1:] != (n,):
        raise ShapeError(
            f"{name} needs shape (..., {n}); an array of shape {array.shape} was given."
        )
    # a sum of squares is quicker than a test of each number
    if math.isnan(np.vdot(array, array)) and np.isnan(array).any():
        raise ShapeError(
            f"{name} must contain joint positions, but {int(np.isnan(array).sum())} of "
            f"its {array.size} numbers are NaN."
        )
    if array.ndim == 1:
        return array
    try:
        return np.broadcast_to(array, (*batch, n)).reshape(-1, n)
    except ValueError as error:
        raise ShapeError(
            f"{name} of shape {array.shape} does not fit targets of batch {batch}."
        ) from error


def as_numbers(values: Any, name: str, batch: Batch) -> Array | None:
    """Return one number for all targets, shape (), or for each, (count,); or None.

    Raises:
        ShapeError: They do not fit the batch.
    """
    if values is None:
        return None
    array = as_reals(values, name)
    if array.ndim == 0:
        return array
    try:
        return np.broadcast_to(array, batch).reshape(-1)
    except ValueError as error:
        raise ShapeError(
            f"{name} of shape {array.shape} does not fit targets of batch {batch}."
        ) from error


def deadline_of(timeout: float | None) -> int:
    """Return when a search is to stop, 0 for never; see `deadline_after`.

    Raises:
        ShapeError: `timeout` is not above 0.
    """
    if timeout is None or timeout == math.inf:
        return 0
    if not timeout > 0.0:
        raise ShapeError(f"timeout= takes seconds above 0, not {timeout}.")
    return deadline_after(timeout)


def countdown(timeout: float | None) -> Callable[[], float | None]:
    """Return what gives the seconds that are left of a timeout, above 0.

    Raises:
        ShapeError: `timeout` is not above 0.
    """
    if not deadline_of(timeout) or timeout is None:
        return lambda: None
    end = time.monotonic() + timeout
    return lambda: max(end - time.monotonic(), LEAST_TIME)


def check_tolerance(tolerance: Tolerance) -> None:
    """Refuse tolerances that nothing meets.

    Raises:
        ShapeError: They are not two numbers above 0.
    """
    try:
        distance, angle = tolerance
        met = distance > 0.0 and angle > 0.0
    except (TypeError, ValueError) as error:
        raise ShapeError(
            "tolerance= takes a distance [m] and an angle [rad], such as (1e-3, 1e-3), "
            f"not {tolerance!r}."
        ) from error
    if not met:
        raise ShapeError(
            f"The tolerances are {distance} m and {angle} rad; both must be above 0."
        )
