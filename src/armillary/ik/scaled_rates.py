"""Stages of rates that meet tasks in order, scaled by bounds and inequalities.

It is the hierarchy of `task_priority.py`, followed corner by corner in a native loop,
where the optimal rates x may also be bounded by rows a_k'x >= b_k of a table. Each
iteration finds how everything moves, looks through the rows for the first that x comes
to, and moves there. So the code does not grow with the rows, and rows that do not count
in a step cost nothing.

The way begins with `begin_rates`, where bounds and rows are met; a row that is missed
there may not get worse. `cell.differential_ik` begins at 0 and has bounds alone,
controllers with `conflict="slow"` begin with braking.

Stages: `_begun` finds what does not change on the way. In a loop while `active`,
`_level` begins a level where one has ended, `_direction` finds how all changes on the
way, `_look` finds the first row that x comes to, and `_moved` goes to the next event.
Then `_kept` writes x. What they read and write is in their signatures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from armillary.ik.active_rows import FAR, FREE, Hit, Slots
from armillary.ik.task_priority import (
    REFINEMENTS,
    SINGULAR,
    AskedMotion,
    Direction,
    Follower,
    HeldMotion,
    Hierarchy,
    Prepared,
    Progress,
    held_motion,
)
from armillary.kernel.columns import (
    Column,
    Columns,
    Numbered,
    dense,
    each,
    repeat,
    when,
)
from armillary.kernel.dense import SolveMotion
from armillary.kernel.packed import Packed, Part
from armillary.kernel.stages import Stage
from armillary.kernel.tables import Table
from armillary.spatial.ldl import inner
from armillary.spatial.vector import Matrix, Number, Vector
from armillary.trace import Port, Program
from armillary.trace.functions import absolute, maximum, minimum, select

__all__ = [
    "RATE",
    "RateColumns",
    "RateProblem",
    "RateRow",
    "Way",
    "corner_stages",
    "rate_stages",
    "when_near",
]

ITERATIONS: Final = 100
"""Most corners of a way; most ways have fewer than 20."""

BROKEN: Final = 1e-9
"""Of a row, times the greatest rate or 1: how much it may be missed by."""

ROUNDING: Final = 1e-6
"""Part of the way to x that may be given up for such rows."""

FEW: Final = 3
"""Active rows for which there is code of its own; there are seldom more."""

UNROLLED: Final = 7
"""Rates up to which linear algebra of n^3 operations is straight code."""

RATE: Final = "rad/s or m/s"
"""The unit of rates of joints."""


class RateRow(Packed):
    """An inequality a'x >= b, the record of a table; a table may have more in it."""

    slopes = Part("a", "c")
    bound = Part("b")


class RateColumns(Columns):
    """What the stages of rates read and write.

    Sizes: c rates; R rows of tasks in `tasks` levels, m of one level; a record of an
    inequality has `row` numbers.
    """

    # The problem, see `Hierarchy`
    task_rows = Column("J of all levels, the highest first", "R", "c")
    task_wanted = Column("v: requested values of J x", "R")
    metric = Column("diagonal of W", "c")
    begin_rates = Column("rates that the way begins with", "c", unit=RATE)
    low = Column("least rates", "c", unit=RATE)
    high = Column("greatest rates", "c", unit=RATE)
    damping = Column(
        "d, the option squared: of singular values below which directions are damped"
    )
    sharp = Column("above 0 where damping vanishes away from singularities")
    null = Column("rates r for the freedom that tasks leave", "c", unit=RATE)

    # Inequalities, records of a table
    row = Column("the inequality, see `RateRow`", "row")
    is_near = Column("above 0 where the row counts", 1)
    row_number = Column("its number")
    near = Column("above 0 where a row counts")

    # How far the hierarchy has been followed, see `Progress` and `Slots`
    trace = Column("trace of J W^-1 J', of all levels")
    filter = Numbered("1 - M^8 of a level", "m", "m")
    z = Column("rates beyond `begin_rates`", "c", unit=RATE)
    remaining = Column("1 - t of the present level")
    level = Column("its number from 1; 0 before the first")
    scales = Column("t of each level", "tasks")
    task_pressures = Column("multiplier of each row of tasks", "R")
    held = Column("1 for rates at their greatest, -1 at their least, else 0", "c")
    change = Column("b - c in the rows of the present level, 0 in others", "R")
    slots = Column("numbers of active rows, -1 for none", "c")
    slot_rows = Column("their a, brought to a common length", "c", "c")
    pressures = Column("their multipliers", "c")
    active = Column("above 0 while there are corners to come")

    # How everything changes along the way, see `Direction` and `Hit`
    moves = Column("1 where the line can be followed, else 0")
    pulls = Column("change of multipliers, of tasks and then of slots", "R+c")
    free = Column("1 for rates between their bounds, else 0", "c")
    rates = Column("change of x", "c")
    least = Column("changes of rates below this are rounding")
    forces = Column("change of what presses rates against bounds", "c")
    bound_pressures = Column("what presses rates against bounds", "c")
    row_counts = Column("1 for rows of tasks and slots that count, else 0", "R+c")
    row_changes = Column("how their values change", "R+c")
    pull_now = Column("rates that the rest of the motion is nearest to", "c", unit=RATE)
    pressing = Column("multipliers of these rows", "R+c")
    small = Column("what keeps a matrix of them positive")
    motion_rates = Column("change of x where it can move", "c", unit=RATE)
    toward = Column("rows, each times the change of its multiplier, summed", "c")
    pressed = Column("the same with the multipliers themselves", "c")
    lengths = Column("sums of sizes in columns of these rows", "c")
    few = Column("above 0 where no more than `FEW` rows are active")
    many = Column("above 0 where more are")
    hit_time = Column("step after which x comes to a row")
    hit_number = Column("the number of that row")
    hit_row = Column("its a", "c")

    # The answer
    x = Column("rates", "c", unit=RATE)
    finished = Column("0 where x is not the best: too many iterations, or rounding")
    part = Column("part of the way to x on which all rows hold")

    @property
    def is_unrolled(self) -> bool:
        """Return whether linear algebra is straight code; else it is in loops."""
        return self.x.size <= UNROLLED

    @staticmethod
    def sizes_of(c: int, levels: Sequence[int], row: int = 0) -> dict[str, int]:
        """Return the sizes of a hierarchy of c rates, and levels of so many rows."""
        R, row = sum(levels), row or RateRow.size(c=c)
        return {"c": c, "R": R, "R+c": R + c, "tasks": len(levels), "row": row}


class RateProblem(NamedTuple):
    """A hierarchy of tasks; see `Hierarchy`."""

    task_rows: Matrix
    task_wanted: Vector
    metric: Vector
    damping: Number
    sharp: Number


class RateLimits(NamedTuple):
    """The least and the greatest rates."""

    low: Vector
    high: Vector


class Way(NamedTuple):
    """A hierarchy, the rates that the way begins with, and the bounds of rates."""

    problem: RateProblem
    begin_rates: Vector
    limits: RateLimits


def rate_stages(
    columns: RateColumns,
    levels: Sequence[int],
    rows: Table,
    *,
    null: bool,
    limit: int = ITERATIONS,
) -> tuple[Stage, ...]:
    """Return the stages that follow a hierarchy within bounds and inequalities.

    They read the columns of `Way`, and with `null` that one. They write `x`,
    `scales`, `slots` and `pressures` of active rows, `held` and `finished`. Where they
    do not finish, x is within all limits, but not the best.

    Args:
        columns: The columns.
        levels: How many rows each level of tasks has.
        rows: The table of inequalities, with the fields `row` and `row_number`; if it
            has the field `is_near`, rows count where that is above 0.
        null: Whether rates are requested for the freedom that is left.
        limit: Most corners of a way.
    """
    prepared = _prepared_ports(columns, levels)
    reads: dict[str, Any] = {} if null else {"null": None}
    state: dict[str, Any] = {**reads, "prepared": prepared}
    starts = (*prepared, *columns.group(Progress, Slots, Direction), columns.active)

    def sized(formula: Callable[..., Any], **more: int) -> Callable[..., Any]:
        return partial(formula, sizes=tuple(levels), **more)

    def for_each(stage: Stage) -> Stage:
        if any(field.name == columns.is_near.name for field in rows.fields):
            return each(rows, *when_near(columns, columns.is_near, stage))
        return each(rows, stage)

    def direction(count: int) -> Program:
        return columns.stage(sized(_direction, count=count), **state)

    if columns.is_unrolled:
        moving: tuple[Stage, ...] = (
            when(columns.few, direction(FEW)),
            when(columns.many, direction(columns.x.size)),
        )
    else:
        rows_of = columns.task_rows, columns.slot_rows
        moving = (
            columns.stage(sized(_asked), **state),
            dense(
                SolveMotion(REFINEMENTS, SINGULAR),
                _held_motion,
                (*rows_of, *columns.group(AskedMotion), columns.metric),
                columns.group(HeldMotion),
            ),
            columns.stage(sized(_directed), **state),
        )
    return (
        columns.stage(sized(_begun), writes=starts, **reads),
        repeat(
            columns.active,
            columns.stage(
                sized(_level),
                writes=(*columns.group(Progress, Hit), columns.few, columns.many),
                **state,
            ),
            *moving,
            for_each(columns.stage(_look)),
            columns.stage(
                sized(_moved),
                writes=(*columns.group(Progress, Slots), columns.active),
                **state,
            ),
            limit=limit,
        ),
        columns.stage(_ended, writes=(columns.finished, columns.part)),
        for_each(columns.stage(_within, writes=columns.part)),
        columns.stage(_kept, writes=(columns.x, columns.finished)),
    )


def _prepared_ports(columns: RateColumns, levels: Sequence[int]) -> list[Port]:
    """Return the columns of `Prepared`, which formulas get as a list."""
    filters = (columns.filter(p, m=size) for p, size in enumerate(levels))
    return [columns.trace, *filters]


def when_near(columns: RateColumns, flag: Port, *stages: Stage) -> tuple[Stage, Stage]:
    """Return stages that run for records whose `flag`, shape (1,), is above 0."""
    return (
        columns.stage(_first_of, numbers=flag, writes=columns.near),
        when(columns.near, *stages),
    )


def _first_of(numbers: Vector) -> Number:
    """Return the first of numbers."""
    return numbers[0]


def _follower(
    problem: RateProblem,
    limits: RateLimits | None,
    null: Vector | None,
    sizes: tuple[int, ...],
    prepared: Sequence[Any] | None = None,
) -> Follower:
    """Return the follower of a problem, on a way that begins at 0."""
    hierarchy = Hierarchy(
        rows=[list(row) for row in problem.task_rows],
        sizes=sizes,
        wanted=problem.task_wanted,
        weights=problem.metric,
        null=None if null is None else list(null),
        bounds=limits,
        damping=problem.damping,
        sharp=problem.sharp,
    )
    if prepared is None:
        return Follower(hierarchy)
    trace, *filters = prepared
    return Follower(hierarchy, Prepared(trace, filters))


def _follower_of(
    way: Way,
    null: Vector | None,
    sizes: tuple[int, ...],
    prepared: Sequence[Any] | None = None,
) -> Follower:
    """Return the follower of a way, as motion z = x - begin_rates."""
    (rows, wanted, *others), begin_rates, (low, high) = way
    beyond = [v - inner(row, begin_rates) for v, row in zip(wanted, rows, strict=True)]
    bounds = RateLimits(
        [minimum(a - at, 0.0) for a, at in zip(low, begin_rates, strict=True)],
        [maximum(b - at, 0.0) for b, at in zip(high, begin_rates, strict=True)],
    )
    if null is not None:
        null = [r - at for r, at in zip(null, begin_rates, strict=True)]
    return _follower(RateProblem(rows, beyond, *others), bounds, null, sizes, prepared)


# With bounds of rates alone, on a way that begins at 0


def corner_stages(
    columns: RateColumns, levels: Sequence[int], *, is_bounded: bool, null: bool
) -> tuple[Stage, ...]:
    """Return the stages that follow a hierarchy within bounds of rates, if any.

    They read the columns of `RateProblem`, `low` and `high` if rates are bounded, and
    `null` if that is wanted. They write those of `Progress`, where z are the rates; at
    its end `active` is above 0 where there were too many corners.

    Args:
        columns: The columns.
        levels: How many rows each level of tasks has.
        is_bounded: Whether rates are bounded.
        null: Whether rates are requested for the freedom that is left.
    """
    sizes = tuple(levels)
    reads: dict[str, Any] = {} if null else {"null": None}
    if not is_bounded:
        return (columns.stage(partial(_without_bounds, sizes=sizes), **reads),)
    prepared = _prepared_ports(columns, levels)
    starts = (*prepared, *columns.group(Progress), columns.active)
    return (
        columns.stage(partial(_first, sizes=sizes), writes=starts, **reads),
        repeat(
            columns.active,
            columns.stage(
                partial(_corner, sizes=sizes),
                prepared=prepared,
                writes=(*columns.group(Progress), columns.active),
                **reads,
            ),
            limit=ITERATIONS,
        ),
    )


def _without_bounds(
    problem: RateProblem, null: Vector | None = None, *, sizes: tuple[int, ...]
) -> Progress:
    """Return the end of the way where nothing stops it: each level has one corner."""
    follower = _follower(problem, None, null, sizes)
    at = Progress.start(sizes, len(problem.metric))
    for _ in range(follower.levels):
        at = follower.corner(at)
    return at


def _first(
    problem: RateProblem,
    limits: RateLimits,
    null: Vector | None = None,
    *,
    sizes: tuple[int, ...],
) -> Any:
    """Return what does not change on the way, and its start."""
    trace, filters = _follower(problem, limits, null, sizes).prepared
    return trace, *filters, *Progress.start(sizes, len(problem.metric)), 1.0


def _corner(
    problem: RateProblem,
    prepared: Sequence[Any],
    at: Progress,
    limits: RateLimits,
    null: Vector | None = None,
    *,
    sizes: tuple[int, ...],
) -> tuple[Progress, Number]:
    """Return the progress up to the next corner."""
    follower = _follower(problem, limits, null, sizes, prepared)
    at = follower.corner(at)
    return at, follower.has_more(at)


# With inequalities, on a way that begins at `begin_rates`


def _begun(way: Way, null: Vector | None = None, *, sizes: tuple[int, ...]) -> Any:
    """Return what does not change on the way, and everything at its start."""
    c = len(way.begin_rates)
    trace, filters = _follower_of(way, null, sizes).prepared
    return (
        trace,
        *filters,
        *Progress.start(sizes, c),
        *Slots.empty(c),
        *Direction.none(sum(sizes) + c, c),
        1.0,
    )


def _level(
    way: Way,
    prepared: Sequence[Any],
    at: Progress,
    slots: Slots,
    null: Vector | None = None,
    *,
    sizes: tuple[int, ...],
) -> tuple[Progress, Hit, Number, Number]:
    """Return where a level begins, and no row that x comes to yet."""
    at = _follower_of(way, null, sizes, prepared).begun(at)
    many: Number = 0.0
    for number in slots.slots[FEW:]:
        many = select(number > FREE, 1.0, many)
    nothing = Hit(FAR, FREE, [0.0] * len(way.begin_rates))
    return at, nothing, 1.0 - many, many


def _direction(
    way: Way,
    prepared: Sequence[Any],
    at: Progress,
    slots: Slots,
    null: Vector | None = None,
    *,
    sizes: tuple[int, ...],
    count: int,
) -> Direction:
    """Return how everything moves where the first `count` slots alone hold rows."""
    few = slots.first(count)
    d = _follower_of(way, null, sizes, prepared).direction(at, few)
    empty = [0.0] * (len(way.begin_rates) - len(few.slots))
    return d._replace(pulls=[*d.pulls, *empty])


def _asked(
    way: Way,
    prepared: Sequence[Any],
    at: Progress,
    slots: Slots,
    null: Vector | None = None,
    *,
    sizes: tuple[int, ...],
) -> AskedMotion:
    """Return which motion is asked for."""
    return _follower_of(way, null, sizes, prepared).asked(at, slots)


def _held_motion(task_rows: Matrix, slot_rows: Matrix, *others: Any) -> HeldMotion:
    """Return the motion, as `SolveMotion` does in loops, of arrays."""
    counts, changes, free, pull, pressing, small, metric = (
        np.asarray(part).tolist() for part in others
    )
    asked = AskedMotion(counts, changes, free, pull, pressing, small)
    tasks, slots = ([list(row) for row in rows] for rows in (task_rows, slot_rows))
    return held_motion(tasks, slots, asked, metric, refinements=REFINEMENTS)


def _directed(
    way: Way,
    prepared: Sequence[Any],
    at: Progress,
    asked: AskedMotion,
    motion: HeldMotion,
    null: Vector | None = None,
    *,
    sizes: tuple[int, ...],
) -> Direction:
    """Return how everything moves, from the motion of rates."""
    return _follower_of(way, null, sizes, prepared).directed(at, asked, motion)


def _look(
    row: RateRow,
    row_number: Number,
    begin_rates: Vector,
    z: Vector,
    rates: Vector,
    least: Number,
    slots: Vector,
    hit: Hit,
) -> Hit:
    """Return the first of the rows before and of this one that x comes to."""
    a, b = row.slopes, row.bound
    # On the way, the room a'x - b of the row shrinks by `speed` per unit of t.
    speed = 0.0 - inner(a, list(rates))
    room = _room_at_begin(begin_rates, a, b) + inner(a, list(z))
    nears = speed > least * sum(map(absolute, a), 0.0)
    time = select(nears, maximum(room, 0.0) / select(speed > 0.0, speed, 1.0), FAR)
    for slot in slots:  # Rows that are active already do not stop the motion again.
        time = select(slot == row_number, FAR, time)
    first = time < hit.hit_time
    return Hit(
        select(first, time, hit.hit_time),
        select(first, row_number, hit.hit_number),
        [select(first, u, v) for u, v in zip(a, hit.hit_row, strict=True)],
    )


def _moved(
    way: Way,
    prepared: Sequence[Any],
    at: Progress,
    slots: Slots,
    direction: Direction,
    hit: Hit,
    null: Vector | None = None,
    *,
    sizes: tuple[int, ...],
) -> tuple[Progress, Slots, Number]:
    """Return all after the next event: a bound, a row, or the end of the level."""
    follower = _follower_of(way, null, sizes, prepared)
    at, slots = follower.moved(at, direction, slots, hit)
    return at, slots, follower.has_more(at)


def _room_at_begin(begin_rates: Vector, a: list[Number], b: Number) -> Number:
    """Return how far the way begins from a row, 0 or more."""
    return maximum(inner(a, list(begin_rates)) - b, 0.0)


def _ended(active: Number) -> tuple[Number, Number]:
    return 1.0 - active, 1.0


def _within(row: RateRow, begin_rates: Vector, z: Vector, part: Number) -> Number:
    """Return the part of the way to x on which rows hold.

    Rows that depend on each other leave rounding, by which x may miss one of them.
    """
    a, b = row.slopes, row.bound
    terms = [u * v for u, v in zip(a, z, strict=True)]
    start = _room_at_begin(begin_rates, a, b)
    greatest: Number = 1.0
    for number in z:
        greatest = maximum(greatest, absolute(number))
    size = sum(map(absolute, a), 0.0) * greatest + start
    is_broken = start + sum(terms, 0.0) < 0.0 - BROKEN * size
    own = start / select(is_broken, 0.0 - sum(terms, 0.0), 1.0)
    return select(is_broken, minimum(own, part), part)


def _kept(
    begin_rates: Vector,
    z: Vector,
    low: Vector,
    high: Vector,
    part: Number,
    finished: Number,
) -> tuple[Vector, Number]:
    """Return x, on the way to it where rounding has led beyond a row."""
    x = [
        minimum(maximum(r + part * step, a), b)
        for r, step, a, b in zip(begin_rates, z, low, high, strict=True)
    ]
    is_cut = part < 1.0 - ROUNDING
    return x, select(is_cut, 0.0, finished)
