"""Programs in two stages compute what they do in one."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from armillary.kernel.references import vectorize
from armillary.trace import Program, trace
from armillary.trace.functions import atan2, cos, maximum, select, sin, sqrt
from armillary.trace.staging import SharedProgram, StagedProgram, staged


def chain(u: Any, p: Any, w: Any) -> Any:
    total = sin(u[0]) * cos(p[0]) + sqrt(u[0] * u[0] + u[1] * u[1]) * p[1]
    return [total, atan2(u[1], u[0]) - w], maximum(u[0], p[1])


def choices(u: Any, p: Any, w: Any) -> Any:
    larger = select(u[0] > u[1], cos(u[0]), w)
    return [larger * p[0], select(p[0] > sin(u[1]), u[1], 2.0)], sin(u[0])


def nothing_known(u: Any, p: Any, w: Any) -> Any:
    return [p[0] * w, p[1]], w


def all_known(u: Any, p: Any, w: Any) -> Any:
    return [sin(u[0]), cos(u[1])], sin(u[0]) + 1.0


FORMULAS = (chain, choices, nothing_known, all_known)


def program_of(formula: Callable[..., Any]) -> Program:
    return trace(formula, outputs=("a", "b"), u=(2,), p=(2,), w=())


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("known", [(), ("u",), ("u", "w"), ("p",), ("u", "p", "w")])
def test_both_stages_compute_the_same(formula, known):
    program = program_of(formula)
    rng = np.random.default_rng(0)
    given = {"u": (50, 2), "p": (50, 2), "w": (50,)}
    columns = {name: rng.normal(size=shape) for name, shape in given.items()}
    wanted = vectorize(program, *columns.values())
    for stage in staged(program, known, "handed"):
        found = vectorize(stage, *(columns[port.name] for port in stage.inputs))
        values = found if isinstance(found, tuple) else (found,)
        names = [port.name for port in stage.outputs]
        columns |= dict(zip(names, values, strict=True))
    np.testing.assert_array_equal(columns["a"], wanted[0])
    np.testing.assert_array_equal(columns["b"], wanted[1])


def test_the_first_stage_has_what_known_inputs_decide():
    before, after = staged(program_of(chain), ["u"], "handed")
    assert {port.name for port in before.inputs} == {"u"}
    left = [step.name for step in after.instructions]
    assert "sqrt" not in left
    assert "atan2" not in left
    assert left.count("sincos") + left.count("cos") + left.count("sin") == 1


def test_what_knows_nothing_stays_whole():
    program = program_of(nothing_known)
    assert staged(program, ["u"], "handed") == [program]


def test_programs_that_share_or_are_staged_are_equal_by_what_they_compute():
    program = program_of(lambda u, p, w: (u[0] * math.nan + p[0], w))
    first, rest = (program_of(formula) for formula in (chain, nothing_known))
    staged_one = StagedProgram.of(program, (first, rest))
    shared = SharedProgram.of(program, {"u"})
    for each in (program, staged_one, shared):
        copied = pickle.loads(pickle.dumps(each))
        assert copied == each and hash(copied) == hash(each)
    assert staged_one != StagedProgram.of(program, (rest, first))
    assert shared != SharedProgram.of(program, {"p"})
    assert len({program, staged_one, shared}) == 3
