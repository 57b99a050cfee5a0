"""Arms of at most three joints that place a point, whatever the rotation there.

Three that turn are what comes before a spherical wrist, with the point for its centre:
a leg, an arm that holds a ball. Two parallel axes make a triangle. Where one turns, a
direction n across what slides tells how far it turns, and slides alone are linear.
"""

from __future__ import annotations

from collections.abc import Callable

from armillary.ik.closed_forms.decoupled import lengths, require_independent
from armillary.ik.closed_forms.dh_from_axes import Arm
from armillary.ik.closed_forms.family import (
    BranchChoice,
    Family,
    Formula,
    FormulaAnswer,
    Preferred,
    require,
)
from armillary.ik.closed_forms.planar import require_flat
from armillary.ik.closed_forms.prismatic_arm import PrismaticArm
from armillary.ik.closed_forms.spherical_wrist import KINDS, Kind
from armillary.ik.closed_forms.subproblems import Turn, facing, triangle
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Vector3, cross, dot, subtract

UP: Vector3 = (0.0, 0.0, 1.0)


def three_turns(kind: Kind) -> Callable[[Arm], Formula]:
    """Return the recogniser of arms of a kind that end in the point."""

    def fit(arm: Arm) -> Formula:
        place = kind(arm, arm.tool.position)

        def solve(target: Pose, preferred: Preferred) -> list[FormulaAnswer]:
            placings = place(target.position, preferred)
            return [FormulaAnswer([*turns], free) for *turns, free in placings]

        return solve

    return fit


def two_turns(arm: PrismaticArm) -> Formula:
    """Return the formula where two parallel axes turn, and one slides along or none."""
    require_flat(arm, 2, 0)
    start, upper, fore = arm.spans
    axis = f"axis {arm.numbers[1]} goes through the point"
    require(fore[0] != 0.0 or fore[1] != 0.0, axis)

    def solve(target: Pose, preferred: Preferred) -> list[FormulaAnswer]:
        v = subtract(target.position, start)
        height = v[2] - upper[2] - fore[2]
        shifts = [height * slide.way[2] for slide in arm.slides]
        return [
            FormulaAnswer([first, second], free, shifts=shifts)
            for first, second, free in triangle(
                upper, fore, v, arm.size, preferred.turns[0]
            )
        ]

    return solve


def one_turn(arm: PrismaticArm) -> Formula:
    """Return the formula where one joint turns and one or two slide.

    With n across both slides (across the one and the axis), n . Rz(t) l_1 or, where
    what slides is turned, n . Rz(-t) p is the same wherever they stand.
    """
    require_independent(arm)
    start, reach = arm.spans
    n, turned = _across(arm)
    number = arm.numbers[0]
    needless = f"joint {number} and what slides reach the same places"
    require(n[0] != 0.0 or n[1] != 0.0, needless)
    through = f"axis {number} goes through the point"
    require(turned or reach[0] != 0.0 or reach[1] != 0.0, through)

    def solve(target: Pose, preferred: Preferred) -> list[FormulaAnswer]:
        p = subtract(target.position, start)
        if turned:
            back = preferred.turns[0].back
            *backs, free = facing(n, p, dot(n, reach), arm.size**2, back)
            turns = [back.back for back in backs]
        else:
            turn = preferred.turns[0]
            *turns, free = facing(n, reach, dot(n, p), arm.size**2, turn)
        answers: list[FormulaAnswer] = []
        for turn in turns:
            ways = arm.ways(arm.frames([turn]))
            shifts, flat = lengths(subtract(p, turn.apply(reach)), ways)
            answers.append(FormulaAnswer([turn], free | flat, shifts=shifts))
        return answers

    return solve


def no_turns(arm: PrismaticArm) -> Formula:
    """Return the formula where joints only slide."""
    require_independent(arm)
    none: list[Turn] = []

    def solve(target: Pose, _: Preferred) -> list[FormulaAnswer]:
        left = subtract(target.position, arm.spans[0])
        shifts, flat = lengths(left, arm.ways(arm.frames(none)))
        return [FormulaAnswer(none, flat, shifts=shifts)]

    return solve


def _across(arm: PrismaticArm) -> tuple[Vector3, bool]:
    """Return n across what slides, and whether the joint that turns turns it."""
    slides = [(slide.way, slide.after == 1) for slide in arm.slides]
    slanted = [(way, turned) for way, turned in slides if way[:2] != (0.0, 0.0)]
    require(len(slanted) > 0, "nothing slides across the axis that turns")
    (one, turned), (two, other) = (*slanted, (UP, slanted[0][1]))[:2]
    require(turned == other, "the axis that turns stands between two that slide askew")
    return cross(one, two), turned


POINT_TURNS = tuple(
    Family(f"three joints place a point, {name}", three_turns(kind), choices)
    for kind, name, choices in KINDS
)
"""Arms of three joints that turn."""

POINT: tuple[Family[PrismaticArm], ...] = (
    Family("slides place a point", no_turns, ()),
    Family(
        "a joint that turns and slides place a point",
        one_turn,
        (
            BranchChoice(
                "turn", "left", "right", "z1 . (n x (P - A1)), n across the slides"
            ),
        ),
    ),
    Family(
        "two parallel axes place a point",
        two_turns,
        (BranchChoice("elbow", "left", "right", "z1 . ((A2 - A1) x (P - A2))"),),
    ),
)
"""Arms of fewer that turn, by how many."""
