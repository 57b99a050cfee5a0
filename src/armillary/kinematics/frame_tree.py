"""Which frames of a cell carry which, in its states."""

from __future__ import annotations

from collections.abc import Sequence

from armillary.errors import ModelError
from armillary.kinematics.state import State, bound_state, link_poses
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell
from armillary.spatial.inertia import SpatialInertia

__all__ = [
    "carried",
    "children",
    "common_ancestor",
    "is_movable",
    "movable_bases",
    "parent",
    "rigid_with",
]


def parent(cell: Workcell, frame: str, state: State) -> str | None:
    """Return the frame that carries a frame in a state; None for the world.

    That of a named frame is its link, that of a link its parent link, that of a base
    the frame that it is attached to or mounted on.

    Raises:
        UnknownName: There is no such frame.
        StateError: The state is not one of this cell.
    """
    return bound_state(cell, state).tree.frame_parent(cell.qualified(frame))


def children(cell: Workcell, frame: str, state: State) -> tuple[str, ...]:
    """Return the frames whose `parent` is a frame in a state.

    Raises:
        UnknownName: There is no such frame.
        StateError: The state is not one of this cell.
    """
    tree = bound_state(cell, state).tree
    return tuple(tree.frame_children(cell.qualified(frame)))


def common_ancestor(cell: Workcell, frames: Sequence[str], state: State) -> str:
    """Return the nearest frame that is or carries each of `frames` in a state.

    Raises:
        UnknownName: A frame does not exist.
        ModelError: There is none to ask about.
        StateError: The state is not one of this cell.
    """
    if isinstance(frames, str) or not frames:
        raise ModelError(f"common_ancestor takes a list of frames, not {frames!r}.")
    names = [cell.qualified(name) for name in frames]
    return bound_state(cell, state).tree.common_frame(names)


def rigid_with(
    cell: Workcell, frame: str, state: State | None = None
) -> tuple[str, ...]:
    """Return the frames that never move relative to a frame while held so.

    Args:
        cell: What has the frames.
        frame: Whose group is asked for; it is the group's first.
        state: Whose attachments count; those at home by default.

    Raises:
        UnknownName: There is no such frame.
    """
    tree = Tree.of(cell) if state is None else bound_state(cell, state).tree
    name = cell.qualified(frame)
    names = cell.frame_names
    movers = tree.movers(cell.frame(each).link for each in names)
    wanted = movers[names.index(name)]
    others = (
        other
        for other, mover in zip(names, movers, strict=True)
        if other != name and mover == wanted
    )
    return (name, *others)


def movable_bases(cell: Workcell) -> tuple[str, ...]:
    """Return the manipulators whose bases states may place, attach and grip.

    The base of every other one is fixed: it stays where its mount has it.
    """
    return tuple(cell.manipulators[k].name for k in Tree.of(cell).movable)


def is_movable(cell: Workcell, frame: str) -> bool:
    """Return whether states may move a frame by moving a base.

    That is the base of its own manipulator, or of one that carries this as built.

    Raises:
        UnknownName: There is no such frame.
    """
    tree = Tree.of(cell)
    carriers = tree.bases_among(tree.ancestors(cell.frame(frame).link))
    return not {*carriers}.isdisjoint(tree.movable)


# what frames carry in a state: its mass, centre of mass and inertia together


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
    poses = link_poses(bound)
    about = names[0] if relative_to is None else relative_to
    X_AW = poses.pose(cell.frame(about)).inverse()
    total = SpatialInertia.zero()
    for number in sorted(bound.tree.carried_by(names)):
        link = cell.links[number]
        if link.inertia is not None:
            X_AL = X_AW @ poses.link_pose(number) @ link.primary
            total += link.inertia.transformed(X_AL)
    return total
