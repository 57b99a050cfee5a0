"""Arms whose axes 2, 3 and 4 are parallel and whose 5 and 6 meet, as the UR's.

P, where axes 5 and 6 meet, does not move with them. How far it lies along axis 2 is up
to t_1 alone, and so is the angle of axes 6 and 2 to t_5. What rotation is left about
axis 2 is s = t_2 + t_3 + t_4, and a triangle across it tells the three apart (Hawkins,
Analytic inverse kinematics for the Universal Robots, 2013).
"""

from __future__ import annotations

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
from armillary.ik.closed_forms.subproblems import (
    FOLDING,
    ZERO_TURN,
    Turn,
    either,
    facing,
    flat,
    plane,
    triangle,
)
from armillary.ik.closed_forms.wrist import lean
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Vector3, add, subtract, transpose
from armillary.trace.functions import maximum, minimum

LOOSE = 0.01  # a square of the sine of t_5, below which t_6 magnifies errors tenfold
LEVEL = 1e-12  # a square of the sine of t_5, below which t_6 is as good as free


def fit(arm: Arm) -> Formula:
    """Return the formula of an arm.

    Raises:
        NotApplicable: Its axes 2, 3 and 4 are not parallel, or 5 and 6 do not meet.
    """
    one, two, three, four, five = arm.links
    n = arm.numbers
    parallel = two.parallel and three.parallel
    require(parallel, f"axes {n[1]}, {n[2]} and {n[3]} are not parallel")
    require(not one.parallel, f"axes {n[0]} to {n[3]} are all parallel")
    require(not four.parallel, f"axes {n[1]} to {n[4]} are all parallel")
    require(not five.parallel, f"axes {n[4]} and {n[5]} are parallel")
    miss = f"axes {n[4]} and {n[5]} miss each other by {1e3 * abs(five.a):.3g} mm"
    require(five.a == 0.0, miss)
    return lambda target, preferred: _solve(arm, target, preferred)


class Wrist(NamedTuple):
    """What the rotation tells once t_1 is known.

    Attributes:
        total: The turn by t_2 + t_3 + t_4.
        fifth: The turn by t_5.
        sixth: The turn by t_6.
        free: Whether t_6 is free.
        loose: Whether t_6 magnifies small errors of the target.
    """

    total: Turn
    fifth: Turn
    sixth: Turn
    free: Any
    loose: Any


def _solve(arm: Arm, target: Pose, preferred: Preferred) -> list[FormulaAnswer]:
    one, two, three, four, five = arm.links
    upper, fore = (two.a, 0.0, 0.0), (three.a, 0.0, 0.0)
    g = add(four.origin, four.out((0.0, 0.0, five.d)))  # P behind joint 4
    normal = (0.0, one.sin, 0.0 - one.cos)
    extent = 0.0 - (two.d + three.d + g[2] + one.cos * one.d)
    P = target.position
    *firsts, free = facing(P, normal, extent, arm.size**2, preferred.turns[0])
    folds = abs(two.a - three.a) <= FOLDING * arm.size
    fixed = preferred.turns[1] if folds else ZERO_TURN
    answers: list[FormulaAnswer] = []
    for first in firsts:
        u = one.back(subtract(first.back.apply(P), one.origin))
        N = [one.back(first.back.apply(v)) for v in transpose(target.rotation)]
        for wrist in _wrists(arm, u, g, N, preferred.turns[5]):
            v = subtract(u, wrist.total.apply(g))  # from axis 2 to axis 4, across them
            for second, third, also in triangle(upper, fore, v, arm.size, fixed):
                fourth = wrist.total.plus(second.plus(third).back)
                turns = [first, second, third, fourth, wrist.fifth, wrist.sixth]
                singular = free | wrist.free | also
                answers.append(FormulaAnswer(turns, singular, wrist.loose))
    # by shoulder, elbow and wrist, in the order of the choices
    return [answers[k] for k in (0, 2, 1, 3, 4, 6, 5, 7)]


def _wrists(
    arm: Arm, u: Vector3, g: Vector3, N: list[Vector3], preferred: Turn
) -> list[Wrist]:
    """Return both wrists that turn to N = Rz(s) Rx Rz(t_5) Rx Rz(t_6), by columns.

    Its last row is axis 2 seen from the last joint, which t_5 and t_6 must lead there.
    """
    four, five = arm.links[3:]
    x, y, z = N
    wrists: list[Wrist] = []
    across = x[2] * x[2] + y[2] * y[2]
    level, loose = across <= LEVEL, across <= LOOSE
    m = 0.0 - x[2], 0.0 - y[2], z[2]
    flip, no_flip = lean(m, five, four, preferred.back)
    for turn, bend, _ in (no_flip, flip):
        fifth, sixth = bend.back, turn.back
        a, b, c = turn.apply(five.back(bend.apply((1.0, 0.0, 0.0))))
        total = Turn(x[0] * a + y[0] * b + z[0] * c, x[1] * a + y[1] * b + z[1] * c)
        near = _nearest(arm, u, g, total)
        inner = five.back(fifth.back.apply(four.back(near.back.apply(x))))
        wrists.append(
            Wrist(
                either(level, near, total),
                fifth,
                either(level, Turn(inner[0], inner[1]), sixth),
                level,
                loose,
            )
        )
    return wrists


def _nearest(arm: Arm, u: Vector3, g: Vector3, total: Turn) -> Turn:
    """Return `total`, or if its triangle has no corner another s whose triangle has.

    Where axes 6 and 2 are parallel t_6 is free, and with it s; not every s will do.
    """
    two, three = arm.links[1:3]
    v = subtract(u, total.apply(g))
    low, high = (two.a - three.a) ** 2, (two.a + three.a) ** 2
    length = plane(v, v)
    wanted = minimum(maximum(length, low), high)
    product = 0.5 * (plane(u, u) + plane(g, g) - wanted)
    other, _, _ = facing(u, flat(g), product, arm.size**4)
    return either(length == wanted, total, other)


THREE_PARALLEL = Family(
    "axes 2, 3 and 4 parallel",
    fit,
    (
        BranchChoice("shoulder", "right", "left", "(z1 x z2) . (P - A1)"),
        BranchChoice("elbow", "up", "down", "z2 . ((A3 - A2) x (A4 - A3))"),
        BranchChoice("wrist", "no flip", "flip", "z2 . (z5 x z6)"),
    ),
)
