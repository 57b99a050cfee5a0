"""The turns of a wrist: two that lead a direction through two links, or all three."""

from __future__ import annotations

from typing import Any, NamedTuple

from armillary.ik.closed_forms.dh_from_axes import DHLink
from armillary.ik.closed_forms.subproblems import (
    TINY,
    ZERO_TURN,
    Turn,
    between,
    either,
    facing,
)
from armillary.spatial.vector import Number, Vector3
from armillary.trace.functions import absolute, maximum, select, sqrt


class WristTurns(NamedTuple):
    """Rz(turn) Rx(first) Rz(bend) Rx(second) Rz(last); if `free`, any turn will do."""

    turn: Turn
    bend: Turn
    last: Turn
    free: Any


class Lean(NamedTuple):
    """Rz(turn) Rx(first) Rz(bend) Rx(second) z = m; any turn will do where `free`."""

    turn: Turn
    bend: Turn
    free: Any


def is_right_angled(first: DHLink, second: DHLink) -> bool:
    """Return whether both links turn by a right angle.

    Then half a turn more of the first and the last joint and the opposite bend between
    them change nothing: the wrist's other answer.
    """
    return first.cos == 0.0 and second.cos == 0.0


def wrist_turns(
    x: Vector3, z: Vector3, first: DHLink, second: DHLink, preferred: Turn = ZERO_TURN
) -> list[WristTurns]:
    """Return both triples of turns that lead to a rotation with columns x and z.

    The first has sin(bend) above 0. A turn that is free is `preferred`.
    """
    both: list[WristTurns] = []
    for turn, bend, free in lean(z, first, second, preferred):
        if both and is_right_angled(first, second):
            last = both[0].last.opposite
        else:
            c, s, _ = second.back(bend.back.apply(first.back(turn.back.apply(x))))
            last = Turn(c, s)
        both.append(WristTurns(turn, bend, last, free))
    return both


def beyond_reach(m: Vector3, first: DHLink, second: DHLink) -> Number:
    """Return by how much no bend leads z to a direction m, as a cosine; 0 if one does.

    No smaller turn of m makes up for it.
    """
    if is_right_angled(first, second):
        return 0.0
    excess = absolute(first.cos * second.cos - m[2]) - abs(first.sin * second.sin)
    return maximum(excess, 0.0)


def lean(
    m: Vector3, first: DHLink, second: DHLink, preferred: Turn = ZERO_TURN
) -> tuple[Lean, Lean]:
    """Return both pairs of turns that lead z to the unit vector m through two links.

    z' of both sides: sin sin' cos(bend) = cos cos' - m_z, and the plane part of
    Rx(first) Rz(bend) Rx(second) z must be turned to that of m. The first answer has
    sin(bend) above 0. With both links at right angles the sine of the bend is
    |m_xy|, which keeps its digits where the bend is nearly zero. A turn that is
    free is `preferred`.
    """
    if is_right_angled(first, second):
        return _right_angled(m, preferred)
    answers: list[Lean] = []
    axis, tip = (0.0, first.sin, first.cos), (0.0, 0.0 - second.sin, second.cos)
    two, one, _ = facing(axis, tip, m[2], 1.0)
    for bend in (one, two):
        turn, free = between(first.out(bend.apply(tip)), m, 1.0, preferred)
        answers.append(Lean(turn, bend, free))
    return answers[0], answers[1]


def _right_angled(m: Vector3, preferred: Turn) -> tuple[Lean, Lean]:
    square = m[0] * m[0] + m[1] * m[1]
    free = square <= TINY
    sin = sqrt(square)
    shrink = 1.0 / select(free, 1.0, sin)
    turn = either(free, preferred, Turn(m[0] * shrink, m[1] * shrink))
    bend = Turn(0.0 - m[2], sin)
    return Lean(turn, bend, free), Lean(turn.opposite, bend.back, free)
