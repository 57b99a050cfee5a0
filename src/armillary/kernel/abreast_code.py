"""The code of an `Abreast`: records of one row, or of several, each in a lane."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

import msgspec

from armillary.kernel.block_rows import aligned
from armillary.kernel.builder import FunctionBuilder, Operand, Value
from armillary.kernel.machine_type import I64, Type
from armillary.kernel.permuted_lanes import permuted
from armillary.kernel.pipeline_columns import read_by_programs, written_by_programs
from armillary.kernel.stages import Abreast
from armillary.kernel.tables import Field, Table

__all__ = ["AbreastCode", "fields_in_lanes", "picked", "spread"]

UNROLLED = 8
"""Numbers that one turn of a loop copies."""


def fields_in_lanes(stage: Abreast, table: Table) -> dict[str, Field]:
    """Return the fields of records that stages read or write."""
    used = read_by_programs(stage.stages) | written_by_programs(stage.stages)
    return {one.name: one for one in table.fields if one.name in used}


def spread(
    f: FunctionBuilder, real: Type, column: Value, lane: Value, to: Value, size: int
) -> None:
    """Copy what a column has in one lane to all lanes of another."""
    lanes = real.lanes

    def copy(k: Operand) -> None:
        number = f.load(real.scalar, column, lane + k * lanes)
        f.store(number.splat(lanes), f.element(to, real, k), align=aligned(real))

    _for_each(f, size, copy)


def picked(
    f: FunctionBuilder, real: Type, column: Value, order: Value, to: Value, size: int
) -> None:
    """Copy what a column has in lanes, which a vector tells, to those of another."""
    align = aligned(real)

    def copy(k: Operand) -> None:
        numbers = f.load(real, column, k, align=align)
        f.store(permuted(numbers, order), f.element(to, real, k), align=align)

    _for_each(f, size, copy)


def _for_each(f: FunctionBuilder, size: int, copy: Callable[[Operand], None]) -> None:
    """Copy so many numbers, several in a turn of a loop."""
    whole = size // UNROLLED * UNROLLED
    if whole:
        with f.loop(whole, step=UNROLLED) as first:
            for k in range(UNROLLED):
                copy(first + k)
    for k in range(whole, size):
        copy(k)


class _FieldInLanes(msgspec.Struct, frozen=True):
    """A field of the records in lanes.

    Attributes:
        field: The field.
        size: How many numbers it has.
        own: Their memory, a vector for each.
        column: The column that it points into, of all rows; None of numbers.
        is_read: Whether stages read it.
        is_written: Whether they write it.
    """

    field: Field
    size: int
    own: Value
    column: Value | None
    is_read: bool
    is_written: bool


class AbreastCode:
    """The loop over records, under construction.

    Either the records of one row come after those of the one before (`begin`,
    `groups`), or chosen records of all rows are noted first, and share lanes (`note`,
    `noted_groups`).

    Attributes:
        results: The columns that records write entries of, and their numbers.
    """

    def __init__(
        self,
        f: FunctionBuilder,
        real: Type,
        region: tuple[Abreast, Table, Mapping[str, Field]],
        records: tuple[Value, Value],
        memory: tuple[Mapping[str, Value], Mapping[str, Value], Mapping[str, int]],
    ) -> None:
        """Prepare.

        Args:
            f: The function.
            real: The type of columns: a vector with a lane for each record.
            region: The stage, its table, and the fields that it uses.
            records: Where the records of the table lie, and how many there are.
            memory: The columns of rows, those of records in lanes, and how many numbers
                each of them has.
        """
        stage, table, used = region
        rows, own, sizes = memory
        self.f, self.real, self.kind = f, real, real.scalar
        self.layout = table.layout(real.bits)
        self.records, self.count = records
        self.packed = stage.packed
        read = read_by_programs(stage.stages)
        written = written_by_programs(stage.stages)
        self.fields = [
            _FieldInLanes(
                one,
                sizes[name],
                own[name],
                rows[one.of] if one.of else None,
                name in read,
                name in written,
            )
            for name, one in used.items()
        ]
        self.results = {
            rows[one.of]: sizes[one.of] for name, one in used.items() if name in written
        }
        self.chosen = None
        if stage.chosen:
            self.chosen = rows[stage.chosen], sizes[stage.chosen]
            # Of all rows: which records run, which of their row, and of what row.
            room = 8 * (sizes[stage.chosen] + 1) * real.lanes
            self.numbers, self.places, self.rows = (f.reserve(room) for _ in range(3))
            self.some = f.variable(I64, 0)

    def begin(self, lane: Value) -> Value:
        """Write which records of a row run; return whether any does."""
        if self.chosen is None:
            return self.count > 0
        self.some.set(0)
        self.note(lane)
        return self.some.get() > 0

    def note(self, lane: Value) -> None:
        """Write which records of a row run behind those that were noted before."""
        assert self.chosen is not None
        f, (column, size) = self.f, self.chosen
        before = self.some.get()
        end = (self.count < size).select(self.count, f.constant(I64, size))
        with f.loop(end) as k:
            number = f.load(self.kind, column, k * self.real.lanes + lane)
            at = self.some.get()
            f.store(k, self.numbers, at)
            f.store(at - before, self.places, at)
            f.store(lane, self.rows, at)
            self.some.set(at + (number > 0.0).to(I64, "zext"))

    @contextmanager
    def groups(self, lane: Value) -> Generator[None]:
        """Run what follows for as many records as there are lanes, until all have."""
        f, lanes = self.f, self.real.lanes
        numbers, count = None, self.count
        if self.chosen is not None:
            numbers, count = self.numbers, self.some.get()
        first = f.variable(I64, 0)
        with f.forever() as loop:
            start = first.get()
            loop.leave(start >= count)
            left = count - start
            some = (left < lanes).select(left, f.constant(I64, lanes))
            with f.loop(lanes) as k:
                # Lanes behind the last record repeat it.
                at = start + (k < some).select(k, some - 1)
                self._read(self._record(at, numbers), lane, k)
            yield
            with f.loop(some) as k:
                own = self._record(start + k, numbers)
                packed = self._record(start + k, None)
                self._write((own, packed), lane, k)
            first.set(start + lanes)

    @contextmanager
    def noted_groups(self) -> Generator[tuple[Value, Value, Value]]:
        """Do the same for the records of all rows that were noted.

        What follows gets the rows, a vector, where they are written, and how many
        lanes are of records that no lane before has.
        """
        f, lanes = self.f, self.real.lanes
        count = self.some.get()
        with f.when(count > 0), f.loop(lanes - 1) as k:
            # Lanes behind the last record repeat it.
            for noted in (self.numbers, self.rows):
                f.store(f.load(I64, noted, count - 1), noted, count + k)
        first = f.variable(I64, 0)
        with f.forever() as loop:
            start = first.get()
            loop.leave(start >= count)
            left = count - start
            some = (left < lanes).select(left, f.constant(I64, lanes))
            rows = f.element(self.rows, I64, start)
            with f.loop(lanes) as k:
                record = self._record(start + k, self.numbers)
                self._read(record, f.load(I64, rows, k), k)
            yield f.load(I64.wide(lanes), rows, align=8), rows, some
            with f.loop(some) as k:
                own = self._record(start + k, self.numbers)
                packed = self._record(start + k, self.places)
                self._write((own, packed), f.load(I64, rows, k), k)
            first.set(start + lanes)

    def take(self, number: Value, lane: Value, to: Value) -> None:
        """Put a record of a row in a lane."""
        self._read(self._record(number, None), lane, to)

    def leave(self, number: Value, lane: Value, source: Value) -> None:
        """Write the entries of a record, which are in a lane, to those of a row."""
        record = self._record(number, None)
        self._write((record, record), lane, source)

    def _record(self, at: Value, numbers: Value | None) -> Value:
        """Return where a record lies."""
        number = at if numbers is None else self.f.load(I64, numbers, at)
        return self.f.address(self.records, number * self.layout.bytes)

    def _read(self, record: Value, lane: Value, to: Value) -> None:
        """Put the fields of a record of a row in a lane."""
        f, lanes = self.f, self.real.lanes
        for one in self.fields:
            if not one.is_read:
                continue
            if one.column is None:
                start, step = self.layout.address(record, one.field.name), 1
            else:
                start, step = self._entry(one, record, lane), lanes
            with f.loop(one.size) as k:
                number = f.load(self.kind, start, k * step)
                f.store(number, one.own, k * lanes + to)

    def _write(self, records: tuple[Value, Value], lane: Value, source: Value) -> None:
        """Write the entries of a record, which are in a lane, to those of a row.

        records: The record itself, and that of its place among those that run.
        """
        f, lanes = self.f, self.real.lanes
        for one in self.fields:
            if not one.is_written:
                continue
            is_packed = self.packed and not one.is_read
            start = self._entry(one, records[is_packed], lane)
            with f.loop(one.size) as k:
                number = f.load(self.kind, one.own, k * lanes + source)
                f.store(number, start, k * lanes)

    def _entry(self, one: _FieldInLanes, record: Value, lane: Value) -> Value:
        """Return where the entry of a row begins that an index points to."""
        assert one.column is not None
        # Indices were checked when the table was packed.
        position = self.layout.load(record, one.field.name).to(I64, "zext")
        place = position * (one.size * self.real.lanes) + lane
        return self.f.element(one.column, self.kind, place)
