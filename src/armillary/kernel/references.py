"""Programs evaluated without machine code, which must agree with it: the references.

`interpret` takes one float at a time, `vectorize` all rows with NumPy.
`pipeline_reference.py` does the same for pipelines.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.kernel.arguments import broadcast
from armillary.trace import OPS, Program, evaluate

__all__ = ["interpret", "vectorize"]

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
    # Scalars in the order of the inputs, row-major, as the program numbers them.
    for row in np.ndindex(*batch):
        scalars = [float(x) for array in arrays for x in array[row].flat]
        numbers = iter(evaluate(program, scalars))
        for output in outputs:
            for element in np.ndindex(output.shape[len(batch) :]):
                output[row + element] = next(numbers)
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def vectorize(program: Program, *inputs: Any) -> Array | tuple[Array, ...]:
    """Compute a program's outputs with NumPy functions on whole columns.

    Args:
        program: What to compute.
        inputs: An array for each input, shape (..., *input shape), broadcast together.

    Returns:
        Its output, shape (..., *output shape), or a tuple of them.

    Raises:
        ShapeError: An input has the wrong shape.
    """
    arrays, batch = broadcast(program, inputs)
    count = math.prod(batch)
    columns = [
        column
        for array, port in zip(arrays, program.inputs, strict=True)
        for column in array.reshape(count, port.size).T
    ]
    numbers = iter(_columns(program, columns, count))
    outputs: list[Array] = []
    for port in program.outputs:
        output = np.empty((count, port.size))
        for k in range(port.size):
            output[:, k] = next(numbers)
        outputs.append(output.reshape((*batch, *port.shape)))
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _columns(program: Program, inputs: list[Array], count: int) -> list[Any]:
    """Return the column of each output scalar; others are dropped after their use."""
    # Columns are as long as the batch: memory for those in use, not for all steps.
    ends = _last_uses(program)
    values: list[Any] = []
    with np.errstate(all="ignore"):
        for k, step in enumerate(program.instructions):
            if step.name == "input":
                values.append(inputs[int(step.value)])
            elif step.name == "const":
                kind = np.bool_ if step.kind == "truth" else np.float64
                values.append(np.broadcast_to(kind(step.value), count))
            else:
                meaning = OPS[step.name].on_arrays
                values.append(meaning(*(values[arg] for arg in step.args)))
            for arg in step.args:
                if ends[arg] == k:
                    values[arg] = None
    return [values[k] for k in program.results]


def _last_uses(program: Program) -> list[int]:
    """Return for each instruction the last one that uses it, -1 for results."""
    ends = [0] * len(program.instructions)
    for k, step in enumerate(program.instructions):
        for arg in step.args:
            ends[arg] = k
    for result in program.results:
        ends[result] = -1
    return ends


Array = npt.NDArray[np.float64]
