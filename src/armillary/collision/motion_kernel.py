"""Kernels of motions: their code, and the records that it works on.

As for checks, another state, margin or rules change records alone.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.collision.check_kernel import (
    Tables,
    codes_of,
    columns_of,
    records_behind,
    shape_records,
)
from armillary.collision.check_stages import compiled
from armillary.collision.check_tables import RecordsBehind
from armillary.collision.columns import (
    DETAILS,
    SPHERES_A,
    SPHERES_B,
    CheckColumns,
    Room,
    records,
)
from armillary.collision.edge_proof_stages import EdgeProofColumns
from armillary.collision.motion_stages import LARGEST, motion_pipeline
from armillary.collision.placed_pairs import Called, PlacedPairs
from armillary.collision.volumes import box_records
from armillary.kernel import Kernel
from armillary.kernel.pipeline_kernel import (
    ColumnFunction,
    CompiledPipeline,
    native_lanes,
)
from armillary.kernel.pipeline_records import PipelineRecords
from armillary.kinematics.moving_links import straight_links
from armillary.kinematics.moving_twists import moving_twists
from armillary.kinematics.speed_bounds import SpeedBounds
from armillary.model.fields import kept, kept_few
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
    wanted = _Wanted(room, margin, rounding, box, speeds)
    return _records_of(code, wanted, pairs).kernel()


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
    lanes, wanted = native_lanes(KIND), _Wanted(room, margin, rounding, box, speeds)
    whole = pairs.whole
    called = whole.called("free", KIND, lanes)
    tables = {**_limits(wanted, whole), **_pairs_behind(wanted, whole, called)}
    return ColumnFunction.compiled(
        pipeline, tables, called.callees, dtype=KIND, lanes=lanes
    )


class _Wanted(NamedTuple):
    """What motions are asked for; see `motion_kernel`."""

    room: Room
    margin: float
    rounding: float
    box: PositionBox
    speeds: SpeedBounds

    @property
    def key(self) -> Hashable:
        """Return what equal ones share."""
        lower, upper = (positions.tobytes() for positions in self.box)
        return self.room, self.margin, self.rounding, lower, upper


def _records_of(
    code: CompiledPipeline, wanted: _Wanted, pairs: PlacedPairs
) -> PipelineRecords:
    """Return the records of motions."""
    called = pairs.called("free", KIND, code.native.lanes)
    more = _pairs_behind(wanted, pairs, called)
    # Obstacles are new: their records follow those of the same check without them.
    base = pairs.before
    if base is not None:
        key = id(code), wanted.key
        known = kept_few(base, "motions", key, lambda: _records_of(code, wanted, base))
        columns = columns_of(straight_links(pairs.moving.cell), wanted.room)
        spheres = columns.balls, columns.velocities, columns.placed
        return records_behind(known, pairs.tables, key, more, called, spheres)
    tables = {**_limits(wanted, pairs), **more}
    return PipelineRecords.of(code, tables, called.callees)


def _pairs_behind(wanted: _Wanted, pairs: PlacedPairs, called: Called) -> Tables:
    """Return the records of pairs behind those of pairs without obstacles, or all."""
    columns = columns_of(straight_links(pairs.moving.cell), wanted.room)
    links, of_pairs = pairs.levers(wanted.box.lower, wanted.box.upper, wanted.speeds)
    part, touching = pairs.tables.part, wanted.margin + wanted.rounding
    return {
        **_spheres(columns, pairs, links, part),
        **shape_records(wanted.room, pairs, part),
        **_link_pairs(columns, pairs, touching, wanted.speeds, of_pairs, part),
        **_shape_pairs(columns, pairs, called, part),
    }


def _limits(wanted: _Wanted, pairs: PlacedPairs) -> Tables:
    """Return the records of how links move, and within which limits."""
    moving = straight_links(pairs.moving.cell)
    columns = columns_of(moving, wanted.room)
    links, _ = pairs.levers(wanted.box.lower, wanted.box.upper, wanted.speeds)
    limits: dict[Port, Any] = {
        columns.margin: [wanted.margin],
        columns.rounding: [wanted.rounding],
        columns.lower: [wanted.box.lower],
        columns.upper: [wanted.box.upper],
    }
    return {
        **moving_twists(moving).records(pairs.state),
        columns.motion_limits.name: records(limits),
        **coordinate_records(columns, wanted.speeds, links),
    }


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


def _spheres(
    columns: CheckColumns, pairs: PlacedPairs, levers: Array, part: RecordsBehind
) -> Tables:
    """Return the records of spheres around links, and around their shapes."""
    rows, centres = pairs.tables.spheres(pairs.placed)
    count = len(levers)
    # The world is the first link that others are fixed to; its frame is that of all.
    moving, fixed = (
        np.flatnonzero((rows[part.links : count] > 0) == moves) + part.links
        for moves in (1, 0)
    )
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
        columns.fixed_ball: _with_zero(centres[fixed]),
        columns.fixed_at: fixed,
        columns.fixed_velocity: fixed,
        columns.fixed_placed: fixed,
    }
    numbers = pairs.tables.ball_numbers[part.shapes :]
    behind = count + part.shapes
    shapes: dict[Port, Any] = {
        columns.carrier_pose: rows[behind:],
        columns.carrier_twist: rows[behind:],
        columns.centre: centres[behind:],
        columns.shape_ball: numbers,
        columns.shape_velocity: numbers,
    }
    tables: Tables = {
        columns.moving_balls.name: records(balls),
        columns.fixed_balls.name: records(still),
        columns.moving_spheres.name: records(shapes),
    }
    if part.links:  # obstacles stand still
        del tables[columns.moving_balls.name]
    return tables


def _with_zero(centres: Array) -> Array:
    """Return centres of spheres, and that they do not move: (k, 3) -> (k, 4)."""
    balls = np.zeros((len(centres), 4))
    balls[:, :3] = centres
    return balls


def _link_pairs(
    columns: CheckColumns,
    pairs: PlacedPairs,
    touching: float,
    speeds: SpeedBounds,
    levers: Array,
    part: RecordsBehind,
) -> Tables:
    """Return the records of pairs of links.

    Args:
        columns: The columns.
        pairs: The pairs of a check.
        touching: What is nearer touches [m].
        speeds: Bounds of speeds.
        levers: How fast links of pairs approach each other at unit rates.
        part: Where they begin.
    """
    tables = pairs.tables
    rows, _ = tables.spheres(pairs.placed)
    links, all_spans = tables.links[part.pairs :], tables.spans[part.pairs :]
    a, b = links.T
    # Nothing but the world carries an obstacle.
    common = np.zeros_like(a) if part.links else speeds.common(rows[links])
    numbers = part.pairs + np.arange(len(a))
    balls: dict[Port, Any] = {
        columns.ball_a: a,
        columns.ball_b: b,
        columns.ball_reach: tables.radii[a] + tables.radii[b] + touching,
    }
    details: dict[Port, Any] = {
        columns.ball_velocity_a: a,
        columns.ball_velocity_b: b,
        columns.levers: finite(levers[part.pairs :]),
        columns.common_turn: common,
        columns.common_pose: common,
        columns.common_twist: common,
        columns.is_placed_a: a,
        columns.is_placed_b: b,
        columns.of_spheres: all_spans[:, :2],
        columns.of_shapes: all_spans[:, 2:],
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


def _shape_pairs(
    columns: CheckColumns, pairs: PlacedPairs, called: Called, part: RecordsBehind
) -> Tables:
    """Return the records of pairs of shapes, those of two spheres apart."""
    tables = pairs.tables
    numbers, radii, rows = tables.ball_numbers, tables.pairs.radii, pairs.placed.rows
    (a, b), (c, d) = tables.shapes_of_spheres.T, tables.shapes_of_others.T
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
        **box_records(columns, pairs, tables.shapes_in_order),
    }
    which = tables.of_shapes[part.others :]
    codes = codes_of(tables.shapes_in_order, called, which)
    return {
        columns.moving_sphere_pairs.name: records(spheres),
        columns.moving_shape_pairs.name: {**records(shapes), **codes},
    }
