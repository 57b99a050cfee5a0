"""Mathematics that works on floats and on traced scalars alike.

The names are those of Python's `math`. Each computes on numbers and records on traced
scalars; angles are in radians. Unlike those of `math` they are total: outside of its
domain a function is NaN.
"""

from __future__ import annotations

from typing import Any

from armillary.trace import ops

sin, cos, tan = ops.SIN, ops.COS, ops.TAN
asin, acos, atan, atan2 = ops.ASIN, ops.ACOS, ops.ATAN, ops.ATAN2
sqrt, exp, log, hypot = ops.SQRT, ops.EXP, ops.LOG, ops.HYPOT
sinh, cosh, tanh, cbrt = ops.SINH, ops.COSH, ops.TANH, ops.CBRT
absolute, sign, floor, fmod = ops.ABS, ops.SIGN, ops.FLOOR, ops.FMOD
minimum, maximum, power = ops.MIN, ops.MAX, ops.POW


def select(truth: Any, x: Any, y: Any) -> Any:
    """Return `x` where `truth` holds and `y` elsewhere; both are evaluated."""
    return ops.SELECT(truth, x, y)


def by_precision(x: Any, *, double: Any, single: Any) -> Any:
    """Return `double` in kernels that compute `x` in float64, else `single`.

    Bounds below which differences are rounding errors need it. On floats, and with
    NumPy, it is `double`.
    """
    return ops.SELECT(ops.IS_SINGLE(x), single, double)


def ceil(x: Any) -> Any:
    """Return the smallest whole number that is not below `x`."""
    return ops.NEG(ops.FLOOR(ops.NEG(x)))


def truncate(x: Any) -> Any:
    """Return the whole number next to `x` on the side of zero."""
    return ops.SELECT(ops.LT(x, 0.0), ceil(x), ops.FLOOR(x))


def modulo(x: Any, y: Any) -> Any:
    """Return x - y floor(x / y), the remainder with the sign of `y`, as Python's %."""
    remainder = ops.FMOD(x, y)
    below = _is_opposite(remainder, y)
    return ops.SELECT(below, ops.ADD(remainder, y), remainder)


def floor_divide(x: Any, y: Any) -> Any:
    """Return floor(x / y), the quotient that belongs to `modulo`, as Python's //.

    Of y = 0 it is x / y, as NumPy's.
    """
    remainder = ops.FMOD(x, y)
    quotient = ops.DIV(ops.SUB(x, remainder), y)  # whole, but for rounding
    below = _is_opposite(remainder, y)
    quotient = ops.SELECT(below, ops.SUB(quotient, 1.0), quotient)
    whole = ops.FLOOR(quotient)
    rounded_down = ops.LT(0.5, ops.SUB(quotient, whole))
    whole = ops.SELECT(rounded_down, ops.ADD(whole, 1.0), whole)
    return ops.SELECT(ops.EQ(y, 0.0), ops.DIV(x, y), whole)


def _is_opposite(x: Any, y: Any) -> Any:
    return ops.LT(ops.MUL(ops.SIGN(y), x), 0.0)
