"""The pipeline of a step of a controller: which quadratic program is solved, and how.

Rates x, of c joints, solve a quadratic program. With tasks i that request J_i x = v_i
with weights W_i, and postures j that request rates p_j with weights P_j (diagonal),

    minimise    sum_i |J_i x - v_i|^2_Wi        (1)  what tasks request
              + sum_j |x - N p_j|^2_Pj          (2)  what postures request
              + |x - N p|^2_(d^2)               (3)  damping
              + |x - N p|^2_S                   (4)  stiffness, out of reach
    subject to  low <= x <= high                (5)  limits of joints
                a_k x >= b_k for near pairs k   (6)  distances
                M (x - qd) / dt + h within      (7)  torques

| row | columns | written by | symbols |
| --- | --- | --- | --- |
| (1) | `rows_i`, `wanted_i`, `weights` | `frame_tasks.py`, `joint_tasks.py`, `mass_task.py` | J_i, v_i, W_i |
| (2) | `diagonal_j`, `pull_j` | `_posture` of `joint_tasks.py` | P_j, p_j; N p = e (G + e)^-1 p, with G = sum J'WJ and a small e, is what tasks leave free of p (`least_squares.py`) |
| (3) | `damping` | a setting | d^2; p without an index is the weighted mean of postures |
| (4) | `stiffness` | `unreached.py` | the diagonal S >= 0 of tasks that are out of reach; in its term N p is reduced where it leads to limits of joints |
| (5) | `low`, `high` | `rate_bounds.py` | from them joints can stop before their limits |
| (6) | table `rows`, of `approach_rows` | `approach_stages.py`, `separation.py` | a_k is the slope of the distance of pair k; outside of the margin b_k = -pace (distance - margin), less what obstacles and other joints add to the rise of the distance. Inside, it is reduced to what all pairs can have together, so that the program has a solution |
| (8) | table `coupled_limits`, in the same rows | `coupled_limits.py` | limits a'q <= b of several joints: rates from which all joints can stop before them |
| (7) | table `torque_limits`, in the same rows | `torque_limits.py` | M and h from one kernel of dynamics |

With priorities, one program after another is solved within those before it. With
`conflict="slow"` x has J_1 x = s v_1 with the greatest s <= 1 (`line.py`; not with
limits of torques: then the way begins at braking), and lower tasks follow in what is
left (`ik/scaled_rates.py`). Then rates are scaled towards braking until joints can stop
before the margin, and the reason is found.

The stages, in their order:

| stage | reads | writes |
| --- | --- | --- |
| `MovingTwists.stages` | `q`, `qd` | poses and twists of links |
| those of each task | poses, twists, `target`, `target_rate`, `gain` | `rows`, `wanted`, or `diagonal`, `pull` |
| `_request_sum` | these | `request_sum`, NaN where one is |
| `_bounds` | `q`, `qd`, limits, `dt` | `low`, `high`, `full_braking`, `pace`, `braking_time`, `passed`, `sources`, `speeds` |
| `approach_stages` | poses, twists, `obstacles`, `speeds`, `velocity`, `full_braking`, `margin`, `pace`, `braking_time` | the rows of pairs, `least_distance`, `is_strained` |
| `torque_stages` | `mass_rows`, `full_braking` | the rows of torques; `braking` within them |
| `coupled_stages` | `q`, `qd`, `braking`, `braking_time` | the rows of limits that couple joints; `low`, `high` of these joints |
| `separation_stages` | rows, `braking` | rows that some rates meet, `separating`, `stuck` |
| `bending` or `slowing` | all of these | `x`, `finished`, `tasks_scale`, active constraints; `slowing` also `begin_rates` |
| `torque_guard` | `x`, rows of torques | `x`, braking where these are missed |
| `safe_stages` | `x`, the begin of its way, rows | `x`, `scale`, `is_stoppable`, `has_near` |
| `stop_stages` | `x`, the begin of its way, `full_braking`, `has_near` | `x`, `scale`, `is_stoppable`, from distances where motion would stop |
| `coupled_guard` | `x`, `full_braking` | `x`, `coupled_scale`, `passed`: joints can stop before limits that couple them |
| `torque_verdict` | `x`, rows of torques | `passed` |
| `_reason` | `x`, `rows`, `wanted`, active constraints | `reason` |
| `_answer` | all of these | `answer` |

Without limits of torques `braking` is `full_braking`. The way to `x` begins with that;
with `conflict="slow"` and no limits of torques, with the `begin_rates` in the direction
of the first task. Columns are declared in `columns.py`.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Final, NamedTuple

from armillary.control.active_set import BOUND, active_set_stages
from armillary.control.approach import ApproachPairs
from armillary.control.approach_stages import approach_stages
from armillary.control.columns import SETTINGS, STUCK, StepColumns
from armillary.control.coupled_limits import (
    coupled_guard,
    coupled_settings,
    coupled_stages,
    coupled_table,
)
from armillary.control.line import aside
from armillary.control.rate_bounds import JointLimits, StepBounds, rate_bounds
from armillary.control.separation import DEEP, separation_stages
from armillary.control.solvers import Solver, bending, slowing
from armillary.control.stop_stages import safe_stages, stop_stages
from armillary.control.task_stages import TaskStages, priority_levels
from armillary.control.torque_limits import (
    torque_guard,
    torque_stages,
    torque_table,
    torque_verdict,
)
from armillary.ik.active_rows import FREE
from armillary.ik.reason import RateReason
from armillary.kernel.columns import each
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.stages import Stage
from armillary.kernel.tables import Table
from armillary.kinematics.moving_twists import MovingTwists
from armillary.spatial.ldl import inner
from armillary.spatial.vector import Matrix, Number, Vector
from armillary.trace.functions import absolute, maximum, minimum, select, sqrt

__all__ = ["step_pipeline"]

MET: Final = 0.02
"""Part of what is wanted that may be missing where it is met."""

SINGULAR: Final = 0.1
"""Part that is missing at least where joints cannot move that way."""

STILL: Final = 0.01
"""Part of what is wanted below which there is no progress."""

SLOW: Final = 1e-4
"""What may be missing in any case where it is met [m/s or rad/s]."""


def step_pipeline(
    twists: MovingTwists,
    tasks: Sequence[TaskStages],
    approach: ApproachPairs,
    conflict: str,
    *,
    has_torques: bool = False,
    coupled: int = 0,
) -> Pipeline:
    """Return the pipeline of a step.

    Its result is `answer`: the next positions and the rates, of all n joints; the
    reason; the scale; the least distance and the number of that pair; the numbers of
    pairs that are not separated; which limits bounds of rates come from; then the
    numbers of the constraints that hold the rates, and how much each presses.

    Args:
        twists: Of the moving links.
        tasks: The stages of tasks.
        approach: The pairs that are kept apart.
        conflict: `bend` or `slow`.
        has_torques: Whether torques are limited.
        coupled: How many rows limits have that couple joints.
    """
    # What is compiled depends on tasks and robots alone: numbers are in tables.
    levels = priority_levels(tasks)
    count = sum(bool(task.weights) for task in tasks)
    sizes = {**approach.sizes, "coupled": coupled}
    columns = StepColumns.for_step(twists, levels, tasks=count, **sizes)
    pairs = approach.tables(columns)
    settings = _settings(columns, tasks, has_coupled=coupled > 0)
    coupled_limits = coupled_table(columns) if coupled else None
    torques = torque_table(columns) if has_torques else None
    braking = columns.braking if has_torques else columns.full_braking
    # Rows (1) to (7) of the program are columns by then; the solver finds x.
    rows, solve = pairs.rows, active_set_stages(columns, pairs.rows)
    if conflict == "bend":
        solver = bending(columns, tasks, twists, solve)
    else:
        solver = slowing(columns, tasks, twists, rows, solve, has_torques=has_torques)
    stages: tuple[Stage, ...] = (
        *(stage for task in tasks for stage in task.stages),
        _request_sum_stage(columns, twists, tasks),
        columns.stage(
            partial(_bounds, joints=twists.joints),
            writes=(*columns.group(StepBounds), columns.speeds, columns.pace),
        ),
        *approach_stages(pairs),
        *(torque_stages(columns, torques, twists.joints) if torques else ()),
        *(
            coupled_stages(columns, coupled_limits, braking, twists.joints)
            if coupled_limits
            else ()
        ),
        *separation_stages(columns, rows, solve, braking),
        *solver.stages,
        *(torque_guard(columns, torques) if torques else ()),
        *safe_stages(columns, rows, twists.joints, solver.begin),
        *stop_stages(twists, pairs, solver.begin),
        *(coupled_guard(columns, twists.joints) if coupled else ()),
        *(torque_verdict(columns, torques) if torques else ()),
        _reason_stage(columns, tasks, solver, has_coupled=coupled > 0),
        _answer_stage(columns, twists, solver, has_obstacles=approach.slots > 0),
    )
    # Several tasks may share a table, as that of masses: it is listed once.
    tables = [table for task in tasks for table in task.tables]
    tables += [torques] if torques else []
    tables += [coupled_limits] if coupled_limits else []
    # All targets come first, then their rates: see `Controller.__call__`.
    targets, rates = zip(*(task.ports for task in tasks), strict=True)
    given = [columns.mass_rows] if torques else []
    given += [columns.obstacles] if approach.slots else []
    return Pipeline(
        "control_step",
        (columns.q, columns.qd, *targets, *rates, *given),
        (*twists.tables, settings, *dict.fromkeys(tables), *pairs.listed),
        (*twists.stages, each(settings, *stages)),
        (StepColumns.answer.name,),
        (*twists.scratch, *approach.scratch(columns)),
    )


def _settings(
    columns: StepColumns, tasks: Sequence[TaskStages], *, has_coupled: bool
) -> Table:
    """Return the table of settings; `Controller` has its record."""
    ports = [
        columns.lower,
        columns.upper,
        columns.velocity,
        columns.acceleration,
        columns.dt,
        columns.most_pace,
        columns.damping,
        columns.margin,
    ]
    if any(task.weights for task in tasks):
        ports += [columns.weights, columns.judged]
        ports += [columns.priority_level, columns.firm_weights]
    if has_coupled:
        ports += coupled_settings(columns)
    fields = list(columns.table(SETTINGS, *ports).fields)
    for task in tasks:
        own = task.columns.table(SETTINGS, task.columns.gain(), *task.reads)
        fields += own.fields
    return columns.table(SETTINGS, *fields, is_single=True)


# What tasks and limits of joints give


def _request_sum_stage(
    columns: StepColumns, twists: MovingTwists, tasks: Sequence[TaskStages]
) -> Stage:
    """Return the stage that sums what tasks request, which tells whether one is NaN.

    Bounds of rates can hide it: where both are equal, any rate becomes that number. So
    can distances hide passive joints of loops that cannot be closed.
    """
    requests = [
        task.columns.wanted() if task.weights else task.columns.pull() for task in tasks
    ]
    if twists.moving.selection.passive:
        requests.append(columns.passive)
    return columns.stage(_request_sum, requests=requests, writes=columns.request_sum)


def _request_sum(requests: Sequence[Vector]) -> Number:
    return sum((number for request in requests for number in request), 0.0)


def _bounds(
    q: Vector,
    qd: Vector,
    limits: JointLimits,
    dt: Number,
    most_pace: Number,
    *,
    joints: tuple[int, ...],
) -> tuple[StepBounds, Vector, Number]:
    """Return bounds of rates, and how fast pairs may approach."""
    own_q, own_qd = [q[k] for k in joints], [qd[k] for k in joints]
    bounds = rate_bounds(own_q, own_qd, limits, dt)
    # Of the greatest speeds, those of other joints are the rates that they have.
    speeds: list[Number] = [absolute(rate) for rate in qd]
    for k, a, b in zip(joints, bounds.low, bounds.high, strict=True):
        speeds[k] = maximum(absolute(a), absolute(b))
    # After this step braking takes one more at most, and goes half as far.
    pace = minimum(most_pace, 1.0 / (0.5 * (bounds.braking_time + dt) + dt))
    return bounds, speeds, pace


# Why rates are what they are


class Outcome(NamedTuple):
    """What bounds, the solver and the search for a stop have said."""

    scale: Number
    is_stoppable: Number
    passed: Number
    finished: Number
    least_distance: Number
    margin: Number


class _Achieved(NamedTuple):
    """The size of what is requested, of what is missing, and of what is achieved."""

    request: Number
    missing: Number
    rates: Number


def _reason_stage(
    columns: StepColumns,
    tasks: Sequence[TaskStages],
    solver: Solver,
    *,
    has_coupled: bool,
) -> Stage:
    """Return the stage that says why rates are what they are."""
    listed = [task for task in tasks if task.weights]
    # Tasks with rows are judged by J x, weighted 0 or 1 by `judged`.
    # Postures count where there is nothing else.
    alone = [task for task in tasks if not listed]
    line = None if solver.line is None else listed.index(solver.line)
    return columns.stage(
        partial(_reason, line=line),
        holding=solver.holding,
        judged=columns.judged if listed else None,
        coupled_scale=columns.coupled_scale if has_coupled else None,
        rows=[task.columns.rows() for task in listed],
        wanted=[task.columns.wanted() for task in listed],
        postures=[
            port
            for task in alone
            for port in (task.columns.diagonal(), task.columns.pull())
        ],
        writes=columns.reason,
    )


def _reason(  # noqa: PLR0913
    x: Vector,
    outcome: Outcome,
    holding: Vector,
    rows: Sequence[Matrix],
    wanted: Sequence[Vector],
    postures: Sequence[Vector],
    judged: Vector = (),
    coupled_scale: Number = 1.0,
    *,
    line: int | None,
) -> Number:
    """Return the first reason that holds, from the last line to the first.

    Args:
        x: The rates.
        outcome: What stages before have said.
        holding: The numbers of active constraints.
        rows: J of each task.
        wanted: v of each task.
        postures: Of each posture its weights, then its rates.
        judged: 1 for rows of tasks that count.
        coupled_scale: Below 1 where limits that couple joints slow the rates down.
        line: The task whose direction is kept, by its place among tasks with rows.
    """
    # What counts, what is requested, and what the rates achieve.
    requests = [
        (counts, v, inner(list(row), list(x)))
        for counts, v, row in zip(judged, chain(*wanted), chain(*rows), strict=True)
    ]
    for diagonal, pull in zip(postures[::2], postures[1::2], strict=True):
        weighed = zip(diagonal, pull, x, strict=True)
        requests += [(select(w > 0.0, 1.0, 0.0), v, got) for w, v, got in weighed]
    size, short, moved = _achieved(requests)
    is_still = moved <= STILL * size + SLOW
    # Short of the request with no constraint that holds x: a singularity.
    limited, avoiding = _held_by(holding, outcome.scale)
    limited = select(coupled_scale < 1.0, 1.0, limited)
    reason: Number = select(
        short > SINGULAR * size + SLOW,
        float(RateReason.SINGULAR),
        float(RateReason.MET),
    )
    reason = select(limited > 0.0, float(RateReason.LIMITS), reason)
    blocked = select(is_still, float(RateReason.BLOCKED), float(RateReason.AVOIDING))
    reason = select(avoiding > 0.0, blocked, reason)
    if line is not None:
        reason = _said_aside(reason, x, rows[line], wanted[line])
    is_met = short <= MET * size + SLOW
    reason = select(is_met, float(RateReason.MET), reason)
    # Stronger reasons overwrite weaker ones, in this order.
    stops = outcome.is_stoppable > 0.0
    unfinished = select(stops, float(RateReason.UNFINISHED), reason)
    reason = select(outcome.finished > 0.0, reason, unfinished)
    reason = select(outcome.passed > 0.0, float(RateReason.BRAKING), reason)
    reason = select(stops, reason, float(RateReason.PUSHED))
    is_deep = outcome.least_distance < outcome.margin - DEEP
    return select(is_deep, float(RateReason.INSIDE), reason)


def _achieved(requests: Sequence[tuple[Number, Number, Number]]) -> _Achieved:
    """Return the sizes, from 1 for what counts, what is requested and what is got."""
    asked: Number = 0.0
    missing: Number = 0.0
    moved: Number = 0.0
    for counts, wanted, got in requests:
        asked = asked + counts * wanted * wanted
        missing = missing + counts * (wanted - got) * (wanted - got)
        moved = moved + counts * got * got
    return _Achieved(sqrt(asked), sqrt(missing), sqrt(moved))


def _held_by(holding: Vector, scale: Number) -> tuple[Number, Number]:
    """Return whether bounds of rates or torques hold x, and whether pairs do."""
    avoiding: Number = select(scale < 1.0, 1.0, 0.0)
    limited: Number = 0.0
    # Numbers of pairs are below BOUND, those of bounds and of torques are not.
    for slot in holding:
        is_bound = slot >= BOUND
        limited = select(is_bound, 1.0, limited)
        avoiding = select(is_bound, avoiding, select(slot > FREE, 1.0, avoiding))
    return limited, avoiding


def _said_aside(reason: Number, x: Vector, J: Matrix, v: Vector) -> Number:
    """Return the reason, `ASIDE` where limits or pairs turn rates off their direction.

    Args:
        reason: The reason without that.
        x: The rates.
        J: The rows of the task whose direction is kept.
        v: What it requests.
    """
    _, is_aside = aside([inner(list(row), list(x)) for row in J], list(v))
    # MET and SINGULAR say that nothing turned the rates aside.
    is_free = reason < float(RateReason.SINGULAR) + 0.5
    is_aside = select(is_free, 0.0, is_aside)
    return select(is_aside > 0.0, float(RateReason.ASIDE), reason)


# What a step answers


class JointStep(NamedTuple):
    """Positions and rates before the step, the rates of it, limits, and its length."""

    q: Vector
    qd: Vector
    x: Vector
    lower: Vector
    upper: Vector
    dt: Number


class Verdict(NamedTuple):
    """The reason, scales, nearest and inseparable pairs, and sources of bounds."""

    reason: Number
    scale: Number
    tasks_scale: Number
    least_distance: Number
    nearest: Number
    stuck: Vector
    sources: Vector


def _answer_stage(
    columns: StepColumns,
    twists: MovingTwists,
    solver: Solver,
    *,
    has_obstacles: bool,
) -> Stage:
    """Return the stage that writes the answer; `Step` says what its numbers are."""
    n, c = twists.moving.joints, len(twists.joints)
    size = 2 * n + 4 + STUCK + c + solver.holding.size + solver.pressures.size
    return columns.stage(
        partial(_answer, joints=twists.joints),
        holding=solver.holding,
        pressures=solver.pressures,
        obstacle_sum=columns.obstacle_sum if has_obstacles else None,
        writes=columns.port(StepColumns.answer, answer=size),
    )


def _answer(
    step: JointStep,
    verdict: Verdict,
    holding: Vector,
    pressures: Vector,
    request_sum: Number,
    obstacle_sum: Number = 0.0,
    *,
    joints: tuple[int, ...],
) -> Vector:
    """Return all numbers of the answer, NaN where anything given is."""
    n = len(step.q)
    # Other joints continue at the rates that were given.
    rates = list(step.qd)
    for k, rate in zip(joints, step.x, strict=True):
        rates[k] = rate
    after = [a + step.dt * b for a, b in zip(step.q, rates, strict=True)]
    for k, low, high in zip(joints, step.lower, step.upper, strict=True):
        # Rounding does not lead beyond a limit; beyond it nothing is jumped.
        at, before = after[k], step.q[k]
        at = select(before <= high, minimum(at, high), at)
        after[k] = select(before >= low, maximum(at, low), at)
    reason, scale, tasks_scale, least, nearest, *lists = verdict
    numbers = [*after, *rates, reason, scale * tasks_scale, least, nearest]
    numbers += [*chain(*lists), *holding, *pressures]
    # A sum is a finite number only if all of its terms are.
    total = sum([*after, *rates, least, request_sum], obstacle_sum)
    is_number = absolute(total) < float("inf")
    answer = [select(is_number, number, float("nan")) for number in numbers]
    answer[2 * n] = select(is_number, reason, float(RateReason.INVALID))
    return answer
