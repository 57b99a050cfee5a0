"""True upper bounds of how fast a frame moves and turns along a spline.

With T = P'(w), w = w(s) and u(s) the direction up, the frame has x along T and y along
u x T, and at unit rate of s

    v = T w',
    w_y^2 + w_z^2 = |T x T'|^2 w'^2 / |T|^4,
    w_x = ((u . T) w' (u . (T x T')) + |T|^2 (u x u') . T) / (|T| |u x T|^2).

Numerators and denominators, squared where they are vectors, are polynomials of s on
each piece, of degree below `NODES`: their values at as many of Chebyshev's nodes give
all coefficients of their Chebyshev series, and these bound it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.model.spline import Piece, Spline

Array = npt.NDArray[np.float64]

NODES: Final = 80
PARTS: Final = 16  # of each piece
ROUNDING: Final = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Speeds:
    """Bounds at unit rate over the parts of a curve.

    Attributes:
        ends: Arc lengths at which parts begin and end [m], shape (n + 1,).
        linear: Of |v| over each part, at least 1; shape (n,).
        angular: Of |w| [rad/m], shape (n,).
    """

    ends: Array
    linear: Array
    angular: Array

    def over(self, ranges: Sequence[tuple[float, float]]) -> tuple[float, float]:
        """Return the bounds over ranges of arc length; beside the curve, a straight."""
        linear, angular = 1.0, 0.0
        for start, end in ranges:
            first = max(int(np.searchsorted(self.ends, start)) - 1, 0)
            last = max(int(np.searchsorted(self.ends, end, side="right")), first + 1)
            linear = max(linear, float(self.linear[first:last].max()))
            angular = max(angular, float(self.angular[first:last].max()))
        return linear, angular


def speeds_of(spline: Spline, fields: Sequence[Array]) -> Speeds:
    """Return the bounds for each part of each piece of a spline.

    fields: Of each piece the direction up, k_j with u = k_0 + k_1 t + ..., t from the
        middle of the piece; shape (m, 3).
    """
    starts: list[Array] = []
    found: list[tuple[Array, Array]] = []
    for piece, field in zip(spline.pieces, fields, strict=True):
        cubic = spline.segments[piece.segment].coefficients
        found.append(_bounds(piece, cubic, field))
        starts.append(np.linspace(piece.start, piece.end, PARTS + 1)[:-1])
    linear, angular = map(np.concatenate, zip(*found, strict=True))
    ends = np.append(np.concatenate(starts), spline.length)
    return Speeds(ends, np.maximum(linear, 1.0), angular)


def _bounds(piece: Piece, cubic: Array, field: Array) -> tuple[Array, Array]:
    """Return the bounds over the parts of one piece, shape (PARTS,) each."""
    half = 0.5 * piece.length
    width = half / PARTS
    middles = np.linspace(-half, half, 2 * PARTS + 1)[1::2]
    t = middles[:, np.newaxis] + width * _nodes()
    w, rate = _values(piece.parameter, t), _values(_derived(piece.parameter), t)
    T = _values(_derived(cubic), w)
    bend = _values(_derived(_derived(cubic)), w)
    u, du = _values(field, t), _values(_derived(field), t)

    binormal, M = np.cross(T, bend), np.cross(u, T)
    length, across = _dot(T, T), _dot(M, M)
    spin = _dot(u, T) * rate * _dot(u, binormal) + length * _dot(np.cross(u, du), T)

    _, speed = _range(length * rate**2)
    _, turn = _range(_dot(binormal, binormal) * rate**2)
    spins = np.abs(np.array(_range(spin))).max(axis=0)
    least, _ = _range(length)
    least_across, _ = _range(across)
    with np.errstate(divide="ignore", invalid="ignore"):
        square = turn / least**2 + spins**2 / (least * least_across**2)
    is_proved = (least > 0.0) & (least_across > 0.0)
    return np.sqrt(speed), np.sqrt(np.where(is_proved, square, math.inf))


def _range(values: Array) -> tuple[Array, Array]:
    """Return the range of polynomials with such values at the nodes.

    values: Shape (n, NODES).
    """
    series = values @ _to_series()
    swing = np.abs(series[:, 1:]).sum(axis=1)
    swing += ROUNDING * np.abs(values).max(axis=1)
    return series[:, 0] - swing, series[:, 0] + swing


def _values(coefficients: Array, x: Array) -> Array:
    """Return c_0 + c_1 x + c_2 x^2 + ...; c_k are numbers or vectors."""
    total = np.zeros((*x.shape, *coefficients.shape[1:]))
    x = x.reshape(x.shape + (1,) * (coefficients.ndim - 1))
    for coefficient in coefficients[::-1]:
        total = total * x + coefficient
    return total


def _derived(coefficients: Array) -> Array:
    order = np.arange(len(coefficients))
    return (order * coefficients.T).T[1:]


def _dot(a: Array, b: Array) -> Array:
    return (a * b).sum(axis=-1)


@cache
def _nodes() -> Array:
    """Return Chebyshev's nodes in [-1, 1], rising."""
    return -np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)


@cache
def _to_series() -> Array:
    """Return the matrix from values at the nodes to a Chebyshev series."""
    order = np.arange(NODES)
    angle = np.pi * (np.arange(NODES) + 0.5) / NODES
    matrix = 2.0 / NODES * np.cos(angle[::-1, np.newaxis] * order)
    matrix[:, 0] *= 0.5
    return matrix
