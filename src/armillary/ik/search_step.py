"""One damped Gauss-Newton step towards a target, as a program.

With the errors e(q) of all rows, their Jacobian J and H = J J' + (c e'e + c0) 1, the
step is q' = q + J' H^-1 (e - J g) + g, with g = gain (q_near - q) where the answer is
to stay near a given vector, cut to a greatest change and to the limits (Levenberg
1944; the choice of damping is Sugihara's, IEEE T-RO 27, 2011). A joint that stands at
a limit and is drawn beyond it counts as fixed for that step, so that the others take
its share (an active set, as in Bertsekas, SIAM J. Control 20, 1982). Near a vector the
step itself decides: joints that it leads beyond limits go there, and the others are
solved for again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.ik.problem import Goal, Problem
from armillary.ik.query import Tolerance
from armillary.ik.targets import POSE_SIZE, pose_at
from armillary.kinematics.closing.stages import block_programs
from armillary.kinematics.inputs import Inputs, program_of
from armillary.kinematics.jacobian import Twist, open_jacobian
from armillary.model.link_poses import poses_of
from armillary.model.tree import Tree
from armillary.spatial.ldl import LDLFactor, gram, inner, shifted
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import (
    Number,
    Rows,
    Vector3,
    add,
    apply,
    cross,
    dot,
    scale,
    subtract,
    three,
    transpose,
)
from armillary.trace import Program, trace
from armillary.trace.functions import maximum, minimum, select, sqrt

Array = npt.NDArray[np.float64]

DAMPING, LEAST_DAMPING = 0.01, 1e-9
LEAST_PIVOT = 1e-14
LARGEST_CHANGE = 1.0
GAIN = 0.5
LIMIT_SLACK = 1e-9  # of passive joints, which rounding may lead beyond limits
PULLED = 1e-7  # errors below which the pull to a given vector fades


class Residual(NamedTuple):
    """The rows of one goal: errors, their Jacobian, and two squared sizes."""

    errors: list[Number]
    jacobian: list[list[Number]]
    position: Number
    rotation: Number


def step_program(problem: Problem, *, near: bool = False) -> Program:
    """Return the program q, targets, limits -> the next q, and the errors of this one.

    Of the limits only which of them are infinite is compiled; the numbers are an input,
    so that a search with other limits is the same program.

    Args:
        problem: What is to be reached, all at once, by n joints; the passive joints of
            loops that they move, m of them, are found with them.
        near: Whether the answer is to stay near a given vector.

    Returns:
        Inputs q (n + m,), passive joints last, and `target`: for each goal the sixteen
        numbers of its pose, row by row, then with `near` that vector (n,); `constants`,
        the least coordinates, the greatest, for each block of loops the sign of the
        determinant, and what else the selection has as inputs. Outputs q (n + m,) and
        for each goal its squared distance [m^2] and squared sine of its angle, 4 more
        beyond a right angle, then with loops how far they are open.
    """
    goals, selection = problem.goals, problem.selection
    unknowns = (*selection.inputs, *selection.passive)
    limits = [
        [*own.tolist(), *passive.tolist()]
        for own, passive in zip(problem.limits, problem.passive_limits, strict=True)
    ]
    n, count = len(selection.inputs), len(unknowns)
    blocks = problem.tree.cell.loop_system.needed(selection.passive)
    size = POSE_SIZE * len(goals) + (n if near else 0)

    def equations(
        q: Sequence[Number], target: Sequence[Number], constants: Sequence[Number]
    ) -> Any:
        ends, signs = constants[: 2 * count], constants[2 * count :][: len(blocks)]
        others = _shaped(selection, constants[2 * count + len(blocks) :])
        now, whole = selection.applied(problem.tree, q[:n], others, q[n:])
        bounds = [
            (
                ends[k] if low > -math.inf else low,
                ends[count + k] if high < math.inf else high,
            )
            for k, (low, high) in enumerate(zip(*limits, strict=True))
        ]
        residuals = [
            _residual(now, whole, unknowns, goal, pose_at(target, k)[0])
            for k, goal in enumerate(goals)
        ]
        squares = [x for r in residuals for x in (r.position, r.rotation)]
        if blocks:
            residuals.append(_of_loops(now, whole, unknowns, blocks, signs))
            squares.append(residuals[-1].position)
        errors = [e for r in residuals for e in r.errors]
        rows = [row for r in residuals for row in r.jacobian]
        if near:
            there = target[POSE_SIZE * len(goals) :]
            way = [b - a for a, b in zip(q[:n], there, strict=True)]
            way += [0.0] * (count - n)
            # at most GAIN in all: where answers lie on curves, more overshoots for ever
            gain = GAIN / sqrt(1.0 + inner(way, way))
            # damped, the pull moves the frames a little: it ends before the errors do
            square = inner(errors, errors)
            gain = gain * square / (square + PULLED**2)
            pull = [gain * x for x in way]
            change = _change_within(q, rows, errors, pull, bounds)
        else:
            free = _free(q, rows, errors, bounds)
            rows = [_products(row, free) for row in rows]
            change = _change(rows, errors, [0.0] * count)
        after = [
            _limited(
                q[k] + _limited(change[k], -LARGEST_CHANGE, LARGEST_CHANGE), *bound
            )
            for k, bound in enumerate(bounds)
        ]
        return after, squares

    return trace(
        equations,
        name="ik_step",
        outputs=("q", "errors"),
        q=(count,),
        target=(size,),
        constants=(
            2 * count + len(blocks) + sum(map(math.prod, selection.shapes.values())),
        ),
    )


def check_program(problem: Problem) -> Program:
    """Return the program that verifies q with loops closed.

    Returns:
        Inputs those of the selection, q (n,), `target` as of `step_program`, `allowed`,
        the largest errors of goals, and `ends` (2, m), the limits of passive joints.
        One output `checked`: for each goal the two numbers of `step_program`, then 1
        where all is kept, else 0.
    """
    goals, selection = problem.goals, problem.selection

    def equations(
        tree: Tree,
        q: Sequence[Number],
        target: Sequence[Number],
        allowed: Sequence[Number],
        ends: Sequence[Sequence[Number]],
    ) -> Any:
        residuals = [
            _residual(tree, q, (), goal, pose_at(target, k)[0])
            for k, goal in enumerate(goals)
        ]
        squares = [x for r in residuals for x in (r.position, r.rotation)]
        kept: Number = 1.0
        for square, largest in zip(squares, allowed, strict=True):
            kept = select(square <= largest, kept, 0.0)
        for k, low, high in zip(selection.passive, *ends, strict=True):
            kept = select(q[k] >= low - LIMIT_SLACK, kept, 0.0)
            kept = select(q[k] <= high + LIMIT_SLACK, kept, 0.0)
        return [*squares, kept]

    return program_of(
        equations,
        problem.tree,
        selection,
        name="ik_check",
        output="checked",
        target=(POSE_SIZE * len(goals),),
        allowed=(2 * len(goals),),
        ends=(2, len(selection.passive)),
    )


def largest_errors(tolerance: Tolerance, goals: int) -> Array:
    """Return the largest errors of so many goals that a tolerance allows."""
    distance, angle = tolerance
    return np.array([distance**2, math.sin(min(angle, 1.5)) ** 2] * goals)


def residual_of_errors(errors: Array) -> Array:
    """Return distance [m] and angle [rad] of the worst goal, shape (count, 2)."""
    distance: Array = np.sqrt(errors[:, 0::2].max(axis=1))
    square: Array = errors[:, 1::2].max(axis=1)
    beyond = square >= 4.0
    below: Array = np.arcsin(np.sqrt(np.clip(square - 4.0 * beyond, 0.0, 1.0)))
    angle: Array = np.where(beyond, math.pi - below, below)
    return np.stack([distance, angle], axis=1)


def _of_loops(
    tree: Tree,
    q: Sequence[Number],
    unknowns: Sequence[int],
    blocks: Sequence[int],
    signs: Sequence[Number],
) -> Residual:
    """Return the rows of loops, lengths as parts of their sizes.

    Their size counts 4 more for each block that is not on the branch, as far as the
    sign of its determinant tells.
    """
    system = tree.cell.loop_system
    errors: list[Number] = []
    jacobian: list[list[Number]] = []
    wrong: Number = 0.0
    for number, sign in zip(blocks, signs, strict=True):
        programs = block_programs(tree.cell, number)
        block = programs.block
        values, rates = programs.rows(
            [q[k] for k in block.inputs], [q[k] for k in block.unknowns]
        )
        for (loop, row), value, by_joint in zip(block.rows, values, rates, strict=True):
            scale = system.scale(loop, row)
            errors.append(0.0 - scale * value)
            jacobian.append([scale * by_joint.get(k, 0.0) for k in unknowns])
        turned = sign * programs.factored(rates).orientation
        wrong = wrong + select(turned < 0.0, 4.0, 0.0)
    return Residual(errors, jacobian, inner(errors, errors) + wrong, 0.0)


def _shaped(selection: Inputs, numbers: Sequence[Number]) -> list[Any]:
    """Return the inputs of a selection besides q from their numbers in one row."""
    found: list[Any] = []
    for shape in selection.shapes.values():
        size = math.prod(shape)
        found.append(np.reshape(np.array(numbers[:size], dtype=object), shape))
        numbers = numbers[size:]
    return found


def _free(
    q: Sequence[Number],
    J: list[list[Number]],
    e: list[Number],
    bounds: Sequence[tuple[Number, Number]],
) -> list[Number]:
    """Return 0 for each joint at a limit that is drawn beyond it, 1 for the others."""
    free: list[Number] = []
    for k, (low, high) in enumerate(bounds):
        pull = inner([row[k] for row in J], e)
        kept: Number = 1.0
        if _is_finite(high):
            kept = select(q[k] >= high, select(pull > 0.0, 0.0, 1.0), kept)
        if _is_finite(low):
            kept = select(q[k] <= low, select(pull < 0.0, 0.0, 1.0), kept)
        free.append(kept)
    return free


def _change_within(
    q: Sequence[Number],
    J: list[list[Number]],
    e: list[Number],
    g: list[Number],
    limits: Sequence[tuple[Number, Number]],
) -> list[Number]:
    """Return the change, shared anew where it would lead beyond limits.

    Joints that it would lead there go to their limits, and the others do the rest.
    """
    free: list[Number] = []
    moved: list[Number] = []
    for x, step, (low, high) in zip(q, _change(J, e, g), limits, strict=True):
        after = x + _limited(step, -LARGEST_CHANGE, LARGEST_CHANGE)
        ends = _limited(after, low, high)
        inside = after == ends
        free.append(select(inside, 1.0, 0.0))
        moved.append(select(inside, 0.0, ends - x))
    rest = [x - inner(row, moved) for x, row in zip(e, J, strict=True)]
    rows = [_products(row, free) for row in J]
    change = _change(rows, rest, _products(g, free))
    return [a + b for a, b in zip(change, moved, strict=True)]


def _products(a: Sequence[Number], b: Sequence[Number]) -> list[Number]:
    return [x * y for x, y in zip(a, b, strict=True)]


def _limited(x: Number, low: Number, high: Number) -> Number:
    x = maximum(x, low) if _is_finite(low) else x
    return minimum(x, high) if _is_finite(high) else x


def _is_finite(limit: Number) -> bool:
    """Return whether a limit is finite, as all those that are inputs are."""
    return not (isinstance(limit, float) and math.isinf(limit))


def _residual(
    tree: Tree,
    q: Sequence[Number],
    inputs: Sequence[int],
    goal: Goal,
    target: Pose,
) -> Residual:
    """Return the rows of one goal, written in the axes that its choices are about."""
    (X,) = poses_of(tree, q, [goal.frame], goal.relative_to)
    twist = Twist(goal.frame, goal.relative_to, goal.frame, goal.relative_to)
    columns = open_jacobian(tree, q, twist)
    chosen = [columns[i] for i in inputs]
    linear = subtract(target.position, X.position)
    angular, aligned = _rotation_error(X.rotation, target.rotation, goal)
    turn: Rows = transpose(target.rotation) if goal.in_target else IDENTITY.rotation
    parts = (
        (goal.position, linear, [three(column[:3]) for column in chosen]),
        (goal.rotation, angular, [three(column[3:]) for column in chosen]),
    )
    errors: list[Number] = []
    rows: list[list[Number]] = []
    squares: list[Number] = []
    for counts, error, halves in parts:
        if not any(counts):
            squares.append(0.0)
            continue
        whole_turn = all(counts)  # then the axes do not matter
        turned = error if whole_turn else apply(turn, error)
        ways = [half if whole_turn else apply(turn, half) for half in halves]
        kept = [k for k in range(3) if counts[k]]
        errors += [turned[k] for k in kept]
        rows += [[way[k] for way in ways] for k in kept]
        squares.append(sum((turned[k] * turned[k] for k in kept), 0.0))
    guard = select(aligned > 0.0, 0.0, 4.0) if goal.has_rotation else 0.0
    return Residual(errors, rows, squares[0], squares[1] + guard)


def _rotation_error(R: Rows, R_T: Rows, goal: Goal) -> tuple[Vector3, Number]:
    """Return a rotation vector towards the target, and a number above 0 when near.

    With all rotations it is 1/2 sum_k r_k x t_k, of length sin(angle), and the second
    is the trace of R' R_T less 1. With one axis free it is a x t of that axis, so that
    the rotation about it does not matter however far the frames are turned.
    """
    ours, theirs = transpose(R), transpose(R_T)
    free = [k for k in range(3) if not goal.rotation[k]]
    if goal.in_target and len(free) == 1:
        k = free[0]
        return cross(ours[k], theirs[k]), dot(ours[k], theirs[k])
    total: Vector3 = (0.0, 0.0, 0.0)
    trace_: Number = -1.0
    for a, b in zip(ours, theirs, strict=True):
        total = add(total, cross(a, b))
        trace_ = trace_ + dot(a, b)
    if len(free) == 2:  # no single measure of nearness is left
        return scale(0.5, total), 1.0
    return scale(0.5, total), trace_


def _change(J: list[list[Number]], e: list[Number], g: list[Number]) -> list[Number]:
    """Return J' H^-1 (e - J g) + g, by the smaller of two equal forms."""
    damping = LEAST_DAMPING + DAMPING * sum((x * x for x in e), 0.0)
    wanted = [x - inner(row, g) for x, row in zip(e, J, strict=True)]
    n = len(g)
    columns = [[row[k] for row in J] for k in range(n)]
    if len(e) <= n:
        x = LDLFactor.of(shifted(gram(J), damping), LEAST_PIVOT).solve(wanted)
        step = [inner(column, x) for column in columns]
    else:
        right = [inner(column, wanted) for column in columns]
        step = LDLFactor.of(shifted(gram(columns), damping), LEAST_PIVOT).solve(right)
    return [a + b for a, b in zip(step, g, strict=True)]
