"""Inverse kinematics in closed form: the kernels of an arm that has one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.ik.answers import Answers, residual_of
from armillary.ik.closed_forms.applicability import NotApplicable
from armillary.ik.closed_forms.arm_angle import arm_angle_program
from armillary.ik.closed_forms.branch import Question
from armillary.ik.closed_forms.coordinate import MOST_SLACK, SLACK
from armillary.ik.closed_forms.program import (
    OUTSIDE,
    SINGULAR,
    SOLVED,
    UNWARRANTED,
    all_program,
    best_program,
)
from armillary.ik.closed_forms.recognise import recognise
from armillary.ik.closed_forms.screw_axes import inner_goal
from armillary.ik.reason import Reason, succeeded
from armillary.ik.search_step import Goal
from armillary.ik.solution import Solution
from armillary.ik.validation import Batch, Tolerance
from armillary.kernel import Kernel, shared_kernel
from armillary.kinematics.bound_kernel import AnyKernel, bind
from armillary.kinematics.inputs import Inputs
from armillary.model.tree import Tree
from armillary.trace import Program

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Limits = tuple[Sequence[float], Sequence[float]]
AT_ONCE = 4096  # targets that are tried at all other arm angles
BEHIND_Q = 3  # numbers behind q in an answer of the best branch
Searcher = Callable[[Array, Array], Solution]

MOST_TOLERANCES = 64
BEYOND = 0.02  # how far beyond limits an answer is sought within them [m or rad]
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
    """

    def __init__(
        self,
        tree: Tree,
        goal: Goal,
        selection: Inputs,
        limits: Limits,
        fk: Callable[[], AnyKernel],
    ) -> None:
        """Recognise the arm; see `recognised_form`."""
        outer, inner = None, None
        if selection.shapes and goal.is_whole:
            inner = inner_goal(tree, goal, selection)
        if inner is not None:
            outer, goal = goal, inner
        else:
            selection = Inputs(selection.inputs, selection.rest)
        found = recognise(tree, goal, selection)
        self._values = selection.values(tree)
        self.family = found.family.name
        self.branches = found.branches
        self.choices = tuple(
            f"{c.what}: {c.positive} where {c.sign} > 0, else {c.negative}"
            for c in found.family.choices
        )
        self.backwards = found.backwards
        self._fk = fk
        self._question = Question(tree, goal, selection, limits, found, outer)
        self._tolerances: dict[Tolerance, Array] = {}

    @cached_property
    def arm_angle(self) -> Kernel | None:
        """Return the kernel of the arm angle: q (..., n) to radians, shape (...).

        It is None where a target leaves only finitely many answers. Else `ik.all` needs
        an arm angle, and a call may have one.
        """
        if not self._question.has_arm_angle:
            return None
        return shared_kernel(arm_angle_program(self._question))

    @cached_property
    def program(self) -> Program:
        """Return the program of all branches, turns added to come near zero."""
        return all_program(self._question)

    @cached_property
    def _every(self) -> AnyKernel:
        return bind(shared_kernel(self.program), self._values)

    @cached_property
    def _every_near(self) -> AnyKernel:
        program = all_program(self._question, near=True)
        return bind(shared_kernel(program), self._values)

    @cached_property
    def _best(self) -> AnyKernel:
        return bind(shared_kernel(best_program(self._question)), self._values)

    @cached_property
    def _best_near(self) -> AnyKernel:
        program = best_program(self._question, compared=True)
        return bind(shared_kernel(program), self._values)

    def all(
        self,
        targets: Array,
        near: Array | None,
        tolerance: Tolerance,
        batch: Batch,
        arm_angle: Array | None,
    ) -> Answers:
        """Return every branch for targets, shape (count, 4, 4), in a batch.

        Raises:
            ModelError: The arm needs an arm angle, or has none.
        """
        allowed = self._allowed(tolerance)
        angle = self._chosen(arm_angle)
        if self._question.has_arm_angle and not angle:
            raise ModelError(
                "This arm reaches a target in infinitely many ways: choose one angle "
                "of its elbow, as in ik.all(targets, arm_angle=0.0) or --arm-angle 0."
            )
        q, squares, reason = self._branches(targets, near, allowed, angle)
        return Answers.of(batch, q, squares, reason, self.branches)

    def at_angles(
        self, targets: Array, tolerance: Tolerance, angles: Array | None = None
    ) -> Answers:
        """Return every branch at several arm angles.

        Args:
            targets: Poses, shape (count, 4, 4).
            tolerance: Largest distance [m] and angle [rad].
            angles: Arm angles [rad], shape (count, k); by default 24 all around.
        """
        if angles is None:
            angles = np.broadcast_to(ALL_ANGLES, (len(targets), len(ALL_ANGLES)))
        many = np.repeat(targets, angles.shape[1], axis=0)
        angle = (np.ascontiguousarray(angles).ravel(),)
        q, squares, reason = self._branches(many, None, self._allowed(tolerance), angle)
        return Answers.of((len(targets),), q, squares, reason)

    def best(
        self,
        targets: Array,
        near: Array,
        tolerance: Tolerance,
        batch: Batch,
        search: Searcher,
        arm_angle: Array | None,
        local: Searcher | None = None,
    ) -> Solution:
        """Return the branch nearest to `near` for each target.

        Args:
            targets: Poses, shape (count, 4, 4).
            near: Joint positions, shape (n,) or (count, n).
            tolerance: Largest distance [m] and angle [rad].
            batch: The shape of the answer's batch.
            search: Takes targets and seeds and solves numerically; it is asked where
                the formula neither meets a target nor proves that nothing does.
            arm_angle: Of arms that have one [rad], shape () or (count,). By default it
                is that of `near`; where limits forbid that, others are tried, and the
                answer nearest to `near` is taken.
            local: Takes targets and vectors, and searches within limits from these
                alone; it is asked where the answer is much farther from `near` than
                the target is, as beside a limit or where several axes align.

        Raises:
            ModelError: An arm angle is given, and the arm has none.
        """
        allowed = self._allowed(tolerance)
        angle = self._chosen(arm_angle)
        free = self.arm_angle is not None and arm_angle is None
        if self.arm_angle is not None and free:
            angle = (np.asarray(self.arm_angle(near)),)
        kernel = self._best if local is None else self._best_near
        answer, solved = self._nearest(kernel, targets, near, allowed, angle)
        if free and not solved:
            self._turn_elbow(answer, targets, allowed, near, angle[0])
        n = answer.shape[1] - BEHIND_Q
        numbers = answer[:, n + 2]
        shape = (*batch, n)
        if solved:
            return Solution(
                q=np.ascontiguousarray(answer[:, :n]).reshape(shape),
                reason=lambda: numbers.astype(np.int8),
                residual=lambda: residual_of(answer[:, n : n + 2]),
            )
        q, reason = answer[:, :n].copy(), numbers.astype(np.int8)
        residual = residual_of(answer[:, n : n + 2])
        steps, starts = np.zeros((2, len(q)), np.int64)

        def take(rows: Any, found: Solution, which: Any = ...) -> None:
            q[rows], residual[rows] = found.q[which], found.residual[which]
            reason[rows], steps[rows] = found.reason[which], found.steps[which]
            starts[rows] = found.starts[which]

        if local is not None:
            jumps = numbers % 1.0 >= UNWARRANTED
            jumps &= (reason != Reason.OUT_OF_REACH) & self._is_close(q)
            if jumps.any():
                there = self._within(near if near.ndim == 1 else near[jumps])
                found = local(targets[jumps], there)
                before = ((q[jumps] - there) ** 2).sum(axis=1)
                nearer = ((found.q - there) ** 2).sum(axis=1) < before
                better = found.success & (nearer | ~succeeded(reason[jumps]))
                take(np.flatnonzero(jumps)[better], found, better)
        missed = (reason == Reason.LIMITS) | (reason == Reason.OUT_OF_REACH)
        if missed.any():
            q[missed] = self._within(q[missed])
            residual[missed] = residual_of(self._missing(q[missed], targets[missed]))
        blocked = reason == Reason.LIMITS
        doubt = (reason == Reason.NOT_FOUND) | (blocked & free)
        if doubt.any() and arm_angle is None:
            found = search(targets[doubt], q[doubt])
            take(doubt, found)
            reason[blocked & ~succeeded(reason)] = Reason.LIMITS
        return Solution(
            q=q.reshape(shape),
            reason=reason,
            residual=residual,
            steps=steps,
            starts=starts,
        )

    def _branches(
        self,
        targets: Array,
        near: Array | None,
        allowed: Array,
        angle: tuple[Array, ...],
    ) -> tuple[Array, Array, npt.NDArray[np.int8]]:
        """Return q (count, b, n), squares (count, b, 2) and reason (count, b)."""
        kernel, there = self._every, ()
        if near is not None:
            kernel, there = self._every_near, (near,)
        q, squares, numbers, outside = kernel(targets, allowed, *there, *angle)
        reason = numbers.astype(np.int8)
        if not outside.any():
            return q, squares, reason
        rows, branches = at = np.nonzero(numbers != reason)
        q[at] = self._within(q[at])
        squares[at] = self._missing(q[at], targets[rows])
        bad = (squares[at] > allowed[:2]).any(axis=1)
        if bad.any():
            at = rows, branches = rows[bad], branches[bad]
            exact = np.array([*allowed[:3], SLACK])
            there = tuple(x[rows] if x.ndim == 2 else x for x in there)
            angle = tuple(x[rows] if x.ndim == 1 else x for x in angle)
            again = kernel(targets[rows], exact, *there, *angle)
            one = np.arange(len(rows)), branches
            q[at], squares[at], reason[at] = (part[one] for part in again[:3])
        return q, squares, reason

    def _nearest(
        self,
        kernel: AnyKernel,
        targets: Array,
        near: Array,
        allowed: Array,
        angle: tuple[Array, ...],
    ) -> tuple[Array, bool]:
        """Return what `best_program` does, and whether all of them are solved.

        Answers a little beyond limits are put there, and verified there.
        """
        if len(targets) == 1 and near.ndim == 1 and not angle:
            # kernels have a quick way in for one
            answer = kernel(targets[0], allowed, near)[np.newaxis]
        else:
            answer = kernel(targets, allowed, near, *angle)
        n = answer.shape[1] - BEHIND_Q
        numbers = answer[:, n + 2]
        if not ((numbers != SOLVED) & (numbers != SINGULAR)).any():
            return answer, True
        rows = np.flatnonzero(numbers % 1.0 >= OUTSIDE)
        if not rows.size:
            return answer, False
        q = self._within(answer[rows, :n])
        squares = self._missing(q, targets[rows])
        reason = answer[rows, n + 2] - OUTSIDE
        answer[rows] = np.column_stack([q, squares, reason])
        rows = rows[(squares > allowed[:2]).any(axis=1)]
        if rows.size:
            exact = np.array([*allowed[:3], SLACK])
            there = near[rows] if near.ndim == 2 else near
            angle = tuple(x[rows] if x.ndim == 1 else x for x in angle)
            answer[rows] = kernel(targets[rows], exact, there, *angle)
            rows = rows[answer[rows, n + 2] % 1.0 >= OUTSIDE]
            answer[rows, :n] = self._within(answer[rows, :n])
            answer[rows, n + 2] -= OUTSIDE
        return answer, bool(succeeded(numbers).all())

    def _allowed(self, tolerance: Tolerance) -> Array:
        """Return the numbers of `Allowed` that belong to a tolerance."""
        allowed = self._tolerances.get(tolerance)
        if allowed is None:
            distance, angle = tolerance
            chord = 2.0 * math.sin(0.5 * min(angle, math.pi))
            relative = distance / self._question.closed.arm.size
            slack = min(0.5 * angle, 0.5 * relative, MOST_SLACK)
            excess = max(angle, distance, relative)
            if len(self._tolerances) >= MOST_TOLERANCES:
                self._tolerances.clear()
            allowed = np.array([distance**2, chord**2, slack, max(excess, SLACK)])
            self._tolerances[tolerance] = allowed
        return allowed

    def _chosen(self, arm_angle: Array | None) -> tuple[Array, ...]:
        """Return the arm angle as the kernels take it: once or not at all."""
        if arm_angle is None:
            return ()
        if self.arm_angle is None:
            raise ModelError(
                "This arm has no arm angle: its targets leave only finitely many "
                "answers. Leave arm_angle out."
            )
        return (arm_angle,)

    def _turn_elbow(
        self, best: Array, targets: Array, allowed: Array, near: Array, angle: Array
    ) -> None:
        """Replace answers beyond limits by the nearest within, at other arm angles."""
        n = best.shape[1] - BEHIND_Q
        blocked = np.flatnonzero(best[:, n + 2] == Reason.LIMITS)
        others = len(OTHER_ANGLES)
        for first in range(0, len(blocked), AT_ONCE):
            rows = blocked[first : first + AT_ONCE]
            there = near if near.ndim == 1 else np.repeat(near[rows], others, axis=0)
            start = angle if angle.ndim == 0 else angle[rows, np.newaxis]
            angles = np.broadcast_to(start + OTHER_ANGLES, (len(rows), others)).ravel()
            many = np.repeat(targets[rows], others, axis=0)
            found, _ = self._nearest(self._best, many, there, allowed, (angles,))
            steps = ((found[:, :n] - there) ** 2).sum(axis=1)
            steps[~succeeded(found[:, n + 2])] = np.inf
            steps = steps.reshape(-1, others)
            k = steps.argmin(axis=1)
            within = np.isfinite(steps[np.arange(len(rows)), k])
            chosen = found.reshape(len(rows), others, -1)[within, k[within]]
            best[rows[within]] = chosen

    def _within(self, q: Array) -> Array:
        """Return q, each joint at its limit where it is beyond it."""
        return np.clip(q, *map(np.array, self._question.limits))

    def _is_close(self, q: Array) -> Truths:
        """Tell which q are within limits or beyond them by little, shape (k,)."""
        return np.asarray((np.abs(q - self._within(q)) <= BEYOND).all(axis=1))

    def _missing(self, q: Array, targets: Array) -> Array:
        """Return squares of the distance and the chord that remain, shape (k, 2)."""
        apart = self._fk()(q)[:, 0, :3] - targets[:, :3]
        squares = (apart**2).sum(axis=1)
        chord = 0.5 * squares[:, :3].sum(axis=1) * self._question.goal.has_rotation
        return np.stack([squares[:, 3], chord], axis=1)

    def __repr__(self) -> str:
        return f"<closed form, {self.family}, {len(self.branches)} branches>"


def has_free_elbow(form: object, arm_angle: object) -> TypeGuard[RecognisedForm]:
    """Tell whether a closed form needs an arm angle and none is given."""
    needs = isinstance(form, RecognisedForm) and form.arm_angle is not None
    return needs and arm_angle is None


def recognised_form(
    tree: Tree,
    goals: Sequence[Goal],
    selection: Inputs,
    limits: Limits,
    fk: Callable[[], AnyKernel],
) -> RecognisedForm | str:
    """Return the closed form of the joints that reach goals, or why there is none.

    `fk` gives the kernel of the poses that are placed, shape (..., 1, 4, 4).
    """
    if len(goals) > 1:
        return "several frames are placed at once"
    try:
        return RecognisedForm(tree, goals[0], selection, limits, fk)
    except NotApplicable as unfit:
        return str(unfit)
