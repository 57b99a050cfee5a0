"""Between memory, one row for each lane, and values, one lane for each row.

A port of `size` reals lies in memory as `lanes` consecutive rows. A value holds the
same element of all rows. Squares of lanes x lanes are transposed in registers; what is
left over is covered by a last square that overlaps, or element by element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from armillary.kernel.builder import Value
from armillary.kernel.machine_type import Type

Rows: TypeAlias = Sequence[tuple[Value, int]]
"""Where the row of each lane starts: some reals behind an address."""


def load_rows(
    real: Type, pointer: Value, size: int, needed: set[int]
) -> dict[int, Value]:
    """Return values of the needed elements, or more, of the rows at `pointer`.

    real: The type of a value, with a lane for each row.
    """
    rows = [(pointer, lane * size) for lane in range(real.lanes)]
    return load_scattered_rows(real, rows, size, needed)


def load_scattered_rows(
    real: Type, rows: Rows, size: int, needed: set[int]
) -> dict[int, Value]:
    """Return the same for rows that lie anywhere."""
    lanes = real.lanes
    values: dict[int, Value] = {}
    # A square is worth its shuffles where half of it is needed.
    for start in _squares(size, lanes):
        square = range(start, start + lanes)
        missing = sum(k in needed and k not in values for k in square)
        if lanes > 1 and missing * 2 >= lanes:
            values.update(zip(square, _load_square(real, rows, start), strict=True))
    for k in sorted(needed):
        if k not in values:
            values[k] = _gather(real, rows, k)
    return values


def store_square(
    pointer: Value, size: int, elements: Sequence[int], values: Sequence[Value]
) -> None:
    """Write the values of consecutive elements to the rows at `pointer`."""
    lanes = values[0].type.lanes
    # Too few for a square.
    if len(elements) < lanes or lanes == 1:
        for element, value in zip(elements, values, strict=True):
            _scatter(pointer, size, element, value)
        return
    for lane, row in enumerate(transposed(values)):
        _store(pointer, lane * size + elements[0], row)


def squares_of(size: int, lanes: int) -> list[range]:
    """Return the elements of a row in groups that are written together."""
    if lanes == 1 or size < lanes:
        return [range(k, k + 1) for k in range(size)]
    return [range(start, start + lanes) for start in _squares(size, lanes)]


def _squares(size: int, lanes: int) -> list[int]:
    """Return where squares start so that they cover 0..size; none if too small."""
    if size < lanes:
        return []
    starts = list(range(0, size - lanes + 1, lanes))
    if starts[-1] + lanes < size:
        # The last square ends with the row, and repeats some of the one before.
        starts.append(size - lanes)
    return starts


def _load_square(real: Type, rows: Rows, start: int) -> list[Value]:
    """Return a square of elements of rows, transposed.

    Loads of half a vector take the place of the round of shuffles that moves halves;
    a processor can do more of them at once.
    """
    lanes, half = real.lanes, real.lanes // 2
    if lanes == 2:
        return transposed([_load(real, at, first + start) for at, first in rows])
    # Row k and row k + lanes/2 meet in one vector: their first halves in one, their
    # second halves in another. That is the transpose of blocks of half the lanes.
    parts = [
        [_load(real.wide(half), at, first + start + k) for k in (0, half)]
        for at, first in rows
    ]
    joined = [
        parts[k][side].shuffled(parts[k + half][side], range(lanes))
        for side in range(2)
        for k in range(half)
    ]
    return transposed(joined, half)


def transposed(rows: Sequence[Value], size: int | None = None) -> list[Value]:
    """Return the transpose of a square of values, in log2(lanes) rounds of shuffles.

    size: The side of smaller squares in it, each of which is transposed where it is;
        the whole square unless given.
    """
    # Round `step` swaps the blocks of side `step` beside the diagonal: row i keeps its
    # elements k with bit `step` unset, and takes the others from row i + step.
    result = list(rows)
    lanes = len(result)
    step = 1
    while step < (size or lanes):
        low = [k if not k & step else lanes + k - step for k in range(lanes)]
        high = [k + step if not k & step else lanes + k for k in range(lanes)]
        for i in range(lanes):
            if not i & step:
                x, y = result[i], result[i + step]
                result[i] = x.shuffled(y, low)
                result[i + step] = x.shuffled(y, high)
        step *= 2
    return result


def _load(kind: Type, pointer: Value, element: int) -> Value:
    """Return consecutive reals, of which the first is an element of an array."""
    f, scalar = pointer.function, kind.scalar
    return f.load(kind, f.element(pointer, scalar, element), align=scalar.bytes)


def _store(pointer: Value, element: int, value: Value) -> None:
    f, scalar = pointer.function, value.type.scalar
    f.store(value, f.element(pointer, scalar, element), align=scalar.bytes)


def _gather(real: Type, rows: Rows, k: int) -> Value:
    """Return an element of all rows, loaded one by one."""
    if real.lanes == 1:
        ((pointer, first),) = rows
        return _load(real, pointer, first + k)
    scalar, whole = real.scalar, "poison"
    for lane, (pointer, first) in enumerate(rows):
        f, single = pointer.function, _load(scalar, pointer, first + k)
        whole = f.emit(
            f"insertelement {real.text} {whole}, {scalar.text} {single.text}, "
            f"i32 {lane}",
            real,
        ).text
    return Value(rows[0][0].function, whole, real)


def _scatter(pointer: Value, size: int, element: int, value: Value) -> None:
    """Write an element of all rows, one by one."""
    for lane in range(value.type.lanes):
        _store(pointer, lane * size + element, value.lane(lane))
