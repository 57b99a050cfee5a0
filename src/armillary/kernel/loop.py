"""The way into a block for batches: a function with the signature of NumPy's loops.

`@loop` honours every stride. Compact rows are used where they lie; others are copied
into buffers of a block's size and back, as is the incomplete block at the end. Its last
input is a state (`fallback`), in which it notes flagged rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from armillary.kernel.block import Shape
from armillary.kernel.fallback import STATE, Record
from armillary.kernel.memory import allocate
from armillary.kernel.signature import MAX_DIMENSIONS, compact_strides
from armillary.kernel.text import Text
from armillary.trace import Port, Program

STREAM_FROM = 24 * 2**20
"""Results larger than this are written past the caches [bytes]."""

HEAD = """
declare i64 @llvm.cttz.i64(i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @loop(ptr %arguments, ptr %dimensions, ptr %steps, ptr %unused) #0 {"""


@dataclass(frozen=True, slots=True)
class _Array:
    """An argument of the loop, by the names of what is known of it.

    Attributes:
        number: Its place among the arguments.
        port: What it holds.
        base: Where its first row starts.
        outer: Distance between rows.
        core: Strides within a row.
        buffer: Room for one block of compact rows.
        compact: Whether its rows are compact and follow each other.
        streamed: Whether whole blocks are written past the caches; empty for never.
    """

    number: int
    port: Port
    base: str
    outer: str
    core: tuple[str, ...]
    buffer: str
    compact: str
    streamed: str

    def row_bytes(self, shape: Shape) -> int:
        """Return the size of a compact row."""
        return self.port.size * shape.bytes


_Placed = tuple[_Array, str]  # and where its rows of this turn start


@dataclass(frozen=True, slots=True)
class _Turn:
    """One turn of the loop: whether its block is full, and how many rows it has."""

    row: str
    full: str
    count: str


def emit_loop(program: Program, shape: Shape, scratch: int) -> str:
    """Return the text of @loop and of what it calls besides @block.

    Args:
        program: What is computed.
        shape: The values that @block works on.
        scratch: Memory that @block needs [bytes].
    """
    t = Text()
    rows = t.load_at("%dimensions", 0)
    state = t.load_at("%arguments", len(program.inputs), "ptr")
    t.branch(t.name(f"icmp sgt i64 {rows}, 0"), otherwise="end")
    ports = [*program.inputs, *program.outputs]
    sizes = [port.size * shape.lanes * shape.bytes for port in ports]
    malloc = t.load_at(state, STATE.index("malloc"), "ptr")
    memory = allocate(t, [*sizes, scratch], malloc, failed="failed")
    *buffers, room = memory.parts
    arrays = _arrays(t, program, shape, rows, buffers)
    inputs, outputs = arrays[: len(program.inputs)], arrays[len(program.inputs) :]
    t.do("br label %begin")
    t.label("begin")
    t.do("br label %turn")
    turn = _begin_turn(t, rows, shape)
    places = [_place(t, array, turn) for array in arrays]
    direct = [_direct(t, array, turn) for array in arrays]
    chosen = [
        t.name(f"select i1 {lies}, ptr {place}, ptr {array.buffer}")
        for array, place, lies in zip(arrays, places, direct, strict=True)
    ]
    for array, place, lies in zip(inputs, places, direct, strict=False):
        _gather(t, array, place, lies, turn, shape)
    arguments = ", ".join(f"ptr {pointer}" for pointer in [*chosen, room])
    flags = t.name(f"call i{shape.lanes} @block({arguments})")
    after = len(inputs)
    for array, place, lies in zip(outputs, places[after:], direct[after:], strict=True):
        _scatter(t, array, place, lies, turn, shape)
    some = t.name(f"icmp ne i{shape.lanes} {flags}, 0")
    t.do(f"br i1 {some}, label %flagged, label %turned, !prof !0")
    given = list(zip(inputs, chosen[:after], strict=True))
    written = list(zip(outputs, places[after:], strict=True))
    _note(t, state, written, given, flags, turn, shape)
    _end_turn(t, rows, turn, shape)
    if any(array.streamed for array in outputs):
        t.do("fence seq_cst")  # what went past the caches is there for everyone
    memory.free(t, t.load_at(state, STATE.index("free"), "ptr"))
    t.do("br label %end")
    t.label("failed")
    t.do(f"store i64 -1, ptr {state}")
    t.do("br label %end")
    t.label("end")
    t.do("ret void")
    copy = files("armillary.kernel").joinpath("copy.ll").read_text(encoding="utf-8")
    copy = copy.replace("REAL", shape.scalar).replace("BYTES", str(shape.bytes))
    return "\n".join([copy, HEAD, "entry:", *t.lines, "}"])


def _arrays(
    t: Text, program: Program, shape: Shape, rows: str, buffers: list[str]
) -> list[_Array]:
    """Load what NumPy says of the arguments: pointers, then outer and core strides."""
    ports = [*program.inputs, *program.outputs]
    arrays: list[_Array] = []
    position = len(ports) + 1
    for k, port in enumerate(ports):
        is_output = k >= len(program.inputs)
        if k == len(program.inputs):
            position += 1  # the stride of the state
        base = t.load_at("%arguments", k + is_output, "ptr")
        outer = t.load_at("%steps", k + is_output)
        core = tuple(t.load_at("%steps", position + d) for d in range(len(port.shape)))
        position += len(port.shape)
        compact = _compact(t, port, outer, core, shape)
        streamed = _streamed(t, port, base, rows, compact, shape) if is_output else ""
        arrays.append(_Array(k, port, base, outer, core, buffers[k], compact, streamed))
    return arrays


def _note(
    t: Text,
    state: str,
    outputs: list[_Placed],
    inputs: list[_Placed],
    flags: str,
    turn: _Turn,
    shape: Shape,
) -> None:
    """Append the noting of each flagged row: where its outputs are, and its inputs."""
    ports = [array.port for array, _ in inputs]
    record = Record.of(ports, len(outputs), shape.bytes)
    t.label("flagged")
    wide = t.name(f"zext i{shape.lanes} {flags} to i64")
    beyond = t.name(f"shl i64 -1, {turn.count}")
    rows = t.name(f"xor i64 {beyond}, -1")
    mask = t.name(f"and i64 {wide}, {rows}")
    t.do("br label %note")
    t.label("note")
    left = t.name(f"phi i64 [ {mask}, %flagged ], [ %left, %noted ]")
    lane = t.name(f"call i64 @llvm.cttz.i64(i64 {left}, i1 true)")
    at = t.name(f"call ptr @record(ptr {state}, i64 {record.size})")
    t.branch(t.name(f"icmp ne ptr {at}, null"), otherwise="exit")
    for k, (array, start) in enumerate(outputs):
        offset = t.name(f"mul i64 {lane}, {array.outer}")
        row = t.name(f"getelementptr i8, ptr {start}, i64 {offset}")
        word = t.name(f"getelementptr ptr, ptr {at}, i64 {k}")
        t.do(f"store ptr {row}, ptr {word}")
    for (array, start), place in zip(inputs, record.inputs, strict=True):
        size = array.row_bytes(shape)
        offset = t.name(f"mul i64 {lane}, {size}")
        row = t.name(f"getelementptr i8, ptr {start}, i64 {offset}")
        to = t.name(f"getelementptr i8, ptr {at}, i64 {place}")
        t.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {row}, i64 {size}, i1 0)")
    t.do("br label %noted")
    t.label("noted")
    less = t.name(f"sub i64 {left}, 1")
    t.do(f"%left = and i64 {left}, {less}")
    more = t.name("icmp ne i64 %left, 0")
    t.do(f"br i1 {more}, label %note, label %turned")


def _compact(
    t: Text, port: Port, outer: str, core: tuple[str, ...], shape: Shape
) -> str:
    truth = t.name(f"icmp eq i64 {outer}, {port.size * shape.bytes}")
    expected = compact_strides(port.shape, shape.bytes)
    for stride, wanted, length in zip(core, expected, port.shape, strict=True):
        if length > 1:
            same = t.name(f"icmp eq i64 {stride}, {wanted}")
            truth = t.name(f"and i1 {truth}, {same}")
    return truth


def _streamed(
    t: Text, port: Port, base: str, rows: str, compact: str, shape: Shape
) -> str:
    """Return whether an output is compact, aligned, and larger than the caches."""
    if port.size * shape.bytes * shape.lanes % 16:
        return ""
    total = t.name(f"mul i64 {rows}, {port.size * shape.bytes}")
    large = t.name(f"icmp sgt i64 {total}, {STREAM_FROM}")
    address = t.name(f"ptrtoint ptr {base} to i64")
    low = t.name(f"and i64 {address}, 15")
    aligned = t.name(f"icmp eq i64 {low}, 0")
    both = t.name(f"and i1 {large}, {aligned}")
    return t.name(f"and i1 {both}, {compact}")


def _begin_turn(t: Text, rows: str, shape: Shape) -> _Turn:
    t.label("turn")
    row = t.name("phi i64 [ 0, %begin ], [ %next_row, %turned ]")
    left = t.name(f"sub i64 {rows}, {row}")
    full = t.name(f"icmp sge i64 {left}, {shape.lanes}")
    count = t.name(f"select i1 {full}, i64 {shape.lanes}, i64 {left}")
    return _Turn(row, full, count)


def _end_turn(t: Text, rows: str, turn: _Turn, shape: Shape) -> None:
    t.label("turned")
    t.do(f"%next_row = add i64 {turn.row}, {shape.lanes}")
    more = t.name(f"icmp slt i64 %next_row, {rows}")
    t.do(f"br i1 {more}, label %turn, label %exit")
    t.label("exit")


def _place(t: Text, array: _Array, turn: _Turn) -> str:
    """Return where the rows of this turn start."""
    offset = t.name(f"mul i64 {turn.row}, {array.outer}")
    return t.name(f"getelementptr i8, ptr {array.base}, i64 {offset}")


def _direct(t: Text, array: _Array, turn: _Turn) -> str:
    """Return whether the block works on the rows where they lie."""
    direct = t.name(f"and i1 {array.compact}, {turn.full}")
    if not array.streamed:
        return direct
    cached = t.name(f"xor i1 {array.streamed}, true")
    return t.name(f"and i1 {direct}, {cached}")


def _gather(
    t: Text, array: _Array, place: str, direct: str, turn: _Turn, shape: Shape
) -> None:
    """Copy an input's rows into its buffer, unless they are used where they lie.

    A row that is broadcast to the whole batch is copied once.
    """
    own, compact = _strides(array), _compact_strides(array, shape)
    call = _copy(array, array.buffer, place, str(shape.lanes), turn, compact, own)
    same = t.name(f"icmp eq i64 {array.outer}, 0")
    later = t.name(f"icmp sgt i64 {turn.row}, 0")
    there = t.name(f"and i1 {same}, {later}")
    _unless(t, array, t.name(f"or i1 {direct}, {there}"), call)


def _scatter(
    t: Text, array: _Array, place: str, direct: str, turn: _Turn, shape: Shape
) -> None:
    """Copy an output's rows from its buffer, unless they were made where they lie."""
    if array.streamed:
        k = array.number
        whole = t.name(f"and i1 {array.streamed}, {turn.full}")
        t.do(f"br i1 {whole}, label %stream{k}, label %cached{k}")
        t.label(f"stream{k}")
        size = array.row_bytes(shape) * shape.lanes
        t.do(f"call void @stream(ptr {place}, ptr {array.buffer}, i64 {size})")
        t.do(f"br label %ready{k}")
        t.label(f"cached{k}")
    own, compact = _strides(array), _compact_strides(array, shape)
    call = _copy(array, place, array.buffer, turn.count, turn, own, compact)
    _unless(t, array, direct, call)


def _unless(t: Text, array: _Array, direct: str, call: str) -> None:
    k = array.number
    t.do(f"br i1 {direct}, label %ready{k}, label %copy{k}")
    t.label(f"copy{k}")
    t.do(call)
    t.do(f"br label %ready{k}")
    t.label(f"ready{k}")


_Strides = tuple[str, list[str]]


def _strides(array: _Array) -> _Strides:
    return array.outer, list(array.core)


def _compact_strides(array: _Array, shape: Shape) -> _Strides:
    core = compact_strides(array.port.shape, shape.bytes)
    return str(array.row_bytes(shape)), [str(stride) for stride in core]


def _copy(
    array: _Array,
    to: str,
    source: str,
    rows: str,
    turn: _Turn,
    to_strides: _Strides,
    source_strides: _Strides,
) -> str:
    """Return the call that copies `rows` rows between two layouts."""
    numbers = [
        rows,
        turn.count,
        to_strides[0],
        source_strides[0],
        *_padded([str(length) for length in array.port.shape], "1"),
        *_padded(to_strides[1], "0"),
        *_padded(source_strides[1], "0"),
    ]
    wide = ", ".join(f"i64 {number}" for number in numbers)
    return f"call void @copy(ptr {to}, ptr {source}, {wide})"


def _padded(numbers: list[str], filler: str) -> list[str]:
    return [filler] * (MAX_DIMENSIONS - len(numbers)) + numbers
