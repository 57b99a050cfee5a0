"""Stages that find rates to begin with that have the direction that a task requests.

Where motion is to keep its direction, rates are followed from braking toward those that
the first task requests, J x = v. Of joints that move, braking has another direction: as
far as rates are away from v, as far the line between both leads aside. So the rates x
are found first that are nearest to braking, r, with J x = s v for some s:

    1/2 |x - r|^2 + 1/2 K |(1 - u u') J x|^2 least,  u = v / |v|,

within the bounds of rates, and where all rows a_k x >= b_k hold. From there, all rates
on the way to v have its direction. If there are none, the way begins with r, or with
rates that separate pairs.
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
"""Weight K of rates off the direction."""

ASIDE: Final = 1e-7
"""Part of rates beside which those off the direction do not count."""

TINY: Final = 1e-300


def aside(got: list[Number], wanted: list[Number]) -> tuple[list[Number], Number]:
    """Return the part of rates off a direction, and 1 where that counts."""
    square = inner(wanted, wanted)
    along = inner(got, wanted) / maximum(square, TINY)
    left = [a - along * b for a, b in zip(got, wanted, strict=True)]
    size = ASIDE * sqrt(inner(got, got)) + ASIDE * ASIDE * sqrt(square)
    return left, select(sqrt(inner(left, left)) > size, 1.0, 0.0)


def line_stages(task: TaskStages, c: int, rows: Table) -> tuple[Stage, ...]:
    """Return the stages that put rates of the direction of a task in `rest`.

    They keep braking in `braking`.

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
