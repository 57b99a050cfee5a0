from __future__ import annotations

import math

import numpy as np
import pytest

from armillary.errors import TraceError
from armillary.trace import cotangent_program, evaluate, jvp, listing, trace
from armillary.trace import functions as f
from armillary.trace.tape import Tape


def derivative(function, **shapes):
    """The program of d function / d first input."""

    def slope(*args):
        return jvp([function(*args)], [(args[0], 1.0)])[0]

    return trace(slope, **(shapes or {"x": ()}))


def in_reverse(function):
    """d function / dx by reverse mode."""
    program = trace(function, x=())
    first = cotangent_program(program, [0])
    return lambda x: evaluate(first, [x, 1.0])[0]


def at(program, *args: float) -> float:
    return evaluate(program, args)[0]


def test_the_chain_rule_along_a_direction():
    def formula(x, y):
        result = f.sin(x * y) + x / y
        return jvp([result, x, 2.0, y * y], [(x, 3.0), (y, x)])

    program = trace(formula, x=(), y=())
    x, y = 0.7, -1.3
    rate = math.cos(x * y) * (3 * y + x * x) + 3 / y - x * x / y**2
    assert evaluate(program, [x, y]) == pytest.approx([rate, 3.0, 0.0, 2 * y * x])


def test_derivatives_of_derivatives():
    def formula(x):
        rates = [f.exp(f.sin(x))]
        for _ in range(3):
            rates += jvp(rates[-1:], [(x, 1.0)])
        return rates

    program = trace(formula, x=())
    x = 0.4
    s, c, e = math.sin(x), math.cos(x), math.exp(math.sin(x))
    third = e * (c**3 - 3 * s * c - c)
    assert evaluate(program, [x]) == pytest.approx([e, e * c, e * (c * c - s), third])


def test_what_lies_below_a_seed_is_constant():
    def formula(x):
        y = x * x
        alone = jvp([y * x, y, x], [(y, 1.0)])
        return alone + jvp([y * x, y, x], [(x, 10.0), (y, 1.0)])

    assert evaluate(trace(formula, x=()), [3.0]) == [3.0, 1.0, 0.0, 93.0, 1.0, 10.0]


def test_a_rate_of_zero_leaves_nothing():
    program = trace(lambda x, y: jvp([f.sin(x) * y], [(x, 0.0)]), x=(), y=())
    assert program.operation_count == 0
    assert at(program, 1.0, 2.0) == 0.0


def test_steps_count_for_nothing():
    program = derivative(lambda x: f.floor(x) + f.sign(x) + (x > 0) + 3 * x)
    assert at(program, 1.5) == 3.0


def test_the_remainder_moves_with_both():
    program = trace(
        lambda x, y: jvp([f.modulo(x, y)], [(x, 1.0), (y, 10.0)]), x=(), y=()
    )
    for x, y in ((7.5, 2.0), (-7.5, 2.0), (7.5, -2.0)):
        assert at(program, x, y) == pytest.approx(1.0 - 10.0 * math.floor(x / y))


KINKS = {
    "min": (lambda x: f.minimum(x, 2 * x), {1.0, 2.0}),
    "max": (lambda x: f.maximum(2 * x, x), {1.0, 2.0}),
    "abs": (abs, {1.0}),
    "if": (lambda x: 3 * x if x > 0 else x, {1.0, 3.0}),
    "clip": (lambda x: np.clip(x, 0.0, 1.0), {0.0, 1.0}),
}


@pytest.mark.parametrize(("function", "slopes"), KINKS.values(), ids=KINKS)
def test_at_a_kink_the_slope_is_that_of_one_side(function, slopes):
    program = derivative(function)
    assert at(program, 0.0) in slopes
    assert in_reverse(function)(0.0) == at(program, 0.0)
    for x in (-0.5, 0.5):
        h = 1e-6
        numeric = (function(x + h) - function(x - h)) / (2 * h)
        assert at(program, x) == pytest.approx(numeric)


def test_the_smaller_and_the_larger_share_the_rates_of_a_tie():
    def formula(x):
        pair = [f.minimum(x, 3 * x), f.maximum(x, 3 * x)]
        return sum(jvp(pair, [(x, 1.0)]))

    program = trace(formula, x=())
    assert [at(program, x) for x in (-1.0, 0.0, 1.0)] == [4.0, 4.0, 4.0]


# An infinite or undefined rate of what is not chosen must not show.
UNCHOSEN = {
    "if": (lambda x: f.sqrt(x) if x > 0 else x * 2.0, (-1.0, 0.0), 2.0),
    "if not": (lambda x: 2.0 * x if x <= 0 else f.sqrt(x), (-1.0, 0.0), 2.0),
    "where": (lambda x: np.where(x > 0, np.sqrt(x), 2.0 * x), (-1.0, 0.0), 2.0),
    "max": (lambda x: f.maximum(f.sqrt(x), 1.0), (0.0, 0.25), 0.0),
    "min": (lambda x: f.minimum(1.0, -f.sqrt(x) + 4.0), (0.0, 0.25), 0.0),
    "clip": (lambda x: np.clip(np.sqrt(x) - 1.0, -0.5, 0.5), (0.0, 0.1), 0.0),
    "scaled": (
        lambda x: 3.0 * x * (f.log(x) if x > 1 else 1.0) + 0.0,
        (0.0, -1.0, 0.5),
        3.0,
    ),
    "merged": (lambda x: f.sqrt(x) if x > 0 else f.sqrt(4.0), (-1.0, 0.0), 0.0),
    "nested": (
        lambda x: (f.acos(x) if x < 1 else 0.0) if x > -1 else 5.0,
        (1.0, -1.0, 2.0, -3.0),
        0.0,
    ),
}


@pytest.mark.parametrize(
    ("function", "points", "slope"), UNCHOSEN.values(), ids=UNCHOSEN
)
def test_the_rate_of_what_is_not_chosen_does_not_show(function, points, slope):
    first = derivative(function)
    second = derivative(lambda x: jvp([function(x)], [(x, 1.0)])[0])
    for x in points:
        assert at(first, x) == slope, (x, listing(first))
        assert at(second, x) == 0.0, (x, listing(second))
        assert in_reverse(function)(x) == slope, x


def test_nan_is_not_a_slope_of_a_product():
    assert math.isnan(at(derivative(lambda x: x * f.sin(x)), math.nan))
    assert math.isnan(at(derivative(abs), math.nan))


def test_results_and_seeds_are_of_one_trace():
    x, y = Tape().input(0), Tape().input(0)
    with pytest.raises(TraceError, match="of different traces"):
        jvp([x * 2], [(y, 1.0)])
    with pytest.raises(TraceError, match=r"test_jvp\.py:\d+: .*of different traces"):
        jvp([x, y], [])
    assert jvp([1.0, 2.0], []) == [0.0, 0.0]


def test_a_quotient_divides_once_more_at_most():
    program = trace(
        lambda x, y: [x / y, *jvp([x / y], [(x, 1.0), (y, 2.0)])], x=(), y=()
    )
    names = [step.name for step in program.instructions]
    assert names.count("div") == 2


def _stopped(q):
    if q > 1:
        return np.arccos(1.0 + 0 * q)
    return np.arccos(q)


# Each is constant at the points, behind a choice, and infinitely steep after it.
CLIPPED = {
    "arccos of clip": (lambda q: np.arccos(np.clip(q, -1, 1)), (2.0, -2.0)),
    "arcsin of where": (lambda q: np.arcsin(np.where(q < 1, q, 1.0)), (1.0, 3.0)),
    "root of maximum": (lambda q: np.sqrt(np.maximum(1 - q * q, 0)), (2.0, -1.5)),
    "root of a sum": (
        lambda q: np.sqrt(np.maximum(1 - q * q, 0) + np.maximum(1 - q, 0) ** 2),
        (2.0,),
    ),
    "root of a product": (
        lambda q: np.sqrt(3.0 * np.clip(q, 0, 1) * np.clip(q, 0, 1)),
        (-2.0,),
    ),
    "if": (_stopped, (2.0,)),
    "length": (lambda q: np.hypot(np.maximum(q, 0.0), 0 * q), (-1.0,)),
    "power": (lambda q: np.maximum(q, 0.0) ** 0.5, (-1.0,)),
    "quotient": (lambda q: np.where(q < 1, 1.0, 1 / np.maximum(q, 0.0)), (-1.0,)),
    "direction": (lambda q: np.arctan2(np.maximum(q, 0), np.maximum(q, 0)), (-1.0,)),
    "logarithm": (lambda q: 1 / np.log(np.maximum(q, 0)), (-1.0,)),
    "root of a factor": (lambda q: np.sqrt(np.maximum(q, 0) * (2 + q)), (-1.0,)),
    "root of a dividend": (lambda q: np.sqrt(np.maximum(q, 0) / (5 + q)), (-1.0,)),
    "norm of a factor": (
        lambda q: np.linalg.norm(np.maximum(q, 0) * np.array([np.cos(q), np.sin(q)])),
        (-1.0,),
    ),
    "length of factors": (
        lambda q: np.hypot(np.maximum(q, 0) * np.cos(q), np.maximum(q, 0) * np.sin(q)),
        (-1.0,),
    ),
    "direction of factors": (
        lambda q: np.arctan2(
            np.maximum(q, 0) * np.sin(q), np.maximum(q, 0) * np.cos(q)
        ),
        (-1.0,),
    ),
    "smooth step": (lambda q: np.sqrt(np.clip(q, 0, 1) ** 2 * (3 - 2 * q)), (-1.0,)),
    "switched factor": (lambda q: np.sqrt((q > 0) * q), (-1.0,)),
    "switched twice": (lambda q: np.sqrt((q > 0) * (q < 9) * q), (-1.0, 10.0)),
    "step as a factor": (lambda q: np.sqrt(np.floor(q) * q), (0.5,)),
    "cube root of factors": (
        lambda q: np.cbrt(q * np.maximum(q, 0) * np.cos(q)),
        (-1.0,),
    ),
}


@pytest.mark.parametrize(("function", "points"), CLIPPED.values(), ids=CLIPPED)
def test_what_does_not_move_has_no_rate_at_a_steep_end(function, points):
    first = derivative(function)
    second = derivative(lambda x: jvp([function(x)], [(x, 1.0)])[0])
    for point in points:
        with np.errstate(divide="ignore"):
            assert function(point + 1e-3) == function(np.float64(point))
        assert at(first, point) == at(second, point) == 0.0
        assert in_reverse(function)(point) == 0.0


# A value under- or overflows on the way to a result that is a number.
OUT_OF_RANGE = {
    "logistic": (lambda q: 1 / (1 + np.exp(-q)), -800.0),
    "bell": (lambda q: 1 / np.cosh(q), 800.0),
    "root of a Gaussian": (lambda q: np.sqrt(np.exp(-q * q)), 40.0),
    "saturation": (np.tanh, 800.0),
}


@pytest.mark.parametrize(("function", "point"), OUT_OF_RANGE.values(), ids=OUT_OF_RANGE)
def test_a_flat_tail_has_no_rate(function, point):
    first = derivative(function)
    second = derivative(lambda x: jvp([function(x)], [(x, 1.0)])[0])
    assert at(first, point) == 0.0
    assert at(second, point) == 0.0
    assert in_reverse(function)(point) == 0.0


@pytest.mark.parametrize(
    ("function", "point", "slope"),
    [
        (lambda q: np.sqrt(np.maximum(q, 0) * (2 + q)), 0.5, 3.0 / math.sqrt(5.0)),
        (lambda q: np.cbrt(np.clip(q, 0, 1) * q), 8.0, 1.0 / 12.0),
        (lambda q: np.sqrt(1 - q * q), 0.0, 0.0),
        (lambda q: 1 / (1 + np.exp(-q)), 0.0, 0.25),
        (lambda q: np.sqrt(np.exp(-q * q)), 1.0, -math.exp(-0.5)),
    ],
)
def test_what_moves_keeps_its_rate(function, point, slope):
    assert at(derivative(function), point) == pytest.approx(slope, rel=1e-14)
    assert in_reverse(function)(point) == pytest.approx(slope, rel=1e-14)


@pytest.mark.parametrize(
    ("function", "point"),
    [
        (lambda x: np.sqrt(np.maximum(x, 0) * np.sqrt(x)), -1.0),
        (lambda x: np.sqrt(np.exp(x)), math.nan),
        (lambda x: 1 / (1 + np.exp(x)), math.nan),
        (lambda x: np.exp(x) / (1 + np.exp(x)), 800.0),
        (np.log, -1.0),
        (lambda x: np.maximum(np.sqrt(x), x), -1.0),
        (lambda x: np.maximum(x, np.sqrt(x)), -1.0),
        (lambda x: np.arccos(np.clip(x, -1, 1)), math.nan),
    ],
)
def test_where_the_value_is_nan_the_slope_is(function, point):
    assert math.isnan(at(trace(function, x=()), point))
    assert math.isnan(at(derivative(function), point))
    assert math.isnan(in_reverse(function)(point))


@pytest.mark.parametrize("y", [1e-1, 1e-3, 1e-6, 1e-12])
def test_the_curvature_of_a_length_does_not_cancel(y: float):
    def curvatures(a, b):
        (by_a,) = jvp([np.hypot(a, b)], [(a, 1.0)])
        (by_b,) = jvp([np.hypot(a, b)], [(b, 1.0)])
        pairs = ((by_a, a), (by_a, b), (by_b, a), (by_b, b))
        return [jvp([rate], [(seed, 1.0)])[0] for rate, seed in pairs]

    program = trace(curvatures, a=(), b=())
    for a, b in ((1.0, y), (-2.0, y), (y, 3.0), (y, -1.0)):
        cube = math.hypot(a, b) ** 3
        exact = [b * b / cube, -a * b / cube, -a * b / cube, a * a / cube]
        assert evaluate(program, [a, b]) == pytest.approx(exact, rel=1e-13)


def test_the_larger_of_nan_and_a_number_moves_as_nan_does():
    for function in (np.maximum, np.minimum):
        assert at(derivative(lambda x, g=function: g(x, 0.0)), math.nan) == 1.0
