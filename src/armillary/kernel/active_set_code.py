"""The method of Goldfarb and Idnani in loops of machine code; see `ActiveSet`.

It is that of `control/active_set.py`, which says why. Beside that, rows that count are
copied together at first, and normals of active constraints are kept as N' = Q R between
iterations: one that enters adds a row to both, after one that leaves rotations make R
triangular again (Daniel, Gragg, Kaufman and Stewart 1976).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from armillary.kernel.builder import Value, Variable
from armillary.kernel.dense import ActiveSet
from armillary.kernel.factor_code import Factor
from armillary.kernel.intrinsics.minmax import at_least, maximum, minimum
from armillary.kernel.machine_type import I64
from armillary.kernel.row_code import WIDTH, DenseSite, RowCode, padded

__all__ = ["active_set_code", "active_set_numbers"]

VECTORS: Final = ("w", "x", "normal", "rest", "along", "more", "pressures", "numbers")
"""Rows of working memory, one number for each rate or slot."""


def active_set_numbers(c: int, room: int) -> int:
    """Return the numbers of working memory for c rates and so many inequalities."""
    width = padded(c)
    return (
        Factor.numbers(c)
        + (2 * c + len(VECTORS)) * width
        + room * width
        + 2 * padded(room)
    )


@final
@dataclass(frozen=True, slots=True)
class _Near:
    """The inequalities that count.

    Attributes:
        count: How many there are.
        slopes: Their a, in padded rows.
        bounds: Their b.
        numbers: What they are called.
    """

    count: Variable
    slopes: Value
    bounds: Value
    numbers: Value


def active_set_code(site: DenseSite, method: ActiveSet, fields: Sequence[str]) -> None:
    """Append the code of the method.

    Args:
        site: Where the problem is, and where the answer goes.
        method: Its numbers.
        fields: The fields of its table: positions of rows, of whether they count, and
            numbers.
    """
    _ActiveSetCode(site, method).write(fields)


class _ActiveSetCode:
    """The code under construction.

    Q has the orthonormal rows of active constraints, in the order in which they
    entered; row i of R has the parts of normal i along rows 0 to i of Q.
    """

    def __init__(self, site: DenseSite, method: ActiveSet) -> None:
        self.site = site
        self.method = method
        self.rows: RowCode = site.rows
        self.f = site.rows.f
        self.c = site.sizes[1]
        self.width = padded(self.c)
        self.room = site.sizes[-1]
        left = site.work

        def next_rows(count: int, size: int) -> Value:
            nonlocal left
            start, left = left, self.rows.at(left, count * size)
            return start

        self.factor = Factor(self.rows, self.c, left)
        next_rows(1, Factor.numbers(self.c))
        self.Q, self.R = (next_rows(self.c, self.width) for _ in range(2))
        self.vectors = {name: next_rows(1, self.width) for name in VECTORS}
        f = self.f
        self.near = _Near(
            f.variable(I64, 0),
            next_rows(self.room, self.width),
            next_rows(1, padded(self.room)),
            next_rows(1, padded(self.room)),
        )
        scalar = self.rows.scalar
        self.count = f.variable(I64, 0)  # active constraints
        self.worst = f.variable(scalar, 0.0)
        self.number = f.variable(scalar, method.free)
        self.place = f.variable(I64, 0)  # of it: 2 c bounds, then rows
        self.leaving = f.variable(I64, 0)  # the active one that may leave
        self.pressure = f.variable(scalar, 0.0)
        self.scanning = f.variable(I64, 1)
        self.finished = f.variable(scalar, 0.0)

    def write(self, fields: Sequence[str]) -> None:
        """Append all of it."""
        f, method = self.f, self.method
        self.gather(fields)
        self.begin()
        turns = f.variable(I64, 0)
        # Until no constraint is broken, or those that are contradict each other.
        with f.forever() as loop:
            is_last = turns.get() >= method.limit
            self.finished.set(is_last.select(0.0, f.constant(self.rows.scalar, 1.0)))
            loop.leave(is_last)
            turns.set(turns.get() + 1)
            with f.when(self.scanning.get().differs(0)):
                self.scan()
                loop.leave(~(self.worst.get() < -method.broken))
                self.take_normal()
            full, first, outside = self.lengths()
            step = (first < full).select(first, full)
            loop.leave(step >= method.far)
            self.move(step, full, outside)
            is_met = full <= first
            with f.when(is_met):
                loop.leave(self.count.get() >= self.c)
                self.enter(outside)
            with f.otherwise():
                self.leave()
        self.end()

    def gather(self, fields: Sequence[str]) -> None:
        """Copy the inequalities that count."""
        f, rows, near, records = self.f, self.rows, self.near, self.site.records
        assert records is not None
        all_rows, all_nears = self.site.inputs[-2:]
        size = self.site.sizes[-2] // self.room
        layout = records.layout
        with f.loop(records.count) as k:
            record = f.address(records.start, k * layout.bytes)
            row, flag = (
                layout.load(record, name).to(I64, "zext") for name in fields[:2]
            )
            counts = rows.get(all_nears.start, flag * all_nears.step) > 0.0
            with f.when(counts):
                at = near.count.get()
                start = rows.at(all_rows.start, row * (size * all_rows.step))
                slopes = rows.at(near.slopes, at * self.width)
                last = self.width - WIDTH
                rows.clear(rows.at(slopes, last), WIDTH)
                rows.copy(slopes, start, self.c, step=all_rows.step)
                bound = rows.get(start, self.c * all_rows.step)
                rows.put(bound, near.bounds, at)
                rows.put(layout.load(record, fields[2]), near.numbers, at)
                near.count.set(at + 1)

    def begin(self) -> None:
        """Factor H, and put the least of all x into w = -C^-1 g."""
        rows, w = self.rows, self.vectors["w"]
        hessian, gradient = (place.start for place in self.site.inputs[:2])
        self.factor.make(hessian, least=self.method.least)
        for row in self.vectors.values():
            rows.clear(row, self.width)
        with self.f.loop(self.c) as k:
            rows.put(-rows.get(gradient, k), w, k)
        self.factor.forward(w)

    def solve_x(self) -> None:
        """Find x of w."""
        rows, x = self.rows, self.vectors["x"]
        rows.copy_row(x, self.vectors["w"], self.width)
        self.factor.backward(x)

    def scan(self) -> None:
        """Find the constraint that x breaks most, and its a."""
        f, rows, near, x = self.f, self.rows, self.near, self.vectors["x"]
        scalar, worst, number = rows.scalar, self.worst, self.number
        low, high = (place.start for place in self.site.inputs[2:4])
        self.solve_x()
        worst.set(0.0)
        number.set(self.method.free)
        place = self.place
        place.set(0)
        with f.loop(self.c) as k:
            rate = rows.get(x, k)
            rooms = rate - rows.get(low, k), rows.get(high, k) - rate
            for side, room in enumerate(rooms):
                is_worse = room < worst.get()
                worst.set(is_worse.select(room, worst.get()))
                own = k * 2 + side
                place.set(is_worse.select(own, place.get()))
        bounds = place.get()
        named = bounds.to(scalar, "sitofp") + self.method.bound
        number.set((worst.get() < 0.0).select(named, number.get()))
        with f.loop(near.count.get()) as k:
            slopes = rows.at(near.slopes, k * self.width)
            room = rows.dot(slopes, x, self.width) - rows.get(near.bounds, k)
            is_worse = room < worst.get()
            worst.set(is_worse.select(room, worst.get()))
            number.set(is_worse.select(rows.get(near.numbers, k), number.get()))
            place.set(is_worse.select(k + 2 * self.c, place.get()))

    def take_normal(self) -> None:
        """Find the normal n = C^-1 a of the constraint, which is to become active."""
        f, rows, near, scalar = self.f, self.rows, self.near, self.rows.scalar
        # Its a is a row, or e_k or -e_k of a bound.
        normal, at = self.vectors["normal"], self.place.get()
        with f.when(at < 2 * self.c):
            rows.clear(normal, self.width)
            sign = f.constant(scalar, 1.0)
            is_upper = (at & 1).differs(0)
            rows.put(is_upper.select(-sign, sign), normal, at >> 1)
        with f.otherwise():
            slopes = rows.at(near.slopes, (at - 2 * self.c) * self.width)
            rows.copy_row(normal, slopes, self.width)
        self.factor.forward(normal)
        self.pressure.set(0.0)
        self.scanning.set(0)

    def lengths(self) -> tuple[Value, Value, Value]:
        """Return the full step, the partial step, and |z|^2.

        z, the part of the normal outside of the span of active ones, is left in `rest`;
        its parts r along these in `more`.
        """
        f, rows, method = self.f, self.rows, self.method
        normal, z, along, more = (
            self.vectors[name] for name in ("normal", "rest", "along", "more")
        )
        count = self.count.get()
        rows.copy_row(z, normal, self.width)
        rows.clear(along, self.width)
        # Twice, since what is left of a sum of large terms has lost digits.
        with f.loop(2):
            with f.loop(count) as k:
                part = rows.dot(rows.at(self.Q, k * self.width), z, self.width)
                rows.put(part, more, k)
                rows.put(rows.get(along, k) + part, along, k)
            rows.take(
                z,
                self.Q,
                more,
                count=count,
                size=self.width,
                step=1,
                end=self.width,
            )
        outside, size = (rows.dot(row, row, self.width) for row in (z, normal))
        is_new = outside > size * method.dependent
        full = is_new.select(
            -self.worst.get() / is_new.select(outside, 1.0), method.far
        )
        # From parts along Q to parts along normals, from the last to the first.
        rows.copy_row(more, along, self.width)
        first = f.variable(rows.scalar, method.far)
        with f.loop(count) as turn:
            k = count - 1 - turn
            row = rows.at(self.R, k * self.width)
            part = rows.get(more, k) / rows.get(row, k)
            rows.add(more, -part, row, (k & -WIDTH) + WIDTH)
            rows.put(part, more, k)
            # It leaves where its multiplier, which changes by -r, vanishes.
            held = at_least(rows.get(self.vectors["pressures"], k), 0.0)
            shrinks = part > 0.0
            time = shrinks.select(held / shrinks.select(part, 1.0), method.far)
            is_first = time <= first.get()
            first.set(is_first.select(time, first.get()))
            self.leaving.set(is_first.select(k, self.leaving.get()))
        return full, first.get(), outside

    def move(self, step: Value, full: Value, outside: Value) -> None:
        """Go a step along z, while multipliers change."""
        rows = self.rows
        moved = (full < self.method.far).select(step, 0.0)
        rows.add(self.vectors["w"], moved, self.vectors["rest"], self.width)
        pressures = self.vectors["pressures"]
        rows.add(pressures, -step, self.vectors["more"], self.width)
        self.worst.set(self.worst.get() + moved * outside)
        self.pressure.set(self.pressure.get() + step)

    def enter(self, outside: Value) -> None:
        """Add the constraint to the active ones."""
        rows, count = self.rows, self.count.get()
        length = outside.sqrt()
        Q, R = (rows.at(matrix, count * self.width) for matrix in (self.Q, self.R))
        rows.clear(Q, self.width)
        rows.add(Q, 1.0 / length, self.vectors["rest"], self.width)
        rows.copy_row(R, self.vectors["along"], self.width)
        rows.put(length, R, count)
        rows.put(self.pressure.get(), self.vectors["pressures"], count)
        rows.put(self.number.get(), self.vectors["numbers"], count)
        self.count.set(count + 1)
        self.scanning.set(1)

    def leave(self) -> None:
        """Drop the first constraint whose multiplier vanishes."""
        f, rows, width = self.f, self.rows, self.width
        first, last = self.leaving.get(), self.count.get() - 1

        def element(i: Value, k: Value) -> Value:
            return rows.at(self.R, i * width + k)

        # Those that entered behind it move up.
        with f.loop(last, first) as i:
            to, source = (rows.at(self.R, k * width) for k in (i, i + 1))
            rows.copy_row(to, source, width)
            for name in ("pressures", "numbers"):
                rows.put(rows.get(self.vectors[name], i + 1), self.vectors[name], i)
        # Each has one number right of the diagonal now, which rotations take away.
        with f.loop(last, first) as i:
            a, b = (rows.get(element(i, k)) for k in (i, i + 1))
            length = (a * a + b * b).sqrt()
            cosine, sine = a / length, b / length
            with f.loop(last, i) as k:
                a, b = (rows.get(element(k, j)) for j in (i, i + 1))
                rows.put(cosine * a + sine * b, element(k, i))
                rows.put(cosine * b - sine * a, element(k, i + 1))
            rows.put(0.0, element(i, i + 1))
            Q = [rows.at(self.Q, k * width) for k in (i, i + 1)]
            rows.turn(Q[0], Q[1], cosine, sine, width)
        self.count.set(last)

    def end(self) -> None:
        """Write the answer."""
        f, rows, x = self.f, self.rows, self.vectors["x"]
        low, high = (place.start for place in self.site.inputs[2:4])
        found, slots, multipliers, finished = self.site.outputs
        self.solve_x()
        # Rounding may lead beyond a bound.
        with f.loop(self.c) as k:
            bounded = maximum(rows.get(x, k), rows.get(low, k))
            rows.put(minimum(bounded, rows.get(high, k)), found, k)
            is_active = k < self.count.get()
            for row, to, empty in (
                (self.vectors["numbers"], slots, self.method.free),
                (self.vectors["pressures"], multipliers, 0.0),
            ):
                rows.put(is_active.select(rows.get(row, k), empty), to, k)
        rows.put(self.finished.get(), finished)
