"""Stages that separate pairs inside the margin as far as they can be together.

Rows a_k x >= b_k of pairs can contradict each other and the bounds of rates: where two
links are too near and the joints at rest, no rates within bounds separate them as fast
as the row requires. So where braking breaks a row, rates x are found first that make

    1/2 sum_k (b_k - a_k x)^2 + 1/2 e^2 |x - r|^2

least, where k are the rows that braking, r, breaks. Bounds of rates hold, and so does
a_k x >= min(b_k, a_k r) for all rows, which r itself meets: no pair fares worse than by
braking. Then b_k becomes min(b_k, a_k x). So the rates x meet all rows, and tasks keep
to what was found for pairs. A pair whose distance still does not rise is reported as
inseparable: no joint moves its links apart, or that conflicts with other constraints.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from armillary.control.active_set import BOUND, LeastSquares, packed
from armillary.control.approach_stages import NO_PAIRS, least_rise
from armillary.control.columns import STUCK, StepColumns
from armillary.ik.active_rows import FREE
from armillary.ik.scaled_rates import RateLimits, when_near
from armillary.kernel.columns import each, when
from armillary.kernel.pipeline import Stage
from armillary.kernel.tables import Table
from armillary.spatial.ldl import inner
from armillary.spatial.vector import Number, Vector
from armillary.trace.functions import maximum, minimum, select

__all__ = ["separation_stages"]

KEEPING: Final = 1e-4
"""The factor e, which weighs nearness to braking against slopes of distances [m]."""

STILL: Final = 1e-4
"""Speed below which the distance of a pair does not count as rising [m/s]."""

INSIDE: Final = 5e-4
"""How far inside the margin a pair is at least that is reported [m]."""


def separation_stages(
    columns: StepColumns, rows: Table, solve: Sequence[Stage]
) -> tuple[Stage, ...]:
    """Return the stages that change rows of pairs so that some rates meet all of them.

    They read `is_strained`, `rest`, `low`, `high`, `pace`, and the rows. They change
    the numbers b of rows, and write `separating`, rates that meet all of them, and
    `stuck`, the numbers of inseparable pairs. A row holds its slopes a, b, by how much
    the distance rises without the joints [m/s], and the room beyond the margin [m].

    Args:
        columns: The columns.
        rows: The table of rows.
        solve: The stages of the active-set method.
    """

    def for_each_near(stage: Stage) -> Stage:
        return each(rows, *when_near(columns, columns.is_near, stage))

    # Where braking meets all rows, nothing is done: that is nearly always.
    return (
        columns.stage(_begin, writes=(columns.separating, columns.stuck)),
        when(
            columns.is_strained,
            columns.stage(_start),
            for_each_near(
                columns.stage(
                    _gather, writes=(columns.row, *columns.group(LeastSquares))
                )
            ),
            *solve,
            columns.stage(_taken, writes=columns.separating),
            for_each_near(columns.stage(_require, writes=(columns.row, columns.stuck))),
        ),
    )


def _begin(rest: Vector) -> tuple[Vector, Vector]:
    """Return braking, which holds where it breaks no row, and that no pair is stuck."""
    return list(rest), [FREE + 0.0 * rest[0]] * STUCK


def _start(rest: Vector) -> LeastSquares:
    """Return H and g of 1/2 e^2 |x - r|^2."""
    # e^2 makes H positive, so that the solver has one answer however few rows.
    e = KEEPING * KEEPING
    c = len(rest)
    H = [[e if i == k else 0.0 for k in range(c)] for i in range(c)]
    return LeastSquares(packed(H), [0.0 - e * rate for rate in rest])


def _taken(x: Vector) -> Vector:
    """Return the rates that the solver found."""
    return list(x)


def _gather(
    row: Vector, row_number: Number, rest: Vector, model: LeastSquares
) -> tuple[Vector, LeastSquares]:
    """Return a row that braking meets, and H and g with 1/2 (b - a x)^2 added.

    That is added for pairs alone, and only where braking breaks their row.
    """
    # Only pairs count; rows of torques keep what they require.
    *a, b, still, room = row
    braking = inner(a, list(rest))
    breaks = select(row_number < BOUND, select(braking < b, 1.0, 0.0), 0.0)
    counts = [breaks * x for x in a]
    # The row adds a a' to H and a b to g, of which `counts` is a or 0.
    products = packed([[x * y for y in a] for x in counts])
    H = [x + y for x, y in zip(model.hessian, products, strict=True)]
    g = [x - y * b for x, y in zip(model.gradient, counts, strict=True)]
    # While rates are sought, rows require no more than braking gives.
    eased = [*a, minimum(b, braking), still, room]
    is_pair = row_number < BOUND
    kept = [select(is_pair, x, y) for x, y in zip(eased, row, strict=True)]
    return kept, LeastSquares(H, g)


def _require(
    row: Vector,
    row_number: Number,
    pace: Number,
    separating: Vector,
    bounds: RateLimits,
    stuck: Vector,
    finished: Number,
) -> tuple[Vector, Vector]:
    """Return a row with its final b, and `stuck` with its pair if that is inseparable.

    In the row as it is read, b is what `_gather` has left of it.
    """
    *a, eased, still, room = row
    is_able = eased > -0.5 * NO_PAIRS  # else the row is rounding, and left out
    # b as it was before `_gather`: from the room that the row holds.
    wanted = least_rise(a, room, still, pace)
    rises = inner(a, list(separating))
    # The second sum keeps a row, even alone, from being met to the last bit: of what it
    # requires beyond braking, about e^2 / |a|^2 is lost.
    lost = 10.0 * KEEPING * KEEPING * (wanted - eased)
    is_met = (rises - wanted) * inner(a, a) >= 0.0 - lost
    # Where the solver did not finish, rows require what they did at first.
    is_met = select(is_met, 1.0, 1.0 - finished)
    # A row that is met keeps its b; others ask for what was found.
    b = select(is_met > 0.0, wanted, minimum(wanted, rises))
    b = select(is_able, b, eased)
    # The greatest speed at which bounds of rates let the distance rise.
    most: Number = still
    # Each joint adds what the better of its two bounds gives.
    for slope, least, greatest in zip(a, *bounds, strict=True):
        most = most + maximum(slope * least, slope * greatest)
    # Inseparable: the distance does not rise, though joints could make it rise.
    stays = rises + still < minimum(STILL, maximum(0.5 * most, 1e-300))
    stays = select(is_able, select(stays, 1.0, 0.0), 1.0)
    # Pairs at the margin are not reported: they need not part.
    is_stuck = select(room < 0.0 - INSIDE, stays, 0.0)
    is_pair = select(row_number < BOUND, 1.0, 0.0)
    # The first slot of `stuck` that is free, if any, gets the number of the pair.
    left: Number = is_pair * is_stuck
    named: list[Number] = []
    for number in stuck:
        here = select(number < 0.0, left, 0.0)
        named.append(select(here > 0.0, row_number, number))
        left = left - here
    return [*a, select(is_pair > 0.0, b, eased), still, room], named
