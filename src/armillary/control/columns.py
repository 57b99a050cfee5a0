"""The columns of a step of a controller: what its stages read and write.

Sizes: n joints of the cell, of which c are moved; C columns of twists, one more than c
if the others move too; R rows of all `tasks` that have rows, m of one task; `levels` of
priority. A task is numbered, k, by its place in the list of tasks. There is `room` for
inequality rows, each of `row` numbers, and `slots` for obstacles, each of `width`
numbers, see `obstacles.py`; `passive` joints are moved by loops. A symmetric matrix of
c rows has `half` numbers, those of its lower half.

A formula reads a column by a parameter of that name, and writes one by a field of the
`NamedTuple` that it returns; see `kernel/columns.py`. Groups of columns that several
formulas read together are at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from armillary.collision.columns import CENTRES
from armillary.ik.scaled_rates import RATE, RateColumns, RateRow
from armillary.kernel.columns import Column, Numbered
from armillary.kernel.packed import Part
from armillary.kinematics.moving_links import POSES
from armillary.kinematics.moving_twists import TWISTS, MovingTwists
from armillary.spatial.vector import Matrix, Number, Vector

__all__ = [
    "CONTACTS_OF",
    "DISTANCE",
    "NO_PAIRS",
    "POSE",
    "SETTINGS",
    "STUCK",
    "TINY",
    "VECTOR",
    "ActiveConstraints",
    "ApproachLimit",
    "InequalityRow",
    "PairsSoFar",
    "PositionLimits",
    "StepColumns",
    "WorldCapsule",
]

POSE: Final = (3, 4)
VECTOR: Final = (3,)

SETTINGS: Final = "settings"
"""The table with one record: limits of joints, gains, weights, settings of tasks."""

STUCK: Final = 4
"""How many pairs that cannot be separated are named."""

TINY: Final = 1e-300
"""The least divisor: it keeps quotients finite."""

NO_PAIRS: Final = 1e30
"""The least distance where no pair is tested [m]."""

DISTANCE: Final = "distance"
"""The field with the code of the distance of a pair of links."""

CONTACTS_OF: Final = "contacts_of"
"""The field with the contacts of a capsule."""

ROWS: Final = "approach_rows"
NEARS: Final = "approach_nears"
OBSTACLES: Final = "obstacles"
MASS_ROWS: Final = "mass_rows"
MADE_ROWS: Final = "made_rows"
"""Columns of this module that fields of tables are positions in."""

PLACE: Final = "rad or m"


class InequalityRow(RateRow):
    """An inequality a x >= b of rates: of a pair, a contact or a limit of torques.

    With a of a pair, its distance rises by a x + `still`. Rows of torques have no room
    and nothing that is still: these are 0.
    """

    still = Part("by how much the distance rises without the joints", unit="m/s")
    room = Part("the distance beyond the margin, less what obstacles take", unit="m")


class StepColumns(RateColumns):
    """The columns of a step, and the fields of its tables."""

    # What a call gives
    q = Column("positions of all joints; of the stopping path too", "n", unit=PLACE)
    qd = Column("rates of all joints in the step before", "n", unit=RATE)
    target = Numbered("target of task k", "target")
    target_rate = Numbered("derivative of that target by time", "rate")
    obstacles = Column("numbers of all obstacles", "slots", "width")
    mass_rows = Column("row of the mass matrix, and bias torque, of joints", "c", "n+1")
    passive = Column("positions of the joints that loops move", "passive", unit=PLACE)

    # Settings of the controller, one record
    lower = Column("least positions", "c", unit=PLACE)
    upper = Column("greatest positions", "c", unit=PLACE)
    velocity = Column("greatest rates", "c", unit=RATE)
    acceleration = Column("greatest changes of rates", "c", unit="rad/s^2 or m/s^2")
    dt = Column("length of a step", unit="s")
    most_pace = Column("gain of the velocity damper", unit="1/s")
    margin = Column("distance that pairs keep", unit="m")
    weights = Column("diagonal of W of all tasks", "R")
    judged = Column("1 for rows that count in the reason", "R")
    priority_level = Column("level of priority of each row, from 0", "R")
    firm_weights = Column("weights of rows while lower levels are solved", "R")
    gain = Numbered("rate at which errors of task k decay", unit="1/s")

    # Settings of tasks
    pose = Numbered("pose of the link of the frame of task k", *POSE, into=POSES)
    twists = Numbered("twists of that link", 6, "C", into=TWISTS)
    offset = Numbered("pose of the frame in that link", *POSE)
    base_pose = Numbered(
        "pose of the link of what it is relative to", *POSE, into=POSES
    )
    base_twists = Numbered("twists of that link", 6, "C", into=TWISTS)
    base_offset = Numbered("pose of that frame in that link", *POSE)
    most = Numbered("greatest speed and angular speed that errors ask for", 2)
    axis = Numbered("axis in the frame, a unit vector", 3)
    counts = Numbered("weight of each joint in a posture", "c")
    factors = Numbered("factor of each joint in a coupling", "n")

    # Moving links that have a mass, in a table
    mass_pose = Column("pose of a link", *POSE, into=POSES)
    mass_twists = Column("twists of that link", 6, "C", into=TWISTS)
    share = Column("part of the mass of all links")
    mass_centre = Column("centre of mass in that link", 3, unit="m")
    centre = Numbered("centre of mass of all links, summed", 3, unit="m")
    centre_rates = Numbered("velocity of that per unit rate", 3, "C")
    bends = Numbered("second derivative of that by each joint", 3, "C")

    # What tasks request
    rows = Numbered("J of task k", "m", "c")
    wanted = Numbered("v of task k: requested values of J x", "m")
    diagonal = Numbered("weights of joints, of a posture", "c")
    spare = Numbered("what tasks leave free of its rates", "c", unit=RATE)
    pull = Numbered("rates that a posture requests", "c", unit=RATE)
    curvature = Numbered("second derivatives of what J is the gradient of", "m", "c")
    missing = Numbered("W r, of what task k misses by itself", "m")
    is_missing = Column("1 where a task misses much of its request")
    stiffness = Column("diagonal of S, for each level", "levels", "c")
    request_sum = Column("sum of all requests: NaN where one is")

    # Bounds of rates
    braking_time = Column("time of maximum braking from the present rates", unit="s")
    pace = Column("part of its room that a pair may lose per time", unit="1/s")
    full_braking = Column("rates of maximum braking by accelerations", "c", unit=RATE)
    speeds = Column("greatest rates of all joints in this step", "n", unit=RATE)
    passed = Column("above 0 where a joint will pass a limit, or torques are missed")
    sources = Column("which limits bounds of rates come from", "c")
    below = Column("distance of joints from their lower limits", "c", unit=PLACE)
    above = Column("distance of joints from their upper limits", "c", unit=PLACE)

    # Inequality rows, of pairs and of torques
    approach_rows = Column("rows of pairs, contacts and torques", "room", "row")
    approach_nears = Column("above 0 for rows that count", "room", 1)
    row = Column("the row, see `InequalityRow`", "row", into=ROWS)
    is_near = Column("above 0 where the row counts", 1, into=NEARS)

    # Pairs of links, in tables: spheres around shapes, then the shapes
    body_pose = Column("pose of the link of a shape", *POSE, into=POSES)
    body_centre = Column("centre of the sphere around it, in the link", 3, unit="m")
    body = Column("that centre in the world", 3, unit="m", into=CENTRES)
    centre_a = Column("centre of the sphere around shape a", 3, unit="m", into=CENTRES)
    centre_b = Column("centre of the sphere around shape b", 3, unit="m", into=CENTRES)
    radii = Column("sum of their radii", unit="m")
    X_A = Column("pose of the link of shape a", *POSE, into=POSES)
    X_B = Column("pose of the link of shape b", *POSE, into=POSES)
    twists_a = Column("twists of the link of shape a", 6, "C", into=TWISTS)
    twists_b = Column("twists of the link of shape b", 6, "C", into=TWISTS)
    pair_rates = Column("greatest approach of the pair per unit rate", "n")
    pair_row = Column("the row of the pair", "row", into=ROWS)
    pair_near = Column("above 0 where that row counts", 1, into=NEARS)
    pair_number = Column("the number of the pair")
    value = Column("distance of two shapes", unit="m")
    gap = Column("what the distance code answers beside that", unit="m")
    points = Column("nearest points of a and b, in the world", 2, 3, unit="m")
    normal = Column("unit vector from a to b", 3)

    # Capsules around links and obstacles, in tables
    capsule_pose = Column("pose of the link of a capsule", *POSE, into=POSES)
    capsule_twists = Column("twists of that link", 6, "C", into=TWISTS)
    capsule_a = Column("one end of its segment, in the link", 3, unit="m")
    capsule_b = Column("the other end", 3, unit="m")
    capsule_radius = Column("its radius", unit="m")
    capsule_rates = Column("greatest speed of its points per unit rate", "n")
    end_a = Column("one end of the segment in the world", 3, unit="m")
    end_b = Column("the other end", 3, unit="m")
    obstacle = Column("numbers of an obstacle", "width", into=OBSTACLES)
    contact_row = Column("the row of a capsule and an obstacle", "row", into=ROWS)
    contact_near = Column("above 0 where that row counts", 1, into=NEARS)
    contact_number = Column("the number of that pair")
    given_obstacle = Column(
        "numbers of one of the obstacles that there are", "width", into=OBSTACLES
    )
    obstacle_sum = Column("sum of those of all: NaN where one is")

    # What distances say
    is_wanted = Column("above 0 where the distance of a pair is computed")
    least_distance = Column("the least distance of all pairs", unit="m")
    nearest = Column("the number of that pair; -1 for none")
    is_strained = Column("above 0 where maximum braking breaks a row")

    # Limits of torques, in a table with two records for each joint
    mass_row = Column(
        "row of the mass matrix, and the bias torque", "n+1", into=MASS_ROWS
    )
    torque_side = Column("1 for the lower limit, -1 for the upper")
    torque = Column("the greatest torque", unit="N m or N")
    torque_row = Column("the row of that limit", "row", into=ROWS)
    torque_near = Column("above 0 where that row counts", 1, into=NEARS)
    torque_excess = Column("by how much the rates miss rows of torques, at most")
    braking = Column("the hardest braking that torques allow", "c", unit=RATE)
    braking_part = Column("part of full braking that torques allow")

    # Limits that couple joints, in settings; rows of them, in a table
    coupled_slopes = Column("a of limits a'q <= b, of all joints", "coupled", "n")
    coupled_ends = Column("b of them", "coupled")
    coupled_joints = Column("1 for joints that they couple", "c")
    made_rows = Column("their rows", "coupled", "row")
    made_row = Column("one of them", "row", into=MADE_ROWS)
    coupled_row = Column("the row of that limit among all rows", "row", into=ROWS)
    coupled_near = Column("above 0 where that row counts", 1, into=NEARS)
    coupled_scale = Column("part of the way from braking that these limits allow")

    # Pairs inside the margin
    separating = Column("rates that meet all rows", "c", unit=RATE)
    stuck = Column("numbers of inseparable pairs, -1 for none", STUCK)
    broken_rows = Column("how many rows of pairs `separating` broke before")
    unmet_rows = Column("how many it breaks now")
    easing = Column("above 0 while fewer may be broken")
    broken_slopes = Column("slopes of a row", 1, "c")
    broken_counts = Column("1 where that is of a pair and broken, else 0", 1)
    broken_wanted = Column("the rise of the distance that it requires", 1)

    # The quadratic program: 1/2 x'H x + g'x least, H = C C', x = C'^-1 w
    hessian = Column("H, its lower half row by row", "half")
    gradient = Column("g", "c")
    ridge = Column("what is added to the diagonal of H", "c")
    factor = Column("C, likewise, with 1 over its diagonal", "half")
    w = Column("x in the space where the distance is the plain one", "c")
    normals = Column("normals of active constraints in that space", "c", "c")
    multipliers = Column("how much active constraints press", "c")
    worst = Column("by how much a constraint is missed, at most: below 0")
    worst_row = Column("a of that constraint", "c")
    worst_number = Column("its number")
    entering_normal = Column("normal of the constraint that enters", "c")
    entering = Column("its number")
    pressure = Column("its multiplier")
    scanning = Column("above 0 where the next constraint is looked for")

    # Levels of priority, one after another
    level_weights = Column("weights of all rows in this iteration", "R")
    level_stiffness = Column("the stiffness that counts in it", "c")
    goal = Column("what J x is to be", "R")
    iteration = Column("its number: level k has 2 k - 1 and 2 k")
    has_level = Column("above 0 while levels are left")

    # Rates in the direction of a task
    across = Numbered("J of task k, without the direction of v", "m", "c")
    across_weights = Numbered("weights of its rows", "m")
    across_wanted = Numbered("what they are to reach: 0", "m")
    is_aside = Column("1 where rates that separate pairs are not along the direction")
    touched = Column("number of the row that x is nearest to, -1 for none")
    nearest_part = Column("how far x is from that row, in parts of its size")
    holding = Column("numbers of the constraints that hold x", "2c+1")
    holding_pressures = Column("how much each presses", "2c+1")
    tasks_scale = Column("scale of the first task")

    # Rates from which joints can stop in time
    scale = Column("part of the way from braking to the best rates")
    is_stoppable = Column("above 0 where motion stops before the margin")
    has_near = Column("above 0 where a pair is near")
    brake_way = Column("braking, as far as limits let joints go", "c", unit=RATE)
    full_way = Column("the best rates, likewise", "c", unit=RATE)
    brake_reach = Column("how far a unit of speed goes while braking", unit="s")
    full_reach = Column("how far it goes from either rates", unit="s")
    start = Column("q before the stopping path", "n", unit=PLACE)
    stop_scale = Column("the scale that is tried; below 0 for braking")
    stopping = Column("above 0 while there are scales to try")
    stop_least = Column("least distance where the stopping path ends", unit="m")
    best_scale = Column("the scale that ends best")
    best_least = Column("the least distance with that", unit="m")

    # What a step answers
    reason = Column("a number of `RateReason`")
    answer = Column("all numbers of the answer, see `Step`", "answer")

    @classmethod
    def for_step(
        cls, twists: MovingTwists, levels: Sequence[int], **sizes: int
    ) -> StepColumns:
        """Return the columns of a step.

        Args:
            twists: Of the moving links.
            levels: The level of priority of each row of tasks.
            sizes: Others: the number of `tasks` that have rows; the `room` for
                inequality rows; that of rows of `coupled` limits; with obstacles their
                `slots`, and the `width` of the numbers of each.
        """
        n, c, R = twists.moving.joints, len(twists.joints), len(levels)
        return cls(
            **cls.sizes_of_program(c),
            **{"n": n, "n+1": n + 1, "C": twists.columns, "R+c": R + c},
            R=R,
            levels=max(levels, default=0) + 1,
            passive=len(twists.moving.selection.passive),
            **sizes,
        )

    @staticmethod
    def sizes_of_program(c: int) -> dict[str, int]:
        """Return the sizes of a quadratic program of c rates."""
        half = c * (c + 1) // 2
        row = InequalityRow.size(c=c)
        return {"c": c, "2c+1": 2 * c + 1, "half": half, "row": row}


# Columns that several formulas read together


class ApproachLimit(NamedTuple):
    """How fast pairs may approach: the velocity damper.

    Attributes:
        pace: Part of its room that a pair may lose per time [1/s].
        margin: The distance that pairs keep [m].
        braking_time: How long maximum braking takes [s].
    """

    pace: Number
    margin: Number
    braking_time: Number


class PairsSoFar(NamedTuple):
    """What the rows of pairs say together, while one after another is computed.

    Attributes:
        least_distance: The least distance [m].
        nearest: The number of that pair.
        is_strained: Above 0 where maximum braking breaks a row.
    """

    least_distance: Number
    nearest: Number
    is_strained: Number


class WorldCapsule(NamedTuple):
    """A capsule of a link in the world: the ends of its segment and its radius [m]."""

    end_a: Vector
    end_b: Vector
    capsule_radius: Number


class ActiveConstraints(NamedTuple):
    """The constraints that hold x in the active-set method, one in each of c slots.

    Attributes:
        normals: Their normals.
        multipliers: How much they press.
        slots: Their numbers, -1 for none.
    """

    normals: Matrix
    multipliers: Vector
    slots: Vector


class PositionLimits(NamedTuple):
    """Limits of positions, and greatest changes of rates."""

    lower: Vector
    upper: Vector
    acceleration: Vector
