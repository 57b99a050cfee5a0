"""Libraries whose arrays lie on GPUs: what is read of an array, and how one is made.

A library that is known here says in a microsecond where an array lies. Of others is
known what `GpuArray.of` reads. To teach a new one, add a class with these three
functions to `LIBRARIES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from typing import Any, Final, Protocol

import numpy as np

from armillary.errors import KernelError, ShapeError
from armillary.kernel.gpu_array import DEFAULT_STREAM, GpuArray

__all__ = ["LIBRARIES", "Library", "library_of"]


class Library(Protocol):
    """What is asked of a library of arrays on GPUs."""

    def read(self, name: str, value: Any) -> GpuArray:
        """Return where an array lies, which messages call by its name."""
        ...

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], like: Any) -> Any:
        """Return a new array on the GPU of another."""
        ...

    def stream(self, like: Any) -> int:
        """Return the handle of the stream that is used now on the GPU of an array."""
        ...


class _Torch:
    @cached_property
    def torch(self) -> Any:
        return import_module("torch")

    @cached_property
    def types(self) -> dict[Any, np.dtype[Any]]:
        names = "float64", "float32"
        return {getattr(self.torch, name): np.dtype(name) for name in names}

    @cached_property
    def is_amd(self) -> bool:
        return self.torch.version.hip is not None

    def read(self, name: str, value: Any) -> GpuArray:
        if value.requires_grad:
            raise ShapeError(
                f"{name} needs gradients: call kernel.torch(), or give tensor.detach()."
            )
        dtype = self.types.get(value.dtype)
        is_plain = value.layout is self.torch.strided and not value.is_neg()
        if dtype is None or not is_plain or self.is_amd or not value.is_cuda:
            return GpuArray.of(name, value)
        return GpuArray(
            address=value.data_ptr(),
            dtype=dtype,
            shape=tuple(value.shape),
            steps=value.stride(),
            is_read_only=False,
            device=value.device.index,
            owner=value,
        )

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], like: Any) -> Any:
        kind = getattr(self.torch, dtype.name)
        return self.torch.empty(shape, dtype=kind, device=like.device)

    def stream(self, like: Any) -> int:
        return int(self.torch.cuda.current_stream(like.get_device()).cuda_stream)


class _Cupy:
    @cached_property
    def cupy(self) -> Any:
        return import_module("cupy")

    def read(self, name: str, value: Any) -> GpuArray:
        size = value.dtype.itemsize
        return GpuArray(
            address=value.data.ptr,
            dtype=value.dtype,
            shape=value.shape,
            steps=tuple(step // size for step in value.strides),
            is_read_only=False,
            device=value.device.id,
            owner=value,
        )

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], like: Any) -> Any:
        with like.device:
            return self.cupy.empty(shape, dtype)

    def stream(self, like: Any) -> int:
        with like.device:
            return int(self.cupy.cuda.get_current_stream().ptr)


class _Other:
    """Arrays of which is known only where they lie."""

    def read(self, name: str, value: Any) -> GpuArray:
        return GpuArray.of(name, value)

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

OTHER: Final = _Other()


def library_of(array: Any) -> Library:
    """Return the library of an array, whose class may be derived from one of it."""
    for kind in type(array).__mro__:
        library = LIBRARIES.get(kind.__module__.partition(".")[0])
        if library is not None:
            return library
    return OTHER
