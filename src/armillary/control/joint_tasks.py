"""The rows of tasks of joint positions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from numbers import Real
from typing import Any, Final

import numpy as np

from armillary.control import tasks
from armillary.control.task_stages import (
    Maker,
    TaskGoal,
    TaskRows,
    TaskStages,
    columns_of_task,
    joint_indices,
    made_once,
)
from armillary.errors import ModelError, quote
from armillary.forks import IMPORT_LOCK
from armillary.kernel.stages import Stage, program
from armillary.kinematics.moving_twists import MovingTwists
from armillary.spatial.ldl import inner
from armillary.spatial.vector import Matrix, Number, Vector
from armillary.trace import jvp

__all__ = ["MAKERS"]


def _of_posture(task: tasks.Posture, k: int, twists: MovingTwists) -> TaskStages:
    """Return the stages of a task of a posture, the k-th."""
    chosen = joint_indices(twists, task.joints)
    if not chosen:
        raise ModelError("A posture needs one joint at least; joints= names none.")
    n = twists.moving.joints
    columns = columns_of_task(twists, k, target=(n,), rate=(n,))
    # Joints that the posture leaves out have the weight 0.
    counts = [task.weight * (j in chosen) for j in twists.joints]

    def made() -> tuple[Stage, ...]:
        posture = partial(_posture, joints=twists.joints)
        return (columns.stage(posture, writes=(columns.diagonal(), columns.pull())),)

    return TaskStages(
        task=task,
        columns=columns,
        reads=(columns.counts(),),
        stages=made_once(twists, ("posture", k), made),
        settings=lambda _: {columns.counts().name: counts},
    )


def _posture(
    q: Vector, goal: TaskGoal, counts: Vector, *, joints: tuple[int, ...]
) -> tuple[Vector, Vector]:
    """Return the weights of joints, and the rates that a posture requests."""
    target, rate, gain = goal
    return list(counts), [gain * (target[j] - q[j]) + rate[j] for j in joints]


def _of_coupling(task: tasks.Coupling, k: int, twists: MovingTwists) -> TaskStages:
    """Return the stages of a task of a coupling, the k-th."""
    given: Any = task.factors
    if not (isinstance(given, Mapping) and given):
        raise ModelError(
            "A coupling needs the factor of one joint at least, such as "
            f"{{'joint1': 2.0}}; not {quote(task.factors)}."
        )
    # One row: the factors of all joints of the cell, 0 where none is given.
    factors = np.zeros(twists.moving.joints)
    for name, factor in task.factors.items():
        if not (isinstance(factor, Real) and abs(factor) <= sys.float_info.max):
            raise ModelError(
                f"The factor of {quote(name)} is a finite number, not {quote(factor)}."
            )
        factors[joint_indices(twists, (name,))] = factor
    columns = columns_of_task(twists, k, m=1, target=(), rate=())
    return TaskStages(
        task=task,
        columns=columns,
        reads=(columns.factors(),),
        stages=made_once(
            twists,
            ("coupling", k),
            lambda: (columns.stage(partial(_coupling, twists=twists)),),
        ),
        weights=(task.weight,),
        settings=lambda _: {columns.factors().name: factors},
    )


def _coupling(
    q: Vector, qd: Vector, goal: TaskGoal, factors: Vector, *, twists: MovingTwists
) -> TaskRows:
    """Return f' x = rate + gain (target - f'q), less what other joints add to it."""
    # Joints that are not moved change the sum at known rates.
    target, rate, gain = goal
    moved = sum((factors[j] * qd[j] for j in twists.others), 0.0)
    wanted = rate + gain * (target - inner(list(factors), list(q))) - moved
    return TaskRows([[factors[j] for j in twists.joints]], [wanted])


def _of_function(task: tasks.Function, k: int, twists: MovingTwists) -> TaskStages:
    """Return the stages of a task of a function, the k-th."""
    if not callable(task.function):
        raise ModelError(
            f"tasks.Function needs a function of q, not {quote(task.function)}."
        )
    values = partial(_values, task.function)
    # Traced once to count its values; errors of the function are found here.
    (m,) = program(values, "value", q=(twists.moving.joints,)).outputs[0].shape
    columns = columns_of_task(twists, k, m=m, target=(m,), rate=(m,))
    second = partial(_second, values=values, joints=twists.joints)
    return TaskStages(
        task=task,
        columns=columns,
        stages=(columns.stage(partial(_function, values=values, twists=twists)),),
        weights=(task.weight,) * m,
        curvature=(columns.stage(second, writes=columns.curvature()),),
    )


def _values(function: Callable[[Any], Any], q: Vector) -> list[Number]:
    """Return the numbers that a user's function returns."""
    # One number counts as a list of one.
    result = function(q)
    listed = [result] if np.ndim(result) == 0 else list(result)
    if not listed or any(np.ndim(value) for value in listed):
        raise ModelError(
            "The function of tasks.Function must return a number or a list of "
            f"numbers, at least one; it returned an array of shape "
            f"{np.shape(result)}."
        )
    return listed


def _function(
    q: Vector,
    qd: Vector,
    goal: TaskGoal,
    *,
    values: Callable[[Vector], list[Number]],
    twists: MovingTwists,
) -> TaskRows:
    """Return the gradients of the values as rows, by automatic differentiation."""
    with IMPORT_LOCK:
        from armillary.ik.objective import gradient

    rows: list[list[Number]] = []
    wanted: list[Number] = []
    for value, to, rate in zip(values(q), goal.target, goal.target_rate, strict=True):
        # Reverse mode: one pass gives the slopes by all joints.
        slopes = gradient(value, list(q))
        moved = sum((slopes[j] * qd[j] for j in twists.others), 0.0)
        rows.append([slopes[j] for j in twists.joints])
        wanted.append(rate + goal.gain * (to - value) - moved)
    return TaskRows(rows, wanted)


def _second(
    q: Vector,
    *,
    values: Callable[[Vector], list[Number]],
    joints: tuple[int, ...],
) -> Matrix:
    """Return d^2 f / dq_j^2: elements of gradients, differentiated by their joint."""
    with IMPORT_LOCK:
        from armillary.ik.objective import gradient

    # Forward mode on top of reverse mode gives the diagonal of each Hessian.
    slopes = [gradient(value, list(q)) for value in values(q)]
    return [[jvp([row[j]], [(q[j], 1.0)])[0] for j in joints] for row in slopes]


MAKERS: Final[Mapping[type, Maker]] = {
    tasks.Posture: _of_posture,
    tasks.Coupling: _of_coupling,
    tasks.Function: _of_function,
}
