"""The rows of tasks of joint positions."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from armillary.control import tasks
from armillary.control.task_parts import TaskStages, joint_indices
from armillary.errors import ModelError, quote
from armillary.ik.objective import gradient
from armillary.kernel.pipeline import program
from armillary.kernel.tables import reals
from armillary.kinematics.moving_twists import MovingTwists
from armillary.spatial.ldl import inner
from armillary.spatial.vector import Number
from armillary.trace import jvp

__all__ = ["of_coupling", "of_function", "of_posture"]


def of_posture(task: tasks.Posture, k: int, twists: MovingTwists) -> TaskStages:
    """Return the stages of a task of a posture, the k-th."""
    chosen = joint_indices(twists, task.joints)
    if not chosen:
        raise ModelError("A posture needs one joint at least; joints= names none.")
    c, n = len(twists.joints), twists.moving.joints
    counts = [task.weight * (j in chosen) for j in twists.joints]

    def equations(q: Any, target: Any, rate: Any, gain: Any, counts: Any) -> Any:
        pull = [gain * (target[j] - q[j]) + rate[j] for j in twists.joints]
        return list(counts), pull

    inputs = {"q": (n,), f"target_{k}": (n,), f"target_rate_{k}": (n,)}
    inputs |= {f"gain_{k}": (), f"counts_{k}": (c,)}
    return TaskStages(
        task=task,
        number=k,
        target=(n,),
        rate=(n,),
        fields=(reals(f"gain_{k}"), reals(f"counts_{k}", (c,))),
        stages=(program(equations, f"diagonal_{k} pull_{k}", **inputs),),
        settings=lambda _: {f"counts_{k}": counts},
    )


def of_coupling(task: tasks.Coupling, k: int, twists: MovingTwists) -> TaskStages:
    """Return the stages of a task of a coupling, the k-th."""
    given: Any = task.factors
    if not (isinstance(given, Mapping) and given):
        raise ModelError(
            "A coupling needs the factor of one joint at least, such as "
            f"{{'joint1': 2.0}}; not {quote(task.factors)}."
        )
    n = twists.moving.joints
    sums = np.zeros(n)
    for name, factor in task.factors.items():
        if not (isinstance(factor, Real) and abs(factor) <= sys.float_info.max):
            raise ModelError(
                f"The factor of {quote(name)} is a finite number, not {quote(factor)}."
            )
        sums[joint_indices(twists, (name,))] = factor

    def equations(
        q: Any, qd: Any, target: Any, rate: Any, gain: Any, factors: Any
    ) -> Any:
        moved = sum((factors[j] * qd[j] for j in twists.others), 0.0)
        wanted = rate + gain * (target - inner(list(factors), list(q))) - moved
        return [[factors[j] for j in twists.joints]], [wanted]

    inputs = {"q": (n,), "qd": (n,), f"target_{k}": (), f"target_rate_{k}": ()}
    inputs |= {f"gain_{k}": (), f"factors_{k}": (n,)}
    return TaskStages(
        task=task,
        number=k,
        target=(),
        rate=(),
        fields=(reals(f"gain_{k}"), reals(f"factors_{k}", (n,))),
        stages=(program(equations, f"rows_{k} wanted_{k}", **inputs),),
        weights=(task.weight,),
        settings=lambda _: {f"factors_{k}": sums},
    )


def of_function(task: tasks.Function, k: int, twists: MovingTwists) -> TaskStages:
    """Return the stages of a task of a function, the k-th."""
    n = twists.moving.joints
    if not callable(task.function):
        raise ModelError(
            f"tasks.Function needs a function of q, not {quote(task.function)}."
        )

    def values(q: Any) -> list[Any]:
        found = task.function(q)
        listed = [found] if np.ndim(found) == 0 else list(found)
        if not listed or any(np.ndim(value) for value in listed):
            raise ModelError(
                "The function of tasks.Function must return a number or a list of "
                f"numbers, at least one; it returned an array of shape "
                f"{np.shape(found)}."
            )
        return listed

    m = program(values, "value", q=(n,)).outputs[0].shape[0]

    def equations(q: Any, qd: Any, target: Any, rate: Any, gain: Any) -> Any:
        rows: list[list[Number]] = []
        wanted: list[Number] = []
        for value, to, pace in zip(values(q), target, rate, strict=True):
            slopes = gradient(value, list(q))
            moved = sum((slopes[j] * qd[j] for j in twists.others), 0.0)
            rows.append([slopes[j] for j in twists.joints])
            wanted.append(pace + gain * (to - value) - moved)
        return rows, wanted

    def second(q: Any) -> Any:
        # d^2 f / dq_j^2: each element of a gradient, differentiated by its own joint.
        slopes = [gradient(value, list(q)) for value in values(q)]
        return [
            [jvp([row[j]], [(q[j], 1.0)])[0] for j in twists.joints] for row in slopes
        ]

    inputs = {"q": (n,), "qd": (n,), f"target_{k}": (m,), f"target_rate_{k}": (m,)}
    inputs |= {f"gain_{k}": ()}
    return TaskStages(
        task=task,
        number=k,
        target=(m,),
        rate=(m,),
        fields=(reals(f"gain_{k}"),),
        stages=(program(equations, f"rows_{k} wanted_{k}", **inputs),),
        weights=(task.weight,) * m,
        curvature=(program(second, f"curvature_{k}", q=(n,)),),
    )
