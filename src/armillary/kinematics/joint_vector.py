"""The vectors of a state: joint positions and rates."""

from __future__ import annotations

from typing import Any

import numpy as np

from armillary.errors import StateError

__all__ = ["numbers_of"]


def numbers_of(values: Any, name: str) -> tuple[float, ...]:
    """Return joint positions or rates, shape (n,), as states hold them.

    name: What messages call them.

    Raises:
        StateError: They are not one vector of finite numbers.
    """
    try:
        given = np.asarray(values)
        if given.dtype.kind not in "fiubO":
            raise TypeError(f"{given.dtype} is no type of real numbers")
        array = given.astype(np.float64) + 0.0  # not -0.0: texts differ
    except (TypeError, ValueError, OverflowError) as error:
        text = f"{name} must be a vector of numbers, not {values!r}."
        raise StateError(text) from error
    if array.ndim != 1:
        raise StateError(f"{name} must be one vector; a state holds no batch.")
    result = tuple(array.tolist())
    if not np.isfinite(array).all():
        raise StateError(f"{name} holds a number that is not finite: {result}.")
    return result
