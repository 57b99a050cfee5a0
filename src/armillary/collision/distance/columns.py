"""The columns of the pipelines that measure two shapes, A and B.

Vectors are in the frame of A, unless their meaning says otherwise. The core of a shape
is what its radius is added to: a point for a sphere, a segment for a capsule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias, final

import msgspec

from armillary.collision.distance.ball_tree import BALLS
from armillary.collision.distance.creases import crease_count
from armillary.collision.distance.sizes import numbers_of, solid_of
from armillary.kernel.columns import Column, Columns, number_field
from armillary.kernel.tables import Table, reals
from armillary.model.cloud import Cloud
from armillary.model.primitive import Primitive
from armillary.trace import Port

__all__ = [
    "CORNERS",
    "NEWTON_TABLE",
    "RECORDS",
    "TABLES",
    "PairColumns",
    "Side",
    "SideName",
]

SideName: TypeAlias = Literal["a", "b"]

CORNERS: Final = 8
"""Corners of a polyhedron that are compared at once."""


@final
class PairColumns(Columns):
    """The columns of the pipelines of two shapes, in an order that is listed.

    Attributes:
        bodies: A and B.
        shapes: The same, an element in place of a cloud.
        cloud: Which one is a cloud, 0 or 1; None if none is.
    """

    owner = "pairs of shapes"

    # What a call gives: poses of links, and what shapes are like in them.
    X_AB = Column("pose of the link of B in that of A", 4, 4, unit="m")
    X_A = Column("pose of the link of A in the world", "pose_rows", 4, unit="m")
    X_B = Column("pose of the link of B in the world", "pose_rows", 4, unit="m")
    pose_a = Column("pose of A in its link", 3, 4, unit="m")
    pose_b = Column("pose of B in its link", 3, 4, unit="m")
    link_a = Column("number of the pose of the link of A, in a table of poses")
    link_b = Column("number of that of B")
    shape_a = Column("number of A, in a table of shapes")
    shape_b = Column("number of B, in another one")
    a = Column("numbers of A, such as its radius and length", "a", unit="m")
    b = Column("numbers of B", "b", unit="m")

    # What the stages of all pairs leave.
    X = Column("pose of B in A", 3, 4, unit="m")
    value = Column("distance, minus the depth where bodies overlap", unit="m")
    gap = Column("by how much the value may be wrong", unit="m")
    on_a = Column("point of A nearest to B, or deepest in it", 3, unit="m")
    on_b = Column("the same of B", 3, unit="m")
    normal = Column("unit vector from A to B, finally in the world", 3)
    points = Column("both nearest points in the world", 2, 3, unit="m")

    # Clouds (`cloud.py`): the nearest of their elements.
    X_cloud = Column("pose of B in A, of a cloud itself, not of an element", 3, 4)
    wanted = Column("distance from which on a lower bound will do", unit="m")
    exactly = Column("above 0 where a search is wanted; else NaN may be the answer")
    around = Column("sphere around the other shape, in its frame", 4, unit="m")
    grid_lower = Column("least corner of a grid around a cloud", 3, unit="m")
    grid_upper = Column("greatest corner of the box around its centres", 3, unit="m")
    grid_least = Column("least corner of that box", 3, unit="m")
    grid_cell = Column("side of the cells of the grid", unit="m")
    grid_scale = Column("cells per metre", unit="1/m")
    grid_counts = Column("cells along each axis", 3)
    outer = Column("how far elements reach from their centres, at most", unit="m")
    inner = Column("how far they reach at least", unit="m")
    centre = Column("centre of the other shape's sphere, in the cloud's frame", 3)
    cell = Column("number of the cell that the centre of the other shape is in")
    away = Column("how far that centre is from the middle of the cell", unit="m")
    beyond = Column("how far it is from the box around the cloud", unit="m")
    cell_distance = Column("distance of the middle of a cell from a centre", unit="m")
    upper = Column("what the distance from centres is not above", unit="m")
    bound = Column("a bound of the distance of cores, where it will do", unit="m")
    is_open = Column("above 0 where no bound will do")
    is_sought = Column("above 0 where a search follows")
    nearest = Column("least distance of cores so far", unit="m")
    plenty = Column("distance of cores at which the search may end", unit="m")
    place = Column("centre of elements of a cloud, in its frame", 3, unit="m")
    chosen = Column("centre of the nearest one", 3, unit="m")
    cloud_balls = Column("balls of a record of its tree", 4, BALLS, unit="m")

    # The farthest point of a body in a direction, in the frame of that body.
    to_a = Column("direction in which A is searched", 3)
    to_b = Column("direction in which B is searched", 3)
    point_a = Column("farthest point of A there", 3, unit="m")
    point_b = Column("farthest point of B there", 3, unit="m")
    corners_a = Column("some corners of A, by coordinates", 3, CORNERS, unit="m")
    corners_b = Column("the same of B", 3, CORNERS, unit="m")

    # The search for the distance (`gjk.py`).
    first = Column("what the first direction is against, not 0", 3)
    v = Column("point nearest to the origin of what is known of A - B", 3, unit="m")
    simplex = Column("points of A - B around v, NaN where none", 3, 3, unit="m")
    lower = Column("what a distance is proven not to be below", unit="m")
    proof = Column("direction across the plane that proves it", 3, unit="m")
    extent = Column("size of the numbers that v is a difference of", unit="m")
    open = Column("above 0 while the search goes on")
    is_first = Column("1 in its first step, else 0")
    is_second = Column("1 in its second step")
    is_third = Column("1 in its third step")
    is_later = Column("1 in further steps")
    moving = Column("above 0 while steps of Newton's method go on, plus their number")
    inside = Column("1 where simplex and last point have the origin inside")
    simplex_a = Column("points of A that the simplex comes from", 3, 3, unit="m")
    enough = Column("distance beyond which a search may end", unit="m")
    meets = Column("above 0 where bodies may overlap, so that a depth is needed")

    # The search for the depth (`depth.py`).
    is_shallow = Column("above 0 where they may overlap by rounding only")
    is_deep = Column("above 0 where they overlap by more than rounding")
    along = Column("direction in which A - B is searched", 3)
    against = Column("the opposite direction", 3)
    farthest = Column("farthest point of A - B in that direction", 3, unit="m")
    depth = Column("least width so far", unit="m")
    axis = Column("direction of the least width so far", 3)
    least = Column("what the depth is proven not to be below", unit="m")
    doubt = Column("above 0 where that is much less than the depth", unit="m")
    touch = Column("point of A where the depth ends, NaN where not known", 3, unit="m")
    narrow = Column("width below which the depth need not be known", unit="m")
    trials = Column("directions that Newton's method improves", "trials", 3)
    newton = Column("number of its step")

    def __init__(
        self, a: Primitive | Cloud, b: Primitive | Cloud, *, pose_rows: int = 3
    ) -> None:
        """Set the shapes.

        Args:
            a: The first; only its kind matters.
            b: The second.
            pose_rows: Rows of the poses of links in the world, 3 or 4.
        """
        sizes = {"a": len(numbers_of(a)), "b": len(numbers_of(b))}
        # One that moves freely, and one on each crease of both.
        self.bodies = a, b
        self.shapes = solid_of(a), solid_of(b)
        clouds = [k for k, body in enumerate(self.bodies) if isinstance(body, Cloud)]
        self.cloud = clouds[0] if clouds else None
        trials = 1 + sum(crease_count(shape) for shape in self.shapes)
        super().__init__(pose_rows=pose_rows, trials=trials, **sizes)

    @property
    def numbers(self) -> dict[str, Port | None]:
        """Return what the parameters `a` and `b` read: None for shapes of no numbers.

        Formulas that take them are staged with `**columns.numbers`.
        """
        return {port.name: port if port.size else None for port in (self.a, self.b)}

    @property
    def cloud_tree(self) -> Table:
        """Return the table of the balls around the elements of a cloud."""
        return self.table("cloud_tree", self.cloud_balls)

    @property
    def cloud_grid(self) -> Table:
        """Return the table of what is known of a cloud as a whole."""
        box = self.grid_lower, self.grid_least, self.grid_upper
        cells = self.grid_cell, self.grid_scale, self.grid_counts
        sizes = self.outer, self.inner
        return self.table("cloud_grid", *box, *cells, *sizes, is_single=True)

    @property
    def cloud_cells(self) -> Table:
        """Return the table of the cells of that grid."""
        return self.table("cloud_cells", self.cell_distance)

    @property
    def cloud_tables(self) -> tuple[Table, ...]:
        """Return the tables of a cloud, if one of both shapes is one."""
        if self.cloud is None:
            return ()
        return self.cloud_tree, self.cloud_grid, self.cloud_cells

    @property
    def separation(self) -> tuple[Port, ...]:
        """Return what the stages of a pair write: how far apart its cores are."""
        return self.value, self.gap, self.on_a, self.on_b, self.normal

    @property
    def sides(self) -> tuple[Side, Side]:
        """Return the columns of either shape."""
        a, b = self.shapes
        return (
            Side("a", a, self.to_a, self.point_a, self.corners_a),
            Side("b", b, self.to_b, self.point_b, self.corners_b),
        )


@final
class Side(msgspec.Struct, frozen=True):
    """One of two shapes, and the columns of the search for its farthest point."""

    name: SideName
    shape: Primitive
    to: Port
    point: Port
    corners: Port

    @property
    def hull(self) -> Table:
        """Return the table of corners, if the shape is a polyhedron."""
        return Table(f"hull_{self.name}", (number_field(self.corners),))


NEWTON_STEPS: Final = 2
"""Of Newton's method, from about 1e-4 of a radian to rounding."""

NEWTON_TABLE: Final = Table("newton_steps", (reals(PairColumns.newton.name),))

TABLES: Final = (NEWTON_TABLE,)
"""What stages of pairs read, whatever the shapes."""

RECORDS: Final[Mapping[str, Mapping[str, Sequence[float]]]] = {
    NEWTON_TABLE.name: {
        PairColumns.newton.name: [float(k) for k in range(NEWTON_STEPS)]
    }
}
"""What is in those tables."""
