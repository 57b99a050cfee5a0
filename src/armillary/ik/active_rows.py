"""Rows of inequalities a'x >= b that hold rates: which they are, and how they change.

Of many rows, no more than there are rates hold x at once, so those are kept in slots,
one for each rate, and equations grow with the rates, not with the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from armillary.spatial.ldl import Rows, inner
from armillary.spatial.vector import Number
from armillary.trace.functions import absolute, maximum, select, sqrt

__all__ = ["FAR", "FREE", "NO_SLOTS", "Hit", "Slots"]

FREE: Final = -1.0
"""The number of the row in a slot that holds none."""

FAR: Final = 1e30
"""A time that no event comes to."""

NOISE: Final = 1e-11
"""Part of the greatest change of a multiplier below which others are rounding."""

TINY: Final = 1e-30


class Hit(NamedTuple):
    """The first of the rows that x comes to on its way.

    Attributes:
        hit_time: After which step.
        hit_number: The number of the row.
        hit_row: Its a.
    """

    hit_time: Number
    hit_number: Number
    hit_row: Sequence[Number]


class Slots(NamedTuple):
    """The rows that hold x.

    Attributes:
        slots: The number of the row in each slot, or FREE.
        slot_rows: Its a, brought to a common length; zeros where there is none.
        pressures: Its multiplier: how much it presses against x, 0 or more.
    """

    slots: list[Number]
    slot_rows: Rows
    pressures: list[Number]

    @classmethod
    def empty(cls, n: int) -> Slots:
        """Return the slots of n rates, which hold nothing."""
        return cls([FREE] * n, [[0.0] * n for _ in range(n)], [0.0] * n)

    def first(self, count: int) -> Slots:
        """Return the first of the slots, which are filled before others."""
        return Slots(self.slots[:count], self.slot_rows[:count], self.pressures[:count])

    @property
    def filled(self) -> list[Number]:
        """Return 1 for slots that hold a row, else 0."""
        return [select(number > FREE, 1.0, 0.0) for number in self.slots]

    def times(self, changes: Sequence[Number]) -> list[Number]:
        """Return after which step each row no longer presses against x.

        changes: Of the multipliers, for a step of 1.
        """
        size: Number = 0.0
        for change in changes:
            size = maximum(size, absolute(change))
        return [
            select(
                filled * (0.0 - change) > NOISE * size,
                pressure / select(change < 0.0, 0.0 - change, 1.0),
                FAR,
            )
            for filled, pressure, change in zip(
                self.filled, self.pressures, changes, strict=True
            )
        ]

    def pressed(self, by: Sequence[Number]) -> Slots:
        """Return the slots after their multipliers have changed."""
        changed = [
            filled * maximum(a + b, 0.0)
            for filled, a, b in zip(self.filled, self.pressures, by, strict=True)
        ]
        return self._replace(pressures=changed)

    def without(self, leaves: Sequence[Number]) -> Slots:
        """Return the slots without the rows for which `leaves` is 1."""
        stays = [1.0 - number for number in leaves]
        return Slots(
            [
                select(left > 0.0, FREE, number)
                for left, number in zip(leaves, self.slots, strict=True)
            ],
            [
                [s * a for a in row]
                for s, row in zip(stays, self.slot_rows, strict=True)
            ],
            [s * a for s, a in zip(stays, self.pressures, strict=True)],
        )

    def with_row(
        self, hit: Hit, enters: Number, weights: Sequence[Number], length: Number
    ) -> Slots:
        """Return the slots with one more row, in the first that is empty.

        Args:
            hit: The row.
            enters: 1 where it enters, 0 where nothing does.
            weights: The diagonal of W.
            length: What sqrt(a' W^-1 a) is brought to.
        """
        square = inner(
            [a / w for a, w in zip(hit.hit_row, weights, strict=True)], hit.hit_row
        )
        factor = length / sqrt(maximum(square, TINY))
        numbers: list[Number] = []
        rows: Rows = []
        for filled, number, row in zip(
            self.filled, self.slots, self.slot_rows, strict=True
        ):
            here = (1.0 - filled) * enters
            enters = enters - here
            numbers.append(select(here > 0.0, hit.hit_number, number))
            rows.append(
                [
                    select(here > 0.0, factor * a, b)
                    for a, b in zip(hit.hit_row, row, strict=True)
                ]
            )
        return self._replace(slots=numbers, slot_rows=rows)


NO_SLOTS: Final = Slots([], [], [])
