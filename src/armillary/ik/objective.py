"""Objectives: numbers of q that the freedom left by targets is used to make small.

Of all answers to a target that are found, `least_of` takes the one of least value.
Where targets leave joints free, there are better ones along the manifold of answers
f(q) = X, and `descend` goes along it by a gradient method with a retraction:

    q' = the answer nearest to q - move g / |g|_max,    g the gradient of the value

A search from there, pulled to it, brings it back onto the manifold. What is lower is
kept and the next move longer; else the next one is shorter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.errors import unknown
from armillary.ik.method import Candidates
from armillary.ik.problem import IKProblem
from armillary.ik.query import IKQuery
from armillary.kernel import Kernel, shared_kernel
from armillary.kinematics.jacobian import Twist, jacobian
from armillary.spatial.ldl import LDLFactor, Rows, gram
from armillary.spatial.vector import Number
from armillary.trace import Program, Scalar, jvp, trace

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

LocalSearch = Callable[[IKQuery], Candidates]
"""Finds an answer to each target close to `near`."""

# Several answers are improved for a few rounds, then the best of them to the end.
MOST_DESCENTS, FIRST_ROUNDS, ROUNDS = 24, 8, 60
FIRST_MOVE = 0.3  # the most that a joint is drawn at first [m or rad]
GROWTH, DECAY = 1.5, 0.4
SMALLEST_MOVE = 1e-3

Purpose = Callable[[Any], Any]
"""A function of q, shape (n,), to one number."""

PURPOSES = ("limits", "manipulability")
"""Those that have a name: to stay away from limits, or from singularities."""


def check_purpose(purpose: Purpose | str) -> None:
    """Refuse a name that no purpose has.

    Raises:
        UnknownName: There is no such purpose.
    """
    if isinstance(purpose, str) and purpose not in PURPOSES:
        raise unknown("purpose", purpose, PURPOSES)


def limit_distance(lower: Sequence[float], upper: Sequence[float]) -> Purpose:
    """Return 1/2 sum ((q - middle) / half range)^2 over the joints with two limits.

    It is least in the middle of all ranges (Liegeois, IEEE T-SMC 7, 1977).
    """

    def purpose(q: Sequence[Number]) -> Number:
        total: Number = 0.0
        for x, low, high in zip(q, lower, upper, strict=True):
            if math.isfinite(high - low) and high > low:
                offset = (x - 0.5 * (low + high)) / (0.5 * (high - low))
                total = total + 0.5 * offset * offset
        return total

    return purpose


def manipulability(rows: Rows) -> Number:
    """Return sqrt(det J J') (Yoshikawa, IJRR 4, 1985)."""
    return LDLFactor.of(gram(rows), 1e-14).root_of_determinant


def negative_manipulability(problem: IKProblem) -> Purpose:
    """Return the purpose that is least where the arm moves the first frame best.

    It is about the rows of position, of rotation, or of both, as the goal asks for; of
    fewer joints than rows, sqrt(det J' J) stands for the manipulability.
    """
    goal, inputs = problem.goals[0], problem.selection.inputs
    twist = Twist(goal.frame, goal.relative_to, goal.frame, goal.relative_to)
    counted = [*range(3)] * goal.has_position + [*range(3, 6)] * goal.has_rotation

    def purpose(q: Sequence[Number]) -> Number:
        columns = jacobian(problem.tree, problem.selection.vector(q), twist)
        chosen = [[columns[i][k] for k in counted] for i in inputs]
        if len(chosen) < len(counted):
            return 0.0 - manipulability(chosen)
        return 0.0 - manipulability([list(row) for row in zip(*chosen, strict=True)])

    return purpose


def purpose_kernel(problem: IKProblem, purpose: Purpose | str) -> Kernel:
    """Return the kernel q (n,) -> the value () of a purpose, its gradient (n,).

    Raises:
        UnknownName: There is no such purpose.
        TraceError: The purpose is not a formula of one number.
    """
    check_purpose(purpose)
    if isinstance(purpose, str):
        purpose = (
            limit_distance(*(limit.tolist() for limit in problem.limits))
            if purpose == "limits"
            else negative_manipulability(problem)
        )
    return shared_kernel(purpose_program(purpose, len(problem.joints)))


def purpose_program(purpose: Purpose, n: int) -> Program:
    """Return the program q (n,) -> the value () of a purpose, its gradient (n,)."""

    def equations(q: Any) -> Any:
        value: Any = purpose(q)
        if np.ndim(value) != 0:
            raise TypeError(f"it gives one number, not an array {np.shape(value)}")
        return value, gradient(value, list(q))

    return trace(equations, name="purpose", outputs=("value", "gradient"), q=(n,))


def gradient(value: Any, q: Sequence[Scalar]) -> list[Number]:
    """Return the derivative of a traced number by each coordinate."""
    slopes: list[Number] = []
    for x in q:
        (slope,) = jvp([value], [(x, 1.0)])
        slopes.append(slope)
    return slopes


def least_of(
    answers: Candidates, query: IKQuery, kernel: Kernel, local: LocalSearch
) -> tuple[Array, Truths]:
    """Return the answer of least value for each target, and which have one.

    Answers that are not complete are improved along the freedom that targets leave.

    Args:
        answers: To the targets.
        query: The targets.
        kernel: The kernel of the purpose.
        local: Searches from given vectors.
    """
    count, width, n = answers.q.shape
    some: Truths = np.asarray(answers.success.any(axis=1))
    if not some.any():
        return np.full((count, n), np.nan), some
    values: Array = kernel(answers.q)[0]
    values = np.where(answers.success & ~np.isnan(values), values, np.inf)
    # A complete set has nothing between its answers; else the best few go down.
    left = ~answers.complete
    few = min(MOST_DESCENTS, width) if left.any() else 1
    order = np.argsort(values, axis=1, kind="stable")[:, :few]
    q = np.take_along_axis(answers.q, order[..., None], axis=1)
    values = np.take_along_axis(values, order, axis=1)
    if left.any():
        at = np.nonzero(np.isfinite(values) & left[:, None])
        q[at], values[at] = descend(
            q[at], values[at], query.at(at[0]), kernel, local, FIRST_ROUNDS
        )
    rows, k = np.arange(count, dtype=np.int64), values.argmin(axis=1)
    q, values = q[rows, k], values[rows, k]
    down = some & left
    if down.any():
        q[down], _ = descend(
            q[down], values[down], query.at(down), kernel, local, ROUNDS
        )
    return q, some


def descend(
    q: Array,
    value: Array,
    query: IKQuery,
    kernel: Kernel,
    local: LocalSearch,
    rounds: int,
) -> tuple[Array, Array]:
    """Return answers of lower value along the freedom that the targets leave.

    Each round draws the answers down the gradient and keeps what is lower; how far it
    draws grows with success and shrinks without.

    Args:
        q: Answers, shape (count, n).
        value: The values of the answers, shape (count,).
        query: The targets that they reach.
        kernel: The kernel of the purpose.
        local: Searches from given vectors.
        rounds: Most of them.
    """
    q, value = q.copy(), value.copy()
    move = np.full(len(q), FIRST_MOVE)
    for _ in range(rounds):
        active = np.flatnonzero(move > SMALLEST_MOVE)
        if not active.size or query.is_late:
            break
        _, slope = kernel(q[active])
        largest = np.abs(slope).max(axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            way = np.where(largest > 0.0, slope / largest, 0.0)
        near = q[active] - move[active, None] * way
        moved = local(query.at(active, near=near))
        new, _ = kernel(moved.q[:, 0])
        lower = moved.success[:, 0] & (new < value[active])
        q[active[lower]], value[active[lower]] = moved.q[lower, 0], new[lower]
        move[active] *= np.where(lower, GROWTH, DECAY)
    return q, value
