"""Traced scalars: numbers and truth values that record what is done with them."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, NoReturn

import numpy as np

from armillary.trace import functions as f
from armillary.trace import numpy_dispatch, ops
from armillary.trace.ops import Recorder, Traced, type_real, type_truth
from armillary.trace.source_location import catches_division, fault

Method = Callable[[Any, Any], Any]
OPERANDS = (Traced, float, int, numbers.Complex, np.bool_)  # complex is refused


def _operator(function: Method) -> tuple[Method, Method]:
    """Make the methods for `self + other` and `other + self`."""

    def forward(self: Any, other: Any) -> Any:
        if isinstance(other, OPERANDS):
            return function(self, other)
        if isinstance(other, np.ndarray):
            return numpy_dispatch.elementwise(function, self, other)
        return NotImplemented

    def reflected(self: Any, other: Any) -> Any:
        if isinstance(other, OPERANDS):
            return function(other, self)
        if isinstance(other, np.ndarray):
            return numpy_dispatch.elementwise(function, other, self)
        return NotImplemented

    return forward, reflected


def _comparison(function: Method) -> tuple[Method, Method]:
    """Make the methods for `self < other` and `self > other`."""

    def noted(x: Any, y: Any) -> Any:
        truth = function(x, y)
        if isinstance(truth, TracedBool):
            truth.tape.note_comparison(truth)
        return truth

    return _operator(noted)


def _division(function: Method) -> tuple[Method, Method]:
    """Make the methods for `self / other` and `other / self`, and their like."""

    def checked(x: Any, y: Any) -> Any:
        if isinstance(y, Traced) and catches_division():
            raise fault(
                "a division by a traced scalar raises no error, so that `except "
                "ZeroDivisionError` would never be reached; use `if` on the divisor, "
                "or a series near its zero."
            )
        return function(x, y)

    return _operator(checked)


class Node(Traced):
    """One recorded value.

    Attributes:
        tape: The tape that holds it.
        name: `const`, `input`, or the name of the operation.
        args: The nodes it is computed from.
        value: The number of a constant, the position of an input.
        index: Its place on the tape; arguments come first.
        kind: `real` or `truth`.
    """

    __slots__ = ("args", "index", "name", "tape", "value")
    kind = type_real

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
        return numpy_dispatch.call_ufunc(ufunc, method, inputs, options)

    def __array_function__(
        self,
        function: Callable[..., Any],
        types: object,
        args: tuple[Any, ...],
        options: Mapping[str, Any],
    ) -> Any:
        """Call a function of NumPy that is not a ufunc, such as `where`."""
        return numpy_dispatch.call_function(function, args, options)

    __eq__ = _operator(numpy_dispatch.UFUNCS[np.equal])[0]
    __ne__ = _operator(numpy_dispatch.UFUNCS[np.not_equal])[0]
    __add__, __radd__ = _operator(ops.ADD)
    __sub__, __rsub__ = _operator(ops.SUB)
    __mul__, __rmul__ = _operator(ops.MUL)
    __truediv__, __rtruediv__ = _division(ops.DIV)

    def __hash__(self) -> int:
        raise fault(
            "a traced scalar was used as a key of a dict, set or cache, but has no "
            "value yet. Compare it with == in place of looking it up."
        )

    def __round__(self, digits: int | None = None) -> Any:
        if digits is None:
            return ops.ROUND(self)
        raise self._no_number("a number of so many digits (numpy.round gives it)")

    def __complex__(self) -> complex:
        raise self._no_number("a complex number")

    def __format__(self, spec: str) -> str:
        if spec:
            raise self._no_number(f"a number in the format {spec!r}")
        return repr(self)

    def _no_number(self, wanted: str) -> Exception:
        return fault(
            f"{wanted} was asked of a traced scalar, which has no value yet. Use the "
            "functions of numpy or of armillary.trace.functions in place of those of "
            "math, plain numbers for counts and indices, and dtype=object for arrays "
            "that are filled with traced scalars. In place of a spline of scipy use "
            "numpy.interp, or its polynomials with numpy.select; in place of an index "
            "or a count that depends on the scalar, `if` or numpy.where."
        )

    def __copy__(self) -> Node:
        return self

    def __deepcopy__(self, memo: object) -> Node:
        return self

    def __reduce__(self) -> NoReturn:
        raise fault("a traced scalar cannot be pickled; it lives in one trace.")


class Scalar(Node):
    """A real number that records arithmetic, comparisons and mathematics.

    It also has the methods that NumPy calls for the elements of an array, by the names
    of its functions: `METHODS`.
    """

    __slots__ = ()

    __mod__, __rmod__ = _division(f.modulo)
    __floordiv__, __rfloordiv__ = _division(f.floor_divide)
    _power, __rpow__ = _operator(f.power)
    __lt__, __gt__ = _comparison(ops.LT)
    __le__, __ge__ = _comparison(ops.LE)

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            raise fault(
                "pow(x, y, z) has no meaning for a traced scalar; use pow(x, y) % z."
            )
        return self._power(other)

    @property
    def real(self) -> Scalar:
        """The real part: itself."""
        return self

    @property
    def imag(self) -> float:
        """The imaginary part: 0."""
        return 0.0

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def __neg__(self) -> Scalar:
        return ops.NEG(self)

    def __pos__(self) -> Scalar:
        return self

    def __abs__(self) -> Scalar:
        return ops.ABS(self)

    def __floor__(self) -> Scalar:
        return ops.FLOOR(self)

    def __ceil__(self) -> Scalar:
        return f.ceil(self)

    def __trunc__(self) -> Scalar:
        return f.truncate(self)

    def __bool__(self) -> bool:
        return bool(self != 0.0)

    def __float__(self) -> float:
        raise self._no_number("a plain float")

    def __int__(self) -> int:
        raise self._no_number("an int")

    def __index__(self) -> int:
        raise self._no_number("an index")

    def clip(self, low: Any, high: Any) -> Scalar:
        """Return the nearest number within [low, high]."""
        return ops.MIN(ops.MAX(self, low), high)


def _named_method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method that records a function of the scalar and of its arguments."""

    def method(self: Scalar, *others: Any) -> Any:
        return function(self, *others)

    return method


METHODS: tuple[np.ufunc, ...] = (
    *(np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.arctan2),
    *(np.sqrt, np.cbrt, np.exp, np.log, np.sinh, np.cosh, np.tanh),
    *(np.hypot, np.fmod, np.fabs, np.sign, np.floor, np.rint, np.conjugate),
    *(np.radians, np.degrees, np.deg2rad, np.rad2deg),
)
"""Functions that NumPy looks for among the methods of an array's elements.

Others it computes by operators, `math` or comparisons: `np.ceil` by `__ceil__`.
"""

for _ufunc in METHODS:
    setattr(Scalar, _ufunc.__name__, _named_method(numpy_dispatch.UFUNCS[_ufunc]))


class TracedBool(Node):
    """A truth value; asked for its answer by `if`, the tracer explores both.

    In arithmetic it is 1 or 0, as Python's bool is.
    """

    __slots__ = ()
    kind = type_truth

    __and__, __rand__ = _operator(numpy_dispatch.UFUNCS[np.bitwise_and])
    __or__, __ror__ = _operator(numpy_dispatch.UFUNCS[np.bitwise_or])
    __xor__, __rxor__ = _operator(numpy_dispatch.UFUNCS[np.bitwise_xor])
    __lshift__, __rlshift__ = _operator(numpy_dispatch.shifted)
    __rshift__, __rrshift__ = _operator(numpy_dispatch.shifted)

    def __invert__(self) -> Any:
        return ops.NOT(self)

    def __neg__(self) -> Any:
        return ops.NEG(self)

    def __pos__(self) -> Any:
        return ops.ADD(self, 0.0)

    __abs__ = __pos__

    def __bool__(self) -> bool:
        """Return the answer of the path being explored.

        Raises:
            TraceError: The function branches on too many traced values.
        """
        if self.name == "const":
            return bool(self.value)
        if self.name == "not":
            return not self.args[0]
        return self.tape.decide(self)

    def __int__(self) -> int:
        return int(bool(self))

    __index__ = __int__

    def __float__(self) -> float:
        return float(bool(self))


def reachable(results: Iterable[Node], known: Container[int] = ()) -> list[Node]:
    """Return all that `results` are computed from, arguments first.

    known: Places on the tape of nodes to leave out, with what only they need.
    """
    nodes: dict[int, Node] = {}
    waiting = list(results)
    while waiting:
        node = waiting.pop()
        if node.index not in nodes and node.index not in known:
            nodes[node.index] = node
            waiting.extend(node.args)
    # Places on the tape are in the order of recording, arguments before results.
    return [nodes[index] for index in sorted(nodes)]
