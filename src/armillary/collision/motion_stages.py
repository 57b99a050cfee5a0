"""The pipeline that proves motions free of collision.

A motion is straight in joint positions: q = q0 + t (q1 - q0). Two links whose distance
is d, and whose points can approach each other by no more than w while t grows by 1,
cannot touch before t + d / w. So t moves on by the least such step of all pairs until
it is 1, or until a pair is as near as makes no difference (conservative advancement:
Mirtich, "Impulse-based dynamic simulation of rigid body systems", 1996).
"""

from __future__ import annotations

from typing import Any, Final

from armillary.collision.check_stages import (
    CENTRES,
    SHAPE_PAIRS,
    SPHERE_PAIRS,
    SPHERES,
    least_of_near_stages,
    limits,
    link_pairs,
    placed_stages,
    program,
    square,
)
from armillary.kernel.pipeline import Each, Pipeline, Stage, When, While
from armillary.kernel.tables import reals
from armillary.kinematics.moving_links import MovingLinks
from armillary.spatial.vector import Number
from armillary.trace import Port
from armillary.trace.functions import absolute, maximum, minimum, select, sqrt

__all__ = ["motion_pipeline"]

LIMIT: Final = 5_000
"""Most steps of a motion; beyond, it is not proven."""

LEAST_STEP: Final = 1e-9
"""Steps below this part of a motion prove nothing."""

VECTOR: Final = (3,)


def motion_pipeline(moving: MovingLinks, spheres: int) -> Pipeline:
    """Return the pipeline from the ends q0 and q1 of motions to how far they are free.

    Its results are `t`, up to which a motion is proven to be free, and `touching`, 1 if
    links touch there.

    Args:
        moving: The moving links of the cell.
        spheres: How many spheres there may be.
    """
    n = moving.joints
    ends = {"q0": (n,), "q1": (n,)}
    pair = {"link_a": VECTOR, "link_b": VECTOR, "link_reach": (), "margin": ()}
    travel = {"travel": (n,), "rates": (n,)}
    pace = {"least": (), "margin": (), "speed": (), "step": (), "gap": ()}
    exact = *least_of_near_stages(), program(_stepped, "step gap", **pace)
    end = {"t": (), "step": (), "gap": (), "rounding": (), "sound": ()}
    way: tuple[Stage, ...] = (
        program(_between, "q", t=(), **ends),
        *moving.stages,
        *placed_stages(moving),
        program(_start_step, "step gap", t=(), sound=()),
        Each(
            "link_pairs",
            (
                program(_may_meet, "near speed least", **pair, **travel, step=()),
                When("near", exact),
            ),
        ),
        program(_advance, "t going touching", **end),
    )
    return Pipeline(
        "collision_motion",
        (Port("q0", (n,)), Port("q1", (n,))),
        (
            *moving.tables,
            limits(n),
            SPHERES,
            link_pairs(reals("rates", (n,))),
            SPHERE_PAIRS,
            SHAPE_PAIRS,
        ),
        (
            program(_begin, "t going touching travel", **ends),
            Each("limits", (While("going", way, LIMIT),)),
        ),
        ("t", "touching"),
        (Port(CENTRES, (spheres, 3)),),
    )


def _begin(q0: Any, q1: Any) -> Any:
    travel = [absolute(b - a) for a, b in zip(q0, q1, strict=True)]
    return 0.0, 1.0, 0.0, travel


def _between(t: Any, q0: Any, q1: Any) -> Any:
    return [a + t * (b - a) for a, b in zip(q0, q1, strict=True)]


def _start_step(t: Any, sound: Any) -> Any:
    """Return the step to the end, and a gap that no pair has."""
    return select(sound > 0.0, 1.0 - t, 0.0), 1e30


def _may_meet(
    a: Any, b: Any, reach: Any, margin: Any, travel: Any, rates: Any, step: Any
) -> Any:
    """Return a number above 0 where links may meet within the step."""
    speed: Number = 0.0
    for way, rate in zip(travel, rates, strict=True):
        speed = speed + select(way > 0.0, way * rate, 0.0)  # a rate may be infinite
    gap = sqrt(square(a, b)) - reach - margin
    return select(step * speed < gap, 0.0, 1.0), speed, 1e30


def _stepped(least: Any, margin: Any, speed: Any, step: Any, gap: Any) -> Any:
    """Return the step that a pair allows, if it is less, and the least gap of all."""
    own = least - margin
    is_short = own < step * speed
    allowed = select(is_short, own / select(is_short, speed, 1.0), step)
    return maximum(minimum(allowed, step), 0.0), minimum(own, gap)


def _advance(t: Any, step: Any, gap: Any, rounding: Any, sound: Any) -> Any:
    is_sound, is_touching = sound > 0.0, gap <= rounding
    reached = select(is_sound & ~is_touching, minimum(t + step, 1.0), t)
    goes_on = is_sound & ~is_touching & (reached < 1.0) & (step > LEAST_STEP)
    return (
        reached,
        select(goes_on, 1.0, 0.0),
        select(is_sound & is_touching, 1.0, 0.0),
    )
