"""The columns of the kernels that find times along paths, and the tables they share.

A path has k knots and n joints, its grid g points, and of each point r further rows
that bound the path acceleration. Symbols are those of `spline_stages.py` and
`pass_stages.py`.
"""

from __future__ import annotations

from typing import Any, Final, final

import numpy as np

from armillary.kernel.columns import (
    Column,
    Columns,
    each,
    index_field,
    number_field,
)
from armillary.kernel.stages import Stage
from armillary.kernel.tables import Field, Table
from armillary.trajectories.hermite import BASIS_ROWS

__all__ = ["PathColumns", "Records", "Steps", "chosen_entry", "entry"]

Records = dict[str, Any]
"""Of a table: an array for each of its fields."""

ORDERS: Final = 3  # position, slope dq/ds and curvature d2q/ds2
PAIR: Final = 2  # lower and upper limit; or slope and curvature


_PLACES: dict[Column, tuple[Column, int, str]] = {}
"""Of fields that are entries: of which column, how far ahead, of which position."""

_CHOICES: dict[Column, Column] = {}
"""Of fields that are entries which rows choose: the field that chooses."""


def entry(column: Column, ahead: int = 0, *, of: str = "here") -> Column:
    """Declare a field by which formulas read and write one entry of a column.

    Args:
        column: The column.
        ahead: How many entries it is ahead of the position that a record is about.
        of: The name of that position, where a table has several.
    """
    field = Column(f"an entry of {column.meaning}", *column.shape[1:], unit=column.unit)
    _PLACES[field] = column, ahead, of
    return field


def chosen_entry(column: Column, ahead: int = 0, *, by: Column) -> Column:
    """Declare a field by which formulas read an entry that a row chooses.

    Args:
        column: The column.
        ahead: How many entries it is ahead of the chosen one.
        by: Another field: an entry of a column of numbers of entries.
    """
    field = entry(column, ahead, of="")
    _CHOICES[field] = by
    return field


@final
class Steps:
    """A table of positions in columns, and of numbers; `Columns` give it shapes."""

    def __init__(self, name: str, *fields: Column, is_single: bool = False) -> None:
        """Declare the fields of each record."""
        self.name = name
        self.fields = fields
        self.is_single = is_single

    def and_fields(self, *fields: Column) -> Steps:
        """Return the table with further fields."""
        return Steps(self.name, *self.fields, *fields, is_single=self.is_single)

    def table(self, columns: PathColumns) -> Table:
        """Return the table of a pipeline on columns."""
        fields: list[Field] = []
        for field in self.fields:
            if field in _PLACES:
                into, _, _ = _PLACES[field]
                by = _CHOICES.get(field)
                chosen = "" if by is None else columns.port(by).name
                port = columns.port(field)
                fields.append(index_field(port, columns.port(into), by=chosen))
            else:
                fields.append(number_field(columns.port(field)))
        return Table(self.name, tuple(fields), self.is_single)

    def each(self, columns: PathColumns, *stages: Stage) -> Stage:
        """Return stages that run for each record in order."""
        return each(self.table(columns), *stages)

    def several(self, columns: PathColumns, *stages: Stage) -> Stage:
        """Return stages that run for records in any order; see `Each.several`."""
        fields = [field for field in self.fields if field in _PLACES]
        fields = [field for field in fields if _PLACES[field][2] == "here"]
        ports = [columns.port(field) for field in fields]
        return each(self.table(columns), *stages, several=ports)

    def records(self, **given: Any) -> dict[str, Records]:
        """Return the records, by the name of the table.

        given: Positions, by default `here`, shape (count,); and the numbers of fields.
        """
        records: Records = {}
        for field in self.fields:
            if field in _PLACES:
                _, ahead, of = _PLACES[field]
                positions = given[of] if of else np.zeros_like(given["here"])
                records[field.name] = positions + ahead
            else:
                records[field.name] = given[field.name]
        return {self.name: records}


class PathColumns(Columns):
    """Columns of pipelines along paths.

    Attributes:
        n: How many joints there are.
        r: How many further rows there are at each point.
    """

    def __init__(self, *, knots: int, points: int, joints: int, rows: int) -> None:
        """Set the sizes: how many there are at most, and of joints and rows exactly."""
        lines = 2 * (joints + rows)
        super().__init__(k=knots, g=points, n=joints, r=rows, lines=lines)
        self.n, self.r = joints, rows

    # What a call gives.
    path = Column("waypoints", "k", "n", unit="m or rad")
    given = Column("the parameter s of each waypoint, if the caller chose it", "k")
    is_given = Column("whether `given` holds: above 0")
    velocity = Column("limits of rates", PAIR, "n", unit="m/s or rad/s")
    acceleration = Column("limits of accelerations", PAIR, "n", unit="m/s^2 or rad/s^2")
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
    curvatures = Column("c[i], curvatures at knots", "k", "n")
    state = Column("the fault, whether the path moves, whether it repeats a knot", 3)

    # The intervals between waypoints in order, each from a to b.
    q_a, q_b, given_b = entry(path), entry(path, 1), entry(given, 1)
    at_a, at_b = entry(at), entry(at, 1)
    width, chord = entry(widths), entry(chords)
    CHORDS = Steps("chords", q_a, q_b, given_b, at_a, at_b, width, chord)

    # The inner waypoints in order, with the interval before and after each.
    width_before, width_after = entry(widths, -1), entry(widths)
    chord_before, chord_after = entry(chords, -1), entry(chords)
    pivot_before, pivot_here = entry(pivots, -1), entry(pivots)
    right_before, right_here = entry(rights, -1), entry(rights)
    AHEAD = Steps(
        "ahead",
        *(width_before, width_after, chord_before, chord_after),
        *(pivot_before, right_before, pivot_here, right_here),
    )

    # The inner waypoints, the last one first.
    pivot, right = entry(pivots), entry(rights)
    curvature, next_curvature = entry(curvatures), entry(curvatures, 1)
    BACK = Steps("back", pivot, right, curvature, next_curvature)

    # Both ends.
    first_at, first_given = entry(at, of="first"), entry(given, of="first")
    first_pivot, first_right = entry(pivots, of="first"), entry(rights, of="first")
    first_curvature = entry(curvatures, of="first")
    last_curvature = entry(curvatures, of="last")
    ENDS = Steps(
        "ends",
        *(first_at, first_given, first_pivot, first_right),
        *(first_curvature, last_curvature),
        is_single=True,
    )

    # The knots, and the interval beside each: after it, or before the last one.
    q_here, curvature_here, knot_made = entry(path), entry(curvatures), entry(knots)
    curvature_a = entry(curvatures, of="interval")
    curvature_b = entry(curvatures, 1, of="interval")
    width_here = entry(widths, of="interval")
    chord_here = entry(chords, of="interval")
    weight_a = Column("factor of h c[a] in the slope at a knot")
    weight_b = Column("factor of h c[b] in the slope at a knot")
    KNOTS = Steps(
        "knots_made",
        *(q_here, curvature_here, curvature_a, curvature_b, width_here, chord_here),
        *(weight_a, weight_b, knot_made),
    )
    SPLINE = CHORDS, AHEAD, BACK, ENDS, KNOTS

    # The grid.
    points = Column("slope q' and curvature q'' at each point", "g", PAIR, "n")
    gaps = Column("how far the next point is in s", "g")
    lows = Column("least x = s'^2 from which the end can be reached", "g")
    highs = Column("greatest such x, below 0 where there is none", "g")
    x = Column("the square of the path speed at each point", "g")
    time = Column("when each point is passed", "g", unit="s")
    speed = Column("the path speed s' at each point", "g")

    # Its points, each between two knots, of whose gap the gap to the next is a share.
    knot_a, knot_b = entry(knots, of="knot"), entry(knots, 1, of="knot")
    s_a, s_b = entry(at, of="knot"), entry(at, 1, of="knot")
    basis = Column("derivatives of H0 to H4 at the point", PAIR, BASIS_ROWS)
    share = Column("part of the interval between knots that a gap is")
    grid_point, grid_gap = entry(points), entry(gaps)
    GRID = Steps("grid", knot_a, knot_b, s_a, s_b, basis, share, grid_point, grid_gap)

    # The intervals of the grid, the last one first: a point and the next one.
    point, next_point, gap = entry(points), entry(points, 1), entry(gaps)
    lo, lo_next = entry(lows), entry(lows, 1)
    hi, hi_next = entry(highs), entry(highs, 1)
    row, next_row = entry(rows), entry(rows, 1)
    BACKWARD = Steps("backward_steps", point, next_point, gap, lo, lo_next, hi, hi_next)
    BACKWARD_ROWS = BACKWARD.and_fields(row, next_row)
    last_point, last_lo, last_hi = entry(points), entry(lows), entry(highs)
    LAST = Steps("last", last_point, last_lo, last_hi, is_single=True)

    # The intervals of the grid in order.
    from_point, to_point, from_gap = entry(points), entry(points, 1), entry(gaps)
    to_lo, to_hi = entry(lows, 1), entry(highs, 1)
    x_here, x_next = entry(x), entry(x, 1)
    time_here, time_next = entry(time), entry(time, 1)
    speed_next = entry(speed, 1)
    from_row, to_row = entry(rows), entry(rows, 1)
    FORWARD = Steps(
        "forward_steps",
        *(from_point, to_point, from_gap, to_lo, to_hi, x_here, x_next),
        *(time_here, time_next, speed_next),
    )
    FORWARD_ROWS = FORWARD.and_fields(from_row, to_row)
    first_x, first_time, first_speed = entry(x), entry(time), entry(speed)
    FIRST = Steps("first", first_x, first_time, first_speed, is_single=True)

    # Both ends of a whole path.
    first_low, first_high = entry(lows, of="first"), entry(highs, of="first")
    last_time = entry(time, of="last")
    AROUND = Steps("around", first_low, first_high, last_time, is_single=True)

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
    greatest = Column("greatest x of the interval, found from above; below 0 if none")
    least = Column("least x of the interval, found from below")
    active = Column("whether Newton's method goes on: above 0")
    fault = Column("the reason of a failure, a number of `PathReason`, or 0")
    reason = Column("how the path ended, a number of `PathReason`")
    moves = Column("0 where all waypoints are the same")
