"""Stages that find rates in the direction of a task, nearest to maximum braking.

Where motion is to keep its direction, rates are sought on a line that begins with
braking, r, and ends with the rates that the first task requests, J x = v. While joints
move, J r does not have the direction of v, and neither has J x on that line short of
its end. So the line begins with the rates x that are nearest to r and have J x = s v
for some s:

    1/2 |x - r|^2 + 1/2 K |(1 - u u') J x|^2 least,  u = v / |v|,

within the bounds of rates, and where all rows a_k x >= b_k hold. All rates between
these and those of v have the direction of v. Where no such x exists, the line begins
with r, or with the rates that separate pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from armillary.control.columns import TINY, StepColumns
from armillary.control.least_squares import add_diagonal, add_squares, cleared
from armillary.control.task_stages import TaskRows
from armillary.kernel.columns import when
from armillary.kernel.stages import Stage
from armillary.spatial.ldl import inner
from armillary.spatial.vector import Matrix, Number, Vector
from armillary.trace.functions import maximum, select, sqrt

__all__ = ["aside", "line_stages"]

STRAIGHT: Final = 1e9
"""Weight K of rates across the direction."""

ALIGNED: Final = 1e-7
"""Rates across the direction that count as rounding, in parts of all rates."""


def aside(
    got: Sequence[Number], wanted: Sequence[Number]
) -> tuple[list[Number], Number]:
    """Return the part of task rates across a direction, and 1 where that counts.

    The part is (1 - u u') got, with u = wanted / |wanted|.
    """
    # Projection on the direction: along = u'got / |v|, as v = |v| u.
    square = inner(wanted, wanted)
    along = inner(got, wanted) / maximum(square, TINY)
    left = [a - along * b for a, b in zip(got, wanted, strict=True)]
    # The second term is for rates that are themselves rounding beside v.
    size = ALIGNED * sqrt(inner(got, got)) + ALIGNED * ALIGNED * sqrt(square)
    return left, select(sqrt(inner(left, left)) > size, 1.0, 0.0)


def line_stages(columns: StepColumns, solve: Sequence[Stage]) -> tuple[Stage, ...]:
    """Return the stages that write rates in the direction of a task: `begin_rates`.

    Args:
        columns: The columns of the task.
        solve: The stages of the active-set method.
    """
    across = columns.across()
    weights, wanted = columns.across_weights(), columns.across_wanted()
    return (
        columns.stage(_begin, writes=(columns.begin_rates, columns.is_aside)),
        when(
            columns.is_aside,
            columns.stage(
                _model,
                writes=(
                    across,
                    weights,
                    wanted,
                    columns.ridge,
                    columns.gradient,
                ),
            ),
            cleared(columns),
            add_diagonal(columns),
            add_squares(columns, weights, wanted, [across]),
            *solve,
            columns.stage(_chosen, writes=columns.begin_rates),
        ),
    )


def _begin(separating: Vector, task: TaskRows) -> tuple[Vector, Number]:
    """Return the rates that separate pairs, and whether these are aside."""
    # `separating` is braking where that meets all rows; it is what remains if the
    # direction cannot be had.
    got = [inner(row, list(separating)) for row in task.rows]
    return list(separating), aside(got, task.wanted)[1]


def _model(
    full_braking: Vector, task: TaskRows
) -> tuple[Matrix, Vector, Vector, Vector, Vector]:
    """Return what H = 1 + K J' (1 - u u') J and g = -r are made of.

    These are (1 - u u') J, K and 0 for its rows, the diagonal 1, and g.
    """
    # A projection is its own square: one of J' and J suffices.
    across = [aside(column, task.wanted)[0] for column in zip(*task.rows, strict=True)]
    rows = [list(row) for row in zip(*across, strict=True)]
    weights, wanted = [STRAIGHT for _ in rows], [0.0 for _ in rows]
    return rows, weights, wanted, [1.0] * len(across), [0.0 - r for r in full_braking]


def _chosen(x: Vector, finished: Number, separating: Vector, task: TaskRows) -> Vector:
    """Return x where it has the direction, else the rates that separate pairs."""
    got = [inner(row, list(x)) for row in task.rows]
    is_aside = aside(got, task.wanted)[1]
    # Rows or bounds may rule out every x along the direction.
    is_found = select(finished > 0.0, 1.0 - is_aside, 0.0)
    return [select(is_found > 0.0, a, b) for a, b in zip(x, separating, strict=True)]
