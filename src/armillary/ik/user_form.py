"""Inverse kinematics by a closed form of the user's own, verified on the model.

The user's `inverse` is traced if it can be, and compared with itself on floats at a few
poses. Then one program computes all branches and verifies them (`verified_program`).
If it cannot be traced it runs as Python, and the program verifies what it returned.
With closed loops the branches are verified by `LoopCheck`; as the nearest one is nearly
always an answer, it is picked and tried before all others (`picked_program`).
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, printable
from armillary.ik.avoidance import marked, nearest_free
from armillary.ik.closed_forms.branch import chord_square, clipped
from armillary.ik.closed_forms.program import (
    INVALID,
    LIMITS,
    NOT_FOUND,
    OUT_OF_REACH,
    SOLVED,
)
from armillary.ik.coupled_rows import kept_within
from armillary.ik.loop_check import (
    BEYOND_LIMITS,
    LoopCheck,
    candidates_of_branches,
)
from armillary.ik.method import Candidates, residual_of, squares_of
from armillary.ik.problem import IKProblem
from armillary.ik.query import IKQuery
from armillary.ik.reason import COMPLETE, Reason
from armillary.ik.search_step import largest_errors, residual_of_errors
from armillary.ik.targets import POSE_SIZE, is_rigid, rigid_program
from armillary.ik.whole_turns import nearest_turns
from armillary.kernel import Kernel, shared_kernel
from armillary.kinematics.bound_kernel import AnyKernel, bind
from armillary.kinematics.inputs import program_of
from armillary.kinematics.joint_vector import with_numbers
from armillary.model.closed_form import ClosedForm, OutOfReach
from armillary.model.link_poses import poses_of
from armillary.model.tree import Tree
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Matrix, Number, Vector, dot, number, subtract
from armillary.trace import Program, evaluate, trace
from armillary.trace.functions import absolute, select

Array = npt.NDArray[np.float64]

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

    def __init__(self, problem: IKProblem, form: ClosedForm) -> None:
        """Take over a user's closed form for a problem.

        Raises:
            ModelError: `form` is not a `ClosedForm`.
        """
        untyped: Any = form
        if not isinstance(untyped, ClosedForm):
            shown = printable(repr(untyped))
            raise ModelError(f"closed= takes an instance of a ClosedForm, not {shown}.")
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
        for X in targets:
            try:
                plain = branch_numbers(self.form, Pose.from_matrix(X), n)
            except Exception:  # there is no pose, or no answer in plain Python
                continue
            traced = evaluate(program, X.ravel().tolist())
            expected = np.array(plain, dtype=np.float64).ravel()
            if not np.allclose(traced, expected, 0.0, AGREEMENT, equal_nan=True):
                return (
                    f"traced and run as Python, {self.family}.inverse differs; it "
                    "keeps something from call to call"
                )
        return ""

    @cached_property
    def _verified(self) -> AnyKernel:
        problem = self._problem
        program = verified_program(problem, self.form, traced=self._is_whole)
        return bind(shared_kernel(program), problem.selection.values(problem.tree))

    @property
    def _is_whole(self) -> bool:
        """Return whether one program computes the branches and verifies them."""
        problem = self._problem
        has_loops = bool(problem.selection.passive)
        return self.compiled and problem.can_search and not has_loops

    def candidates(self, query: IKQuery, *, every: bool = False) -> Candidates:
        """Return every branch for each target, verified on the model.

        Of all branches those that do not reach the target are NaN; else they are what
        a search may start from.

        Raises:
            ModelError: The user's code fails.
        """
        has_loops = bool(self._problem.selection.passive)
        verified = (self._with_loops if has_loops else self._of_tree)(query, every)
        verified = kept_within(verified, self._problem)
        if every:
            return marked(verified, query)
        return nearest_free(verified, self, query, self._problem)

    def _of_tree(self, query: IKQuery, every: bool) -> Candidates:
        targets, problem = query.targets[:, 0], self._problem
        n = len(problem.joints)
        near = query.near if every else query.wanted
        near = np.clip(np.zeros(n) if near is None else near, *problem.finite_limits)
        branches = () if self._is_whole else (self._branches(targets),)
        allowed = np.array(squares_of(query.tolerance))
        answer = self._verified(near, targets, allowed, *branches)
        q, squares = np.ascontiguousarray(answer[..., :n]), answer[..., n : n + 2]
        reason = answer[..., n + 2].astype(np.int8)
        if every:
            q[reason == Reason.NOT_FOUND] = np.nan
        return Candidates(
            q=q,
            reason=reason,
            residual=lambda: residual_of(squares),
            doubt=COMPLETE,
        )

    @cached_property
    def _check(self) -> LoopCheck:
        return LoopCheck(self._problem)

    @cached_property
    def _picked(self) -> Kernel:
        return shared_kernel(picked_program(self._problem, self.form))

    def _with_loops(self, query: IKQuery, every: bool) -> Candidates:
        """Return every branch, or the nearest, verified with loops closed.

        The nearest is nearly always an answer; where it is not, all others are tried.
        """
        targets, n = query.targets[:, 0], len(self._problem.joints)
        if every or not self.compiled:
            branches = self._branches(targets)
            return candidates_of_branches(self._check, branches, query, every=every)
        near = np.clip(query.wanted, *self._problem.finite_limits)
        threads = query.threads
        q = np.asarray(self._picked(near, targets, threads=threads))
        rows = targets.reshape(len(targets), POSE_SIZE)
        allowed = largest_errors(query.tolerance, 1)
        checked = self._check(q[:, :n], rows, allowed, threads=threads)
        reason = np.full(len(q), Reason.SOLVED, np.int8)
        first = Candidates(
            q=q[:, np.newaxis, :n],
            reason=reason,
            residual=lambda: residual_of_errors(checked[:, :2]),
            doubt=COMPLETE,
        )
        known = (checked[:, 2] > 0.0) & (q[:, n] > 0.0)
        left = np.flatnonzero(~(known & self._problem.rows.holds(q[:, :n])))
        if left.size:
            rest = query.at(left)
            branches = self._branches(rest.targets[:, 0])
            others = candidates_of_branches(self._check, branches, rest, every=False)
            first.take(left, others)
        return first

    def _branches(self, targets: Array) -> Array:
        """Return what `branch_numbers` does, shape (count, b, n + 1)."""
        if isinstance(self._traced, Program):
            return np.array(shared_kernel(self._traced)(targets))
        n = len(self._problem.joints)
        rows = targets.reshape(len(targets), POSE_SIZE)
        rigid = np.asarray(shared_kernel(rigid_program(1))(rows))
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

    def equations(matrix: Matrix) -> list[list[Number]]:
        return branch_numbers(form, Pose.from_matrix(matrix), n)

    return trace(equations, name="own_inverse", outputs=("q",), target=(4, 4))


def verified_program(problem: IKProblem, form: ClosedForm, *, traced: bool) -> Program:
    """Return the program of every branch, verified by the kinematics of the model.

    Where q is beyond limits and reaches the target as well at them, it is put there.

    Returns:
        Inputs those of `selection.shapes`; `q` (n,), within limits, near which turns of
        joints bring each branch; `target` (4, 4); `allowed` (2,), largest squares of
        the distance [m^2] and of twice the sine of half the angle; and, unless
        `inverse` is traced as well, what `branch_numbers` returns, `found` (b, n + 1).
        One output `branches` (b, n + 3): q, NaN where there is none; what remains, two
        such squares; the reason. For a target that is not a pose the numbers are NaN.
    """
    n = len(problem.selection.inputs)

    def equations(
        tree: Tree, near: Vector, matrix: Matrix, allowed: Vector, *branches: Matrix
    ) -> list[list[Number]]:
        target = _unchecked(matrix)
        rigid = is_rigid(target, matrix[3])
        check = _BranchCheck(problem, tree, near, target, rigid, allowed)
        rows = branches[0] if branches else branch_numbers(form, target, n)
        return [check.verified(row) for row in rows]

    more = {} if traced else {"found": (len(form.names), n + 1)}
    return program_of(
        equations,
        problem.tree,
        problem.selection,
        name="own_closed",
        output="branches",
        target=(4, 4),
        allowed=(2,),
        **more,
    )


@final
class _BranchCheck(msgspec.Struct, frozen=True):
    """The verification of branches of one target, on traced numbers.

    Attributes:
        problem: What is reached.
        tree: What moves.
        near: Near which turns of joints bring q.
        target: A pose, if it is `rigid`.
        rigid: Whether it is.
        allowed: The largest squares, see `verified_program`.
    """

    problem: IKProblem
    tree: Tree
    near: Vector
    target: Pose
    rigid: Any
    allowed: Vector

    def squares(self, q: Vector) -> list[Number]:
        """Return the squares of what remains of the target at q."""
        goal = self.problem.goals[0]
        whole = with_numbers(self.near, self.problem.selection.inputs, q)
        (X,) = poses_of(self.tree, whole, [goal.frame], goal.relative_to)
        apart = subtract(X.position, self.target.position)
        return [dot(apart, apart), chord_square(X, self.target)]

    def is_met(self, squares: Vector) -> Any:
        """Return whether such squares are small enough."""
        return (squares[0] <= self.allowed[0]) & (squares[1] <= self.allowed[1])

    def verified(self, numbers: Vector) -> list[Number]:
        """Return q, what remains, and the reason of a branch.

        It is SOLVED where q reaches the target and does so as well when put at limits;
        LIMITS where only the first holds.
        """
        *q, is_reached = numbers
        limits = _pairs(self.problem.limits)
        inputs, turning = self.problem.selection.inputs, self.problem.turning.tolist()
        for k, (ends, turns) in enumerate(zip(limits, turning, strict=True)):
            if turns:
                q[k] = nearest_turns(q[k], self.near[inputs[k]], ends, True)
        inside = [clipped(x, *ends) for x, ends in zip(q, limits, strict=True)]
        miss = self.squares(q)
        is_same = all(x is y for x, y in zip(inside, q, strict=True))
        there = miss if is_same else self.squares(inside)
        met = self.is_met(miss)
        solved = met & self.is_met(there)
        exists: Any = is_reached == 1.0
        is_finite: Any = self.rigid
        for x in q:
            is_finite = is_finite & (absolute(x) < math.inf)
        reason = select(solved, SOLVED, select(met, LIMITS, NOT_FOUND))
        reason = select(exists & is_finite, reason, OUT_OF_REACH)
        q = [select(solved, x, y) for x, y in zip(inside, q, strict=True)]
        miss = [select(solved, x, y) for x, y in zip(there, miss, strict=True)]
        return [
            *(select(is_finite, x, math.nan) for x in q),
            *(select(self.rigid, x, math.nan) for x in miss),
            select(self.rigid, reason, INVALID),
        ]


def _unchecked(matrix: Matrix) -> Pose:
    """Return a matrix as a pose, whether it is rigid or not."""
    position = [row[3] for row in matrix[:3]]
    return Pose.from_rotation_position([row[:3] for row in matrix[:3]], position)


def _pairs(limits: tuple[Array, Array]) -> list[tuple[float, float]]:
    """Return the least and greatest position of each joint."""
    lower, upper = limits
    return list(zip(lower.tolist(), upper.tolist(), strict=True))


def picked_program(problem: IKProblem, form: ClosedForm) -> Program:
    """Return the program of the branch nearest to a vector, not yet verified.

    Those within limits come first.

    Returns:
        Inputs `near` (n,), within limits, and `target` (4, 4). One output `picked`
        (n + 1,): q, put at limits; 1 where there is one and the target is rigid.
    """
    limits = _pairs(problem.limits)
    turning = problem.turning.tolist()

    def equations(near: Vector, matrix: Matrix) -> list[Number]:
        target = _unchecked(matrix)
        least: Number = math.inf
        best: list[Number] = [*near, 0.0]
        for *q, is_reached in branch_numbers(form, target, len(limits)):
            steps: Number = 0.0
            inside: list[Number] = []
            for k, (x, ends, turns) in enumerate(zip(q, limits, turning, strict=True)):
                turned = nearest_turns(x, near[k], ends, True) if turns else x
                inside.append(clipped(turned, *ends))
                beyond = select(inside[k] == turned, 0.0, BEYOND_LIMITS)
                steps = steps + (turned - near[k]) * (turned - near[k]) + beyond
            steps = select(is_reached == 1.0, steps, math.inf)
            better = steps < least
            least = select(better, steps, least)
            row = [*inside, 1.0]
            best = [select(better, x, y) for x, y in zip(row, best, strict=True)]
        best[-1] = select(is_rigid(target, matrix[3]), best[-1], 0.0)
        return best

    return trace(
        equations,
        name="picked_branch",
        outputs=("picked",),
        near=(len(limits),),
        target=(4, 4),
    )


def branch_numbers(form: ClosedForm, pose: Pose, n: int) -> list[list[Number]]:
    """Return n numbers for each branch of a pose, and 1 or, where out of reach, 0.

    Where a branch does not exist, all are NaN.

    Raises:
        ModelError: There are not as many branches or numbers as there should be.
    """
    count, name = len(form.names), type(form).__name__
    branches = form.inverse(pose)
    if branches is None:
        return [[math.nan] * (n + 1) for _ in range(count)]
    if len(branches) != count:
        raise ModelError(
            f"{name}.inverse returned {len(branches)} branches; its branches are "
            f"{', '.join('/'.join(words) for words in form.names)}. Return None for "
            "those that do not exist."
        )
    rows: list[list[Number]] = []
    for words, branch in zip(form.names, branches, strict=True):
        is_reached = not isinstance(branch, OutOfReach)
        q = branch if is_reached else branch.q
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
