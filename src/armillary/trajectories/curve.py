"""Paths of joint positions as curves q(s): smooth splines through knots.

Between two knots a distance h apart, with positions q, slopes m = dq/ds and curvatures
c = d2q/ds2, the curve is the polynomial of degree 5 that has them (Hermite):

    q = q0 + H0 (q1 - q0) + h (H1 m0 + H2 m1) + h^2 (H3 c0 + H4 c1)

at the part r = (s - s0) / h of the way. The natural spline, whose pieces are cubic, is
one of these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from armillary.trajectories.hermite import (
    BASIS,
    BASIS_ROWS,
    basis,
    between_knots,
)

__all__ = [
    "PathCurve",
    "cubic_coefficients",
    "hermite_coefficients",
    "natural_spline",
]

Array = npt.NDArray[np.float64]

TOGETHER: Final = 16
"""Rows of a batch that are computed at once, so that they fit into the cache."""


def hermite_coefficients(h: Array, knots: Array) -> Array:
    """Return polynomials of r, the part of the way between knots.

    Args:
        h: How far apart knots are in s, shape (..., k - 1).
        knots: Position, slope and curvature at each, shape (..., k, 3, n).

    Returns:
        Coefficients of r^0 to r^5, shape (..., k - 1, 6, n).
    """
    h = h[..., None]
    a, b = knots[..., :-1, :, :], knots[..., 1:, :, :]
    square = h * h
    parts = np.empty((BASIS_ROWS, *a.shape[:-2], a.shape[-1]))
    parts[0] = b[..., 0, :] - a[..., 0, :]
    parts[1], parts[2] = h * a[..., 1, :], h * b[..., 1, :]
    parts[3], parts[4] = square * a[..., 2, :], square * b[..., 2, :]
    coefficients = np.einsum("jk,j...n->...kn", BASIS, parts)
    coefficients[..., 0, :] += a[..., 0, :]
    return np.ascontiguousarray(coefficients)


def cubic_coefficients(h: Array, q: Array, qd: Array) -> Array:
    """Return cubic polynomials of r, the part of the way between knots.

    Args:
        h: How far apart knots are, shape (..., k - 1).
        q: Positions there, shape (..., k, n).
        qd: Slopes there, of the same shape.

    Returns:
        Coefficients of r^0 to r^5, the last two 0, shape (..., k - 1, 6, n).
    """
    H = h[..., None]
    a, b = H * qd[..., :-1, :], H * qd[..., 1:, :]
    d = q[..., 1:, :] - q[..., :-1, :]
    zero = np.zeros_like(d)
    parts = [q[..., :-1, :], a, 3.0 * d - 2.0 * a - b, a + b - 2.0 * d, zero, zero]
    return np.ascontiguousarray(np.stack(parts, axis=-2))


@final
@dataclass(frozen=True, slots=True, eq=False)
class PathCurve:
    """Curves of the rows of a batch.

    Attributes:
        at: The parameter s of each knot, ascending, shape (..., k).
        knots: Position, slope and curvature at each, shape (..., k, 3, n).
    """

    at: Array
    knots: Array

    def evaluate(self, row: tuple[int, ...], part: Array) -> tuple[Array, ...]:
        """Return q, dq/ds and d2q/ds2 of a row: shape (m) to (m, n) each.

        Args:
            row: Which of the batch.
            part: The number of the knot before, and the part of the way to the next.
        """
        at, knots = self.at[row], self.knots[row]
        first = np.minimum(part.astype(np.int64), len(at) - 2)
        r, h = part - first, (at[first + 1] - at[first])[:, None]
        a, b = knots[first], knots[first + 1]
        a1, b1, a2, b2 = h * a[:, 1], h * b[:, 1], h * h * a[:, 2], h * h * b[:, 2]
        parts = np.stack([b[:, 0] - a[:, 0], a1, b1, a2, b2], axis=1)
        # Derivative k by s is that by r, over h^k.
        by_r = [np.einsum("mj,mjn->mn", basis(r, k), parts) for k in range(3)]
        return a[:, 0] + by_r[0], by_r[1] / h, by_r[2] / (h * h)

    def at_parameters(self, s: Array) -> Array:
        """Return position, slope and curvature of all rows: (..., g) to (..., g, 3, n).

        s: Parameters of each row.
        """
        *batch, count, _, n = self.knots.shape
        batch = list(np.broadcast_shapes(s.shape[:-1], tuple(batch)))
        s = np.broadcast_to(s, (*batch, s.shape[-1]))
        at = np.broadcast_to(self.at, (*batch, count)).reshape(-1, count)
        knots = np.broadcast_to(self.knots, (*batch, count, 3, n)).reshape(-1, 3, n)
        rows = s.reshape(-1, s.shape[-1])
        found = np.empty((*rows.shape, 3, n))
        for start in range(0, len(rows), TOGETHER):
            part = slice(start, start + TOGETHER)
            own = at[part]
            many = knots[start * count : (start + len(own)) * count]
            found[part] = _at_parameters(own, many, rows[part])
        return found.reshape(*s.shape, 3, n)

    def refined(self, pieces: int) -> PathCurve:
        """Return the same curves with each interval between knots cut in pieces."""
        *batch, count, orders, n = self.knots.shape
        r: Array = np.arange(pieces) / pieces
        h = np.diff(self.at)[..., None]
        a, b = self.knots[..., :-1, :, :], self.knots[..., 1:, :, :]
        square = h * h
        parts = [b[..., 0, :] - a[..., 0, :], h * a[..., 1, :], h * b[..., 1, :]]
        parts += [square * a[..., 2, :], square * b[..., 2, :]]
        H = np.stack([basis(r, k) for k in range(orders)])
        inner = np.einsum("orj,j...kn->...kron", H, np.stack(parts))
        scale = np.stack([np.ones_like(h), h, square], axis=-2)[..., None, :, :]
        inner = inner / scale
        inner[..., 0, :] += a[..., None, 0, :]
        knots = np.empty((*batch, (count - 1) * pieces + 1, orders, n))
        knots[..., :-1, :, :] = inner.reshape(*batch, -1, orders, n)
        knots[..., -1, :, :] = self.knots[..., -1, :, :]
        at = np.empty(knots.shape[:-2])
        at[..., :-1] = (self.at[..., :-1, None] + h * r).reshape(*batch, -1)
        at[..., -1] = self.at[..., -1]
        return PathCurve(at, knots)


def _at_parameters(at: Array, knots: Array, s: Array) -> Array:
    """Return position, slope and curvature of a few rows, shape (k, g, 3, n).

    Args:
        at: Parameters of knots, shape (k, c).
        knots: Position, slope and curvature at those of all rows, shape (k c, 3, n).
        s: Parameters, shape (k, g).
    """
    count = at.shape[-1]
    first = np.empty(s.shape, np.int64)
    for k, (row, own) in enumerate(zip(s, at, strict=True)):
        first[k] = own[1:-1].searchsorted(row, side="right") + k * count
    begin, end = (at.ravel()[first + k] for k in (0, 1))
    a, b = (knots[first + k] for k in (0, 1))
    h = end - begin
    return between_knots(knots.shape[-1])(a, b, h, (s - begin) / h)


def natural_spline(at: Array, positions: Array) -> Array:
    """Return the knots of the cubic spline whose curvature is zero at both ends.

    With distances h[i] = s[i+1] - s[i] and slopes of chords d[i] = (q[i+1] - q[i]) /
    h[i], the curvatures c[i] at waypoints satisfy

        h[i-1] c[i-1] + 2 (h[i-1] + h[i]) c[i] + h[i] c[i+1] = 6 (d[i] - d[i-1])

    This is solved by cyclic reduction: each row is freed from its neighbours, then from
    those two, four, ... rows away. The rows are diagonally dominant, so it is stable.

    Args:
        at: Parameters of waypoints, ascending, shape (..., k).
        positions: Their joint positions, shape (..., k, n).

    Returns:
        Position, slope and curvature at each waypoint, shape (..., k, 3, n).
    """
    *batch, count, n = positions.shape
    if math.prod(batch) > TOGETHER:
        many = positions.reshape(-1, count, n)
        every = np.broadcast_to(at, (*batch, count)).reshape(-1, count)
        splines = np.empty((len(many), count, 3, n))
        for start in range(0, len(many), TOGETHER):
            part = slice(start, start + TOGETHER)
            splines[part] = natural_spline(every[part], many[part])
        return splines.reshape(*batch, count, 3, n)
    h = (at[..., 1:] - at[..., :-1])[..., None]
    d = (positions[..., 1:, :] - positions[..., :-1, :]) / h
    knots = np.zeros((*batch, count, 3, n))
    knots[..., 0, :] = positions
    c = knots[..., 2, :]
    inner = count - 2
    if inner > 0:
        # Rows a c[i-w] + c[i] + b c[i+w] = r, divided by their pivots, with rows of
        # zeros around them, which stand for the c = 0 beyond both ends.
        pivot = 0.5 / (h[..., :-1, :] + h[..., 1:, :])
        width = 1 << (inner - 1).bit_length()
        padded = np.zeros((*batch, inner + 2 * width, 2 + n))
        rows = padded[..., width : width + inner, :]
        rows[..., :1] = h[..., :-1, :] * pivot
        rows[..., 1:2] = h[..., 1:, :] * pivot
        rows[..., 2:] = 6.0 * pivot * (d[..., 1:, :] - d[..., :-1, :])
        rows[..., 0, 0] = rows[..., -1, 1] = 0.0
        w = 1
        while w < inner:
            # Row i less a times row i-w and b times row i+w has c[i-2w], c[i] and
            # c[i+2w] left.
            before = padded[..., width - w : width - w + inner, :]
            after = padded[..., width + w : width + w + inner, :]
            a, b = rows[..., :1], rows[..., 1:2]
            scale = 1.0 / (1.0 - a * before[..., 1:2] - b * after[..., :1])
            reduced = -a * before - b * after
            reduced[..., 2:] += rows[..., 2:]
            reduced[..., :1] = -a * before[..., :1]
            reduced[..., 1:2] = -b * after[..., 1:2]
            rows[:] = reduced * scale
            w *= 2
        c[..., 1:-1, :] = rows[..., 2:]
    # Slopes of the cubic at the start of each interval, and at the end of the last one.
    knots[..., :-1, 1, :] = d - h * (2.0 * c[..., :-1, :] + c[..., 1:, :]) / 6.0
    end = h[..., -1, :] * (c[..., -2, :] + 2.0 * c[..., -1, :]) / 6.0
    knots[..., -1, 1, :] = d[..., -1, :] + end
    return knots
