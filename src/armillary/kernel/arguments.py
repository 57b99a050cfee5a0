"""The arrays of a call: what shapes a computation takes, and whether those given fit.

Counts and single numbers that users give are checked here, too.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Sequence
from numbers import Real
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError, quote
from armillary.trace import Port, Program

Array = npt.NDArray[Any]
Numbers = npt.NDArray[np.float64]
Batch = tuple[int, ...]

MAX_DIMENSIONS = 3
MAX_ARRAYS = 63  # NumPy's bound on the operands of a ufunc, less one of our own


class Computation(Protocol):
    """What a kernel computes, a Program or a Pipeline: arrays from arrays."""

    @property
    def name(self) -> str:
        """Return what messages call it."""
        ...

    @property
    def inputs(self) -> tuple[Port, ...]:
        """Return its inputs."""
        ...

    @property
    def outputs(self) -> tuple[Port, ...]:
        """Return its outputs."""
        ...


CUDA, CUDA_MANAGED, ROCM = 2, 13, 10
"""Kinds of devices, as DLPack numbers them."""


def is_on_gpu(value: Any) -> bool:
    """Return whether an argument of a call is an array on a GPU."""
    if isinstance(value, np.ndarray | list | tuple | float | int):
        return False
    if (known := getattr(value, "is_cuda", None)) is not None:  # torch, in a tenth
        return bool(known)
    where = getattr(value, "__dlpack_device__", None)
    if where is None:
        return hasattr(value, "__cuda_array_interface__")
    try:
        kind, _ = where()
    except Exception:
        return False
    return int(kind) in (CUDA, CUDA_MANAGED, ROCM)


def refuse_gpu(name: str, value: Any) -> None:
    """Check that an array is where NumPy reads it.

    Raises:
        ShapeError: It is on a GPU.
    """
    if is_on_gpu(value):
        raise ShapeError(
            f"{name} is on a GPU, where kernels, collision checks, clearances, and "
            "`kernel` of solvers compute. For all else move it: tensor.cpu() of torch, "
            "cupy.asnumpy(array)."
        )


def ufunc_signature(program: Computation, *more: Port) -> str:
    """Return NumPy's generalised signature, such as `(7)->(4,4)`, with more inputs."""

    def group(ports: tuple[Port, ...]) -> str:
        return ",".join(f"({','.join(map(str, port.shape))})" for port in ports)

    return f"{group((*program.inputs, *more))}->{group(program.outputs)}"


def compact_strides(shape: tuple[int, ...], real_bytes: int) -> list[int]:
    """Return the strides of a row-major array without gaps [bytes]."""
    strides: list[int] = []
    step = real_bytes
    for dimension in reversed(shape):
        strides.insert(0, step)
        step *= dimension
    return strides


FLOAT64 = np.dtype(np.float64)


def whole_number(name: str, value: Any, *, least: int) -> int:
    """Return a count as an integer of Python.

    Args:
        name: What messages call it.
        value: The count.
        least: The least that is allowed.

    Raises:
        ModelError: It is not an integer, or below `least`.
    """
    try:
        count = operator.index(value)
    except TypeError:
        count = least - 1
    if count < least:
        raise ModelError(
            f"{name} is {quote(value)}; it must be a whole number, at least {least}."
        )
    return count


def numbers_of(name: str, value: Any) -> Numbers:
    """Return an array of numbers.

    Raises:
        ShapeError: They are not numbers, rows of unequal length, or masked.
    """
    refuse_gpu(name, value)
    try:
        given = np.asarray(value)
    except ValueError as error:
        raise ShapeError(f"{name} has rows of unequal length.") from error
    if given.dtype.kind not in "fiub":
        raise ShapeError(f"{name} needs real numbers, not {given.dtype}.")
    if type(value) is not np.ndarray and hides_numbers(value):
        raise ShapeError(
            f"Some numbers of {name} are masked. Say what they shall be: "
            "array.filled(np.nan)."
        )
    return given if given.dtype == np.float64 else given.astype(np.float64)


def positive_number(
    what: str, value: Any, *, most: float = sys.float_info.max
) -> float:
    """Return a number above 0.

    Args:
        what: What messages call it.
        value: The number.
        most: The greatest that is allowed, which is finite or infinite.

    Raises:
        ModelError: It is something else.
    """
    try:
        number = float(value) if isinstance(value, Real) else math.nan
    except OverflowError:  # a whole number beyond all others
        number = math.nan
    if 0.0 < number <= most:
        return number
    kind = "number" if most == math.inf else "finite number"
    raise ModelError(f"{what} is a {kind} above 0, not {quote(value)}.")


def fitting(name: str, value: Any, shape: tuple[int, ...]) -> Numbers:
    """Return numbers that broadcast to a shape, in that shape.

    Raises:
        ShapeError: They do not.
    """
    array = numbers_of(name, value)
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ShapeError(
            f"{name} needs the shape {shape} here; an array of shape "
            f"{array.shape} was given."
        ) from None


def as_inputs(
    program: Computation, values: Sequence[Any], dtype: np.dtype[Any] = FLOAT64
) -> list[Array]:
    """Return `values` as arrays of `dtype` whose last dimensions fit the inputs.

    Raises:
        ShapeError: The number of inputs, a shape or a type is wrong; the message says
            what is expected.
    """
    ports = program.inputs
    if len(values) != len(ports):
        raise ShapeError(
            f"'{program.name}' takes {_counted(ports)}; {len(values)} given."
        )
    return [
        _as_input(program.name, value, port, dtype)
        for value, port in zip(values, ports, strict=True)
    ]


def _counted(ports: Sequence[Port]) -> str:
    if not ports:
        return "no arrays"
    listed = ", ".join(map(described, ports))
    return f"{len(ports)} {'array' if len(ports) == 1 else 'arrays'}, {listed}"


def described(port: Port) -> str:
    """Return a port as messages show it: `q of shape (..., 7)`."""
    return f"{port.name} of shape ({', '.join(['...', *map(str, port.shape)])})"


def _as_input(name: str, value: Any, port: Port, dtype: np.dtype[Any]) -> Array:
    rank = len(port.shape)
    # By far the most frequent case: an array of the right type, returned as it is.
    if type(value) is np.ndarray and value.dtype is dtype:
        array: Array = cast("Any", value)
        if array.ndim >= rank and array.shape[array.ndim - rank :] == port.shape:
            return array
    refuse_gpu(f"{port.name} of '{name}'", value)
    try:
        given = np.asarray(value)
    except ValueError as error:
        raise ShapeError(
            f"'{name}' needs {described(port)}; rows of unequal length were given."
        ) from error
    if given.dtype.kind not in "fiub":
        raise ShapeError(
            f"'{name}' needs {described(port)} of real numbers; an array of "
            f"{given.dtype} was given. {_real_fix(given.dtype)}"
        )
    if type(value) is not np.ndarray and hides_numbers(value):
        raise ShapeError(
            f"'{name}' needs {described(port)}; a masked array was given, some of "
            "whose numbers are masked. Say what they shall be: array.filled(np.nan)."
        )
    if given.shape[given.ndim - rank :] != port.shape or given.ndim < rank:
        raise ShapeError(
            f"'{name}' needs {described(port)}; an array of shape {given.shape} was "
            f"given.{_shape_fix(given, port)}"
        )
    return given if given.dtype == dtype else given.astype(dtype)


def _real_fix(dtype: np.dtype[Any]) -> str:
    if dtype.kind == "c":
        return "Pass its real part: array.real."
    return "Convert it first: np.asarray(array, dtype=float)."


def hides_numbers(value: Any) -> bool:
    """Return whether a value is an array some of whose numbers are masked."""
    if not isinstance(value, np.ndarray):  # numpy.ma is slow to import
        return False
    array: Array = cast("Any", value)
    return isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array)


def _shape_fix(given: Array, port: Port) -> str:
    """Return a last sentence that tells how to make an array fit, if it is known."""
    shape, rank = given.shape, len(port.shape)
    if rank == 0 or given.ndim < rank:
        return ""
    # Points as columns, shape (3, n), in place of rows.
    if rank == 1 and shape[0] == port.size:
        return " Its first dimension fits: pass its transpose."
    noun = "dimension" if rank == 1 else "dimensions"
    wanted, found = (", ".join(map(str, part)) for part in (port.shape, shape[-rank:]))
    return f" The last {noun} must be {wanted}, not {found}."


def broadcast(program: Computation, values: Sequence[Any]) -> tuple[list[Array], Batch]:
    """Return the inputs as arrays of one batch shape, and that shape.

    Raises:
        ShapeError: A shape is wrong or the batches do not fit together.
    """
    arrays = as_inputs(program, values)
    batch = batch_shape(program, arrays)
    return spread_out(program, arrays, batch), batch


def batch_shape(program: Computation, arrays: Sequence[Array]) -> Batch:
    """Return the leading shape that the inputs of a program broadcast to.

    Raises:
        ShapeError: They do not fit together.
    """
    batches = [
        array.shape[: array.ndim - len(port.shape)]
        for array, port in zip(arrays, program.inputs, strict=True)
    ]
    # All the same, which is quickly seen; NumPy's broadcasting takes microseconds.
    if batches.count(batches[0] if batches else ()) == len(batches):
        return batches[0] if batches else ()
    try:
        return np.broadcast_shapes(*batches)
    except ValueError as error:
        shown = ", ".join(
            f"{port.name} has {batch}"
            for port, batch in zip(program.inputs, batches, strict=True)
        )
        raise ShapeError(
            f"'{program.name}' was given batches that do not fit together: {shown}. "
            "Each dimension must be the same in all of them, or 1."
        ) from error


def check_arguments(name: str, arguments: Sequence[tuple[Port, Any]]) -> None:
    """Check the arrays of a call by the names that its caller has for them.

    Kernels call their inputs by names of columns. A public call that fails in one is
    checked again by this, so that the message names what was given.

    Args:
        name: What messages call it.
        arguments: The name and the shape of each array, and the array.

    Raises:
        ShapeError: As for a kernel.
    """
    program = Program(name, tuple(port for port, _ in arguments), (), (), ())
    batch_shape(program, as_inputs(program, [value for _, value in arguments]))


def spread_out(
    program: Computation, arrays: Sequence[Array], batch: Batch
) -> list[Array]:
    """Return read-only views of the inputs of a program, all of one batch shape."""
    return [
        np.broadcast_to(array, (*batch, *port.shape))
        for array, port in zip(arrays, program.inputs, strict=True)
    ]
