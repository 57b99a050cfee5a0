"""Stages that separate pairs inside the margin as far as they can be together.

Rows a_k x >= b_k of pairs can contradict each other and the bounds of rates: where two
links are too near and the joints at rest, no rates within bounds separate them as fast
as the row requires. So where braking breaks a row, rates x are found first that make

    1/2 sum_k (b_k - a_k x)^2 + 1/2 e^2 |x - r|^2

least, where k are the rows that r breaks; r is braking at first. Bounds of rates hold,
and so does a_k x >= min(b_k, a_k r) for all rows, which r itself meets: no pair fares
worse than by r. A square counts rates above b_k, too, where links part faster than is
required. So that is repeated, with x in place of r, while x breaks fewer rows than r:
rows that x meets are constraints then, and no squares. It ends with rates that meet all
rows, if there are any; else all rows of the sum are broken, and x is the best there is.

Then b_k becomes min(b_k, a_k x). So the rates x meet all rows, and tasks keep to what
was found for pairs. A pair whose distance still does not rise is reported as
inseparable: no joint moves its links apart, or that conflicts with other constraints.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from armillary.control.active_set import BOUND
from armillary.control.approach_stages import least_rise
from armillary.control.columns import (
    NO_PAIRS,
    STUCK,
    TINY,
    InequalityRow,
    StepColumns,
)
from armillary.control.least_squares import add_diagonal, add_squares, cleared
from armillary.ik.active_rows import FREE
from armillary.ik.scaled_rates import RateLimits, when_near
from armillary.kernel.columns import each, repeat, when
from armillary.kernel.stages import Stage
from armillary.kernel.tables import Table
from armillary.spatial.ldl import inner
from armillary.spatial.vector import Matrix, Number, Vector
from armillary.trace import Port
from armillary.trace.functions import maximum, minimum, select

__all__ = ["DEEP", "separation_stages"]

KEEPING: Final = 1e-4
"""The factor e, which weighs nearness to r against slopes of distances [m]."""

ITERATIONS: Final = 8
"""How often rates are sought at most; it is seldom more than twice."""

STILL: Final = 1e-4
"""Speed below which the distance of a pair does not count as rising [m/s]."""

DEEP: Final = 5e-4
"""How far inside the margin a pair is at least that is reported [m]."""


def separation_stages(
    columns: StepColumns, rows: Table, solve: Sequence[Stage], braking: Port
) -> tuple[Stage, ...]:
    """Return the stages that change rows of pairs so that some rates meet all of them.

    They read `is_strained`, `low`, `high`, `pace`, and the rows. They change
    the numbers b of rows, and write `separating`, rates that meet all of them, and
    `stuck`, the numbers of inseparable pairs.

    Args:
        columns: The columns.
        rows: The table of rows, see `InequalityRow`.
        solve: The stages of the active-set method.
        braking: The rates that r is at first.
    """

    def for_each_near(*stages: Stage) -> Stage:
        return each(rows, *when_near(columns, columns.is_near, *stages))

    begun = columns.separating, columns.stuck, columns.easing, columns.finished
    broken, unmet = columns.broken_rows, columns.unmet_rows
    counts, wanted = columns.broken_counts, columns.broken_wanted
    slopes = columns.broken_slopes
    return (
        columns.stage(_begin, braking=braking, writes=begun),
        # Where braking meets all rows, nothing is done: that is nearly always.
        when(
            columns.is_strained,
            repeat(
                columns.easing,
                columns.stage(_start, writes=(columns.ridge, columns.gradient, broken)),
                cleared(columns),
                add_diagonal(columns),
                for_each_near(
                    columns.stage(
                        _gather, writes=(columns.row, slopes, counts, wanted, broken)
                    ),
                    add_squares(columns, counts, wanted, [slopes]),
                ),
                *solve,
                columns.stage(_taken, writes=(columns.separating, unmet)),
                for_each_near(columns.stage(_count, writes=unmet)),
                columns.stage(_goes_on, writes=columns.easing),
                limit=ITERATIONS,
            ),
            for_each_near(columns.stage(_require, writes=(columns.row, columns.stuck))),
        ),
    )


def _begin(braking: Vector) -> tuple[Vector, Vector, Number, Number]:
    """Return braking, which holds where it breaks no row, and that no pair is stuck."""
    return list(braking), [FREE + 0.0 * braking[0]] * STUCK, 1.0, 1.0


def _start(separating: Vector) -> tuple[Vector, Vector, Number]:
    """Return the diagonal of H and g of 1/2 e^2 |x - r|^2; no row is broken yet."""
    # e^2 makes H positive, so that the solver has one answer however few rows.
    e = KEEPING * KEEPING
    return [e for _ in separating], [0.0 - e * rate for rate in separating], 0.0


def _gather(
    row: InequalityRow,
    row_number: Number,
    pace: Number,
    separating: Vector,
    broken_rows: Number,
) -> tuple[InequalityRow, Matrix, Vector, Vector, Number]:
    """Return a row that r meets, and a, its weight and b of 1/2 (b - a x)^2.

    The weight is 1 for pairs alone, and only where r breaks their row.
    """
    a, is_pair = row.slopes, row_number < BOUND
    wanted = _wanted(row, pace)
    # r is `separating`: braking at first, then what was found.
    reached = inner(a, list(separating))
    breaks = select(is_pair, select(reached < wanted, 1.0, 0.0), 0.0)
    # While rates are sought, rows require no more than r gives. Rows of torques keep
    # what they require.
    eased = select(is_pair, minimum(wanted, reached), row.bound)
    return row.replaced(bound=eased), [a], [breaks], [wanted], broken_rows + breaks


def _wanted(row: InequalityRow, pace: Number) -> Number:
    """Return b of a row of a pair as it was at first, from the room that it holds."""
    is_able = _is_able(row)
    at_first = least_rise(row.slopes, row.room, row.still, pace)
    return select(is_able, at_first, row.bound)


def _is_able(row: InequalityRow) -> Any:
    """Return whether joints can move a pair; else its row is rounding, b far below."""
    return row.bound > -0.5 * NO_PAIRS


def _taken(x: Vector) -> tuple[Vector, Number]:
    """Return the rates that the solver found, and that they break no row yet."""
    return list(x), 0.0


def _count(
    row: InequalityRow,
    row_number: Number,
    pace: Number,
    separating: Vector,
    unmet_rows: Number,
) -> Number:
    """Return how many rows are broken, of pairs so far."""
    wanted = _wanted(row, pace)
    is_met = _is_met(row, wanted, inner(row.slopes, list(separating)))
    return unmet_rows + select(row_number < BOUND, select(is_met, 0.0, 1.0), 0.0)


def _is_met(row: InequalityRow, wanted: Number, rises: Number) -> Any:
    """Return whether a row is met but for what nearness to r takes from it.

    The second sum keeps a row, even alone, from being met to the last bit: of what it
    requires beyond r, about e^2 / |a|^2 is lost.
    """
    a = row.slopes
    lost = 10.0 * KEEPING * KEEPING * (wanted - row.bound)
    return (rises - wanted) * inner(a, a) >= 0.0 - lost


def _goes_on(broken_rows: Number, unmet_rows: Number, finished: Number) -> Number:
    """Return 1 where rows are broken, but fewer than before."""
    # If all rows of the sum are still broken, no rates separate them further.
    is_better = select(unmet_rows < broken_rows, finished, 0.0)
    return select(unmet_rows > 0.0, is_better, 0.0)


def _require(
    row: InequalityRow,
    row_number: Number,
    pace: Number,
    separating: Vector,
    bounds: RateLimits,
    stuck: Vector,
    finished: Number,
) -> tuple[InequalityRow, Vector]:
    """Return a row with its final b, and `stuck` with its pair if that is inseparable.

    In the row as it is read, b is what `_gather` has left of it.
    """
    a, still, is_able = row.slopes, row.still, _is_able(row)
    wanted = least_rise(a, row.room, still, pace)
    rises = inner(a, list(separating))
    is_met = _is_met(row, wanted, rises)
    # Where the solver did not finish, rows require what they did at first.
    is_met = select(is_met, 1.0, 1.0 - finished)
    # A row that is met keeps its b; others ask for what was found.
    b = select(is_met > 0.0, wanted, minimum(wanted, rises))
    b = select(is_able, b, row.bound)
    # The greatest speed at which bounds of rates let the distance rise.
    most: Number = still
    # Each joint adds what the better of its two bounds gives.
    for slope, least, greatest in zip(a, *bounds, strict=True):
        most = most + maximum(slope * least, slope * greatest)
    # Inseparable: the distance does not rise, though joints could make it rise.
    stays = rises + still < minimum(STILL, maximum(0.5 * most, TINY))
    stays = select(is_able, select(stays, 1.0, 0.0), 1.0)
    # Pairs at the margin are not reported: they need not part.
    is_stuck = select(row.room < 0.0 - DEEP, stays, 0.0)
    is_pair = select(row_number < BOUND, 1.0, 0.0)
    # The first slot of `stuck` that is free, if any, gets the number of the pair.
    left: Number = is_pair * is_stuck
    named: list[Number] = []
    for number in stuck:
        here = select(number < 0.0, left, 0.0)
        named.append(select(here > 0.0, row_number, number))
        left = left - here
    return row.replaced(bound=select(is_pair > 0.0, b, row.bound)), named
