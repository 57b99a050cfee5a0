"""Answers verified with loops closed: on their branch, passive joints within limits.

Of a target the branches of a closed form are tried in the order of the sum of squares
of their steps, those within limits first, until one is an answer. A branch is put at
limits where it is beyond them, and is SOLVED if that reaches the target with all loops
closed; else LIMITS, if q itself does; else NOT_FOUND.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.ik.method import RANKS, Candidates
from armillary.ik.problem import IKProblem
from armillary.ik.query import IKQuery
from armillary.ik.reason import COMPLETE, Reason
from armillary.ik.search_step import check_program, largest_errors, residual_of_errors
from armillary.ik.targets import POSE_SIZE, rigid_program
from armillary.ik.whole_turns import nearest_turns
from armillary.kernel import shared_kernel
from armillary.kinematics.bound_kernel import AnyKernel

__all__ = ["BEYOND_LIMITS", "LoopCheck", "candidates_of_branches"]

Array = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]

BEYOND_LIMITS: Final = 1e9
"""What is added to the square of the steps to a branch beyond limits: it comes last."""


class LoopCheck:
    """Says which joint positions reach targets of a problem, loops closed."""

    def __init__(self, problem: IKProblem) -> None:
        """Prepare for a problem whose joints move loops."""
        self.problem = problem

    @cached_property
    def _kernel(self) -> AnyKernel:
        return self.problem.closed(check_program(self.problem))

    def __call__(
        self,
        q: Array,
        targets: Array,
        allowed: Array,
        ends: Any = None,
        threads: int | None = None,
    ) -> Array:
        """Return errors, two for each of k goals, then 1 where all are met, else 0.

        Args:
            q: Joint positions, shape (count, n) [m or rad].
            targets: Sixteen numbers for each goal, or more, shape (count, 16 k).
            allowed: The largest errors, shape (2 k,).
            ends: Limits of passive joints (2, m); their own by default.
            threads: As for kernels.
        """
        size = POSE_SIZE * len(self.problem.goals)
        limits = np.array(self.problem.passive_limits) if ends is None else ends
        return self._kernel(q, targets[:, :size], allowed, limits, threads=threads)


def candidates_of_branches(
    check: LoopCheck, branches: Array, query: IKQuery, *, every: bool
) -> Candidates:
    """Return branches of a closed form as candidates, verified with loops closed.

    Args:
        check: The check of the problem.
        branches: As of `branch_numbers`, shape (count, b, n + 1).
        query: The targets.
        every: Whether all branches are asked for; else the nearest that is an answer.
    """
    judge = _Judge(check, branches, query, every)
    rows, width = np.arange(len(branches)), branches.shape[1]
    if every:
        shape = len(branches), width
        flat: Places = np.arange(len(branches) * width, dtype=np.int64)
        q, errors, reason = judge(flat // width, flat % width)
        q[reason == Reason.NOT_FOUND] = np.nan
        return _candidates(q, errors, reason, shape)
    order = judge.order()
    q, errors, reason = judge(rows, order[:, 0])
    left = rows[(reason != Reason.SOLVED) & (reason != Reason.INVALID_TARGET)]
    for k in range(1, width):
        left = left[np.isfinite(judge.steps[left, order[left, k]])]
        if not left.size:
            break
        others = judge(left, order[left, k])
        better = RANKS[others[2]] < RANKS[reason[left]]
        for mine, other in zip((q, errors, reason), others, strict=True):
            mine[left[better]] = other[better]
        left = left[reason[left] != Reason.SOLVED]
    return _candidates(q, errors, reason, (len(branches), 1))


def _candidates(
    q: Array, errors: Array, reason: npt.NDArray[np.int8], shape: tuple[int, int]
) -> Candidates:
    return Candidates(
        q=q.reshape(*shape, q.shape[-1]),
        reason=reason,
        residual=lambda: residual_of_errors(errors),
        doubt=COMPLETE,
    )


class _Judge:
    """Says what becomes of branches.

    Attributes:
        steps: The sums of squares of the steps to each, shape (count, b); infinite for
            those that do not exist.
    """

    def __init__(
        self, check: LoopCheck, branches: Array, query: IKQuery, every: bool
    ) -> None:
        problem = self._problem = check.problem
        n = len(problem.joints)
        self._check, self._query = check, query
        self._targets = query.targets.reshape(len(query.targets), -1)
        self._rigid = np.asarray(shared_kernel(rigid_program(1))(self._targets)) > 0.0
        near = query.near if every else query.wanted
        near = np.zeros(n) if near is None else near
        near = np.clip(near, *problem.finite_limits)[..., np.newaxis, :]
        self._q: Array = nearest_turns(
            branches[..., :n], near, problem.limits, problem.turning
        )
        self._inside = problem.within(self._q)
        slack = sum(query.tolerance)
        apart = np.abs(self._q - self._inside)
        self._is_beyond: Truths = np.asarray((apart > slack).any(axis=-1))
        self._allowed = largest_errors(query.tolerance, 1)
        exists = (branches[..., n] == 1.0) & np.isfinite(self._q).all(axis=-1)
        steps = ((self._q - near) ** 2).sum(axis=-1)
        self.steps: Array = np.where(exists, steps, np.inf)

    def order(self) -> Places:
        """Return the branches of each target, those to be tried first first, (., b)."""
        return np.argsort(self.steps + BEYOND_LIMITS * self._is_beyond, axis=1)

    def __call__(
        self, rows: Places, which: Places
    ) -> tuple[Array, Array, npt.NDArray[np.int8]]:
        """Return q, errors and reasons of one branch for each of some targets."""
        q, inside = self._q[rows, which], self._inside[rows, which]
        exists = np.isfinite(self.steps[rows, which])
        reason = np.full(len(rows), Reason.OUT_OF_REACH, np.int8)
        errors = np.full((len(rows), 2), np.nan)
        some = np.flatnonzero(exists)
        errors[some], is_met = self._checked(inside[some], rows[some])
        reason[some] = np.where(is_met, Reason.SOLVED, Reason.NOT_FOUND)
        solved = some[is_met]
        some = some[~is_met]
        beyond, _ = self._checked(q[some], rows[some])
        met = (beyond <= self._allowed).all(axis=1)
        met |= self._is_beyond[rows[some], which[some]]
        errors[some] = beyond
        reason[some[met]] = Reason.LIMITS
        q[solved] = inside[solved]
        reason[~self._rigid[rows]] = Reason.INVALID_TARGET
        q[~self._rigid[rows]] = np.nan
        return q, errors, reason

    def _checked(self, q: Array, rows: Places) -> tuple[Array, Truths]:
        if not len(rows):
            return np.empty((0, 2)), np.zeros(0, np.bool_)
        checked = self._check(
            q, self._targets[rows], self._allowed, threads=self._query.threads
        )
        return checked[:, :2], checked[:, 2] > 0.0
