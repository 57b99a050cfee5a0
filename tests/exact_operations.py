"""Every operation of the table on numbers of many digits, by mpmath."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath


def exact_operation(name: str) -> Callable[..., Any]:
    """Return an operation on numbers of mpmath: mpmath's own of this name, or ours."""
    return OTHERS.get(name) or getattr(mpmath, name)


def _remainder(x: Any, y: Any) -> Any:
    quotient = x / y
    return x - y * (mpmath.floor(quotient) if quotient > 0 else mpmath.ceil(quotient))


def _cube_root(x: Any) -> Any:
    return mpmath.sign(x) * mpmath.cbrt(abs(x))


OTHERS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "neg": lambda x: -x,
    "pow": mpmath.power,
    "abs": abs,
    "min": min,
    "max": max,
    "round": mpmath.nint,
    "fmod": _remainder,
    "cbrt": _cube_root,
    "lt": lambda x, y: x < y,
    "select": lambda truth, x, y: x if truth else y,
}
