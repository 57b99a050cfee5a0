"""What frames carry in a state: its mass, centre of mass and inertia together."""

from __future__ import annotations

from collections.abc import Sequence

from armillary.errors import ModelError
from armillary.kinematics.bound_state import bound_state
from armillary.kinematics.state import State
from armillary.model.link_poses import LinkPoses
from armillary.model.workcell import WORLD_LINK, Workcell
from armillary.spatial.inertia import SpatialInertia

__all__ = ["carried"]


def carried(
    cell: Workcell,
    frames: str | Sequence[str],
    state: State,
    *,
    relative_to: str | None = None,
) -> SpatialInertia:
    """Return the inertia of everything that frames carry in a state.

    That is the payload of a tool's frame; of a link, also the links behind it, but
    not the link itself; of the world, everything. Links of unknown inertia count
    nothing. The result has `.mass` [kg], `.centre()` [m], `.about_centre()` and
    `.rotational` [kg m^2].

    Args:
        cell: What has the frames.
        frames: A frame or a list of them; what two of them carry counts once.
        state: The attachments, and where everything is.
        relative_to: The frame about whose origin, and in whose axes, it is given;
            by default the first of `frames`.

    Raises:
        UnknownName: A frame does not exist.
        ModelError: `frames` is an empty list.
        StateError: The state is not one of this cell.
    """
    listed = (frames,) if isinstance(frames, str) else frames
    names = [cell.qualified(name) for name in listed]
    if not names:
        raise ModelError("carried needs at least one frame.")
    bound = bound_state(cell, state)
    poses = LinkPoses(bound.tree, bound.positions.tolist(), WORLD_LINK)
    about = names[0] if relative_to is None else relative_to
    X_AW = poses.pose(cell.frame(about)).inverse()
    total = SpatialInertia.zero()
    for number in sorted(bound.tree.carried_by(names)):
        link = cell.links[number]
        if link.inertia is not None:
            X_AL = X_AW @ poses.link_pose(number) @ link.primary
            total += link.inertia.transformed(X_AL)
    return total
