"""The pipeline of motions: how far straight motions in joint positions are free.

A motion is q = q0 + t (q1 - q0), for t from 0 to 1. It is proven piece by piece, with a
piece in each lane. Of two balls, say r is the way from one centre to the other at a
point t of a piece, v is its rate by t, R the sum of both radii, and A a bound of |r''|.
Then, as long as the piece lasts,

    |r(t + s)| >= |r + s v| - A s^2 / 2,    |r + s v|^2 >= r . r + 2 s r . v

so that balls do not meet within s where r . r + 2 s r . v is above the square of
R + A s^2 / 2. The same balls are apart by d = |r| - R, which is at least
d + s (r . v / |r|) - A s^2 / 2: the root of that is how far they are free. Of shapes
that are not balls the distance d is known, and a bound U of the speed at which they
approach each other, so that d - U s - A s^2 / 2 is in its place. (Conservative
advancement: Mirtich, "Impulse-based dynamic simulation of rigid body systems", 1996.)

Distances, and so r . v, do not depend on who sees the motion. A is that of both links
as seen from the last link that carries both: what moves them together does not count.
Along a chain a point that joint j moves, at rates v_i, is accelerated by no more than

    sum_j v_j l_j (k_j v_j + 2 sum_(i < j) w_i v_i)

with bounds l_j of its speed and w_i of the turn at unit rate of a joint, and k_j of
`bending`; the sum over i goes from the link that carries both to joint j. Where k_j is
unknown, l_j alone bounds the speed of approach.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from armillary.collision.check_stages import distance_of_shapes, square
from armillary.collision.columns import (
    DETAILS,
    SPHERES_A,
    SPHERES_B,
    CheckColumns,
    Room,
)
from armillary.collision.shape_boxes import BoxPair, gap_of_boxes
from armillary.kernel.columns import each, subdivide, when
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.stages import Stage
from armillary.kinematics.moving_links import MovingLinks
from armillary.kinematics.moving_twists import moving_twists
from armillary.spatial.pose import Pose
from armillary.spatial.vector import (
    Matrix,
    Number,
    Vector,
    Vector3,
    add,
    cross,
    dot,
    norm,
    subtract,
    three,
)
from armillary.trace import Port
from armillary.trace.functions import absolute, maximum, minimum, select, sqrt

__all__ = ["LARGEST", "coordinate_motion", "motion_pipeline", "velocity_at"]

MOST_ROUNDS: Final = 2_000
"""Most rounds of pieces of a motion; beyond, it is not proven."""

FEW_ROUNDS: Final = 256
"""The same where any contact ends it."""

SHORTEST: Final = 1e-12
"""Pieces below this part of a motion are not divided any more."""

STRIDE: Final = 0.3
"""How far links may move in a piece at first, by bounds of speeds [m]."""

GAP_AT_END: Final = 0.9
"""A piece ends where the gap of a pair is this part of what counts as touching."""

LARGEST: Final = 1e100
"""What stands for infinite bounds, so that 0 times it is 0."""

ROUNDING: Final = 1e-12
"""By which part sums over joints may be wrong."""

UNKNOWN: Final = 1e30
"""Bounds of accelerations above this count as unknown."""


def motion_pipeline(
    moving: MovingLinks, room: Room, *, anywhere: bool = False
) -> Pipeline:
    """Return the pipeline from both ends of motions to how far they are free.

    Its result is the part of a motion that is proven to be free, and 1 if links touch
    there, else 0; NaN where a motion leaves the joint positions for which bounds hold.

    Args:
        moving: The moving links of the cell.
        room: For what there is room.
        anywhere: Whether any contact ends a motion, and so does what takes many rounds
            to prove: for those who ask only whether it is free.
    """
    columns, twists = CheckColumns(moving, room), moving_twists(moving)
    stage = columns.stage
    piece = columns.t, columns.back, columns.ahead, columns.touching
    coordinates = each(columns.coordinates, stage(coordinate_motion))
    pieces = subdivide(
        piece,
        stage(_position, writes=columns.q),
        *twists.stages,
        stage(_begin),
        each(columns.moving_balls, stage(_moving_ball)),
        each(columns.fixed_balls, stage(_fixed_ball)),
        _links(columns),
        stage(_end),
        longest=columns.longest,
        covered=columns.reached,
        ended=columns.ended,
        shortest=SHORTEST,
        limit=FEW_ROUNDS if anywhere else MOST_ROUNDS,
        anywhere=anywhere,
    )
    rows = (
        stage(partial(_start, links=moving.count)),
        coordinates,
        stage(_longest, writes=columns.longest),
        when(columns.is_within, pieces),
    )
    answer = stage(_answer, writes=columns.how_far)
    return Pipeline(
        "collision_motion",
        (columns.q0, columns.q1),
        (
            *twists.tables,
            columns.motion_limits,
            columns.coordinates,
            columns.moving_balls,
            columns.fixed_balls,
            columns.moving_spheres,
            columns.shapes,
            columns.ball_pairs,
            columns.moving_link_pairs,
            columns.moving_sphere_pairs,
            columns.moving_shape_pairs,
        ),
        (each(columns.motion_limits, *rows, answer),),
        (columns.how_far.name,),
        (
            *(columns.balls, columns.velocities, columns.placed),
            *(columns.ways, columns.curves),
        ),
    )


# What a motion is, before it is divided


class MotionStart(NamedTuple):
    """The rates of joints along a motion, and that nothing else is known."""

    qd: Vector
    travel: Vector
    turns: Vector
    fastest: Number
    is_within: Number
    reached: Number
    ended: Number


class CoordinateMotion(NamedTuple):
    """How far a coordinate moves, and what that does to links behind it."""

    way: Number
    curve: Number
    turns_behind: Number
    fastest: Number


def _start(
    q0: Vector, q1: Vector, lower: Vector, upper: Vector, *, links: int
) -> MotionStart:
    way = [b - a for a, b in zip(q0, q1, strict=True)]
    is_within: Any = True
    for q in (q0, q1):  # false of NaN, too
        for x, low, high in zip(q, lower, upper, strict=True):
            is_within = is_within & (low <= x) & (x <= high)
    return MotionStart(
        *(way, [absolute(x) for x in way], [0.0] * links, 0.0),
        select(is_within, 1.0, 0.0),
        np.nan,
        0.0,
    )


def coordinate_motion(
    way_of: Number,
    factor: Number,
    turning: Number,
    bending: Number,
    turns_before: Number,
    lever: Number,
    fastest: Number,
) -> CoordinateMotion:
    """Return how far a coordinate moves, and what that does to links behind it."""
    way = factor * way_of
    curve = way * (bending * way + 2.0 * turns_before)
    turns = turns_before + turning * way
    return CoordinateMotion(way, curve, turns, fastest + lever * way)


def _longest(fastest: Number) -> Number:
    """Return how long a piece is in which links move as far as pieces are to be."""
    return select(fastest > 0.0, STRIDE / maximum(fastest, STRIDE), 1.0)


# Where links are in the middle of a piece, and how they move


class Beginning(NamedTuple):
    """Whether poses are known, and how far a piece reaches."""

    sound: Number
    half: Number


class CentreInMotion(NamedTuple):
    """The centre of a sphere in the world, and its velocity."""

    shape_ball: Vector
    shape_velocity: Vector3


class MovingBall(NamedTuple):
    """A sphere around a link with how far it moves, and its velocity."""

    ball: Vector
    ball_velocity: Vector3
    is_placed: Number


class FixedBall(NamedTuple):
    """The same of a link that stands still."""

    fixed_at: Vector
    fixed_velocity: Vector3
    fixed_placed: Number


def _position(t: Number, q0: Vector, qd: Vector) -> Vector:
    return [a + t * rate for a, rate in zip(q0, qd, strict=True)]


def _begin(poses: Sequence[Matrix], back: Number, ahead: Number) -> Beginning:
    # A sum is finite only if all that is summed is.
    total: Number = sum(np.ravel(np.asarray(poses)).tolist(), 0.0)
    sound = select(absolute(total) < np.inf, 1.0, 0.0)
    return Beginning(sound, maximum(back, ahead))


def velocity_at(pose: Matrix, twist: Matrix, point: Vector3) -> Vector3:
    """Return the velocity of a point of the world that moves with a link."""
    v, w = _twist(twist)
    arm = subtract(point, Pose.from_matrix(pose).position)
    return add(v, cross(w, arm))


def _twist(twist: Matrix) -> tuple[Vector3, Vector3]:
    numbers = [row[0] for row in twist]
    return three(numbers[:3]), three(numbers[3:])


def _moving_centre(
    carrier_pose: Matrix, carrier_twist: Matrix, centre: Vector
) -> CentreInMotion:
    point = Pose.from_matrix(carrier_pose) @ three(centre)
    v = velocity_at(carrier_pose, carrier_twist, point)
    return CentreInMotion([*point, 0.0], v)


def _moving_ball(
    ball_pose: Matrix,
    ball_twist: Matrix,
    ball_centre: Vector,
    ball_levers: Vector,
    ways: Vector,
    curves: Vector,
    half: Number,
) -> MovingBall:
    """Return the sphere around a link, and how far it can move within half."""
    point = Pose.from_matrix(ball_pose) @ three(ball_centre)
    v = velocity_at(ball_pose, ball_twist, point)
    bend, speed = _sum(ball_levers, curves), _sum(ball_levers, ways)
    way = half * (norm(v) + 0.5 * half * bend)
    # The smaller of two bounds; NaN of a velocity stays NaN.
    return MovingBall([*point, minimum(way, half * speed)], v, 0.0)


def _fixed_ball(fixed_ball: Vector) -> FixedBall:
    return FixedBall(fixed_ball, (0.0, 0.0, 0.0), 0.0)


def _sum(a: Vector, b: Vector) -> Number:
    return sum((x * y for x, y in zip(a, b, strict=True)), 0.0)


# Pairs
#
# First whether the spheres of two links may meet, wherever they move to within the
# piece; then with their velocities and the accelerations of this pair; then so for
# their shapes. What is left shortens the piece.


class PairBounds(NamedTuple):
    """Bounds of how two links move against each other."""

    speed: Number
    bend: Number


class TouchLimits(NamedTuple):
    """What decides whether a pair touches."""

    margin: Number
    rounding: Number


class BothShapes(NamedTuple):
    """How two shapes move, and the link that carries both."""

    common_pose: Matrix
    common_twist: Matrix
    twist_a: Matrix
    twist_b: Matrix
    radius_a: Number
    radius_b: Number


class PieceLength(NamedTuple):
    """How far a piece is free to both sides."""

    back: Number
    ahead: Number


class PieceState(NamedTuple):
    """How far a piece is free to both sides, and whether links touch in between."""

    back: Number
    ahead: Number
    touching: Number


def _links(columns: CheckColumns) -> Stage:
    stage = columns.stage

    def near(kind: str, *stages: Stage) -> tuple[Stage, ...]:
        """Return stages for the pairs of shapes of a kind that may meet."""
        meet = stage(_may_meet, pair=_pair(columns, kind), writes=columns.near_shape)
        return meet, when(columns.near_shape, *stages)

    spheres = each(
        columns.moving_sphere_pairs,
        *near("sphere", stage(_allowed, pair=_pair(columns, "sphere"))),
        within=columns.of_spheres.name,
    )
    shapes = each(
        columns.moving_shape_pairs,
        *near(
            "shape",
            stage(_fall, pair=_pair(columns, "shape")),
            stage(_may_touch, writes=columns.boxes_meet),
            when(
                columns.boxes_meet,
                distance_of_shapes(columns, columns.wanted),
                stage(_allowed_to_shapes),
            ),
        ),
        within=columns.of_shapes.name,
    )
    balls = (columns.ball_a, columns.ball_b)
    velocities = (columns.ball_velocity_a, columns.ball_velocity_b)
    pair = each(
        columns.moving_link_pairs,
        stage(_pair_bounds),
        stage(
            _may_meet,
            pair=(*balls, *velocities, columns.ball_reach),
            limits=None,
            writes=columns.near_link,
        ),
        when(columns.near_link, stage(_unplaced), *_placing(columns), spheres, shapes),
        within=DETAILS,
    )
    return each(
        columns.ball_pairs,
        stage(_are_near, writes=columns.near),
        when(columns.near, pair),
    )


def _pair(columns: CheckColumns, kind: str) -> list[Port]:
    """Return the spheres of a pair of shapes, their velocities, and their reach."""
    names = "ball_a", "ball_b", "velocity_a", "velocity_b", "reach"
    return [columns.named(f"{kind}_{name}") for name in names]


def _placing(columns: CheckColumns) -> tuple[Stage, ...]:
    """Return stages that place the spheres of shapes of two links, once in a piece."""
    place = columns.stage(_moving_centre)
    sides = (columns.unplaced_a, SPHERES_A), (columns.unplaced_b, SPHERES_B)
    return tuple(
        when(unplaced, each(columns.moving_spheres, place, within=spheres))
        for unplaced, spheres in sides
    )


class Unplaced(NamedTuple):
    """Of which links spheres of shapes are not yet placed; then they are."""

    unplaced_a: Number
    unplaced_b: Number
    is_placed_a: Number
    is_placed_b: Number


def _unplaced(is_placed_a: Number, is_placed_b: Number) -> Unplaced:
    return Unplaced(1.0 - is_placed_a, 1.0 - is_placed_b, 1.0, 1.0)


def _are_near(ball_a: Vector, ball_b: Vector, ball_reach: Number) -> Number:
    """Return a number above 0 unless two spheres stay apart; so if one is NaN."""
    most = ball_reach + (ball_a[3] + ball_b[3])
    return select(square(ball_a[:3], ball_b[:3]) > most * most, 0.0, 1.0)


def _pair_bounds(
    levers: Vector, ways: Vector, curves: Vector, common_turn: Number
) -> PairBounds:
    # A little less is taken off than what the sum has of it, so that rounding does not
    # take off too much, and that of an unknown turn, which is large, the rest is, too.
    speed = _sum(levers, ways)
    bend = _sum(levers, curves) - 2.0 * (1.0 - ROUNDING) * common_turn * speed
    # Of huge numbers nothing may be left; what is unknown is large.
    return PairBounds(speed, select(bend >= 0.0, bend, LARGEST))


def _may_meet(
    pair: Sequence[Any],
    bounds: PairBounds,
    left: PieceLength,
    limits: TouchLimits | None = None,
) -> Number:
    """Return a number above 0 unless two spheres cannot meet in what is left.

    Args:
        pair: Of `_pair`.
        bounds: Of its motion.
        left: What is left of the piece.
        limits: What counts as touching, if that is not part of the reach.
    """
    r, v, reach = _approach(pair)
    apart, rate = dot(r, r), dot(r, v)
    least = apart + 2.0 * minimum(left.ahead * rate, -(left.back * rate))
    half = maximum(left.back, left.ahead)
    grown = reach + (limits.margin + limits.rounding if limits else 0.0)
    most = grown + 0.5 * bounds.bend * half * half
    fast = grown + bounds.speed * half
    is_apart = (least > most * most) | (apart > fast * fast)
    return select(is_apart, 0.0, 1.0)


def _approach(pair: Sequence[Any]) -> tuple[Vector3, Vector3, Number]:
    """Return the way between centres, its rate, and the sum of both radii."""
    a, b, v_a, v_b, reach = pair
    v = subtract(three(v_a), three(v_b))
    return subtract(three(a[:3]), three(b[:3])), v, reach


def _allowed(
    pair: Sequence[Any], limits: TouchLimits, bounds: PairBounds, state: PieceState
) -> PieceState:
    """Return what two spheres leave of a piece."""
    r, v, reach = _approach(pair)
    d = norm(r)
    # Of equal centres there is no rate; they touch.
    rate = dot(r, v) / maximum(d, 1e-300)
    gap = d - reach - limits.margin
    return _shortened(gap, (rate, -rate), limits.rounding, bounds, state)


class ShapesInMotion(NamedTuple):
    """How fast two shapes approach each other, and what of their distance counts."""

    fall: Number
    wanted: Number
    exactly: Number


def _fall(
    pair: Sequence[Any],
    sides: BothShapes,
    limits: TouchLimits,
    bounds: PairBounds,
    left: PieceLength,
) -> ShapesInMotion:
    """Return how fast points of two shapes can move at most.

    That is as seen from the link that carries both. Shapes that are farther apart than
    they can approach each other in what is left of the piece leave it as it is.
    """
    speed: Number = 0.0
    _, turn = _twist(sides.common_twist)
    a, b, v_a, v_b, _ = pair
    for point, velocity, twist, radius in (
        (a, v_a, sides.twist_a, sides.radius_a),
        (b, v_b, sides.twist_b, sides.radius_b),
    ):
        carried = velocity_at(sides.common_pose, sides.common_twist, three(point[:3]))
        spin = norm(subtract(_twist(twist)[1], turn))
        way = select(spin > 0.0, spin * radius, 0.0)  # a radius may be infinite
        speed = speed + norm(subtract(three(velocity), carried)) + way
    half = maximum(left.back, left.ahead)
    bend, fall = _usable(bounds, speed)
    room = half * (fall + 0.5 * half * bend) + 2.0 * limits.rounding
    return ShapesInMotion(speed, limits.margin + (1.0 + ROUNDING) * room, 1.0)


def _may_touch(boxes: BoxPair, wanted: Number) -> Number:
    """Return a number above 0 unless shapes are farther apart than is wanted."""
    return select(gap_of_boxes(boxes) > wanted, 0.0, 1.0)


def _usable(bounds: PairBounds, fall: Number) -> tuple[Number, Number]:
    """Return the acceleration and the speed of approach that bounds leave."""
    is_known = bounds.bend < UNKNOWN
    return select(is_known, bounds.bend, 0.0), select(is_known, fall, bounds.speed)


def _allowed_to_shapes(
    value: Number,
    fall: Number,
    limits: TouchLimits,
    bounds: PairBounds,
    state: PieceState,
) -> PieceState:
    """Return what two shapes leave of a piece, of which the distance is known."""
    gap = value - limits.margin
    return _shortened(gap, (fall, fall), limits.rounding, bounds, state)


def _shortened(
    gap: Number,
    falls: tuple[Number, Number],
    rounding: Number,
    bounds: PairBounds,
    state: PieceState,
) -> PieceState:
    """Return what a pair leaves of a piece: it nearly touches farther on.

    Args:
        gap: Its distance less the margin.
        falls: By how much that falls per unit, at most, before t and behind t: two
            numbers of the same size.
        rounding: Gaps of no more touch.
        bounds: Of its motion.
        state: What is left.
    """
    (bend, before), (_, behind) = (_usable(bounds, fall) for fall in falls)
    is_touching = gap <= rounding
    room = gap - GAP_AT_END * rounding
    # Both have the same square.
    root = sqrt(maximum(before * before + 2.0 * bend * room, 0.0))

    def way(fall: Number, left: Number) -> Number:
        # The root of room - fall s - bend s^2 / 2; NaN leaves nothing.
        s = 2.0 * room / (fall + root)
        s = select(s >= left, left, select(s > 0.0, s, 0.0))
        return select(is_touching, 0.0, s)

    return PieceState(
        way(before, state.back),
        way(behind, state.ahead),
        select(is_touching, 1.0, state.touching),
    )


# What is found


def _end(sound: Number, state: PieceState) -> PieceState:
    """Return a piece; nothing of it is known where a pose is not."""
    is_known = sound > 0.0
    back, ahead, touching = (select(is_known, x, 0.0) for x in state)
    return PieceState(back, ahead, touching)


def _answer(reached: Number, ended: Number) -> Vector:
    return [reached, ended]
