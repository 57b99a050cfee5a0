"""Two solvers for conflicts between tasks and constraints, as stages.

`bending` minimises squared errors of rates, so that motion deviates; `slowing` keeps
the direction that tasks request, and scales the rates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from armillary.control.active_set import (
    BOUND,
    FREE,
    active_set_stages,
    first_of,
    packed,
)
from armillary.control.line import line_stages
from armillary.control.task_parts import TaskStages
from armillary.control.unreached import unreached_stages
from armillary.ik.scaled_rates import ScaledRates
from armillary.kernel.pipeline import Each, Stage, When, While, program
from armillary.kernel.tables import Table
from armillary.kinematics.moving_twists import MovingTwists
from armillary.spatial.ldl import LDLFactor, inner, shifted
from armillary.spatial.vector import Number
from armillary.trace.functions import absolute, maximum, minimum, select, truncate

__all__ = ["Solver", "bending", "firm_weights", "priority_levels", "slowing"]

FREEDOM: Final = 1e-6
"""Square of the singular value of tasks below which directions are free."""

TINY: Final = 1e-300

NEXT_TO: Final = 1e-12
"""By how much rates may differ from a bound by rounding, of that and of 1."""

TOUCHING: Final = 1e-9
"""Part of a row, times the greatest rate or 1, below which rates are at it."""

FAINT: Final = 1e-3
"""Rates of postures toward a limit that never reduce stiffness [m/s or rad/s]."""

HOLDING: Final = 10.0
"""Rates of postures, per distance to a limit, above which they are reduced [1/s]."""

FIRM: Final = 1e4
"""Weight of rates that earlier levels have reached, in parts of the greatest weight."""


class Solver(NamedTuple):
    """The stages of a solver: from tasks, bounds and rows to rates `x`.

    Attributes:
        stages: They write `x`, `finished` and `tasks_scale`, and two more columns:
        holding: The name of the column of the numbers of active constraints.
        pressures: The name of the column of their multipliers.
        room: The most active constraints that there can be.
        braking: The column of the rates of braking.
        line: The task whose direction is kept, if one is.
    """

    stages: tuple[Stage, ...]
    holding: str
    pressures: str
    room: int
    braking: str = "rest"
    line: TaskStages | None = None


def bending(tasks: Sequence[TaskStages], twists: MovingTwists, rows: Table) -> Solver:
    """Return the solver of least squares: motion deviates at active constraints."""
    c = len(twists.joints)
    best: tuple[Stage, ...] = active_set_stages(c, rows)
    levels = priority_levels(tasks)
    if len(set(levels)) > 1:
        best = _one_level_after_another(tasks, c, best, max(levels) + 1)
    else:
        first = program(_first, "level_stiffness", stiffness=(1, c))
        best = first, _least_squares(tasks, c, "weights"), *best
    stages = *_unreached(tasks, twists), *best, program(_whole, "tasks_scale", x=(c,))
    return Solver(stages, "slots", "multipliers", c)


def _unreached(
    tasks: Sequence[TaskStages], twists: MovingTwists, *, keeps_direction: bool = False
) -> tuple[Stage, ...]:
    """Return the stages that write `stiffness`, and `below` and `above`.

    These are the distances of joints from their lower and upper limits [m or rad].
    """
    chosen, c = twists.joints, len(twists.joints)

    def rooms(q: Any, lower: Any, upper: Any) -> Any:
        own = [q[k] for k in chosen]
        below = [maximum(a - b, 0.0) for a, b in zip(own, lower, strict=True)]
        return below, [maximum(b - a, 0.0) for a, b in zip(own, upper, strict=True)]

    given = {"q": (twists.moving.joints,), "lower": (c,), "upper": (c,)}
    return (
        program(rooms, "below above", **given),
        *unreached_stages(
            tasks, priority_levels(tasks), c, keeps_direction=keeps_direction
        ),
    )


def _first(stiffness: Any) -> Any:
    return list(stiffness[0])


def priority_levels(tasks: Sequence[TaskStages]) -> list[int]:
    """Return the level of each row of tasks, 0 for those that come first."""
    listed = [each.task.priority for each in tasks for _ in each.weights]
    order = sorted(set(listed))
    return [order.index(priority) for priority in listed]


def firm_weights(weights: Sequence[float], levels: Sequence[int]) -> list[float]:
    """Return the weights with which rows keep what they have while others follow."""
    most = max(weights)
    greatest: dict[int, float] = {}
    for weight, level in zip(weights, levels, strict=True):
        greatest[level] = max(weight, greatest.get(level, 0.0))
    return [
        FIRM * most * weight / greatest[level]
        for weight, level in zip(weights, levels, strict=True)
    ]


def _one_level_after_another(
    tasks: Sequence[TaskStages], c: int, best: tuple[Stage, ...], levels: int
) -> tuple[Stage, ...]:
    """Return stages that find the best rates of each level within those before it.

    Great weights keep what J x the levels before have reached, in two turns: the second
    one asks for more by what the first one missed (the method of multipliers,
    Hestenes 1969), after which about the square of 1 / FIRM is missing.
    """
    listed = [each for each in tasks if each.weights]
    sizes = [len(each.weights) for each in listed]
    R = sum(sizes)
    rows = {f"rows_{each.number}": (len(each.weights), c) for each in listed}
    wanted = {f"wanted_{each.number}": (len(each.weights),) for each in listed}
    all_rows = {"goal": (R,), "priority_level": (R,)}

    def begin(*values: Any) -> Any:
        goals = [number for value in values for number in value]
        none = [0.0] * c
        return goals, 0.0, 1.0, none, [FREE] * c, none, 0.0

    def weigh(weights: Any, firm: Any, level: Any, turn: Any, stiffness: Any) -> Any:
        now = truncate(0.5 * (turn + 1.0))
        now_weights = [
            select(at < now, strong, select(at > now, 0.0, weight))
            for weight, strong, at in zip(weights, firm, level, strict=True)
        ]
        stiff: list[Number] = [0.0] * c
        for number, row in enumerate(stiffness):
            is_now = absolute(now - number) < 0.5
            stiff = [select(is_now, a, b) for a, b in zip(row, stiff, strict=True)]
        return now_weights, stiff

    def reached(goal: Any, level: Any, turn: Any, x: Any, *values: Any) -> Any:
        now = truncate(0.5 * (turn + 1.0))
        is_second = 2.0 * now == turn
        goals: list[Number] = []
        all_values = [row for value in values for row in value]
        for old, at, row in zip(goal, level, all_values, strict=True):
            got = inner(list(row), list(x))
            held = select(is_second, got, old + select(at < now, old - got, 0.0))
            goals.append(select(at > now, old, held))
        after = turn + 1.0
        return goals, after, select(after < 2 * levels - 1, 1.0, 0.0)

    weights = {"weights": (R,), "firm_weights": (R,)}
    weights |= {"priority_level": (R,), "turn": (), "stiffness": (levels, c)}
    return (
        program(begin, "goal turn has_level x slots multipliers finished", **wanted),
        While(
            "has_level",
            (
                program(weigh, "level_weights level_stiffness", **weights),
                _least_squares(tasks, c, "level_weights", "goal"),
                *best,
                program(
                    reached,
                    "goal turn has_level",
                    **all_rows,
                    turn=(),
                    x=(c,),
                    **rows,
                ),
            ),
            2 * levels - 1,
        ),
    )


def slowing(
    tasks: Sequence[TaskStages],
    twists: MovingTwists,
    rows: Table,
    *,
    has_torques: bool = False,
) -> Solver:
    """Return the solver of strict priorities: motion keeps its direction and slows.

    Tasks are in the order of their priorities, and of the list among equal ones. In the
    null space of all tasks, rates are the nearest to those that postures request.
    """
    c = len(twists.joints)
    listed = sorted(
        (each for each in tasks if each.weights), key=lambda each: each.task.priority
    )
    postures = [each for each in tasks if not each.weights]
    sizes = [len(each.weights) for each in listed]
    count = max(priority_levels(tasks)) + 1
    inputs: dict[str, tuple[int, ...]] = {"damping": (), "stiffness": (count, c)}
    for each in listed:
        k, m = each.number, len(each.weights)
        inputs |= {f"rows_{k}": (m, c), f"wanted_{k}": (m,)}
    for each in postures:
        k = each.number
        inputs |= {f"diagonal_{k}": (c,), f"pull_{k}": (c,)}

    def hierarchy(*values: Any) -> Any:
        given = dict(zip(inputs, values, strict=True))
        listed_rows = [row for each in listed for row in given[f"rows_{each.number}"]]
        wanted = [w for each in listed for w in given[f"wanted_{each.number}"]]
        null: list[Number] = []
        for i in range(c):
            pairs = [
                (given[f"diagonal_{each.number}"][i], given[f"pull_{each.number}"][i])
                for each in postures
            ]
            total = sum((weight for weight, _ in pairs), 0.0)
            pulled = sum((weight * rate for weight, rate in pairs), 0.0)
            null.append(pulled / maximum(total, 1e-300))
        # `stiffness` becomes a metric W = 1 + 8 S / d^2 of rates. The factor 8 is there
        # as the filters of levels weigh J W^-1 J' against damping to the power of 8.
        totals = [sum(column, 0.0) for column in zip(*given["stiffness"], strict=True)]
        stiff = [1.0 + 8.0 * each / given["damping"] for each in totals]
        return listed_rows, wanted, stiff, 1.0, null

    def held(
        slots: Any,
        pressures: Any,
        held: Any,
        touched: Any,
        scales: Any,
        x: Any,
        low: Any,
        high: Any,
    ) -> Any:
        least: Number = 1.0
        for scale in scales:
            least = minimum(least, scale)
        numbers: list[Number] = []
        for k, (side, rate, a, b) in enumerate(zip(held, x, low, high, strict=True)):
            # Where tasks are slowed down, the solver may have let go of a bound.
            up = select(rate >= b - NEXT_TO * (1.0 + absolute(b)), 1.0, 0.0)
            down = select(rate <= a + NEXT_TO * (1.0 + absolute(a)), -1.0, 0.0)
            at = select(least < 1.0, select(up > 0.0, up, down), 0.0)
            at = select(side == 0.0, at, side)
            lower = select(at < 0.0, BOUND + 2 * k, FREE)
            numbers.append(select(at > 0.0, BOUND + 2 * k + 1, lower))
        numbers.insert(0, select(least < 1.0, touched, FREE))
        return [*slots, *numbers], [*pressures, *([0.0] * (c + 1))], scales[0]

    rates = ScaledRates(sizes, c, rows, c + 3, null=True)
    found = dict.fromkeys(("slots", "pressures", "held"), (c,))
    found |= {
        "touched": (),
        "scales": (len(sizes),),
        **dict.fromkeys(("x", "low", "high"), (c,)),
    }
    stages = (
        *_unreached(tasks, twists, keeps_direction=True),
        # Rounding of the line is too much for limits of torques, M (x - v) / dt.
        *(() if has_torques else line_stages(listed[0], c, rows)),
        program(hierarchy, "task_rows wanted metric sharp null", **inputs),
        *rates.stages,
        *_touched(c, rows),
        program(held, "holding holding_pressures tasks_scale", **found),
    )
    braking = "rest" if has_torques else "braking"
    room = 2 * c + 1
    return Solver(stages, "holding", "holding_pressures", room, braking, listed[0])


def _touched(c: int, rows: Table) -> tuple[Stage, ...]:
    """Return stages that find the row that x is nearest to, beside those in slots.

    A row that depends on those of tasks holds x by their scale, and is in no slot.
    """

    def begin(x: Any) -> Any:
        return FREE + 0.0 * x[0], TOUCHING

    def touch(
        row: Any, number: Any, x: Any, slots: Any, touched: Any, nearest: Any
    ) -> Any:
        greatest: Number = 1.0
        for rate in x:
            greatest = maximum(greatest, absolute(rate))
        size = greatest * sum(map(absolute, row[:c]), TINY)
        part = (inner(list(row[:c]), list(x)) - row[c]) / size
        for slot in slots:
            part = select(slot == number, 1.0, part)
        is_nearer = part < nearest
        return select(is_nearer, number, touched), select(is_nearer, part, nearest)

    found = {"row": (c + 3,), "row_number": (), "x": (c,), "slots": (c,)}
    found |= {"touched": (), "nearest_part": ()}
    near = program(touch, "touched nearest_part", **found)
    return (
        program(begin, "touched nearest_part", x=(c,)),
        Each(
            rows.name, (program(first_of, "near", is_near=(1,)), When("near", (near,)))
        ),
    )


def _least_squares(
    tasks: Sequence[TaskStages], c: int, weighing: str, goal: str = ""
) -> Stage:
    """Return the stage that finds H and g of 1/2 x' H x + g' x.

    Args:
        tasks: The tasks.
        c: How many rates.
        weighing: The column of the weights of all rows.
        goal: The column of what all rows are to be; without one it is what tasks want.
    """
    inputs: dict[str, tuple[int, ...]] = {"damping": ()}
    inputs |= dict.fromkeys(("level_stiffness", "below", "above"), (c,))
    count = sum(len(each.weights) for each in tasks)
    if count:
        inputs[weighing] = (count,)
    if goal:
        inputs[goal] = (count,)
    for each in tasks:
        k, m = each.number, len(each.weights)
        inputs |= (
            {f"rows_{k}": (m, c), f"wanted_{k}": (m,)}
            if m
            else {f"diagonal_{k}": (c,), f"pull_{k}": (c,)}
        )

    def equations(*values: Any) -> Any:
        given = dict(zip(inputs, values, strict=True))
        weights = iter(given.get(weighing, ()))
        goals: Iterator[Any] = iter(given.get(goal, ()))
        H: list[list[Number]] = [[0.0] * c for _ in range(c)]
        g: list[Number] = [0.0] * c
        postures: list[Any] = []
        for each in tasks:
            k = each.number
            if not each.weights:
                pulls = zip(given[f"diagonal_{k}"], given[f"pull_{k}"], strict=True)
                postures += list(pulls)
                continue
            pairs = zip(given[f"rows_{k}"], given[f"wanted_{k}"], strict=True)
            for row, asked in pairs:
                weight, wanted = next(weights), next(goals, asked)
                for i in range(c):
                    scaled = weight * row[i]
                    g[i] = g[i] - scaled * wanted
                    for j in range(i + 1):
                        H[i][j] = H[i][j] + scaled * row[j]
        free = LDLFactor.of(shifted(H, FREEDOM), FREEDOM) if postures else None
        found = _Postures.of(free, postures, c)
        found.add(H, g, given["damping"])
        rooms = given["below"], given["above"]
        found.stiffen(H, g, given["level_stiffness"], rooms)
        return packed(H), g

    return program(equations, "hessian gradient", **inputs)


class _Postures(NamedTuple):
    """What postures request in the directions that other tasks leave free.

    With G = sum J' W J of the other tasks and a small e, e (G + e)^-1 r is nearly r in
    directions that they leave free, and nearly 0 in others.

    Attributes:
        weights: Of each joint, summed over postures.
        rates: e (G + e)^-1 r, where r is the weighted mean of the rates of postures.
    """

    weights: list[Number]
    rates: list[Number]

    @classmethod
    def of(cls, free: LDLFactor | None, pulls: list[Any], c: int) -> _Postures:
        """Project the rates of postures.

        Args:
            free: The factor of G + e; None without postures.
            pulls: Of each posture its c pairs of a weight and a rate.
            c: How many rates.
        """
        total: list[Number] = [0.0] * c
        pulled: list[Number] = [0.0] * c
        for first in range(0, len(pulls), c):
            posture = pulls[first : first + c]
            assert free is not None
            left = free.solve([FREEDOM * rate for _, rate in posture])
            for i, ((weight, _), rate) in enumerate(zip(posture, left, strict=True)):
                total[i] = total[i] + weight
                pulled[i] = pulled[i] + weight * rate
        rates = [a / maximum(b, TINY) for a, b in zip(pulled, total, strict=True)]
        return cls(total, rates)

    def add(self, H: list[list[Number]], g: list[Number], damping: Number) -> None:
        """Add |x - rates|^2 to H and g, with the weights of postures and damping.

        Damping pulls toward the rates of postures too, not to 0, and so does not
        counteract them. Joints without a posture have the rate 0.
        """
        for i, (weight, rate) in enumerate(zip(*self, strict=True)):
            H[i][i] = H[i][i] + weight + damping
            g[i] = g[i] - (weight + damping) * rate

    def stiffen(
        self, H: list[list[Number]], g: list[Number], stiffness: Any, rooms: Any
    ) -> None:
        """Add |x - part rates|^2 to H and g, with stiffness as the weights.

        Stiffness exceeds damping by far. So the rates of postures are reduced in one
        common part where one of them leads to a limit that is near: where that limit
        stops one joint, stiffness must not make others move instead.

        rooms: Distances of joints from their lower and upper limits [m or rad].
        """
        # The greatest part of 0 to 1 with |part rate| <= FAINT + HOLDING room.
        part: Number = 1.0
        for rate, below, above in zip(self.rates, *rooms, strict=True):
            room = FAINT + HOLDING * select(rate > 0.0, above, below)
            part = minimum(part, room / maximum(absolute(rate), TINY))
        for i, (rate, stiff) in enumerate(zip(self.rates, stiffness, strict=True)):
            H[i][i] = H[i][i] + stiff
            g[i] = g[i] - part * stiff * rate


def _whole(x: Any) -> Number:
    """Return the scale of tasks that are not scaled."""
    return 1.0
