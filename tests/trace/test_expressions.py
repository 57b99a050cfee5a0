"""Laws of whole programs, on random formulas."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from armillary.trace import (
    OPS,
    Interval,
    cotangent_program,
    evaluate,
    jvp,
    tangent_program,
    trace,
)
from exact_operations import exact_operation
from programs import enclose, verify

NAMES = "xyz"
QUICK = settings(max_examples=100, suppress_health_check=list(HealthCheck))

# A formula is a number, the name of an input, an operation of formulas, or
# ("if", comparison, left, right, then, otherwise), which branches.
Formula = Any

UNARY = [name for name, op in OPS.items() if op.args == ("real",)]
BINARY = [
    name
    for name, op in OPS.items()
    if op.args == ("real", "real") and op.result == "real"
]
COMPARISONS = ["lt", "le", "eq"]
SMOOTH = ["add", "sub", "mul", "div", "neg", "sqrt", "sin", "cos", "tan", "asin"]
SMOOTH += ["acos", "atan", "atan2", "exp", "log", "pow", "hypot", "abs", "min", "max"]
DYADIC = [-3.0, -1.0, -0.5, 0.25, 1.0, 2.0, 4.0]


def formulas(
    leaves: st.SearchStrategy[Formula], names: Sequence[str], branches: bool = True
) -> st.SearchStrategy[Formula]:
    """Draw formulas over some leaves and operations."""
    unary = [name for name in names if OPS[name].arity == 1]
    binary = [name for name in names if OPS[name].arity == 2]

    def extend(inner: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
        kinds = [
            st.tuples(st.sampled_from(unary), inner),
            st.tuples(st.sampled_from(binary), inner, inner),
            st.tuples(st.sampled_from(["add", "sub", "mul"]), inner, inner),
        ]
        if branches:
            truth = st.sampled_from(COMPARISONS)
            kinds.append(st.tuples(st.just("if"), truth, inner, inner, inner, inner))
        return st.one_of(kinds)

    return st.recursive(leaves, extend, max_leaves=9)


LEAVES = st.one_of(
    st.sampled_from(NAMES),
    st.sampled_from([0.0, 1.0, -1.0, 2.0, 3.0, -0.1, 0.7, 10.0]),
)
ANY = formulas(LEAVES, [*UNARY, *BINARY])
POINT = st.tuples(*[st.floats(-4.0, 4.0, allow_subnormal=False)] * 3)

Watch = Callable[[str, tuple[Any, ...], Any], Any]


def unwatched(name: str, args: tuple[Any, ...], result: Any) -> Any:
    return result


def run(formula: Formula, inputs: Sequence[Any], watch: Watch = unwatched) -> Any:
    """Compute a formula on numbers or traced scalars, with plain Python branches."""
    if isinstance(formula, float):
        return formula
    if isinstance(formula, str):
        return inputs[NAMES.index(formula)]
    name, *parts = formula
    if name == "if":
        left, right = (run(part, inputs, watch) for part in parts[1:3])
        chosen = parts[3] if OPS[parts[0]](left, right) else parts[4]
        return run(chosen, inputs, watch)
    args = tuple(run(part, inputs, watch) for part in parts)
    return watch(name, args, OPS[name](*args))


def traced(formula: Formula):
    program = trace(
        lambda *inputs: run(formula, inputs), name="f", **dict.fromkeys(NAMES, ())
    )
    verify(program)
    return program


def spread(formula: Formula, inputs: Sequence[float]) -> float:
    """How far the result moves where every operation is a little wrong."""
    rng = np.random.default_rng(0)

    def disturb(name: str, args: tuple[Any, ...], result: float) -> float:
        assume(math.isfinite(result))
        return result * (1.0 + 1e-13 * float(rng.choice([-1.0, 1.0]))) + 1e-300

    exact = run(formula, inputs)
    return max(abs(run(formula, inputs, disturb) - exact) for _ in range(8))


@QUICK
@given(ANY, st.lists(POINT, min_size=4, max_size=4))
def test_a_program_is_the_function(formula: Formula, points):
    program = traced(formula)
    for point in points:
        wobble = spread(formula, point)
        assume(wobble < 1e-6)
        expected = run(formula, point)
        (result,) = evaluate(program, point)
        assert abs(result - expected) <= 10.0 * wobble + 1e-14 * abs(expected)


@QUICK
@given(ANY, POINT)
def test_reverse_mode_is_the_transpose_of_forward_mode(formula: Formula, point):
    program = traced(formula)
    reverse = cotangent_program(program, [0, 1, 2])
    verify(reverse)
    # `hypot`, whose slopes do not cancel, is the dearest of all operations.
    assert reverse.operation_count <= 24 * program.operation_count
    moved = [tangent_program(program, [k]) for k in range(3)]
    forward = [evaluate(along, [*point, 1.0])[0] for along in moved]
    assume(spread(formula, point) < 1e-9)
    assume(max(map(abs, forward)) < 1e4)  # no NaN either
    found = evaluate(reverse, [*point, 1.0])
    np.testing.assert_allclose(found, forward, rtol=1e-9, atol=1e-7)


SPECIAL = [math.nan, math.inf, -math.inf, 1.0, -1.0, 2.5, -0.5, 1e10, -3.0]


@QUICK
@given(
    formulas(st.one_of(st.just("x"), st.sampled_from(DYADIC)), [*UNARY, *BINARY]),
    st.randoms(use_true_random=False),
)
def test_nan_and_infinity_come_out_as_they_should(formula: Formula, random):
    """Every input is used once, so that nothing can cancel; no zero appears."""
    count = itertools.count()

    def renamed(part: Formula) -> Formula:
        if isinstance(part, tuple):
            return (part[0], *(p if p in OPS else renamed(p) for p in part[1:]))
        return ("input", next(count)) if part == "x" else part

    def compute(part: Formula, inputs, watch: Watch = unwatched) -> Any:
        if isinstance(part, float):
            return part
        if part[0] == "input":
            return inputs[part[1]]
        if part[0] == "if":
            left, right = (compute(p, inputs, watch) for p in part[2:4])
            return compute(part[4 if OPS[part[1]](left, right) else 5], inputs, watch)
        args = tuple(compute(p, inputs, watch) for p in part[1:])
        return watch(part[0], args, OPS[part[0]](*args))

    distinct = renamed(formula)
    size = next(count)
    program = trace(lambda q: compute(distinct, q), name="f", q=(size,))

    def no_zero(name: str, args: tuple[Any, ...], result: float) -> float:
        assume(result != 0.0 and not 1e15 < abs(result) < math.inf)
        return result

    for _ in range(6):
        inputs = [random.choice(SPECIAL) for _ in range(size)]
        expected = compute(distinct, inputs, no_zero)
        (result,) = evaluate(program, inputs)
        if math.isfinite(expected):
            assert abs(result - expected) <= 1e-6 * max(1.0, abs(expected))
        else:
            np.testing.assert_equal(result, expected)


@QUICK
@given(ANY, POINT, st.lists(st.floats(1e-6, 1.0), min_size=3, max_size=3))
def test_an_enclosure_holds_the_function(formula: Formula, point, sizes):
    program = traced(formula)
    ranges = [Interval(x - d, x + d) for x, d in zip(point, sizes, strict=True)]
    (enclosure,) = enclose(program, ranges)
    rng = np.random.default_rng(1)

    def no_overflow(name: str, args: tuple[Any, ...], result: float) -> float:
        assume(
            not math.isinf(result) or 0.0 in args or not all(map(math.isfinite, args))
        )
        return result

    for share in rng.uniform(-1.0, 1.0, (12, 3)):
        inside = [x + d * s for x, d, s in zip(point, sizes, share, strict=True)]
        run(formula, inside, no_overflow)
        (result,) = evaluate(program, inside)
        assert enclosure.undefined if math.isnan(result) else enclosure.contains(result)


def distance_to_edge(name: str, args: Sequence[Any]) -> Any:
    """How far arguments are from a kink, a pole, a cut or the end of the domain."""
    x, y = args[0], args[-1]
    if name in {"min", "max"}:
        return abs(x - y)
    if name in {"asin", "acos"}:
        return 1 - abs(x)
    if name in {"sqrt", "log", "pow"}:
        return x
    if name == "atan2":  # (y, x)
        return max(abs(x), y)
    return {"abs": abs(x), "hypot": max(abs(x), abs(y)), "div": abs(y)}.get(name, 1)


def precise(formula: Formula, inputs: Sequence[Any]) -> Any:
    """Compute a formula with many digits."""
    if isinstance(formula, float):
        return mpmath.mpf(formula)
    if isinstance(formula, str):
        return inputs[NAMES.index(formula)]
    name, *parts = formula
    if name == "if":
        left, right = (precise(part, inputs) for part in parts[1:3])
        assume(abs(left - right) > 1e-6)
        return precise(parts[3 if OPS[parts[0]](left, right) else 4], inputs)
    args = [precise(part, inputs) for part in parts]
    assume(distance_to_edge(name, args) > 1e-6)
    result = exact_operation(name)(*args)
    assume(isinstance(result, mpmath.mpf) and mpmath.isfinite(result))
    assume(result == 0 or 1e-12 < abs(result) < 1e12)
    return result


@QUICK
@given(formulas(LEAVES, SMOOTH), POINT, st.tuples(*[st.sampled_from(DYADIC)] * 3))
def test_a_derivative_has_the_right_slope(formula: Formula, point, direction):
    def rate(*inputs):
        seeds = list(zip(inputs, direction, strict=True))
        return jvp([run(formula, inputs)], seeds)[0]

    program = trace(rate, **dict.fromkeys(NAMES, ()))
    verify(program)
    try:
        with mpmath.workdps(60):
            exact = mpmath.diff(
                lambda t: precise(
                    formula,
                    [x + t * v for x, v in zip(point, direction, strict=True)],
                ),
                0,
            )
    except (ZeroDivisionError, ValueError):
        assume(False)
    (result,) = evaluate(program, point)
    assume(spread(formula, point) < 1e-9)
    assert abs(result - float(exact)) <= 1e-7 * max(1.0, abs(float(exact)))
