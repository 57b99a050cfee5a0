"""How passive joints move with independent ones: the implicit function of loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from armillary.forks import IMPORT_LOCK
from armillary.model.workcell import Workcell
from armillary.spatial.vector import Number

__all__ = ["followed_rates", "independent_columns", "passive_rates"]

Column = tuple[Number, ...]


def passive_rates(
    cell: Workcell, q: Sequence[Number], passive: Sequence[int]
) -> dict[int, dict[int, Number]]:
    """Return for passive joints the rate of each independent one that moves it.

    Differentiating r(u, p) = 0 gives dp/du = -(dr/dp)^-1 dr/du for each block, whose
    inputs u may be passive joints of earlier ones.

    Args:
        cell: Whose loops.
        q: Where all joints are, loops closed.
        passive: Which passive joints.
    """
    with IMPORT_LOCK:
        from armillary.kinematics.closing.stages import (
            block_programs,  # for loops alone
        )

    system = cell.loop_system
    rates_of: dict[int, dict[int, Number]] = {}
    for number in system.needed(passive):
        programs = block_programs(cell, number)
        block = programs.block
        rates = programs.rates(
            [q[k] for k in block.inputs], [q[k] for k in block.unknowns]
        )
        for unknown, row in zip(block.unknowns, rates, strict=True):
            own: dict[int, Number] = {}
            for k, rate in zip(block.inputs, row, strict=True):
                through = rates_of[k] if k >= system.count else {k: 1.0}
                for independent, inner in through.items():
                    own[independent] = own.get(independent, 0.0) + rate * inner
            rates_of[unknown] = own
    return rates_of


def followed_rates(
    cell: Workcell,
    q: Sequence[Number],
    moving: Mapping[int, Number],
    passive: Sequence[int],
) -> dict[int, Number]:
    """Return the rates of passive joints.

    Args:
        cell: Whose loops.
        q: Where all joints are, loops closed.
        moving: The rates of independent joints; the others are at rest.
        passive: Which passive joints.
    """
    rates = passive_rates(cell, q, passive)
    followed: dict[int, Number] = {}
    for k in passive:
        parts = [rate * moving[j] for j, rate in rates[k].items() if j in moving]
        followed[k] = sum(parts[1:], parts[0]) if parts else 0.0
    return followed


def independent_columns(
    cell: Workcell, q: Sequence[Number], columns: Sequence[Column]
) -> list[Column]:
    """Return the columns of a Jacobian by independent joints.

    Args:
        cell: Whose loops.
        q: Where all joints are, loops closed.
        columns: By all joints, as if no loop were closed, passive ones last.
    """
    count = cell.loop_system.count
    moving = [
        k
        for k, column in enumerate(columns[count:], count)
        if any(not (isinstance(x, float) and x == 0.0) for x in column)
    ]
    summed = [list(column) for column in columns[:count]]
    rates = passive_rates(cell, q, moving)
    for k in moving:
        for independent, rate in rates[k].items():
            own = summed[independent]
            for row, x in enumerate(columns[k]):
                own[row] = own[row] + x * rate
    return [tuple(column) for column in summed]
