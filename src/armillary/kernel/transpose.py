"""Between memory, one row for each lane, and values, one lane for each row.

A port of `size` reals lies in memory as `lanes` consecutive rows. A value holds the
same element of all rows. Squares of lanes x lanes are transposed in registers; what is
left over is covered by a last square that overlaps, or element by element.
"""

from __future__ import annotations

from collections.abc import Sequence

from armillary.kernel.vector_builder import Value, VectorBuilder


def load_rows(
    b: VectorBuilder, pointer: Value, size: int, needed: set[int]
) -> list[Value]:
    """Return a value for each element of the rows at `pointer`; "" where not needed."""
    rows = [(pointer, lane * size) for lane in range(b.shape.lanes)]
    return load_scattered_rows(b, rows, size, needed)


def load_scattered_rows(
    b: VectorBuilder, rows: Sequence[tuple[Value, int]], size: int, needed: set[int]
) -> list[Value]:
    """Return the same for rows that each start some reals behind a pointer."""
    lanes = b.shape.lanes
    values: list[Value] = [""] * size
    for start in _squares(size, lanes):
        span = range(start, start + lanes)
        if sum(k in needed and not values[k] for k in span) * 2 < lanes or lanes == 1:
            continue
        for k, value in zip(span, _load_square(b, rows, start), strict=True):
            values[k] = value
    for k in sorted(needed):
        if not values[k]:
            values[k] = _gather(b, rows, k)
    return values


def store_square(
    b: VectorBuilder,
    pointer: Value,
    size: int,
    elements: Sequence[int],
    values: Sequence[Value],
) -> None:
    """Write the values of consecutive elements to the rows at `pointer`."""
    if len(elements) < b.shape.lanes or b.shape.lanes == 1:
        for element, value in zip(elements, values, strict=True):
            _scatter(b, pointer, size, element, value)
        return
    for lane, row in enumerate(transposed(b, values)):
        _store(b, pointer, lane * size + elements[0], row)


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
        starts.append(size - lanes)
    return starts


def _load_square(
    b: VectorBuilder, rows: Sequence[tuple[Value, int]], start: int
) -> list[Value]:
    """Return a square of elements of rows, transposed.

    Loads of half a vector take the place of the round of shuffles that moves halves;
    a processor can do more of them at once.
    """
    lanes, half = b.shape.lanes, b.shape.lanes // 2
    if lanes == 2:
        whole = [_load(b, pointer, first + start, lanes) for pointer, first in rows]
        return transposed(b, whole)
    parts = [
        [_load(b, pointer, first + start + k, half) for k in (0, half)]
        for pointer, first in rows
    ]
    kind = b.shape.number.wide(half).text
    joined = [
        _shuffle(b, parts[k][side], parts[k + half][side], range(lanes), kind)
        for side in range(2)
        for k in range(half)
    ]
    return transposed(b, joined, half)


def transposed(
    b: VectorBuilder, rows: Sequence[Value], size: int | None = None
) -> list[Value]:
    """Return the transpose of a square of values, in log2(lanes) rounds of shuffles.

    size: Of the squares in it that are transposed, each where it is; all of it unless
        given.
    """
    result = list(rows)
    lanes = len(result)
    step = 1
    while step < (size or lanes):
        low = [k if not k & step else lanes + k - step for k in range(lanes)]
        high = [k + step if not k & step else lanes + k for k in range(lanes)]
        for i in range(lanes):
            if not i & step:
                x, y = result[i], result[i + step]
                result[i] = _shuffle(b, x, y, low)
                result[i + step] = _shuffle(b, x, y, high)
        step *= 2
    return result


def _shuffle(
    b: VectorBuilder, x: Value, y: Value, order: Sequence[int], kind: str = ""
) -> Value:
    real = kind or b.shape.real
    mask = ", ".join(f"i32 {k}" for k in order)
    return b.emit(
        f"shufflevector {real} {x}, {real} {y}, <{len(order)} x i32> <{mask}>"
    )


def _address(b: VectorBuilder, pointer: Value, element: int) -> Value:
    return b.emit(f"getelementptr {b.shape.scalar}, ptr {pointer}, i64 {element}")


def _load(b: VectorBuilder, pointer: Value, element: int, count: int) -> Value:
    address = _address(b, pointer, element)
    kind = b.shape.number.wide(count).text
    return b.emit(f"load {kind}, ptr {address}, align {b.shape.bytes}")


def _store(b: VectorBuilder, pointer: Value, element: int, value: Value) -> None:
    address = _address(b, pointer, element)
    b.lines.append(
        f"  store {b.shape.real} {value}, ptr {address}, align {b.shape.bytes}"
    )


def _gather(b: VectorBuilder, rows: Sequence[tuple[Value, int]], k: int) -> Value:
    scalar, real = b.shape.scalar, b.shape.real
    value = "poison"
    for lane, (pointer, first) in enumerate(rows):
        address = _address(b, pointer, first + k)
        single = b.emit(f"load {scalar}, ptr {address}, align {b.shape.bytes}")
        if b.shape.lanes == 1:
            return single
        value = b.emit(f"insertelement {real} {value}, {scalar} {single}, i32 {lane}")
    return value


def _scatter(
    b: VectorBuilder, pointer: Value, size: int, element: int, value: Value
) -> None:
    scalar, real = b.shape.scalar, b.shape.real
    for lane in range(b.shape.lanes):
        single = value
        if b.shape.lanes > 1:
            single = b.emit(f"extractelement {real} {value}, i32 {lane}")
        address = _address(b, pointer, lane * size + element)
        b.lines.append(
            f"  store {scalar} {single}, ptr {address}, align {b.shape.bytes}"
        )
