"""Seven-joint arms whose first three axes meet in S and whose last three in W.

Only the elbow changes how far W is from S, so the distance gives t_4. What is left is
to turn the elbow about the line from S to W, by the arm angle (Shimizu, Kakuya, Yoon,
Kitagaki and Kosuge, IEEE Transactions on Robotics 24, 2008; theirs is from the plane
where t_3 = 0, which holds axis 1, as ours does).

The arm angle is the angle about n, the direction from S to W, from the half-plane in
which axis 1 points to that in which the elbow lies:

    e = cos(psi) r + sin(psi) n x r,   r = z1 across n, of length 1,

where e points to the elbow across n: along n x z4 or against it, so that it does not
vanish as the elbow stretches. Where n is along axis 1, r is taken as though n leaned
a little towards z1 x z2 of q = 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from armillary.ik.closed_forms.dh_from_axes import Arm
from armillary.ik.closed_forms.family import (
    BranchChoice,
    Family,
    Formula,
    FormulaAnswer,
    Preferred,
    require,
)
from armillary.ik.closed_forms.subproblems import TINY, Turn, direction, facing, plane
from armillary.ik.closed_forms.wrist import wrist_turns
from armillary.spatial.pose import Pose
from armillary.spatial.vector import (
    Number,
    Vector3,
    add,
    cross,
    dot,
    scale,
    subtract,
    transpose,
)
from armillary.trace.functions import absolute, atan2, cos, select, sin, sqrt

NEAR = 1e-9  # of squared distances, as a part of the whole


class Triad(NamedTuple):
    """Three directions at right angles: along S to W, to the elbow, and across both.

    Attributes:
        along: n.
        out: e.
        across: n x e.
    """

    along: Vector3
    out: Vector3
    across: Vector3

    def seen(self, v: Vector3) -> Vector3:
        """Return v by its parts along the three."""
        return dot(self.along, v), dot(self.out, v), dot(self.across, v)

    def sum(self, parts: Vector3) -> Vector3:
        """Return the vector that has these parts along the three."""
        x, y, z = parts
        return add(add(scale(x, self.along), scale(y, self.out)), scale(z, self.across))


class Elbow(NamedTuple):
    """A choice of t_4.

    Attributes:
        fourth: The angle.
        triad: Seen from joint 3.
        free: Whether another triad would do.
        reaches: Whether W is as far from S as it is to be.
    """

    fourth: Turn
    triad: Triad
    free: Any
    reaches: Any


def fit(arm: Arm) -> Formula:
    """Return the formula of an arm, of a pose and the arm angle.

    Raises:
        NotApplicable: The first or last three axes do not meet at right angles.
    """
    one, two, _, _, five, six = arm.links
    n = arm.numbers
    for what, first, second, miss in (
        (n[:3], one, two, (one.a, two.a, two.d)),
        (n[4:], five, six, (five.a, six.a, six.d)),
    ):
        axes = f"axes {what[0]}, {what[1]} and {what[2]}"
        apart = 1e3 * max(map(abs, miss))
        require(apart == 0.0, f"{axes} miss one point by {apart:.3g} mm")
        off = math.degrees(math.asin(max(abs(first.cos), abs(second.cos))))
        square = f"{axes} do not meet at right angles, by {off:.3g} degrees"
        require(off == 0.0, square)
    upper, w = _elbow(arm)
    sizes = plane(upper, upper) * plane(w, w)
    require(sizes > 0.0, f"axis {n[3]} goes through the centre of shoulder or wrist")
    return lambda target, preferred: _solve(arm, target, preferred)


def arm_angle_of(arm: Arm) -> Callable[[list[Turn]], Number]:
    """Return the formula of the arm angle [rad] of the angles of all joints."""
    one, two, three = arm.links[:3]
    upper, w = _elbow(arm)

    def arm_angle(turns: list[Turn]) -> Number:
        def shoulder(v: Vector3) -> Vector3:
            v = two.out(turns[2].apply(v))
            return turns[0].apply(one.out(turns[1].apply(v)))

        fore = turns[3].apply(w)
        bend = upper[0] * fore[1] - upper[1] * fore[0]
        v = add(three.origin, three.out(fore))
        seen, _ = _triad(arm, v, select(bend >= 0.0, 1.0, -1.0))
        rise, side, _ = _reference(shoulder(seen.along))
        e = shoulder(seen.out)
        return atan2(dot(e, side), dot(e, rise))

    return arm_angle


def _solve(arm: Arm, target: Pose, preferred: Preferred) -> list[FormulaAnswer]:
    one, two, three, four, five, six = arm.links
    u = subtract(target.position, one.origin)
    n, none = _unit(u, arm.size)
    rise, side, _ = _reference(n)
    c, s = cos(preferred.arm_angle), sin(preferred.arm_angle)
    triad = Triad(
        n,
        add(scale(c, rise), scale(s, side)),
        subtract(scale(c, side), scale(s, rise)),
    )
    columns = transpose(target.rotation)
    held = triad.seen(columns[0]), triad.seen(columns[2])
    answers: list[FormulaAnswer] = []
    for fourth, seen, free, reaches in _elbows(arm, u):
        # the shoulder's rotation leads the one triad to the other
        x, z = (triad.sum((seen.along[k], seen.out[k], seen.across[k])) for k in (0, 2))
        shoulders = wrist_turns(x, z, one, two, preferred.turns[0])
        x, z = (four.back(fourth.back.apply(three.back(seen.sum(v)))) for v in held)
        wrists = wrist_turns(x, z, five, six, preferred.turns[4])
        for *before, spun in shoulders:
            for *after, loose in wrists:
                turns = [*before, fourth, *after]
                # a miss of the distance is a proof, whatever else is free
                singular = reaches & (none | free | spun | loose)
                answers.append(FormulaAnswer(turns, singular))
    return [answers[k] for k in (0, 1, 4, 5, 2, 3, 6, 7)]


def _elbow(arm: Arm) -> tuple[Vector3, Vector3]:
    """Return the ways from S to axis 4 and on to W, as joint 4 turns the second."""
    _, _, three, four, five, _ = arm.links
    return three.back(three.origin), add(four.origin, four.out((0.0, 0.0, five.d)))


def _elbows(arm: Arm, u: Vector3) -> list[Elbow]:
    """Return both elbows that hold W as far from S as u is long."""
    three = arm.links[2]
    upper, w = _elbow(arm)
    product = 0.5 * (dot(u, u) - dot(upper, upper) - dot(w, w))
    *fourths, _ = facing(upper, w, product, arm.size**4)
    elbows: list[Elbow] = []
    for fourth, side in zip(fourths, (1.0, -1.0), strict=True):
        v = add(three.origin, three.out(fourth.apply(w)))
        reaches = absolute(dot(v, v) - dot(u, u)) <= NEAR * arm.size**2
        elbows.append(Elbow(fourth, *_triad(arm, v, side), reaches))
    return elbows


def _triad(arm: Arm, v: Vector3, side: Number) -> tuple[Triad, Any]:
    """Return the triad of an elbow with W at v behind joint 3, and if it has none."""
    three = arm.links[2]
    n, none = _unit(v, arm.size)
    e, flat = _unit(cross(n, three.out((0.0, 0.0, 1.0))), 1.0)
    e = scale(side, e)
    return Triad(n, e, cross(n, e)), none | flat


def _reference(n: Vector3) -> tuple[Vector3, Vector3, Any]:
    """Return r, n x r, and whether n is along axis 1."""
    turn, along = direction(n[0], n[1], 1.0)
    level = sqrt(n[0] * n[0] + n[1] * n[1])
    rise = (0.0 - n[2] * turn.cos, 0.0 - n[2] * turn.sin, level)
    return rise, (turn.sin, 0.0 - turn.cos, 0.0), along


def _unit(v: Vector3, size: float) -> tuple[Vector3, Any]:
    """Return the direction of v, and whether it has none; then it is z."""
    square = dot(v, v)
    none = square <= TINY * size**2
    shrink = 1.0 / sqrt(select(none, 1.0, square))
    x, y, z = scale(shrink, v)
    return (select(none, 0.0, x), select(none, 0.0, y), select(none, 1.0, z)), none


SPHERICAL_SHOULDER = Family(
    "spherical shoulder and wrist, by arm angle",
    fit,
    (
        BranchChoice("shoulder", "no flip", "flip", "z1 . (z2 x z3)"),
        BranchChoice("elbow", "plus", "minus", "z4 . ((A4 - S) x (W - A4))"),
        BranchChoice("wrist", "no flip", "flip", "z5 . (z6 x z7)"),
    ),
    arm_angle_of,
)
