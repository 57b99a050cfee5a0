"""Kernels of collision checks: their code, and the records that it works on.

The code depends on the moving links of a cell and on how many spheres there is room
for; all else is in records, so that another state, margin or rules compile nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.collision.check_stages import (
    Question,
    check_pipeline,
    compiled,
    lesser,
)
from armillary.collision.check_tables import WHOLE, CheckTables, RecordsBehind
from armillary.collision.columns import (
    RECORDS_OF_SHAPES,
    SHAPES,
    CheckColumns,
    Room,
    records,
)
from armillary.collision.distance.pair_kernel import ValueAsked
from armillary.collision.pair_records import Changes, Tables, records_of
from armillary.collision.placed_pairs import Called, PlacedPairs
from armillary.collision.precision import Precision, double_precision, precision_of
from armillary.errors import KernelError
from armillary.kernel import Kernel
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import (
    CompiledPipeline,
    compile_pipeline,
)
from armillary.kernel.pipeline_records import PipelineRecords
from armillary.kinematics.moving_links import MovingLinks
from armillary.model.fields import kept, kept_few
from armillary.spatial.vector import Number
from armillary.trace import Port, trace

__all__ = [
    "check_records",
    "codes_of",
    "columns_of",
    "moved_records",
    "shape_records",
    "sphere_records",
    "whole_kernel",
]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


def check_records(
    pairs: PlacedPairs, asked: Question, margin: float
) -> PipelineRecords:
    """Return the records of a question; nothing is compiled for another state.

    Args:
        pairs: The pairs of a check.
        asked: The question.
        margin: What is nearer touches [m].

    Raises:
        KernelError: As for `compile_pipeline`.
    """

    def made() -> _CheckQuestion:
        # Distances are results, and need all digits; a truth does not.
        choose = precision_of if asked == "touching" else double_precision
        return _question(pairs, asked, margin, choose(pairs))

    # Checks in which bodies moved a little ask the same.
    key = asked, margin, pairs.decides
    return records_of(kept_few(pairs.tables, "questions", key, made), pairs).records


def _question(
    pairs: PlacedPairs, asked: Question, margin: float, precision: Precision
) -> _CheckQuestion:
    """Return a question with the code that answers it; see `check_records`."""
    moving, room, dtype = pairs.moving, pairs.tables.room, precision.dtype
    lanes = pairs.lanes if asked == "clearance" else None

    def made() -> CompiledPipeline:
        return compiled(check_pipeline(moving, room, asked), dtype, lanes)

    # The code is cached beside the moving links, as other checks of the cell share it.
    code = kept(moving, ("check", room, asked, dtype.char, lanes), made)
    return _CheckQuestion(
        code, columns_of(moving, room), room, asked, margin, precision
    )


def whole_kernel(
    pairs: PlacedPairs,
    asked: Question,
    margin: float,
    dtype: np.dtype[Any],
    *,
    exact: bool = False,
) -> Kernel:
    """Return the kernel of a question with nothing behind it, for code elsewhere.

    Its answers are those of `Question`, with what moves together counted, too.

    Args:
        pairs: The pairs of a check.
        asked: The question.
        margin: What is nearer touches [m].
        dtype: What it computes in.
        exact: Whether meshes are treated by their triangles.

    Raises:
        KernelError: It cannot answer alone, or not in this type.
    """
    fault = ""
    if exact:
        fault = "its triangles are asked in Python; make it without exact=True"
    elif not pairs.moving.is_compiled:
        fault = "a script of this cell runs in Python only"
    elif not len(pairs.tables.links):
        fault = "no pair of links moves against each other"
    elif asked == "touching" and not pairs.are_apart(margin):
        fault = "shapes that move together touch, whatever joint positions are"
    if fault:
        raise KernelError(f"The collision check cannot be compiled: {fault}.")
    precision = double_precision(pairs)
    if dtype != precision.dtype:
        precision = precision_of(pairs)
        if precision.dtype != dtype or asked == "clearance":
            raise KernelError(
                f"Distances of this cell are not known well enough in {dtype}; compile "
                "the collision check with dtype=float64."
            )
    question = _question(pairs, asked, margin, precision)
    kernel = records_of(question, pairs).records.kernel()
    constant = pairs.constant
    if asked == "touching" or not constant < np.inf:
        return kernel
    # Of what moves together the distance is known now.
    pipeline = kernel.computation
    assert isinstance(pipeline, Pipeline)
    (found,) = pipeline.outputs

    def with_constant(value: Number) -> Number:
        return lesser(value, constant)

    ports = {found.name: found.shape}
    last = trace(with_constant, name="least", outputs=("least",), **ports)
    whole = replace(pipeline, stages=(*pipeline.stages, last), results=("least",))
    code = compile_pipeline(whole, dtype=dtype, lanes=kernel.lanes)
    return code.bound(kernel.tables, kernel.callees)


@final
class _CheckQuestion(msgspec.Struct, frozen=True, eq=False, dict=True):
    """What is asked, of any pairs.

    Attributes:
        code: The code that answers it.
        columns: Its columns.
        room: What the code is made for.
        asked: The question.
        margin: What is nearer touches [m].
        precision: How it is decided.
    """

    code: CompiledPipeline
    columns: CheckColumns
    room: Room
    asked: Question
    margin: float
    precision: Precision

    @cached_property
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

    @property
    def numbered(self) -> Sequence[Port]:
        """Return the columns whose entries are numbered as spheres are."""
        return (self.columns.centres,)

    def whole(self, pairs: PlacedPairs, called: Called) -> Tables:
        """Return all records."""
        return {
            **pairs.moving.records(pairs.state),
            **self.limits(pairs),
            **self.behind(pairs, called, WHOLE),
        }

    def behind(self, pairs: PlacedPairs, called: Called, part: RecordsBehind) -> Tables:
        """Return the records of spheres, shapes and pairs from some links on."""
        columns, tables, numbers = self.columns, pairs.tables, self.sizes(pairs, part)
        others = {
            **sphere_records(columns, pairs, part),
            **_link_pairs(columns, tables, part),
            **_shape_pairs(columns, tables, called, part),
        }
        return {
            name: {**others.get(name, {}), **given} for name, given in numbers.items()
        }

    def sizes(self, pairs: PlacedPairs, part: RecordsBehind) -> Tables:
        """Return those of their numbers that depend on sizes and places of shapes."""
        columns, tables, near = self.columns, pairs.tables, self.near
        both, shapes = tables.both_spheres, tables.both_shapes
        links = tables.links[part.pairs :]
        numbers = numbers_of_spheres(pairs, part)
        return {
            columns.spheres.name: {columns.centre.name: pairs.placed.spheres[numbers]},
            columns.link_pairs.name: {
                columns.link_reach.name: _reach(tables, links, near)
            },
            columns.sphere_pairs.name: {
                columns.sphere_reach.name: _reach(tables, both, near)
            },
            columns.shape_pairs.name: {
                columns.shape_reach.name: _reach(tables, shapes, near)
            },
            **shape_records(self.room, pairs, part),
        }

    def places(self, pairs: PlacedPairs, spheres: Indices, shapes: Indices) -> Changes:
        """Return the numbers that change where bodies moved."""
        return moved_records(self.columns, pairs, spheres, shapes)

    def limits(self, pairs: PlacedPairs) -> Tables:
        """Return the record of what decides, and for which rows."""
        return _limits(self.columns, pairs.tables, self.margin, self.precision)


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


def numbers_of_spheres(pairs: PlacedPairs, part: RecordsBehind) -> Indices:
    """Return the numbers of spheres from some links on, in the order of records."""
    links, spheres = len(pairs.tables.fixed.rows), len(pairs.tables.centres)
    if not part.links:
        return np.arange(spheres)
    # Those around links, and around their shapes.
    behind = spheres - len(pairs.placed.rows) + part.shapes
    return np.concatenate([np.arange(part.links, links), np.arange(behind, spheres)])


def sphere_records(
    columns: CheckColumns, pairs: PlacedPairs, part: RecordsBehind = WHOLE
) -> Tables:
    """Return the records of spheres: which link each moves with, and where in it."""
    rows, centres = pairs.tables.spheres(pairs.placed)
    numbers = numbers_of_spheres(pairs, part)
    record: dict[Port, Any] = {
        columns.carrier_pose: rows[numbers],
        columns.centre: centres[numbers],
        columns.sphere: numbers,
    }
    return {columns.spheres.name: records(record)}


def moved_records(
    columns: CheckColumns, pairs: PlacedPairs, spheres: Indices, shapes: Indices
) -> Changes:
    """Return the numbers of spheres and shapes that moved, see `PairQuestion`.

    shapes: Those whose spheres are the last ones of `spheres`.
    """
    blocks = pairs.placed.blocks(spheres)
    own = blocks[len(spheres) - len(shapes) :]
    return {
        columns.spheres.name: (spheres, {columns.centre.name: blocks[:, :3, 8]}),
        SHAPES: (shapes, {columns.shape_pose.name: own[:, :3, 4:8]}),
    }


def shape_records(
    room: Room, pairs: PlacedPairs, part: RecordsBehind = WHOLE
) -> Tables:
    """Return the records of shapes: where each is in its moving link, its numbers."""
    numbers = pairs.tables.padded(room)[part.shapes :]
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
    columns: CheckColumns, tables: CheckTables, part: RecordsBehind
) -> Tables:
    """Return the records of pairs of links, but for `_reach`."""
    both, spans = tables.links[part.pairs :], tables.spans[part.pairs :]
    links: dict[Port, Any] = {
        columns.link_a: both[:, 0],
        columns.link_b: both[:, 1],
        columns.of_spheres: spans[:, :2],
        columns.of_shapes: spans[:, 2:],
    }
    return {columns.link_pairs.name: records(links)}


def _shape_pairs(
    columns: CheckColumns, tables: CheckTables, called: Called, part: RecordsBehind
) -> Tables:
    """Return the records of pairs of shapes, but for `_reach`, two spheres apart."""
    # Two spheres are compared by their bounding spheres, which are exact, without code.
    both, shapes, rows = tables.both_spheres, tables.both_shapes, tables.rows_of_shapes
    of_shapes = tables.of_shapes[part.others :]
    both_spheres: dict[Port, Any] = {
        columns.sphere_a: both[:, 0],
        columns.sphere_b: both[:, 1],
    }
    others: dict[Port, Any] = {
        columns.shape_a: shapes[:, 0],
        columns.shape_b: shapes[:, 1],
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
    radii = tables.radii.take(both).sum(axis=1)
    return radii if near is None else (radii + near) ** 2
