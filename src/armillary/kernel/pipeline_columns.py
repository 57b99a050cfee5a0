"""Which columns of a pipeline its stages read and write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from armillary.kernel.pipeline import Pipeline
from armillary.kernel.stages import (
    Abreast,
    At,
    Call,
    Dense,
    Each,
    Farthest,
    LaneRegion,
    LeastWidth,
    NearestPoint,
    Stage,
    Subdivide,
    When,
    While,
    calls_in,
    dense_in,
    lane_regions_in,
    programs_in,
    searches_in,
)
from armillary.trace import Program

__all__ = [
    "INLINE",
    "IN_REGISTERS",
    "NUMBER",
    "read_by",
    "read_by_programs",
    "read_of_row",
    "with_addresses",
    "written_by",
    "written_by_programs",
    "written_elsewhere",
]

IN_REGISTERS: Final = 64
"""Numbers of a column that may be in registers; LLVM decides."""

NUMBER: Final[tuple[int, ...]] = ()
"""The shape of a column of one number."""

INLINE: Final = 500
"""Programs of at most so many instructions are not functions of their own."""


def with_addresses(pipeline: Pipeline) -> set[str]:
    """Return the columns and fields that must have addresses."""
    names = {field.of for table in pipeline.tables for field in table.fields}
    for call in calls_in(pipeline.stages):
        names.update(call.inputs, (port.name for port in call.outputs))
    for stage in dense_in(pipeline.stages):
        names.update(stage.inputs, (port.name for port in stage.outputs))
    for program in pipeline.programs:
        if len(program.instructions) > INLINE:
            names.update(port.name for port in (*program.inputs, *program.outputs))
    return names


def written_elsewhere(pipeline: Pipeline, stages: Sequence[Stage]) -> list[str]:
    """Return the columns that stages write and that others have written, too."""
    everywhere, here = _writers(pipeline.stages), _writers(stages)
    inputs = {port.name for port in pipeline.inputs}
    columns = [name for name in here if name in pipeline.columns]  # others are fields
    return [n for n in columns if n in inputs or everywhere[n] > here[n]]


def read_by_programs(stages: Sequence[Stage]) -> set[str]:
    """Return the columns and fields that programs in stages read."""
    return {port.name for one in programs_in(stages) for port in one.inputs}


def written_by_programs(stages: Sequence[Stage]) -> set[str]:
    """Return the columns and fields that programs in stages write."""
    return {port.name for one in programs_in(stages) for port in one.outputs}


def read_by(stages: Sequence[Stage]) -> set[str]:
    """Return the columns and fields that stages read."""
    return set(_reads(stages))


def written_by(stages: Sequence[Stage]) -> set[str]:
    """Return the columns and fields that stages write."""
    return set(_writers(stages))


def read_of_row(pipeline: Pipeline, stage: LaneRegion) -> list[str]:
    """Return the columns that such a region reads whole and that others write."""
    fields = {field.name: field for table in pipeline.tables for field in table.fields}

    def columns(names: Iterator[str]) -> Iterator[str]:
        """Yield columns, in place of fields that are positions in them."""
        for name in names:
            field = fields.get(name)
            if field is None or field.kind == "index":
                yield name if field is None else field.of

    everywhere, here = (
        Counter(columns(iter(_writers(stages).elements())))
        for stages in (pipeline.stages, (stage,))
    )
    given = {port.name for port in pipeline.inputs}
    names = list(_reads(stage.stages))
    if isinstance(stage, Abreast):
        own = {one.name for one in pipeline.table(stage.table).fields}
        own |= written_by_programs(stage.stages)
        names = [name for name in names if name not in own]
    read = dict.fromkeys(columns(iter(names)))
    if isinstance(stage, NearestPoint):
        # What is wanted differs from row to row, as what is read does.
        read |= dict.fromkeys((stage.least, stage.enough))
        read.pop(stage.point.name, None)
    if isinstance(stage, LeastWidth):
        read |= dict.fromkeys((*stage.given, stage.axis.name))
        read.pop(stage.direction.name, None)
    return [n for n in read if n in given or everywhere[n] > here[n]]


def _reads(stages: Sequence[Stage]) -> Iterator[str]:
    """Yield the columns and fields that stages read."""
    for stage in stages:
        match stage:
            case Program():
                yield from (port.name for port in stage.inputs)
                continue
            case Call() | Dense():
                yield from stage.inputs
                continue
            case Farthest():
                yield stage.direction
                continue
            case Each():
                yield from (stage.active,) if stage.active else ()
                if stage.near:
                    yield from (stage.near.low, stage.near.high)
            case Abreast():
                yield from (stage.chosen,) if stage.chosen else ()
            case At():
                yield stage.record
            case While() | When():
                yield stage.condition
            case Subdivide():
                yield stage.longest
            case NearestPoint():
                yield from (stage.least, stage.enough)
            case LeastWidth():
                yield from (*stage.given, stage.axis.name)
        yield from _reads(stage.stages)


def _writers(stages: Sequence[Stage]) -> Counter[str]:
    """Return how many stages write each column."""
    leaves = calls_in(stages), searches_in(stages), dense_in(stages)
    writers = [*programs_in(stages), *chain.from_iterable(leaves)]
    written = Counter(port.name for writer in writers for port in writer.outputs)
    for region in lane_regions_in(stages):
        if isinstance(region, Subdivide):
            written.update((*region.piece, region.covered, region.ended))
        elif isinstance(region, LeastWidth):
            results = region.depth, region.axis.name, region.least
            touch = (region.touch.name,) if region.touch else ()
            written.update((region.direction.name, *results, *touch))
        elif isinstance(region, NearestPoint):
            written.update((region.point.name, region.least, region.chosen.name))
    return written
