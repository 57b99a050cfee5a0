"""The stages that write rows which keep pairs of shapes apart.

The distance d of two shapes changes as n' (v_b - v_a) of their nearest points, with n
from a to b. It may fall by no more than `pace` times the room that is left, d - margin:
so it never passes the margin, and can be stopped before it while all joints brake.
What obstacles do by themselves goes on meanwhile: of a speed u that they come with, and
a time T of braking, u T / 2 is taken from the room.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from armillary.control.obstacle_distance import gap_of_rods, placed_rod
from armillary.control.obstacles import OBSTACLE
from armillary.kernel.pipeline import Call, Each, Stage, When, program
from armillary.kinematics.moving_twists import MovingTwists
from armillary.spatial.ldl import inner
from armillary.spatial.pose import Pose
from armillary.spatial.vector import (
    Number,
    Vector3,
    add,
    cross,
    dot,
    norm,
    scale,
    subtract,
    three,
)
from armillary.trace import Port
from armillary.trace.functions import absolute, maximum, minimum, select

__all__ = [
    "NO_PAIRS",
    "POSE",
    "RESULTS",
    "VECTOR",
    "approach_stages",
    "least_rise",
]

POSE: Final = (3, 4)
VECTOR: Final = (3,)

AWAY: Final = 0.1
"""Greatest speed at which pairs nearer than the margin are pushed apart [m/s]."""

FLAT: Final = 0.05
"""Slope of a distance by joints below which its pair is separated more slowly [m]."""

BROKEN: Final = 1e-9
"""By how much braking may miss a row by rounding [m/s]."""

UNABLE: Final = 1e-5
"""Speed below which joints cannot move a pair [m/s]: what remains is rounding."""

FASTEST: Final = 1e6
"""What counts as the speed of joints that have no limit [m/s or rad/s]."""

NO_PAIRS: Final = 1e30
"""The least distance where no pair is tested [m]."""

RESULTS: Final = (
    Port("value", ()),
    Port("gap", ()),
    Port("points", (2, 3)),
    Port("normal", VECTOR),
)


def approach_stages(
    twists: MovingTwists, *, has_pairs: bool, width: int
) -> tuple[Stage, ...]:
    """Return the stages that write rows, `least_distance`, `nearest`, `is_strained`.

    They read `speeds`, the greatest speed of each joint, `pace`, `margin` and `rest`.
    `is_strained` is above 0 where braking, `rest`, breaks a row.

    Args:
        twists: Of the moving links.
        has_pairs: Whether there are pairs of links.
        width: How many numbers each obstacle has; 0 where there are none.
    """
    c, n = len(twists.joints), twists.moving.joints
    V = (6, twists.columns)
    common = {"pace": (), "margin": (), "braking_time": ()}
    known = {"rest": (c,), "least_distance": (), "nearest": (), "is_strained": ()}
    names = "least_distance nearest is_strained"
    found: list[Stage] = [program(_begin, names, margin=())]
    if has_pairs:
        near = {"speeds": (n,), **common, "least_distance": ()}
        row = {**common, **known}
        found += [
            Each(
                "bodies",
                (program(_centre, "body", body_pose=POSE, body_centre=VECTOR),),
            ),
            Each(
                "pairs",
                (
                    program(
                        _may_matter,
                        "pair_near is_wanted",
                        centre_a=VECTOR,
                        centre_b=VECTOR,
                        radii=(),
                        pair_rates=(n,),
                        **near,
                    ),
                    When(
                        "is_wanted",
                        (
                            Call("distance", ("X_A", "X_B"), RESULTS),
                            program(
                                _pair_row,
                                f"pair_row {names}",
                                X_A=POSE,
                                X_B=POSE,
                                twists_a=V,
                                twists_b=V,
                                value=(),
                                points=(2, 3),
                                normal=VECTOR,
                                pair_number=(),
                                velocity=(c,),
                                **row,
                            ),
                        ),
                    ),
                ),
            ),
        ]
    if width:
        given = {"given_obstacle": (width,), "obstacle_sum": ()}
        found += [
            program(_no_sum, "obstacle_sum", margin=()),
            Each("given_obstacles", (program(_added, "obstacle_sum", **given),)),
        ]
        near = {"speeds": (n,), **common, "least_distance": ()}
        placed = {"end_a": VECTOR, "end_b": VECTOR}
        found.append(
            Each(
                "rods",
                (
                    program(
                        placed_rod,
                        "end_a end_b",
                        rod_pose=POSE,
                        rod_a=VECTOR,
                        rod_b=VECTOR,
                    ),
                    Each(
                        "meetings",
                        (
                            program(
                                _may_meet,
                                "meeting_near is_wanted",
                                **placed,
                                rod_radius=(),
                                rod_rates=(n,),
                                obstacle=(width,),
                                **near,
                            ),
                            When(
                                "is_wanted",
                                (
                                    program(
                                        _meeting_row,
                                        f"meeting_row {names}",
                                        rod_pose=POSE,
                                        rod_twists=V,
                                        **placed,
                                        rod_radius=(),
                                        obstacle=(width,),
                                        meeting_number=(),
                                        velocity=(c,),
                                        **common,
                                        **known,
                                    ),
                                ),
                            ),
                        ),
                        within="of_rod",
                    ),
                ),
            )
        )
    return tuple(found)


def _begin(margin: Any) -> Any:
    return NO_PAIRS + 0.0 * margin, -1.0, 0.0


def _no_sum(margin: Any) -> Any:
    return 0.0 * margin


def _added(given_obstacle: Any, obstacle_sum: Any) -> Any:
    """Return the sum of all numbers of obstacles, which tells whether one is NaN."""
    return sum(given_obstacle, obstacle_sum)


def _centre(body_pose: Any, body_centre: Any) -> Any:
    return Pose.from_matrix(body_pose) @ three(body_centre)


def _may_matter(  # noqa: PLR0913, PLR0917
    centre_a: Any,
    centre_b: Any,
    radii: Any,
    pair_rates: Any,
    speeds: Any,
    pace: Any,
    margin: Any,
    braking_time: Any,
    least: Any,
) -> Any:
    """Return whether a pair can come too near, and whether its distance is wanted."""
    between = norm(subtract(three(centre_a), three(centre_b)))
    return _matters(
        between - radii, pair_rates, speeds, pace, margin, braking_time, least
    )


def _matters(
    bound: Number,
    rates: Any,
    speeds: Any,
    pace: Any,
    margin: Any,
    braking_time: Any,
    least: Any,
    drift: Number = 0.0,
) -> Any:
    """Return that from a lower bound of the distance.

    drift: The greatest speed that does not end with braking [m/s].
    """
    fastest = inner(list(rates), list(speeds))
    room = maximum(bound - margin, 0.0)
    room = maximum(room - 0.5 * braking_time * drift, 0.0)
    is_near = select(fastest < pace * room, 0.0, 1.0)
    so_far = select(least < 0.0, 0.0, least)
    return [is_near], select(bound < so_far, 1.0, is_near)


def _pair_row(  # noqa: PLR0913, PLR0917
    X_A: Any,
    X_B: Any,
    twists_a: Any,
    twists_b: Any,
    value: Any,
    points: Any,
    normal: Any,
    number: Any,
    velocity: Any,
    *known: Any,
) -> Any:
    n = three(normal)
    moved = [
        b - a
        for a, b in zip(
            _along(X_A, twists_a, three(points[0]), n),
            _along(X_B, twists_b, three(points[1]), n),
            strict=True,
        )
    ]
    return _finished(moved, 0.0, value, number, velocity, *known)


def _along(X: Any, twists: Any, point: Vector3, n: Vector3) -> list[Number]:
    """Return the velocity of a point of a link along a direction, by each column."""
    origin = three([X[k][3] for k in range(3)])
    moment = cross(subtract(point, origin), n)
    wrench = [*n, *moment]
    return [
        sum((f * row[j] for f, row in zip(wrench, twists, strict=True)), 0.0)
        for j in range(len(twists[0]))
    ]


def _finished(  # noqa: PLR0913, PLR0917
    moved: list[Number],
    drift: Number,
    value: Number,
    number: Number,
    velocity: Any,
    pace: Number,
    margin: Number,
    braking_time: Number,
    brake: Any,
    least: Number,
    nearest: Number,
    is_strained: Number,
) -> Any:
    """Return a row a x >= b with what b is made of, and what is known so far.

    Behind a come b, by how much the distance rises without x [m/s], and the room [m].
    Where joints can change a distance by hardly anything, as where links turn about an
    axis of symmetry, its row is rounding: it is 0, and b is far below.
    """
    c = len(velocity)
    able = inner(
        [absolute(a) for a in moved[:c]], [minimum(v, FASTEST) for v in velocity]
    )
    is_able = able > UNABLE
    rest = drift + (moved[c] if len(moved) > c else 0.0)
    room = value - margin - 0.5 * braking_time * maximum(0.0 - drift, 0.0)
    row = [select(is_able, a, 0.0) for a in moved[:c]]
    wanted = least_rise(row, room, rest, pace)
    wanted = select(is_able, wanted, 0.0 - NO_PAIRS)
    # A pair inside the margin that joints cannot move is to be reported, too.
    breaks = inner(row, list(brake)) < wanted - BROKEN
    strains = select(breaks, 1.0, select(is_able, 0.0, select(room < 0.0, 1.0, 0.0)))
    is_less = value < least
    return (
        [*row, wanted, rest, room],
        select(is_less, value, least),
        select(is_less, number, nearest),
        maximum(strains, is_strained),
    )


def least_rise(
    row: Sequence[Number], room: Number, rest: Number, pace: Number
) -> Number:
    """Return b of a pair: the least speed at which joints raise its distance [m/s].

    Outside of the margin it is -pace room. Inside, min(-pace room, AWAY) is scaled by
    s^2 / (s^2 + FLAT^2), where s is the slope of the distance by joints: so b vanishes
    where the distance is greatest, and joints come to rest there.

    Args:
        row: By how much its distance rises with each joint.
        room: The distance beyond the margin [m].
        rest: By how much the distance rises without the joints [m/s].
        pace: The gain of the velocity damper [1/s].
    """
    limit = 0.0 - pace * room
    square = inner(list(row), list(row))
    away = minimum(limit, AWAY) * square / (square + FLAT * FLAT)
    return select(room < 0.0, away, limit) - rest


def _may_meet(  # noqa: PLR0913, PLR0917
    end_a: Any,
    end_b: Any,
    rod_radius: Any,
    rod_rates: Any,
    obstacle: Any,
    speeds: Any,
    pace: Any,
    margin: Any,
    braking_time: Any,
    least: Any,
) -> Any:
    a, b = three(end_a), three(end_b)
    middle, own = scale(0.5, add(a, b)), 0.5 * norm(subtract(b, a))
    p, q = three(obstacle[:3]), three(obstacle[3:6])
    if len(obstacle) == OBSTACLE:
        centre, other = scale(0.5, add(p, q)), 0.5 * norm(subtract(q, p))
    else:
        centre, other = p, norm(q)
    between = norm(subtract(middle, centre))
    bound = between - own - other - rod_radius - obstacle[9]
    speed = norm(three(obstacle[6:9]))
    fastest = [*rod_rates, 1.0]
    return _matters(
        bound, fastest, [*speeds, speed], pace, margin, braking_time, least, speed
    )


def _meeting_row(
    rod_pose: Any,
    rod_twists: Any,
    end_a: Any,
    end_b: Any,
    rod_radius: Any,
    obstacle: Any,
    number: Any,
    velocity: Any,
    *known: Any,
) -> Any:
    gap = gap_of_rods(end_a, end_b, rod_radius, obstacle)
    moved = _along(rod_pose, rod_twists, gap.point, gap.normal)
    drift = 0.0 - dot(three(obstacle[6:9]), gap.normal)
    return _finished(moved, drift, gap.value, number, velocity, *known)
