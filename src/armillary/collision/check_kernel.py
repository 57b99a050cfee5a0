"""Kernels of collision checks: their code, and the records that it works on.

The code depends on the moving links of a cell and on how many spheres there is room
for; all else is in records, so that another state, margin or rules compile nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, TypeAlias, final

import numpy as np
import numpy.typing as npt

from armillary.collision.check_stages import Question, check_pipeline, compiled
from armillary.collision.check_tables import CheckTables
from armillary.collision.columns import CheckColumns, records
from armillary.collision.distance.pair_kernel import ValueAsked
from armillary.collision.placed_pairs import Called, PlacedPairs
from armillary.collision.precision import Precision
from armillary.collision.shape_pairs import Placed
from armillary.kernel import Kernel
from armillary.kernel.pipeline_kernel import CompiledPipeline
from armillary.kernel.pipeline_records import PipelineRecords
from armillary.model.fields import kept
from armillary.trace import Port

__all__ = ["Tables", "check_kernel", "sphere_records"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

MOST_CACHED: Final = 8
"""Questions whose latest records the tables of a check keep."""

MOST_LEFT: Final = 3
"""Codes of pairs, those of earlier states among them, for each pair of shapes."""

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

    has_clouds = asked == "touching" and pairs.tables.has_clouds
    lanes = pairs.lanes if asked == "clearance" else None

    def made() -> CompiledPipeline:
        pipeline = check_pipeline(moving, room, asked, has_clouds=has_clouds)
        return compiled(pipeline, dtype, lanes)

    # The code is cached beside the moving links, as other checks of the cell share it.
    key = "check", room, asked, dtype.char, lanes, has_clouds
    code = kept(moving, key, made)
    question = _CheckQuestion(code, asked, margin, precision)
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
    return now.records.kernel()


@final
@dataclass(frozen=True, slots=True)
class _CheckQuestion:
    """What is asked, of any pairs.

    Attributes:
        code: The code that answers it.
        asked: The question.
        margin: What is nearer touches [m].
        precision: How it is decided.
    """

    code: CompiledPipeline
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

    def called(self, pairs: PlacedPairs, which: Indices) -> Called:
        """Return the code of pairs of shapes."""
        depth: ValueAsked = "value" if self.asked == "clearance" else "free"
        if self.asked == "touching" and self.margin == 0.0:
            depth = "touch"  # which side of 0 is all that counts
        native = self.code.native
        return pairs.called(depth, native.dtype, native.lanes, which)


@final
@dataclass(frozen=True, slots=True, eq=False)
class CheckRecords:
    """The records of a check.

    Attributes:
        question: What is asked.
        records: The records of all tables.
        placed: Where the shapes are.
        pose_key: What decides where moving links are, as `MovingLinks.pose_key`.
    """

    question: _CheckQuestion
    records: PipelineRecords
    placed: Placed
    pose_key: Hashable

    @classmethod
    def of(cls, question: _CheckQuestion, pairs: PlacedPairs) -> Self:
        """Return the records of a check; see `check_kernel`."""
        moving, tables, near = pairs.moving, pairs.tables, question.near
        columns = CheckColumns(moving, tables.room)
        called = question.called(pairs, tables.of_shapes)
        every = {
            **moving.records(pairs.state),
            **_limits(columns, tables, question.margin, question.precision),
            **sphere_records(columns, pairs),
            **_link_pairs(columns, tables, near),
            **_shape_pairs(columns, tables, near, called),
        }
        packed = PipelineRecords.of(question.code, every, called.callees)
        return cls(question, packed, pairs.placed, pairs.pose_key)

    def moved(self, pairs: PlacedPairs) -> Self | None:
        """Return those of a check of the same tables in another state.

        It is None where moving links stand elsewhere, or earlier states have left too
        many records: then all are made anew.
        """
        tables, now = pairs.tables, pairs.placed
        if pairs.pose_key != self.pose_key:
            return None
        is_other = (self.placed.matrices != now.matrices).any(axis=(1, 2))
        shapes = np.flatnonzero(is_other)
        which = tables.with_shapes(shapes)
        present = sum(len(each.codes) for each in self.records.callees)
        if present + len(which) > MOST_LEFT * len(tables.of_shapes):
            return None
        changes: dict[str, tuple[Indices, Mapping[str, Any]]] = {}
        # The spheres around shapes that moved, and around their links.
        centres = pairs.centres
        spheres = tables.spheres_of(shapes)
        changes["spheres"] = spheres, {"centre": centres[spheres]}
        # Pairs of these shapes have code with other tables.
        called = self.question.called(pairs, tables.of_shapes[which])
        changes["shape_pairs"] = which, {"distance": called.codes}
        changed = self.records.changed(changes, called.callees)
        return type(self)(self.question, changed, now, self.pose_key)


def _limits(
    columns: CheckColumns, tables: CheckTables, margin: float, precision: Precision
) -> Tables:
    """Return the record of what decides, and for which rows."""
    # Squares of distances are wrong by more where distances are large; beyond the
    # largest sum of radii no two spheres touch.
    rounding = precision.rounding
    radii = tables.radii[tables.sphere_numbers(tables.of_spheres)]
    largest = float(radii.sum(axis=1).max(initial=0.0))
    record: dict[Port, Any] = {
        columns.margin: [margin],
        columns.rounding: [rounding],
        # (R + r)^2 - (R - r)^2 for the largest R, and some more.
        columns.square_rounding: [4.0 * (largest + margin + rounding) * rounding],
        columns.most_extent: [precision.most_extent],
        columns.most_q: [precision.most_q],
    }
    return {columns.limits.name: records(record)}


def sphere_records(columns: CheckColumns, pairs: PlacedPairs) -> Tables:
    """Return the records of spheres: which link each moves with, and where in it."""
    rows, centres = pairs.tables.spheres(pairs.placed)
    record: dict[Port, Any] = {
        columns.carrier_pose: rows,
        columns.centre: centres,
        columns.sphere: np.arange(len(centres)),
    }
    return {columns.spheres.name: records(record)}


def _link_pairs(
    columns: CheckColumns,
    tables: CheckTables,
    near: float | None,
) -> Tables:
    """Return the records of pairs of links; see `_reach`."""
    links: dict[Port, Any] = {
        columns.link_a: tables.links[:, 0],
        columns.link_b: tables.links[:, 1],
        columns.link_reach: _reach(tables, tables.links, near),
        columns.of_spheres: tables.spans[:, :2],
        columns.of_shapes: tables.spans[:, 2:],
    }
    return {columns.link_pairs.name: records(links)}


def _shape_pairs(
    columns: CheckColumns, tables: CheckTables, near: float | None, called: Called
) -> Tables:
    """Return the records of pairs of shapes, those of two spheres apart."""
    # Two spheres are compared by their bounding spheres, which are exact, without code.
    both, shapes = map(tables.sphere_numbers, (tables.of_spheres, tables.of_shapes))
    both_spheres: dict[Port, Any] = {
        columns.sphere_a: both[:, 0],
        columns.sphere_b: both[:, 1],
        columns.sphere_reach: _reach(tables, both, near),
    }
    others: dict[Port, Any] = {
        columns.shape_a: shapes[:, 0],
        columns.shape_b: shapes[:, 1],
        columns.shape_reach: _reach(tables, shapes, near),
        columns.X_A: tables.rows_of_shapes[:, 0],
        columns.X_B: tables.rows_of_shapes[:, 1],
        columns.distance: called.codes,
    }
    return {
        columns.sphere_pairs.name: records(both_spheres),
        columns.shape_pairs.name: records(others),
    }


def _reach(tables: CheckTables, both: Indices, near: float | None) -> Array:
    """Return the sums of the radii of pairs of spheres [m].

    near: If not None, the squares of what is nearer than this are returned [m2].
    """
    # Half spaces have infinite radii: they are near everything.
    radii = tables.radii[both].sum(axis=1)
    return radii if near is None else (radii + near) ** 2
