"""Mathematics that works on floats and on traced scalars alike.

The names are those of Python's `math`. Each computes on numbers and records on traced
scalars; angles are in radians.
"""

from __future__ import annotations

from typing import Any

from armillary.trace import ops

sin, cos, tan = ops.SIN, ops.COS, ops.TAN
asin, acos, atan, atan2 = ops.ASIN, ops.ACOS, ops.ATAN, ops.ATAN2
sqrt, exp, log, hypot = ops.SQRT, ops.EXP, ops.LOG, ops.HYPOT
absolute, sign, floor, fmod = ops.ABS, ops.SIGN, ops.FLOOR, ops.FMOD
minimum, maximum = ops.MIN, ops.MAX


def select(truth: Any, x: Any, y: Any) -> Any:
    """Return `x` where `truth` holds and `y` elsewhere; both are evaluated."""
    return ops.SELECT(truth, x, y)


def modulo(x: Any, y: Any) -> Any:
    """Return x - y floor(x / y), the remainder with the sign of `y`, as Python's %."""
    remainder = ops.FMOD(x, y)
    if isinstance(remainder, ops.Traced):
        opposite = ops.LT(ops.MUL(remainder, y), 0.0)
        return ops.SELECT(opposite, ops.ADD(remainder, y), remainder)
    return remainder + y if remainder * y < 0.0 else remainder


def power(x: Any, y: Any) -> Any:
    """Return x to the power `y`; whole powers become products."""
    if isinstance(y, ops.Traced) or not isinstance(x, ops.Traced):
        return ops.POW(x, y)
    if float(y) == 0.5:
        return ops.SQRT(x)
    if float(y).is_integer() and abs(y) <= 64:
        return _whole_power(x, int(y))
    return ops.POW(x, y)


def _whole_power(x: Any, n: int) -> Any:
    if n < 0:
        return ops.DIV(1.0, _whole_power(x, -n))
    result, square = 1.0, x
    while n:
        if n & 1:
            result = ops.MUL(result, square)
        n >>= 1
        if n:
            square = ops.MUL(square, square)
    return result
