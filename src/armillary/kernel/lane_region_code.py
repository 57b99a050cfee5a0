"""The code of regions that take several parts of one row at once, each in a lane.

Rows come one after the other. What a row has is copied to all lanes; then stages run
for its records, pieces or directions. Records of several rows may share lanes, see
`shared_lanes_code.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial

from armillary.kernel.abreast_code import (
    AbreastCode,
    fields_in_lanes,
    spread,
)
from armillary.kernel.block_rows import read_lane, write_lane
from armillary.kernel.builder import Value
from armillary.kernel.machine_type import I64
from armillary.kernel.nearest_code import NearestCode
from armillary.kernel.pipeline_columns import NUMBER, read_of_row, written_by_programs
from armillary.kernel.polytope_code import PolytopeCode, polytope_bytes
from armillary.kernel.region_code import (
    Mask,
    PipelineCode,
    active_rows,
    repeat_row,
)
from armillary.kernel.shared_lanes_code import chosen_of_all_rows, refilled_lanes
from armillary.kernel.stages import (
    Abreast,
    LaneRegion,
    LeastWidth,
    NearestPoint,
    Subdivide,
)
from armillary.kernel.subdivision_code import SubdivisionCode

__all__ = ["lane_region"]


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
    # Of these, records read whole what others of their row write.
    is_entangled = any(
        used[n].of in read_of_row(code.pipeline, stage)
        for n in written_by_programs(stage.stages) & used.keys()
    )
    shares_lanes = stage.chosen or stage.refilled
    if shares_lanes and code.permutes and not is_entangled:
        write = refilled_lanes if stage.refilled else chosen_of_all_rows
        write(code, stage, active, own, records)
        code.fields = around
        return
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
    f, shapes = code.f, code.pipeline.columns
    rows, flags = code.columns, code.flags
    of_row = read_of_row(code.pipeline, stage)
    copies = code.memories({name: shapes[name] for name in of_row})
    code.columns = {**rows, **copies, **own}
    code.flags = f.variable(code.bits, 0)
    counted, repeated = active_rows(code, active)
    bits = f.variable(I64, counted)
    with f.forever() as each_row:
        each_row.leave(bits.get().equals(0))
        lane = f.count_trailing_zeros(bits.get())
        bits.set(bits.get() & (bits.get() - 1))
        mine = f.constant(I64, 1) << lane
        # The same as the row before it, as is the padding behind the last row.
        with f.when((repeated & mine).differs(0)):
            inner, code.flags = code.flags, flags
            repeat_row(code, results, lane)
            code.flags = inner
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
