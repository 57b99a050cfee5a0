"""Two solvers for conflicts between tasks and constraints, as stages.

`bending` minimises squared errors of rates, so that motion deviates; `slowing` keeps
the direction that tasks request, and scales the rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Final, NamedTuple

from armillary.control.active_set import BOUND
from armillary.control.columns import TINY, StepColumns
from armillary.control.least_squares import (
    LeastSquares,
    add_diagonal,
    add_squares,
    added_squares,
    cleared,
    shrink,
    shrunk,
    with_diagonal,
    zero_hessian,
)
from armillary.control.line import line_stages
from armillary.control.task_stages import TaskStages, priority_levels
from armillary.control.unreached import unreached_stages
from armillary.ik.active_rows import FREE
from armillary.ik.scaled_rates import RateRow, rate_stages, when_near
from armillary.kernel.columns import each, repeat
from armillary.kernel.stages import Stage
from armillary.kernel.tables import Table
from armillary.kinematics.moving_twists import MovingTwists
from armillary.spatial.ldl import inner
from armillary.spatial.vector import Matrix, Number, Vector
from armillary.trace import Port
from armillary.trace.functions import absolute, maximum, minimum, select, truncate

__all__ = ["Solver", "bending", "slowing"]

NEXT_TO: Final = 1e-12
"""Part of 1 + |bound| by which a rate at it may differ by rounding."""

TOUCHING: Final = 1e-9
"""Part of a row, times the greatest rate or 1, below which rates are at it."""

FAINT: Final = 1e-3
"""Rates of postures toward a limit up to which none is reduced [m/s or rad/s]."""

HOLDING: Final = 10.0
"""Rates of postures, per distance to a limit, above which they are reduced [1/s]."""


class Solver(NamedTuple):
    """The stages of a solver: from tasks, bounds and rows to rates `x`.

    Attributes:
        stages: They write `x`, `finished` and `tasks_scale`, and the columns below.
        holding: The numbers of active constraints.
        pressures: Their multipliers.
        begin: The rates that the way to `x` begins with.
        line: The task whose direction is kept, if one is.
    """

    stages: tuple[Stage, ...]
    holding: Port
    pressures: Port
    begin: Port
    line: TaskStages | None = None


class LimitRooms(NamedTuple):
    """Distances of joints from their lower and upper limits [m or rad]."""

    below: Vector
    above: Vector


# Motion deviates: one quadratic program for each level of priority


def bending(
    columns: StepColumns,
    tasks: Sequence[TaskStages],
    twists: MovingTwists,
    solve: Sequence[Stage],
) -> Solver:
    """Return the solver of least squares: motion deviates at active constraints.

    solve: The stages of the active-set method.
    """
    # One level is one program; more need a loop, since each holds what others got.
    levels = priority_levels(tasks)
    if len(set(levels)) > 1:
        best = _level_after_level(columns, tasks, solve, max(levels) + 1)
    else:
        requests = [each.columns.wanted() for each in tasks if each.weights]
        goal = columns.stage(_listed, wanted=requests, writes=columns.goal)
        best = (
            columns.stage(_first_level, writes=columns.level_stiffness),
            *([goal] if requests else []),
            *_least_squares(columns, tasks, columns.weights),
            *solve,
        )
    # Least squares do not scale tasks: `tasks_scale` is 1.
    stages = (
        *_unreached(columns, tasks, twists),
        *best,
        columns.stage(_whole, writes=columns.tasks_scale),
    )
    return Solver(stages, columns.slots, columns.multipliers, columns.full_braking)


def _unreached(
    columns: StepColumns,
    tasks: Sequence[TaskStages],
    twists: MovingTwists,
    *,
    keeps_direction: bool = False,
) -> tuple[Stage, ...]:
    """Return the stages that write `stiffness`, and the columns of `LimitRooms`."""
    return (
        columns.stage(partial(_rooms, joints=twists.joints)),
        *unreached_stages(
            columns, tasks, priority_levels(tasks), keeps_direction=keeps_direction
        ),
    )


def _rooms(
    q: Vector, lower: Vector, upper: Vector, *, joints: tuple[int, ...]
) -> LimitRooms:
    # Joints beyond a limit have no room: 0, not less.
    own = [q[k] for k in joints]
    below = [maximum(a - b, 0.0) for a, b in zip(own, lower, strict=True)]
    above = [maximum(b - a, 0.0) for a, b in zip(own, upper, strict=True)]
    return LimitRooms(below, above)


def _listed(wanted: Sequence[Vector]) -> Vector:
    return list(chain.from_iterable(wanted))


def _first_level(stiffness: Matrix) -> Vector:
    return list(stiffness[0])


def _whole(x: Vector) -> Number:
    """Return the scale of tasks that are not scaled."""
    del x
    return 1.0


class LevelStart(NamedTuple):
    """The first iteration: what J x is to be, and nothing solved yet."""

    goal: Vector
    iteration: Number
    has_level: Number
    x: Vector
    slots: Vector
    multipliers: Vector
    finished: Number


def _level_after_level(
    columns: StepColumns,
    tasks: Sequence[TaskStages],
    solve: Sequence[Stage],
    levels: int,
) -> tuple[Stage, ...]:
    """Return stages that find the best rates of each level within those before it.

    Great weights keep what J x the levels before have reached, in two iterations: the
    second one asks for more by what the first one missed (the method of multipliers,
    Hestenes 1969), after which about the square of 1 / `FIRM` is missing. The
    first level takes one iteration, since there is nothing before it.
    """
    listed = [each.columns for each in tasks if each.weights]
    J, v = [each.rows() for each in listed], [each.wanted() for each in listed]
    return (
        columns.stage(partial(_start_levels, c=columns.x.size), wanted=v),
        repeat(
            columns.has_level,
            columns.stage(
                _weigh, writes=(columns.level_weights, columns.level_stiffness)
            ),
            *_least_squares(columns, tasks, columns.level_weights),
            *solve,
            columns.stage(
                partial(_reached, levels=levels),
                rows=J,
                writes=(columns.goal, columns.iteration, columns.has_level),
            ),
            limit=2 * levels - 1,
        ),
    )


def _start_levels(wanted: Sequence[Vector], *, c: int) -> LevelStart:
    none = [0.0] * c
    return LevelStart(_listed(wanted), 0.0, 1.0, none, [FREE] * c, none, 0.0)


def _weigh(
    weights: Vector,
    firm_weights: Vector,
    priority_level: Vector,
    iteration: Number,
    stiffness: Matrix,
) -> tuple[Vector, Vector]:
    """Return the weights of an iteration: firm before its level, 0 behind it."""
    # Iterations 0, 1, 2, 3, 4 are those of levels 0, 1, 1, 2, 2.
    now = truncate(0.5 * (iteration + 1.0))
    level_weights = [
        select(at < now, strong, select(at > now, 0.0, weight))
        for weight, strong, at in zip(
            weights, firm_weights, priority_level, strict=True
        )
    ]
    # `stiffness` has a row for each level; a loop in machine code needs a choice of
    # all of them.
    stiff: list[Number] = [0.0 for _ in stiffness[0]]
    for number, row in enumerate(stiffness):
        is_now = absolute(now - number) < 0.5
        stiff = [select(is_now, a, b) for a, b in zip(row, stiff, strict=True)]
    return level_weights, stiff


def _reached(
    goal: Vector,
    priority_level: Vector,
    iteration: Number,
    x: Vector,
    rows: Sequence[Matrix],
    *,
    levels: int,
) -> tuple[Vector, Number, Number]:
    """Return the goals after an iteration.

    After the second iteration of a level, rows up to it are to keep what they have;
    after the first, those before it ask for more by what they missed.
    """
    now = truncate(0.5 * (iteration + 1.0))
    # Multipliers: the goal of rows above moves by what they missed, so that their
    # error vanishes though their weights are finite.
    is_second = 2.0 * now == iteration
    goals: list[Number] = []
    for old, at, row in zip(goal, priority_level, chain(*rows), strict=True):
        got = inner(list(row), list(x))
        # Rows of levels to come keep their goal, what their tasks request.
        held = select(is_second, got, old + select(at < now, old - got, 0.0))
        goals.append(select(at > now, old, held))
    after = iteration + 1.0
    return goals, after, select(after < 2 * levels - 1, 1.0, 0.0)


def _least_squares(
    columns: StepColumns, tasks: Sequence[TaskStages], weights: Port
) -> tuple[Stage, ...]:
    """Return the stages that find H = J'W J + P + d^2 + S and g of 1/2 x'H x + g'x.

    What J x is to be is in the column `goal`.

    Args:
        columns: The columns.
        tasks: The tasks.
        weights: The weights of all rows.
    """
    listed = [each.columns for each in tasks if each.weights]
    postures = [each.columns for each in tasks if not each.weights]
    rows = [each.rows() for each in listed]
    if columns.is_unrolled:  # one program: H need not wait in memory
        return (
            columns.stage(
                _all_squares,
                weights=weights if listed else None,
                goal=columns.goal if listed else None,
                rows=rows,
                diagonals=[each.diagonal() for each in postures],
                pulls=[each.pull() for each in postures],
            ),
        )
    squares = add_squares(columns, weights, columns.goal, rows)
    return (
        columns.stage(_no_gradient, writes=columns.gradient),
        cleared(columns),
        # Tasks: sum_k w_k (v_k - J_k x)^2 / 2.
        *([squares] if listed else []),
        # Postures where tasks leave freedom, then damping and stiffness about them.
        *(shrink(columns, each.pull(), each.spare()) for each in postures),
        columns.stage(
            _about_postures,
            diagonals=[each.diagonal() for each in postures],
            spares=[each.spare() for each in postures],
            writes=(columns.ridge, columns.gradient),
        ),
        add_diagonal(columns),
    )


def _all_squares(
    damping: Number,
    level_stiffness: Vector,
    rooms: LimitRooms,
    rows: Sequence[Matrix],
    diagonals: Sequence[Vector],
    pulls: Sequence[Vector],
    weights: Vector = (),
    goal: Vector = (),
) -> LeastSquares:
    """Return H and g, as the stages of `_least_squares` do one after another."""
    none = [0.0] * len(level_stiffness)
    H, g = added_squares(zero_hessian(none), none, weights, goal, rows)
    spares = [shrunk(H, pull) for pull in pulls]
    ridge, g = _about_postures(damping, level_stiffness, rooms, g, diagonals, spares)
    return LeastSquares(with_diagonal(H, ridge), g)


def _no_gradient(low: Vector) -> Vector:
    return [0.0 for _ in low]


def _about_postures(
    damping: Number,
    level_stiffness: Vector,
    rooms: LimitRooms,
    gradient: Vector,
    diagonals: Sequence[Vector],
    spares: Sequence[Vector],
) -> tuple[Vector, Vector]:
    """Return what rows (2) to (4) of `step_pipeline.py` add to the diagonal, and g.

    Args:
        damping: d^2.
        level_stiffness: S.
        rooms: How far joints are from their limits.
        gradient: g of tasks.
        diagonals: The weights of each posture.
        spares: Its rates in the directions that tasks leave free.
    """
    c = len(level_stiffness)
    total: list[Number] = [0.0] * c
    pulled: list[Number] = [0.0] * c
    for diagonal, spare in zip(diagonals, spares, strict=True):
        for i, (weight, rate) in enumerate(zip(diagonal, spare, strict=True)):
            total[i] = total[i] + weight
            pulled[i] = pulled[i] + weight * rate
    rates = [a / maximum(b, TINY) for a, b in zip(pulled, total, strict=True)]
    # Damping pulls toward the rates of postures too, not to 0, and so does not
    # counteract them. Joints without a posture have the rate 0.
    part = _kept_part(rates, rooms)
    ridge: list[Number] = []
    g: list[Number] = []
    for rate, weight, stiff, old in zip(
        rates, total, level_stiffness, gradient, strict=True
    ):
        ridge.append(weight + damping + stiff)
        g.append(old - (weight + damping) * rate - part * stiff * rate)
    return ridge, g


def _kept_part(rates: Sequence[Number], rooms: LimitRooms) -> Number:
    """Return the part of the rates of postures that stiffness pulls to.

    Stiffness exceeds damping by far. So the rates of postures are reduced in one common
    part where one of them leads to a limit that is near: where that limit stops one
    joint, stiffness must not make others move instead.
    """
    # The greatest part of 0 to 1 with |part rate| <= FAINT + HOLDING room.
    part: Number = 1.0
    for rate, below, above in zip(rates, *rooms, strict=True):
        room = FAINT + HOLDING * select(rate > 0.0, above, below)
        part = minimum(part, room / maximum(absolute(rate), TINY))
    return part


# Motion keeps its direction: a hierarchy is followed from braking


def slowing(
    columns: StepColumns,
    tasks: Sequence[TaskStages],
    twists: MovingTwists,
    rows: Table,
    solve: Sequence[Stage],
    *,
    has_torques: bool = False,
) -> Solver:
    """Return the solver of strict priorities: motion keeps its direction and slows.

    The way to the best rates begins with rates in the direction of the first task; with
    limits of torques it begins with braking.

    Tasks are in the order of their priorities, and of the list among equal ones. In the
    null space of all tasks, rates are the nearest to those that postures request.
    """
    # Stable: tasks of equal priority keep their order in the list.
    listed = sorted(
        (each for each in tasks if each.weights), key=lambda each: each.task.priority
    )
    first, postures = listed[0], [each for each in tasks if not each.weights]
    hierarchy = columns.stage(
        _hierarchy,
        rows=[each.columns.rows() for each in listed],
        wanted=[each.columns.wanted() for each in listed],
        diagonals=[each.columns.diagonal() for each in postures],
        pulls=[each.columns.pull() for each in postures],
        writes=(
            columns.task_rows,
            columns.task_wanted,
            columns.metric,
            columns.sharp,
            columns.null,
        ),
    )
    stages = (
        *_unreached(columns, tasks, twists, keeps_direction=True),
        # Rounding of the line is too much for limits of torques, M (x - v) / dt.
        *(
            [columns.stage(_begin_at_braking, writes=columns.begin_rates)]
            if has_torques
            else line_stages(first.columns, solve)
        ),
        hierarchy,
        *rate_stages(columns, [len(each.weights) for each in listed], rows, null=True),
        columns.stage(_none_touched),
        each(rows, *when_near(columns, columns.is_near, columns.stage(_touch))),
        columns.stage(
            _held,
            writes=(columns.holding, columns.holding_pressures, columns.tasks_scale),
        ),
    )
    # Where motion must end in time, braking counts more than limits of torques do.
    begin = columns.full_braking if has_torques else columns.begin_rates
    return Solver(stages, columns.holding, columns.holding_pressures, begin, first)


def _begin_at_braking(braking: Vector) -> Vector:
    return list(braking)


def _hierarchy(
    damping: Number,
    stiffness: Matrix,
    rows: Sequence[Matrix],
    wanted: Sequence[Vector],
    diagonals: Sequence[Vector],
    pulls: Sequence[Vector],
) -> tuple[Matrix, Vector, Vector, Number, Vector]:
    """Return all tasks as one hierarchy, with the mean of postures for what is free."""
    null: list[Number] = []
    # There is no projection here: the hierarchy takes `null` after all tasks.
    for i in range(len(stiffness[0])):
        pairs = [(weight[i], p[i]) for weight, p in zip(diagonals, pulls, strict=True)]
        total = sum((weight for weight, _ in pairs), 0.0)
        pulled = sum((weight * rate for weight, rate in pairs), 0.0)
        null.append(pulled / maximum(total, TINY))
    # `stiffness` becomes a metric W = 1 + 8 S / d^2 of rates. The factor 8 is there
    # as the filters of levels weigh J W^-1 J' against damping to the power of 8.
    totals = [sum(column, 0.0) for column in zip(*stiffness, strict=True)]
    metric = [1.0 + 8.0 * total / damping for total in totals]
    return (
        [row for J in rows for row in J],
        [number for v in wanted for number in v],
        metric,
        1.0,
        null,
    )


class Touched(NamedTuple):
    """The row that x is nearest to, and how near, in parts of its size."""

    touched: Number
    nearest_part: Number


def _none_touched(x: Vector) -> Touched:
    return Touched(FREE + 0.0 * x[0], TOUCHING)


def _touch(
    row: RateRow, row_number: Number, x: Vector, slots: Vector, nearest: Touched
) -> Touched:
    """Return the row that x is nearest to so far, beside those in slots.

    A row that depends on those of tasks holds x by their scale, and is in no slot.
    """
    touched, nearest_part = nearest
    greatest: Number = 1.0
    # The distance of x from the row, in parts of what rounding is measured by.
    for rate in x:
        greatest = maximum(greatest, absolute(rate))
    size = greatest * sum(map(absolute, row.slopes), TINY)
    part = (inner(row.slopes, list(x)) - row.bound) / size
    # Rows in slots are reported with their multipliers already.
    for slot in slots:
        part = select(slot == row_number, 1.0, part)
    is_nearer = part < nearest_part
    return Touched(
        select(is_nearer, row_number, touched), select(is_nearer, part, nearest_part)
    )


def _held(
    slots: Vector,
    pressures: Vector,
    held: Vector,
    touched: Number,
    scales: Vector,
    x: Vector,
    low: Vector,
    high: Vector,
) -> tuple[Vector, Vector, Number]:
    """Return the numbers of rows, of the row that x touches, and of bounds of rates."""
    # Below 1 where a task is slowed down: only then does a row that is touched count.
    least: Number = 1.0
    for scale in scales:
        least = minimum(least, scale)
    numbers: list[Number] = [select(least < 1.0, touched, FREE)]
    for k, (side, rate, a, b) in enumerate(zip(held, x, low, high, strict=True)):
        # Where tasks are slowed down, the solver may have let go of a bound.
        up = select(rate >= b - NEXT_TO * (1.0 + absolute(b)), 1.0, 0.0)
        down = select(rate <= a + NEXT_TO * (1.0 + absolute(a)), -1.0, 0.0)
        at = select(least < 1.0, select(up > 0.0, up, down), 0.0)
        at = select(side == 0.0, at, side)
        lower = select(at < 0.0, BOUND + 2 * k, FREE)
        numbers.append(select(at > 0.0, BOUND + 2 * k + 1, lower))
    return [*slots, *numbers], [*pressures, *([0.0] * len(numbers))], scales[0]
