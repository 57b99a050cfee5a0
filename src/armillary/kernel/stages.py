"""Stages of pipelines: programs, regions around them, calls and loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, final

import msgspec

from armillary.kernel.dense import Operation
from armillary.trace import Port, Program, trace

__all__ = [
    "BOXES",
    "Abreast",
    "At",
    "Call",
    "Dense",
    "Each",
    "Farthest",
    "LaneRegion",
    "Leaf",
    "LeastWidth",
    "NearRecords",
    "NearestPoint",
    "Region",
    "Stage",
    "Subdivide",
    "When",
    "While",
    "calls_in",
    "dense_in",
    "lane_regions_in",
    "program",
    "programs_in",
    "searches_in",
    "several_in",
]

BOXES: Final = 16
"""How many records `NearRecords` compares at once."""


def program(
    formula: Callable[..., Any], outputs: str, **inputs: tuple[int, ...]
) -> Program:
    """Return a formula as a program; names of outputs are apart by spaces."""
    names = tuple(outputs.split())
    return trace(formula, name=names[0], outputs=names, **inputs)


@final
class NearRecords(msgspec.Struct, frozen=True):
    """Which records of an `Each` matter: whose box meets a box around all rows.

    For others its stages would change nothing, so that they need not run. Sixteen
    records are compared at once, with a record of another table: its only field, of
    shape (6, 16), has the least three coordinates of their boxes, then the greatest.
    Where the record around has none of those, all of its records run, at most sixteen.

    Attributes:
        table: The name of that table.
        within: A span of the record around, of records for those of its other span.
        low: A column: the least three coordinates of the box of a row.
        high: A column: the greatest.
    """

    table: str
    within: str
    low: str
    high: str


@final
class Each(msgspec.Struct, frozen=True):
    """Stages that run once for each record of a table, in order.

    Attributes:
        table: Its name.
        stages: What runs.
        within: A span of a record around this region, to run for its records only.
        active: A column; rows in which it is not above 0 are left alone, and the region
            ends when no row is left.
        together: Whether it ends with the first row that is left alone, of those that
            are computed at once, or does not begin where there is one: then nothing is
            known of the others.
        near: Which records matter, of those that `within` selects; by default all.
        several: Fields that are positions in columns, one more from each record to the
            next. Where there are any, stages are programs that write entries only,
            those of such fields, and records do not wait for each other: where rows are
            computed one at a time, several records are, each in a lane. All stages read
            and write these columns by indices alone.
    """

    table: str
    stages: tuple[Stage, ...]
    within: str = ""
    active: str = ""
    together: bool = False
    near: NearRecords | None = None
    several: tuple[str, ...] = ()


@final
class Abreast(msgspec.Struct, frozen=True):
    """Stages that run once for each record of a table, several at once.

    They run for the records of one row, each in a lane, then for those of the next
    row. Through an index they write entries of columns, which must not be those of
    another record; other columns that they write are their own.

    Attributes:
        table: Its name; its fields are numbers and indices.
        stages: What runs.
        chosen: A column with a number for each record: only those where it is above 0
            run. By default all.
        packed: Whether entries that stages write, and do not read, are those of the
            first records: as many as run, in order.
        refilled: Whether a lane whose loop has ended takes another record while others
            go on. All records run, and one of the stages is a `While`.
    """

    table: str
    stages: tuple[Stage, ...]
    chosen: str = ""
    packed: bool = False
    refilled: bool = False


@final
class At(msgspec.Struct, frozen=True):
    """Stages that run once for every row, with the record of a table that it chooses.

    A number before or behind the records chooses the first or the last one. Where it
    is NaN, or the table is empty, fields are NaN.

    Attributes:
        table: Its name; its fields are numbers.
        stages: What runs.
        record: A column, the position of the record; rounded down.
    """

    table: str
    stages: tuple[Stage, ...]
    record: str


@final
class While(msgspec.Struct, frozen=True):
    """Stages that are repeated as long as a column is above 0.

    Attributes:
        condition: The column; it is still above 0 where the limit ended the loop.
        stages: What runs.
        limit: Most repetitions.
    """

    condition: str
    stages: tuple[Stage, ...]
    limit: int


@final
class When(msgspec.Struct, frozen=True):
    """Stages that run for rows in which a column is above 0.

    Attributes:
        condition: The column.
        stages: What runs.
        together: Whether they may run for the rows, too, that are computed at once with
            such a row; for stages that change nothing there.
    """

    condition: str
    stages: tuple[Stage, ...]
    together: bool = False


@final
class Subdivide(msgspec.Struct, frozen=True):
    """Stages that cover the interval [0, 1] of a row by pieces, up to its end.

    They run for the pieces of one row, several at once. Of each they read where a
    point of it is, `at`, and how far it reaches from there to both sides, `back` and
    `ahead`, which they reduce to how far it is covered; where the interval ends at
    the point, they write a number above 0 to `ending`. What is left is divided further,
    until the interval is covered up to 1, or to its first end. Columns that others have
    written are those of the row, for all of its pieces.

    Attributes:
        piece: The names of those four columns, which hold one number each.
        stages: What runs.
        longest: A column of the row: no piece is longer than this at first. After a
            round that covers all of its pieces, they may be twice as long.
        covered: A column: up to where the interval is covered.
        ended: A column: 1 where it ends there, else 0.
        shortest: A part as short as this is not divided any more: there it stops.
        limit: Most rounds of pieces.
        anywhere: Whether it stops where any end is found, which need not be the first:
            nothing before that is known to be covered.
    """

    piece: tuple[str, str, str, str]
    stages: tuple[Stage, ...]
    longest: str
    covered: str
    ended: str
    shortest: float
    limit: int
    anywhere: bool = False


@final
class NearestPoint(msgspec.Struct, frozen=True):
    """Stages that measure points of a tree of balls, until the nearest is known.

    They run for the balls of one row, several at once: they read the centre of each,
    `point`, and write its `value`, which must not change by more than the centre moves.
    Columns that others have written are those of the row, for all of its balls.

    A record of the tree has n - 1 balls, and in place of another one, as its x, the
    number of the record below the first of them, that below the next one follows; below
    0 where balls are the points themselves. The radius of balls that are missing is
    minus infinity, as is that of this one. The first record is that around all.

    Attributes:
        tree: The table of records.
        balls: Its only field, of shape (4, n): centres, then radii.
        point: The column that stages read, of three numbers.
        stages: What runs.
        value: The column that they write.
        least: A column of the row: only values below it are wanted. Then it is the
            least of these, if there is one.
        enough: A column of the row: the search ends with a value that is not above it.
        chosen: The column in which the point of that value is left.
        part: Balls are left out, too, where values are not below this part of the least
            one so far, which then is no more than that much larger than the least.
    """

    tree: str
    balls: str
    point: Port
    stages: tuple[Stage, ...]
    value: str
    least: str
    enough: str
    chosen: Port
    part: float = 1.0


@final
class LeastWidth(msgspec.Struct, frozen=True):
    """Stages that find points of a convex body, until its least width is known.

    They run for several directions of one row at once: they read each, `direction`, and
    write the farthest `point` of the body in it. `polytope.py` says what is done with
    these. Columns that others have written are those of the row, for all directions.

    Attributes:
        direction: The column that stages read, a unit vector.
        stages: What runs.
        point: The column that they write.
        extent: A column of the row: the size of the numbers that points are made of.
        depth: A column of the row: a width that is known, or infinity; then the least.
        axis: A column of the row: a unit vector that is looked at first; where
            another width is the least, its direction.
        least: The column in which is left what the width is proven not to be below.
        wanted: A column of the row, or none: a width below it will do. Then `least` is
            0.
        source: A column that stages write, or none: three numbers of which the point is
            a linear function.
        touch: The column in which is left the same of the point in the plane of the
            least width that is nearest to the origin, or NaN where it is not known.
    """

    direction: Port
    stages: tuple[Stage, ...]
    point: Port
    extent: str
    depth: str
    axis: Port
    least: str
    wanted: str = ""
    source: Port | None = None
    touch: Port | None = None

    @property
    def given(self) -> tuple[str, ...]:
        """Return the columns of numbers that it reads."""
        wanted = (self.wanted,) if self.wanted else ()
        return self.extent, self.depth, *wanted


@final
class Call(msgspec.Struct, frozen=True):
    """Another pipeline, which the record around it chooses, on columns of this one.

    It is compiled apart, so that records may choose what was not known when this
    pipeline was compiled.

    Attributes:
        code: A field.
        inputs: Columns and fields that it reads, in the order of its inputs.
        outputs: Columns that it writes, in the order of its outputs.
        given: Fields of the kind `record`: their records are those of the tables that
            it is `given`, in their order.
    """

    code: str
    inputs: tuple[str, ...]
    outputs: tuple[Port, ...]
    given: tuple[str, ...] = ()


@final
class Farthest(msgspec.Struct, frozen=True):
    """The point of a table that is farthest along a direction; the first of equal ones.

    Of a single row, all points of a record are compared at once.

    Attributes:
        table: Its name; it has at least one record.
        points: Its field of points, of shape (3, n): first all first coordinates.
        direction: A column of three numbers; where one is NaN, the output is
            some numbers that are not NaN.
        output: The column that it writes, of three numbers.
    """

    table: str
    points: str
    direction: str
    output: Port

    @property
    def outputs(self) -> tuple[Port, ...]:
        """Return the columns that it writes, as programs and calls do."""
        return (self.output,)


@final
@dataclass(frozen=True, slots=True)
class Dense:
    """Linear algebra in loops, for one row after the other; see `kernel/dense.py`.

    Attributes:
        operation: What is computed.
        inputs: Columns and fields of numbers that it reads, in the order of that.
        outputs: Columns that it writes, likewise.
        formula: The same on floats: from the inputs as arrays, and the records of the
            table where there is one, to the outputs.
        table: A table that it reads, or "".
        fields: Which fields of it.
    """

    operation: Operation
    inputs: tuple[str, ...]
    outputs: tuple[Port, ...]
    formula: Callable[..., Sequence[Any]] = field(repr=False, compare=False)
    table: str = ""
    fields: tuple[str, ...] = ()


LaneRegion: TypeAlias = Abreast | Subdivide | NearestPoint | LeastWidth
"""Regions whose stages run for several parts of one row at once."""

Region: TypeAlias = Each | At | While | When | LaneRegion
Leaf: TypeAlias = Call | Farthest | Dense
Stage: TypeAlias = Program | Leaf | Region


def programs_in(stages: Sequence[Stage]) -> Iterator[Program]:
    """Yield the programs of stages and of regions in them, in order."""
    for stage in stages:
        if isinstance(stage, Program):
            yield stage
        elif not isinstance(stage, Leaf):
            yield from programs_in(stage.stages)


def several_in(stages: Sequence[Stage]) -> Iterator[tuple[str, str]]:
    """Yield the fields of `Each.several`: the table, then the field."""
    for stage in stages:
        if isinstance(stage, Each):
            yield from ((stage.table, name) for name in stage.several)
        if not isinstance(stage, Program | Leaf):
            yield from several_in(stage.stages)


def searches_in(stages: Sequence[Stage]) -> Iterator[Farthest]:
    """Yield the searches of points in stages and in regions of them, in order."""
    return (stage for stage in _leaves_in(stages) if isinstance(stage, Farthest))


def lane_regions_in(stages: Sequence[Stage]) -> Iterator[LaneRegion]:
    """Yield the regions that take one row after the other, in order."""
    for stage in stages:
        if isinstance(stage, LaneRegion):
            yield stage
        if not isinstance(stage, Program | Leaf):
            yield from lane_regions_in(stage.stages)


def calls_in(stages: Sequence[Stage]) -> Iterator[Call]:
    """Yield the calls in stages and in regions of them, in order."""
    return (stage for stage in _leaves_in(stages) if isinstance(stage, Call))


def dense_in(stages: Sequence[Stage]) -> Iterator[Dense]:
    """Yield the linear algebra in stages and in regions of them, in order."""
    return (stage for stage in _leaves_in(stages) if isinstance(stage, Dense))


def _leaves_in(stages: Sequence[Stage]) -> Iterator[Leaf]:
    for stage in stages:
        if isinstance(stage, Leaf):
            yield stage
        elif not isinstance(stage, Program):
            yield from _leaves_in(stage.stages)
