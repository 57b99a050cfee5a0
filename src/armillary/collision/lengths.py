"""Distances at which links touch, and those that users give, such as margins."""

from __future__ import annotations

import math
from typing import Any, Final

from armillary.errors import ModelError

__all__ = ["margin_of", "nearness_of", "number_of"]

NEARNESS: Final = 1e-6
"""Links no farther apart than this, or than the margin and this, touch [m]; in cells
that are smaller than a metre it is this part of their extent."""


def nearness_of(extent: float) -> float:
    """Return how near links are that touch in a cell of some extent [m]."""
    # Powers of two are the same for most states of a cell, and so are its records.
    if not 0.0 < extent < 1.0:
        return NEARNESS
    return math.ldexp(NEARNESS, math.frexp(extent)[1] - 1)


def margin_of(margin: Any) -> float:
    """Return a margin [m].

    Raises:
        ModelError: It is not a finite number that is at least 0.
    """
    if type(margin) is float and 0.0 <= margin < math.inf:
        return margin
    number = number_of("margin", margin)
    if not 0.0 <= number < math.inf:
        raise ModelError(f"The margin must be finite and at least 0, not {margin!r}.")
    return number


def number_of(name: str, value: Any) -> float:
    """Return a number, which may be infinite.

    Raises:
        ModelError: It is not a number.
    """
    is_text = isinstance(value, (str, bytes))
    try:
        number = math.nan if is_text else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if math.isnan(number):
        raise ModelError(f"The {name} must be a number, not {value!r}.")
    return number
