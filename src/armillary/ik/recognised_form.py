"""Inverse kinematics in closed form: the kernels of an arm that has one.

A kernel computes all branches, verifies them by forward kinematics, and gives all of
them (`all_program`) or the nearest that is within limits (`best_program`). Two things
are left to this module, as they are rare:

- A branch that is beyond limits by less than the tolerance has OUTSIDE added to its
  reason. It is put at the limits, and verified there; if it then misses the target, the
  kernel is asked again with no tolerance at limits (`_strictly`).
- Arms of seven joints reach a pose at any angle of their elbow. That of `near` is
  taken; where limits forbid it, the nearest answer at OTHER_ANGLES (`_turn_elbow`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.forks import IMPORT_LOCK
from armillary.ik.avoidance import marked, nearest_free
from armillary.ik.closed_forms.branch import MOST_SLACK, SLACK, ArmProblem
from armillary.ik.closed_forms.family import NotApplicable, require
from armillary.ik.closed_forms.program import (
    OUTSIDE,
    SINGULAR,
    SOLVED,
    UNWARRANTED,
    all_program,
    arm_angle_program,
    best_program,
)
from armillary.ik.closed_forms.screw_axes import inner_goal
from armillary.ik.manipulability import REGULAR, manipulability
from armillary.ik.method import Candidates, IKMethod, residual_of, squares_of
from armillary.ik.problem import MAKERS, Goal, IKProblem
from armillary.ik.query import (
    TOLERANCE,
    IKQuery,
    Tolerance,
    is_plain_matrix,
    is_plain_vector,
)
from armillary.ik.reason import (
    COMPLETE,
    ELBOW,
    LIMITS,
    MANY,
    MISSED,
    NOT_FOUND,
    OUT_OF_REACH,
    TURNS,
    succeeded,
)
from armillary.ik.solution import Answers, Solution
from armillary.kernel import Kernel, shared_kernel
from armillary.kinematics.bound_kernel import AnyKernel, bind, for_plain_rows
from armillary.kinematics.inputs import Inputs
from armillary.kinematics.kept_formulas import kept_formula
from armillary.trace import Program

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Reasons = npt.NDArray[np.int8]
AT_ONCE = 4096  # targets that are tried at all other arm angles
BEHIND_Q = 3  # numbers behind q in an answer of the best branch

MOST_TOLERANCES = 64

MOST_CHANGE = 1e4
"""How many times as much as its formula answers of an arm differ where |det J| is one
over that: beyond, they may be others."""

_ANSWERED = SOLVED, SINGULAR
ALL_ANGLES = np.arange(24) * math.tau / 24
OTHER_ANGLES = np.arange(1, 16) * math.tau / 16
"""Which arm angles are tried where limits forbid the one at hand, from that [rad]."""


class RecognisedForm:
    """The closed form of an arm: its family and the names of its branches.

    Attributes:
        family: What such arms are called.
        branches: The name of each branch: a word for each of `choices`.
        choices: For each choice its words and the quantity that decides, above 0 for
            the first word: z1 to z6 are directions of axes, A1 to A4 points of theirs,
            where they meet if they do, W or P is where the last axes meet, or the
            point that is placed.
        backwards: Whether these count the joints from the tool to the base, all axes
            pointing the other way.
        values: Of the first inputs of its programs: what else the state decides.
        arm: What it is the form of.
        is_shared: Whether that is the same in all states.
    """

    def __init__(self, problem: IKProblem, arm: ArmProblem) -> None:
        """Prepare for a problem.

        Args:
            problem: What is solved.
            arm: Its arm, see `arm_problem`.
        """
        self.is_shared = arm is problem.once("closed form", _arm_of)
        self._problem = problem
        self.values = problem.values if arm.selection.shapes else []
        self.arm, closed = arm, arm.closed
        self._tolerances: dict[Tolerance, Array] = {}
        self.family = closed.family.name
        self.branches = closed.branches
        self.choices = tuple(
            f"{c.what}: {c.positive} where {c.sign} > 0, else {c.negative}"
            for c in closed.family.choices
        )
        self.backwards = closed.backwards

    @cached_property
    def arm_angle(self) -> Kernel | None:
        """Return the kernel of the arm angle: q (..., n) to radians, shape (...).

        It is None where a target leaves only finitely many answers. Else `ik.all` needs
        an arm angle, and a call may have one.
        """
        program = self.arm_angle_program
        return None if program is None else shared_kernel(program)

    @cached_property
    def arm_angle_program(self) -> Program | None:
        """Return the program of the arm angle, None where there is none."""
        if not self.arm.has_arm_angle:
            return None
        return self._made(arm_angle_program)

    @cached_property
    def program(self) -> Program:
        """Return the program of all branches, turns added to come near zero."""
        return self._made(all_program)

    @cached_property
    def best(self) -> Program:
        """Return the program of the branch nearest to a vector; see `best_program`."""
        return self._made(best_program)

    def _made(self, make: Callable[..., Program], **options: bool) -> Program:
        """Return a program of the arm, which other states' forms have as well."""
        what = make.__name__, *options.items()

        def made() -> Program:
            numbers = self.arm.numbers
            if numbers is None:
                return make(self.arm, **options)
            return kept_formula(
                "closed form",
                (what, numbers),
                lambda: make(self.arm, **options),
                made_by=MAKERS,
            )

        if not self.is_shared:
            return made()
        return self._problem.once(what, lambda _: made())

    @cached_property
    def _every(self) -> AnyKernel:
        return bind(shared_kernel(self.program), self.values)

    @cached_property
    def _every_near(self) -> AnyKernel:
        program = self._made(all_program, near=True)
        return bind(shared_kernel(program), self.values)

    @cached_property
    def _best(self) -> AnyKernel:
        return bind(shared_kernel(self.best), self.values)

    @cached_property
    def _best_near(self) -> AnyKernel:
        program = self._made(best_program, compared=True)
        return bind(shared_kernel(program), self.values)

    def candidates(self, query: IKQuery, *, every: bool = False) -> Candidates:
        """Return every branch for each target, or the nearest, which the kernel picks.

        An arm angle that is not given is all of ALL_ANGLES for every branch; for the
        nearest it is that of `near`, and where limits forbid that, of OTHER_ANGLES the
        one that leads to the nearest answer.
        """
        if every:
            return marked(self._all(query), query)
        return nearest_free(self._nearest(query), self, query, self._problem)

    def answered(
        self, target: Any, near: Any, local: Callable[[Any, Any], Solution | None]
    ) -> Solution | None:
        """Return the answer to one target where the kernel finds it at once.

        What is returned equals what `candidates` and `answer.py` make of it, with the
        usual options. None where the arguments are not plain arrays of one row, or the
        answer is not settled: the general way then finds it, or says what is wrong.

        Args:
            target: As for a call of `InverseKinematics`.
            near: The same.
            local: What a search from `near` finds, None where there is none.
        """
        single, angles, is_given = self._single, self._home_angles, near is not None
        if not is_given:
            near = self._home
        elif not angles:
            single = self._single_near
        elif is_plain_vector(near, self._home):
            near = np.minimum(np.maximum(near, self._finite[0]), self._finite[1])
            angles = (np.asarray(self._angle_at(near)),)
        else:
            return None
        row = single(target, self._usual, near, *angles)
        if row is None:
            return None
        n = len(row) - BEHIND_Q
        reason = row.item(n + 2)
        if reason == OUT_OF_REACH:
            return self._unreached(target, row[:n], near)
        if reason == LIMITS and angles and not is_given:
            best, targets = row[np.newaxis], target[np.newaxis]
            self._turn_elbow(best, targets, self._usual, near, angles[0], threads=None)
            reason = row.item(n + 2)
        if reason not in _ANSWERED:
            return None
        if angles and is_given:
            # The elbow is free: a search may find what is nearer than the answer at
            # the arm angle of `near`.
            other = local(target, near)
            if other is None:
                return None
            steps = [((q - near) ** 2).sum() for q in (other.q, row[:n])]
            if steps[0] < steps[1]:
                return other
        return Solution.of_row(row, n, candidate_of)

    def _unreached(self, target: Array, q: Array, near: Array) -> Solution:
        """Return the nearest within limits to a target that is out of reach."""
        problem, target = self._problem, target.copy()
        wanted = np.minimum(np.maximum(near, self._finite[0]), self._finite[1])
        q = problem.within(np.where(np.isnan(q), wanted, q))

        def found(q: Array) -> Candidates:
            return Candidates(
                q=q[np.newaxis, np.newaxis],
                reason=np.array([OUT_OF_REACH], np.int8),
                residual=lambda: residual_of(problem.squares(q, target)),
            )

        return Solution.of_row(q, len(q), found, met=False)

    @cached_property
    def _home(self) -> Array:
        return self._problem.home

    @cached_property
    def _single(self) -> Callable[..., Array | None]:
        return for_plain_rows(self._best)

    @cached_property
    def _single_near(self) -> Callable[..., Array | None]:
        return for_plain_rows(self._best_near)

    @cached_property
    def _finite(self) -> tuple[Array, Array]:
        return self._problem.finite_limits

    def all_answered(self, target: Any) -> Answers | None:
        """Return all answers to one target where the kernel finds them at once.

        None as for `answered`, and where a branch must be put at a limit, or is in
        doubt.
        """
        if self.arm.has_arm_angle or not is_plain_matrix(target):
            return None
        if self._problem.has_coupled_turns:
            return None
        q, squares, numbers, outside, singular = self._every(target, self._usual)
        if outside.item() or NOT_FOUND in numbers.tolist():
            return None
        doubt = partial(self._doubt_of_one, q, singular)
        found = q, squares, numbers, doubt
        return Answers.of_branches(found, self._problem, self.branches)

    @cached_property
    def _usual(self) -> Array:
        return self.allowed(TOLERANCE)

    @cached_property
    def _home_angles(self) -> tuple[Array, ...]:
        """Return the arm angle at home, of an arm that has one."""
        if self.arm_angle is None:
            return ()
        return (np.asarray(self.arm_angle(self._problem.home)),)

    @cached_property
    def _angle_at(self) -> Kernel:
        assert self.arm_angle is not None
        return self.arm_angle

    def _all(self, query: IKQuery) -> Candidates:
        targets, near, angle = query.targets[:, 0], query.near, query.arm_angle
        if angle is None and self.arm.has_arm_angle:
            angle = np.broadcast_to(ALL_ANGLES, (len(targets), len(ALL_ANGLES)))
        angles: tuple[Array, ...] = () if angle is None else (angle,)
        angle_count = 1
        if angle is not None and angle.ndim > 1:  # several angles for each target
            angle_count = angle.shape[1]
            targets = np.repeat(targets, angle_count, axis=0)
            angles = (np.ascontiguousarray(angle).ravel(),)
            if near is not None and near.ndim > 1:
                near = np.repeat(near, angle_count, axis=0)
        allowed = self.allowed(query.tolerance)
        q, squares, reason, singular = self._branches(targets, near, allowed, angles)
        return Candidates(
            q=q.reshape(len(query.targets), angle_count * q.shape[1], q.shape[2]),
            reason=reason,
            residual=lambda: residual_of(squares),
            doubt=ELBOW
            if angle_count > 1
            else lambda: self._doubts(q, reason, singular),
        )

    def _nearest(self, query: IKQuery) -> Candidates:
        targets, near = query.targets[:, 0], query.wanted
        allowed, kernel = self.allowed(query.tolerance), self._best
        angle, free = query.arm_angle, has_free_elbow(self, query)
        if self.arm_angle is not None and angle is None:
            near = np.clip(near, *self._finite)
            angle = np.asarray(self.arm_angle(near))
        elif angle is None and query.near is not None:
            kernel = self._best_near
        angles = () if angle is None else (angle,)
        threads = query.threads
        answer, solved = self._picked(
            kernel, targets, near, allowed, angles, threads=threads
        )
        if free and angle is not None and not solved:
            self._turn_elbow(answer, targets, allowed, near, angle, threads=threads)
        n = answer.shape[1] - BEHIND_Q
        numbers = answer[:, n + 2]
        settled = solved and not (free and query.near is not None)
        return Candidates(
            q=np.ascontiguousarray(answer[:, np.newaxis, :n]),
            reason=lambda: numbers.astype(np.int8),
            residual=lambda: residual_of(answer[:, n : n + 2]),
            doubt=ELBOW if free else self._usual_doubt,
            settled=settled,
            jumps=None if settled else (numbers % 1.0 >= UNWARRANTED) | free,
        )

    @property
    def _usual_doubt(self) -> int:
        return TURNS if self._problem.has_coupled_turns else COMPLETE

    def _doubts(self, q: Array, reason: npt.NDArray[Any], singular: Array) -> Reasons:
        """Return why branches may not be all answers, numbers of `Doubt`, (count,).

        Args:
            q: The branches, NaN where one does not exist, shape (count, b, n).
            reason: Of each, (count, b).
            singular: How many stand for infinitely many answers, (count,).
        """
        usual = self._usual_doubt
        many = (singular > 0.0) | self._are_singular(q).any(axis=1)
        found = np.where(many, MANY, usual)
        found[(found == usual) & (reason == NOT_FOUND).any(axis=1)] = MISSED
        return found.astype(np.int8)

    def _doubt_of_one(self, q: Array, singular: Array) -> Reasons:
        """Return what `_doubts` does of one target, (1,), whose branches are settled.

        Args:
            q: As for `_doubts`, shape (b, n).
            singular: The same, shape ().
        """
        is_many = singular.item() > 0.0 or self._are_singular(q).any()
        return np.array([MANY if is_many else self._usual_doubt], np.int8)

    def _are_singular(self, q: Array) -> Truths:
        """Return which branches are singular to the accuracy of the formula, (..., b).

        It is that of an arm a little different: where that is singular to its accuracy,
        answers of this arm may be far from those of the formula.
        """
        kernel, least = self._manipulability
        # of branches that do not exist it is NaN, which is not less
        return np.less_equal(kernel(q), least)

    @cached_property
    def _manipulability(self) -> tuple[AnyKernel, float]:
        """Return its kernel, and up to which an answer is singular."""
        closed = self.arm.closed
        least = max(REGULAR, MOST_CHANGE * closed.accuracy / closed.arm.size)
        return manipulability(self._problem), least

    def _branches(
        self,
        targets: Array,
        near: Array | None,
        allowed: Array,
        angle: tuple[Array, ...],
    ) -> tuple[Array, Array, npt.NDArray[np.int8], Array]:
        """Return q (count, b, n), squares (count, b, 2), reason (count, b), `singular`.

        The last is how many branches of each target are, (count,).
        """
        kernel, there = self._every, ()
        if near is not None:
            kernel, there = self._every_near, (near,)
        q, squares, numbers, outside, singular = kernel(
            targets, allowed, *there, *angle
        )
        reason = numbers.astype(np.int8)
        if not outside.any():
            return q, squares, reason, singular
        rows, branches = at = np.nonzero(numbers != reason)  # those that are OUTSIDE
        q[at] = self._problem.within(q[at])
        squares[at] = self._problem.squares(q[at], targets[rows])
        bad = (squares[at] > allowed[:2]).any(axis=1)
        if bad.any():
            at = rows, branches = rows[bad], branches[bad]
            again = _strictly(kernel, rows, targets, near, allowed, angle)
            one = np.arange(len(rows)), branches
            q[at], squares[at], reason[at] = (part[one] for part in again[:3])
        return q, squares, reason, singular

    def _picked(
        self,
        kernel: AnyKernel,
        targets: Array,
        near: Array,
        allowed: Array,
        angle: tuple[Array, ...],
        *,
        threads: int | None,
    ) -> tuple[Array, bool]:
        """Return what `best_program` does, and whether all of them are solved.

        Answers a little beyond limits are put there, and verified there.
        """
        if len(targets) == 1 and near.ndim == 1 and not angle:
            # kernels have a quick way in for one
            answer = kernel(targets[0], allowed, near)[np.newaxis]
        else:
            answer = kernel(targets, allowed, near, *angle, threads=threads)
        n = answer.shape[1] - BEHIND_Q
        numbers = answer[:, n + 2]
        if not ((numbers != SOLVED) & (numbers != SINGULAR)).any():
            return answer, True
        rows = np.flatnonzero(numbers % 1.0 >= OUTSIDE)
        if not rows.size:
            return answer, False
        q = self._problem.within(answer[rows, :n])
        squares = self._problem.squares(q, targets[rows])
        reason = answer[rows, n + 2] - OUTSIDE
        answer[rows] = np.column_stack([q, squares, reason])
        rows = rows[(squares > allowed[:2]).any(axis=1)]
        if rows.size:
            answer[rows] = _strictly(kernel, rows, targets, near, allowed, angle)
            rows = rows[answer[rows, n + 2] % 1.0 >= OUTSIDE]
            answer[rows, :n] = self._problem.within(answer[rows, :n])
            answer[rows, n + 2] -= OUTSIDE
        return answer, bool(succeeded(numbers).all())

    def allowed(self, tolerance: Tolerance) -> Array:
        """Return the numbers of `Allowed` that belong to a tolerance."""
        allowed = self._tolerances.get(tolerance)
        if allowed is None:
            if len(self._tolerances) >= MOST_TOLERANCES:
                self._tolerances.clear()
            allowed = allowed_of(tolerance, self.arm.closed.arm.size)
            self._tolerances[tolerance] = allowed
        return allowed

    def _turn_elbow(
        self,
        best: Array,
        targets: Array,
        allowed: Array,
        near: Array,
        angle: Array,
        *,
        threads: int | None,
    ) -> None:
        """Replace answers beyond limits by the nearest within, at other arm angles."""
        n = best.shape[1] - BEHIND_Q
        blocked = np.flatnonzero(best[:, n + 2] == LIMITS)
        others = len(OTHER_ANGLES)
        for first in range(0, len(blocked), AT_ONCE):
            rows = blocked[first : first + AT_ONCE]
            there = near if near.ndim == 1 else np.repeat(near[rows], others, axis=0)
            start = angle if angle.ndim == 0 else angle[rows, np.newaxis]
            angles = np.broadcast_to(start + OTHER_ANGLES, (len(rows), others)).ravel()
            many = np.repeat(targets[rows], others, axis=0)
            turned, _ = self._picked(
                self._best, many, there, allowed, (angles,), threads=threads
            )
            steps = ((turned[:, :n] - there) ** 2).sum(axis=1)
            steps[~succeeded(turned[:, n + 2])] = np.inf
            steps = steps.reshape(-1, others)
            k = steps.argmin(axis=1)
            within = np.isfinite(steps[np.arange(len(rows)), k])
            chosen = turned.reshape(len(rows), others, -1)[within, k[within]]
            best[rows[within]] = chosen

    def __repr__(self) -> str:
        return f"<closed form, {self.family}, {len(self.branches)} branches>"


def allowed_of(tolerance: Tolerance, size: float) -> Array:
    """Return the numbers of `Allowed` of a tolerance, for an arm of a size [m]."""
    distance, angle = tolerance
    relative = distance / size
    slack = min(0.5 * angle, 0.5 * relative, MOST_SLACK)
    excess = max(angle, distance, relative, SLACK)
    return np.array([*squares_of(tolerance), slack, excess])


def arm_problem(problem: IKProblem) -> ArmProblem:
    """Return the arm of a problem with its closed form.

    Raises:
        NotApplicable: It belongs to no family; the message says why.
    """
    arm = problem.once("closed form", _arm_of)
    if arm is None:  # what the state decides lies among the joints of the form
        arm = _arm_within(problem)
    if isinstance(arm, str):
        raise NotApplicable(arm)
    return arm


def _arm_of(problem: IKProblem) -> ArmProblem | str | None:
    """Return the arm of a problem, or why there is no closed form.

    It is None where the numbers of a state lie within the arm. That there is none is
    kept on disk: with the import of all families, finding it out takes as long as all
    else of a first answer.
    """
    found: list[ArmProblem | str | None] = []

    def why_not() -> tuple[str, ...]:
        found.append(_recognised_arm(problem))
        return tuple(each for each in found if isinstance(each, str))

    reasons = problem.kept_program("why no closed form", why_not)
    if reasons:
        return reasons[0]
    return found[0] if found else _recognised_arm(problem)


def _recognised_arm(problem: IKProblem) -> ArmProblem | str | None:
    """Return the same, without what is kept."""
    try:
        require(len(problem.goals) == 1, "several frames are placed at once")
        selection, goal = problem.selection, problem.goals[0]
        require(not selection.passive, "its joints move closed loops of links")
        if not selection.shapes:
            return _arm(problem, goal, selection)
        inner = inner_goal(problem.tree, goal, selection) if goal.is_whole else None
        return None if inner is None else _arm(problem, inner, selection, goal)
    except NotApplicable as unfit:
        return str(unfit)


def _arm_within(problem: IKProblem) -> ArmProblem:
    """Return the arm of a problem with all that its state decides as constants."""
    selection = Inputs(problem.selection.inputs, problem.selection.rest)
    return _arm(problem, problem.goals[0], selection)


def general_arm(problem: IKProblem) -> ArmProblem:
    """Return the arm of a problem as six axes anywhere, of any family.

    Raises:
        NotApplicable: There are more than six, or too many slide.
    """
    return _arm(problem, problem.goals[0], problem.selection, is_general=True)


def _arm(
    problem: IKProblem,
    goal: Goal,
    selection: Inputs,
    outer: Goal | None = None,
    *,
    is_general: bool = False,
) -> ArmProblem:
    with IMPORT_LOCK:  # all families
        from armillary.ik.closed_forms.recognise import recognise

    lower, upper = problem.limits
    limits = lower.tolist(), upper.tolist()
    closed = recognise(problem.tree, goal, selection, is_general=is_general)
    rows = problem.rows.pairs
    return ArmProblem(problem.tree, goal, selection, limits, closed, outer, rows=rows)


def candidate_of(row: Array) -> Candidates:
    """Return the candidate that is a row of `best_program` with an answer."""
    n = len(row) - BEHIND_Q
    return Candidates(
        q=row[:n].reshape(1, 1, n),
        reason=row[n + 2 :].astype(np.int8),
        residual=lambda: residual_of(row[n : n + 2]),
        doubt=COMPLETE,
        settled=True,
    )


def _strictly(
    kernel: AnyKernel,
    rows: npt.NDArray[np.int64],
    targets: Array,
    near: Array | None,
    allowed: Array,
    angle: tuple[Array, ...],
) -> Any:
    """Return what a kernel says of some targets if q beyond limits are not answers."""
    exact = np.array([*allowed[:3], SLACK])
    there = () if near is None else (near[rows] if near.ndim > 1 else near,)
    angle = tuple(one[rows] if one.ndim else one for one in angle)
    return kernel(targets[rows], exact, *there, *angle)


def has_free_elbow(method: IKMethod, query: IKQuery) -> bool:
    """Return whether a closed form needs an arm angle and the query gives none."""
    is_form = isinstance(method, RecognisedForm)
    return is_form and method.arm_angle is not None and query.arm_angle is None
