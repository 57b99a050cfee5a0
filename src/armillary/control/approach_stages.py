"""The stages that write rows which keep pairs of shapes apart.

The distance d of two shapes changes as n' (v_b - v_a) of their nearest points, with n
from a to b. It may fall by no more than `pace` times the room that is left, d - margin:
so it never passes the margin, and can be stopped before it while all joints brake.
What obstacles do by themselves goes on meanwhile: of a speed u that they come with, and
a time T of braking, u T / 2 is taken from the room.

A row is an `InequalityRow` a x >= b, with a = n' (J_b - J_a). Links are paired with
links in the table `pairs`, and capsules around links with obstacles in `contacts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from armillary.collision.nearest_stages import speeds_along
from armillary.control.columns import (
    CONTACTS_OF,
    DISTANCE,
    NO_PAIRS,
    ApproachLimit,
    InequalityRow,
    PairsSoFar,
    StepColumns,
    WorldCapsule,
)
from armillary.control.obstacle_distance import gap_to_obstacle, placed_capsule
from armillary.control.obstacles import CapsuleNumbers, obstacle_numbers
from armillary.kernel.columns import call, each, when
from armillary.kernel.stages import Stage
from armillary.kernel.tables import Table, code, span
from armillary.spatial.ldl import inner
from armillary.spatial.pose import Pose
from armillary.spatial.vector import (
    Matrix,
    Number,
    Vector,
    Vector3,
    add,
    dot,
    norm,
    scale,
    subtract,
    three,
)
from armillary.trace.functions import absolute, maximum, minimum, select

__all__ = [
    "ApproachTables",
    "approach_stages",
    "least_rise",
]

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


class ApproachTables(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The tables that the stages of pairs read.

    Attributes:
        columns: The columns of a step.
        has_pairs: Whether there are pairs of links.
        has_obstacles: Whether there is room for obstacles.
    """

    columns: StepColumns
    has_pairs: bool
    has_obstacles: bool

    @property
    def rows(self) -> Table:
        """Return the table of all inequality rows."""
        columns = self.columns
        return columns.table("rows", columns.row, columns.is_near, columns.row_number)

    @property
    def bodies(self) -> Table:
        """Return the table of spheres around shapes."""
        columns = self.columns
        return columns.table(
            "bodies", columns.body_pose, columns.body_centre, columns.body
        )

    @property
    def pairs(self) -> Table:
        """Return the table of pairs of shapes of links."""
        columns = self.columns
        spheres = columns.centre_a, columns.centre_b, columns.radii
        row = columns.pair_row, columns.pair_near, columns.pair_number
        return columns.table(
            "pairs",
            *spheres,
            *columns.group(PairSides),
            columns.pair_rates,
            code(DISTANCE),
            *row,
        )

    @property
    def capsules(self) -> Table:
        """Return the table of capsules around links."""
        columns = self.columns
        capsule = columns.capsule_a, columns.capsule_b, columns.capsule_radius
        return columns.table(
            "capsules",
            *columns.group(CapsuleLink),
            *capsule,
            columns.capsule_rates,
            span(CONTACTS_OF, "contacts"),
        )

    @property
    def contacts(self) -> Table:
        """Return the table of pairs of a capsule and an obstacle."""
        columns = self.columns
        row = columns.contact_row, columns.contact_near, columns.contact_number
        return columns.table("contacts", columns.obstacle, *row)

    @property
    def given_obstacles(self) -> Table:
        """Return the table of the obstacles that there are."""
        return self.columns.table("given_obstacles", self.columns.given_obstacle)

    @property
    def listed(self) -> tuple[Table, ...]:
        """Return all that are needed."""
        listed = [self.rows]
        if self.has_pairs:
            listed += [self.bodies, self.pairs]
        if self.has_obstacles:
            listed += [self.capsules, self.contacts, self.given_obstacles]
        return tuple(listed)


class PairSides(NamedTuple):
    """The links of a pair: their poses, and their twists per unit rate."""

    X_A: Matrix
    X_B: Matrix
    twists_a: Matrix
    twists_b: Matrix


class NearestPoints(NamedTuple):
    """The distance of a pair, its nearest points, and the direction from a to b."""

    value: Number
    points: Matrix
    normal: Vector


class CapsuleLink(NamedTuple):
    """The link of a capsule: its pose, and its twists per unit rate."""

    capsule_pose: Matrix
    capsule_twists: Matrix


class ChangingDistance(NamedTuple):
    """The distance of a pair, and how it changes.

    Attributes:
        value: The distance [m].
        slopes: By how much it rises with each column of twists [m/s per unit].
        drift: By how much it rises by the motion of an obstacle [m/s].
    """

    value: Number
    slopes: Vector
    drift: Number


def approach_stages(tables: ApproachTables) -> tuple[Stage, ...]:
    """Return the stages that write rows, and the columns of `PairsSoFar`.

    They read `speeds`, the greatest speed of each joint, `full_braking`, and the
    columns of `ApproachLimit`.
    """
    # Rows of different kinds share columns, and are numbered through.
    stages: list[Stage] = [tables.columns.stage(_begin)]
    if tables.has_pairs:
        stages += _pair_stages(tables)
    if tables.has_obstacles:
        stages += _obstacle_stages(tables)
    return tuple(stages)


def _pair_stages(tables: ApproachTables) -> list[Stage]:
    """Return the stages of pairs of links.

    Spheres around shapes tell for most pairs that they cannot come too near in this
    step, and are not the nearest; distances are computed for the others alone.
    """
    columns = tables.columns
    # What the code of a pair of shapes answers; see `collision/distance`.
    answers = columns.value, columns.gap, columns.points, columns.normal
    return [
        each(tables.bodies, columns.stage(_centre, writes=columns.body)),
        each(
            tables.pairs,
            # Spheres first, then the distance: near pairs alone cost time.
            columns.stage(_may_matter, writes=(columns.pair_near, columns.is_wanted)),
            when(
                columns.is_wanted,
                call(DISTANCE, (columns.X_A, columns.X_B), answers),
                columns.stage(
                    _pair_row, writes=(columns.pair_row, *columns.group(PairsSoFar))
                ),
            ),
        ),
    ]


def _obstacle_stages(tables: ApproachTables) -> list[Stage]:
    """Return the stages of capsules around links and obstacles."""
    columns = tables.columns
    total = columns.obstacle_sum
    # Each capsule has a contact with each obstacle that there is.
    contact = each(
        tables.contacts,
        columns.stage(_may_touch, writes=(columns.contact_near, columns.is_wanted)),
        when(
            columns.is_wanted,
            columns.stage(
                _contact_row, writes=(columns.contact_row, *columns.group(PairsSoFar))
            ),
        ),
        within=CONTACTS_OF,
    )
    return [
        columns.stage(_no_sum, writes=total),
        each(tables.given_obstacles, columns.stage(_added, writes=total)),
        each(tables.capsules, columns.stage(placed_capsule), contact),
    ]


def _begin(margin: Number) -> PairsSoFar:
    return PairsSoFar(NO_PAIRS + 0.0 * margin, -1.0, 0.0)


def _no_sum(margin: Number) -> Number:
    return 0.0 * margin


def _added(given_obstacle: Vector, obstacle_sum: Number) -> Number:
    """Return the sum of all numbers of obstacles, which tells whether one is NaN."""
    return sum(given_obstacle, obstacle_sum)


def _centre(body_pose: Matrix, body_centre: Vector) -> Vector3:
    return Pose.from_matrix(body_pose) @ three(body_centre)


def _may_matter(
    centre_a: Vector,
    centre_b: Vector,
    radii: Number,
    pair_rates: Vector,
    speeds: Vector,
    limit: ApproachLimit,
    least_distance: Number,
) -> tuple[Vector, Number]:
    """Return whether a pair of links matters, from spheres around them."""
    # |c_a - c_b| - r_a - r_b is a lower bound of the distance.
    between = norm(subtract(three(centre_a), three(centre_b)))
    return _matters(between - radii, pair_rates, speeds, limit, least_distance)


def _may_touch(
    capsule: WorldCapsule,
    capsule_rates: Vector,
    obstacle: Vector,
    speeds: Vector,
    limit: ApproachLimit,
    least_distance: Number,
) -> tuple[Vector, Number]:
    """Return whether a capsule and an obstacle matter, from spheres around them."""
    # Spheres around both segments: their centres and half of their lengths.
    a, b = three(capsule.end_a), three(capsule.end_b)
    middle, own = scale(0.5, add(a, b)), 0.5 * norm(subtract(b, a))
    numbers = obstacle_numbers(obstacle)
    if isinstance(numbers, CapsuleNumbers):
        p, q = map(three, numbers.ends)
        centre, other = scale(0.5, add(p, q)), 0.5 * norm(subtract(q, p))
    else:  # half of the diagonal of a box
        centre, other = three(numbers.centre), norm(three(numbers.half))
    between = norm(subtract(middle, centre))
    bound = between - own - other - capsule.capsule_radius - numbers.radius
    # The obstacle counts as one more joint, with its speed as the rate.
    speed = norm(three(numbers.velocity))
    return _matters(
        bound, [*capsule_rates, 1.0], [*speeds, speed], limit, least_distance, speed
    )


def _matters(
    bound: Number,
    rates: Vector,
    speeds: Vector,
    limit: ApproachLimit,
    least: Number,
    drift: Number = 0.0,
) -> tuple[Vector, Number]:
    """Return whether a pair can come too near, and whether its distance is wanted.

    The row of a pair counts if the greatest rates can break it: if the pair approaches
    faster than pace times the room that a lower bound of the distance leaves. The
    distance is wanted for that, and where it may be the least of all.

    Args:
        bound: A lower bound of the distance [m].
        rates: Greatest approach per unit rate of joints.
        speeds: Greatest rates.
        limit: How fast pairs may approach.
        least: The least distance so far [m].
        drift: The greatest speed that does not end with braking [m/s].
    """
    # The greatest approach that rates within bounds can have.
    fastest = inner(list(rates), list(speeds))
    room = maximum(bound - limit.margin, 0.0)
    room = maximum(room - 0.5 * limit.braking_time * drift, 0.0)
    is_near = select(fastest < limit.pace * room, 0.0, 1.0)
    # Below 0 distances are penetrations, of which bounds by spheres say nothing.
    so_far = select(least < 0.0, 0.0, least)
    return [is_near], select(bound < so_far, 1.0, is_near)


def _pair_row(
    sides: PairSides,
    nearest: NearestPoints,
    pair_number: Number,
    velocity: Vector,
    limit: ApproachLimit,
    full_braking: Vector,
    so_far: PairsSoFar,
) -> tuple[InequalityRow, PairsSoFar]:
    """Return the row of a pair of links."""
    # d' = n'(v_b - v_a): the velocities of the nearest points along the normal.
    n = three(nearest.normal)
    point_a, point_b = (three(point) for point in nearest.points)
    approach = zip(
        speeds_along(sides.X_A, sides.twists_a, point_a, n),
        speeds_along(sides.X_B, sides.twists_b, point_b, n),
        strict=True,
    )
    distance = ChangingDistance(nearest.value, [b - a for a, b in approach], 0.0)
    return _row(distance, pair_number, velocity, limit, full_braking, so_far)


def _contact_row(
    link: CapsuleLink,
    capsule: WorldCapsule,
    obstacle: Vector,
    contact_number: Number,
    velocity: Vector,
    limit: ApproachLimit,
    full_braking: Vector,
    so_far: PairsSoFar,
) -> tuple[InequalityRow, PairsSoFar]:
    """Return the row of a capsule and an obstacle, whose normal leads to the link."""
    # The normal leads from the obstacle to the link, so that only the link has J.
    gap = gap_to_obstacle(capsule, obstacle)
    slopes = speeds_along(link.capsule_pose, link.capsule_twists, gap.point, gap.normal)
    velocity_of = three(obstacle_numbers(obstacle).velocity)
    drift = 0.0 - dot(velocity_of, gap.normal)
    distance = ChangingDistance(gap.value, slopes, drift)
    return _row(distance, contact_number, velocity, limit, full_braking, so_far)


def _row(
    distance: ChangingDistance,
    number: Number,
    velocity: Vector,
    limit: ApproachLimit,
    full_braking: Vector,
    so_far: PairsSoFar,
) -> tuple[InequalityRow, PairsSoFar]:
    """Return a row, and what is known so far.

    Where joints can change a distance by hardly anything, as where links turn about an
    axis of symmetry, its row is rounding: it is 0, and b is far below.

    Args:
        distance: The distance and its slopes.
        number: The number of the pair.
        velocity: Limits of rates.
        limit: How fast pairs may approach.
        full_braking: The rates of maximum braking.
        so_far: What is known of the pairs before.
    """
    value, slopes, drift = distance
    c = len(velocity)
    # The greatest speed at which joints can change the distance at all.
    able = inner(
        [absolute(a) for a in slopes[:c]], [minimum(v, FASTEST) for v in velocity]
    )
    is_able = able > UNABLE
    # Joints that are not moved here add a last column, with their rates in it.
    still = drift + (slopes[c] if len(slopes) > c else 0.0)
    # An obstacle goes on while joints brake: half of the braking time, as these do.
    room = value - limit.margin - 0.5 * limit.braking_time * maximum(0.0 - drift, 0.0)
    a = [select(is_able, slope, 0.0) for slope in slopes[:c]]
    wanted = least_rise(a, room, still, limit.pace)
    # A row that joints cannot meet must not make the program infeasible.
    wanted = select(is_able, wanted, 0.0 - NO_PAIRS)
    # A pair inside the margin that joints cannot move is to be reported, too.
    breaks = inner(a, list(full_braking)) < wanted - BROKEN
    strains = select(breaks, 1.0, select(is_able, 0.0, select(room < 0.0, 1.0, 0.0)))
    is_less = value < so_far.least_distance
    row = InequalityRow.of(slopes=a, bound=wanted, still=still, room=room)
    return row, PairsSoFar(
        select(is_less, value, so_far.least_distance),
        select(is_less, number, so_far.nearest),
        maximum(strains, so_far.is_strained),
    )


def least_rise(
    slopes: Sequence[Number], room: Number, still: Number, pace: Number
) -> Number:
    """Return b of a pair: the least speed at which joints raise its distance [m/s].

    Outside of the margin it is -pace room. Inside, min(-pace room, AWAY) is scaled by
    s^2 / (s^2 + FLAT^2), where s is the slope of the distance by joints: so b vanishes
    where the distance is greatest, and joints come to rest there.

    Args:
        slopes: By how much its distance rises with each joint.
        room: The distance beyond the margin [m].
        still: By how much the distance rises without the joints [m/s].
        pace: The gain of the velocity damper [1/s].
    """
    limit = 0.0 - pace * room
    # s^2 / (s^2 + FLAT^2) fades where no joint changes the distance.
    square = inner(list(slopes), list(slopes))
    away = minimum(limit, AWAY) * square / (square + FLAT * FLAT)
    return select(room < 0.0, away, limit) - still
