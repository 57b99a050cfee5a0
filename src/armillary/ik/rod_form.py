"""The closed form of a body on legs, such as the platform of a delta robot."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.ik.closed_forms.family import require
from armillary.ik.legs import Leg, legs_of
from armillary.ik.problem import Problem
from armillary.kinematics.joint_vector import with_numbers
from armillary.model.closed_form import ClosedForm
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Rows

__all__ = ["RodForm", "rod_form"]

Array = npt.NDArray[np.float64]

MOST_DOUBLE: Final = 6
"""Legs of two solutions each: more make too many branches."""
DRAWS: Final = 256
CHECKED: Final = 16
SAME: Final = 1e-6  # of joint positions, and of rotations


class RodForm(ClosedForm):
    """The closed form of a body, each leg of which gives one joint.

    Attributes:
        legs: One for each joint.
    """

    def __init__(
        self, problem: Problem, legs: Sequence[Leg], rotation: Rows | None
    ) -> None:
        """Take over legs.

        Args:
            problem: What is reached.
            legs: One for each joint; other joints stay at home.
            rotation: Of the body, where it cannot turn; None for that of targets.
        """
        self.legs = tuple(legs)
        self._joints = problem.joints
        self._order = [problem.selection.inputs.index(leg.drive.of) for leg in legs]
        self._rest = problem.home.tolist()
        self._rotation = rotation

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """Return the name of each branch: a word for each leg of two solutions."""
        signs = [
            [f"{self._joints[k]} {sign}" for sign in leg.signs]
            for k, leg in zip(self._order, self.legs, strict=True)
            if len(leg.signs) > 1
        ]
        return tuple(itertools.product(*signs)) if signs else (("only",),)

    def inverse(self, pose: Pose) -> list[Any]:
        """Return for each branch joint positions that lead to a pose."""
        body = pose
        if self._rotation is not None:
            body = Pose.from_rotation_position(self._rotation, pose.position)
        found = [leg.solutions(body) for leg in self.legs]
        return [
            with_numbers(self._rest, self._order, numbers)
            for numbers in itertools.product(*found)
        ]


def rod_form(problem: Problem) -> RodForm:
    """Return the closed form of a body on legs, checked by forward kinematics.

    Raises:
        NotApplicable: The joints are not found by legs of their own.
    """
    require(len(problem.goals) == 1, "several frames are placed at once")
    goal = problem.goals[0]
    require(all(goal.position), "its joints move closed loops, and not all of x, y, z")
    q, X = _samples(problem)
    require(len(q) > 0, "its joints move closed loops, which rarely close")
    is_fixed = bool(np.abs(X[:, :3, :3] - X[0, :3, :3]).max() < SAME)
    turns = is_fixed or all(goal.rotation)
    of_joint: dict[int, Leg] = {}
    for leg in legs_of(problem, turns=turns):
        of_joint.setdefault(leg.drive.of, leg)
    path = problem.tree.between([goal.frame, goal.relative_to])
    deciding = {*problem.tree.moving_joints(path)} & {*problem.selection.inputs}
    names = problem.tree.cell.joint_names
    left = [names[k] for k in sorted(deciding - of_joint.keys())]
    require(
        not left,
        "its joints move closed loops, and no leg from the frame determines "
        f"{', '.join(left)} alone",
    )
    legs = [of_joint[k] for k in sorted(deciding)]
    double = sum(len(leg.signs) > 1 for leg in legs)
    require(double <= MOST_DOUBLE, f"its {double} legs have two solutions each")
    rotation = Pose.from_matrix(X[0]).rotation if is_fixed else None
    form = RodForm(problem, legs, rotation if not all(goal.rotation) else None)
    good = all(
        _knows(form, matrix, vector, problem)
        for matrix, vector in zip(X[:CHECKED], q[:CHECKED], strict=True)
    )
    require(good, "its joints move closed loops that are more than legs")
    return form


def _samples(problem: Problem) -> tuple[Array, Array]:
    """Return joint positions at which loops are closed, and poses of the frame."""
    lower, upper = problem.start_range
    q = np.random.default_rng(0).uniform(lower, upper, (DRAWS, len(lower)))
    q[0] = problem.home
    X = np.asarray(problem.fk(q))[:, 0]
    closed = np.isfinite(X).all(axis=(1, 2))
    return q[closed], X[closed]


def _knows(form: RodForm, matrix: Array, q: Array, problem: Problem) -> bool:
    """Tell whether one of the branches of a pose is known joint positions."""
    chosen = [problem.selection.inputs.index(leg.drive.of) for leg in form.legs]
    apart = np.array(form.inverse(Pose.from_matrix(matrix)), dtype=np.float64) - q
    apart = np.where(problem.turning, np.remainder(apart + math.pi, math.tau), apart)
    apart = np.abs(np.where(problem.turning, apart - math.pi, apart))[:, chosen]
    return bool((apart.max(axis=1) < SAME).any())
