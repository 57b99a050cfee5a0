"""What NumPy's functions mean on traced scalars."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from armillary.trace import functions as f
from armillary.trace import ops
from armillary.trace.source_location import fault

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


def combining_truths(op: Function) -> Function:
    """Return the meaning of `&`, `|`, `^` or `~`: an operation on truths alone."""

    def combined(*args: Any) -> Any:
        for arg in args:
            kind = getattr(arg, "kind", None)
            is_known = isinstance(arg, (bool, int, np.bool_)) and arg in {0, 1}
            if kind != ops.type_truth and not is_known:
                raise fault(
                    "&, |, ^ or ~ combines truths alone where one of them is traced, "
                    "not bits of numbers; compare numbers first, and use sums of "
                    "truths times powers of two for codes."
                )
        return op(*args)

    return combined


def shifted(x: Any, y: Any) -> Any:
    """Refuse `<<` and `>>`.

    Raises:
        TraceError: Always.
    """
    raise fault(
        "a traced truth cannot be shifted by << or >>; multiply it by a power of two, "
        "as in 4 * truth."
    )


def _noted(function: Function) -> Function:
    """Return a comparison of equality whose tape remembers where the user asks it."""

    def noted(x: Any, y: Any) -> Any:
        truth = function(x, y)
        if isinstance(truth, ops.Traced):
            truth.tape.note_equality(truth)
        return truth

    return noted


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
    np.rint: ops.ROUND,
    np.sinh: ops.SINH,
    np.cosh: ops.COSH,
    np.tanh: ops.TANH,
    np.cbrt: ops.CBRT,
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
    np.equal: _noted(ops.EQ),
    np.not_equal: _noted(not_equal),
    np.isnan: _is_nan,
    np.isinf: _is_infinite,
    np.isfinite: _is_finite,
    np.logical_and: ops.AND,
    np.logical_or: ops.OR,
    np.logical_xor: exclusive_or,
    np.logical_not: ops.NOT,
    np.bitwise_and: combining_truths(ops.AND),
    np.bitwise_or: combining_truths(ops.OR),
    np.bitwise_xor: combining_truths(exclusive_or),
    np.invert: combining_truths(ops.NOT),
    np.conjugate: _identity,
}


def call_ufunc(
    ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: Mapping[str, Any]
) -> Any:
    """Record a NumPy function of traced scalars, element by element for arrays.

    Raises:
        TraceError: NumPy's function has no traced meaning.
    """
    if ufunc is np.divmod:
        both = np.floor_divide, np.remainder
        return tuple(call_ufunc(half, method, inputs, options) for half in both)
    function = UFUNCS.get(ufunc)
    is_numpys = getattr(np, ufunc.__name__, None) is ufunc
    name = f"numpy.{ufunc.__name__}" if is_numpys else f"'{ufunc.__name__}'"
    if function is None:
        known = ", ".join(sorted(known.__name__ for known in UFUNCS))
        raise fault(
            f"{name} has no meaning for a traced scalar. These have: {known}. Write it "
            "out in these, or look it up in a table with numpy.interp."
        )
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
    # NumPy asks scalars for their length and type; in an array of objects it takes them
    # as they are.
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


def _round(x: Any, decimals: int = 0, out: Any = None) -> Any:
    """Round as NumPy does: times a power of ten, to a whole number, and back."""
    if decimals == 0:
        return elementwise(ops.ROUND, x, out=out)
    scale = 10.0 ** abs(decimals)
    first, second = (ops.MUL, ops.DIV) if decimals > 0 else (ops.DIV, ops.MUL)

    def rounded(number: Any) -> Any:
        return second(ops.ROUND(first(number, scale)), scale)

    return elementwise(rounded, x, out=out)


def _fix(x: Any, out: Any = None) -> Any:
    return elementwise(f.truncate, x, out=out)


def _select(conditions: Any, choices: Any, default: Any = 0.0) -> Any:
    result = default
    if len(conditions) != len(choices):
        raise fault(
            f"numpy.select got {len(conditions)} conditions and {len(choices)} "
            "choices; give one choice for each condition."
        )
    pairs = list(zip(conditions, choices, strict=True))
    for condition, choice in reversed(pairs):
        result = elementwise(ops.SELECT, condition, choice, result)
    return result


def _interpolate(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """Return what `numpy.interp` does; the table has plain numbers in rising order."""
    if any(isinstance(knot, ops.Traced) for knot in np.ravel(box(xp))):
        raise fault("numpy.interp has no meaning where xp holds traced scalars.")
    xs: Any = np.asarray(xp, dtype=float)
    fs: Any = np.asarray(fp, dtype=object)
    if xs.ndim != 1 or xs.shape != fs.shape or not len(xs):
        raise fault(
            f"numpy.interp got xp of shape {xs.shape} and fp of shape {fs.shape}; they "
            "must be sequences of the same length."
        )
    if not np.all(np.isfinite(xs)):
        raise fault("numpy.interp got an xp with numbers that are not finite.")
    if not all(np.isfinite(y) for y in fs if not isinstance(y, ops.Traced)):
        raise fault(
            "numpy.interp got an fp with numbers that are not finite; where there is "
            "no value, leave its knot out, or use left=numpy.nan or right=numpy.nan."
        )
    if period is not None:
        length = abs(float(period))
        if not 0.0 < length < np.inf:
            raise fault(
                f"numpy.interp got the period {period!r}; it must be finite and not 0."
            )
        xs = xs % length
        order = np.argsort(xs)
        xs, fs = xs[order], fs[order]
        # One knot more on either side, a period away, so that every x is between two
        # knots.
        xs = np.concatenate([xs[-1:] - length, xs, xs[:1] + length])
        fs = np.concatenate([fs[-1:], fs, fs[:1]])
        x, left, right = elementwise(f.modulo, x, length), None, None
    if np.any(np.diff(xs) <= 0.0):
        raise fault(
            "numpy.interp needs an xp in which every number is larger than the one "
            "before; for a step use `if` or numpy.where."
        )
    left = fs[0] if left is None else left
    right = fs[-1] if right is None else right

    def interpolated(number: Any) -> Any:
        return _looked_up(number, xs.tolist(), fs.tolist(), left, right)

    return elementwise(interpolated, x)


def _looked_up(x: Any, xs: list[Any], fs: list[Any], left: Any, right: Any) -> Any:
    """Return slope (x - start) + value of the piece that x is on."""
    knots = zip(xs[:-1], fs[:-1], xs[1:], fs[1:], strict=True)
    pieces = [(a, fa, ops.DIV(ops.SUB(fb, fa), b - a)) for a, fa, b, fb in knots]
    result = fs[0]
    if pieces:
        start, value, slope = pieces[0]
        for piece in pieces[1:]:
            # The last piece whose start is not above x wins, so selects go from left to
            # right.
            here = ops.LE(piece[0], x)
            known = zip(piece, (start, value, slope), strict=True)
            start, value, slope = (ops.SELECT(here, new, old) for new, old in known)
        result = ops.ADD(ops.MUL(slope, ops.SUB(x, start)), value)
        # Exactly the last value at the last knot, where the sum above rounds.
        result = ops.SELECT(ops.EQ(x, xs[-1]), fs[-1], result)
    else:
        # A table of one knot is constant, but NaN stays NaN.
        result = ops.SELECT(ops.EQ(x, x), result, x)
    result = ops.SELECT(ops.LT(xs[-1], x), right, result)
    return ops.SELECT(ops.LT(x, xs[0]), left, result)


SINC_TERMS = [(-1.0) ** k / math.factorial(2 * k + 1) for k in range(10)]  # of t^(2 k)
SMALL_ANGLE = 0.5  # [rad]; the first term that is left out is below 1e-25 there


def _sinc(x: Any) -> Any:
    return elementwise(_sine_ratio, x)


def _sine_ratio(x: Any) -> Any:
    """Return sin(t) / t of t = pi x: a series near 0, so that derivatives are right.

    Each side is given a harmless number where the other one is chosen, so that neither
    is 0 / 0 or large there.
    """
    t = ops.MUL(np.pi, x)
    is_near = ops.LT(ops.ABS(t), SMALL_ANGLE)
    near = ops.SELECT(is_near, t, 0.0)
    square = ops.MUL(near, near)
    series = SINC_TERMS[-1]
    for term in reversed(SINC_TERMS[:-1]):
        series = ops.ADD(ops.MUL(series, square), term)
    far = ops.SELECT(is_near, 1.0, t)
    return ops.SELECT(is_near, series, ops.DIV(ops.SIN(far), far))


def _refused(name: str, instead: str) -> Function:
    def refuse(*args: Any, **options: Any) -> Any:
        raise fault(f"{name} has no meaning for a traced scalar; {instead}.")

    return refuse


FUNCTIONS: dict[Function, Function] = {
    np.clip: _clip,
    np.round: _round,
    np.around: _round,
    np.fix: _fix,
    np.select: _select,
    np.interp: _interpolate,
    np.isclose: _is_close,
    np.allclose: _all_close,
    np.choose: _refused("numpy.choose", "use numpy.where or numpy.select"),
    np.sinc: _sinc,
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
