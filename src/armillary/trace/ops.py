"""The table of operations: what each means, how it is differentiated and lowered.

Every other part of the compiler is derived from this table. An `Op` is callable: on
numbers it computes, on traced scalars it records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np

from armillary.trace import interval as on

type_real, type_truth = "real", "truth"


class Recorder(Protocol):
    """What a traced scalar's tape offers to the table."""

    def record(self, op: Op, args: Sequence[Any]) -> Any:
        """Return the node for `op` of `args`."""
        ...

    def decide(self, truth: Any) -> bool:
        """Return the answer of a traced truth value on the path being explored."""
        ...


class Traced:
    """Marks the scalars that record what is done with them."""

    __slots__ = ()
    tape: Recorder


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """One operation.

    Attributes:
        name: Its name in listings.
        arity: Number of arguments.
        on_floats: Meaning on floats: total, with IEEE infinities and NaN.
        on_arrays: Meaning on NumPy arrays.
        on_intervals: An enclosure of all results.
        partials: Arguments to the partial derivative by each of them; None where the
            result is a truth value.
        lowering: Key of the rule that writes it as LLVM IR.
        args: Kind of each argument, `real` or `truth`.
        result: Kind of the result.
        commutes: Whether the order of two arguments is immaterial.
    """

    name: str
    arity: int
    on_floats: Callable[..., Any]
    on_arrays: Callable[..., Any]
    on_intervals: Callable[..., on.Interval]
    partials: Callable[..., tuple[Any, ...]] | None
    lowering: str
    args: tuple[str, ...]
    result: str = type_real
    commutes: bool = False

    def __call__(self, *args: Any) -> Any:
        """Compute on numbers; record where an argument is traced."""
        for arg in args:
            if isinstance(arg, Traced):
                return arg.tape.record(self, args)
        return self.on_floats(*args)

    def __repr__(self) -> str:
        return f"Op({self.name})"


OPS: dict[str, Op] = {}


def _op(
    name: str,
    floats: Callable[..., Any],
    arrays: Callable[..., Any],
    intervals: Callable[..., on.Interval],
    partials: Callable[..., tuple[Any, ...]] | None,
    *,
    args: tuple[str, ...] = (type_real,),
    result: str = type_real,
    commutes: bool = False,
    lowering: str | None = None,
) -> Op:
    op = Op(
        name=name,
        arity=len(args),
        on_floats=floats,
        on_arrays=arrays,
        on_intervals=intervals,
        partials=partials,
        lowering=lowering or name,
        args=args,
        result=result,
        commutes=commutes,
    )
    OPS[name] = op
    return op


# Meaning on floats: Python's own mathematics, made total as IEEE 754 has it.


def _total(function: Callable[..., float]) -> Callable[..., float]:
    def evaluate(*args: float) -> float:
        try:
            return function(*args)
        except ValueError:  # outside the domain
            return math.nan
        except OverflowError:
            return math.inf

    return evaluate


def _divide(x: float, y: float) -> float:
    if y != 0.0:
        return x / y
    if x == 0.0 or math.isnan(x):
        return math.nan
    return math.copysign(math.inf, x) * math.copysign(1.0, y)


def _log(x: float) -> float:
    if x == 0.0:
        return -math.inf
    return math.log(x) if x > 0.0 or math.isnan(x) else math.nan


def _sign(x: float) -> float:
    return x if math.isnan(x) else float((x > 0.0) - (x < 0.0))


def _floor(x: float) -> float:
    return float(math.floor(x)) if math.isfinite(x) else x


def _minimum(x: float, y: float) -> float:
    return math.nan if math.isnan(x) or math.isnan(y) else min(x, y)


def _maximum(x: float, y: float) -> float:
    return math.nan if math.isnan(x) or math.isnan(y) else max(x, y)


def _hypot(x: float, y: float) -> float:
    return math.nan if math.isnan(x) or math.isnan(y) else math.hypot(x, y)


def _power(x: float, y: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.power(np.float64(x), np.float64(y)))


def _hypot_arrays(x: Any, y: Any) -> Any:
    return np.where(np.isnan(x) | np.isnan(y), np.nan, np.hypot(x, y))


_two = (type_real, type_real)
_two_truths = (type_truth, type_truth)

ADD = _op(
    "add",
    lambda x, y: x + y,
    np.add,
    on.add,
    lambda x, y: (1.0, 1.0),
    args=_two,
    commutes=True,
)
SUB = _op(
    "sub", lambda x, y: x - y, np.subtract, on.sub, lambda x, y: (1.0, -1.0), args=_two
)
MUL = _op(
    "mul",
    lambda x, y: x * y,
    np.multiply,
    on.mul,
    lambda x, y: (y, x),
    args=_two,
    commutes=True,
)
DIV = _op(
    "div",
    _divide,
    np.divide,
    on.div,
    lambda x, y: (1.0 / y, -x / (y * y)),
    args=_two,
)
NEG = _op("neg", lambda x: -x, np.negative, on.neg, lambda x: (-1.0,))
SQRT = _op(
    "sqrt", _total(math.sqrt), np.sqrt, on.sqrt, lambda x: (DIV(0.5, SQRT(x)),)
)
SIN = _op("sin", _total(math.sin), np.sin, on.sin, lambda x: (COS(x),))
COS = _op("cos", _total(math.cos), np.cos, on.cos, lambda x: (NEG(SIN(x)),))
TAN = _op(
    "tan",
    _total(math.tan),
    np.tan,
    on.tan,
    lambda x: (ADD(1.0, MUL(TAN(x), TAN(x))),),
)
ASIN = _op(
    "asin",
    _total(math.asin),
    np.arcsin,
    on.asin,
    lambda x: (DIV(1.0, SQRT(MUL(SUB(1.0, x), ADD(1.0, x)))),),
)
ACOS = _op(
    "acos",
    _total(math.acos),
    np.arccos,
    on.acos,
    lambda x: (DIV(-1.0, SQRT(MUL(SUB(1.0, x), ADD(1.0, x)))),),
)
ATAN = _op(
    "atan",
    math.atan,
    np.arctan,
    on.atan,
    lambda x: (DIV(1.0, ADD(1.0, MUL(x, x))),),
)


def _atan2_partials(y: Any, x: Any) -> tuple[Any, Any]:
    square = ADD(MUL(x, x), MUL(y, y))
    return DIV(x, square), NEG(DIV(y, square))


ATAN2 = _op("atan2", math.atan2, np.arctan2, on.atan2, _atan2_partials, args=_two)
EXP = _op("exp", _total(math.exp), np.exp, on.exp, lambda x: (EXP(x),))
LOG = _op("log", _log, np.log, on.log, lambda x: (DIV(1.0, x),))
POW = _op(
    "pow",
    _power,
    np.power,
    on.power,
    lambda x, y: (MUL(y, POW(x, SUB(y, 1.0))), MUL(POW(x, y), LOG(x))),
    args=_two,
)


def _hypot_partials(x: Any, y: Any) -> tuple[Any, Any]:
    length = HYPOT(x, y)
    return DIV(x, length), DIV(y, length)


HYPOT = _op(
    "hypot",
    _hypot,
    _hypot_arrays,
    on.hypot,
    _hypot_partials,
    args=_two,
    commutes=True,
)
ABS = _op("abs", abs, np.abs, on.absolute, lambda x: (SIGN(x),))
SIGN = _op("sign", _sign, np.sign, on.sign, lambda x: (0.0,))
MIN = _op(
    "min",
    _minimum,
    np.minimum,
    on.minimum,
    lambda x, y: (SELECT(LE(x, y), 1.0, 0.0), SELECT(LE(x, y), 0.0, 1.0)),
    args=_two,
    commutes=True,
)
MAX = _op(
    "max",
    _maximum,
    np.maximum,
    on.maximum,
    lambda x, y: (SELECT(LE(y, x), 1.0, 0.0), SELECT(LE(y, x), 0.0, 1.0)),
    args=_two,
    commutes=True,
)
FLOOR = _op("floor", _floor, np.floor, on.floor, lambda x: (0.0,))
FMOD = _op(
    "fmod",
    _total(math.fmod),
    np.fmod,
    on.fmod,
    lambda x, y: (1.0, NEG(DIV(SUB(x, FMOD(x, y)), y))),
    args=_two,
)

LT = _op(
    "lt",
    lambda x, y: x < y,
    np.less,
    on.less,
    None,
    args=_two,
    result=type_truth,
)
LE = _op(
    "le",
    lambda x, y: x <= y,
    np.less_equal,
    on.less_equal,
    None,
    args=_two,
    result=type_truth,
)
EQ = _op(
    "eq",
    lambda x, y: x == y,
    np.equal,
    on.equal,
    None,
    args=_two,
    result=type_truth,
    commutes=True,
)
AND = _op(
    "and",
    lambda x, y: bool(x) and bool(y),
    np.logical_and,
    on.both,
    None,
    args=_two_truths,
    result=type_truth,
    commutes=True,
)
OR = _op(
    "or",
    lambda x, y: bool(x) or bool(y),
    np.logical_or,
    on.either,
    None,
    args=_two_truths,
    result=type_truth,
    commutes=True,
)
NOT = _op(
    "not",
    lambda x: not x,
    np.logical_not,
    on.inverted,
    None,
    args=(type_truth,),
    result=type_truth,
)
SELECT = _op(
    "select",
    lambda truth, x, y: x if truth else y,
    np.where,
    on.select,
    lambda truth, x, y: (0.0, SELECT(truth, 1.0, 0.0), SELECT(truth, 0.0, 1.0)),
    args=(type_truth, type_real, type_real),
)


def partial_derivatives(op: Op, args: Sequence[Any]) -> tuple[Any, ...]:
    """Return the partial derivative of `op` at `args` by each argument."""
    assert op.partials is not None, f"{op.name} has no derivative"
    return cast("tuple[Any, ...]", op.partials(*args))
