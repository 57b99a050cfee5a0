from __future__ import annotations

import math

import numpy as np
import pytest

from armillary.trace import evaluate, trace
from armillary.trace import functions as f

NUMBERS = [0.0, 0.3, 1.0, 2.0, 3.0, 7.5, 49.0, 1e-200, 1e15, math.inf]
NUMBERS += [-x for x in NUMBERS] + [math.nan]
DIVISORS = [0.25, 1.0, 3.0, 49.0, 2.0 * math.pi, 1e-200, 1e300, math.inf]
DIVISORS += [0.0, *(-y for y in DIVISORS)]


def traced(function, *args: float) -> float:
    program = trace(function, **{name: () for name, _ in zip("xy", args, strict=False)})
    return evaluate(program, args)[0]


@pytest.mark.parametrize("y", DIVISORS)
@pytest.mark.parametrize(
    ("function", "ufunc"),
    [(f.modulo, np.remainder), (f.floor_divide, np.floor_divide)],
)
def test_the_remainder_and_its_quotient_are_numpys(function, ufunc, y: float):
    by_constant = trace(lambda x: function(x, y), x=())
    by_variable = trace(function, x=(), y=())
    for x in NUMBERS:
        with np.errstate(all="ignore"):
            expected = float(ufunc(x, y))
        for result in (
            function(x, y),
            *evaluate(by_constant, [x]),
            *evaluate(by_variable, [x, y]),
        ):
            assert result == pytest.approx(expected, rel=1e-15, nan_ok=True), x


def test_the_remainder_with_zero_is_nan():
    assert math.isnan(f.modulo(1.0, 0.0))
    assert math.isnan(f.floor_divide(0.0, 0.0))


@pytest.mark.parametrize(
    ("function", "ufunc"), [(f.ceil, np.ceil), (f.truncate, np.trunc)]
)
def test_rounding_is_numpys(function, ufunc):
    for x in [*NUMBERS, 0.5, -0.5, 2.0**53 + 2.0]:
        expected = float(ufunc(x))
        assert function(x) == pytest.approx(expected, nan_ok=True)
        assert traced(function, x) == pytest.approx(expected, nan_ok=True)


def test_names_are_those_of_pythons_mathematics():
    names = "sin cos tan asin acos atan sqrt exp log floor ceil atan2 hypot fmod"
    for name in names.split():
        function, reference = getattr(f, name), getattr(math, name)
        args = [0.4, 0.7][: 2 if name in {"atan2", "hypot", "fmod"} else 1]
        assert function(*args) == reference(*args)
        assert traced(function, *args) == reference(*args)
    assert f.absolute(-2.0) == 2.0
    assert f.sign(-2.0) == -1.0
    assert f.minimum(1.0, 2.0) == 1.0
    assert f.maximum(1.0, 2.0) == 2.0
    assert f.power(2.0, 0.5) == 2.0**0.5
    assert f.select(True, 1.0, 2.0) == 1.0


def test_functions_are_total():
    assert math.isnan(f.sqrt(-1.0))
    assert math.isnan(f.acos(2.0))
    assert math.isnan(f.sin(math.inf))
    assert f.log(0.0) == -math.inf
    assert f.exp(1e3) == math.inf
    assert math.isnan(f.fmod(1.0, 0.0))
