"""Checks of numbers that callers give, with messages that name them."""

from __future__ import annotations

import math
import sys
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError, quote
from armillary.kernel.arguments import hides_numbers

__all__ = ["fitting", "numbers_of", "positive_number"]

Array = npt.NDArray[np.float64]


def numbers_of(name: str, value: Any) -> Array:
    """Return an array of numbers.

    Raises:
        ShapeError: They are not numbers, rows of unequal length, or masked.
    """
    try:
        given = np.asarray(value)
    except ValueError as error:
        raise ShapeError(f"{name} has rows of unequal length.") from error
    if given.dtype.kind not in "fiub":
        raise ShapeError(f"{name} needs real numbers, not {given.dtype}.")
    if type(value) is not np.ndarray and hides_numbers(value):
        raise ShapeError(
            f"Some numbers of {name} are masked. Say what they shall be: "
            "array.filled(np.nan)."
        )
    return given if given.dtype == np.float64 else given.astype(np.float64)


def positive_number(
    what: str, value: Any, *, most: float = sys.float_info.max
) -> float:
    """Return a number above 0.

    Args:
        what: What messages call it.
        value: The number.
        most: The greatest that is allowed, which is finite or infinite.

    Raises:
        ModelError: It is something else.
    """
    try:
        number = float(value) if isinstance(value, Real) else math.nan
    except OverflowError:  # a whole number beyond all others
        number = math.nan
    if 0.0 < number <= most:
        return number
    kind = "number" if most == math.inf else "finite number"
    raise ModelError(f"{what} is a {kind} above 0, not {quote(value)}.")


def fitting(name: str, value: Any, shape: tuple[int, ...]) -> Array:
    """Return numbers that broadcast to a shape, in that shape.

    Raises:
        ShapeError: They do not.
    """
    array = numbers_of(name, value)
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ShapeError(
            f"{name} needs the shape {shape} here; an array of shape "
            f"{array.shape} was given."
        ) from None
