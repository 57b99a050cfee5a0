"""Stages that separate pairs inside the margin as far as they can be together.

Rows a_k x >= b_k of pairs can contradict each other and the bounds of rates: where two
links are too near and joints at rest, no rates separate them at once as fast as is
wanted. So where braking breaks a row, the rates x are found first that make

    1/2 sum_k (b_k - a_k x)^2 + 1/2 e^2 |x - r|^2

least, over the rows k that braking, r, breaks. Bounds of rates hold, and no row gets
worse than by braking: a_k x >= min(b_k, a_k r), which r itself meets. Then b_k becomes
min(b_k, a_k x): so tasks are asked to leave to pairs what was found for them, and rates
that meet all rows exist. A pair whose distance does not rise is said to be inseparable:
no joint moves its links apart, or that conflicts with other constraints.
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
"""The factor e of the rates of braking, beside slopes of distances [m]."""

STILL: Final = 1e-4
"""Speed below which a pair is not separated [m/s]."""

INSIDE: Final = 5e-4
"""How far below the margin pairs are that are said not to be separated [m]."""


def separation_stages(c: int, rows: Table) -> tuple[Stage, ...]:
    """Return the stages that make rows of pairs hold together.

    They read `is_strained`, `rest`, `low`, `high`, `pace`, and the rows. They change
    the numbers b of rows, and write `separating`, rates that meet all of them, and
    `stuck`, the numbers of pairs that are not separated.

    Args:
        c: How many rates.
        rows: The table of rows.
    """
    half = (c * (c + 1) // 2,)
    row: dict[str, tuple[int, ...]] = {"row": (c + 3,), "row_number": (), "pace": ()}

    def begin(rest: Any) -> Any:
        return list(rest), [FREE + 0.0 * rest[0]] * STUCK

    def start(rest: Any) -> Any:
        e = KEEPING * KEEPING
        H = [[e if i == k else 0.0 for k in range(c)] for i in range(c)]
        return packed(H), [0.0 - e * rate for rate in rest]

    def gather(
        row: Any, row_number: Any, rest: Any, hessian: Any, gradient: Any
    ) -> Any:
        a, b = list(row[:c]), row[c]
        braking = inner(a, list(rest))
        breaks = select(row_number < BOUND, select(braking < b, 1.0, 0.0), 0.0)
        counts = [breaks * x for x in a]
        products = packed([[x * y for y in a] for x in counts])
        H = [x + y for x, y in zip(hessian, products, strict=True)]
        g = [x - y * b for x, y in zip(gradient, counts, strict=True)]
        # Until rates are found braking is what rows ask for at most.
        eased = [*a, minimum(b, braking), row[c + 1], row[c + 2]]
        is_pair = row_number < BOUND
        return [select(is_pair, x, y) for x, y in zip(eased, row, strict=True)], H, g

    def found(x: Any) -> Any:
        return list(x)

    def ask(
        row: Any,
        row_number: Any,
        pace: Any,
        separating: Any,
        low: Any,
        high: Any,
        stuck: Any,
        finished: Any,
    ) -> Any:
        a, still, room = list(row[:c]), row[c + 1], row[c + 2]
        is_able = row[c] > -0.5 * NO_PAIRS
        wanted = least_rise(a, room, still, pace)
        rises = inner(a, list(separating))
        # Of what a row alone asks for beyond braking, the second sum takes this part.
        lost = 10.0 * KEEPING * KEEPING * (wanted - row[c])
        is_met = (rises - wanted) * inner(a, a) >= 0.0 - lost
        # Where the solver came to no end, rows ask for what they did.
        is_met = select(is_met, 1.0, 1.0 - finished)
        b = select(is_met > 0.0, wanted, minimum(wanted, rises))
        b = select(is_able, b, row[c])
        most: Number = still
        for slope, least, greatest in zip(a, low, high, strict=True):
            most = most + maximum(slope * least, slope * greatest)
        stays = rises + still < minimum(STILL, maximum(0.5 * most, 1e-300))
        stays = select(is_able, select(stays, 1.0, 0.0), 1.0)
        is_stuck = select(room < 0.0 - INSIDE, stays, 0.0)
        is_pair = select(row_number < BOUND, 1.0, 0.0)
        left: Number = is_pair * is_stuck
        named: list[Number] = []
        for number in stuck:
            here = select(number < 0.0, left, 0.0)
            named.append(select(here > 0.0, row_number, number))
            left = left - here
        changed = [*a, select(is_pair > 0.0, b, row[c]), still, room]
        return changed, named

    vectors = dict.fromkeys(("separating", "low", "high"), (c,))
    model: dict[str, tuple[int, ...]] = {"hessian": half, "gradient": (c,)}
    gathered = program(
        gather,
        "row hessian gradient",
        row=(c + 3,),
        row_number=(),
        rest=(c,),
        **model,
    )
    asked = program(ask, "row stuck", **row, **vectors, stuck=(STUCK,), finished=())
    return (
        program(begin, "separating stuck", rest=(c,)),
        When(
            "is_strained",
            (
                program(start, "hessian gradient", rest=(c,)),
                _near(rows, gathered),
                *active_set_stages(c, rows),
                program(found, "separating", x=(c,)),
                _near(rows, asked),
            ),
        ),
    )


def _near(rows: Table, stage: Stage) -> Stage:
    """Return a stage that runs for each row that counts."""
    near = program(first_of, "near", is_near=(1,))
    return Each(rows.name, (near, When("near", (stage,))))
