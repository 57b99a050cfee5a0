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

from typing import Any, Final

from armillary.control.active_set import (
    BOUND,
    FREE,
    active_set_stages,
    first_of,
    packed,
)
from armillary.control.approach_stages import NO_PAIRS, least_rise
from armillary.kernel.pipeline import Each, Stage, When, program
from armillary.kernel.tables import Table
from armillary.spatial.ldl import inner
from armillary.spatial.vector import Number
from armillary.trace.functions import maximum, minimum, select

__all__ = ["STUCK", "separation_stages"]

STUCK: Final = 4
"""How many pairs that cannot be separated are named."""

KEEPING: Final = 1e-4
"""The factor e, which weighs nearness to braking against slopes of distances [m]."""

STILL: Final = 1e-4
"""Speed below which the distance of a pair does not count as rising [m/s]."""

INSIDE: Final = 5e-4
"""How far inside the margin a pair is at least that is reported [m]."""


def separation_stages(c: int, rows: Table) -> tuple[Stage, ...]:
    """Return the stages that change rows of pairs so that some rates meet all of them.

    They read `is_strained`, `rest`, `low`, `high`, `pace`, and the rows. They change
    the numbers b of rows, and write `separating`, rates that meet all of them, and
    `stuck`, the numbers of inseparable pairs. A row holds its slopes a, b, by how much
    the distance rises without the joints [m/s], and the room beyond the margin [m].

    Args:
        c: How many rates.
        rows: The table of rows.
    """
    half = (c * (c + 1) // 2,)
    row: dict[str, tuple[int, ...]] = {"row": (c + 3,), "row_number": ()}
    model: dict[str, tuple[int, ...]] = {"hessian": half, "gradient": (c,)}
    gathered = program(_gather, "row hessian gradient", **row, rest=(c,), **model)
    vectors = dict.fromkeys(("separating", "low", "high"), (c,))
    asked = program(
        _ask, "row stuck", **row, pace=(), **vectors, stuck=(STUCK,), finished=()
    )
    return (
        program(_begin, "separating stuck", rest=(c,)),
        When(
            "is_strained",
            (
                program(_start, "hessian gradient", rest=(c,)),
                _near(rows, gathered),
                *active_set_stages(c, rows),
                program(list[Number], "separating", x=(c,)),
                _near(rows, asked),
            ),
        ),
    )


def _begin(rest: Any) -> Any:
    """Return braking, which holds where it breaks no row, and that no pair is stuck."""
    return list(rest), [FREE + 0.0 * rest[0]] * STUCK


def _start(rest: Any) -> Any:
    """Return H and g of 1/2 e^2 |x - r|^2."""
    e = KEEPING * KEEPING
    c = len(rest)
    H = [[e if i == k else 0.0 for k in range(c)] for i in range(c)]
    return packed(H), [0.0 - e * rate for rate in rest]


def _gather(row: Any, row_number: Any, rest: Any, hessian: Any, gradient: Any) -> Any:
    """Return a row that braking meets, and H and g with 1/2 (b - a x)^2 added.

    That is added for pairs alone, and only where braking breaks their row.
    """
    *a, b, still, room = row
    braking = inner(a, list(rest))
    breaks = select(row_number < BOUND, select(braking < b, 1.0, 0.0), 0.0)
    counts = [breaks * x for x in a]
    products = packed([[x * y for y in a] for x in counts])
    H = [x + y for x, y in zip(hessian, products, strict=True)]
    g = [x - y * b for x, y in zip(gradient, counts, strict=True)]
    # While rates are sought, rows require no more than braking gives.
    eased = [*a, minimum(b, braking), still, room]
    is_pair = row_number < BOUND
    return [select(is_pair, x, y) for x, y in zip(eased, row, strict=True)], H, g


def _ask(
    row: Any,
    row_number: Any,
    pace: Any,
    separating: Any,
    low: Any,
    high: Any,
    stuck: Any,
    finished: Any,
) -> Any:
    """Return a row with its final b, and `stuck` with its pair if that is inseparable.

    In the row as it is read, b is what `_gather` has left of it.
    """
    *a, eased, still, room = row
    is_able = eased > -0.5 * NO_PAIRS  # else the row is rounding, and left out
    wanted = least_rise(a, room, still, pace)
    rises = inner(a, list(separating))
    # The second sum keeps a row, even alone, from being met to the last bit: of what it
    # requires beyond braking, about e^2 / |a|^2 is lost.
    lost = 10.0 * KEEPING * KEEPING * (wanted - eased)
    is_met = (rises - wanted) * inner(a, a) >= 0.0 - lost
    # Where the solver did not finish, rows require what they did at first.
    is_met = select(is_met, 1.0, 1.0 - finished)
    b = select(is_met > 0.0, wanted, minimum(wanted, rises))
    b = select(is_able, b, eased)
    # The greatest speed at which bounds of rates let the distance rise.
    most: Number = still
    for slope, least, greatest in zip(a, low, high, strict=True):
        most = most + maximum(slope * least, slope * greatest)
    stays = rises + still < minimum(STILL, maximum(0.5 * most, 1e-300))
    stays = select(is_able, select(stays, 1.0, 0.0), 1.0)
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


def _near(rows: Table, stage: Stage) -> Stage:
    """Return a stage that runs for each row that counts."""
    near = program(first_of, "near", is_near=(1,))
    return Each(rows.name, (near, When("near", (stage,))))
