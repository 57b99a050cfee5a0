"""Kernels of motions: their code, and the records that it works on.

As for checks, another state, margin or rules change records alone.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.collision.check_kernel import Tables
from armillary.collision.check_stages import compiled
from armillary.collision.check_tables import CheckTables
from armillary.collision.columns import (
    DETAILS,
    SPHERES_A,
    SPHERES_B,
    CheckColumns,
    records,
)
from armillary.collision.edge_proof_stages import EdgeProofColumns
from armillary.collision.motion_stages import LARGEST, motion_pipeline
from armillary.collision.placed_pairs import Called, PlacedPairs
from armillary.kernel import Kernel
from armillary.kernel.pipeline_kernel import (
    ColumnFunction,
    CompiledPipeline,
    native_lanes,
)
from armillary.kinematics.moving_links import moving_twists, straight_links
from armillary.kinematics.speed_bounds import SpeedBounds
from armillary.model.fields import kept
from armillary.trace import Port

__all__ = [
    "PositionBox",
    "coordinate_records",
    "finite",
    "motion_columns",
    "motion_kernel",
]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

KIND: Final = np.dtype(np.float64)
"""The type that motions are proven in."""


class PositionBox(NamedTuple):
    """Joint positions within which bounds of speeds hold.

    Attributes:
        lower: Least joint positions [m or rad], shape (n,).
        upper: Greatest.
    """

    lower: Array
    upper: Array


def motion_kernel(
    pairs: PlacedPairs,
    margin: float,
    rounding: float,
    box: PositionBox,
    speeds: SpeedBounds,
) -> Kernel:
    """Return the kernel of motions; nothing is compiled for another state.

    Args:
        pairs: The pairs of a check.
        margin: What is nearer touches [m].
        rounding: Links touch that come nearer than the margin and this [m].
        box: The joint positions for which it answers.
        speeds: Bounds of speeds that hold there.

    Raises:
        KernelError: As for `compile_pipeline`.
    """
    # Twists are computed beside poses, by straight code.
    moving, room = straight_links(pairs.moving.cell), pairs.tables.room

    def made() -> CompiledPipeline:
        return compiled(motion_pipeline(moving, room), KIND)

    code = kept(moving, ("motions", room), made)
    tables, called = _tables(
        pairs, margin, rounding, box, speeds, lanes=code.native.lanes
    )
    return code(tables, called.callees)


def motion_columns(
    pairs: PlacedPairs,
    margin: float,
    rounding: float,
    box: PositionBox,
    speeds: SpeedBounds,
) -> ColumnFunction:
    """Return code that tells if motions are free, and no more, for other code.

    It is as `motion_kernel`, but any contact ends a motion.
    """
    moving, room = straight_links(pairs.moving.cell), pairs.tables.room
    pipeline = kept(
        moving,
        ("free motions", room),
        lambda: motion_pipeline(moving, room, anywhere=True),
    )
    lanes = native_lanes(KIND)
    tables, called = _tables(pairs, margin, rounding, box, speeds, lanes=lanes)
    return ColumnFunction.compiled(
        pipeline, tables, called.callees, dtype=KIND, lanes=lanes
    )


def _tables(
    pairs: PlacedPairs,
    margin: float,
    rounding: float,
    box: PositionBox,
    speeds: SpeedBounds,
    *,
    lanes: int,
) -> tuple[Tables, Called]:
    """Return the records of motions, and the code of pairs that they call."""
    moving, room = straight_links(pairs.moving.cell), pairs.tables.room
    links, of_pairs = pairs.tables.levers(speeds, pairs.placed)
    called = pairs.called("free", KIND, lanes, pairs.tables.of_shapes)
    columns = CheckColumns(moving, room)
    limits: dict[Port, Any] = {
        columns.margin: [margin],
        columns.rounding: [rounding],
        columns.lower: [box.lower],
        columns.upper: [box.upper],
    }
    tables: Tables = {
        **moving_twists(moving).records(pairs.state),
        columns.motion_limits.name: records(limits),
        **coordinate_records(columns, speeds, links),
        **_spheres(columns, pairs, links),
        **_link_pairs(columns, pairs, margin + rounding, speeds, of_pairs),
        **_shape_pairs(columns, pairs, called),
    }
    return tables, called


def finite(bounds: Array) -> Array:
    """Return bounds with a large number in place of infinity."""
    return np.minimum(bounds, LARGEST)


def coordinate_records(
    columns: CheckColumns | EdgeProofColumns, speeds: SpeedBounds, links: Array
) -> Tables:
    """Return the records of coordinates of joints, those of carriers first.

    links: How fast links move for unit rates of coordinates.
    """
    order = speeds.in_order()
    owners = speeds.owners[order]
    before = speeds.parents[owners]
    # Another coordinate of the same joint comes behind the one before.
    is_next = np.append(False, owners[1:] == owners[:-1])
    before = np.where(is_next, owners, before)
    joints = speeds.joints[order]
    record: dict[Port, Any] = {
        columns.way_of: joints.argmax(axis=1),
        columns.factor: joints.max(axis=1),
        columns.turning: finite(speeds.angular[order]),
        columns.bending: finite(speeds.bending[order]),
        columns.lever: finite(links.max(axis=0, initial=0.0)[order]),
        columns.turns_before: before,
        columns.turns_behind: owners,
        columns.way: order,
        columns.curve: order,
    }
    return {columns.coordinates.name: records(record)}


def _sphere_numbers(tables: CheckTables) -> Indices:
    """Return the numbers of the spheres around shapes, shape (s,).

    Those around links come first. Where a link has one shape, that is its sphere, too.
    """
    count = len(tables.first) - 1
    shapes = np.diff(tables.first)
    owner = np.repeat(np.arange(count), shapes)
    return np.where(shapes[owner] == 1, owner, count + np.arange(len(owner)))


def _spheres(columns: CheckColumns, pairs: PlacedPairs, levers: Array) -> Tables:
    """Return the records of spheres around links, and around their shapes."""
    rows, centres = pairs.tables.spheres(pairs.placed)
    count = len(levers)
    # The world is the first link that others are fixed to; its frame is that of all.
    moving, fixed = (np.flatnonzero((rows[:count] > 0) == moves) for moves in (1, 0))
    balls: dict[Port, Any] = {
        columns.ball_pose: rows[moving],
        columns.ball_twist: rows[moving],
        columns.ball_centre: centres[moving],
        columns.ball_levers: finite(levers[moving]),
        columns.ball: moving,
        columns.ball_velocity: moving,
        columns.is_placed: moving,
    }
    still: dict[Port, Any] = {
        columns.fixed_ball: np.insert(centres[fixed], 3, 0.0, axis=1),
        columns.fixed_at: fixed,
        columns.fixed_velocity: fixed,
        columns.fixed_placed: fixed,
    }
    numbers = _sphere_numbers(pairs.tables)
    shapes: dict[Port, Any] = {
        columns.carrier_pose: rows[count:],
        columns.carrier_twist: rows[count:],
        columns.centre: centres[count:],
        columns.shape_ball: numbers,
        columns.shape_velocity: numbers,
    }
    return {
        columns.moving_balls.name: records(balls),
        columns.fixed_balls.name: records(still),
        columns.moving_spheres.name: records(shapes),
    }


def _link_pairs(
    columns: CheckColumns,
    pairs: PlacedPairs,
    touching: float,
    speeds: SpeedBounds,
    levers: Array,
) -> Tables:
    """Return the records of pairs of links.

    Args:
        columns: The columns.
        pairs: The pairs of a check.
        touching: What is nearer touches [m].
        speeds: Bounds of speeds.
        levers: How fast links of pairs approach each other at unit rates.
    """
    tables = pairs.tables
    rows, _ = tables.spheres(pairs.placed)
    a, b = tables.links.T
    common = speeds.common(rows[tables.links])
    numbers = np.arange(len(a))
    balls: dict[Port, Any] = {
        columns.ball_a: a,
        columns.ball_b: b,
        columns.ball_reach: tables.radii[a] + tables.radii[b] + touching,
    }
    details: dict[Port, Any] = {
        columns.ball_velocity_a: a,
        columns.ball_velocity_b: b,
        columns.levers: finite(levers),
        columns.common_turn: common,
        columns.common_pose: common,
        columns.common_twist: common,
        columns.is_placed_a: a,
        columns.is_placed_b: b,
        columns.of_spheres: tables.spans[:, :2],
        columns.of_shapes: tables.spans[:, 2:],
    }
    own = np.stack([numbers, np.ones_like(numbers)], axis=1)
    # Of links with one shape nothing is to be placed.
    shapes = np.diff(tables.first)
    spans = np.stack([tables.first[:-1], np.where(shapes > 1, shapes, 0)], axis=1)
    return {
        columns.ball_pairs.name: {**records(balls), DETAILS: own},
        columns.moving_link_pairs.name: {
            **records(details),
            SPHERES_A: spans[a],
            SPHERES_B: spans[b],
        },
    }


def _shape_pairs(columns: CheckColumns, pairs: PlacedPairs, called: Called) -> Tables:
    """Return the records of pairs of shapes, those of two spheres apart."""
    tables = pairs.tables
    numbers, radii, rows = (
        _sphere_numbers(tables),
        tables.pairs.radii,
        pairs.placed.rows,
    )
    (a, b), (c, d) = (
        tables.pairs.pairs[which].T for which in (tables.of_spheres, tables.of_shapes)
    )
    links = tables.rows_of_shapes
    spheres: dict[Port, Any] = {
        columns.sphere_ball_a: numbers[a],
        columns.sphere_ball_b: numbers[b],
        columns.sphere_reach: radii[a] + radii[b],
        columns.sphere_velocity_a: numbers[a],
        columns.sphere_velocity_b: numbers[b],
    }
    shapes: dict[Port, Any] = {
        columns.shape_ball_a: numbers[c],
        columns.shape_ball_b: numbers[d],
        columns.shape_reach: radii[c] + radii[d],
        columns.shape_velocity_a: numbers[c],
        columns.shape_velocity_b: numbers[d],
        columns.twist_a: rows[c],
        columns.twist_b: rows[d],
        columns.radius_a: radii[c],
        columns.radius_b: radii[d],
        columns.X_A: links[:, 0],
        columns.X_B: links[:, 1],
        columns.distance: called.codes,
    }
    return {
        columns.moving_sphere_pairs.name: records(spheres),
        columns.moving_shape_pairs.name: records(shapes),
    }
