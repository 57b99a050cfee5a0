"""Programs: a finished trace, with named and shaped inputs and outputs."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from armillary.errors import TraceError
from armillary.trace.ops import OPS, type_real, type_truth
from armillary.trace.paths import explore
from armillary.trace.scalar import Node
from armillary.trace.tape import Tape

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Port:
    """A named array that goes into a program or comes out of it."""

    name: str
    shape: Shape

    @property
    def size(self) -> int:
        """Return the number of scalars in it."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One step: an operation of earlier steps, a constant, or an input.

    Attributes:
        name: `const`, `input`, or the name of an operation.
        args: Positions of the instructions it uses, all earlier.
        value: The number of a constant, the position of an input; else 0.
        kind: `real` or `truth`.
    """

    name: str
    args: tuple[int, ...] = ()
    value: float = 0.0
    kind: str = type_real


@dataclass(frozen=True)
class Program:
    """A straight-line computation from input scalars to output scalars.

    Attributes:
        name: What listings and messages call it.
        inputs: Its inputs; their scalars are numbered through, row-major.
        outputs: Its outputs.
        instructions: In an order in which every argument comes first.
        results: For each output scalar the position of its instruction.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    instructions: tuple[Instruction, ...] = field(repr=False)
    results: tuple[int, ...] = field(repr=False)

    @cached_property
    def fingerprint(self) -> str:
        """Return a digest of all that the program computes, whatever its name."""
        text = hashlib.sha256()
        for port in (*self.inputs, None, *self.outputs):
            text.update(f"{port and (port.name, port.shape)};".encode())
        for step in self.instructions:
            text.update(f"{step.name}{step.args}{step.value.hex()};".encode())
        text.update(repr(self.results).encode())
        return text.hexdigest()

    @property
    def operation_count(self) -> int:
        """Return the number of instructions that compute something."""
        return sum(step.name in OPS for step in self.instructions)

    def __str__(self) -> str:
        return listing(self)


def trace(
    function: Callable[..., Any],
    /,
    *,
    name: str = "",
    outputs: Sequence[str] = ("result",),
    **shapes: Shape,
) -> Program:
    """Run `function` once on traced scalars and return what it computes.

    Args:
        function: Takes its inputs by position, in the order of `shapes`: a traced
            scalar for shape (), else an object array. Returns a number or nested
            sequence for each output, a tuple of them where there are several.
        name: What messages call it; the function's own name if empty.
        outputs: The name of each output.
        shapes: The name and shape of each input.

    Raises:
        TraceError: The function cannot be traced; the message says where and why.
    """
    name = name or getattr(function, "__name__", "function")
    tape = Tape()
    ports = tuple(Port(key, tuple(shape)) for key, shape in shapes.items())
    arguments = _arguments(tape, ports)
    shapes_out: list[Shape] = []

    def run() -> list[Any]:
        values = function(*arguments)
        parts = [values] if len(outputs) == 1 else list(values)
        if len(parts) != len(outputs):
            raise TraceError(
                f"'{name}' returns {len(parts)} values where {len(outputs)} were "
                f"announced: {', '.join(outputs)}."
            )
        flats = [_flatten(part, name) for part in parts]
        shapes_out[:] = [shape for _, shape in flats]
        return [number for flat, _ in flats for number in flat]

    flat = explore(tape, run, name)
    results = [tape.lift(value, type_real) for value in flat]
    ports_out = tuple(map(Port, outputs, shapes_out))
    return assemble(name, ports, ports_out, results)


def assemble(
    name: str,
    inputs: tuple[Port, ...],
    outputs: tuple[Port, ...],
    results: Sequence[Node],
) -> Program:
    """Return the program that computes `results`, with nothing else in it."""
    live = reachable(results)
    place = {node.index: k for k, node in enumerate(live)}
    instructions = tuple(
        Instruction(
            node.name,
            tuple(place[arg.index] for arg in node.args),
            node.value,
            type_truth if node.is_truth else type_real,
        )
        for node in live
    )
    return Program(
        name=name,
        inputs=inputs,
        outputs=outputs,
        instructions=instructions,
        results=tuple(place[node.index] for node in results),
    )


def reachable(results: Iterable[Node]) -> list[Node]:
    """Return all that `results` are computed from, arguments first."""
    found: dict[int, Node] = {}
    waiting = list(results)
    while waiting:
        node = waiting.pop()
        if node.index not in found:
            found[node.index] = node
            waiting.extend(node.args)
    return [found[index] for index in sorted(found)]


def _arguments(tape: Tape, ports: tuple[Port, ...]) -> list[Any]:
    arguments: list[Any] = []
    start = 0
    for port in ports:
        array = np.empty(port.shape, dtype=object)
        for k in range(port.size):
            array.flat[k] = tape.input(start + k)
        start += port.size
        arguments.append(array if port.shape else array[()])
    return arguments


def _flatten(value: Any, name: str) -> tuple[list[Any], Shape]:
    """Return the scalars of a number or nested sequence, row-major, and its shape."""
    if isinstance(value, Node):
        return [value], ()
    try:
        array = np.asarray(value, dtype=object)
    except ValueError as error:
        raise TraceError(f"'{name}' returns rows of unequal length.") from error
    flat = list(array.flat)
    for item in flat:
        if not isinstance(item, (Node, float, int, np.floating, np.integer)):
            raise TraceError(
                f"'{name}' returns {type(item).__name__} {item!r} where a number was "
                "expected."
            )
    return flat, array.shape


def replay(program: Program, inputs: Sequence[Any]) -> list[Any]:
    """Compute the output scalars from input scalars: floats, traced, or intervals' kin.

    On floats this is the reference interpreter; on traced scalars it records the
    program again, inside another one.

    Args:
        program: What to compute.
        inputs: One scalar for each input position.
    """
    values: list[Any] = []
    for step in program.instructions:
        if step.name == "input":
            values.append(inputs[int(step.value)])
        elif step.name == "const":
            values.append(step.value)
        else:
            values.append(OPS[step.name](*(values[k] for k in step.args)))
    return [values[k] for k in program.results]


def evaluate(
    program: Program, inputs: Sequence[Any], meaning: Callable[..., Any]
) -> list[Any]:
    """Compute the output scalars with another meaning of each operation.

    Args:
        program: What to compute.
        inputs: One value for each input position.
        meaning: From an `Op` or a constant's number to its function or value.
    """
    values: list[Any] = []
    for step in program.instructions:
        if step.name == "input":
            values.append(inputs[int(step.value)])
        elif step.name == "const":
            values.append(meaning(step.value))
        else:
            operation = meaning(OPS[step.name])
            values.append(operation(*(values[k] for k in step.args)))
    return [values[k] for k in program.results]


def listing(program: Program) -> str:
    """Return the program as text that a person can read, one instruction a line."""
    names = [
        f"{port.name}[{k}]" if port.shape else port.name
        for port in program.inputs
        for k in range(port.size)
    ]

    def ports(group: tuple[Port, ...]) -> str:
        return ", ".join(f"{p.name}{list(p.shape) if p.shape else ''}" for p in group)

    lines = [f"{program.name}({ports(program.inputs)}) -> {ports(program.outputs)}"]
    for k, step in enumerate(program.instructions):
        if step.name == "input":
            text = names[int(step.value)]
        elif step.name == "const":
            text = repr(bool(step.value) if step.kind == type_truth else step.value)
        else:
            text = f"{step.name} " + " ".join(f"%{arg}" for arg in step.args)
        lines.append(f"  %{k} = {text}")
    results = iter(program.results)
    for port in program.outputs:
        shown = " ".join(f"%{next(results)}" for _ in range(port.size))
        lines.append(f"  {port.name} = {shown}")
    return "\n".join(lines)
