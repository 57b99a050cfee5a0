"""The parameters of values: their stored form, and when two are nearly equal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from armillary.errors import JointError
from armillary.spatial.pose import Pose


def canonical(value: Any, name: str) -> Any:
    """Return a parameter in its stored form: numbers, texts, poses, tuples of them.

    Args:
        value: What was given: NumPy numbers, arrays and lists become plain ones.
        name: What messages call it.

    Raises:
        JointError: A number is not finite, or the value is of another kind.
    """
    if isinstance(value, (bool, str)) or value is None:
        return value
    if isinstance(value, Pose):
        if not all(math.isfinite(entry) for entry in value.entries):
            raise JointError(f"{name} is a pose with an entry that is not finite.")
        return value
    if isinstance(value, (int, float, np.number)):
        number = int(value) if isinstance(value, (int, np.integer)) else float(value)
        if not math.isfinite(number):
            raise JointError(f"{name} is {number}; it must be finite.")
        return number
    if isinstance(value, np.ndarray):
        return canonical(value.tolist(), name)
    if isinstance(value, (list, tuple)):
        items: Sequence[Any] = value
        stored = tuple(
            canonical(item, f"{name}[{k}]") for k, item in enumerate(items)
        )
        return value if isinstance(value, tuple) and stored == value else stored
    raise JointError(
        f"{name} is a {type(value).__name__}. A joint's parameters are numbers, texts, "
        "poses, and sequences of them, so that joints can be compared and saved."
    )


def approx_equal(a: Any, b: Any, tolerance: float) -> bool:
    """Return whether two stored parameters differ by no more than `tolerance`."""
    if isinstance(a, Pose) and isinstance(b, Pose):
        return a.approx_equal(b, tolerance)
    if isinstance(a, tuple) and isinstance(b, tuple):
        left: tuple[Any, ...] = a
        right: tuple[Any, ...] = b
        return len(left) == len(right) and all(
            approx_equal(x, y, tolerance) for x, y in zip(left, right, strict=True)
        )
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return abs(a - b) <= tolerance
    return bool(a == b)
