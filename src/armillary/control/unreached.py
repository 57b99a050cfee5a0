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
from functools import partial
from itertools import accumulate
from typing import Any, Final, NamedTuple

from armillary.control.columns import TINY, StepColumns
from armillary.control.task_stages import TaskStages
from armillary.kernel.columns import when
from armillary.kernel.stages import Stage
from armillary.spatial.ldl import LDLFactor, Rows, gram, inner
from armillary.spatial.vector import Matrix, Number, Vector
from armillary.trace.functions import maximum, select, sqrt

__all__ = ["unreached_stages"]

MISSING: Final = 0.02
"""Part of v that a task misses at least before joints are damped."""

SUPPRESSED: Final = 0.1
"""The same where directions are kept."""

FURTHEST: Final = 1.0
"""How far joints move at most by rates that count, in the time 1 / gain [m or rad]."""

SINGULAR: Final = 1e-6
"""Square of singular values of a task, with its weights, that count as 0."""


class _Curved(NamedTuple):
    """A task with curvature.

    Attributes:
        task: Its stages.
        first: The number of its first row among the rows of all tasks.
        level: Its level of priority.
    """

    task: TaskStages
    first: int
    level: int


def unreached_stages(
    columns: StepColumns,
    tasks: Sequence[TaskStages],
    levels: Sequence[int],
    *,
    keeps_direction: bool = False,
) -> tuple[Stage, ...]:
    """Return the stages that write `stiffness`, the positive diagonal of S.

    It has a row for each level of priority, the sum over its tasks.

    Args:
        columns: The columns.
        tasks: The tasks.
        levels: The level of each row of tasks.
        keeps_direction: Whether rates are to keep the direction that tasks request.
            Then r is only what damping suppresses near singularities.
    """
    begin = columns.stage(
        partial(_none, shape=columns.stiffness.shape), writes=columns.stiffness
    )
    # Rows of all tasks are numbered through; `firsts` says where each task begins.
    firsts = accumulate((len(each.weights) for each in tasks), initial=0)
    curved = [
        _Curved(each, first, levels[first])
        for each, first in zip(tasks, firsts, strict=False)
        if each.weights and each.curvature
    ]
    if not curved:
        return (begin,)
    own = [each.task.columns for each in curved]
    missing = [each.missing() for each in own]
    gains = [each.gain() for each in own]
    # Cheap test first: second derivatives are computed only where a task misses much.
    miss = columns.stage(
        partial(_miss, curved=curved, keeps_direction=keeps_direction),
        rows=[each.rows() for each in own],
        wanted=[each.wanted() for each in own],
        gains=gains,
        writes=(columns.is_missing, *missing),
    )
    stiffen = columns.stage(
        partial(
            _stiffened,
            levels=[each.level for each in curved],
            shape=columns.stiffness.shape,
        ),
        missing=missing,
        curvatures=[each.curvature() for each in own],
        gains=gains,
        writes=columns.stiffness,
    )
    curvatures = (stage for each in curved for stage in each.task.curvature)
    return begin, miss, when(columns.is_missing, *curvatures, stiffen)


def _none(damping: Number, *, shape: tuple[int, ...]) -> Matrix:
    levels, c = shape
    return [[0.0 * damping] * c] * levels


def _miss(
    weights: Vector,
    damping: Number,
    rows: Sequence[Matrix],
    wanted: Sequence[Vector],
    gains: Vector,
    *,
    curved: Sequence[_Curved],
    keeps_direction: bool,
) -> Any:
    """Return 1 if a task misses much of its request, and W r of each task."""
    # Each task by itself: a conflict of tasks does not count as out of reach.
    is_missing: Number = 0.0
    all_missing: list[Vector] = []
    for each, J, v, gain in zip(curved, rows, wanted, gains, strict=True):
        # Without direction, singular values below SINGULAR count as 0; with it, those
        # that damping suppresses.
        own = weights[each.first : each.first + len(v)]
        sizes = SINGULAR, FURTHEST * gain, MISSING
        if keeps_direction:
            sizes = damping, None, SUPPRESSED
        missing, is_short = _missing(J, v, own, sizes)
        all_missing.append(missing)
        is_missing = maximum(is_missing, is_short)
    return is_missing, *all_missing


def _stiffened(
    missing: Sequence[Vector],
    curvatures: Sequence[Matrix],
    gains: Vector,
    *,
    levels: Sequence[int],
    shape: tuple[int, ...],
) -> Matrix:
    """Return the sum of S over tasks of a level, of S = -sum_k W r_k d2f_k / gain."""
    # S is a diagonal for each level, as levels are solved one after another.
    S: list[list[Number]] = [[0.0] * shape[1] for _ in range(shape[0])]
    for r, bends, gain, level in zip(missing, curvatures, gains, levels, strict=True):
        diagonal: list[Number] = [0.0] * len(S[level])
        # -sum_k W r_k d2f_k / dq_i^2 / gain; r is v - J x, and v = gain e.
        for short, row in zip(r, bends, strict=True):
            part = short / gain
            diagonal = [a - part * b for a, b in zip(diagonal, row, strict=True)]
        # Only what damps is added.
        S[level] = [
            a + maximum(b, 0.0) for a, b in zip(S[level], diagonal, strict=True)
        ]
    return S


def _missing(
    J: Matrix, v: Vector, weights: Vector, sizes: tuple[Number, Number | None, float]
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
    # x = J'y has the least |x| of all rates that miss no more.
    rows: Rows = [list(row) for row in J]
    # Least squares with a little damping, in its dual form: m equations, not c.
    y = _forces(rows, v, weights, least)
    x = [inner(list(column), y) for column in zip(*rows, strict=True)]
    if most is not None:
        # Along the direction of rates that are too great, s^2 is `value`.
        square = inner(x, x)
        forces = sum((a * a / w for a, w in zip(y, weights, strict=True)), 0.0)
        value = square / maximum(forces, TINY)
        enough = maximum(least, value * (sqrt(square) / most - 1.0))
        y = _forces(rows, v, weights, enough)
        x = [inner(list(column), y) for column in zip(*rows, strict=True)]
    # Sizes are those of the metric W, so that units of rows do not matter.
    missing: list[Number] = []
    asked: Number = 0.0
    short: Number = 0.0
    for row, weight, wanted in zip(rows, weights, v, strict=True):
        r = wanted - inner(row, x)
        missing.append(weight * r)
        asked = asked + weight * wanted * wanted
        short = short + weight * r * r
    return missing, select(short > much * much * asked, 1.0, 0.0)


def _forces(rows: Rows, v: Vector, weights: Vector, e: Number) -> list[Number]:
    """Return y of (J J' + e W^-1) y = v."""
    # W^-1 in place of W keeps the matrix regular where a weight is small.
    G = gram(rows)
    for k, weight in enumerate(weights):
        G[k][k] = G[k][k] + e / weight
    return LDLFactor.of(G, SINGULAR * SINGULAR).solve(list(v))
