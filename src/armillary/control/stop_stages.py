"""Stages that take rates only if all joints can then stop before they come too near.

Rows of distances are linear in the motion of joints. Where braking is long, rotations
turn the directions in which links approach. So the way of braking is kept ready: all
joints slow down together, on a straight line in joint positions, and where it ends the
distances of the pairs that are near are computed. If one is below the margin, rates
nearer to braking are tried; braking itself is what the step before has found to end
well. On such a line distances of translations are convex, and above what rows say; what
rotations add is the more the farther one goes. So the end decides; but where a parabola
through its distance, and through the distance and the slope now, passes below the
margin on the way, the distances there decide as well.
"""

from __future__ import annotations

from typing import Any, Final

from armillary.control.active_set import first_of
from armillary.control.approach import Approach
from armillary.control.approach_stages import (
    NO_PAIRS,
    POSE,
    RESULTS,
    VECTOR,
)
from armillary.control.obstacle_distance import gap_of_rods, placed_rod
from armillary.kernel.pipeline import Call, Each, Stage, When, While, program
from armillary.kinematics.moving_twists import RATES, MovingTwists
from armillary.spatial.ldl import inner
from armillary.spatial.vector import Number
from armillary.trace.functions import absolute, maximum, minimum, select

__all__ = ["stop_stages"]

TRIES: Final = 4
"""Rates that are tried: the best, half and a quarter of the way there, and braking."""

LOST: Final = 1e-4
"""What of the margin may be lost on the way of braking [m].

Of braking itself it is twice that: as it goes on, other points of its way are judged.
"""

ROUNDING: Final = 1e-9
"""By how much distances may fall there where they are below that already [m]."""


DIP: Final = "dip_least dip_part"
"""The least distance that parabolas have on the way, and on which part of it."""


def stop_stages(twists: MovingTwists, approach: Approach) -> tuple[Stage, ...]:
    """Return the stages that change `x` and `scale` where stopping would be too late.

    They read `has_near`, which is above 0 where there is a pair that may come too near.
    """
    n, c = twists.moving.joints, len(twists.joints)
    chosen = twists.joints

    def begin(q: Any, has_near: Any) -> Any:
        return list(q), 1.0, 1.0, has_near, 1.0, 0.0 - NO_PAIRS

    def end_of_braking(  # noqa: PLR0913, PLR0917
        start: Any,
        qd: Any,
        x: Any,
        rest: Any,
        stop_scale: Any,
        stop_part: Any,
        acceleration: Any,
        lower: Any,
        upper: Any,
        dt: Any,
    ) -> Any:
        rates = list(qd)
        time: Number = 0.0
        for k, v, r, most in zip(chosen, x, rest, acceleration, strict=True):
            rates[k] = r + stop_scale * (v - r)
            time = maximum(time, absolute(rates[k]) / most)
        way = stop_part * (dt + 0.5 * time)
        end = [a + way * v for a, v in zip(start, rates, strict=True)]
        for k, low, high in zip(chosen, lower, upper, strict=True):
            # At its limit a joint stops while others still brake.
            end[k] = minimum(end[k], maximum(high, start[k]))
            end[k] = maximum(end[k], minimum(low, start[k]))
        moved = [end[k] - start[k] for k in chosen]
        return end, moved, NO_PAIRS, NO_PAIRS, 1.0

    def judged(
        stop_least: Any,
        margin: Any,
        least_distance: Any,
        dip_least: Any,
        dip_part: Any,
        stop_scale: Any,
        stop_part: Any,
        stands: Any,
        best_scale: Any,
        best_least: Any,
    ) -> Any:
        is_last = stop_scale <= 0.0
        lost = select(is_last, 2.0 * LOST, LOST)
        limit = minimum(margin - lost, least_distance - ROUNDING)
        is_safe = stop_least >= limit
        dips = select(is_safe, select(dip_least < limit, 1.0, 0.0), 0.0)
        looks = select(stop_part < 1.0, 0.0, dips) > 0.0
        less = select(stop_scale > 0.3, 0.5 * stop_scale, 0.0)
        again = select(is_safe, 0.0, select(is_last, 0.0, 1.0))
        is_best = select(is_safe, 1.0, select(stop_least > best_least, 1.0, 0.0))
        is_best = select(looks, 0.0, is_best) > 0.0
        best_scale = select(is_best, stop_scale, best_scale)
        best_least = select(is_best, stop_least, best_least)
        stands = select(is_safe, stands, select(is_last, 0.0, stands))
        return (
            select(looks, stop_scale, less),
            select(looks, dip_part, 1.0),
            select(looks, 1.0, again),
            stands,
            best_scale,
            best_least,
        )

    def ended(
        start: Any,
        x: Any,
        rest: Any,
        low: Any,
        high: Any,
        scale: Any,
        best_scale: Any,
    ) -> Any:
        found = [
            select(
                best_scale < 1.0, minimum(maximum(r + best_scale * (v - r), a), b), v
            )
            for v, r, a, b in zip(x, rest, low, high, strict=True)
        ]
        return list(start), found, scale * best_scale

    vector = dict.fromkeys(("x", "rest"), (c,))
    braking = {"start": (n,), RATES: (n,), **vector, "stop_scale": (), "stop_part": ()}
    braking |= dict.fromkeys(("acceleration", "lower", "upper"), (c,))
    braking["dt"] = ()
    kept = "stands best_scale best_least"
    names = (
        f"stop_least margin least_distance {DIP} stop_scale stop_part {kept}".split()
    )
    last = {"start": (n,), **vector, "low": (c,), "high": (c,)}
    last |= {"scale": (), "best_scale": ()}
    return (
        program(
            begin,
            "start stop_scale stop_part stopping best_scale best_least",
            q=(n,),
            has_near=(),
        ),
        While(
            "stopping",
            (
                program(end_of_braking, f"q stop_way stop_least {DIP}", **braking),
                *twists.moving.stages,
                *_distances(approach),
                program(
                    judged,
                    f"stop_scale stop_part stopping {kept}",
                    **dict.fromkeys(names, ()),
                ),
            ),
            2 * TRIES,
        ),
        program(ended, "q x scale", **last),
    )


def _distances(approach: Approach) -> list[Stage]:
    """Return the stages that find the least distance of pairs that are near.

    And where on the way one is least, as far as a parabola tells.
    """
    found: list[Stage] = []
    c = len(approach.twists.joints)
    row, way = (c + 3,), {"margin": (), "stop_way": (c,)}
    least = {"stop_least": (), **dict.fromkeys(DIP.split(), ())}
    if approach.check is not None:
        less = {"value": (), "pair_row": row, **way, **least}
        found.append(
            Each(
                "pairs",
                (
                    program(first_of, "near", pair_near=(1,)),
                    When(
                        "near",
                        (
                            Call("distance", ("X_A", "X_B"), RESULTS),
                            program(_least, " ".join(least), **less),
                        ),
                    ),
                ),
            )
        )
    if approach.slots:
        ends = dict.fromkeys(("end_a", "end_b"), VECTOR)
        rod = {"rod_radius": (), "obstacle": (approach.width,), "meeting_row": row}
        place = {"rod_pose": POSE, "rod_a": VECTOR, "rod_b": VECTOR}
        meet = (
            program(first_of, "near", meeting_near=(1,)),
            When(
                "near",
                (
                    program(
                        _least_of_rods, " ".join(least), **ends, **rod, **way, **least
                    ),
                ),
            ),
        )
        found.append(
            Each(
                "rods",
                (
                    program(placed_rod, "end_a end_b", **place),
                    Each("meetings", meet, within="of_rod"),
                ),
            )
        )
    return found


def _least(  # noqa: PLR0913, PLR0917
    value: Any,
    row: Any,
    margin: Any,
    way: Any,
    stop_least: Any,
    dip_least: Any,
    dip_part: Any,
) -> Any:
    """Return the least distance so far, and the least of parabolas and where it is.

    With s from 0 to 1 on the way that is d_0 + d_0' s + (d_1 - d_0 - d_0') s^2.
    """
    c = len(way)
    begin = row[c + 2] + margin
    slope = inner(list(row[:c]), list(way))
    bend = value - begin - slope
    has_dip = select(bend > 0.0, select(0.0 - slope < 2.0 * bend, 1.0, 0.0), 0.0)
    has_dip = select(slope < 0.0, has_dip, 0.0)
    part = 0.0 - slope / select(has_dip > 0.0, 2.0 * bend, 1.0)
    dip = select(has_dip > 0.0, begin + 0.5 * slope * part, NO_PAIRS)
    is_less = dip < dip_least
    return (
        minimum(value, stop_least),
        select(is_less, dip, dip_least),
        select(is_less, part, dip_part),
    )


def _least_of_rods(  # noqa: PLR0913, PLR0917
    end_a: Any, end_b: Any, rod_radius: Any, obstacle: Any, *given: Any
) -> Any:
    return _least(gap_of_rods(end_a, end_b, rod_radius, obstacle).value, *given)
