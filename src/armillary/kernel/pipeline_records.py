"""Records of a pipeline's tables, some of which change from one kernel to the next.

`CompiledPipeline` checks and packs all tables of a kernel. Where kernels differ in a
few records, as those of states in which some bodies moved, the next one is made of the
tables of the one before: only what changed is checked and written.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Self, final

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from armillary.errors import KernelError
from armillary.kernel.binding import address_of
from armillary.kernel.column_function import ColumnCode, ColumnFunction
from armillary.kernel.fallback import STATE
from armillary.kernel.kernel import Kernel, kernel_of
from armillary.kernel.native import Native
from armillary.kernel.pipeline_kernel import (
    Callees,
    CompiledPipeline,
    check_calls,
    pack,
    words_of,
)
from armillary.kernel.tables import taken

__all__ = ["KernelByRecord", "PipelineRecords"]

Array = npt.NDArray[Any]
Indices = npt.NDArray[np.int64]


@final
class PipelineRecords(msgspec.Struct, frozen=True, eq=False):
    """The records of all tables of a compiled pipeline, checked.

    Attributes:
        code: The pipeline.
        tables: The records of each table.
        callees: What its calls run.
        words: Where the records of each table are; see `pipeline_code.TABLE`.
    """

    code: CompiledPipeline | ColumnCode
    tables: Mapping[str, npt.NDArray[Any]]
    callees: tuple[Callees, ...]
    words: Indices

    @classmethod
    def of(
        cls,
        code: CompiledPipeline | ColumnCode,
        tables: Mapping[str, Mapping[str, Any]],
        callees: Sequence[Callees] = (),
        known: Mapping[str, npt.NDArray[Any]] | None = None,
    ) -> Self:
        """Check tables and pack them; arguments and errors are those of `pack`."""
        packed = pack(code.pipeline, code.made_for, tables, callees, known)
        return cls(code, packed, tuple(callees), words_of(packed))

    def changed(
        self,
        tables: Mapping[str, tuple[Indices, Mapping[str, Any]]],
    ) -> Self:
        """Return the records with other values of some fields.

        Args:
            tables: For some tables the positions of records, shape (m,), and an array
                for each field that changes in them, shape (m, *field shape).

        Raises:
            KernelError: As for `CompiledPipeline`.
            UnknownName: The same.
            ShapeError: The same.
        """
        pipeline = self.code.pipeline
        changed: dict[str, npt.NDArray[Any]] = {}
        codes: list[tuple[str, Any]] = []
        for name, (rows, given) in tables.items():
            if not len(rows):
                continue
            table = pipeline.table(name)
            # Numbers lead nowhere; only what does has to be checked against others.
            sizes: Mapping[tuple[str, str], int] = {}
            by_name = table.by_name
            if not all(n in by_name and by_name[n].kind == "real" for n in given):
                counts = {name: len(records) for name, records in self.tables.items()}
                sizes = table.sizes(pipeline.columns, counts)
                codes += given.items()
            changed[name] = table.changed(self.tables[name], rows, given, sizes)
        if codes:
            check_calls(pipeline, codes, self.callees, self.code.made_for)
        return self.with_tables(changed)

    def extended(
        self,
        tables: Mapping[str, Mapping[str, Any]],
        callees: Sequence[Callees],
        *,
        moved: Mapping[str, tuple[int, int]],
    ) -> Self:
        """Return the records with more behind those of some tables.

        Args:
            tables: For some tables an array for each field of the records behind.
            callees: What the codes among them run, beside the present ones.
            moved: As for `Table.extended`.

        Raises:
            KernelError: As for `CompiledPipeline`.
            UnknownName: The same.
            ShapeError: The same.
        """
        pipeline = self.code.pipeline
        made: dict[str, npt.NDArray[Any]] = {}
        counts = {name: len(records) for name, records in self.tables.items()}
        for name, given in tables.items():
            counts[name] += min(map(len, given.values()))
        codes: list[tuple[str, Any]] = []
        for name, given in tables.items():
            table = pipeline.table(name)
            sizes = table.sizes(pipeline.columns, counts)
            made[name] = table.extended(self.tables[name], given, sizes, moved)
            codes += ((f.name, given[f.name]) for f in table.fields if f.kind == "code")
        check_calls(pipeline, codes, callees, self.code.made_for)
        return self.with_tables(made, callees)

    def with_numbers(self, tables: Mapping[str, Mapping[str, Any]]) -> Self:
        """Return the records with other numbers in the last ones of some tables.

        tables: For each an array for some fields of these, shape (m, *field shape);
            other fields, and those that are not numbers, are as they were.

        Raises:
            ShapeError: Shapes do not fit.
        """
        table_of, own = self.code.pipeline.table, self.tables
        return self.with_tables(
            {
                name: table_of(name).with_numbers(own[name], given)
                for name, given in tables.items()
            }
        )

    def with_fronts(self, before: Self, now: Self) -> Self:
        """Return records that began with those of others, which have other numbers now.

        Args:
            before: Those that these are `extended` from.
            now: The same with other numbers.
        """
        table_of, own = self.code.pipeline.table, self.tables
        return self.with_tables(
            {
                name: table_of(name).with_front(own[name], front)
                for name, front in now.tables.items()
                if front is not before.tables[name]
            }
        )

    def with_tables(
        self, some: Mapping[str, npt.NDArray[Any]], callees: Sequence[Callees] = ()
    ) -> Self:
        """Return these with other records of some tables, `pack`ed for the code.

        Args:
            some: The records.
            callees: What their codes run, beside the present ones.
        """
        if not some:
            return self
        made, words = {**self.tables, **some}, self.words.copy()
        for k, name in enumerate(made):
            if name in some:
                words[k] = address_of(some[name]), len(some[name])
        return type(self)(self.code, made, (*self.callees, *callees), words)

    @property
    def pipeline(self) -> CompiledPipeline:
        """Return the code, which is that of a kernel."""
        assert isinstance(self.code, CompiledPipeline)
        return self.code

    def kernel(self) -> Kernel:
        """Return the kernel that works on these records."""
        return self.pipeline.bound(self.tables, self.callees)

    def for_one(self) -> Callable[..., Any]:
        """Return what answers one row as the kernel does, which it makes for others."""
        return self.pipeline.for_one(self.words, (self.words, self), self.kernel)

    def by_record(self, table: str, places: str) -> KernelByRecord:
        """Return a kernel that is asked for some records of a table at a time.

        Args:
            table: The table, which no span leads to.
            places: Its field that is a position in a column, see `KernelByRecord`.
        """
        pipeline = self.pipeline.pipeline
        number = pipeline.tables.index(pipeline.table(table))
        of = pipeline.tables[number].by_name[places].of
        return KernelByRecord(self, number, places, pipeline.columns[of][0])

    def function(self) -> ColumnFunction:
        """Return the function on columns that works on these records."""
        assert isinstance(self.code, ColumnCode)
        return self.code.bound(self.tables, self.callees)


@final
class KernelByRecord(msgspec.Struct, frozen=True, eq=False, dict=True):
    """A kernel that is asked for some records of a table at a time.

    Attributes:
        every: All records.
        number: The number of the table, which no span leads to.
        places: Its field that is a position in a column: results are there, from the
            first entry on.
        room: How many records a call can ask for: the entries of that column.
        lock: Held while the kernel of `ask` has the records of a call.
    """

    every: PipelineRecords
    number: int
    places: str
    room: int
    lock: threading.Lock = msgspec.field(default_factory=threading.Lock)

    @cached_property
    def whole(self) -> Callable[..., Any]:
        """Return what answers with all records, at the places that these have."""
        return self.every.for_one()

    @cached_property
    def _native(self) -> Native:
        return self.every.pipeline.with_tables(self.every.tables, self.every.callees)

    def of(self, which: Indices) -> Kernel:
        """Return the kernel of some records; nothing is compiled or checked again.

        which: Positions of at most `room` records; result k is that of record which[k].

        Raises:
            KernelError: They are more.
        """
        records = self._records(which)
        name, _ = self._table
        words, tables = self.every.words.copy(), {**self.every.tables, name: records}
        words[self.number] = address_of(records), len(which)
        return Kernel(replace(self._pointed(words, tables), call=0))

    def _pointed(self, words: Indices, tables: dict[str, Array]) -> Native:
        """Return the code with other records of the table.

        Args:
            words: Where the records of each table are; see `pipeline_code.TABLE`.
            tables: The records.
        """
        native, (name, everything) = self._native, self._table
        state = native.state.copy()
        state[STATE.offsets["tables"] // 8] = address_of(words)
        share = len(tables[name]) / max(1, len(everything))
        return replace(
            native,
            operations=1 + int(share * native.operations),
            state=state,
            tables=tables,
            pickled=None,
            owned=(native.owned, words, tables[name]),
        )

    def ask(self, which: Indices, *inputs: Array) -> Array:
        """Return what the kernel `of` some records does for one row of plain arrays.

        No kernel is made, but where another thread asks at the same time.

        Args:
            which: As for `of`.
            inputs: An array for each input.

        Raises:
            KernelError: As for `of`.
        """
        # A fork may copy the lock while another thread has it: waiting would not end.
        if not self.lock.acquire(blocking=False):
            return self.of(which)(*inputs)
        try:
            call, words, tables, room = self._single
            name, _ = self._table
            records = self._records(which)
            room[: len(which)] = records
            words[self.number, 1] = len(which)
            tables[name] = records
            return call(*inputs)
        finally:
            self.lock.release()

    @cached_property
    def _single(
        self,
    ) -> tuple[Callable[..., Any], Indices, dict[str, Array], Array]:
        """Return a function, where its records are, and room for those of a call."""
        every, (name, everything) = self.every, self._table
        room = np.zeros(self.room, everything.dtype)
        words, tables = every.words.copy(), {**every.tables, name: room}
        words[self.number] = address_of(room), 0

        def made() -> Kernel:
            return kernel_of(self._pointed(words, tables))

        ask = every.pipeline.for_one(words, (words, room, every), made)
        return ask, words, tables, room

    @cached_property
    def _table(self) -> tuple[str, Array]:
        """Return the name of the table, and all its records."""
        return list(self.every.tables.items())[self.number]

    def _records(self, which: Indices) -> Array:
        """Return some records, whose results are in their order."""
        name, everything = self._table
        if len(which) > self.room:
            raise KernelError(
                f"There is room for {self.room} records of '{name}', not for "
                f"{len(which)}."
            )
        # Codes and positions of these records were checked when all were packed.
        records = taken(everything, which)
        records[self.places] = np.arange(len(which))
        return records
