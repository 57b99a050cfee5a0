"""The least motion that meets equations, in loops of machine code; see `LeastMotion`.

It is that of `held_motion` in `ik/task_priority.py`, which says why. Rows that do not
count are left out at first: they change nothing.
"""

from __future__ import annotations

from typing import Final

from armillary.kernel.builder import Value
from armillary.kernel.dense import LeastMotion
from armillary.kernel.factor_code import Factor, packed_row
from armillary.kernel.machine_type import I64
from armillary.kernel.row_code import DenseSite, RowCode, padded

__all__ = ["least_motion_code", "least_motion_numbers"]

ROWS: Final = ("wanted", "y", "more", "rest", "right")
"""Rows of working memory, with a number for each row that counts."""

RATES: Final = ("shares", "rates", "toward", "pressed", "lengths")
"""Those with a number for each rate."""


def least_motion_numbers(rows: int, c: int) -> int:
    """Return the numbers of working memory for so many rows and rates."""
    matrices = 2 * rows * padded(c) + rows * (rows + 1) // 2
    return (
        Factor.numbers(rows)
        + len(ROWS) * padded(rows)
        + len(RATES) * padded(c)
        + padded(matrices)
    )


def least_motion_code(site: DenseSite, motion: LeastMotion) -> None:
    """Append the code."""
    rows, f = site.rows, site.rows.f
    places = [place.start for place in site.inputs]
    task_rows, slot_rows, counts, wanted, free, pull, pressing, small, weights = places
    c = site.sizes[-1]
    most = site.sizes[2]
    width = padded(c)
    left = site.work

    def next_numbers(count: int) -> Value:
        nonlocal left
        start, left = left, rows.at(left, count)
        return start

    start = next_numbers(Factor.numbers(most))
    of_rows = {name: next_numbers(padded(most)) for name in ROWS}
    of_rates = {name: next_numbers(padded(c)) for name in RATES}
    # C, C with its columns divided by W where rates are free, and their product G.
    C, S = (next_numbers(most * width) for _ in range(2))
    G = next_numbers(most * (most + 1) // 2)
    for row in of_rows.values():
        rows.clear(row, padded(most))
    for row in of_rates.values():
        rows.clear(row, width)
    with f.loop(c) as j:
        rows.put(rows.get(free, j) / rows.get(weights, j), of_rates["shares"], j)
    found = f.variable(I64, 0)
    numbers = f.reserve(8 * most)  # which rows they are
    first = 0
    for matrix, size in zip((task_rows, slot_rows), site.sizes[:2], strict=True):
        with f.loop(size // c) as k, f.when(rows.get(counts, k + first) > 0.0):
            at = found.get()
            f.store(k + first, numbers, at)
            own, shared = (rows.at(each, at * width) for each in (C, S))
            rows.clear(own, width)
            rows.clear(shared, width)
            times = rows.get(pressing, k + first)
            with f.loop(c) as j:
                number = rows.get(matrix, k * c + j)
                rows.put(number, own, j)
                rows.put(number * rows.get(of_rates["shares"], j), shared, j)
                size_of = rows.get(of_rates["lengths"], j) + abs(number)
                rows.put(size_of, of_rates["lengths"], j)
            rows.add(of_rates["pressed"], times, own, width)
            rows.put(rows.get(wanted, k + first), of_rows["wanted"], at)
            found.set(at + 1)
        first += size // c
    count = found.get()
    with f.loop(count) as i, f.loop(i + 1) as k:
        product = rows.dot(rows.at(C, i * width), rows.at(S, k * width), width)
        rows.put(product, G, packed_row(i) + k)
    factor = Factor(rows, most, start, count)
    shift = rows.get(small)
    factor.make(G, least=shift, shift=shift)
    # What rates that are pulled miss, then what is left of that.
    rates = of_rates["rates"]
    with f.loop(c) as j:
        rows.put(rows.get(free, j) * rows.get(pull, j), rates, j)

    def miss(to: Value) -> None:
        with f.loop(count) as k:
            got = rows.dot(rows.at(C, k * width), rates, width)
            rows.put(rows.get(of_rows["wanted"], k) - got, to, k)

    more, y = of_rows["more"], of_rows["y"]
    miss(of_rows["right"])
    rows.copy_row(more, of_rows["right"], padded(most))
    with f.loop(1 + motion.refinements) as turn:
        with f.when(turn > 0):
            miss(more)
        factor.forward(more)
        factor.backward(more)
        with f.loop(count) as k:
            rows.add(rates, rows.get(more, k), rows.at(S, k * width), width)
            rows.put(rows.get(y, k) + rows.get(more, k), y, k)
    rows.add(of_rows["rest"], shift, more, padded(most))
    _write(site, motion, count, numbers, C, of_rows, of_rates)


def _write(
    site: DenseSite,
    motion: LeastMotion,
    count: Value,
    numbers: Value,
    C: Value,
    of_rows: dict[str, Value],
    of_rates: dict[str, Value],
) -> None:
    """Append the code that writes the outputs."""
    rows, f = site.rows, site.rows.f
    c, most = site.sizes[-1], site.sizes[2]
    right, rest = of_rows["right"], of_rows["rest"]
    sizes = [rows.dot(row, row, padded(most)) for row in (rest, right)]
    moves = (sizes[0] > sizes[1] * motion.singular).select(
        0.0, f.constant(rows.scalar, 1.0)
    )
    moved, pulls, *by_rate = site.outputs
    rows.put(moves, moved)
    with f.loop(most) as k:
        rows.put(0.0, pulls, k)
    with f.loop(count) as k:
        y = (moves > 0.0).select(rows.get(of_rows["y"], k), rows.get(rest, k))
        rows.put(y, pulls, f.load(I64, numbers, k))
        rows.add(of_rates["toward"], y, rows.at(C, k * padded(c)), padded(c))
    for name, output in zip(RATES[1:], by_rate, strict=True):
        rows.copy(output, of_rates[name], c)
