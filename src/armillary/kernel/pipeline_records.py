"""Records of a pipeline's tables, some of which change from one kernel to the next.

`CompiledPipeline` checks and packs all tables of a kernel. Where kernels differ in a
few records, as those of states in which some bodies moved, the next one is made of the
tables of the one before: only what changed is checked and written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.kernel.binding import address_of
from armillary.kernel.column_function import ColumnCode, ColumnFunction
from armillary.kernel.kernel import Kernel
from armillary.kernel.pipeline_kernel import (
    Callees,
    CompiledPipeline,
    check_calls,
    pack,
    words_of,
)

__all__ = ["PipelineRecords"]

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
            kinds = {one.kind for one in table.fields if one.name in given}
            sizes: Mapping[tuple[str, str], int] = {}
            if kinds != {"real"}:
                counts = {name: len(records) for name, records in self.tables.items()}
                sizes = table.sizes(pipeline.columns, counts)
                codes += given.items()
            changed[name] = table.changed(self.tables[name], rows, given, sizes)
        if codes:
            check_calls(pipeline, codes, self.callees, self.code.made_for)
        return self._with(changed)

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
        return self._with(made, callees)

    def with_numbers(self, tables: Mapping[str, Mapping[str, Any]]) -> Self:
        """Return the records with other numbers in the last ones of some tables.

        tables: For each an array for some fields of these, shape (m, *field shape);
            other fields, and those that are not numbers, are as they were.

        Raises:
            ShapeError: Shapes do not fit.
        """
        table_of, own = self.code.pipeline.table, self.tables
        return self._with(
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
        return self._with(
            {
                name: table_of(name).with_front(own[name], front)
                for name, front in now.tables.items()
                if front is not before.tables[name]
            }
        )

    def _with(
        self, some: Mapping[str, npt.NDArray[Any]], callees: Sequence[Callees] = ()
    ) -> Self:
        """Return these with other records of some tables, and some more callees."""
        if not some:
            return self
        made, words = {**self.tables, **some}, self.words.copy()
        for k, name in enumerate(made):
            if name in some:
                words[k] = address_of(some[name]), len(some[name])
        return type(self)(self.code, made, (*self.callees, *callees), words)

    def kernel(self) -> Kernel:
        """Return the kernel that works on these records."""
        assert isinstance(self.code, CompiledPipeline)
        return self.code.bound(self.tables, self.callees)

    def for_one(self) -> Callable[..., Any]:
        """Return what answers one row as the kernel does, which it makes for others."""
        assert isinstance(self.code, CompiledPipeline)
        return self.code.for_one(self.words, (self.words, self), self.kernel)

    def function(self) -> ColumnFunction:
        """Return the function on columns that works on these records."""
        assert isinstance(self.code, ColumnCode)
        return self.code.bound(self.tables, self.callees)
