"""The code of regions that take several parts of one row at once, each in a lane.

Rows come one after the other. What a row has is copied to all lanes; then stages run
for its records, pieces or directions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Protocol, TypeAlias

from armillary.kernel.abreast_code import AbreastCode, fields_in_lanes, spread
from armillary.kernel.block_rows import read_lane, write_lane
from armillary.kernel.builder import FunctionBuilder, Value, Variable
from armillary.kernel.machine_type import I64, Type
from armillary.kernel.memory import Struct
from armillary.kernel.nearest_code import NearestCode
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_columns import NUMBER, read_of_row, written_by_programs
from armillary.kernel.polytope_code import PolytopeCode, polytope_bytes
from armillary.kernel.stages import (
    Abreast,
    LaneRegion,
    LeastWidth,
    NearestPoint,
    Stage,
    Subdivide,
)
from armillary.kernel.subdivision_code import SubdivisionCode
from armillary.kernel.tables import Field, Table

__all__ = ["PipelineCode", "lane_region"]

Mask: TypeAlias = Value | None
"""Lanes that count; None for all of them."""


class PipelineCode(Protocol):
    """What a region needs of the function around it.

    Attributes:
        f: The function.
        pipeline: What it computes.
        real: The type of a vector, with a lane for each row.
        scalar: That of one number.
        bits: The integer with a bit for each lane.
        repeated: A bit for each row whose inputs are those of the row before.
        columns: The memory of columns.
        fields: The fields of records around, how records lie, and where.
        flags: Lanes that any program flagged.
    """

    f: FunctionBuilder
    pipeline: Pipeline
    real: Type
    scalar: Type
    bits: Type
    repeated: Value
    columns: dict[str, Value]
    fields: dict[str, tuple[Field, Struct, Value]]
    flags: Variable

    def memory(self, size: int, *, in_registers: bool = False) -> Value:
        """Return memory for a vector for each of some numbers."""
        ...

    def memories(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Value]:
        """Return memory for columns."""
        ...

    def records(self, table: Table) -> tuple[Value, Value]:
        """Return where the records of a table lie, and how many there are."""
        ...

    def stages(self, stages: Sequence[Stage], active: Mask) -> None:
        """Write stages."""
        ...


def lane_region(code: PipelineCode, stage: LaneRegion, active: Mask) -> None:
    """Write such a region, for the lanes of the rows that are active."""
    match stage:
        case Abreast():
            _abreast(code, stage, active)
        case Subdivide():
            _subdivide(code, stage, active)
        case NearestPoint():
            _nearest(code, stage, active)
        case LeastWidth():
            _width(code, stage, active)


def _subdivide(code: PipelineCode, stage: Subdivide, active: Mask) -> None:
    """Write stages for the pieces of one row after the other, in lanes."""
    rows = code.columns
    piece = code.memories(dict.fromkeys(stage.piece, NUMBER))
    loop = SubdivisionCode(code.f, code.real, stage)
    results = [rows[stage.covered], rows[stage.ended]]
    with _row_by_row(code, stage, active, piece, dict.fromkeys(results, 1)) as lane:
        (longest,) = read_lane(code.real, [rows[stage.longest]], lane)
        columns = [code.columns[name] for name in stage.piece]
        run = partial(code.stages, stage.stages, None)
        found = loop.write(longest, columns, run)
        write_lane(found, results, lane)


def _abreast(code: PipelineCode, stage: Abreast, active: Mask) -> None:
    """Write stages for the records of one row after the other, in lanes."""
    rows, shape_of, around = code.columns, code.pipeline.shape_of, code.fields
    table = code.pipeline.table(stage.table)
    used = fields_in_lanes(stage, table)
    written = written_by_programs(stage.stages) - {one.name for one in table.fields}
    own = code.memories({n: shape_of(n) for n in (*used, *written)})
    sizes = {n: math.prod(shape_of(n)) for n in (*used, *rows)}
    given = (stage, table, used), code.records(table), (rows, own, sizes)
    records = AbreastCode(code.f, code.real, *given)
    with _row_by_row(code, stage, active, own, records.results, records.begin) as lane:
        code.fields = {n: x for n, x in around.items() if n not in own}
        with records.groups(lane):
            code.stages(stage.stages, None)
    code.fields = around


def _nearest(code: PipelineCode, stage: NearestPoint, active: Mask) -> None:
    """Write stages for the balls of one row after the other, in lanes."""
    f, rows = code.f, code.columns
    table = code.pipeline.table(stage.tree)
    (balls,) = (one for one in table.fields if one.name == stage.balls)
    layout = table.layout(code.real.bits)
    search = NearestCode(f, code.real, stage, layout, balls.shape[1])
    tree, _ = code.records(table)
    own = code.memories({stage.point.name: (3,), stage.value: NUMBER})
    chosen = [f.element(rows[stage.chosen.name], code.real, k) for k in range(3)]
    results = [rows[stage.least], *chosen]
    with _row_by_row(code, stage, active, own, dict.fromkeys(results, 1)) as lane:
        wanted = read_lane(code.real, [rows[stage.least], rows[stage.enough]], lane)
        before = read_lane(code.real, chosen, lane)
        columns = code.columns[stage.point.name], code.columns[stage.value]
        run = partial(code.stages, stage.stages, None)
        found = search.write(tree, wanted, before, columns, run)
        write_lane(found, results, lane)


def _width(code: PipelineCode, stage: LeastWidth, active: Mask) -> None:
    """Write stages for directions of one row after the other, in lanes."""
    f, rows = code.f, code.columns
    search = PolytopeCode(f, code.real)
    memory = code.memory(-(-polytope_bytes(code.scalar) // code.real.bytes))
    own = code.memories({stage.direction.name: (3,), stage.point.name: (3,)})
    if stage.source:
        own |= code.memories({stage.source.name: (3,)})
    axis = [f.element(rows[stage.axis.name], code.real, k) for k in range(3)]
    known = [rows[stage.depth], *axis]
    wanted = [rows[stage.wanted]] if stage.wanted else []
    results = [*known, rows[stage.least]]
    if stage.touch:
        touch = rows[stage.touch.name]
        results += [f.element(touch, code.real, k) for k in range(3)]
    with _row_by_row(code, stage, active, own, dict.fromkeys(results, 1)) as lane:
        given = read_lane(code.real, [rows[stage.extent], *known, *wanted], lane)
        if not wanted:
            given = [*given, f.constant(code.scalar, -math.inf)]
        columns = code.columns[stage.direction.name], code.columns[stage.point.name]
        run = partial(code.stages, stage.stages, None)
        source = code.columns[stage.source.name] if stage.source else None
        found = search.write(memory, given, columns, run, source)
        write_lane(found, results, lane)


@contextmanager
def _row_by_row(
    code: PipelineCode,
    stage: LaneRegion,
    active: Mask,
    own: Mapping[str, Value],
    results: Mapping[Value, int],
    begin: Callable[[Value], Value] | None = None,
) -> Generator[Value]:
    """Run what follows for each active lane, whose columns are in all lanes then.

    Args:
        code: The function around it.
        stage: The region.
        active: The lanes.
        own: Memory of columns that the region writes itself.
        results: Where what follows writes numbers of each lane, and how many.
        begin: From a lane to whether anything follows for it.
    """
    f, lanes = code.f, code.real.lanes
    shapes = code.pipeline.columns
    rows, flags = code.columns, code.flags
    of_row = read_of_row(code.pipeline, stage)
    copies = code.memories({name: shapes[name] for name in of_row})
    code.columns = {**rows, **copies, **own}
    code.flags = f.variable(code.bits, 0)
    counted = f.constant(code.bits, -1) if active is None else active.packed()
    bits = f.variable(I64, counted.to(I64, "zext") & ((1 << lanes) - 1))
    repeated = code.repeated & (bits.get() << 1)
    with f.forever() as each_row:
        each_row.leave(bits.get().equals(0))
        lane = f.count_trailing_zeros(bits.get())
        bits.set(bits.get() & (bits.get() - 1))
        mine = f.constant(I64, 1) << lane
        # The same as the row before it, as is the padding behind the last row.
        with f.when((repeated & mine).differs(0)):
            for result, size in results.items():
                with f.loop(size) as k:
                    before = f.load(code.scalar, result, k * lanes + lane - 1)
                    f.store(before, result, k * lanes + lane)
            last = (flags.get().to(I64, "zext") & (mine >> 1)) << 1
            flags.set(flags.get() | last.to(code.bits, "trunc"))
            each_row.repeat()
        if begin is not None:
            with f.when(~begin(lane)):
                each_row.repeat()
        for name in of_row:
            size = math.prod(shapes[name])
            spread(f, code.real, rows[name], lane, copies[name], size)
        code.flags.set(0)
        yield lane
        with f.when(code.flags.get().differs(0), unlikely=True):
            flags.set(flags.get() | mine.to(code.bits, "trunc"))
    code.columns, code.flags = rows, flags
