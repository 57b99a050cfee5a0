"""Derivatives of Programs as Programs, and functions of them.

Both are linear in what they take in addition, and each is the transpose of the other.
As they are Programs, they have derivatives in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from armillary.trace.jvp import jvp
from armillary.trace.program import Port, Program, evaluate, trace
from armillary.trace.scalar import Node
from armillary.trace.vjp import vjp

Followers: TypeAlias = Callable[[Sequence[Any]], Sequence[tuple[Node, Sequence[Any]]]]
"""What moves with the inputs x_k that move, such as solutions z of g(x, z) = 0.

It takes the values of all inputs, z among them, and returns scalars of z with their
slopes by each number of x_k, in order.
"""


def _none(x: Sequence[Any]) -> Sequence[tuple[Node, Sequence[Any]]]:
    """Return that inputs which do not move themselves stay constant."""
    return ()


def tangent_program(
    program: Program, inputs: Sequence[int], followers: Followers = _none
) -> Program:
    """Return the Program (inputs, tangents of some inputs) -> tangents of outputs.

    Args:
        program: What to differentiate, y(x).
        inputs: Positions of the inputs x_k that move; their tangents v_k follow the
            inputs. The others stay constant.
        followers: What moves with them all the same.

    Returns:
        A Program of sum_k dy/dx_k v_k, an output for each output.
    """
    moved = [program.inputs[k] for k in inputs]

    def tangents(*values: Any) -> Any:
        x = values[: len(program.inputs)]
        tangents = _flat(values[len(x) :])
        along = list(zip(_flat(x[k] for k in inputs), tangents, strict=True))
        along += [(z, _product(slopes, tangents)) for z, slopes in followers(x)]
        return _shaped(jvp(evaluate(program, _flat(x)), along), program.outputs)

    return _derived(program, "tangent", tangents, moved, program.outputs)


def cotangent_program(
    program: Program, inputs: Sequence[int], followers: Followers = _none
) -> Program:
    """Return the Program (inputs, cotangents of outputs) -> cotangents of some inputs.

    Args:
        program: What to differentiate, y(x).
        inputs: Positions of the inputs x_k whose cotangents are wanted.
        followers: What moves with them.

    Returns:
        A Program of sum_i w_i dy_i/dx_k, an output for each of `inputs`, where the
        cotangents w follow the inputs.
    """
    wanted = [program.inputs[k] for k in inputs]

    def cotangents(*values: Any) -> Any:
        x = values[: len(program.inputs)]
        results = evaluate(program, _flat(x))
        own = _flat(x[k] for k in inputs)
        moved = followers(x)
        weights = _flat(values[len(x) :])
        sums = vjp(results, weights, [*own, *(z for z, _ in moved)])
        # dy/dx_k + dy/dz dz/dx_k, with the cotangents of z.
        of_moved = sums[len(own) :]
        for k in range(len(own)):
            sums[k] += _product([slopes[k] for _, slopes in moved], of_moved)
        return _shaped(sums[: len(own)], wanted)

    return _derived(program, "cotangent", cotangents, program.outputs, wanted)


def composed(
    program: Program, function: Callable[..., Any], shapes: Mapping[str, Any]
) -> Program:
    """Return the Program (inputs, further inputs) -> function(outputs, these).

    Args:
        program: Whose outputs the function takes first.
        function: Returns a number or an array, the output `result`.
        shapes: The further inputs.
    """
    ports = *program.inputs, *(Port(name, shape) for name, shape in shapes.items())
    count = len(program.inputs)

    def of_inputs(*values: Any) -> Any:
        scalars = evaluate(program, _flat(values[:count]))
        results = _shaped(scalars, program.outputs)
        several = results if len(program.outputs) > 1 else [results]
        return function(*several, *values[count:])

    # Errors name the place of the function, not of this one.
    setattr(of_inputs, "__wrapped__", function)  # noqa: B010
    named: dict[str, Any] = {f"input{k}": port.shape for k, port in enumerate(ports)}
    made = trace(of_inputs, name=f"a function of {program.name}", **named)
    return replace(made, inputs=ports)


def _derived(
    program: Program,
    kind: str,
    function: Any,
    given: Iterable[Port],
    returned: Sequence[Port],
) -> Program:
    """Trace a derivative, whose further ports are named after those of the program."""
    shapes = {port.name: port.shape for port in program.inputs}
    for port in given:
        name = f"{kind}_of_{port.name}"
        while name in shapes:
            name += "_"
        shapes[name] = port.shape
    names = [f"{kind}_of_{port.name}" for port in returned]
    name = f"{kind}s of {program.name}"
    # By position: an input may have any name.
    made = trace(
        function,
        name=name,
        outputs=names,
        **{f"input{k}": shape for k, shape in enumerate(shapes.values())},
    )
    ports = tuple(Port(key, shape) for key, shape in shapes.items())
    return replace(made, inputs=ports, is_loose=program.is_loose)


def _product(slopes: Sequence[Any], along: Sequence[Any]) -> Any:
    """Return the sum of slopes times rates, without products with 0."""
    pairs = zip(slopes, along, strict=True)
    terms = [a * b for a, b in pairs if not (_is_zero(a) or _is_zero(b))]
    return sum(terms[1:], terms[0]) if terms else 0.0


def _is_zero(x: Any) -> bool:
    """Tell whether a scalar is the number 0."""
    return isinstance(x, float) and x == 0.0


def _flat(values: Iterable[Any]) -> list[Any]:
    return [x for value in values for x in _entries(value)]


def _entries(value: Any) -> Iterable[Any]:
    if isinstance(value, np.ndarray):
        return cast("npt.NDArray[Any]", value).flat
    return (value,)


def _shaped(scalars: Sequence[Any], ports: Sequence[Port]) -> Any:
    """Return an array of scalars for each port, alone where there is one."""
    arrays: list[Any] = []
    start = 0
    for port in ports:
        array = np.empty(port.shape, dtype=object)
        for k in range(port.size):
            array.flat[k] = scalars[start + k]
        start += port.size
        arrays.append(array if port.shape else array[()])
    return arrays[0] if len(arrays) == 1 else arrays
