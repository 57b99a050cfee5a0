"""What stands in for a kernel where a formula cannot be traced: it runs as Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from armillary.errors import KernelError, ShapeError
from armillary.kernel.arguments import as_inputs, batch_shape, spread_out
from armillary.trace import Program

__all__ = ["PythonKernel", "PythonProgram"]


FLOAT64: Final = np.dtype(np.float64)


@dataclass(frozen=True, eq=False)
class PythonProgram(Program):
    """A program that is a Python function of floats, without instructions.

    Attributes:
        function: Takes an array for each input and returns the output, or a tuple of
            several.
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

    def __call__(self, *inputs: Any, out: Any = None, threads: Any = None) -> Any:
        """Compute the outputs, each of shape (..., *output shape), on one thread.

        Raises:
            ShapeError: An array has the wrong shape or type.
        """
        program = self.program
        arrays = as_inputs(program, inputs, FLOAT64)
        batch = batch_shape(program, arrays)
        shapes = [(*batch, *port.shape) for port in program.outputs]
        results = tuple(np.empty(shape, self.dtype) for shape in shapes)
        wide = spread_out(program, arrays, batch)
        is_single = len(results) == 1
        for row in np.ndindex(*batch):
            outputs = program.function(*(array[row] for array in wide))
            parts = (outputs,) if is_single else outputs
            for result, part in zip(results, parts, strict=True):
                result[row] = part
        if out is None:
            return results[0] if is_single else results
        targets = cast("tuple[Any, ...]", out) if isinstance(out, tuple) else (out,)
        if [getattr(target, "shape", None) for target in targets] != shapes:
            listed = " and ".join(map(str, shapes))
            raise ShapeError(f"'{program.name}' writes to out= an array {listed}.")
        for target, result in zip(targets, results, strict=True):
            target[...] = result
        return cast("Any", out)

    def vjp(self, *_: Any, **__: Any) -> Any:
        """Refuse derivatives, and functions of it.

        Raises:
            KernelError: Only what is traced is differentiated.
        """
        raise KernelError(
            f"'{self.program.name}' runs as Python and has no derivatives, nor "
            "functions of it: only what is traced has."
        )

    jvp = jax = torch = then = vjp

    def __reduce__(self) -> Any:
        """Refuse to be pickled.

        Raises:
            KernelError: A function that was made at run time has no name to load it by.
        """
        raise KernelError(
            f"'{self.program.name}' runs as Python and cannot be pickled; pickle the "
            "cell, and ask it again."
        )

    def __repr__(self) -> str:
        return f"<Python function {self.program.name}, {self.dtype}>"
