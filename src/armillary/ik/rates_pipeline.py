"""The pipeline of differential inverse kinematics: from q and twists to joint rates.

The stages `_posed` states the problem, `scaled_rates.py` solves it in a loop over the
corners of its way, and `_answered` says what is achieved, what is missing, and why.
Where loops are closed, passive joints are solved for first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np

from armillary.ik.objective import Purpose, gradient, manipulability
from armillary.ik.reason import RateReason
from armillary.ik.scaled_rates import (
    RateColumns,
    RateProblem,
    corner_stages,
    rate_stages,
)
from armillary.ik.task_priority import Progress
from armillary.kernel.columns import Column
from armillary.kernel.pipeline import Pipeline
from armillary.kinematics.closing.kernel import passive_stages, passive_tables
from armillary.kinematics.closing.rates import followed_rates
from armillary.kinematics.inputs import PASSIVE, Inputs, program_of
from armillary.kinematics.jacobian import Twist, jacobian
from armillary.model.tree import Tree
from armillary.spatial.ldl import Rows, inner
from armillary.spatial.vector import Matrix, Number, Vector
from armillary.trace import Port, Program, Scalar
from armillary.trace.functions import absolute, maximum, minimum, select, sqrt

__all__ = ["RatesSetup", "RatesTask", "passive_share_program", "rates_pipeline"]

INSIDE = 1.0 - 1e-15
"""Factor of distances to limits, so that rounding does not lead beyond them."""

INSTANT = 1e-12
"""What counts as the duration of an instant [s]."""


class DifferentialColumns(RateColumns):
    """What the stages read and write beside `RateColumns`; k is how many tasks."""

    q = Column("joint positions", "c", unit="rad or m")
    twists = Column("twist that each task wants", "k", 6, unit="m/s, rad/s")
    weights = Column("how much each joint is spared", "c")
    numbers = Column("d, duration, gain, sharpness, two tolerances", 6)
    greatest = Column("greatest rates", "c", unit="rad/s or m/s")
    given_null = Column("rates to come near to", "c", unit="rad/s or m/s")
    jacobians = Column("all six rows of each task", "k", 6, "c")
    coupled_rows = Column("rows of limits that couple joints", "coupled", "row")
    row = Column("one of them, see `RateRow`", "row", into="coupled_rows")
    answer = Column("rates, scales, then residuals, reasons and twists", "answer")


class RatesTask(NamedTuple):
    """A twist that is wanted, or some rows of it.

    Attributes:
        twist: Which twist.
        rows: Which of its six numbers count.
    """

    twist: Twist
    rows: tuple[bool, ...]

    @property
    def counting(self) -> list[int]:
        """Return the places of the numbers that count."""
        return [k for k, counts in enumerate(self.rows) if counts]


class RatesSetup(NamedTuple):
    """What rates are asked for.

    Attributes:
        tree: What moves.
        tasks: What is wanted, the most important first.
        selection: Which joints are q, and what else is an input.
        limits: Least and greatest q, None for no limits at all.
        coupled: Limits that couple joints: coefficients and the greatest sum of each.
        has_null: Whether rates are given for what the tasks leave free.
        purpose: What is made smaller there: a function of q, or `manipulability`,
            which grows; None for nothing.
    """

    tree: Tree
    tasks: Sequence[RatesTask]
    selection: Inputs
    limits: tuple[Sequence[float], Sequence[float]] | None = None
    has_null: bool = False
    purpose: Purpose | str | None = None
    coupled: Sequence[tuple[Sequence[float], float]] = ()


COUPLED: Final = "coupled_limits"
"""The table of limits that couple joints, whose rows the pipeline computes."""


class RatesRequest(NamedTuple):
    """What a call gives beside joint positions."""

    twists: Matrix
    weights: Vector
    numbers: Vector


def rates_pipeline(setup: RatesSetup) -> Pipeline:
    """Return the pipeline of rates that meet tasks in their order of priority.

    Inputs are those of `selection.shapes`, `q`, the columns of `RatesRequest`, with
    limits `greatest`, and with `has_null` `given_null`. Its result is `answer`: the
    rates and the scale of each task; for each task what is missing, linear and angular,
    and why; then the six numbers of the twist that each achieves.
    """
    selection, tasks = setup.selection, setup.tasks
    levels = [len(task.counting) for task in tasks]
    c, k = len(selection.inputs), len(tasks)
    sizes = RateColumns.sizes_of(c, levels)
    coupled = len(setup.coupled)
    columns = DifferentialColumns(**sizes, k=k, answer=c + 10 * k, coupled=coupled)
    bounded, pulled = setup.limits is not None, setup.has_null or setup.purpose
    bound = [Port(name, shape) for name, shape in selection.shapes.items()]
    passive = [Port(PASSIVE, (len(selection.passive),))] if selection.passive else []
    limits = [columns.greatest] if bounded else []
    null = [columns.given_null] if setup.has_null else []
    posed = [columns.jacobians, *columns.group(RateProblem)]
    posed += [columns.low, columns.high] if bounded else []
    posed += [columns.null] if pulled else []
    rows = columns.table(COUPLED, columns.row, columns.row_number)
    if coupled:
        levelled = (
            columns.stage(
                partial(_coupled_rows, coupled=setup.coupled),
                writes=(columns.coupled_rows, columns.begin_rates),
            ),
            *rate_stages(columns, levels, rows, null=bool(pulled)),
            columns.stage(_within_rows, writes=(columns.z, columns.level)),
        )
    else:
        levelled = corner_stages(columns, levels, is_bounded=bounded, null=bool(pulled))
    stages = (
        *passive_stages(setup.tree.cell, selection),
        columns.stage(
            partial(_posed, setup=setup),
            bound=bound,
            passive=passive,
            greatest=columns.greatest if bounded else None,
            given_null=columns.given_null if setup.has_null else None,
            writes=posed,
        ),
        *levelled,
        columns.stage(
            partial(_answered, tasks=tasks, levels=k + bool(pulled)),
            passive=passive,
            writes=columns.answer,
        ),
    )
    inputs = (*bound, columns.q, *columns.group(RatesRequest), *limits, *null)
    tables = passive_tables(setup.tree.cell, selection)
    tables = (*tables, rows) if coupled else tables
    return Pipeline("differential_ik", inputs, tables, stages, (columns.answer.name,))


def coupled_records(count: int) -> dict[str, dict[str, Any]]:
    """Return the records of the table of so many limits that couple joints."""
    if not count:
        return {}
    rows = np.arange(count)
    return {COUPLED: {"row": rows, "row_number": rows.astype(np.float64)}}


def _posed(
    q: Any,
    request: RatesRequest,
    bound: Sequence[Any],
    passive: Sequence[Vector],
    greatest: Vector = (),
    given_null: Vector | None = None,
    *,
    setup: RatesSetup,
) -> Any:
    """Return the Jacobians, the problem, and with limits bounds of rates."""
    selection, tasks = setup.selection, setup.tasks
    now, whole = selection.applied(setup.tree, q, bound, *passive)
    jacobians = _jacobians(now, whole, tasks, selection.inputs)
    kept = [task.counting for task in tasks]
    squared, step, gain, sharp, _, _ = request.numbers
    rows = [J[k] for J, of in zip(jacobians, kept, strict=True) for k in of]
    wanted = [V[k] for V, of in zip(request.twists, kept, strict=True) for k in of]
    posed = [jacobians, *RateProblem(rows, wanted, request.weights, squared, sharp)]
    if setup.limits is not None:
        posed += _bounds(q, setup.limits, greatest, step)
    if given_null is not None or setup.purpose is not None:
        first = [jacobians[0][k] for k in kept[0]]
        posed.append(_pull(q, request, given_null, first, setup.purpose, gain))
    return tuple(posed)


def _jacobians(
    tree: Tree, q: Vector, tasks: Sequence[RatesTask], inputs: Sequence[int]
) -> list[Rows]:
    """Return the six rows of each task's Jacobian."""
    jacobians: list[Rows] = []
    for task in tasks:
        columns = jacobian(tree, q, task.twist)
        jacobians.append([[columns[i][k] for i in inputs] for k in range(6)])
    return jacobians


def _pull(
    q: Any,
    request: RatesRequest,
    null: Vector | None,
    first: Rows,
    purpose: Purpose | str | None,
    gain: Number,
) -> list[Number]:
    """Return r = r_given - gain W^-1 grad, with which W r is Actin's -alpha F.

    Args:
        q: Joint positions.
        request: What a call gives; its weights are W.
        null: The rates r_given, or None.
        first: The rows of the first task, whose manipulability may grow.
        purpose: What is made smaller, or None.
        gain: How fast.
    """
    start = [0.0] * len(q) if null is None else list(null)
    if purpose is None:
        return start
    positions: list[Scalar] = list(q)
    if isinstance(purpose, str):
        value: Any = 0.0 - manipulability(first)
    else:
        value = purpose(q)
    slopes = gradient(value, positions)
    return [
        r - gain * slope / w
        for r, slope, w in zip(start, slopes, request.weights, strict=True)
    ]


def _bounds(
    q: Vector,
    limits: tuple[Sequence[float], Sequence[float]],
    greatest: Vector,
    step: Number,
) -> tuple[list[Number], list[Number]]:
    """Return the rates with which no joint leaves its limits within a step.

    A joint beyond a limit may stay or come back.
    """
    per_second = INSIDE / maximum(step, INSTANT)
    low: list[Number] = []
    high: list[Number] = []
    for x, lower, upper, rate in zip(q, *limits, greatest, strict=True):
        down, up = 0.0 - rate, rate
        if lower > -math.inf:
            down = maximum(down, minimum((lower - x) * per_second, 0.0))
        if upper < math.inf:
            up = minimum(up, maximum((upper - x) * per_second, 0.0))
        low.append(down)
        high.append(up)
    return low, high


def _coupled_rows(
    q: Vector, numbers: Vector, *, coupled: Sequence[tuple[Sequence[float], float]]
) -> tuple[Matrix, Vector]:
    """Return rows a'x >= b with which no such limit is broken within a step.

    A sum beyond its limit may stay or come back. The way begins at rest.
    """
    per_second = INSIDE / maximum(numbers[1], INSTANT)
    rows: list[list[Number]] = []
    for row, end in coupled:
        room = maximum(end - inner(row, list(q)), 0.0)
        rows.append([*(0.0 - a for a in row), 0.0 - room * per_second])
    return rows, [0.0 * x for x in q]


def _within_rows(x: Vector, finished: Number, level: Number) -> tuple[Vector, Number]:
    """Return the rates within all rows; where they are not the best, no level ended."""
    return list(x), select(finished > 0.0, level, 0.0)


def _answered(
    jacobians: Sequence[Matrix],
    twists: Matrix,
    numbers: Vector,
    at: Progress,
    passive: Sequence[Vector],
    *,
    tasks: Sequence[RatesTask],
    levels: int,
) -> Vector:
    """Return the answer, NaN where loops cannot be closed."""
    achieved = [[inner(list(row), at.z) for row in J] for J in jacobians]
    ends: list[list[Number]] = []
    for p, (task, wanted, got) in enumerate(zip(tasks, twists, achieved, strict=True)):
        missing = _missing(task, wanted, got)
        ends.append([*missing, _reason(at, levels, p, missing, numbers)])
    answer = [*at.z, *at.scales, *chain.from_iterable(ends + achieved)]
    for joints in passive:
        is_closed = absolute(sum(joints[1:], joints[0])) < math.inf  # false of NaN
        answer = [select(is_closed, number, math.nan) for number in answer]
    return answer


def _missing(task: RatesTask, wanted: Vector, achieved: Vector) -> list[Number]:
    """Return how much of the linear and the angular part is missing."""
    squares = [
        (a - b) * (a - b) if counts else 0.0
        for a, b, counts in zip(wanted, achieved, task.rows, strict=True)
    ]
    return [sqrt(sum(half, 0.0)) for half in (squares[:3], squares[3:])]


def _reason(
    at: Progress, levels: int, p: int, missing: Vector, numbers: Vector
) -> Number:
    """Return which of the reasons a task ends with.

    Args:
        at: Where the way has ended.
        levels: How many levels there are, that of what tasks leave free included.
        p: Which task.
        missing: What is missing of its twist.
        numbers: The last two are what may be missing.
    """
    limits, singular = float(RateReason.LIMITS), float(RateReason.SINGULAR)
    unfinished: Number = float(RateReason.UNFINISHED)
    short = select(at.scales[p] < 1.0, limits, singular)
    stopped = select(at.remaining > 0.0, unfinished, short)
    reason = select(at.level < float(levels), unfinished, stopped)
    ending: Number = float(RateReason.MET)
    for size, tolerance in zip(missing, numbers[4:], strict=True):
        ending = select(size > tolerance, reason, ending)
    return ending


def passive_share_program(tree: Tree, selection: Inputs) -> Program:
    """Return the program of how much of given rates the limits of loops allow.

    Inputs are those of the selection, q (n,), `qd` (n,) and `step` [s]. The output is
    the greatest factor, from 0 to 1, with which no passive joint exceeds its greatest
    rate, or leaves its limits within a step if it keeps its rate.
    """
    lower, upper, greatest = (each.tolist() for each in tree.cell.joints.ranges)

    def share(now: Tree, q: Any, qd: Sequence[Number], step: Number) -> Number:
        given = dict(zip(selection.inputs, qd, strict=True))
        least: Number = 1.0
        rates = followed_rates(now.cell, q, given, selection.passive)
        for k, rate in rates.items():
            limits = [lower[k]], [upper[k]]
            (low,), (high,) = _bounds([q[k]], limits, [greatest[k]], step)
            least = minimum(least, _share(rate, high))
            least = minimum(least, _share(0.0 - rate, 0.0 - low))
        return least

    return program_of(
        share,
        tree,
        selection,
        name="passive_share",
        output="share",
        qd=(len(selection.inputs),),
        step=(),
    )


def _share(rate: Number, most: Number) -> Number:
    """Return the part of a rate that is not above a bound."""
    if isinstance(most, float) and most == math.inf:
        return 1.0
    return select(rate > most, most / select(rate > most, rate, 1.0), 1.0)
