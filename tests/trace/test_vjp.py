"""Reverse mode is the transpose of forward mode, of every operation and program."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import armillary as arm
from armillary.errors import TraceError
from armillary.trace import (
    OPS,
    Op,
    Program,
    cotangent_program,
    evaluate,
    tangent_program,
    trace,
    vjp,
)
from armillary.trace.tape import Tape
from masses import with_inertias

REALS = [op for op in OPS.values() if op.result == "real" and op.name != "select"]
SPECIAL = [0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, math.inf, -math.inf, math.nan]


def gradients(program: Program, point) -> tuple[list[float], list[float]]:
    """The slopes of one output by each input, in forward mode and in reverse."""
    size = len(point)
    forward = [
        evaluate(tangent_program(program, [k]), [*point, 1.0])[0] for k in range(size)
    ]
    return forward, evaluate(cotangent_program(program, range(size)), [*point, 1.0])


@pytest.mark.parametrize("op", REALS, ids=repr)
def test_an_operation_at_special_points(op: Op):
    names = ("x", "y")[: op.arity]
    program = trace(op, name=op.name, **dict.fromkeys(names, ()))
    for point in itertools.product(SPECIAL, repeat=op.arity):
        forward, reverse = gradients(program, point)
        np.testing.assert_equal(reverse, forward, f"{point}")


def test_outputs_of_shapes_and_inputs_that_stay():
    def formula(q, p):
        turned = [np.cos(q[0]) * p[0] + q[1], np.where(q[1] > 0, q[0] * p[1], p[0])]
        return turned, q[0] * q[1] / p[1]

    program = trace(formula, outputs=("y", "z"), q=(2,), p=(2,))
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, t, w = rng.normal(size=4), rng.normal(size=4), rng.normal(size=3)
        rates = evaluate(tangent_program(program, [0, 1]), [*x, *t])
        sums = evaluate(cotangent_program(program, [0, 1]), [*x, *w])
        assert w @ rates == pytest.approx(t @ sums, rel=1e-13, abs=1e-13)
        assert evaluate(cotangent_program(program, [1]), [*x, *w]) == sums[2:]
    made = cotangent_program(program, [1])
    assert [port.name for port in made.inputs] == [
        "q",
        "p",
        "cotangent_of_y",
        "cotangent_of_z",
    ]
    assert [(port.name, port.shape) for port in made.outputs] == [
        ("cotangent_of_p", (2,))
    ]


def test_what_lies_below_an_input_stays():
    def formula(x):
        y = x * x
        return vjp([y * x, y, 3.0], [1.0, 10.0, 7.0], [y, x])

    assert evaluate(trace(formula, x=()), [3.0]) == [13.0, 9.0]


def test_results_and_inputs_are_of_one_trace():
    x, y = Tape().input(0), Tape().input(0)
    with pytest.raises(TraceError, match="of different traces"):
        vjp([x * 2], [1.0], [y])
    assert vjp([2.0], [1.0], [x]) == [0.0]


def test_a_gradient_costs_a_few_times_its_function():
    cell = with_inertias(arm.example("ur5e_on_oval"), 3)
    names = ["elbow", "shoulder_lift", "cart.radius"]
    questions = (
        cell.fk("tool0"),
        cell.fk("tool0", parameters=names),
        cell.jacobian("tool0"),
        cell.inverse_dynamics(),
    )
    for question in questions:
        program = question.program
        reverse = cotangent_program(program, range(len(program.inputs)))
        assert reverse.operation_count <= 3 * program.operation_count
