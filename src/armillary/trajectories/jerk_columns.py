"""The columns of the kernel that times paths within limits of jerk, and its tables.

Beside those of `path_columns.py`: i intervals of a grid of its own, with i + 2 control
points of x(s). Symbols are those of `jerk_stages.py`.
"""

from __future__ import annotations

from typing import Final

from armillary.kernel.columns import Column
from armillary.trajectories.path_columns import (
    PathColumns,
    Steps,
    chosen_entry,
    entry,
)

__all__ = ["GRADED", "PLACES", "RATES", "JerkColumns"]

GRADED: Final = 4
"""Into how many more intervals the first and the last one are divided, finer towards
the ends, where speeds rise from rest."""

PLACES: Final = 3
"""At how many places of each interval limits hold: both ends and the middle."""

RATES: Final = 4
"""Into how many parts an interval is divided at whose starts rates are limited."""

ORDERS: Final = 3


class JerkColumns(PathColumns):
    """Columns of the pipeline that times paths within limits of jerk."""

    def __init__(self, *, knots: int, intervals: int, joints: int, rows: int) -> None:
        """Set the sizes: at most, and of joints and further rows exactly."""
        super().__init__(knots=knots, points=2, joints=joints, rows=rows)
        self.sizes = {
            **self.sizes,
            "bounds": (PLACES - 1) * rows,
            "i": intervals,
            "p": intervals + 1,
            "c": intervals + 2,
            "o": intervals + 3,
        }

    jerk = Column("the greatest jerks", "n", unit="m/s^3 or rad/s^3")
    start_acceleration = Column("path acceleration s'' at the start", unit="1/s^2")
    end_acceleration = Column("path acceleration s'' at the end", unit="1/s^2")
    pushes = Column("greatest |s''| by further limits at the start and the end", 2)

    # The grid.
    shares = Column(
        "where graded points are, as parts of a first and a last interval",
        2 * GRADED + 1,
    )
    special = Column("lengths in s before and behind the grid, 0 if in motion there", 2)
    folds = Column("b[0] / b[1] and b[c-1] / b[c-2], of ends at rest", 2)
    moving = Column("above 0 where the start, and the end, are in motion", 2)
    scales = Column("J / half the range of accelerations, its middle over half", 2, "n")
    first_slopes = Column("|q'| / J at the start of the path", "n")
    last_slopes = Column("|q'| / J at its end", "n")
    end_rows = Column(
        "|q'''| / x^(3/2) / J of constant path jerks at both ends", 2, "n"
    )
    lengths = Column("how long intervals are in s, 0 before and behind", "c")
    derivs = Column(
        "q'''/J, 3/2 q''/J and q'/2J at places of each interval",
        "i",
        PLACES,
        ORDERS,
        "n",
    )
    caps = Column("1 / greatest x by rates, at parts of each interval", "i", RATES)
    bounds = Column(
        "a, b and m of |a y / 2 + b x - m| <= 1, of further limits at the start, "
        "then in the middle of each interval",
        "i",
        "bounds",
        3,
    )
    tighter = Column("what jerks in each interval count as times as great", "i")
    steepest = Column("the least J / |q'| so far")
    steeps = Column("the least J / |q'| of each interval", "i")
    rises = Column("x^(3/4): about the greatest by all limits, then an envelope", "i")
    control = Column("control points of x", "c")
    change = Column("their change in an iteration", "c")
    factors = Column("l1, l2 and z of the elimination", "i", 3)
    hessians = Column("what H of its control points has of each interval", "i", 6)
    gradients = Column("the same of the gradient, then of the duration", "i", 4)
    taken = Column("the greatest share of a slack that a change takes, each", "i")
    ratios = Column("what each interval has of `ratio`", "i", 3)
    peaks = Column("greatest rate squared and acceleration in parts of limits", "i", 2)

    # A motion near the one that is looked for, on this grid or on another one.
    was_way = Column("its `way`", "o")
    was_speeds = Column("its path speeds there", "o")
    was_accelerations = Column("its path accelerations there", "o")
    was_special = Column("its `special`", 2)
    is_known = Column("whether there is one: above 0")
    was_outer = Column("s at both ends of its grid, then s' there", 4)
    places = Column("in which interval of its grid each interval lies", "p")
    most_place = Column("the last interval of its grid")
    guess = Column("its control points of x, by this grid", "i")
    is_sound = Column("whether all of these are above 0 and finite: above 0")

    # The results.
    grid = Column("the parameter s at each point of the grid", "p")
    squares = Column("x at each point of the grid", "p")
    slopes = Column("dx/ds there", "p")
    spans = Column("how long each interval takes", "p", unit="s")
    jerks = Column("the greatest jerk of each interval in parts of limits", "i")
    peak = Column("greatest rate squared, acceleration, jerk in parts of limits", 3)
    way = Column("s at both ends of the path and at each point of the grid", "o")
    times = Column("when each of these is passed", "o", unit="s")
    speeds = Column("the path speed s' there", "o")
    accelerations = Column("the path acceleration s'' there", "o")

    # What stages tell each other.
    hess = Column("H of three control points: 00, 01, 02, 11, 12, 22", 6)
    grad = Column("gradient of three control points", 3)
    total = Column("the duration as far as it is summed", unit="s")
    weight = Column("1 / mu")
    lasts = Column("the duration at the iterate", unit="s")
    decrement = Column("square of Newton's decrement as far as it is summed")
    most = Column("the greatest share of a slack that the change takes")
    step = Column("the part of the change that is made")
    relax = Column("by what limits are multiplied, until the iterate is within them")
    ratio = Column("parts of limits: of rates and accelerations, of jerks; duration", 3)
    envelope = Column("x^(3/4) at the control point before, and its rise by s", 2)
    chosen = Column("above 0 where iterations begin with the guess")
    kept = Column("the control point before, as it was")
    going = Column("whether iterations go on: above 0")
    relaxing = Column("whether limits are relaxed: above 0")
    fault_here = Column("the reason of a failure, or 0")

    # Each interval: from which knots, and where between them.
    from_knot, to_knot = (
        entry(PathColumns.knots, of="knot"),
        entry(PathColumns.knots, 1, of="knot"),
    )
    s_from, s_to = entry(PathColumns.at, of="knot"), entry(PathColumns.at, 1, of="knot")
    graded_from, graded_to = entry(shares, of="near"), entry(shares, of="far")
    base_from = Column("part of the way between knots where it starts")
    scale_from = Column("what the graded share is multiplied by there")
    base_to = Column("part of the way where it ends")
    scale_to = Column("what the graded share is multiplied by there")
    is_first = Column("1 of the first interval, else 0")
    is_second = Column("1 of the second interval, else 0")
    is_last = Column("1 of the last interval, else 0")
    h_before, h_here, h_after = (
        entry(lengths, 0),
        entry(lengths, 1),
        entry(lengths, 2),
    )
    deriv, cap = entry(derivs), entry(caps)
    bound = entry(bounds)
    b0, b1, b2 = entry(control), entry(control, 1), entry(control, 2)
    d0, d1, d2 = entry(change), entry(change, 1), entry(change, 2)
    factor = entry(factors)
    grid_here, square_here = entry(grid), entry(squares)
    grid_next, square_next = entry(grid, 1), entry(squares, 1)
    slope_here, slope_next = entry(slopes), entry(slopes, 1)
    span_here, jerk_here, factor_here = entry(spans), entry(jerks), entry(tighter)
    guess_here = entry(guess)
    steep_here, rise_here, ratio_here = entry(steeps), entry(rises), entry(ratios)
    hess_here, grad_here = entry(hessians), entry(gradients)
    taken_here, peak_here = entry(taken), entry(peaks)
    place_before, place_here = entry(places), entry(places, 1)
    was_next = chosen_entry(was_way, 2, by=place_before)
    was_after = chosen_entry(was_way, 3, by=place_before)
    was_from = chosen_entry(was_way, 1, by=place_here)
    was_to = chosen_entry(was_way, 2, by=place_here)
    was_speed = chosen_entry(was_speeds, 1, by=place_here)
    was_acceleration = chosen_entry(was_accelerations, 1, by=place_here)
    was_acceleration_to = chosen_entry(was_accelerations, 2, by=place_here)
    way_here, speed_here = entry(way, 1), entry(speeds, 1)
    acceleration_here = entry(accelerations, 1)
    passed, passed_next = entry(times, 1), entry(times, 2)
    INTERVALS = Steps(
        "intervals",
        *(from_knot, to_knot, s_from, s_to, graded_from, graded_to),
        *(base_from, scale_from, base_to, scale_to, is_first, is_second, is_last),
        *(h_before, h_here, h_after, deriv, cap, b0, b1, b2, d0, d1, d2),
        *(factor, grid_here, grid_next, square_here, square_next),
        *(slope_here, slope_next, span_here, jerk_here, factor_here, guess_here),
        *(steep_here, rise_here, ratio_here, hess_here, grad_here),
        *(taken_here, peak_here),
        *(place_before, place_here, was_next, was_after, was_from, was_to),
        *(was_speed, was_acceleration, was_acceleration_to),
        *(way_here, speed_here, acceleration_here, passed, passed_next),
    )

    BOUNDED = INTERVALS.and_fields(bound)

    # The same, the last one first.
    back_factor, back_rise = entry(factors), entry(rises)
    back0, back1, back2 = entry(change), entry(change, 1), entry(change, 2)
    back_h, back_h_after = entry(lengths, 1), entry(lengths, 2)
    BACKWARDS = Steps(
        "intervals_back",
        *(back_factor, back_rise, back0, back1, back2, back_h, back_h_after),
    )

    # Both ends.
    knot_first = entry(PathColumns.knots, of="first")
    knot_last = entry(PathColumns.knots, of="last_knot")
    s_first, s_second = (
        entry(PathColumns.at, of="first"),
        entry(PathColumns.at, 1, of="first"),
    )
    s_last, s_before = (
        entry(PathColumns.at, of="last_knot"),
        entry(PathColumns.at, -1, of="last_knot"),
    )
    first_deriv = entry(derivs, of="first")
    last_deriv = entry(derivs, -1, of="last_b")
    place_first = entry(places, of="first")
    was_first = entry(was_way, 1, of="first")
    was_last = entry(was_way, 1, of="was_last")
    was_speed_first = entry(was_speeds, 1, of="first")
    was_speed_last = entry(was_speeds, 1, of="was_last")
    was_intervals = Column("how many intervals the grid of the other motion has")
    parts = Column("of how many intervals between knots the grid is")
    b_first, b_second = entry(control, of="first"), entry(control, 1, of="first")
    b_last, b_before = entry(control, 1, of="last_b"), entry(control, of="last_b")
    d_first, d_second = entry(change, of="first"), entry(change, 1, of="first")
    d_last, d_before = entry(change, 1, of="last_b"), entry(change, of="last_b")
    h_zero, h_first = entry(lengths, of="first"), entry(lengths, 1, of="first")
    h_end, h_last = entry(lengths, 1, of="last_h"), entry(lengths, of="last_h")
    way_first, way_before = entry(way, of="first"), entry(way, 1, of="last_b")
    way_last = entry(way, 2, of="last_b")
    grid_last, square_last = entry(grid, of="last_b"), entry(squares, of="last_b")
    slope_last = entry(slopes, of="last_b")
    time_first, time_second = entry(times, of="first"), entry(times, 1, of="first")
    time_before, time_last = entry(times, 1, of="last_b"), entry(times, 2, of="last_b")
    speed_first, speed_second = entry(speeds, of="first"), entry(speeds, 1, of="first")
    speed_before, speed_last = (
        entry(speeds, 1, of="last_b"),
        entry(speeds, 2, of="last_b"),
    )
    acceleration_first, acceleration_second = (
        entry(accelerations, of="first"),
        entry(accelerations, 1, of="first"),
    )
    acceleration_before, acceleration_last = (
        entry(accelerations, 1, of="last_b"),
        entry(accelerations, 2, of="last_b"),
    )
    count = Column("how many intervals there are")
    gap = Column("mu in parts of the duration over the intervals")
    ending = Column(
        "iterations end where the decrement squared over intervals is less, and the "
        "step longer",
        2,
    )
    measures = Column("whether it is measured what the motion exceeds: above 0")
    is_measured = Column("the same")
    BOTH_ENDS = Steps(
        "both_ends",
        *(knot_first, knot_last),
        *(s_first, s_second, s_last, s_before, parts),
        *(b_first, b_second, b_last, b_before, d_first, d_second, d_last, d_before),
        *(h_zero, h_first, h_end, h_last, count, gap, ending, measures),
        *(first_deriv, last_deriv),
        *(
            place_first,
            was_first,
            was_last,
            was_speed_first,
            was_speed_last,
            was_intervals,
        ),
        *(way_first, way_before, way_last, grid_last, square_last, slope_last),
        *(time_first, time_second, time_before, time_last),
        *(speed_first, speed_second, speed_before, speed_last),
        *(acceleration_first, acceleration_second),
        *(acceleration_before, acceleration_last),
        is_single=True,
    )
