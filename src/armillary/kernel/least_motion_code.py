"""The least motion that meets equations, in loops of machine code; see `SolveMotion`.

It is that of `held_motion` in `ik/task_priority.py`, which says why. Rows that do not
count are left out at first: they change nothing.
"""

from __future__ import annotations

from typing import Final, final

from armillary.kernel.builder import Value
from armillary.kernel.dense import SolveMotion
from armillary.kernel.factor_code import Factor, packed_row
from armillary.kernel.machine_type import I64
from armillary.kernel.row_code import DenseSite, padded

__all__ = ["least_motion_code", "least_motion_numbers"]

OF_ROWS: Final = ("wanted", "y", "more", "rest", "right")
"""Rows of working memory, with a number for each row that counts."""

OF_RATES: Final = ("shares", "rates", "toward", "pressed", "lengths")
"""Those with a number for each rate; the last three are outputs."""


def least_motion_numbers(rows: int, c: int) -> int:
    """Return the numbers of working memory for so many rows and rates."""
    return (
        Factor.numbers(rows)
        + len(OF_ROWS) * padded(rows)
        + len(OF_RATES) * padded(c)
        + 2 * rows * padded(c)
        + rows * (rows + 1) // 2
    )


def least_motion_code(site: DenseSite, motion: SolveMotion) -> None:
    """Append the code."""
    code = _LeastMotionCode(site)
    code.gather()
    code.factor_rows()
    code.solve(motion.refinements)
    code.write(motion.singular)


@final
class _LeastMotionCode:
    """The code under construction.

    C has the rows that count, S the same divided by W where rates are free, G = C S'.
    """

    def __init__(self, site: DenseSite) -> None:
        self.site = site
        self.rows = site.rows
        self.f = site.rows.f
        # See `SolveMotion` for the order of inputs.
        self.most, self.c = site.sizes[2], site.sizes[-1]
        self.width = padded(self.c)
        left = site.work

        def next_numbers(count: int) -> Value:
            nonlocal left
            start, left = left, self.rows.at(left, count)
            return start

        self.factor_start = next_numbers(Factor.numbers(self.most))
        self.of_rows = {name: next_numbers(padded(self.most)) for name in OF_ROWS}
        self.of_rates = {name: next_numbers(self.width) for name in OF_RATES}
        self.C, self.S = (next_numbers(self.most * self.width) for _ in range(2))
        self.G = next_numbers(self.most * (self.most + 1) // 2)
        self.found = self.f.variable(I64, 0)
        self.numbers = self.f.reserve(8 * self.most)  # of the rows that count
        for row in self.of_rows.values():
            self.rows.clear(row, padded(self.most))
        for row in self.of_rates.values():
            self.rows.clear(row, self.width)

    def given(self, k: int) -> Value:
        """Return where an input is."""
        return self.site.inputs[k].start

    def gather(self) -> None:
        """Copy the rows that count, and sum what outputs need of them."""
        f, rows = self.f, self.rows
        counts, free, weights = self.given(2), self.given(4), self.given(8)
        with f.loop(self.c) as j:
            share = rows.get(free, j) / rows.get(weights, j)
            rows.put(share, self.of_rates["shares"], j)
        first = 0
        for matrix, size in enumerate(self.site.sizes[:2]):
            with (
                f.loop(size // self.c) as k,
                f.when(rows.get(counts, k + first) > 0.0),
            ):
                self.gather_row(rows.at(self.given(matrix), k * self.c), k + first)
            first += size // self.c

    def gather_row(self, source: Value, number: Value) -> None:
        """Copy one row."""
        f, rows, at = self.f, self.rows, self.found.get()
        wanted, pressing = self.given(3), self.given(6)
        lengths, pressed = self.of_rates["lengths"], self.of_rates["pressed"]
        f.store(number, self.numbers, at)
        own, shared = (rows.at(matrix, at * self.width) for matrix in (self.C, self.S))
        rows.clear(own, self.width)
        rows.clear(shared, self.width)
        with f.loop(self.c) as j:
            value = rows.get(source, j)
            rows.put(value, own, j)
            rows.put(value * rows.get(self.of_rates["shares"], j), shared, j)
            rows.put(rows.get(lengths, j) + abs(value), lengths, j)
        rows.add(pressed, rows.get(pressing, number), own, self.width)
        rows.put(rows.get(wanted, number), self.of_rows["wanted"], at)
        self.found.set(at + 1)

    def factor_rows(self) -> None:
        """Factor G, and a small number."""
        f, rows, width = self.f, self.rows, self.width
        self.count = self.found.get()
        with f.loop(self.count) as i, f.loop(i + 1) as k:
            own, shared = rows.at(self.C, i * width), rows.at(self.S, k * width)
            rows.put(rows.dot(own, shared, width), self.G, packed_row(i) + k)
        self.small = rows.get(self.given(7))
        self.factor = Factor(rows, self.most, self.factor_start, self.count)
        self.factor.make(self.G, least=self.small, shift=self.small)

    def solve(self, refinements: int) -> None:
        """Find y and the rates, which begin as those that are pulled to."""
        f, rows = self.f, self.rows
        free, pull, rates = self.given(4), self.given(5), self.of_rates["rates"]
        more, y = self.of_rows["more"], self.of_rows["y"]
        with f.loop(self.c) as j:
            rows.put(rows.get(free, j) * rows.get(pull, j), rates, j)
        self.miss(self.of_rows["right"])
        rows.copy_row(more, self.of_rows["right"], padded(self.most))
        with f.loop(1 + refinements) as turn:
            with f.when(turn > 0):
                self.miss(more)
            self.factor.forward(more)
            self.factor.backward(more)
            with f.loop(self.count) as k:
                step = rows.get(more, k)
                rows.add(rates, step, rows.at(self.S, k * self.width), self.width)
                rows.put(rows.get(y, k) + step, y, k)
        rows.add(self.of_rows["rest"], self.small, more, padded(self.most))

    def miss(self, to: Value) -> None:
        """Write what rates miss of what is wanted."""
        rows, wanted = self.rows, self.of_rows["wanted"]
        with self.f.loop(self.count) as k:
            own = rows.at(self.C, k * self.width)
            got = rows.dot(own, self.of_rates["rates"], self.width)
            rows.put(rows.get(wanted, k) - got, to, k)

    def write(self, singular: float) -> None:
        """Write the outputs."""
        f, rows = self.f, self.rows
        right, rest, y = (self.of_rows[name] for name in ("right", "rest", "y"))
        unmet, asked = (rows.dot(row, row, padded(self.most)) for row in (rest, right))
        one = f.constant(rows.scalar, 1.0)
        moves = (unmet > asked * singular).select(0.0, one)
        moved, pulls, *by_rate = self.site.outputs
        rows.put(moves, moved)
        with f.loop(self.most) as k:
            rows.put(0.0, pulls, k)
        with f.loop(self.count) as k:
            change = (moves > 0.0).select(rows.get(y, k), rows.get(rest, k))
            rows.put(change, pulls, f.load(I64, self.numbers, k))
            own = rows.at(self.C, k * self.width)
            rows.add(self.of_rates["toward"], change, own, self.width)
        for name, output in zip(OF_RATES[1:], by_rate, strict=True):
            rows.copy(output, self.of_rates[name], self.c)
