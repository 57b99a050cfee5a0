"""Pipelines computed with NumPy: the reference for the machine code.

All rows that a region runs for go through its stages together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from armillary.kernel.arguments import broadcast
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.polytope import least_width
from armillary.kernel.references import vectorize
from armillary.kernel.stages import (
    Abreast,
    At,
    Call,
    Dense,
    Each,
    Farthest,
    LeastWidth,
    NearestPoint,
    Stage,
    Subdivide,
    When,
    While,
    programs_in,
)
from armillary.kernel.subdivision import PIECES, covered
from armillary.kernel.tables import Field, Table
from armillary.trace import Port, Program

__all__ = ["Called", "evaluate"]

Array = npt.NDArray[Any]
Called: TypeAlias = Callable[[Array], tuple[Pipeline, Mapping[str, Array]]]
"""From the two addresses of a field of kind `code` to what they are."""


def evaluate(
    pipeline: Pipeline,
    tables: Mapping[str, Array],
    *inputs: Any,
    called: Called | None = None,
) -> tuple[Array, ...]:
    """Compute the outputs of a pipeline with NumPy: the reference.

    Args:
        pipeline: What to compute.
        tables: The records of each table.
        called: What calls in it run.
        inputs: An array for each input, shape (..., *input shape), broadcast together.

    Returns:
        An array of float64 for each output, shape (..., *output shape).
    """
    arrays, batch = broadcast(pipeline, inputs)
    count = math.prod(batch)
    columns = {
        port.name: array.reshape(count, *port.shape).copy()
        for port, array in zip(pipeline.inputs, arrays, strict=True)
    }
    # Entries that no index has written are NaN; machine code leaves what was in memory.
    columns |= {p.name: np.full((count, *p.shape), np.nan) for p in pipeline.scratch}
    run = _PipelineRun(pipeline, tables, count, columns, {}, called)
    run.stages(pipeline.stages, np.arange(count))
    return tuple(
        run.column(port).reshape((*batch, *port.shape)) for port in pipeline.outputs
    )


@dataclass(slots=True)
class _PipelineRun:
    """A run of a pipeline.

    Attributes:
        pipeline: What runs.
        tables: The records of each table.
        count: Rows.
        columns: What has been computed, shape (count, *column shape).
        fields: The fields of records around what runs: each with its value for each
            row, shape (count, *field shape).
        called: What calls run.
    """

    pipeline: Pipeline
    tables: Mapping[str, Array]
    count: int
    columns: dict[str, Array]
    fields: Mapping[str, tuple[Field, Array]]
    called: Called | None

    def column(self, port: Port) -> Array:
        """Return a column, made of NaN if there is none yet."""
        if port.name not in self.columns:
            self.columns[port.name] = np.full((self.count, *port.shape), np.nan)
        return self.columns[port.name]

    def stages(  # noqa: PLR0912 - one case for each kind of stage
        self, stages: Sequence[Stage], rows: Array
    ) -> None:
        """Run stages for some rows."""
        for stage in stages:
            if not rows.size:
                return
            match stage:
                case Program():
                    self.program(stage, rows)
                case Call():
                    self.call(stage, rows)
                case Farthest():
                    self.farthest(stage, rows)
                case Dense():
                    self.dense(stage, rows)
                case Each():
                    self.each(stage, rows)
                case Abreast():
                    for row in rows:
                        self.abreast(stage, row)
                case At():
                    self.at(stage, rows)
                case Subdivide():
                    for row in rows:
                        self.subdivide(stage, row)
                case NearestPoint():
                    for row in rows:
                        self.nearest(stage, row)
                case LeastWidth():
                    for row in rows:
                        self.width(stage, row)
                case When():
                    self.stages(stage.stages, self.positive(stage.condition, rows))
                case While():
                    self.repeat(stage, rows)

    def repeat(self, region: While, rows: Array) -> None:
        for _ in range(region.limit):
            rows_left = self.positive(region.condition, rows)
            if not rows_left.size:
                break
            self.stages(region.stages, rows_left)

    def positive(self, name: str, rows: Array) -> Array:
        return rows[self.columns[name][rows] > 0.0]

    def each(self, each: Each, rows: Array) -> None:
        table, records = self.pipeline.table(each.table), self.tables[each.table]
        around = self.fields
        first, count = 0, len(records)
        if each.within:  # the same for all rows
            first, count = around[each.within][1][0]
        for record in records[first : first + count]:
            # The region ends for all rows with the last one that is active.
            left = self.positive(each.active, rows) if each.active else rows
            if not left.size:
                break
            inner = {
                field.name: (
                    field,
                    np.broadcast_to(record[field.name], (self.count, *field.shape)),
                )
                for field in table.fields
            }
            self.fields = {**around, **inner}
            self.stages(each.stages, left)
        self.fields = around

    def abreast(self, stage: Abreast, row: Any) -> None:
        """Run stages for the records of a row, each as a row of its own."""
        table, records = self.pipeline.table(stage.table), self.tables[stage.table]
        numbers = np.arange(len(records))
        if stage.chosen:
            numbers = numbers[self.columns[stage.chosen][row, : len(records)] > 0.0]
        inner = self.repeated(row, len(numbers), {})
        fields = {one.name: (one, records[one.name][numbers]) for one in table.fields}
        inner.fields = {**inner.fields, **fields}
        inner.stages(stage.stages, np.arange(len(numbers)))
        written = {
            port.name for one in programs_in(stage.stages) for port in one.outputs
        }
        read = {port.name for one in programs_in(stage.stages) for port in one.inputs}
        k = np.arange(len(numbers))
        for field, at in fields.values():
            if field.name in written:
                is_packed = stage.packed and field.name not in read
                to = records[field.name][k] if is_packed else at
                self.columns[field.of][row, to] = inner.columns[field.of][k, at]

    def at(self, at: At, rows: Array) -> None:
        """Run stages once, for each row with the record that it chooses."""
        records, where = self.tables[at.table], self.columns[at.record]
        # As in machine code: clipped to the table, rounded down, NaN for NaN.
        there = ~np.isnan(where) & (len(records) > 0)
        chosen = records[np.clip(where[there], 0, len(records) - 1).astype(np.int64)]
        around, inner = self.fields, dict[str, tuple[Field, Array]]()
        for field in self.pipeline.table(at.table).fields:
            values = np.full((self.count, *field.shape), np.nan)
            values[there] = chosen[field.name]
            inner[field.name] = field, values
        self.fields = {**around, **inner}
        self.stages(at.stages, rows)
        self.fields = around

    def subdivide(self, stage: Subdivide, row: Any) -> None:
        """Cover the interval of a row."""

        def run(*piece: Array) -> tuple[Array, Array, Array]:
            given = (*piece, np.zeros(PIECES))
            own = dict(zip(stage.piece, given, strict=True))
            inner = self.repeated(row, PIECES, own)
            inner.stages(stage.stages, np.arange(PIECES))
            _, back, ahead, ending = (inner.columns[name] for name in stage.piece)
            return back, ahead, ending > 0.0

        found = covered(stage, float(self.columns[stage.longest][row]), run)
        for name, value in zip((stage.covered, stage.ended), found, strict=True):
            self.column(Port(name, ()))[row] = value

    def nearest(self, stage: NearestPoint, row: Any) -> None:
        """Measure all points of a tree, and note the least value."""
        balls = self.tables[stage.tree][stage.balls].astype(np.float64)
        balls = balls[balls[:, 0, -1] < 0.0].transpose(0, 2, 1).reshape(-1, 4)
        points = balls[balls[:, 3] >= 0.0, :3]
        inner = self.repeated(row, len(points), {stage.point.name: points})
        inner.stages(stage.stages, np.arange(len(points)))
        values = inner.columns[stage.value]
        chosen = self.column(stage.chosen)
        values = np.where(np.isnan(values), np.inf, values)
        at = int(np.argmin(values))
        if values[at] < self.columns[stage.least][row]:
            self.columns[stage.least][row] = values[at]
            chosen[row] = points[at]

    def width(self, stage: LeastWidth, row: Any) -> None:
        """Find the least width of the body of a row."""

        def farthest(directions: Array) -> Array:
            count = len(directions)
            inner = self.repeated(row, count, {stage.direction.name: directions})
            inner.stages(stage.stages, np.arange(count))
            return inner.columns[stage.point.name]

        extent, depth, *wanted = (
            float(self.columns[name][row]) for name in stage.given
        )
        axis = self.columns[stage.axis.name][row]
        found = least_width(extent, depth, axis, farthest, *wanted)
        for port, value in zip(
            (Port(stage.depth, ()), stage.axis, Port(stage.least, ())),
            found,
            strict=True,
        ):
            self.column(port)[row] = value
        if stage.touch:
            self.column(stage.touch)[row] = np.nan

    def repeated(self, row: Any, count: int, own: dict[str, Array]) -> _PipelineRun:
        """Return a run of a row, several times, with columns of its own."""
        columns = {
            name: np.repeat(column[row, np.newaxis], count, axis=0)
            for name, column in self.columns.items()
        }
        fields = {
            name: (field, np.repeat(values[row, np.newaxis], count, axis=0))
            for name, (field, values) in self.fields.items()
        }
        return replace(self, count=count, columns={**columns, **own}, fields=fields)

    def program(self, program: Program, rows: Array) -> None:
        inputs = [self.value(port.name, rows) for port in program.inputs]
        # A program without inputs returns one row, not one for each.
        if not inputs:
            inputs, program = [np.zeros(len(rows))], _with_an_input(program)
        outputs = vectorize(program, *inputs)
        values = outputs if isinstance(outputs, tuple) else (outputs,)
        for port, value in zip(program.outputs, values, strict=True):
            if port.name in self.fields:
                field, _ = self.fields[port.name]
                self.columns[field.of][rows, self.positions(port.name, rows)] = value
            else:
                self.column(port)[rows] = value

    def call(self, call: Call, rows: Array) -> None:
        assert self.called is not None, "a kernel knows what it calls"
        _, codes = self.fields[call.code]
        pipeline, own = self.called(codes[0])  # the same for all rows
        tables = dict(own)
        for table, name in zip(pipeline.given, call.given, strict=True):
            field, positions = self.fields[name]
            given = self.tables[field.of][int(positions[0])]
            tables[table] = _begin_of(given, pipeline.table(table))
        inputs = [self.value(name, rows) for name in call.inputs]
        outputs = evaluate(pipeline, tables, *inputs)
        for port, value in zip(call.outputs, outputs, strict=True):
            self.column(port)[rows] = value

    def farthest(self, stage: Farthest, rows: Array) -> None:
        # Points of all records, shape (3, n).
        points = np.concatenate([*self.tables[stage.table][stage.points]], axis=1)
        heights = self.columns[stage.direction][rows] @ points
        self.column(stage.output)[rows] = points.T[np.argmax(heights, axis=1)]

    def dense(self, stage: Dense, rows: Array) -> None:
        inputs = [self.value(name, rows) for name in stage.inputs]
        shared = (self.tables[stage.table],) if stage.table else ()
        for k, row in enumerate(rows):
            outputs = stage.formula(*(value[k] for value in inputs), *shared)
            for port, value in zip(stage.outputs, outputs, strict=True):
                self.column(port)[row] = value

    def value(self, name: str, rows: Array) -> Array:
        if name not in self.fields:
            return self.columns[name][rows]
        field, values = self.fields[name]
        if field.kind == "index":
            return self.columns[field.of][rows, self.positions(name, rows)]
        return values[rows].astype(np.float64)

    def positions(self, name: str, rows: Array) -> Array:
        """Return the positions of the entries that an index has."""
        field, values = self.fields[name]
        at: Array = values[rows]
        if not field.by:
            return at
        count = self.columns[field.of].shape[1]
        near = np.clip(np.nan_to_num(self.value(field.by, rows)), 0.0, count)
        return np.minimum(at + near.astype(np.int64), count - 1)


def _begin_of(record: Any, table: Table) -> Array:
    """Return the record of a table whose numbers another record begins with."""
    numbers = np.concatenate([np.ravel(record[name]) for name in record.dtype.names])
    kinds = [(field.name, np.float64, field.shape) for field in table.fields]
    begin, first = np.zeros(1, kinds), 0
    for field in table.fields:
        size = math.prod(field.shape)
        begin[field.name] = numbers[first : first + size].reshape(field.shape)
        first += size
    return begin


def _with_an_input(program: Program) -> Program:
    """Return a program of constants with an input, which tells how many rows it has."""
    return Program(
        program.name,
        (Port("rows", ()),),
        program.outputs,
        program.instructions,
        program.results,
    )
