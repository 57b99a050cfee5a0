"""Limits of joints along paths as a caller gives them, and as lower and upper ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError, quote
from armillary.kernel.arguments import numbers_of
from armillary.model.workcell import Workcell

__all__ = [
    "acceleration_limits",
    "check_batches",
    "check_limited",
    "limits_of",
    "path_speed",
    "two_of",
    "velocity_limits",
]

Array = npt.NDArray[np.float64]
Batch = tuple[int, ...]


def velocity_limits(cell: Workcell, joints: Sequence[int], given: Any) -> Array:
    """Return limits of rates [m/s or rad/s], shape (..., 2, n)."""
    value = cell.velocity_limits[list(joints)] if given is None else given
    return limits_of("velocity", value, len(joints))


def acceleration_limits(
    cell: Workcell, joints: Sequence[int], given: Any, *, is_needed: bool
) -> Array:
    """Return limits of accelerations [m/s^2 or rad/s^2], shape (..., 2, n).

    Args:
        cell: The cell.
        joints: The places of the joints in it.
        given: As for `limits_of`, or None for those of the cell.
        is_needed: Whether the model must then have one for each joint.

    Raises:
        ShapeError: They do not fit.
        ModelError: A limit is NaN or negative, or `is_needed` and the model has none.
    """
    if given is not None:
        return limits_of("acceleration", given, len(joints))
    modelled = cell.joints.acceleration_limits[list(joints)]
    unlimited = [
        cell.joint_names[k]
        for k, a in zip(joints, modelled, strict=True)
        if a == np.inf
    ]
    if unlimited and is_needed:
        raise ModelError(
            "These joints have no acceleration limit in the model, so give "
            "acceleration= (on the command line --acceleration): "
            f"{', '.join(unlimited)}."
        )
    return limits_of("acceleration", modelled, len(joints))


def limits_of(name: str, value: Any, joints: int, *, has_zero: bool = True) -> Array:
    """Return the lower and upper limits of joints, shape (..., 2, n).

    Args:
        name: What messages call them.
        value: A number, or numbers of shape (..., n), the same in both directions; or a
            tuple of two arrays (..., n), the lower and the upper limits.
        joints: How many joints there are.
        has_zero: Whether zero must be within.

    Raises:
        ShapeError: They do not fit.
        ModelError: A limit is NaN, zero is not within, or nothing is.
    """
    if is_pair(value):
        lower, upper = value
        low = _row(f"{name}[0]", lower, joints)
        high = _row(f"{name}[1]", upper, joints)
        if has_zero and not ((low <= 0.0).all() and (high >= 0.0).all()):
            raise ModelError(
                f"{name} as a pair has lower limits, none above 0, and upper limits, "
                "none below 0; one is on the wrong side of 0, or NaN."
            )
        if low.shape != high.shape:
            batches = low.shape[:-1], high.shape[:-1]
            check_batches(**{f"{name}[{k}]": each for k, each in enumerate(batches)})
        if not (has_zero or (low <= high).all()):
            raise ModelError(f"A lower limit in {name} is above the upper one, or NaN.")
        both = np.empty((*np.broadcast_shapes(low.shape, high.shape)[:-1], 2, joints))
        both[..., 0, :], both[..., 1, :] = low, high
        return both
    row = _row(name, value, joints)
    if not (row >= 0.0).all():
        raise ModelError(
            f"A limit in {name} is negative or NaN. Limits that differ in both "
            "directions are a tuple of two arrays: (lower, upper)."
        )
    both = np.empty((*row.shape[:-1], 2, joints))  # quicker than np.stack
    both[..., 1, :] = row
    np.negative(row, out=both[..., 0, :])
    return both


def is_pair(value: Any) -> bool:
    """Return whether limits are a tuple of two arrays."""
    if not isinstance(value, tuple):
        return False
    parts = cast("tuple[Any, ...]", value)
    return len(parts) == 2 and all(np.ndim(part) > 0 for part in parts)


def two_of(name: str, value: Any) -> tuple[Any, Any]:
    """Return the two values of a pair.

    Raises:
        ShapeError: It is something else.
    """
    try:
        first, second = value
    except (TypeError, ValueError):
        raise ShapeError(f"{name}= are two arrays, not {quote(value)}.") from None
    return first, second


def _row(name: str, value: Any, joints: int) -> Array:
    """Return numbers of joints, shape (..., n)."""
    array = numbers_of(name, value)
    if array.ndim == 0:
        return np.full(joints, array)
    if array.shape[-1] != joints:
        raise ShapeError(
            f"{name} is one number, or has the shape (..., {joints}); an array of "
            f"shape {array.shape} was given."
        )
    return array


def check_limited(names: Sequence[str], *limits: Array) -> None:
    """Check that each joint has a limit in both directions.

    Args:
        names: The names of the joints.
        limits: Limits of several kinds, shape (..., 2, n) each.

    Raises:
        ModelError: A joint has none in one direction.
    """
    if any(np.isfinite(limit).all() for limit in limits):
        return
    unlimited = np.logical_and.reduce(
        np.broadcast_arrays(*(np.isinf(limit) for limit in limits))
    )
    free = np.flatnonzero(unlimited.reshape(-1, len(names)).any(axis=0)).tolist()
    if free:
        listed = ", ".join(quote(names[k]) for k in free)
        raise ModelError(
            f"These joints have no limit of velocity, acceleration or torque: {listed}."
        )


def check_batches(**batches: Batch) -> None:
    """Check that batches fit together.

    Raises:
        ShapeError: They do not.
    """
    shapes = set(batches.values())
    if len(shapes - {()}) < 2:
        return
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        listed = ", ".join(f"{name} has {batch}" for name, batch in batches.items())
        raise ShapeError(
            f"Batches do not fit together: {listed}. Each dimension must be the same "
            "in all of them, or 1."
        ) from None


def path_speed(name: str, value: Any) -> Array:
    """Return path speeds, shape (...).

    Raises:
        ShapeError: They are not numbers.
        ModelError: One is negative, NaN or infinite.
    """
    if type(value) is float and 0.0 <= value < np.inf:
        return np.array(value)
    array = numbers_of(name, value)
    if not ((array >= 0.0) & (array < np.inf)).all():
        raise ModelError(
            f"{name} is a path speed, a finite number that is not negative; "
            f"{quote(value)} was given."
        )
    return array
