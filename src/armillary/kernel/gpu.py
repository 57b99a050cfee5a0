"""Kernels on arrays that lie on a GPU: the same scalar code, a thread for each row.

    thread k:  out[k], ... = program(in0[k stride0], in1[k stride1], ...)

Arrays are those of torch, CuPy, or whatever has `__cuda_array_interface__` or DLPack;
nothing is copied. A kernel starts on the stream that the library of the first array
uses now, and its results are arrays of that library on the same GPU. The PTX is that of
`standalone.py`. It was checked by NVIDIA's assembler and, as scalar code on the CPU, by
tests; it was never run on a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, Final, Protocol, cast, final

import numpy as np
import numpy.typing as npt

from armillary import forks
from armillary.errors import KernelError, ShapeError
from armillary.kernel.arguments import ROCM, Computation, is_on_gpu
from armillary.kernel.gpu_entry import THREADS
from armillary.kernel.gpu_array import DEFAULT_STREAM, GpuArray, packed
from armillary.kernel.gpu_driver import Driver, GpuCode, Launch, cuda_driver
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
    pairs = list(zip(ports, inputs, strict=True))
    bound = {p.name: _constant(p, x, kernel) for p, x in pairs if not is_on_gpu(x)}
    given = [(p, x) for p, x in pairs if p.name not in bound]
    # What cannot be is refused before a GPU is looked for.
    rows = [_Rows.of(port, x, kernel.dtype) for port, x in given]
    batch = _batch([each.batch for each in rows])
    strides = [each.stride(batch) for each in rows]
    code = gpu_code(kernel, tuple((k, v.tobytes()) for k, v in bound.items()))
    if driver is None:
        driver = _driver()
    library = _library_of(given[0][1])
    device = driver.device_of(rows[0].array.address) if math.prod(batch) else 0
    results = _results(code, batch, kernel.dtype, given[0][1], out, library)
    targets = _targets(code, results, batch, kernel.dtype)
    count = math.prod(batch)
    for each in (*rows, *targets) if count else ():
        other = driver.device_of(each.array.address)
        if other != device:
            raise ShapeError(
                f"{each.port.name} lies on GPU {other}, and "
                f"{rows[0].port.name} on GPU {device}; move one of them."
            )
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
            stream=library.stream(given[0][1]),
        )
        driver.launch(code, launch)
    return results[0] if len(results) == 1 else tuple(results)


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
@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
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
        if getattr(value, "requires_grad", False):
            raise ShapeError(
                f"{port.name} needs gradients: call kernel.torch(), or give "
                "tensor.detach()."
            )
        device = getattr(value, "__dlpack_device__", None)
        if device is not None and int(device()[0]) == ROCM:
            raise ShapeError(
                f"{port.name} is on an AMD GPU; kernels run on those of NVIDIA. Move "
                "it to the CPU."
            )
        array = GpuArray.of(port.name, value)
        if array.dtype != dtype:
            raise ShapeError(
                f"{port.name} is {array.dtype} on the GPU, and the kernel computes in "
                f"{dtype}; convert it there, or make the kernel with "
                f"dtype={array.dtype}."
            )
        shape, steps = array.shape, array.steps
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


class Library(Protocol):
    """What is asked of a library of arrays on GPUs."""

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], like: Any) -> Any:
        """Return a new array on the GPU of another."""
        ...

    def stream(self, like: Any) -> int:
        """Return the handle of the stream that is used now on the GPU of an array."""
        ...


class _Torch:
    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], like: Any) -> Any:
        torch: Any = import_module("torch")
        kind = getattr(torch, dtype.name)
        return torch.empty(shape, dtype=kind, device=like.device)

    def stream(self, like: Any) -> int:
        torch: Any = import_module("torch")
        return int(torch.cuda.current_stream(like.device).cuda_stream)


class _Cupy:
    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], like: Any) -> Any:
        cupy: Any = import_module("cupy")
        with like.device:
            return cupy.empty(shape, dtype)

    def stream(self, like: Any) -> int:
        cupy: Any = import_module("cupy")
        with like.device:
            return int(cupy.cuda.get_current_stream().ptr)


class _Other:
    """Arrays of which is known only where they lie."""

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], like: Any) -> Any:
        raise KernelError(
            f"Results on the GPU are arrays of torch or CuPy; for {type(like).__name__}"
            f" give out= with the shape {shape}, or torch.from_dlpack(array), which "
            "copies nothing."
        )

    def stream(self, like: Any) -> int:
        # None asks for no order.
        interface = getattr(like, "__cuda_array_interface__", {})
        return int(interface.get("stream") or DEFAULT_STREAM)


LIBRARIES: Final[Mapping[str, Library]] = {"torch": _Torch(), "cupy": _Cupy()}
"""Libraries of arrays, by the name of their package."""


def _library_of(array: Any) -> Library:
    return LIBRARIES.get(type(array).__module__.partition(".")[0], _Other())
