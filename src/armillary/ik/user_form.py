"""Inverse kinematics by a closed form of the user's own, verified on the model."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, printable
from armillary.ik.method import Candidates, residual_of, squares_of
from armillary.ik.problem import Problem
from armillary.ik.query import Query
from armillary.ik.reason import Reason
from armillary.ik.targets import POSE_SIZE, rigid_program
from armillary.ik.whole_turns import nearest_turns
from armillary.kernel import shared_kernel
from armillary.model.closed_form import ClosedForm, OutOfReach
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Number, number
from armillary.trace import Program, trace

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

COMPARED = 8  # poses at which traced and plain answers are compared
AGREEMENT = 1e-6  # of their numbers


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

    def __init__(self, problem: Problem, form: ClosedForm) -> None:
        """Take over a user's closed form for a problem.

        Raises:
            ModelError: `form` is not a `ClosedForm`, or the problem is anything but to
                place one frame.
        """
        given: Any = form
        if not isinstance(given, ClosedForm):
            shown = printable(repr(given))
            raise ModelError(f"closed= takes an instance of a ClosedForm, not {shown}.")
        if not (len(problem.goals) == 1 and problem.goals[0].is_whole):
            raise ModelError("A closed form places one frame, with its full pose.")
        self.form = form
        self.family = type(form).__name__
        self.branches = form.names
        self._problem = problem

    @property
    def compiled(self) -> bool:
        """Return whether `inverse` is machine code, rather than plain Python."""
        return isinstance(self._traced, Program)

    @property
    def program(self) -> Program:
        """Return the program of `inverse`; see `inverse_program`.

        Raises:
            ModelError: It is not compiled.
        """
        if not isinstance(self._traced, Program):
            raise ModelError(f"{self.family}.inverse is not compiled: {self._traced}")
        return self._traced

    @property
    def why_not_compiled(self) -> str:
        """Return what kept `inverse` from being traced, empty where it was."""
        return "" if isinstance(self._traced, Program) else self._traced

    @cached_property
    def _traced(self) -> Program | str:
        try:
            program = inverse_program(self.form, len(self._problem.joints))
        except Exception as error:  # on floats the same code may do, or says why not
            return f"{type(error).__name__}: {error}"
        return self._fault_of(program) or program

    def _fault_of(self, program: Program) -> str:
        """Return where a traced inverse differs from the plain one, if it does."""
        problem, n = self._problem, len(self._problem.joints)
        q = np.random.default_rng(0).uniform(*problem.start_range, (COMPARED, n))
        targets = problem.fk(q)[:, 0]
        traced = np.array(shared_kernel(program)(targets))
        for X, found in zip(targets, traced, strict=True):
            try:
                plain = branch_numbers(self.form, Pose.from_matrix(X), n)
            except Exception:  # there is no pose, or no answer in plain Python
                continue
            expected = np.array(plain, dtype=np.float64)
            if not np.allclose(found, expected, 0.0, AGREEMENT, equal_nan=True):
                return (
                    f"traced and run as Python, {self.family}.inverse differs; it "
                    "keeps something from call to call"
                )
        return ""

    def candidates(self, query: Query, *, every: bool = False) -> Candidates:
        """Return every branch for each target, verified on the model.

        Of all branches those that do not reach the target are NaN; else they are what
        a search may start from.

        Raises:
            ModelError: The user's code fails.
        """
        targets, problem = query.targets[:, 0], self._problem
        rows = targets.reshape(len(targets), POSE_SIZE)
        rigid = np.asarray(shared_kernel(rigid_program(1))(rows) > 0.0)
        found = self._branches(np.where(rigid[:, None, None], targets, np.nan), rigid)
        q, is_reached = found[..., :-1], found[..., -1] == 1.0
        exists = np.isfinite(q).all(axis=2) & is_reached
        near = query.near if every else query.wanted
        near = np.zeros(len(problem.joints)) if near is None else near
        near = np.clip(near, *problem.finite_limits)[..., None, :]
        q = nearest_turns(q, near, problem.limits, problem.turning)
        allowed, targets = squares_of(query.tolerance), targets[:, None]
        squares = problem.squares(q, targets)
        met = np.asarray((squares <= allowed).all(axis=2))
        inside = problem.within(q)
        within = np.asarray((inside == q).all(axis=2))
        if (met & ~within).any():  # at the limits it may be met as well
            there = problem.squares(inside, targets)
            kept = met & (there <= allowed).all(axis=2)
            q = np.where(kept[..., None], inside, q)
            squares = np.where(kept[..., None], there, squares)
            within = within | kept
        reason = np.where(within, Reason.SOLVED, Reason.LIMITS)
        reason = np.where(met, reason, Reason.NOT_FOUND)
        reason = np.where(exists, reason, Reason.OUT_OF_REACH)
        reason = np.where(rigid[:, None], reason, Reason.INVALID_TARGET)
        shown = met | ~is_reached
        return Candidates(
            q=np.where(shown[..., None], q, np.nan) if every else q,
            reason=reason.astype(np.int8),
            residual=residual_of(squares),
            complete=True,
        )

    def _branches(self, targets: Array, rigid: Truths) -> Array:
        """Return what `branch_numbers` does, shape (count, b, n + 1)."""
        if isinstance(self._traced, Program):
            return np.array(shared_kernel(self._traced)(targets))
        n = len(self._problem.joints)
        q = np.full((len(targets), len(self.branches), n + 1), np.nan)
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

    def __repr__(self) -> str:
        how = "compiled" if self.compiled else "plain Python"
        return f"<closed form, {self.family}, {len(self.branches)} branches, {how}>"


def inverse_program(form: ClosedForm, n: int) -> Program:
    """Return the program target (4, 4) -> `branch_numbers`, shape (b, n + 1).

    Raises:
        Exception: What the user's code raises where it cannot be traced.
    """

    def equations(matrix: Any) -> Any:
        return branch_numbers(form, Pose.from_matrix(matrix), n)

    return trace(equations, name="own_inverse", outputs=("q",), target=(4, 4))


def branch_numbers(form: ClosedForm, pose: Pose, n: int) -> list[list[Number]]:
    """Return n numbers for each branch of a pose, and 1 or, where out of reach, 0.

    Where a branch does not exist, all are NaN.

    Raises:
        ModelError: There are not as many branches or numbers as there should be.
    """
    count, name = len(form.names), type(form).__name__
    found = form.inverse(pose)
    if found is None:
        return [[math.nan] * (n + 1) for _ in range(count)]
    if len(found) != count:
        raise ModelError(
            f"{name}.inverse returned {len(found)} branches; its branches are "
            f"{', '.join('/'.join(words) for words in form.names)}. Return None for "
            "those that do not exist."
        )
    rows: list[list[Number]] = []
    for words, given in zip(form.names, found, strict=True):
        is_reached = not isinstance(given, OutOfReach)
        q = given if is_reached else given.q
        if q is not None and len(q) != n:
            raise ModelError(
                f"{name}.inverse returned {len(q)} numbers for the branch "
                f"'{'/'.join(words)}'; {n} joints move the frame."
            )
        numbers = [math.nan] * (n + 1)
        if q is not None:
            numbers = [*map(number, q), float(is_reached)]
        rows.append(numbers)
    return rows
