"""The pipelines of collision checks: poses of links, spheres around shapes, shapes.

Spheres are decisive for most pairs: those around links first, then those around each
shape. Only pairs of shapes whose spheres are too near call the code of their kinds.
Which pairs there are is in tables, so that pipelines differ by their links alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from armillary.collision.columns import RECORDS_OF_SHAPES, CheckColumns, Room
from armillary.kernel.columns import call, each, repeat, when
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import CompiledPipeline, compile_pipeline
from armillary.kernel.stages import Call, Stage
from armillary.kinematics.moving_links import MovingLinks
from armillary.spatial.pose import Pose
from armillary.spatial.vector import (
    Matrix,
    Number,
    Vector,
    Vector3,
    dot,
    subtract,
    three,
)
from armillary.trace import Port
from armillary.trace.functions import absolute, maximum, select, sqrt

__all__ = [
    "UNDECIDED",
    "Question",
    "check_pipeline",
    "compiled",
    "distance_of_shapes",
    "least_of_spheres",
    "lesser",
    "may_be_less",
    "square",
]

Question: TypeAlias = Literal["touching", "clearance"]
"""Whether links touch: 0 if not, 1 if so, `UNDECIDED` where rounding decides, or a pose
is NaN. Or the least distance [m], NaN where a pose is."""

UNDECIDED: Final = 0.5


def check_pipeline(moving: MovingLinks, room: Room, asked: Question) -> Pipeline:
    """Return the pipeline of a question about the joint positions of a cell.

    Args:
        moving: The moving links of the cell.
        room: For what there is room.
        asked: The question; see `Question`. For `touching`, reaches in tables are the
            squares of what is near; else they are sums of radii.
    """
    columns = CheckColumns(moving, room)
    return Pipeline(
        f"collision_{asked}",
        moving.inputs,
        (
            *moving.tables,
            columns.limits,
            columns.spheres,
            columns.shapes,
            columns.link_pairs,
            columns.sphere_pairs,
            columns.shape_pairs,
        ),
        STAGES[asked](columns, moving),
        (columns.found.name,),
        (columns.centres, *moving.scratch),
    )


@lru_cache(maxsize=64)
def compiled(
    pipeline: Pipeline, dtype: np.dtype[Any], lanes: int | None = None
) -> CompiledPipeline:
    """Return the code of a pipeline, the same for equal ones."""
    return compile_pipeline(pipeline, dtype=dtype, lanes=lanes)


# Where spheres are
#
# `sound` is 0 for rows in which a number is NaN, or larger than what the bound of
# rounding holds for. Their answer is unknown, and computed in another way.


class Usual(NamedTuple):
    """Whether poses and positions are usual, before spheres are looked at."""

    usual: Number
    extent: Number


class CentreInWorld(NamedTuple):
    """The centre of a sphere in the world, and the greatest coordinate so far."""

    sphere: Vector3
    extent: Number


def _placed_stages(columns: CheckColumns, moving: MovingLinks) -> tuple[Stage, ...]:
    """Return stages from poses to the centres of spheres, and the column `sound`."""
    usual = _usual if moving.is_compiled else _usual_poses
    return (
        columns.stage(usual),
        each(columns.spheres, columns.stage(_centre)),
        columns.stage(_sound, writes=columns.sound),
    )


def _usual(q: Vector, most_q: Vector) -> Usual:
    """Return 1 where q is not too large; poses are looked at with the spheres."""
    is_usual = absolute(q[0]) <= most_q[0]  # false of NaN, too
    for x, most in zip(q[1:], most_q[1:], strict=True):
        is_usual = is_usual & (absolute(x) <= most)
    return Usual(select(is_usual, 1.0, 0.0), 0.0)


def _usual_poses(poses: Sequence[Matrix]) -> Usual:
    """Return 1 where given poses are numbers."""
    # A sum is finite only if all that is summed is.
    total: Number = sum(np.ravel(np.asarray(poses)).tolist(), 0.0)
    return Usual(select(absolute(total) < np.inf, 1.0, 0.0), 0.0)


def _centre(carrier_pose: Matrix, centre: Vector, extent: Number) -> CentreInWorld:
    x, y, z = Pose.from_matrix(carrier_pose) @ three(centre)
    # Where a number of a pose is NaN, so is the greatest coordinate from there on.
    most = maximum(maximum(absolute(x), absolute(y)), absolute(z))
    return CentreInWorld((x, y, z), maximum(most, extent))


def _sound(extent: Number, most_extent: Number, usual: Number) -> Number:
    return select(extent <= most_extent, usual, 0.0)


def square(a: Vector, b: Vector) -> Number:
    """Return the square of the distance of two points."""
    between = subtract(three(a), three(b))
    return dot(between, between)


def distance_of_shapes(columns: CheckColumns, wanted: Port) -> Call:
    """Return the call of the distance of the pair of shapes of a record.

    Where `exactly` is not above 0, the distance is NaN if it takes long.

    wanted: The column of the distance from which on a lower bound will do, which is not
        below that.
    """
    inputs = columns.X_A, columns.X_B, wanted, columns.exactly
    return call(columns.distance.name, inputs, (columns.value,), RECORDS_OF_SHAPES)


# Whether links touch
#
# Distances of centres are compared by their squares, without roots. The reach R of a
# pair is (sum of radii + margin + rounding)^2, so that R - |a - b|^2 is above 0 where
# spheres are near. Two shapes that are spheres touch for certain where it is above
# `square_rounding`. Rows leave the loop over links with the first pair that touches.
# Among clouds, shapes of links that are in doubt are looked at once more: most of them
# touch by another shape, so that a distance that takes long is not measured before.


class Flags(NamedTuple):
    """What is known of a row while no pair of it is known to touch."""

    going: Number
    doubt: Number


class Near(NamedTuple):
    """Whether two links are near, before their spherical shapes are looked at."""

    near: Number
    deepest: Number


def _touching(columns: CheckColumns, moving: MovingLinks) -> tuple[Stage, ...]:
    stage = columns.stage
    deeper = stage(_deeper, **columns.sphere_shapes, writes=columns.deepest)
    spheres = (
        each(columns.sphere_pairs, deeper, within=columns.of_spheres.name),
        stage(_judge_spheres, rounding=columns.square_rounding),
    )
    shapes = each(
        columns.shape_pairs,
        stage(_nearness, **columns.shape_spheres, writes=columns.near_shape),
        when(
            columns.near_shape,
            distance_of_shapes(columns, columns.wanted),
            stage(_judge),
        ),
        within=columns.of_shapes.name,
    )
    looks: tuple[Stage, ...] = (shapes,)
    if columns.has_clouds:
        again = repeat(columns.unsettled, shapes, stage(_look_again), limit=2)
        looks = stage(_look), again
    links = each(
        columns.link_pairs,
        stage(_near, **columns.link_spheres),
        when(columns.near, *spheres, *looks),
        active=columns.going,
    )
    verdict = stage(_verdict, writes=columns.found)
    begin = stage(_begin), stage(_wanted, writes=(columns.wanted, columns.exactly))
    rows = *_placed_stages(columns, moving), *begin, links, verdict
    return *moving.stages, each(columns.limits, *rows)


def _begin(sound: Number) -> Flags:
    return Flags(sound, 0.0)


class Look(NamedTuple):
    """Whether shapes of two links are looked at, and what is known of the row."""

    unsettled: Number
    exactly: Number
    doubt: Number
    doubt_before: Number


class NextLook(NamedTuple):
    """Whether they are looked at once more."""

    unsettled: Number
    exactly: Number
    doubt: Number


def _look(flags: Flags) -> Look:
    return Look(flags.going, 0.0, 0.0, flags.doubt)


def _look_again(flags: Flags, exactly: Number, doubt_before: Number) -> NextLook:
    again = (flags.going > 0.0) & (flags.doubt > 0.0) & (exactly <= 0.0)
    doubt = select(again, 0.0, maximum(flags.doubt, doubt_before))
    return NextLook(select(again, 1.0, 0.0), 1.0, doubt)


def _wanted(margin: Number, rounding: Number) -> tuple[Number, Number]:
    """Return from which distance on shapes are free; all distances are measured."""
    return margin + 2.0 * rounding, 1.0


def _nearness(a: Vector, b: Vector, reach: Number) -> Number:
    return reach - square(a, b)


def _near(a: Vector, b: Vector, reach: Number) -> Near:
    return Near(_nearness(a, b, reach), -1.0)


def _deeper(a: Vector, b: Vector, reach: Number, deepest: Number) -> Number:
    nearness = _nearness(a, b, reach)
    return select(nearness > deepest, nearness, deepest)


def _judge_spheres(deepest: Number, rounding: Number, flags: Flags) -> Flags:
    is_touching, is_near = deepest > rounding, deepest >= 0.0
    return Flags(
        select(is_touching, 0.0, flags.going),
        select(is_near & ~is_touching, 1.0, flags.doubt),
    )


def _judge(value: Number, margin: Number, rounding: Number, flags: Flags) -> Flags:
    # A distance of NaN is neither touching nor free: it is in doubt.
    is_touching, is_free = value < margin - rounding, value > margin + rounding
    is_known = is_touching | is_free
    return Flags(
        select(is_touching, 0.0, flags.going), select(is_known, flags.doubt, 1.0)
    )


def _verdict(sound: Number, flags: Flags) -> Number:
    verdict = select(flags.going > 0.0, UNDECIDED * flags.doubt, 1.0)
    return select(sound > 0.0, verdict, UNDECIDED)


# Clearance
#
# The least distance of all pairs, as a running minimum. A pair of links is left out if
# their spheres are farther apart than the least so far; so is a pair of shapes.


def _clearance(columns: CheckColumns, moving: MovingLinks) -> tuple[Stage, ...]:
    stage = columns.stage
    links = each(
        columns.link_pairs,
        stage(may_be_less, **columns.link_spheres, writes=columns.near),
        when(columns.near, *_least_of_near(columns)),
    )
    rows = (
        *_placed_stages(columns, moving),
        stage(_begin_least, writes=(columns.least, columns.exactly)),
        links,
        stage(_answer, writes=columns.found),
    )
    return *moving.stages, each(columns.limits, *rows)


def _least_of_near(columns: CheckColumns) -> tuple[Stage, ...]:
    """Return stages by which `least` becomes no more than the distance of two links."""
    least = columns.least
    sphere = columns.stage(least_of_spheres, **columns.sphere_shapes, writes=least)
    return (
        each(columns.sphere_pairs, sphere, within=columns.of_spheres.name),
        each(
            columns.shape_pairs,
            columns.stage(
                may_be_less, **columns.shape_spheres, writes=columns.near_shape
            ),
            when(
                columns.near_shape,
                distance_of_shapes(columns, least),
                columns.stage(lesser, writes=least),
            ),
            within=columns.of_shapes.name,
        ),
    )


def _answer(least: Number) -> Number:
    return least


def _begin_least(sound: Number) -> tuple[Number, Number]:
    return select(sound > 0.0, np.inf, np.nan), 1.0


def may_be_less(a: Vector, b: Vector, reach: Number, least: Number) -> Number:
    """Return a number above 0 where spheres are nearer than the least so far.

    The depth of some pairs is an upper bound, so all that may overlap are wanted.
    """
    # A half space reaches everywhere, also to where squares are infinite.
    gap = select(reach < np.inf, sqrt(square(a, b)) - reach, -np.inf)
    so_far = select(least < 0.0, 0.0, least)  # NaN stays NaN
    return so_far - gap


def least_of_spheres(a: Vector, b: Vector, reach: Number, least: Number) -> Number:
    """Return the distance of two spheres, if it is less than the least so far."""
    return lesser(sqrt(square(a, b)) - reach, least)


def lesser(value: Number, least: Number) -> Number:
    """Return the least distance, now that another one is known."""
    # Written so that NaN of the distance becomes the least, and stays it.
    return select(value >= least, least, value)


STAGES: Final[
    dict[Question, Callable[[CheckColumns, MovingLinks], tuple[Stage, ...]]]
] = {"touching": _touching, "clearance": _clearance}
"""The stages of each question, from the inputs of its pipeline to its results."""
