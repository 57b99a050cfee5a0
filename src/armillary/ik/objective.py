"""Purposes: numbers that the freedom left by a task is used to make small."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from armillary.errors import unknown
from armillary.ik.problem import Problem
from armillary.kernel import Kernel, shared_kernel
from armillary.kinematics.jacobian import Twist, jacobian
from armillary.spatial.ldl import LDLFactor, Rows, gram
from armillary.spatial.vector import Number
from armillary.trace import Program, Scalar, jvp, trace

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


def negative_manipulability(problem: Problem) -> Purpose:
    """Return the purpose that is least where the arm moves the first frame best.

    It is about the rows of position, of rotation, or of both, as the goal asks for; of
    fewer joints than rows, sqrt(det J' J) stands for the manipulability.
    """
    goal, inputs = problem.goals[0], problem.selection.inputs
    twist = Twist(goal.frame, goal.relative_to, goal.frame, goal.relative_to)
    kept = [*range(3)] * goal.has_position + [*range(3, 6)] * goal.has_rotation

    def purpose(q: Sequence[Number]) -> Number:
        columns = jacobian(problem.tree, problem.selection.vector(q), twist)
        chosen = [[columns[i][k] for k in kept] for i in inputs]
        if len(chosen) < len(kept):
            return 0.0 - manipulability(chosen)
        return 0.0 - manipulability([list(row) for row in zip(*chosen, strict=True)])

    return purpose


def purpose_kernel(problem: Problem, purpose: Purpose | str) -> Kernel:
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
