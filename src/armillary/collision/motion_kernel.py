"""Kernels of motions: their code, and the records that it works on.

As for checks, another state, margin or rules change records alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.collision.check_kernel import (
    Tables,
    limits,
    link_pairs,
    shape_pairs,
    spheres,
)
from armillary.collision.check_stages import compiled
from armillary.collision.columns import CheckColumns, records
from armillary.collision.motion_stages import LARGEST, motion_pipeline
from armillary.collision.placed_pairs import Called, PlacedPairs
from armillary.collision.precision import Precision
from armillary.kernel import Kernel
from armillary.kernel.pipeline_kernel import CompiledPipeline
from armillary.kinematics.moving_links import MovingTwists
from armillary.kinematics.speed_bounds import SpeedBounds
from armillary.model.fields import kept
from armillary.trace import Port

__all__ = ["motion_kernel"]

Array = npt.NDArray[np.float64]


def motion_kernel(
    pairs: PlacedPairs, margin: float, precision: Precision, speeds: SpeedBounds
) -> Kernel:
    """Return the kernel of motions; nothing is compiled for another state.

    Args:
        pairs: The pairs of a check.
        margin: What is nearer touches [m].
        precision: How it is decided, in float64.
        speeds: Bounds of speeds that hold on all motions.

    Raises:
        KernelError: As for `compile_pipeline`.
    """
    moving, room = pairs.moving, pairs.tables.room

    def made() -> CompiledPipeline:
        return compiled(motion_pipeline(moving, room), precision.dtype)

    code = kept(moving, ("motions", room), made)
    called = pairs.called("free", precision.dtype, code.native.lanes)
    columns = CheckColumns(moving, room)
    links, of_pairs = pairs.tables.levers(speeds, pairs.placed)
    tables = {
        **MovingTwists(moving, ()).records(pairs.state),
        **limits(columns, pairs.tables, margin, precision),
        **_coordinates(columns, speeds),
        **_balls(columns, links),
        **_with_motion(columns, pairs, called, speeds, of_pairs),
    }
    return code(tables, called.callees)


def _finite(bounds: Array) -> Array:
    """Return bounds with a large number in place of infinity."""
    return np.minimum(bounds, LARGEST)


def _coordinates(columns: CheckColumns, speeds: SpeedBounds) -> Tables:
    """Return the records of coordinates of joints, those of carriers first."""
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
        columns.turning: _finite(speeds.angular[order]),
        columns.bending: _finite(speeds.bending[order]),
        columns.turns_before: before,
        columns.turns_behind: owners,
        columns.way: order,
        columns.curve: order,
    }
    return {columns.coordinates.name: records(record)}


def _balls(columns: CheckColumns, levers: Array) -> Tables:
    """Return the records of the spheres around links."""
    numbers = np.arange(len(levers))
    record: dict[Port, Any] = {
        columns.ball_velocity: numbers,
        columns.ball_levers: _finite(levers),
        columns.growth: numbers,
    }
    return {columns.balls.name: records(record)}


def _with_motion(
    columns: CheckColumns,
    pairs: PlacedPairs,
    called: Called,
    speeds: SpeedBounds,
    levers: Array,
) -> Tables:
    """Return the records of spheres and pairs, as for checks, and of their motion."""
    tables = pairs.tables
    found = {
        **spheres(columns, pairs),
        **link_pairs(columns, tables, None),
        **shape_pairs(columns, tables, None, called),
    }
    rows, centres = tables.spheres(pairs.placed)
    a, b = tables.links.T
    common = speeds.common(rows[tables.links])
    (c, d), (e, f) = (
        tables.sphere_numbers(which).T
        for which in (tables.of_spheres, tables.of_shapes)
    )
    more: dict[str, dict[Port, Any]] = {
        columns.spheres.name: {
            columns.carrier_twist: rows,
            columns.velocity: np.arange(len(centres)),
        },
        columns.link_pairs.name: {
            columns.growth_a: a,
            columns.growth_b: b,
            columns.link_velocity_a: a,
            columns.link_velocity_b: b,
            columns.levers: _finite(levers),
            columns.common_turn: common,
            columns.common_pose: common,
            columns.common_twist: common,
        },
        columns.sphere_pairs.name: {
            columns.sphere_velocity_a: c,
            columns.sphere_velocity_b: d,
        },
        columns.shape_pairs.name: {
            columns.shape_velocity_a: e,
            columns.shape_velocity_b: f,
            columns.twist_a: rows[e],
            columns.twist_b: rows[f],
            columns.radius_a: tables.radii[e],
            columns.radius_b: tables.radii[f],
        },
    }
    return {name: {**found[name], **records(more[name])} for name in found}
