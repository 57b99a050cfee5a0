"""Stages that take rates only if all joints can then stop before they come too near.

Rows of distances are linear in the motion of joints. Where braking is long, rotations
turn the directions in which links approach. So a stopping path is kept ready: all
joints slow down together, on a straight line in joint positions, and where it ends the
distances of the pairs that are near are computed. If one is below the margin, rates
nearer to braking are tried; braking itself is what the step before has found to end
well. On such a line distances of translations are convex, and above what rows say; what
rotations add is the more the farther one goes. So the end decides, although a link that
passes a corner on the way may come nearer there; docs/control.md says by how much.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from armillary.control.active_set import BOUND
from armillary.control.approach_stages import ApproachTables
from armillary.control.columns import (
    CONTACTS_OF,
    DISTANCE,
    NO_PAIRS,
    InequalityRow,
    PositionLimits,
    StepColumns,
    WorldCapsule,
)
from armillary.control.obstacle_distance import gap_to_obstacle, placed_capsule
from armillary.ik.scaled_rates import RateLimits, when_near
from armillary.kernel.columns import call, each, repeat, when
from armillary.kernel.stages import Stage
from armillary.kernel.tables import Table
from armillary.kinematics.moving_twists import MovingTwists
from armillary.spatial.ldl import inner
from armillary.spatial.vector import Number, Vector
from armillary.trace import Port
from armillary.trace.functions import absolute, maximum, minimum, select

__all__ = ["safe_stages", "stop_stages"]

TRIES: Final = 4
"""Rates that are tried: `x`, half and a quarter of the way to it, and its begin."""

LOST: Final = 1e-4
"""What of the margin may be lost on a stopping path [m]."""

ROUNDING: Final = 1e-9
"""By how much distances below the margin may still fall by rounding [m]."""

SLACK: Final = 0.05
"""Part by which braking may come nearer than foretold: distances are not linear."""

SLACK_SPEED: Final = 2.5e-3
"""How much faster than that braking may come nearer [m/s]."""

BROKEN: Final = 1e-9
"""By how much a distance may fall faster than is allowed [m/s]."""


# Where rows say that pairs come too near


class Reach(NamedTuple):
    """How far joints go from the rates of braking and from the best ones.

    Attributes:
        brake_way: The rates of braking, as far as limits let joints go, shape (c,).
        brake_reach: How far a unit of speed goes with these until all is at rest [s].
        full_way: The best rates, likewise.
        full_reach: The greater of both distances per unit of speed [s].
    """

    brake_way: Vector
    brake_reach: Number
    full_way: Vector
    full_reach: Number


class Safety(NamedTuple):
    """The part of the way from braking to x that is safe, by the rows so far."""

    scale: Number
    is_stoppable: Number
    has_near: Number


def safe_stages(
    columns: StepColumns, rows: Table, joints: tuple[int, ...], begin: Port
) -> tuple[Stage, ...]:
    """Return stages that scale rates towards braking where pairs would come too near.

    With x, the approach of a pair is v, and braking all joints together takes T. A
    motion can be stopped while room is left if v (T / 2 + dt) <= room; that then holds
    for braking in the next step as well. Between braking x_0 and the best x_1 the left
    side is a product of two numbers, of which v is linear and T is convex. Joints stop
    at their limits while others still brake, so rates count as far as these let them.

    Args:
        columns: The columns.
        rows: The table of rows.
        joints: Indices of the joints that are moved.
        begin: The rates x_0 that the way to x begins with.
    """
    # Torques have rows, too, but no distances: they are left out.
    row = (
        columns.stage(_is_pair, writes=columns.near),
        when(columns.near, columns.stage(_safe_row)),
    )
    return (
        columns.stage(
            partial(_begin_safe, joints=joints),
            begin=begin,
            writes=columns.group(Reach, Safety),
        ),
        each(rows, *row),
        columns.stage(_scaled, begin=begin, writes=columns.x),
    )


def _is_pair(is_near: Vector, row_number: Number) -> Number:
    return select(row_number < BOUND, is_near[0], 0.0)


def _begin_safe(
    q: Vector,
    x: Vector,
    begin: Vector,
    limits: PositionLimits,
    dt: Number,
    *,
    joints: tuple[int, ...],
) -> tuple[Reach, Safety]:
    """Return how far joints go while braking from the begin of the way, and from x."""
    # Braking may have to begin from other rates than x; the longer reach counts.
    at = [q[k] for k in joints]
    brake_way, brake_reach = _way(at, begin, limits, dt)
    full_way, full_reach = _way(at, x, limits, dt)
    reach = Reach(brake_way, brake_reach, full_way, maximum(brake_reach, full_reach))
    return reach, Safety(1.0, 1.0, 0.0)


def _way(
    q: Vector, rates: Vector, limits: PositionLimits, dt: Number
) -> tuple[list[Number], Number]:
    """Return rates as far as limits let joints go, and how far a unit of speed goes."""
    time: Number = 0.0
    # All joints take as long as the slowest of them, T = max |v| / a.
    for rate, most in zip(rates, limits.acceleration, strict=True):
        time = maximum(time, absolute(rate) / most)
    reach = 0.5 * time + dt
    # A rate that would lead beyond a limit within the reach ends at the limit.
    way = [
        maximum(
            minimum(rate, maximum(high - at, 0.0) / reach),
            minimum(low - at, 0.0) / reach,
        )
        for at, rate, low, high in zip(
            q, rates, limits.lower, limits.upper, strict=True
        )
    ]
    return way, reach


def _safe_row(row: InequalityRow, reach: Reach, safety: Safety) -> Safety:
    """Return the safety with one more row.

    Args:
        row: The row.
        reach: How far joints go.
        safety: By the rows before.
    """
    brake_way, brake_reach, full_way, full_reach = reach
    scale, is_stoppable, has_near = safety
    a, still, room = row.slopes, row.still, maximum(row.room, 0.0)
    # Approaches, the speeds at which the distance falls: of braking, and of x.
    least = 0.0 - (still + inner(a, list(brake_way)))  # the approach while braking
    most = 0.0 - (still + inner(a, list(full_way)))
    # v (T / 2 + dt) <= room: only rows that x breaks reduce the scale.
    is_broken = most * full_reach > room + BROKEN * full_reach
    # The part of the way from braking to x at which the room is just enough.
    left = room - least * brake_reach
    span = most * full_reach - least * brake_reach
    part = maximum(left, 0.0) / select(span > 0.0, span, 1.0)
    part = select(span > 0.0, minimum(part, 1.0), 0.0)
    fails = least * brake_reach > (1.0 + SLACK) * room + SLACK_SPEED * brake_reach
    # Where braking fails as well, rates that retreat faster are better than braking.
    slower = select(fails, 1.0, select(least > 0.0, 0.0, 1.0))
    part = select(most > least, part, slower)
    # All rows together: the least part that any of them allows.
    scale = select(is_broken, minimum(scale, part), scale)
    # Where nothing else moves, the stopping path is computed, which is exact; what
    # comes by itself needs no slack.
    comes = minimum(0.0 - still, least) * brake_reach > room + BROKEN * brake_reach
    is_pushed = select(comes, 0.0 - still, select(fails, 0.0 - still, 0.0))
    is_pushed = select(is_broken, is_pushed, 0.0)
    is_stoppable = select(is_pushed > 0.0, 0.0, is_stoppable)
    return Safety(scale, is_stoppable, maximum(has_near, 1.0))


def _scaled(x: Vector, begin: Vector, bounds: RateLimits, scale: Number) -> Vector:
    return [
        minimum(maximum(r + scale * (v - r), a), b)
        for v, r, a, b in zip(x, begin, *bounds, strict=True)
    ]


# Where distances at the end of a stopping path say it


class BestStop(NamedTuple):
    """Whether motion can be stopped, and the best of the scales that were tried."""

    is_stoppable: Number
    best_scale: Number
    best_least: Number


def stop_stages(
    twists: MovingTwists, tables: ApproachTables, begin: Port
) -> tuple[Stage, ...]:
    """Return the stages that change `x` and `scale` where stopping would be too late.

    They read `has_near`, which is above 0 where there is a pair that may come too near.

    Args:
        twists: Of the moving links.
        tables: Those of pairs.
        begin: The rates that the way to x begins with. If they are not those of maximum
            braking, these are tried after them.
    """
    columns, chosen = tables.columns, twists.joints
    # With `conflict="slow"` the way begins in the direction of the task; maximum
    # braking is one more try, with a scale below 0.
    has_more = begin != columns.full_braking
    rates = [columns.x, begin, *([columns.full_braking] if has_more else [])]
    least_scale = -1.0 if has_more else 0.0
    tried = columns.stop_scale, columns.stopping
    best = columns.best_scale, columns.best_least
    # The loop changes q to where joints stop, computes poses and distances there,
    # and `_ended` puts q back.
    return (
        columns.stage(_begin, writes=(columns.start, *tried, *best)),
        repeat(
            columns.stopping,
            columns.stage(
                partial(_end_of_braking, chosen=chosen),
                rates=rates,
                writes=(columns.q, columns.stop_least),
            ),
            *twists.moving.stages,
            *_distances(tables),
            columns.stage(
                partial(_judged, least_scale=least_scale),
                writes=(*tried, *columns.group(BestStop)),
            ),
            limit=TRIES + has_more,
        ),
        columns.stage(
            _ended, rates=rates, writes=(columns.q, columns.x, columns.scale)
        ),
    )


def _begin(q: Vector, has_near: Number) -> tuple[Vector, *tuple[Number, ...]]:
    """Return q, and that the best rates are tried first, where a pair is near."""
    return list(q), 1.0, has_near, 1.0, 0.0 - NO_PAIRS


def _end_of_braking(
    start: Vector,
    qd: Vector,
    rates: Sequence[Vector],
    stop_scale: Number,
    limits: PositionLimits,
    dt: Number,
    *,
    chosen: tuple[int, ...],
) -> tuple[Vector, Number]:
    """Return where joints come to rest from the rates of a scale.

    All joints slow down together, in the time T that the slowest of them needs: after
    this step they still move by v T / 2, on a straight line.
    """
    moved = list(qd)
    time: Number = 0.0
    tried = _between(rates, stop_scale)
    # Joints that the controller does not move go on at their rates, and count in T.
    for k, v, most in zip(chosen, tried, limits.acceleration, strict=True):
        moved[k] = v
        time = maximum(time, absolute(v) / most)
    way = dt + 0.5 * time
    end = [a + way * v for a, v in zip(start, moved, strict=True)]
    for k, low, high in zip(chosen, limits.lower, limits.upper, strict=True):
        # At its limit a joint stops while others still brake.
        end[k] = minimum(end[k], maximum(high, start[k]))
        end[k] = maximum(end[k], minimum(low, start[k]))
    return end, NO_PAIRS


def _judged(
    stop_least: Number,
    margin: Number,
    least_distance: Number,
    stop_scale: Number,
    best: BestStop,
    *,
    least_scale: float,
) -> tuple[Number, Number, BestStop]:
    """Return the scale to try next: 1, 1/2, 1/4, 0, then below 0 for braking."""
    # Where the distance is below the margin already, it may not fall.
    is_safe = stop_least >= minimum(margin - LOST, least_distance - ROUNDING)
    less = select(stop_scale > 0.3, 0.5 * stop_scale, 0.0)
    less = select(stop_scale > 0.0, less, least_scale)
    is_last = stop_scale <= least_scale
    again = select(is_safe, 0.0, select(is_last, 0.0, 1.0))
    # Where no scale is safe, the one with the greatest distance is taken.
    is_best = select(is_safe, 1.0, select(stop_least > best.best_least, 1.0, 0.0))
    stopped = select(is_last, 0.0, best.is_stoppable)
    return (
        less,
        again,
        BestStop(
            select(is_safe, best.is_stoppable, stopped),
            select(is_best > 0.0, stop_scale, best.best_scale),
            select(is_best > 0.0, stop_least, best.best_least),
        ),
    )


def _ended(
    start: Vector,
    rates: Sequence[Vector],
    bounds: RateLimits,
    scale: Number,
    best_scale: Number,
) -> tuple[Vector, Vector, Number]:
    """Return the positions that the step began with, the rates and the scale."""
    best = _between(rates, best_scale)
    # Where the first try is safe, x stays as it is, to the last bit.
    x = [
        select(best_scale < 1.0, minimum(maximum(r, a), b), v)
        for v, r, a, b in zip(rates[0], best, *bounds, strict=True)
    ]
    return list(start), x, scale * maximum(best_scale, 0.0)


def _between(rates: Sequence[Vector], scale: Number) -> list[Number]:
    """Return the rates that are tried with a scale of 0 to 1, or below 0 for braking.

    From a scale of 0 on they are begin + scale (x - begin).

    rates: x, the begin of the way to it, and maximum braking if that is not the begin.
    """
    x, begin, *others = rates
    tried = [r + scale * (v - r) for v, r in zip(x, begin, strict=True)]
    # Below 0 the first list is not used.
    for braking in others:
        tried = [select(scale < 0.0, b, a) for a, b in zip(tried, braking, strict=True)]
    return tried


def _distances(tables: ApproachTables) -> list[Stage]:
    """Return the stages that find the least distance of pairs that are near."""
    columns = tables.columns
    least = columns.stop_least
    stages: list[Stage] = []
    if tables.has_pairs:
        answers = columns.value, columns.gap, columns.points, columns.normal
        distance = (
            call(DISTANCE, (columns.X_A, columns.X_B), answers),
            columns.stage(_least, writes=least),
        )
        # Only pairs that the rows of this step have found near can come too near.
        near = when_near(columns, columns.pair_near, *distance)
        stages.append(each(tables.pairs, *near))
    if tables.has_obstacles:
        gap = columns.stage(_least_to_obstacle, writes=least)
        near = when_near(columns, columns.contact_near, gap)
        contacts = each(tables.contacts, *near, within=CONTACTS_OF)
        stages.append(each(tables.capsules, columns.stage(placed_capsule), contacts))
    return stages


def _least(value: Number, stop_least: Number) -> Number:
    return minimum(value, stop_least)


def _least_to_obstacle(
    capsule: WorldCapsule, obstacle: Vector, stop_least: Number
) -> Number:
    return minimum(gap_to_obstacle(capsule, obstacle).value, stop_least)
