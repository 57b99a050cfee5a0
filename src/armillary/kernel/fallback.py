"""Rows whose arguments are too large for the fast formulas, computed again with NumPy.

Machine code notes them in the state of a call; when it returns, all of them are
computed in one pass: slowly, and right. What a row gives does not depend on its
neighbours.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.kernel.arguments import Computation
from armillary.kernel.binding import address_of_function
from armillary.kernel.machine_type import I64, PTR
from armillary.kernel.memory import Struct
from armillary.trace import Port

Array = npt.NDArray[Any]
Compute = Callable[..., Array | tuple[Array, ...]]

STATE: Final = Struct.of(
    used=(I64, 1),  # bytes of records, -1 where memory ran out
    records=(PTR, 1),
    room=(I64, 1),  # bytes allocated there
    malloc=(PTR, 1),
    realloc=(PTR, 1),
    free=(PTR, 1),
    tables=(PTR, 1),  # for @block, of a pipeline
)
"""The numbers of a state."""

# Rows between two looks at whether another thread has failed.
CHUNK = 1024


class Record(msgspec.Struct, frozen=True):
    """What is noted of a flagged row: the addresses of its outputs, then its inputs.

    Attributes:
        outputs: The number of addresses.
        inputs: The offset of each input [bytes].
        size: The size of a record [bytes].
    """

    outputs: int
    inputs: tuple[int, ...]
    size: int

    @classmethod
    def of(cls, inputs: Sequence[Port], outputs: int, real_bytes: int) -> Record:
        """Return the record for some inputs and a number of outputs."""
        places: list[int] = []
        size = 8 * outputs
        for port in inputs:
            places.append(size)
            size += -(-port.size * real_bytes // 8) * 8
        return cls(outputs, tuple(places), size)


_FUNCTIONS = ("PyMem_RawMalloc", "PyMem_RawRealloc", "PyMem_RawFree")


def new_state(tables: int = 0) -> npt.NDArray[np.int64]:
    """Return a state without records; each call of a ufunc gets a copy.

    tables: Address of the tables of a pipeline.
    """
    functions = map(address_of_function, _FUNCTIONS)
    return np.array([0, 0, 0, *functions, tables], np.int64)


def finish(
    program: Computation,
    compute: Compute,
    state: npt.NDArray[np.int64],
    results: Sequence[Array],
    failed: threading.Event,
) -> None:
    """Compute the rows that are noted in a state, and free its memory.

    Args:
        program: The program that computes them.
        compute: The same with NumPy, all rows at once.
        state: The state that machine code has left.
        results: The arrays that it wrote; noted rows are NaN until they are computed.
        failed: Set by any thread that works on the same call; the others give up.

    Raises:
        MemoryError: Machine code, or NumPy, found no memory.
    """
    used, address = state[:2].tolist()
    try:
        if used < 0:
            raise MemoryError("There is no memory for a kernel's intermediate values.")
        if used:
            memory = (ctypes.c_char * used).from_address(address)
            _recompute(program, compute, memoryview(memory), results, failed)
    finally:
        state[0] = 0
        if address:
            ctypes.pythonapi.PyMem_RawFree(ctypes.c_void_p(address))


def _recompute(
    program: Computation,
    compute: Compute,
    memory: memoryview,
    results: Sequence[Array],
    failed: threading.Event,
) -> None:
    dtype = results[0].dtype
    record = Record.of(program.inputs, len(results), dtype.itemsize)
    records = np.frombuffer(memory, np.uint8).reshape(-1, record.size)
    addresses = records[:, : 8 * record.outputs].view(np.int64)
    # All are NaN first, so that a call that is interrupted leaves no numbers of the
    # fast formulas.
    targets = [_Target(result, addresses[:, k]) for k, result in enumerate(results)]
    for target, port in zip(targets, program.outputs, strict=True):
        target.write(slice(None), port, np.nan)
    for start in range(0, len(records), CHUNK):
        if failed.is_set():
            return
        rows = slice(start, start + CHUNK)
        inputs = [
            records[rows, place : place + port.size * dtype.itemsize]
            .view(dtype)
            .reshape(-1, *port.shape)
            for port, place in zip(program.inputs, record.inputs, strict=True)
        ]
        outputs = compute(*inputs)
        with np.errstate(all="ignore"):
            values = outputs if isinstance(outputs, tuple) else (outputs,)
            for target, port, value in zip(
                targets, program.outputs, values, strict=True
            ):
                target.write(rows, port, value)


class _Target:
    """Rows of a result, by the addresses where they start."""

    def __init__(self, result: Array, addresses: npt.NDArray[np.int64]) -> None:
        # The memory around a result as one flat array, so that rows are positions in it
        # whatever its strides; negative ones, too.
        low, high = np.lib.array_utils.byte_bounds(result)
        self._dtype = result.dtype
        memory = (ctypes.c_char * (high - low)).from_address(low)
        self._flat = np.frombuffer(memoryview(memory), result.dtype)
        self._starts = (addresses - low) // result.itemsize
        self._strides = [stride // result.itemsize for stride in result.strides]

    def write(self, rows: slice, port: Port, value: Any) -> None:
        """Write a value, or a row of values for each."""
        rank = len(port.shape)
        strides = self._strides[len(self._strides) - rank :]
        # Where the numbers of a row lie behind its first, in numbers.
        offsets = np.zeros(port.shape, np.int64)
        for axis, (length, stride) in enumerate(zip(port.shape, strides, strict=True)):
            shape = [1] * rank
            shape[axis] = length
            offsets += (np.arange(length) * stride).reshape(shape)
        starts = self._starts[rows].reshape(-1, *[1] * rank)
        self._flat[starts + offsets] = value
