"""The code of a pipeline: regions as loops and branches around the code of programs.

@block keeps a vector for each number of a column, a lane for each row. Short programs
stand where they are used; long ones are functions. A region that leaves lanes alone
computes in all of them, and puts back what was there before.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Final, TypeAlias

from armillary.kernel.block_rows import (
    ALIGNMENT,
    aligned,
    read_rows,
    repeated_lanes,
    write_rows,
)
from armillary.kernel.builder import EndlessLoop, FunctionBuilder, Value
from armillary.kernel.dense_code import dense_function, working_numbers
from armillary.kernel.emit import emit_columns, emit_values
from armillary.kernel.farthest_code import PointRecords
from armillary.kernel.lane_region_code import lane_region
from armillary.kernel.machine_type import I1, I64, PTR, VOID, Type, bits_of_lanes
from armillary.kernel.memory import Struct, copy_bytes
from armillary.kernel.near_code import near_records
from armillary.kernel.permuted_lanes import can_permute
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_columns import (
    IN_REGISTERS,
    INLINE,
    read_by_programs,
    with_addresses,
    written_by,
    written_elsewhere,
)
from armillary.kernel.record_code import chosen_position, fill_fields
from armillary.kernel.several_records_code import (
    SeveralRecords,
    entries_together,
    read_entries,
    write_entries,
)
from armillary.kernel.stages import (
    Abreast,
    At,
    Call,
    Dense,
    Each,
    Farthest,
    LeastWidth,
    NearestPoint,
    Stage,
    Subdivide,
    When,
    While,
    dense_in,
)
from armillary.kernel.tables import Field, Table
from armillary.trace import Program

__all__ = ["TABLE", "column_code", "pipeline_code"]

TABLE: Final = Struct.of(records=(PTR, 1), count=(I64, 1))
"""What the machine code of a pipeline reads of a table; they follow each other."""


def pipeline_code(
    pipeline: Pipeline, real: Type, *, dispatcher: str = "", features: str = ""
) -> tuple[list[FunctionBuilder], int]:
    """Return @block(ptr in..., ptr out..., ptr scratch, ptr tables), and its scratch.

    Args:
        pipeline: What it computes, behind what it calls; its scratch is in bytes.
        real: The type of a vector, with a lane for each row.
        dispatcher: The function that runs what a `Call` chooses, where records have
            numbers in place of addresses: those are its last arguments.
        features: Of the machine, as LLVM lists them.
    """
    code = _PipelineCode(
        pipeline, real, "block", dict.fromkeys(("scratch", "tables"), PTR)
    )
    code.dispatcher = dispatcher
    code.permutes = can_permute(real, features)
    code.read_rows()
    code.compare_rows()
    code.stages(pipeline.stages, None)
    code.write_rows()
    code.f.ret(code.flags.get())
    return [*code.called_functions, code.f], code.scratch


def column_code(pipeline: Pipeline, real: Type) -> list[FunctionBuilder]:
    """Return @columns(ptr in..., out..., given..., tables, active) of a pipeline.

    It is what a `Call` calls: its inputs and outputs are columns, `active` has a bit
    for each lane that counts, and scratch is on the stack. It stands behind what it
    calls.
    """
    given = dict.fromkeys(map(_given, range(len(pipeline.given))), PTR)
    more = {**given, "tables": PTR, "active": bits_of_lanes(real.lanes)}
    code = _PipelineCode(pipeline, real, "columns", more)
    f = code.f
    for k, port in enumerate(pipeline.inputs):
        code.copy(code.columns[port.name], f[f"in{k}"], port.size)
    code.compare_rows()
    code.stages(pipeline.stages, f["active"].to(I1.wide(real.lanes), "bitcast"))
    for k, port in enumerate(pipeline.outputs):
        code.copy(f[f"out{k}"], code.columns[port.name], port.size)
    f.ret(code.flags.get() & f["active"])
    return [*code.called_functions, f]


def _given(number: int) -> str:
    """Return the name of the parameter for a record that callers give."""
    return f"given{number}"


Mask: TypeAlias = Value | None
"""Lanes that count; None for all of them."""


class _PipelineCode:
    """@block or @columns under construction."""

    def __init__(
        self, pipeline: Pipeline, real: Type, name: str, more: Mapping[str, Type]
    ) -> None:
        self.pipeline = pipeline
        self.real = real
        self.scalar = real.scalar
        self.bits = bits_of_lanes(real.lanes)
        names = [f"in{k}" for k in range(len(pipeline.inputs))]
        names += [f"out{k}" for k in range(len(pipeline.outputs))]
        pointers = dict.fromkeys(names, PTR)
        # @columns is called through its address, @block by the entries of its module.
        is_exported = name != "block"
        self.f = f = FunctionBuilder(
            name, self.bits, exported=is_exported, more={**pointers, **more}
        )
        # Lanes that any program flagged; all their stages are computed again.
        self.flags = f.variable(self.bits, 0)
        self.called_functions: list[FunctionBuilder] = []
        self.dispatcher = ""
        self.permutes = False
        self.repeated = f.constant(I64, 0)
        self.scratch = 0
        self.programs: dict[Program, tuple[str, int]] = {}  # that are functions
        self.dense_names: dict[tuple[Dense, tuple[int, ...]], str] = {}
        self.fields: dict[str, tuple[Field, Struct, Value]] = {}
        # Regions around that end with the first row that ends, see `Each.together`.
        self.ending: list[tuple[EndlessLoop, str, Mask]] = []
        # Memory on the stack that is only loaded and stored at fixed places becomes
        # registers; other code can reach only what has an address.
        self.addressed = with_addresses(pipeline)
        # With one lane for rows, records may be in lanes.
        is_row = real.lanes == 1 and name == "block"
        self.rooms = entries_together(pipeline) if is_row else {}
        self.columns = self.memories(pipeline.columns)
        # What stages of linear algebra work in, one after the other.
        shape_of = pipeline.shape_of
        numbers = [
            working_numbers(stage, [math.prod(shape_of(x)) for x in stage.inputs])
            for stage in dense_in(pipeline.stages)
        ]
        self.working = self.memory(-(-max(numbers, default=0) // real.lanes))

    def compare_rows(self) -> None:
        """Note rows with the inputs of the row before, where they come in turn."""
        if self.pipeline.has_row_by_row:
            given = {self.columns[x.name]: x.size for x in self.pipeline.inputs}
            self.repeated = repeated_lanes(self.f, self.real, given)

    def read_rows(self) -> None:
        """Turn the rows of the inputs into columns."""
        f, columns = self.f, self.columns
        inputs = {f"in{k}": port for k, port in enumerate(self.pipeline.inputs)}
        for name, port in inputs.items():
            if port.name in self.rooms:
                room, column = self.rooms[port.name], columns[port.name]
                read_entries(f, self.scalar, f[name], port, column, room)
        rows = {n: x for n, x in inputs.items() if x.name not in self.rooms}
        read_rows(f, self.real, rows, columns)

    def write_rows(self) -> None:
        """Turn columns into the rows of the outputs."""
        f, columns = self.f, self.columns
        outputs = {f"out{k}": port for k, port in enumerate(self.pipeline.outputs)}
        for name, port in outputs.items():
            if port.name in self.rooms:
                room, column = self.rooms[port.name], columns[port.name]
                write_entries(f, self.scalar, column, port, f[name], room)
        rows = {n: x for n, x in outputs.items() if x.name not in self.rooms}
        write_rows(f, self.real, rows, columns)

    def memories(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Value]:
        """Return memory for columns."""
        sizes = {
            name: self.rooms[name] * math.prod(shape[1:])
            if name in self.rooms
            else math.prod(shape)
            for name, shape in shapes.items()
        }
        return {
            name: self.memory(
                size, in_registers=size <= IN_REGISTERS and name not in self.addressed
            )
            for name, size in sizes.items()
        }

    def memory(self, size: int, *, in_registers: bool = False) -> Value:
        """Return memory for a vector for each of some numbers."""
        room = size * self.real.bytes
        # @columns has no scratch: it reserves all on the stack.
        if in_registers or "scratch" not in self.f.parameters:
            return self.f.reserve(room, ALIGNMENT)
        # Each part starts at a multiple of a line of the cache.
        start = self.scratch
        self.scratch += -(-room // ALIGNMENT) * ALIGNMENT
        return self.f.address(self.f["scratch"], start)

    def load(self, base: Value, k: int) -> Value:
        return self.f.load(self.real, base, k, align=self.align)

    def store(self, value: Value, base: Value, k: int) -> None:
        self.f.store(value, base, k, align=self.align)

    def copy(self, to: Value, source: Value, size: int) -> None:
        for k in range(size):
            self.store(self.load(source, k), to, k)

    @property
    def align(self) -> int:
        """Return what the address of a vector is a multiple of [bytes]."""
        return aligned(self.real)

    def stages(self, stages: Sequence[Stage], active: Mask) -> None:
        """Write stages; lanes that are not active may compute anything."""
        for stage in stages:
            match stage:
                case Program():
                    self.program(stage, active)
                    self.leave(port.name for port in stage.outputs)
                case Call():
                    self.call(stage, active)
                case Farthest():
                    self.farthest(stage)
                case Dense():
                    self.dense(stage, active)
                case Each():
                    self.each(stage, active)
                case At():
                    self.at(stage, active)
                case While():
                    self.while_(stage, active)
                case Abreast() | Subdivide() | NearestPoint() | LeastWidth():
                    lane_region(self, stage, active)
                case When():
                    self.when(stage, active)

    def when(self, stage: When, active: Mask) -> None:
        mask = self.positive(stage.condition, active)
        with self.f.when(self.any(mask)):
            if stage.together:
                self.stages(stage.stages, active)
            else:
                self.region(stage.stages, mask)

    def positive(self, name: str, active: Mask) -> Value:
        """Return the lanes in which a column is above 0."""
        mask = self.load(self.columns[name], 0) > 0.0
        return mask if active is None else mask & active

    def any(self, mask: Value) -> Value:
        """Return whether any lane of a mask is set."""
        return mask if mask.type.lanes == 1 else mask.mask().differs(0)

    def region(self, stages: Sequence[Stage], mask: Value) -> None:
        """Write stages after which lanes outside of a mask have what they had."""
        # A single lane runs the region or does not: there is nothing to put back.
        if self.real.lanes == 1:
            self.stages(stages, None)
            return
        # Columns that nobody else writes need no care: no reader sees what lanes
        # outside have in them. Fields in lanes have what was read from the row.
        names = written_elsewhere(self.pipeline, stages)
        in_lanes = self.columns.keys() - self.pipeline.columns.keys()
        written = [
            (self.columns[name], k)
            for name in (*names, *sorted(in_lanes & written_by(stages)))
            for k in range(math.prod(self.pipeline.shape_of(name)))
        ]
        before = [self.load(base, k) for base, k in written]
        self.stages(stages, mask)
        for (base, k), value in zip(written, before, strict=True):
            self.store(mask.select(self.load(base, k), value), base, k)

    def while_(self, stage: While, active: Mask) -> None:
        f = self.f
        count = f.variable(I64, 0)
        with f.forever() as loop:
            # Lanes whose column is still above 0 when the limit is reached keep it:
            # whoever reads it sees that the loop did not end by itself.
            loop.leave(count.get() >= stage.limit)
            mask = self.positive(stage.condition, active)
            loop.leave(~self.any(mask))
            self.region(stage.stages, mask)
            count.set(count.get() + 1)

    def each(self, stage: Each, active: Mask) -> None:
        f, table = self.f, self.pipeline.table(stage.table)
        layout = table.layout(self.real.bits)
        records, end = self.records(table)
        # From the first record to the last, or those of a range of the record around.
        first = f.constant(I64, 0)
        if stage.within:
            first, count = self.range(stage.within)
            end = first + count
        around = self.fields
        if stage.several and self.rooms:
            counts = {
                one.of: self.pipeline.columns[one.of][0]
                for one in table.fields
                if one.by
            }
            given = stage, table, (records, end), self.columns, self.rooms, counts
            flagged = SeveralRecords(f, self.scalar, *given).write()
            if flagged is not None:
                self.flag(flagged.differs(0).packed(), active)
            return
        # Programs find fields by name, before columns. One record needs no loop.
        if table.is_single and not (stage.within or stage.active or stage.near):
            self.fields = around | {x.name: (x, layout, records) for x in table.fields}
            self.stages(stage.stages, active)
            self.fields = around
            return
        with self.unless_ended(stage, active), self.numbers(stage, first, end) as found:
            k, loop = found
            record = f.address(records, k * layout.bytes)
            self.fields = around | {x.name: (x, layout, record) for x in table.fields}
            if stage.together:
                self.ending.append((loop, stage.active, active))
                self.stages(stage.stages, active)
                self.ending.pop()
            elif stage.active:
                mask = self.positive(stage.active, active)
                loop.leave(~self.any(mask))
                self.region(stage.stages, mask)
            else:
                self.stages(stage.stages, active)
        self.fields = around
        if stage.together:
            self.leave([stage.active])

    @contextmanager
    def unless_ended(self, stage: Each, active: Mask) -> Generator[None]:
        """Run what follows unless a row has ended that would end the region at once."""
        # Inside of such a region none has.
        if not stage.together or self.ending:
            yield
            return
        with self.f.when(~self.any(self.ended(stage.active, active))):
            yield

    def ended(self, name: str, active: Mask) -> Value:
        """Return the lanes that a region leaves alone."""
        going = self.load(self.columns[name], 0) > 0.0
        return ~going if active is None else ~going & active

    @contextmanager
    def numbers(
        self, stage: Each, first: Value, end: Value
    ) -> Generator[tuple[Value, EndlessLoop]]:
        """Run what follows for the position of each record, in a loop."""
        f = self.f
        if stage.near is not None:
            low, high = (self.columns[x] for x in (stage.near.low, stage.near.high))
            box = [self.load(x, j) for x in (low, high) for j in range(3)]
            table = self.pipeline.table(stage.near.table)
            layout = table.layout(self.real.bits)
            start, _ = self.records(table)
            begin, count = self.range(stage.near.within)
            boxes = f.address(start, begin * layout.bytes), count, layout
            with near_records(f, self.real, box, boxes, (first, end)) as found:
                yield found
            return
        k = f.variable(I64, first)
        with f.forever() as loop:
            loop.leave(k.get() >= end)
            yield k.get(), loop
            k.set(k.get() + 1)

    def range(self, span: str) -> tuple[Value, Value]:
        """Return the first record and the count of a span of a record around."""
        _, outer, record = self.fields[span]
        first, count = (outer.load(record, span, k).to(I64, "zext") for k in range(2))
        return first, count

    def leave(self, written: Iterable[str]) -> None:
        """Leave the region around, where it ends with the first row that ends.

        written: What has been written: only then a row may have ended.
        """
        if not self.ending:
            return
        loop, name, active = self.ending[-1]
        if name in written:
            loop.leave(self.any(self.ended(name, active)))

    def records(self, table: Table) -> tuple[Value, Value]:
        """Return where the records of a table lie, and how many there are."""
        if table.name in self.pipeline.given:
            given = self.pipeline.given.index(table.name)
            return self.f[_given(given)], self.f.constant(I64, 1)
        number = self.pipeline.tables.index(table)
        # One entry of TABLE for each table of the pipeline, in order.
        entry = self.f.address(self.f["tables"], number * TABLE.bytes)
        return TABLE.load(entry, "records"), TABLE.load(entry, "count")

    def record(self, name: str) -> Value:
        """Return where the record lies whose position a field holds."""
        field, layout, record = self.fields[name]
        table = self.pipeline.table(field.of)
        records, _ = self.records(table)
        size = table.layout(self.real.bits).bytes
        # Positions were checked when the table was packed.
        position = layout.load(record, name).to(I64, "zext")
        return self.f.address(records, position * size)

    def at(self, stage: At, active: Mask) -> None:
        """Write stages; the fields that rows choose are columns meanwhile."""
        around, columns = self.fields, self.columns
        table = self.pipeline.table(stage.table)
        read = read_by_programs(stage.stages)
        fields = {
            field.name: field.shape for field in table.fields if field.name in read
        }
        # Each lane has another record: its fields are columns meanwhile, made by a
        # transpose, and those that no program reads are left out.
        chosen = self.memories(fields)
        at = self.load(columns[stage.record], 0)
        fill_fields(self.f, self.real, table, self.records(table), at, chosen)
        self.fields = {name: of for name, of in around.items() if name not in chosen}
        self.columns = {**columns, **chosen}
        self.stages(stage.stages, active)
        self.fields, self.columns = around, columns

    def program(self, program: Program, active: Mask) -> None:
        if len(program.instructions) <= INLINE:
            flagged = self.inlined(program, active)
        else:
            flagged = self.called(program, active)
        if flagged is not None:
            self.flag(flagged, active)

    def flag(self, flagged: Value, active: Mask) -> None:
        """Note lanes that are computed again; of those only that are active."""
        if active is not None:
            flagged &= active.packed()
        self.flags.set(self.flags.get() | flagged)

    def call(self, stage: Call, active: Mask) -> None:
        """Call the code that a record chooses."""
        f, (_, layout, record) = self.f, self.fields[stage.code]
        shape_of = self.pipeline.shape_of
        inputs = [self.pointer(x, math.prod(shape_of(x))) for x in stage.inputs]
        outputs = [self.columns[port.name] for port in stage.outputs]
        counted = f.constant(self.bits, -1) if active is None else active.packed()
        given = [self.record(name) for name in stage.given]
        shared = (*inputs, *outputs, *given)
        if self.dispatcher:
            start = layout.address(record, stage.code)
            numbers = (f.load(I64, start, k) for k in range(2))
            name, arguments = self.dispatcher, (*shared, counted, *numbers)
        else:
            code, tables = (layout.load(record, stage.code, k) for k in range(2))
            name, arguments = code.text, (*shared, tables, counted)
        self.flag(f.call(name, self.bits, *arguments), active)

    def farthest(self, stage: Farthest) -> None:
        """Look for the farthest point of a table."""
        table = self.pipeline.table(stage.table)
        records, bits = self.records(table), self.real.bits
        points = PointRecords.of(self.f, records, table, bits, stage.points)
        direction = [self.load(self.columns[stage.direction], k) for k in range(3)]
        for k, number in enumerate(points.farthest(direction)):
            self.store(number, self.columns[stage.output.name], k)

    def dense(self, stage: Dense, active: Mask) -> None:
        """Call the function of linear algebra, for one lane after the other."""
        f, lanes = self.f, self.real.lanes
        if lanes == 1:
            self.dense_lane(stage, f.constant(I64, 0))
            return
        counted = f.constant(self.bits, -1) if active is None else active.packed()
        bits = f.variable(I64, counted.to(I64, "zext") & ((1 << lanes) - 1))
        with f.forever() as each_lane:
            each_lane.leave(bits.get().equals(0))
            self.dense_lane(stage, f.count_trailing_zeros(bits.get()))
            bits.set(bits.get() & (bits.get() - 1))

    def dense_lane(self, stage: Dense, lane: Value) -> None:
        f, lanes = self.f, self.real.lanes
        inputs: list[Value] = []
        steps: list[int] = []
        for name in stage.inputs:
            is_number = name in self.fields and self.fields[name][0].kind == "real"
            if is_number:  # the same for all rows
                _, layout, record = self.fields[name]
                inputs.append(layout.address(record, name))
            else:
                start = self.pointer(name, math.prod(self.pipeline.shape_of(name)))
                inputs.append(f.element(start, self.scalar, lane))
            steps.append(1 if is_number else lanes)
        outputs = [
            f.element(self.columns[port.name], self.scalar, lane)
            for port in stage.outputs
        ]
        records, count, layout = f.constant(PTR, 0), f.constant(I64, 0), None
        if stage.table:
            table = self.pipeline.table(stage.table)
            layout = table.layout(self.real.bits)
            records, count = self.records(table)
        sizes = [math.prod(self.pipeline.shape_of(name)) for name in stage.inputs]
        # Stages that do the same on the same columns share a function.
        key = stage, tuple(steps)
        if key not in self.dense_names:
            name = self.dense_names[key] = f"dense{len(self.dense_names)}"
            made = dense_function(
                name, stage, self.scalar, sizes, (steps, lanes), layout
            )
            self.called_functions.append(made)
        arguments = (*inputs, *outputs, self.working, records, count)
        f.call(f"@{self.dense_names[key]}", VOID, *arguments)

    def inlined(self, program: Program, active: Mask) -> Value | None:
        """Write a program here; return the lanes that it flags, if it flags any."""
        inputs = [
            value
            for port in program.inputs
            for value in self.values(port.name, port.size)
        ]
        results = iter(emit_values(self.f, program, self.real, inputs))
        flagged = self.f.taken_flags()
        for port in program.outputs:
            self.write(port.name, list(islice(results, port.size)), active)
        return None if flagged is None else flagged.packed()

    def values(self, name: str, size: int) -> Iterator[Value]:
        """Yield the numbers that a program reads: those of a column or a field."""
        if name not in self.fields:
            for k in range(size):
                yield self.load(self.columns[name], k)
            return
        field, layout, record = self.fields[name]
        if field.kind == "index":
            base, step = self.entry(field, layout, record, size)
            for k in range(size):
                yield self.load(base, k * step)
            return
        for k in range(size):
            number = layout.load(record, name, k)
            if field.kind in {"span", "record"}:
                number = number.to(self.scalar, "sitofp")
            yield number.splat(self.real.lanes)

    def entry(
        self, field: Field, layout: Struct, record: Value, size: int
    ) -> tuple[Value, int]:
        """Return where the entry of a column lies that an index points to.

        The second result is how far apart its numbers are.
        """
        # Indices were checked when the table was packed.
        position = layout.load(record, field.name).to(I64, "zext")
        if field.by:
            number, _ = self.entry(self.fields[field.by][0], layout, record, 1)
            count = self.pipeline.columns[field.of][0]
            number = self.load(number, 0)
            position = chosen_position(self.f, number, position, count)
        step = self.rooms.get(field.of, 1)
        start = position if field.of in self.rooms else position * size
        return self.f.element(self.columns[field.of], self.real, start), step

    def called(self, program: Program, active: Mask) -> Value:
        """Call a program; its outputs are copied, since it may read what it writes."""
        # Programs that stand in several places are one function.
        if program not in self.programs:
            name = f"program{len(self.programs)}"
            functions, scratch_bytes = emit_columns(name, program, self.real)
            self.programs[program] = name, scratch_bytes
            self.called_functions += functions
        name, scratch_bytes = self.programs[program]
        inputs = [self.pointer(port.name, port.size) for port in program.inputs]
        # New memory, of which the region around it knows nothing: it is copied to
        # columns behind the call.
        outputs = [self.memory(port.size) for port in program.outputs]
        scratch = self.memory(scratch_bytes // self.real.bytes)
        flagged = self.f.call(f"@{name}", self.bits, *inputs, *outputs, scratch)
        for port, output in zip(program.outputs, outputs, strict=True):
            if port.name in self.fields:
                values = [self.load(output, k) for k in range(port.size)]
                self.write(port.name, values, active)
            else:
                size = port.size * self.real.bytes
                copy_bytes(self.columns[port.name], output, size)
        return flagged

    def write(self, name: str, values: Sequence[Value], active: Mask) -> None:
        """Write what a program returns: a column, or the entry that an index has.

        Columns are put back by the region around them, entries are not.
        """
        if name not in self.fields:
            # The region around it puts back what lanes outside of its mask had.
            target, step, active = self.columns[name], 1, None
        else:
            target, step = self.entry(*self.fields[name], len(values))
        for k, value in enumerate(values):
            if active is None or self.real.lanes == 1:
                self.store(value, target, k * step)
            else:
                self.store(active.select(value, self.load(target, k)), target, k)

    def pointer(self, name: str, size: int) -> Value:
        """Return where a program finds what it reads."""
        if name not in self.fields:
            return self.columns[name]
        field, layout, record = self.fields[name]
        if field.kind == "index":
            start, step = self.entry(field, layout, record, size)
            if step == 1 or size == 1:
                return start
        shared = self.memory(size)
        for k, value in enumerate(self.values(name, size)):
            self.store(value, shared, k)
        return shared
