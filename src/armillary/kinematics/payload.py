"""What frames carry in a state: its mass, centre of mass and inertia together."""

from __future__ import annotations

from collections.abc import Iterable

from armillary.kinematics.chains import WORLD_KEY, Chains
from armillary.kinematics.frame_tree import FrameTree
from armillary.kinematics.state import State
from armillary.spatial.inertia import SpatialInertia

__all__ = ["carried_by"]


def carried_by(frames: Iterable[str], state: State, relative_to: str) -> SpatialInertia:
    """Return the inertia of all links that stand on frames, each link once.

    Their own links are not among them, unless one of the frames carries another.

    Args:
        frames: Qualified names.
        state: Who holds whom, and where.
        relative_to: The frame about whose origin, and in whose axes, it is given.
    """
    cell = state.cell
    tree = FrameTree(cell, state)
    chains = Chains(state.layout, state.q, WORLD_KEY)
    X_AW = chains.pose(cell.frame(relative_to)).inverse()
    total = SpatialInertia.zero()
    seen: set[str] = set()
    waiting = [child for frame in frames for child in tree.children(frame)]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        waiting.extend(tree.children(name))
        at = cell.frame(name)
        link = cell.manipulators[at.manipulator].links[at.link]
        if link.inertia is not None and tree.is_link(name):
            total += link.inertia.transformed(X_AW @ chains.pose(at) @ link.primary)
    return total
