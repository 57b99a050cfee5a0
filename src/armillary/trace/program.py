"""Programs: a finished trace, with named and shaped inputs and outputs."""

from __future__ import annotations

import copy
import math
import numbers
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.digests import hasher
from armillary.errors import TraceError
from armillary.paused_collector import collector_paused
from armillary.trace.array import TracedArray
from armillary.trace.branches import explore
from armillary.trace.instruction import Instruction, PackedSteps
from armillary.trace.ops import OPS, Traced, type_real, type_truth
from armillary.trace.scalar import Node, reachable
from armillary.trace.source_location import defined, fault
from armillary.trace.tape import Tape

Shape = tuple[int, ...]
Array = npt.NDArray[Any]

NO_NAMES: Final[Mapping[str, str]] = MappingProxyType({})


class Port(msgspec.Struct, frozen=True):
    """A named array that goes into a program or comes out of it."""

    name: str
    shape: Shape

    @property
    def size(self) -> int:
        """Return the number of scalars in it."""
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class Program:
    """A straight-line computation from input scalars to output scalars.

    Attributes:
        name: What listings and messages call it.
        inputs: Its inputs; their scalars are numbered through, row-major.
        outputs: Its outputs.
        instructions: In an order in which every argument comes first.
        results: For each output scalar the position of its instruction.
        is_loose: Whether a product and a sum may be rounded as one everywhere, also
            where an operation with an edge follows; see `kernel/emit.py`.
        equalities: Instructions that ask whether two numbers are equal, each with the
            `file:line` of the user's code that does.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    instructions: tuple[Instruction, ...] = field(repr=False)
    results: tuple[int, ...] = field(repr=False)
    is_loose: bool = field(default=False, kw_only=True)
    equalities: tuple[tuple[int, str], ...] = field(
        default=(), kw_only=True, repr=False
    )

    def __getstate__(self) -> dict[str, Any]:
        state = {each.name: vars(self).get(each.name) for each in fields(self)}
        # Always the same, so that pickles of equal programs are equal.
        for name in ("fingerprint", "length", "operation_count", "_packed"):
            state[name] = getattr(self, name)
        return {**state, "instructions": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        del vars(self)["instructions"]  # unpacked when they are asked for

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name != "instructions" or "_packed" not in vars(self):
                raise AttributeError(
                    f"'{type(self).__name__}' has no attribute {name!r}"
                )
            steps = self._packed.unpacked()
            return vars(self).setdefault(name, steps)

    @cached_property
    def _packed(self) -> PackedSteps:
        return PackedSteps.of(self.instructions)

    @cached_property
    def fingerprint(self) -> str:
        """Return a digest of all that the program computes, whatever its name."""
        text = hasher()
        for port in (*self.inputs, None, *self.outputs):
            text.update(f"{port and (port.name, port.shape)};".encode())
        for step in self.instructions:
            text.update(
                f"{step.name}{step.args}{step.value.hex()}{step.kind};".encode()
            )
        text.update(repr(self.results).encode())
        if self.is_loose:
            text.update(b"loose")
        return text.hexdigest()

    @cached_property
    def length(self) -> int:
        """Return the number of instructions."""
        return len(self.instructions)

    @cached_property
    def operation_count(self) -> int:
        """Return the number of instructions that compute something."""
        return sum(step.name in OPS for step in self.instructions)

    def renamed(
        self,
        names: Mapping[str, str],
        *,
        inputs: Mapping[str, str] = NO_NAMES,
        outputs: Mapping[str, str] = NO_NAMES,
    ) -> Program:
        """Return it with other names of inputs and outputs.

        Args:
            names: From names that it has to others, of inputs and outputs.
            inputs: Those of inputs alone, before `names`.
            outputs: Those of outputs alone, before `names`.
        """

        def ports(
            given: tuple[Port, ...], first: Mapping[str, str]
        ) -> tuple[Port, ...]:
            names_of = {**names, **first}
            return tuple(Port(names_of.get(x.name, x.name), x.shape) for x in given)

        return replace(
            self,
            inputs=ports(self.inputs, inputs),
            outputs=ports(self.outputs, outputs),
        )

    def __eq__(self, other: object) -> bool:
        # By digests: a NaN that was unpickled is another one.
        if not isinstance(other, Program) or type(other) is not type(self):
            return NotImplemented
        return self.name == other.name and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

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
    """Run `function` on traced scalars, once a path, and return what it computes.

    Args:
        function: Takes its inputs by position, in the order of `shapes`: a traced
            scalar for shape (), else an array of them. Returns a number or nested
            sequence for each output, a tuple of them where there are several.
        name: What messages call it; the function's own name if empty.
        outputs: The name of each output.
        shapes: The name and shape of each input.

    Raises:
        TraceError: The function cannot be traced; the message says where and why.
    """
    name = name or getattr(function, "__name__", "function")
    names = (outputs,) if isinstance(outputs, str) else tuple(outputs)
    ports = tuple(_input_port(key, shape) for key, shape in shapes.items())
    tape = Tape()
    arguments = _arguments(tape, ports)
    where = defined(function)
    returned = _Returned(f"'{name}' returns", where, names)

    def run() -> Any:
        # A copy for each path: the function may write into its arrays.
        return function(*map(copy.copy, arguments))

    with collector_paused():
        flat = explore(tape, run, name, where, returned.flat)
    results = [tape.lift(value, type_real) for value in flat]
    made = assemble(name, ports, tuple(map(Port, names, returned.shapes)), results)
    if not tape.equalities:
        return made
    place = {node.index: k for k, node in enumerate(reachable(results))}
    asked = [(place[k], line) for k, line in tape.equalities.items() if k in place]
    return replace(made, equalities=tuple(asked))


def assemble(
    name: str,
    inputs: tuple[Port, ...],
    outputs: tuple[Port, ...],
    results: Sequence[Node],
) -> Program:
    """Return the program that computes `results`, with nothing else in it."""
    # What results do not need is left out; what is left is numbered anew, in the order
    # in which it was recorded.
    place: dict[int, int] = {}
    instructions: list[Instruction] = []
    for node in reachable(results):
        place[node.index] = len(instructions)
        args = tuple([place[arg.index] for arg in node.args])
        instructions.append(Instruction(node.name, args, node.value, node.kind))
    return Program(
        name=name,
        inputs=inputs,
        outputs=outputs,
        instructions=tuple(instructions),
        results=tuple([place[node.index] for node in results]),
    )


def _input_port(name: str, shape: Any) -> Port:
    try:
        port = Port(name, tuple(operator.index(size) for size in shape))
    except TypeError:
        port = None
    if port is None or any(size < 0 for size in port.shape):
        raise fault(
            f"input '{name}' has the shape {shape!r}; give a tuple: () for a scalar, "
            "(3,) for three numbers."
        )
    return port


def _arguments(tape: Tape, ports: tuple[Port, ...]) -> list[Any]:
    arguments: list[Any] = []
    start = 0
    for port in ports:
        array: Array = np.empty(port.shape, dtype=object)
        for k in range(port.size):
            array.flat[k] = tape.input(start + k)
        start += port.size
        arguments.append(array.view(TracedArray) if port.shape else array[()])
    return arguments


NUMBERS = (Node, numbers.Real, np.bool_)


class _Returned(msgspec.Struct):
    """What the runs of a function return, which must have the same shapes in all.

    Attributes:
        subject: The beginning of every message.
        place: Where the function is defined.
        names: The name of each output.
        shapes: The shape of each output in the first run.
        is_first: Whether there was no run yet.
    """

    subject: str
    place: str
    names: tuple[str, ...]
    shapes: tuple[Shape, ...] = ()
    is_first: bool = True

    def flat(self, values: Any) -> list[Any]:
        """Return all scalars of what one run returned, row-major.

        Raises:
            TraceError: They are not numbers, or do not have the shapes they should.
        """
        arrays = [self._array(part) for part in self._parts(values)]
        shapes = tuple(array.shape for array in arrays)
        if self.is_first:
            self.shapes, self.is_first = shapes, False
        if shapes != self.shapes:
            first, second = (" and ".join(map(str, s)) for s in (self.shapes, shapes))
            raise self._fault(
                f"the shape {first} on one branch and {second} on another; all "
                "branches must return the same."
            )
        return [scalar for array in arrays for scalar in array.flat]

    def _parts(self, values: Any) -> list[Any]:
        if len(self.names) == 1:
            return [values]
        if isinstance(values, (Node, numbers.Real)):
            raise self._fault(f"one number where {self._announced()}.")
        parts = list(values)
        if len(parts) != len(self.names):
            raise self._fault(f"{len(parts)} values where {self._announced()}.")
        return parts

    def _announced(self) -> str:
        return f"{len(self.names)} were announced: {', '.join(self.names)}"

    def _array(self, value: Any) -> Array:
        if isinstance(value, Node):  # NumPy would ask it for its shape
            array: Array = np.empty((), dtype=object)
            array[()] = value
            return array
        array = np.array(value, dtype=object)
        for k, entry in enumerate(array.flat):
            item = _unboxed(entry)
            array.flat[k] = item
            if isinstance(item, (list, tuple, np.ndarray)):
                raise self._fault("rows of unequal length.")
            if not isinstance(item, NUMBERS):
                shown = f"{type(item).__name__} {item!r}"
                raise self._fault(f"{shown} where a number was expected.")
        return array

    def _fault(self, message: str) -> TraceError:
        return fault(f"{self.subject} {message}", self.place)


def _unboxed(value: Any) -> Any:
    if isinstance(value, np.ndarray) and cast("Array", value).shape == ():
        return cast("Array", value).item()
    return cast("Any", value)


def evaluate(
    program: Program,
    inputs: Sequence[Any],
    meaning: Callable[[Any], Any] | None = None,
) -> list[Any]:
    """Compute the output scalars from input scalars, floats or traced.

    On floats this is the reference interpreter; on traced scalars it records the
    program again, inside another one. Operations and constants may get another
    meaning, with other values than scalars.

    Args:
        program: What to compute.
        inputs: One value for each input position.
        meaning: From an `Op` to its function, from a constant's number to its value;
            an operation has the same one wherever it stands.
    """
    # Numbers that nobody traces need no operation that asks whether they are traced.
    is_traced = meaning is None and any(isinstance(each, Traced) for each in inputs)
    known: dict[str, Any] = {}
    values: list[Any] = []
    add = values.append
    for step in program.instructions:
        name, args = step.name, step.args
        if not args:
            if name == "input":
                add(inputs[int(step.value)])
                continue
            if name == "const":
                add(step.value if meaning is None else meaning(step.value))
                continue
        function = known.get(name)
        if function is None:
            operation = OPS[name]
            if meaning is not None:
                function = meaning(operation)
            else:
                function = operation if is_traced else operation.on_floats
            known[name] = function
        # Most have one or two: this loop runs for each operation of a pose.
        if len(args) == 2:
            add(function(values[args[0]], values[args[1]]))
        elif len(args) == 1:
            add(function(values[args[0]]))
        else:
            add(function(*[values[k] for k in args]))
    return [values[k] for k in program.results]


def listing(program: Program) -> str:
    """Return the program as text that a person can read, one operation a line."""
    shown = _shown(program)
    inputs, outputs = (
        ", ".join(f"{port.name}{list(port.shape) or ''}" for port in ports)
        for ports in (program.inputs, program.outputs)
    )
    lines = [f"{program.name}({inputs}) -> {outputs}"]
    for k, step in enumerate(program.instructions):
        if step.args:
            args = " ".join(shown[arg] for arg in step.args)
            lines.append(f"  {shown[k]} = {step.name} {args}")
    results = iter(program.results)
    for port in program.outputs:
        scalars = " ".join(shown[next(results)] for _ in range(port.size))
        lines.append(f"  {port.name} = {scalars}".rstrip())
    return "\n".join(lines)


def _shown(program: Program) -> list[str]:
    """Return how a listing names each instruction's value."""
    names = [
        f"{port.name}[{','.join(map(str, index))}]" if port.shape else port.name
        for port in program.inputs
        for index in np.ndindex(port.shape)
    ]
    texts: list[str] = []
    for k, step in enumerate(program.instructions):
        if step.name == "input":
            texts.append(names[int(step.value)])
        elif step.name == "const":
            is_truth = step.kind == type_truth
            texts.append(str(bool(step.value)) if is_truth else repr(step.value))
        else:
            texts.append(f"%{k}")
    return texts
