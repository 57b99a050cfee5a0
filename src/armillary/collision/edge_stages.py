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
from armillary.collision.nearness import (
    around,
    axis_of,
    beyond,
    to_axis,
    to_box,
    within,
)
from armillary.collision.shape_boxes import BoxColumns, BoxPair, gap_of_boxes
from armillary.kernel.columns import Column, call, each, when
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.stages import BOXES, NearRecords, Stage
from armillary.kernel.tables import Table, code, span
from armillary.kinematics.moving_links import MovingLinks
from armillary.spatial.pose import Pose
from armillary.spatial.vector import (
    Matrix,
    Number,
    Vector,
    Vector3,
    dot,
    three,
)
from armillary.trace import Port, Program
from armillary.trace.functions import absolute, select

__all__ = [
    "EdgeColumns",
    "EdgeFormulas",
    "compared",
    "edge_pipeline",
]

OF_SPHERES: Final = "of_spheres"
OF_BOXES: Final = "of_boxes"
NEAR_SPHERES: Final = "near_spheres"
NEAR_BOXES: Final = "near_boxes"
BALLS_NEAR_SPHERE: Final = "balls_near_sphere"
SHAPES_NEAR_SPHERE: Final = "shapes_near_sphere"
BALLS_NEAR_BOX: Final = "balls_near_box"
SHAPES_NEAR_BOX: Final = "shapes_near_box"
BALLS_OF_LINK: Final = "balls_of_link"
BALLS_A: Final = "balls_a"
BALLS_B: Final = "balls_b"
BALLS_OF_B: Final = "balls_of_b"
SHAPES_NEAR_LINK: Final = "shapes_near_link"
"""Fields: ranges of the tables below."""


class EdgeColumns(BoxColumns):
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

    points = Column("centres of spherical shapes of links", "balls", 3, unit="m")
    filled = Column("1 where the spherical shapes of a link are among them", "links")
    unfilled = Column("above 0 where they are not")

    # Links that move, and what stands still.
    balls = Column("centres of spheres around links", "links", 3, unit="m")
    link_pose = Column("pose of the moving link of a link", 3, 4, into="poses")
    link_centre = Column("centre of the sphere around it, in that frame", 3, unit="m")
    link_radius = Column("its radius, with the margin", unit="m")
    link_ball = Column("where the centre is written", 3, into="balls")
    link_filled = Column("whether its shapes are in `points`", into="filled")
    here = Column("centre of the sphere around the link", 3, unit="m")
    here_twice = Column("twice that", 3, unit="m")
    here_square = Column("square of its distance from the origin", unit="m2")
    low = Column("least coordinates of that sphere", 3, unit="m")
    high = Column("greatest", 3, unit="m")
    sphere_ranges = Column(
        "least and greatest coordinates of spheres that stand still", 6, BOXES, unit="m"
    )
    box_ranges = Column("those of boxes", 6, BOXES, unit="m")
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
    ball_point = Column("its centre", 3, into="points")
    other_point = Column("centre of a sphere of the other link", 3, into="points")
    other_radius = Column("its radius", unit="m")

    # Pairs of links that both move.
    pair_a = Column("centre of the sphere around one link", 3, into="balls")
    pair_b = Column("centre of that around the other", 3, into="balls")
    pair_reach = Column("sum of both radii, and the margin", unit="m")
    pair_pose = Column("pose of the moving link of the other", 3, 4, into="poses")
    pair_ends = Column(
        "ends of the axis of the capsule around it, in that frame", 2, 3, unit="m"
    )
    pair_scale = Column("inverse square of the length of that axis", unit="1/m2")
    pair_radius = Column("radius of the capsule", unit="m")
    pair_near = Column(
        "sum of that and of the radius around one link, and the margin", unit="m"
    )
    axis_start = Column("where the axis begins", 3, unit="m")
    axis_way = Column("where it leads from there", 3, unit="m")
    pair_filled_a = Column("whether shapes of one are in `points`", into="filled")
    pair_filled_b = Column("whether shapes of the other are", into="filled")

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
            balls=room.balls,
            numbers=room.numbers,
        )

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """Return all tables but those of moving links."""
        return (
            self.links,
            self.shapes,
            self.spheres,
            self.still_boxes,
            self.ranges_of_spheres,
            self.ranges_of_boxes,
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
            *(self.link_filled, *self.of_links),
            span(BALLS_OF_LINK, self.own_balls.name),
            span(OF_SPHERES, self.spheres.name),
            span(OF_BOXES, self.still_boxes.name),
            span(NEAR_SPHERES, self.ranges_of_spheres.name),
            span(NEAR_BOXES, self.ranges_of_boxes.name),
        )

    @cached_property
    def ranges_of_spheres(self) -> Table:
        """Return the table of where spheres are that stand still; see `NearRecords`."""
        return self.table("ranges_of_spheres", self.sphere_ranges)

    @cached_property
    def ranges_of_boxes(self) -> Table:
        """Return the same of rounded boxes."""
        return self.table("ranges_of_boxes", self.box_ranges)

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
    def still_boxes(self) -> Table:
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
            *(self.ball_pose, self.ball_centre, self.ball_radius, self.ball_point),
            *self.of_balls,
        )

    @cached_property
    def other_balls(self) -> Table:
        """Return the same as the other side of pairs."""
        return self.table(
            "other_balls", self.other_point, self.other_radius, *self.of_other_balls
        )

    @cached_property
    def link_pairs(self) -> Table:
        """Return the table of pairs of links that both move."""
        return self.table(
            "link_pairs",
            *(self.pair_a, self.pair_b, self.pair_reach, self.pair_pose),
            *(self.pair_ends, self.pair_scale, self.pair_radius, self.pair_near),
            *(self.pair_filled_a, self.pair_filled_b, *self.of_pairs),
            span(BALLS_A, self.own_balls.name),
            span(BALLS_B, self.other_balls.name),
            span(BALLS_OF_B, self.own_balls.name),
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
            *(*self.boxes, *self.of_shapes),
            *records_of(RECORDS_OF_SHAPES),
            code(self.distance.name),
        )


class EdgeFormulas(NamedTuple):
    """The stages of what is compared: of a link, what is near it, and what it touches.

    Attributes:
        place: The sphere around a link.
        place_ball: A spherical shape of a link.
        near_sphere: Whether a sphere that stands still is near.
        hit_sphere: Whether a sphere of the link touches it.
        around_box: Whether the sphere around a rounded box that stands still is near.
        near_box: Whether the box is.
        hit_box: Whether a sphere of the link touches it.
        near_link: Whether the spheres around two links are near.
        near_capsule: Whether that of one is near the capsule around the other.
        near_ball: Whether a sphere of that link is.
        hit_ball: Whether it touches a sphere of the other.
        may_meet: Whether the spheres around two shapes are near.
        may_touch: Whether the boxes around them are.
        wanted: From which distance on a lower bound of it will do.
        judge: What the distance of two shapes says.
    """

    place: Program
    place_ball: Program
    near_sphere: Program
    hit_sphere: Program
    around_box: Program
    near_box: Program
    hit_box: Program
    near_link: Program
    near_capsule: Program
    near_ball: Program
    hit_ball: Program
    may_meet: Program
    may_touch: Program
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
        stage(_place_ball, columns.ball_point),
        stage(_near_sphere, near),
        stage(_hit_sphere, going),
        stage(_around_box, near),
        stage(_near_box, columns.near_shape),
        stage(_hit_box, going),
        stage(_near_link, near),
        stage(_near_capsule),
        stage(_near_ball, columns.near_shape),
        stage(_hit_ball, going),
        stage(_may_meet, columns.near_call),
        stage(_may_touch, columns.boxes_meet),
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
            *compared(columns, formulas, has_many=room.has_many),
            columns.stage(_verdict, writes=columns.found),
        ),
        (columns.found.name,),
        (columns.balls, columns.points, columns.filled, *moving.scratch),
    )


def compared(
    columns: EdgeColumns, formulas: EdgeFormulas, *, has_many: bool
) -> tuple[Stage, ...]:
    """Return stages that compare links with what stands still, and with each other.

    has_many: Whether links have so many obstacles that it is worth looking first for
        those which any row may meet.
    """
    stages = _Comparisons(columns, formulas, has_many)
    return stages.with_what_stands(), stages.of_links()


class _Comparisons(NamedTuple):
    """The stages of `compared`, whose arguments these are."""

    columns: EdgeColumns
    formulas: EdgeFormulas
    has_many: bool

    def with_what_stands(self) -> Stage:
        """Return what compares each link that moves with what stands still."""
        columns, formulas, near = self.columns, self.formulas, self.columns.near
        placed = self._placed(columns.link_filled, BALLS_OF_LINK)
        low, high = columns.low.name, columns.high.name
        of_spheres = columns.ranges_of_spheres.name, NEAR_SPHERES, low, high
        of_boxes = columns.ranges_of_boxes.name, NEAR_BOXES, low, high
        by_sphere = self._touched(
            formulas.hit_sphere, BALLS_NEAR_SPHERE, SHAPES_NEAR_SPHERE
        )
        by_box = self._touched(formulas.hit_box, BALLS_NEAR_BOX, SHAPES_NEAR_BOX)
        return self._all_of(
            columns.links,
            formulas.place,
            self._all_of(
                columns.spheres,
                formulas.near_sphere,
                _where(near, *placed, *by_sphere),
                within=OF_SPHERES,
                ranges=NearRecords(*of_spheres),
            ),
            self._all_of(
                columns.still_boxes,
                formulas.around_box,
                _where(
                    near,
                    formulas.near_box,
                    _where(columns.near_shape, *placed, *by_box),
                ),
                within=OF_BOXES,
                ranges=NearRecords(*of_boxes),
            ),
        )

    def of_links(self) -> Stage:
        """Return what compares links that both move."""
        columns, formulas, near = self.columns, self.formulas, self.columns.near
        one = self._placed(columns.pair_filled_a, BALLS_A)
        other = self._placed(columns.pair_filled_b, BALLS_OF_B)
        balls = self._all_of(columns.other_balls, formulas.hit_ball, within=BALLS_B)
        of_balls = self._all_of(
            columns.own_balls,
            formulas.near_ball,
            _where(columns.near_shape, *other, balls),
            within=BALLS_A,
        )
        return self._all_of(
            columns.link_pairs,
            formulas.near_link,
            _where(
                near,
                formulas.near_capsule,
                _where(near, *one, of_balls, self._shapes(SHAPES_NEAR_LINK)),
            ),
        )

    def _all_of(
        self,
        table: Table,
        *stages: Stage,
        within: str = "",
        ranges: NearRecords | None = None,
    ) -> Stage:
        """Return stages for all records as long as no pair is known to touch."""
        near = ranges if self.has_many else None
        going = self.columns.going
        return each(
            table, *stages, within=within, active=going, together=True, near=near
        )

    def _placed(self, filled: Port, of_balls: str) -> tuple[Stage, ...]:
        """Return what places shapes of a link where something is near it first."""
        columns = self.columns
        fill = each(columns.own_balls, self.formulas.place_ball, within=of_balls)
        needed = columns.stage(_needed, link_filled=filled, writes=columns.unfilled)
        done = columns.stage(_done, writes=filled)
        return needed, _where(columns.unfilled, fill, done)

    def _touched(
        self, is_hit: Stage, of_balls: str, of_shapes: str
    ) -> tuple[Stage, ...]:
        """Return whether spheres of a link, or its other shapes, touch something."""
        balls = self._all_of(self.columns.own_balls, is_hit, within=of_balls)
        return balls, self._shapes(of_shapes)

    def _shapes(self, within: str) -> Stage:
        """Return what compares pairs of shapes, by their spheres, boxes, then code."""
        columns, formulas = self.columns, self.formulas
        distance = call(
            columns.distance.name,
            (columns.X_A, columns.X_B, columns.wanted, columns.exactly),
            (columns.value,),
            RECORDS_OF_SHAPES,
        )
        by_code = formulas.wanted, distance, formulas.judge
        by_boxes = formulas.may_touch, _where(columns.boxes_meet, *by_code)
        return self._all_of(
            columns.shape_pairs,
            formulas.may_meet,
            _where(columns.near_call, *by_boxes),
            within=within,
        )


def _where(column: Port, *stages: Stage) -> Stage:
    """Return stages where a column is above 0 in any of the rows computed at once."""
    return when(column, *stages, together=True)


class PlacedLink(NamedTuple):
    """The centre of the sphere around a link, here and for pairs of links."""

    here: Vector3
    here_twice: Vector3
    here_square: Number
    link_ball: Vector3
    link_filled: Number
    low: Vector3
    high: Vector3


class NearCapsule(NamedTuple):
    """The axis of the capsule around a link, and whether another link is near it."""

    axis_start: Vector3
    axis_way: Vector3
    near: Number


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
    return select(going > 0.0, 0.0, 1.0)


def _centre(pose: Matrix, centre: Vector) -> Vector3:
    return Pose.from_matrix(pose) @ three(centre)


def _place(link_pose: Matrix, link_centre: Vector, link_radius: Number) -> PlacedLink:
    x, y, z = here = _centre(link_pose, link_centre)
    twice = 2.0 * x, 2.0 * y, 2.0 * z
    return PlacedLink(
        here, twice, dot(here, here), here, 0.0, *around(here, link_radius)
    )


def _needed(link_filled: Number) -> Number:
    return 1.0 - link_filled


def _done() -> Number:
    return 1.0


def _place_ball(ball_pose: Matrix, ball_centre: Vector) -> Vector3:
    return _centre(ball_pose, ball_centre)


def _near_sphere(
    here_twice: Vector, here_square: Number, still_centre: Vector, still_rest: Number
) -> Number:
    # R^2 - |a - b|^2 = (R^2 - |b|^2) - |a|^2 + 2 a . b
    return (still_rest - here_square) + dot(three(here_twice), three(still_centre))


def _hit_sphere(
    ball_point: Vector,
    ball_radius: Number,
    still_centre: Vector,
    still_radius: Number,
) -> Number:
    return beyond(square(ball_point, still_centre), ball_radius + still_radius)


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
    ball_point: Vector,
    ball_radius: Number,
    box_centre: Vector,
    box_axes: Matrix,
    box_half: Vector,
    box_radius: Number,
) -> Number:
    d2 = to_box(ball_point, box_centre, box_axes, box_half)
    return beyond(d2, ball_radius + box_radius)


def _near_link(pair_a: Vector, pair_b: Vector, pair_reach: Number) -> Number:
    return within(square(pair_a, pair_b), pair_reach)


def _near_capsule(
    pair_a: Vector,
    pair_pose: Matrix,
    pair_ends: Matrix,
    pair_scale: Number,
    pair_near: Number,
) -> NearCapsule:
    start, way = axis_of(pair_pose, pair_ends)
    d2 = to_axis(pair_a, start, way, pair_scale)
    return NearCapsule(start, way, within(d2, pair_near))


def _near_ball(
    ball_point: Vector,
    ball_radius: Number,
    axis_start: Vector,
    axis_way: Vector,
    pair_scale: Number,
    pair_radius: Number,
) -> Number:
    d2 = to_axis(ball_point, axis_start, axis_way, pair_scale)
    return within(d2, ball_radius + pair_radius)


def _hit_ball(
    ball_point: Vector, ball_radius: Number, other_point: Vector, other_radius: Number
) -> Number:
    return beyond(square(ball_point, other_point), ball_radius + other_radius)


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


def _may_touch(boxes: BoxPair) -> Number:
    return 0.0 - gap_of_boxes(boxes)


def _wanted(plenty: Number) -> tuple[Number, Number]:
    return plenty, 1.0


def _judge(value: Number, enough: Number, near_call: Number, going: Number) -> Number:
    # Of rows that are not near, the value may be anything.
    is_free = (value > enough) | (near_call <= 0.0)
    return select(is_free, going, 0.0)
