"""Several programs as one computation: in turn, in loops, and over shared tables.

A `Pipeline` works on columns: arrays with a name, of which each row of a batch has its
own. A `Program` in it reads columns with the names of its inputs and writes those of
its outputs. Around programs there are three kinds of regions: `Each` runs once for
each record of a table, `While` as long as a column is above 0, `When` where one is. A
row for which a region does not run keeps its columns, whatever its neighbours do.

A `Table` is shared by all rows of a call, and has as many records as the call says. Its
fields are numbers, positions in a column (`index`) or ranges of another table (`span`);
programs inside of an `Each` read them like columns, so their names are unique.

    pairs = Table("pairs", (index("a", "centres"), index("b", "centres"), reals("r")))
    Pipeline("gap", inputs, (pairs,), (fk, Each("pairs", (gap,))), ("least",))

`evaluate` is the reference, `pipeline_code.py` writes the machine code.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from armillary.errors import KernelError, unknown
from armillary.kernel.arguments import broadcast
from armillary.kernel.tables import Field, Table
from armillary.kernel.vectorize import vectorize
from armillary.trace import Port, Program

__all__ = ["Each", "Pipeline", "Stage", "When", "While", "evaluate", "programs_in"]

Array = npt.NDArray[Any]


@final
@dataclass(frozen=True, slots=True)
class Each:
    """Stages that run once for each record of a table, in order.

    Attributes:
        table: Its name.
        stages: What runs.
        within: A span of a record around this region, to run for its records only.
        going: A column; rows in which it is not above 0 are left alone, and the region
            ends when no row is left.
    """

    table: str
    stages: tuple[Stage, ...]
    within: str = ""
    going: str = ""


@final
@dataclass(frozen=True, slots=True)
class While:
    """Stages that are repeated as long as a column is above 0.

    Attributes:
        going: The column; it is still above 0 where the limit ended the loop.
        stages: What runs.
        limit: Most repetitions.
    """

    going: str
    stages: tuple[Stage, ...]
    limit: int


@final
@dataclass(frozen=True, slots=True)
class When:
    """Stages that run for rows in which a column is above 0.

    Attributes:
        going: The column.
        stages: What runs.
    """

    going: str
    stages: tuple[Stage, ...]


Region: TypeAlias = Each | While | When
Stage: TypeAlias = Program | Region


@final
@dataclass(frozen=True)
class Pipeline:
    """Programs in turn and in regions, see above.

    Attributes:
        name: What messages call it.
        inputs: Columns that a call gives.
        tables: What all rows of a call share.
        stages: What runs.
        results: Names of the columns that a call returns.
        outputs: Those columns.
        columns: The shape of every column that it works on.
    """

    name: str
    inputs: tuple[Port, ...]
    tables: tuple[Table, ...]
    stages: tuple[Stage, ...]
    results: tuple[str, ...]
    outputs: tuple[Port, ...] = field(init=False)
    columns: Mapping[str, tuple[int, ...]] = field(init=False)

    def __post_init__(self) -> None:
        """Look up every name where it is read.

        Raises:
            KernelError: There is no such column, or it has another shape.
            UnknownName: There is no such table.
        """
        check = _Check(self)
        if not (self.inputs and self.results):
            raise check.fault("there must be an input and an output")
        known = {port.name for port in self.inputs}
        check.stages(self.stages, known, {})
        for name in self.results:
            check.known(name, known, f"an output of '{self.name}'")
        if 0 in map(math.prod, check.shapes.values()):
            raise check.fault("a column is empty")
        outputs = tuple(Port(name, check.shapes[name]) for name in self.results)
        object.__setattr__(self, "columns", check.shapes)
        object.__setattr__(self, "outputs", outputs)

    @cached_property
    def fingerprint(self) -> str:
        """Return a digest of all that it computes, whatever its name."""
        text = hashlib.sha256()
        text.update(repr((self.inputs, self.tables, self.results)).encode())
        for part in _parts(self.stages):
            text.update(part.encode())
        return text.hexdigest()

    @property
    def programs(self) -> list[Program]:
        """Return its programs in order."""
        return list(programs_in(self.stages))

    @property
    def operation_count(self) -> int:
        """Return the number of instructions that compute something, each once."""
        return sum(program.operation_count for program in self.programs)

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def table(self, name: str) -> Table:
        """Return the table of this name.

        Raises:
            UnknownName: There is none.
        """
        for table in self.tables:
            if table.name == name:
                return table
        names = [table.name for table in self.tables]
        raise unknown("table", name, names, owner=f"the pipeline '{self.name}'")


def programs_in(stages: Sequence[Stage]) -> Iterator[Program]:
    """Yield the programs of stages and of regions in them, in order."""
    for stage in stages:
        if isinstance(stage, Program):
            yield stage
        else:
            yield from programs_in(stage.stages)


def _parts(stages: Sequence[Stage]) -> Iterator[str]:
    """Yield texts that say all about stages."""
    for stage in stages:
        match stage:
            case Program():
                yield f"program {stage.fingerprint};"
                continue
            case Each():
                yield f"each {stage.table!r} {stage.within!r} {stage.going!r} ("
            case While():
                yield f"while {stage.going!r} {stage.limit} ("
            case When():
                yield f"when {stage.going!r} ("
        yield from _parts(stage.stages)
        yield ")"


class _Check:
    """The names of a pipeline, collected while each is looked up where it is read."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.shapes = {port.name: port.shape for port in pipeline.inputs}
        fields = [one for table in pipeline.tables for one in table.fields]
        self.fields = {one.name for one in fields}
        if len(self.fields) < len(fields):
            raise self.fault("two fields have the same name")
        self.spans = {one.name: one.of for one in fields if one.kind == "span"}
        for table in self.spans.values():
            pipeline.table(table)

    def stages(
        self,
        stages: Sequence[Stage],
        known: set[str],
        fields: Mapping[str, tuple[int, ...]],
    ) -> None:
        """Check stages.

        Args:
            stages: What to check.
            known: Columns that have numbers; those that are made are added.
            fields: Shapes of the fields of records around the stages.
        """
        for stage in stages:
            if isinstance(stage, Program):
                self.program(stage, known, fields)
                continue
            inner = fields
            if isinstance(stage, Each):
                inner = {**fields, **self.record(stage, known, fields)}
            if not isinstance(stage, Each) or stage.going:
                self.known(stage.going, known, "the end of a region")
                if self.shapes[stage.going]:
                    raise self.fault(f"the column '{stage.going}' is not one number")
            self.stages(stage.stages, set(known), inner)

    def program(
        self,
        program: Program,
        known: set[str],
        fields: Mapping[str, tuple[int, ...]],
    ) -> None:
        for port in program.inputs:
            shape = fields.get(port.name)
            if shape is None:
                self.known(port.name, known, f"an input of '{program.name}'")
                shape = self.shapes[port.name]
            self.same(port, shape, program)
        for port in program.outputs:
            if port.name in self.fields:
                raise self.fault(f"'{port.name}' is a field and cannot be written")
            self.same(port, self.shapes.setdefault(port.name, port.shape), program)
            known.add(port.name)

    def record(
        self, each: Each, known: set[str], fields: Mapping[str, tuple[int, ...]]
    ) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the fields that programs of a region can read."""
        if each.within and self.spans.get(each.within) != each.table:
            raise self.fault(f"'{each.within}' is not a span of '{each.table}'")
        if each.within and each.within not in fields:
            raise self.fault(f"no record around '{each.table}' has '{each.within}'")
        found: dict[str, tuple[int, ...]] = {}
        for one in self.pipeline.table(each.table).fields:
            found[one.name] = one.shape
            if one.kind == "index":
                self.known(one.of, known, f"the column of '{one.name}'")
                if not self.shapes[one.of]:
                    raise self.fault(f"the column '{one.of}' is only one number")
                found[one.name] = self.shapes[one.of][1:]
        return found

    def known(self, name: str, known: set[str], role: str) -> None:
        if name not in known:
            listed = ", ".join(sorted(known))
            raise self.fault(f"there is no column '{name}', {role}, yet, of {listed}")

    def same(self, port: Port, shape: tuple[int, ...], program: Program) -> None:
        if port.shape != shape:
            raise self.fault(
                f"'{port.name}' has the shape {shape}, in '{program.name}' {port.shape}"
            )

    def fault(self, message: str) -> KernelError:
        return KernelError(f"In the pipeline '{self.pipeline.name}' {message}.")


def evaluate(
    pipeline: Pipeline, tables: Mapping[str, Array], *inputs: Any
) -> tuple[Array, ...]:
    """Compute the outputs of a pipeline with NumPy: the reference.

    Args:
        pipeline: What to compute.
        tables: The records of each table.
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
    run = _Run(pipeline, tables, count, columns, {})
    run.stages(pipeline.stages, np.arange(count))
    return tuple(
        run.column(port).reshape(*batch, *port.shape) for port in pipeline.outputs
    )


@dataclass(slots=True)
class _Run:
    """A run of a pipeline.

    Attributes:
        pipeline: What runs.
        tables: The records of each table.
        count: Rows.
        columns: What has been computed, shape (count, *column shape).
        fields: Of the records around what runs: what each is, and its value.
    """

    pipeline: Pipeline
    tables: Mapping[str, Array]
    count: int
    columns: dict[str, Array]
    fields: Mapping[str, tuple[Field, Any]]

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
                case Each():
                    self.each(stage, rows)
                case When():
                    self.stages(stage.stages, self.going(stage.going, rows))
                case While():
                    for _ in range(stage.limit):
                        rows_left = self.going(stage.going, rows)
                        if not rows_left.size:
                            break
                        self.stages(stage.stages, rows_left)

    def going(self, name: str, rows: Array) -> Array:
        return rows[self.columns[name][rows] > 0.0]

    def each(self, each: Each, rows: Array) -> None:
        table, records = self.pipeline.table(each.table), self.tables[each.table]
        around = self.fields
        first, count = around[each.within][1] if each.within else (0, len(records))
        for record in records[first : first + count]:
            left = self.going(each.going, rows) if each.going else rows
            if not left.size:
                break
            own = {one.name: (one, record[one.name]) for one in table.fields}
            self.fields = {**around, **own}
            self.stages(each.stages, left)
        self.fields = around

    def program(self, program: Program, rows: Array) -> None:
        given = [self.value(port, rows) for port in program.inputs]
        if not given:
            given, program = [np.zeros(len(rows))], _with_an_input(program)
        found = vectorize(program, *given)
        values = found if isinstance(found, tuple) else (found,)
        for port, value in zip(program.outputs, values, strict=True):
            self.column(port)[rows] = value

    def value(self, port: Port, rows: Array) -> Array:
        if port.name not in self.fields:
            return self.columns[port.name][rows]
        one, value = self.fields[port.name]
        if one.kind == "index":
            return self.columns[one.of][rows, int(value)]
        shared: Array = np.asarray(value, np.float64)
        return np.broadcast_to(shared, (len(rows), *port.shape))


def _with_an_input(program: Program) -> Program:
    """Return a program of constants with an input, which tells how many rows it has."""
    return Program(
        program.name,
        (Port("rows", ()),),
        program.outputs,
        program.instructions,
        program.results,
    )
