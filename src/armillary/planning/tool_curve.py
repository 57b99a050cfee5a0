"""The curve that a tool follows: segments, with blends where they meet.

A curve is made of pieces with a parameter u from 0 to the length of each, in which

    p(u) = sum_i a_i u^i + C cos(k u) + S sin(k u)        R(u) = R_0 exp(v(u))
    v(u) = sum_i b_i u^i

Segments have one term of these: a line a_0 + a_1 u, an arc C and S; and v = b_1 u, a
turn about a fixed axis. A blend between two segments that meet at a corner c, over r to
both sides, is the polynomial of degree 5 over u from 0 to 2 r that has position, slope
and curvature of both at its ends. With R_0 the rotation at the corner, both segments
turn as exp(b u) from there, so that the same polynomial of v blends rotations, too.
Between two lines it is p' = a + (b - a) (3 x^2 - 2 x^3) with x = u / 2 r, no nearer to
the corner than 3/8 r sin(t/2), where t is the angle between both.

The parameter s of a whole curve is the length of the way of the tool's origin, or LEVER
for each radian of a segment that turns by more than that. On a blend it is the sum of
what is cut off, a little more than the way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.planning.constraint import tilt
from armillary.planning.curve_pieces import DEGREE, CurvePieces, CurvePoints
from armillary.planning.segments import Arc, Segment
from armillary.spatial import rotation as so3
from armillary.spatial.polynomial import bernstein, derivative
from armillary.spatial.vector import three
from armillary.trajectories.curve import hermite_coefficients

__all__ = [
    "LEVER",
    "Blend",
    "Directions",
    "PlannedCurve",
    "ToolCurve",
    "curve_through",
    "joined_curves",
    "planned_curve",
]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Directions: TypeAlias = tuple[int, ...]

LEVER: Final = 0.1
"""Length of a turn in place that counts as one radian [m]."""

ZERO: Final = 1e-9
"""Lengths [m] below this do not count."""

COLLINEAR: Final = 1e-6
"""Three points of an arc whose triangle is this part of a straight line, or less."""

HALF_TURN: Final = 1e-6
"""A rotation that is so near to a half turn has no shortest direction [rad]."""

SMOOTH: Final = 1e-6
"""Smaller changes of direction [rad], and of the rate of turning, make no corner."""

NEARLY: Final = 0.999
"""A blend that passes a corner at this part of the deviation is large enough."""

MOST_GUESSES: Final = 60


class Blend(NamedTuple):
    """How corners are blended where segments do not say.

    Attributes:
        radius: How far from a corner a blend begins [m].
        deviation: How far from a corner a blend passes at most [m]; None where
            `radius` counts.
    """

    radius: float
    deviation: float | None


class _Piece(NamedTuple):
    """A piece of a curve, see the head of this module.

    Attributes:
        length: Of its parameter.
        position: a_i, shape (6, 3).
        circle: C, S and k, shape (7,).
        turning: b_i, shape (6, 3).
        base: R_0, shape (3, 3).
        segment: Which segment it is of, or the one before where it is a blend.
    """

    length: float
    position: Array
    circle: Array
    turning: Array
    base: Array
    segment: int

    def from_to(self, first: float, last: float) -> _Piece:
        """Return a part of a segment."""
        if first == 0.0 and last == self.length:
            return self
        position, circle = self.position.copy(), self.circle.copy()
        position[0] += first * position[1]
        c, s = math.cos(circle[6] * first), math.sin(circle[6] * first)
        C, S = self.circle[:3], self.circle[3:6]
        circle[:3], circle[3:6] = c * C + s * S, c * S - s * C
        base = self.base @ _exp(first * self.turning[1])
        return self._replace(
            length=last - first, position=position, circle=circle, base=base
        )

    def at(self, u: float) -> tuple[Array, Array, Array]:
        """Return position, slope and curvature of a segment, each of shape (3,)."""
        a, (C, S, k) = self.position, self._circle
        c, s = math.cos(k * u), math.sin(k * u)
        round_it = c * C + s * S
        return a[0] + u * a[1] + round_it, a[1] + k * (c * S - s * C), -k * k * round_it

    @property
    def _circle(self) -> tuple[Array, Array, float]:
        return self.circle[:3], self.circle[3:6], float(self.circle[6])


@final
@dataclass(frozen=True, eq=False)
class ToolCurve:
    """A curve of poses; arrays have an entry for each of m pieces, and are read-only.

    Attributes:
        start: The parameter s at which each begins [m], and that of the end, (m + 1,).
        position: a_i, shape (m, 6, 3).
        circle: C, S and k, shape (m, 7).
        turning: b_i, shape (m, 6, 3).
        base: R_0, shape (m, 3, 3).
        segment: Which segment each is of, shape (m,).
        bend: Bounds of the second derivatives by s of p and R, shape (m, 2).
        jerk: Bounds of the third, shape (m, 2).
        sharp: Whether each ends at a corner, where the tool must stop, shape (m,).
    """

    start: Array
    position: Array
    circle: Array
    turning: Array
    base: Array
    segment: Indices
    bend: Array
    jerk: Array
    sharp: npt.NDArray[np.bool_]

    @property
    def length(self) -> float:
        """Return the parameter s at the end [m]."""
        return float(self.start[-1])

    @property
    def lengths(self) -> Array:
        """Return the lengths of the pieces, shape (m,) [m]."""
        return np.diff(self.start)

    def piece_at(self, s: Array) -> Indices:
        """Return the piece in which each s lies, the later one at a junction."""
        return np.clip(
            np.searchsorted(self.start, s, side="right") - 1, 0, len(self.segment) - 1
        )

    def points(self, s: Array, piece: Indices | None = None) -> CurvePoints:
        """Return points of the curve.

        Args:
            s: Parameters [m], shape (k,).
            piece: The piece that each is of, shape (k,); by default as `piece_at` says.
        """
        at = self.piece_at(s) if piece is None else piece
        return self.pieces.points(s, at)

    @cached_property
    def pieces(self) -> CurvePieces:
        """Return what gives points of the curve."""
        arrays = self.position, self.circle, self.turning, self.base, self.sharp
        return CurvePieces(self.start[:-1], *arrays)

    @cached_property
    def farthest(self) -> float:
        """Return how far the tool is from the origin at most [m]."""
        points = np.linalg.norm(_control_points(self.position, self.lengths), axis=2)
        radii = np.linalg.norm(self.circle[:, :3], axis=1)
        return float((points.max(axis=1) + radii).max())

    @cached_property
    def way(self) -> Array:
        """Return how far the tool turns on each piece at most, shape (m,) [rad]."""
        if not self.turning[:, 2:].any():
            return np.linalg.norm(self.turning[:, 1], axis=1) * self.lengths
        rates = _control_points(derivative(self.turning, axis=1), self.lengths)
        return np.linalg.norm(rates, axis=2).max(axis=1) * self.lengths


def _exp(v: Array) -> Array:
    """Return the rotation by a vector, shape (3, 3)."""
    if not v.any():  # of most lines
        return np.eye(3)
    return np.array(so3.exp(three(v.tolist())), dtype=np.float64)


def _log(R: Array) -> Array:
    """Return the vector of a rotation, shape (3,)."""
    x, y, z = R.tolist()
    return np.array(so3.log((three(x), three(y), three(z))), dtype=np.float64)


# Segments


class PlannedCurve(NamedTuple):
    """The segments of a curve.

    Attributes:
        pieces: They.
        radii: How far from each corner between them its blend begins [m].
    """

    pieces: Sequence[_Piece]
    radii: Sequence[float]


def curve_through(
    first: Array,
    segments: Sequence[Segment],
    names: Sequence[str],
    blend: Blend,
    directions: Directions = (0, 1, 2),
) -> ToolCurve:
    """Return the curve from a pose along segments.

    Args:
        first: The pose that it begins at, shape (4, 4).
        segments: What follows.
        names: What messages call them.
        blend: How corners are blended where segments do not say.
        directions: Which axes of the tool have directions that count: all, one about
            which it may spin, or none. It turns no more than these need.

    Raises:
        ModelError: A segment has no length, the points of an arc are on a line or
            coincide, a rotation is a half turn, or blends do not fit.
    """
    return joined_curves([planned_curve(first, segments, names, blend, directions)])[0]


def planned_curve(
    first: Array,
    segments: Sequence[Segment],
    names: Sequence[str],
    blend: Blend,
    directions: Directions = (0, 1, 2),
) -> PlannedCurve:
    """Return the pieces of a curve before they are joined, as for `curve_through`.

    Raises:
        ModelError: As there.
    """
    pieces: list[_Piece] = []
    pose = first
    for k, (segment, name) in enumerate(zip(segments, names, strict=True)):
        if pieces:
            pose = _end_of(pieces[-1])
        pieces.append(_piece_of(pose, segment, name, k, directions))
    radii = _radii(pieces, segments, names, blend)
    return PlannedCurve(pieces, radii)


def _end_of(piece: _Piece) -> Array:
    """Return the pose at the end of a segment, shape (4, 4)."""
    X = np.eye(4)
    X[:3, 3] = piece.at(piece.length)[0]
    X[:3, :3] = piece.base @ _exp(piece.length * piece.turning[1])
    return X


def _piece_of(
    X: Array, segment: Segment, name: str, k: int, directions: Directions
) -> _Piece:
    """Return a segment that begins at a pose.

    Raises:
        ModelError: It has no length, or what `_circle_through` raises.
    """
    position, circle = np.zeros((DEGREE + 1, 3)), np.zeros(7)
    p, R = X[:3, 3], X[:3, :3]
    spin = np.zeros(3)  # the rotation vector of the turn about an arc's own axis
    centre = normal = p
    turn = 0.0
    if isinstance(segment, Arc):
        if segment.axis is None:
            end = _origin(segment.to)
            centre, normal, turn = _circle_through(p, segment.through, end, name)
        else:
            assert segment.angle is not None
            normal, turn = segment.axis / np.linalg.norm(segment.axis), segment.angle
            along = segment.centre - p
            centre = p + along - (along @ normal) * normal
        way = abs(turn) * float(np.linalg.norm(p - centre))
        spin = R.T @ (normal * turn)
    else:
        way = float(np.linalg.norm(_origin(segment.to) - p))
    turning = _turning(R, segment, spin, name, directions)
    length = max(way, LEVER * float(np.linalg.norm(turning)))
    if not length > ZERO:
        raise ModelError(
            f"{name} has no length: it ends where it begins, at {_text(p)}. Leave it "
            "out."
        )
    if isinstance(segment, Arc):
        position[0], circle[:3] = centre, p - centre
        circle[3:6], circle[6] = np.cross(normal, p - centre), turn / length
    else:
        position[0], position[1] = p, (_origin(segment.to) - p) / length
    b = np.zeros((DEGREE + 1, 3))
    b[1] = turning / length
    return _Piece(length, position, circle, b, R, k)


def _origin(place: Array) -> Array:
    """Return the position of a pose, or a position itself."""
    return place if place.shape == (3,) else place[:3, 3]


def _turning(
    R: Array, segment: Segment, spin: Array, name: str, directions: Directions
) -> Array:
    """Return the rotation vector, in the axes of the tool, by which a segment turns it.

    Raises:
        ModelError: It is a half turn, whose direction is not determined.
    """
    if not directions:
        return np.zeros(3)
    is_about = isinstance(segment, Arc) and segment.axis is not None
    if is_about or segment.orientation == "tangent":
        return np.zeros(3) if segment.orientation == "fixed" else spin
    if segment.orientation == "fixed" or segment.to.shape == (3,):
        return np.zeros(3)
    turned = R.T @ segment.to[:3, :3]
    is_whole = len(directions) > 1
    vector = _log(turned) if is_whole else tilt(turned[None], *directions)[0]
    if np.linalg.norm(vector) > math.pi - HALF_TURN:
        raise ModelError(
            f"{name} turns the tool by half a turn, so that no direction is the "
            "shortest: give a pose between, or orientation='fixed'."
        )
    return vector


def _circle_through(
    a: Array, b: Array, c: Array, name: str
) -> tuple[Array, Array, float]:
    """Return the centre, the axis and the angle of the arc from a through b to c.

    Raises:
        ModelError: The points coincide, or are on a line.
    """
    u, v = b - a, c - a
    sizes = [float(np.linalg.norm(way)) for way in (u, v, c - b)]
    ends = ("its start and 'through'", "its start and its end", "'through' and its end")
    for size, pair in zip(sizes, ends, strict=True):
        if not size > ZERO:
            fix = (
                "; a whole circle is Arc(axis=..., angle=2 * pi, centre=...)"
                if pair.startswith("its start and its")
                else ""
            )
            raise ModelError(f"{name} is not an arc: {pair} coincide{fix}.")
    w = np.cross(u, v)
    area = float(np.linalg.norm(w))
    if not area > COLLINEAR * max(sizes) ** 2:
        raise ModelError(
            f"{name} is not an arc: {_text(a)}, {_text(b)} and {_text(c)} are on a "
            "straight line; use Line."
        )
    # The centre of the circle around a triangle, from a.
    to_centre = np.cross(w, u) * (v @ v) + np.cross(v, w) * (u @ u)
    centre = a + to_centre / (2.0 * area * area)
    normal = w / area
    x = a - centre
    y = np.cross(normal, x)
    angle = math.atan2(float((c - centre) @ y), float((c - centre) @ x))
    # About w = (b - a) x (c - a) the points come in the order a, b, c.
    return centre, normal, angle if angle > 0.0 else angle + math.tau


def _text(p: Array) -> str:
    return "(" + ", ".join(f"{x:.6g}" for x in p) + ")"


# Blends


def _radii(
    pieces: Sequence[_Piece],
    segments: Sequence[Segment],
    names: Sequence[str],
    blend: Blend,
) -> list[float]:
    """Return how far from each corner its blend begins [m]; 0 for none.

    Raises:
        ModelError: Blends are longer than a segment.
    """
    radii: list[float] = []
    for k, (one, other) in enumerate(pairwise(pieces)):
        own = segments[k].blend
        most = 0.5 * min(one.length, other.length)
        if _is_smooth(one, other):
            radii.append(0.0)
        elif own is None and blend.deviation is not None:
            deviation = blend.deviation
            is_blended = deviation > ZERO
            radius = _radius_for(one, other, deviation, most) if is_blended else 0.0
            radii.append(radius)
        else:
            radius = float(blend.radius if own is None else own)
            radii.append(radius if radius > ZERO else 0.0)
    around = [0.0, *radii, 0.0]
    for piece, name, before, after in zip(
        pieces, names, around[:-1], around[1:], strict=True
    ):
        if before + after > piece.length * (1.0 + 1e-12):
            raise ModelError(
                f"Blends do not fit into {name}: they take {before:.6g} m at its start "
                f"and {after:.6g} m at its end, and it is {piece.length:.6g} m long. "
                "Give smaller ones, or blend_deviation=, which takes no more than fits."
            )
    return radii


def _is_smooth(one: _Piece, other: _Piece) -> bool:
    """Return whether two segments meet without a corner."""
    slopes = one.at(one.length)[1] - other.at(0.0)[1]
    # Rates of turning, each in the axes of the tool at the corner.
    turns = one.turning[1] - other.turning[1]
    return bool(
        np.linalg.norm(slopes) <= SMOOTH and np.linalg.norm(turns) * LEVER <= SMOOTH
    )


def _radius_for(one: _Piece, other: _Piece, deviation: float, most: float) -> float:
    """Return the radius of the blend that passes a corner at a distance, or `most`."""
    corner = other.at(0.0)[0]

    def passes_at(radius: float) -> float:
        x = 0.5 ** np.arange(DEGREE + 1) * (2.0 * radius) ** np.arange(DEGREE + 1)
        return float(np.linalg.norm(x @ _blended(one, other, radius)[0] - corner))

    low, high, radius = 0.0, most, most
    for _ in range(MOST_GUESSES):
        passes = passes_at(radius)
        if passes <= deviation and (radius == most or passes >= NEARLY * deviation):
            return radius
        low, high = (radius, high) if passes <= deviation else (low, radius)
        # It is in proportion to the radius between lines, and nearly so elsewhere.
        radius *= 0.5 * (1.0 + NEARLY) * deviation / max(passes, 1e-300)
        if not low < radius < high:
            radius = 0.5 * (low + high)
    return low


def _blended(one: _Piece, other: _Piece, radius: float) -> tuple[Array, Array]:
    """Return the polynomials of p and v of a blend, shape (6, 3) each."""
    a, b = one.turning[1], other.turning[1]
    still = np.zeros(3)
    first = zip(one.at(one.length - radius), (-radius * a, a, still), strict=True)
    last = zip(other.at(radius), (radius * b, b, still), strict=True)
    ends = [[np.concatenate(pair) for pair in each] for each in (first, last)]
    length = 2.0 * radius
    (by_share,) = hermite_coefficients(np.array([length]), np.array(ends))
    coefficients = by_share / length ** np.arange(6.0)[:, None]
    return coefficients[:, :3], coefficients[:, 3:]


def joined_curves(planned: Sequence[PlannedCurve]) -> list[ToolCurve]:
    """Return the curves of segments, blended over radii at the corners between them."""
    each = [_parts(*curve) for curve in planned]
    parts = [part for own, _ in each for part in own]
    lengths = np.array([part.length for part in parts])
    position, circle, turning, base = (
        np.stack([getattr(part, name) for part in parts])
        for name in ("position", "circle", "turning", "base")
    )
    segment = np.array([part.segment for part in parts], np.int64)
    bend, jerk = _bounds(position, circle, turning, lengths)
    sharp = np.array([is_sharp for _, own in each for is_sharp in own], np.bool_)
    arrays: list[Any] = [position, circle, turning, base, segment, bend, jerk, sharp]
    for array in arrays:
        array.flags.writeable = False
    curves: list[ToolCurve] = []
    first = 0
    for own, _ in each:
        of = slice(first, first + len(own))
        start = np.concatenate([[0.0], np.cumsum(lengths[of])])
        start.flags.writeable = False
        curves.append(ToolCurve(start, *(array[of] for array in arrays)))
        first = of.stop
    return curves


def _parts(
    pieces: Sequence[_Piece], radii: Sequence[float]
) -> tuple[list[_Piece], list[bool]]:
    """Return the pieces of a curve with its blends, and which end at a corner."""
    parts: list[_Piece] = []
    sharp: list[bool] = []
    begin = 0.0
    for k, piece in enumerate(pieces):
        radius = radii[k] if k < len(radii) else 0.0
        end = piece.length - radius
        if end - begin > ZERO:
            parts.append(piece.from_to(begin, end))
            sharp.append(False)
        if k == len(radii):
            break
        if radius > 0.0:
            position, turning = _blended(piece, pieces[k + 1], radius)
            base = piece.base @ _exp(piece.length * piece.turning[1])
            parts.append(_Piece(2.0 * radius, position, np.zeros(7), turning, base, k))
            sharp.append(False)
        elif parts:
            sharp[-1] = not _is_smooth(piece, pieces[k + 1])
        begin = radius
    return parts, sharp


# Bounds


def _bounds(
    position: Array, circle: Array, turning: Array, lengths: Array
) -> tuple[Array, Array]:
    """Return bounds of |p''| and |R''|, and of |p'''| and |R'''|, shape (m, 2) each.

    |exp(v)''| <= |v''| + |v'|^2 and |exp(v)'''| <= |v'''| + 3 |v''| |v'| + |v'|^3, as
    the k-th derivative of exp in k directions is at most the product of their
    lengths.
    """

    def greatest(coefficients: Array) -> list[Array]:
        """Return bounds of the first three derivatives."""
        if not coefficients[:, 2:].any():  # of straight lines, and steady turns
            none = np.zeros(len(lengths))
            return [np.linalg.norm(coefficients[:, 1], axis=1), none, none]
        sizes: list[Array] = []
        for _ in range(3):
            coefficients = derivative(coefficients, axis=1)
            points = _control_points(coefficients, lengths)
            sizes.append(np.linalg.norm(points, axis=2).max(axis=1))
        return sizes

    radius, rate = np.linalg.norm(circle[:, :3], axis=1), np.abs(circle[:, 6])
    _, bend, jerk = greatest(position)
    one, two, three_ = greatest(turning)
    return (
        np.stack([bend + radius * rate**2, two + one**2], axis=1),
        np.stack([jerk + radius * rate**3, three_ + 3.0 * two * one + one**3], axis=1),
    )


def _control_points(coefficients: Array, lengths: Array) -> Array:
    """Return the points in whose convex hull polynomials stay over [0, length].

    They are the coefficients in Bernstein's basis, b_j = sum_i (j over i) / (d over i)
    a_i length^i.
    """
    d = coefficients.shape[1] - 1
    powers = np.power(lengths[:, None], np.array(range(d + 1), np.float64))
    scaled = coefficients * powers[:, :, None]
    return np.einsum("ji,mik->mjk", bernstein(d), scaled)
