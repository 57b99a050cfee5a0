"""One damped Gauss-Newton step towards targets, as a program.

With the errors e(q) of all rows, their Jacobian J = -de/dq, and a secondary goal g for
the change of q, which is zero unless the answer is to stay near a given vector, the
step is

    q' = q + g + J' H^-1 (e - J g),    H = J J' + (c e'e + c0) 1

so the change is what solves the damped rows with the least departure from g (Levenberg
1944; the choice of damping is Sugihara's, IEEE T-RO 27, 2011). With more rows than
unknowns the equal form (J'J + damping 1)^-1 J' is smaller. It is cut to a greatest
change, and to the limits of joints, which are inequalities:

- A search that is free to end anywhere takes a joint out of J that stands at a limit
  and is drawn beyond it, (J'e)_k, so that the others take its share (an active set, as
  in Bertsekas, SIAM J. Control 20, 1982).
- Near a vector the step itself decides: joints that it leads beyond limits go there,
  and the others are solved for again, with what is left of e.

Limits that couple joints are rows a'q <= b. A row that q is at, and is drawn beyond,
takes its direction out of J as a limit of a joint does; then q' is projected on the
rows that it breaks, by turns with the limits of joints. How far q itself breaks a row
is one more error, so that nothing beyond is an answer.

The secondary goal is the pull g = gain (q_near - q); its size and its end matter:

    gain = 1/2 / sqrt(1 + |q_near - q|^2) * e'e / (e'e + PULLED^2)

The rows of a goal are written in the axes that its choices are about. Their errors are
the way to the target's position, and of rotations 1/2 sum_k r_k x t_k over the axes of
both frames, sin(angle) about the axis between them. Passive joints of loops are
unknowns beside q; the equations of the loops are rows beside those of goals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from armillary.forks import IMPORT_LOCK
from armillary.ik.problem import Goal, IKProblem
from armillary.ik.query import Tolerance
from armillary.ik.targets import POSE_SIZE, pose_at
from armillary.kinematics.inputs import Inputs, program_of
from armillary.kinematics.jacobian import Twist, open_jacobian
from armillary.model.link_poses import poses_of
from armillary.model.tree import Tree
from armillary.spatial.ldl import LDLFactor, gram, inner, shifted
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import (
    Matrix,
    Number,
    Rows,
    Vector,
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

DAMPING, LEAST_DAMPING = 0.01, 1e-9  # c and c0
LEAST_PIVOT = 1e-14
LARGEST_CHANGE = 1.0  # of a joint in one step [m or rad]
GAIN = 0.5  # of the pull
LIMIT_SLACK = 1e-9  # of passive joints, which rounding may lead beyond limits
PULLED = 1e-7  # errors below which the pull to a given vector fades
ROW_SLACK = 1e-10  # by which q is kept within rows that couple joints, for rounding
ROW_ERROR = 1e-24  # square of what may be missing of such a row
PROJECTIONS = 3  # on all rows, in a step
ALONG = 1e-9  # square of a part of a row that is not along others
BOX_SIZE = 6  # numbers of a box


class Residual(NamedTuple):
    """The rows of one goal: errors, their Jacobian, and two squared sizes."""

    errors: list[Number]
    jacobian: list[list[Number]]
    position: Number
    rotation: Number


def step_program(problem: IKProblem, *, near: bool = False) -> Program:
    """Return the program q, targets, limits -> the next q, and the errors of this one.

    Of the limits only which of them are infinite is compiled; the numbers are an input,
    so that a search with other limits is the same program.

    Args:
        problem: What is to be reached, all at once, by n joints; the passive joints of
            loops that they move, m of them, are found with them.
        near: Whether the answer is to stay near a given vector.

    Returns:
        Inputs q (n + m,), passive joints last, and `target`: for each goal the sixteen
        numbers of its pose, row by row, for each box its least three coordinates, then
        its greatest, and with `near` that vector (n,); `constants`,
        the least coordinates, the greatest, the greatest sums of limits that couple
        joints, for each block of loops the sign of the determinant, and what else the
        selection has as inputs. Outputs q (n + m,) and for each goal its squared
        distance [m^2] and squared sine of its angle, 4 more beyond a right angle, then
        with loops how far they are open, and with limits that couple joints the square
        of how far they are broken.
    """
    step = _Step(problem, near)
    return trace(
        step.next,
        name="ik_step",
        outputs=("q", "errors"),
        q=(len(step.unknowns),),
        target=(step.target_size,),
        constants=(step.constant_size,),
    )


class _Step:
    """The step of a problem.

    Attributes:
        unknowns: The places of q and of passive joints in the vector of all joints.
        blocks: The blocks of loops that are closed.
    """

    def __init__(self, problem: IKProblem, near: bool) -> None:
        self.goals, self.selection = problem.goals, problem.selection
        self.tree, self.near = problem.tree, near
        self.boxed = [k for k, goal in enumerate(self.goals) if goal.in_box]
        self.unknowns = (*self.selection.inputs, *self.selection.passive)
        # Rows of unit length, of all unknowns; their ends are among the constants.
        passive = [0.0] * len(self.selection.passive)
        self.rows = [
            [*(a / math.hypot(*row) for a in row), *passive]
            for row, _ in problem.rows.pairs
        ]
        system = self.tree.cell.loop_system
        self.blocks = system.needed(self.selection.passive)
        self._limits = [
            [*of_joints.tolist(), *of_passive.tolist()]
            for of_joints, of_passive in zip(
                problem.limits, problem.passive_limits, strict=True
            )
        ]

    @property
    def target_size(self) -> int:
        """Return how many numbers `target` has."""
        n = len(self.selection.inputs)
        return self._poses_and_boxes + (n if self.near else 0)

    @property
    def _poses_and_boxes(self) -> int:
        return POSE_SIZE * len(self.goals) + BOX_SIZE * len(self.boxed)

    @property
    def constant_size(self) -> int:
        """Return how many numbers `constants` has."""
        others = sum(map(math.prod, self.selection.shapes.values()))
        return 2 * len(self.unknowns) + len(self.rows) + len(self.blocks) + others

    def next(self, q: Vector, target: Vector, constants: Vector) -> Any:
        """Return the next q, and the squared errors of this one."""
        bounds, ends, signs, others = self._split(constants)
        residuals = self._residuals(q, target, signs, others)
        squares = [x for r in residuals for x in (r.position, r.rotation)]
        if self.blocks:  # loops have one number, and stand last
            squares.pop()
        errors = [e for r in residuals for e in r.errors]
        rows = [row for r in residuals for row in r.jacobian]
        coupled = list(zip(self.rows, ends, strict=True))
        if self.near:
            pull = self._pull(q, target, errors)
            if coupled:
                change = _change_at_rows(q, rows, errors, pull, bounds, coupled)
            else:
                change = _change_within(q, rows, errors, pull, bounds)
        else:
            free = _free(q, rows, errors, bounds)
            rows = [_products(row, free) for row in rows]
            if coupled:
                held = _held_rows(q, rows, errors, free, coupled)
                rows = [_without(row, held) for row in rows]
            change = _change(rows, errors, [0.0] * len(q))
        after = [
            _limited(
                q[k] + _limited(change[k], -LARGEST_CHANGE, LARGEST_CHANGE), *bound
            )
            for k, bound in enumerate(bounds)
        ]
        if coupled:
            after = _projected(after, bounds, coupled)
            squares.append(_row_error(q, coupled))
        return after, squares

    def _split(
        self, constants: Vector
    ) -> tuple[list[tuple[Number, Number]], Vector, Vector, list[Any]]:
        """Return bounds of unknowns, ends of rows, signs of blocks, other inputs.

        Infinite bounds are not read, as code without them is shorter.
        """
        count, blocks = len(self.unknowns), len(self.blocks)
        bounds = [
            (
                constants[k] if low > -math.inf else low,
                constants[count + k] if high < math.inf else high,
            )
            for k, (low, high) in enumerate(zip(*self._limits, strict=True))
        ]
        rows = len(self.rows)
        ends, rest = constants[2 * count :][:rows], constants[2 * count + rows :]
        return bounds, ends, rest[:blocks], shaped_inputs(self.selection, rest[blocks:])

    def _residuals(
        self, q: Vector, target: Vector, signs: Vector, others: list[Any]
    ) -> list[Residual]:
        """Return the rows of each goal, then those of loops, if there are any."""
        n = len(self.selection.inputs)
        tree, whole = self.selection.applied(self.tree, q[:n], others, q[n:])
        residuals = [
            _residual(
                tree,
                whole,
                self.unknowns,
                goal,
                pose_at(target, k)[0],
                self._box(target, k),
            )
            for k, goal in enumerate(self.goals)
        ]
        if self.blocks:
            residuals.append(_of_loops(tree, whole, self.unknowns, self.blocks, signs))
        return residuals

    def _box(self, target: Vector, goal: int) -> tuple[Vector, Vector] | None:
        """Return the least and greatest coordinates of a goal's box, if it has one."""
        if goal not in self.boxed:
            return None
        first = POSE_SIZE * len(self.goals) + BOX_SIZE * self.boxed.index(goal)
        return target[first : first + 3], target[first + 3 : first + BOX_SIZE]

    def _pull(self, q: Vector, target: Vector, errors: Vector) -> list[Number]:
        """Return the secondary goal: a change towards the given vector."""
        near = target[self._poses_and_boxes :]
        n = len(near)
        way = [b - a for a, b in zip(q[:n], near, strict=True)]
        way += [0.0] * (len(q) - n)
        # At most GAIN in all: where answers lie on curves, more overshoots for ever.
        gain = GAIN / sqrt(1.0 + inner(way, way))
        # Damped, the pull moves the frames a little: it ends before the errors do.
        square = inner(errors, errors)
        gain = gain * square / (square + PULLED**2)
        return [gain * x for x in way]


def check_program(problem: IKProblem) -> Program:
    """Return the program that verifies q with loops closed.

    Returns:
        Inputs those of the selection, q (n,), `target` as of `step_program`, `allowed`,
        the largest errors of goals, and `ends` (2, m), the limits of passive joints.
        One output `checked`: for each goal the two numbers of `step_program`, then 1
        where all are met, else 0.
    """
    goals, selection = problem.goals, problem.selection

    def equations(
        tree: Tree,
        q: Vector,
        target: Vector,
        allowed: Vector,
        ends: Matrix,
    ) -> Vector:
        residuals = [
            _residual(tree, q, (), goal, pose_at(target, k)[0])
            for k, goal in enumerate(goals)
        ]
        squares = [x for r in residuals for x in (r.position, r.rotation)]
        is_met: Number = 1.0
        for square, largest in zip(squares, allowed, strict=True):
            is_met = select(square <= largest, is_met, 0.0)
        for k, low, high in zip(selection.passive, *ends, strict=True):
            is_met = select(q[k] >= low - LIMIT_SLACK, is_met, 0.0)
            is_met = select(q[k] <= high + LIMIT_SLACK, is_met, 0.0)
        return [*squares, is_met]

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


def all_met(errors: Vector, allowed: Vector) -> Any:
    """Return whether no traced error is more than is allowed; NaN is."""
    is_met: Any = True
    for error, most in zip(errors, allowed, strict=True):
        is_met = is_met & (error <= most)
    return is_met


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
    q: Vector,
    unknowns: Sequence[int],
    blocks: Sequence[int],
    signs: Vector,
) -> Residual:
    """Return the rows of loops, lengths as parts of their sizes.

    Their size counts 4 more for each block that is not on the branch, as far as the
    sign of its determinant tells.
    """
    with IMPORT_LOCK:
        from armillary.kinematics.closing.stages import (
            block_programs,  # for loops alone
        )

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


def shaped_inputs(selection: Inputs, numbers: Vector) -> list[Any]:
    """Return the inputs of a selection besides q from their numbers in one row."""
    inputs: list[Any] = []
    for shape in selection.shapes.values():
        size = math.prod(shape)
        inputs.append(np.reshape(np.array(numbers[:size], dtype=object), shape))
        numbers = numbers[size:]
    return inputs


def _free(
    q: Vector,
    J: list[list[Number]],
    e: list[Number],
    bounds: Sequence[tuple[Number, Number]],
) -> list[Number]:
    """Return 0 for each joint at a limit that is drawn beyond it, 1 for the others."""
    free: list[Number] = []
    for k, (low, high) in enumerate(bounds):
        pull = inner([row[k] for row in J], e)
        is_free: Number = 1.0
        if _is_finite(high):
            is_free = select(q[k] >= high, select(pull > 0.0, 0.0, 1.0), is_free)
        if _is_finite(low):
            is_free = select(q[k] <= low, select(pull < 0.0, 0.0, 1.0), is_free)
        free.append(is_free)
    return free


def _change_within(
    q: Vector,
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


Coupled: TypeAlias = Sequence[tuple[Sequence[float], Number]]
"""Limits that couple joints: rows of unit length, and their ends."""


def row_ends(problem: IKProblem, *, limited: bool = True) -> Array:
    """Return the constants of `step_program` for limits that couple joints, (m,).

    limited: Whether these count; else their ends are far away.
    """
    lengths = np.linalg.norm(problem.rows.A, axis=1)
    return problem.rows.b / lengths if limited else np.full(len(lengths), FAR_END)


FAR_END: Final = 1e30
"""The end of a row that does not count [m or rad]."""


def _change_at_rows(
    q: Vector,
    J: list[list[Number]],
    e: list[Number],
    g: list[Number],
    limits: Sequence[tuple[Number, Number]],
    coupled: Coupled,
) -> list[Number]:
    """Return the change, shared anew where it would break rows that couple joints.

    It leads to these rows then, and along them it does the rest.
    """
    first = _change(J, e, g)
    after = [
        x + _limited(step, -LARGEST_CHANGE, LARGEST_CHANGE)
        for x, step in zip(q, first, strict=True)
    ]
    held: list[list[Number]] = []
    moved: list[Number] = [0.0] * len(q)
    for row, end in coupled:
        left = _without(list(row), held)
        size = inner(left, left)
        broken = inner(row, after) > end - ROW_SLACK
        counts = select(broken, select(size > ALONG, 1.0, 0.0), 0.0)
        unit = [counts * a / sqrt(select(counts > 0.0, size, 1.0)) for a in left]
        along = inner(row, unit)
        room = end - ROW_SLACK - inner(row, q) - inner(row, moved)
        way = counts * room / select(counts > 0.0, along, 1.0)
        moved = [x + way * a for x, a in zip(moved, unit, strict=True)]
        held.append(unit)
    rest = [x - inner(row, moved) for x, row in zip(e, J, strict=True)]
    rows = [_without(row, held) for row in J]
    change = _change_within(
        [a + b for a, b in zip(q, moved, strict=True)],
        rows,
        rest,
        _without(g, held),
        limits,
    )
    return [a + b for a, b in zip(change, moved, strict=True)]


def _held_rows(
    q: Vector,
    J: list[list[Number]],
    e: list[Number],
    free: list[Number],
    coupled: Coupled,
) -> list[list[Number]]:
    """Return unit vectors along rows that q is at and is drawn beyond, else zeros."""
    pull = [inner([row[k] for row in J], e) for k in range(len(q))]
    held: list[list[Number]] = []
    for row, end in coupled:
        left = _without(_products(row, free), held)
        size = inner(left, left)
        at = inner(row, q) >= end - 2.0 * ROW_SLACK
        drawn = select(inner(left, pull) > 0.0, 1.0, 0.0)
        counts = select(at, select(size > ALONG, drawn, 0.0), 0.0)
        held.append([counts * a / sqrt(select(counts > 0.0, size, 1.0)) for a in left])
    return held


def _without(a: Vector, units: Sequence[Vector]) -> list[Number]:
    """Return a vector without its parts along orthogonal unit vectors."""
    left = list(a)
    for unit in units:
        along = inner(left, unit)
        left = [x - along * y for x, y in zip(left, unit, strict=True)]
    return left


def _projected(
    q: Vector, limits: Sequence[tuple[Number, Number]], coupled: Coupled
) -> list[Number]:
    """Return q projected on the rows that it breaks, by turns with limits."""
    after = list(q)
    for _ in range(PROJECTIONS):
        for row, end in coupled:
            over = maximum(inner(row, after) - (end - ROW_SLACK), 0.0)
            after = [
                _limited(x - over * a, *bound) if a else x
                for x, a, bound in zip(after, row, limits, strict=True)
            ]
    return after


def _row_error(q: Vector, coupled: Coupled) -> Number:
    """Return the square of how far q breaks the row that it breaks most."""
    most: Number = 0.0
    for row, end in coupled:
        most = maximum(most, inner(row, q) - end)
    return most * most


def _products(a: Vector, b: Vector) -> list[Number]:
    return [x * y for x, y in zip(a, b, strict=True)]


def _limited(x: Number, low: Number, high: Number) -> Number:
    x = maximum(x, low) if _is_finite(low) else x
    return minimum(x, high) if _is_finite(high) else x


def _is_finite(limit: Number) -> bool:
    """Return whether a limit is finite, as all those that are inputs are."""
    return not (isinstance(limit, float) and math.isinf(limit))


def _residual(
    tree: Tree,
    q: Vector,
    inputs: Sequence[int],
    goal: Goal,
    target: Pose,
    box: tuple[Vector, Vector] | None = None,
) -> Residual:
    """Return the rows of one goal, written in the axes that its choices are about.

    Within a box, which is along the target's axes, its rows are zero.
    """
    (X,) = poses_of(tree, q, [goal.frame], goal.relative_to)
    twist = Twist(goal.frame, goal.relative_to, goal.frame, goal.relative_to)
    columns = open_jacobian(tree, q, twist)
    chosen = [columns[i] for i in inputs]
    # Errors and columns are in the axes of `relative_to`.
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
        counted = [k for k in range(3) if counts[k]]
        errors += [turned[k] for k in counted]
        rows += [[way[k] for way in ways] for k in counted]
        squares.append(sum((turned[k] * turned[k] for k in counted), 0.0))
    if box is not None:
        turn = transpose(target.rotation)
        way = apply(turn, linear)
        ways = [apply(turn, three(column[:3])) for column in chosen]
        for k, low, high in zip(range(3), *box, strict=True):
            if not goal.position[k]:
                error = minimum(maximum(0.0 - way[k], low), high) + way[k]
                counts = select(abs(error) > 0.0, 1.0, 0.0)
                errors.append(error)
                rows.append([counts * each[k] for each in ways])
                squares[0] = squares[0] + error * error
    # sin(angle) is small near half a turn, too: more than any tolerance is added there.
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
