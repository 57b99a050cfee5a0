"""Angles by cosine and sine, and the equations that turn about one axis.

Every subproblem of Paden and Kahan, in the continued form of Elias and Wen (Mechanism
and Machine Theory 209, 2025: where there is no exact answer, the nearest), comes down
to two scalar ones once the axis is z: `between` (subproblem 1) and `facing` (4, and 3
by the law of cosines; with `between` also 2, and the angles of a `triangle`). None
needs an arc or a sine: angles are written at the end.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from armillary.spatial.pose import Pose
from armillary.spatial.vector import ZERO, Number, Vector3, add
from armillary.trace.functions import atan2, maximum, minimum, select, sqrt

TAU = 2.0 * math.pi
FOLDING = 1e-9  # how far links of equal length may differ, as a part of the arm
TINY = 1e-20  # of a squared length, as a part of the whole


class Turn(NamedTuple):
    """An angle about z.

    Attributes:
        cos: Its cosine.
        sin: Its sine.
        known: The angle, where it needs no arc; else None.
    """

    cos: Number
    sin: Number
    known: Number = None

    @property
    def angle(self) -> Number:
        """Return the angle in [-pi, pi] [rad]."""
        return atan2(self.sin, self.cos) if self.known is None else self.known

    @property
    def back(self) -> Turn:
        """Return the turn by the opposite angle."""
        return Turn(self.cos, 0.0 - self.sin, 0.0 - self.angle)

    @property
    def opposite(self) -> Turn:
        """Return the turn by half a turn more."""
        angle = self.angle
        angle = select(angle > 0.0, angle - math.pi, angle + math.pi)
        return Turn(0.0 - self.cos, 0.0 - self.sin, angle)

    def plus(self, other: Turn) -> Turn:
        """Return the turn by the sum of two angles."""
        angle = self.angle + other.angle
        turns = select(angle > math.pi, TAU, select(angle < -math.pi, -TAU, 0.0))
        return Turn(
            self.cos * other.cos - self.sin * other.sin,
            self.sin * other.cos + self.cos * other.sin,
            angle - turns,
        )

    def apply(self, v: Vector3) -> Vector3:
        """Return Rz(angle) v."""
        x, y, z = v
        return self.cos * x - self.sin * y, self.sin * x + self.cos * y, z

    @property
    def pose(self) -> Pose:
        """Return the pose turned about z."""
        c, s = self.cos, self.sin
        return Pose(((c, 0.0 - s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)), ZERO)


ZERO_TURN = Turn(1.0, 0.0)


def direction(
    x: Number, y: Number, size: float, preferred: Turn = ZERO_TURN
) -> tuple[Turn, Any]:
    """Return the turn of x to the direction (x, y), and whether it has none.

    Where |(x, y)|^2 is zero beside `size`, to `TINY`, that is `preferred`.
    """
    square = x * x + y * y
    free = square <= TINY * size
    shrink = 1.0 / sqrt(select(free, 1.0, square))
    return either(free, preferred, Turn(x * shrink, y * shrink)), free


def either(truth: Any, one: Turn, two: Turn) -> Turn:
    """Return the first turn where `truth` holds, else the second."""
    return Turn(select(truth, one.cos, two.cos), select(truth, one.sin, two.sin))


def between(
    p: Vector3, q: Vector3, size: float, preferred: Turn = ZERO_TURN
) -> tuple[Turn, Any]:
    """Return the turn of p_xy to q_xy, and whether one of them is zero.

    cos = p . q / |p||q|, sin = p x q / |p||q|; `size` is a typical |p|^2 |q|^2. Where
    any turn will do that is `preferred`.
    """
    x, y = plane(p, q), p[0] * q[1] - p[1] * q[0]
    return direction(x, y, size, preferred)


def facing(
    h: Vector3, p: Vector3, c: Number, size: float, preferred: Turn = ZERO_TURN
) -> tuple[Turn, Turn, Any]:
    """Return both turns with h . Rz p = c, and whether any will do.

    With a = h_xy . p_xy and b = (p x h)_z that is a cos + b sin = c - h_z p_z =: e, so
    with r^2 = a^2 + b^2 and w = sqrt(r^2 - e^2) the turns are (a e -+ b w, b e +- a w)
    / r^2. The first has (h x Rz p)_z = w, the second -w. Where |e| > r, both are the
    nearest, (a, b) sign(e) / r. Where r = 0 any will do, and both are `preferred`;
    `size` is a typical r^2.
    """
    a, b = plane(h, p), p[0] * h[1] - p[1] * h[0]
    e = c - h[2] * p[2]
    if isinstance(a, float) and isinstance(b, float):
        return *_about(a, b, e), False
    square = a * a + b * b
    free = square <= TINY * size
    largest = maximum(square, e * e)
    root = sqrt(largest - e * e)
    shrink = 1.0 / sqrt(select(free, 1.0, square * largest))
    ae, be, aw, bw = a * e, b * e, a * root, b * root

    def turn(cos: Number, sin: Number) -> Turn:
        return either(free, preferred, Turn(cos * shrink, sin * shrink))

    return turn(ae - bw, be + aw), turn(ae + bw, be - aw), free


def triangle(
    upper: Vector3,
    fore: Vector3,
    v: Vector3,
    size: float,
    first: Turn = ZERO_TURN,
    second: Turn = ZERO_TURN,
) -> list[tuple[Turn, Turn, Any]]:
    """Return both pairs of turns with Rz(t_1) (upper + Rz(t_2) fore) = v across z.

    The law of cosines gives t_2. The third of each answer is whether others will do:
    then those are `first` and `second`; `size` is a typical length of v.
    """
    square = plane(v, v) - plane(upper, upper) - plane(fore, fore)
    *seconds, free = facing(flat(upper), flat(fore), 0.5 * square, size**4, second)
    answers: list[tuple[Turn, Turn, Any]] = []
    for turn in seconds:
        reach = add(upper, turn.apply(fore))
        before, also = between(reach, v, size**4, first)
        answers.append((before, turn, free | also))
    return answers


def plane(v: Vector3, w: Vector3) -> Any:
    """Return the inner product of the parts of two vectors across z."""
    return v[0] * w[0] + v[1] * w[1]


def flat(v: Vector3) -> Vector3:
    """Return the part of a vector across z."""
    return v[0], v[1], 0.0


def _about(a: float, b: float, e: Number) -> tuple[Turn, Turn]:
    """Return both turns where a and b are known, not both 0: one arc is enough.

    They are the direction (a, b), give or take the angle of cosine e/r.
    """
    r = math.hypot(a, b)
    cos = minimum(maximum(e * (1.0 / r), -1.0), 1.0)
    spread = Turn(cos, sqrt(1.0 - cos * cos))
    middle = Turn(a / r, b / r)
    if middle.sin == 0.0 and middle.cos > 0.0:
        return spread, spread.back
    return middle.plus(spread), middle.plus(spread.back)
