"""The way into a block for a single row: the body of a Python function.

`@call` checks that its arguments are plain arrays of the exact shape, makes the result,
calls the block, and hands everything unusual to a slower callable.
"""

from __future__ import annotations

from armillary.kernel.block import Shape
from armillary.kernel.signature import compact_strides
from armillary.kernel.text import Text
from armillary.trace import Port, Program

# Where @call finds its addresses, in the words of an array that is its `self`.
WORDS = (
    "exact",
    "array_type",
    "dtype",
    "new_array",
    "type_number",
    "vectorcall",
    "slow",
)
# Where the fields of a NumPy array lie; checked on a known array before use.
DATA, NDIM, DIMENSIONS, STRIDES, DESCRIPTION = 16, 24, 32, 40, 56


def emit_call(program: Program, shape: Shape) -> str:
    """Return the text of @call, for a program with one output."""
    (result,) = program.outputs
    t = Text()
    words = t.load_field("%self", DATA, "ptr")
    array_type, dtype = t.load_at(words, 1, "ptr"), t.load_at(words, 2, "ptr")
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
        rows.append(_spread(t, t.load_field(array, DATA, "ptr"), port, shape))
    made = _new_array(t, words, array_type, result)
    _guard(t, t.name(f"icmp ne ptr {made}, null"), otherwise="failed")
    total = max(1, result.size) * shape.lanes
    buffer = t.name(f"alloca {shape.scalar}, i64 {total}, align 64")
    pointers = ", ".join(f"ptr {row}" for row in [*rows, buffer])
    t.do(f"call void @block({pointers}, ptr {words})")
    data = t.load_field(made, DATA, "ptr")
    t.do(
        f"call void @llvm.memcpy.p0.p0.i64(ptr align {shape.bytes} {data}, "
        f"ptr align 64 {buffer}, i64 {result.size * shape.bytes}, i1 false)"
    )
    t.do(f"ret ptr {made}")
    t.label("slow")
    vectorcall, slow = t.load_at(words, 5, "ptr"), t.load_at(words, 6, "ptr")
    answer = t.name(
        f"call ptr {vectorcall}(ptr {slow}, ptr %arguments, i64 %count, ptr %keywords)"
    )
    t.do(f"ret ptr {answer}")
    t.label("failed")
    t.do("ret ptr null")
    head = "define ptr @call(ptr %self, ptr %arguments, i64 %count, ptr %keywords) {"
    declared = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
    return "\n".join([declared, head, "entry:", *t.lines, "}"])


def _guard(t: Text, truth: str, otherwise: str = "slow") -> None:
    label = f"ok{len(t.lines)}"
    t.do(f"br i1 {truth}, label %{label}, label %{otherwise}")
    t.label(label)


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


def _spread(t: Text, data: str, port: Port, shape: Shape) -> str:
    """Repeat one row for every lane and return where."""
    if shape.lanes == 1 or port.size == 0:
        return data
    total = port.size * shape.lanes
    buffer = t.name(f"alloca {shape.scalar}, i64 {total}, align 64")
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
    lengths = t.name(f"alloca i64, i64 {max(1, len(port.shape))}")
    for d, length in enumerate(port.shape):
        place = t.name(f"getelementptr i64, ptr {lengths}, i64 {d}")
        t.do(f"store i64 {length}, ptr {place}")
    make = t.load_at(words, 3, "ptr")
    number = t.load_at(words, 4)
    number32 = t.name(f"trunc i64 {number} to i32")
    return t.name(
        f"call ptr {make}(ptr {array_type}, i32 {len(port.shape)}, ptr {lengths}, "
        f"i32 {number32}, ptr null, ptr null, i32 0, i32 0, ptr null)"
    )
