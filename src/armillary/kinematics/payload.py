"""What frames carry in a state: its mass, centre of mass and inertia together."""

from __future__ import annotations

from collections.abc import Iterable

from armillary.kinematics.poses import LinkPoses
from armillary.kinematics.state import State
from armillary.model.workcell import WORLD_LINK
from armillary.spatial.inertia import SpatialInertia

__all__ = ["carried_by"]


def carried_by(frames: Iterable[str], state: State, relative_to: str) -> SpatialInertia:
    """Return the inertia of all links that frames carry, each link once.

    Their own links are not among them, unless one of the frames carries another.

    Args:
        frames: Qualified names.
        state: What is attached to what, and where.
        relative_to: The frame about whose origin, and in whose axes, it is given.
    """
    cell, tree = state.cell, state.tree
    poses = LinkPoses(tree, state.q, WORLD_LINK)
    X_AW = poses.pose(cell.frame(relative_to)).inverse()
    total = SpatialInertia.zero()
    for number in sorted(tree.carried_by(frames)):
        link = cell.links[number]
        if link.inertia is not None:
            X_AL = X_AW @ poses.link_pose(number) @ link.primary
            total += link.inertia.transformed(X_AL)
    return total
