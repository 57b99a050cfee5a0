"""Kernels on arrays that lie on a GPU: the same scalar code, a thread for each row.

    thread k:  out[k], ... = program(in0[k stride0], in1[k stride1], ...)

Arrays are those of torch, CuPy, or whatever has `__cuda_array_interface__` or DLPack;
nothing is copied. A kernel starts on the stream that the library of the first array
uses now, and its results are arrays of that library on the same GPU. The PTX is that of
`standalone.py`; how threads share the copying of rows is in `gpu_entry.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Protocol, cast, final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary import forks
from armillary.errors import KernelError, ShapeError
from armillary.kernel.arguments import Computation, is_on_gpu
from armillary.kernel.gpu_array import GpuArray, packed
from armillary.kernel.gpu_driver import Driver, GpuCode, Launch, cuda_driver
from armillary.kernel.gpu_entry import THREADS
from armillary.kernel.gpu_libraries import Library, library_of
from armillary.trace import Port

__all__ = ["call_on_gpu", "gpu_code"]

Array = npt.NDArray[Any]

MOST_BLOCKS: Final = 2**31 - 1


class Compiled(Protocol):
    """What is asked of a `Kernel`."""

    @property
    def computation(self) -> Computation:
        """Return what it computes."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type that it computes in."""
        ...

    @property
    def tables(self) -> Mapping[str, Array]:
        """Return the records of each table of a pipeline."""
        ...

    @property
    def callees(self) -> tuple[Any, ...]:
        """Return what the calls of a pipeline run."""
        ...


def call_on_gpu(
    kernel: Compiled,
    inputs: Sequence[Any],
    *,
    out: Any = None,
    driver: Driver | None = None,
) -> Any:
    """Compute a kernel where its inputs are.

    Args:
        kernel: The kernel.
        inputs: An array for each input: on one GPU, shape (..., *input shape), where
            rows follow each other at one distance; or numbers without a batch, which
            become constants of the code.
        out: Where to write: an array, or a tuple of one for each output.
        driver: What starts kernels; by default the driver of the machine.

    Returns:
        An array (..., *output shape) on the GPU, or a tuple of them.

    Raises:
        ShapeError: An array has the wrong shape, type, device or order in memory.
        KernelError: There is no GPU, it lacks memory, or its stream is of another one.
    """
    computation = kernel.computation
    ports = computation.inputs
    if len(inputs) != len(ports):
        listed = ", ".join(port.name for port in ports)
        raise ShapeError(
            f"'{computation.name}' takes {len(ports)} arrays ({listed}); "
            f"{len(inputs)} given."
        )
    bound: list[tuple[str, bytes]] = []
    rows: list[_Rows] = []
    on_gpu: list[Any] = []
    dtype = kernel.dtype
    # What cannot be is refused before a GPU is looked for.
    for port, value in zip(ports, inputs, strict=True):
        if is_on_gpu(value):
            on_gpu.append(value)
            rows.append(_Rows.of(port, value, dtype))
        else:
            bound.append((port.name, _constant(port, value, kernel).tobytes()))
    first = on_gpu[0]
    library = library_of(first)
    batch = _batch([each.batch for each in rows])
    count = math.prod(batch)
    strides = [each.stride(batch) for each in rows]
    code = gpu_code(kernel, tuple(bound))
    if driver is None:
        driver = _driver()
    results = _results(code, batch, dtype, first, out, library)
    targets = _targets(code, results, batch, dtype)
    device = _device([*rows, *targets], driver) if count else 0
    blocks = -(-count // THREADS)
    if blocks > MOST_BLOCKS:
        raise ShapeError(
            f"{count} rows are more than a GPU starts at once; give at most "
            f"{MOST_BLOCKS * THREADS}."
        )
    if count:
        addresses = [each.array.address for each in (*rows, *targets)]
        launch = Launch(
            device=device,
            blocks=blocks,
            threads=THREADS,
            arguments=(*addresses, count, *strides),
            stream=library.stream(first),
        )
        driver.launch(code, launch)
    return results[0] if len(results) == 1 else tuple(results)


def _device(rows: Sequence[_Rows], driver: Driver) -> int:
    """Return the number of the GPU that all arrays lie on."""
    places = [
        driver.device_of(each.array.address)
        if each.array.device is None
        else each.array.device
        for each in rows
    ]
    for each, place in zip(rows, places, strict=True):
        if place != places[0]:
            raise ShapeError(
                f"{each.port.name} lies on GPU {place}, and {rows[0].port.name} on GPU "
                f"{places[0]}; move one of them."
            )
    return places[0]


def _driver() -> Driver:
    return cuda_driver()


@lru_cache(maxsize=256)
def gpu_code(kernel: Compiled, bound: tuple[tuple[str, bytes], ...] = ()) -> GpuCode:
    """Return a kernel's code for GPUs, with some inputs as constants, by their bytes.

    Raises:
        KernelError: It cannot be compiled for a GPU.
    """
    with forks.IMPORT_LOCK:  # what makes code
        from armillary.kernel.jit import to_assembly
        from armillary.kernel.standalone import StandaloneFunction, standalone_module
        from armillary.kernel.targets import GPU, platform_of
    values = {name: np.frombuffer(data, kernel.dtype) for name, data in bound}
    shapes = {port.name: port.shape for port in kernel.computation.inputs}
    function = StandaloneFunction.of(
        "kernel",
        kernel.computation,
        bound={name: value.reshape(shapes[name]) for name, value in values.items()},
        tables=kernel.tables,
        callees=kernel.callees,
    )
    platform = platform_of(GPU)
    ir = standalone_module([function], kernel.dtype.itemsize * 8, platform)
    ptx = to_assembly(ir, platform.machine, 2, variables=True)
    outputs = function.computation.outputs
    return GpuCode(function.name, ptx, ir, function.inputs, outputs)


def _constant(port: Port, value: Any, kernel: Compiled) -> Array:
    """Return an input that is not on a GPU: numbers for all rows."""
    array = np.asarray(value)
    if array.shape != port.shape or array.dtype.kind not in "fiub":
        raise ShapeError(
            f"{port.name} is not on the GPU as other inputs are, and has the shape "
            f"{array.shape}; move it there, or give numbers of shape {port.shape} for "
            "all rows."
        )
    return np.ascontiguousarray(array, kernel.dtype)


@final
class _Rows(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """An array on a GPU as rows.

    Attributes:
        port: What it is.
        array: Where it lies.
        batch: The shape of its batch.
        step: Numbers from one row to the next.
    """

    port: Port
    array: GpuArray
    batch: tuple[int, ...]
    step: int

    @classmethod
    def of(cls, port: Port, value: Any, dtype: np.dtype[Any]) -> _Rows:
        """Read what an array says of itself."""
        array = library_of(value).read(port.name, value)
        if array.dtype != dtype:
            raise ShapeError(
                f"{port.name} is {array.dtype} on the GPU, and the kernel computes in "
                f"{dtype}; convert it there, or make the kernel with "
                f"dtype={array.dtype}."
            )
        shape, steps = array.shape, array.steps
        if (
            steps == packed(shape)
            and shape[max(0, len(shape) - len(port.shape)) :] == port.shape
        ):
            return cls(
                port=port,
                array=array,
                batch=shape[: len(shape) - len(port.shape)],
                step=port.size,
            )
        first = len(shape) - len(port.shape)
        if first < 0 or shape[first:] != port.shape:
            wanted = ", ".join(("...", *map(str, port.shape)))
            raise ShapeError(f"{port.name} needs the shape ({wanted}), not {shape}.")
        # Numbers of a row follow each other, and rows are at one distance.
        inner = zip(shape[first:], steps[first:], packed(port.shape), strict=True)
        is_row = all(n == 1 or step == wanted for n, step, wanted in inner)
        outer = [(n, s) for n, s in zip(shape[:first], steps[:first], strict=True)]
        outer = [(n, s) for n, s in outer if n != 1]
        step = outer[-1][1] if outer else port.size
        expected = step
        for n, s in reversed(outer):
            is_row = is_row and s == expected
            expected = s * n
        if not is_row and math.prod(shape):
            raise ShapeError(
                f"The rows of {port.name} do not follow each other at one distance; "
                "give array.contiguous() of torch, or cupy.ascontiguousarray(array)."
            )
        return cls(
            port=port,
            array=array,
            batch=shape[:first],
            step=step,
        )

    def stride(self, batch: tuple[int, ...]) -> int:
        """Return how many numbers it is from one row of a batch to the next."""
        if math.prod(self.batch) == 1:
            return 0
        if self.batch != batch:
            raise ShapeError(
                f"{self.port.name} has the batch {self.batch}, and other inputs "
                f"{batch}; on a GPU inputs have the same batch, or a single row."
            )
        return self.step


def _batch(batches: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the batch of a call."""
    if len(batches) == 1:
        return batches[0]
    try:
        return np.broadcast_shapes(*batches)
    except ValueError as error:
        listed = ", ".join(map(str, batches))
        raise ShapeError(f"The batches of inputs do not fit: {listed}.") from error


def _results(
    code: GpuCode,
    batch: tuple[int, ...],
    dtype: np.dtype[Any],
    like: Any,
    out: Any,
    library: Library,
) -> list[Any]:
    """Return the arrays to write to, in the order of the outputs."""
    if out is not None:
        given: list[Any] = (
            list(cast("tuple[Any, ...]", out)) if isinstance(out, tuple) else [out]
        )
        if len(given) != len(code.outputs):
            raise ShapeError(
                f"out= needs {len(code.outputs)} arrays, not {len(given)}."
            )
        return given
    shapes = [(*batch, *port.shape) for port in code.outputs]
    try:
        return [library.empty(shape, dtype, like) for shape in shapes]
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and "out of memory" not in str(error):
            raise
        size = sum(math.prod(shape) for shape in shapes) * dtype.itemsize
        raise KernelError(
            f"The GPU has no memory for results of {size / 2**20:.0f} MiB; ask for "
            "fewer rows at once, or give out=."
        ) from error


def _targets(
    code: GpuCode,
    results: Sequence[Any],
    batch: tuple[int, ...],
    dtype: np.dtype[Any],
) -> list[_Rows]:
    """Return the arrays to write to as rows, checked."""
    targets: list[_Rows] = []
    for port, array in zip(code.outputs, results, strict=True):
        target = _Rows.of(port, array, dtype)
        is_packed = math.prod(batch) <= 1 or target.step == port.size
        if target.batch != batch or not is_packed or target.array.is_read_only:
            raise ShapeError(
                f"out= for {port.name} needs the shape {(*batch, *port.shape)}, its "
                "numbers one behind the other, and must not be read-only."
            )
        targets.append(target)
    return targets
