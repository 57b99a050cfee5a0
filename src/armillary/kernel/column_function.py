"""Pipelines as functions on columns, which other machine code calls."""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Final, Self, final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary import forks
from armillary.kernel.binding import address_of
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import Callees, columns_code, pack, words_of

__all__ = [
    "ColumnCode",
    "ColumnFunction",
    "PostponedColumns",
    "RowFunction",
    "aligned",
    "column_prototype",
    "columns_in_python",
    "native_lanes",
    "numbers_at",
]

Array = npt.NDArray[Any]

BITS_OF_BYTE: Final = 8

ALIGNMENT: Final = 64
"""Bytes of a line of the cache."""


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

    def compile(self) -> None:
        """Compile the pipeline for columns alone, unless that is done."""
        columns_code(self.pipeline, self.dtype.itemsize * 8, self.lanes)

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


@final
class PostponedColumns:
    """Machine code whose records may be made when it is first called.

    Attributes:
        made: The machine code with its records, None as long as nothing has needed it.
    """

    def __init__(
        self, make: Callable[[], ColumnFunction], code: ColumnCode, results: int
    ) -> None:
        """Postpone records.

        Args:
            make: Makes the records.
            code: The pipeline; it has two inputs.
            results: How many numbers a row of its results has.
        """
        self.made: ColumnFunction | None = None
        self._make, self._code, self._results = make, code, results
        self._lock = threading.Lock()

    def now(self) -> ColumnFunction:
        """Return the machine code with its records."""
        with self._lock:
            if self.made is None:
                self.made = self._make()
            return self.made

    @cached_property
    def function(self) -> ColumnFunction:
        """Return what makes the records when it is called, and calls machine code.

        It is through Python, so take `made` where that is there. The pipeline is
        compiled before.
        """
        code = self._code
        code.compile()
        prototype = column_prototype(4, code.lanes)

        def run(first: int, second: int, into: int, _: int, active: int) -> int:
            numbers_at(into, (self._results, code.lanes))[:] = math.nan  # if it raises
            made = self.now()
            return prototype(made.address)(first, second, into, made.tables, active)

        return columns_in_python(run, 4, code.made_for)


@final
class RowFunction:
    """Machine code on columns, called for rows."""

    def __init__(
        self, columns: ColumnFunction, inputs: Sequence[int], outputs: Sequence[int]
    ) -> None:
        """Take machine code.

        Args:
            columns: The code, in float64.
            inputs: How many numbers a row of each input has.
            outputs: The same of each result.
        """
        self._columns = columns
        self._inputs, self._outputs = inputs, outputs
        count = 1 + len(inputs) + len(outputs)
        self._run = column_prototype(count, columns.lanes)(columns.address)

    def __call__(self, *rows: Array) -> list[Array]:
        """Return the results of rows, shape (k, size) each.

        rows: The rows of each input, shape (k, size).
        """
        lanes, count, kind = self._columns.lanes, len(rows[0]), np.dtype(np.float64)
        if not count:
            return [np.empty((0, size)) for size in self._outputs]
        blocks = -(-count // lanes)
        columns = [
            aligned(blocks * size * lanes, kind).reshape(blocks, size, lanes)
            for size in (*self._inputs, *self._outputs)
        ]
        for column, given in zip(columns, rows, strict=False):
            whole = np.empty((blocks * lanes, given.shape[1]))
            whole[:count], whole[count:] = given, given[-1:]
            column[:] = whole.reshape(blocks, lanes, -1).swapaxes(1, 2)
        at = [address_of(column) for column in columns]
        steps = [column.strides[0] for column in columns]
        tables, every = self._columns.tables, (1 << lanes) - 1
        for block in range(blocks):
            places = [a + block * step for a, step in zip(at, steps, strict=True)]
            self._run(*places, tables, every)
        return [
            np.ascontiguousarray(column.swapaxes(1, 2)).reshape(blocks * lanes, -1)[
                :count
            ]
            for column in columns[len(self._inputs) :]
        ]


def aligned(count: int, kind: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return memory for numbers that begins at a line of the cache."""
    memory = np.empty(count * kind.itemsize + ALIGNMENT, np.uint8)
    start = -address_of(memory) % ALIGNMENT
    return memory[start : start + count * kind.itemsize].view(kind)


def columns_in_python(
    run: Callable[..., int], addresses: int, made_for: tuple[np.dtype[Any], int]
) -> ColumnFunction:
    """Return a function of Python as machine code calls @columns.

    Where it raises, Python prints the exception and machine code goes on with what is
    in the columns of results. So it should first write there what is safe.

    Args:
        run: Takes addresses of columns, that of tables, and a bit for each lane that
            counts; it returns the bits of lanes with flagged rows.
        addresses: How many these are.
        made_for: The type and the lanes of columns.
    """
    dtype, lanes = made_for
    callback = column_prototype(addresses, lanes)(run)
    address = ctypes.cast(callback, ctypes.c_void_p).value or 0
    return ColumnFunction(address, 0, dtype, lanes, {}, (callback,))


def column_prototype(addresses: int, lanes: int) -> Any:
    """Return the type in C of @columns with so many addresses before the bits."""
    bits = ctypes.c_uint8 if lanes <= BITS_OF_BYTE else ctypes.c_uint16
    return ctypes.CFUNCTYPE(bits, *[ctypes.c_void_p] * addresses, bits)


def numbers_at(address: int, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Return the array of reals of 64 bits at an address, not copied."""
    pointer = ctypes.cast(address, ctypes.POINTER(ctypes.c_double))
    return np.ctypeslib.as_array(pointer, shape)


@lru_cache(maxsize=8)
def native_lanes(dtype: np.dtype[Any]) -> int:
    """Return how many numbers a register of this machine holds."""
    with forks.IMPORT_LOCK:
        from armillary.kernel import compiler  # imports LLVM
    return compiler.native_reals(dtype.itemsize * 8).lanes
