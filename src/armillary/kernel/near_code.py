"""The code of `NearRecords`: records whose boxes meet a box around all lanes."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final

from armillary.kernel.builder import EndlessLoop, FunctionBuilder, Value
from armillary.kernel.machine_type import I64, Type
from armillary.kernel.memory import Struct
from armillary.kernel.stages import BOXES

__all__ = ["near_records"]

AT_ONCE: Final = 4
"""Records of boxes that are compared before the first record runs: 64 bits."""


@contextmanager
def near_records(
    f: FunctionBuilder,
    real: Type,
    box: Sequence[Value],
    ranges: tuple[Value, Value, Struct],
    records: tuple[Value, Value],
) -> Generator[tuple[Value, EndlessLoop]]:
    """Run what follows for each record whose box meets that of the lanes.

    Args:
        f: The function.
        real: The type of columns.
        box: Least coordinates of the boxes of lanes, then the greatest.
        ranges: Where the first record of boxes lies, how many there are, and how they
            lie in memory.
        records: The positions of the first record that these are around, and of that
            behind the last one.

    Yields:
        The position of a record, and the loop.
    """
    boxes, count, layout = ranges
    wide, scalar = real.scalar.wide(BOXES), real.scalar
    first, end = records
    # Without boxes all records run, which are few.
    every = (f.constant(I64, 1) << (end - first)) - 1
    bits = f.variable(I64, count.equals(0).select(every, 0))
    number, base = f.variable(I64, 0), f.variable(I64, first)
    with f.forever() as loop:
        with f.when(bits.get().equals(0)):
            loop.leave(number.get() >= count)
            base.set(first + number.get() * BOXES)
            # The box of the lanes is not kept: registers are wanted for what follows.
            ends = least_and_greatest(real, box)
            more = number.get() + AT_ONCE
            more = (more > count).select(count, more)
            with f.loop(more - number.get()) as k:
                at = f.address(boxes, (number.get() + k) * layout.bytes)
                misses: Value | None = None
                for j in range(3):
                    least, most = (
                        f.load(wide, at, m, align=scalar.bytes) for m in (j, 3 + j)
                    )
                    # Where a number is NaN nothing is left out.
                    one = (least > ends[3 + j]) | (ends[j] > most)
                    misses = one if misses is None else misses | one
                assert misses is not None
                bits.set(bits.get() | ((~misses).mask() << (k * BOXES)))
            number.set(more)
            loop.repeat(bits.get().equals(0))
        lane = f.count_trailing_zeros(bits.get())
        bits.set(bits.get() & (bits.get() - 1))
        yield base.get() + lane, loop


def least_and_greatest(real: Type, box: Sequence[Value]) -> list[Value]:
    """Return the least and the greatest coordinates of all lanes, each in all boxes."""
    # Two vectors become one, half of whose lanes is of each, and so on.
    parts = [value if k < 3 else -value for k, value in enumerate(box)]
    where = [(k, 0) for k in range(len(parts))]
    half = real.lanes
    while half > 1:
        half //= 2
        if len(parts) == 1:
            (one,) = parts
            parts = [
                _less(one, one.shuffled(one, [k ^ half for k in range(real.lanes)]))
            ]
            continue
        halves: list[Value] = []
        for one, other in zip(parts[::2], [*parts[1::2], parts[-1]], strict=False):
            lanes = range(real.lanes)
            kept = [k + real.lanes if k & half else k for k in lanes]
            moved = [(k ^ half) + (real.lanes if k & half else 0) for k in lanes]
            halves.append(_less(one.shuffled(other, kept), one.shuffled(other, moved)))
        parts = halves
        where = [(k // 2, lane + half * (k % 2)) for k, lane in where]
    ends = [
        one.splat(BOXES) if one.type.lanes == 1 else one.shuffled(one, [lane] * BOXES)
        for one, lane in ((parts[k], lane) for k, lane in where)
    ]
    return [*ends[:3], *(-end for end in ends[3:])]


def _less(one: Value, other: Value) -> Value:
    return (other < one).select(other, one)
