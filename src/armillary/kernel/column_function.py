"""Pipelines as functions on columns, which other machine code calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Self, final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary import forks
from armillary.kernel.binding import address_of
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import Callees, columns_code, pack, words_of

__all__ = ["ColumnCode", "ColumnFunction", "native_lanes"]

Array = npt.NDArray[Any]


@final
class ColumnCode(msgspec.Struct, frozen=True):
    """A pipeline on columns that waits for its tables; see `ColumnFunction`.

    Attributes:
        pipeline: What is computed.
        dtype: float64 or float32, the type that it computes in.
        lanes: The number of rows that it computes at once.
    """

    pipeline: Pipeline
    dtype: np.dtype[Any]
    lanes: int

    @property
    def made_for(self) -> tuple[np.dtype[Any], int]:
        """Return its type and lanes."""
        return self.dtype, self.lanes

    def __call__(
        self,
        tables: Mapping[str, Mapping[str, Any]],
        callees: Sequence[Callees] = (),
    ) -> ColumnFunction:
        """Compile the pipeline for columns alone, unless that is done.

        Arguments and errors are those of `CompiledPipeline`.
        """
        return self.bound(pack(self.pipeline, self.made_for, tables, callees), callees)

    def bound(
        self, packed: Mapping[str, Array], callees: Sequence[Callees]
    ) -> ColumnFunction:
        """Return the function of the records of tables, which `pack` has checked."""
        words = words_of(packed)
        code, entry = columns_code(self.pipeline, self.dtype.itemsize * 8, self.lanes)
        return ColumnFunction(
            entry, address_of(words), *self.made_for, packed, (code, words, callees)
        )


@final
class ColumnFunction(msgspec.Struct, frozen=True, eq=False):
    """Machine code that other machine code calls: @columns of `column_code`.

    Attributes:
        address: Where it starts.
        tables: What it takes as its tables, an address.
        dtype: The type that it computes in.
        lanes: How many rows it computes at once.
        records: The records of each table.
        owned: What else must live as long as it is called.
    """

    address: int
    tables: int
    dtype: np.dtype[Any]
    lanes: int
    records: Mapping[str, Array]
    owned: tuple[Any, ...]

    def with_numbers(self, packed: Mapping[str, Array]) -> Self:
        """Return the same code with records of some tables that have other numbers.

        packed: As many records of each as it has, which lead to the same.
        """
        code, known, callees = self.owned
        words, places = known.copy(), {name: k for k, name in enumerate(self.records)}
        for name, records in packed.items():
            words[places[name], 0] = address_of(records)
        every, owned = {**self.records, **packed}, (code, words, callees)
        made_for = self.dtype, self.lanes
        return type(self)(self.address, address_of(words), *made_for, every, owned)


@lru_cache(maxsize=8)
def native_lanes(dtype: np.dtype[Any]) -> int:
    """Return how many numbers a register of this machine holds."""
    with forks.IMPORT_LOCK:
        from armillary.kernel import compiler  # imports LLVM
    return compiler.native_reals(dtype.itemsize * 8).lanes
