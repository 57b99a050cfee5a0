"""The code of an `Each` that runs several records at once, for one row after another.

Columns that its fields lead to lie by numbers, not by entries: number k of entry p is
at k * room + p. What some records read in a row, one behind the other, is a vector.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

import msgspec

from armillary.kernel.builder import FunctionBuilder, Value
from armillary.kernel.emit import emit_values
from armillary.kernel.machine_type import I64, Type
from armillary.kernel.memory import Struct
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.record_code import chosen_position
from armillary.kernel.stages import Each, several_in
from armillary.kernel.tables import Field, Table
from armillary.trace import Port, Program

__all__ = [
    "RECORDS",
    "SeveralRecords",
    "entries_together",
    "read_entries",
    "write_entries",
]

RECORDS: Final = 8
"""How many records run at once."""


def entries_together(pipeline: Pipeline) -> dict[str, int]:
    """Return the columns whose numbers lie together, with room for how many entries."""
    every = several_in(pipeline.stages)
    names = {pipeline.table(table).by_name[name].of for table, name in every}
    # Vectors of the last records reach beyond these.
    return {
        name: -(-pipeline.columns[name][0] // RECORDS) * RECORDS + RECORDS
        for name in sorted(names)
    }


def read_entries(
    f: FunctionBuilder, scalar: Type, row: Value, port: Port, column: Value, room: int
) -> None:
    """Copy an input to a column whose numbers lie together."""
    count, size = port.shape[0], math.prod(port.shape[1:])
    with f.loop(count) as p, f.loop(size) as k:
        number = f.load(scalar, row, p * size + k)
        f.store(number, column, k * room + p)


def write_entries(
    f: FunctionBuilder, scalar: Type, column: Value, port: Port, row: Value, room: int
) -> None:
    """Copy such a column to an output."""
    count, size = port.shape[0], math.prod(port.shape[1:])
    with f.loop(count) as p, f.loop(size) as k:
        number = f.load(scalar, column, k * room + p)
        f.store(number, row, p * size + k)


class SeveralRecords(msgspec.Struct, frozen=True, eq=False):
    """The loop over the records of a row, several at once.

    Attributes:
        f: The function.
        scalar: The type of numbers.
        stage: The region.
        table: Its table.
        records: Where its records lie, and how many there are.
        columns: The memory of columns.
        rooms: As `entries_together` returns them.
        counts: How many entries columns have, that fields lead to.
    """

    f: FunctionBuilder
    scalar: Type
    stage: Each
    table: Table
    records: tuple[Value, Value]
    columns: Mapping[str, Value]
    rooms: Mapping[str, int]
    counts: Mapping[str, int]

    def write(self) -> Value | None:
        """Write the loop; return the flags of all records, if there may be any."""
        f, (_, count) = self.f, self.records
        found = f.variable(I64, 0)
        can_flag = False
        with f.loop(count, step=RECORDS) as start:
            left = (count - start).splat(RECORDS)
            steps = ", ".join(f"i64 {k}" for k in range(RECORDS))
            kind = left.type
            lanes = f.emit(f"add {kind.text} zeroinitializer, <{steps}>", kind)
            counted = lanes < left
            rows = self._records(start)
            for program in self.stage.stages:
                assert isinstance(program, Program)
                flagged = self._program(program, rows, counted)
                if flagged is not None:
                    can_flag = True
                    found.set(found.get() | flagged.mask())
        return found.get() if can_flag else None

    def _records(self, start: Value) -> list[Value]:
        """Return the record of each lane; lanes behind the last one repeat it."""
        records, count = self.records
        size = self._layout.bytes
        found: list[Value] = []
        for k in range(RECORDS):
            at = start + k
            at = (at < count).select(at, count - 1)
            found.append(self.f.address(records, at * size))
        return found

    @property
    def _layout(self) -> Struct:
        return self.table.layout(self.scalar.bits)

    def _program(
        self, program: Program, rows: Sequence[Value], counted: Value
    ) -> Value | None:
        f, kind = self.f, self.scalar.wide(RECORDS)
        fields = self.table.by_name
        inputs: list[Value] = []
        for port in program.inputs:
            field = fields.get(port.name)
            if field is None:
                column = self.columns[port.name]
                numbers = (f.load(self.scalar, column, k) for k in range(port.size))
                inputs += [number.splat(RECORDS) for number in numbers]
            elif field.name in self.stage.several:
                places = self._places(field, rows[0], port.size)
                inputs += [f.load(kind, at, align=self.scalar.bytes) for at in places]
            else:
                inputs += self._gathered(field, rows, port.size)
        results = iter(emit_values(f, program, kind, inputs))
        flagged = f.taken_flags()
        for port in program.outputs:
            places = self._places(fields[port.name], rows[0], port.size)
            for at, value in zip(places, islice(results, port.size), strict=True):
                before = f.load(kind, at, align=self.scalar.bytes)
                kept = counted.select(value, before)
                f.store(kept, at, align=self.scalar.bytes)
        return None if flagged is None else flagged & counted

    def _places(self, field: Field, record: Value, size: int) -> Iterator[Value]:
        """Yield where the numbers of the entry of a record lie."""
        position = self._layout.load(record, field.name).to(I64, "zext")
        start = self.f.element(self.columns[field.of], self.scalar, position)
        for k in range(size):
            yield self.f.element(start, self.scalar, k * self.rooms[field.of])

    def _gathered(
        self, field: Field, rows: Sequence[Value], size: int
    ) -> Iterator[Value]:
        """Yield numbers of fields of each record, or of entries, a vector for each."""
        f, layout = self.f, self._layout
        starts: list[Value] = []
        step = 1
        for record in rows:
            if field.kind == "real":
                starts.append(layout.address(record, field.name))
                continue
            position = layout.load(record, field.name).to(I64, "zext")
            if field.by:
                by = self.table.by_name[field.by]
                at = layout.load(record, by.name).to(I64, "zext")
                number = f.load(self.scalar, self.columns[by.of], at)
                position = chosen_position(f, number, position, self.counts[field.of])
            if field.of in self.rooms:
                step = self.rooms[field.of]
            else:
                position = position * size
            starts.append(f.element(self.columns[field.of], self.scalar, position))
        kind = self.scalar.wide(RECORDS)
        for k in range(size):
            value = f.constant(kind, 0.0)
            for lane, start in enumerate(starts):
                number = f.load(self.scalar, start, k * step)
                text = f"insertelement {kind.text} {value.text}, "
                text += f"{self.scalar.text} {number.text}, i32 {lane}"
                value = f.emit(text, kind)
            yield value
