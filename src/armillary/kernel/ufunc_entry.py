"""The way into a block for batches: a function with the signature of NumPy's loops.

`@loop` honours every stride. Compact rows are used where they lie; others are copied
into buffers of a block's size and back, as is the incomplete block at the end. Its last
input is a state (`fallback`), in which it notes flagged rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from armillary.kernel.arguments import MAX_DIMENSIONS, Computation, compact_strides
from armillary.kernel.buffers import STREAM_FROM
from armillary.kernel.builder import FunctionBuilder, Value
from armillary.kernel.fallback import STATE, Record
from armillary.kernel.machine_type import I64, PTR, VOID, Type, bits_of_lanes
from armillary.kernel.memory import allocate, copy_bytes
from armillary.trace import Port

__all__ = ["ufunc_entry"]

STREAMED: Final = I64.wide(2)
"""What is written past the caches at once."""

Rows: TypeAlias = tuple[Value, Value, list[Value]]
"""Address of rows, distance between them and strides within them [bytes]."""


@dataclass(frozen=True, slots=True)
class _Operand:
    """An array that NumPy gave.

    Attributes:
        port: What it holds.
        base: The address of its first row.
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
    """The rows of an operand in one block.

    Attributes:
        operand: The operand.
        start: The address where they lie.
        direct: Whether @block works on them there.
        at: The address where it works on them.
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
    entry = _LoopEntry(program, real).function(scratch, has_tables=has_tables)
    return [_copy_function(real.scalar), _stream_function(), _record_function(), entry]


class _LoopEntry:
    """@loop under construction for one program."""

    def __init__(self, program: Computation, real: Type) -> None:
        self.program = program
        self.real = real
        # NumPy's PyUFuncGenericFunction(char **args, npy_intp *dimensions,
        # npy_intp *steps, void *data): dimensions[0] is the number of rows.
        self.f = f = FunctionBuilder(
            "loop", exported=True, arguments=PTR, dimensions=PTR, steps=PTR, unused=PTR
        )
        self.inputs = len(program.inputs)
        self.ports = [*program.inputs, *program.outputs]
        # The last input is one row of numbers that all rows share, a state.
        self.state = f.load(PTR, f["arguments"], self.inputs)
        self.lanes = f.constant(I64, real.lanes)

    def function(self, scratch: int, *, has_tables: bool) -> FunctionBuilder:
        """Return it; see `ufunc_entry`."""
        f, state = self.f, self.state
        end, failed = f.label(), f.label()
        rows = f.load(I64, f["dimensions"])
        f.guard(rows > 0, end)
        sizes = [self.row_bytes(port) * self.real.lanes for port in self.ports]
        malloc = STATE.load(state, "malloc")
        memory = allocate(f, [*sizes, scratch], malloc, failed=failed)
        *buffers, room = memory.parts
        more = [room, STATE.load(state, "tables")] if has_tables else [room]
        operands = self.operands(rows, buffers)
        # Whole blocks of compact rows need no buffers. What is left, or all rows where
        # an operand is not compact, goes block by block through those that it needs.
        done = self.compact_rows(operands, rows, more)
        with f.loop(rows, start=done, step=self.real.lanes) as row:
            left = rows - row
            is_full = left >= self.real.lanes
            count = is_full.select(self.lanes, left)
            block = [self.rows_of(operand, row, is_full) for operand in operands]
            for part in block[: self.inputs]:
                self.gather(part, row, count)
            flags = self.call_block(block, more)
            for part in block[self.inputs :]:
                self.scatter(part, count, is_full)
            with f.when(flags.differs(0), unlikely=True):
                self.note(block, flags, count)
        if any(operand.streamed for operand in operands):
            f.do("fence seq_cst")  # what went past the caches is there for everyone
        memory.release(STATE.load(state, "free"))
        f.jump(end)
        f.start(failed)
        STATE.store(-1, state, "used")  # `fallback` raises a MemoryError
        f.jump(end)
        f.start(end)
        f.ret()
        return f

    def row_bytes(self, port: Port) -> int:
        """Return the size of a compact row."""
        return port.size * self.real.scalar.bytes

    # what NumPy says

    def operands(self, rows: Value, buffers: list[Value]) -> list[_Operand]:
        """Return the operands, read from the arguments of @loop.

        `steps` has the distance between rows of each operand, then the strides within
        a row of each in turn. The state stands between inputs and outputs; all rows
        share it, and it has one stride within, which nobody reads.
        """
        f = self.f
        operands: list[_Operand] = []
        position = len(self.ports) + 1
        for k, (port, buffer) in enumerate(zip(self.ports, buffers, strict=True)):
            is_output = k >= self.inputs
            position += k == self.inputs  # the stride of the state
            base = f.load(PTR, f["arguments"], k + is_output)
            outer = f.load(I64, f["steps"], k + is_output)
            rank = len(port.shape)
            core = [f.load(I64, f["steps"], position + d) for d in range(rank)]
            position += rank
            compact = self.is_compact(port, outer, core)
            streamed = None
            if is_output:
                streamed = self.is_streamed(port, base, rows, compact)
            operands.append(
                _Operand(port, base, outer, core, buffer, compact, streamed)
            )
        return operands

    def is_compact(self, port: Port, outer: Value, core: list[Value]) -> Value:
        """Return whether rows are compact and follow each other."""
        truth = outer.equals(self.row_bytes(port))
        expected = compact_strides(port.shape, self.real.scalar.bytes)
        for stride, wanted, length in zip(core, expected, port.shape, strict=True):
            if length > 1:  # of a dimension of 1, NumPy may give any stride
                truth &= stride.equals(wanted)
        return truth

    def is_streamed(
        self, port: Port, base: Value, rows: Value, compact: Value
    ) -> Value | None:
        """Return whether an output is compact, aligned, and larger than the caches.

        None where a block is not a multiple of what is written at once.
        """
        if self.row_bytes(port) * self.real.lanes % STREAMED.bytes:
            return None
        is_large = rows * self.row_bytes(port) > STREAM_FROM
        # Stores past the caches fault on x86 where they are not aligned.
        misaligned = base.to(I64, "ptrtoint") & (STREAMED.bytes - 1)
        return is_large & misaligned.equals(0) & compact

    def compact_rows(
        self, operands: list[_Operand], rows: Value, more: list[Value]
    ) -> Value:
        """Compute all whole blocks in place, where every operand is compact.

        Returns:
            How many rows are done.
        """
        f = self.f
        done = f.variable(I64, 0)
        is_compact = rows >= self.real.lanes
        for operand in operands:
            is_compact &= operand.compact
            if operand.streamed is not None:  # goes through its buffer
                is_compact &= ~operand.streamed
        with f.when(is_compact):
            whole = rows & -self.real.lanes  # lanes are a power of two
            with f.loop(whole, step=self.real.lanes) as row:
                block: list[_OperandRows] = []
                for operand in operands:
                    offset = row * self.row_bytes(operand.port)
                    at = f.address(operand.base, offset)
                    block.append(_OperandRows(operand, at, operand.compact, at))
                flags = self.call_block(block, more)
                with f.when(flags.differs(0), unlikely=True):
                    self.note(block, flags, self.lanes)
            done.set(whole)
        return done.get()

    # one block of rows

    def call_block(self, block: list[_OperandRows], more: list[Value]) -> Value:
        """Call @block and return the lanes that it flags."""
        bits = bits_of_lanes(self.real.lanes)
        return self.f.call("@block", bits, *(part.at for part in block), *more)

    def rows_of(self, operand: _Operand, row: Value, is_full: Value) -> _OperandRows:
        """Return where the rows of a block are, and where @block works on them."""
        start = self.f.address(operand.base, row * operand.outer)
        direct = operand.compact & is_full
        if operand.streamed is not None:
            direct &= ~operand.streamed
        at = direct.select(start, operand.buffer)
        return _OperandRows(operand, start, direct, at)

    def gather(self, rows: _OperandRows, row: Value, count: Value) -> None:
        """Copy an input's rows into its buffer, unless they are used where they lie.

        A row that is broadcast to the whole batch is copied once.
        """
        operand = rows.operand
        is_there = rows.direct | (operand.outer.equals(0) & (row > 0))
        with self.f.when(~is_there):
            to, source = self.both_ways(rows)
            _copy_rows(to, source, self.lanes, count, operand.port.shape)

    def scatter(self, rows: _OperandRows, count: Value, is_full: Value) -> None:
        """Copy an output's rows from its buffer, unless they were made in place."""
        f, operand = self.f, rows.operand
        with f.when(~rows.direct):
            buffer, target = self.both_ways(rows)
            if operand.streamed is None:
                _copy_rows(target, buffer, count, count, operand.port.shape)
                return
            with f.when(operand.streamed & is_full):
                size = f.constant(I64, self.row_bytes(operand.port) * self.real.lanes)
                f.call("@stream", VOID, rows.start, operand.buffer, size)
            with f.otherwise():
                _copy_rows(target, buffer, count, count, operand.port.shape)

    def both_ways(self, rows: _OperandRows) -> tuple[Rows, Rows]:
        """Return address, distance and strides of the buffer, and of the array."""
        f, operand = self.f, rows.operand
        core = compact_strides(operand.port.shape, self.real.scalar.bytes)
        compact = [f.constant(I64, stride) for stride in core]
        distance = f.constant(I64, self.row_bytes(operand.port))
        array = rows.start, operand.outer, operand.core
        return (operand.buffer, distance, compact), array

    def note(self, block: list[_OperandRows], flags: Value, count: Value) -> None:
        """Note each flagged row in the state: where its outputs are, and its inputs.

        Inputs are copied: buffers are used again for the next block.
        """
        f, program = self.f, self.program
        record = Record.of(program.inputs, len(program.outputs), self.real.scalar.bytes)
        # Bits of rows only, not of the padding behind the last one; count < 64.
        real = ~(f.constant(I64, -1) << count)
        bits = f.variable(I64, flags.to(I64, "zext") & real)
        size = f.constant(I64, record.size)
        with f.forever() as flagged:
            flagged.leave(bits.get().equals(0))
            lane = f.count_trailing_zeros(bits.get())
            bits.set(bits.get() & (bits.get() - 1))  # without its lowest bit
            at = f.call("@record", PTR, self.state, size)
            flagged.leave(at.equals(0))
            for k, rows in enumerate(block[self.inputs :]):
                f.store(f.address(rows.start, lane * rows.operand.outer), at, k)
            inputs = block[: self.inputs]
            for rows, offset in zip(inputs, record.inputs, strict=True):
                row_bytes = self.row_bytes(rows.operand.port)
                row = f.address(rows.at, lane * row_bytes)
                copy_bytes(f.address(at, offset), row, row_bytes)


def _record_function() -> FunctionBuilder:
    """Return @record, which makes room for bytes in the list of records of a state.

    It returns null where there is no memory.
    """
    f = FunctionBuilder("record", PTR, hints=["noinline", "cold"], state=PTR, bytes=I64)
    state, none = f["state"], f.label()
    # -1 used bytes say that memory ran out before; then nothing is noted any more.
    used, room = STATE.load(state, "used"), STATE.load(state, "room")
    f.guard(used >= 0, none)
    wanted = used + f["bytes"]
    with f.when(wanted > room):  # twice the room, so that few calls move the list
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
    # One function for arrays of any rank up to the greatest: shorter rows have
    # dimensions of length 1 in front, see `_copy_rows`.
    numbers = ["rows", "count", "to_row", "from_row"]
    numbers += [f"{letter}{k}" for letter in "dts" for k in range(MAX_DIMENSIONS)]
    kinds = {"to": PTR, "source": PTR, **dict.fromkeys(numbers, I64)}
    f = FunctionBuilder("copy", hints=["noinline"], more=kinds)
    last = f["count"] - 1
    with f.loop(f["rows"]) as r:
        # The last row again, so that padding lanes compute what a real row does: they
        # do not divide by zero, and take no further iterations.
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
        to: The rows that are written.
        source: The rows that are read.
        rows: Rows to write.
        count: Rows to read; the last is repeated.
        shape: The shape of a row.
    """
    f = rows.function
    # A dimension of length 1 has the stride 0, which is never used.
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
        # 16 bytes at once: any processor of 64 bits has such stores, and four of them
        # fill a line of the cache.
        part = f.load(STREAMED, f.address(f["source"], k), align=16)
        to = f.address(f["to"], k)
        f.do(
            f"store {STREAMED.text} {part.text}, ptr {to.text}, "
            f"align {STREAMED.bytes}, !nontemporal !1"
        )
    f.ret()
    return f
