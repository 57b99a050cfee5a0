"""The inverse that a mechanism gives, as a closed form of the frames it carries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from armillary.ik.problem import IKProblem
from armillary.kinematics.joint_vector import with_numbers
from armillary.model.closed_form import ClosedForm, OutOfReach
from armillary.model.frame import FrameRef
from armillary.model.link_poses import poses_of
from armillary.model.mechanism import Mechanism
from armillary.spatial.pose import IDENTITY, Pose

__all__ = ["MechanismForm", "mechanism_form"]


class MechanismForm(ClosedForm):
    """The closed form of a mechanism, between a frame that carries it and one on it.

    Attributes:
        mechanism: The mechanism.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        before: Pose,
        behind: Pose,
        order: Sequence[int],
        rest: Sequence[float],
    ) -> None:
        """Take over a mechanism.

        Args:
            mechanism: The mechanism.
            before: Its inner frame in the frame in which targets are given.
            behind: The frame that is placed in its outer frame.
            order: For each coordinate of the mechanism its place in q.
            rest: A whole q, from which other joints take their positions.
        """
        self.mechanism = mechanism
        self._before, self._behind = before.inverse(), behind.inverse()
        self._order, self._rest = tuple(order), tuple(rest)

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """Return the name of each branch as a tuple of words."""
        return self.mechanism.names

    def inverse(self, pose: Pose) -> list[Any] | None:
        """Return for each branch joint positions that lead to a pose."""
        branches = self.mechanism.inverse(self._before @ pose @ self._behind)
        return None if branches is None else [self._whole(q) for q in branches]

    def _whole(self, q: Any) -> Any:
        if q is None:
            return None
        if isinstance(q, OutOfReach):
            return OutOfReach(self._whole(q.q))
        return with_numbers(self._rest, self._order, q)


def mechanism_form(problem: IKProblem) -> MechanismForm | None:
    """Return the closed form of the mechanism that chosen joints move, None if none.

    All that it takes must be chosen, and nothing else between the frames may be moved
    by chosen joints. Those that move neither stay at home.
    """
    tree, goals, selection = problem.tree, problem.goals, problem.selection
    if len(goals) != 1 or not goals[0].is_whole:
        return None
    goal, chosen = goals[0], {*selection.inputs}
    root = tree.common_ancestor([goal.frame.link, goal.relative_to.link])
    up, down = (tree.path(root, at.link) for at in (goal.frame, goal.relative_to))
    moved = [k for k in (*up, *down) if chosen & set(tree.moving_joints([k]))]
    if len(moved) != 1 or moved[0] not in up:
        return None
    (link,) = moved
    joint, drives = tree.cell.links[link].joint, tree.drives[link]
    is_plain = all((d.multiplier, d.offset) == (1.0, 0.0) for d in drives)
    places = [drive.of for drive in drives]
    if (
        not isinstance(joint, Mechanism)
        or not joint.has_inverse
        or not is_plain
        or not chosen.issuperset(places)
        or len({*places}) < len(places)
    ):
        return None
    parent = FrameRef(tree.parents[link], IDENTITY)
    (before,) = poses_of(tree, selection.rest, [parent], goal.relative_to)
    (behind,) = poses_of(tree, selection.rest, [goal.frame], FrameRef(link, IDENTITY))
    order = [selection.inputs.index(place) for place in places]
    rest = [selection.rest[k] for k in selection.inputs]
    return MechanismForm(joint, before @ joint.precursor, behind, order, rest)
