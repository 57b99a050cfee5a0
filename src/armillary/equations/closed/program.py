"""Closed forms as programs: a target to every branch, or to the best of them."""

from __future__ import annotations

import math
from typing import Any

from armillary.equations.closed.branch import Branch, Question, branches_of, is_rigid
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Number
from armillary.trace import Program, trace
from armillary.trace.functions import absolute, select

SOLVED, NOT_FOUND, INVALID, OUT_OF_REACH, LIMITS, SINGULAR = map(float, range(6))
"""The reasons, as `Reason` of the layer above numbers them."""

# What a branch is worth: within reach and limits, within reach, or how near.
FORBIDDEN, MISSED = 1e9, 1e18


def all_program(question: Question, *, near: bool = False) -> Program:
    """Return the program of every branch, b of them.

    Returns:
        Inputs `target` (4, 4), `tolerance` (2,), the squares of a distance [m^2] and of
        twice the sine of half an angle, and `near` (n,), to which turns are added; in
        place of this to zero by default; last `arm_angle` () of an arm that has one.
        Outputs `q` (b, n), NaN where there is none; `residual` (b, 2), measured as the
        tolerance; `reason` (b,).
    """

    def equations(matrix: Any, tolerance: Any, *rest: Any) -> Any:
        target = Pose.from_matrix(matrix)
        there = rest[0] if near else None
        arm_angle = rest[-1] if question.has_arm_angle else 0.0
        rigid = is_rigid(target) & (absolute(arm_angle) < math.inf)
        branches = branches_of(question, target, tolerance, there, arm_angle)
        return (
            [[select(b.met & rigid, x, math.nan) for x in b.q] for b in branches],
            [[b.distance, b.chord] for b in branches],
            [_reason(b, rigid) for b in branches],
        )

    return _trace(equations, question, ("q", "residual", "reason"), near)


def best_program(question: Question) -> Program:
    """Return the program of the branch that is nearest to a vector.

    Returns:
        Inputs as for all branches. One output `answer` (n + 4,), for that makes single
        calls quick: q of the nearest branch within the limits, else within reach, else
        that which misses least, NaN where the target is no pose; what remains, two
        numbers measured as the tolerance; the reason; the number of the branch.
    """

    def equations(matrix: Any, tolerance: Any, near: Any, arm_angle: Any = 0.0) -> Any:
        target = Pose.from_matrix(matrix)
        rigid = is_rigid(target) & (absolute(arm_angle) < math.inf)
        branches = branches_of(question, target, tolerance, near, arm_angle)
        best: list[Number] = []
        doubt: Any = False
        for b in branches:
            doubt = doubt | b.in_doubt
        for k, b in enumerate(branches):
            worth = _worth(b, near)
            reason = _reason(b._replace(in_doubt=doubt), rigid)
            row = [worth, *b.q, b.distance, b.chord, reason, float(k)]
            if best:
                better = worth < best[0]
                row = [select(better, x, y) for x, y in zip(row, best, strict=True)]
            best = row
        n = len(question.selection.inputs)
        q = [select(rigid, x, math.nan) for x in best[1 : 1 + n]]
        return [*q, *best[1 + n :]]

    return _trace(equations, question, ("answer",), True)


def _trace(
    equations: Any, question: Question, outputs: tuple[str, ...], near: bool
) -> Program:
    shapes: dict[str, tuple[int, ...]] = {"target": (4, 4), "tolerance": (2,)}
    if near:
        shapes["near"] = (len(question.selection.inputs),)
    if question.has_arm_angle:
        shapes["arm_angle"] = ()
    return trace(equations, name="ik_closed", outputs=outputs, **shapes)


def _worth(b: Branch, near: Any) -> Number:
    """Return a number that is the less the better: of squares of steps from `near`."""
    steps = sum(((x - y) * (x - y) for x, y in zip(b.q, near, strict=True)), 0.0)
    least = MISSED * (1.0 + b.distance + b.chord)
    miss = select(b.within, least, 2.0 * least)  # what is missed is told within limits
    return select(b.met, select(b.within, steps, FORBIDDEN + steps), miss)


def _reason(b: Branch, rigid: Any) -> Number:
    found = select(b.within, select(b.singular, SINGULAR, SOLVED), LIMITS)
    missed = select(b.in_doubt, NOT_FOUND, OUT_OF_REACH)
    return select(rigid, select(b.met, found, missed), INVALID)
