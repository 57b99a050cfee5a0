"""Functions of machine code on rows of numbers, of which all linear algebra is made.

Rows are padded with zeros to a multiple of `WIDTH`, so that loops over them have no
remainder. A matrix of n columns has `padded(n)` numbers in each of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, final

from armillary.kernel.builder import FunctionBuilder, Operand, Value
from armillary.kernel.machine_type import I64, PTR, VOID, Type
from armillary.kernel.memory import Struct

__all__ = ["WIDTH", "DenseSite", "Records", "RowCode", "Strided", "padded"]

WIDTH: Final = 16
"""Numbers that an iteration takes: several registers, which do not wait for each other.
"""


def padded(count: int) -> int:
    """Return the numbers of a row, with zeros behind them."""
    return -(-count // WIDTH) * WIDTH


@final
class RowCode:
    """Calls of functions on rows, in a function under construction."""

    def __init__(self, f: FunctionBuilder, scalar: Type) -> None:
        """Remember the function and the type of numbers."""
        self.f = f
        self.scalar = scalar

    def at(self, base: Value, index: Operand) -> Value:
        """Return the address of a number."""
        return self.f.element(base, self.scalar, index)

    def get(self, base: Value, index: Operand = 0) -> Value:
        """Return a number of a row."""
        return self.f.load(self.scalar, base, index)

    def put(self, value: Operand, base: Value, index: Operand = 0) -> None:
        """Write a number of a row."""
        if not isinstance(value, Value):
            value = self.f.constant(self.scalar, value)
        self.f.store(value, base, index)

    def copy(self, to: Value, source: Value, count: Operand, step: int = 1) -> None:
        """Copy numbers, every `step`-th of the source; rows need no padding."""
        with self.f.loop(count) as k:
            self.put(self.get(source, k * step), to, k)

    def copy_row(self, to: Value, source: Value, size: int) -> None:
        """Copy a whole row."""
        wide = self.scalar.wide(WIDTH)
        with self.f.loop(size, 0, WIDTH) as k:
            _store(self.f, _load(self.f, wide, source, k), to, k)

    def clear(self, row: Value, size: Operand) -> None:
        """Set numbers to 0; `size` is a multiple of `WIDTH`."""
        wide = self.scalar.wide(WIDTH)
        with self.f.loop(size, 0, WIDTH) as k:
            zeros = self.f.constant(wide, 0.0)
            self.f.store(zeros, self.at(row, k), align=self.scalar.bytes)

    def dot(self, a: Value, b: Value, end: Operand, start: Operand = 0) -> Value:
        """Return the inner product from one multiple of `WIDTH` to another."""
        made = _dot(self.scalar)
        self.f.needs(made)
        places = self._places(start, end)
        return self.f.call(f"@{made.name}", self.scalar, a, b, *places)

    def add(
        self, row: Value, factor: Value, other: Value, end: Operand, start: Operand = 0
    ) -> None:
        """Add a multiple of a row to another one."""
        made = _add(self.scalar)
        self.f.needs(made)
        self.f.call(
            f"@{made.name}", VOID, row, factor, other, *self._places(start, end)
        )

    def take(
        self,
        row: Value,
        matrix: Value,
        factors: Value,
        *,
        count: Operand,
        size: int,
        step: int,
        end: Operand,
        start: Operand = 0,
    ) -> None:
        """Subtract multiples of the first rows of a matrix from a row.

        Args:
            row: What they are subtracted from.
            matrix: Its rows.
            factors: The number that each is multiplied by.
            count: How many rows.
            size: Numbers from one row to the next.
            step: Numbers from one factor to the next.
            end: Where parts of rows end, a multiple of `WIDTH`.
            start: Where they begin, likewise.
        """
        made = _take(self.scalar)
        self.f.needs(made)
        numbers = self._places(count, size, step, start, end)
        self.f.call(f"@{made.name}", VOID, row, matrix, factors, *numbers)

    def turn(
        self, a: Value, b: Value, cosine: Value, sine: Value, end: Operand
    ) -> None:
        """Turn two rows into c a + s b and c b - s a."""
        made = _turn(self.scalar)
        self.f.needs(made)
        self.f.call(f"@{made.name}", VOID, a, b, cosine, sine, *self._places(end))

    def _places(self, *numbers: Operand) -> list[Value]:
        return [
            number if isinstance(number, Value) else self.f.constant(I64, number)
            for number in numbers
        ]


class Strided(NamedTuple):
    """Where numbers of one row are: the first, and how far it is to the next."""

    start: Value
    step: int


@final
@dataclass(frozen=True, slots=True)
class Records:
    """The records of a table."""

    start: Value
    count: Value
    layout: Struct


@final
@dataclass(frozen=True, slots=True)
class DenseSite:
    """Where an operation finds what it reads and writes.

    Attributes:
        rows: What computes with rows, in the function under construction.
        inputs: Each input.
        sizes: How many numbers each has.
        outputs: Each output, one number behind the other.
        work: Working memory.
        records: Those of its table, if it has one.
    """

    rows: RowCode
    inputs: Sequence[Strided]
    sizes: Sequence[int]
    outputs: Sequence[Value]
    work: Value
    records: Records | None


def _dot(scalar: Type) -> FunctionBuilder:
    more = {"a": PTR, "b": PTR, "start": I64, "end": I64}
    f = FunctionBuilder("row_dot", scalar, more=more)
    wide = scalar.wide(WIDTH)
    total = f.variable(wide, 0.0)
    with f.loop(f["end"], f["start"], WIDTH) as k:
        a, b = (_load(f, wide, f[name], k) for name in ("a", "b"))
        total.set(a.contracted("fmul", b).contracted("fadd", total.get()))
    left, lanes = total.get(), WIDTH // 2
    while lanes > 1:
        low, high = (
            left.shuffled(left, range(first, first + lanes)) for first in (0, lanes)
        )
        left, lanes = low + high, lanes // 2
    f.ret(left.lane(0) + left.lane(1))
    return f


def _add(scalar: Type) -> FunctionBuilder:
    more = {"row": PTR, "factor": scalar, "other": PTR, "start": I64, "end": I64}
    f = FunctionBuilder("row_add", more=more)
    wide = scalar.wide(WIDTH)
    factor = f["factor"].splat(WIDTH)
    with f.loop(f["end"], f["start"], WIDTH) as k:
        product = factor.contracted("fmul", _load(f, wide, f["other"], k))
        _store(f, product.contracted("fadd", _load(f, wide, f["row"], k)), f["row"], k)
    f.ret()
    return f


def _take(scalar: Type) -> FunctionBuilder:
    numbers = dict.fromkeys(("count", "size", "step", "start", "end"), I64)
    more = {"row": PTR, "matrix": PTR, "factors": PTR, **numbers}
    f = FunctionBuilder("row_take", more=more)
    wide = scalar.wide(WIDTH)
    with f.loop(f["end"], f["start"], WIDTH) as k:
        # One part of the row stays in registers while rows of the matrix pass.
        left = f.variable(wide, 0.0)
        left.set(_load(f, wide, f["row"], k))
        with f.loop(f["count"]) as p:
            factor = f.load(scalar, f["factors"], p * f["step"]).splat(WIDTH)
            part = _load(f, wide, f["matrix"], p * f["size"] + k)
            left.set(left.get().contracted("fsub", factor.contracted("fmul", part)))
        _store(f, left.get(), f["row"], k)
    f.ret()
    return f


def _turn(scalar: Type) -> FunctionBuilder:
    more = {"a": PTR, "b": PTR, "cosine": scalar, "sine": scalar, "end": I64}
    f = FunctionBuilder("row_turn", more=more)
    wide = scalar.wide(WIDTH)
    cosine, sine = (f[name].splat(WIDTH) for name in ("cosine", "sine"))
    with f.loop(f["end"], 0, WIDTH) as k:
        a, b = (_load(f, wide, f[name], k) for name in ("a", "b"))
        _store(f, cosine * a + sine * b, f["a"], k)
        _store(f, cosine * b - sine * a, f["b"], k)
    f.ret()
    return f


def _load(f: FunctionBuilder, wide: Type, base: Value, index: Value) -> Value:
    place = f.element(base, wide.scalar, index)
    return f.load(wide, place, align=wide.scalar.bytes)


def _store(f: FunctionBuilder, value: Value, base: Value, index: Value) -> None:
    scalar = value.type.scalar
    f.store(value, f.element(base, scalar, index), align=scalar.bytes)
