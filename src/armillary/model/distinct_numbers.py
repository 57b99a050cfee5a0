"""The distinct numbers of an array, without what NumPy imports for them."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["distinct_numbers"]

T = TypeVar("T", bound=np.generic)


def distinct_numbers(array: npt.NDArray[T]) -> npt.NDArray[T]:
    """Return each number once, sorted, shape (n,).

    `np.unique` alone imports masked arrays at its first call, which takes longer than
    the first check of a robot computes; where it is asked for places, it does not.
    """
    found: Any = np.unique(array, return_index=True)
    return found[0]
