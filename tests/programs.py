"""Checks of programs: what a legal one is, and intervals that hold its results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from armillary.trace import OPS, Instruction, Interval, Op, Port, Program
from armillary.trace.interval import exactly
from armillary.trace.ops import type_real, type_truth
from armillary.trace.program import evaluate


def verify(program: Program) -> None:
    """Check every rule of a legal program; a broken one is a fault of the compiler.

    Raises:
        AssertionError: The program breaks a rule; the message says which.
    """
    steps = program.instructions
    input_count = sum(port.size for port in program.inputs)
    for k, step in enumerate(steps):
        where = f"{program.name} %{k} {step.name}"
        if step.name in {"input", "const"}:
            _verify_leaf(step, input_count, where)
        else:
            _verify_operation(step, steps, k, where)
    _verify_ports(program.inputs, f"{program.name} inputs")
    _verify_ports(program.outputs, f"{program.name} outputs")
    _verify_results(program)


def _verify_leaf(step: Instruction, input_count: int, where: str) -> None:
    assert not step.args, f"{where}: has arguments"
    if step.name == "input":
        assert step.kind == type_real, f"{where}: is a {step.kind}"
        assert step.value in range(input_count), f"{where}: no input {step.value}"
    elif step.kind == type_truth:
        assert step.value in {0.0, 1.0}, f"{where}: no truth {step.value}"
    else:
        assert step.kind == type_real, f"{where}: is a {step.kind}"


def _verify_operation(
    step: Instruction, steps: tuple[Instruction, ...], k: int, where: str
) -> None:
    op = OPS.get(step.name)
    assert op is not None, f"{where}: unknown operation"
    assert len(step.args) == op.arity, f"{where}: {len(step.args)} arguments"
    assert all(0 <= arg < k for arg in step.args), f"{where}: used before made"
    kinds = tuple(steps[arg].kind for arg in step.args)
    assert kinds == op.args, f"{where}: arguments are {kinds}"
    assert step.kind == op.result, f"{where}: result is {step.kind}"


def _verify_ports(ports: tuple[Port, ...], where: str) -> None:
    assert len({port.name for port in ports}) == len(ports), f"{where}: equal names"


def _verify_results(program: Program) -> None:
    size = sum(port.size for port in program.outputs)
    assert len(program.results) == size, (
        f"{program.name}: {len(program.results)} results for {size} output scalars"
    )
    for result in program.results:
        assert 0 <= result < len(program.instructions), (
            f"{program.name}: result %{result} is missing"
        )
        kind = program.instructions[result].kind
        assert kind == type_real, f"{program.name}: result %{result} is a {kind}"


def enclose(program: Program, ranges: Sequence[Interval]) -> list[Interval]:
    """Return an interval for each output scalar, for inputs anywhere in `ranges`.

    It holds every number that the output can be, roundings included.

    Args:
        program: What to compute.
        ranges: One interval for each input position.
    """
    separate = [replace(each) for each in ranges]  # see interval.mul
    return evaluate(program, separate, _on_intervals)


def _on_intervals(thing: Op | float) -> Any:
    return thing.on_intervals if isinstance(thing, Op) else exactly(thing)
