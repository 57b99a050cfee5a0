"""What a family of arms is: how to know one, and its formula."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from armillary.errors import ArmillaryError
from armillary.ik.closed_forms.subproblems import Turn
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Number


class NotApplicable(ArmillaryError):
    """A chain has no closed form of the kind that was tried; the message says why."""


def require(truth: bool, otherwise: str) -> None:
    """Go on only where `truth` holds.

    Raises:
        NotApplicable: It does not; the message is `otherwise`.
    """
    if not truth:
        raise NotApplicable(otherwise)


class FormulaAnswer(NamedTuple):
    """One branch.

    Attributes:
        turns: The angle of each joint that turns.
        singular: Whether it is one of infinitely many, a truth value.
        loose: Whether a target next to this one may have an answer where this has none,
            farther away than the targets are.
        shifts: The length of each joint that slides.
        miss: The square of the least error of a target that would make up for a miss,
            as a part of the arm, where it is `loose`; None if that is not known.
    """

    turns: list[Turn]
    singular: Any
    loose: Any = False
    shifts: Sequence[Number] = ()
    miss: Number | None = None


class Preferred(NamedTuple):
    """What is taken where a target leaves a choice.

    Attributes:
        turns: The angle of each joint that turns, where a singularity leaves it free.
        arm_angle: Of families that have one [rad].
    """

    turns: Sequence[Turn]
    arm_angle: Number = 0.0


Formula = Callable[[Pose, Preferred], list[FormulaAnswer]]
"""Takes the pose of the last axis's frame in that of the first; returns each branch."""


class BranchChoice(NamedTuple):
    """A choice between two branches, by the sign of a quantity.

    Attributes:
        what: What is chosen.
        positive: The name of the branch where the quantity is above 0.
        negative: The name of the other.
        sign: The quantity, as text.
    """

    what: str
    positive: str
    negative: str
    sign: str


Geometry = TypeVar("Geometry")


class Family(NamedTuple, Generic[Geometry]):
    """Arms that one formula solves.

    Attributes:
        name: What people call them.
        fit: Returns the formula for an arm; raises `NotApplicable` for others.
        choices: What the branches are: the first changes slowest.
        arm_angle: Returns, for an arm, the formula of the arm angle [rad] of its turns;
            None where a pose alone leaves finitely many answers.
    """

    name: str
    fit: Callable[[Geometry], Formula]
    choices: tuple[BranchChoice, ...]
    arm_angle: Callable[[Geometry], Callable[[list[Turn]], Number]] | None = None
