"""Program evaluated one float at a time: the first reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.kernel.arguments import broadcast
from armillary.trace import Program, evaluate

Array = npt.NDArray[np.float64]


def interpret(program: Program, *inputs: Any) -> Array | tuple[Array, ...]:
    """Compute a program's outputs with Python floats, row by row.

    Args:
        program: What to compute.
        inputs: An array for each input, shape (..., *input shape), broadcast together.

    Returns:
        Its output, shape (..., *output shape), or a tuple of them.

    Raises:
        ShapeError: An input has the wrong shape.
    """
    arrays, batch = broadcast(program, inputs)
    outputs = [np.empty((*batch, *port.shape)) for port in program.outputs]
    for row in np.ndindex(*batch):
        scalars = [float(x) for array in arrays for x in array[row].flat]
        numbers = iter(evaluate(program, scalars))
        for output in outputs:
            for element in np.ndindex(output.shape[len(batch) :]):
                output[row + element] = next(numbers)
    return outputs[0] if len(outputs) == 1 else tuple(outputs)
