"""Records of a pipeline's tables, some of which change from one kernel to the next.

`CompiledPipeline` checks and packs all tables of a kernel. Where kernels differ in a
few records, as those of states in which some bodies moved, the next one is made of the
tables of the one before: only what changed is checked and written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt

from armillary.kernel.kernel import Kernel
from armillary.kernel.pipeline_kernel import (
    Callees,
    CompiledPipeline,
    check_calls,
    pack,
)

__all__ = ["PipelineRecords"]

Indices = npt.NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class PipelineRecords:
    """The records of all tables of a compiled pipeline, checked.

    Attributes:
        code: The pipeline.
        tables: The records of each table.
        callees: What its calls run.
    """

    code: CompiledPipeline
    tables: Mapping[str, npt.NDArray[Any]]
    callees: tuple[Callees, ...]

    @classmethod
    def of(
        cls,
        code: CompiledPipeline,
        tables: Mapping[str, Mapping[str, Any]],
        callees: Sequence[Callees] = (),
    ) -> Self:
        """Check tables and pack them; arguments and errors are those of `code`."""
        return cls(code, pack(code, tables, callees), tuple(callees))

    def changed(
        self,
        tables: Mapping[str, tuple[Indices, Mapping[str, Any]]],
        callees: Sequence[Callees] = (),
    ) -> Self:
        """Return the records with other values of some fields.

        Args:
            tables: For some tables the positions of records, shape (m,), and an array
                for each field that changes in them, shape (m, *field shape).
            callees: What the new codes among them run, beside the present ones.

        Raises:
            KernelError: As for `CompiledPipeline`.
            UnknownName: The same.
            ShapeError: The same.
        """
        pipeline = self.code.pipeline
        counts = {name: len(records) for name, records in self.tables.items()}
        changed = dict(self.tables)
        fields: list[tuple[str, Any]] = []
        for name, (rows, given) in tables.items():
            if len(rows):
                table = pipeline.table(name)
                sizes = table.sizes(pipeline.columns, counts)
                changed[name] = table.changed(self.tables[name], rows, given, sizes)
                fields += given.items()
        native = self.code.native
        made_for = native.dtype, native.lanes
        check_calls(self.code.pipeline, fields, callees, made_for)
        return type(self)(self.code, changed, (*self.callees, *callees))

    def kernel(self) -> Kernel:
        """Return the kernel that works on these records."""
        return self.code.bound(self.tables, self.callees)
