"""Damping of joints where the target of a task is out of reach, as stages.

A task requests rates J x = v, v = gain e, of an error e. The least squares of v - J x
model e^2 / 2 well only where joints can make e vanish. The second derivative of e^2 / 2
by joint positions is

    J' W J + S,  S_ij = - sum_k w_k r_k d^2 f_k / dq_i dq_j / gain_k,

where f are the values of the tasks, and r = v - J x. Where a target is out of reach, r
does not vanish and J becomes singular: with J' W J alone, rates grow as the nearest
pose is approached, and joints oscillate about it. With S, errors decay as exp(-gain t)
up to the nearest pose. Only the elements of its diagonal that are above 0 are added,
which damp. Those below 0 would lead away from the singularity, as J' W J alone does.

Here r is what one task by itself misses, with rates that move joints by no more than
1 rad or 1 m in the time 1 / gain in which errors decay. Limits of rates do not count.
Nor does a conflict of tasks: their least squares are what the user has asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

from armillary.control.task_parts import TaskStages
from armillary.kernel.pipeline import Stage, When, program
from armillary.spatial.ldl import LDLFactor, Rows, gram, inner
from armillary.spatial.vector import Number
from armillary.trace.functions import maximum, select, sqrt

__all__ = ["unreached_stages"]

MISSING: Final = 0.02
"""Part of v that a task misses at least before joints are damped."""

SUPPRESSED: Final = 0.1
"""The same where directions are kept."""

TINY: Final = 1e-300  # keeps a quotient finite

FURTHEST: Final = 1.0
"""How far joints move at most by rates that count, in the time 1 / gain [m or rad]."""

SINGULAR: Final = 1e-6
"""Square of singular values of a task, with its weights, that count as 0."""


def unreached_stages(
    tasks: Sequence[TaskStages],
    levels: Sequence[int],
    c: int,
    *,
    keeps_direction: bool = False,
) -> tuple[Stage, ...]:
    """Return the stages that write `stiffness`, the positive diagonal of S.

    Its shape is (p, c): of the tasks of each of p levels of priority.

    Args:
        tasks: The tasks.
        levels: The level of each row of tasks.
        c: How many rates.
        keeps_direction: Whether rates are to keep the direction that tasks request.
            Then r is only what damping suppresses near singularities.
    """
    count = max(levels, default=0) + 1

    def none(damping: Any) -> Any:
        return [[0.0 * damping] * c] * count

    begin = program(none, "stiffness", damping=())
    starts = accumulate((len(each.weights) for each in tasks), initial=0)
    bent = [
        _Bent(each, start)
        for each, start in zip(tasks, starts, strict=False)
        if each.weights and each.curvature
    ]
    if not bent:
        return (begin,)
    return (
        begin,
        _misses(bent, len(levels), c, keeps_direction=keeps_direction),
        When(
            "is_missing",
            (
                *(stage for each in bent for stage in each.task.curvature),
                _stiffened(bent, [levels[each.start] for each in bent], count, c),
            ),
        ),
    )


class _Bent(NamedTuple):
    """A task with curvature, and the number of the first of its rows among all."""

    task: TaskStages
    start: int


def _misses(
    bent: Sequence[_Bent], row_count: int, c: int, *, keeps_direction: bool
) -> Stage:
    """Return the stage that writes `missing_k`, W r of each task, and `is_missing`."""
    inputs: dict[str, tuple[int, ...]] = {}
    for task, _ in bent:
        k, m = task.number, len(task.weights)
        inputs |= {f"rows_{k}": (m, c), f"wanted_{k}": (m,), f"gain_{k}": ()}

    def miss(weights: Any, damping: Any, *values: Any) -> Any:
        given = dict(zip(inputs, values, strict=True))
        found: list[Any] = []
        is_missing: Number = 0.0
        for task, start in bent:
            k = task.number
            own = weights[start : start + len(task.weights)]
            J, v, gain = given[f"rows_{k}"], given[f"wanted_{k}"], given[f"gain_{k}"]
            least, most, part = SINGULAR, FURTHEST * gain, MISSING
            if keeps_direction:
                least, most, part = damping, None, SUPPRESSED
            missing, short = _missing(J, v, own, (least, most, part))
            found.append(missing)
            is_missing = maximum(is_missing, short)
        return is_missing, *found

    names = ["is_missing", *(f"missing_{each.task.number}" for each in bent)]
    return program(miss, " ".join(names), weights=(row_count,), damping=(), **inputs)


def _stiffened(
    bent: Sequence[_Bent], levels: Sequence[int], count: int, c: int
) -> Stage:
    """Return the stage that writes `stiffness`: the sum of S over tasks of a level.

    levels: Of the tasks.
    """
    inputs: dict[str, tuple[int, ...]] = {}
    for task, _ in bent:
        k, m = task.number, len(task.weights)
        inputs |= {f"missing_{k}": (m,), f"curvature_{k}": (m, c), f"gain_{k}": ()}

    def stiffen(*values: Any) -> Any:
        given = dict(zip(inputs, values, strict=True))
        found: list[list[Number]] = [[0.0] * c for _ in range(count)]
        for (task, _), level in zip(bent, levels, strict=True):
            k = task.number
            diagonal: list[Number] = [0.0] * c
            rows = zip(given[f"missing_{k}"], given[f"curvature_{k}"], strict=True)
            for r, row in rows:
                part = r / given[f"gain_{k}"]
                diagonal = [a - part * b for a, b in zip(diagonal, row, strict=True)]
            own = found[level]
            own[:] = [a + maximum(b, 0.0) for a, b in zip(own, diagonal, strict=True)]
        return found

    return program(stiffen, "stiffness", **inputs)


def _missing(
    J: Any, v: Any, weights: Any, sizes: tuple[Any, Any, Any]
) -> tuple[list[Number], Number]:
    """Return W (v - J x), and 1 where that is much of W v.

    With y of (J J' + e W^-1) y = v, the rates x = J' y miss W^-1 e y of v. If they are
    greater than what counts, they are along a direction with a small singular value,
    s = |x| / |W^-1/2 y|. A second e = s^2 (|x| / most - 1) reduces them along it alone,
    so that what other directions reach is not missing.

    sizes: The least e, the greatest length of x or None, and the part of v that is
        much.
    """
    least, most, much = sizes
    rows: Rows = [list(row) for row in J]
    y = _forces(rows, v, weights, least)
    x = [inner(list(column), y) for column in zip(*rows, strict=True)]
    if most is not None:
        square = inner(x, x)
        forces = sum((a * a / w for a, w in zip(y, weights, strict=True)), 0.0)
        value = square / maximum(forces, TINY)
        enough = maximum(least, value * (sqrt(square) / most - 1.0))
        y = _forces(rows, v, weights, enough)
        x = [inner(list(column), y) for column in zip(*rows, strict=True)]
    missing: list[Number] = []
    asked: Number = 0.0
    short: Number = 0.0
    for row, weight, wanted in zip(rows, weights, v, strict=True):
        r = wanted - inner(row, x)
        missing.append(weight * r)
        asked = asked + weight * wanted * wanted
        short = short + weight * r * r
    return missing, select(short > much * much * asked, 1.0, 0.0)


def _forces(rows: Rows, v: Any, weights: Any, e: Any) -> list[Number]:
    """Return y of (J J' + e W^-1) y = v."""
    G = gram(rows)
    for k, weight in enumerate(weights):
        G[k][k] = G[k][k] + e / weight
    return LDLFactor.of(G, SINGULAR * SINGULAR).solve(list(v))
