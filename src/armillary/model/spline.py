"""Smooth curves through points: cubic splines, travelled at unit speed.

A spline is made of cubic segments P(w) that meet with equal slope and bend (C2). Its
parameter w is not a distance. On each piece of a segment a polynomial w(s) inverts the
arc length, with the exact value, slope and bend at both ends, and a segment is halved
until |dP/ds| is 1 within `SPEED_TOLERANCE` on all its pieces.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import JointError

Array = npt.NDArray[np.float64]

SPEED_TOLERANCE: Final = 1e-6
SLOWEST: Final = 0.02
DEGREE: Final = 11
DEEPEST: Final = 10
ROUNDING: Final = 1e-12

_CHECKS: Final = np.linspace(-1.0, 1.0, 34)[1:-1]
_POWERS: Final = np.arange(DEGREE + 1)
_ENDS: Final = np.array([-1.0, 1.0])

# how far cubic curves go from a point, by the hull of their control points

RELATIVE_GAP: Final = 1e-9
MOST_CURVES: Final = 4096
MOST_HALVINGS: Final = 40
HALVING_ROUNDING: Final = 1e-14


def control_points(coefficients: Array, low: float, high: float) -> Array:
    """Return the control points of a cubic between two parameters.

    Args:
        coefficients: c_k of c_0 + c_1 w + c_2 w^2 + c_3 w^3, shape (4, 3).
        low: Parameter of the first control point.
        high: Parameter of the last one.

    Returns:
        Shape (4, 3).
    """
    a, b, c, d = coefficients
    h = high - low
    # The same cubic in x = (w - low) / h, then in Bernstein's polynomials.
    a, b, c, d = (
        a + low * (b + low * (c + low * d)),
        h * (b + low * (2.0 * c + 3.0 * low * d)),
        h**2 * (c + 3.0 * low * d),
        h**3 * d,
    )
    return np.array([a, a + b / 3.0, a + 2.0 * b / 3.0 + c / 3.0, a + b + c + d])


def largest_distance(curves: Array, centre: Array) -> float:
    """Return an upper bound of the distance of cubics from a point.

    A cubic lies within the hull of its control points. Those that may go farthest are
    halved (de Casteljau) until the bound is within 1e-9 of a distance that is reached,
    or until there are too many of them, as on a circle about the centre.

    Args:
        curves: Control points, shape (n, 4, 3).
        centre: The point, shape (3,).
    """
    reached = top = 0.0
    for _ in range(MOST_HALVINGS if len(curves) else 0):
        distances = np.linalg.norm(curves - centre, axis=2)
        ceilings = distances.max(axis=1)
        reached = max(reached, float(distances[:, [0, 3]].max()))
        top = float(ceilings.max())
        if top <= reached * (1.0 + RELATIVE_GAP) or len(curves) > MOST_CURVES:
            break
        # Only halves whose hull reaches beyond a point of the curve that is reached can
        # hold the farthest one.
        curves = _halved(curves[ceilings > reached])
    return max(top, reached) * (1.0 + HALVING_ROUNDING)


def _halved(curves: Array) -> Array:
    a, b, c, d = (curves[:, k] for k in range(4))
    ab, bc, cd = 0.5 * (a + b), 0.5 * (b + c), 0.5 * (c + d)
    abc, bcd = 0.5 * (ab + bc), 0.5 * (bc + cd)
    middle = 0.5 * (abc + bcd)
    left = np.stack([a, ab, abc, middle], axis=1)
    return np.concatenate([left, np.stack([middle, bcd, cd, d], axis=1)])


# smooth curves through points: cubic splines, travelled at unit speed


@cache
def _gauss() -> tuple[Array, Array]:
    """Return the nodes and weights of Gauss's quadrature, made when first needed."""
    return np.polynomial.legendre.leggauss(16)


class SplineSegment(msgspec.Struct, frozen=True, eq=False):
    """One cubic, P(w) = c_0 + c_1 w + c_2 w^2 + c_3 w^3 for w in [0, width].

    Attributes:
        coefficients: c_k [m], shape (4, 3).
        width: Of its parameter.
    """

    coefficients: Array
    width: float

    def point(self, w: Array) -> Array:
        """Return P at each of `w`, shape (n, 3)."""
        return np.vander(w, 4, increasing=True) @ self.coefficients

    def slope(self, w: Array) -> Array:
        """Return dP/dw at each of `w`, shape (n, 3)."""
        _, b, c, d = self.coefficients
        return np.vander(w, 3, increasing=True) @ np.array([b, 2.0 * c, 3.0 * d])

    def bend(self, w: Array) -> Array:
        """Return the second derivative at each of `w`, shape (n, 3)."""
        _, _, c, d = self.coefficients
        return np.vander(w, 2, increasing=True) @ np.array([2.0 * c, 6.0 * d])

    def speed(self, w: Array) -> Array:
        """Return |dP/dw| at each of `w`, shape (n,)."""
        return np.linalg.norm(self.slope(w), axis=1)

    def length(self, start: float, end: Array) -> Array:
        """Return the arc length from one parameter to each of others [m], (n,)."""
        # 16 nodes integrate |P'| of a smooth piece to rounding.
        nodes, weights = _gauss()
        half = 0.5 * (end - start)
        at = start + half[:, np.newaxis] * (nodes + 1.0)
        return half * (self.speed(at.ravel()).reshape(at.shape) @ weights)


class Piece(msgspec.Struct, frozen=True, eq=False):
    """A part of a segment, w(s) = k_0 + k_1 t + ... with t = s - middle.

    Attributes:
        segment: Place of its segment in the spline.
        span: The parameters w of its ends.
        start: Arc length at which it begins [m].
        length: Its arc length [m].
        parameter: k_j, shape (DEGREE + 1,).
    """

    segment: int
    span: tuple[float, float]
    start: float
    length: float
    parameter: Array

    def parameter_at(self, s: float) -> float:
        """Return w at the arc length `s`."""
        return float((s - self.middle) ** _POWERS @ self.parameter)

    @property
    def middle(self) -> float:
        """Return the arc length at its middle [m]."""
        return self.start + 0.5 * self.length

    @property
    def end(self) -> float:
        """Return the arc length at which it ends [m]."""
        return self.start + self.length


class Spline(msgspec.Struct, frozen=True, eq=False):
    """A curve of cubic segments, cut into pieces that know the arc length."""

    segments: tuple[SplineSegment, ...]
    pieces: tuple[Piece, ...]

    @property
    def length(self) -> float:
        """Return the arc length from the first point to the last [m]."""
        return self.pieces[-1].end

    def control_points(self, start: float, end: float) -> Array:
        """Return control points of cubics that hold the curve between arc lengths.

        Args:
            start: In [0, length] [m].
            end: Not below `start` [m].

        Returns:
            Shape (n, 4, 3).
        """
        curves: list[Array] = []
        for piece in self.pieces:
            if piece.end < start or piece.start > end:
                continue
            segment = self.segments[piece.segment]
            low = piece.parameter_at(start) if piece.start < start else piece.span[0]
            high = piece.parameter_at(end) if piece.end > end else piece.span[1]
            margin = ROUNDING * segment.width
            curves.append(
                control_points(segment.coefficients, low - margin, high + margin)
            )
        return np.array(curves).reshape(-1, 4, 3)


def spline_through(points: Array, *, closed: bool) -> Spline:
    """Return the C2 spline through points, its arc length from the first on.

    Its parameter is the chord length. An open one has no bend at its ends (it is the
    natural spline), so that straight lines continue it smoothly.

    Args:
        points: Shape (n, 3) [m].
        closed: Whether it goes on from the last point to the first.

    Raises:
        JointError: It turns back on itself, so that its speed comes near zero.
    """
    knots = np.vstack([points, points[:1]]) if closed else points
    chords = np.linalg.norm(np.diff(knots, axis=0), axis=1)
    segments = _segments(knots, chords, _bends(knots, chords, closed=closed))
    pieces: list[Piece] = []
    start = 0.0
    for k, segment in enumerate(segments):
        _check_speed(segment, k)
        pieces += _pieces(segment, k, start, (0.0, segment.width))
        start = pieces[-1].end
    return Spline(segments, tuple(pieces))


def halves(segment: SplineSegment, piece: Piece) -> tuple[Piece, Piece]:
    """Return a piece cut in two."""
    low, high = piece.span
    middle = 0.5 * (low + high)
    left = _piece(segment, piece.segment, piece.start, (low, middle))
    return left, _piece(segment, piece.segment, left.end, (middle, high))


def _bends(knots: Array, h: Array, *, closed: bool) -> Array:
    """Return the second derivative at each knot, shape (n, 3).

    They solve h_{k-1} m_{k-1} + 2 (h_{k-1} + h_k) m_k + h_k m_{k+1} = 6 (d_k - d_{k-1})
    with d_k the slope of chord k, around the ring, or with zeros at both ends.
    """
    slopes = np.diff(knots, axis=0) / h[:, np.newaxis]
    if closed:
        count = len(h)
        # A ring: row k has h_{k-1} before and h_k behind the diagonal, with indices
        # modulo the number of chords.
        before = np.roll(h, 1)
        matrix = np.diag(2.0 * (before + h))
        for k in range(count):
            matrix[k, k - 1] += before[k]
            matrix[k, (k + 1) % count] += h[k]
        right = 6.0 * (slopes - np.roll(slopes, 1, axis=0))
        ring = np.linalg.solve(matrix, right)
        return np.vstack([ring, ring[:1]]).astype(np.float64)
    bends = np.zeros_like(knots)
    if len(knots) > 2:
        matrix = np.diag(2.0 * (h[:-1] + h[1:]))
        matrix += np.diag(h[1:-1], 1) + np.diag(h[1:-1], -1)
        bends[1:-1] = np.linalg.solve(matrix, 6.0 * np.diff(slopes, axis=0))
    return bends


def _segments(knots: Array, chords: Array, bends: Array) -> tuple[SplineSegment, ...]:
    made: list[SplineSegment] = []
    for k, h in enumerate(chords):
        a, b = knots[k], knots[k + 1]
        m, n = bends[k], bends[k + 1]
        slope = (b - a) / h - h * (2.0 * m + n) / 6.0
        cubic = (n - m) / (6.0 * h)
        made.append(SplineSegment(np.array([a, slope, 0.5 * m, cubic]), float(h)))
    return tuple(made)


def _check_speed(segment: SplineSegment, k: int) -> None:
    if segment.speed(segment.width * np.linspace(0.0, 1.0, 65)).min() < SLOWEST:
        raise JointError(
            f"A curve through these points turns back on itself between points {k} and "
            f"{k + 1} (counted from 0). Add points around the sharp turn, or move some."
        )


def _pieces(
    segment: SplineSegment,
    k: int,
    start: float,
    span: tuple[float, float],
    depth: int = 0,
) -> list[Piece]:
    """Cut a span of a segment in halves until its pieces have unit speed."""
    piece = _piece(segment, k, start, span)
    if _speed_error(segment, piece) <= SPEED_TOLERANCE or depth >= DEEPEST:
        return [piece]
    middle = 0.5 * (span[0] + span[1])
    left = _pieces(segment, k, start, (span[0], middle), depth + 1)
    right = _pieces(segment, k, left[-1].end, (middle, span[1]), depth + 1)
    return left + right


def _piece(
    segment: SplineSegment, k: int, start: float, span: tuple[float, float]
) -> Piece:
    """Return the piece of a segment over a span of its parameter.

    The polynomial takes six conditions at the ends, where with v the speed w' = 1 / v
    and w'' = -P' . P'' / v^4, and for the rest runs through exact points between.
    """
    low, high = span
    ends = np.array(span)
    length = float(segment.length(low, ends[1:])[0])
    half = 0.5 * length
    v = segment.speed(ends)
    pull = (segment.slope(ends) * segment.bend(ends)).sum(axis=1)
    x = -np.cos(np.pi * np.arange(1, DEGREE - 4) / (DEGREE - 4))
    inner = _at_length(segment, low, high, half * (x + 1.0))
    rows = np.vstack([*(_powers(_ENDS, n) for n in range(3)), _powers(x)])
    right = np.concatenate([ends, half / v, -(half**2) * pull / v**4, inner])
    unit = np.linalg.solve(rows, right)
    return Piece(k, span, start, length, unit / half**_POWERS)


def _at_length(
    segment: SplineSegment, low: float, high: float, lengths: Array
) -> Array:
    """Return the parameters at arc lengths from `low`, by Newton's method."""
    w = low + 0.5 * (high - low) * np.ones_like(lengths)
    for _ in range(60):
        step = (segment.length(low, w) - lengths) / segment.speed(w)
        w = np.clip(w - step, low, high)
        if np.abs(step).max() <= 1e-15 * (high - low):
            break
    return w


def _powers(x: Array, derivative: int = 0) -> Array:
    """Return the derivative of each power of each of `x`, shape (n, DEGREE + 1)."""
    factor = np.ones(DEGREE + 1)
    for n in range(derivative):
        factor = factor * (_POWERS - n)
    exponent = np.maximum(_POWERS - derivative, 0)
    return factor * x[:, np.newaxis] ** exponent


def _speed_error(segment: SplineSegment, piece: Piece) -> float:
    """Return the largest error of |dP/ds|, which should be 1."""
    t = 0.5 * piece.length * _CHECKS
    w, rate = _powers(t) @ piece.parameter, _powers(t, 1) @ piece.parameter
    return float(np.abs(segment.speed(w) * rate - 1.0).max())
