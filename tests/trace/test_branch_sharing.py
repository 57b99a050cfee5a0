from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from armillary.trace import Interval, evaluate, jvp, trace
from armillary.trace import functions as f
from armillary.trace.branch_sharing import MOST_SHARED, SHARED
from programs import enclose, verify

POINTS = [-8.0, -1.5, -0.5, 0.0, 0.3, 1.0, 2.5, 7.0, 20.0]


def costs(function, **shapes) -> dict[str, int]:
    """Trace a function, hold it to its values, and count its costly operations."""
    shapes = shapes or {"q": ()}
    program = trace(function, **shapes)
    verify(program)
    for q in POINTS:
        args = [q + k for k in range(len(shapes))]
        expected = np.ravel(np.asarray(function(*args), dtype=float))
        np.testing.assert_allclose(evaluate(program, args), expected, rtol=1e-13)
    names = Counter(step.name for step in program.instructions)
    return {name: count for name, count in names.items() if name in SHARED}


def test_two_branches_share_a_sine_and_cosine():
    def formula(q):
        if q > 1:
            return [f.sin(q) + 1.0, f.cos(q)]
        return [3.0 * f.cos(2 * q), -f.sin(2 * q)]

    assert costs(formula) == {"sin": 1, "cos": 1}


def test_a_sine_and_a_cosine_share_their_angle():
    def formula(q):
        return f.sin(q) + 1.0 if q > 1 else f.cos(2 * q) * q

    program = trace(formula, q=())
    angles = {step.args for step in program.instructions if step.name in {"sin", "cos"}}
    assert len(angles) == 1
    assert costs(formula) == {"sin": 1, "cos": 1}


def test_many_branches_cost_as_much_as_one():
    def formula(q):
        for k in range(6):
            if q < k:
                return k * f.exp(f.sin(q * k) / (k + 1)) + q
        return f.exp(0.1 * q) * f.sin(q)

    assert costs(formula) == {"sin": 1, "exp": 1}


def test_an_oval_has_one_bend():
    def oval(q, straight=3.0, radius=1.0):
        s = q % (2 * straight + 2 * math.pi * radius)
        if s < straight:
            return s, -radius, 0.0
        s = s - straight
        if s < math.pi * radius:
            a = s / radius
            return straight + radius * np.sin(a), -radius * np.cos(a), a
        s = s - math.pi * radius
        if s < straight:
            return straight - s, radius, math.pi
        a = (s - straight) / radius
        return -radius * np.sin(a), radius * np.cos(a), math.pi + a

    assert costs(oval) == {"fmod": 1, "sin": 1, "cos": 1}


def test_nested_functions_are_shared_from_the_inside():
    def formula(q):
        if q > 0:
            return f.exp(f.sin(f.atan(q)) - 1.0)
        return 1.0 + f.exp(2.0 * f.sin(f.atan(-q) + 1.0))

    assert costs(formula) == {"atan": 1, "sin": 1, "exp": 1}


def test_equal_functions_nest_from_the_inside():
    def formula(q):
        return f.sin(f.sin(q) + 1.0) if q > 0 else f.sin(2.0 * f.sin(2 * q))

    assert costs(formula) == {"sin": 2}


def test_functions_of_two_arguments_are_shared():
    def formula(x, y):
        if x > y - 2.0:
            return 1.0 + f.atan2(x, y) + f.power(f.absolute(x) + 1.0, y)
        return f.atan2(-y, x * x) * f.power(2.0, -f.absolute(y))

    assert costs(formula, x=(), y=()) == {"atan2": 1, "pow": 1}


def test_what_has_no_like_stays():
    def formula(q):
        if q > 0:
            return f.sin(q) + f.exp(-q)
        return f.atan(q) * f.sin(2 * q) * f.sin(3 * q)

    assert costs(formula) == {"sin": 2, "exp": 1, "atan": 1}


def test_what_both_branches_use_stays():
    def formula(q):
        s = f.sin(q)
        if s > 0.5:
            return s + f.cos(q) + f.sin(2 * q)
        return 2 * s - f.cos(3 * q)

    assert costs(formula) == {"sin": 2, "cos": 1}


def test_sharing_is_bounded():
    count = MOST_SHARED + 10

    def formula(q):
        factor = 1.0 if q > 0 else 2.0
        return sum(f.exp(factor / (k + 1.0)) for k in range(count)) + q

    def long(q):
        if q > 0:
            return sum(f.exp(-q / (k + 1.0)) for k in range(count))
        return sum(f.exp(q / (k + 2.0)) for k in range(count))

    assert costs(long) == {"exp": 2 * count - MOST_SHARED}
    assert costs(formula) == {}


def test_a_branch_may_be_undefined_where_it_is_not_taken():
    def formula(q):
        return f.sqrt(q) * 2.0 if q > 0 else f.sqrt(1.0 - q) + 1.0

    assert costs(formula) == {"sqrt": 1}
    slope = trace(lambda q: jvp([formula(q)], [(q, 1.0)])[0], q=())
    for q in POINTS:
        expected = 1.0 / math.sqrt(q) if q > 0 else -0.5 / math.sqrt(1.0 - q)
        assert evaluate(slope, [q]) == [pytest.approx(expected)]


def test_an_enclosure_away_from_the_edge_is_as_tight_as_before():
    program = trace(lambda q: f.sin(q) + 2.0 if q > 0 else f.sin(3 * q) * 2.0, q=())
    (left,) = enclose(program, [Interval(-0.2, -0.1)])
    assert left.low == pytest.approx(2 * math.sin(-0.6))
    assert left.high == pytest.approx(2 * math.sin(-0.3))
