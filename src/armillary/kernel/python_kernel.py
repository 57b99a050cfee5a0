"""What stands in for a kernel where a formula cannot be traced: it runs as Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.errors import ShapeError
from armillary.kernel.arguments import as_inputs, batch_shape, spread_out
from armillary.trace import Program

__all__ = ["PythonKernel", "PythonProgram"]

Array = npt.NDArray[Any]

FLOAT64: Final = np.dtype(np.float64)


@dataclass(frozen=True, eq=False)
class PythonProgram(Program):
    """A program that is a Python function of floats, without instructions.

    Attributes:
        function: Takes an array for each input and returns the one output.
    """

    function: Callable[..., Any]

    __hash__ = object.__hash__


class PythonKernel:
    """Calls a Python function for each row; it is called as a `Kernel` is.

    Attributes:
        program: What it calls.
        dtype: The type that it computes in.
        lanes: 1: it computes one row at a time.
    """

    lanes = 1

    def __init__(self, program: PythonProgram, dtype: npt.DTypeLike) -> None:
        """Take over a function; results are of `dtype`."""
        self.program, self.dtype = program, np.dtype(dtype)

    @property
    def operation_count(self) -> int:
        """Return 0: what Python computes is not counted."""
        return self.program.operation_count

    def __call__(self, *inputs: Any, out: Any = None, threads: Any = None) -> Array:
        """Compute the output, shape (..., *output shape), on one thread.

        Raises:
            ShapeError: An array has the wrong shape or type.
        """
        program = self.program
        arrays = as_inputs(program, inputs, FLOAT64)
        batch = batch_shape(program, arrays)
        (port,) = program.outputs
        shape = (*batch, *port.shape)
        result = np.empty(shape, self.dtype)
        wide = spread_out(program, arrays, batch)
        for row in np.ndindex(*batch):
            result[row] = program.function(*(array[row] for array in wide))
        if out is None:
            return result
        if not isinstance(out, np.ndarray) or out.shape != shape:  # type: ignore[reportUnknownMemberType]
            raise ShapeError(f"'{program.name}' writes to out= an array {shape}.")
        out[...] = result
        return out  # type: ignore[reportUnknownVariableType]

    def __repr__(self) -> str:
        return f"<Python function {self.program.name}, {self.dtype}>"
