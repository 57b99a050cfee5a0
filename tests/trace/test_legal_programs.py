from __future__ import annotations

from dataclasses import replace

import pytest

from armillary.trace import Instruction, Port, Program, trace
from programs import verify


@pytest.fixture
def program() -> Program:
    return trace(lambda x: [x[0] * 2 if x[1] < 0 else x[1]], x=(2,))


def test_traced_programs_are_legal(program: Program):
    verify(program)
    verify(trace(lambda: [1.0, float("nan")]))


def changed(program: Program, k: int, **values) -> Program:
    steps = list(program.instructions)
    steps[k] = steps[k]._replace(**values)
    return replace(program, instructions=tuple(steps))


def find(program: Program, name: str) -> int:
    return [step.name for step in program.instructions].index(name)


BROKEN = {
    "no input 2": lambda p: changed(p, find(p, "input"), value=2.0),
    "no input 0.5": lambda p: changed(p, find(p, "input"), value=0.5),
    "input: is a truth": lambda p: changed(p, find(p, "input"), kind="truth"),
    "input: has arguments": lambda p: changed(p, find(p, "input"), args=(0,)),
    "const: is a matrix": lambda p: changed(p, find(p, "const"), kind="matrix"),
    "const: no truth 0.5": lambda p: changed(
        p, find(p, "const"), kind="truth", value=0.5
    ),
    "unknown operation": lambda p: changed(p, find(p, "mul"), name="multiply"),
    "mul: 1 arguments": lambda p: changed(p, find(p, "mul"), args=(0,)),
    "mul: used before made": lambda p: changed(p, find(p, "mul"), args=(0, 99)),
    "mul: result is truth": lambda p: changed(p, find(p, "mul"), kind="truth"),
    r"select: arguments are \('real'": lambda p: changed(
        p, find(p, "select"), args=(0, 0, 0)
    ),
    "inputs: equal names": lambda p: replace(p, inputs=(Port("x", (1,)),) * 2),
    "outputs: equal names": lambda p: replace(
        p, outputs=(Port("y", ()),) * 2, results=(0, 0)
    ),
    "2 results for 1 output": lambda p: replace(p, results=(0, 0)),
    "result %-1 is missing": lambda p: replace(p, results=(-1,)),
    "result %99 is missing": lambda p: replace(p, results=(99,)),
    "is a truth": lambda p: replace(p, results=(find(p, "lt"),)),
}


@pytest.mark.parametrize("message", BROKEN)
def test_every_rule_is_checked(program: Program, message: str):
    with pytest.raises(AssertionError, match=message):
        verify(BROKEN[message](program))


def test_a_constant_truth_is_legal():
    steps = (
        Instruction("const", value=1.0, kind="truth"),
        Instruction("const", value=2.0),
        Instruction("select", (0, 1, 1)),
    )
    verify(Program("p", (), (Port("y", ()),), steps, (2,)))
