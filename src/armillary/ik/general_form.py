"""Inverse kinematics of any arm of at most six joints: all answers, by kernels.

`closed_forms/general_6r` finds the angles of all axes; here they become joint positions
within limits, verified on the model, as those of every closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.ik.avoidance import marked, nearest_free
from armillary.ik.closed_forms.branch import SLACK, ArmProblem
from armillary.ik.closed_forms.family import NotApplicable
from armillary.ik.closed_forms.general_6r.answers_kernel import answers_kernel
from armillary.ik.closed_forms.general_6r.geometry import SixAxes
from armillary.ik.closed_forms.general_6r.nominal import (
    LEAST_DEVIATION,
    NominalSolver,
    solver_of,
)
from armillary.ik.closed_forms.general_6r.orders import called
from armillary.ik.closed_forms.general_6r.solver import MOST
from armillary.ik.closed_forms.program import (
    LEAST_STEP,
    NEARBY,
    OUTSIDE,
    STEEP,
    checked_program,
    inner_program,
)
from armillary.ik.method import Candidates, residual_of
from armillary.ik.problem import IKProblem
from armillary.ik.query import (
    TOLERANCE,
    IKQuery,
    is_plain_matrix,
    is_plain_vector,
)
from armillary.ik.reason import (
    CLOSE,
    COMPLETE,
    INVALID_TARGET,
    MANY,
    MISSED,
    NOT_FOUND,
    OUT_OF_REACH,
    SINGULAR,
    SOLVED,
    TURNS,
)
from armillary.ik.recognised_form import allowed_of, candidate_of
from armillary.ik.solution import Answers, Solution
from armillary.kernel import Kernel, shared_kernel
from armillary.kinematics.bound_kernel import AnyKernel, bind

__all__ = ["GeneralForm"]

Array = npt.NDArray[np.float64]
Reasons = npt.NDArray[np.int8]
Whole = npt.NDArray[np.int64]
BEHIND_Q = 3
AT_ONCE = 8192
FEW_AT_ONCE = 512
"""Targets of which answers are written at once."""

SIX: Final = 6
SIGN: Final = ("sign: plus where det J > 0, else minus",)
"""What `ik.branch` says of six joints."""


class _Targets(NamedTuple):
    """Targets of a call.

    Attributes:
        targets: Shape (count, 4, 4).
        near: Near which whole turns lead, shape (n,) or (count, n).
        allowed: The numbers of `Allowed`.
        threads: As for kernels.
    """

    targets: Array
    near: Array
    allowed: Array
    threads: int | None

    def at(self, piece: slice | Whole) -> _Targets:
        """Return some of the targets."""
        near = self.near if self.near.ndim == 1 else self.near[piece]
        return self._replace(targets=self.targets[piece], near=near)


class _Found(NamedTuple):
    """Answers: q (count, 16, n), squares, reasons, why there may be others."""

    q: Array
    squares: Array
    reason: Reasons
    doubt: Reasons

    def at(self, piece: slice | Whole) -> _Found:
        """Return the same arrays of some targets, copies where they are indices."""
        return _Found._make(part[piece] for part in self)


class GeneralForm:
    """The answers of an arm of at most six joints that no simpler form knows.

    Attributes:
        family: What such arms are called.
        branches: The names of the answers to a target: their numbers. They do not
            stay the same along a path; `ik.branch` says what does.
        choices: What that is; empty where the Jacobian is not that of six joints.
        backwards: False.
        arm_angle: None.
        values: Of the first inputs of its programs: what else the state decides, and
            of one of several alike the numbers of its axes.
        arm: What it is the form of.
    """

    backwards = False
    arm_angle = None
    branches = tuple((str(k + 1),) for k in range(MOST))

    def __init__(
        self, problem: IKProblem, arm: ArmProblem, *, like: GeneralForm | None = None
    ) -> None:
        """Prepare for a problem.

        Args:
            problem: What is solved.
            arm: Its arm.
            like: The form of an arm that differs in the numbers of its axes alone.

        Raises:
            NotApplicable: A pose of this arm leaves infinitely many answers.
        """
        self._problem, self.arm, self._like = problem, arm, like
        self.family = arm.closed.family.name
        self.values = problem.values if arm.selection.shapes else []
        axes = arm.closed.arm
        assert isinstance(axes, SixAxes)
        if arm.has_given_axes:
            self.values = [*self.values, *axes.numbers]
        self.choices = SIGN if len(problem.joints) == SIX == axes.joints else ()
        try:
            self._solver = solver_of(axes)
        except NotApplicable as unfit:
            reasons = (*arm.closed.others, str(unfit))
            raise NotApplicable("; ".join(reasons)) from unfit

    def candidates(self, query: IKQuery, *, every: bool = False) -> Candidates:
        """Return every answer for each target; reasons as of other closed forms."""
        near = query.near if every else query.wanted
        targets = query.targets[:, 0]
        n = len(self._problem.joints)
        near = np.zeros(n) if near is None else near
        count = len(targets)
        found = _Found(
            q=np.empty((count, MOST, n)),
            squares=np.empty((count, MOST, 2)),
            reason=np.empty((count, MOST), np.int8),
            doubt=np.full(count, COMPLETE, np.int8),
        )
        for k in range(0, count, AT_ONCE):
            piece = slice(k, k + AT_ONCE)
            asked = _Targets(
                targets[piece],
                near if near.ndim == 1 else near[piece],
                self._allowed(query.tolerance),
                query.threads,
            )
            self._answer(asked, found.at(piece), every=every)
        q, squares, reason, doubt = found
        found = Candidates(
            q=q,
            reason=reason,
            residual=lambda: residual_of(squares),
            doubt=doubt,
        )
        if self._problem.has_coupled_turns:
            found.add_doubt(TURNS)
        if every:
            return marked(found, query)
        return nearest_free(found, self, query, self._problem)

    def answered(
        self, target: Any, near: Any, local: Callable[[Any, Any], Solution | None]
    ) -> Solution | None:
        """Return the answer to one target where nothing else is to be tried.

        It equals what `candidates` and `answer.py` lead to, with the usual options.
        None where arguments are not plain arrays, or the answer is not settled.

        Args:
            target: As for a call of `InverseKinematics`.
            near: The same.
            local: Not asked.
        """
        del local
        problem = self._problem
        wanted = problem.home if near is None else near
        if not (is_plain_matrix(target) and is_plain_vector(wanted, problem.home)):
            return None
        if len(problem.rows):
            return None
        wanted = np.clip(wanted, *problem.finite_limits)
        found = self._answers_to_one(target, wanted)
        if found is None:
            return None
        q, squares, reason, _ = found
        met = ((reason == SOLVED) | (reason == SINGULAR)).nonzero()[0]
        if not len(met):
            return None
        steps = ((q[met] - wanted) ** 2).sum(axis=1)
        k = int(steps.argmin())
        if near is not None and steps[k] > LEAST_STEP**2:
            missed = problem.squares(wanted, target)
            apart = missed[0] / problem.size**2 + missed[1]
            if apart < min(steps[k] / STEEP, NEARBY):
                return None
        k = met[k]
        row = np.concatenate([q[k], squares[k], reason[k : k + 1]])
        return Solution.of_row(row, len(wanted), candidate_of)

    def all_answered(self, target: Any) -> Answers | None:
        """Return all answers to one target, None as for `answered`."""
        if not is_plain_matrix(target) or self._problem.has_coupled_turns:
            return None
        found = self._answers_to_one(target, self._zero)
        if found is None or found[3]:
            return None
        parts = *found[:3], COMPLETE
        return Answers.of_branches(parts, self._problem, self.branches)

    def _answers_to_one(
        self, target: Array, near: Array
    ) -> tuple[Array, Array, Array, bool] | None:
        """Return `q`, `squares`, `reason`, and whether there may be other answers.

        It is None where the target is not a pose, or an answer is not settled.
        """
        inner = self._inner(target)
        first = self._solver.first
        if first is not None:
            slots, is_whole, _ = first(inner)
            *parts, is_settled = self._answers(target, self._usual, near, slots)
            if is_settled.item() and is_whole.item():
                return (*parts, False)
        if not math.isfinite(inner.sum()):
            return None
        angles, unsure = self._solver.solve_one(inner)
        if len(angles) > MOST:
            return None
        answer = self._checked(target, self._usual, near, angles)
        reason = answer[:, -1]
        if not (reason == SOLVED).all():
            answer = answer[reason != OUT_OF_REACH]
            reason = answer[:, -1]
            if ((reason == NOT_FOUND) | (reason % 1.0 > 0.0)).any():
                return None
        n = len(near)
        rows = np.full((MOST, n + BEHIND_Q), np.nan)
        rows[:, n + 2] = OUT_OF_REACH
        rows[: len(answer)] = answer
        return rows[:, :n], rows[:, n : n + 2], rows[:, n + 2], unsure

    @cached_property
    def _zero(self) -> Array:
        return np.zeros(len(self._problem.joints))

    @cached_property
    def _usual(self) -> Array:
        return self._allowed(TOLERANCE)

    def _allowed(self, tolerance: tuple[float, float]) -> Array:
        return allowed_of(tolerance, self.arm.closed.arm.size)

    @cached_property
    def _inner(self) -> AnyKernel:
        return bind(self._kernels[0], self.values)

    @cached_property
    def _checked(self) -> AnyKernel:
        return bind(self._kernels[1], self.values)

    @cached_property
    def _kernels(self) -> tuple[Kernel, Kernel]:
        """Return the kernels of all inputs, shared by all arms that are alike."""
        if self._like is not None:
            return self._like._kernels
        programs = inner_program(self.arm), checked_program(self.arm)
        return shared_kernel(programs[0]), shared_kernel(programs[1])

    @property
    def is_of_six(self) -> bool:
        """Return whether all six axes are joints, or a turn that does not matter."""
        axes = self.arm.closed.arm
        return isinstance(axes, SixAxes) and axes.moves == SIX

    @property
    def is_nearly_simpler(self) -> bool:
        """Return whether a formula solves the arm, but for rounding."""
        solver = self._solver
        if not isinstance(solver, NominalSolver):
            return False
        return solver.nominal.deviation <= LEAST_DEVIATION

    @cached_property
    def _answers(self) -> AnyKernel:
        return bind(self._answers_kernel, self.values)

    @cached_property
    def _answers_kernel(self) -> Kernel:
        if self._like is not None:
            return self._like._answers_kernel
        return answers_kernel(self.arm)

    def _answer(self, asked: _Targets, found: _Found, *, every: bool) -> None:
        """Write the answers to some targets.

        Where fewer joints than six miss a target, q is the least miss, if not `every`.
        """
        if self._solver.first is None:
            self._answer_left(asked, found, None, every=every)
            return
        left, first = self._answer_settled(asked, found)
        if left.size:
            some = found.at(left)
            self._answer_left(asked.at(left), some, first, every=every)
            for part, there in zip(found, some, strict=True):
                part[left] = there

    def _answer_settled(
        self, asked: _Targets, found: _Found
    ) -> tuple[Whole, list[Array]]:
        """Write the answers to targets where the first search is sure of them.

        Returns:
            The other targets, and what the search has found of them.
        """
        first, threads = self._solver.first, asked.threads
        assert first is not None
        left: list[Whole] = []
        parts: list[list[Array]] = []
        # The arrays of few targets stay in the cache.
        for k in range(0, max(len(asked.targets), 1), FEW_AT_ONCE):
            piece = slice(k, k + FEW_AT_ONCE)
            some, there = asked.at(piece), found.at(piece)
            outputs = called(first, threads, self._inner(some.targets))
            reason = np.empty(there.reason.shape)
            is_settled = np.empty(len(reason))
            self._answers(
                some.targets,
                some.allowed,
                some.near,
                outputs[0],
                out=(there.q, there.squares, reason, is_settled),
                threads=threads,
            )
            there.reason[:] = reason
            open_ = np.flatnonzero((outputs[1] < 1.0) | (is_settled < 1.0))
            left.append(open_ + k)
            parts.append([part[open_] for part in outputs])
        columns = zip(*parts, strict=True)
        return np.concatenate(left), [np.concatenate(column) for column in columns]

    def _answer_left(
        self,
        asked: _Targets,
        found: _Found,
        first: list[Array] | None,
        *,
        every: bool,
    ) -> None:
        """Write the answers to targets, whatever they are.

        Args:
            asked: The targets.
            found: What is written to.
            first: What the first search has found, if it was asked.
            every: As for `_answer`.
        """
        found.q[:] = found.squares[:] = np.nan
        found.reason[:], found.doubt[:] = OUT_OF_REACH, COMPLETE
        inner = self._inner(asked.targets)
        rigid = np.isfinite(inner[:, 0, 0]) & np.isfinite(inner[:, :3, 3]).all(axis=1)
        found.reason[~rigid] = INVALID_TARGET
        some = np.flatnonzero(rigid)
        if not some.size:
            return
        if len(some) < len(inner):
            inner = np.ascontiguousarray(inner[some])
            first = None if first is None else [part[some] for part in first]
        solved = self._solver.solve(inner, first=first, threads=asked.threads)
        found.doubt[some] = np.where(solved.unsure, CLOSE, COMPLETE)
        found.doubt[some[solved.infinite]] = MANY
        rows = some[solved.rows]
        # Arrays of few rows are reused by those of the next ones; for many the system
        # hands out new pages each time, which takes as long as all else that is done.
        for k in range(0, len(inner), FEW_AT_ONCE):
            piece = slice(k, k + FEW_AT_ONCE)
            a, b = np.searchsorted(rows, [piece.start, piece.stop])
            part = rows[a:b] - k, solved.angles[a:b]
            self._write(asked.at(piece), *part, found.at(piece), every=every)

    def _write(
        self,
        asked: _Targets,
        rows: Whole,
        angles: Array,
        found: _Found,
        *,
        every: bool,
    ) -> None:
        """Write solutions as answers.

        Args:
            asked: The targets.
            rows: The target of each solution, in order.
            angles: Of the axes, shape (m, 6).
            found: What is written to.
            every: As for `_answer`.
        """
        n = found.q.shape[-1]
        answer = self._verified(rows, asked, angles)
        if not (answer[:, n + 2] == SOLVED).all():
            rows, answer = self._settled(rows, answer, found, every=every)
        counts = np.bincount(rows, minlength=len(found.doubt))
        slot = np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]
        if counts.max(initial=0) > MOST:
            found.doubt[counts > MOST] = MANY
            fits = slot < MOST
            rows, slot, answer = rows[fits], slot[fits], answer[fits]
        # One index in place of two: these arrays are whole.
        at = rows * MOST + slot
        found.q.reshape(-1, n)[at] = answer[:, :n]
        found.squares.reshape(-1, 2)[at] = answer[:, n : n + 2]
        found.reason.reshape(-1)[at] = answer[:, n + 2]
        is_open = (found.doubt != COMPLETE) & (counts == 0)
        found.reason[is_open & (found.reason[:, 0] != INVALID_TARGET)] = NOT_FOUND

    def _settled(
        self, rows: Whole, answer: Array, found: _Found, *, every: bool
    ) -> tuple[Whole, Array]:
        """Return what is an answer, of rows of `checked_program`, and its targets.

        Args:
            rows: The target of each.
            answer: The rows.
            found: Where the others are noted.
            every: As for `_answer`.
        """
        n = found.q.shape[-1]
        # Of fewer joints than six some joint positions are far from the target.
        far = answer[:, n + 2] == OUT_OF_REACH
        if far.any():
            if not every:
                size = self.arm.closed.arm.size
                misses = answer[far, n] / size**2 + answer[far, n + 1]
                worst_first = np.argsort(-misses, kind="stable")
                at = rows[far][worst_first]
                found.q[at] = answer[far, np.newaxis, :n][worst_first]
                found.squares[at] = answer[far, np.newaxis, n : n + 2][worst_first]
            rows, answer = rows[~far], answer[~far]
        # A miss by the model's own numbers is in doubt: it is left to a search.
        missed = answer[:, n + 2] == NOT_FOUND
        if missed.any():
            found.doubt[rows[missed]] = MISSED
            rows, answer = rows[~missed], answer[~missed]
        return rows, answer

    def _verified(self, rows: Whole, asked: _Targets, angles: Array) -> Array:
        """Return the rows of `checked_program`, put at limits where OUTSIDE."""
        n = len(self._problem.joints)
        targets, near, allowed, threads = asked
        targets = targets.take(rows, axis=0)
        near = near if near.ndim == 1 else near[rows]
        answer = self._checked(targets, allowed, near, angles, threads=threads)
        reason = answer[:, n + 2]
        if (reason == SOLVED).all():
            return answer
        outside = np.flatnonzero(reason - np.floor(reason) >= OUTSIDE)
        if outside.size:
            q = self._problem.within(answer[outside, :n])
            squares = self._problem.squares(q, targets[outside])
            good = (squares <= allowed[:2]).all(axis=1)
            kept = outside[good]
            answer[kept, :n], answer[kept, n : n + 2] = q[good], squares[good]
            answer[kept, n + 2] -= OUTSIDE
            bad = outside[~good]
            exact = np.array([*allowed[:3], SLACK])
            there = near if near.ndim == 1 else near[bad]
            answer[bad] = self._checked(targets[bad], exact, there, angles[bad])
            beyond = bad[answer[bad, n + 2] % 1.0 >= OUTSIDE]
            answer[beyond, :n] = self._problem.within(answer[beyond, :n])
            answer[beyond, n + 2] -= OUTSIDE
        return answer

    def __repr__(self) -> str:
        return f"<closed form, {self.family}, at most {MOST} answers>"
