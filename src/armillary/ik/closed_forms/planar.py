"""Arms whose joints all turn about parallel axes, as SCARA and planar arms do.

What turns adds up to the one angle s of the rotation. Along the axes a joint that
slides along them, if there is one, makes up for the height; what remains is plane
geometry: with s known, how joint axes A1 and A2 lie is decided by one equation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from armillary.ik.closed_forms.family import (
    BranchChoice,
    Family,
    Formula,
    FormulaAnswer,
    Preferred,
    require,
)
from armillary.ik.closed_forms.prismatic_arm import PrismaticArm
from armillary.ik.closed_forms.subproblems import (
    Turn,
    between,
    direction,
    facing,
    flat,
    plane,
    triangle,
)
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Number, Vector3, dot, subtract


class Placing(NamedTuple):
    """An answer in the plane: turns, lengths of slides across, if others will do."""

    turns: list[Turn]
    shifts: list[Number]
    free: Any


Place = Callable[[Vector3, Turn, Preferred], list[Placing]]
"""From the position and s to the placings in the plane."""


def three_turns(arm: PrismaticArm) -> Place:
    """Return the formula where three joints turn: a triangle tells the second."""
    require_flat(arm, 3, 0)
    _, upper, fore, last = arm.spans

    def place(p: Vector3, total: Turn, preferred: Preferred) -> list[Placing]:
        v = subtract(p, total.apply(last))
        placings: list[Placing] = []
        for first, second, free in triangle(
            upper, fore, v, arm.size, preferred.turns[0]
        ):
            third = total.plus(first.plus(second).back)
            placings.append(Placing([first, second, third], [], free))
        return placings

    return place


def two_turns_and_slide(arm: PrismaticArm) -> Place:
    """Return the formula where two turn and one slides across them: a right angle."""
    require_flat(arm, 2, 1)
    _, upper, last = arm.spans
    (slide,) = (slide for slide in arm.slides if slide.way[2] == 0.0)
    way, square = slide.way, arm.size**2
    across = (way[1], 0.0 - way[0], 0.0)

    def place(p: Vector3, total: Turn, preferred: Preferred) -> list[Placing]:
        v = subtract(p, total.apply(last))
        placings: list[Placing] = []
        if slide.after == 1:
            extent, back = dot(across, upper), preferred.turns[0].back
            *backs, free = facing(across, flat(v), extent, square, back)
            for back in backs:
                shift = dot(way, subtract(back.apply(v), upper))
                second = total.plus(back)
                placings.append(Placing([back.back, second], [shift], free))
            return placings
        # the slide stands, or turns with all that turns: not with A1 alone
        turn = Turn(1.0, 0.0) if slide.after == 0 else total
        seen = turn.back.apply(v)
        for first in facing(across, flat(upper), dot(across, seen), square)[:2]:
            shift = dot(way, subtract(seen, first.apply(upper)))
            whole = first.plus(turn)
            second = total.plus(whole.back)
            placings.append(Placing([whole, second], [shift], False))
        return placings

    return place


def two_turns(arm: PrismaticArm) -> Place:
    """Return the formula where two joints turn, and nothing slides across them."""
    require_flat(arm, 2, 0)
    _, upper, last = arm.spans

    def place(p: Vector3, total: Turn, preferred: Preferred) -> list[Placing]:
        v = subtract(p, total.apply(last))
        first, free = between(upper, v, arm.size**4, preferred.turns[0])
        return [Placing([first, total.plus(first.back)], [], free)]

    return place


def require_flat(arm: PrismaticArm, turns: int, across: int) -> None:
    """Go on only where so many joints turn about parallel axes and slide across them.

    Raises:
        NotApplicable: It is not so, or more than one slides along them.
    """
    for k, link in enumerate(arm.links):
        one, two = arm.numbers[k : k + 2]
        off = math.degrees(math.atan2(link.sin, link.cos))
        require(link.parallel, f"axes {one} and {two} are {off:.3g} degrees apart")
    slides = 0
    for slide in arm.slides:
        way = abs(slide.way[2])
        off = math.degrees(math.asin(min(way, math.hypot(*slide.way[:2]), 1.0)))
        askew = f"joint {slide.number} slides askew of the axes, by {off:.3g} degrees"
        require(off == 0.0, askew)
        slides += way == 0.0
    lifts = len(arm.slides) - slides
    require(lifts <= 1, f"{lifts} joints slide along the same line")
    for k, span in enumerate(arm.spans[1:-1]):
        same = f"axes {arm.numbers[k]} and {arm.numbers[k + 1]} are the same line"
        apart = any(s.after == k + 1 and s.way[2] == 0.0 for s in arm.slides)
        require(plane(span, span) > 0.0 or apart, same)
    is_so = len(arm.drives) == turns and slides == across
    require(is_so, f"{len(arm.drives)} joints turn and {slides} slide across them")


def _with_height(
    kind: Callable[[PrismaticArm], Place],
) -> Callable[[PrismaticArm], Formula]:
    """Return the recogniser of arms of a kind, with or without a slide along axes."""

    def fit(arm: PrismaticArm) -> Formula:
        place = kind(arm)
        base = arm.spans[0]
        rise = sum(span[2] for span in arm.spans)

        def solve(target: Pose, preferred: Preferred) -> list[FormulaAnswer]:
            x = target.rotation
            total, _ = direction(x[0][0], x[1][0], 1.0)
            height = target.position[2] - rise
            answers: list[FormulaAnswer] = []
            p = subtract(target.position, base)
            for turns, shifts, free in place(p, total, preferred):
                lengths = [
                    height * slide.way[2] if slide.way[2] else shifts[0]
                    for slide in arm.slides
                ]
                answers.append(FormulaAnswer(turns, free, shifts=lengths))
            return answers

        return solve

    return fit


PLANAR_THREE = Family(
    "three parallel axes, as SCARA and planar arms have",
    _with_height(three_turns),
    (BranchChoice("elbow", "left", "right", "z1 . ((A2 - A1) x (A3 - A2))"),),
)

PLANAR_SLIDING = Family(
    "two parallel axes and a slide across them",
    _with_height(two_turns_and_slide),
    (
        BranchChoice(
            "slide", "ahead", "behind", "u . (A2 - A1), u the way of the slide"
        ),
    ),
)

PLANAR_TWO = Family("two parallel axes", _with_height(two_turns), ())
