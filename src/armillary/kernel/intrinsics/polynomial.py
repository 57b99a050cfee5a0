"""Polynomials of fixed coefficients, by steps that are fused where that is quick."""

from __future__ import annotations

from collections.abc import Sequence

from armillary.kernel.builder import Value


def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """Return sum_k coefficients[k] x^k by Horner's rule."""
    *rest, top = coefficients
    result = x.constant(top)
    for coefficient in reversed(rest):
        result = result.multiply_add(x, coefficient)
    return result


def paired(x: Value, coefficients: Sequence[float]) -> Value:
    """Return sum_k coefficients[k] x^k as e(x^2) + x o(x^2), two chains side by side.

    In half the time of `polynomial`, for one product more: worth it from some ten
    coefficients on.
    """
    square = x * x
    even = polynomial(square, coefficients[0::2])
    odd = polynomial(square, coefficients[1::2])
    return odd.multiply_add(x, even)
