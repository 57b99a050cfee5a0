"""On which branch joint positions are: words that stay the same between singularities.

A branch of a formula is known by signs of quantities that vanish only where the arm is
singular. Of six joints with any axes such quantities are not known, and may not exist:
some arms lead from one answer of a pose to another without passing a singularity
(Wenger 2007, cuspidal robots). What stays is the sign of det J, J with rows of the
linear and then of the angular velocity. As many answers to a regular pose have the one
sign as the other: the poses that an arm reaches are bounded, so its map has degree 0.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.ik.general_form import GeneralForm
from armillary.ik.held_joints import HeldForm
from armillary.ik.manipulability import goal_jacobian
from armillary.ik.method import IKMethod
from armillary.ik.problem import IKProblem
from armillary.ik.query import query_of
from armillary.ik.recognised_form import RecognisedForm

__all__ = ["branch_names", "is_numbered"]

Array = npt.NDArray[np.float64]
Words = npt.NDArray[np.str_]

SIGNS: Final = np.array([["plus"], ["minus"]])


def is_numbered(form: IKMethod) -> bool:
    """Return whether branches have numbers, which do not stay along a path."""
    if isinstance(form, HeldForm):
        return form.is_general
    return isinstance(form, GeneralForm)


def branch_names(problem: IKProblem, form: IKMethod, q: Array) -> Words:
    """Return the names of the branches that joint positions are on, shape (count, c).

    Args:
        problem: What the joints are of.
        form: The closed form whose branches these are.
        q: Joint positions [m or rad], shape (count, n).
    """
    moving = list(range(len(problem.joints)))
    held: Array | None = None
    if isinstance(form, HeldForm):
        moving, held = form.others, q[:, form.held]
    if is_numbered(form):
        J = goal_jacobian(problem)(q)[..., moving]
        return SIGNS[(np.linalg.det(J) < 0.0).astype(np.int64)]
    query = query_of(problem, problem.fk(q)[:, 0], near=q)._replace(held=held)
    if isinstance(form, RecognisedForm) and form.arm_angle is not None:
        query = query._replace(arm_angle=form.arm_angle(q))
    found = form.candidates(query, every=True)
    steps = ((found.q - q[:, np.newaxis]) ** 2).sum(axis=2)
    nearest = np.where(np.isnan(steps), np.inf, steps).argmin(axis=1)
    return np.array(form.branches)[nearest]
