"""The pipelines of collision checks: poses of links, spheres around shapes, shapes.

Spheres are decisive for most pairs: those around links first, then those around each
shape. Only pairs of shapes whose spheres are too near call the code of their kinds.
Which pairs there are is in tables, so that pipelines differ by their links alone.

A motion is straight in joint positions: q = q0 + t (q1 - q0). Two links whose distance
is d, and whose points can approach each other by no more than w while t grows by 1,
cannot touch before t + d / w. So t moves on by the least such step of all pairs until
it is 1, or until a pair is as near as makes no difference (conservative advancement:
Mirtich, "Impulse-based dynamic simulation of rigid body systems", 1996).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from armillary.collision.columns import CheckColumns
from armillary.kernel.columns import call, each, repeat, when
from armillary.kernel.pipeline import Call, Pipeline, Stage
from armillary.kernel.pipeline_kernel import CompiledPipeline, compile_pipeline
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
from armillary.trace.functions import absolute, maximum, minimum, select, sqrt

__all__ = ["CENTRES", "UNDECIDED", "Question", "check_pipeline", "compiled"]

Question: TypeAlias = Literal["touching", "clearance", "motion"]
"""Whether links touch: 0 if not, 1 if so, `UNDECIDED` where rounding decides, or a pose
is NaN. Or the least distance [m], NaN where a pose is. Or how far motions are free: `t`
up to which one is proven to be, and `touching`, 1 if links touch there."""

UNDECIDED: Final = 0.5

CENTRES: Final = CheckColumns.centres.name

MOST_STEPS: Final = 5_000
"""Most steps of a motion; beyond, it is not proven."""

LEAST_STEP: Final = 1e-9
"""Steps below this part of a motion prove nothing."""

FAR: Final = 1e30
"""A distance that no pair has [m]."""


def check_pipeline(moving: MovingLinks, spheres: int, asked: Question) -> Pipeline:
    """Return the pipeline of a question about the joint positions of a cell.

    Args:
        moving: The moving links of the cell.
        spheres: For how many spheres there is room.
        asked: The question; see `Question`. For `touching`, reaches in tables are the
            squares of what is near; else they are sums of radii.
    """
    columns = CheckColumns(moving, spheres)
    inputs, results, pairs = moving.inputs, (columns.found,), columns.link_pairs
    if asked == "motion":
        inputs, results = (columns.q0, columns.q1), (columns.t, columns.touching)
        pairs = columns.moving_link_pairs
    return Pipeline(
        f"collision_{asked}",
        inputs,
        (
            *moving.tables,
            columns.limits,
            columns.spheres,
            pairs,
            columns.sphere_pairs,
            columns.shape_pairs,
        ),
        STAGES[asked](columns, moving),
        tuple(port.name for port in results),
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


def _square(a: Vector, b: Vector) -> Number:
    """Return the square of the distance of two points."""
    between = subtract(three(a), three(b))
    return dot(between, between)


def _distance_of_shapes(columns: CheckColumns) -> Call:
    return call(columns.distance.name, (columns.X_A, columns.X_B), (columns.value,))


# Whether links touch
#
# Distances of centres are compared by their squares, without roots. The reach R of a
# pair is (sum of radii + margin + rounding)^2, so that R - |a - b|^2 is above 0 where
# spheres are near. Two shapes that are spheres touch for certain where it is above
# `square_rounding`. Rows leave the loop over links with the first pair that touches.


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
        when(columns.near_shape, _distance_of_shapes(columns), stage(_judge)),
        within=columns.of_shapes.name,
    )
    links = each(
        columns.link_pairs,
        stage(_near, **columns.link_spheres),
        when(columns.near, *spheres, shapes),
        active=columns.going,
    )
    verdict = stage(_verdict, writes=columns.found)
    rows = *_placed_stages(columns, moving), stage(_begin), links, verdict
    return *moving.stages, each(columns.limits, *rows)


def _begin(sound: Number) -> Flags:
    return Flags(sound, 0.0)


def _nearness(a: Vector, b: Vector, reach: Number) -> Number:
    return reach - _square(a, b)


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
        stage(_may_be_less, **columns.link_spheres, writes=columns.near),
        when(columns.near, *_least_of_near(columns)),
    )
    rows = (
        *_placed_stages(columns, moving),
        stage(_begin_least, writes=columns.least),
        links,
        stage(_answer, writes=columns.found),
    )
    return *moving.stages, each(columns.limits, *rows)


def _least_of_near(columns: CheckColumns) -> tuple[Stage, ...]:
    """Return stages by which `least` becomes no more than the distance of two links."""
    least = columns.least
    sphere = columns.stage(_least_of_spheres, **columns.sphere_shapes, writes=least)
    return (
        each(columns.sphere_pairs, sphere, within=columns.of_spheres.name),
        each(
            columns.shape_pairs,
            columns.stage(
                _may_be_less, **columns.shape_spheres, writes=columns.near_shape
            ),
            when(
                columns.near_shape,
                _distance_of_shapes(columns),
                columns.stage(_least, writes=least),
            ),
            within=columns.of_shapes.name,
        ),
    )


def _answer(least: Number) -> Number:
    return least


def _begin_least(sound: Number) -> Number:
    return select(sound > 0.0, np.inf, np.nan)


def _may_be_less(a: Vector, b: Vector, reach: Number, least: Number) -> Number:
    """Return a number above 0 where spheres are nearer than the least so far.

    The depth of some pairs is an upper bound, so all that may overlap are wanted.
    """
    gap = sqrt(_square(a, b)) - reach
    so_far = select(least < 0.0, 0.0, least)  # NaN stays NaN
    return so_far - gap


def _least_of_spheres(a: Vector, b: Vector, reach: Number, least: Number) -> Number:
    return _least(sqrt(_square(a, b)) - reach, least)


def _least(value: Number, least: Number) -> Number:
    # Written so that NaN of the distance becomes the least, and stays it.
    return select(value >= least, least, value)


# Motions
#
# Links approach each other by no more than w = sum_j rates_j |q1_j - q0_j| while t
# grows by 1. A pair whose spheres are farther apart than that in the step so far,
# step w < gap, cannot shorten it; for others the distance d allows (d - margin) / w.


class MotionState(NamedTuple):
    """How far a motion is proven to be free, and whether it goes on."""

    t: Number
    going: Number
    touching: Number


class MotionStart(NamedTuple):
    """What is known at the beginning of a motion."""

    state: MotionState
    travel: Vector


class StepBound(NamedTuple):
    """By how much t may grow, and the least gap of the pairs that were looked at."""

    step: Number
    gap: Number


class LinkApproach(NamedTuple):
    """Whether two links may meet within the step; no distance is known yet."""

    near: Number
    speed: Number
    least: Number


def _motion(columns: CheckColumns, moving: MovingLinks) -> tuple[Stage, ...]:
    stage = columns.stage
    links = each(
        columns.moving_link_pairs,
        stage(_may_meet, **columns.link_spheres),
        when(columns.near, *_least_of_near(columns), stage(_shortened)),
    )
    steps = repeat(
        columns.going,
        stage(_position, writes=columns.q),
        *moving.stages,
        *_placed_stages(columns, moving),
        stage(_whole_step),
        links,
        stage(_advanced),
        limit=MOST_STEPS,
    )
    return stage(_start), each(columns.limits, steps)


def _start(q0: Vector, q1: Vector) -> MotionStart:
    travel = [absolute(b - a) for a, b in zip(q0, q1, strict=True)]
    return MotionStart(MotionState(0.0, 1.0, 0.0), travel)


def _position(t: Number, q0: Vector, q1: Vector) -> Vector:
    return [a + t * (b - a) for a, b in zip(q0, q1, strict=True)]


def _whole_step(t: Number, sound: Number) -> StepBound:
    """Return the step to the end; none where nothing is known."""
    return StepBound(select(sound > 0.0, 1.0 - t, 0.0), FAR)


def _may_meet(
    a: Vector,
    b: Vector,
    reach: Number,
    margin: Number,
    travel: Vector,
    rates: Vector,
    step: Number,
) -> LinkApproach:
    """Return a number above 0 where links may meet within the step."""
    speed: Number = 0.0
    for way, rate in zip(travel, rates, strict=True):
        speed = speed + select(way > 0.0, way * rate, 0.0)  # a rate may be infinite
    gap = sqrt(_square(a, b)) - reach - margin
    return LinkApproach(select(step * speed < gap, 0.0, 1.0), speed, FAR)


def _shortened(
    least: Number, margin: Number, speed: Number, step: Number, gap: Number
) -> StepBound:
    """Return the step that a pair allows, if it is less, and the least gap of all."""
    # `least` is that of this pair of links alone. A pair that touches stops the motion,
    # and one without speed does not shorten the step.
    room = least - margin
    is_short = room < step * speed
    allowed = select(is_short, room / select(is_short, speed, 1.0), step)
    return StepBound(maximum(minimum(allowed, step), 0.0), minimum(room, gap))


def _advanced(
    t: Number, step: Number, gap: Number, rounding: Number, sound: Number
) -> MotionState:
    # Steps become ever shorter where links graze each other. A step too short to matter
    # ends the motion without a proof; `t` stays what is proven.
    is_sound, is_touching = sound > 0.0, gap <= rounding
    reached = select(is_sound & ~is_touching, minimum(t + step, 1.0), t)
    goes_on = is_sound & ~is_touching & (reached < 1.0) & (step > LEAST_STEP)
    return MotionState(
        reached,
        select(goes_on, 1.0, 0.0),
        select(is_sound & is_touching, 1.0, 0.0),
    )


STAGES: Final[
    dict[Question, Callable[[CheckColumns, MovingLinks], tuple[Stage, ...]]]
] = {"touching": _touching, "clearance": _clearance, "motion": _motion}
"""The stages of each question, from the inputs of its pipeline to its results."""
