"""Inverse kinematics of chosen frames: in closed form where there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError
from armillary.forks import IMPORT_LOCK
from armillary.ik.answer import answer
from armillary.ik.arm_methods import ArmMethods
from armillary.ik.avoidance import Avoidance
from armillary.ik.method import prove_far
from armillary.ik.problem import IKProblem
from armillary.ik.query import TOLERANCE, IKQuery, Tolerance, joint_vectors, query_of
from armillary.ik.recognised_form import (
    RecognisedForm,
    has_free_elbow,
)
from armillary.ik.solution import Answers, Solution
from armillary.ik.step_limit import allowed_steps, is_within, within_steps
from armillary.ik.targets import as_joints
from armillary.kernel import Kernel
from armillary.kernel.search import SearchOptions
from armillary.model.closed_form import ClosedForm
from armillary.model.workcell import Workcell

if TYPE_CHECKING:  # imported where it is asked for
    from armillary.ik.branch_names import Words
    from armillary.ik.general_form import GeneralForm
    from armillary.ik.held_joints import HeldForm
    from armillary.ik.objective import Purpose
    from armillary.ik.path import Path
    from armillary.ik.solver_kernel import SolverKernel
    from armillary.ik.user_form import UserForm

Array = npt.NDArray[np.float64]


class InverseKinematics:
    """Inverse kinematics of chosen frames; call it with targets.

    It is made by `cell.ik`. Where the arm has a closed form and the goal is one full
    pose, that answers; else a numeric search.

    Attributes:
        joints: Names of the joints in q.
        goals: What is reached.
        numeric: The numeric search, which by itself avoids nothing.
        avoid: What tells where answers touch something, or None.
    """

    def __init__(
        self,
        problem: IKProblem,
        own: ClosedForm | None = None,
        avoid: Avoidance | None = None,
    ) -> None:
        """Prepare for a problem; see `cell.ik`.

        Raises:
            ModelError: A closed form of the user's own is to place anything but one
                full pose.
        """
        self._problem = problem
        self._own = own
        self.avoid = avoid
        self._methods = ArmMethods(problem, own)
        self._purposes: dict[str, Kernel] = {}
        self.joints = problem.joints
        self.goals = problem.goals
        self.numeric = self._methods.numeric

    def __repr__(self) -> str:
        name = self._problem.tree.name
        goals = " and ".join(
            f"a frame of {name(goal.frame.link)} relative to "
            f"{name(goal.relative_to.link)}"
            for goal in self.goals
        )
        avoiding = "" if self.avoid is None else f", avoiding {self.avoid!r}"
        joints = ", ".join(self.joints)
        return f"<inverse kinematics of {goals} by {joints}{avoiding}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._problem, self._own, self.avoid)

    def __copy__(self) -> InverseKinematics:
        return self

    def __deepcopy__(self, memo: object) -> InverseKinematics:
        return self

    def avoiding(self, avoid: Avoidance) -> InverseKinematics:
        """Return the solver of answers that touch nothing; it shares all else."""
        solver = object.__new__(type(self))
        vars(solver).update(vars(self), avoid=avoid)
        return solver

    @property
    def cell(self) -> Workcell:
        """Return the cell that the joints are of."""
        return self._problem.tree.cell

    @property
    def closed(self) -> RecognisedForm | GeneralForm | UserForm | None:
        """Return the closed form of the arm, None where it has none."""
        form = self._methods.form
        return None if isinstance(form, str) else form

    @cached_property
    def kernel(self) -> SolverKernel:
        """Return the solver as one kernel, which also takes arrays on a GPU.

        Raises:
            KernelError: It is a search that needs more than a kernel.
        """
        with IMPORT_LOCK:
            from armillary.ik.solver_kernel import solver_kernel
        return solver_kernel(self._methods.form, self.numeric)

    @property
    def why_not_closed(self) -> str:
        """Return what keeps the arm from having a closed form, empty where it has."""
        form = self._methods.form
        return form if isinstance(form, str) else ""

    def closed_given(self, *joints: str) -> HeldForm:
        """Return the closed form of an arm of which some joints are given.

        Calls with `redundancy=` use it; its `branches` and `choices` name the answers.

        Args:
            joints: Their names, bare or qualified.

        Raises:
            UnknownName: A joint does not exist.
            ModelError: A joint is not among those that are found, or the others have no
                closed form; the message says why.
        """
        return self._methods.given(joints)

    def branch(self, q: Any, *, redundancy: Sequence[str] = ()) -> Words:
        """Return the name of the branch that joint positions are on.

        It stays the same along a motion that passes no singularity of the arm, of its
        position or of its rotation; with an arm angle or given joints, of the others.
        Of six joints with any axes it is the sign of det J, J with the linear rows
        first, which several answers to a pose share.

        Args:
            q: Joint positions [m or rad], shape (..., n).
            redundancy: Joints that are given, by name.

        Returns:
            Words in the order of `closed.choices`, shape (..., c); empty where q is not
            finite.

        Raises:
            ShapeError: q is not n numbers.
            ModelError: There is no closed form.
        """
        vectors = as_joints(q, "q", len(self.joints))
        with IMPORT_LOCK:
            from armillary.ik.branch_names import branch_names, is_numbered

        form = self.closed
        if redundancy:
            form = self.closed_given(*redundancy)
        if not (form and form.branches) or (is_numbered(form) and not form.choices):
            why = self.why_not_closed
            if form is not None and form.branches:
                why = "fewer joints than six have no determinant that stays of one sign"
            elif form is not None:
                why = "a given joint is between the others, or the form has one branch"
            raise ModelError(f"Branches have names in closed forms only: {why}.")
        rows = vectors.reshape(-1, len(self.joints))
        finite = np.isfinite(rows).all(axis=1)
        some = branch_names(self._problem, form, rows[finite])
        names = np.zeros((len(rows), some.shape[1]), some.dtype)
        names[finite] = some
        return names.reshape(*vectors.shape[:-1], -1)

    def jax(self) -> Callable[..., Any]:
        """Return it as a function of JAX arrays, with gradients by the target.

        It takes targets (..., 4, 4) and, optionally, `near` (..., n), and returns q
        (..., n), NaN where a target is not reached. First derivatives are those of the
        implicit function; where the target leaves joints free, the least motion of
        them. `jit`, `vmap`, `grad`, `jacfwd` and `jacrev` work.

        Raises:
            KernelError: JAX is not installed, or a goal is not one full pose.
        """
        with IMPORT_LOCK:
            from armillary.ik.implicit import jax_function

        return jax_function(self, self._problem)

    def torch(self) -> Callable[..., Any]:
        """Return it as a function of tensors, with gradients by the target.

        As `jax`; `backward` and `torch.autograd` work.

        Raises:
            KernelError: As of `jax`, of torch.
        """
        with IMPORT_LOCK:
            from armillary.ik.implicit import torch_function

        return torch_function(self, self._problem)

    def __call__(  # noqa: PLR0913
        self,
        targets: Any,
        *,
        seed: Any = None,
        near: Any = None,
        largest_step: Any = None,
        arm_angle: Any = None,
        redundancy: Mapping[str, Any] | None = None,
        bases: Mapping[str, Any] | None = None,
        tolerance: Tolerance = TOLERANCE,
        method: str | None = None,
        search_options: SearchOptions | None = None,
        random_seed: int = 0,
        threads: int | None = None,
        timeout: float | None = None,
        explain: bool = True,
    ) -> Solution:
        """Find joint positions that reach targets.

        A closed form gives of its branches within the limits the one nearest to `near`
        or `seed`, else to home; nearest by the sum of squares.

        Args:
            targets: Poses, shape (..., 4, 4); with k > 1 frames (..., k, 4, 4); in
                place of 4, 4 also 7, quaternions w x y z and origins, or 8, dual
                quaternions, of either sign; 3, positions, where no rotation counts.
            seed: Where to start first, shape (..., n) or a state; by default the
                nearest poses of a table.
            near: Joint positions that the answer is to stay near, shape (..., n) or a
                state; a search starts there, and what the targets leave free is drawn
                to them.
            largest_step: The most that each joint may be from `near` [m or rad], shape
                () or (..., n), as a servo loop allows it in one step. Where the nearest
                answer is farther, one within these steps is sought; what is found
                nowhere ends as `JUMP`, and q is the nearest answer.
            arm_angle: Where the elbow of an arm of seven joints is to be [rad], shape
                (...), see `closed.arm_angle`; by default where it is at `near`, or if
                limits forbid that, where the answer is nearest of 15 others.
            redundancy: Positions of joints by their names [m or rad], each of shape ()
                or (...), which broadcast with the batch of targets: these joints are
                given, and the others answer in closed form; see `closed_given`.
            bases: Poses of bases in the world by the names of their manipulators, shape
                (..., 4, 4): where each stands for each target, in place of where it is
                in the state, also for the collision check. The answer to a row is that
                of `state.place(name, pose)`.
            tolerance: Largest distance [m] and angle [rad] that remain.
            method: `closed` or `numeric`; by default closed where it can be.
            search_options: When a search gives a start up, and when a target.
            random_seed: Another number gives other random starts of a search.
            threads: How many threads may share a large batch; by default as for
                kernels.
            timeout: Time for the whole call [s]. It bounds searches; a closed form
                takes microseconds. Targets that are left then end as `TIMEOUT`.
            explain: Whether to find out if joint limits block targets that a search
                misses; else these are `NOT_FOUND`, which takes less time.

        Returns:
            The answers; each is that to its target alone, unless `timeout` ends it.

        Raises:
            ShapeError: A shape does not fit, or a tolerance or timeout is not above 0.
            UnknownName: There is no such method.
            ModelError: `closed` is asked for and there is no closed form; an arm angle
                is given and the arm has none, or needed and not given; with joints
                given by `redundancy` the others have no closed form; or there is a
                largest step and no `near`.
        """
        most = None
        if largest_step is not None:
            most = allowed_steps(largest_step, near, len(self.joints))
        plain = seed is arm_angle is redundancy is method is search_options is None
        plain = plain and threads is timeout is bases is self.avoid is None
        if plain and tolerance is TOLERANCE and random_seed == 0:
            found = self._methods.answered(targets, near, explain=explain)
            if found is not None and (most is None or is_within(found.q, near, most)):
                return found
        query = query_of(
            self._problem,
            targets,
            near=near,
            seed=seed,
            arm_angle=arm_angle,
            redundancy=redundancy,
            tolerance=tolerance,
            timeout=timeout,
            search_options=search_options,
            random_seed=random_seed,
            threads=threads,
            explain=explain,
            avoid=self.avoid,
        )
        if bases is not None:
            query = _with_bases(self._problem, query, bases)
        found = self._methods.found(query, method, arm_angle, redundancy)
        if most is not None:
            numeric = None if method == "closed" else self.numeric
            within_steps(found, numeric, query, most)
        return Solution(found, query.batch)

    def all(  # noqa: PLR0913
        self,
        targets: Any,
        *,
        near: Any = None,
        arm_angle: Any = None,
        redundancy: Mapping[str, Any] | None = None,
        bases: Mapping[str, Any] | None = None,
        tolerance: Tolerance = TOLERANCE,
        method: str | None = None,
        starts: int = 64,
        timeout: float | None = None,
    ) -> Answers:
        """Return all distinct answers to targets.

        They are complete where there is a closed form. Else they are those that a
        search finds from many starts, the answer of a call among them: found, not
        proven to be all. Those that differ by whole turns of joints are one answer.

        Args:
            targets: As for a call.
            near: Where a joint may stand whole turns apart, it is brought as near to
                this as it can be, shape (..., n); by default to zero.
            arm_angle: Where the elbow of an arm of seven joints is to be [rad], shape
                (...), see `closed.arm_angle`; its closed form needs one.
            redundancy: As for a call.
            bases: As for a call.
            tolerance: As for a call.
            method: As for a call.
            starts: How many starts a search has for each target.
            timeout: Time for the whole call [s]; then those found so far are returned.

        Raises:
            ShapeError: A shape does not fit, or a tolerance or timeout is not above 0.
            UnknownName: There is no such method.
            ModelError: `closed` is asked for and there is no closed form; an arm angle
                is given and the arm has none, or needed and not given; or with joints
                given by `redundancy` the others have no closed form.
        """
        plain = near is arm_angle is redundancy is method is timeout is bases is None
        if plain and self.avoid is None and tolerance is TOLERANCE:
            answers = self._methods.all_answered(targets)
            if answers is not None:
                return answers
        query = query_of(
            self._problem,
            targets,
            near=near,
            arm_angle=arm_angle,
            redundancy=redundancy,
            tolerance=tolerance,
            timeout=timeout,
            starts=starts,
            avoid=self.avoid,
        )
        if bases is not None:
            query = _with_bases(self._problem, query, bases)
        forms = self._methods.forms(method, arm_angle, redundancy)
        first = [*forms, self.numeric][0]
        if has_free_elbow(first, query):
            raise ModelError(
                "This arm reaches a target in infinitely many ways: choose one angle "
                "of its elbow, as in ik.all(targets, arm_angle=0.0) or --arm-angle 0."
            )
        candidates = first.candidates(query, every=True)
        if forms:
            prove_far(candidates, self._problem, query)
        return Answers(candidates, query.batch, self._problem, first.branches)

    def best(  # noqa: PLR0913
        self,
        targets: Any,
        purpose: Purpose | str,
        *,
        arm_angle: Any = None,
        redundancy: Mapping[str, Any] | None = None,
        bases: Mapping[str, Any] | None = None,
        tolerance: Tolerance = TOLERANCE,
        method: str | None = None,
        starts: int = 64,
        timeout: float | None = None,
        explain: bool = True,
    ) -> Solution:
        """Find the answers that serve a purpose best, of those that are found.

        They are the branches of a closed form, at 24 arm angles if these are free, or
        what `all` finds. Where the targets leave the arm free, several are improved
        along that freedom, to a local optimum: a better one may exist.

        Args:
            targets: As for a call.
            purpose: `limits` to stay away from them, `manipulability` to stay away from
                singular poses, or a function of q, shape (n,), to a number that is to
                be small; it is traced and compiled as a joint's `pose` is.
            arm_angle: As for a call; by default it is free.
            redundancy: As for a call; by default it is free.
            bases: As for a call.
            tolerance: As for a call.
            method: As for a call.
            starts: As for `all`.
            timeout: As for a call.
            explain: As for a call.

        Raises:
            ShapeError: As for a call.
            UnknownName: There is no such purpose or method.
            ModelError: As for a call.
            TraceError: The purpose is not a formula of one number.
        """
        with IMPORT_LOCK:
            from armillary.ik.objective import least_of

        kernel = self._purpose(purpose)
        query = query_of(
            self._problem,
            targets,
            arm_angle=arm_angle,
            redundancy=redundancy,
            tolerance=tolerance,
            timeout=timeout,
            explain=explain,
            starts=starts,
            avoid=self.avoid,
        )
        first = [
            *self._methods.forms(method, arm_angle, redundancy),
            *self._methods.free(method),
        ][0]
        if bases is not None:
            query = _with_bases(self._problem, query, bases)
        candidates = first.candidates(query, every=True)
        q, some = least_of(candidates, query, kernel, self.numeric.local)
        # From answers the search takes no step; where there are none, it says why.
        query = query._replace(seed=np.where(some[:, None], q, query.home))
        forms = (
            []
            if query.can_search
            else self._methods.forms(method, arm_angle, redundancy)
        )
        return Solution(answer(forms, self.numeric, query), query.batch)

    def path(  # noqa: PLR0913
        self,
        targets: Any,
        *,
        start: Any = None,
        arm_angle: Any = None,
        redundancy: Mapping[str, Any] | None = None,
        bases: Mapping[str, Any] | None = None,
        tolerance: Tolerance = TOLERANCE,
        method: str | None = None,
        largest_step: Any = 0.5,
        weights: Any = None,
        timeout: float | None = None,
        explain: bool = True,
    ) -> Path:
        """Follow a sequence of targets without jumps where that is possible.

        Each pose is sought from the answer before; without `start` from several answers
        to the first pose. Where that jumps, the best way through many answers to each
        pose is sought: branches of a closed form in all turns of the joints, and at arm
        angles chosen along the path; else ways from several answers to a few poses.
        The best has the fewest jumps, then the least sum of squared steps.

        Args:
            targets: Poses, shape (k, 4, 4); for several frames (k, f, 4, 4).
            start: Joint positions to come from, shape (n,); where the first pose is far
                from them, it counts as a jump.
            arm_angle: As for a call, shape () or (k,); by default it is free.
            redundancy: As for a call, each of shape () or (k,); by default it is free.
            bases: As for a call: where bases stand at each pose.
            tolerance: As for a call.
            method: As for a call; by default both.
            largest_step: A joint that moves by more between neighbours has jumped in
                any case [m or rad], shape (), (n,) for each joint or (k, n) for each
                step, row i for that to target i: rates over times.
            weights: How much a step of each joint counts, shape (n,), in any unit; by
                default equally much.
            timeout: Time for the whole call [s]; then the best way so far is returned.
            explain: As for a call.

        Returns:
            The answers, and the indices of targets that could only be reached by a
            jump from the one before, or not at all: by a step that is larger than
            `largest_step`, or stands out from those before and after it.

        Raises:
            ShapeError: A shape does not fit, or a timeout, step or weight is not above
                0.
            UnknownName: There is no such method.
            ModelError: As for a call.
        """
        query = query_of(
            self._problem,
            targets,
            arm_angle=arm_angle,
            redundancy=redundancy,
            tolerance=tolerance,
            timeout=timeout,
            explain=explain,
            avoid=self.avoid,
        )
        with IMPORT_LOCK:
            from armillary.ik.path import measure_of
            from armillary.ik.path_planner import PathPlanner

        if len(query.batch) != 1:
            raise ShapeError(f"A path is one sequence of targets, not {query.batch}.")
        if bases is not None:
            query = _with_bases(self._problem, query, bases)
        asks_a_form = not (method is arm_angle is redundancy is None)
        searches = self._methods.searches_first and not asks_a_form
        forms = [] if searches else self._methods.forms(method, arm_angle, redundancy)
        shape = len(query.targets), len(self.joints)
        steps, parts = measure_of(largest_step, weights, shape)
        planner = PathPlanner(forms, self.numeric, query, steps, parts)
        came = None
        if start is not None:
            came = joint_vectors(self._problem, start, "start", ())
        only_closed = method == "closed" or not query.can_search
        return (planner.branches if only_closed else planner.follow)(came)

    # inside

    def _purpose(self, purpose: Purpose | str) -> Kernel:
        with IMPORT_LOCK:
            from armillary.ik.objective import purpose_kernel

        if not isinstance(purpose, str):
            return purpose_kernel(self._problem, purpose)
        if purpose not in self._purposes:
            self._purposes[purpose] = purpose_kernel(self._problem, purpose)
        return self._purposes[purpose]


def _with_bases(
    problem: IKProblem, query: IKQuery, bases: Mapping[str, Any]
) -> IKQuery:
    with IMPORT_LOCK:
        from armillary.ik.moved_bases import with_bases

    return with_bases(problem, query, bases)
