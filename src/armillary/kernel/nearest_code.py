"""The code of a `NearestPoint`: the search of a tree of balls for one row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from armillary.kernel.builder import FunctionBuilder, Value
from armillary.kernel.machine_type import I1, I64, Type, bits_of_lanes
from armillary.kernel.memory import Struct
from armillary.kernel.stages import NearestPoint

__all__ = ["NearestCode"]

LEVELS: Final = 10
"""Most levels of a tree, one for each frame."""


LINE: Final = 64
"""Bytes of a line of the cache."""


class NearestCode:
    """The search under construction: the nearest balls first.

    On the way down each level has a frame: what the balls of a record are not nearer
    than, infinite for those that are done, and the record below its first ball.
    """

    def __init__(
        self,
        f: FunctionBuilder,
        real: Type,
        stage: NearestPoint,
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
        self.wide = real.scalar.wide(balls)
        self.below = f.reserve(LEVELS * 8)
        self.bounds = f.reserve(LEVELS * self.wide.bytes)
        self.values = f.reserve(max(balls, real.lanes) * self.scalar.bytes)
        self.depth = f.variable(I64, 0)
        self.least = f.variable(self.scalar, 0.0)
        self.limit = f.variable(self.scalar, 0.0)
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
        self.set_least(least)
        for variable, value in zip(self.found, before, strict=True):
            variable.set(value)
        # A frame of the first record alone.
        self.depth.set(0)
        nothing = f.constant(self.wide, math.inf)
        alone = self.at_lane(f.constant(I64, 0))
        self.push(alone.select(-math.inf, nothing), f.constant(I64, 0))
        with f.forever() as loop:
            n = self.depth.get() - 1
            loop.leave(n < 0)
            bounds = f.load(self.wide, self.bounds, n)
            lowest = self.lowest(bounds)
            # Nothing of this frame is wanted any more.
            with f.when(~(lowest < self.limit.get())):
                self.depth.set(n)
                loop.repeat()
            lane = self.first_of(bounds.equals(lowest.splat(self.balls)))
            rest = self.at_lane(lane).select(math.inf, bounds)
            f.store(rest, self.bounds, n)
            number = f.load(I64, self.below, n) + lane
            record = f.address(tree, number * self.layout.bytes)
            first = f.load(self.scalar, record, self.balls - 1)
            self.measure(record, columns, run)
            values = f.load(self.wide, self.values, align=self.scalar.bytes)
            is_near = values < self.limit.get().splat(self.balls)  # false of NaN
            loop.repeat(~is_near.mask().differs(0))
            near = is_near.select(values, nothing)
            with f.when(first < 0.0):
                self.take(record, near)
                loop.leave(self.least.get() <= enough)
            with f.otherwise():
                below = first.to(I64, "fptosi")
                self.fetch(tree, below, is_near.mask())
                self.push(near, below)
        return [self.least.get(), *(each.get() for each in self.found)]

    def set_least(self, value: Value) -> None:
        """Note the least value so far, and below which bound balls are looked at."""
        self.least.set(value)
        self.limit.set(value * self.stage.part if self.stage.part != 1.0 else value)

    def measure(
        self, record: Value, columns: tuple[Value, Value], run: Callable[[], None]
    ) -> None:
        """Measure all balls of a record: what their points are not nearer than."""
        f, real, lanes = self.f, self.real, self.real.lanes
        point, value = columns
        with f.loop(self.balls, step=lanes) as k:
            numbers = [
                f.load(
                    real,
                    f.element(record, self.scalar, k + axis * self.balls),
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

    def take(self, record: Value, values: Value) -> None:
        """Note the nearest point of a record; one is nearer than all so far."""
        f, balls = self.f, self.balls
        value = self.lowest(values)
        place = self.first_of(values.equals(value.splat(balls)))
        self.set_least(value)
        for axis, variable in enumerate(self.found):
            variable.set(f.load(self.scalar, record, place + axis * balls))

    def lowest(self, values: Value) -> Value:
        """Return the least of some values, none of which is NaN."""
        kind = values.type
        if kind.lanes == 1:
            return values
        # Halves are compared lane by lane: no NaN needs the care of `fmin`.
        while values.type.lanes > 2:
            half = values.type.lanes // 2
            low = values.shuffled(values, range(half))
            high = values.shuffled(values, range(half, 2 * half))
            values = (high < low).select(high, low)
        low, high = values.lane(0), values.lane(1)
        return (high < low).select(high, low)

    def first_of(self, truths: Value) -> Value:
        """Return the first lane in which a truth holds."""
        return self.f.count_trailing_zeros(truths.mask())

    def at_lane(self, lane: Value) -> Value:
        """Return truths that hold in one lane."""
        one = self.f.constant(I64, 1) << lane
        bits = one.to(bits_of_lanes(self.balls), "trunc")
        return bits.to(I1.wide(self.balls), "bitcast")

    def fetch(self, tree: Value, below: Value, near: Value) -> None:
        """Bring the records below some balls into the cache: they come next."""
        f, size = self.f, self.layout.bytes
        name = "@llvm.prefetch.p0"
        f.declared[name] = f"declare void {name}(ptr, i32, i32, i32)"
        bits = f.variable(I64, near)
        with f.forever() as each:
            each.leave(bits.get().equals(0))
            place = f.count_trailing_zeros(bits.get())
            bits.set(bits.get() & (bits.get() - 1))
            record = f.address(tree, (below + place) * size)
            for line in range(0, size, LINE):
                at = f.address(record, line)
                # For reading, of data, to be kept.
                f.do(f"call void {name}(ptr {at.text}, i32 0, i32 3, i32 1)")

    def push(self, bounds: Value, below: Value) -> None:
        """Begin a frame."""
        n = self.depth.get()
        self.f.store(bounds, self.bounds, n)
        self.f.store(below, self.below, n)
        self.depth.set(n + 1)
