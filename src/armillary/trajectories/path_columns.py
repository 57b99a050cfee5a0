"""The columns of the kernels that find times along paths, and the tables they share.

A path has k knots and n joints, its grid g points, and of each point r further rows
that bound the path acceleration. Symbols are those of `spline_stages.py` and
`pass_stages.py`.
"""

from __future__ import annotations

from typing import Any, Final, final

from armillary.kernel.columns import (
    Column,
    Columns,
    each,
    index_field,
    number_field,
)
from armillary.kernel.pipeline import Stage
from armillary.kernel.tables import Table
from armillary.trajectories.curve import BASIS_ROWS

__all__ = ["Entry", "PathColumns", "Records", "Steps"]

Records = dict[str, Any]
"""Of a table: an array for each of its fields."""

ORDERS: Final = 3  # position, slope dq/ds and curvature d2q/ds2
ENDS: Final = 2  # lower and upper limit; or slope and curvature


class PathColumns(Columns):
    """Columns of pipelines along paths; sizes are k, n, g, r and lines = 2 (n + r)."""

    # What a call gives.
    path = Column("waypoints", "k", "n", unit="m or rad")
    given = Column("the parameter s of each waypoint, if the caller chose it", "k")
    is_given = Column("whether `given` holds: above 0")
    velocity = Column("limits of rates", ENDS, "n", unit="m/s or rad/s")
    acceleration = Column("limits of accelerations", ENDS, "n", unit="m/s^2 or rad/s^2")
    start = Column("path speed s' at the start")
    end = Column("path speed s' at the end")
    rows = Column("a, b, lower and upper of lower <= a u + b x <= upper", "g", "r", 4)

    # The curve.
    at = Column("the parameter s of each knot", "k")
    knots = Column("position, slope and curvature at each knot", "k", ORDERS, "n")
    widths = Column("h[i], how far apart in s knots are", "k")
    chords = Column("d[i], slopes of the chords between knots", "k", "n")
    pivots = Column("p[i] of the elimination", "k")
    rights = Column("r[i] of the elimination", "k", "n")
    bends = Column("c[i], curvatures at knots", "k", "n")
    state = Column("the fault, whether the path moves, whether it repeats a knot", 3)

    # Fields of tables of the curve: what columns hold at a knot, or around an interval.
    q_a = Column("waypoint at the start of an interval", "n")
    q_b = Column("waypoint at its end", "n")
    given_b = Column("given parameter at its end")
    at_a = Column("parameter at its start")
    at_b = Column("parameter at its end")
    width = Column("its length in s")
    chord = Column("slope of its chord", "n")
    width_before = Column("h[i-1]")
    width_after = Column("h[i]")
    chord_before = Column("d[i-1]", "n")
    chord_after = Column("d[i]", "n")
    pivot_before = Column("p[i-1]")
    right_before = Column("r[i-1]", "n")
    pivot_here = Column("p[i]")
    right_here = Column("r[i]", "n")
    pivot = Column("p[i] on the way back")
    right = Column("r[i] on the way back", "n")
    bend = Column("c[i]", "n")
    next_bend = Column("c[i+1]", "n")
    first_at = Column("parameter of the first knot")
    first_given = Column("given parameter of the first knot")
    first_pivot = Column("p[0]")
    first_right = Column("r[0]", "n")
    first_bend = Column("c[0]", "n")
    last_bend = Column("c[k-1]", "n")
    q_here = Column("waypoint at a knot", "n")
    bend_here = Column("curvature at a knot", "n")
    bend_a = Column("curvature at the start of the interval beside a knot", "n")
    bend_b = Column("curvature at its end", "n")
    width_here = Column("length of that interval")
    chord_here = Column("slope of its chord", "n")
    weight_a = Column("factor of h c[a] in the slope at a knot")
    weight_b = Column("factor of h c[b] in the slope at a knot")
    knot_made = Column("position, slope and curvature at a knot", ORDERS, "n")

    # The grid.
    points = Column("slope q' and curvature q'' at each point", "g", ENDS, "n")
    gaps = Column("how far the next point is in s", "g")
    lows = Column("least x = s'^2 from which the end can be reached", "g")
    highs = Column("greatest such x, below 0 where there is none", "g")
    x = Column("the square of the path speed at each point", "g")
    time = Column("when each point is passed", "g", unit="s")
    speed = Column("the path speed s' at each point", "g")

    # Fields of tables of the grid.
    knot_a = Column("knot before a point", ORDERS, "n")
    knot_b = Column("knot behind it", ORDERS, "n")
    s_a = Column("parameter of the knot before")
    s_b = Column("parameter of the knot behind")
    basis = Column("derivatives of H0 to H4 at the point", ENDS, BASIS_ROWS)
    share = Column("part of the interval between knots that a gap is")
    grid_point = Column("slope and curvature at the point", ENDS, "n")
    grid_gap = Column("how far the next point is")
    last_point = Column("slope and curvature at the last point", ENDS, "n")
    last_lo = Column("least x there")
    last_hi = Column("greatest x there")
    point = Column("slope and curvature at a point", ENDS, "n")
    next_point = Column("slope and curvature at the next point", ENDS, "n")
    gap = Column("how far apart both are")
    lo = Column("least x at the point")
    lo_next = Column("least x at the next point")
    hi = Column("greatest x at the point")
    hi_next = Column("greatest x at the next point")
    row = Column("further rows at the point", "r", 4)
    next_row = Column("further rows at the next point", "r", 4)
    from_point = Column("slope and curvature at a point", ENDS, "n")
    to_point = Column("slope and curvature at the next point", ENDS, "n")
    from_gap = Column("how far apart both are")
    to_lo = Column("least x at the next point")
    to_hi = Column("greatest x at the next point")
    x_here = Column("x at the point")
    x_next = Column("x at the next point")
    time_here = Column("when the point is passed", unit="s")
    time_next = Column("when the next point is passed", unit="s")
    speed_next = Column("path speed at the next point")
    from_row = Column("further rows at the point", "r", 4)
    to_row = Column("further rows at the next point", "r", 4)
    first_x = Column("x at the first point")
    first_time = Column("when the first point is passed", unit="s")
    first_speed = Column("path speed at the first point")
    first_low = Column("least x at the first point")
    first_high = Column("greatest x at the first point")
    last_time = Column("when the last point is passed", unit="s")

    # What stages of a sweep tell each other.
    lo_end = Column("least x at the end of a piece")
    hi_end = Column("greatest x at the end of a piece")
    x_start = Column("x at the start of a piece")
    time_start = Column("when its start is passed", unit="s")
    p = Column("slopes of lines in x that bound u", "lines")
    above = Column("their offsets where they bound it from above", "lines")
    below = Column("their offsets where they bound it from below", "lines")
    d = Column("slope of the lines that lead to the next interval of x")
    d_hi = Column("offset of the line to its greatest x")
    d_lo = Column("offset of the line to its least x")
    y = Column("the greatest x of the interval, found from above; below 0 if none")
    z = Column("the least x of the interval, found from below")
    going = Column("whether Newton's method goes on: above 0")
    fault = Column("the reason of a failure, a number of `PathReason`, or 0")
    reason = Column("how the path ended, a number of `PathReason`")
    moves = Column("0 where all waypoints are the same")


@final
class Entry:
    """A field of a table by which formulas read and write one entry of a column.

    Attributes:
        field: What they call the entry.
        into: The column.
        ahead: How many entries it is ahead of the position that a record is about.
        of: The name of that position, where a table has several.
    """

    __slots__ = ("ahead", "field", "into", "of")

    def __init__(
        self, field: Column, into: Column, *, ahead: int = 0, of: str = "here"
    ) -> None:
        """Declare a field."""
        self.field, self.into, self.ahead, self.of = field, into, ahead, of


@final
class Steps:
    """A table of positions in columns, and of numbers; `Columns` give it shapes."""

    def __init__(
        self, name: str, *fields: Entry | Column, is_single: bool = False
    ) -> None:
        """Declare the fields of each record; a column stands for its numbers."""
        self.name = name
        self.fields = fields
        self.is_single = is_single

    def table(self, columns: PathColumns) -> Table:
        """Return the table of a pipeline on columns."""
        fields = [
            index_field(columns.port(field.field), columns.port(field.into))
            if isinstance(field, Entry)
            else number_field(columns.port(field))
            for field in self.fields
        ]
        return Table(self.name, tuple(fields), self.is_single)

    def each(self, columns: PathColumns, *stages: Stage) -> Stage:
        """Return stages that run for each record in order."""
        return each(self.table(columns), *stages)

    def records(self, **given: Any) -> dict[str, Records]:
        """Return the records, by the name of the table.

        given: Positions, by default `here`, shape (count,); and the numbers of fields.
        """
        records: Records = {}
        for field in self.fields:
            if isinstance(field, Entry):
                records[field.field.name] = given[field.of] + field.ahead
            else:
                records[field.name] = given[field.name]
        return {self.name: records}
