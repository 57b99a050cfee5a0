"""The code of a `Farthest` stage.

Of a single row, all points of a record are compared at once; of several rows, all rows
with one point after the other. Both take the first of equal points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar, final

from armillary.kernel.builder import FunctionBuilder, Value
from armillary.kernel.machine_type import I64, Type
from armillary.kernel.memory import Struct
from armillary.kernel.tables import Table

__all__ = ["PointRecords"]

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True)
class PointRecords:
    """Records of points, in a function under construction.

    Attributes:
        f: The function.
        records: Where they lie.
        count: How many there are, at least one.
        layout: How they do.
        field: The field with the points of a record, coordinate by coordinate.
        points: How many a record has.
    """

    f: FunctionBuilder
    records: Value
    count: Value
    layout: Struct
    field: str
    points: int

    @classmethod
    def of(
        cls,
        f: FunctionBuilder,
        records: tuple[Value, Value],
        table: Table,
        bits: int,
        points: str,
    ) -> Self:
        """Return those of a field of a table, whose records lie somewhere.

        Args:
            f: The function.
            records: Where records lie, and how many there are.
            table: The table.
            bits: Those of its numbers.
            points: The name of the field.
        """
        (field,) = (one for one in table.fields if one.name == points)
        return cls(f, *records, table.layout(bits), points, field.shape[1])

    def farthest(self, direction: Sequence[Value]) -> list[Value]:
        """Return the coordinates of the points that are farthest along directions.

        direction: Three numbers, or vectors of them, with a lane for each row.
        """
        is_row = direction[0].type.lanes == 1
        return self._of_row(direction) if is_row else self._of_rows(direction)

    def _of_rows(self, direction: Sequence[Value]) -> list[Value]:
        f, real = self.f, direction[0].type
        best = [f.variable(real, start) for start in (-math.inf, 0.0, 0.0, 0.0)]
        with f.loop(self.count) as k:
            record = self._record(k)
            known = [[each.get() for each in best]]
            for place in range(self.points):
                point = [
                    f.load(real.scalar, self._place(record, real, axis), place)
                    for axis in range(3)
                ]
                wide = [number.splat(real.lanes) for number in point]
                known.append([_height(wide, direction), *wide])
            for each, value in zip(best, _tournament(known, _farther), strict=True):
                each.set(value)
        return [each.get() for each in best[1:]]

    def _of_row(self, direction: Sequence[Value]) -> list[Value]:
        f, scalar, places = self.f, direction[0].type, self.points
        wide = scalar.wide(places)
        along = [number.splat(places) for number in direction]
        # Of each place in a record the best one so far, and where its record begins: of
        # even records and of odd ones, so that comparisons do not wait for each other.
        # The last record is compared twice where their number is odd.
        sides = [
            (f.variable(wide, -math.inf), f.variable(wide.integer, 0)) for _ in range(2)
        ]
        with f.loop(self.count, step=2) as first:
            following = first + 1
            is_there = following < self.count
            both = first, is_there.select(following, first)
            for (best, found), k in zip(sides, both, strict=True):
                record = self._record(k)
                xyz = [
                    f.load(wide, self._place(record, scalar, axis), align=scalar.bytes)
                    for axis in range(3)
                ]
                height = _height(xyz, along)
                is_better = height > best.get()  # false of NaN
                begin = k * self.layout.bytes
                if scalar.bits != 64:
                    begin = begin.to(scalar.integer, "trunc")
                found.set(is_better.select(begin.splat(places), found.get()))
                best.set(is_better.select(height, best.get()))
        of_even, of_odd = ([each.get() for each in side] for side in sides)
        heights, begins = _farther_or_before(of_even, of_odd)
        # The first of the points that are as far as the farthest one.
        steps = (f"{scalar.integer.text} {k * scalar.bytes}" for k in range(places))
        at = begins + Value(f, f"<{', '.join(steps)}>", wide.integer)
        is_farthest = heights.equals(_across_lanes(heights, _greater).splat(places))
        behind = (1 << (scalar.bits - 1)) - 1
        start = _across_lanes(is_farthest.select(at, behind), _less)
        if scalar.bits != 64:
            start = start.to(I64, "zext")
        point = f.address(self.records, start)
        return [f.load(scalar, self._place(point, scalar, axis)) for axis in range(3)]

    def _record(self, number: Value) -> Value:
        return self.f.address(self.records, number * self.layout.bytes)

    def _place(self, record: Value, real: Type, axis: int) -> Value:
        """Return where a coordinate of the points of a record lies."""
        size = axis * self.points * real.scalar.bytes
        return self.f.address(record, self.layout.offsets[self.field] + size)


def _height(point: Sequence[Value], direction: Sequence[Value]) -> Value:
    """Return how far a point is along a direction; products and sums may be fused."""
    both = zip(point, direction, strict=True)
    x, y, z = (a.contracted("fmul", b) for a, b in both)
    return x.contracted("fadd", y).contracted("fadd", z)


def _tournament(known: list[T], best: Callable[[T, T], T]) -> T:
    """Return the best of some: pairs do not wait for each other."""
    while len(known) > 1:
        pairs = zip(known[0::2], known[1::2], strict=False)
        known = [best(a, b) for a, b in pairs] + known[len(known) & ~1 :]
    return known[0]


def _farther(a: list[Value], b: list[Value]) -> list[Value]:
    is_farther = b[0] > a[0]
    return [is_farther.select(y, x) for x, y in zip(a, b, strict=True)]


def _across_lanes(value: Value, best: Callable[[Value, Value], Value]) -> Value:
    """Return the best number of a vector: halves, which may overlap, are compared."""
    while (lanes := value.type.lanes) > 2:
        half = -(-lanes // 2)
        both = range(half), range(lanes - half, lanes)
        value = best(*(value.shuffled(value, some) for some in both))
    return best(value.lane(0), value.lane(lanes - 1))


def _greater(a: Value, b: Value) -> Value:
    return (b > a).select(b, a)


def _less(a: Value, b: Value) -> Value:
    return (b < a).select(b, a)


def _farther_or_before(a: list[Value], b: list[Value]) -> list[Value]:
    is_before = b[0].equals(a[0]) & (b[1] < a[1])
    is_better = (b[0] > a[0]) | is_before
    return [is_better.select(y, x) for x, y in zip(a, b, strict=True)]
