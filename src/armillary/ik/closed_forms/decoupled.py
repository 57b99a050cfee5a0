"""Arms whose rotation tells every angle, and whose position then tells every slide.

Gantries with or without a wrist, cylindrical and polar arms, wrists alone: at most
three joints turn, neighbours of which are not parallel, and at most three slide, in
whatever order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from armillary.ik.closed_forms.family import (
    BranchChoice,
    Family,
    Formula,
    FormulaAnswer,
    Preferred,
    require,
)
from armillary.ik.closed_forms.prismatic_arm import PrismaticArm
from armillary.ik.closed_forms.subproblems import Turn, between, direction
from armillary.ik.closed_forms.wrist import beyond_reach, wrist_turns
from armillary.spatial.pose import Pose
from armillary.spatial.vector import (
    Number,
    Rows,
    Vector3,
    cross,
    dot,
    subtract,
    transpose,
)
from armillary.trace.functions import absolute, select

MOST = 3
FLAT = 1e-8  # a volume of unit vectors that counts as zero
LOOSE = 0.01  # a square of a sine, below which angles magnify errors tenfold
SAMPLES = 8


class Turns(NamedTuple):
    """Angles that lead to a rotation.

    Attributes:
        turns: The angle of each joint.
        free: Whether others will do.
        loose: Whether they magnify what is off in the rotation.
        miss: As of `FormulaAnswer`.
    """

    turns: list[Turn]
    free: Any
    loose: Any
    miss: Number | None = None


def fit(arm: PrismaticArm) -> Formula:
    """Return the formula of an arm.

    Raises:
        NotApplicable: Revolute neighbours are parallel, or prismatic axes dependent.
    """
    for k, link in enumerate(arm.links):
        one, two = arm.numbers[k : k + 2]
        require(not link.parallel, f"axes {one} and {two} are parallel")
    require_independent(arm)

    def solve(target: Pose, preferred: Preferred) -> list[FormulaAnswer]:
        return [
            _placed(arm, target.position, turns)
            for turns in _turns(arm, target.rotation, preferred)
        ]

    return solve


def _turns(arm: PrismaticArm, rotation: Rows, preferred: Preferred) -> list[Turns]:
    """Return the angles with Rz(t_1) Rx Rz(t_2) ... = rotation."""
    x, _, z = transpose(rotation)
    if len(arm.drives) == MOST:
        both: list[Turns] = []
        one, two = arm.links
        for *turns, free in wrist_turns(x, z, one, two, preferred.turns[0]):
            sine = one.sin * two.sin * turns[1].sin
            miss = beyond_reach(z, one, two)
            both.append(Turns(turns, free, sine * sine <= LOOSE, miss * miss))
        return both
    # Of two joints z tells the first, of one the rest of x tells all.
    loose = False
    turns: list[Turn] = []
    if arm.links:
        (link,) = arm.links
        first, _ = between(link.out((0.0, 0.0, 1.0)), z, 1.0)
        turns.append(first)
        loose = link.sin**2 <= LOOSE
        x = link.back(first.back.apply(x))
    if arm.drives:
        turns.append(direction(x[0], x[1], 1.0)[0])
    return [Turns(turns, False, loose)]


def _placed(arm: PrismaticArm, position: Vector3, rotating: Turns) -> FormulaAnswer:
    """Return the answer of turns, with the lengths that lead to a position."""
    frames = arm.frames(rotating.turns)
    ways = arm.ways(frames)
    left = subtract(position, arm.rest(frames))
    shifts, flat = lengths(left, ways)
    turns, free, loose, miss = rotating
    return FormulaAnswer(turns, free | flat, loose, shifts, miss)


def lengths(left: Vector3, ways: list[Vector3]) -> tuple[list[Number], Any]:
    """Return how far along each way, and whether the ways lie in one plane."""
    if len(ways) < 2:
        return [dot(left, way) for way in ways], False
    # Cramer's rule; across two ways a third is added, along which nothing is taken.
    basis = ways if len(ways) == MOST else [*ways, cross(*ways)]
    volume = dot(basis[0], cross(basis[1], basis[2]))
    flat = absolute(volume) <= FLAT
    shrink = 1.0 / select(flat, 1.0, volume)
    pairs = ((basis[k - 2], basis[k - 1]) for k in range(len(ways)))
    return [shrink * dot(left, cross(*pair)) for pair in pairs], flat


def require_independent(arm: PrismaticArm) -> None:
    """Go on only where what slides spans as many directions as it is.

    Raises:
        NotApplicable: It does not.
    """
    slides = [str(slide.number) for slide in arm.slides]
    listed = " and ".join((", ".join(slides[:-1]), *slides[-1:]))
    require(_are_independent(arm), f"joints {listed} do not slide independently")


def _are_independent(arm: PrismaticArm) -> bool:
    """Return whether the ways span as many directions as they are, at most angles."""
    if not arm.slides:
        return True
    if len(arm.slides) > MOST:
        return False
    for angles in np.random.default_rng(0).uniform(-3, 3, (SAMPLES, len(arm.drives))):
        turns = [Turn(float(np.cos(angle)), float(np.sin(angle))) for angle in angles]
        ways = np.array(arm.ways(arm.frames(turns)), dtype=np.float64)
        if np.linalg.svd(ways, compute_uv=False)[-1] > 1e-6:
            return True
    return False


NAME = "turns by the rotation, slides by the position"
WRIST = BranchChoice(
    "wrist", "no flip", "flip", "z1 . (z2 x z3), of the axes that turn"
)

ORIENTING = Family(NAME, fit, ())

ORIENTING_THREE = Family(f"{NAME}, with three turns", fit, (WRIST,))
