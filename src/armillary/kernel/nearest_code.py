"""The code of a `Nearest`: the search of a tree of balls for one row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from armillary.kernel.builder import FunctionBuilder, Value
from armillary.kernel.machine_type import I64, Type
from armillary.kernel.memory import Struct
from armillary.kernel.pipeline import Nearest

__all__ = ["NearestCode"]

LEVELS: Final = 10
"""Most levels of a tree: 16 to this power are more points than memory holds."""


class NearestCode:
    """The search under construction: the nearest balls first, a stack of the others."""

    def __init__(
        self,
        f: FunctionBuilder,
        real: Type,
        stage: Nearest,
        layout: Struct,
        balls: int,
    ) -> None:
        """Reserve memory.

        Args:
            f: The function.
            real: The type of columns: a vector with a lane for each ball.
            stage: The region.
            layout: How a record lies in memory.
            balls: How many balls a record has, a power of two.
        """
        self.f, self.real, self.scalar = f, real, real.scalar
        self.stage, self.layout, self.balls = stage, layout, balls
        # Each level leaves at most all balls of a record but one, and the last all.
        room = LEVELS * balls
        self.records = f.reserve(room * 8)
        self.bounds = f.reserve(room * self.scalar.bytes)
        self.values = f.reserve(max(balls, real.lanes) * self.scalar.bytes)
        self.count = f.variable(I64, 0)
        self.least = f.variable(self.scalar, 0.0)
        self.found = [f.variable(self.scalar, 0.0) for _ in range(3)]

    def write(
        self,
        tree: Value,
        wanted: Sequence[Value],
        before: Sequence[Value],
        columns: tuple[Value, Value],
        run: Callable[[], None],
    ) -> list[Value]:
        """Write the search; return the least value, and the point that has it.

        Args:
            tree: Where the records lie.
            wanted: Below which value points are wanted, and which value is enough.
            before: The point that is returned if there is none.
            columns: Where the points and their values are.
            run: Writes the stages.
        """
        f = self.f
        least, enough = wanted
        self.least.set(least)
        for variable, value in zip(self.found, before, strict=True):
            variable.set(value)
        f.store(f.constant(I64, 0), self.records, 0)
        f.store(f.constant(self.scalar, -math.inf), self.bounds, 0)
        self.count.set(1)
        with f.forever() as loop:
            n = self.count.get() - 1
            loop.leave(n < 0)
            self.count.set(n)
            # What was found meanwhile may be nearer than all of these balls.
            loop.repeat(self.least.get() <= f.load(self.scalar, self.bounds, n))
            number = f.load(I64, self.records, n)
            record = f.address(tree, number * self.layout.bytes)
            first = self.layout.load(record, self.stage.first)
            self.measure(record, columns, run)
            with f.when(first < 0.0):
                self.take(record)
                loop.leave(self.least.get() <= enough)
            with f.otherwise():
                self.push(first.to(I64, "fptosi"))
        return [self.least.get(), *(each.get() for each in self.found)]

    def measure(
        self, record: Value, columns: tuple[Value, Value], run: Callable[[], None]
    ) -> None:
        """Measure all balls of a record: what their points are not nearer than."""
        f, real, lanes = self.f, self.real, self.real.lanes
        start = f.address(record, self.layout.offsets[self.stage.balls])
        point, value = columns
        with f.loop(self.balls, step=lanes) as k:
            numbers = [
                f.load(
                    real,
                    f.element(start, self.scalar, k + axis * self.balls),
                    align=self.scalar.bytes,
                )
                for axis in range(4)
            ]
            for axis in range(3):
                f.store(numbers[axis], f.element(point, real, axis))
            run()
            bound = f.load(real, value) - numbers[3]
            f.store(
                bound,
                f.element(self.values, self.scalar, k),
                align=self.scalar.bytes,
            )

    def take(self, record: Value) -> None:
        """Note the nearest point of a record, if it is nearer than all so far."""
        f, balls = self.f, self.balls
        wide = self.scalar.wide(balls)
        values = f.load(wide, self.values, align=self.scalar.bytes)
        nearer = (values < self.least.get().splat(balls)).mask()  # false of NaN
        with f.when(nearer.differs(0)):
            place, value = self.lowest(values)
            self.least.set(value)
            start = f.address(record, self.layout.offsets[self.stage.balls])
            for axis, variable in enumerate(self.found):
                at = place + axis * balls
                variable.set(f.load(self.scalar, start, at))

    def lowest(self, values: Value) -> tuple[Value, Value]:
        """Return where the least of some values is, of which one is a number."""
        f = self.f
        usual = values.is_nan().select(math.inf, values)
        least = f.intrinsic("vector.reduce.fmin", self.scalar, usual, of=usual.type)
        place = f.count_trailing_zeros(usual.equals(least.splat(self.balls)).mask())
        return place, least

    def push(self, first: Value) -> None:
        """Put balls that may have a nearer point on the stack, the nearest last."""
        f, balls = self.f, self.balls
        wide = self.scalar.wide(balls)
        values = f.load(wide, self.values, align=self.scalar.bytes)
        bits = f.variable(I64, (values < self.least.get().splat(balls)).mask())
        with f.when(bits.get().differs(0)):
            nearest, value = self.lowest(values)
            others = ~(f.constant(I64, 1) << nearest)
            bits.set(bits.get() & others)
            with f.forever() as each:
                each.leave(bits.get().equals(0))
                place = f.count_trailing_zeros(bits.get())
                bits.set(bits.get() & (bits.get() - 1))
                bound = f.load(self.scalar, self.values, place)
                self.push_one(first + place, bound)
            self.push_one(first + nearest, value)

    def push_one(self, number: Value, bound: Value) -> None:
        n = self.count.get()
        self.f.store(number, self.records, n)
        self.f.store(bound, self.bounds, n)
        self.count.set(n + 1)
