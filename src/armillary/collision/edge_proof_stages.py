"""The pipeline of proofs of edges: whether links may touch in pieces of motions.

Each row is a piece of a motion: joint positions q in its middle, their rates by t, and
how far t reaches to both sides. A sphere of a link is somewhere in a larger one, whose
radius grows by

    h |v| + A h^2 / 2

with its velocity v in the middle of the piece and a bound A of its acceleration, see
`motion_stages`. Where no larger spheres meet, the piece is free; else nothing is known
of it, but whether links touch in its middle. It is faster than `motion_stages` since it
goes link by link and in float32 where that has a bound of its error; it proves less,
since it does not see that links may move together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple, final

import numpy as np

from armillary.collision.check_stages import square
from armillary.collision.columns import Room
from armillary.collision.edge_stages import EdgeColumns, EdgeFormulas, compared
from armillary.collision.motion_stages import coordinate_motion, velocity_at
from armillary.collision.nearness import (
    around,
    axis_of,
    beyond,
    to_axis,
    to_box,
    within,
)
from armillary.collision.shape_boxes import BoxPair, gap_of_boxes
from armillary.kernel.columns import Column, each
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.tables import Table
from armillary.kinematics.moving_links import MovingLinks
from armillary.kinematics.moving_twists import moving_twists
from armillary.spatial.pose import Pose
from armillary.spatial.vector import (
    Matrix,
    Number,
    Vector,
    Vector3,
    add,
    dot,
    norm,
    three,
)
from armillary.trace import Port, Program
from armillary.trace.functions import absolute, maximum, minimum, select

__all__ = ["EdgeProofColumns", "edge_proof_pipeline"]

ROUNDED: Any = 1e-5
"""By which part of a bound of it a speed may be wrong in float32."""


@final
class EdgeProofColumns(EdgeColumns):
    """The columns of proofs of edges, beside those of edges."""

    owner = "proofs of edges"

    qd = Column("rates of joints by t", "joints", unit="m or rad")
    half = Column("how far t reaches to both sides")
    close = Column("1 if links may touch in the piece")
    most_reach = Column("greatest coordinate for which roundings hold", unit="m")

    # Rates: see `CheckColumns`, whose columns these are.
    travel = Column("how far each joint moves", "joints", unit="m or rad")
    turns = Column("how far links turn at most", "moving", unit="rad")
    way_of = Column("how far the joint of a coordinate moves", into="travel")
    factor = Column("size of its multiplier")
    turning = Column("how fast it turns links", unit="rad per unit")
    bending = Column("bound of accelerations by speeds", unit="1 per unit")
    lever = Column("how fast it moves a link at most", unit="m per unit")
    fastest = Column("greatest speed of a link", unit="m per unit")
    turns_before = Column("turn of the link before a coordinate", into="turns")
    turns_behind = Column("turn of the link behind it", into="turns")
    way = Column("how far a coordinate moves", into="ways")
    curve = Column("its part of accelerations", into="curves")
    ways = Column("how far coordinates move", "coordinates", unit="m or rad")
    curves = Column("accelerations of points by levers", "coordinates")

    # How links and their spheres move.
    link_twist = Column("twist of the moving link of a link", 6, 1, into="twists")
    link_levers = Column("speeds of the link for unit rates", "coordinates")
    link_bounds = Column("its speed and its acceleration at most", 2, into="bounds")
    bounds = Column("those of all links", "links", 2)
    grown = Column("how far the sphere around the link moves", unit="m")
    link_grown = Column("the same, for pairs", into="growths")
    growths = Column("those of all links", "links")
    ball_twist = Column("twist of the link of a sphere", 6, 1, into="twists")
    ball_bounds = Column("bounds of that link", 2, into="bounds")
    ball_grown = Column("how far a sphere moves", into="ball_growths")
    ball_growths = Column("how far all spherical shapes move", "balls", unit="m")
    other_grown = Column("how far a sphere of another link moves", into="ball_growths")
    pair_grown_a = Column("how far the sphere around one link moves", into="growths")
    pair_grown_b = Column("the same of the other", into="growths")
    pair_twist = Column("twist of the moving link of that", 6, 1, into="twists")
    pair_bounds = Column("its bounds", 2, into="bounds")
    axis_grown = Column("how far the capsule around it moves", unit="m")
    shape_bounds = Column("bounds of the link of a shape", 2, into="bounds")
    mate_bounds = Column("bounds of the link of the other", 2, into="bounds")

    def __init__(self, moving: MovingLinks, room: Room) -> None:
        """Set the sizes; see `EdgeColumns`."""
        super().__init__(moving, room)
        self.sizes["coordinates"] = max(1, moving.coordinates)
        self.of_links = self.link_twist, self.link_levers, self.link_bounds
        self.of_links = *self.of_links, self.link_grown, self.most_reach
        self.of_balls = self.ball_twist, self.ball_bounds, self.ball_grown
        self.of_other_balls = (self.other_grown,)
        self.of_pairs = self.pair_grown_a, self.pair_grown_b
        self.of_pairs = *self.of_pairs, self.pair_twist, self.pair_bounds
        self.of_shapes = self.shape_bounds, self.mate_bounds

    @cached_property
    def coordinates(self) -> Table:
        """Return the table of the coordinates of joints, carriers first."""
        return self.table(
            "coordinates",
            *(self.way_of, self.factor, self.turning, self.bending, self.lever),
            *(self.turns_before, self.turns_behind, self.way, self.curve),
        )


def edge_proof_pipeline(moving: MovingLinks, room: Room) -> Pipeline:
    """Return the pipeline from pieces of motions to whether links may touch in them.

    Its result is 0 where a piece is free, 1 where links touch in its middle, and
    between where it is not known.

    Args:
        moving: The moving links of the cell, by straight code.
        room: As for `EdgeColumns`.
    """
    columns, twists = EdgeProofColumns(moving, room), moving_twists(moving)

    def stage(formula: Callable[..., Any], *writes: Port) -> Program:
        # Roundings are in the bounds.
        return replace(columns.stage(formula, writes=writes), is_loose=True)

    near = columns.near
    formulas = EdgeFormulas(
        stage(_place),
        stage(_place_ball),
        stage(_near_sphere, near),
        stage(_hit_sphere),
        stage(_around_box, near),
        stage(_near_box, columns.near_shape),
        stage(_hit_box),
        stage(_near_link, near),
        stage(_near_capsule),
        stage(_near_ball, columns.near_shape),
        stage(_hit_ball),
        stage(_may_meet, columns.near_call),
        stage(_may_touch, columns.boxes_meet),
        stage(_wanted, columns.wanted, columns.exactly),
        stage(_judge),
    )
    return Pipeline(
        "collision_edge_proofs",
        (columns.q, columns.qd, columns.half),
        (*twists.tables, columns.coordinates, *columns.tables),
        (
            *twists.stages,
            columns.stage(partial(_begin, links=moving.count)),
            each(columns.coordinates, stage(coordinate_motion)),
            *compared(columns, formulas, has_many=room.has_many),
            columns.stage(_verdict, writes=columns.found),
        ),
        (columns.found.name,),
        (
            *(columns.balls, columns.bounds, columns.growths),
            *(columns.points, columns.filled, columns.ball_growths),
            *(columns.ways, columns.curves),
        ),
    )


class PieceBeginning(NamedTuple):
    """What is known before links are looked at."""

    travel: Vector
    turns: Vector
    fastest: Number
    going: Number
    close: Number


class LinkInMotion(NamedTuple):
    """Where the sphere around a link is, and how far it moves."""

    here: Vector3
    here_square: Number
    link_ball: Vector3
    link_filled: Number
    link_bounds: Vector
    grown: Number
    link_grown: Number
    close: Number
    low: Vector3
    high: Vector3


class PieceFlags(NamedTuple):
    """Whether links touch in the middle, and whether they may in the piece."""

    going: Number
    close: Number


class BallInMotion(NamedTuple):
    """Where a sphere is in the middle of a piece, and how far it moves in it."""

    ball_point: Vector3
    ball_grown: Number


class CapsuleInMotion(NamedTuple):
    """The axis of the capsule around a link, how far it moves, and what is near it."""

    axis_start: Vector3
    axis_way: Vector3
    axis_grown: Number
    near: Number


def _begin(qd: Vector, poses: Sequence[Matrix], *, links: int) -> PieceBeginning:
    # A sum is finite only if all that is summed is.
    total: Number = sum(np.ravel(np.asarray(poses)).tolist(), 0.0)
    is_known = absolute(total) < np.inf
    return PieceBeginning(
        [absolute(x) for x in qd],
        [0.0] * links,
        0.0,
        select(is_known, 1.0, 0.0),
        0.0,
    )


def _verdict(going: Number, close: Number) -> Number:
    return select(going > 0.0, 0.5 * close, 1.0)


def _moved(
    pose: Matrix, twist: Matrix, point: Vector3, bounds: Vector, half: Number
) -> Number:
    """Return how far a point of a link moves within a piece, at most."""
    speed, bend = bounds
    v = norm(velocity_at(pose, twist, point)) + ROUNDED * speed
    return half * minimum(v + 0.5 * half * bend, speed)


def _place(  # noqa: PLR0913, PLR0917
    link_pose: Matrix,
    link_twist: Matrix,
    link_centre: Vector,
    link_levers: Vector,
    link_radius: Number,
    most_reach: Number,
    ways: Vector,
    curves: Vector,
    half: Number,
    close: Number,
) -> LinkInMotion:
    here = Pose.from_matrix(link_pose) @ three(link_centre)
    speed, bend = (
        sum((x * y for x, y in zip(link_levers, each, strict=True)), 0.0)
        for each in (ways, curves)
    )
    bounds = [speed * (1.0 + ROUNDED), bend * (1.0 + ROUNDED)]
    grown = _moved(link_pose, link_twist, here, bounds, half)
    here_square = dot(here, here)
    room = most_reach - link_radius
    is_usual = (here_square <= room * room) & (room > 0.0)
    low, high = around(here, link_radius + grown)
    close = select(is_usual, close, 1.0)
    return LinkInMotion(
        here, here_square, here, 0.0, bounds, grown, grown, close, low, high
    )


def _place_ball(
    ball_pose: Matrix,
    ball_twist: Matrix,
    ball_bounds: Vector,
    ball_centre: Vector,
    half: Number,
) -> BallInMotion:
    point = Pose.from_matrix(ball_pose) @ three(ball_centre)
    grown = _moved(ball_pose, ball_twist, point, ball_bounds, half)
    return BallInMotion(point, grown)


def _flags(
    square_of_distance: Number, reach: Number, grown: Number, close: Number
) -> PieceFlags:
    is_close = beyond(square_of_distance, reach + grown) <= 0.0
    return PieceFlags(beyond(square_of_distance, reach), select(is_close, 1.0, close))


def _near_sphere(
    here: Vector,
    link_radius: Number,
    grown: Number,
    still_centre: Vector,
    still_radius: Number,
) -> Number:
    reach = link_radius + still_radius + grown
    return within(square(here, still_centre), reach)


def _hit_sphere(
    ball_point: Vector,
    ball_grown: Number,
    ball_radius: Number,
    still_centre: Vector,
    still_radius: Number,
    close: Number,
) -> PieceFlags:
    d2 = square(ball_point, still_centre)
    return _flags(d2, ball_radius + still_radius, ball_grown, close)


def _around_box(
    here: Vector,
    link_radius: Number,
    grown: Number,
    box_centre: Vector,
    box_reach: Number,
) -> Number:
    return _near_sphere(here, link_radius, grown, box_centre, box_reach)


def _near_box(
    here: Vector,
    link_radius: Number,
    grown: Number,
    box_centre: Vector,
    box_axes: Matrix,
    box_half: Vector,
    box_radius: Number,
) -> Number:
    d2 = to_box(here, box_centre, box_axes, box_half)
    return within(d2, link_radius + box_radius + grown)


def _hit_box(
    ball_point: Vector,
    ball_grown: Number,
    ball_radius: Number,
    box_centre: Vector,
    box_axes: Matrix,
    box_half: Vector,
    box_radius: Number,
    close: Number,
) -> PieceFlags:
    d2 = to_box(ball_point, box_centre, box_axes, box_half)
    return _flags(d2, ball_radius + box_radius, ball_grown, close)


def _near_link(
    pair_a: Vector,
    pair_b: Vector,
    pair_reach: Number,
    pair_grown_a: Number,
    pair_grown_b: Number,
) -> Number:
    return within(square(pair_a, pair_b), pair_reach + pair_grown_a + pair_grown_b)


def _near_capsule(  # noqa: PLR0913, PLR0917
    pair_a: Vector,
    pair_pose: Matrix,
    pair_twist: Matrix,
    pair_bounds: Vector,
    pair_ends: Matrix,
    pair_scale: Number,
    pair_near: Number,
    pair_grown_a: Number,
    half: Number,
) -> CapsuleInMotion:
    start, way = axis_of(pair_pose, pair_ends)
    # Velocities along the axis are linear, so that one of its ends is the fastest.
    grown = maximum(
        _moved(pair_pose, pair_twist, start, pair_bounds, half),
        _moved(pair_pose, pair_twist, add(start, way), pair_bounds, half),
    )
    d2 = to_axis(pair_a, start, way, pair_scale)
    near = within(d2, pair_near + pair_grown_a + grown)
    return CapsuleInMotion(start, way, grown, near)


def _near_ball(
    ball_point: Vector,
    ball_grown: Number,
    ball_radius: Number,
    axis_start: Vector,
    axis_way: Vector,
    axis_grown: Number,
    pair_scale: Number,
    pair_radius: Number,
) -> Number:
    d2 = to_axis(ball_point, axis_start, axis_way, pair_scale)
    return within(d2, ball_radius + pair_radius + ball_grown + axis_grown)


def _hit_ball(
    ball_point: Vector,
    ball_grown: Number,
    ball_radius: Number,
    other_point: Vector,
    other_grown: Number,
    other_radius: Number,
    close: Number,
) -> PieceFlags:
    reach, grown = ball_radius + other_radius, ball_grown + other_grown
    return _flags(square(ball_point, other_point), reach, grown, close)


def _speeds(shape_bounds: Vector, mate_bounds: Vector, half: Number) -> Number:
    """Return how far two links approach each other within a piece, at most."""
    return half * (shape_bounds[0] + mate_bounds[0])


def _may_meet(  # noqa: PLR0913, PLR0917
    shape_link: Matrix,
    shape_centre: Vector,
    shape_radius: Number,
    mate_link: Matrix,
    mate_centre: Vector,
    mate_radius: Number,
    shape_bounds: Vector,
    mate_bounds: Vector,
    half: Number,
    enough: Number,
) -> Number:
    one = Pose.from_matrix(shape_link) @ three(shape_centre)
    other = Pose.from_matrix(mate_link) @ three(mate_centre)
    way = _speeds(shape_bounds, mate_bounds, half)
    reach = shape_radius + mate_radius + enough + way
    # A half space reaches everywhere.
    return maximum(within(square(one, other), reach), select(reach < np.inf, -1.0, 1.0))


def _may_touch(
    boxes: BoxPair, shape_bounds: Vector, mate_bounds: Vector, half: Number
) -> Number:
    way = _speeds(shape_bounds, mate_bounds, half)
    return (1.0 + ROUNDED) * way - gap_of_boxes(boxes)


def _wanted(
    plenty: Number, shape_bounds: Vector, mate_bounds: Vector, half: Number
) -> tuple[Number, Number]:
    # They are free where they are farther apart than they can approach each other.
    way = _speeds(shape_bounds, mate_bounds, half)
    return plenty + (1.0 + ROUNDED) * way, 1.0


def _judge(
    value: Number,
    enough: Number,
    near_call: Number,
    shape_bounds: Vector,
    mate_bounds: Vector,
    half: Number,
    flags: PieceFlags,
) -> PieceFlags:
    # Of rows that are not near, the value may be anything.
    is_far = near_call <= 0.0
    most = enough + _speeds(shape_bounds, mate_bounds, half)
    return PieceFlags(
        select((value > enough) | is_far, flags.going, 0.0),
        select((value > most) | is_far, flags.close, 1.0),
    )
