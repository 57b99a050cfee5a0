"""The columns and tables of the pipelines of collision checks.

Spheres are numbered: one around each link that is tested, then one around each shape.
Pairs are records of tables, so that pipelines depend on the moving links alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, final

from armillary.kernel.columns import Column, Columns, index_field, number_field
from armillary.kernel.tables import Field, Table, code, span
from armillary.kinematics.moving_links import MovingLinks
from armillary.trace import Port

__all__ = ["CONTACT", "CheckColumns", "records"]

CONTACT: Final = 11
"""Numbers of a contact: distance [m], number of the pair of shapes, points, normal."""


@final
class CheckColumns(Columns):
    """The columns of the pipelines of a cell, and the tables that all rows share."""

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

    # Of the pair of links, or of shapes, that is looked at.
    near = Column("above 0 where the spheres of two links are near")
    near_shape = Column("above 0 where the spheres of two shapes are near")
    deepest = Column("by how much the nearest spherical shapes are near", unit="m2")
    value = Column("distance of two shapes", unit="m")

    # What is known of a row so far.
    going = Column("1 as long as no pair is known to touch, or a motion goes on")
    doubt = Column("1 if a pair is so near the margin that rounding decides")
    least = Column("least distance so far", unit="m")
    found = Column("answer of the check")

    # Motions.
    q0 = Column("joint positions where a motion begins", "joints", unit="m or rad")
    q1 = Column("joint positions where it ends", "joints", unit="m or rad")
    travel = Column("how far each joint moves", "joints", unit="m or rad")
    t = Column("part of the motion that is proven to be free")
    step = Column("by how much t may grow")
    gap = Column("least distance of pairs that may meet, less the margin", unit="m")
    speed = Column("speed at which two links may approach each other", unit="m")
    touching = Column("1 if links touch at t")

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
        self, moving: MovingLinks, spheres: int, pairs: int = 0, turning: int = 0
    ) -> None:
        """Set the sizes.

        Args:
            moving: The moving links of the cell.
            spheres: For how many spheres there is room.
            pairs: For how many pairs of links there is room, if each has a result.
            turning: How many links have twists.
        """
        super().__init__(
            joints=moving.joints,
            moving=moving.count,
            spheres=spheres,
            pairs=pairs,
            turning=turning,
        )

    @property
    def limits(self) -> Table:
        """Return the table of what decides, and for which rows.

        Touching are pairs whose distance is below `margin - rounding`, free those above
        `margin + rounding`; spheres are compared by squares, within `square_rounding`.
        Rows beyond `most_q` and `most_extent` are left undecided.
        """
        lengths = self.margin, self.rounding, self.square_rounding, self.most_extent
        fields = tuple(map(number_field, (*lengths, self.most_q)))
        return Table("limits", fields, is_single=True)

    @property
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

    @property
    def sphere_pairs(self) -> Table:
        """Return the table of pairs of shapes that are both spheres."""
        return Table("sphere_pairs", self._near(self.sphere_shapes))

    @property
    def shape_pairs(self) -> Table:
        """Return the table of all other pairs of shapes.

        `X_A` and `X_B` are in the order that the code of the pair takes them in.
        """
        poses = (index_field(X, into=self.poses) for X in (self.X_A, self.X_B))
        near = self._near(self.shape_spheres)
        return Table("shape_pairs", (*near, *poses, code(self.distance.name)))

    @property
    def link_pairs(self) -> Table:
        """Return the table of pairs of links, with ranges of their pairs of shapes."""
        spheres = span(self.of_spheres.name, self.sphere_pairs.name)
        shapes = span(self.of_shapes.name, self.shape_pairs.name)
        near = self._near(self.link_spheres)
        return Table("link_pairs", (*near, spheres, shapes))

    @property
    def moving_link_pairs(self) -> Table:
        """Return the table of pairs of links for motions, with rates."""
        table = self.link_pairs
        return Table(table.name, (*table.fields, number_field(self.rates)))

    # What has a result for each pair of links.

    @property
    def numbered_sphere_pairs(self) -> Table:
        """Return the table of pairs of spherical shapes, with their numbers."""
        table = self.sphere_pairs
        poses = (self.sphere_X_A, self.sphere_X_B)
        indices = (index_field(X, into=self.poses) for X in poses)
        more = number_field(self.sphere_number), *indices
        return Table(
            table.name, (*table.fields, *more, code(self.sphere_distance.name))
        )

    @property
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


def records(values: Mapping[Port, Any]) -> dict[str, Any]:
    """Return the records of a table: its arrays by the names of their columns."""
    return {column.name: array for column, array in values.items()}
