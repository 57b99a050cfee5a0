"""The way into a block for a single row: the body of a Python function.

`@call` checks that its arguments are plain arrays of the exact shape, calls the block
and makes the result. Everything unusual goes to a slower callable, flagged rows too.
"""

from __future__ import annotations

from armillary.kernel.arguments import Computation, compact_strides
from armillary.kernel.builder import FunctionBuilder, Value
from armillary.kernel.machine_type import I32, I64, PTR, VOID, Type, bits_of_lanes
from armillary.kernel.memory import Struct, allocate, copy_bytes
from armillary.kernel.object_layout import (
    CALL_WORDS,
    DATA,
    DESCRIPTION,
    DIMENSIONS,
    NDIM,
    STRIDES,
    TYPE,
)
from armillary.trace import Port

__all__ = [
    "checked_array",
    "fastcall_entry",
    "field",
    "new_array",
    "slow_call",
]


def fastcall_entry(
    program: Computation, real: Type, scratch: int, *, has_tables: bool = False
) -> FunctionBuilder:
    """Return @call, for a program with one output.

    Args:
        program: What is computed.
        real: The values that @block works on: a vector with a lane for each row.
        scratch: Memory that @block needs [bytes].
        has_tables: Whether @block takes the address of tables, too.
    """
    (result,) = program.outputs
    f = FunctionBuilder(
        "call", PTR, exported=True, owner=PTR, arguments=PTR, count=I64, keywords=PTR
    )
    words = field(f["owner"], DATA, PTR)
    slow, flagged, failed = f.label(), f.label(), f.label()
    # Python's _PyCFunctionFastWithKeywords(self, args, nargs, kwnames): `self` is the
    # array of CALL_WORDS. Whatever is not a call of exactly this kind goes to `slow`,
    # which also says what is wrong.
    f.guard(f["count"].equals(len(program.inputs)), slow)
    f.guard(f["keywords"].equals(0), slow)
    rows = [
        checked_array(f, f.load(PTR, f["arguments"], k), words, port, real, slow)
        for k, port in enumerate(program.inputs)
    ]
    sizes = [
        port.size * real.lanes * real.scalar.bytes for port in (*program.inputs, result)
    ]
    malloc, free = (CALL_WORDS.load(words, name) for name in ("malloc", "free"))
    # @block works on as many rows as there are lanes, so each input is repeated.
    memory = allocate(f, [*sizes, scratch], malloc, failed=slow)
    *buffers, out, room = memory.parts
    inputs = [
        _spread(f, row, buffer, port, real)
        for row, buffer, port in zip(rows, buffers, program.inputs, strict=True)
    ]
    # Made before it is needed: meanwhile the inputs reach the cache.
    made = new_array(f, words, result)
    f.guard(made.differs(0), failed)
    more = [CALL_WORDS.load(words, "tables")] if has_tables else []
    bits = bits_of_lanes(real.lanes)
    flags = f.call("@block", bits, *inputs, out, room, *more)
    # A lane whose formula is not good enough, see `FunctionBuilder.flag`: all is
    # computed again on the slow way, and the new array is given up.
    f.guard(flags.equals(0), flagged)
    copy_bytes(field(made, DATA, PTR), out, result.size * real.scalar.bytes)
    memory.release(free)
    f.ret(made)
    f.start(flagged)
    f.call(CALL_WORDS.load(words, "decrement").text, VOID, made)
    memory.release(free)
    f.jump(slow)
    f.start(slow)
    f.ret(slow_call(f, CALL_WORDS, words))
    # PyArray_New has set a MemoryError; null passes it on.
    f.start(failed)
    memory.release(free)
    f.ret(f.constant(PTR, 0))
    return f


def slow_call(f: FunctionBuilder, layout: Struct, words: Value) -> Value:
    """Pass all arguments on to the slow callable that words of a layout have."""
    vectorcall, slow = (layout.load(words, name) for name in ("vectorcall", "slow"))
    arguments = slow, f["arguments"], f["count"], f["keywords"]
    return f.call(vectorcall.text, PTR, *arguments)


def field(structure: Value, offset: int, kind: Type) -> Value:
    """Return what lies at an offset [bytes] of an object of Python or NumPy."""
    f = structure.function
    return f.load(kind, f.address(structure, offset))


def checked_array(
    f: FunctionBuilder, array: Value, words: Value, port: Port, real: Type, slow: str
) -> Value:
    """Return the data of an argument that is an array as it should be."""
    # The very type, no subclass, and the very dtype object, in native byte order: NumPy
    # has one of each.
    f.guard(field(array, TYPE, PTR).equals(CALL_WORDS.load(words, "array_type")), slow)
    f.guard(
        field(array, DESCRIPTION, PTR).equals(CALL_WORDS.load(words, "dtype")), slow
    )
    f.guard(field(array, NDIM, I32).equals(len(port.shape)), slow)
    if port.shape:
        dimensions = field(array, DIMENSIONS, PTR)
        strides = field(array, STRIDES, PTR)
        expected = compact_strides(port.shape, real.scalar.bytes)
        for d, (length, stride) in enumerate(zip(port.shape, expected, strict=True)):
            f.guard(f.load(I64, dimensions, d).equals(length), slow)
            # NumPy may give any stride to a dimension of length 1.
            if length > 1:
                f.guard(f.load(I64, strides, d).equals(stride), slow)
    return field(array, DATA, PTR)


def _spread(
    f: FunctionBuilder, row: Value, buffer: Value, port: Port, real: Type
) -> Value:
    """Repeat one row for every lane and return where."""
    if real.lanes == 1 or port.size == 0:
        return row
    size = port.size * real.scalar.bytes
    for lane in range(real.lanes):
        copy_bytes(f.address(buffer, lane * size), row, size)
    return buffer


def new_array(f: FunctionBuilder, words: Value, port: Port) -> Value:
    """Call PyArray_New, which returns an array or null."""
    lengths = f.reserve(8 * len(port.shape), 8)
    for d, length in enumerate(port.shape):
        f.store(f.constant(I64, length), lengths, d)
    number = CALL_WORDS.load(words, "type_number").to(I32, "trunc")
    null, zero = f.constant(PTR, 0), f.constant(I32, 0)
    rank = f.constant(I32, len(port.shape))
    kind = CALL_WORDS.load(words, "array_type")
    arguments = kind, rank, lengths, number, null, null, zero, zero, null
    return f.call(CALL_WORDS.load(words, "new_array").text, PTR, *arguments)
