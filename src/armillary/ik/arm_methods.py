"""The methods of an arm: its closed forms and the search, and which are asked.

given joints   the closed form of the others, alone
closed form    before the search, if the arm has one
search         before the closed form where one answer is found sooner than all are; the
               form then answers what the search does not find
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from armillary.errors import ModelError, unknown
from armillary.forks import IMPORT_LOCK
from armillary.ik.answer import answer
from armillary.ik.closed_forms.family import NotApplicable
from armillary.ik.closed_forms.general_6r.geometry import SixAxes
from armillary.ik.form_of_arm import recognised
from armillary.ik.method import Candidates
from armillary.ik.numeric import NumericSearch
from armillary.ik.problem import IKProblem
from armillary.ik.query import IKQuery
from armillary.ik.reason import IN_COLLISION, LIMITS, NOT_FOUND
from armillary.ik.recognised_form import RecognisedForm, arm_problem
from armillary.ik.solution import Answers, Solution
from armillary.model.closed_form import ClosedForm

if TYPE_CHECKING:  # imported where it is asked for
    from armillary.ik.free_joint import FreeJoint
    from armillary.ik.general_form import GeneralForm
    from armillary.ik.held_joints import HeldForm
    from armillary.ik.user_form import UserForm

__all__ = ["ArmMethods"]

METHODS = ("closed", "numeric")


class ArmMethods:
    """The methods of a problem.

    Attributes:
        problem: What is solved.
        numeric: The search.
    """

    def __init__(self, problem: IKProblem, own: ClosedForm | None) -> None:
        """Prepare for a problem and a closed form of the user's own, if there is one.

        Raises:
            ModelError: That is to place anything but one full pose.
        """
        self.problem, self.numeric = problem, NumericSearch(problem)
        if own is not None and not (
            len(problem.goals) == 1 and problem.goals[0].is_whole
        ):
            raise ModelError("A closed form places one frame, with its full pose.")
        self._user_form = None if own is None else _user_form(problem, own)
        self._held_forms: dict[tuple[int, ...], HeldForm] = {}

    @cached_property
    def form(self) -> RecognisedForm | GeneralForm | UserForm | str:
        """Return the closed form of the arm, or why there is none."""
        if self._user_form is not None:
            return self._user_form
        problem = self.problem
        try:
            if problem.selection.passive:
                with IMPORT_LOCK:
                    from armillary.ik.legs import rod_form

                return _user_form(problem, rod_form(problem))
            return recognised(problem)
        except NotApplicable as unfit:
            return str(unfit)

    def given(self, joints: tuple[str, ...]) -> HeldForm:
        """Return the closed form of an arm of which some joints are given.

        Raises:
            UnknownName: A joint does not exist.
            ModelError: A joint is not among those that are found, or the others have no
                closed form; the message says why.
        """
        with IMPORT_LOCK:
            from armillary.ik.held_joints import HeldForm, held_of

        held = held_of(self.problem, joints)
        form = self._held_forms.get(held)
        if form is None:
            try:
                form = HeldForm(self.problem, held)
            except NotApplicable as unfit:
                given = ", ".join(map(repr, joints)) or "no joint"
                raise ModelError(
                    f"With {given} given, the other joints have no closed form: "
                    f"{unfit}."
                ) from unfit
            self._held_forms[held] = form
        return form

    @cached_property
    def searches_first(self) -> bool:
        """Return whether a search finds one answer sooner than the closed form all.

        The form, which takes a while to make, answers what the search does not find.
        """
        if self._user_form is not None or not self.problem.can_search:
            return False
        try:
            arm = arm_problem(self.problem).closed.arm
        except NotApplicable:
            return False
        return isinstance(arm, SixAxes) and not arm.is_plain

    def answered(self, target: Any, near: Any, *, explain: bool) -> Solution | None:
        """Return the answer to one target that is found at once, if there is one."""
        if self.searches_first:
            found = self.numeric.answered(target, near, explain=explain)
            return found if found is not None and found.success else None
        method = self._quick_method
        if method is None:
            return None
        if isinstance(method, NumericSearch):
            return method.answered(target, near, explain=explain)
        return method.answered(target, near, self.numeric.answered_beside)

    def all_answered(self, target: Any) -> Answers | None:
        """Return all answers to one target that a formula finds at once, if any."""
        method = self._quick_method
        if method is None or isinstance(method, NumericSearch):
            return None
        return method.all_answered(target)

    @cached_property
    def _quick_method(self) -> RecognisedForm | GeneralForm | NumericSearch | None:
        """Return what may answer single targets at once, if anything."""
        form: Any = self.form
        is_users = form is self._user_form or self.problem.selection.passive
        if is_users and not isinstance(form, str):
            return None
        return self.numeric if isinstance(form, str) else form

    def found(
        self,
        query: IKQuery,
        method: str | None,
        arm_angle: Any,
        redundancy: Mapping[str, Any] | None,
    ) -> Candidates:
        """Return the answer to each target as its only candidate.

        Raises:
            UnknownName: As of `forms`.
            ModelError: The same.
        """
        if not (method is arm_angle is redundancy is None and self.searches_first):
            forms = self.forms(method, arm_angle, redundancy)
            return answer(forms, self.numeric, query)
        found = answer([], self.numeric, query)
        left = np.isin(found.reason[:, 0], (NOT_FOUND, LIMITS, IN_COLLISION))
        rows = np.flatnonzero(left)
        if rows.size:
            forms = self.forms(None, None, None)
            found.take(rows, answer(forms, self.numeric, query.at(rows)))
        return found

    def forms(
        self,
        method: str | None,
        arm_angle: Any,
        redundancy: Mapping[str, Any] | None,
    ) -> list[RecognisedForm | GeneralForm | UserForm | HeldForm]:
        """Return the closed forms that are tried before the search, in order.

        Args:
            method: As for a call of `InverseKinematics`.
            arm_angle: The same.
            redundancy: The same.

        Raises:
            UnknownName: There is no such method.
            ModelError: What is asked for excludes each other, or is not there.
        """
        if method is not None and method not in METHODS:
            raise unknown("method", method, METHODS, owner="ik")
        if redundancy is not None:
            if arm_angle is not None or method == "numeric":
                other = "arm_angle=" if arm_angle is not None else "method='numeric'"
                raise ModelError(f"redundancy= and {other} exclude each other.")
            return [self.given(tuple(redundancy))]
        form = self.form
        why = form if isinstance(form, str) else ""
        closed = None if isinstance(form, str) or method == "numeric" else form
        if method == "closed" and closed is None:
            raise ModelError(f"There is no closed form here: {why}.")
        if arm_angle is not None and closed is None:
            why = why or "method='numeric' was asked for"
            raise ModelError(f"Only a closed form takes an arm angle: {why}.")
        if arm_angle is not None and closed is not None and closed.arm_angle is None:
            raise ModelError(
                "This closed form has no arm angle: its targets leave only finitely "
                "many answers. Leave arm_angle out."
            )
        return [] if closed is None else [closed]

    def free(self, method: str | None) -> list[FreeJoint | NumericSearch]:
        """Return what finds many answers of an arm without a closed form."""
        with IMPORT_LOCK:
            from armillary.ik.free_joint import free_joint

        free = None if method == "numeric" else free_joint(self.problem)
        if free is None or not free.is_quick:
            return [self.numeric]
        return [free, self.numeric]


def _user_form(problem: IKProblem, own: ClosedForm) -> UserForm:
    with IMPORT_LOCK:
        from armillary.ik.user_form import UserForm

    return UserForm(problem, own)
