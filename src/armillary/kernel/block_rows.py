"""Rows of a block of a pipeline to columns, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from armillary.kernel.builder import FunctionBuilder, Operand, Value
from armillary.kernel.machine_type import I1, I64, Type
from armillary.kernel.transpose import load_scattered_rows, squares_of, store_square
from armillary.trace import Port

__all__ = [
    "ALIGNMENT",
    "aligned",
    "read_lane",
    "read_rows",
    "repeated_lanes",
    "write_lane",
    "write_rows",
]

ALIGNMENT: Final = 64

LONGEST: Final = 256
"""Most numbers of a row that straight code moves.

Longer rows are moved by a loop over parts of them: straight code for a thousand numbers
takes seconds to compile.
"""

PART: Final = 32
"""Numbers that an iteration of that loop moves."""


def aligned(real: Type) -> int:
    """Return what the address of a vector is a multiple of [bytes]."""
    return min(ALIGNMENT, real.bytes)


def read_rows(
    f: FunctionBuilder,
    real: Type,
    ports: Mapping[str, Port],
    columns: Mapping[str, Value],
) -> None:
    """Turn the rows of inputs, by the names of parameters, into columns."""
    lanes = range(real.lanes)
    for name, port in ports.items():
        for first, count in _parts(f, port.size):
            source = f.element(f[name], real.scalar, first)
            rows = [(source, lane * port.size) for lane in lanes]
            values = load_scattered_rows(real, rows, count, set(range(count)))
            target = f.element(columns[port.name], real, first)
            for k in range(count):
                f.store(values[k], target, k, align=aligned(real))


def read_lane(real: Type, columns: Sequence[Value], lane: Value) -> list[Value]:
    """Return the number that each of some columns has in a lane."""
    return [column.function.load(real.scalar, column, lane) for column in columns]


def write_lane(values: Sequence[Value], columns: Sequence[Value], lane: Value) -> None:
    """Write a number of each of some columns in a lane."""
    for value, column in zip(values, columns, strict=True):
        column.function.store(value, column, lane)


def repeated_lanes(
    f: FunctionBuilder, real: Type, columns: Mapping[Value, int]
) -> Value:
    """Return a bit for each lane whose columns are those of the lane before it.

    columns: Their memory, and how many numbers each has.
    """
    lanes = real.lanes
    if lanes == 1:
        return f.constant(I64, 0)
    alike = f.variable(I1.wide(lanes), 1)
    before = [0, *range(lanes - 1)]
    for column, size in columns.items():
        with f.loop(size) as k:
            value = f.load(real, column, k, align=aligned(real)).bits()
            same = value.equals(value.shuffled(value, before))
            alike.set(alike.get() & same)
    return alike.get().mask() & -2


def write_rows(
    f: FunctionBuilder,
    real: Type,
    ports: Mapping[str, Port],
    columns: Mapping[str, Value],
) -> None:
    """Turn columns into the rows of outputs, by the names of parameters."""
    for name, port in ports.items():
        for first, count in _parts(f, port.size):
            source = f.element(columns[port.name], real, first)
            values = [
                f.load(real, source, k, align=aligned(real)) for k in range(count)
            ]
            target = f.element(f[name], real.scalar, first)
            for square in squares_of(count, real.lanes):
                row = [values[k] for k in square]
                store_square(target, port.size, square, row)


def _parts(f: FunctionBuilder, size: int) -> Iterator[tuple[Operand, int]]:
    """Yield the first number and the count of the parts of a row, maybe in a loop.

    What is written at the first yield for a long row runs for each of its parts.
    """
    whole = size - size % PART if size > LONGEST else 0
    if whole:
        with f.loop(whole, 0, PART) as first:
            yield first, PART
    if whole < size:
        yield whole, size - whole
