"""Moving rows between arrays of any strides and the compact rows of a block."""

from __future__ import annotations

from armillary.kernel.builder import Function, Value
from armillary.kernel.machine_type import I64, PTR, VOID, Type
from armillary.kernel.signature import MAX_DIMENSIONS

__all__ = ["copy_function", "copy_rows", "stream_function"]

PART = I64.wide(2)


def copy_function(real: Type) -> Function:
    """Return @copy, which copies rows from one set of strides to another.

    Rows beyond the last of `count` repeat it, so that padding is made of the caller's
    own numbers. `d0` to `d2` are the lengths of a row's dimensions, `t0` to `t2` and
    `s0` to `s2` the strides of target and source [bytes].
    """
    numbers = ["rows", "count", "to_row", "from_row"]
    numbers += [f"{letter}{k}" for letter in "dts" for k in range(MAX_DIMENSIONS)]
    kinds = {"to": PTR, "source": PTR, **dict.fromkeys(numbers, I64)}
    f = Function("copy", exported=False, hints=["noinline"], **kinds)
    last = f["count"] - 1
    with f.loop(f["rows"]) as r:
        row = (r < last).select(r, last)
        to = f.address(f["to"], r * f["to_row"])
        source = f.address(f["source"], row * f["from_row"])
        _copy_dimension(f, 0, to, source, real)
    f.ret()
    return f


def _copy_dimension(f: Function, d: int, to: Value, source: Value, real: Type) -> None:
    if d == MAX_DIMENSIONS:
        f.store(f.load(real, source), to)
        return
    with f.loop(f[f"d{d}"]) as k:
        onto = f.address(to, k * f[f"t{d}"])
        _copy_dimension(f, d + 1, onto, f.address(source, k * f[f"s{d}"]), real)


def copy_rows(
    to: tuple[Value, Value, list[Value]],
    source: tuple[Value, Value, list[Value]],
    rows: Value,
    count: Value,
    shape: tuple[int, ...],
) -> None:
    """Call @copy.

    Args:
        to: Address, distance of rows and strides of the target [bytes].
        source: The same of the source.
        rows: Rows to write.
        count: Rows to read; the last is repeated.
        shape: Of a row.
    """
    f = rows.function
    lengths = [f.constant(I64, length) for length in shape]
    padded = [_padded(lengths, 1, f), _padded(to[2], 0, f), _padded(source[2], 0, f)]
    numbers = [rows, count, to[1], source[1], *padded[0], *padded[1], *padded[2]]
    f.call("@copy", VOID, to[0], source[0], *numbers)


def _padded(numbers: list[Value], filler: int, f: Function) -> list[Value]:
    return [f.constant(I64, filler)] * (MAX_DIMENSIONS - len(numbers)) + numbers


def stream_function() -> Function:
    """Return @stream, which writes a whole block past the caches.

    What is larger than they are would only be fetched to be overwritten.
    """
    f = Function("stream", hints=["noinline"], to=PTR, source=PTR, bytes=I64)
    with f.loop(f["bytes"], step=PART.bytes) as k:
        part = f.load(PART, f.address(f["source"], k), align=16)
        to = f.address(f["to"], k)
        f.do(
            f"store {PART.text} {part.text}, ptr {to.text}, align {PART.bytes}, "
            "!nontemporal !1"
        )
    f.ret()
    return f
