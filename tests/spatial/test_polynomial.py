"""Polynomials against exact fractions, on floats, arrays and traced scalars."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from armillary.kernel import shared_kernel
from armillary.spatial.polynomial import polynomial, with_derivatives
from armillary.trace import trace

COEFFICIENTS = [Fraction(k, 8) for k in (3, -20, 7, 0, 11, -1)]
PLACES = [Fraction(k, 16) for k in (-40, -16, 0, 5, 32)]


def derivatives(x: Fraction) -> list[Fraction]:
    """Return what a polynomial and all its derivatives are, term by term."""
    found: list[Fraction] = []
    for order in range(len(COEFFICIENTS)):
        total = Fraction(0)
        for power in range(order, len(COEFFICIENTS)):
            factor = Fraction(1)
            for k in range(order):
                factor *= power - k
            total += COEFFICIENTS[power] * factor * x ** (power - order)
        found.append(total)
    return found


@pytest.mark.parametrize("x", PLACES)
def test_it_is_that_of_fractions(x: Fraction) -> None:
    exact = derivatives(x)
    assert polynomial(COEFFICIENTS, x) == exact[0]
    assert with_derivatives(COEFFICIENTS, x, len(exact)) == exact


def test_arrays_are_places_and_coefficients() -> None:
    x = np.array([float(each) for each in PLACES])
    rows = np.array([float(c) for c in COEFFICIENTS])[:, np.newaxis] * [1.0, -2.0]
    exact = np.array([float(polynomial(COEFFICIENTS, each)) for each in PLACES])
    found = polynomial(rows, x[:, np.newaxis])
    np.testing.assert_allclose(found, exact[:, np.newaxis] * [1.0, -2.0], rtol=1e-14)


def test_a_kernel_has_the_same() -> None:
    def equations(c, x):
        return with_derivatives(c, x, 4)

    program = trace(equations, outputs=("values",), c=(6,), x=())
    x = np.array([float(each) for each in PLACES])
    c = np.array([float(each) for each in COEFFICIENTS])
    exact = [[float(each) for each in derivatives(place)[:4]] for place in PLACES]
    np.testing.assert_allclose(shared_kernel(program)(c, x), exact, rtol=1e-13)
