"""Kernels of motions: their code, and the records that it works on.

As for checks, another state, margin or rules change records alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from armillary.collision.check_kernel import codes_of, columns_of, shape_records
from armillary.collision.check_stages import compiled
from armillary.collision.check_tables import WHOLE, RecordsBehind
from armillary.collision.columns import (
    DETAILS,
    SHAPES,
    SPHERES_A,
    SPHERES_B,
    CheckColumns,
    Room,
    records,
)
from armillary.collision.edge_proof_stages import EdgeProofColumns
from armillary.collision.motion_stages import LARGEST, motion_pipeline
from armillary.collision.pair_records import Changes, Tables, records_of
from armillary.collision.placed_pairs import Called, PlacedPairs
from armillary.collision.volumes import box_records
from armillary.kernel import Kernel
from armillary.kernel.column_function import ColumnCode, ColumnFunction, native_lanes
from armillary.kernel.pipeline_kernel import Callees, CompiledPipeline
from armillary.kinematics.moving_links import straight_links
from armillary.kinematics.moving_twists import moving_twists
from armillary.kinematics.speed_bounds import SpeedBounds
from armillary.model.fields import kept, kept_few
from armillary.trace import Port

__all__ = [
    "PositionBox",
    "coordinate_records",
    "finite",
    "motion_code",
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
    columns = columns_of(moving, room)
    question = _MotionQuestion(code, columns, room, margin, rounding, box, speeds)
    return code.bound(*_bound(question, pairs))


def motion_columns(
    pairs: PlacedPairs,
    margin: float,
    rounding: float,
    box: PositionBox,
    speeds: SpeedBounds,
) -> ColumnFunction:
    """Return code that tells if motions are free, and no more, for other code.

    It is as `motion_kernel`, but any contact ends a motion. Both share their records.
    """
    moving, room = straight_links(pairs.moving.cell), pairs.tables.room
    code, columns = motion_code(pairs), columns_of(moving, room)
    question = _MotionQuestion(code, columns, room, margin, rounding, box, speeds)
    return code.bound(*_bound(question, pairs))


def motion_code(pairs: PlacedPairs) -> ColumnCode:
    """Return the code of `motion_columns`."""
    moving, room = straight_links(pairs.moving.cell), pairs.tables.room
    pipeline = kept(
        moving,
        ("free motions", room),
        lambda: motion_pipeline(moving, room, anywhere=True),
    )
    return ColumnCode(pipeline, KIND, native_lanes(KIND))


def _bound(
    question: _MotionQuestion, pairs: PlacedPairs
) -> tuple[Mapping[str, Any], Sequence[Callees]]:
    """Return the records of motions, and what their calls run."""
    made = kept_few(pairs, "motions", question.key, lambda: records_of(question, pairs))
    return made.records.tables, made.records.callees


@final
@dataclass(frozen=True, slots=True)
class _MotionQuestion:
    """What motions are asked for, of any pairs; see `motion_kernel`."""

    code: CompiledPipeline | ColumnCode
    columns: CheckColumns
    room: Room
    margin: float
    rounding: float
    box: PositionBox
    speeds: SpeedBounds

    @property
    def key(self) -> Hashable:
        """Return what equal questions share."""
        lower, upper = (positions.tobytes() for positions in self.box)
        return "motions", self.room, self.margin, self.rounding, lower, upper

    @property
    def numbered(self) -> Sequence[Port]:
        """Return the columns whose entries are numbered as spheres are."""
        columns = self.columns
        return columns.balls, columns.velocities, columns.placed

    def called(self, pairs: PlacedPairs) -> Called:
        """Return the code of pairs of shapes."""
        return pairs.called("free", *self.code.made_for)

    def whole(self, pairs: PlacedPairs, called: Called) -> Tables:
        """Return all records."""
        return {**_limits(self, pairs), **self.behind(pairs, called, WHOLE)}

    def behind(self, pairs: PlacedPairs, called: Called, part: RecordsBehind) -> Tables:
        """Return the records of pairs from some links on."""
        columns = self.columns
        links, of_pairs = pairs.levers(*self.box, self.speeds)
        others = {
            **_spheres(columns, pairs, links, part),
            **_link_pairs(columns, pairs, self.speeds, of_pairs, part),
            **_shape_pairs(columns, pairs, called, part),
        }
        numbers = self.sizes(pairs, part)
        return {
            name: {**others.get(name, {}), **numbers.get(name, {})}
            for name in others | numbers
        }

    def sizes(self, pairs: PlacedPairs, part: RecordsBehind) -> Tables:
        """Return those of their numbers that depend on sizes and places of shapes."""
        columns, tables, placed = self.columns, pairs.tables, pairs.placed
        radii, touching = tables.pairs.radii, self.margin + self.rounding
        around = tables.radii.take(tables.links[part.pairs :]).sum(axis=1)
        both = radii.take(tables.shapes_of_spheres)
        others = radii.take(tables.shapes_of_others)
        balls: dict[Port, Any] = {columns.ball_reach: around + touching}
        spheres: dict[Port, Any] = {columns.sphere_reach: both.sum(axis=1)}
        shapes: dict[Port, Any] = {
            columns.shape_reach: others.sum(axis=1),
            columns.radius_a: others[:, 0],
            columns.radius_b: others[:, 1],
            **box_records(columns, pairs, tables.shapes_in_order),
        }
        fixed = _fixed_links(pairs, part)
        return {
            columns.fixed_balls.name: {
                columns.fixed_ball.name: _with_zero(placed.spheres[fixed])
            },
            columns.moving_spheres.name: {
                columns.centre.name: placed.centres[part.shapes :]
            },
            columns.ball_pairs.name: records(balls),
            columns.moving_sphere_pairs.name: records(spheres),
            columns.moving_shape_pairs.name: records(shapes),
            **shape_records(self.room, pairs, part),
        }

    def places(
        self, pairs: PlacedPairs, spheres: Indices, shapes: Indices
    ) -> Changes | None:
        """Return the numbers that change where bodies moved; None for all."""
        columns, now = self.columns, pairs.placed
        if now.rows[shapes].any():
            return None  # bounds of speeds are others, too
        links = spheres[: len(spheres) - len(shapes)]
        rows = np.searchsorted(_fixed_links(pairs, WHOLE), links)
        both = pairs.tables.shapes_in_order
        near = np.flatnonzero(np.isin(both, shapes).any(axis=1))
        boxes = box_records(columns, pairs, both[near])
        return {
            columns.fixed_balls.name: (
                rows,
                {columns.fixed_ball.name: _with_zero(now.spheres[links])},
            ),
            columns.moving_spheres.name: (
                shapes,
                {columns.centre.name: now.centres[shapes]},
            ),
            columns.moving_shape_pairs.name: (near, records(boxes)),
            SHAPES: (shapes, {columns.shape_pose.name: now.matrices[shapes]}),
        }

    def limits(self, pairs: PlacedPairs) -> Tables:
        """Return no records: none depends on the sizes of shapes."""
        return {}


def _limits(wanted: _MotionQuestion, pairs: PlacedPairs) -> Tables:
    """Return the records of how links move, and within which limits."""
    moving, columns = straight_links(pairs.moving.cell), wanted.columns
    links, _ = pairs.levers(*wanted.box, wanted.speeds)
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
    """Return the records of spheres around links and their shapes, but for `sizes`."""
    rows, centres = pairs.tables.spheres(pairs.placed)
    count, fixed = len(levers), _fixed_links(pairs, part)
    moving = np.flatnonzero(rows[part.links : count] > 0) + part.links
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
        columns.fixed_at: fixed,
        columns.fixed_velocity: fixed,
        columns.fixed_placed: fixed,
    }
    numbers = pairs.tables.ball_numbers[part.shapes :]
    behind = count + part.shapes
    shapes: dict[Port, Any] = {
        columns.carrier_pose: rows[behind:],
        columns.carrier_twist: rows[behind:],
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


def _fixed_links(pairs: PlacedPairs, part: RecordsBehind) -> Indices:
    """Return the links that are fixed to the world, whose frame is that of all."""
    rows = pairs.tables.fixed.rows
    if part.links:  # obstacles stand still
        return np.arange(part.links, len(rows))
    return np.flatnonzero(rows == 0)


def _with_zero(centres: Array) -> Array:
    """Return centres of spheres, and that they do not move: (k, 3) -> (k, 4)."""
    balls = np.zeros((len(centres), 4))
    balls[:, :3] = centres
    return balls


def _link_pairs(
    columns: CheckColumns,
    pairs: PlacedPairs,
    speeds: SpeedBounds,
    levers: Array,
    part: RecordsBehind,
) -> Tables:
    """Return the records of pairs of links, but for `sizes`.

    Args:
        columns: The columns.
        pairs: The pairs of a check.
        speeds: Bounds of speeds.
        levers: How fast links of pairs approach each other at unit rates.
        part: Where they begin.
    """
    tables = pairs.tables
    rows = tables.sphere_rows
    links, all_spans = tables.links[part.pairs :], tables.spans[part.pairs :]
    a, b = links.T
    # Nothing but the world carries an obstacle.
    common = np.zeros_like(a) if part.links else speeds.common(rows[links])
    numbers = part.pairs + np.arange(len(a))
    balls: dict[Port, Any] = {
        columns.ball_a: a,
        columns.ball_b: b,
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
    numbers, rows = tables.ball_numbers, pairs.placed.rows
    (a, b), (c, d) = tables.shapes_of_spheres.T, tables.shapes_of_others.T
    links = tables.rows_of_shapes
    spheres: dict[Port, Any] = {
        columns.sphere_ball_a: numbers[a],
        columns.sphere_ball_b: numbers[b],
        columns.sphere_velocity_a: numbers[a],
        columns.sphere_velocity_b: numbers[b],
    }
    shapes: dict[Port, Any] = {
        columns.shape_ball_a: numbers[c],
        columns.shape_ball_b: numbers[d],
        columns.shape_velocity_a: numbers[c],
        columns.shape_velocity_b: numbers[d],
        columns.twist_a: rows[c],
        columns.twist_b: rows[d],
        columns.X_A: links[:, 0],
        columns.X_B: links[:, 1],
    }
    which = tables.of_shapes[part.others :]
    codes = codes_of(tables.shapes_in_order, called, which)
    return {
        columns.moving_sphere_pairs.name: records(spheres),
        columns.moving_shape_pairs.name: {**records(shapes), **codes},
    }
