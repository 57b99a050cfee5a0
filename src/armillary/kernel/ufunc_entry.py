"""The way into a block for batches: a function with the signature of NumPy's loops.

`@loop` honours every stride. Compact rows are used where they lie; others are copied
into buffers of a block's size and back, as is the incomplete block at the end. Its last
input is a state (`fallback`), in which it notes flagged rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from armillary.kernel.arguments import MAX_DIMENSIONS, Computation, compact_strides
from armillary.kernel.builder import FunctionBuilder, Value
from armillary.kernel.fallback import STATE, Record
from armillary.kernel.machine_type import I64, PTR, VOID, Type, bits_of_lanes
from armillary.kernel.memory import allocate, copy_bytes
from armillary.trace import Port

__all__ = ["ufunc_entry"]

STREAM_FROM: Final = 24 * 2**20
"""Results larger than this are written past the caches [bytes]."""

STREAMED: Final = I64.wide(2)
"""What is written past the caches at once."""

Rows: TypeAlias = tuple[Value, Value, list[Value]]
"""Address of rows, distance between them and strides within them [bytes]."""


@dataclass(frozen=True, slots=True)
class _Operand:
    """An array that NumPy gave.

    Attributes:
        port: What it holds.
        base: Where its first row starts.
        outer: Distance between rows [bytes].
        core: Strides within a row [bytes].
        buffer: Room for one block of compact rows.
        compact: Whether its rows are compact and follow each other.
        streamed: Whether whole blocks are written past the caches; None for never.
    """

    port: Port
    base: Value
    outer: Value
    core: list[Value]
    buffer: Value
    compact: Value
    streamed: Value | None


@dataclass(frozen=True, slots=True)
class _OperandRows:
    """The rows of an operand in one turn of the loop.

    Attributes:
        operand: Whose.
        start: Where they lie.
        direct: Whether @block works on them there.
        at: Where it works on them.
    """

    operand: _Operand
    start: Value
    direct: Value
    at: Value


def ufunc_entry(
    program: Computation, real: Type, scratch: int, *, has_tables: bool = False
) -> list[FunctionBuilder]:
    """Return @loop and what it calls besides @block.

    Args:
        program: What is computed.
        real: The values that @block works on: a vector with a lane for each row.
        scratch: Memory that @block needs [bytes].
        has_tables: Whether @block takes the address of tables, too.
    """
    entry = _Entry(program, real, has_tables).function(scratch)
    return [_copy_function(real.scalar), _stream_function(), _record_function(), entry]


@dataclass(frozen=True)
class _Entry:
    """The parts of @loop for one program."""

    program: Computation
    real: Type
    has_tables: bool

    def function(self, scratch: int) -> FunctionBuilder:
        """Return @loop."""
        f = FunctionBuilder(
            "loop", exported=True, arguments=PTR, dimensions=PTR, steps=PTR, unused=PTR
        )
        rows = f.load(I64, f["dimensions"])
        inputs = len(self.program.inputs)
        state = f.load(PTR, f["arguments"], inputs)
        end, failed = f.label(), f.label()
        f.guard(rows > 0, end)
        ports = [*self.program.inputs, *self.program.outputs]
        sizes = [self.row_bytes(port) * self.real.lanes for port in ports]
        memory = allocate(
            f, [*sizes, scratch], STATE.load(state, "malloc"), failed=failed
        )
        *buffers, room = memory.parts
        more = [STATE.load(state, "tables")] if self.has_tables else []
        operands = self.operands(f, rows, buffers)
        done = self.compact_rows(f, state, operands, rows, [room, *more])
        with f.loop(rows, start=done, step=self.real.lanes) as row:
            left = rows - row
            is_full = left >= self.real.lanes
            lanes = f.constant(I64, self.real.lanes)
            count = is_full.select(lanes, left)
            turn = [self.rows_of(f, each, row, is_full) for each in operands]
            for each in turn[:inputs]:
                self.gather(f, each, row, count)
            flags = self.block(f, turn, [room, *more])
            for each in turn[inputs:]:
                self.scatter(f, each, count, is_full)
            with f.when(flags.differs(0), unlikely=True):
                self.note(f, state, turn, flags, count)
        if any(each.streamed for each in operands):
            f.do("fence seq_cst")  # what went past the caches is there for everyone
        memory.release(STATE.load(state, "free"))
        f.jump(end)
        f.start(failed)
        STATE.store(-1, state, "used")
        f.jump(end)
        f.start(end)
        f.ret()
        return f

    def row_bytes(self, port: Port) -> int:
        """Return the size of a compact row."""
        return port.size * self.real.scalar.bytes

    # what NumPy says

    def operands(
        self, f: FunctionBuilder, rows: Value, buffers: list[Value]
    ) -> list[_Operand]:
        """Load pointers, then outer and core strides; a state is behind the inputs."""
        inputs = len(self.program.inputs)
        ports = [*self.program.inputs, *self.program.outputs]
        found: list[_Operand] = []
        position = len(ports) + 1
        for k, (port, buffer) in enumerate(zip(ports, buffers, strict=True)):
            is_output = k >= inputs
            position += k == inputs  # the stride of the state
            base = f.load(PTR, f["arguments"], k + is_output)
            outer = f.load(I64, f["steps"], k + is_output)
            core = [
                f.load(I64, f["steps"], position + d) for d in range(len(port.shape))
            ]
            position += len(port.shape)
            compact = self.is_compact(port, outer, core)
            streamed = (
                self.is_streamed(port, base, rows, compact) if is_output else None
            )
            found.append(_Operand(port, base, outer, core, buffer, compact, streamed))
        return found

    def is_compact(self, port: Port, outer: Value, core: list[Value]) -> Value:
        """Return whether rows are compact and follow each other."""
        truth = outer.equals(self.row_bytes(port))
        expected = compact_strides(port.shape, self.real.scalar.bytes)
        for stride, wanted, length in zip(core, expected, port.shape, strict=True):
            if length > 1:
                truth &= stride.equals(wanted)
        return truth

    def is_streamed(
        self, port: Port, base: Value, rows: Value, compact: Value
    ) -> Value | None:
        """Return whether an output is compact, aligned, and larger than the caches."""
        if self.row_bytes(port) * self.real.lanes % 16:
            return None
        is_large = rows * self.row_bytes(port) > STREAM_FROM
        return is_large & (base.to(I64, "ptrtoint") & 15).equals(0) & compact

    def compact_rows(
        self,
        f: FunctionBuilder,
        state: Value,
        operands: list[_Operand],
        rows: Value,
        more: list[Value],
    ) -> Value:
        """Compute all whole blocks, where every operand is compact.

        Returns:
            How many rows are done.
        """
        lanes = f.constant(I64, self.real.lanes)
        done = f.variable(I64, 0)
        is_compact = rows >= self.real.lanes
        for each in operands:
            is_compact &= each.compact
            if each.streamed is not None:
                is_compact &= ~each.streamed
        with f.when(is_compact):
            whole = rows & -self.real.lanes
            with f.loop(whole, step=self.real.lanes) as row:
                turn: list[_OperandRows] = []
                for each in operands:
                    at = f.address(each.base, row * self.row_bytes(each.port))
                    turn.append(_OperandRows(each, at, each.compact, at))
                flags = self.block(f, turn, more)
                with f.when(flags.differs(0), unlikely=True):
                    self.note(f, state, turn, flags, lanes)
            done.set(whole)
        return done.get()

    # a turn of the loop

    def block(
        self, f: FunctionBuilder, turn: list[_OperandRows], more: list[Value]
    ) -> Value:
        """Call @block and return the lanes that it flags."""
        bits = bits_of_lanes(self.real.lanes)
        return f.call("@block", bits, *(each.at for each in turn), *more)

    def rows_of(
        self, f: FunctionBuilder, operand: _Operand, row: Value, is_full: Value
    ) -> _OperandRows:
        """Return where the rows of a turn are, and where @block works on them."""
        start = f.address(operand.base, row * operand.outer)
        direct = operand.compact & is_full
        if operand.streamed is not None:
            direct &= ~operand.streamed
        return _OperandRows(
            operand, start, direct, direct.select(start, operand.buffer)
        )

    def gather(
        self, f: FunctionBuilder, rows: _OperandRows, row: Value, count: Value
    ) -> None:
        """Copy an input's rows into its buffer, unless they are used where they lie.

        A row that is broadcast to the whole batch is copied once.
        """
        operand = rows.operand
        is_there = rows.direct | (operand.outer.equals(0) & (row > 0))
        with f.when(~is_there):
            to, source = self.both_ways(f, rows)
            lanes = f.constant(I64, self.real.lanes)
            _copy_rows(to, source, lanes, count, operand.port.shape)

    def scatter(
        self, f: FunctionBuilder, rows: _OperandRows, count: Value, is_full: Value
    ) -> None:
        """Copy an output's rows from its buffer, unless they were made in place."""
        operand = rows.operand
        with f.when(~rows.direct):
            buffer, target = self.both_ways(f, rows)
            if operand.streamed is None:
                _copy_rows(target, buffer, count, count, operand.port.shape)
                return
            with f.when(operand.streamed & is_full):
                whole = self.row_bytes(operand.port) * self.real.lanes
                size = f.constant(I64, whole)
                f.call("@stream", VOID, rows.start, operand.buffer, size)
            with f.otherwise():
                _copy_rows(target, buffer, count, count, operand.port.shape)

    def both_ways(self, f: FunctionBuilder, rows: _OperandRows) -> tuple[Rows, Rows]:
        """Return address, distance and strides of the buffer, and of the array."""
        port = rows.operand.port
        core = compact_strides(port.shape, self.real.scalar.bytes)
        compact = [f.constant(I64, stride) for stride in core]
        distance = f.constant(I64, self.row_bytes(port))
        own = rows.start, rows.operand.outer, rows.operand.core
        return (rows.operand.buffer, distance, compact), own

    def note(
        self,
        f: FunctionBuilder,
        state: Value,
        turn: list[_OperandRows],
        flags: Value,
        count: Value,
    ) -> None:
        """Note each flagged row: where its outputs are, and its inputs."""
        inputs = len(self.program.inputs)
        record = Record.of(
            self.program.inputs, len(self.program.outputs), self.real.scalar.bytes
        )
        real = ~(f.constant(I64, -1) << count)  # not the padding behind the last row
        bits = f.variable(I64, flags.to(I64, "zext") & real)
        size = f.constant(I64, record.size)
        with f.forever() as flagged:
            flagged.leave(bits.get().equals(0))
            lane = f.count_trailing_zeros(bits.get())
            bits.set(bits.get() & (bits.get() - 1))
            at = f.call("@record", PTR, state, size)
            flagged.leave(at.equals(0))
            for k, rows in enumerate(turn[inputs:]):
                f.store(f.address(rows.start, lane * rows.operand.outer), at, k)
            for rows, offset in zip(turn[:inputs], record.inputs, strict=True):
                row_bytes = self.row_bytes(rows.operand.port)
                row = f.address(rows.at, lane * row_bytes)
                copy_bytes(f.address(at, offset), row, row_bytes)


def _record_function() -> FunctionBuilder:
    """Return @record, which makes room for bytes in the list of records of a state.

    It returns null where there is no memory.
    """
    f = FunctionBuilder("record", PTR, hints=["noinline", "cold"], state=PTR, bytes=I64)
    state, none = f["state"], f.label()
    used, room = STATE.load(state, "used"), STATE.load(state, "room")
    f.guard(used >= 0, none)
    wanted = used + f["bytes"]
    with f.when(wanted > room):
        realloc = STATE.load(state, "realloc")
        moved = f.call(realloc.text, PTR, STATE.load(state, "records"), wanted << 1)
        f.guard(moved.differs(0), none)
        STATE.store(moved, state, "records")
        STATE.store(wanted << 1, state, "room")
    STATE.store(wanted, state, "used")
    f.ret(f.address(STATE.load(state, "records"), used))
    f.start(none)
    STATE.store(-1, state, "used")
    f.ret(f.constant(PTR, 0))
    return f


def _copy_function(real: Type) -> FunctionBuilder:
    """Return @copy, which copies rows from one set of strides to another.

    Rows beyond the last of `count` repeat it, so that padding is made of the caller's
    own numbers. `d0` to `d2` are the lengths of a row's dimensions, `t0` to `t2` and
    `s0` to `s2` the strides of target and source [bytes].
    """
    numbers = ["rows", "count", "to_row", "from_row"]
    numbers += [f"{letter}{k}" for letter in "dts" for k in range(MAX_DIMENSIONS)]
    kinds = {"to": PTR, "source": PTR, **dict.fromkeys(numbers, I64)}
    f = FunctionBuilder("copy", hints=["noinline"], more=kinds)
    last = f["count"] - 1
    with f.loop(f["rows"]) as r:
        row = (r < last).select(r, last)
        to = f.address(f["to"], r * f["to_row"])
        source = f.address(f["source"], row * f["from_row"])
        _copy_dimension(f, 0, to, source, real)
    f.ret()
    return f


def _copy_dimension(
    f: FunctionBuilder, d: int, to: Value, source: Value, real: Type
) -> None:
    if d == MAX_DIMENSIONS:
        f.store(f.load(real, source), to)
        return
    with f.loop(f[f"d{d}"]) as k:
        onto = f.address(to, k * f[f"t{d}"])
        _copy_dimension(f, d + 1, onto, f.address(source, k * f[f"s{d}"]), real)


def _copy_rows(
    to: Rows,
    source: Rows,
    rows: Value,
    count: Value,
    shape: tuple[int, ...],
) -> None:
    """Call @copy.

    Args:
        to: Where they go.
        source: Where they lie.
        rows: Rows to write.
        count: Rows to read; the last is repeated.
        shape: Of a row.
    """
    f = rows.function
    lengths = [f.constant(I64, length) for length in shape]
    padded = [_padded(lengths, 1, f), _padded(to[2], 0, f), _padded(source[2], 0, f)]
    numbers = [rows, count, to[1], source[1], *padded[0], *padded[1], *padded[2]]
    f.call("@copy", VOID, to[0], source[0], *numbers)


def _padded(numbers: list[Value], filler: int, f: FunctionBuilder) -> list[Value]:
    return [f.constant(I64, filler)] * (MAX_DIMENSIONS - len(numbers)) + numbers


def _stream_function() -> FunctionBuilder:
    """Return @stream, which writes a whole block past the caches.

    What is larger than they are would only be fetched to be overwritten.
    """
    f = FunctionBuilder("stream", hints=["noinline"], to=PTR, source=PTR, bytes=I64)
    with f.loop(f["bytes"], step=STREAMED.bytes) as k:
        part = f.load(STREAMED, f.address(f["source"], k), align=16)
        to = f.address(f["to"], k)
        f.do(
            f"store {STREAMED.text} {part.text}, ptr {to.text}, "
            f"align {STREAMED.bytes}, !nontemporal !1"
        )
    f.ret()
    return f
