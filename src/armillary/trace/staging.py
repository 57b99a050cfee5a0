"""A program in two: what some of its inputs decide alone, and the rest."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from armillary.trace.ops import OPS, type_real
from armillary.trace.program import Instruction, Port, Program

__all__ = ["SharedProgram", "StagedProgram", "staged"]


@dataclass(frozen=True, eq=False)
class SharedProgram(Program):
    """A program for batches all of whose rows share some inputs.

    Its machine code reads one row of those, which need not become columns.

    Attributes:
        shared: The names of these inputs.
    """

    shared: frozenset[str] = field(kw_only=True)

    @classmethod
    def of(cls, program: Program, shared: Collection[str]) -> SharedProgram:
        """Return a program with inputs of some names shared."""
        return cls(**_fields(program), shared=frozenset(shared))

    @cached_property
    def fingerprint(self) -> str:
        """Return a digest that is not that of the program."""
        program = Program(**_fields(self))
        return f"{program.fingerprint} shares {sorted(self.shared)}"


def _fields(program: Program) -> dict[str, Any]:
    """Return the fields that all programs have."""
    return {each.name: getattr(program, each.name) for each in fields(Program)}


@dataclass(frozen=True, eq=False)
class StagedProgram(Program):
    """A program whose machine code computes two parts in turn.

    Each is rounded as if it were alone: no product of one and sum of the other are
    rounded as one.

    Attributes:
        parts: What some inputs decide alone, and the rest, which reads that last.
    """

    parts: tuple[Program, Program] = field(kw_only=True, repr=False)

    @classmethod
    def of(cls, program: Program, parts: tuple[Program, Program]) -> StagedProgram:
        """Return a program with the parts that `staged` has made of it."""
        return cls(**_fields(program), parts=parts)

    @cached_property
    def fingerprint(self) -> str:
        """Return a digest of the parts."""
        return "+".join(part.fingerprint for part in self.parts)


def staged(program: Program, known: Collection[str], name: str) -> list[Program]:
    """Return programs that compute the same in turn, the first from `known` alone.

    A loop that runs `program` again and again with the same known inputs can run the
    first of them once before it.

    Args:
        program: What to compute.
        known: Names of inputs.
        name: The name of the column by which the first hands numbers to the second.

    Returns:
        Two programs, or `program` alone where known inputs decide nothing of it.
    """
    first = _decided(program, known)
    # What the second program reads of the first, and its place in the column.
    needed: dict[int, int] = {}
    for k, step in enumerate(program.instructions):
        if k not in first:
            for arg in step.args:
                if arg in first and _is_worth(program.instructions[arg]):
                    needed.setdefault(arg, len(needed))
    if not needed:
        return [program]
    ports = [port for port in program.inputs if port.name in known]
    handed = Port(name, (len(needed),))
    before = _rebuilt(program, ports, {}, (handed,), list(needed))
    after = _rebuilt(
        program, [*program.inputs, handed], needed, program.outputs, program.results
    )
    return [before, after]


def _decided(program: Program, known: Collection[str]) -> set[int]:
    """Return the instructions that depend on known inputs and constants alone."""
    owners = [port.name for port in program.inputs for _ in range(port.size)]
    decided: set[int] = set()
    for k, step in enumerate(program.instructions):
        if step.name == "input":
            is_known = owners[int(step.value)] in known
        else:
            is_known = all(arg in decided for arg in step.args)
        if is_known:
            decided.add(k)
    return decided


def _is_worth(step: Instruction) -> bool:
    """Return whether a number is computed: inputs and constants are there anyway."""
    return step.name in OPS and step.kind == type_real


def _rebuilt(
    program: Program,
    inputs: list[Port],
    handed: dict[int, int],
    outputs: tuple[Port, ...],
    results: list[int] | tuple[int, ...],
) -> Program:
    """Return the instructions that lead to results, some of them read from an input.

    Args:
        program: The program.
        inputs: Those of the new program; the last holds what is handed over, if any.
        handed: The position in it of instructions that are read.
        outputs: The outputs of the new program.
        results: The instructions that are its output scalars.
    """
    starts: dict[str, int] = {}
    total = 0
    for port in inputs:
        starts[port.name] = total
        total += port.size
    offsets = [(port.name, k) for port in program.inputs for k in range(port.size)]
    # Backwards from the results, not through what is read.
    live: set[int] = set()
    waiting = list(results)
    while waiting:
        k = waiting.pop()
        if k not in live:
            live.add(k)
            if k not in handed:
                waiting += program.instructions[k].args
    place: dict[int, int] = {}
    steps: list[Instruction] = []
    for k in sorted(live):
        step = program.instructions[k]
        if k in handed:
            step = Instruction("input", (), float(starts[inputs[-1].name] + handed[k]))
        elif step.name == "input":
            name, k_in_port = offsets[int(step.value)]
            step = Instruction("input", (), float(starts[name] + k_in_port))
        else:
            args = tuple(place[arg] for arg in step.args)
            step = Instruction(step.name, args, step.value, step.kind)
        place[k] = len(steps)
        steps.append(step)
    return Program(
        program.name,
        tuple(inputs),
        outputs,
        tuple(steps),
        tuple(place[k] for k in results),
    )
