"""The joint that rides a smooth curve through points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import JointError
from armillary.model.axis import Axis, X, Z, direction
from armillary.model.fields import ThreeFloatsOrNone, TupleOfPoints, default
from armillary.model.joint import Joint
from armillary.model.rotation_minimizing_frame import rolling
from armillary.model.spline import Piece, Spline, largest_distance, spline_through
from armillary.model.unit import Unit
from armillary.spatial.polynomial import derivative, polynomial
from armillary.spatial.pose import Pose
from armillary.spatial.vector import (
    Number,
    Vector3,
    add,
    cross,
    scale,
    three,
    transpose,
    unit,
)
from armillary.trace.functions import floor, maximum, minimum, select

Array = npt.NDArray[np.float64]

MOST_POINTS = 256
NEAREST = 1e-9
STEEPEST = 0.9998  # the cosine of about one degree

# true upper bounds of how fast a frame moves and turns along a spline
#
# With T = P'(w), w = w(s) and u(s) the direction up, the frame has x along T and y
# along u x T, and at unit rate of s
#
# v = T w', w_y^2 + w_z^2 = |T x T'|^2 w'^2 / |T|^4, w_x = ((u . T) w' (u . (T x T')) +
# |T|^2 (u x u') . T) / (|T| |u x T|^2).
#
# Numerators and denominators, squared where they are vectors, are polynomials of s on
# each piece, of degree below `NODES`: their values at as many of Chebyshev's nodes give
# all coefficients of their Chebyshev series, and these bound it.

NODES: Final = 80
PARTS: Final = 16  # of each piece
ROUNDING: Final = 1e-12


class Speeds(msgspec.Struct, frozen=True, eq=False):
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
    bounds: list[tuple[Array, Array]] = []
    for piece, field in zip(spline.pieces, fields, strict=True):
        cubic = spline.segments[piece.segment].coefficients
        bounds.append(_bounds(piece, cubic, field))
        starts.append(np.linspace(piece.start, piece.end, PARTS + 1)[:-1])
    linear, angular = map(np.concatenate, zip(*bounds, strict=True))
    ends = np.append(np.concatenate(starts), spline.length)
    return Speeds(ends, np.maximum(linear, 1.0), angular)


def _bounds(piece: Piece, cubic: Array, field: Array) -> tuple[Array, Array]:
    """Return the bounds over the parts of one piece, shape (PARTS,) each."""
    half = 0.5 * piece.length
    width = half / PARTS
    middles = np.linspace(-half, half, 2 * PARTS + 1)[1::2]
    t = middles[:, np.newaxis] + width * _nodes()
    w, rate = _values(piece.parameter, t), _values(derivative(piece.parameter), t)
    T = _values(derivative(cubic), w)
    bend = _values(derivative(derivative(cubic)), w)
    u, du = _values(field, t), _values(derivative(field), t)

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


# the joint that rides a smooth curve through points


class Curve(Joint, frozen=True):
    """Ride a smooth curve through points, q the distance along it [m], x ahead.

    The curve is a cubic spline, of continuous slope and curvature; q = 0 is the first
    point. It is travelled at unit speed, |dp/dq| = 1 within 1e-6. An open curve goes
    straight on beyond its ends, a closed one round and round.

    Attributes:
        points: Points in F [m], in the order in which they are passed, shape (n, 3).
        closed: Whether it goes on from the last point to the first, smoothly.
        up: The direction in F that z is kept as near to as x allows, stored with length
            1. With None the frame turns about x as little as can be, to 1e-4 of the
            greatest curvature: it begins with z as near to z of F as it can (to x of F
            where the curve begins along z), and around a closed curve the angle that is
            left over is spread evenly.
    """

    points: TupleOfPoints
    closed: bool = False
    up: ThreeFloatsOrNone = default(Z)
    unit = Unit.METRE
    lengths = ("points",)

    def check(self) -> None:
        """Refuse points and directions that make no track; give `up` length 1."""
        if self.up is not None:
            up = direction(self.up, "Curve.up")
            msgspec.structs.force_setattr(self, "up", up)
        _check_points(self.points, closed=self.closed)
        self._track()

    @property
    def length(self) -> float:
        """Return the length from the first point to the last, or of a lap [m]."""
        return self._track().length

    @property
    def period(self) -> float | None:
        """Return the length of a lap [m], None for an open curve."""
        return self.length if self.closed else None

    def pose(self, q: Number) -> Pose:
        """Return the pose after the distance q along the curve.

        x = P' / |P'|, y = u x x made a unit vector, with u the direction up, z = x x y.
        """
        track = self._track()
        if self.closed:
            s, beyond = q - track.length * floor(q / track.length), 0.0
        else:
            s = minimum(maximum(q, 0.0), track.length)
            beyond = q - s
        position, slope = track.place(s)
        x = unit(slope)
        y = unit(cross(track.direction_up(s), x))
        rotation = transpose((x, y, cross(x, y)))
        return Pose(rotation, add(position, scale(beyond, x)))

    def origin_bound(self, lower: float, upper: float) -> float:
        """Return an upper bound of the distance between the origins of F and M [m].

        It holds for every q between `lower` and `upper`, and is taken from the control
        points of the curve's cubics, see `bezier`.
        """
        low, high = self._range(lower, upper)
        track = self._track()
        outside = [q for q in (low, high) if not 0.0 <= q <= track.length]
        if not self.closed and not all(map(math.isfinite, outside)):
            return math.inf
        centre = np.array(self.precursor.inverse().position)
        curves = [np.zeros((0, 4, 3))]
        if not self.closed:  # a straight goes farthest at one of its ends
            curves += [
                np.tile(self.motion.pose(q).position, (1, 4, 1)) for q in outside
            ]
        for start, end in _laps(low, high, track.length, closed=self.closed):
            curves.append(track.spline.control_points(start, end))
        return largest_distance(np.concatenate(curves), centre)

    def speed_bounds(self, lower: float, upper: float) -> tuple[float, float]:
        """Return upper bounds of how fast M moves and turns in F at unit rate of q.

        They hold for every q between `lower` and `upper`, and are proved on parts of
        the curve's polynomials, see `speed_of_curve`.

        Returns:
            Of |v| of M's origin [m per m] and of |w| [rad per m].
        """
        low, high = self._range(lower, upper)
        track = self._track()
        ranges = _laps(low, high, track.length, closed=self.closed)
        return track.speeds().over(ranges)

    def _track(self) -> _Track:
        return _track(self.points, self.closed, self.up)


class _Track(msgspec.Struct, frozen=True, eq=False):
    """A curve's polynomials, one row a piece, and the arc lengths where they begin.

    Attributes:
        spline: What they are taken from.
        length: Of the whole [m].
        starts: Of each piece but the first [m].
        parameters: Of each piece: arc length of its middle, then w(s - middle).
        fields: Of each piece the direction up as a polynomial of s - middle, its three
            components interleaved.
        segment_starts: Of each segment but the first [m].
        cubics: Of each segment P(w), its three components interleaved.
    """

    spline: Spline
    length: float
    starts: Sequence[float]
    parameters: Sequence[Sequence[float]]
    fields: Sequence[Sequence[float]]
    segment_starts: Sequence[float]
    cubics: Sequence[Sequence[float]]

    def place(self, s: Number) -> tuple[Vector3, Vector3]:
        """Return the point at arc length `s` and its derivative by the parameter."""
        middle, *parameter = _chosen(s, self.starts, self.parameters)
        w = polynomial(parameter, s - middle)
        cubic = _chosen(s, self.segment_starts, self.cubics)
        a, b, c, d = (cubic[k : k + 3] for k in (0, 3, 6, 9))
        point = [polynomial(row, w) for row in zip(a, b, c, d, strict=True)]
        slope = [
            polynomial((linear, 2.0 * square, 3.0 * cube), w)
            for linear, square, cube in zip(b, c, d, strict=True)
        ]
        return three(point), three(slope)

    def speeds(self) -> Speeds:
        """Return bounds of its speeds, part by part."""
        return _speeds(self)

    def direction_up(self, s: Number) -> Vector3:
        """Return the direction up at arc length `s`, perhaps with a part along x."""
        middle, *_ = _chosen(s, self.starts, self.parameters)
        field = _chosen(s, self.starts, self.fields)
        return three([polynomial(field[k::3], s - middle) for k in range(3)])


def _chosen(
    s: Number, starts: Sequence[float], rows: Sequence[Sequence[float]]
) -> list[Number]:
    """Return the row whose turn it is at `s`, by halving.

    Args:
        s: A number.
        starts: Where each row but the first begins, rising.
        rows: Rows of numbers.
    """
    if len(rows) == 1:
        return list(rows[0])
    half = len(rows) // 2
    is_before = s < starts[half - 1]
    before = _chosen(s, starts[: half - 1], rows[:half])
    after = _chosen(s, starts[half:], rows[half:])
    return [select(is_before, a, b) for a, b in zip(before, after, strict=True)]


@lru_cache(maxsize=256)
def _track(points: tuple[Axis, ...], closed: bool, up: Axis | None) -> _Track:
    """Return the polynomials of a curve."""
    spline = spline_through(np.array(points), closed=closed)
    if up is None:
        rolled = rolling(spline, _first_z(spline), closed=closed)
        spline, fields = rolled.spline, [field.ravel() for field in rolled.fields]
    else:
        _check_up(spline, up)
        fields = [np.array(up)] * len(spline.pieces)
    pieces = spline.pieces
    segment_starts = {piece.segment: piece.start for piece in reversed(pieces)}
    return _Track(
        spline=spline,
        length=spline.length,
        starts=[piece.start for piece in pieces][1:],
        parameters=[[piece.middle, *map(float, piece.parameter)] for piece in pieces],
        fields=[list(map(float, field)) for field in fields],
        segment_starts=sorted(segment_starts.values())[1:],
        cubics=[list(map(float, each.coefficients.flat)) for each in spline.segments],
    )


@lru_cache(maxsize=256)
def _speeds(track: _Track) -> Speeds:
    fields = [np.array(field).reshape(-1, 3) for field in track.fields]
    return speeds_of(track.spline, fields)


def _first_z(spline: Spline) -> Array:
    """Return the direction across the beginning that is nearest to z, or to x."""
    tangent = spline.segments[0].slope(np.zeros(1))[0]
    tangent = tangent / np.linalg.norm(tangent)
    wanted = np.array(Z if abs(tangent[2]) < STEEPEST else X)
    z = wanted - (wanted @ tangent) * tangent
    return z / np.linalg.norm(z)


def _laps(
    low: float, high: float, length: float, *, closed: bool
) -> list[tuple[float, float]]:
    """Return the arc lengths passed between two coordinates, as ranges in a lap."""
    if not closed:
        start, end = max(low, 0.0), min(high, length)
        return [(start, end)] if start <= end else []
    start = low % length
    end = start + (high - low)
    if end <= length:
        return [(start, end)]
    return [(start, length), (0.0, min(end - length, length))]


def _check_points(points: tuple[Axis, ...], *, closed: bool) -> None:
    """Refuse too few or too many points, and points that lie on each other."""
    least = 3 if closed else 2
    if not least <= len(points) <= MOST_POINTS:
        kind = "A closed" if closed else "An open"
        raise JointError(
            f"{kind} Curve takes {least} to {MOST_POINTS} points, not {len(points)}."
        )
    array = np.array(points)
    if closed and points[0] == points[-1]:
        raise JointError(
            "A closed Curve goes on from its last point to its first by itself: leave "
            "out the last point, which repeats the first."
        )
    steps = np.linalg.norm(np.diff(np.vstack([array, array[:1]]), axis=0), axis=1)
    size = np.abs(array - array[0]).max()
    for k, step in enumerate(steps if closed else steps[:-1]):
        if not step > NEAREST * size:
            raise JointError(
                f"Points {k} and {(k + 1) % len(points)} of a Curve (counted from 0) "
                f"are {step:.3g} m apart: neighbours must be different points."
            )


def _check_up(spline: Spline, up: Axis) -> None:
    """Refuse a direction up that the curve runs along somewhere."""
    for k, segment in enumerate(spline.segments):
        slope = segment.slope(segment.width * np.linspace(0.0, 1.0, 65))
        cosine = np.abs(slope @ np.array(up)) / np.linalg.norm(slope, axis=1)
        if cosine.max() > STEEPEST:
            raise JointError(
                f"Curve.up is {up}, and after point {k} (counted from 0) the curve "
                "runs along it: there is no nearest z. Choose another direction, or "
                "None for a frame that turns about x as little as can be."
            )
