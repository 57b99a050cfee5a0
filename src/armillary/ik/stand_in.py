"""One problem for all frames that a link carries in states: other grips are numbers.

A gripped frame moves with the last link that a joint moves; where it is on that link
is constant. So it is placed as the base of one manipulator of the cell that states may
move, the same one for all parts, attached where the frame is. Its pose there is an
input, `bases`, of the programs of a state, so that these are the same for every part
and every grip.
"""

from __future__ import annotations

from typing import NamedTuple

from armillary.kinematics.inputs import Inputs
from armillary.model.frame import FrameRef
from armillary.model.link_poses import poses_of
from armillary.model.tree import Base, Tree
from armillary.spatial.pose import IDENTITY

__all__ = ["StandIn", "stand_in"]


class StandIn(NamedTuple):
    """A frame that is where another frame is, and what then moves.

    Attributes:
        tree: What moves.
        frame: The base of the manipulator that stands in.
        selection: Which joints may move, and what else is an input.
    """

    tree: Tree
    frame: FrameRef
    selection: Inputs


def stand_in(
    tree: Tree, frame: FrameRef, relative_to: FrameRef, selection: Inputs
) -> StandIn | None:
    """Return what stands in for a frame that a moved base carries, None for others.

    Args:
        tree: That of a state.
        frame: The frame that is placed.
        relative_to: The frame in which it is placed.
        selection: In which all that the state decides is an input.
    """
    root = tree.common_ancestor([frame.link, relative_to.link])
    path = tree.path(root, frame.link)
    moved = next((k for k, link in enumerate(path) if tree.drives[link]), len(path))
    carried = {*tree.bases_among(path[:moved])}
    if moved == len(path) or carried.isdisjoint(selection.bases):
        return None
    holder = FrameRef(path[moved], IDENTITY)
    # What carries either frame cannot stand in: it would carry itself.
    ends = (holder.link, relative_to.link)
    number = _free(tree, {m for k in ends for m in tree.bases_among(tree.ancestors(k))})
    if number is None:
        return None
    (X,) = poses_of(tree, selection.rest, [frame], holder)
    base = Base(holder._replace(pose=X), tree.name(holder.link), X, "attached")
    bases = sorted({*selection.bases} - carried | {number})
    return StandIn(
        tree.attached({number: base}),
        FrameRef(tree.base_link(number), IDENTITY),
        selection._replace(bases=tuple(bases)),
    )


def _free(tree: Tree, carrying: set[int]) -> int | None:
    """Return the first manipulator that can be moved by states and carries nothing."""
    for number in Tree.of(tree.cell).movable:
        link = tree.base_link(number)
        joint = tree.cell.links[link].joint
        is_still = not tree.drives[link] and joint.precursor == IDENTITY
        if is_still and number not in carrying:
            return number
    return None
