"""The pipeline of edges: whether links touch at any of some rows, computed at once.

It is asked by the loop of planners, which wants to know of an edge as soon as possible
that it is not free. So it ends with the first row in which links touch, and nothing is
known of the others then. It goes link by link, those that most joints move first:

    the sphere around the link, against each shape that stands still in the world;
    where they are near, its shapes against that;
    then pairs of links that move both, in the same way.

Margins are part of the radii of what moves, so that records of what stands still hold
for all of them. What stands still is a sphere, or a box with rounded edges: boxes,
capsules and lozenges are, other shapes lie in one. Spheres of links are compared with
these here; for other shapes the code of their distance is called where their spheres
are near.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from armillary.collision.check_stages import square
from armillary.collision.columns import (
    RECORDS_OF_SHAPES,
    SHAPES,
    CheckColumns,
    Room,
    records_of,
)
from armillary.kernel.columns import Column, Columns, call, each, when
from armillary.kernel.pipeline import Pipeline, Stage
from armillary.kernel.tables import Table, code, span
from armillary.kinematics.moving_links import MovingLinks
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Matrix, Number, Vector, Vector3, dot, three
from armillary.trace import Port, Program
from armillary.trace.functions import absolute, maximum, select

__all__ = [
    "EdgeColumns",
    "EdgeFormulas",
    "compared",
    "edge_pipeline",
    "to_box",
    "within",
]

OF_SPHERES: Final = "of_spheres"
OF_BOXES: Final = "of_boxes"
BALLS_NEAR_SPHERE: Final = "balls_near_sphere"
SHAPES_NEAR_SPHERE: Final = "shapes_near_sphere"
BALLS_NEAR_BOX: Final = "balls_near_box"
SHAPES_NEAR_BOX: Final = "shapes_near_box"
BALLS_A: Final = "balls_a"
BALLS_B: Final = "balls_b"
SHAPES_NEAR_LINK: Final = "shapes_near_link"
"""Fields: ranges of the tables below."""


class EdgeColumns(Columns):
    """The columns of the pipeline of edges, and its tables."""

    owner = "edges"

    q = Column("joint positions", "joints", unit="m or rad")
    poses = Column("poses of moving links", "moving", 3, 4, unit="m")
    going = Column("1 as long as no pair is known to touch")
    found = Column("1 where links touch, else 0")
    near = Column("above 0 where the spheres of two links, or shapes, may meet")
    near_shape = Column("above 0 where a shape may meet what is near its link")
    near_call = Column("above 0 where two shapes may meet")
    value = Column("distance of two shapes", unit="m")

    # Links that move, and what stands still.
    balls = Column("centres of spheres around links", "links", 3, unit="m")
    link_pose = Column("pose of the moving link of a link", 3, 4, into="poses")
    link_centre = Column("centre of the sphere around it, in that frame", 3, unit="m")
    link_radius = Column("its radius, with the margin", unit="m")
    link_ball = Column("where the centre is written", 3, into="balls")
    here = Column("centre of the sphere around the link", 3, unit="m")
    here_twice = Column("twice that", 3, unit="m")
    here_square = Column("square of its distance from the origin", unit="m2")
    still_rest = Column("square of what is near, less that of the centre", unit="m2")
    still_centre = Column("centre of a sphere that stands still", 3, unit="m")
    still_radius = Column("its radius", unit="m")
    box_centre = Column("centre of a rounded box that stands still", 3, unit="m")
    box_axes = Column("its axes, in rows", 3, 3)
    box_half = Column("half of its edges, without the rounding", 3, unit="m")
    box_radius = Column("its rounding", unit="m")
    box_rest = Column(
        "square of what is near a sphere around it, less that of the centre"
    )
    box_reach = Column("radius of that sphere", unit="m")

    # Spherical shapes of links.
    ball_pose = Column("pose of the moving link of a sphere", 3, 4, into="poses")
    ball_centre = Column("its centre in that frame", 3, unit="m")
    ball_radius = Column("its radius, with the margin", unit="m")
    point = Column("its centre", 3, unit="m")
    other_pose = Column("the same of the other link", 3, 4, into="poses")
    other_centre = Column("its centre in that frame", 3, unit="m")
    other_radius = Column("its radius", unit="m")

    # Pairs of links that both move.
    pair_a = Column("centre of the sphere around one link", 3, into="balls")
    pair_b = Column("centre of that around the other", 3, into="balls")
    pair_reach = Column("sum of both radii, and the margin", unit="m")
    pair_radius = Column("radius around the other", unit="m")

    # Pairs of shapes whose code is called.
    shape_link = Column("pose of the link of a shape", 3, 4, into="poses")
    shape_centre = Column("centre of the sphere around it, in that frame", 3, unit="m")
    shape_radius = Column("its radius", unit="m")
    mate_link = Column("pose of the link of the other shape", 3, 4, into="poses")
    mate_centre = Column("centre of the sphere around it, in that frame", 3, unit="m")
    mate_radius = Column("its radius", unit="m")
    X_A = Column(
        "pose of the link of the shape that its code takes first", 3, 4, into="poses"
    )
    X_B = Column("pose of the link of the other", 3, 4, into="poses")
    enough = Column("distance below which they touch", unit="m")
    distance = Column("code of the distance of two shapes", 2)
    plenty = Column("distance from which on they are free whatever is rounded")
    wanted = Column("distance from which on a lower bound of it will do", unit="m")
    exactly = Column("above 0 where bounds will not do that do not decide")

    # Shapes: what that code is given of each.
    shape_pose = CheckColumns.shape_pose
    shape_numbers = CheckColumns.shape_numbers

    # Further fields of tables, which subclasses have.
    of_links: tuple[Port, ...] = ()
    of_balls: tuple[Port, ...] = ()
    of_other_balls: tuple[Port, ...] = ()
    of_pairs: tuple[Port, ...] = ()
    of_shapes: tuple[Port, ...] = ()

    def __init__(self, moving: MovingLinks, room: Room) -> None:
        """Set the sizes.

        Args:
            moving: The moving links of the cell.
            room: For how many spheres around links there is room, and for how many
                numbers of a shape.
        """
        super().__init__(
            joints=moving.joints,
            moving=moving.count,
            links=room.spheres,
            numbers=room.numbers,
        )

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """Return all tables but those of moving links."""
        return (
            self.links,
            self.shapes,
            self.spheres,
            self.boxes,
            self.own_balls,
            self.other_balls,
            self.link_pairs,
            self.shape_pairs,
        )

    @cached_property
    def links(self) -> Table:
        """Return the table of links that move, in the order of their tests."""
        return self.table(
            "links",
            *(self.link_pose, self.link_centre, self.link_radius, self.link_ball),
            *self.of_links,
            span(OF_SPHERES, self.spheres.name),
            span(OF_BOXES, self.boxes.name),
        )

    @cached_property
    def shapes(self) -> Table:
        """Return the table of shapes, as `CheckColumns.shapes`."""
        return self.table(SHAPES, self.shape_pose, self.shape_numbers)

    @cached_property
    def spheres(self) -> Table:
        """Return the table of spheres that stand still, for each link apart."""
        return self.table(
            "still_spheres",
            *(self.still_rest, self.still_centre, self.still_radius),
            span(BALLS_NEAR_SPHERE, self.own_balls.name),
            span(SHAPES_NEAR_SPHERE, self.shape_pairs.name),
        )

    @cached_property
    def boxes(self) -> Table:
        """Return the table of rounded boxes that stand still, for each link apart."""
        return self.table(
            "still_boxes",
            *(self.box_rest, self.box_reach),
            *(self.box_centre, self.box_axes, self.box_half, self.box_radius),
            span(BALLS_NEAR_BOX, self.own_balls.name),
            span(SHAPES_NEAR_BOX, self.shape_pairs.name),
        )

    @cached_property
    def own_balls(self) -> Table:
        """Return the table of the spherical shapes of links, sorted by links."""
        return self.table(
            "balls_of",
            *(self.ball_pose, self.ball_centre, self.ball_radius),
            *self.of_balls,
        )

    @cached_property
    def other_balls(self) -> Table:
        """Return the same as the other side of pairs."""
        return self.table(
            "other_balls",
            *(self.other_pose, self.other_centre, self.other_radius),
            *self.of_other_balls,
        )

    @cached_property
    def link_pairs(self) -> Table:
        """Return the table of pairs of links that both move."""
        return self.table(
            "link_pairs",
            *(self.pair_a, self.pair_b, self.pair_reach, self.pair_radius),
            *self.of_pairs,
            span(BALLS_A, self.own_balls.name),
            span(BALLS_B, self.other_balls.name),
            span(SHAPES_NEAR_LINK, self.shape_pairs.name),
        )

    @cached_property
    def shape_pairs(self) -> Table:
        """Return the table of pairs of shapes whose code is called."""
        return self.table(
            "shape_pairs",
            *(self.shape_link, self.shape_centre, self.shape_radius),
            *(self.mate_link, self.mate_centre, self.mate_radius),
            *(self.X_A, self.X_B, self.enough, self.plenty),
            *self.of_shapes,
            *records_of(RECORDS_OF_SHAPES),
            code(self.distance.name),
        )


class EdgeFormulas(NamedTuple):
    """The stages of what is compared: of a link, what is near it, and what it touches.

    Attributes:
        place: The sphere around a link.
        near_sphere: Whether a sphere that stands still is near.
        hit_sphere: Whether a sphere of the link touches it.
        around_box: Whether the sphere around a rounded box that stands still is near.
        near_box: Whether the box is.
        hit_box: Whether a sphere of the link touches it.
        near_link: Whether the spheres around two links are near.
        near_ball: Whether a sphere of one of them is near the sphere around the other.
        hit_ball: Whether it touches a sphere of the other.
        may_meet: Whether the spheres around two shapes are near.
        wanted: From which distance on a lower bound of it will do.
        judge: What the distance of two shapes says.
    """

    place: Program
    near_sphere: Program
    hit_sphere: Program
    around_box: Program
    near_box: Program
    hit_box: Program
    near_link: Program
    near_ball: Program
    hit_ball: Program
    may_meet: Program
    wanted: Program
    judge: Program


def edge_pipeline(moving: MovingLinks, room: Room) -> Pipeline:
    """Return the pipeline from joint positions to whether links touch.

    Args:
        moving: The moving links of the cell, which are compiled.
        room: As for `EdgeColumns`.
    """
    columns = EdgeColumns(moving, room)
    going, near = columns.going, columns.near

    def stage(formula: Callable[..., Any], *writes: Port) -> Program:
        # What is so near that a rounding decides is decided either way.
        return replace(columns.stage(formula, writes=writes), is_loose=True)

    formulas = EdgeFormulas(
        stage(_place),
        stage(_near_sphere, near),
        stage(_hit_sphere, going),
        stage(_around_box, near),
        stage(_near_box, columns.near_shape),
        stage(_hit_box, going),
        stage(_near_link, near),
        stage(_near_ball),
        stage(_hit_ball, going),
        stage(_may_meet, columns.near_call),
        stage(_wanted, columns.wanted, columns.exactly),
        stage(_judge, going),
    )
    # Poses may be NaN where loops are not closed, and where users' formulas end.
    begin = _begin if moving.is_simple else _begin_of_any
    return Pipeline(
        "collision_edges",
        moving.inputs,
        (*moving.tables, *columns.tables),
        (
            *moving.stages,
            columns.stage(begin, writes=going),
            *compared(columns, formulas),
            columns.stage(_verdict, writes=columns.found),
        ),
        (columns.found.name,),
        (columns.balls, *moving.scratch),
    )


def compared(columns: EdgeColumns, formulas: EdgeFormulas) -> tuple[Stage, ...]:
    """Return stages that compare links with what stands still, and with each other."""
    going, near = columns.going, columns.near

    def all_of(table: Table, *stages: Stage, within: str = "") -> Stage:
        return each(table, *stages, within=within, active=going, together=True)

    def where(column: Port, *stages: Stage) -> Stage:
        return when(column, *stages, together=True)

    # Pairs of shapes that are near what is asked by their spheres; then by their code.
    distance = call(
        columns.distance.name,
        (columns.X_A, columns.X_B, columns.wanted, columns.exactly),
        (columns.value,),
        RECORDS_OF_SHAPES,
    )
    shapes = (
        formulas.may_meet,
        where(columns.near_call, formulas.wanted, distance, formulas.judge),
    )

    def touched(is_hit: Stage, of_balls: str, of_shapes: str) -> tuple[Stage, Stage]:
        return (
            all_of(columns.own_balls, is_hit, within=of_balls),
            all_of(columns.shape_pairs, *shapes, within=of_shapes),
        )

    by_sphere = touched(formulas.hit_sphere, BALLS_NEAR_SPHERE, SHAPES_NEAR_SPHERE)
    by_box = touched(formulas.hit_box, BALLS_NEAR_BOX, SHAPES_NEAR_BOX)
    balls = all_of(columns.other_balls, formulas.hit_ball, within=BALLS_B)
    return (
        all_of(
            columns.links,
            formulas.place,
            all_of(
                columns.spheres,
                formulas.near_sphere,
                where(near, *by_sphere),
                within=OF_SPHERES,
            ),
            all_of(
                columns.boxes,
                formulas.around_box,
                where(near, formulas.near_box, where(columns.near_shape, *by_box)),
                within=OF_BOXES,
            ),
        ),
        all_of(
            columns.link_pairs,
            formulas.near_link,
            where(
                near,
                all_of(
                    columns.own_balls,
                    formulas.near_ball,
                    where(columns.near_shape, balls),
                    within=BALLS_A,
                ),
                all_of(columns.shape_pairs, *shapes, within=SHAPES_NEAR_LINK),
            ),
        ),
    )


class PlacedLink(NamedTuple):
    """The centre of the sphere around a link, here and for pairs of links."""

    here: Vector3
    here_twice: Vector3
    here_square: Number
    link_ball: Vector3


class NearBall(NamedTuple):
    """The centre of a sphere of a link, and whether another link is near."""

    point: Vector3
    near_shape: Number


def _begin(q: Vector) -> Number:
    return select(_sum([absolute(x) for x in q]) < np.inf, 1.0, 0.0)


def _begin_of_any(poses: Sequence[Matrix]) -> Number:
    # A sum is finite only if all that is summed is.
    total = _sum(np.ravel(np.asarray(poses)).tolist())
    return select(absolute(total) < np.inf, 1.0, 0.0)


def _sum(values: Sequence[Number]) -> Number:
    """Return a sum, in pairs: no addition waits for all before it."""
    while len(values) > 1:
        pairs = [a + b for a, b in zip(values[::2], values[1::2], strict=False)]
        values = pairs + list(values[2 * len(pairs) :])
    return values[0]


def _verdict(going: Number) -> Number:
    return 1.0 - going


def _centre(pose: Matrix, centre: Vector) -> Vector3:
    return Pose.from_matrix(pose) @ three(centre)


def _place(link_pose: Matrix, link_centre: Vector) -> PlacedLink:
    x, y, z = here = _centre(link_pose, link_centre)
    twice = 2.0 * x, 2.0 * y, 2.0 * z
    return PlacedLink(here, twice, dot(here, here), here)


def within(square_of_distance: Number, reach: Number) -> Number:
    """Return a number above 0 where something may be nearer than a reach."""
    return reach * reach - square_of_distance


def _kept(square_of_distance: Number, reach: Number, going: Number) -> Number:
    """Return `going`, or 0 where something is nearer than a reach."""
    return select(square_of_distance > reach * reach, going, 0.0)


def _near_sphere(
    here_twice: Vector, here_square: Number, still_centre: Vector, still_rest: Number
) -> Number:
    # R^2 - |a - b|^2 = (R^2 - |b|^2) - |a|^2 + 2 a . b
    return (still_rest - here_square) + dot(three(here_twice), three(still_centre))


def _hit_sphere(
    ball_pose: Matrix,
    ball_centre: Vector,
    ball_radius: Number,
    still_centre: Vector,
    still_radius: Number,
    going: Number,
) -> Number:
    point = _centre(ball_pose, ball_centre)
    return _kept(square(point, still_centre), ball_radius + still_radius, going)


def to_box(point: Vector, centre: Vector, axes: Matrix, half: Vector) -> Number:
    """Return the square of the distance of a point from a box."""
    d = [a - b for a, b in zip(three(point), three(centre), strict=True)]
    total: Number = 0.0
    for axis, h in zip(axes, half, strict=True):
        along = axis[0] * d[0] + axis[1] * d[1] + axis[2] * d[2]
        beyond = maximum(absolute(along) - h, 0.0)
        total = total + beyond * beyond
    return total


def _around_box(
    here_twice: Vector, here_square: Number, box_centre: Vector, box_rest: Number
) -> Number:
    return _near_sphere(here_twice, here_square, box_centre, box_rest)


def _near_box(
    here: Vector,
    link_radius: Number,
    box_centre: Vector,
    box_axes: Matrix,
    box_half: Vector,
    box_radius: Number,
) -> Number:
    d2 = to_box(here, box_centre, box_axes, box_half)
    return within(d2, link_radius + box_radius)


def _hit_box(
    ball_pose: Matrix,
    ball_centre: Vector,
    ball_radius: Number,
    box_centre: Vector,
    box_axes: Matrix,
    box_half: Vector,
    box_radius: Number,
    going: Number,
) -> Number:
    point = _centre(ball_pose, ball_centre)
    d2 = to_box(point, box_centre, box_axes, box_half)
    return _kept(d2, ball_radius + box_radius, going)


def _near_link(pair_a: Vector, pair_b: Vector, pair_reach: Number) -> Number:
    return within(square(pair_a, pair_b), pair_reach)


def _near_ball(
    ball_pose: Matrix,
    ball_centre: Vector,
    ball_radius: Number,
    pair_b: Vector,
    pair_radius: Number,
) -> NearBall:
    point = _centre(ball_pose, ball_centre)
    return NearBall(point, within(square(point, pair_b), ball_radius + pair_radius))


def _hit_ball(
    point: Vector,
    ball_radius: Number,
    other_pose: Matrix,
    other_centre: Vector,
    other_radius: Number,
    going: Number,
) -> Number:
    other = _centre(other_pose, other_centre)
    return _kept(square(point, other), ball_radius + other_radius, going)


def _may_meet(
    shape_link: Matrix,
    shape_centre: Vector,
    shape_radius: Number,
    mate_link: Matrix,
    mate_centre: Vector,
    mate_radius: Number,
    enough: Number,
) -> Number:
    one, other = _centre(shape_link, shape_centre), _centre(mate_link, mate_centre)
    return within(square(one, other), shape_radius + mate_radius + enough)


def _wanted(plenty: Number) -> tuple[Number, Number]:
    return plenty, 1.0


def _judge(value: Number, enough: Number, near_call: Number, going: Number) -> Number:
    # Of rows that are not near, the value may be anything.
    is_free = (value > enough) | (near_call <= 0.0)
    return select(is_free, going, 0.0)
