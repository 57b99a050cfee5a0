"""Inverse kinematics of chosen frames: in closed form where there is one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError, unknown
from armillary.ik.answers import Answers
from armillary.ik.best import least_of
from armillary.ik.enumerate import search_all
from armillary.ik.nearest import nearer
from armillary.ik.numeric import Solver
from armillary.ik.objective import (
    Purpose,
    check_purpose,
    clumsiness,
    limit_distance,
    purpose_program,
)
from armillary.ik.path import Path
from armillary.ik.path_planner import Planner
from armillary.ik.recognised_form import RecognisedForm, has_free_elbow, recognised_form
from armillary.ik.search_step import Goal
from armillary.ik.solution import Solution
from armillary.ik.user_form import UserForm
from armillary.ik.validation import (
    TOLERANCE,
    Tolerance,
    as_numbers,
    as_poses,
    as_vectors,
    check_tolerance,
    countdown,
    deadline_of,
)
from armillary.kernel import Kernel, shared_kernel
from armillary.kernel.search import SearchOptions
from armillary.kinematics.bound_kernel import AnyKernel
from armillary.kinematics.inputs import Inputs
from armillary.kinematics.state import State
from armillary.model.closed_form import ClosedForm
from armillary.model.tree import Tree

Array = npt.NDArray[np.float64]

Formula = RecognisedForm | UserForm

METHODS = ("closed", "numeric")


class InverseKinematics:
    """Inverse kinematics of chosen frames; call it with targets.

    It is made by `cell.ik`. Where the arm has a closed form and the goal is one full
    pose, that answers; else the numeric solver searches.

    Attributes:
        joints: Names of the joints in q.
        goals: What is reached.
        numeric: The numeric solver.
    """

    def __init__(
        self,
        tree: Tree,
        goals: Sequence[Goal],
        selection: Inputs,
        joints: tuple[str, ...],
        fk: Callable[[], AnyKernel],
        own: ClosedForm | None = None,
    ) -> None:
        """Prepare for `goals`; see `cell.ik`.

        Raises:
            ModelError: None of the chosen joints moves a frame, a goal is empty, or a
                closed form of the user's own is to place anything but one full pose.
        """
        if own is not None and not (len(goals) == 1 and goals[0].is_whole):
            raise ModelError("A closed form places one frame, with its full pose.")
        self._own = own
        self.joints = joints
        self.goals = tuple(goals)
        self._made_of = tree, self.goals, selection, joints, fk, own
        self._tree = tree
        self._selection = selection
        self._fk = cache(fk)
        self._purposes: dict[str, Kernel] = {}
        self.numeric = Solver(tree, goals, selection, joints, self._fk)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._made_of

    def __copy__(self) -> InverseKinematics:
        return self

    def __deepcopy__(self, memo: object) -> InverseKinematics:
        return self

    @property
    def closed(self) -> Formula | None:
        """Return the closed form of the arm, None where it has none."""
        return None if isinstance(self._form, str) else self._form

    @property
    def why_not_closed(self) -> str:
        """Return what keeps the arm from having a closed form, empty where it has."""
        return self._form if isinstance(self._form, str) else ""

    def __call__(  # noqa: PLR0913
        self,
        targets: Any,
        *,
        seed: Any = None,
        near: Any = None,
        arm_angle: Any = None,
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
                quaternions, of either sign.
            seed: Where to start first, shape (..., n) or a state; by default the
                nearest poses of a table.
            near: Joint positions that the answer is to stay near, shape (..., n) or a
                state; a search starts there, and what the targets leave free is drawn
                to them.
            arm_angle: Where the elbow of an arm of seven joints is to be [rad], shape
                (...), see `closed.arm_angle`; by default where it is at `near`, or if
                limits forbid that, where the answer is nearest of 15 others.
            tolerance: Largest distance [m] and angle [rad] that remain.
            method: `closed` or `numeric`; by default closed where it can be.
            search_options: When a search gives a start up, and when a target.
            random_seed: Another number gives other random starts of a search.
            threads: How many threads may share a large batch of a search; by default
                as for kernels.
            timeout: Time for the whole call [s]. It bounds searches; a closed form
                takes microseconds. Targets that are left then end as `TIMEOUT`.
            explain: Whether to find out if joint limits block targets that a search
                misses; else these are `NOT_FOUND`, which takes less time.

        Returns:
            The answers; those of a batch do not depend on its order or on threads.

        Raises:
            ShapeError: A shape does not fit, or a tolerance or timeout is not above 0.
            UnknownName: There is no such method.
            ModelError: `closed` is asked for and there is no closed form; or an arm
                angle is given and the arm has none, or needed and not given.
        """
        check_tolerance(tolerance)
        seed, near = self._vector(seed), self._vector(near)

        def search(poses: Any, start: Any, wish: Any = None) -> Solution:
            return self.numeric(
                poses,
                seed=start,
                near=wish,
                tolerance=tolerance,
                search_options=search_options,
                random_seed=random_seed,
                threads=threads,
                timeout=timeout,
                explain=explain,
            )

        closed = self._chosen(method, arm_angle)
        if closed is None:
            return search(targets, seed, near)
        poses, batch = as_poses(targets, 1)
        name, wish = ("seed", seed) if near is None else ("near", near)
        if wish is None:
            wish = [self._selection.rest[k] for k in self._selection.inputs]
        there = as_vectors(wish, name, len(self.joints), batch)
        elbow = as_numbers(arm_angle, "arm_angle", batch)

        def local(poses: Any, start: Any) -> Solution:
            return self.numeric.local(poses, start, tolerance, deadline_of(timeout))

        again = None if near is None or closed.arm_angle else local
        answer = closed.best(poses[:, 0], there, tolerance, batch, search, elbow, again)
        if near is None or not has_free_elbow(closed, arm_angle):
            return answer
        return nearer(answer, local(targets, near), near)

    def all(
        self,
        targets: Any,
        *,
        near: Any = None,
        arm_angle: Any = None,
        tolerance: Tolerance = TOLERANCE,
        method: str | None = None,
        starts: int = 64,
        timeout: float | None = None,
    ) -> Answers:
        """Return all distinct answers to targets.

        They are complete where there is a closed form. Else they are those that a
        search finds from many starts: found, not proven to be all.

        Args:
            targets: As for a call.
            near: Where a joint may stand whole turns apart, a closed form brings it as
                near to this as it can, shape (..., n); by default to zero.
            arm_angle: Where the elbow of an arm of seven joints is to be [rad], shape
                (...), see `closed.arm_angle`; its closed form needs one.
            tolerance: As for a call.
            method: As for a call.
            starts: How many starts a search has for each target.
            timeout: Time for the whole call [s]; then those found so far are returned.

        Raises:
            ShapeError: A shape does not fit, or a tolerance or timeout is not above 0.
            UnknownName: There is no such method.
            ModelError: `closed` is asked for and there is no closed form; or an arm
                angle is given and the arm has none, or needed and not given.
        """
        closed, n = self._chosen(method, arm_angle), len(self.joints)
        left = countdown(timeout)
        poses, batch = as_poses(targets, len(self.goals))
        check_tolerance(tolerance)
        near = self._vector(near)
        wish = None if near is None else as_vectors(near, "near", n, batch)
        if closed is not None:
            elbow = as_numbers(arm_angle, "arm_angle", batch)
            return closed.all(poses[:, 0], wish, tolerance, batch, elbow)
        if starts < 1:
            raise ShapeError(f"all needs at least 1 start, not {starts}.")
        lower, upper = (np.clip(limit, -math.pi, math.pi) for limit in self._limits)
        search_options = SearchOptions(steps=40, stale_factor=math.inf, starts=1)
        return search_all(
            lambda X, q: self.numeric(
                X,
                seed=q,
                tolerance=tolerance,
                search_options=search_options,
                timeout=left(),
                explain=False,
            ),
            poses[:, 0] if len(self.goals) == 1 else poses,
            batch,
            (lower, upper),
            starts,
        )

    def best(
        self,
        targets: Any,
        purpose: Purpose | str,
        *,
        arm_angle: Any = None,
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
            tolerance: As for a call.
            method: As for a call.
            starts: As for `all`.
            timeout: As for a call.
            explain: As for a call.

        Raises:
            ShapeError: As for a call.
            UnknownName: There is no such purpose or method.
            ModelError: As for a call.
            TraceError: The purpose is no formula of one number.
        """
        kernel, left = self._purpose(purpose), countdown(timeout)
        closed = self._chosen(method, arm_angle)
        poses, batch = as_poses(targets, len(self.goals))
        shaped = poses[:, 0] if len(self.goals) == 1 else poses
        if has_free_elbow(closed, arm_angle):
            answers = closed.at_angles(shaped, tolerance)
        else:
            answers = self.all(
                shaped,
                arm_angle=as_numbers(arm_angle, "arm_angle", batch),
                tolerance=tolerance,
                method=method,
                starts=starts,
                timeout=left(),
            )

        def nearby(X: Array, wish: Array) -> Solution:
            return self.numeric.local(X, wish, tolerance, deadline_of(left()))

        q, some = least_of(answers, shaped, kernel, nearby)
        # From answers the search takes no step; where there are none, it says why.
        home = [self._selection.rest[k] for k in self._selection.inputs]
        seed = np.where(some[:, None], q, home)
        ask = self.numeric if arm_angle is None else partial(self, arm_angle=arm_angle)
        return ask(
            shaped.reshape(*batch, *shaped.shape[1:]),
            seed=seed.reshape(*batch, seed.shape[1]),
            tolerance=tolerance,
            timeout=left(),
            explain=explain,
        )

    def _purpose(self, purpose: Purpose | str) -> Kernel:
        if isinstance(purpose, str) and purpose in self._purposes:
            return self._purposes[purpose]
        check_purpose(purpose)
        if not isinstance(purpose, str):
            return shared_kernel(purpose_program(purpose, len(self.joints)))
        if purpose == "limits":
            formula = limit_distance(*(limit.tolist() for limit in self._limits))
        else:
            formula = clumsiness(self._tree, self.goals[0], self._selection)
        kernel = shared_kernel(purpose_program(formula, len(self.joints)))
        return self._purposes.setdefault(purpose, kernel)

    def path(
        self,
        targets: Any,
        *,
        start: Any = None,
        arm_angle: Any = None,
        tolerance: Tolerance = TOLERANCE,
        method: str | None = None,
        largest_step: float = 0.5,
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
            tolerance: As for a call.
            method: As for a call; by default both.
            largest_step: A joint that moves by more between neighbours has jumped
                [m or rad].
            timeout: Time for the whole call [s]; then the best way so far is returned.
            explain: As for a call.

        Returns:
            The answers, and the indices of targets that could only be reached by a
            jump from the one before, or not at all.

        Raises:
            ShapeError: A shape does not fit, or a timeout is not above 0.
            UnknownName: There is no such method.
            ModelError: As for a call.
        """
        left, closed = countdown(timeout), self._chosen(method, arm_angle)
        poses, batch = as_poses(targets, len(self.goals))
        if len(batch) != 1:
            raise ShapeError(f"A path is one sequence of targets, not {batch}.")
        home = np.array([self._selection.rest[k] for k in self._selection.inputs])
        came = None
        if start is not None:
            came = as_vectors(self._vector(start), "start", len(self.joints), ())
        shaped = poses[:, 0] if len(self.goals) == 1 else poses

        def every(target: Array) -> Array:
            if has_free_elbow(closed, arm_angle):
                return closed.at_angles(target[None], tolerance).distinct(0)
            return self.all(target, near=home, **same, timeout=left()).distinct()

        same: dict[str, Any] = {"tolerance": tolerance, "method": method}
        planner = Planner(
            numeric=self.numeric,
            closed=closed,
            arm_angle=as_numbers(arm_angle, "arm_angle", batch),
            answer=partial(self, tolerance=tolerance, explain=explain),
            every=every,
            fk=self._fk,
            limits=self._limits,
            home=home,
            tolerance=tolerance,
            largest_step=largest_step,
            time_left=left,
            explain=explain,
        )
        only_closed = method == "closed" or arm_angle is not None
        return (planner.branches if only_closed else planner.follow)(shaped, came)

    def _vector(self, values: Any) -> Any:
        """Return joint positions, of a state those of its joints."""
        if isinstance(values, State):
            return np.take(values.bound(self._tree.cell).q, self._selection.inputs)
        return values

    @property
    def _limits(self) -> tuple[Array, Array]:
        lower, upper = self._tree.cell.limits
        chosen = list(self._selection.inputs)
        return lower[chosen], upper[chosen]

    @cached_property
    def _form(self) -> Formula | str:
        if self._own is not None:
            return UserForm(self._own, self._limits, self._fk)
        lower, upper = self._limits
        limits = lower.tolist(), upper.tolist()
        return recognised_form(
            self._tree, self.goals, self._selection, limits, self._fk
        )

    def _chosen(self, method: str | None, arm_angle: Any = None) -> Formula | None:
        """Return the closed form if it is to answer."""
        if method is not None and method not in METHODS:
            raise unknown("method", method, METHODS, owner="ik")
        if method == "closed" and self.closed is None:
            raise ModelError(f"There is no closed form here: {self.why_not_closed}.")
        closed = None if method == "numeric" else self.closed
        if closed is None and arm_angle is not None:
            why = self.why_not_closed or "method='numeric' was asked for"
            raise ModelError(f"Only a closed form takes an arm angle: {why}.")
        return closed
