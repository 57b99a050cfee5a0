"""Between the rows of a call and the columns of a pipeline.

Short rows are moved by straight code, long ones by a loop over parts of them: straight
code for a thousand numbers takes seconds to compile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from armillary.kernel.builder import Function, Operand, Value
from armillary.kernel.transpose import load_scattered_rows, squares_of, store_square
from armillary.kernel.vector_builder import VectorBuilder

__all__ = ["read_rows", "write_rows"]

LONGEST: Final = 256
"""Most numbers of a row that straight code moves."""

PART: Final = 32
"""Numbers that a turn of the loop moves."""

MOST_ALIGNMENT: Final = 64

Blocks: TypeAlias = Callable[[], VectorBuilder]
"""Returns a block for straight code, with names of its own."""


def read_rows(
    f: Function, blocks: Blocks, rows: Value, column: Value, *, size: int
) -> None:
    """Write code that turns rows, each of `size` numbers, into a column."""

    def read(first: Operand, count: int) -> None:
        b = blocks()
        shape = b.shape
        real = shape.number.wide(shape.lanes)
        source = f.element(rows, shape.number, first).text
        places = [(source, lane * size) for lane in range(shape.lanes)]
        texts = load_scattered_rows(b, places, count, set(range(count)))
        f.splice(b.lines, b.declared)
        target = f.element(column, real, first)
        for k, text in enumerate(texts):
            value = Value(f, text, real)
            f.store(value, target, k, align=min(MOST_ALIGNMENT, real.bytes))

    _each_part(f, size, read)


def write_rows(
    f: Function, blocks: Blocks, rows: Value, column: Value, *, size: int
) -> None:
    """Write code that turns a column into rows, each of `size` numbers."""

    def write(first: Operand, count: int) -> None:
        b = blocks()
        shape = b.shape
        real = shape.number.wide(shape.lanes)
        source = f.element(column, real, first)
        align = min(MOST_ALIGNMENT, real.bytes)
        values = [f.load(real, source, k, align=align).text for k in range(count)]
        target = f.element(rows, shape.number, first).text
        for square in squares_of(count, shape.lanes):
            store_square(b, target, size, list(square), [values[k] for k in square])
        f.splice(b.lines, b.declared)

    _each_part(f, size, write)


def _each_part(f: Function, size: int, move: Callable[[Operand, int], None]) -> None:
    """Move numbers, from the first of a part and as many as it has."""
    whole = size - size % PART if size > LONGEST else 0
    if whole:
        with f.loop(whole, 0, PART) as first:
            move(first, PART)
    if whole < size:
        move(whole, size - whole)
