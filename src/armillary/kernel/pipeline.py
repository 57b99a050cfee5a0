"""Several programs as one computation: in turn, in loops, and over shared tables.

A `Pipeline` works on columns: arrays with a name, of which each row of a batch has its
own. A `Program` in it reads columns with the names of its inputs and writes those of
its outputs. Around programs there are seven kinds of regions: `Each` runs once for
each record of a table, `Abreast` for several of them at once, `At` for the record that
a row chooses, `While` as long as a column is above 0, `When` where one is, `Subdivide`
for the pieces of an interval, `NearestPoint` for those points of a tree that may be the
nearest ones, `LeastWidth` for the directions in which a convex body is measured. A row
for which a region does not run keeps its columns, whatever its neighbours do. A `Call`
runs another pipeline, which a record chooses; `Farthest` looks for one of the points of
a table, `Dense` does linear algebra in loops.

A `Table` is shared by all rows of a call, and has as many records as the call says. Its
fields are numbers, positions in a column (`index`), ranges of another table (`span`),
records of one (`record`) or what a `Call` runs (`code`); programs inside of an `Each`
or `At` read them like columns, so their names are unique.

    pairs = Table("pairs", (index("a", "centres"), index("b", "centres"), reals("r")))
    Pipeline("gap", inputs, (pairs,), (fk, Each("pairs", (gap,))), ("least",))

`pipeline_reference.py` computes it with NumPy, `pipeline_code.py` writes the machine
code.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import final

from armillary.digests import hasher
from armillary.errors import KernelError, unknown
from armillary.kernel.stages import (
    BOXES,
    Abreast,
    At,
    Call,
    Dense,
    Each,
    Farthest,
    Leaf,
    LeastWidth,
    NearestPoint,
    NearRecords,
    Stage,
    Subdivide,
    When,
    While,
    dense_in,
    lane_regions_in,
    programs_in,
    several_in,
)
from armillary.kernel.tables import Table
from armillary.trace import Port, Program

__all__ = ["Pipeline", "stage_texts"]


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
        scratch: Columns whose entries are written, by an index, before they are read.
        given: Names of the tables of one record that callers give, where a `Call` runs
            it: those of theirs begin with the same fields.
        outputs: Those columns.
        columns: The shape of every column that it works on.
    """

    name: str
    inputs: tuple[Port, ...]
    tables: tuple[Table, ...]
    stages: tuple[Stage, ...]
    results: tuple[str, ...]
    scratch: tuple[Port, ...] = ()
    given: tuple[str, ...] = ()
    outputs: tuple[Port, ...] = field(init=False)
    columns: Mapping[str, tuple[int, ...]] = field(init=False)

    def __post_init__(self) -> None:
        """Look up every name where it is read.

        Raises:
            KernelError: There is no such column, or it has another shape.
            UnknownName: There is no such table.
        """
        # One walk through the stages in the order in which they run, since a column
        # must be written before it is read.
        check = _Check(self)
        if not (self.inputs and self.results):
            raise check.fault("there must be an input and an output")
        known = {port.name for port in (*self.inputs, *self.scratch)}
        check.stages(self.stages, known, {})
        for name in self.results:
            check.known(name, known, f"an output of '{self.name}'")
        if 0 in map(math.prod, check.shapes.values()):
            raise check.fault("a column is empty")
        outputs = tuple(Port(name, check.shapes[name]) for name in self.results)
        # The dataclass is frozen; these two are derived here.
        object.__setattr__(self, "columns", check.shapes)
        object.__setattr__(self, "outputs", outputs)

    @cached_property
    def fingerprint(self) -> str:
        """Return a digest of all that it computes, whatever its name."""
        text = hasher()
        shared = self.inputs, self.tables, self.results, self.scratch, self.given
        text.update(repr(shared).encode())
        for part in stage_texts(self.stages):
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

    @cached_property
    def has_row_by_row(self) -> bool:
        """Tell whether stages take the rows of a block one after the other."""
        rows = *lane_regions_in(self.stages), *dense_in(self.stages)
        return bool(rows)

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def shape_of(self, name: str) -> tuple[int, ...]:
        """Return the shape of what programs read by the name of a column or field."""
        if name in self.columns:
            return self.columns[name]
        (field,) = (f for table in self.tables for f in table.fields if f.name == name)
        return self.columns[field.of][1:] if field.kind == "index" else field.shape

    @cached_property
    def _by_name(self) -> dict[str, Table]:
        return {table.name: table for table in self.tables}

    def table(self, name: str) -> Table:
        """Return the table of this name.

        Raises:
            UnknownName: There is none.
        """
        found = self._by_name.get(name)
        if found is not None:
            return found
        names = [table.name for table in self.tables]
        raise unknown("table", name, names, owner=f"the pipeline '{self.name}'")


def stage_texts(stages: Sequence[Stage]) -> Iterator[str]:
    """Yield texts that say all about stages."""
    for stage in stages:
        match stage:
            case Program():
                yield f"program {stage.fingerprint};"
                continue
            case Call() | Farthest() | Dense():
                yield f"{type(stage).__name__.lower()} {stage!r};"
                continue
            case Each():
                names = (
                    *(stage.table, stage.within, stage.active),
                    *(stage.together, stage.several),
                )
                yield f"each {names!r} {stage.near!r} ("
            case Abreast():
                how = stage.packed, stage.refilled
                yield f"abreast {stage.table!r} {stage.chosen!r} {how!r} ("
            case At():
                yield f"at {stage.table!r} {stage.record!r} ("
            case While():
                yield f"while {stage.condition!r} {stage.limit} ("
            case When():
                yield f"when {stage.condition!r} {stage.together} ("
            case Subdivide():
                columns = (*stage.piece, stage.longest, stage.covered, stage.ended)
                numbers = stage.shortest, stage.limit, stage.anywhere
                yield f"subdivide {columns!r} {numbers!r} ("
            case NearestPoint():
                fields = stage.tree, stage.balls
                columns = stage.value, stage.least, stage.enough
                columns = (*columns, stage.chosen.name, stage.part)
                yield f"nearest {fields!r} {stage.point} {columns!r} ("
            case LeastWidth():
                columns = *stage.given, stage.axis.name, stage.least
                more = stage.source, stage.touch
                yield f"width {stage.direction} {stage.point} {columns!r} {more} ("
        yield from stage_texts(stage.stages)
        yield ")"


class _Check:
    """The names of a pipeline, collected while each is looked up where it is read."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        given = (*pipeline.inputs, *pipeline.scratch)
        self.shapes = {port.name: port.shape for port in given}
        fields = [one for table in pipeline.tables for one in table.fields]
        self.fields = {one.name: one for one in fields}
        if len(self.fields) < len(fields):
            raise self.fault("two fields have the same name")
        # Ranges lead from a record to those of another table, which must exist.
        self.spans = {one.name: one.of for one in fields if one.kind == "span"}
        # Columns whose numbers may lie otherwise than one entry behind the other.
        several = (self.fields.get(name) for _, name in several_in(pipeline.stages))
        self.by_entries = {one.of for one in several if one}
        others = [one.of for one in fields if one.kind == "record"]
        for table in (*self.spans.values(), *others):
            pipeline.table(table)
        for table in map(pipeline.table, pipeline.given):
            if not table.is_single or any(one.kind != "real" for one in table.fields):
                raise self.fault(
                    f"the table '{table.name}' that callers give must have one record, "
                    "of numbers"
                )
        for name in self.shapes:
            if name in self.fields:
                raise self.fault(f"'{name}' is a field and cannot be an input")

    def stages(  # noqa: PLR0912 - one case for each kind of region
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
            if isinstance(stage, Program | Leaf):
                self.step(stage, known, fields)
                continue
            # A region that may run for no row makes columns for itself alone; one that
            # runs for all rows makes them for what follows, too.
            inner, made = fields, set(known)
            match stage:
                case At():
                    inner, made = {**fields, **self.numbers(stage.table)}, known
                    self.number(stage.record, known, "the position of a record")
                case Each():
                    inner = {**fields, **self.record(stage, known, fields)}
                    # With a single record, and no row that is left alone, it runs once.
                    if self.pipeline.table(stage.table).is_single and not stage.active:
                        made = known
                    if stage.active:
                        self.number(stage.active, known, "the end of a region")
                    if stage.near:
                        self.near(stage, stage.near, known, fields)
                    if stage.several:
                        self.several_records(stage)
                case Abreast():
                    inner = {**fields, **self.abreast(stage, known)}
                case While() | When():
                    self.number(stage.condition, known, "the end of a region")
                case Subdivide():
                    self.number(stage.longest, known, "the length of pieces")
                    for name in stage.piece:
                        self.written(Port(name, ()), made, "a subdivision")
                case NearestPoint():
                    self.tree(stage)
                    for name in (stage.least, stage.enough):
                        self.number(name, known, "what is wanted")
                    self.written(stage.point, made, "a search")
                case LeastWidth():
                    for name in stage.given:
                        self.number(name, known, "what is known of a width")
                    self.known(stage.axis.name, known, "a first direction")
                    for port in (stage.direction, stage.point, stage.axis):
                        self.same(port, (3,), "a width")
                    self.written(stage.direction, made, "a width")
            self.stages(stage.stages, made, inner)
            if isinstance(stage, Abreast):
                self.own_columns(stage, known)
            if isinstance(stage, Subdivide):
                for name in (stage.covered, stage.ended):
                    self.written(Port(name, ()), known, "a subdivision")
            if isinstance(stage, LeastWidth):
                self.known(stage.point.name, made, "the farthest point")
                if stage.source and stage.touch:
                    self.known(stage.source.name, made, "what a point is made of")
                    self.written(stage.touch, known, "a width")
                self.written(Port(stage.least, ()), known, "a width")
            if isinstance(stage, NearestPoint):
                self.number(stage.value, made, "the value of a point")
                self.written(stage.chosen, known, "a search")

    def step(
        self,
        stage: Program | Leaf,
        known: set[str],
        fields: Mapping[str, tuple[int, ...]],
    ) -> None:
        if not isinstance(stage, Farthest):  # of single numbers
            self.whole_columns(stage)
        match stage:
            case Program():
                self.program(stage, known, fields)
            case Call():
                self.call(stage, known, fields)
            case Farthest():
                self.farthest(stage, known)
            case Dense():
                self.dense(stage, known, fields)

    def program(
        self,
        program: Program,
        known: set[str],
        fields: Mapping[str, tuple[int, ...]],
    ) -> None:
        for port in program.inputs:
            shape = self.readable(port.name, known, fields, program.name)
            self.same(port, shape, program.name)
        for port in program.outputs:
            field = self.fields.get(port.name)
            if field is None:
                self.written(port, known, program.name)
                continue
            # Through an index programs write to the column that it points into.
            if field.kind != "index" or port.name not in fields:
                raise self.fault(f"'{port.name}' is a field and cannot be written")
            self.same(port, fields[port.name], program.name)

    def call(
        self, call: Call, known: set[str], fields: Mapping[str, tuple[int, ...]]
    ) -> None:
        field = self.fields.get(call.code)
        if field is None or field.kind != "code" or call.code not in fields:
            raise self.fault(f"no record around a call has the code '{call.code}'")
        for name in call.given:
            field = self.fields.get(name)
            if field is None or field.kind != "record" or name not in fields:
                raise self.fault(f"no record around a call has the record '{name}'")
        for name in call.inputs:
            self.readable(name, known, fields, call.code)
        for port in call.outputs:
            if port.name in self.fields:
                raise self.fault(f"'{port.name}' is a field and cannot be written")
            self.written(port, known, call.code)

    def farthest(self, stage: Farthest, known: set[str]) -> None:
        found = {one.name: one for one in self.pipeline.table(stage.table).fields}
        points = found.get(stage.points)
        if points is None or points.kind != "real" or points.shape[:1] != (3,):
            raise self.fault(f"'{stage.table}' has no points '{stage.points}'")
        self.known(stage.direction, known, "a direction")
        self.same(Port(stage.direction, (3,)), self.shapes[stage.direction], "farthest")
        self.written(stage.output, known, "farthest")

    def dense(
        self, stage: Dense, known: set[str], fields: Mapping[str, tuple[int, ...]]
    ) -> None:
        label = type(stage.operation).__name__
        for name in stage.inputs:
            self.readable(name, known, fields, label)
        if stage.table:
            found = {one.name for one in self.pipeline.table(stage.table).fields}
            for name in stage.fields:
                if name not in found:
                    raise self.fault(f"'{stage.table}' has no field '{name}'")
        for port in stage.outputs:
            if port.name in self.fields:
                raise self.fault(f"'{port.name}' is a field and cannot be written")
            self.written(port, known, label)

    def tree(self, stage: NearestPoint) -> None:
        fields = self.pipeline.table(stage.tree).fields
        named = [(one.name, one.kind, one.shape[:1]) for one in fields]
        if named != [(stage.balls, "real", (4,))]:
            raise self.fault(f"'{stage.tree}' has not the one field '{stage.balls}'")
        for port in (stage.point, stage.chosen):
            self.same(port, (3,), "a search")

    def readable(
        self,
        name: str,
        known: set[str],
        fields: Mapping[str, tuple[int, ...]],
        reader: str,
    ) -> tuple[int, ...]:
        """Return the shape of a column or field that is read."""
        shape = fields.get(name)
        if shape is None:
            self.known(name, known, f"an input of '{reader}'")
            shape = self.shapes[name]
        return shape

    def written(self, port: Port, known: set[str], writer: str) -> None:
        """Note a column that is written."""
        self.same(port, self.shapes.setdefault(port.name, port.shape), writer)
        known.add(port.name)

    def record(
        self, each: Each, known: set[str], fields: Mapping[str, tuple[int, ...]]
    ) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the fields that programs of a region can read."""
        if each.within and self.spans.get(each.within) != each.table:
            raise self.fault(f"'{each.within}' is not a span of '{each.table}'")
        # A range is read of the record around, so there must be one.
        if each.within and each.within not in fields:
            raise self.fault(f"no record around '{each.table}' has '{each.within}'")
        shapes: dict[str, tuple[int, ...]] = {}
        for one in self.pipeline.table(each.table).fields:
            shapes[one.name] = one.shape
            if one.kind == "index":
                self.known(one.of, known, f"the column of '{one.name}'")
                # An index selects an entry along the first axis; a single number has
                # none.
                if not self.shapes[one.of]:
                    raise self.fault(f"the column '{one.of}' is only one number")
                shapes[one.name] = self.shapes[one.of][1:]
        for one in self.pipeline.table(each.table).fields:
            if one.by and shapes.get(one.by) != ():
                raise self.fault(
                    f"what chooses '{one.name}' must be another field of its table, "
                    f"with one number; '{one.by}' is not"
                )
        return shapes

    def abreast(self, stage: Abreast, known: set[str]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the fields that programs of such a region can read."""
        for one in self.pipeline.table(stage.table).fields:
            if one.kind not in {"real", "index"}:
                raise self.fault(
                    f"an `Abreast` reads '{stage.table}', whose field '{one.name}' is "
                    f"of the kind '{one.kind}', neither 'real' nor 'index'"
                )
            if one.by:
                raise self.fault(
                    f"an `Abreast` reads '{stage.table}', whose field '{one.name}' is "
                    "an entry that rows choose"
                )
        loops = sum(isinstance(each, While) for each in stage.stages)
        if stage.refilled and (stage.chosen or loops != 1):
            raise self.fault(
                f"lanes of '{stage.table}' are refilled, for which all records must "
                "run, and one stage be a `While`"
            )
        if stage.chosen:
            self.known(stage.chosen, known, "which records are chosen")
            if len(self.shapes[stage.chosen]) != 1:
                raise self.fault(f"'{stage.chosen}' has not one number for each record")
        return self.record(Each(stage.table, ()), known, {})

    def own_columns(self, stage: Abreast, known: set[str]) -> None:
        """Refuse records that write columns of the row: it has only one of each."""
        for program in programs_in(stage.stages):
            for port in program.outputs:
                if port.name in known and port.name not in self.fields:
                    raise self.fault(
                        f"'{port.name}' is written for each record of "
                        f"'{stage.table}'; write entries of a column, by an index"
                    )

    def several_records(self, each: Each) -> None:
        """Refuse regions whose records cannot run in any order."""
        fields = self.pipeline.table(each.table).fields
        kinds = {one.name: one.kind for one in fields}
        if any(kinds.get(name) != "index" for name in each.several):
            raise self.fault(f"not all of {each.several} are indices of a record")
        if each.within or each.active or each.together or each.near:
            raise self.fault(f"several records of '{each.table}' cannot run at once")
        for stage in each.stages:
            outputs = stage.outputs if isinstance(stage, Program) else ()
            names = {port.name for port in outputs}
            if not names or names - set(each.several):
                raise self.fault(
                    f"records of '{each.table}', several at once, write entries of "
                    f"{each.several}, in programs"
                )

        # A record sees of such columns what it wrote itself, not what others did.
        of = {one.name: one.of for one in fields}
        every = [*programs_in(each.stages)]
        written = {(of[x.name], x.name) for one in every for x in one.outputs}
        for one in every:
            for port in one.inputs:
                column = of.get(port.name)
                others = [k for name, k in written if name == column and k != port.name]
                if column and others:
                    raise self.fault(
                        f"records of '{each.table}', several at once, read "
                        f"'{port.name}', an entry that another record writes through "
                        f"'{others[0]}'; do that in two regions"
                    )

    def whole_columns(self, stage: Program | Call | Dense) -> None:
        """Refuse stages on all entries of a column that several records lead to."""
        inputs = [one if isinstance(one, str) else one.name for one in stage.inputs]
        for name in (*inputs, *(port.name for port in stage.outputs)):
            if name in self.by_entries and len(self.shapes.get(name, ())) > 1:
                raise self.fault(
                    f"a stage reads or writes all of '{name}', of which several "
                    "records at once have entries; read and write it by an index"
                )

    def near(
        self,
        each: Each,
        near: NearRecords,
        known: set[str],
        fields: Mapping[str, tuple[int, ...]],
    ) -> None:
        one = self.pipeline.table(near.table).fields
        if [(x.kind, x.shape) for x in one] != [("real", (6, BOXES))]:
            raise self.fault(f"'{near.table}' has not the one field of {BOXES} boxes")
        is_span = self.spans.get(near.within) == near.table
        if not (each.within and is_span and near.within in fields):
            raise self.fault(f"'{near.within}' is not a span of '{near.table}'")
        for name in (near.low, near.high):
            self.known(name, known, "the end of a box")
            self.same(Port(name, (3,)), self.shapes[name], "a box")

    def numbers(self, table: str) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the fields of a table that has only numbers."""
        shapes: dict[str, tuple[int, ...]] = {}
        for one in self.pipeline.table(table).fields:
            if one.kind != "real":
                raise self.fault(
                    f"an `At` reads '{table}', whose field '{one.name}' is of the kind "
                    f"'{one.kind}', not 'real'; read it in an `Each`, or move it to "
                    "another table"
                )
            shapes[one.name] = one.shape
        return shapes

    def number(self, name: str, known: set[str], role: str) -> None:
        self.known(name, known, role)
        if self.shapes[name]:
            raise self.fault(f"the column '{name}' is not one number")

    def known(self, name: str, known: set[str], role: str) -> None:
        if name not in known:
            listed = ", ".join(sorted(known))
            raise self.fault(f"there is no column '{name}', {role}, yet, of {listed}")

    def same(self, port: Port, shape: tuple[int, ...], where: str) -> None:
        if port.shape != shape:
            raise self.fault(
                f"'{port.name}' has the shape {shape}, in '{where}' {port.shape}"
            )

    def fault(self, message: str) -> KernelError:
        return KernelError(f"In the pipeline '{self.pipeline.name}' {message}.")
