"""What operations mean on floats: Python's mathematics, made total as in IEEE 754."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Unary = Callable[[Any], Any]


def total(function: Callable[[float], float]) -> Unary:
    """Return a function of `math` that is NaN outside its domain, not an error."""

    def evaluate(x: float) -> float:
        try:
            return function(x)
        except ValueError:  # outside the domain
            return math.nan
        except OverflowError:
            return math.inf

    return evaluate


def divide(x: float, y: float) -> float:
    """Return x / y."""
    if y != 0.0:
        return x / y
    if x == 0.0 or math.isnan(x):
        return math.nan
    return math.copysign(math.inf, x) * math.copysign(1.0, y)


def log(x: float) -> float:
    """Return the natural logarithm: -inf at 0, NaN below."""
    return -math.inf if x == 0.0 else _log_of_nonzero(x)


_log_of_nonzero = total(math.log)


def sign(x: float) -> float:
    """Return -1, 0 or 1 by the sign of x."""
    if x == 0.0:
        return 0.0
    return x if math.isnan(x) else math.copysign(1.0, x)


def floor(x: float) -> float:
    """Return the largest whole number that is not above x."""
    return float(math.floor(x)) if math.isfinite(x) else x


def nearest(x: float) -> float:
    """Return the nearest whole number, of two the even one."""
    return math.copysign(round(x), x) if math.isfinite(x) else x


def sinh(x: float) -> float:
    """Return the hyperbolic sine."""
    try:
        return math.sinh(x)
    except OverflowError:
        return math.copysign(math.inf, x)


def fmod(x: float, y: float) -> float:
    """Return the remainder of x / y with the sign of x."""
    try:
        return math.fmod(x, y)
    except ValueError:
        return math.nan


def minimum(x: float, y: float) -> float:
    """Return the smaller number."""
    return math.nan if math.isnan(x) or math.isnan(y) else min(x, y)


def maximum(x: float, y: float) -> float:
    """Return the larger number."""
    return math.nan if math.isnan(x) or math.isnan(y) else max(x, y)


def hypot(x: float, y: float) -> float:
    """Return sqrt(x^2 + y^2), NaN beside an infinity, too."""
    return math.nan if math.isnan(x) or math.isnan(y) else math.hypot(x, y)


def hypot_of_arrays(x: Any, y: Any) -> Any:
    """Return what `hypot` is for each element."""
    return np.where(np.isnan(x) | np.isnan(y), np.nan, np.hypot(x, y))


def power(x: float, y: float) -> float:
    """Return x to the power y."""
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0.0 and _is_odd(y) else math.inf
    except ValueError:
        if x != 0.0:  # below zero, and y no whole number
            return math.nan
        return math.copysign(math.inf, x) if _is_odd(y) else math.inf


def _is_odd(x: float) -> bool:
    return math.fmod(abs(x), 2.0) == 1.0


def both(x: bool, y: bool) -> bool:
    """Tell whether x and y hold."""
    return bool(x) and bool(y)


def either(x: bool, y: bool) -> bool:
    """Tell whether x or y holds."""
    return bool(x) or bool(y)


def pick(truth: bool, x: float, y: float) -> float:
    """Return x where `truth` holds, else y."""
    return x if truth else y
