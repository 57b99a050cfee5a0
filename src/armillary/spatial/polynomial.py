"""Polynomials on floats, arrays or traced scalars, by Horner's rule; their algebra."""

from __future__ import annotations

from functools import lru_cache
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.spatial.vector import Number, Vector

__all__ = [
    "bernstein",
    "derivative",
    "differentiation",
    "polynomial",
    "with_derivatives",
]

Array = npt.NDArray[np.float64]


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


def derivative(coefficients: Array, axis: int = 0) -> Array:
    """Return coefficients of the derivative, one fewer along an axis.

    Args:
        coefficients: Those of 1, x, x^2, ... along the axis.
        axis: Which axis that is.
    """
    rows = np.moveaxis(coefficients, axis, -1)
    return np.moveaxis(rows[..., 1:] * np.arange(1.0, rows.shape[-1]), -1, axis)


def differentiation(size: int, order: int) -> Array:
    """Return the matrix from coefficients to those of a derivative, zeros behind them.

    Args:
        size: How many coefficients there are.
        order: Of the derivative, from 0 on.
    """
    once = np.diag(np.arange(1.0, size), 1)
    return np.linalg.matrix_power(once, order)


@lru_cache(maxsize=64)
def bernstein(degree: int) -> Array:
    """Return the matrix from coefficients of powers to those in Bernstein's basis.

    x^i = sum_j C(j, i) / C(d, i) B_j(x) for j >= i. Over [0, 1] a polynomial is in the
    convex hull of these coefficients, its first and last are its values at the ends.

    degree: d of the polynomials.

    Returns:
        Shape (d + 1, d + 1), by j and i; read-only.
    """
    size = degree + 1
    rows = [[comb(j, i) / comb(degree, i) for i in range(size)] for j in range(size)]
    matrix = np.array(rows)
    matrix.flags.writeable = False
    return matrix
