"""Purposes: numbers that the freedom left by a task is used to make small."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from armillary.equations.symmetric import Factor, Rows, inner
from armillary.spatial.vector import Number
from armillary.trace import Scalar, tangent

Purpose = Callable[[Any], Any]
"""A function of q, shape (n,), to one number."""


def limit_distance(lower: Sequence[float], upper: Sequence[float]) -> Purpose:
    """Return 1/2 sum ((q - middle) / half range)^2 over the joints with two limits.

    It is least in the middle of all ranges (Liegeois, IEEE T-SMC 7, 1977).
    """

    def purpose(q: Sequence[Number]) -> Number:
        total: Number = 0.0
        for x, low, high in zip(q, lower, upper, strict=True):
            if math.isfinite(high - low) and high > low:
                offset = (x - 0.5 * (low + high)) / (0.5 * (high - low))
                total = total + 0.5 * offset * offset
        return total

    return purpose


def manipulability(rows: Rows) -> Number:
    """Return sqrt(det J J') (Yoshikawa, IJRR 4, 1985)."""
    H = [[inner(a, b) for b in rows] for a in rows]
    return Factor.of(H, 1e-14).root_of_determinant


def gradient(value: Any, q: Sequence[Scalar]) -> list[Number]:
    """Return the derivative of a traced number by each coordinate."""
    slopes: list[Number] = []
    for x in q:
        (slope,) = tangent([value], [(x, 1.0)])
        slopes.append(slope)
    return slopes
