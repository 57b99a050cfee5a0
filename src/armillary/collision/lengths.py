"""Lengths that users give: margins, and up to which distance contacts are listed."""

from __future__ import annotations

import math
from typing import Any

from armillary.errors import ModelError

__all__ = ["margin_of", "number_of"]


def margin_of(margin: Any) -> float:
    """Return a margin [m].

    Raises:
        ModelError: It is not a finite number that is at least 0.
    """
    found = number_of("margin", margin)
    if not 0.0 <= found < math.inf:
        raise ModelError(f"The margin must be finite and at least 0, not {margin!r}.")
    return found


def number_of(name: str, value: Any) -> float:
    """Return a number, which may be infinite.

    Raises:
        ModelError: It is not a number.
    """
    is_text = isinstance(value, (str, bytes))
    try:
        found = math.nan if is_text else float(value)
    except (TypeError, ValueError):
        found = math.nan
    if math.isnan(found):
        raise ModelError(f"The {name} must be a number, not {value!r}.")
    return found
