"""Sign, minimum and maximum, with NaN in giving NaN out."""

from __future__ import annotations

from armillary.kernel.builder import Value


def sign(x: Value) -> Value:
    """Return -1, 0 or 1 by the sign of x; exact."""
    unit = x.constant(1.0).with_sign_of(x)
    # Neither 0 nor NaN has a sign; adding 0 makes -0 to 0.
    rest = x + 0.0
    return x.compare("one", 0.0).select(unit, rest)


def minimum(x: Value, y: Value) -> Value:
    """Return the smaller of x and y; exact."""
    return _pick("olt", x, y)


def maximum(x: Value, y: Value) -> Value:
    """Return the larger of x and y; exact."""
    return _pick("ogt", x, y)


def _pick(relation: str, x: Value, y: Value) -> Value:
    # The first select is one instruction of x86 and gives y where either is NaN. Where
    # x is a constant, LLVM leaves the second one out.
    if y.is_constant:
        x, y = y, x
    picked = x.compare(relation, y).select(x, y)
    return x.is_nan().select(x, picked)


def at_most(x: Value, limit: float) -> Value:
    """Return x, or the limit where x is larger; NaN stays."""
    bound = x.constant(limit)
    return (bound < x).select(bound, x)


def at_least(x: Value, limit: float) -> Value:
    """Return x, or the limit where x is smaller; NaN stays."""
    bound = x.constant(limit)
    return (bound > x).select(bound, x)
