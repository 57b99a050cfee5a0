"""Kernels as custom calls of XLA, in the memory of its buffers on the CPU.

XLA calls a C function with the addresses of arguments and results (XLA_FFI_CallFrame of
`xla/ffi/api/c_api.h`, whose layout is below). One function serves all kernels: an
attribute of each call says which. Results are written where XLA wants them, where a
callback of JAX copies them. It is left to that where a library has another layout.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable
from ctypes import POINTER, Structure, c_char, c_char_p, c_int, c_int64, c_size_t
from ctypes import c_void_p as Address
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from armillary.kernel.derivatives import Derivative

__all__ = ["CALL", "is_registered", "number_of"]

CALL: Final = "armillary_kernel"
"""What XLA calls the function."""

VERSION: Final = 0, 3
"""Of the layout: XLA refuses one that it does not know."""

INTERNAL: Final = 13
"""XLA_FFI_Error_Code_INTERNAL."""


class _Version(Structure):
    """XLA_FFI_Api_Version."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("extension", Address),
        ("major", c_int),
        ("minor", c_int),
    ]


class _Metadata(Structure):
    """XLA_FFI_Metadata, up to what is written."""

    _fields_ = [("struct_size", c_size_t), ("version", _Version)]


class _MetadataExtension(Structure):
    """XLA_FFI_Metadata_Extension: the only one there is."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("type", c_int),
        ("next", Address),
        ("metadata", POINTER(_Metadata)),
    ]


class _XlaBuffer(Structure):
    """XLA_FFI_Buffer."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("extension", Address),
        ("type", c_int),
        ("data", Address),
        ("rank", c_int64),
        ("shape", POINTER(c_int64)),
    ]


class _XlaBuffers(Structure):
    """XLA_FFI_Args, and XLA_FFI_Rets."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("extension", Address),
        ("count", c_int64),
        ("types", Address),
        ("items", POINTER(POINTER(_XlaBuffer))),
    ]


class _Scalar(Structure):
    """XLA_FFI_Scalar."""

    _fields_ = [("type", c_int), ("value", POINTER(c_int64))]


class _Attributes(Structure):
    """XLA_FFI_Attrs."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("extension", Address),
        ("count", c_int64),
        ("types", Address),
        ("names", Address),
        ("items", POINTER(POINTER(_Scalar))),
    ]


class _ErrorArguments(Structure):
    """XLA_FFI_Error_Create_Args."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("extension", Address),
        ("message", c_char_p),
        ("code", c_int),
    ]


class _Functions(Structure):
    """XLA_FFI_Api, up to what is called."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("extension", Address),
        ("version", _Version),
        ("internal", Address),
        ("new_error", ctypes.CFUNCTYPE(Address, POINTER(_ErrorArguments))),
    ]


class _Frame(Structure):
    """XLA_FFI_CallFrame."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("extension", POINTER(_MetadataExtension)),
        ("functions", POINTER(_Functions)),
        ("context", Address),
        ("stage", c_int),
        ("inputs", _XlaBuffers),
        ("outputs", _XlaBuffers),
        ("attributes", _Attributes),
    ]


@final
@dataclass(frozen=True, slots=True)
class _Called:
    """A function of arrays of a type: inputs, then `out`, a tuple."""

    compute: Callable[..., None]
    dtype: np.dtype[Any]


_CALLED: Final[dict[int, _Called]] = {}


@cache
def number_of(question: Derivative) -> int:
    """Return the number that stands for a question in code of XLA.

    It is drawn at random, so that code which XLA keeps on disk, or which a forked
    process makes, never means another question. The question is kept from then on: XLA
    may still run code that nothing else refers to.
    """
    kernel = question.compiled
    is_single = len(kernel.computation.outputs) == 1

    def compute(*inputs: Any, out: tuple[Any, ...]) -> None:
        kernel(*inputs, out=out[0] if is_single else out)

    number = int.from_bytes(os.urandom(8)) >> 1
    _CALLED[number] = _Called(compute, question.kernel.dtype)
    return number


def _arrays(buffers: _XlaBuffers, dtype: np.dtype[Any]) -> list[npt.NDArray[Any]]:
    """Return the arrays in memory of XLA."""
    found: list[npt.NDArray[Any]] = []
    for k in range(buffers.count):
        buffer = buffers.items[k].contents
        shape = tuple(buffer.shape[: buffer.rank])
        size = math.prod(shape) * dtype.itemsize
        memory: Any = (c_char * size).from_address(buffer.data) if size else None
        found.append(np.ndarray(shape, dtype, memory))
    return found


@ctypes.CFUNCTYPE(Address, POINTER(_Frame))
def _entry(address: Any) -> int | None:
    """Answer what XLA asks; return null, or an error of XLA."""
    frame = address.contents
    try:
        if frame.extension:  # asks for the layout alone
            version = frame.extension.contents.metadata.contents.version
            version.major, version.minor = VERSION
            return None
        called = _CALLED[frame.attributes.items[0].contents.value[0]]
        outputs = _arrays(frame.outputs, called.dtype)
        called.compute(*_arrays(frame.inputs, called.dtype), out=tuple(outputs))
    except BaseException as error:  # XLA could catch nothing
        message = f"{type(error).__name__}: {error}".encode(errors="replace")
        given = _ErrorArguments(ctypes.sizeof(_ErrorArguments), None, message, INTERNAL)
        return frame.functions.contents.new_error(ctypes.byref(given))
    return None


@cache
def is_registered() -> bool:
    """Register the function with XLA, and tell whether it knows the layout."""
    ffi: Any = import_module("jax.ffi")
    at = ctypes.cast(_entry, Address).value
    try:
        ffi.register_ffi_target(CALL, ffi.pycapsule(at), platform="cpu")
    except Exception:  # of a class that differs from one version of XLA to another
        return False
    return True
