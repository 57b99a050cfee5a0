"""Inverse kinematics by a closed form of the user's own, verified on the model."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.ik.answers import Answers, residual_of
from armillary.ik.closed_forms.user_program import branch_numbers, own_program
from armillary.ik.reason import Reason
from armillary.ik.solution import Solution
from armillary.ik.validation import Batch, Tolerance
from armillary.ik.whole_turns import finite_limits, nearest_turns, turning_joints
from armillary.kernel import shared_kernel
from armillary.kinematics.bound_kernel import AnyKernel
from armillary.model.closed_form import ClosedForm
from armillary.spatial.pose import Pose
from armillary.trace import Program

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Searcher = Callable[[Array, Array], Solution]

RIGID = 1e-6


class UserForm:
    """A user's closed form at work, as `ik.closed` of an arm that was given one.

    Attributes:
        form: The user's object.
        family: The name of its class.
        branches: The name of each branch.
        choices: Empty: only the user knows what the names mean.
        backwards: False.
        arm_angle: None.
    """

    choices: tuple[str, ...] = ()
    backwards = False
    arm_angle = None

    def __init__(
        self,
        form: ClosedForm,
        limits: tuple[Array, Array],
        fk: Callable[[], AnyKernel],
    ) -> None:
        """Take over a user's closed form.

        Args:
            form: It.
            limits: Least and greatest q, each of shape (n,).
            fk: Gives the kernel of the pose that is placed, shape (..., 1, 4, 4).
        """
        self.form = form
        self.family = type(form).__name__
        self.branches = form.names
        self._lower, self._upper = limits
        self._fk = fk

    @property
    def compiled(self) -> bool:
        """Return whether `inverse` is machine code, rather than plain Python."""
        return isinstance(self._traced, Program)

    @property
    def why_not_compiled(self) -> str:
        """Return what kept `inverse` from being traced, empty where it was."""
        return "" if isinstance(self._traced, Program) else self._traced

    @cached_property
    def _traced(self) -> Program | str:
        try:
            return own_program(self.form, len(self._lower))
        except Exception as error:  # on floats the same code may do, or says why not
            return f"{type(error).__name__}: {error}"

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
            ModelError: An arm angle is given, or the user's code fails.
        """
        _refuse(arm_angle)
        q, squares, reason = self._verified(targets, near, tolerance)
        return Answers.of(batch, q, squares, reason, self.branches)

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

        What the formula misses by the model's account is left to `search`; the other
        arguments are those of a recognised closed form.

        Raises:
            ModelError: An arm angle is given, or the user's code fails.
        """
        _refuse(arm_angle)
        every, squares, reasons = self._verified(targets, near, tolerance)
        near = np.clip(near, *finite_limits(self._lower, self._upper))
        there = np.broadcast_to(near, (len(targets), len(self._lower)))
        steps = ((every - there[:, None]) ** 2).sum(axis=2)
        rank = np.choose(reasons, _RANKS) * 1e18 + np.nan_to_num(steps, nan=0.0)
        rows = np.arange(len(targets))
        k = rank.argmin(axis=1)
        q, square, reason = every[rows, k], squares[rows, k], reasons[rows, k]
        beyond = (reason == Reason.LIMITS) | (reason == Reason.OUT_OF_REACH)
        q[beyond] = np.clip(
            np.where(np.isnan(q), there, q)[beyond], self._lower, self._upper
        )
        square[beyond] = self._missing(q[beyond, None], targets[beyond])[:, 0]
        residual = residual_of(square)
        tries = np.zeros((2, len(targets)), np.int64)
        doubt = reason == Reason.NOT_FOUND
        if doubt.any():
            found = search(targets[doubt], np.nan_to_num(q[doubt]))
            q[doubt], residual[doubt] = found.q, found.residual
            reason[doubt] = found.reason
            tries[:, doubt] = found.steps, found.starts
        return Solution(
            q=q.reshape(*batch, q.shape[1]),
            reason=reason,
            residual=residual,
            steps=tries[0],
            starts=tries[1],
        )

    def _verified(
        self, targets: Array, near: Array | None, tolerance: Tolerance
    ) -> tuple[Array, Array, npt.NDArray[np.int8]]:
        """Return q (count, b, n), squares (count, b, 2) and reason (count, b)."""
        rigid: npt.NDArray[Any] = _are_rigid(targets)
        q = self._candidates(np.where(rigid[:, None, None], targets, np.nan), rigid)
        exists = np.isfinite(q).all(axis=2)
        limits = self._lower, self._upper
        near = np.zeros(len(self._lower)) if near is None else near
        there = np.clip(near, *finite_limits(*limits))
        there = np.broadcast_to(there, (len(targets), q.shape[2]))
        q = nearest_turns(q, there[:, None], limits, self._turning)
        distance, angle = tolerance
        allowed = distance**2, 4.0 * math.sin(0.5 * min(angle, math.pi)) ** 2
        squares = self._missing(q, targets)
        met = np.asarray((squares <= allowed).all(axis=2))
        inside = np.clip(q, *limits)
        within = np.asarray((inside == q).all(axis=2))
        if (met & ~within).any():  # at the limits it may be met as well
            there_squares = self._missing(inside, targets)
            kept = met & (there_squares <= allowed).all(axis=2)
            q = np.where(kept[..., None], inside, q)
            squares = np.where(kept[..., None], there_squares, squares)
            within = within | kept
        reason = np.where(within, Reason.SOLVED, Reason.LIMITS)
        reason = np.where(met, reason, Reason.NOT_FOUND)
        reason = np.where(exists, reason, Reason.OUT_OF_REACH)
        reason = np.where(rigid[:, None], reason, Reason.INVALID_TARGET)
        return np.where(met[..., None], q, np.nan), squares, reason.astype(np.int8)

    def _candidates(self, targets: Array, rigid: Truths) -> Array:
        """Return what the user's code says, shape (count, b, n)."""
        if isinstance(self._traced, Program):
            return np.array(shared_kernel(self._traced)(targets))
        n = len(self._lower)
        q = np.full((len(targets), len(self.branches), n), np.nan)
        for k in np.flatnonzero(rigid):
            pose = Pose.from_matrix(targets[k])
            try:
                q[k] = branch_numbers(self.form, pose, n)
            except ModelError:
                raise
            except Exception as error:
                raise ModelError(
                    f"{self.family}.inverse raised {type(error).__name__}: {error}. It "
                    "is to return None for branches that do not exist."
                ) from error
        return q

    @cached_property
    def _turning(self) -> Truths:
        """Return which joints may turn once without changing the pose."""
        return turning_joints(self._fk, len(self._lower))

    def _missing(self, q: Array, targets: Array) -> Array:
        """Return squares of the distance and the chord that remain."""
        apart = self._fk()(q)[..., 0, :3, :] - targets[:, None, :3, :]
        squares: Array = (apart**2).sum(axis=2)
        chord = 0.5 * squares[..., :3].sum(axis=2)
        return np.stack([squares[..., 3], chord], axis=2)

    def __repr__(self) -> str:
        how = "compiled" if self.compiled else "plain Python"
        return f"<closed form, {self.family}, {len(self.branches)} branches, {how}>"


def _are_rigid(X: Array) -> npt.NDArray[Any]:
    """Tell which matrices are finite, orthonormal and right-handed."""
    R = X[:, :3, :3]
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(R @ R.mT - np.eye(3)).max(axis=(1, 2))
        finite = np.isfinite(X).all(axis=(1, 2))
        good = finite & (apart < RIGID) & (np.linalg.det(R) > 0.0)
    return np.asarray(good)


# The better, the less: in the order in which `Reason` numbers them.
_RANKS = [
    {
        Reason.SOLVED: 0,
        Reason.LIMITS: 1,
        Reason.NOT_FOUND: 2,
        Reason.OUT_OF_REACH: 3,
    }.get(reason, 4)
    for reason in Reason
]


def _refuse(arm_angle: Array | None) -> None:
    if arm_angle is not None:
        raise ModelError("A closed form of your own has no arm angle; leave it out.")
