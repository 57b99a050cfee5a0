"""Frames along a curve that turn about its tangent as little as can be.

A direction z across the curve is carried along so that it turns with the tangent T
alone: z' = -(z . T') T. Around a closed curve it comes back turned by some angle about
T; a twist at constant rate takes that back.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.model.spline import Piece, Spline, SplineSegment, halves

Array = npt.NDArray[np.float64]

SPIN_TOLERANCE: Final = 1e-4  # of the greatest curvature
DEEPEST: Final = 6
ROUNDING: Final = 1e-14
_STEPS: Final = 32
_CHECKS: Final = np.linspace(-1.0, 1.0, 18)[1:-1]


class Rolling(msgspec.Struct, frozen=True, eq=False):
    """A spline and, on each piece, the direction z as a polynomial.

    Attributes:
        spline: The spline, perhaps cut finer.
        fields: Per piece k_j with z = k_0 + k_1 t + ... + k_5 t^5, up to its length and
            a part along the tangent, t = s - middle; shape (6, 3).
    """

    spline: Spline
    fields: tuple[Array, ...]


def rolling(spline: Spline, z: Array, *, closed: bool) -> Rolling:
    """Return the direction that starts as `z` and turns as little as can be."""
    end = z
    for piece in spline.pieces:
        end = _carried(spline.segments[piece.segment], piece, end, 0.0)
    twist = -_turn_to_close(spline, z, end) / spline.length if closed else 0.0
    limit = SPIN_TOLERANCE * _greatest_curvature(spline)
    pieces: list[Piece] = []
    fields: list[Array] = []
    for piece in spline.pieces:
        segment = spline.segments[piece.segment]
        for part in _divided(segment, piece, z, twist, limit):
            pieces.append(part.piece)
            fields.append(part.field)
            z = part.end
    return Rolling(Spline(spline.segments, tuple(pieces)), tuple(fields))


class _FramePart(msgspec.Struct, frozen=True, eq=False):
    piece: Piece
    field: Array
    end: Array


def _divided(
    segment: SplineSegment,
    piece: Piece,
    z: Array,
    twist: float,
    limit: float,
    depth: int = 0,
) -> list[_FramePart]:
    """Cut a piece in halves until the polynomial spins no more than allowed."""
    end = _carried(segment, piece, z, twist)
    field = _field(segment, piece, z, end, twist)
    if depth >= DEEPEST or _spin_error(segment, piece, field, twist) <= limit:
        return [_FramePart(piece, field, end)]
    left, right = halves(segment, piece)
    first = _divided(segment, left, z, twist, limit, depth + 1)
    return first + _divided(segment, right, first[-1].end, twist, limit, depth + 1)


def _carried(segment: SplineSegment, piece: Piece, z: Array, twist: float) -> Array:
    """Return z at the end of a piece, by reflecting twice at every step.

    W. Wang et al., Computation of Rotation Minimizing Frames, ACM TOG 27 (2008), 2.
    """
    w = np.linspace(*piece.span, _STEPS + 1)
    points, tangents = segment.point(w), _unit(segment.slope(w))
    for k in range(_STEPS):
        chord = points[k + 1] - points[k]
        half = z - 2.0 * (chord @ z) / (chord @ chord) * chord
        tangent = tangents[k] - 2.0 * (chord @ tangents[k]) / (chord @ chord) * chord
        across = tangents[k + 1] - tangent
        size = across @ across
        z = half if size == 0.0 else half - 2.0 * (across @ half) / size * across
    z = z - (z @ tangents[-1]) * tangents[-1]
    z = z / np.linalg.norm(z)
    angle = twist * piece.length
    return math.cos(angle) * z + math.sin(angle) * np.cross(tangents[-1], z)


def _turn_to_close(spline: Spline, z: Array, end: Array) -> float:
    """Return the angle about the tangent from `z` to what it came back as."""
    first = spline.segments[0]
    tangent = _unit(first.slope(np.zeros(1)))[0]
    return math.atan2(float(np.cross(z, end) @ tangent), float(z @ end))


def _field(
    segment: SplineSegment, piece: Piece, z: Array, end: Array, twist: float
) -> Array:
    """Return the polynomial with the exact z, z' and z'' at both ends of a piece.

    With k = T' and y = T x z it is z' = -(z . k) T + twist (T x z), and z'' its rate.
    """
    half = 0.5 * piece.length
    tangents = _tangent_and_rates(segment, np.array(piece.span))
    rows: list[Array] = []
    right: list[Array] = []
    for x, value, T, k, dk in zip((-1.0, 1.0), (z, end), *tangents, strict=True):
        rate = -(value @ k) * T + twist * np.cross(T, value)
        bend = -(rate @ k + value @ dk) * T - (value @ k) * k
        bend = bend + twist * (np.cross(k, value) + np.cross(T, rate))
        powers = x ** np.arange(6.0)
        rows += [powers, _shifted(powers, 1), _shifted(powers, 2)]
        right += [value, half * rate, half**2 * bend]
    unit = np.linalg.solve(np.array(rows), np.array(right))
    unit[np.abs(unit) < ROUNDING] = 0.0  # a direction that stays costs nothing then
    return unit / half ** np.arange(6.0)[:, np.newaxis]


def _shifted(powers: Array, n: int) -> Array:
    """Return the n-th derivative of the powers of 1 or -1."""
    j = np.arange(6)
    factor = j if n == 1 else j * (j - 1)
    return factor * np.concatenate([np.zeros(n), powers[:-n]])


def _tangent_and_rates(segment: SplineSegment, w: Array) -> tuple[Array, Array, Array]:
    """Return T and its first and second derivative by the arc length, (n, 3) each."""
    a, b = segment.slope(w), segment.bend(w)
    c = 6.0 * segment.coefficients[3]
    v = np.linalg.norm(a, axis=1)[:, np.newaxis]
    dv = (a * b).sum(axis=1)[:, np.newaxis] / v
    ddv = ((b * b + a * c).sum(axis=1)[:, np.newaxis] - dv**2) / v
    T = a / v
    first = (b - dv * T) / v  # dT/dw
    second = (c - ddv * T - 2.0 * dv * first) / v
    return T, first / v, (second - dv / v * first) / v**2


def _spin_error(
    segment: SplineSegment, piece: Piece, field: Array, twist: float
) -> float:
    """Return how far the turning about the tangent is from `twist` [rad/m]."""
    t = 0.5 * piece.length * _CHECKS
    w = np.vander(t, len(piece.parameter), increasing=True) @ piece.parameter
    powers = np.vander(t, 6, increasing=True)
    value = powers @ field
    rate = (np.arange(1, 6) * powers[:, :-1]) @ field[1:]
    T, k, _ = _tangent_and_rates(segment, w)
    ahead = (value * T).sum(axis=1)[:, np.newaxis]
    z = value - ahead * T
    y = np.cross(z, T)
    spin = -(y * (rate - ahead * k)).sum(axis=1) / (z * z).sum(axis=1)
    return float(np.abs(spin - twist).max())


def _greatest_curvature(spline: Spline) -> float:
    greatest = 0.0
    for segment in spline.segments:
        _, k, _ = _tangent_and_rates(segment, segment.width * np.linspace(0.0, 1.0, 17))
        greatest = max(greatest, float(np.linalg.norm(k, axis=1).max()))
    return max(greatest, 1e-3 / spline.length)


def _unit(vectors: Array) -> Array:
    return vectors / np.linalg.norm(vectors, axis=1)[:, np.newaxis]
