"""What NumPy's functions mean on traced scalars."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from armillary.trace import functions as f
from armillary.trace import ops
from armillary.trace.place import fault

Function = Callable[..., Any]
Array = npt.NDArray[Any]

ARRAYS = (np.ndarray, list, tuple)


def _identity(x: Any) -> Any:
    return x


def _square(x: Any) -> Any:
    return ops.MUL(x, x)


def _reciprocal(x: Any) -> Any:
    return ops.DIV(1.0, x)


def radians(x: Any) -> Any:
    """Return degrees as radians."""
    return ops.MUL(x, np.pi / 180.0)


def degrees(x: Any) -> Any:
    """Return radians as degrees."""
    return ops.MUL(x, 180.0 / np.pi)


def _greater(x: Any, y: Any) -> Any:
    return ops.LT(y, x)


def _greater_equal(x: Any, y: Any) -> Any:
    return ops.LE(y, x)


def not_equal(x: Any, y: Any) -> Any:
    """Tell whether two numbers differ."""
    return ops.NOT(ops.EQ(x, y))


def exclusive_or(x: Any, y: Any) -> Any:
    """Tell whether one of two truths holds and the other does not."""
    return ops.AND(ops.OR(x, y), ops.NOT(ops.AND(x, y)))


def _is_nan(x: Any) -> Any:
    return ops.NOT(ops.EQ(x, x))


def _is_infinite(x: Any) -> Any:
    return ops.EQ(ops.ABS(x), np.inf)


def _is_finite(x: Any) -> Any:
    return ops.LT(ops.ABS(x), np.inf)


UFUNCS: dict[np.ufunc, Function] = {
    np.add: ops.ADD,
    np.subtract: ops.SUB,
    np.multiply: ops.MUL,
    np.divide: ops.DIV,
    np.negative: ops.NEG,
    np.positive: _identity,
    np.power: ops.POW,
    np.float_power: ops.POW,
    np.square: _square,
    np.reciprocal: _reciprocal,
    np.sqrt: ops.SQRT,
    np.sin: ops.SIN,
    np.cos: ops.COS,
    np.tan: ops.TAN,
    np.arcsin: ops.ASIN,
    np.arccos: ops.ACOS,
    np.arctan: ops.ATAN,
    np.arctan2: ops.ATAN2,
    np.exp: ops.EXP,
    np.log: ops.LOG,
    np.hypot: ops.HYPOT,
    np.absolute: ops.ABS,
    np.fabs: ops.ABS,
    np.sign: ops.SIGN,
    np.minimum: ops.MIN,
    np.maximum: ops.MAX,
    np.floor: ops.FLOOR,
    np.ceil: f.ceil,
    np.trunc: f.truncate,
    np.fmod: ops.FMOD,
    np.remainder: f.modulo,
    np.floor_divide: f.floor_divide,
    np.radians: radians,
    np.deg2rad: radians,
    np.degrees: degrees,
    np.rad2deg: degrees,
    np.less: ops.LT,
    np.less_equal: ops.LE,
    np.greater: _greater,
    np.greater_equal: _greater_equal,
    np.equal: ops.EQ,
    np.not_equal: not_equal,
    np.isnan: _is_nan,
    np.isinf: _is_infinite,
    np.isfinite: _is_finite,
    np.logical_and: ops.AND,
    np.logical_or: ops.OR,
    np.logical_xor: exclusive_or,
    np.logical_not: ops.NOT,
    np.conjugate: _identity,
}


def call_ufunc(
    ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: Mapping[str, Any]
) -> Any:
    """Record a NumPy function of traced scalars, element by element for arrays.

    Raises:
        TraceError: NumPy's function has no traced meaning.
    """
    function = UFUNCS.get(ufunc)
    name = f"numpy.{ufunc.__name__}"
    if function is None:
        known = ", ".join(sorted(known.__name__ for known in UFUNCS))
        raise fault(f"{name} has no meaning for a traced scalar. These have: {known}.")
    if method != "__call__" or options.keys() - {"out", "subok", "order"}:
        how = f"{name}.{method}" if method != "__call__" else f"{name} with options"
        raise fault(f"{how} has no meaning for a traced scalar; plain {name} has.")
    (out,) = cast("tuple[Any]", options.get("out", (None,)))
    if out is not None and out.dtype != object:
        raise fault(
            f"the result of {name} was to be written into an array of {out.dtype}, "
            "which cannot hold traced scalars; make that array with dtype=object."
        )
    return elementwise(function, *inputs, out=out)


def call_function(
    function: Function, args: tuple[Any, ...], options: Mapping[str, Any]
) -> Any:
    """Call a function of NumPy that was given a traced scalar where it takes arrays."""
    if function is np.where and len(args) == 3:
        return elementwise(ops.SELECT, *args)
    if function in FUNCTIONS:
        return FUNCTIONS[function](*args, **options)
    boxed = {key: boxed_deeply(value) for key, value in options.items()}
    result = function(*(boxed_deeply(arg) for arg in args), **boxed)
    return cast("Array", result)[()] if isinstance(result, np.ndarray) else result


def _clip(
    x: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **bounds: Any
) -> Any:
    low, high = bounds.get("min", a_min), bounds.get("max", a_max)
    if low is not None:
        x = elementwise(ops.MAX, x, low)
    return x if high is None else elementwise(ops.MIN, x, high, out=out)


def _is_close(
    x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-8, *, equal_nan: bool = False
) -> Any:
    def is_close(a: Any, b: Any) -> Any:
        within = ops.ADD(atol, ops.MUL(rtol, ops.ABS(b)))
        near = ops.AND(ops.LE(ops.ABS(ops.SUB(a, b)), within), _is_finite(b))
        near = ops.OR(near, ops.EQ(a, b))
        return ops.OR(near, ops.AND(_is_nan(a), _is_nan(b))) if equal_nan else near

    return elementwise(is_close, x, y)


def _all_close(*args: Any, **options: Any) -> Any:
    return functools.reduce(ops.AND, np.ravel(box(_is_close(*args, **options))))


FUNCTIONS: dict[Function, Function] = {
    np.clip: _clip,
    np.isclose: _is_close,
    np.allclose: _all_close,
}


def elementwise(function: Function, *args: Any, out: Array | None = None) -> Any:
    """Apply a function of scalars, to every element where an argument is an array."""
    if out is None and not any(isinstance(arg, ARRAYS) for arg in args):
        return function(*args)
    apply = cast("Function", np.frompyfunc(function, len(args), 1))
    boxed = map(box, args)
    return apply(*boxed) if out is None else apply(*boxed, out=out)


def box(value: Any) -> Array:
    """Hide a scalar in an array, so that NumPy does not ask it again."""
    if isinstance(value, ARRAYS):
        return np.asanyarray(value, dtype=object)
    hidden: Array = np.empty((), dtype=object)
    hidden[()] = value
    return hidden


def boxed_deeply(value: Any) -> Any:
    """Return the argument of a NumPy function with every traced scalar boxed."""
    if isinstance(value, ops.Traced):
        return box(value)
    if isinstance(value, (list, tuple)):
        items = cast("list[Any] | tuple[Any, ...]", value)
        return type(items)(boxed_deeply(item) for item in items)
    return value
