"""Kernels: compiled programs that are called like functions of arrays."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.errors import KernelError, ShapeError
from armillary.kernel import binding
from armillary.kernel.arguments import as_inputs, batch_shape
from armillary.kernel.entry import ufunc_signature
from armillary.kernel.vectorize import vectorize
from armillary.trace import Program

Array = npt.NDArray[Any]

# A batch is worth several threads when each gets at least this many operations.
OPERATIONS_PER_THREAD = 2_000_000


class Kernel:
    """A program compiled for this machine.

    Call it with an array for each input: `kernel(q)`, `kernel(Q)`, `kernel(Q, out=X)`,
    `kernel(Q, threads=1)`. Leading dimensions are a batch and broadcast as NumPy does;
    the global lock is released while it runs.

    Attributes:
        program: What it computes.
        dtype: The type it computes in.
        lanes: How many rows it computes at once.
    """

    __slots__ = ("_owned", "_ufunc", "dtype", "lanes", "program")

    def __init__(self, program: Program, dtype: np.dtype[Any], lanes: int) -> None:
        """Compile `program`, or load it from the cache on disk; see `compile`."""
        self.program = program
        self.dtype = dtype
        self.lanes = lanes
        from armillary.kernel.compiler import compiled  # imports LLVM

        code, shape = compiled(program, dtype.itemsize * 8, lanes)
        self.lanes = shape.lanes
        exact = _exact_function(program, dtype, shape.lanes)
        address = ctypes.cast(exact, ctypes.c_void_p).value or 0
        context = (ctypes.c_void_p * 1)(address)
        self._ufunc, owned = binding.make_ufunc(
            code.address("loop"),
            ctypes.addressof(context),
            dtype,
            (len(program.inputs), len(program.outputs)),
            ufunc_signature(program),
            program.name,
        )
        self._owned: tuple[object, ...] = (code, exact, context, *owned)

    def __call__(
        self, *inputs: Any, out: Any = None, threads: int | None = None
    ) -> Any:
        """Compute the outputs of the program.

        Args:
            inputs: An array for each input, shape (..., *input shape).
            out: Where to write: an array, or a tuple of one for each output.
            threads: How many threads may share a large batch; by default as many as
                the process may use, or the environment's `ARMILLARY_THREADS`.

        Returns:
            An array (..., *output shape), or a tuple of them for several outputs.

        Raises:
            ShapeError: An array has the wrong shape or type; the message says which.
        """
        arrays = as_inputs(self.program, inputs, self.dtype)
        batch = self._batch(arrays)
        results = self._results(out, batch)
        parts = self._parts(batch, threads)
        if parts == 1:
            self._ufunc(*arrays, out=results)
        else:
            self._spread(arrays, results, batch, parts)
        if out is not None:
            return out
        return results[0] if len(results) == 1 else results

    def _batch(self, arrays: Sequence[Array]) -> tuple[int, ...]:
        ports = self.program.inputs
        return batch_shape(
            self.program.name,
            [a.shape[: a.ndim - len(p.shape)] for a, p in zip(arrays, ports, strict=True)],
        )

    def _results(self, out: Any, batch: tuple[int, ...]) -> tuple[Array, ...]:
        """Return new arrays for the outputs, or those of the caller, checked."""
        shapes = [(*batch, *port.shape) for port in self.program.outputs]
        if out is None:
            return tuple(np.empty(shape, self.dtype) for shape in shapes)
        given = out if isinstance(out, tuple) else (out,)
        if len(given) != len(shapes):
            raise ShapeError(
                f"'{self.program.name}' has {len(shapes)} output(s); out= holds "
                f"{len(given)}."
            )
        for array, shape in zip(given, shapes, strict=True):
            _check_out(self.program.name, array, shape, self.dtype)
        return given

    def _parts(self, batch: tuple[int, ...], threads: int | None) -> int:
        """Return the number of threads to use."""
        if threads is not None and threads < 1:
            raise ShapeError(f"threads is {threads}; it must be at least 1.")
        if not batch:
            return 1
        work = np.prod(batch) * (self.program.operation_count + 1)
        worth = max(1, int(work // OPERATIONS_PER_THREAD))
        return min(threads or default_threads(), worth, max(1, batch[0]))

    def _spread(
        self,
        arrays: Sequence[Array],
        results: Sequence[Array],
        batch: tuple[int, ...],
        parts: int,
    ) -> None:
        """Share the first dimension of the batch among threads."""
        wide = [
            np.broadcast_to(array, (*batch, *port.shape))
            for array, port in zip(arrays, self.program.inputs, strict=True)
        ]
        edges = np.linspace(0, batch[0], parts + 1).astype(int)

        def work(part: int) -> None:
            rows = slice(edges[part], edges[part + 1])
            self._ufunc(*(a[rows] for a in wide), out=tuple(r[rows] for r in results))

        others = [_pool().submit(work, part) for part in range(1, parts)]
        work(0)
        for other in others:
            other.result()

    def __repr__(self) -> str:
        signature = ufunc_signature(self.program)
        return f"<kernel {self.program.name} {signature} {self.dtype} x{self.lanes}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return compile, (self.program,), {"dtype": self.dtype.str}

    def __setstate__(self, state: object) -> None:
        """Do nothing: `compile` has made the kernel anew."""


def _check_out(
    name: str, array: Any, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> None:
    if not isinstance(array, np.ndarray) or array.dtype != dtype:
        found = getattr(array, "dtype", type(array).__name__)
        raise ShapeError(f"'{name}' writes {dtype} to out=, which is {found}.")
    if array.shape != shape:
        raise ShapeError(
            f"'{name}' writes an array of shape {shape}; out= has shape {array.shape}."
        )
    if not array.flags.writeable:
        raise ShapeError(f"'{name}' cannot write to out=: the array is read-only.")


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(available_processors(), thread_name_prefix="armillary")


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_pool.cache_clear)


def available_processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def default_threads() -> int:
    """Return the number of threads that large batches use by default."""
    wish = os.environ.get("ARMILLARY_THREADS", "")
    return max(1, int(wish)) if wish.isdigit() else available_processors()


_Exact = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p))


def _exact_function(program: Program, dtype: np.dtype[Any], lanes: int) -> Any:
    """Return the C function that recomputes one block with NumPy.

    It gets the addresses of `lanes` compact rows of each input and output. It serves
    arguments so large that the fast formulas do not hold.
    """
    shapes = [(lanes, *p.shape) for p in (*program.inputs, *program.outputs)]
    input_count = len(program.inputs)
    scalar = ctypes.c_double if dtype.itemsize == 8 else ctypes.c_float

    def recompute(addresses: Any) -> None:
        arrays = [
            np.ctypeslib.as_array(
                ctypes.cast(addresses[k], ctypes.POINTER(scalar)), shape
            )
            for k, shape in enumerate(shapes)
        ]
        results = vectorize(program, *arrays[:input_count])
        if isinstance(results, np.ndarray):
            results = (results,)
        for array, result in zip(arrays[input_count:], results, strict=True):
            array[...] = result

    return _Exact(recompute)


def compile(
    program: Program, *, dtype: npt.DTypeLike = np.float64, lanes: int | None = None
) -> Kernel:
    """Return `program` as native code for this machine.

    Args:
        program: What to compute.
        dtype: float64 or float32, the type that it computes in.
        lanes: Rows computed at once; by default what the machine's registers hold.

    Raises:
        KernelError: The type has no native code.
    """
    kind = np.dtype(dtype)
    if kind not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise KernelError(f"Kernels compute in float64 or float32, not in {kind}.")
    kernel = Kernel(program, kind, lanes or 0)
    if len(program.outputs) > 1 or not binding.arrays_are_as_expected():
        return kernel
    return _with_fast_call(kernel)


def _with_fast_call(kernel: Kernel) -> Kernel:
    """Give a kernel a class of its own, whose call is the compiled @call."""
    slow: Callable[..., Any] = kernel.__call__
    code, exact = kernel._owned[:2]
    function, owned = binding.make_function(
        code.address("call"),  # type: ignore[attr-defined]
        ctypes.cast(exact, ctypes.c_void_p).value or 0,  # type: ignore[arg-type]
        kernel.dtype,
        slow,
        kernel.program.name,
    )
    kind = type("Kernel", (Kernel,), {"__slots__": (), "__call__": function})
    fast: Kernel = object.__new__(kind)
    for name in Kernel.__slots__:
        setattr(fast, name, getattr(kernel, name))
    fast._owned = (*kernel._owned, *owned)
    return fast


@lru_cache(maxsize=512)
def _shared(program: Program, dtype: str) -> Kernel:
    return compile(program, dtype=dtype)


def shared_kernel(program: Program, *, dtype: npt.DTypeLike = np.float64) -> Kernel:
    """Return the kernel of `program`, the same one for equal programs."""
    return _shared(program, np.dtype(dtype).str)
