"""Stages of rates that meet tasks in order, scaled by bounds and inequalities.

It is the hierarchy of `task_priority.py`, followed corner by corner in a native loop,
where the optimal rates x may also be bounded by rows a_k'x >= b_k of a table. Each
iteration finds how everything moves, looks through the rows for the first that x comes
to, and moves there. So the code does not grow with the rows, and rows that do not count
in a step cost nothing.

The way begins with rates `rest`, where bounds and rows are met; a row that is missed
there may not get worse. `cell.differential_ik` begins at 0 and has bounds alone,
controllers with `conflict="slow"` begin with braking.

Stages: `_begun` finds filters and the start; in a loop while `active`, `_level` begins
a level where one has ended, `_direction` finds how all changes on the way, `_look`
finds the first row that x comes to, and `_moved` goes to the next event; `_kept` writes
x. What they read and write is in their signatures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from armillary.ik.active_rows import FAR, FREE, Hit, Slots
from armillary.ik.task_priority import Direction, Follower, Hierarchy, Progress
from armillary.kernel.columns import Column, Columns, Numbered, each, repeat, when
from armillary.kernel.pipeline import Stage
from armillary.kernel.tables import Table
from armillary.spatial.ldl import Rows, inner
from armillary.spatial.vector import Matrix, Number, Vector
from armillary.trace import Port, Program
from armillary.trace.functions import absolute, maximum, minimum, select

__all__ = ["RateColumns", "first_of", "rate_stages", "when_near"]

ITERATIONS: Final = 100
"""Most corners of a way; most ways have fewer than 20."""

BROKEN: Final = 1e-9
"""Of a row, times the greatest rate or 1: how much it may be missed by."""

ROUNDING: Final = 1e-6
"""Part of the way from rest to x that may be given up for such rows."""

FEW: Final = 3
"""Active rows for which there is code of its own; there are seldom more."""

RATE = "rad/s or m/s"


class RateColumns(Columns):
    """What the stages of rates read and write.

    Sizes: c rates; R rows of tasks in `tasks` levels, m of one level; a record of a row
    has `row` numbers.
    """

    # The problem, see `Hierarchy`
    task_rows = Column("J of all levels, the highest first", "R", "c")
    task_wanted = Column("v: requested values of J x", "R")
    metric = Column("diagonal of W", "c")
    rest = Column("rates that the way begins with", "c", unit=RATE)
    low = Column("least rates", "c", unit=RATE)
    high = Column("greatest rates", "c", unit=RATE)
    damping = Column("d: square of singular values below which directions are damped")
    sharp = Column("above 0 where damping vanishes away from singularities")
    null = Column("rates r for the freedom that tasks leave", "c", unit=RATE)

    # Inequalities, records of a table
    row = Column("a, b of a'x >= b, and what b is made of", "row")
    is_near = Column("above 0 where the row counts", 1)
    row_number = Column("its number")
    near = Column("above 0 where a row counts")

    # How far the hierarchy has been followed, see `Progress` and `Slots`
    filter = Numbered("1 - M^8 of a level", "m", "m")
    z = Column("rates beyond `rest`", "c", unit=RATE)
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
    few = Column("above 0 where no more than `FEW` rows are active")
    many = Column("above 0 where more are")
    hit_time = Column("step after which x comes to a row")
    hit_number = Column("the number of that row")
    hit_row = Column("its a", "c")

    # The answer
    x = Column("rates", "c", unit=RATE)
    finished = Column("0 where x is not the best: too many iterations, or rounding")
    part = Column("part of the way from rest to x on which all rows hold")

    @staticmethod
    def sizes_of(c: int, levels: Sequence[int], row: int = 0) -> dict[str, int]:
        """Return the sizes of a hierarchy of c rates, and levels of so many rows."""
        R = sum(levels)
        return {"c": c, "R": R, "R+c": R + c, "tasks": len(levels), "row": row or c + 1}


class RateProblem(NamedTuple):
    """A hierarchy and bounds of rates."""

    task_rows: Matrix
    task_wanted: Vector
    metric: Vector
    rest: Vector
    low: Vector
    high: Vector
    damping: Number
    sharp: Number


class Started(NamedTuple):
    """The start of a level, if one has ended, and no row that x comes to yet."""

    at: Progress
    hit: Hit
    few: Number
    many: Number


class Followed(NamedTuple):
    """The progress after an event, and whether more is to come."""

    at: Progress
    slots: Slots
    active: Number


def rate_stages(
    columns: RateColumns,
    levels: Sequence[int],
    rows: Table,
    *,
    null: bool,
    limit: int = ITERATIONS,
) -> tuple[Stage, ...]:
    """Return the stages that follow a hierarchy within bounds and inequalities.

    They read the columns of `RateProblem`, and with `null` that one. They write `x`,
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
    filters = _filter_ports(columns, levels)
    reads: dict[str, Any] = {} if null else {"null": None}
    state: dict[str, Any] = {**reads, "filters": filters}
    starts = (*filters, *columns.group(Progress, Slots, Direction), columns.active)

    def sized(formula: Callable[..., Any], **more: int) -> Callable[..., Any]:
        return partial(formula, sizes=tuple(levels), **more)

    def for_each(stage: Stage) -> Stage:
        if any(field.name == columns.is_near.name for field in rows.fields):
            return each(rows, *when_near(columns, columns.is_near, stage))
        return each(rows, stage)

    def direction(count: int) -> Program:
        return columns.stage(sized(_direction, count=count), **state)

    return (
        columns.stage(sized(_begun), writes=starts, **reads),
        repeat(
            columns.active,
            columns.stage(sized(_level), **state),
            when(columns.few, direction(FEW)),
            when(columns.many, direction(columns.x.size)),
            for_each(columns.stage(_look)),
            columns.stage(sized(_moved), **state),
            limit=limit,
        ),
        columns.stage(_ended),
        for_each(columns.stage(_within, writes=columns.part)),
        columns.stage(_kept),
    )


def _filter_ports(columns: RateColumns, levels: Sequence[int]) -> list[Port]:
    return [columns.filter(p, m=size) for p, size in enumerate(levels)]


def when_near(columns: RateColumns, flag: Port, *stages: Stage) -> tuple[Stage, Stage]:
    """Return stages that run for records whose `flag`, shape (1,), is above 0."""
    return (
        columns.stage(first_of, numbers=flag, writes=columns.near),
        when(columns.near, *stages),
    )


def first_of(numbers: Vector) -> Number:
    """Return the first of numbers."""
    return numbers[0]


def _follower(
    problem: RateProblem,
    null: Vector | None,
    sizes: tuple[int, ...],
    filters: Sequence[Rows] | None = None,
) -> Follower:
    """Return the follower of a problem, as motion z = x - rest."""
    rest = list(problem.rest)
    hierarchy = Hierarchy(
        rows=[list(row) for row in problem.task_rows],
        sizes=sizes,
        wanted=[
            v - inner(row, rest)
            for v, row in zip(problem.task_wanted, problem.task_rows, strict=True)
        ],
        weights=problem.metric,
        null=None
        if null is None
        else [r - at for r, at in zip(null, rest, strict=True)],
        bounds=(
            [minimum(a - at, 0.0) for a, at in zip(problem.low, rest, strict=True)],
            [maximum(b - at, 0.0) for b, at in zip(problem.high, rest, strict=True)],
        ),
        damping=problem.damping,
        sharp=problem.sharp,
    )
    return Follower(hierarchy, filters)


def _begun(
    problem: RateProblem, null: Vector | None = None, *, sizes: tuple[int, ...]
) -> Any:
    """Return the filters of all levels, and everything at the start of the way."""
    c = len(problem.rest)
    return (
        *_follower(problem, null, sizes).filters,
        *Progress.start(sizes, c),
        *Slots.empty(c),
        *Direction.none(sum(sizes) + c, c),
        1.0,
    )


def _level(
    problem: RateProblem,
    filters: Sequence[Rows],
    at: Progress,
    slots: Slots,
    null: Vector | None = None,
    *,
    sizes: tuple[int, ...],
) -> Started:
    """Return where a level begins, and no row that x comes to yet."""
    at = _follower(problem, null, sizes, filters).begun(at)
    many: Number = 0.0
    for number in slots.slots[FEW:]:
        many = select(number > FREE, 1.0, many)
    nothing = Hit(FAR, FREE, [0.0] * len(problem.rest))
    return Started(at, nothing, 1.0 - many, many)


def _direction(
    problem: RateProblem,
    filters: Sequence[Rows],
    at: Progress,
    slots: Slots,
    null: Vector | None = None,
    *,
    sizes: tuple[int, ...],
    count: int,
) -> Direction:
    """Return how everything moves where the first `count` slots alone hold rows."""
    few = slots.first(count)
    d = _follower(problem, null, sizes, filters).direction(at, few)
    empty = [0.0] * (len(problem.rest) - len(few.slots))
    return d._replace(pulls=[*d.pulls, *empty])


def _look(
    row: Vector,
    row_number: Number,
    rest: Vector,
    z: Vector,
    rates: Vector,
    least: Number,
    slots: Vector,
    hit: Hit,
) -> Hit:
    """Return the first of the rows before and of this one that x comes to."""
    c = len(rest)
    a, b = list(row[:c]), row[c]
    # On the way, the room a'x - b of the row shrinks by `speed` per unit of t.
    speed = 0.0 - inner(a, list(rates))
    room = _room_at_rest(rest, a, b) + inner(a, list(z))
    nears = speed > least * sum(map(absolute, a), 0.0)
    time = select(nears, maximum(room, 0.0) / select(speed > 0.0, speed, 1.0), FAR)
    for slot in slots:  # Active rows are held already.
        time = select(slot == row_number, FAR, time)
    first = time < hit.hit_time
    return Hit(
        select(first, time, hit.hit_time),
        select(first, row_number, hit.hit_number),
        [select(first, u, v) for u, v in zip(a, hit.hit_row, strict=True)],
    )


def _moved(
    problem: RateProblem,
    filters: Sequence[Rows],
    at: Progress,
    slots: Slots,
    direction: Direction,
    hit: Hit,
    null: Vector | None = None,
    *,
    sizes: tuple[int, ...],
) -> Followed:
    """Return all after the next event: a bound, a row, or the end of the level."""
    follower = _follower(problem, null, sizes, filters)
    at, slots = follower.moved(at, direction, slots, hit)
    return Followed(at, slots, follower.has_more(at))


def _room_at_rest(rest: Vector, a: list[Number], b: Number) -> Number:
    """Return how far rest is from a row, 0 or more."""
    return maximum(inner(a, list(rest)) - b, 0.0)


class Ended(NamedTuple):
    """Whether the way has come to its end, and that all of it counts so far."""

    finished: Number
    part: Number


def _ended(active: Number) -> Ended:
    return Ended(1.0 - active, 1.0)


def _within(row: Vector, rest: Vector, z: Vector, part: Number) -> Number:
    """Return the part of the way from rest to x on which rows hold.

    Rows that depend on each other leave rounding, by which x may miss one of them.
    """
    c = len(rest)
    a, b = list(row[:c]), row[c]
    terms = [u * v for u, v in zip(a, z, strict=True)]
    start = _room_at_rest(rest, a, b)
    greatest: Number = 1.0
    for number in z:
        greatest = maximum(greatest, absolute(number))
    size = sum(map(absolute, a), 0.0) * greatest + start
    is_broken = start + sum(terms, 0.0) < 0.0 - BROKEN * size
    own = start / select(is_broken, 0.0 - sum(terms, 0.0), 1.0)
    return select(is_broken, minimum(own, part), part)


class Kept(NamedTuple):
    """The rates, and whether they are the best."""

    x: Vector
    finished: Number


def _kept(
    rest: Vector, z: Vector, low: Vector, high: Vector, part: Number, finished: Number
) -> Kept:
    """Return x, on the way from rest where rounding has led beyond a row."""
    x = [
        minimum(maximum(r + part * step, a), b)
        for r, step, a, b in zip(rest, z, low, high, strict=True)
    ]
    is_cut = part < 1.0 - ROUNDING
    return Kept(x, select(is_cut, 0.0, finished))
