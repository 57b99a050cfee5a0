"""Stumpff's functions, against arithmetic of fifty digits."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from armillary.spatial import rotation
from armillary.trace import evaluate, jvp, trace

FUNCTIONS = {
    "c0": (rotation.c0, mpmath.cos),
    "c1": (rotation.c1, lambda t: mpmath.sin(t) / t),
    "c2": (rotation.c2, lambda t: (1 - mpmath.cos(t)) / t**2),
    "c3": (rotation.c3, lambda t: (t - mpmath.sin(t)) / t**3),
    "inverse_coefficient": (
        rotation.inverse_coefficient,
        lambda t: (1 - t / 2 * mpmath.cot(t / 2)) / t**2,
    ),
}
ANGLES = [1e-9, 1e-7, 1e-3, 0.1, 0.49999, 0.5, 0.50001, 1.0, 2.0, 3.0, math.pi]
ANGLES_SQUARED = [angle**2 for angle in ANGLES]


def exact(meaning, x: float, order: int = 0) -> float:
    with mpmath.workdps(50):
        return float(
            mpmath.diff(lambda y: meaning(mpmath.sqrt(y)), mpmath.mpf(x), order)
        )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_right_on_both_sides_of_the_joint(name: str) -> None:
    function, meaning = FUNCTIONS[name]
    ours = [function(x) for x in ANGLES_SQUARED]
    expected = [exact(meaning, x) for x in ANGLES_SQUARED]
    np.testing.assert_allclose(ours, expected, rtol=2e-14, atol=1e-15)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_first_and_second_derivatives_are_right_and_finite_at_zero(name: str) -> None:
    function, meaning = FUNCTIONS[name]

    def derivatives(x):
        first = jvp([function(x)], [(x, 1.0)])
        return [*first, *jvp(first, [(x, 1.0)])]

    program = trace(derivatives, x=())
    for x in (1e-3, 0.1, 0.2499, 0.2501, 1.0, 9.0):
        expected = [exact(meaning, x, order) for order in (1, 2)]
        np.testing.assert_allclose(evaluate(program, [x]), expected, 1e-11, 1e-13)
    at_zero = [exact(meaning, 1e-12, order) for order in (1, 2)]
    np.testing.assert_allclose(evaluate(program, [0.0]), at_zero, rtol=1e-10)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nan_stays_nan(name: str) -> None:
    assert math.isnan(FUNCTIONS[name][0](math.nan))
