"""The pipeline of a step of a controller.

Rates x, of c joints, solve a quadratic program. With tasks i that request J_i x = v_i
with weights W_i, and postures that request rates p_j with weights P_j (diagonal),

    sum_i |J_i x - v_i|^2_Wi + sum_j |x - N p_j|^2_Pj + |x - N p|^2_(d^2 + S)  least,

    low <= x <= high,    a_k x >= b_k  for all pairs k that are near.

- N p is the part of the rates of a posture that other tasks leave free, e (G + e)^-1 p
  with G = sum J' W J and a small e (`solvers.py`); p without an index is the weighted
  mean over postures.
- d is the damping, and the diagonal S >= 0 that of tasks that are out of reach
  (`unreached.py`); in its term, N p is reduced where it leads to limits of joints.
- `low` and `high` let joints stop before their limits (`rate_bounds.py`).
- a_k is the slope of the distance of pair k, and b_k the least speed at which it rises:
  -pace (distance - margin) outside of the margin (`approach_stages.py`). Inside, b_k is
  reduced to what all pairs can have together (`separation.py`), so that the program has
  a solution.

With priorities, one program after another is solved within those before it. With
`conflict="slow"` x has J_1 x = s v_1 with the greatest s <= 1 (`line.py`), and lower
tasks follow in what is left (`ik/scaled_rates.py`). Then rates are scaled towards
braking until joints can stop before the margin, and the reason is found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from armillary.control.active_set import (
    BOUND,
    FREE,
)
from armillary.control.approach import NEARS, ROWS, Approach
from armillary.control.line import aside
from armillary.control.rate_bounds import rate_bounds
from armillary.control.separation import STUCK, separation_stages
from armillary.control.solvers import Solver, bending, slowing
from armillary.control.stop_stages import stop_stages
from armillary.control.task_parts import TaskStages
from armillary.control.torque_limits import (
    softened_rest,
    torque_guard,
    torque_port,
    torque_stages,
    torque_table,
    torque_verdict,
)
from armillary.ik.reason import RateReason
from armillary.kernel.pipeline import Each, Pipeline, Stage, When, program
from armillary.kernel.tables import Field, Table, reals
from armillary.kinematics.inputs import PASSIVE
from armillary.kinematics.moving_twists import RATES, MovingTwists
from armillary.spatial.ldl import inner
from armillary.spatial.vector import Number
from armillary.trace import Port
from armillary.trace.functions import absolute, maximum, minimum, select, sqrt

__all__ = ["ANSWER", "SETTINGS", "step_pipeline"]

SETTINGS: Final = "settings"
ANSWER: Final = "answer"

ROW_SETTINGS: Final = ("weights", "judged", "priority_level", "firm_weights")
"""What settings hold for each row of the tasks."""

MET: Final = 0.02
"""Part of what is wanted that may be missing where it is met."""

SINGULAR: Final = 0.1
"""Part that is missing at least where joints cannot move that way."""

STILL: Final = 0.01
"""Part of what is wanted below which there is no progress."""

SLOW: Final = 1e-4
"""What may be missing in any case where it is met [m/s or rad/s]."""

DEEP: Final = 5e-4
"""How far below the margin distances are where links are inside of it [m]."""

BROKEN: Final = 1e-9
"""By how much a distance may fall faster than is allowed [m/s]."""

SLACK: Final = 0.05
"""Part by which braking may come nearer than foretold: distances are not linear."""


def step_pipeline(
    twists: MovingTwists,
    tasks: Sequence[TaskStages],
    approach: Approach,
    conflict: str,
    *,
    has_torques: bool = False,
) -> Pipeline:
    """Return the pipeline of a step.

    Its result is `ANSWER`: the next positions and the rates, of all n joints; the
    reason; the scale; the least distance and the row of that pair; the rows of pairs
    that are not separated; which limits bounds of rates come from; then the numbers of
    the constraints that hold the rates, and how much each presses.
    """
    n, c = twists.moving.joints, len(twists.joints)
    rows = [each for each in tasks if each.weights]
    counts = [len(each.weights) for each in rows]
    fields: tuple[Field, ...] = (
        reals("lower", (c,)),
        reals("upper", (c,)),
        reals("velocity", (c,)),
        reals("acceleration", (c,)),
        reals("dt"),
        reals("most_pace"),
        reals("damping"),
        reals("margin"),
    )
    names = ROW_SETTINGS if rows else ()
    fields += tuple(reals(name, (sum(counts),)) for name in names)
    fields += tuple(field for each in tasks for field in each.fields)
    extra = [table for each in tasks for table in each.tables]
    if has_torques:
        extra.append(torque_table(ROWS, NEARS))
    tables = (Table(SETTINGS, fields, is_single=True), *dict.fromkeys(extra))
    if conflict == "bend":
        solver = bending(tasks, twists, approach.rows)
    else:
        solver = slowing(tasks, twists, approach.rows, has_torques=has_torques)
    stages: tuple[Stage, ...] = (
        *(stage for each in tasks for stage in each.stages),
        _asked_sum(twists, tasks),
        _bounds(twists),
        *approach.stages,
        *((*torque_stages(twists), *softened_rest(twists)) if has_torques else ()),
        *separation_stages(c, approach.rows),
        *solver.stages,
        *(torque_guard(c) if has_torques else ()),
        *_safe(twists, approach),
        *stop_stages(twists, approach, solver.braking),
        *(torque_verdict(c) if has_torques else ()),
        _judged(tasks, c, solver),
        _answer(twists, solver, approach),
    )
    masses = (torque_port(twists),) if has_torques else ()
    targets = *(each.port for each in tasks), *(each.rate_port for each in tasks)
    return Pipeline(
        "control_step",
        (Port("q", (n,)), Port(RATES, (n,)), *targets, *masses, *approach.ports),
        (*twists.tables, *tables, *approach.tables),
        (*twists.stages, Each(SETTINGS, stages)),
        (ANSWER,),
        approach.blank,
    )


def _bounds(twists: MovingTwists) -> Stage:
    """Return the stage that finds bounds of rates, and how fast pairs may approach."""
    n, chosen = twists.moving.joints, twists.joints

    def equations(
        q: Any,
        qd: Any,
        lower: Any,
        upper: Any,
        velocity: Any,
        acceleration: Any,
        dt: Any,
        most_pace: Any,
    ) -> Any:
        own_q, own_qd = [q[k] for k in chosen], [qd[k] for k in chosen]
        low, high, rest, passed, braking, sources = rate_bounds(
            own_q, own_qd, lower, upper, velocity, acceleration, dt
        )
        speeds: list[Number] = [absolute(qd[k]) for k in range(n)]
        for k, a, b in zip(chosen, low, high, strict=True):
            speeds[k] = maximum(absolute(a), absolute(b))
        # After this step braking takes one more at most, and goes half as far.
        pace = minimum(most_pace, 1.0 / (0.5 * (braking + dt) + dt))
        return low, high, rest, passed, speeds, pace, braking, sources

    c = (len(chosen),)
    inputs: dict[str, tuple[int, ...]] = {"q": (n,), RATES: (n,)}
    inputs |= dict.fromkeys(("lower", "upper", "velocity", "acceleration"), c)
    inputs |= {"dt": (), "most_pace": ()}
    names = "low high rest passed speeds pace braking_time sources"
    return program(equations, names, **inputs)


def _safe(twists: MovingTwists, approach: Approach) -> tuple[Stage, ...]:
    """Return stages that scale rates towards braking where pairs would come too near.

    With x, the approach of a pair is v, and braking all joints together takes T. A
    motion can be stopped while room is left if v (T / 2 + dt) <= room; that then holds
    for braking in the next step as well. Between braking x_0 and the best x_1 the left
    side is a product of two numbers, of which v is linear and T is convex. Joints stop
    at their limits while others still brake, so rates count as far as these let them.
    """
    n, c = twists.moving.joints, len(twists.joints)
    names = "scale is_stoppable has_near"
    vectors = dict.fromkeys(("x", "rest", "lower", "upper", "acceleration"), (c,))
    begun = {"q": (n,), **vectors, "dt": ()}
    row = {"row": (c + 3,), "full_way": (c,), "brake_way": (c,)}
    row |= dict.fromkeys(("brake_reach", "full_reach", *names.split()), ())
    bounds = {"x": (c,), "rest": (c,), "low": (c,), "high": (c,), "scale": ()}

    def begin(q: Any, *values: Any) -> Any:
        return _begin_safe([q[k] for k in twists.joints], *values)

    return (
        program(begin, f"brake_way brake_reach full_way full_reach {names}", **begun),
        Each(
            approach.rows.name,
            (
                program(_is_pair, "near", is_near=(1,), row_number=()),
                When(
                    "near",
                    (program(_safe_row, names, **row),),
                ),
            ),
        ),
        program(_scaled, "x", **bounds),
    )


def _is_pair(is_near: Any, row_number: Any) -> Any:
    return select(row_number < BOUND, is_near[0], 0.0)


def _begin_safe(
    q: Any, x: Any, rest: Any, lower: Any, upper: Any, acceleration: Any, dt: Any
) -> Any:
    """Return rates as far as limits let joints go, and how far a unit of speed goes.

    For braking from the rates in `rest`, then from those in x.
    """
    ways: list[list[Number]] = []
    reach: list[Number] = []
    for rates in (rest, x):
        time: Number = 0.0
        for rate, most in zip(rates, acceleration, strict=True):
            time = maximum(time, absolute(rate) / most)
        reach.append(0.5 * time + dt)
        ways.append(
            [
                maximum(
                    minimum(rate, maximum(high - at, 0.0) / reach[-1]),
                    minimum(low - at, 0.0) / reach[-1],
                )
                for at, rate, low, high in zip(q, rates, lower, upper, strict=True)
            ]
        )
    return ways[0], reach[0], ways[1], maximum(*reach), 1.0, 1.0, 0.0


def _safe_row(
    row: Any,
    full_way: Any,
    brake_way: Any,
    brake_reach: Any,
    full_reach: Any,
    scale: Any,
    is_stoppable: Any,
    has_near: Any,
) -> Any:
    c = len(full_way)
    a, still, room = list(row[:c]), row[c + 1], maximum(row[c + 2], 0.0)
    least = 0.0 - (still + inner(a, list(brake_way)))  # the approach while braking
    most = 0.0 - (still + inner(a, list(full_way)))
    is_broken = most * full_reach > room + BROKEN * full_reach
    left = room - least * brake_reach
    span = most * full_reach - least * brake_reach
    part = maximum(left, 0.0) / select(span > 0.0, span, 1.0)
    part = select(span > 0.0, minimum(part, 1.0), 0.0)
    fails = least * brake_reach > (1.0 + SLACK) * room + SLACK * SLACK * brake_reach
    # Where braking fails as well, rates that retreat faster are better than braking.
    slower = select(fails, 1.0, select(least > 0.0, 0.0, 1.0))
    part = select(most > least, part, slower)
    scale = select(is_broken, minimum(scale, part), scale)
    # Where nothing else moves, the stopping path is computed, which is exact; what
    # comes by itself needs no slack.
    comes = minimum(0.0 - still, least) * brake_reach > room + BROKEN * brake_reach
    is_pushed = select(comes, 0.0 - still, select(fails, 0.0 - still, 0.0))
    is_pushed = select(is_broken, is_pushed, 0.0)
    is_stoppable = select(is_pushed > 0.0, 0.0, is_stoppable)
    return scale, is_stoppable, maximum(has_near, 1.0)


def _scaled(x: Any, rest: Any, low: Any, high: Any, scale: Any) -> Any:
    return [
        minimum(maximum(r + scale * (v - r), a), b)
        for v, r, a, b in zip(x, rest, low, high, strict=True)
    ]


def _judged(tasks: Sequence[TaskStages], c: int, solver: Solver) -> Stage:
    """Return the stage that says why."""
    inputs: dict[str, tuple[int, ...]] = {"x": (c,), "low": (c,), "high": (c,)}
    inputs |= dict.fromkeys(
        ("scale", "is_stoppable", "passed", "finished", "least_distance", "margin"), ()
    )
    inputs |= {solver.holding: (solver.room,)}
    listed = [each for each in tasks if each.weights]
    if listed:
        inputs["judged"] = (sum(len(each.weights) for each in listed),)
    for each in listed:
        k, m = each.number, len(each.weights)
        inputs |= {f"rows_{k}": (m, c), f"wanted_{k}": (m,)}
    alone = [] if listed else [each.number for each in tasks]
    for k in alone:
        inputs |= {f"diagonal_{k}": (c,), f"pull_{k}": (c,)}

    def equations(*values: Any) -> Any:
        given = dict(zip(inputs, values, strict=True))
        x = list(given["x"])
        asked: Number = 0.0
        missing: Number = 0.0
        moved: Number = 0.0
        counted = iter(given.get("judged", ()))
        for each in listed:
            k = each.number
            for row, wanted in zip(
                given[f"rows_{k}"], given[f"wanted_{k}"], strict=True
            ):
                counts = next(counted)
                got = inner(list(row), x)
                asked = asked + counts * wanted * wanted
                missing = missing + counts * (wanted - got) * (wanted - got)
                moved = moved + counts * got * got
        for k in alone:  # postures count where there is nothing else
            pulls = zip(given[f"diagonal_{k}"], given[f"pull_{k}"], x, strict=True)
            for weight, wanted, got in pulls:
                counts = select(weight > 0.0, 1.0, 0.0)
                asked = asked + counts * wanted * wanted
                missing = missing + counts * (wanted - got) * (wanted - got)
                moved = moved + counts * got * got
        size = sqrt(asked)
        short = sqrt(missing)
        is_met = short <= MET * size + SLOW
        avoiding: Number = select(given["scale"] < 1.0, 1.0, 0.0)
        limited: Number = 0.0
        for slot in given[solver.holding]:
            is_bound = slot >= BOUND
            limited = select(is_bound, 1.0, limited)
            avoiding = select(is_bound, avoiding, select(slot > FREE, 1.0, avoiding))
        is_still = sqrt(moved) <= STILL * size + SLOW
        reason: Any = select(
            short > SINGULAR * size + SLOW,
            float(RateReason.SINGULAR),
            float(RateReason.MET),
        )
        reason = select(limited > 0.0, float(RateReason.LIMITS), reason)
        blocked = select(
            is_still, float(RateReason.BLOCKED), float(RateReason.AVOIDING)
        )
        reason = select(avoiding > 0.0, blocked, reason)
        if solver.line is not None:
            reason = _said_aside(reason, given, solver.line.number)
        reason = select(is_met, float(RateReason.MET), reason)
        reason = select(
            given["finished"] > 0.0,
            reason,
            select(given["is_stoppable"] > 0.0, float(RateReason.UNFINISHED), reason),
        )
        reason = select(given["passed"] > 0.0, float(RateReason.BRAKING), reason)
        reason = select(given["is_stoppable"] > 0.0, reason, float(RateReason.PUSHED))
        is_deep = given["least_distance"] < given["margin"] - DEEP
        return select(is_deep, float(RateReason.INSIDE), reason)

    return program(equations, "reason", **inputs)


def _said_aside(reason: Any, given: Mapping[str, Any], line: int) -> Any:
    """Return the reason, `ASIDE` where limits or pairs turn rates off their direction.

    line: The number of the task whose direction is kept.
    """
    J, v = given[f"rows_{line}"], list(given[f"wanted_{line}"])
    _, is_aside = aside([inner(list(row), list(given["x"])) for row in J], v)
    is_free = reason < float(RateReason.SINGULAR) + 0.5
    is_aside = select(is_free, 0.0, is_aside)
    return select(is_aside > 0.0, float(RateReason.ASIDE), reason)


def _asked_sum(twists: MovingTwists, tasks: Sequence[TaskStages]) -> Stage:
    """Return the stage that sums what tasks ask for, which tells whether one is NaN.

    Bounds of rates can hide it: where both are equal, any rate becomes that number. So
    can distances hide passive joints of loops that cannot be closed.
    """
    c = len(twists.joints)
    inputs: dict[str, tuple[int, ...]] = {
        f"wanted_{each.number}" if each.weights else f"pull_{each.number}": (
            len(each.weights) or c,
        )
        for each in tasks
    }
    passive = twists.moving.selection.passive
    if passive:
        inputs[PASSIVE] = (len(passive),)

    def equations(*values: Any) -> Any:
        return sum((number for value in values for number in value), 0.0)

    return program(equations, "asked_sum", **inputs)


def _answer(twists: MovingTwists, solver: Solver, approach: Approach) -> Stage:
    n, chosen = twists.moving.joints, twists.joints
    c = len(chosen)

    def equations(  # noqa: PLR0913, PLR0917
        q: Any,
        qd: Any,
        x: Any,
        lower: Any,
        upper: Any,
        dt: Any,
        reason: Any,
        scale: Any,
        least: Any,
        nearest: Any,
        stuck: Any,
        sources: Any,
        holding: Any,
        pressures: Any,
        tasks_scale: Any,
        asked_sum: Any,
        obstacle_sum: Any = 0.0,
    ) -> Any:
        rates = list(qd)
        for k, rate in zip(chosen, x, strict=True):
            rates[k] = rate
        after = [a + dt * b for a, b in zip(q, rates, strict=True)]
        for k, low, high in zip(chosen, lower, upper, strict=True):
            # Rounding does not lead beyond a limit; beyond it nothing is jumped.
            at = after[k]
            at = select(q[k] <= high, minimum(at, high), at)
            after[k] = select(q[k] >= low, maximum(at, low), at)
        numbers = [*after, *rates, reason, scale * tasks_scale, least, nearest]
        numbers += [*stuck, *sources, *holding, *pressures]
        total = sum([*after, *rates, least, asked_sum], obstacle_sum)
        is_number = absolute(total) < float("inf")
        nan = float("nan")
        found = [select(is_number, number, nan) for number in numbers]
        found[2 * n] = select(is_number, reason, float(RateReason.INVALID))
        return found

    inputs: dict[str, tuple[int, ...]] = {"q": (n,), RATES: (n,)}
    inputs |= dict.fromkeys(("x", "lower", "upper"), (c,))
    inputs |= dict.fromkeys(("dt", "reason", "scale", "least_distance", "nearest"), ())
    inputs |= {"stuck": (STUCK,), "sources": (c,)}
    inputs |= dict.fromkeys((solver.holding, solver.pressures), (solver.room,))
    inputs |= {"tasks_scale": (), "asked_sum": ()}
    if approach.slots:
        inputs["obstacle_sum"] = ()
    return program(equations, ANSWER, **inputs)
