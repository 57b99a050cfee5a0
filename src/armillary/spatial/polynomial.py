"""Polynomials on floats, arrays or traced scalars, by Horner's rule."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from armillary.spatial.vector import Number, Vector

__all__ = ["polynomial", "with_derivatives"]


def polynomial(coefficients: Vector | npt.NDArray[Any], x: Number) -> Number:
    """Return c_0 + c_1 x + c_2 x^2 + ...

    Args:
        coefficients: c_0, c_1, ..., one at least; numbers, or arrays.
        x: Where; an array, too, that fits those of coefficients.
    """
    *rest, total = coefficients
    for coefficient in reversed(rest):
        total = total * x + coefficient
    return total


def with_derivatives(coefficients: Vector, x: Number, count: int) -> list[Number]:
    """Return the value of a polynomial and its first derivatives by x.

    Args:
        coefficients: As for `polynomial`, `count` at least.
        x: As for `polynomial`.
        count: How many results there are: the value, and count - 1 derivatives.
    """
    values: list[Number] = []
    for _ in range(count):
        values.append(polynomial(coefficients, x))
        coefficients = [k * c for k, c in enumerate(coefficients)][1:]
    return values
