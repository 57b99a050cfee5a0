"""The pipelines that measure every pair of links: distance, contact or slopes.

They begin with the poses of moving links. The nearest of the pairs of shapes of two
links counts; a pair is left out if the spheres around its shapes are farther apart than
the least distance so far. Shapes that are both spheres are measured without code; their
points, by the code that other pairs have, are those of the nearest alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from armillary.collision.check_stages import (
    distance_of_shapes,
    least_of_spheres,
    lesser,
    may_be_less,
)
from armillary.collision.columns import (
    RECORDS_OF_SHAPES,
    RECORDS_OF_SPHERES,
    CheckColumns,
)
from armillary.kernel.columns import call, each, when
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.stages import Stage
from armillary.spatial.pose import Pose
from armillary.spatial.vector import (
    Matrix,
    Number,
    Vector,
    Vector3,
    cross,
    subtract,
    three,
)
from armillary.trace import Port
from armillary.trace.functions import absolute, minimum, select

__all__ = ["Measure", "nearest_pipeline", "result_of", "speeds_along"]

Measure: TypeAlias = Literal["distance", "contact", "slope"]
"""What is answered of each pair of links: its distance [m], the numbers of `CONTACT`
where it is nearer than asked for, or the slopes of its distance by joints [m per unit].
All are NaN where a pose is."""


def result_of(columns: CheckColumns, asked: Measure) -> tuple[Port, Port]:
    """Return the result of a pair of links, and those of all."""
    return {
        "distance": (columns.pair_distance, columns.pair_distances),
        "contact": (columns.pair_contact, columns.pair_contacts),
        "slope": (columns.pair_slope, columns.pair_slopes),
    }[asked]


def nearest_pipeline(columns: CheckColumns, asked: Measure) -> Pipeline:
    """Return the pipeline from poses to the results of pairs.

    Slopes take the twists of links, too, and contacts `beyond`. In tables, reaches are
    sums of radii.
    """
    stage = columns.stage
    result, results = result_of(columns, asked)
    pairs = columns.link_pairs_with(result, results)
    more: tuple[Port, ...] = ()
    stages: tuple[Stage, ...]
    if asked == "distance":
        begin = stage(_begin_least, writes=columns.least)
        stages = begin, *_distances(columns), stage(_distance, writes=result)
    elif asked == "slope":
        more = (columns.twists,)
        begin = stage(_begin_nearest)
        stages = begin, *_points(columns), stage(_slope, writes=result)
    else:
        more = (columns.beyond,)
        near = stage(may_be_less, **columns.link_spheres, writes=columns.near)
        begin = stage(_begin_within), near
        found = when(columns.near, *_points(columns))
        stages = *begin, found, stage(_contact, writes=result)
    return Pipeline(
        f"nearest_{asked}",
        (columns.poses, *more),
        (
            columns.spheres,
            columns.shapes,
            pairs,
            columns.numbered_sphere_pairs,
            columns.numbered_shape_pairs,
        ),
        (
            each(columns.spheres, stage(_centre, writes=columns.sphere)),
            stage(_exactly, poses=columns.poses, writes=columns.exactly),
            each(pairs, *stages),
        ),
        (results.name,),
        (columns.centres, results),
    )


def _exactly(poses: Sequence[Matrix]) -> Number:
    """Return that all distances are measured."""
    return 1.0


def _centre(carrier_pose: Matrix, centre: Vector) -> Vector3:
    return Pose.from_matrix(carrier_pose) @ three(centre)


# Distances alone


def _distances(columns: CheckColumns) -> tuple[Stage, ...]:
    """Return the stages to the least distance of two links."""
    stage, least = columns.stage, columns.least
    sphere = stage(least_of_spheres, **columns.sphere_shapes, writes=least)
    return (
        each(columns.numbered_sphere_pairs, sphere, within=columns.of_spheres.name),
        each(
            columns.numbered_shape_pairs,
            stage(may_be_less, **columns.shape_spheres, writes=columns.near_shape),
            when(
                columns.near_shape,
                distance_of_shapes(columns, least),
                stage(lesser, writes=least),
            ),
            within=columns.of_shapes.name,
        ),
    )


def _begin_least(link_a: Vector, link_b: Vector) -> Number:
    """Return infinity, or NaN where the pose of a link has NaN, as its sphere then."""
    total: Number = sum([*link_a, *link_b], 0.0)
    return select(absolute(total) < np.inf, np.inf, np.nan)


def _distance(link_a: Vector, link_b: Vector, least: Number) -> Number:
    # Unknown is also how far spheres are apart that are infinitely far away.
    return minimum(_begin_least(link_a, link_b), least)


# Points and normals


class NearestShapes(NamedTuple):
    """The nearest pair of shapes so far: its number, distance, points and normal."""

    nearest: Number
    least: Number
    least_points: Matrix
    least_normal: Vector


class NearestSpheres(NamedTuple):
    """The nearest pair of spherical shapes so far: its number and distance."""

    nearest: Number
    least: Number


def _points(columns: CheckColumns) -> tuple[Stage, ...]:
    """Return the stages to the nearest points of two links, and their normal."""
    stage, answers = columns.stage, _answers(columns)
    spheres, shapes = columns.numbered_sphere_pairs, columns.numbered_shape_pairs
    of_spheres, of_shapes = columns.of_spheres.name, columns.of_shapes.name
    X_A, X_B = columns.sphere_X_A, columns.sphere_X_B
    more = columns.least, columns.exactly
    measured = call(
        columns.distance.name,
        (columns.X_A, columns.X_B, *more),
        answers,
        RECORDS_OF_SHAPES,
    )
    of_balls = call(
        columns.sphere_distance.name, (X_A, X_B, *more), answers, RECORDS_OF_SPHERES
    )
    return (
        each(
            spheres, stage(_nearer_sphere, **columns.sphere_shapes), within=of_spheres
        ),
        each(
            spheres,
            stage(_is_nearest, writes=columns.is_chosen),
            when(
                columns.is_chosen,
                of_balls,
                stage(_taken, number=columns.sphere_number),
            ),
            within=of_spheres,
        ),
        each(
            shapes,
            stage(may_be_less, **columns.shape_spheres, writes=columns.near_shape),
            when(columns.near_shape, measured, stage(_nearer_shape)),
            within=of_shapes,
        ),
    )


def _answers(columns: CheckColumns) -> tuple[Port, ...]:
    """Return what the code of a pair of shapes answers if points are asked for."""
    return columns.value, columns.gap, columns.points, columns.normal


def _begin_nearest(link_a: Vector, link_b: Vector, first_pair: Number) -> NearestShapes:
    unknown = 0.0 * first_pair + np.nan
    return NearestShapes(
        first_pair,
        _begin_least(link_a, link_b),
        [[unknown] * 3] * 2,
        [unknown] * 3,
    )


def _begin_within(
    link_a: Vector, link_b: Vector, first_pair: Number, beyond: Number
) -> NearestShapes:
    """Return the same, where distances from `beyond` on are not wanted."""
    begin = _begin_nearest(link_a, link_b, first_pair)
    return begin._replace(least=select(begin.least > beyond, beyond, begin.least))


def _nearer_sphere(
    a: Vector, b: Vector, reach: Number, sphere_number: Number, spheres: NearestSpheres
) -> NearestSpheres:
    least = least_of_spheres(a, b, reach, spheres.least)
    is_less = least < spheres.least
    return NearestSpheres(select(is_less, sphere_number, spheres.nearest), least)


def _is_nearest(sphere_number: Number, spheres: NearestSpheres) -> Number:
    is_known = absolute(spheres.least) < np.inf
    return select(is_known & (sphere_number == spheres.nearest), 1.0, 0.0)


def _taken(
    value: Number, points: Matrix, normal: Vector, number: Number
) -> NearestShapes:
    return NearestShapes(number, value, points, normal)


def _nearer_shape(
    value: Number,
    points: Matrix,
    normal: Vector,
    shape_number: Number,
    shape_order: Number,
    shapes: NearestShapes,
) -> NearestShapes:
    """Return the nearest pair of shapes, now that another one is known."""
    # The distance of NaN becomes the least, and stays it. Points and normals are of the
    # shapes in the order of the code.
    is_kept, is_ordered = value >= shapes.least, shape_order > 0.0
    ordered = zip(points, points[::-1], shapes.least_points, strict=True)
    return NearestShapes(
        select(is_kept, shapes.nearest, shape_number),
        lesser(value, shapes.least),
        [
            [
                select(is_kept, z, select(is_ordered, x, y))
                for x, y, z in zip(*each, strict=True)
            ]
            for each in ordered
        ],
        [
            select(is_kept, z, shape_order * x)
            for x, z in zip(normal, shapes.least_normal, strict=True)
        ],
    )


def _contact(shapes: NearestShapes) -> Vector:
    points = [x for point in shapes.least_points for x in point]
    return [shapes.least, shapes.nearest, *points, *shapes.least_normal]


# Slopes
#
# Two bodies approach each other as their nearest points do, along the normal n between
# these, as if the points were fixed to the links: that they slide along the surfaces is
# a motion across n. So the slope is n' (v_b - v_a).


def _slope(
    shapes: NearestShapes,
    link_X_A: Matrix,
    link_X_B: Matrix,
    twists_a: Matrix,
    twists_b: Matrix,
    moves: Vector,
) -> Vector:
    """Return the slopes of the distance of two links; 0 for links fixed together."""
    n = three(shapes.least_normal)
    (p, q), (a_moves, b_moves) = shapes.least_points, moves
    unknown = select(absolute(shapes.least) < np.inf, 0.0, np.nan)
    return [
        select(b_moves > 0.0, b, 0.0) - select(a_moves > 0.0, a, 0.0) + unknown
        for a, b in zip(
            speeds_along(link_X_A, twists_a, three(p), n),
            speeds_along(link_X_B, twists_b, three(q), n),
            strict=True,
        )
    ]


def speeds_along(X: Matrix, twists: Matrix, point: Vector3, n: Vector3) -> list[Number]:
    """Return the velocity of a point of a link along a direction, by each column.

    That is n'(v + w x r) = f'(v, w), where f is the wrench of n at the point.

    Args:
        X: The pose of the link [m], whose rows are three.
        twists: Twists of its origin, linear first, six rows of columns.
        point: The point [m], fixed to the link.
        n: The direction.
    """
    origin = three([X[k][3] for k in range(3)])
    moment = cross(subtract(point, origin), n)
    wrench = [*n, *moment]
    return [
        sum((f * row[j] for f, row in zip(wrench, twists, strict=True)), 0.0)
        for j in range(len(twists[0]))
    ]
