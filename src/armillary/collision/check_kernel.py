"""Kernels of collision checks: their code, and the records that it works on.

The code depends on the moving links of a cell and on how many spheres there is room
for; all else is in records, so that another state, margin or rules compile nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from armillary.collision.check_stages import Question, check_pipeline, compiled
from armillary.collision.check_tables import CheckTables
from armillary.collision.columns import CheckColumns, records
from armillary.collision.distance.pair_kernel import ValueAsked
from armillary.collision.placed_pairs import Called, PlacedPairs
from armillary.collision.precision import Precision
from armillary.kernel import Kernel
from armillary.kernel.pipeline_kernel import CompiledPipeline
from armillary.model.fields import kept
from armillary.trace import Port

__all__ = ["Tables", "check_kernel", "sphere_records"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

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
    depth: ValueAsked = "value" if asked == "clearance" else "free"
    if asked == "touching" and margin == 0.0:  # which side of 0 is all that counts
        depth = "touch"
    # Whether links touch is compared by squares of distances, clearance by distances.
    called = pairs.called(depth, dtype, code.native.lanes)
    columns = CheckColumns(moving, room)
    near = margin + precision.rounding if asked == "touching" else None
    tables = {
        **moving.records(pairs.state),
        **_limits(columns, pairs.tables, margin, precision),
        **sphere_records(columns, pairs),
        **_link_pairs(columns, pairs.tables, near),
        **_shape_pairs(columns, pairs.tables, near, called),
    }
    return code(tables, called.callees)


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
    rows, codes = called.rows[tables.of_shapes], called.codes[tables.of_shapes]
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
        columns.distance: codes,
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
