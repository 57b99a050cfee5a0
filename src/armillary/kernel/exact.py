"""Rows whose arguments are too large for the fast formulas, computed again with NumPy.

Machine code calls back into Python for them, where an error has no way out: it is kept
and the caller looks for it afterwards.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.kernel.vectorize import vectorize
from armillary.trace import Program

Array = npt.NDArray[Any]
Addresses = Any  # a ctypes pointer to addresses

_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint64)


class Exact:
    """The C functions that compute flagged rows of a block again, slowly and right.

    They get the addresses of compact rows, one for each lane, of each input and output,
    and an integer with a bit for each lane.

    Attributes:
        in_loop: Called while the global lock is released; its errors wait for `check`.
        in_call: Called within a single call; Python reports its errors as unraisable.
    """

    __slots__ = ("_errors", "in_call", "in_loop")

    def __init__(self, program: Program, dtype: np.dtype[Any], lanes: int) -> None:
        """Make the functions for blocks of `lanes` rows of reals of `dtype`."""
        errors: dict[int, BaseException] = {}
        recompute = _recompute(program, dtype, lanes)

        def in_loop(addresses: Addresses, flagged: int) -> None:
            thread = threading.get_ident()
            try:
                # After an error the rest of the batch is not worth the time.
                recompute(addresses, flagged, only_nan=thread in errors)
            except BaseException as error:  # an interrupt, too, is raised again
                errors[thread] = error

        def in_call(addresses: Addresses, flagged: int) -> None:
            recompute(addresses, flagged, only_nan=False)

        self._errors = errors
        self.in_loop = _FUNCTION(in_loop)
        self.in_call = _FUNCTION(in_call)

    def check(self) -> None:
        """Raise what went wrong in this thread since the last call."""
        if self._errors:
            error = self._errors.pop(threading.get_ident(), None)
            if error is not None:
                raise error


def address(function: Any) -> int:
    """Return where a C function made by ctypes starts."""
    return ctypes.c_void_p.from_buffer(function).value or 0


def _recompute(
    program: Program, dtype: np.dtype[Any], lanes: int
) -> Callable[..., None]:
    inputs, outputs = program.inputs, program.outputs
    shapes = [(lanes, *port.shape) for port in (*inputs, *outputs)]

    def recompute(addresses: Addresses, flagged: int, *, only_nan: bool) -> None:
        lines = [lane for lane in range(lanes) if flagged >> lane & 1]
        rows = [_rows(addresses[k], shape, dtype) for k, shape in enumerate(shapes)]
        given, wanted = rows[: len(inputs)], rows[len(inputs) :]
        for array in wanted:  # what an error must leave behind
            array[lines] = np.nan
        if only_nan:
            return
        results = vectorize(program, *(array[lines] for array in given))
        if len(outputs) == 1:
            results = (results,)
        with np.errstate(all="ignore"):
            for array, result in zip(wanted, results, strict=True):
                array[lines] = result

    return recompute


def _rows(start: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return the memory at an address as an array."""
    size = int(np.prod(shape)) * dtype.itemsize
    memory = (ctypes.c_char * size).from_address(start)
    return np.frombuffer(memoryview(memory), dtype).reshape(shape)
