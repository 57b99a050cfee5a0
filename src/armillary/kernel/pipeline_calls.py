"""What a `Call` of a pipeline runs: other pipelines, with many sets of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt

from armillary.errors import KernelError
from armillary.kernel import forks
from armillary.kernel.binding import address_of
from armillary.kernel.pipeline import Pipeline, calls_in
from armillary.kernel.tables import pack_all

__all__ = ["Callees", "called_in"]

Array = npt.NDArray[Any]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Callees:
    """A pipeline that others call, with several sets of tables.

    Attributes:
        pipeline: What is called.
        tables: Records of its tables, of all sets.
        words: Where the tables of each set lie, and how many records they have; see
            `pipeline_code.TABLE`: shape (sets, tables, 2).
        codes: What a field of kind `code` holds for each set, shape (sets, 2).
        code: Its machine code, which lives as long as this.
        made_for: The type and lanes that callers have.
    """

    pipeline: Pipeline
    tables: Mapping[str, Array]
    words: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int64]
    code: object
    made_for: tuple[np.dtype[Any], int]

    @classmethod
    def of(
        cls,
        pipeline: Pipeline,
        tables: Mapping[str, Mapping[str, Any]],
        spans: Mapping[str, npt.ArrayLike],
        *,
        dtype: np.dtype[Any],
        lanes: int,
    ) -> Self:
        """Compile a pipeline, unless that is done, and give it tables.

        Args:
            pipeline: What is called.
            tables: For each table an array for each field, of all sets one behind the
                other.
            spans: For each table the first record and the count of each set, shape
                (sets, 2), or (2,) where all sets share records.
            dtype: The type that callers compute in.
            lanes: How many rows they compute at once.

        Raises:
            KernelError: As for `CompiledPipeline`.
        """
        packed = pack_all(pipeline.tables, tables, pipeline.columns, dtype)
        ranges = [np.atleast_2d(np.asarray(spans[name], np.int64)) for name in packed]
        for table, span in zip(pipeline.tables, ranges, strict=True):
            for each in span[span[:, 1] != 1, 1][:1].tolist():
                table.check_count(each)
        count = max((len(each) for each in ranges), default=1)
        words = np.zeros((count, max(1, len(packed)), 2), np.int64)
        for k, (records, span) in enumerate(zip(packed.values(), ranges, strict=True)):
            words[:, k, 0] = address_of(records) + span[:, 0] * records.dtype.itemsize
            words[:, k, 1] = span[:, 1]
        code = _columns(pipeline, dtype.itemsize * 8, lanes)
        codes = np.empty((count, 2), np.int64)
        codes[:, 0] = code.address("columns")
        codes[:, 1] = address_of(words) + np.arange(count) * words[:1].nbytes
        return cls(pipeline, packed, words, codes, code, (dtype, lanes))

    def set_at(self, address: int) -> dict[str, Array] | None:
        """Return the tables of the set that lies at an address, if there is one."""
        beyond = address - address_of(self.words)
        if not 0 <= beyond < self.words.nbytes:
            return None
        found = self.words[beyond // self.words[:1].nbytes, : len(self.tables)]
        return {
            name: records[first : first + count]
            for (name, records), (start, count) in zip(
                self.tables.items(), found.tolist(), strict=True
            )
            for first in [(start - address_of(records)) // records.dtype.itemsize]
        }


@final
@dataclass(frozen=True, slots=True)
class _Found:
    """Finds what addresses are: see `pipeline_reference.Called`."""

    callees: tuple[Callees, ...]

    def __call__(self, code: Array) -> tuple[Pipeline, Mapping[str, Array]]:
        first, second = code.tolist()
        for callees in self.callees:
            tables = callees.set_at(second)
            if tables is not None and first == callees.codes[0, 0]:
                return callees.pipeline, tables
        raise KernelError("A call has an address that is not of one of its callees.")


def called_in(
    pipeline: Pipeline,
    packed: Mapping[str, Array],
    callees: Sequence[Callees],
    made_for: tuple[np.dtype[Any], int],
) -> _Found:
    """Return what calls of a pipeline run, having checked every address.

    Raises:
        KernelError: A code is not one of `callees`, or they take or return something
            else than is given.
    """
    codes = [np.zeros((0, 2), np.int64), *(each.codes for each in callees)]
    known = np.sort(np.concatenate(codes)[:, 1])
    for call in calls_in(pipeline.stages):
        for records in packed.values():
            if call.code in (records.dtype.names or ()):
                given = records[call.code][:, 1]
                at = np.searchsorted(known, given)
                if (at == len(known)).any() or (known[at] != given).any():
                    raise KernelError(
                        f"'{call.code}' of '{pipeline.name}' is not a code of what it "
                        "is given to call."
                    )
        inputs = [pipeline.shape_of(name) for name in call.inputs]
        outputs = [port.shape for port in call.outputs]
        for each in callees:
            theirs = each.pipeline
            takes = [port.shape for port in theirs.inputs]
            returns = [port.shape for port in theirs.outputs]
            if (takes, returns) != (inputs, outputs) or each.made_for != made_for:
                raise KernelError(
                    f"'{pipeline.name}' gives {inputs} and expects {outputs} of "
                    f"'{theirs.name}', which takes {takes} and returns {returns}, "
                    "in the same type and lanes."
                )
    return _Found(tuple(callees))


@lru_cache(maxsize=256)
def _columns(pipeline: Pipeline, bits: int, lanes: int) -> Any:
    with forks.IMPORT_LOCK:
        from armillary.kernel import compiler  # imports LLVM
    return compiler.compiled_columns(pipeline, bits, lanes)
