"""The way into a block for a single row: the body of a Python function.

`@call` checks that its arguments are plain arrays of the exact shape, calls the block
and makes the result. Everything unusual goes to a slower callable, flagged rows too.
"""

from __future__ import annotations

from armillary.kernel.block import Shape
from armillary.kernel.memory import allocate
from armillary.kernel.signature import compact_strides
from armillary.kernel.text import Text
from armillary.trace import Port, Program

# Where @call finds its addresses, in the words of an array that is its `self`.
WORDS = (
    "array_type",
    "dtype",
    "new_array",
    "type_number",
    "vectorcall",
    "slow",
    "malloc",
    "free",
    "decrement",
)
# Where the fields of a NumPy array lie; checked on a known array before use.
DATA, NDIM, DIMENSIONS, STRIDES, DESCRIPTION = 16, 24, 32, 40, 56


def emit_call(program: Program, shape: Shape, scratch: int) -> str:
    """Return the text of @call, for a program with one output.

    Args:
        program: What is computed.
        shape: The values that @block works on.
        scratch: Memory that @block needs [bytes].
    """
    (result,) = program.outputs
    t = Text()
    words = t.load_field("%self", DATA, "ptr")
    array_type, dtype = (_word(t, words, name) for name in ("array_type", "dtype"))
    _guard(t, t.name(f"icmp eq i64 %count, {len(program.inputs)}"))
    _guard(t, t.name("icmp eq ptr %keywords, null"))
    rows: list[str] = []
    for k, port in enumerate(program.inputs):
        array = t.load_at("%arguments", k, "ptr")
        kind = t.load_field(array, 8, "ptr")
        _guard(t, t.name(f"icmp eq ptr {kind}, {array_type}"))
        given = t.load_field(array, DESCRIPTION, "ptr")
        _guard(t, t.name(f"icmp eq ptr {given}, {dtype}"))
        ndim = t.load_field(array, NDIM, "i32")
        _guard(t, t.name(f"icmp eq i32 {ndim}, {len(port.shape)}"))
        _check_layout(t, array, port, shape)
        rows.append(t.load_field(array, DATA, "ptr"))
    block = [
        port.size * shape.lanes * shape.bytes for port in (*program.inputs, result)
    ]
    memory = allocate(t, [*block, scratch], _word(t, words, "malloc"), failed="slow")
    *buffers, out, room = memory.parts
    given = [
        _spread(t, row, buffer, port, shape)
        for row, buffer, port in zip(rows, buffers, program.inputs, strict=True)
    ]
    # Made before it is needed: meanwhile the inputs reach the cache.
    made = _new_array(t, words, array_type, result)
    _guard(t, t.name(f"icmp ne ptr {made}, null"), otherwise="failed")
    pointers = ", ".join(f"ptr {pointer}" for pointer in [*given, out, room])
    flags = t.name(f"call i{shape.lanes} @block({pointers})")
    _guard(t, t.name(f"icmp eq i{shape.lanes} {flags}, 0"), otherwise="flagged")
    data = t.load_field(made, DATA, "ptr")
    t.do(
        f"call void @llvm.memcpy.p0.p0.i64(ptr align {shape.bytes} {data}, "
        f"ptr align 64 {out}, i64 {result.size * shape.bytes}, i1 false)"
    )
    memory.free(t, _word(t, words, "free"))
    t.do(f"ret ptr {made}")
    t.label("flagged")
    t.do(f"call void {_word(t, words, 'decrement')}(ptr {made})")
    memory.free(t, _word(t, words, "free"))
    t.do("br label %slow")
    t.label("slow")
    vectorcall, slow = (_word(t, words, name) for name in ("vectorcall", "slow"))
    answer = t.name(
        f"call ptr {vectorcall}(ptr {slow}, ptr %arguments, i64 %count, ptr %keywords)"
    )
    t.do(f"ret ptr {answer}")
    t.label("failed")
    memory.free(t, _word(t, words, "free"))
    t.do("ret ptr null")
    head = "define ptr @call(ptr %self, ptr %arguments, i64 %count, ptr %keywords) #0 {"
    return "\n".join([head, "entry:", *t.lines, "}"])


def _word(t: Text, words: str, name: str, kind: str = "ptr") -> str:
    return t.load_at(words, WORDS.index(name), kind)


def _guard(t: Text, truth: str, otherwise: str = "slow") -> None:
    t.branch(truth, otherwise=otherwise)


def _check_layout(t: Text, array: str, port: Port, shape: Shape) -> None:
    if not port.shape:
        return
    dimensions = t.load_field(array, DIMENSIONS, "ptr")
    strides = t.load_field(array, STRIDES, "ptr")
    expected = compact_strides(port.shape, shape.bytes)
    for d, (length, stride) in enumerate(zip(port.shape, expected, strict=True)):
        _guard(t, t.name(f"icmp eq i64 {t.load_at(dimensions, d)}, {length}"))
        if length > 1:
            _guard(t, t.name(f"icmp eq i64 {t.load_at(strides, d)}, {stride}"))


def _spread(t: Text, data: str, buffer: str, port: Port, shape: Shape) -> str:
    """Repeat one row for every lane and return where."""
    if shape.lanes == 1 or port.size == 0:
        return data
    for lane in range(shape.lanes):
        start = t.name(
            f"getelementptr {shape.scalar}, ptr {buffer}, i64 {lane * port.size}"
        )
        t.do(
            f"call void @llvm.memcpy.p0.p0.i64(ptr align {shape.bytes} {start}, ptr "
            f"align {shape.bytes} {data}, i64 {port.size * shape.bytes}, i1 false)"
        )
    return buffer


def _new_array(t: Text, words: str, array_type: str, port: Port) -> str:
    lengths = t.alloca(f"i64, i64 {max(1, len(port.shape))}")
    for d, length in enumerate(port.shape):
        place = t.name(f"getelementptr i64, ptr {lengths}, i64 {d}")
        t.do(f"store i64 {length}, ptr {place}")
    make = _word(t, words, "new_array")
    number = _word(t, words, "type_number", "i64")
    number32 = t.name(f"trunc i64 {number} to i32")
    return t.name(
        f"call ptr {make}(ptr {array_type}, i32 {len(port.shape)}, ptr {lengths}, "
        f"i32 {number32}, ptr null, ptr null, i32 0, i32 0, ptr null)"
    )
