"""Differences, and the test that their error falls as the square of the step."""

from __future__ import annotations

import numpy as np
import pytest

from armillary.testing.differences import (
    Descent,
    descent,
    first_difference,
    second_difference,
)

X = np.random.default_rng(0).uniform(-2.0, 2.0, 12)
STEP = np.full(12, 0.1)


def vectors(x):
    """A vector for each number."""
    return np.stack([np.sin(x), np.exp(x), x**3], axis=1)


SLOPES = np.stack([np.cos(X), np.exp(X), 3.0 * X**2], axis=1)
BENDS = np.stack([-np.sin(X), np.exp(X), 6.0 * X], axis=1)


def compare(claim, *, order: int, function=vectors) -> Descent:
    difference = first_difference if order == 1 else second_difference
    magnitude = np.abs(vectors(X)).max(axis=1) + 1.0
    return descent(
        claim, lambda h: difference(function, X, h), STEP, magnitude, order=order
    )


def test_differences_of_polynomials_are_exact():
    def square(x):
        return x**2

    assert first_difference(square, X, STEP) == pytest.approx(2.0 * X, abs=1e-13)
    assert second_difference(square, X, STEP) == pytest.approx(2.0, abs=1e-12)


@pytest.mark.parametrize(("claim", "order"), [(SLOPES, 1), (BENDS, 2)])
def test_right_derivatives_descend(claim, order: int):
    found = compare(claim, order=order)
    assert found.is_quadratic
    ratios = found.visible[:5] / found.visible[1:6]
    assert ratios == pytest.approx(4.0, abs=0.1)


@pytest.mark.parametrize(
    ("order", "error"),
    [(1, 1.0), (1, 1e-4), (1, 1e-7), (2, 1.0), (2, 1e-4), (2, 1e-6)],
)
def test_wrong_derivatives_do_not(order: int, error: float):
    wrong = (SLOPES if order == 1 else BENDS).copy()
    wrong[7, 1] *= 1.0 + error
    found = compare(wrong, order=order)
    assert not found.is_quadratic
    assert found.worst == 7


def test_exact_differences_descend_at_once():
    found = compare(
        np.tile([1.0, 0.0, 2.0], (12, 1)),
        order=1,
        function=lambda x: np.stack([x, 0.0 * x, 2.0 * x], axis=1),
    )
    assert found.is_quadratic
    assert (found.visible == 0.0).all()


def test_what_is_undefined_does_not_descend():
    claim = SLOPES.copy()
    claim[3] = np.nan
    found = compare(claim, order=1)
    assert not found.is_quadratic
    assert found.worst == 3


def test_a_kink_does_not_descend():
    def bent(x):
        return np.abs(x - X[5] - 1e-3)

    claim = np.sign(X - X[5] - 1e-3)
    found = descent(
        claim, lambda h: first_difference(bent, X, h), STEP, np.ones(12), order=1
    )
    assert not found.is_quadratic
