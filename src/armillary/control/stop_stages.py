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
from armillary.spatial.vector import Number
from armillary.trace.functions import absolute, maximum, minimum, select

__all__ = ["stop_stages"]

TRIES: Final = 4
"""Rates that are tried: `x`, half and a quarter of the way from `rest`, and `rest`."""

LOST: Final = 1e-4
"""What of the margin may be lost on a stopping path [m]."""

ROUNDING: Final = 1e-9
"""By how much distances may fall there where they are below that already [m]."""


def stop_stages(
    twists: MovingTwists, approach: Approach, last: str
) -> tuple[Stage, ...]:
    """Return the stages that change `x` and `scale` where stopping would be too late.

    They read `has_near`, which is above 0 where there is a pair that may come too near.

    Args:
        twists: Of the moving links.
        approach: The pairs.
        last: The column of the rates that are tried last, those of braking. If it is
            not `rest`, rates of `rest` are tried before them.
    """
    has_more = last != "rest"
    least_scale = -1.0 if has_more else 0.0
    n, c = twists.moving.joints, len(twists.joints)
    chosen = twists.joints

    def begin(q: Any, has_near: Any) -> Any:
        return list(q), 1.0, has_near, 1.0, 0.0 - NO_PAIRS

    def end_of_braking(  # noqa: PLR0913, PLR0917
        start: Any,
        qd: Any,
        x: Any,
        rest: Any,
        stop_scale: Any,
        acceleration: Any,
        lower: Any,
        upper: Any,
        dt: Any,
        brake: Any = None,
    ) -> Any:
        # All joints slow down together, in the time T that the slowest of them needs:
        # after this step they still move by v T / 2, on a straight line.
        rates = list(qd)
        time: Number = 0.0
        tried = _between(x, rest, stop_scale, brake)
        for k, v, most in zip(chosen, tried, acceleration, strict=True):
            rates[k] = v
            time = maximum(time, absolute(rates[k]) / most)
        way = dt + 0.5 * time
        end = [a + way * v for a, v in zip(start, rates, strict=True)]
        for k, low, high in zip(chosen, lower, upper, strict=True):
            # At its limit a joint stops while others still brake.
            end[k] = minimum(end[k], maximum(high, start[k]))
            end[k] = maximum(end[k], minimum(low, start[k]))
        return end, NO_PAIRS

    def judged(
        stop_least: Any,
        margin: Any,
        least_distance: Any,
        stop_scale: Any,
        is_stoppable: Any,
        best_scale: Any,
        best_least: Any,
    ) -> Any:
        is_safe = stop_least >= minimum(margin - LOST, least_distance - ROUNDING)
        less = select(stop_scale > 0.3, 0.5 * stop_scale, 0.0)
        less = select(stop_scale > 0.0, less, least_scale)
        is_last = stop_scale <= least_scale
        again = select(is_safe, 0.0, select(is_last, 0.0, 1.0))
        is_best = select(is_safe, 1.0, select(stop_least > best_least, 1.0, 0.0))
        best_scale = select(is_best > 0.0, stop_scale, best_scale)
        best_least = select(is_best > 0.0, stop_least, best_least)
        is_stoppable = select(is_safe, is_stoppable, select(is_last, 0.0, is_stoppable))
        return less, again, is_stoppable, best_scale, best_least

    def ended(
        start: Any,
        x: Any,
        rest: Any,
        low: Any,
        high: Any,
        scale: Any,
        best_scale: Any,
        brake: Any = None,
    ) -> Any:
        best = _between(x, rest, best_scale, brake)
        found = [
            select(best_scale < 1.0, minimum(maximum(r, a), b), v)
            for v, r, a, b in zip(x, best, low, high, strict=True)
        ]
        return list(start), found, scale * maximum(best_scale, 0.0)

    vector = dict.fromkeys(("x", "rest"), (c,))
    braking = {"start": (n,), RATES: (n,), **vector, "stop_scale": ()}
    braking |= dict.fromkeys(("acceleration", "lower", "upper"), (c,))
    braking["dt"] = ()
    if has_more:
        braking[last] = (c,)
    kept = "is_stoppable best_scale best_least"
    names = f"stop_least margin least_distance stop_scale {kept}".split()
    end = {"start": (n,), **vector, "low": (c,), "high": (c,)}
    end |= {"scale": (), "best_scale": ()}
    if has_more:
        end[last] = (c,)
    return (
        program(
            begin,
            "start stop_scale stopping best_scale best_least",
            q=(n,),
            has_near=(),
        ),
        While(
            "stopping",
            (
                program(end_of_braking, "q stop_least", **braking),
                *twists.moving.stages,
                *_distances(approach),
                program(
                    judged, f"stop_scale stopping {kept}", **dict.fromkeys(names, ())
                ),
            ),
            TRIES + has_more,
        ),
        program(ended, "q x scale", **end),
    )


def _between(x: Any, rest: Any, scale: Any, brake: Any) -> list[Number]:
    """Return the rates that are tried with a scale of 0 to 1, or below 0 for braking.

    From a scale of 0 on they are `rest` + scale (x - `rest`).

    brake: The rates of braking; None where `rest` has them.
    """
    found = [r + scale * (v - r) for v, r in zip(x, rest, strict=True)]
    if brake is None:
        return found
    return [select(scale < 0.0, b, a) for a, b in zip(found, brake, strict=True)]


def _distances(approach: Approach) -> list[Stage]:
    """Return the stages that find the least distance of pairs that are near."""
    found: list[Stage] = []
    if approach.check is not None:
        less = {"value": (), "stop_least": ()}
        found.append(
            Each(
                "pairs",
                (
                    program(first_of, "near", pair_near=(1,)),
                    When(
                        "near",
                        (
                            Call("distance", ("X_A", "X_B"), RESULTS),
                            program(_least, "stop_least", **less),
                        ),
                    ),
                ),
            )
        )
    if approach.slots:
        ends = dict.fromkeys(("end_a", "end_b"), VECTOR)
        rod = {"rod_radius": (), "obstacle": (approach.width,), "stop_least": ()}
        place = {"rod_pose": POSE, "rod_a": VECTOR, "rod_b": VECTOR}
        meet = (
            program(first_of, "near", meeting_near=(1,)),
            When("near", (program(_least_of_rods, "stop_least", **ends, **rod),)),
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


def _least(value: Any, stop_least: Any) -> Any:
    return minimum(value, stop_least)


def _least_of_rods(
    end_a: Any, end_b: Any, rod_radius: Any, obstacle: Any, stop_least: Any
) -> Any:
    gap = gap_of_rods(end_a, end_b, rod_radius, obstacle).value
    return minimum(gap, stop_least)
