"""Pipelines computed with NumPy: the reference for the machine code.

All rows that a region runs for go through its stages together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from armillary.kernel.arguments import broadcast
from armillary.kernel.pipeline import (
    At,
    Call,
    Each,
    Pipeline,
    Stage,
    Subdivide,
    When,
    While,
)
from armillary.kernel.references import vectorize
from armillary.kernel.subdivision_code import PIECES, ROOM, SHIFTS
from armillary.kernel.tables import Field
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

    def stages(self, stages: Sequence[Stage], rows: Array) -> None:
        """Run stages for some rows."""
        for stage in stages:
            if not rows.size:
                return
            match stage:
                case Program():
                    self.program(stage, rows)
                case Call():
                    self.call(stage, rows)
                case Each():
                    self.each(stage, rows)
                case At():
                    self.at(stage, rows)
                case Subdivide():
                    for row in rows:
                        self.subdivide(stage, row)
                case When():
                    self.stages(stage.stages, self.positive(stage.condition, rows))
                case While():
                    for _ in range(stage.limit):
                        rows_left = self.positive(stage.condition, rows)
                        if not rows_left.size:
                            break
                        self.stages(stage.stages, rows_left)

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
        """Cover the interval of a row; see `subdivision_code.py`."""
        parts, end, ended = [(0.0, 1.0)], 1.0, 0.0
        rounds, longest = 0, self.columns[stage.longest][row]
        while parts:
            low, high = parts[-1]
            is_full = len(parts) > ROOM - 2 * PIECES
            if high - low <= stage.shortest or rounds >= stage.limit or is_full:
                # Where it does not go on, a last round tells whether it ends there.
                nothing = np.zeros(PIECES)
                *_, ending = self.pieces(stage, row, (nothing + low, nothing, nothing))
                end, ended = low, float(ending.any())
                break
            rounds += 1
            each = PIECES
            while each > 2 and len(parts) >= 2 * PIECES // each:
                others = parts[-1 : -(2 * PIECES // each) : -1]
                if any(high - low > 0.5 * each * longest for low, high in others):
                    break
                each //= 2
            taken = PIECES // each
            first, parts = parts[: -taken - 1 : -1], parts[:-taken]
            low, high = first[-1]
            if low + each * longest < high:
                first[-1] = low, low + each * longest
                parts.append((low + each * longest, high))
            before = len(parts)
            pieces: list[tuple[float, float]] = []
            for low, high in first:
                width = (high - low) / each
                inner = [low + k * width for k in range(1, each)]
                pieces += pairwise([low, *inner, high])
            at = np.array([a if ended else 0.5 * (a + b) for a, b in pieces])
            starts, stops = np.array(pieces).T
            back, ahead, ending = self.pieces(stage, row, (at, at - starts, stops - at))
            last = PIECES
            joined = np.nan
            if ending.any():
                last = int(np.argmax(ending))
                parts, end, ended = [], float(at[last]), 1.0
                if starts[last] < end:
                    parts.append((float(starts[last]), end))
                    joined = starts[last]
            for k in reversed(range(last)):
                if not ahead[k] >= stops[k] - at[k]:
                    low = float(at[k] + (ahead[k] if ahead[k] > 0.0 else 0.0))
                    high = parts.pop()[1] if joined == stops[k] else float(stops[k])
                    parts.append((low, high))
                joined = np.nan
                if not back[k] >= at[k] - starts[k]:
                    high = float(at[k] - (back[k] if back[k] > 0.0 else 0.0))
                    parts.append((float(starts[k]), high))
                    joined = starts[k]
            if len(parts) == before:
                longest *= 2.0
        for name, value in ((stage.covered, end), (stage.ended, ended)):
            self.column(Port(name, ()))[row] = value

    def pieces(
        self, stage: Subdivide, row: Any, given: tuple[Array, Array, Array]
    ) -> tuple[Array, Array, Array]:
        """Run the stages for pieces of a row; return what is covered, and the ends."""
        columns = {
            name: np.repeat(column[row, np.newaxis], PIECES, axis=0)
            for name, column in self.columns.items()
        }
        fields = {
            name: (field, np.repeat(values[row, np.newaxis], PIECES, axis=0))
            for name, (field, values) in self.fields.items()
        }
        columns |= dict(zip(stage.piece, (*given, np.zeros(PIECES)), strict=True))
        run = replace(self, count=PIECES, columns=columns, fields=fields)
        run.stages(stage.stages, np.arange(PIECES))
        _, back, ahead, ending = (run.columns[name] for name in stage.piece)
        return back, ahead, ending > 0.0

    def program(self, program: Program, rows: Array) -> None:
        inputs = [self.value(port.name, rows) for port in program.inputs]
        # A program without inputs returns one row, not one for each.
        if not inputs:
            inputs, program = [np.zeros(len(rows))], _with_an_input(program)
        outputs = vectorize(program, *inputs)
        values = outputs if isinstance(outputs, tuple) else (outputs,)
        for port, value in zip(program.outputs, values, strict=True):
            if port.name in self.fields:
                field, at = self.fields[port.name]
                self.columns[field.of][rows, at[rows]] = value
            else:
                self.column(port)[rows] = value

    def call(self, call: Call, rows: Array) -> None:
        assert self.called is not None, "a kernel knows what it calls"
        _, codes = self.fields[call.code]
        pipeline, tables = self.called(codes[0])  # the same for all rows
        inputs = [self.value(name, rows) for name in call.inputs]
        outputs = evaluate(pipeline, tables, *inputs)
        for port, value in zip(call.outputs, outputs, strict=True):
            self.column(port)[rows] = value

    def value(self, name: str, rows: Array) -> Array:
        if name not in self.fields:
            return self.columns[name][rows]
        field, values = self.fields[name]
        if field.kind == "index":
            return self.columns[field.of][rows, values[rows]]
        return values[rows].astype(np.float64)


def _with_an_input(program: Program) -> Program:
    """Return a program of constants with an input, which tells how many rows it has."""
    return Program(
        program.name,
        (Port("rows", ()),),
        program.outputs,
        program.instructions,
        program.results,
    )
