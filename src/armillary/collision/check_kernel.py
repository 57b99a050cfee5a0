"""Kernels of collision checks: their code, and the records that it works on.

The code depends on the moving links of a cell and on how many spheres there is room
for; all else is in records, so that another state, margin or rules compile nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, TypeAlias, final

import numpy as np
import numpy.typing as npt

from armillary.collision.check_stages import Question, check_pipeline, compiled
from armillary.collision.check_tables import WHOLE, CheckTables, RecordsBehind
from armillary.collision.columns import (
    RECORDS_OF_SHAPES,
    SHAPES,
    CheckColumns,
    Room,
    records,
)
from armillary.collision.distance.pair_kernel import ValueAsked
from armillary.collision.placed_pairs import Called, PlacedPairs
from armillary.collision.precision import Precision
from armillary.collision.shape_pairs import Placed
from armillary.kernel import Kernel
from armillary.kernel.pipeline_kernel import CompiledPipeline
from armillary.kernel.pipeline_records import PipelineRecords
from armillary.kinematics.moving_links import MovingLinks
from armillary.model.fields import kept
from armillary.trace import Port

__all__ = [
    "Tables",
    "check_kernel",
    "codes_of",
    "columns_of",
    "records_behind",
    "shape_records",
    "sphere_records",
]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

MOST_CACHED: Final = 8
"""Questions whose latest records the tables of a check keep."""

Tables: TypeAlias = dict[str, Mapping[str, Any]]
"""Records of some tables: for each an array for each of its fields."""


def check_kernel(
    pairs: PlacedPairs,
    asked: Question,
    margin: float,
    precision: Precision,
) -> Kernel:
    """Return the kernel of a question; nothing is compiled for another state.

    Args:
        pairs: The pairs of a check.
        asked: The question.
        margin: What is nearer touches [m].
        precision: How it is decided.

    Raises:
        KernelError: As for `compile_pipeline`.
    """
    moving, room, dtype = pairs.moving, pairs.tables.room, precision.dtype
    lanes = pairs.lanes if asked == "clearance" else None

    def made() -> CompiledPipeline:
        return compiled(check_pipeline(moving, room, asked), dtype, lanes)

    # The code is cached beside the moving links, as other checks of the cell share it.
    code = kept(moving, ("check", room, asked, dtype.char, lanes), made)
    question = _CheckQuestion(code, room, asked, margin, precision)
    return _records_of(question, pairs).records.kernel()


def _records_of(question: _CheckQuestion, pairs: PlacedPairs) -> CheckRecords:
    """Return the records of a check, most of them those of the last one like it."""
    # Obstacles are new: their records follow those of the same check without them.
    if pairs.before is not None:
        return _records_of(question, pairs.before).extended(pairs)
    # States that attach the same differ in where bodies are: the records of the last
    # one are those of this one, but for the bodies that moved.
    latest = kept(pairs.tables, "latest records", dict[Any, CheckRecords])
    before = latest.get(question.key)
    now = before and before.moved(pairs)
    if now is None:
        now = CheckRecords.of(question, pairs)
        if len(latest) >= MOST_CACHED:
            latest.clear()
    latest[question.key] = now
    return now


@final
@dataclass(frozen=True, slots=True)
class _CheckQuestion:
    """What is asked, of any pairs.

    Attributes:
        code: The code that answers it.
        room: What the code is made for.
        asked: The question.
        margin: What is nearer touches [m].
        precision: How it is decided.
    """

    code: CompiledPipeline
    room: Room
    asked: Question
    margin: float
    precision: Precision

    @property
    def key(self) -> Hashable:
        """Return what equal questions share."""
        _, rounding, extent, most_q = self.precision
        return id(self.code), self.margin, rounding, extent, most_q.tobytes()

    @property
    def near(self) -> float | None:
        """Return below which distance spheres are near; None if that is not decided."""
        # Whether links touch is compared by squares of distances, clearance by
        # distances.
        is_truth = self.asked == "touching"
        return self.margin + self.precision.rounding if is_truth else None

    def called(self, pairs: PlacedPairs) -> Called:
        """Return the code of pairs of shapes."""
        depth: ValueAsked = "value" if self.asked == "clearance" else "free"
        if self.asked == "touching" and self.margin == 0.0:
            depth = "touch"  # which side of 0 is all that counts
        native = self.code.native
        return pairs.called(depth, native.dtype, native.lanes)

    def records(
        self,
        columns: CheckColumns,
        pairs: PlacedPairs,
        called: Called,
        part: RecordsBehind,
    ) -> Tables:
        """Return the records of spheres, shapes and pairs from some links on."""
        tables, near = pairs.tables, self.near
        return {
            **sphere_records(columns, pairs, part),
            **shape_records(self.room, pairs, part),
            **_link_pairs(columns, tables, near, part),
            **_shape_pairs(columns, tables, near, called, part),
        }


@final
@dataclass(frozen=True, slots=True, eq=False)
class CheckRecords:
    """The records of a check.

    Attributes:
        question: What is asked.
        records: The records of all tables.
        placed: Where the shapes are.
        pose_key: What decides where moving links are, as `MovingLinks.pose_key`.
        largest: The greatest sum of radii of two spheres that are compared [m].
    """

    question: _CheckQuestion
    records: PipelineRecords
    placed: Placed
    pose_key: Hashable
    largest: float

    @classmethod
    def of(cls, question: _CheckQuestion, pairs: PlacedPairs) -> Self:
        """Return the records of a check; see `check_kernel`."""
        columns, called = (
            columns_of(pairs.moving, question.room),
            question.called(pairs),
        )
        every = {
            **pairs.moving.records(pairs.state),
            **_limits(columns, pairs.tables, question.margin, question.precision),
            **question.records(columns, pairs, called, WHOLE),
        }
        packed = PipelineRecords.of(question.code, every, called.callees)
        largest = pairs.tables.largest
        return cls(question, packed, pairs.placed, pairs.pose_key, largest)

    def extended(self, pairs: PlacedPairs) -> Self:
        """Return those of a check of the same pairs, and of some with obstacles."""
        tables, question = pairs.tables, self.question
        part, columns = tables.part, columns_of(pairs.moving, question.room)
        called = question.called(pairs)
        more = question.records(columns, pairs, called, part)
        spheres = (columns.centres,)
        records = records_behind(
            self.records, tables, question.key, more, called, spheres
        )
        if tables.largest > self.largest:
            limits = _limits(columns, tables, question.margin, question.precision)
            first = np.zeros(1, np.int64)
            wanted = {name: (first, given) for name, given in limits.items()}
            records = records.changed(wanted)
        return type(self)(
            question, records, pairs.placed, self.pose_key, tables.largest
        )

    def moved(self, pairs: PlacedPairs) -> Self | None:
        """Return those of a check of the same tables in another state.

        It is None where moving links stand elsewhere: then all are made anew.
        """
        now = pairs.placed
        if pairs.pose_key != self.pose_key:
            return None
        if now is self.placed:
            return self
        # Spheres around links that moved, and around their shapes; then these.
        before, spheres = pairs.moved_from or (now, np.zeros(0, np.int64))
        if before is not self.placed:
            is_other = (self.placed.whole != now.whole).any(axis=(1, 2))
            spheres = np.flatnonzero(is_other)
        links = len(now.spheres) - len(now.rows)
        shapes = spheres[np.searchsorted(spheres, links) :] - links
        changes: dict[str, tuple[Indices, Mapping[str, Any]]] = {
            "spheres": (spheres, {"centre": now.spheres[spheres]}),
            "shapes": (shapes, {"shape_pose": now.matrices[shapes]}),
        }
        changed = self.records.changed(changes)
        return type(self)(self.question, changed, now, self.pose_key, self.largest)


def records_behind(
    known: PipelineRecords,
    tables: CheckTables,
    key: Hashable,
    more: Tables,
    called: Called,
    spheres: Sequence[Port],
) -> PipelineRecords:
    """Return records with those of pairs with obstacles behind them.

    Args:
        known: The records of the tables that these extend.
        tables: The tables.
        key: What else decides.
        more: The records behind.
        called: The code of all pairs of shapes.
        spheres: The columns whose entries are numbered as spheres are.
    """
    # Only sizes and places are new where there were others of the same kinds.
    latest: dict[Any, tuple[PipelineRecords, PipelineRecords]] = {}
    if tables.layout is not None:
        latest = kept(tables.layout, "records", dict[Any, Any])
        before, same = latest.get(key, (None, None))
        if before is known and same is not None:
            return same.with_numbers(more)
    # Spheres around obstacles come between those of links and of shapes.
    links = tables.part.links
    moved = dict.fromkeys(
        (column.name for column in spheres), (links, len(tables.fixed.rows) - links)
    )
    made = known.extended(more, called.callees[len(known.callees) :], moved=moved)
    if len(latest) >= MOST_CACHED:
        latest.clear()
    latest[key] = known, made
    return made


def _limits(
    columns: CheckColumns, tables: CheckTables, margin: float, precision: Precision
) -> Tables:
    """Return the record of what decides, and for which rows."""
    # Squares of distances are wrong by more where distances are large; beyond the
    # largest sum of radii no two spheres touch.
    rounding = precision.rounding
    largest = tables.largest
    record: dict[Port, Any] = {
        columns.margin: [margin],
        columns.rounding: [rounding],
        # (R + r)^2 - (R - r)^2 for the largest R, and some more.
        columns.square_rounding: [4.0 * (largest + margin + rounding) * rounding],
        columns.most_extent: [precision.most_extent],
        columns.most_q: [precision.most_q],
    }
    return {columns.limits.name: records(record)}


def columns_of(moving: MovingLinks, room: Room) -> CheckColumns:
    """Return the columns of checks, which moving links keep."""
    return kept(moving, ("columns", room), lambda: CheckColumns(moving, room))


def sphere_records(
    columns: CheckColumns, pairs: PlacedPairs, part: RecordsBehind = WHOLE
) -> Tables:
    """Return the records of spheres: which link each moves with, and where in it."""
    rows, centres = pairs.tables.spheres(pairs.placed)
    numbers = np.arange(len(centres))
    if part.links:  # those around links, and around their shapes
        links, shapes = (
            len(pairs.tables.fixed.rows),
            len(centres) - len(pairs.placed.rows),
        )
        behind = shapes + part.shapes
        numbers = np.concatenate([numbers[part.links : links], numbers[behind:]])
    record: dict[Port, Any] = {
        columns.carrier_pose: rows[numbers],
        columns.centre: centres[numbers],
        columns.sphere: numbers,
    }
    return {columns.spheres.name: records(record)}


def shape_records(
    room: Room, pairs: PlacedPairs, part: RecordsBehind = WHOLE
) -> Tables:
    """Return the records of shapes: where each is in its moving link, its numbers."""
    tables = pairs.tables
    numbers = tables.numbers_and_spheres if room.has_clouds else tables.numbers
    numbers = numbers[part.shapes :]
    missing = room.numbers - numbers.shape[1]
    if missing:
        numbers = np.pad(numbers, ((0, 0), (0, missing)))
    record = {
        CheckColumns.shape_pose.name: pairs.placed.matrices[part.shapes :],
        CheckColumns.shape_numbers.name: numbers,
    }
    return {SHAPES: record}


def codes_of(both: Indices, called: Called, which: Indices) -> dict[str, Any]:
    """Return the fields of pairs of shapes that lead to both shapes and their code.

    Args:
        both: Both shapes of the pairs, in the order of the code, shape (p, 2).
        called: The code of all pairs.
        which: Which of these they are, shape (p,).
    """
    return dict(zip(RECORDS_OF_SHAPES, both.T, strict=True)) | {
        CheckColumns.distance.name: called.codes[which]
    }


def _link_pairs(
    columns: CheckColumns, tables: CheckTables, near: float | None, part: RecordsBehind
) -> Tables:
    """Return the records of pairs of links; see `_reach`."""
    both, spans = tables.links[part.pairs :], tables.spans[part.pairs :]
    links: dict[Port, Any] = {
        columns.link_a: both[:, 0],
        columns.link_b: both[:, 1],
        columns.link_reach: _reach(tables, both, near),
        columns.of_spheres: spans[:, :2],
        columns.of_shapes: spans[:, 2:],
    }
    return {columns.link_pairs.name: records(links)}


def _shape_pairs(
    columns: CheckColumns,
    tables: CheckTables,
    near: float | None,
    called: Called,
    part: RecordsBehind,
) -> Tables:
    """Return the records of pairs of shapes, those of two spheres apart."""
    # Two spheres are compared by their bounding spheres, which are exact, without code.
    both, shapes, rows = tables.both_spheres, tables.both_shapes, tables.rows_of_shapes
    of_shapes = tables.of_shapes[part.others :]
    both_spheres: dict[Port, Any] = {
        columns.sphere_a: both[:, 0],
        columns.sphere_b: both[:, 1],
        columns.sphere_reach: _reach(tables, both, near),
    }
    others: dict[Port, Any] = {
        columns.shape_a: shapes[:, 0],
        columns.shape_b: shapes[:, 1],
        columns.shape_reach: _reach(tables, shapes, near),
        columns.X_A: rows[:, 0],
        columns.X_B: rows[:, 1],
    }
    codes = codes_of(tables.shapes_in_order, called, of_shapes)
    return {
        columns.sphere_pairs.name: records(both_spheres),
        columns.shape_pairs.name: {**records(others), **codes},
    }


def _reach(tables: CheckTables, both: Indices, near: float | None) -> Array:
    """Return the sums of the radii of pairs of spheres [m].

    near: If not None, the squares of what is nearer than this are returned [m2].
    """
    # Half spaces have infinite radii: they are near everything.
    radii = tables.radii[both].sum(axis=1)
    return radii if near is None else (radii + near) ** 2
