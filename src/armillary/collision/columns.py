"""The columns and tables of the pipelines of collision checks.

Spheres are numbered: one around each link that is tested, then one around each shape.
Pairs are records of tables, so that pipelines depend on the moving links alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple, final

from armillary.collision.shape_boxes import BoxColumns
from armillary.kernel.columns import Column, index_field, number_field
from armillary.kernel.tables import Field, Table, code, record, span
from armillary.kinematics.moving_links import MovingLinks
from armillary.trace import Port

__all__ = [
    "CENTRES",
    "CONTACT",
    "DETAILS",
    "SPHERES_A",
    "SPHERES_B",
    "CheckColumns",
    "Room",
    "records",
    "records_of",
]


CONTACT: Final = 11
"""Numbers of a contact: distance [m], number of the pair of shapes, points, normal."""

DETAILS: Final = "details"
"""A field of motions: the range of one record of a pair of links."""

SPHERES_A: Final = "spheres_a"
SPHERES_B: Final = "spheres_b"
"""Fields of motions: the ranges of the spheres of the shapes of both links."""


SHAPES: Final = "shapes"
"""The table of shapes: where they are in moving links, and their numbers."""

RECORDS_OF_SHAPES: Final = "record_a", "record_b"
"""Fields of pairs of shapes: what `shapes` has of both, in the order of their code."""

RECORDS_OF_SPHERES: Final = "sphere_record_a", "sphere_record_b"
"""The same of pairs of spherical shapes."""


class Room(NamedTuple):
    """What code is made for.

    Attributes:
        spheres: For how many spheres there is room.
        numbers: For how many numbers of a shape.
        has_clouds: Whether there are clouds among the shapes; then the numbers of each
            are followed by those of a sphere around it.
        balls: For how many spherical shapes, where those are kept.
        has_many: Whether links have many obstacles.
    """

    spheres: int
    numbers: int
    has_clouds: bool = False
    balls: int = 1
    has_many: bool = False


@final
class CheckColumns(BoxColumns):
    """The columns of the pipelines of a cell, and the tables that all rows share.

    Attributes:
        has_clouds: As for `Room`.
    """

    owner = "collision checks"

    # What decides, and for which rows: the table `limits`.
    margin = Column("distance below which links touch", unit="m")
    rounding = Column("by how much distances may be wrong", unit="m")
    square_rounding = Column("the same of squares of distances", unit="m2")
    most_extent = Column("greatest coordinate for which that holds", unit="m")
    most_q = Column("greatest joint positions for which it holds", "joints")

    # Where links and spheres are in the world.
    q = Column("joint positions", "joints", unit="m or rad")
    poses = Column("poses of moving links", "moving", 3, 4, unit="m")
    usual = Column("1 where poses are numbers, and q is within most_q")
    extent = Column("greatest coordinate of centres", unit="m")
    sound = Column("1 where all is as expected, so that roundings hold")
    centres = Column("centres of spheres", "spheres", 3, unit="m")
    carrier_pose = Column("pose of the link that a sphere moves with", 3, 4, unit="m")
    centre = Column("centre of a sphere in the frame of that link", 3, unit="m")
    sphere = Column("centre of a sphere", 3, unit="m")

    # Pairs: two spheres, and within which distance of centres they are near.
    link_a = Column("centre of the sphere around one link", 3, unit="m")
    link_b = Column("centre of the sphere around the other", 3, unit="m")
    link_reach = Column("sum of radii, or the square of what is near", unit="m or m2")
    of_spheres = Column("range of the pairs of spherical shapes of both links", 2)
    of_shapes = Column("range of their other pairs of shapes", 2)
    rates = Column("speed of approach for unit joint rates", "joints", unit="m/unit")
    sphere_a = Column("centre of a spherical shape", 3, unit="m")
    sphere_b = Column("centre of another", 3, unit="m")
    sphere_reach = Column("sum of radii, or the square of what is near", unit="m or m2")
    shape_a = Column("centre of the sphere around a shape", 3, unit="m")
    shape_b = Column("centre of the sphere around another", 3, unit="m")
    shape_reach = Column("sum of radii, or the square of what is near", unit="m or m2")
    X_A = Column("pose of the link of the shape that its code takes first", 3, 4)
    X_B = Column("pose of the link of the other shape", 3, 4)
    distance = Column("code of the distance of two shapes", 2)
    wanted = Column("distance from which on a lower bound of it will do", unit="m")
    exactly = Column("above 0 where bounds will not do that do not decide")

    # Shapes, which pairs share: what code of distances is given of each.
    shape_pose = Column("pose of a shape in the link that it moves with", 3, 4)
    shape_numbers = Column("its numbers, such as its radius, then 0", "numbers")

    # Of the pair of links, or of shapes, that is looked at.
    near = Column("above 0 where the spheres of two links are near")
    near_shape = Column("above 0 where the spheres of two shapes are near")
    deepest = Column("by how much the nearest spherical shapes are near", unit="m2")
    value = Column("distance of two shapes", unit="m")

    # What is known of a row so far.
    unsettled = Column("above 0 where shapes of two links are looked at, maybe again")
    doubt_before = Column("whether a pair of links before is in doubt")
    going = Column("1 as long as no pair is known to touch, or a motion goes on")
    doubt = Column("1 if a pair is so near the margin that rounding decides")
    least = Column("least distance so far", unit="m")
    found = Column("answer of the check")

    # Motions: q0 + t (q1 - q0), for t from 0 to 1; what is per unit is per unit of t.
    # Their `twists` are those of `MovingTwists`, not the ones that are declared below.
    q0 = Column("joint positions where a motion begins", "joints", unit="m or rad")
    q1 = Column("joint positions where it ends", "joints", unit="m or rad")
    lower = Column("least joint positions for which bounds hold", "joints")
    upper = Column("greatest", "joints")
    is_within = Column("1 where a motion is within these, else 0")
    travel = Column("how far each joint moves", "joints", unit="m or rad")
    way_of = Column("how far the joint of a coordinate moves", into="travel")
    factor = Column("size of its multiplier")
    turning = Column("how fast it turns links", unit="rad per unit")
    bending = Column("bound of accelerations by speeds", unit="1 per unit")
    lever = Column("how fast it moves a link at most", unit="m per unit")
    turns_before = Column("turn of the link before a coordinate", into="turns")
    turns_behind = Column("turn of the link behind it", into="turns")
    way = Column("how far a coordinate moves", into="ways")
    curve = Column("its part of accelerations", into="curves")
    qd = Column("rates of joints", "joints", unit="m or rad per unit")
    turns = Column("how far links turn at most", "moving", unit="rad")
    ways = Column("how far coordinates move", "coordinates", unit="m or rad")
    curves = Column("accelerations of points by levers", "coordinates")

    # Pieces of them, and how far links move in a piece.
    t = Column("where in a motion a piece is", unit="1")
    back = Column("how far it is free before t")
    ahead = Column("how far it is free behind t")
    touching = Column("1 if links touch at t")
    reached = Column("part of the motion that is proven to be free")
    ended = Column("1 if links touch there")
    how_far = Column("both of them", 2)
    fastest = Column("greatest speed of a link", unit="m per unit")
    longest = Column("how long pieces are at first")
    half = Column("how far a piece reaches from t")
    velocities = Column("velocities of centres", "spheres", 3, unit="m per unit")
    balls = Column("centres of spheres, and how far those move", "spheres", 4)
    placed = Column("1 where the spheres of the shapes of links are known", "spheres")
    ball = Column("centre of the sphere around a link", 4, into="balls")
    ball_pose = Column("pose of the link that it moves with", 3, 4, into="poses")
    ball_twist = Column("twist of that link", 6, 1, into="twists")
    ball_centre = Column("its centre in the frame of that link", 3, unit="m")
    ball_velocity = Column("velocity of its centre", 3, into="velocities")
    ball_levers = Column("speeds of the link for unit rates", "coordinates")
    is_placed = Column("whether those of its shapes are known", into="placed")
    fixed_at = Column("where that is", 4)
    fixed_velocity = Column("its velocity, which is 0", 3)
    fixed_placed = Column("whether those of its shapes are known")
    fixed_ball = Column("centre of the sphere around a link that stands still", 4)
    carrier_twist = Column("twist of the link of a shape", 6, 1, into="twists")
    shape_ball = Column("centre of the sphere around a shape", 4, into="balls")
    shape_velocity = Column("velocity of that", 3, into="velocities")

    # Pairs of links: what all of them need, then what those need that are near.
    ball_a = Column("sphere around one link", 4, into="balls")
    ball_b = Column("sphere around the other", 4, into="balls")
    ball_reach = Column("sum of their radii, and what counts as touching", unit="m")
    ball_velocity_a = Column("velocity of one", 3, into="velocities")
    ball_velocity_b = Column("velocity of the other", 3, into="velocities")
    is_placed_a = Column("whether spheres of its shapes are known", into="placed")
    is_placed_b = Column("the same of the other link", into="placed")
    unplaced_a = Column("above 0 where they are not")
    unplaced_b = Column("the same of the other link")
    levers = Column("speeds of approach for unit rates", "coordinates")
    common_turn = Column("turn of the link that carries both", into="turns")
    common_pose = Column("its pose", 3, 4, into="poses")
    common_twist = Column("its twist", 6, 1, into="twists")
    sphere_ball_a = Column("spherical shape of one link", 4, into="balls")
    sphere_ball_b = Column("spherical shape of the other", 4, into="balls")
    sphere_velocity_a = Column("velocity of the one", 3, into="velocities")
    sphere_velocity_b = Column("velocity of the other", 3, into="velocities")
    shape_ball_a = Column("sphere around a shape of one link", 4, into="balls")
    shape_ball_b = Column("sphere around one of the other", 4, into="balls")
    shape_velocity_a = Column("velocity of the one", 3, into="velocities")
    shape_velocity_b = Column("velocity of the other", 3, into="velocities")
    twist_a = Column("twist of the link of one shape", 6, 1, into="twists")
    twist_b = Column("twist of the link of the other", 6, 1, into="twists")
    radius_a = Column("radius of the sphere around one shape", unit="m")
    radius_b = Column("radius of that around the other", unit="m")
    speed = Column("speed at which two links approach at most", unit="m per unit")
    bend = Column("their acceleration at most, seen from that link", unit="m per unit2")
    near_link = Column("above 0 where two links may meet in a piece")
    fall = Column("speed at which two shapes approach at most", unit="m per unit")

    # The nearest points of each pair of links.
    twists = Column("twists of links per unit rate of joints", "turning", 6, "joints")
    beyond = Column("distance from which on contacts are not wanted", unit="m")
    first_pair = Column("number of the first pair of shapes of two links")
    link_X_A = Column("pose of the moving link of one link of a pair", 3, 4, unit="m")
    link_X_B = Column("pose of that of the other", 3, 4, unit="m")
    twists_a = Column("twists of the moving link of one link of a pair", 6, "joints")
    twists_b = Column("twists of that of the other", 6, "joints")
    moves = Column("1 for each of both that is not fixed to the world", 2)
    sphere_number = Column("number of a pair of spherical shapes")
    sphere_X_A = Column("pose of the moving link of a spherical shape", 3, 4)
    sphere_X_B = Column("pose of that of another", 3, 4)
    sphere_distance = Column("code of the distance of two spherical shapes", 2)
    shape_number = Column("number of a pair of other shapes")
    shape_order = Column("-1 where the code of a pair takes its second shape first")
    gap = Column("by how much the value may be wrong", unit="m")
    points = Column("nearest points of two shapes", 2, 3, unit="m")
    normal = Column("direction from the first to the second", 3)
    is_chosen = Column("above 0 for the nearest pair of spherical shapes")
    nearest = Column("number of the nearest pair of shapes so far")
    least_points = Column("its points", 2, 3, unit="m")
    least_normal = Column("its normal", 3)
    pair_distance = Column("distance of a pair of links", unit="m")
    pair_contact = Column("see `CONTACT`", CONTACT)
    pair_slope = Column("slope of a distance by joints", "joints", unit="m/unit")
    pair_distances = Column("those of all pairs that are asked for", "pairs")
    pair_contacts = Column("the same of contacts", "pairs", CONTACT)
    pair_slopes = Column("the same of slopes", "pairs", "joints")

    def __init__(
        self,
        moving: MovingLinks,
        room: Room,
        pairs: int = 0,
        turning: int = 0,
        joints: int | None = None,
    ) -> None:
        """Set the sizes.

        Args:
            moving: The moving links of the cell.
            room: For how many spheres and numbers there is room.
            pairs: For how many pairs of links there is room, if each has a result.
            turning: How many links have twists.
            joints: For how many joints there are slopes; by default for all.
        """
        self.has_clouds = room.has_clouds
        super().__init__(
            joints=moving.joints if joints is None else joints,
            coordinates=max(1, moving.coordinates),
            moving=moving.count,
            spheres=room.spheres,
            numbers=room.numbers,
            pairs=pairs,
            turning=turning,
        )

    @cached_property
    def limits(self) -> Table:
        """Return the table of what decides, and for which rows.

        Touching are pairs whose distance is below `margin - rounding`, free those above
        `margin + rounding`; spheres are compared by squares, within `square_rounding`.
        Rows beyond `most_q` and `most_extent` are left undecided.
        """
        lengths = self.margin, self.rounding, self.square_rounding, self.most_extent
        fields = tuple(map(number_field, (*lengths, self.most_q)))
        return Table("limits", fields, is_single=True)

    @cached_property
    def spheres(self) -> Table:
        """Return the table of the links that spheres move with."""
        return Table(
            "spheres",
            (
                index_field(self.carrier_pose, into=self.poses),
                number_field(self.centre),
                index_field(self.sphere, into=self.centres),
            ),
        )

    @cached_property
    def shapes(self) -> Table:
        """Return the table of shapes: all that depends on where bodies are placed.

        What pairs of them are, and the code of their distance, does not.
        """
        return self.table(SHAPES, self.shape_pose, self.shape_numbers)

    @cached_property
    def sphere_pairs(self) -> Table:
        """Return the table of pairs of shapes that are both spheres."""
        return Table("sphere_pairs", self._near(self.sphere_shapes))

    @cached_property
    def shape_pairs(self) -> Table:
        """Return the table of all other pairs of shapes.

        `X_A` and `X_B` are in the order that the code of the pair takes them in.
        """
        poses = (index_field(X, into=self.poses) for X in (self.X_A, self.X_B))
        near = self._near(self.shape_spheres)
        shapes = records_of(RECORDS_OF_SHAPES)
        called = *poses, *shapes, code(self.distance.name)
        return Table("shape_pairs", (*near, *called))

    @cached_property
    def link_pairs(self) -> Table:
        """Return the table of pairs of links, with ranges of their pairs of shapes."""
        spheres = span(self.of_spheres.name, self.sphere_pairs.name)
        shapes = span(self.of_shapes.name, self.shape_pairs.name)
        near = self._near(self.link_spheres)
        return Table("link_pairs", (*near, spheres, shapes))

    # Tables of motions.

    @cached_property
    def coordinates(self) -> Table:
        """Return the table of the coordinates of joints, carriers first."""
        return self.table(
            "coordinates",
            *(self.way_of, self.factor, self.turning, self.bending, self.lever),
            *(self.turns_before, self.turns_behind),
            index_field(self.way, into=self.ways),
            index_field(self.curve, into=self.curves),
        )

    @cached_property
    def motion_limits(self) -> Table:
        """Return the table of what decides, and within which bounds hold."""
        fields = self.margin, self.rounding, self.lower, self.upper
        return Table("limits", tuple(map(number_field, fields)), is_single=True)

    @cached_property
    def moving_balls(self) -> Table:
        """Return the table of the spheres around links that move."""
        return self.table(
            "moving_balls",
            *(self.ball_pose, self.ball_twist, self.ball_centre, self.ball_levers),
            *(self.ball, self.ball_velocity, self.is_placed),
        )

    @cached_property
    def fixed_balls(self) -> Table:
        """Return the table of the spheres around links that stand still."""
        return self.table(
            "fixed_balls",
            self.fixed_ball,
            index_field(self.fixed_at, into=self.balls),
            index_field(self.fixed_velocity, into=self.velocities),
            index_field(self.fixed_placed, into=self.placed),
        )

    @cached_property
    def moving_spheres(self) -> Table:
        """Return the table of the spheres around shapes, those of a link together."""
        return self.table(
            "spheres",
            index_field(self.carrier_pose, into=self.poses),
            *(self.carrier_twist, self.centre, self.shape_ball, self.shape_velocity),
        )

    @cached_property
    def ball_pairs(self) -> Table:
        """Return the table of pairs of links for motions: what most pairs need."""
        details = span(DETAILS, self.moving_link_pairs.name)
        return self.table(
            "ball_pairs", self.ball_a, self.ball_b, self.ball_reach, details
        )

    @cached_property
    def moving_link_pairs(self) -> Table:
        """Return the table of pairs of links for motions: what near ones need.

        Each has a record, and a range of one record in `ball_pairs`.
        """
        spans = (
            span(SPHERES_A, self.moving_spheres.name),
            span(SPHERES_B, self.moving_spheres.name),
            span(self.of_spheres.name, self.moving_sphere_pairs.name),
            span(self.of_shapes.name, self.moving_shape_pairs.name),
        )
        return self.table(
            "link_pairs",
            *(self.ball_velocity_a, self.ball_velocity_b),
            *(self.levers, self.common_turn, self.common_pose, self.common_twist),
            *(self.is_placed_a, self.is_placed_b, *spans),
        )

    @cached_property
    def moving_sphere_pairs(self) -> Table:
        """Return the table of pairs of spherical shapes for motions."""
        return self.table(
            "sphere_pairs",
            *(self.sphere_ball_a, self.sphere_ball_b, self.sphere_reach),
            *(self.sphere_velocity_a, self.sphere_velocity_b),
        )

    @cached_property
    def moving_shape_pairs(self) -> Table:
        """Return the table of other pairs of shapes for motions."""
        return self.table(
            "shape_pairs",
            *(self.shape_ball_a, self.shape_ball_b, self.shape_reach),
            *(self.shape_velocity_a, self.shape_velocity_b),
            *(self.twist_a, self.twist_b, self.radius_a, self.radius_b),
            *self.boxes,
            *(index_field(X, into=self.poses) for X in (self.X_A, self.X_B)),
            *records_of(RECORDS_OF_SHAPES),
            code(self.distance.name),
        )

    # What has a result for each pair of links.

    @cached_property
    def numbered_sphere_pairs(self) -> Table:
        """Return the table of pairs of spherical shapes, with their numbers."""
        table = self.sphere_pairs
        poses = (self.sphere_X_A, self.sphere_X_B)
        indices = (index_field(X, into=self.poses) for X in poses)
        more = number_field(self.sphere_number), *indices
        called = *records_of(RECORDS_OF_SPHERES), code(self.sphere_distance.name)
        return Table(table.name, (*table.fields, *more, *called))

    @cached_property
    def numbered_shape_pairs(self) -> Table:
        """Return the table of all other pairs of shapes, with their numbers."""
        table = self.shape_pairs
        more = map(number_field, (self.shape_number, self.shape_order))
        return Table(table.name, (*table.fields, *more))

    def link_pairs_with(self, result: Port, results: Port) -> Table:
        """Return the table of pairs of links that have a result each.

        Args:
            result: That of a pair.
            results: Those of all.
        """
        fields = [
            *self._near(self.link_spheres),
            span(self.of_spheres.name, self.sphere_pairs.name),
            span(self.of_shapes.name, self.shape_pairs.name),
            number_field(self.first_pair),
            index_field(result, into=results),
        ]
        if result == self.pair_slope:
            poses, twists = self.link_poses, self.link_twists
            fields += [index_field(port, into=self.poses) for port in poses]
            fields += [index_field(port, into=self.twists) for port in twists]
            fields.append(number_field(self.moves))
        return Table(self.link_pairs.name, tuple(fields))

    def _near(self, pair: Mapping[str, Port]) -> tuple[Field, ...]:
        """Return the fields of two spheres, and of what is near."""
        centres = (index_field(pair[side], into=self.centres) for side in "ab")
        return *centres, number_field(pair["reach"])

    # The two sides of a pair of links.

    @property
    def link_poses(self) -> tuple[Port, Port]:
        """Return the poses of the links that both move with."""
        return self.link_X_A, self.link_X_B

    @property
    def link_twists(self) -> tuple[Port, Port]:
        """Return the twists of these."""
        return self.twists_a, self.twists_b

    # The two spheres of a pair, by the parameters of formulas that compare them.

    @property
    def link_spheres(self) -> dict[str, Port]:
        """Return the spheres around two links."""
        return {"a": self.link_a, "b": self.link_b, "reach": self.link_reach}

    @property
    def sphere_shapes(self) -> dict[str, Port]:
        """Return two spherical shapes."""
        return {"a": self.sphere_a, "b": self.sphere_b, "reach": self.sphere_reach}

    @property
    def shape_spheres(self) -> dict[str, Port]:
        """Return the spheres around two shapes."""
        return {"a": self.shape_a, "b": self.shape_b, "reach": self.shape_reach}


CENTRES: Final = CheckColumns.centres.name


def records_of(names: tuple[str, str]) -> tuple[Field, ...]:
    """Return the fields of the records of both shapes of a pair."""
    return tuple(record(name, SHAPES) for name in names)


def records(values: Mapping[Port, Any]) -> dict[str, Any]:
    """Return the records of a table: its arrays by the names of their columns."""
    return {column.name: array for column, array in values.items()}
