"""The driver of NVIDIA's GPUs: the only module that calls it, by `cuda.bindings`.

`gpu.py` says what it needs as `Driver`. Where there is no GPU, tests give it another
one, which runs the same kernels on the CPU.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final, Protocol, final

import msgspec

from armillary.errors import KernelError
from armillary.trace import Port

__all__ = ["CudaDriver", "Driver", "GpuCode", "Launch", "cuda_driver"]

INSTALL: Final = "Kernels on a GPU need its bindings: pip install armillary[gpu]."

MEANINGS: Final = {
    "CUDA_ERROR_NO_DEVICE": "there is no NVIDIA GPU that this process may use",
    "CUDA_ERROR_OUT_OF_MEMORY": "its memory is full; ask for fewer rows at once",
    "CUDA_ERROR_INVALID_HANDLE": "the stream is not one of this GPU",
    "CUDA_ERROR_INVALID_CONTEXT": "the stream is not one of this GPU",
    "CUDA_ERROR_INVALID_PTX": "it is older than Volta (compute capability 7.0)",
    "CUDA_ERROR_NO_BINARY_FOR_GPU": "it is older than Volta (compute capability 7.0)",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": "its driver is older than that of CUDA 11.4",
    "CUDA_ERROR_ILLEGAL_ADDRESS": "an array is gone, or another kernel has failed",
}
"""What errors mean here, by the names of the driver."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class GpuCode:
    """A kernel for GPUs.

    Attributes:
        name: Of its entry.
        ptx: The text that the driver compiles.
        ir: The text that it is made of, which other machines can run, too.
        inputs: What it takes.
        outputs: What it returns.
    """

    name: str
    ptx: str
    ir: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]


@final
class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """How a kernel is started.

    Attributes:
        device: The number of the GPU.
        blocks: The number of blocks of threads.
        threads: The number of threads of a block.
        arguments: Addresses of inputs and outputs, the number of rows, and for each
            input how many numbers from one row to the next; 64 bits each.
        stream: The handle of the stream.
    """

    device: int
    blocks: int
    threads: int
    arguments: tuple[int, ...]
    stream: int


class Driver(Protocol):
    """What is asked of the driver of GPUs."""

    def device_of(self, address: int) -> int:
        """Return the number of the GPU that an address lies on."""
        ...

    def launch(self, code: GpuCode, launch: Launch) -> None:
        """Start a kernel, which is loaded where it is not."""
        ...


@cache
def cuda_driver() -> Driver:
    """Return the driver, ready.

    Raises:
        KernelError: Its bindings are not installed, or there is no driver or GPU.
    """
    try:
        cuda: Any = import_module("cuda.bindings.driver")
    except ImportError as error:
        raise KernelError(INSTALL) from error
    return CudaDriver(cuda)


@final
class CudaDriver:
    """The calls that kernels need; see `Driver`."""

    def __init__(self, cuda: Any) -> None:
        """Start the driver, unless that is done.

        Raises:
            KernelError: There is no driver, or no GPU.
        """
        self._cuda = cuda
        # Modules stay loaded as long as the process lives.
        self._contexts: dict[int, Any] = {}
        self._functions: dict[tuple[GpuCode, int], Any] = {}
        try:
            results = cuda.cuInit(0)
        except RuntimeError as error:  # the library of the driver is missing
            raise KernelError(
                "This machine has no driver of NVIDIA GPUs (libcuda)."
            ) from error
        self._checked(results, "The driver does not start")

    def device_of(self, address: int) -> int:
        """Return the number of the GPU that an address lies on."""
        kind = self._cuda.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        (device,) = self._checked(
            self._cuda.cuPointerGetAttribute(kind, address),
            "The array lies on no GPU that the driver knows",
        )
        return int(device)

    def launch(self, code: GpuCode, launch: Launch) -> None:
        """Start a kernel on a stream; it runs behind what that has been given."""
        function, what = self._function(code, launch.device), f"'{code.name}'"
        # The driver reads each argument from where its pointer says, before it returns.
        numbers = [ctypes.c_uint64(number) for number in launch.arguments]
        places = (ctypes.c_void_p * len(numbers))(*map(ctypes.addressof, numbers))
        self._enter(launch.device)
        try:
            self._checked(
                self._cuda.cuLaunchKernel(
                    function,
                    *(launch.blocks, 1, 1),
                    *(launch.threads, 1, 1),
                    0,
                    launch.stream,
                    ctypes.addressof(places),
                    0,
                ),
                f"The kernel {what} does not start on GPU {launch.device}",
            )
        finally:
            self._leave()

    def _function(self, code: GpuCode, device: int) -> Any:
        """Return the kernel of a module, loaded on a GPU."""
        key = code, device
        if key not in self._functions:
            what = f"The kernel '{code.name}' cannot be loaded on GPU {device}"
            cuda = self._cuda
            self._enter(device)
            try:
                text = code.ptx.encode() + b"\0"
                (module,) = self._checked(cuda.cuModuleLoadData(text), what)
                found = cuda.cuModuleGetFunction(module, code.name.encode())
                (self._functions[key],) = self._checked(found, what)
            finally:
                self._leave()
        return self._functions[key]

    def _enter(self, device: int) -> None:
        """Make the primary context of a GPU, which libraries share, the present one."""
        cuda, what = self._cuda, f"GPU {device} cannot be used"
        if device not in self._contexts:
            (number,) = self._checked(cuda.cuDeviceGet(device), what)
            retained = self._checked(cuda.cuDevicePrimaryCtxRetain(number), what)
            (self._contexts[device],) = retained
        self._checked(cuda.cuCtxPushCurrent(self._contexts[device]), what)

    def _leave(self) -> None:
        self._checked(self._cuda.cuCtxPopCurrent(), "The context of a GPU is lost")

    def _checked(self, results: Any, what: str) -> tuple[Any, ...]:
        """Return what a call of the driver returns behind its status.

        Raises:
            KernelError: The status is an error.
        """
        status, *found = results
        if int(status) == 0:
            return tuple(found)
        name = getattr(status, "name", str(status))
        raise KernelError(f"{what}: {MEANINGS.get(name, name)} ({name}).")
