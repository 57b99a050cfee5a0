"""The closed form of an arm: by the formula of its family, or for any axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from armillary.forks import IMPORT_LOCK
from armillary.ik.closed_forms.general_6r.geometry import SixAxes
from armillary.ik.problem import IKProblem
from armillary.ik.recognised_form import RecognisedForm, arm_problem

if TYPE_CHECKING:
    from armillary.ik.general_form import GeneralForm

__all__ = ["recognised"]


def recognised(problem: IKProblem) -> RecognisedForm | GeneralForm:
    """Return the closed form of a problem.

    Raises:
        NotApplicable: The arm has no closed form.
    """
    arm = arm_problem(problem)
    if isinstance(arm.closed.arm, SixAxes):
        with IMPORT_LOCK:
            from armillary.ik.general_form import GeneralForm  # it takes a while

        return GeneralForm(problem, arm)
    return RecognisedForm(problem, arm)
