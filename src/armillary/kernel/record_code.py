"""The code that loads another record of a table in each lane."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Final

from armillary.kernel.block_rows import aligned
from armillary.kernel.builder import FunctionBuilder, Value
from armillary.kernel.machine_type import I32, I64, Type
from armillary.kernel.memory import Struct
from armillary.kernel.tables import Table
from armillary.kernel.transpose import load_scattered_rows

__all__ = ["chosen_position", "fill_fields", "lane_records"]

FARTHEST: Final = 2.0**62
"""A position beyond all records that is an integer of 64 bits."""

NEAREST: Final = 2.0**30
"""The same of 32 bits, beyond all records of one number each."""


def fill_fields(
    f: FunctionBuilder,
    real: Type,
    table: Table,
    records: tuple[Value, Value],
    at: Value,
    chosen: Mapping[str, Value],
) -> None:
    """Fill the memory of fields with those of the record at a position per lane.

    Args:
        f: The function.
        real: The type of a vector, with a lane for each record.
        table: The table; its fields are numbers.
        records: The address of its records, and how many there are.
        at: The position of the record of each lane.
        chosen: The memory of fields, a vector for each number.
    """
    # Layouts hold numbers alone, so a record is a row of reals, and an offset is a
    # position in it.
    layout = table.layout(real.bits)
    targets = {
        layout.offsets[field.name] // real.scalar.bytes + k: (chosen[field.name], k)
        for field in table.fields
        if field.name in chosen
        for k in range(math.prod(field.shape))
    }
    # An empty table has no record to load; its fields are NaN.
    nothing, align = f.constant(real, math.nan), aligned(real)
    for base, k in targets.values():
        f.store(nothing, base, k, align=align)
    with f.when(records[1] > 0):
        values = lane_records(f, real, layout, records, at, targets)
        is_nan = at.is_nan()
        for element, (base, k) in targets.items():
            f.store(is_nan.select(nothing, values[element]), base, k, align=align)


def chosen_position(
    f: FunctionBuilder, number: Value, ahead: Value, count: int
) -> Value:
    """Return the position of an entry that a row chooses, see `chosen_index`.

    Args:
        f: The function.
        number: What the row has.
        ahead: By how many entries it is ahead of that.
        count: How many entries there are.
    """
    near = (number > 0.0).select(number, 0.0)
    near = (near < count).select(near, count)
    position = near.to(I64, "fptosi") + ahead
    last = f.constant(I64, count - 1)
    return (position < last).select(position, last)


def lane_records(
    f: FunctionBuilder,
    real: Type,
    layout: Struct,
    table: tuple[Value, Value],
    at: Value,
    wanted: Collection[int],
) -> Mapping[int, Value]:
    """Return numbers of the record at a position per lane, by their places in it.

    Positions are rounded down to those of the table; NaN becomes 0.

    Args:
        f: The function.
        real: The type of a vector, with a lane for each record.
        layout: That of records, which hold numbers alone.
        table: The address of the records, and how many there are, at least one.
        at: The position of the record of each lane.
        wanted: Which numbers of records are loaded.
    """
    records, count = table
    lanes = real.lanes
    size = layout.bytes // real.scalar.bytes
    is_number = size == 1 and lanes > 1
    kind, farthest = (I32, NEAREST) if is_number else (I64, FARTHEST)
    near = (at > 0.0).select(at, 0.0)
    near = (near < farthest).select(near, farthest)
    position = near.to(kind.wide(lanes), "fptosi")
    last = count - 1
    if is_number:  # so many fit into memory
        last = (last < int(NEAREST)).select(last, int(NEAREST)).to(I32, "trunc")
    last = last.splat(lanes)
    position = (position < last).select(position, last)
    if is_number:
        return {0: f.gather(real, records, position)}
    start = position * layout.bytes
    rows = [(f.address(records, start.lane(k)), 0) for k in range(lanes)]
    values = load_scattered_rows(real, rows, size, set(wanted))
    return {k: values[k] for k in wanted}
