"""A closed form of the user's own: forward and inverse kinematics of a mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from armillary.spatial.pose import Pose


class OutOfReach(NamedTuple):
    """The joint positions of a branch nearest to a target that it cannot reach.

    Attributes:
        q: Joint positions, shape (n,) [m or rad].
    """

    q: Sequence[Any]


class ClosedForm:
    """Forward and inverse kinematics that you know; give it to `Cell.ik` as `closed`.

    Subclass it and write `forward` and `inverse`, in plain Python and NumPy functions,
    with `if` where you like. They are traced and compiled where that can be, else they
    run as they are; `ik.closed.compiled` tells. An instance must not change once it is
    in use. `armillary.testing.check_inverse` checks one.

    Attributes:
        branches: The name of each branch, or a tuple of words for each.
    """

    branches: ClassVar[tuple[str, ...] | tuple[tuple[str, ...], ...]] = ("only",)

    def forward(self, q: Any) -> Pose:
        """Return the pose that joint positions q lead to, shape (n,) [m or rad]."""
        raise NotImplementedError(f"{type(self).__name__} has no forward(q).")

    def inverse(self, pose: Pose) -> Sequence[Sequence[Any] | OutOfReach | None] | None:
        """Return for each of `branches` joint positions that lead to a pose.

        None stands for a branch that does not exist there, or for all of them, and an
        `OutOfReach` for one that comes near the pose, such as with the arm stretched.
        Angles may be whole turns off; they are brought within the limits.
        """
        raise NotImplementedError(f"{type(self).__name__} has no inverse(pose).")

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """Return the name of each branch as a tuple of words."""
        return tuple(
            (name,) if isinstance(name, str) else tuple(name) for name in self.branches
        )
