"""What arrays on a GPU say of themselves: `__cuda_array_interface__`, or DLPack alone.

Nothing is copied. A capsule of DLPack keeps the memory as long as it lives; it is never
consumed, so its library frees it with the capsule. The structures are those of
dlpack.h, of versions 0 and 1.
"""

from __future__ import annotations

import ctypes
import math
from functools import lru_cache
from typing import Any, Final, final

import msgspec
import numpy as np

from armillary.errors import ShapeError
from armillary.kernel.arguments import ROCM

__all__ = ["DEFAULT_STREAM", "GpuArray", "packed"]

DEFAULT_STREAM: Final = 1
"""The handle of the stream that waits for all others, for CUDA and for DLPack."""

READ_ONLY: Final = 1


class DLTensor(ctypes.Structure):
    """An array in memory, of strides in numbers."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Versioned(ctypes.Structure):
    """What leads to an array since version 1; before, the array comes first."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


@final
class GpuArray(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """An array on a GPU.

    Attributes:
        address: Of its first number.
        dtype: The type of its numbers.
        shape: Its shape.
        steps: How many numbers apart its elements are, for each dimension.
        is_read_only: Whether it may not be written.
        device: The number of its GPU; None where only the driver knows.
        owner: What keeps its memory.
    """

    address: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    steps: tuple[int, ...]
    is_read_only: bool
    owner: Any
    device: int | None = None

    @classmethod
    def of(cls, name: str, value: Any) -> GpuArray:
        """Read what an array says of itself.

        Args:
            name: What messages call it.
            value: The array.

        Raises:
            ShapeError: It does not say where it lies, or it is on an AMD GPU.
        """
        where = getattr(value, "__dlpack_device__", None)
        if where is not None and int(where()[0]) == ROCM:
            raise ShapeError(
                f"{name} is on an AMD GPU; kernels run on those of NVIDIA. Move it to "
                "the CPU."
            )
        interface: Any = getattr(value, "__cuda_array_interface__", None)
        if interface is None:
            return cls._by_capsule(name, value)
        dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
        address, is_read_only = interface["data"]
        strides = interface.get("strides")
        return cls(
            address=int(address or 0),
            dtype=dtype,
            shape=shape,
            steps=packed(shape)
            if strides is None
            else tuple(each // dtype.itemsize for each in strides),
            is_read_only=bool(is_read_only),
            owner=value,
        )

    @classmethod
    def _by_capsule(cls, name: str, value: Any) -> GpuArray:
        try:
            # Work that its library has begun is done before what this stream is given.
            capsule = value.__dlpack__(stream=DEFAULT_STREAM)
            tensor, is_read_only = _tensor(capsule)
        except (AttributeError, BufferError, TypeError, ValueError) as error:
            raise ShapeError(
                f"{name} is {type(value).__name__}, which does not say where on the "
                f"GPU it lies ({error}); pass an array of torch or CuPy."
            ) from error
        kind = {0: "i", 1: "u", 2: "f", 5: "c"}.get(tensor.code, "V")
        size = tensor.bits // 8
        dtype = np.dtype(f"{kind}{size}" if kind != "V" and size else "V1")
        shape = tuple(tensor.shape[: tensor.ndim])
        steps = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None
        return cls(
            address=(tensor.data or 0) + tensor.byte_offset,
            dtype=dtype,
            shape=shape,
            steps=packed(shape) if steps is None else steps,
            is_read_only=is_read_only,
            owner=capsule,
        )


@lru_cache(maxsize=256)
def packed(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the distances [numbers] of an array without gaps."""
    return tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))


def _tensor(capsule: Any) -> tuple[DLTensor, bool]:
    """Return the array of a capsule, and whether it may not be written."""
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype = ctypes.c_void_p
    pointer_of.argtypes = ctypes.py_object, ctypes.c_char_p
    is_valid = ctypes.pythonapi.PyCapsule_IsValid
    is_valid.argtypes = ctypes.py_object, ctypes.c_char_p
    if is_valid(capsule, b"dltensor"):
        return DLTensor.from_address(pointer_of(capsule, b"dltensor")), False
    address = pointer_of(capsule, b"dltensor_versioned")
    found = Versioned.from_address(address)
    return found.tensor, bool(found.flags & READ_ONLY)
