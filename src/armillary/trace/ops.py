"""The table of operations: what each means, how it is differentiated and lowered.

Every other part of the compiler is derived from this table. An `Op` is callable: on
numbers it computes, on traced scalars it records.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec
import numpy as np

from armillary.trace import floats
from armillary.trace import interval as on

type_real, type_truth = "real", "truth"

Unary = Callable[[Any], Any]
Binary = Callable[[Any, Any], Any]


class Recorder(Protocol):
    """What a traced scalar's tape offers to the table."""

    def record(self, op: Op, args: Sequence[Any]) -> Any:
        """Return the node for `op` of `args`."""
        ...

    def note_comparison(self, truth: Any) -> None:
        """Remember whether a function compares, which then gives NaN for NaN."""
        ...

    def note_equality(self, truth: Any) -> None:
        """Remember where the user's code compares with `==`."""
        ...

    def decide(self, truth: Any) -> bool:
        """Return the answer of a traced truth value on the path being explored."""
        ...


class Traced:
    """Marks the scalars that record what is done with them."""

    __slots__ = ()
    tape: Recorder


class Op(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """One operation.

    Attributes:
        name: Its name in listings.
        args: Kind of each argument, `real` or `truth`.
        result: Kind of the result.
        on_floats: Meaning on floats: total, with IEEE infinities and NaN. The sign of
            a zero is not kept.
        on_arrays: Meaning on NumPy arrays.
        on_intervals: An enclosure of all results that are numbers.
        partials: For each argument the partial derivative by it, as a function of all
            arguments; empty where the result is a truth value.
        choice: For an operation that picks one of its arguments: the arguments of the
            `select` that picks the same. Its rate is the rate of the one picked,
            whatever the other's is: that may be infinite.
        lowering: Key of the rule that writes it as LLVM IR.
        commutes: Whether the order of two arguments is immaterial.
        has_edge: Whether the smallest change of an argument can give another result
            altogether: at a step, a pole, a cut or the end of the domain. Code keeps
            every rounding of the formula in what such an operation is computed from.
        depends_on_type: Whether it asks for the type that a kernel computes in, so that
            it is not a constant, even of constants.
    """

    name: str
    args: tuple[str, ...]
    result: str = type_real
    on_floats: Callable[..., Any]
    on_arrays: Callable[..., Any]
    on_intervals: Callable[..., on.Interval]
    partials: tuple[Callable[..., Any], ...] = ()
    choice: Callable[..., tuple[Any, Any, Any]] | None = None
    lowering: str
    commutes: bool = False
    has_edge: bool = False
    depends_on_type: bool = False

    @property
    def arity(self) -> int:
        """Return the number of arguments."""
        return len(self.args)

    def __call__(self, *args: Any) -> Any:
        """Compute on numbers; record where an argument is traced."""
        for arg in args:
            if isinstance(arg, Traced):
                return arg.tape.record(self, args)
        return self.on_floats(*args)

    def __repr__(self) -> str:
        return f"Op({self.name})"


OPS: dict[str, Op] = {}


# Rows of the table, by the kinds of arguments and result.


def _unary(
    name: str,
    floats: Unary,
    arrays: Callable[..., Any],
    intervals: Callable[[on.Interval], on.Interval],
    partial: Unary,
    *,
    has_edge: bool = False,
) -> Op:
    OPS[name] = op = Op(
        name=name,
        args=(type_real,),
        on_floats=floats,
        on_arrays=arrays,
        on_intervals=intervals,
        partials=(partial,),
        lowering=name,
        has_edge=has_edge,
    )
    return op


def _binary(
    name: str,
    floats: Binary,
    arrays: Callable[..., Any],
    intervals: Callable[[on.Interval, on.Interval], on.Interval],
    partials: tuple[Binary, Binary],
    *,
    commutes: bool = False,
    choice: Binary | None = None,
    has_edge: bool = False,
) -> Op:
    OPS[name] = op = Op(
        name=name,
        args=(type_real, type_real),
        on_floats=floats,
        on_arrays=arrays,
        on_intervals=intervals,
        partials=partials,
        choice=choice,
        lowering=name,
        commutes=commutes,
        has_edge=has_edge,
    )
    return op


def _truth(
    name: str,
    args: tuple[str, ...],
    floats: Callable[..., bool],
    arrays: Callable[..., Any],
    intervals: Callable[..., on.Interval],
    *,
    commutes: bool = False,
) -> Op:
    OPS[name] = op = Op(
        name=name,
        args=args,
        result=type_truth,
        on_floats=floats,
        on_arrays=arrays,
        on_intervals=intervals,
        lowering=name,
        commutes=commutes,
        has_edge=True,
    )
    return op


# The table. The partial derivatives are written with its own operations.

ADD = _binary(
    "add",
    operator.add,
    np.add,
    on.add,
    (lambda x, y: 1.0, lambda x, y: 1.0),
    commutes=True,
)
SUB = _binary(
    "sub", operator.sub, np.subtract, on.sub, (lambda x, y: 1.0, lambda x, y: -1.0)
)
MUL = _binary(
    "mul",
    operator.mul,
    np.multiply,
    on.mul,
    (lambda x, y: y, lambda x, y: x),
    commutes=True,
)


def _quotient_by_dividend(x: Any, y: Any) -> Any:
    return DIV(1.0, y)


def _quotient_by_divisor(x: Any, y: Any) -> Any:
    return NEG(MUL(DIV(x, y), DIV(1.0, y)))


DIV = _binary(
    "div",
    floats.divide,
    np.divide,
    on.div,
    (_quotient_by_dividend, _quotient_by_divisor),
    has_edge=True,
)
NEG = _unary("neg", lambda x: -x, np.negative, on.neg, lambda x: -1.0)
SQRT = _unary(
    "sqrt",
    floats.total(math.sqrt),
    np.sqrt,
    on.sqrt,
    lambda x: DIV(0.5, SQRT(x)),
    has_edge=True,
)
SIN = _unary("sin", floats.total(math.sin), np.sin, on.sin, lambda x: COS(x))  # noqa: PLW0108
COS = _unary("cos", floats.total(math.cos), np.cos, on.cos, lambda x: NEG(SIN(x)))


def _tan_partial(x: Any) -> Any:
    tangent = TAN(x)
    return ADD(1.0, MUL(tangent, tangent))


def _asin_partial(x: Any) -> Any:
    return DIV(1.0, SQRT(MUL(SUB(1.0, x), ADD(1.0, x))))


TAN = _unary("tan", floats.total(math.tan), np.tan, on.tan, _tan_partial)
ASIN = _unary(
    "asin", floats.total(math.asin), np.arcsin, on.asin, _asin_partial, has_edge=True
)
ACOS = _unary(
    "acos",
    floats.total(math.acos),
    np.arccos,
    on.acos,
    lambda x: NEG(_asin_partial(x)),
    has_edge=True,
)
ATAN = _unary(
    "atan", math.atan, np.arctan, on.atan, lambda x: DIV(1.0, ADD(1.0, MUL(x, x)))
)


def _square_length(x: Any, y: Any) -> Any:
    return ADD(MUL(x, x), MUL(y, y))


ATAN2 = _binary(
    "atan2",
    math.atan2,
    np.arctan2,
    on.atan2,
    (
        lambda y, x: DIV(x, _square_length(x, y)),
        lambda y, x: NEG(DIV(y, _square_length(x, y))),
    ),
    has_edge=True,
)
EXP = _unary("exp", floats.total(math.exp), np.exp, on.exp, lambda x: EXP(x))  # noqa: PLW0108
LOG = _unary(
    "log",
    floats.log,
    np.log,
    on.log,
    lambda x: SELECT(LT(x, 0.0), math.nan, DIV(1.0, x)),
    has_edge=True,
)


# Where a product below would be 0 times infinity a root takes its place: it is 0, as
# the product is beside that point, and infinitely steep, as the product is.


def _power_by_base(x: Any, y: Any) -> Any:
    """Return y x^(y - 1), which is zero for y = 0 even where x is zero."""
    # 0 times 0^-1 would be NaN.
    is_zero = AND(EQ(y, 0.0), EQ(x, 0.0))
    return SELECT(is_zero, SQRT(y), MUL(y, POW(x, SUB(y, 1.0))))


def _power_by_exponent(x: Any, y: Any) -> Any:
    """Return x^y log x, which is zero for x = 0 and y above zero.

    Along x it is level there for y above 1, and falls infinitely steeply for others.
    """
    is_zero = AND(EQ(x, 0.0), LT(0.0, y))
    # 0^y log 0 is 0 times -infinity.
    zero = SELECT(LT(1.0, y), 0.0, NEG(SQRT(x)))
    return SELECT(is_zero, zero, MUL(POW(x, y), LOG(x)))


POW = _binary(
    "pow",
    floats.power,
    np.power,
    on.power,
    (_power_by_base, _power_by_exponent),
    has_edge=True,
)


def _share(x: Any, y: Any) -> Any:
    """Return x / hypot(x, y), so that its derivative does not cancel for small y."""
    # x / hypot = sign(x) / sqrt(1 + (y / x)^2) for |y| < |x|.
    ratio = DIV(y, x)
    near = DIV(SIGN(x), SQRT(ADD(1.0, MUL(ratio, ratio))))
    return SELECT(LT(ABS(y), ABS(x)), near, DIV(x, HYPOT(x, y)))


HYPOT = _binary(
    "hypot",
    floats.hypot,
    floats.hypot_of_arrays,
    on.hypot,
    (_share, lambda x, y: _share(y, x)),
    commutes=True,
)
ABS = _unary(
    "abs",
    abs,
    np.abs,
    on.absolute,
    lambda x: SELECT(EQ(x, 0.0), 1.0, SIGN(x)),  # 0 belongs to the piece above it
)
SIGN = _unary("sign", floats.sign, np.sign, on.sign, lambda x: 0.0, has_edge=True)
MIN = _binary(
    "min",
    floats.minimum,
    np.minimum,
    on.minimum,
    (
        lambda x, y: SELECT(LE(x, y), 1.0, 0.0),
        lambda x, y: SELECT(LE(x, y), 0.0, 1.0),
    ),
    commutes=True,
    choice=lambda x, y: (LE(x, y), x, y),
)
MAX = _binary(
    "max",
    floats.maximum,
    np.maximum,
    on.maximum,
    (
        lambda x, y: SELECT(LE(x, y), 0.0, 1.0),
        lambda x, y: SELECT(LE(x, y), 1.0, 0.0),
    ),
    commutes=True,
    choice=lambda x, y: (LT(y, x), x, y),
)
FLOOR = _unary("floor", floats.floor, np.floor, on.floor, lambda x: 0.0, has_edge=True)
ROUND = _unary(
    "round", floats.nearest, np.rint, on.nearest, lambda x: 0.0, has_edge=True
)
SINH = _unary("sinh", floats.sinh, np.sinh, on.sinh, lambda x: COSH(x))  # noqa: PLW0108
COSH = _unary("cosh", floats.total(math.cosh), np.cosh, on.cosh, SINH)


def _tanh_partial(x: Any) -> Any:
    return DIV(1.0, MUL(COSH(x), COSH(x)))


def _cbrt_partial(x: Any) -> Any:
    return DIV(1.0, MUL(3.0, MUL(CBRT(x), CBRT(x))))


TANH = _unary("tanh", math.tanh, np.tanh, on.tanh, _tanh_partial)
CBRT = _unary("cbrt", math.cbrt, np.cbrt, on.cbrt, _cbrt_partial)
FMOD = _binary(
    "fmod",
    floats.fmod,
    np.fmod,
    on.fmod,
    (lambda x, y: 1.0, lambda x, y: NEG(ROUND(DIV(SUB(x, FMOD(x, y)), y)))),
    has_edge=True,
)

_reals, _truths = (type_real, type_real), (type_truth, type_truth)

LT = _truth("lt", _reals, operator.lt, np.less, on.less)
LE = _truth("le", _reals, operator.le, np.less_equal, on.less_equal)
EQ = _truth("eq", _reals, operator.eq, np.equal, on.equal, commutes=True)
AND = _truth("and", _truths, floats.both, np.logical_and, on.both, commutes=True)
OR = _truth("or", _truths, floats.either, np.logical_or, on.either, commutes=True)
NOT = _truth("not", (type_truth,), operator.not_, np.logical_not, on.inverted)


def _never(x: float) -> bool:
    """Return False: floats, and NumPy's arrays, are computed in double precision."""
    return False


def _nowhere(x: Any) -> Any:
    return np.zeros(np.shape(x), bool)


def _maybe(x: on.Interval) -> on.Interval:
    return on.MAYBE


OPS["is_single"] = IS_SINGLE = Op(
    name="is_single",
    args=(type_real,),
    result=type_truth,
    on_floats=_never,
    on_arrays=_nowhere,
    on_intervals=_maybe,
    lowering="is_single",
    depends_on_type=True,
)


def _rate_of_truth(truth: Any, x: Any, y: Any) -> Any:
    return 0.0


def _rate_of_first(truth: Any, x: Any, y: Any) -> Any:
    return SELECT(truth, 1.0, 0.0)


def _rate_of_second(truth: Any, x: Any, y: Any) -> Any:
    return SELECT(truth, 0.0, 1.0)


def _itself(truth: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
    return truth, x, y


OPS["select"] = SELECT = Op(
    name="select",
    args=(type_truth, type_real, type_real),
    on_floats=floats.pick,
    on_arrays=np.where,
    on_intervals=on.select,
    partials=(_rate_of_truth, _rate_of_first, _rate_of_second),
    choice=_itself,
    lowering="select",
)
