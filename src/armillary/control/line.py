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

from typing import Any, Final

from armillary.control.active_set import active_set_stages, packed
from armillary.control.task_parts import TaskStages
from armillary.kernel.pipeline import Stage, When, program
from armillary.kernel.tables import Table
from armillary.spatial.ldl import inner
from armillary.spatial.vector import Number
from armillary.trace.functions import maximum, select, sqrt

__all__ = ["aside", "line_stages"]

STRAIGHT: Final = 1e9
"""Weight K of rates across the direction."""

ALIGNED: Final = 1e-7
"""Rates across the direction that count as rounding, in parts of all rates."""

TINY: Final = 1e-300  # keeps quotients finite where v is 0


def aside(got: list[Number], wanted: list[Number]) -> tuple[list[Number], Number]:
    """Return the part of task rates across a direction, and 1 where that counts.

    The part is (1 - u u') got, with u = wanted / |wanted|.
    """
    square = inner(wanted, wanted)
    along = inner(got, wanted) / maximum(square, TINY)
    left = [a - along * b for a, b in zip(got, wanted, strict=True)]
    # The second term is for rates that are themselves rounding beside v.
    size = ALIGNED * sqrt(inner(got, got)) + ALIGNED * ALIGNED * sqrt(square)
    return left, select(sqrt(inner(left, left)) > size, 1.0, 0.0)


def line_stages(task: TaskStages, c: int, rows: Table) -> tuple[Stage, ...]:
    """Return the stages that write rates in the direction of a task into `rest`.

    Those of braking, which were there, are then in `braking`.

    Args:
        task: The stages of the task.
        c: How many rates.
        rows: The table of rows.
    """
    k, m = task.number, len(task.weights)
    asked = {f"rows_{k}": (m, c), f"wanted_{k}": (m,)}

    def begin(rest: Any, separating: Any, J: Any, v: Any) -> Any:
        got = [inner(list(row), list(separating)) for row in J]
        return list(rest), list(separating), aside(got, list(v))[1]

    def model(braking: Any, J: Any, v: Any) -> Any:
        # H = 1 + K J' (1 - u u') J and g = -r; a projection is its own square.
        columns = [aside(list(column), list(v))[0] for column in zip(*J, strict=True)]
        H = [
            [
                STRAIGHT * inner(a, b) + (1.0 if i == j else 0.0)
                for j, b in enumerate(columns)
            ]
            for i, a in enumerate(columns)
        ]
        return packed(H), [0.0 - rate for rate in braking]

    def chosen(x: Any, finished: Any, rest: Any, J: Any, v: Any) -> Any:
        got = [inner(list(row), list(x)) for row in J]
        is_aside = aside(got, list(v))[1]
        is_found = select(finished > 0.0, 1.0 - is_aside, 0.0)
        return [select(is_found > 0.0, a, b) for a, b in zip(x, rest, strict=True)]

    return (
        program(begin, "braking rest is_aside", rest=(c,), separating=(c,), **asked),
        When(
            "is_aside",
            (
                program(model, "hessian gradient", braking=(c,), **asked),
                *active_set_stages(c, rows),
                program(chosen, "rest", x=(c,), finished=(), rest=(c,), **asked),
            ),
        ),
    )
