"""Kernels of pipelines: compiled once, then given tables as often as they change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import numpy.typing as npt

from armillary.kernel.binding import address_of
from armillary.kernel.fallback import new_state
from armillary.kernel.kernel import Kernel, kernel_of
from armillary.kernel.native import Native, native_of
from armillary.kernel.pipeline import Call, Each, Pipeline, Stage, While, calls_in
from armillary.kernel.pipeline_calls import Callees, called_in
from armillary.kernel.tables import pack_all
from armillary.trace import Program

__all__ = ["CompiledPipeline", "compile_pipeline"]

Array = npt.NDArray[Any]

LIKELY_TURNS = 8
"""Repetitions of a `While` for which threads are planned."""

LIKELY_OPERATIONS = 100
"""Operations of a `Call` for which threads are planned."""


@final
@dataclass(frozen=True, slots=True)
class CompiledPipeline:
    """Machine code of a pipeline that waits for its tables.

    Attributes:
        native: The code.
        pipeline: What it computes.
    """

    native: Native
    pipeline: Pipeline

    def __call__(
        self,
        tables: Mapping[str, Mapping[str, Any]] | None = None,
        callees: Sequence[Callees] = (),
    ) -> Kernel:
        """Return a kernel with some tables; nothing is compiled.

        Args:
            tables: For each table an array for each of its fields, shape (count,
                *field shape); copied.
            callees: What its calls run. A kernel with calls cannot be pickled.

        Raises:
            KernelError: A table or field is missing, or points beyond what is there;
                or a call has a code that is not of `callees`.
            UnknownName: There is no such table or field.
            ShapeError: Shapes do not fit.
        """
        pipeline, native = self.pipeline, self.native
        packed = pack_all(pipeline.tables, tables or {}, pipeline.columns, native.dtype)
        for table in pipeline.tables:
            table.check_count(len(packed[table.name]))
        words = np.zeros((len(packed), 2), np.int64)  # see pipeline_code.TABLE
        for row, records in zip(words, packed.values(), strict=True):
            row[:] = address_of(records), len(records)
        counts = {name: len(records) for name, records in packed.items()}
        made_for = native.dtype, native.lanes
        parts = pipeline, packed, native.dtype.str, native.requested
        return kernel_of(
            replace(
                native,
                operations=1 + _operations(pipeline.stages, counts, 1),
                state=new_state(address_of(words)),
                tables=packed,
                called=called_in(pipeline, packed, callees, made_for)
                if any(calls_in(pipeline.stages))
                else None,
                pickled=(_restored, parts),
                owned=(*native.owned, words, *packed.values(), *callees),
            )
        )


def compile_pipeline(
    pipeline: Pipeline, *, dtype: npt.DTypeLike = np.float64, lanes: int | None = None
) -> CompiledPipeline:
    """Return a pipeline as native code for this machine, to be called with tables.

    Args:
        pipeline: What to compute.
        dtype: float64 or float32, the type that it computes in.
        lanes: Rows computed at once, a power of two; by default what the machine's
            registers hold.

    Raises:
        KernelError: The type, the lanes, or the pipeline's arrays have no native code.
    """
    return CompiledPipeline(native_of(pipeline, dtype, lanes), pipeline)


def _restored(
    pipeline: Pipeline, tables: Mapping[str, Array], dtype: str, requested: int
) -> Kernel:
    """Return what a pickle holds, compiled for the machine that it is read on."""
    given = {
        name: {field: records[field] for field in records.dtype.names or ()}
        for name, records in tables.items()
    }
    return compile_pipeline(pipeline, dtype=dtype, lanes=requested or None)(given)


def _operations(stages: Sequence[Stage], counts: Mapping[str, int], around: int) -> int:
    """Return about how many operations a row takes.

    Args:
        stages: Of which.
        counts: Records of each table.
        around: Records of the table of the region around the stages.
    """
    total = 0
    for stage in stages:
        match stage:
            case Program():
                total += stage.operation_count
            case Call():
                total += LIKELY_OPERATIONS
            case Each():
                count = counts[stage.table]
                if stage.within:  # each record around it has its share
                    count = -(-count // max(1, around))
                total += count * _operations(stage.stages, counts, count)
            case While():
                turns = min(stage.limit, LIKELY_TURNS)
                total += turns * _operations(stage.stages, counts, around)
            case _:
                total += _operations(stage.stages, counts, around)
    return total
