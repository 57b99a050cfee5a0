"""Closed forms as programs: a target to every branch, or to the best of them.

The best branch is the one of least worth,

    |q - near|^2                              that reaches the target within limits
    FORBIDDEN + |q - near|^2                  that reaches it beyond them
    MISSED (1 + distance^2 + chord^2)         that misses it, twice that beyond limits

and a miss is OUT_OF_REACH only if no branch is in doubt.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from armillary.ik.closed_forms.branch import (
    Allowed,
    ArmProblem,
    CheckedBranch,
    branches_of,
    is_within,
    placed_target,
    rows_hold,
    square_from,
    within_limits,
)
from armillary.ik.closed_forms.family import FormulaAnswer
from armillary.ik.closed_forms.general_6r.geometry import SixAxes
from armillary.ik.closed_forms.subproblems import Turn
from armillary.ik.reason import Reason
from armillary.ik.targets import is_rigid
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Matrix, Number, Vector
from armillary.trace import Program, trace
from armillary.trace.functions import absolute, cos, minimum, select, sin

SOLVED, NOT_FOUND = float(Reason.SOLVED), float(Reason.NOT_FOUND)
INVALID, OUT_OF_REACH = float(Reason.INVALID_TARGET), float(Reason.OUT_OF_REACH)
LIMITS, SINGULAR = float(Reason.LIMITS), float(Reason.SINGULAR)

OUTSIDE = 0.5
"""What is added to the reason of an answer beyond a limit by less than the excess."""

UNWARRANTED = 0.25
"""What is added to the reason of an answer much farther from `near` than its target."""

LEAST_STEP = 0.01  # no shorter step from `near` is compared with the target's
STEEP, NEARBY = 100.0, 0.01
"""Such a step's square over that of the target's, and the most of the latter."""

# What a branch is worth: within reach and limits, within reach, or how near.
FORBIDDEN, MISSED = 1e9, 1e18


def all_program(problem: ArmProblem, *, near: bool = False) -> Program:
    """Return the program of every branch, b of them.

    Returns:
        Inputs those of `selection.shapes`, `target` (4, 4), `allowed` (4,), the numbers
        of `Allowed`, and `near` (n,), to which turns are added; in place of this to
        zero by default; last `arm_angle` () of an arm that has one. Outputs `q` (b, n),
        NaN where there is none; `residual` (b, 2), squares as the first two numbers of
        `allowed`; `reason` (b,), and OUTSIDE more where q must be put at a limit and
        verified there; `outside`, how many branches those are.
    """

    def equations(
        problem: ArmProblem, matrix: Matrix, allowed: Vector, *rest: Any
    ) -> Any:
        target = Pose.from_matrix(matrix)
        there = within_limits(problem, rest[0]) if near else None
        arm_angle = rest[-1] if problem.has_arm_angle else 0.0
        rigid = is_rigid(target, matrix[3]) & (absolute(arm_angle) < math.inf)
        branches = branches_of(problem, target, Allowed(*allowed), there, arm_angle)
        return (
            [[select(b.met & rigid, x, math.nan) for x in b.q] for b in branches],
            [[b.distance, b.chord] for b in branches],
            [_reason(b, rigid) for b in branches],
            sum((_outside(b) for b in branches), 0.0),
            sum((_singular(b) for b in branches), 0.0),
        )

    outputs = ("q", "residual", "reason", "outside", "singular")
    return _trace(equations, problem, outputs, near)


def best_program(problem: ArmProblem, *, compared: bool = False) -> Program:
    """Return the program of the branch that is nearest to a vector.

    Returns:
        Inputs as for all branches. One output `answer` (n + 3,), for that makes single
        calls quick: q of the nearest branch within the limits, else within reach, else
        that which misses least, NaN where the target is not a pose; what remains, two
        squares as the first two numbers of `allowed`; the reason, OUTSIDE as above, and
        if `compared` UNWARRANTED more where a search from `near` may find what is
        nearer.
    """
    equations = partial(best_row, compared=compared)
    return _trace(equations, problem, ("answer",), True)


def best_row(
    problem: ArmProblem,
    matrix: Matrix,
    allowed: Vector,
    near: Vector,
    arm_angle: Number = 0.0,
    *,
    compared: bool = False,
) -> list[Number]:
    """Return the numbers of `best_program`, of its inputs; see there."""
    target = Pose.from_matrix(matrix)
    given, near = near, within_limits(problem, near)
    rigid = is_rigid(target, matrix[3]) & (absolute(arm_angle) < math.inf)
    branches = branches_of(problem, target, Allowed(*allowed), near, arm_angle)
    best: list[Number] = []
    doubt: Any = False
    for b in branches:
        doubt = doubt | b.in_doubt
    for b in branches:
        worth = _worth(b, near)
        reason = _reason(b._replace(in_doubt=doubt, inside=True), rigid)
        row = [worth, *b.q, b.distance, b.chord, reason]
        if best:
            better = worth < best[0]
            row = [select(better, x, y) for x, y in zip(row, best, strict=True)]
        best = row
    steps, *q, distance, chord, reason = best
    if not problem.has_arm_angle:  # others of infinitely many may be within limits
        singular = sum((_singular(b) for b in branches), 0.0)
        if not isinstance(singular, float):
            unproven = (reason == LIMITS) & (singular > 0.0)
            reason = select(unproven, NOT_FOUND, reason)
    # Only the best branch is compared with limits to the last digit.
    is_met = (reason == SOLVED) | (reason == SINGULAR)
    inside: Any = True
    for x, low, high in zip(q, *problem.limits, strict=True):
        inside = inside & is_within(x, low, high, 0.0)
    if problem.rows:
        inside = inside & rows_hold(problem, q, 0.0)
    if inside is not True:
        reason = select(inside, reason, select(is_met, reason + OUTSIDE, reason))
    if compared:  # a far step for a near target: a search may find what is nearer
        least = minimum(steps / STEEP, NEARBY)
        short = square_from(problem, target, near) < least
        jumps = (steps > LEAST_STEP**2) & short
        reason = select(jumps, reason + UNWARRANTED, reason)
        for x in given:  # of NaN there is no nearest
            reason = select(absolute(x) <= math.inf, reason, math.nan)
    return [*(select(rigid, x, math.nan) for x in q), distance, chord, reason]


def inner_program(problem: ArmProblem) -> Program:
    """Return the program of a target as the last axis's frame in that of the first.

    Returns:
        Inputs those of `problem.shapes`, and `target` (4, 4). Output `inner` (4, 4),
        lengths in units of the arm's `scale`, NaN where the target is not a pose.
    """

    def of_inputs(*inputs: Any) -> Any:
        *values, matrix = inputs
        placed = problem.placed(values)
        axes = placed.closed.arm
        assert isinstance(axes, SixAxes)
        scale = 1.0 / axes.scale
        target = Pose.from_matrix(matrix)
        inner = placed.closed.inner(placed_target(placed, target))
        rigid = is_rigid(target, matrix[3])
        rows: list[list[Number]] = [
            [*row, scale * x]
            for row, x in zip(inner.rotation, inner.position, strict=True)
        ]
        return [
            *([select(rigid, x, math.nan) for x in row] for row in rows),
            [0.0, 0.0, 0.0, 1.0],
        ]

    shapes = {**problem.shapes, "target": (4, 4)}
    return trace(of_inputs, name="inner", outputs=("inner",), **shapes)


def checked_program(problem: ArmProblem) -> Program:
    """Return the program of one answer of which the angles of the axes are given.

    Returns:
        Inputs as for the best branch, then `angles` (6,) [rad], lengths of slides in
        the arm's `scale`. One output `answer` (n + 3,), as that: q near `near`, what
        remains, and the reason: NOT_FOUND where the target is missed, OUT_OF_REACH
        where that is by far, as arms with fewer joints do.
    """
    axes = problem.closed.arm
    assert isinstance(axes, SixAxes)
    all_move = axes.moves == len(axes.slides)

    def equations(
        matrix: Matrix,
        allowed: Vector,
        near: Vector,
        angles: Vector,
        placed: ArmProblem,
    ) -> list[Number]:
        turns = [Turn(cos(x), sin(x), x) for x in (angles[k] for k in axes.turning)]
        given_axes = placed.closed.arm
        assert isinstance(given_axes, SixAxes)
        shifts = [given_axes.scale * angles[k] for k in axes.sliding]

        def given(*_: Any) -> list[FormulaAnswer]:
            return [FormulaAnswer(turns, False, loose=all_move, shifts=shifts)]

        target, there = Pose.from_matrix(matrix), within_limits(problem, near)
        placed = placed._replace(closed=placed.closed._replace(formula=given))
        (b,) = branches_of(placed, target, Allowed(*allowed), there, 0.0)
        return [*b.q, b.distance, b.chord, _reason(b, is_rigid(target, matrix[3]))]

    n = len(problem.selection.inputs)
    shapes: dict[str, tuple[int, ...]] = {
        **problem.shapes,
        "target": (4, 4),
        "allowed": (len(Allowed._fields),),
        "near": (n,),
        "angles": (len(axes.slides),),
    }

    def of_inputs(*inputs: Any) -> list[Number]:
        *values, matrix, allowed, near, angles = inputs
        return equations(matrix, allowed, near, angles, problem.placed(values))

    return trace(of_inputs, name="ik_checked", outputs=("answer",), **shapes)


def arm_angle_program(problem: ArmProblem) -> Program:
    """Return the program q (n,) -> the arm angle [rad], of an arm that has one."""
    closed = problem.closed
    assert closed.family.arm_angle is not None
    formula = closed.family.arm_angle(closed.arm)

    def equations(q: Vector) -> Number:
        turns, _ = closed.parts(q)
        return formula(turns)

    n = len(problem.selection.inputs)
    return trace(equations, name="arm_angle", outputs=("arm_angle",), q=(n,))


def _trace(
    equations: Any, problem: ArmProblem, outputs: tuple[str, ...], near: bool
) -> Program:
    bound = problem.selection.shapes
    shapes: dict[str, tuple[int, ...]] = {
        **bound,
        "target": (4, 4),
        "allowed": (len(Allowed._fields),),
    }
    if near:
        shapes["near"] = (len(problem.selection.inputs),)
    if problem.has_arm_angle:
        shapes["arm_angle"] = ()

    def of_inputs(*inputs: Any) -> Any:
        k = len(bound)
        return equations(problem.placed(inputs[:k]), *inputs[k:])

    return trace(of_inputs, name="ik_closed", outputs=outputs, **shapes)


def _worth(b: CheckedBranch, near: Vector) -> Number:
    """Return a number that is the less the better: of squares of steps from `near`."""
    steps = sum(((x - y) * (x - y) for x, y in zip(b.q, near, strict=True)), 0.0)
    least = MISSED * (1.0 + b.distance + b.chord)
    miss = select(b.within, least, 2.0 * least)  # a miss is reported within limits
    return select(b.met, select(b.within, steps, FORBIDDEN + steps), miss)


def _outside(b: CheckedBranch) -> Number:
    if b.inside is True:
        return 0.0
    return select(b.met & b.within, select(b.inside, 0.0, 1.0), 0.0)


def _singular(b: CheckedBranch) -> Number:
    return (
        float(b.singular)
        if isinstance(b.singular, bool)
        else select(b.singular, 1.0, 0.0)
    )


def _reason(b: CheckedBranch, rigid: Any) -> Number:
    solved = select(b.singular, SINGULAR, SOLVED)
    if b.inside is not True:
        solved = select(b.inside, solved, solved + OUTSIDE)
    met = select(b.within, solved, LIMITS)
    missed = select(b.in_doubt, NOT_FOUND, OUT_OF_REACH)
    return select(rigid, select(b.met, met, missed), INVALID)
