"""Traced scalars: numbers and truth values that record what is done with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from armillary.errors import TraceError
from armillary.trace import functions as f
from armillary.trace import ops
from armillary.trace.ops import Recorder, Traced


class Node(Traced):
    """One recorded value.

    Attributes:
        tape: The tape that holds it.
        name: `const`, `input`, or the name of the operation.
        args: The nodes it is computed from.
        value: The number of a constant, the position of an input.
        index: Its place on the tape; arguments come first.
    """

    __slots__ = ("args", "index", "name", "tape", "value")
    is_truth = False

    def __init__(
        self,
        tape: Recorder,
        name: str,
        args: tuple[Node, ...],
        value: float,
        index: int,
    ) -> None:
        self.tape = tape
        self.name = name
        self.args = args
        self.value = value
        self.index = index

    def __repr__(self) -> str:
        if self.name in {"const", "input"}:
            return f"<traced {self.name} {self.value:g}>"
        return f"<traced {self.name}>"

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any
    ) -> Any:
        """Record a NumPy function of traced scalars, element by element for arrays.

        Raises:
            TraceError: NumPy's function has no traced meaning.
        """
        function = NUMPY_MEANING.get(ufunc)
        if function is None or method != "__call__" or options:
            raise TraceError(
                f"numpy.{ufunc.__name__} has no meaning for a traced scalar. "
                f"These have: {', '.join(sorted(u.__name__ for u in NUMPY_MEANING))}."
            )
        if any(isinstance(value, np.ndarray) for value in inputs):
            return np.frompyfunc(function, len(inputs), 1)(
                *(_boxed(value) for value in inputs)
            )
        return function(*inputs)

    def _no_number(self, wanted: str) -> NoReturn:
        raise TraceError(
            f"{wanted} was asked of a traced scalar, which has no value yet. Use the "
            "functions of numpy or of armillary.trace.functions in place of those of "
            "math, and plain numbers for counts and indices."
        )

    def __float__(self) -> float:
        self._no_number("A plain float")

    def __int__(self) -> int:
        self._no_number("An int")

    def __index__(self) -> int:
        self._no_number("An index")

    def __complex__(self) -> complex:
        self._no_number("A complex number")

    def __round__(self, digits: int = 0) -> NoReturn:
        self._no_number("A rounded number")

    def __deepcopy__(self, memo: object) -> Node:
        return self

    def __reduce__(self) -> NoReturn:
        raise TraceError("A traced scalar cannot be pickled; it lives in one trace.")


class Scalar(Node):
    """A real number that records arithmetic, comparisons and mathematics.

    Its methods carry NumPy's names, so that object arrays of traced scalars work too.
    """

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return _apply(ops.ADD, self, other)

    def __radd__(self, other: Any) -> Any:
        return _apply(ops.ADD, other, self)

    def __sub__(self, other: Any) -> Any:
        return _apply(ops.SUB, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _apply(ops.SUB, other, self)

    def __mul__(self, other: Any) -> Any:
        return _apply(ops.MUL, self, other)

    def __rmul__(self, other: Any) -> Any:
        return _apply(ops.MUL, other, self)

    def __truediv__(self, other: Any) -> Any:
        return _apply(ops.DIV, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _apply(ops.DIV, other, self)

    def __mod__(self, other: Any) -> Any:
        return _apply(f.modulo, self, other)

    def __rmod__(self, other: Any) -> Any:
        return _apply(f.modulo, other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _apply(_floor_divide, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _apply(_floor_divide, other, self)

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __pow__(self, other: Any) -> Any:
        return _apply(f.power, self, other)

    def __rpow__(self, other: Any) -> Any:
        return _apply(f.power, other, self)

    def __neg__(self) -> Scalar:
        return ops.NEG(self)

    def __pos__(self) -> Scalar:
        return self

    def __abs__(self) -> Scalar:
        return ops.ABS(self)

    def __floor__(self) -> Scalar:
        return ops.FLOOR(self)

    def __lt__(self, other: Any) -> Any:
        return _apply(ops.LT, self, other)

    def __le__(self, other: Any) -> Any:
        return _apply(ops.LE, self, other)

    def __gt__(self, other: Any) -> Any:
        return _apply(ops.LT, other, self)

    def __ge__(self, other: Any) -> Any:
        return _apply(ops.LE, other, self)

    def __eq__(self, other: object) -> Any:
        return _apply(ops.EQ, self, other)

    def __ne__(self, other: object) -> Any:
        return ops.NOT(_apply(ops.EQ, self, other))

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        return bool(self != 0.0)

    def sin(self) -> Scalar:
        """Return the sine."""
        return ops.SIN(self)

    def cos(self) -> Scalar:
        """Return the cosine."""
        return ops.COS(self)

    def tan(self) -> Scalar:
        """Return the tangent."""
        return ops.TAN(self)

    def arcsin(self) -> Scalar:
        """Return the inverse sine [rad]."""
        return ops.ASIN(self)

    def arccos(self) -> Scalar:
        """Return the inverse cosine [rad]."""
        return ops.ACOS(self)

    def arctan(self) -> Scalar:
        """Return the inverse tangent [rad]."""
        return ops.ATAN(self)

    def arctan2(self, x: Any) -> Scalar:
        """Return the angle of the point (x, self) [rad]."""
        return ops.ATAN2(self, x)

    def sqrt(self) -> Scalar:
        """Return the square root."""
        return ops.SQRT(self)

    def exp(self) -> Scalar:
        """Return e to the power self."""
        return ops.EXP(self)

    def log(self) -> Scalar:
        """Return the natural logarithm."""
        return ops.LOG(self)

    def hypot(self, other: Any) -> Scalar:
        """Return the length of the vector (self, other)."""
        return ops.HYPOT(self, other)

    def fabs(self) -> Scalar:
        """Return the absolute value."""
        return ops.ABS(self)

    def sign(self) -> Scalar:
        """Return the sign, -1, 0 or 1."""
        return ops.SIGN(self)

    def floor(self) -> Scalar:
        """Return the largest whole number that is not above."""
        return ops.FLOOR(self)

    def radians(self) -> Scalar:
        """Return degrees as radians."""
        return ops.MUL(self, np.pi / 180.0)

    def degrees(self) -> Scalar:
        """Return radians as degrees."""
        return ops.MUL(self, 180.0 / np.pi)

    def clip(self, low: Any, high: Any) -> Scalar:
        """Return the nearest number within [low, high]."""
        return ops.MIN(ops.MAX(self, low), high)

    def conjugate(self) -> Scalar:
        """Return itself: the number is real."""
        return self


class Truth(Node):
    """A truth value; asked for its answer by `if`, the tracer explores both."""

    __slots__ = ()
    is_truth = True

    def __bool__(self) -> bool:
        """Return the answer of the path being explored.

        Raises:
            TraceError: The function branches on too many traced values.
        """
        if self.name == "const":
            return bool(self.value)
        return self.tape.decide(self)

    def __and__(self, other: Any) -> Any:
        return ops.AND(self, other)

    __rand__ = __and__

    def __or__(self, other: Any) -> Any:
        return ops.OR(self, other)

    __ror__ = __or__

    def __invert__(self) -> Any:
        return ops.NOT(self)

    def __add__(self, other: Any) -> Any:
        return _apply(ops.ADD, self, other)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        return _apply(ops.MUL, self, other)

    __rmul__ = __mul__

    def __rsub__(self, other: Any) -> Any:
        return _apply(ops.SUB, other, self)


def _apply(function: Callable[..., Any], *args: Any) -> Any:
    """Record, or step back where the other operand is an array or a stranger."""
    for arg in args:
        if not isinstance(arg, _OPERANDS):
            return _apply_foreign(function, args)
    return function(*args)


_OPERANDS = (Traced, float, int, np.floating, np.integer)


def _apply_foreign(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    if any(isinstance(arg, np.ndarray) for arg in args):
        return np.frompyfunc(function, len(args), 1)(*(_boxed(arg) for arg in args))
    return NotImplemented


def _boxed(value: Any) -> Any:
    """Hide a scalar in an array, so that NumPy does not dispatch on it again."""
    if isinstance(value, np.ndarray):
        return value
    box: npt.NDArray[Any] = np.empty((), dtype=object)
    box[()] = value
    return box


def _floor_divide(x: Any, y: Any) -> Any:
    return ops.FLOOR(ops.DIV(x, y))


NUMPY_MEANING: dict[np.ufunc, Callable[..., Any]] = {
    np.add: ops.ADD,
    np.subtract: ops.SUB,
    np.multiply: ops.MUL,
    np.divide: ops.DIV,
    np.negative: ops.NEG,
    np.positive: lambda x: x,
    np.power: f.power,
    np.float_power: f.power,
    np.square: lambda x: ops.MUL(x, x),
    np.reciprocal: lambda x: ops.DIV(1.0, x),
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
    np.ceil: lambda x: ops.NEG(ops.FLOOR(ops.NEG(x))),
    np.fmod: ops.FMOD,
    np.remainder: f.modulo,
    np.floor_divide: _floor_divide,
    np.radians: lambda x: ops.MUL(x, np.pi / 180.0),
    np.deg2rad: lambda x: ops.MUL(x, np.pi / 180.0),
    np.degrees: lambda x: ops.MUL(x, 180.0 / np.pi),
    np.rad2deg: lambda x: ops.MUL(x, 180.0 / np.pi),
    np.less: ops.LT,
    np.less_equal: ops.LE,
    np.greater: lambda x, y: ops.LT(y, x),
    np.greater_equal: lambda x, y: ops.LE(y, x),
    np.equal: ops.EQ,
    np.not_equal: lambda x, y: ops.NOT(ops.EQ(x, y)),
    np.logical_and: ops.AND,
    np.logical_or: ops.OR,
    np.logical_not: ops.NOT,
    np.conjugate: lambda x: x,
}
