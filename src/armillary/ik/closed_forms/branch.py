"""One branch of a closed form: brought into the limits, and verified on the model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from armillary.ik.closed_forms.family import FormulaAnswer, Preferred
from armillary.ik.closed_forms.general_6r.geometry import SixAxes
from armillary.ik.closed_forms.subproblems import ZERO_TURN, Turn
from armillary.ik.problem import Goal
from armillary.ik.whole_turns import FARTHEST
from armillary.kinematics.inputs import Inputs
from armillary.model.drive import Drive
from armillary.model.link_poses import poses_of
from armillary.model.tree import Tree
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import Number, cross, dot, norm, scale, subtract
from armillary.trace.functions import floor, maximum, minimum, select

if TYPE_CHECKING:  # it imports all families
    from armillary.ik.closed_forms.recognise import Closed

DOUBT = 1e-5  # what may remain, as a part of the arm, before a miss is a proof
MADE_UP = (4.0 * 10.0) ** 2
"""Of squares: ten tolerances, each of which counts four times, make up for a miss."""
SLACK = 1e-9  # what rounding may add to an angle [rad]
MOST_SLACK = 0.01


class ArmProblem(NamedTuple):
    """What is asked, and of which arm.

    Attributes:
        tree: What moves.
        goal: Which frame the closed form places, and in which.
        selection: Which joints are found.
        limits: Least and greatest coordinate of each of those.
        closed: The closed form of these joints.
        outer: Which frame is placed, and in which, where other inputs of the selection
            lie between that goal and `goal`; see `inner_goal`.
        before: The pose of `goal.relative_to` in `outer.relative_to`.
        behind: The pose of `outer.frame` in `goal.frame`.
        rows: Limits that couple the joints: coefficients and the greatest sum of each.
        has_given_axes: Whether the axes of a `SixAxes` are inputs of its programs, too.
    """

    tree: Tree
    goal: Goal
    selection: Inputs
    limits: tuple[Sequence[float], Sequence[float]]
    closed: Closed
    outer: Goal | None = None
    before: Pose = IDENTITY
    behind: Pose = IDENTITY
    rows: Sequence[tuple[Sequence[float], float]] = ()
    has_given_axes: bool = False

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the inputs of its programs besides what is asked, by name."""
        shapes = self.selection.shapes
        if self.has_given_axes:
            shapes |= {"axes": (7, 4, 4), "scale": ()}
        return shapes

    def placed(self, values: Sequence[Any]) -> ArmProblem:
        """Return the problem with the poses that other inputs give.

        values: Those of `shapes`.
        """
        if self.has_given_axes:
            *values, axes, unit = values
            arm = self.closed.arm
            assert isinstance(arm, SixAxes)
            closed = self.closed._replace(arm=arm.given(axes, unit))
            still = self._replace(has_given_axes=False, closed=closed)
            return still.placed(values)
        if self.outer is None:
            return self
        still = [0.0] * len(self.selection.inputs)
        tree, q = self.selection.applied(self.tree, still, values)
        goal, outer = self.goal, self.outer
        (before,) = poses_of(tree, q, [goal.relative_to], outer.relative_to)
        (behind,) = poses_of(tree, q, [outer.frame], goal.frame)
        return self._replace(before=before, behind=behind)

    @property
    def numbers(self) -> tuple[Any, ...] | None:
        """Return all that decides the branches; None where the tree does, too.

        Numbers and names alone, equal for equal arms in every process: the formula is
        that of the family for the arm, and branches are verified by its geometry.
        """
        goal, selection, closed = self.goal, self.selection, self.closed
        if self.outer is not None or not closed.exact:
            return None
        return (
            (closed.family.name, closed.family.choices, closed.arm),
            (closed.backwards, closed.point),
            (goal.position, goal.rotation, goal.in_target),
            tuple(selection.rest[k] for k in selection.inputs),
            tuple(map(tuple, self.limits)),
            tuple((tuple(row), end) for row, end in self.rows),
        )

    @property
    def has_arm_angle(self) -> bool:
        """Return whether a target leaves an arm angle to choose."""
        return self.closed.family.arm_angle is not None


class Allowed(NamedTuple):
    """How exact an answer must be.

    Attributes:
        distance: Largest square of the distance that remains [m^2].
        chord: Largest square of twice the sine of half the angle that remains.
        slack: How far beyond a limit q counts as at that limit, so that no whole turn
            is added [rad].
        excess: How far beyond a limit q counts as within, to be put at the limit and
            verified there [m or rad].
    """

    distance: Number
    chord: Number
    slack: Number
    excess: Number


class CheckedBranch(NamedTuple):
    """An answer and what is true of it.

    Attributes:
        q: Joint positions [m or rad], not yet put at limits.
        distance: The square of what remains [m^2].
        chord: The square of twice the sine of half the angle that remains.
        met: Whether both are within the tolerance.
        within: Whether q is within the limits, or beyond them by the allowed excess.
        inside: Whether it is within them exactly.
        singular: Whether it is one of infinitely many answers.
        in_doubt: Whether a miss would not prove that there is no answer.
    """

    q: list[Number]
    distance: Number
    chord: Number
    met: Any
    within: Any
    inside: Any
    singular: Any
    in_doubt: Any


def branches_of(
    problem: ArmProblem,
    target: Pose,
    allowed: Allowed,
    near: Sequence[Number] | None,
    arm_angle: Number,
) -> list[CheckedBranch]:
    """Return every branch, verified by forward kinematics.

    That is of the cosines and sines that angles are written from, where the formula's
    geometry is the model's but for rounding; else it is the model's own, of q.

    Args:
        problem: What is asked.
        target: The pose to reach.
        allowed: How exact an answer must be.
        near: Within limits. Turns are added to come as near to this as the limits
            allow, and an angle that a singularity leaves free is taken from it; both
            are zero where it is None.
        arm_angle: Of all branches [rad], where the arm has one.
    """
    turns = [ZERO_TURN] * len(problem.closed.arm.drives)
    if near is not None:
        turns, _ = problem.closed.parts(near)
    preferred = Preferred(turns, arm_angle)
    return [
        _branch(problem, answer, target, allowed, near)
        for answer in problem.closed.solve(placed_target(problem, target), preferred)
    ]


def placed_target(problem: ArmProblem, target: Pose) -> Pose:
    """Return the target of the closed form, of one for the goal of the problem."""
    inner = _orthonormal(target)
    if problem.outer is None:
        return inner
    return problem.before.inverse() @ inner @ problem.behind.inverse()


def square_from(problem: ArmProblem, target: Pose, q: Sequence[Number]) -> Number:
    """Return the square of how far a target is from the pose that q leads to.

    Distances count as a part of the arm's size, angles as their chords.
    """
    closed = problem.closed
    turns, shifts = closed.parts(q)
    X = _reached(problem, FormulaAnswer(turns, False, shifts=shifts), list(q))
    apart = scale(1.0 / closed.arm.size, subtract(X.position, target.position))
    if closed.point:
        return dot(apart, apart)
    # The square of the chord, (2 sin(angle/2))^2 = 3 - trace R'T.
    trace = sum(map(dot, X.rotation, target.rotation), 0.0)
    return dot(apart, apart) + 3.0 - trace


def within_limits(problem: ArmProblem, q: Sequence[Number]) -> list[Number]:
    """Return joint positions, each at its limit where it is beyond it.

    Those without limits are at most FARTHEST from zero.
    """
    return [
        clipped(x, max(low, -FARTHEST), min(high, FARTHEST))
        for x, low, high in zip(q, *problem.limits, strict=True)
    ]


def _orthonormal(X: Pose) -> Pose:
    """Return a pose whose rotation, as given in files, is rid of its shear."""
    a, b, _ = X.rotation
    a = scale(1.0 / norm(a), a)
    b = subtract(b, scale(dot(a, b), a))
    b = scale(1.0 / norm(b), b)
    return Pose((a, b, cross(a, b)), X.position)


def _branch(
    problem: ArmProblem,
    answer: FormulaAnswer,
    target: Pose,
    allowed: Allowed,
    near: Sequence[Number] | None,
) -> CheckedBranch:
    selection, limits, closed = problem[2:5]
    q: list[Number] = [selection.rest[k] for k in selection.inputs]
    within: Any = True
    inside: Any = True
    for turn, drive in zip(answer.turns, closed.arm.drives, strict=True):
        k = drive.of
        ends = limits[0][k], limits[1][k]
        preferred = None if near is None else near[k]
        q[k] = coordinate(turn, drive, ends, preferred, allowed.slack)
        if near is not None or not never_leaves(drive, *ends):
            within = within & is_within(q[k], *ends, allowed.excess)
            inside = inside & is_within(q[k], *ends, 0.0)
    for shift, drive in zip(answer.shifts, closed.arm.rails, strict=True):
        k = drive.of
        q[k] = (shift - drive.offset) / drive.multiplier
        ends = limits[0][k], limits[1][k]
        within = within & is_within(q[k], *ends, allowed.excess)
        inside = inside & is_within(q[k], *ends, 0.0)
    if problem.rows:
        within = within & rows_hold(problem, q, allowed.excess)
        inside = inside & rows_hold(problem, q, 0.0)
    # Verified, and how clear a miss is: it proves that no answer is near only where it
    # is much larger than the tolerance and than what rounding makes of the arm.
    X = _reached(problem, answer, q)
    apart = subtract(X.position, target.position)
    distance: Number = dot(apart, apart)
    chord = 0.0 if closed.point else chord_square(X, target, problem.goal.free_axis)
    met = (distance <= allowed.distance) & (chord <= allowed.chord)
    far = (distance > 100.0 * allowed.distance + (DOUBT * closed.arm.size) ** 2) | (
        chord > 100.0 * allowed.chord + DOUBT**2
    )
    return CheckedBranch(
        q=q,
        distance=distance,
        chord=chord,
        met=met,
        within=within,
        inside=inside,
        singular=answer.singular,
        in_doubt=answer.singular | _is_loose(problem, answer, allowed) | ~far,
    )


def _is_loose(problem: ArmProblem, answer: FormulaAnswer, allowed: Allowed) -> Any:
    """Return whether a target within ten tolerances, or nearly, may have an answer.

    With e the least error of the target that would make up for the miss, t_R and t_p
    the tolerances, all but t_R as parts of the arm:
    e^2 <= 40^2 (t_R^2 + t_p^2) + (10 DOUBT)^2.
    """
    if answer.miss is None:
        return answer.loose
    least = allowed.chord + allowed.distance / problem.closed.arm.size**2
    return answer.loose & (answer.miss <= MADE_UP * least + (10.0 * DOUBT) ** 2)


def _reached(problem: ArmProblem, answer: FormulaAnswer, q: list[Number]) -> Pose:
    X = _reached_inside(problem, answer, q)
    if problem.outer is None:
        return X
    return problem.before @ X @ problem.behind


def _reached_inside(
    problem: ArmProblem, answer: FormulaAnswer, q: list[Number]
) -> Pose:
    goal, closed = problem.goal, problem.closed
    if closed.exact:
        return closed.pose(answer.turns, answer.shifts)
    whole = problem.selection.vector(q)
    (X,) = poses_of(problem.tree, whole, [goal.frame], goal.relative_to)
    return X


def chord_square(X: Pose, Y: Pose, free: int | None = None) -> Number:
    """Return (2 sin(angle/2))^2 of two rotations: half the squares of differences.

    free: The axis whose directions alone are compared; all by default.
    """
    if free is not None:
        a, b = (tuple(row[free] for row in Z.rotation) for Z in (X, Y))
        apart = subtract(a, b)  # type: ignore[arg-type]
        return dot(apart, apart)
    total: Number = 0.0
    for a, b in zip(X.rotation, Y.rotation, strict=True):
        apart = subtract(a, b)
        total = total + dot(apart, apart)
    return 0.5 * total


# From the angle of a joint to its coordinate, whole turns on, within its limits


def coordinate(
    turn: Turn,
    drive: Drive,
    limits: tuple[float, float],
    near: Number | None,
    slack: Number,
) -> Number:
    """Return the q of an angle, within limits where whole turns lead there.

    Args:
        turn: The angle.
        drive: How q makes it.
        limits: Least and greatest q.
        near: Within limits; of the q there that nearest to this is returned, or to
            zero.
        slack: What is beyond a limit by less gets no whole turn; at most MOST_SLACK.
    """
    low, high = limits
    q = (turn.angle - drive.offset) / drive.multiplier
    if near is None:
        return _near_zero(q, drive, low, high)
    period = 2.0 * math.pi / abs(drive.multiplier)
    q = q - period * floor((q - near) / period + 0.5)
    # a turn that leads beyond the other limit is not taken
    most, least = low + period - SLACK, high - period + SLACK
    if high - low > period - 2.0 * MOST_SLACK:
        most, least = maximum(high + slack, most), minimum(low - slack, least)
    if high < math.inf:
        q = select(q > most, q - period, q)
    return select(q < least, q + period, q) if low > -math.inf else q


def clipped(q: Number, low: float, high: float) -> Number:
    """Return q, at a limit where it is beyond it."""
    q = select(q < low, low, q) if low > -math.inf else q
    return select(q > high, high, q) if high < math.inf else q


def is_within(q: Number, low: float, high: float, excess: Number) -> Any:
    """Return whether q is beyond its limits by at most `excess`."""
    within: Any = True
    if low > -math.inf:
        within = q >= low - excess
    return within & (q <= high + excess) if high < math.inf else within


def rows_hold(problem: ArmProblem, q: Sequence[Number], excess: Number) -> Any:
    """Return whether q is beyond limits that couple joints by at most `excess`."""
    hold: Any = True
    for row, end in problem.rows:
        total = sum((a * x for a, x in zip(row, q, strict=True) if a), 0.0)
        hold = hold & (total <= end + excess)
    return hold


def _near_zero(q: Number, drive: Drive, low: float, high: float) -> Number:
    """Return q in the range of one turn from `start`: one comparison is enough.

    Limits less than a turn apart lie in the middle of that range.
    """
    period = 2.0 * math.pi / abs(drive.multiplier)
    half = 0.5 * period
    start = -half
    if high - low < period:
        start = 0.5 * (low + high) - half
    elif low > -half and high >= half:
        start = low - SLACK
    elif high < half and low <= -half:
        start = high + SLACK - period
    least = -drive.offset / drive.multiplier - half  # of q as it is
    on = math.ceil((start - least) / period - SLACK)
    q = q + period * on
    if least + period * on <= start + SLACK:
        return q
    return select(q > start + period, q - period, q)


def never_leaves(drive: Drive, low: float, high: float) -> bool:
    """Return whether every angle near zero is within the limits, for certain."""
    half = math.pi / abs(drive.multiplier)
    plain = drive.offset == 0.0 and abs(drive.multiplier) == 1.0
    slack = 0.0 if plain else SLACK
    return low <= -half - slack and high >= half + slack
