"""The arrays of results that a question answers with, a row for each row of samples."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Field", "Results", "rows"]

Array = npt.NDArray[Any]
Results = dict[str, Array]


class Field(NamedTuple):
    """One array of results: of each row this shape."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    units: str

    @property
    def row_bytes(self) -> int:
        """Return the size of a row [bytes]."""
        return math.prod(self.shape) * self.dtype.itemsize


def rows(samples: Array) -> Array:
    """Return the samples themselves: the question whose results are the inputs."""
    return samples
