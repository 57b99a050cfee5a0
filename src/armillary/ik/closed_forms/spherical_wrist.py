"""Arms whose last three axes meet in a point (Pieper 1968), four kinds of them.

The wrist centre W does not move with the last three joints, so the first three are
found from it, and the wrist's from what rotation is left. The first three have a
closed form of square roots alone where two neighbours are parallel or meet: with

    W = Rz(t_1) K_1 Rz(t_2) K_2 Rz(t_3) w,   w the wrist centre behind the third joint,

each kind has a quantity that one joint alone decides, then one for the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

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
    between,
    facing,
    plane,
    triangle,
)
from armillary.ik.closed_forms.wrist import wrist_turns
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Vector3, add, dot, subtract, transpose

Placing = tuple[Turn, Turn, Turn, Any]
"""The first three turns, and whether they are some of infinitely many."""

Place = Callable[[Vector3, Preferred], list[Placing]]
"""From W to the placings right and up, right and down, left and up, left and down."""

Kind = Callable[[Arm, Vector3], Place]
"""Takes an arm and w; raises `NotApplicable` where the arm is of another kind."""

WRIST = BranchChoice("wrist", "no flip", "flip", "z4 . (z5 x z6)")


def elbow(arm: Arm, w: Vector3) -> Place:
    """Return the formula where axes 2 and 3 are parallel, whatever the offsets.

    With n the direction of axis 2 behind joint 1, the arm's constant extent along it
    gives W . Rz(t_1) n; the triangle across it gives t_3, and t_2 turns the triangle.
    """
    one, two = arm.links[:2]
    square = arm.size**2
    _, b, c = arm.numbers[:3]
    require(two.parallel, f"axes {b} and {c} are not parallel")
    require(not one.parallel, f"axes {arm.numbers[0]}, {b} and {c} are all parallel")
    require(plane(w, w) > 0.0, f"axis {c} goes through the centre of the wrist")
    upper = (two.a, 0.0, 0.0)
    normal = (0.0, one.sin, 0.0 - one.cos)
    extent = 0.0 - (two.d + w[2] + one.cos * one.d)
    folds = abs(two.a - math.hypot(w[0], w[1])) <= FOLDING * arm.size

    def place(W: Vector3, preferred: Preferred) -> list[Placing]:
        placings: list[Placing] = []
        *firsts, free = facing(W, normal, extent, square, preferred.turns[0])
        for first in firsts:
            u = one.back(subtract(first.back.apply(W), one.origin))
            fixed = preferred.turns[1] if folds else ZERO_TURN
            for second, third, also in triangle(upper, w, u, arm.size, fixed):
                placings.append((first, second, third, free | also))
        return placings

    return place


def meeting_12(arm: Arm, w: Vector3) -> Place:
    """Return the formula where axes 1 and 2 meet.

    The distance of W from that point gives t_3, its height above it t_2, then t_1.
    """
    one, two = arm.links[:2]
    square = arm.size**2
    a, b, c = arm.numbers[:3]
    require(one.a == 0.0, f"axes {a} and {b} miss each other by {abs(one.a):.3g} m")
    upper = two.back(two.origin)
    sizes = plane(upper, upper) * plane(w, w)
    require(
        sizes > 0.0, f"axis {c} goes through the centre of the wrist or of {a}, {b}"
    )
    height = (0.0, one.sin, one.cos)

    def place(W: Vector3, preferred: Preferred) -> list[Placing]:
        u = subtract(W, one.origin)
        product = 0.5 * (dot(u, u) - dot(w, w) - dot(upper, upper))
        up, down, _ = facing(upper, w, product, square**2)
        placings: list[Placing] = []
        for third in (up, down):
            v = add(two.origin, two.out(third.apply(w)))
            seconds = facing(height, v, u[2], square, preferred.turns[1])
            left, right, free = seconds
            for second in (right, left):
                turned = one.out(second.apply(v))
                first, also = between(turned, u, square**2, preferred.turns[0])
                placings.append((first, second, third, free | also))
        return [placings[k] for k in (0, 2, 1, 3)]

    return place


def meeting_23(arm: Arm, w: Vector3) -> Place:
    """Return the formula where axes 2 and 3 meet.

    The distance of W from that point gives t_1, its height along axis 2 t_3, then t_2.
    """
    one, two = arm.links[:2]
    square = arm.size**2
    a, b, c = arm.numbers[:3]
    require(two.a == 0.0, f"axes {b} and {c} miss each other by {abs(two.a):.3g} m")
    require(not two.parallel, f"axes {b} and {c} are parallel")
    point = add(one.origin, one.out((0.0, 0.0, two.d)))
    require(plane(point, point) > 0.0, f"axes {a}, {b} and {c} meet in one point")
    require(plane(w, w) > 0.0, f"axis {c} goes through the centre of the wrist")
    height = (0.0, two.sin, two.cos)

    def place(W: Vector3, preferred: Preferred) -> list[Placing]:
        placings: list[Placing] = []
        product = 0.5 * (dot(W, W) + dot(point, point) - dot(w, w))
        *firsts, free = facing(W, point, product, square**2, preferred.turns[0])
        for first in firsts:
            u = one.back(subtract(first.back.apply(W), point))
            down, up, _ = facing(height, w, u[2], square)
            for third in (up, down):
                v = two.out(third.apply(w))
                second, also = between(v, u, square**2, preferred.turns[1])
                placings.append((first, second, third, free | also))
        return placings

    return place


def parallel_12(arm: Arm, w: Vector3) -> Place:
    """Return the formula where axes 1 and 2 are parallel.

    The height of W along them gives t_3; the triangle across them t_2, then t_1.
    """
    one, two = arm.links[:2]
    square = arm.size**2
    a, b, c = arm.numbers[:3]
    require(one.parallel, f"axes {a} and {b} are not parallel")
    require(not two.parallel, f"axes {a}, {b} and {c} are all parallel")
    require(plane(w, w) > 0.0, f"axis {c} goes through the centre of the wrist")
    upper, height = (one.a, 0.0, 0.0), (0.0, two.sin, two.cos)

    def place(W: Vector3, preferred: Preferred) -> list[Placing]:
        placings: list[Placing] = []
        left, right, _ = facing(height, w, W[2] - one.d - two.d, square)
        for third in (right, left):
            v = add(two.origin, two.out(third.apply(w)))
            turns = triangle(upper, v, W, arm.size, *preferred.turns[:2])
            placings += [(first, second, third, free) for first, second, free in turns]
        return placings

    return place


def _centre(arm: Arm) -> Vector3:
    """Return w, the centre of the wrist as the third joint carries it."""
    three, four = arm.links[2:4]
    return add(three.origin, three.out((0.0, 0.0, four.d)))


def _with_wrist(kind: Kind) -> Callable[[Arm], Formula]:
    """Return the recogniser of arms of a kind that end in a spherical wrist."""

    def fit(arm: Arm) -> Formula:
        four, five = arm.links[3:]
        d, e, f = arm.numbers[3:]
        miss = max(abs(four.a), abs(five.a), abs(five.d))
        meet = f"axes {d}, {e} and {f}"
        require(miss == 0.0, f"{meet} miss one point by {1e3 * miss:.3g} mm")
        require(not (four.parallel or five.parallel), f"two of {meet} are parallel")
        place = kind(arm, _centre(arm))
        return lambda target, preferred: _solve(arm, place, target, preferred)

    return fit


def _solve(
    arm: Arm, place: Place, target: Pose, preferred: Preferred
) -> list[FormulaAnswer]:
    """Return all answers: Rz(t_4) Rx Rz(t_5) Rx Rz(t_6) is what rotation is left."""
    one, two, three, four, five = arm.links
    columns = transpose(target.rotation)
    answers: list[FormulaAnswer] = []
    for first, second, third, free in place(target.position, preferred):
        x, z = (
            three.back(
                third.back.apply(
                    two.back(second.back.apply(one.back(first.back.apply(column))))
                )
            )
            for column in (columns[0], columns[2])
        )
        for *wrist, spun in wrist_turns(x, z, four, five, preferred.turns[3]):
            answers.append(FormulaAnswer([first, second, third, *wrist], free | spun))
    return answers


KINDS: tuple[tuple[Kind, str, tuple[BranchChoice, ...]], ...] = (
    (
        elbow,
        "axes 2 and 3 parallel",
        (
            BranchChoice("shoulder", "right", "left", "(z1 x z2) . (W - A1)"),
            BranchChoice("elbow", "up", "down", "z2 . ((A3 - A2) x (W - A3))"),
        ),
    ),
    (
        meeting_12,
        "axes 1 and 2 meeting",
        (
            BranchChoice("shoulder", "right", "left", "(z1 x z2) . (W - A1)"),
            BranchChoice("elbow", "up", "down", "z3 . ((A3 - A1) x (W - A3))"),
        ),
    ),
    (
        meeting_23,
        "axes 2 and 3 meeting",
        (
            BranchChoice("shoulder", "right", "left", "z1 . ((W - A1) x (A2 - A1))"),
            BranchChoice("elbow", "up", "down", "(z2 x z3) . (W - A2)"),
        ),
    ),
    (
        parallel_12,
        "axes 1 and 2 parallel",
        (
            BranchChoice("shoulder", "right", "left", "(z1 x z3) . (W - A2)"),
            BranchChoice("elbow", "up", "down", "z1 . ((A2 - A1) x (W - A2))"),
        ),
    ),
)
"""The kinds, what to call them, and their choices."""

SPHERICAL_WRIST = tuple(
    Family(f"spherical wrist, {name}", _with_wrist(kind), (*choices, WRIST))
    for kind, name, choices in KINDS
)
