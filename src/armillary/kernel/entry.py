"""The two ways into a compiled block, in LLVM IR.

`@loop` has the signature of NumPy's inner loops; it honours every stride, and takes
compact rows as they lie. `@call` is the body of a Python function for one row: it
checks that its arguments are plain arrays of the exact shape, makes the result, calls
the block, and hands everything unusual to a slower callable.
"""

from __future__ import annotations

from collections.abc import Iterator

from armillary.kernel.block import Shape
from armillary.trace import Port, Program

MAX_DIMENSIONS = 3

# Copy `rows` rows of d0 x d1 x d2 reals from one set of strides to another; rows beyond
# the last of `count` repeat it, so that padding computes on honest numbers.
_COPY = """
define internal void @copy(ptr %to, ptr %from, i64 %rows, i64 %count, i64 %to_row,
    i64 %from_row, i64 %d0, i64 %d1, i64 %d2, i64 %t0, i64 %t1, i64 %t2,
    i64 %s0, i64 %s1, i64 %s2) noinline {
entry:
  %last = sub i64 %count, 1
  br label %row
row:
  %r = phi i64 [ 0, %entry ], [ %r_next, %row_end ]
  %short = icmp slt i64 %r, %last
  %source = select i1 %short, i64 %r, i64 %last
  %t_offset = mul i64 %r, %to_row
  %s_offset = mul i64 %source, %from_row
  %t_row = getelementptr i8, ptr %to, i64 %t_offset
  %s_row = getelementptr i8, ptr %from, i64 %s_offset
  br label %first
first:
  %i = phi i64 [ 0, %row ], [ %i_next, %first_end ]
  %ti = mul i64 %i, %t0
  %si = mul i64 %i, %s0
  %t_first = getelementptr i8, ptr %t_row, i64 %ti
  %s_first = getelementptr i8, ptr %s_row, i64 %si
  br label %second
second:
  %j = phi i64 [ 0, %first ], [ %j_next, %second_end ]
  %tj = mul i64 %j, %t1
  %sj = mul i64 %j, %s1
  %t_second = getelementptr i8, ptr %t_first, i64 %tj
  %s_second = getelementptr i8, ptr %s_first, i64 %sj
  br label %third
third:
  %k = phi i64 [ 0, %second ], [ %k_next, %third ]
  %tk = mul i64 %k, %t2
  %sk = mul i64 %k, %s2
  %t_third = getelementptr i8, ptr %t_second, i64 %tk
  %s_third = getelementptr i8, ptr %s_second, i64 %sk
  %number = load REAL, ptr %s_third, align BYTES
  store REAL %number, ptr %t_third, align BYTES
  %k_next = add i64 %k, 1
  %k_more = icmp slt i64 %k_next, %d2
  br i1 %k_more, label %third, label %second_end
second_end:
  %j_next = add i64 %j, 1
  %j_more = icmp slt i64 %j_next, %d1
  br i1 %j_more, label %second, label %first_end
first_end:
  %i_next = add i64 %i, 1
  %i_more = icmp slt i64 %i_next, %d0
  br i1 %i_more, label %first, label %row_end
row_end:
  %r_next = add i64 %r, 1
  %r_more = icmp slt i64 %r_next, %rows
  br i1 %r_more, label %row, label %exit
exit:
  ret void
}
"""


# Write a whole block past the caches: what is larger than they are would only be
# fetched to be overwritten.
_STREAM = """
define internal void @stream(ptr %to, ptr %from, i64 %bytes) noinline {
entry:
  br label %turn
turn:
  %k = phi i64 [ 0, %entry ], [ %next, %turn ]
  %source = getelementptr i8, ptr %from, i64 %k
  %target = getelementptr i8, ptr %to, i64 %k
  %part = load <4 x i64>, ptr %source, align 32
  store <4 x i64> %part, ptr %target, align 32, !nontemporal !1
  %next = add i64 %k, 32
  %more = icmp slt i64 %next, %bytes
  br i1 %more, label %turn, label %exit
exit:
  ret void
}
!1 = !{i32 1}
"""
STREAM_FROM = 24 * 2**20


class _Text:
    """Lines of a function with numbered names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0

    def name(self, text: str) -> str:
        self._count += 1
        self.lines.append(f"  %x{self._count} = {text}")
        return f"%x{self._count}"

    def do(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def load_at(self, base: str, index: int, kind: str = "i64") -> str:
        address = self.name(f"getelementptr {kind}, ptr {base}, i64 {index}")
        return self.name(f"load {kind}, ptr {address}")

    def load_field(self, base: str, offset: int, kind: str) -> str:
        address = self.name(f"getelementptr i8, ptr {base}, i64 {offset}")
        return self.name(f"load {kind}, ptr {address}")


def core_dimensions(program: Program) -> list[int]:
    """Return the distinct core dimensions in the order in which NumPy passes them."""
    seen: dict[int, None] = {}
    for port in (*program.inputs, *program.outputs):
        seen.update(dict.fromkeys(port.shape))
    return list(seen)


def ufunc_signature(program: Program) -> str:
    """Return NumPy's generalised signature, such as `(7)->(4,4)`."""

    def group(ports: tuple[Port, ...]) -> str:
        return ",".join(f"({','.join(map(str, port.shape))})" for port in ports)

    return f"{group(program.inputs)}->{group(program.outputs)}"


def _compact_strides(shape: tuple[int, ...], real_bytes: int) -> list[int]:
    strides: list[int] = []
    step = real_bytes
    for dimension in reversed(shape):
        strides.insert(0, step)
        step *= dimension
    return strides


def _padded(numbers: list[str], filler: str) -> list[str]:
    return [filler] * (MAX_DIMENSIONS - len(numbers)) + numbers


def emit_loop(program: Program, shape: Shape) -> str:
    """Return the text of @loop and of what it calls besides @block."""
    ports = [*program.inputs, *program.outputs]
    t = _Text()
    rows = t.load_at("%dimensions", 0)
    bases = [t.load_at("%arguments", k, "ptr") for k in range(len(ports))]
    outer = [t.load_at("%steps", k) for k in range(len(ports))]
    core = list(_core_strides(t, ports))
    buffers = [
        t.name(
            f"alloca {shape.scalar}, i64 {max(1, port.size) * shape.lanes}, align 64"
        )
        for port in ports
    ]
    compact = [
        _is_compact(t, port, outer[k], core[k], shape) for k, port in enumerate(ports)
    ]
    streams = {
        k: _streams(t, ports[k], bases[k], rows, compact[k], shape)
        for k in range(len(program.inputs), len(ports))
        if ports[k].size * shape.lanes * shape.bytes % 32 == 0 and ports[k].size
    }
    some = t.name(f"icmp sgt i64 {rows}, 0")
    t.do(f"br i1 {some}, label %turn, label %exit")
    t.label("turn")
    next_row = f"%next{0}"
    row = t.name(f"phi i64 [ 0, %entry ], [ {next_row}, %turned ]")
    left = t.name(f"sub i64 {rows}, {row}")
    full = t.name(f"icmp sge i64 {left}, {shape.lanes}")
    count = t.name(f"select i1 {full}, i64 {left}, i64 {left}")
    count = t.name(f"select i1 {full}, i64 {shape.lanes}, i64 {count}")
    places: list[str] = []
    direct: list[str] = []
    for k in range(len(ports)):
        offset = t.name(f"mul i64 {row}, {outer[k]}")
        places.append(t.name(f"getelementptr i8, ptr {bases[k]}, i64 {offset}"))
        direct.append(t.name(f"and i1 {compact[k]}, {full}"))
        if k in streams:
            cached = t.name(f"xor i1 {streams[k]}, true")
            direct[k] = t.name(f"and i1 {direct[k]}, {cached}")
    chosen = [
        t.name(f"select i1 {direct[k]}, ptr {places[k]}, ptr {buffers[k]}")
        for k in range(len(ports))
    ]
    inputs = range(len(program.inputs))
    for k in inputs:
        _copy_unless(
            t,
            k,
            direct[k],
            ports[k],
            shape,
            f"{shape.lanes}",
            count,
            (buffers[k], places[k]),
            (None, (outer[k], core[k])),
        )
    arguments = ", ".join(f"ptr {place}" for place in chosen)
    t.do(f"call void @block({arguments}, ptr %context)")
    for k in range(len(program.inputs), len(ports)):
        if k in streams:
            whole = t.name(f"and i1 {streams[k]}, {full}")
            t.do(f"br i1 {whole}, label %stream{k}, label %cached{k}")
            t.label(f"stream{k}")
            size = ports[k].size * shape.lanes * shape.bytes
            t.do(f"call void @stream(ptr {places[k]}, ptr {buffers[k]}, i64 {size})")
            t.do(f"br label %ready{k}")
            t.label(f"cached{k}")
        _copy_unless(
            t,
            k,
            direct[k],
            ports[k],
            shape,
            count,
            count,
            (places[k], buffers[k]),
            ((outer[k], core[k]), None),
        )
    t.do("br label %turned")
    t.label("turned")
    t.do(f"{next_row} = add i64 {row}, {shape.lanes}")
    more = t.name(f"icmp slt i64 {next_row}, {rows}")
    t.do(f"br i1 {more}, label %turn, label %exit")
    t.label("exit")
    if streams:
        t.do("fence seq_cst")
    t.do("ret void")
    head = (
        "define void @loop(ptr %arguments, ptr %dimensions, ptr %steps, ptr %context) {"
    )
    copy = _COPY.replace("REAL", shape.scalar).replace("BYTES", str(shape.bytes))
    stream = _STREAM if streams else ""
    return "\n".join([copy, stream, head, "entry:", *t.lines, "}"])


def _streams(
    t: _Text, port: Port, base: str, rows: str, compact: str, shape: Shape
) -> str:
    """Return whether an output is compact, aligned, and larger than caches."""
    total = t.name(f"mul i64 {rows}, {port.size * shape.bytes}")
    large = t.name(f"icmp sgt i64 {total}, {STREAM_FROM}")
    address = t.name(f"ptrtoint ptr {base} to i64")
    low = t.name(f"and i64 {address}, 31")
    aligned = t.name(f"icmp eq i64 {low}, 0")
    both = t.name(f"and i1 {large}, {aligned}")
    return t.name(f"and i1 {both}, {compact}")


def _core_strides(t: _Text, ports: list[Port]) -> Iterator[list[str]]:
    """Load the strides within a row of each port, which follow the outer ones."""
    position = len(ports)
    for port in ports:
        yield [t.load_at("%steps", position + d) for d in range(len(port.shape))]
        position += len(port.shape)


def _is_compact(t: _Text, port: Port, outer: str, core: list[str], shape: Shape) -> str:
    truth = t.name(f"icmp eq i64 {outer}, {port.size * shape.bytes}")
    expected = _compact_strides(port.shape, shape.bytes)
    for stride, wanted, length in zip(core, expected, port.shape, strict=True):
        if length > 1:
            same = t.name(f"icmp eq i64 {stride}, {wanted}")
            truth = t.name(f"and i1 {truth}, {same}")
    return truth


_Strides = tuple[str, list[str]] | None


def _copy_unless(
    t: _Text,
    k: int,
    direct: str,
    port: Port,
    shape: Shape,
    rows: str,
    count: str,
    ends: tuple[str, str],
    strides: tuple[_Strides, _Strides],
) -> None:
    """Copy rows between a buffer, whose strides are None, and where they belong."""
    if port.size == 0:
        return
    compact = (
        str(port.size * shape.bytes),
        [str(n) for n in _compact_strides(port.shape, shape.bytes)],
    )
    to, source = (compact if given is None else given for given in strides)
    numbers = [
        rows,
        count,
        to[0],
        source[0],
        *_padded([str(n) for n in port.shape], "1"),
        *_padded(to[1], "0"),
        *_padded(source[1], "0"),
    ]
    t.do(f"br i1 {direct}, label %ready{k}, label %copy{k}")
    t.label(f"copy{k}")
    wide = ", ".join(f"i64 {number}" for number in numbers)
    t.do(f"call void @copy(ptr {ends[0]}, ptr {ends[1]}, {wide})")
    t.do(f"br label %ready{k}")
    t.label(f"ready{k}")


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
    t = _Text()
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


def _guard(t: _Text, truth: str, otherwise: str = "slow") -> None:
    label = f"ok{len(t.lines)}"
    t.do(f"br i1 {truth}, label %{label}, label %{otherwise}")
    t.label(label)


def _check_layout(t: _Text, array: str, port: Port, shape: Shape) -> None:
    if not port.shape:
        return
    dimensions = t.load_field(array, DIMENSIONS, "ptr")
    strides = t.load_field(array, STRIDES, "ptr")
    expected = _compact_strides(port.shape, shape.bytes)
    for d, (length, stride) in enumerate(zip(port.shape, expected, strict=True)):
        _guard(t, t.name(f"icmp eq i64 {t.load_at(dimensions, d)}, {length}"))
        if length > 1:
            _guard(t, t.name(f"icmp eq i64 {t.load_at(strides, d)}, {stride}"))


def _spread(t: _Text, data: str, port: Port, shape: Shape) -> str:
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


def _new_array(t: _Text, words: str, array_type: str, port: Port) -> str:
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
