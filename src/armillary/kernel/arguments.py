"""The arrays that a call hands to a program: their shapes checked, their batch found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.errors import ShapeError
from armillary.trace import Port, Program

Array = npt.NDArray[Any]


def as_inputs(
    program: Program, values: Sequence[Any], dtype: npt.DTypeLike = np.float64
) -> list[Array]:
    """Return `values` as arrays of `dtype` whose last dimensions fit the inputs.

    Raises:
        ShapeError: The number of inputs, a shape or a type is wrong; the message says
            what is expected.
    """
    if len(values) != len(program.inputs):
        expected = ", ".join(described(port) for port in program.inputs)
        raise ShapeError(
            f"'{program.name}' takes {len(program.inputs)} array(s) ({expected}); "
            f"{len(values)} given."
        )
    return [
        _as_input(program.name, value, port, dtype)
        for value, port in zip(values, program.inputs, strict=True)
    ]


def described(port: Port) -> str:
    """Return a port as messages show it: `q of shape (..., 7)`."""
    return f"{port.name} of shape ({', '.join(['...', *map(str, port.shape)])})"


def _as_input(name: str, value: Any, port: Port, dtype: npt.DTypeLike) -> Array:
    try:
        given = np.asarray(value)
    except ValueError as error:
        raise ShapeError(
            f"'{name}' needs {described(port)}; rows of unequal length were given."
        ) from error
    if given.dtype.kind not in "fiub" and given.size:
        raise ShapeError(
            f"'{name}' needs {described(port)} of real numbers; an array of "
            f"{given.dtype} was given."
        )
    rank = len(port.shape)
    if given.shape[given.ndim - rank :] != port.shape or given.ndim < rank:
        raise ShapeError(
            f"'{name}' needs {described(port)}; an array of shape {given.shape} was "
            f"given.{_mend(given, port)}"
        )
    return given.astype(dtype, copy=False)


def _mend(given: Array, port: Port) -> str:
    rank = len(port.shape)
    if rank == 1 and given.ndim and given.shape[0] == port.size:
        return " Its first dimension fits: pass its transpose."
    if rank == 1 and given.ndim:
        return f" The last dimension must be {port.size}, not {given.shape[-1]}."
    return ""


def broadcast(
    program: Program, values: Sequence[Any]
) -> tuple[list[Array], tuple[int, ...]]:
    """Return the inputs as arrays of one batch shape, and that shape.

    Raises:
        ShapeError: A shape is wrong or the batches do not fit together.
    """
    arrays = as_inputs(program, values)
    batches = [
        array.shape[: array.ndim - len(port.shape)]
        for array, port in zip(arrays, program.inputs, strict=True)
    ]
    batch = batch_shape(program.name, batches)
    return [
        np.broadcast_to(array, (*batch, *port.shape))
        for array, port in zip(arrays, program.inputs, strict=True)
    ], batch


def batch_shape(name: str, batches: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape that `batches` broadcast to.

    Raises:
        ShapeError: They do not fit together.
    """
    try:
        return np.broadcast_shapes(*batches)
    except ValueError as error:
        shown = " and ".join(map(str, batches))
        raise ShapeError(
            f"'{name}' was given batches that do not fit together: {shown}."
        ) from error
