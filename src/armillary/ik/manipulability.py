"""How far joint positions are from singular ones: J of a goal, and what it spans."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any, Final

from armillary.ik.problem import IKProblem
from armillary.kernel import Kernel, shared_kernel
from armillary.kinematics.bound_kernel import AnyKernel, bind
from armillary.kinematics.jacobian import Twist, jacobian
from armillary.spatial.ldl import inner
from armillary.trace import trace
from armillary.trace.functions import maximum, sqrt

__all__ = ["REGULAR", "goal_jacobian", "manipulability"]

REGULAR: Final = 1e-10
"""Manipulability from which on an answer is regular: rounding tells it from others."""

LEAST_SQUARE: Final = 1e-100


def goal_jacobian(problem: IKProblem) -> AnyKernel:
    """Return the kernel q (..., n) -> J (..., 6, n) of a goal, linear rows first."""
    return bind(problem.once("jacobian", _jacobian), problem.values)


def manipulability(problem: IKProblem) -> AnyKernel:
    """Return the kernel q (..., n) -> sqrt(det J' J), or of J J' if J is wide (...).

    Rows of J are those that the goal counts, all of a goal that leaves an axis free.
    Lengths, those of sliding joints too, are in units of the problem's size, angles in
    radians. Of six joints it is |det J| (Yoshikawa 1985).
    """
    return bind(problem.once("manipulability", _manipulability), problem.values)


def _jacobian(problem: IKProblem) -> Kernel:
    def equations(*inputs: Any) -> Any:
        columns = _columns(problem, inputs)
        return [list(row) for row in zip(*columns, strict=True)]

    shapes = _shapes(problem)
    return shared_kernel(trace(equations, name="J", outputs=("J",), **shapes))


def _manipulability(problem: IKProblem) -> Kernel:
    (goal,), length = problem.goals, 1.0 / problem.size
    counted = [*goal.position, *goal.rotation]
    if goal.free_axis is not None:  # its rows are not along the axes of J
        counted = [True] * 6
    lengths = [length, length, length, 1.0, 1.0, 1.0]
    units = problem.scales.tolist()

    def equations(*inputs: Any) -> Any:
        columns = [
            [unit * scale * x for x, scale in zip(column, lengths, strict=True)]
            for column, unit in zip(_columns(problem, inputs), units, strict=True)
        ]
        columns = [list(compress(column, counted)) for column in columns]
        is_wide = len(columns) > len(columns[0])
        return _volume(list(zip(*columns, strict=True)) if is_wide else columns)

    shapes = _shapes(problem)
    name = "manipulability"
    return shared_kernel(trace(equations, name=name, outputs=(name,), **shapes))


def _shapes(problem: IKProblem) -> dict[str, tuple[int, ...]]:
    chosen = problem.selection
    return {**chosen.shapes, "q": (len(chosen.inputs),)}


def _columns(problem: IKProblem, inputs: Sequence[Any]) -> list[list[Any]]:
    """Return the columns of J, of the inputs of a program."""
    (goal,), chosen = problem.goals, problem.selection
    *values, q = inputs
    tree, whole = chosen.applied(problem.tree, q, values)
    to = goal.relative_to
    columns = jacobian(tree, whole, Twist(goal.frame, to, goal.frame, to))
    return [list(columns[k]) for k in chosen.inputs]


def _volume(vectors: Sequence[Sequence[Any]]) -> Any:
    """Return the volume that vectors span, by Gram's and Schmidt's rule.

    The determinant of their products, its square, has no more than half of the digits.
    """
    left = [list(v) for v in vectors]
    volume: Any = 1.0
    while left:
        first, *others = left
        square = inner(first, first)
        volume = volume * sqrt(square)
        factor = 1.0 / maximum(square, LEAST_SQUARE)
        left = list[list[Any]]()
        for other in others:
            along = factor * inner(first, other)
            left.append([y - along * x for x, y in zip(first, other, strict=True)])
    return volume
